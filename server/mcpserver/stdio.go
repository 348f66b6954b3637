// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/internal/nils"
)

// MaxMessage is the largest message of a client, in bytes.
const MaxMessage = 64 << 20

// ServeIO serves the client behind a pair of streams until the input ends or ctx is done.
// Calls that are under way then end, and have recorded it when ServeIO returns. Nothing but
// messages of the protocol is written to out. A line of the input that is not a message is
// answered with an error, and the next ones are read.
//
// The SDK reads in in a goroutine that ends with the input, which may be after ServeIO if
// ctx ends first.
func (s *Server) ServeIO(ctx context.Context, in io.Reader, out io.Writer) error {
	if nils.Is(in) || nils.Is(out) {
		return errors.New("mcpserver: ServeIO needs an input and an output")
	}
	if err := s.Check(); err != nil {
		return err
	}
	lifetime, end := context.WithCancel(ctx)
	defer end()
	w := &lockedWriter{w: out}
	r := &messages{r: bufio.NewReaderSize(in, 64<<10), w: w}
	err := s.live(lifetime).Run(ctx, &mcp.IOTransport{Reader: r, Writer: w, MaxLineLength: -1}) // messages bounds them
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// lockedWriter writes lines, each at once.
type lockedWriter struct {
	mu   sync.Mutex
	w    io.Writer
	asks map[jsonrpc.ID]bool // the calls of the client that have no answer yet
}

func (w *lockedWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, err := jsonrpc.DecodeMessage(line); err == nil {
		if r, ok := m.(*jsonrpc.Response); ok {
			delete(w.asks, r.ID) // before the client can use the id again
		}
	}
	return w.w.Write(line)
}

// begins notes a call of the client. It returns false if one with its id has no answer yet.
func (w *lockedWriter) begins(r *jsonrpc.Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asks[r.ID] {
		return false
	}
	if w.asks == nil {
		w.asks = map[jsonrpc.ID]bool{}
	}
	w.asks[r.ID] = true
	return true
}

// Close does nothing: the caller owns the stream.
func (*lockedWriter) Close() error { return nil }

// messages is a reader of the lines that are messages. The SDK ends a connection at the
// first one that is not.
type messages struct {
	r    *bufio.Reader
	w    *lockedWriter
	rest []byte
}

// Close does nothing: the caller owns the stream.
func (*messages) Close() error { return nil }

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.line()
		if len(bytes.TrimSpace(line)) > 0 {
			m.rest = m.checked(line)
		}
		if len(m.rest) == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// errTooLong reports a line that is longer than [MaxMessage], which was skipped.
var errTooLong = errors.New("the line is too long")

// line reads a line without its end. A line that is too long is answered and skipped.
func (m *messages) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		piece, err := m.r.ReadSlice('\n')
		if long = long || len(line)+len(piece) > MaxMessage; long {
			line = nil
		} else {
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long {
			m.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("%v: a message has at most %d MiB", errTooLong, MaxMessage>>20))
		}
		return line, err
	}
}

// checked returns a line that is a message, with its end, and answers others.
func (m *messages) checked(line []byte) []byte {
	line = bytes.TrimSpace(line)
	switch {
	case !json.Valid(line):
		m.refuse(nil, jsonrpc.CodeParseError, "the line is not JSON")
	case line[0] == '[':
		m.refuse(nil, jsonrpc.CodeInvalidRequest, "batches are not supported: send one message a line")
	default:
		if message, err := jsonrpc.DecodeMessage(line); err == nil {
			if r, ok := message.(*jsonrpc.Request); ok && r.IsCall() && !m.w.begins(r) { // the SDK would not answer
				m.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the id %v is that of a call that has no answer yet", r.ID.Raw()))
				return nil
			}
			return append(line, '\n')
		}
		var head struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(line, &head) // there may be none
		m.refuse(head.ID, jsonrpc.CodeInvalidRequest, "the line is not a message of JSON-RPC 2.0")
	}
	return nil
}

// refuse answers a line that is not a message.
func (m *messages) refuse(id json.RawMessage, code int, why string) {
	if len(id) == 0 || id[0] != '"' && (id[0] < '0' || id[0] > '9') {
		id = json.RawMessage("null")
	}
	text, _ := json.Marshal(why)                                                                               //nolint:errchkjson // a string
	_, _ = fmt.Fprintf(m.w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`+"\n", id, code, text) // the SDK notices a stream that is closed
}
