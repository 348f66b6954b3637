// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
)

// Format and Version appear in the first line of the output of [JSONLines].
const (
	Format  = "antiphon session"
	Version = 4
	// withoutWaiting is the version of a file without deliveries that wait, and withoutBlobs that of
	// one without blobs, too. Older programs can read them.
	withoutWaiting = 3
	withoutBlobs   = 2
)

// begin is the beginning of the first line of a file.
const begin = `{"format":"` + Format + `"`

// MaxLine is the longest line, in bytes, that [ReadJSONLines] reads: an entry with
// all its payloads.
const MaxLine = 1 << 30

// header is the first line of a file.
type header struct {
	Format  string       `json:"format"`
	Version int          `json:"version"`
	Session session.Info `json:"session"`
}

// another is the first line of a nested session, which a call of an earlier session
// started.
type another struct {
	Session *session.Info `json:"session"`
}

// kept is a line with data that entries of the session above only refer to.
type kept struct {
	Blob *Blob `json:"blob"`
}

// Blob is data that an entry refers to: the whole of an output that was shortened
// for the model, or an original that was refused.
type Blob struct {
	ID   string `json:"id"`
	Data []byte `json:"data"`
}

// waits is a line with a delivery that waits for the session above: the lines of [session.AppendDelivery], as a list.
type waits struct {
	Waiting []json.RawMessage `json:"waiting"`
}

// ending is the last line of a file. A file without it is incomplete.
type ending struct {
	End *sums256 `json:"end"`
}

type sums256 struct {
	Sessions int   `json:"sessions"`
	Entries  int64 `json:"entries"`
	// SHA256 is the hash of all bytes of the lines before, or "" if it should not
	// be checked.
	SHA256 string `json:"sha256,omitempty"`
}

// JSONLines writes a complete session as lines of JSON. The first line contains the
// format, its version and the session. Each entry is a line in the form of
// [session.AppendEntry], with all payloads, followed by a member sum: the
// [session.Sum] of the session's lines up to that one, without their sums. Each
// blob that the entries refer to follows as a line, and each delivery that waits; see [Log.Blob]
// and [Log.Waiting]. Then come the sessions of subagents. Each begins with a line of its own. The last line contains
// the counts.
//
// [ReadJSONLines] returns the same entries, byte for byte, unless Hide changed
// them. Hide is applied to the lines; it does not look into base64 payloads.
func JSONLines(w io.Writer, log Log) error {
	if nils.Is(w) {
		return errNoWriter
	}
	sum := sha256.New()
	out := &lineWriter{out: bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10), hide: log.hide}
	parts, err := log.parts()
	if err != nil {
		return err
	}
	info, version := log.Info, withoutBlobs
	info.Entries, info.Cursor = parts[0].entries, "" // a cursor belongs to a list of sessions
	if log.Blob != nil && slices.ContainsFunc(parts, func(p part) bool { return len(p.blobs) > 0 }) {
		version = withoutWaiting
	}
	if slices.ContainsFunc(parts, func(p part) bool { return len(p.waiting) > 0 }) {
		version = Version
	}
	out.value(header{Format, version, info})
	for n, p := range parts {
		if n > 0 {
			out.value(another{&session.Info{ID: p.id, Parent: p.parent, Nested: true, Entries: p.entries}})
		}
		out.session(log, p)
	}
	if out.err == nil {
		out.err = out.out.Flush()
	}
	out.value(ending{&sums256{len(parts), out.entries, hex.EncodeToString(sum.Sum(nil))}})
	if out.err == nil {
		out.err = out.out.Flush()
	}
	return out.err
}

type lineWriter struct {
	out     *bufio.Writer
	hide    func(string) string
	err     error
	line    []byte
	entries int64
}

func (w *lineWriter) value(v any) {
	data, err := json.Marshal(v)
	w.write(data, err)
}

// write writes a line.
func (w *lineWriter) write(line []byte, err error) {
	if said := w.hidden(line, err); w.err == nil {
		_, _ = w.out.WriteString(said) // Flush returns the error
		_ = w.out.WriteByte('\n')
	}
}

// hidden returns a line without secrets. After Hide has changed it, the line must
// still be JSON.
func (w *lineWriter) hidden(line []byte, err error) string {
	if w.err = errors.Join(w.err, err); w.err != nil {
		return ""
	}
	said := w.hide(string(line))
	if said != string(line) && !json.Valid([]byte(said)) {
		w.err = errors.New("a secret that is part of the JSON itself cannot be hidden")
	}
	return said
}

// entry writes the entry in w.line, with the sum that continues the one before.
func (w *lineWriter) entry(seq int64, sum session.Sum, err error) session.Sum {
	said := w.hidden(w.line, err)
	if w.err != nil {
		return sum
	}
	w.line = append(w.line[:0], said...)
	sum = sum.Next(seq, w.line)
	_, _ = w.out.WriteString(said[:len(said)-1]) // Flush returns the error
	_, _ = w.out.WriteString(sumMember + sum.String() + "\"}\n")
	return sum
}

