// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A recording is a text file. Records are ordered by the beginning of their requests
// and separated by blank lines. The first character of a line gives its meaning:
//
//	> POST https://host/path     a request; its headers follow
//	> Name: value
//	< 200 OK                     its answer; its headers follow
//	| text                       a line of a body, with the newline after it
//	/ text                       the same, with CR and LF after it
//	. text                       text of a body without a newline
//	"text\r\n"                   bytes of a body as a Go string
//	= SGVsbG8=                   bytes of a body in base64
//	-                            boundary of two network reads
//	! unexpected EOF             the error at the end of the body or, without
//	an answer, of the request
//	> text, < binary             a WebSocket's frame and its direction
//	< close 1000 reason          a close frame
//
// A long JSON text is split after its commas into lines without newlines, so that a
// change of one member is a change of one line.

const magic = "antiphon recording 1"

// exchange is one request and its answer.
type exchange struct {
	method, url string
	header      http.Header
	body        []byte
	status      int // 0 means no answer
	respHeader  http.Header
	chunks      [][]byte
	end         string // the error at the end of the body, or ""
	frames      []frame
}

// frame is a frame of a WebSocket.
type frame struct {
	sent bool // by the client
	kind string
	data []byte // of a close frame, the reason
	code int    // of a close frame
}

// Kinds of frames.
const (
	frameText   = "text"
	frameBinary = "binary"
	frameClose  = "close"
)

// recordWriter writes the format.
type recordWriter struct{ bytes.Buffer }

func (w *recordWriter) exchange(x *exchange) {
	fmt.Fprintf(w, "\n> %s %s\n", x.method, x.url)
	w.header('>', x.header)
	w.body(x.body)
	if x.status != 0 {
		fmt.Fprintf(w, "< %s\n", strings.TrimSpace(strconv.Itoa(x.status)+" "+http.StatusText(x.status)))
		w.header('<', x.respHeader)
	}
	for i, chunk := range x.chunks {
		if i > 0 {
			w.WriteString("-\n")
		}
		w.body(chunk)
	}
	for _, f := range x.frames {
		sign := '<'
		if f.sent {
			sign = '>'
		}
		if f.kind == frameClose {
			fmt.Fprintf(w, "%c close %d %s\n", sign, f.code, oneLineText(string(f.data)))
			continue
		}
		fmt.Fprintf(w, "%c %s\n", sign, f.kind)
		w.body(f.data)
	}
	if x.end != "" {
		fmt.Fprintf(w, "! %s\n", oneLineText(x.end))
	}
}

func (w *recordWriter) header(sign rune, h http.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			fmt.Fprintf(w, "%c %s: %s\n", sign, name, oneLineText(value))
		}
	}
}

// oneLineText returns a text in the form for one line, quoted if necessary.
func oneLineText(s string) string {
	if !plainText(s) || strings.HasPrefix(s, `"`) || strings.TrimSpace(s) != s {
		return strconv.Quote(s)
	}
	return s
}

func fromOneLine(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		return strconv.Unquote(s)
	}
	return s, nil
}

// plainText reports whether a text can be written without quotes.
func plainText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r != '\t' && !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}

const (
	longLine   = 100 // minimum length for splitting JSON
	base64Line = 76
)

// body writes bytes in a readable form.
func (w *recordWriter) body(b []byte) {
	if binaryBytes(b) {
		text := base64.StdEncoding.EncodeToString(b)
		for len(text) > 0 {
			n := min(base64Line, len(text))
			w.WriteString("= " + text[:n] + "\n")
			text = text[n:]
		}
		return
	}
	for line := range bytes.Lines(b) {
		text, sign := lineEnd(string(line))
		if !plainText(text) || strings.HasSuffix(text, " ") || strings.HasSuffix(text, "\t") { // editors remove trailing white space
			w.WriteString(strconv.Quote(string(line)) + "\n")
			continue
		}
		if len(text) > longLine && (text[0] == '{' || text[0] == '[') {
			parts := strings.Split(breakJSON(text), "\n")
			for _, part := range parts[:len(parts)-1] {
				w.WriteString(". " + part + "\n")
			}
			text = parts[len(parts)-1]
		}
		if text != "" {
			sign += " "
		}
		w.WriteString(sign + text + "\n")
	}
}

// lineEnd returns a line without its end, and the sign for the end.
func lineEnd(line string) (text, sign string) {
	if text, ok := strings.CutSuffix(line, "\r\n"); ok {
		return text, "/"
	}
	if text, ok := strings.CutSuffix(line, "\n"); ok {
		return text, "|"
	}
	return line, "."
}

// binaryBytes reports whether bytes should be written as base64.
func binaryBytes(b []byte) bool {
	odd := 0
	for rest := b; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 || r < ' ' && r != '\t' && r != '\n' && r != '\r' {
			odd++
		}
		rest = rest[n:]
	}
	return odd > 8 && odd > len(b)/8
}

