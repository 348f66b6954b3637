// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/antiphon-go/antiphon/item"
)

// The SDK decodes messages of a server into Go values. That loses the order of a
// schema's members and the digits of large numbers, and one block of an unknown kind
// makes the whole result fail. So every message passes a tap, which copies the texts
// that must stay exact into a member that the SDK preserves: _meta.

// rawMember is the member of _meta with the text of a tool's schema or of a call's
// result.
const rawMember = "antiphon/raw"

type object = map[string]jsontext.Value

var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// A tapper is what the messages of a server pass.
type tapper struct {
	takes func(tool string) bool // whether a tool is selected
}

// tap returns the message for the SDK. Messages that it does not understand stay unchanged. One of which the SDK would
// make too many values is an error: it takes many times the memory of its text.
func (t tapper) tap(message []byte) ([]byte, error) {
	out, err := t.rewritten(message)
	if err == nil && tooMany(out) {
		err = fmt.Errorf("sent a message of more than %d values, which is the limit", mostValues)
	}
	return out, err
}

func (t tapper) rewritten(message []byte) ([]byte, error) {
	if !bytes.Contains(message, []byte(`"result"`)) && !bytes.Contains(message, []byte(`"error"`)) {
		return message, nil
	}
	m, ok := members(message, mostMembers)
	if !ok {
		return message, nil
	}
	if m["error"] != nil && m["error"].Kind() != 'n' {
		return tapError(message, m), nil
	}
	result, ok := members(m["result"], mostMembers)
	if !ok {
		return message, nil
	}
	switch {
	case result["tools"] != nil:
		if err := t.tapTools(result); err != nil {
			return nil, err
		}
	case result["inputRequests"] != nil:
		return message, nil // a request to the client, which the SDK answers
	case result["content"] != nil || result["structuredContent"] != nil:
		result = tapResult(m["result"], result)
	default:
		return message, nil
	}
	var err error
	if m["result"], err = json.Marshal(result, lenient); err != nil {
		return message, nil
	}
	out, err := json.Marshal(m, lenient)
	if err != nil {
		return message, nil
	}
	return out, nil
}

const (
	mostMembers = 1000    // of a message and of its result; one with more is not understood
	mostValues  = 1 << 20 // of a message as the SDK decodes it, roughly
)

// members returns the members of an object that has at most so many, and whether it is one. They share its memory.
func members(raw jsontext.Value, most int) (object, bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), lenient)
	if start, err := d.ReadToken(); err != nil || start.Kind() != '{' {
		return nil, false
	}
	m := object{}
	for n := 0; d.PeekKind() == '"'; n++ {
		token, err := d.ReadToken()
		if err != nil || n >= most {
			return nil, false
		}
		name := token.String()
		if m[name], err = next(d, raw); err != nil {
			return nil, false
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, false
	}
	_, err := d.ReadToken()
	return m, err == io.EOF
}

// elements returns the elements of a list that has at most so many, and whether it is one. They share its memory.
func elements(raw jsontext.Value, most int) (list []jsontext.Value, ok bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), lenient)
	if start, err := d.ReadToken(); err != nil || start.Kind() != '[' {
		return nil, false
	}
	for d.PeekKind() != ']' {
		value, err := next(d, raw)
		if err != nil || len(list) >= most {
			return nil, false
		}
		list = append(list, value)
	}
	return list, true
}

// next reads a value, and returns where it is in the text that d reads.
func next(d *jsontext.Decoder, text jsontext.Value) (jsontext.Value, error) {
	value, err := d.ReadValue()
	end := int(d.InputOffset())
	return text[max(end-len(value), 0):end:end], err
}

// tooMany reports whether a text has more than mostValues values. It counts what separates and begins them.
func tooMany(text []byte) bool {
	n, quoted := 0, false
	for i := 0; i < len(text) && n <= mostValues; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n > mostValues
}

// The SDK compares errors by their codes, and takes these codes of a server's errors for
// what it says itself when a connection is closed and nothing is sent. So they are moved.
const (
	clientClosing = -32003
	serverClosing = -32004
	moved         = -100_000
)

// tapError returns the message with the code of its error moved, if it is one of those.
func tapError(message []byte, m object) []byte {
	var code int64
	failure, ok := members(m["error"], mostMembers)
	if !ok || json.Unmarshal(failure["code"], &code, lenient) != nil || code != clientClosing && code != serverClosing {
		return message
	}
	failure["code"] = jsontext.Value(strconv.FormatInt(code+moved, 10))
	var err error
	if m["error"], err = json.Marshal(failure, lenient); err != nil {
		return message
	}
	out, err := json.Marshal(m, lenient)
	if err != nil {
		return message
	}
	return out
}

// codeOf returns the code of an error as the server sent it.
func codeOf(e *jsonrpc.Error) int64 {
	if code := e.Code - moved; code == clientClosing || code == serverClosing {
		return code
	}
	return e.Code
}

// tapTools keeps the tools that are selected, of each the members that are used, and the text of its schema. It reads one
// after the other, and no further if they are too many.
func (t tapper) tapTools(result object) error {
	raw := result["tools"]
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), lenient)
	if start, err := d.ReadToken(); err != nil || start.Kind() != '[' {
		return nil
	}
	list, n, size := []byte{'['}, 0, 0
	for d.PeekKind() != ']' {
		one, err := next(d, raw)
		if err != nil {
			return nil
		}
		text, length, selected := t.tapTool(one)
		if !selected {
			continue
		}
		if n, size = n+1, size+length; n > mostTools || size > mostDefined {
			return errors.New("sent " + tooManyTools)
		}
		if n > 1 {
			list = append(list, ',')
		}
		list = append(list, text...)
	}
	result["tools"] = append(list, ']')
	return nil
}