// sumMember begins the last member of an entry's line.
const sumMember = `,"sum":"`

// session writes the entries of a session and the blobs they refer to.
func (w *lineWriter) session(log Log, p part) {
	var sum session.Sum
	left := p.entries
	for e, err := range log.load(p.id) {
		if w.err = errors.Join(w.err, err); w.err != nil || left == 0 {
			break
		}
		left--
		w.line, err = session.AppendEntry(w.line[:0], e)
		sum = w.entry(e.Seq, sum, err)
		w.entries++
	}
	if w.err == nil && left > 0 {
		w.err = fmt.Errorf("session %q lost entries while it was read: it was deleted or replaced; export it again", p.id)
	}
	for _, id := range p.blobs {
		if log.Blob == nil || w.err != nil {
			break
		}
		data, err := log.Blob(id)
		if w.err = err; data != nil {
			w.value(kept{&Blob{id, data}})
		}
	}
	for _, d := range p.waiting {
		w.delivery(d)
	}
}

// delivery writes a delivery that waits. Its items are written byte for byte, as in entries.
func (w *lineWriter) delivery(d session.Delivery) {
	lines, err := session.AppendDelivery(nil, d)
	w.line = append(w.line[:0], `{"waiting":[`...)
	w.line = append(w.line, bytes.ReplaceAll(bytes.TrimSuffix(lines, []byte("\n")), []byte("\n"), []byte(","))...)
	w.write(append(w.line, `]}`...), err)
}

// A Line is a parsed line: the beginning of a session, an entry of that session, a
// blob that its entries refer to, or a delivery that waits for it.
type Line struct {
	// Number is the number of the line, from 1.
	Number int
	// Session is set if the line begins a session. The exported session comes
	// first, then the sessions nested in it.
	Session *session.Info
	Blob    *Blob
	Waiting *session.Delivery
	Entry   session.Entry
	// Size is the length of the line in bytes.
	Size int
}

// ReadJSONLines reads the output of [JSONLines], line by line. It stops at the first
// error, which names the line. For a file of a newer version the error wraps
// [session.ErrNewer]. A file may be cut off anywhere, so the entries are complete
// only if there was no error: an importer must read the file twice, or remove what
// it imported after an error.
func ReadJSONLines(r io.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		if nils.Is(r) {
			yield(Line{}, errors.New("export: the reader is nil"))
			return
		}
		read := &lineReader{in: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
		for {
			line, err := read.next()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Line{Number: read.number}, fmt.Errorf("line %d: %w", read.number, err))
				return
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}

type lineReader struct {
	in       *bufio.Reader
	line     []byte // memory for the next line
	number   int
	sum      hash.Hash // hash of the lines so far
	sessions int
	entries  int64 // total
	seq      int64 // number of the last entry of the session
	info     session.Info
	chain    session.Sum // sum of the session's lines
	broken   bool        // a line without a sum was found, so later sums prove nothing
}

// ErrCut is wrapped by the error of [ReadJSONLines] for a file without its end.
var ErrCut = errors.New("it was cut short")

// next reads a line. It returns io.EOF after the last one.
func (r *lineReader) next() (Line, error) {
	raw, err := r.read()
	if err == io.EOF {
		return Line{}, fmt.Errorf("the file ends before its last line: %w", ErrCut)
	}
	if err != nil {
		return Line{}, err
	}
	text := bytes.TrimRight(raw, "\r\n")
	var line Line
	switch {
	case !bytes.HasSuffix(raw, []byte("\n")) && !json.Valid(text) && (r.number > 1 || bytes.HasPrefix(text, []byte(begin))):
		return Line{}, fmt.Errorf("the file ends in the middle of this line: %w", ErrCut)
	case r.number == 1:
		line, err = r.head(text)
	case bytes.HasPrefix(text, []byte(`{"session":`)):
		line, err = r.another(text)
	case bytes.HasPrefix(text, []byte(`{"blob":`)):
		var k kept
		if err = strict(text, &k); err == nil && k.Blob == nil {
			err = errors.New("it holds no blob")
		}
		line.Blob = k.Blob
	case bytes.HasPrefix(text, []byte(`{"waiting":`)):
		line.Waiting, err = waiting(text)
	case bytes.HasPrefix(text, []byte(`{"end":`)):
		return Line{}, r.end(text)
	default:
		line, err = r.entry(text)
	}
	r.sum.Write(raw)
	line.Number, line.Size = r.number, len(raw)
	return line, err
}

// read returns the next line with its line end. The line is valid until the next
// call.
func (r *lineReader) read() (line []byte, err error) {
	r.number++
	line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		if line = append(line, part...); len(line) > MaxLine {
			return nil, fmt.Errorf("it is longer than %d bytes", MaxLine)
		}
		switch {
		case err == nil, err == io.EOF && len(line) > 0:
			r.line = line
			return line, nil
		case err != bufio.ErrBufferFull:
			return nil, err
		}
	}
}