// recordReader reads the format.
type recordReader struct {
	list []*exchange
	x    *exchange
	line int
	into *[]byte // the target of body lines
	// headers is the target of header lines after the first line of a request or an
	// answer.
	headers http.Header
	base64  strings.Builder
}

// readRecording reads a whole file.
func readRecording(text string) ([]*exchange, error) {
	r := &recordReader{}
	for line := range strings.Lines(text) {
		r.line++
		if err := r.read(strings.TrimRight(line, "\r\n")); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
	}
	if r.line == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	err := r.flush()
	for _, x := range r.list {
		x.chunks = slices.DeleteFunc(x.chunks, func(b []byte) bool { return len(b) == 0 })
	}
	return r.list, err
}

func (r *recordReader) read(line string) error {
	if r.line == 1 {
		if line != magic {
			return fmt.Errorf("not a recording of this version: %.40q", line)
		}
		return nil
	}
	if line == "" || line[0] != '=' {
		if err := r.flush(); err != nil {
			return err
		}
	}
	sign, rest := line, ""
	if line != "" {
		sign, rest = line[:1], strings.TrimPrefix(line[1:], " ")
	}
	if sign != ">" && sign != "" && r.x == nil {
		return errors.New("it belongs to no request")
	}
	switch sign {
	case "":
		r.x = nil
		return nil
	case ">", "<":
		return r.head(sign == ">", rest)
	case "!":
		end, err := fromOneLine(rest)
		r.x.end = end
		return err
	case "-":
		if r.x.status == 0 {
			return errors.New("a network read without an answer")
		}
		r.x.chunks = append(r.x.chunks, nil)
		r.into, r.headers = &r.x.chunks[len(r.x.chunks)-1], nil
		return nil
	}
	return r.content(sign, line, rest)
}

// content adds a line of a body.
func (r *recordReader) content(sign, line, rest string) error {
	r.headers = nil
	if r.into == nil {
		r.x.chunks = append(r.x.chunks, nil)
		r.into = &r.x.chunks[0]
	}
	switch sign {
	case "|":
		*r.into = append(append(*r.into, rest...), '\n')
	case "/":
		*r.into = append(append(*r.into, rest...), "\r\n"...)
	case ".":
		*r.into = append(*r.into, rest...)
	case "=":
		r.base64.WriteString(rest)
	case `"`:
		text, err := strconv.Unquote(line)
		if err != nil {
			return fmt.Errorf("not a Go string: %.40s", line)
		}
		*r.into = append(*r.into, text...)
	default:
		return fmt.Errorf("a line begins with > < | / . \" = - or !, this one is %.40q", line)
	}
	return nil
}

// flush decodes the lines of base64 that were collected.
func (r *recordReader) flush() error {
	if r.base64.Len() == 0 {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(r.base64.String())
	if err != nil {
		return err
	}
	*r.into = append(*r.into, b...)
	r.base64.Reset()
	return nil
}

// head reads a line of a direction: the first one of a request or an answer, a
// header, or a frame.
func (r *recordReader) head(sent bool, rest string) error {
	name, value, isHeader := strings.Cut(rest, ": ")
	first, second, _ := strings.Cut(rest, " ")
	switch {
	case r.x == nil && (!sent || first == "" || second == ""):
		return fmt.Errorf("a record begins with a method and a URL: %.40q", rest)
	case r.x == nil:
		r.x = &exchange{method: first, url: second, header: http.Header{}}
		r.list = append(r.list, r.x)
		r.into, r.headers = &r.x.body, r.x.header
	case r.headers != nil && isHeader && !strings.Contains(name, " "):
		value, err := fromOneLine(value)
		r.headers.Add(name, value)
		return err
	case r.x.status == 0 && !sent:
		status, err := strconv.Atoi(first)
		if err != nil || status < 100 || status > 999 {
			return fmt.Errorf("not a status: %.40q", rest)
		}
		r.x.status, r.x.respHeader = status, http.Header{}
		r.into, r.headers = nil, r.x.respHeader
	case r.x.status == http.StatusSwitchingProtocols:
		return r.frame(sent, first, second)
	default:
		return fmt.Errorf("neither a request, an answer nor a header: %.40q", rest)
	}
	return nil
}

func (r *recordReader) frame(sent bool, kind, rest string) error {
	f := frame{sent: sent, kind: kind}
	switch kind {
	case frameText, frameBinary:
	case frameClose:
		code, reason, _ := strings.Cut(rest, " ")
		var err error
		if f.code, err = strconv.Atoi(code); err != nil {
			return fmt.Errorf("not a code: %.40q", code)
		}
		reason, err = fromOneLine(reason)
		if f.data = []byte(reason); err != nil {
			return err
		}
	default:
		return fmt.Errorf("not a kind of frame: %.40q", kind)
	}
	r.x.frames = append(r.x.frames, f)
	r.into, r.headers = &r.x.frames[len(r.x.frames)-1].data, nil
	return nil
}