// tapTool returns a tool for the SDK, the length of what is kept of it, and whether it is selected.
func (t tapper) tapTool(raw jsontext.Value) (text []byte, size int, selected bool) {
	all, ok := members(raw, mostMembers)
	if !ok {
		return raw, len(raw), true // the SDK says what is wrong with it
	}
	if name, ok := item.JSON(all["name"]).Unquote(); ok && t.takes != nil && !t.takes(name) {
		return nil, 0, false
	}
	kept := object{}
	for _, name := range []string{"name", "title", "description", "inputSchema", "annotations"} {
		if v, ok := all[name]; ok {
			kept[name] = v
			size += len(v)
		}
	}
	if schema := all["inputSchema"]; schema != nil {
		kept["_meta"] = jsontext.Value(`{"` + rawMember + `":` + string(item.Quote(string(schema))) + `}`)
	}
	text, err := json.Marshal(kept, lenient)
	if err != nil {
		return raw, len(raw), true
	}
	return text, size, true
}

// tapResult returns a result that contains only its own text.
func tapResult(raw jsontext.Value, result object) object {
	quoted := item.Quote(string(raw))
	out := object{
		"content": jsontext.Value("[]"),
		"_meta":   jsontext.Value(`{"` + rawMember + `":` + string(quoted) + `}`),
	}
	if t := result["resultType"]; t != nil {
		out["resultType"] = t
	}
	return out
}

// noticing calls told when a message about changed tools is read. The SDK delivers
// such messages later, possibly after the answer to the call that changed the tools.
func noticing(fix func([]byte) ([]byte, error), told func()) func([]byte) ([]byte, error) {
	return func(line []byte) ([]byte, error) {
		if bytes.Contains(line, toolsChanged) {
			told()
		}
		return fix(line)
	}
}

var toolsChanged = []byte("notifications/tools/list_changed")

// tapReader passes on a stream line by line, as returned by fix.
type tapReader struct {
	src  *bufio.Reader
	max  int
	fix  func(line []byte) ([]byte, error)
	rest []byte
	err  error
}

func newTapReader(src io.Reader, limit int, fix func([]byte) ([]byte, error)) *tapReader {
	return &tapReader{src: bufio.NewReaderSize(src, 32<<10), max: limit, fix: fix}
}

// Read implements [io.Reader].
func (t *tapReader) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		if t.err != nil {
			return 0, t.err
		}
		var line []byte
		if line, t.err = t.line(); len(line) == 0 {
			continue
		}
		var err error
		if t.rest, err = t.fix(line); err != nil {
			t.err = err
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// line reads one line with its end, or the rest of the stream.
func (t *tapReader) line() (line []byte, err error) {
	for {
		part, err := t.src.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > t.max {
			return nil, tooLong(t.max)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

func tooLong(limit int) error {
	return fmt.Errorf("sent a message of more than %d bytes, which is the limit", limit)
}

// fixLines returns the fix of the stdio transport, whose messages are one line each.
// A line that is not a message, such as the banner that many servers print, is
// skipped and passed to stray. A damaged message ends the session, because otherwise
// the call that it answers would wait until its timeout.
func fixLines(t tapper, stray func(line string)) func(line []byte) ([]byte, error) {
	return func(line []byte) ([]byte, error) {
		text := bytes.TrimSpace(line)
		if len(text) == 0 {
			return nil, nil
		}
		switch {
		case !bytes.Contains(text, []byte(`"jsonrpc"`)):
			stray(beginning(text, maxKept))
			return nil, nil
		case text[0] != '{' && text[0] != '[' || !jsontext.Value(text).IsValid(lenient):
			return nil, &StrayOutputError{Line: beginning(text, maxStray)}
		}
		message, err := t.tap(text)
		if err != nil {
			return nil, err
		}
		return append(message, '\n'), nil
	}
}

// maxStray is the length of a stray line in an error, in bytes. More is kept, so
// that a secret is recognised before it is cut.
const maxStray = 200

func beginning(text []byte, n int) string {
	return string(bytes.ToValidUTF8(text[:min(len(text), n)], []byte("\uFFFD")))
}

var dataField = []byte("data:")

// fixEvents returns the fix of event streams. The SDK joins the data lines of an event, so
// they are limited together.
func fixEvents(t tapper, limit int) func(line []byte) ([]byte, error) {
	size := 0 // of the data lines of the event
	return func(line []byte) ([]byte, error) {
		switch {
		case len(bytes.TrimRight(line, "\r\n")) == 0:
			size = 0
		case bytes.HasPrefix(line, dataField):
			if size += len(line); size > limit {
				return nil, tooLong(limit)
			}
		}
		return fixEvent(t, line)
	}
}

// fixEvent taps a line of an event stream. A message on several lines is not tapped.
func fixEvent(t tapper, line []byte) ([]byte, error) {
	data, ok := bytes.CutPrefix(line, dataField)
	if !ok {
		return line, nil
	}
	text := bytes.TrimSpace(data)
	if len(text) == 0 || text[0] != '{' {
		return line, nil
	}
	end := line[len(bytes.TrimRight(line, "\r\n")):]
	message, err := t.tap(text)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(message)+64)
	out = append(append(out, "data: "...), message...)
	return append(out, end...), nil
}