// strict decodes an object that must not contain unknown members, and must not be
// followed by anything.
func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("unexpected data after the JSON object")
	}
	return nil
}

func (r *lineReader) head(text []byte) (Line, error) {
	var h header
	if err := json.Unmarshal(text, &h); err != nil || h.Format != Format {
		return Line{}, fmt.Errorf("it is not an exported session: its first line would begin %s", begin)
	}
	if h.Version > Version {
		return Line{}, fmt.Errorf("%w: the file has version %d, this program reads up to version %d", session.ErrNewer, h.Version, Version)
	}
	if h.Version < 1 {
		return Line{}, fmt.Errorf("version %d is not valid: versions begin at 1", h.Version)
	}
	if err := strict(text, &h); err != nil {
		return Line{}, err
	}
	return r.begin(h.Session), nil
}

func (r *lineReader) another(text []byte) (Line, error) {
	var a another
	if err := strict(text, &a); err != nil {
		return Line{}, err
	}
	if a.Session == nil {
		return Line{}, errors.New("it names no session")
	}
	if err := r.whole(); err != nil {
		return Line{}, err
	}
	return r.begin(*a.Session), nil
}

// waiting reads a line of a delivery that waits.
func waiting(text []byte) (*session.Delivery, error) {
	var w waits
	if err := strict(text, &w); err != nil {
		return nil, err
	}
	var lines []byte
	for _, line := range w.Waiting {
		lines = append(append(lines, line...), '\n')
	}
	d, err := session.ParseDelivery(lines)
	return &d, err
}

func (r *lineReader) begin(info session.Info) Line {
	r.sessions++
	r.info, r.seq = info, 0
	r.chain, r.broken = session.Sum{}, false
	return Line{Session: &info}
}

// whole returns an error if entries of the session are missing.
func (r *lineReader) whole() error {
	if r.seq != r.info.Entries {
		return fmt.Errorf("session %q ends after %d of %d entries", r.info.ID, r.seq, r.info.Entries)
	}
	return nil
}

func (r *lineReader) entry(text []byte) (Line, error) {
	text, sum := cutSum(text)
	if sum == "" && hasSum(text) {
		return Line{}, errors.New("another program rewrote this line, so its checksum is not valid; to import the file anyway, remove the member sum from each entry and sha256 from the last line")
	}
	if r.chain = r.chain.Next(r.seq+1, text); sum == "" {
		r.broken = true // version 1, or edited; the last line decides
	} else if !r.broken && sum != r.chain.String() {
		return Line{}, fmt.Errorf("entry %d of session %q is not what was exported: its checksum differs; take the member sum out of the entries, and sha256 out of the last line, to read them all the same", r.seq+1, r.info.ID)
	}
	e, err := session.ParseEntry(text)
	if err != nil {
		return Line{}, err
	}
	if r.seq++; e.Seq != r.seq {
		return Line{}, fmt.Errorf("found entry %d, want entry %d: a line is missing or out of order", e.Seq, r.seq)
	}
	r.entries++
	return Line{Entry: e}, nil
}

// cutSum removes the sum from the end of an entry's line and returns it. The sum is
// "" if the line has none.
func cutSum(text []byte) (entry []byte, sum string) {
	const length = len(sumMember) + 2*len(session.Sum{}) + len(`"}`)
	at := len(text) - length
	if at < 1 || string(text[at:at+len(sumMember)]) != sumMember || !bytes.HasSuffix(text, []byte(`"}`)) {
		return text, ""
	}
	sum = string(text[at+len(sumMember) : len(text)-2])
	return append(text[:at:at], '}'), sum
}

// hasSum reports whether an entry has a sum in another place than [JSONLines]
// writes it.
func hasSum(text []byte) bool {
	var e struct {
		Sum *json.RawMessage `json:"sum"`
	}
	return bytes.Contains(text, []byte(`"sum"`)) && json.Unmarshal(text, &e) == nil && e.Sum != nil
}

// end checks the last line, and that nothing follows it.
func (r *lineReader) end(text []byte) error {
	var e ending
	if err := strict(text, &e); err != nil {
		return err
	}
	if e.End == nil {
		return errors.New("it counts nothing")
	}
	if err := r.whole(); err != nil {
		return err
	}
	if e.End.Sessions != r.sessions || e.End.Entries != r.entries {
		return fmt.Errorf("it counts %d entries in %d sessions, and there are %d in %d", e.End.Entries, e.End.Sessions, r.entries, r.sessions)
	}
	if sum := hex.EncodeToString(r.sum.Sum(nil)); e.End.SHA256 != "" && e.End.SHA256 != sum {
		return errors.New("the lines above are not what was exported: their SHA-256 differs; take the member sha256 out of this line to read them all the same")
	}
	rest, err := r.read()
	if err == nil && len(bytes.TrimSpace(rest)) == 0 {
		rest, err = r.read()
	}
	if err == nil && rest != nil {
		return errors.New("unexpected data after the last line")
	}
	return err
}
