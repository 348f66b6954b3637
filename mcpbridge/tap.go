// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bufio"
	"bytes"
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

// tap returns the message for the SDK. Messages that it does not understand stay
// unchanged.
func tap(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"result"`)) && !bytes.Contains(message, []byte(`"error"`)) {
		return message
	}
	var m, result object
	if json.Unmarshal(message, &m, lenient) != nil {
		return message
	}
	if m["error"] != nil && m["error"].Kind() != 'n' {
		return tapError(message, m)
	}
	if json.Unmarshal(m["result"], &result, lenient) != nil {
		return message
	}
	switch {
	case result["tools"] != nil:
		tapTools(result)
	case result["inputRequests"] != nil:
		return message // a request to the client, which the SDK answers
	case result["content"] != nil || result["structuredContent"] != nil:
		result = tapResult(m["result"], result)
	default:
		return message
	}
	var err error
	if m["result"], err = json.Marshal(result, lenient); err != nil {
		return message
	}
	out, err := json.Marshal(m, lenient)
	if err != nil {
		return message
	}
	return out
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
	var failure object
	var code int64
	if json.Unmarshal(m["error"], &failure, lenient) != nil ||
		json.Unmarshal(failure["code"], &code, lenient) != nil || code != clientClosing && code != serverClosing {
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

// tapTools keeps the text of each tool's schema.
func tapTools(result object) {
	var tools []object
	if json.Unmarshal(result["tools"], &tools, lenient) != nil {
		return
	}
	for _, t := range tools {
		schema := t["inputSchema"]
		if schema == nil || t == nil {
			continue
		}
		meta := object{}
		if json.Unmarshal(t["_meta"], &meta, lenient) != nil || meta == nil {
			meta = object{}
		}
		meta[rawMember] = jsontext.Value(item.Quote(string(schema)))
		if b, err := json.Marshal(meta, lenient); err == nil {
			t["_meta"] = b
		}
	}
	if b, err := json.Marshal(tools, lenient); err == nil {
		result["tools"] = b
	}
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
func fixLines(stray func(line string)) func(line []byte) ([]byte, error) {
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
		return append(tap(text), '\n'), nil
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
func fixEvents(limit int) func(line []byte) ([]byte, error) {
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
		return fixEvent(line)
	}
}

// fixEvent taps a line of an event stream. A message on several lines is not tapped.
func fixEvent(line []byte) ([]byte, error) {
	data, ok := bytes.CutPrefix(line, dataField)
	if !ok {
		return line, nil
	}
	text := bytes.TrimSpace(data)
	if len(text) == 0 || text[0] != '{' {
		return line, nil
	}
	end := line[len(bytes.TrimRight(line, "\r\n")):]
	out := make([]byte, 0, len(line)+64)
	out = append(append(out, "data: "...), tap(text)...)
	return append(out, end...), nil
}
