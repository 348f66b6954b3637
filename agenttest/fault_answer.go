// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// Answer is what a [Server] gives for one request, over HTTP or as frames of a
// WebSocket. Its constructors make a right answer, or one that is wrong as a
// whole; its methods return a copy with one more fault, so that faults add up.
// An Answer is immutable and may be given any number of times.
type Answer struct {
	name    string // how it was made, for messages
	status  int
	header  http.Header
	pieces  func(n int, r Request) (contentType string, pieces []piece)
	edits   []func([]piece) []piece
	style   style
	early   []int           // informational statuses that come first
	cut     int             // bytes of the body after which the connection breaks; -1 never
	byReset bool            // breaking is a TCP reset
	stall   int             // pieces after which it waits; -1 never, silent before the status
	release <-chan struct{} // ends the wait
	sizes   []int           // of network writes
	bytely  bool            // one byte a write
	gzip    bool
	reset   bool
	wire    wireFaults
	socket  socketFaults
	upgrade bool     // it answers the request for a WebSocket
	through *through // what is spoiled is what this handler answers
}

// silent is the stall before the first byte.
const silent = -2

// piece is one event of a stream, or a body that is taken as it is.
type piece struct {
	kind pieceKind
	text string
}

type pieceKind int

const (
	pieceEvent  pieceKind = iota // the data of an event
	pieceRaw                     // bytes of a body
	pieceBinary                  // a binary frame; over HTTP an event
)

func newAnswer(name string, pieces func(n int, r Request) (string, []piece)) Answer {
	return Answer{name: name, status: http.StatusOK, header: http.Header{}, pieces: pieces, cut: -1, stall: -1, socket: socketFaults{closeAfter: -1}}
}

const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream; charset=utf-8"
)

// Reply answers with a completed response that has the items as its output, as
// a stream or whole, as the request wants it. Items may be as easy as
// item.Assistant("hello") and item.Call("call_1", "name", "{}"): what an output
// item must have besides is filled in. A request that only warms up (generate
// is false) gets none of the items.
func Reply(items ...item.Item) Answer {
	return scripted("Reply", items, (*server.Writer).Complete)
}

// Incomplete is [Reply] that stops early for a reason such as
// max_output_tokens.
func Incomplete(reason string, items ...item.Item) Answer {
	return scripted("Incomplete", items, func(w *server.Writer) error { return w.Incomplete(reason) })
}

// Failed is [Reply] whose response fails after the items, with an error of the
// given code and message.
func Failed(code, message string, items ...item.Item) Answer {
	return scripted("Failed", items, func(w *server.Writer) error { return w.Fail(code, message) })
}

// ErrorEvent is a stream that ends with an error event after the items.
func ErrorEvent(code, message string, items ...item.Item) Answer {
	return scripted("ErrorEvent", items, func(w *server.Writer) error { return w.Error(code, message) })
}

func scripted(name string, items []item.Item, end func(*server.Writer) error) Answer {
	return newAnswer(fmt.Sprintf("%s(%d items)", name, len(items)), func(n int, r Request) (string, []piece) {
		s := newScript(n, r)
		_ = s.Begin("")
		if !s.warmUp {
			for _, it := range items {
				_ = s.Item(it)
			}
		}
		s.count()
		if err := end(s.Writer); err != nil {
			panic(err) // an item that a test built wrongly
		}
		return s.body()
	})
}

// Events is a stream of the given data, one event each. A text that is an
// object with a type gets it as its event field too.
func Events(data ...string) Answer {
	return newAnswer(fmt.Sprintf("Events(%d)", len(data)), func(int, Request) (string, []piece) {
		var events []piece
		for _, d := range data {
			events = append(events, piece{text: d})
		}
		return typeStream, events
	})
}

// Failure is an HTTP error with the API's error body. On a WebSocket it is the
// error event that holds the same, and the socket stays open.
func Failure(status int, code, message string) Answer {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	body := object("error", item.JSON(object("message", message, "type", kind, "param", nil, "code", code)))
	a := Raw(status, typeJSON, body)
	a.name = fmt.Sprintf("Failure(%d, %s)", status, code)
	return a
}

// PreviousResponseNotFound is what the API says, over HTTP and on a WebSocket,
// when the response to go on from is gone.
func PreviousResponseNotFound(id string) Answer {
	return Failure(http.StatusBadRequest, "previous_response_not_found", "Previous response with id '"+id+"' not found.")
}

// Raw is an answer of any status, content type and body, taken as one piece. On
// a WebSocket the events of a stream become frames, and an answer that is not a
// stream one frame.
func Raw(status int, contentType, body string) Answer {
	a := newAnswer(fmt.Sprintf("Raw(%d, %s, %d bytes)", status, contentType, len(body)), func(int, Request) (string, []piece) {
		return contentType, []piece{{pieceRaw, body}}
	})
	a.status = status
	return a
}

// WebPage is an HTML page, as proxies and wrong paths give.
func WebPage(status int, title string) Answer {
	return Raw(status, "text/html; charset=utf-8", "<!DOCTYPE html>\n<html><head><title>"+title+"</title></head><body><h1>"+title+"</h1></body></html>\n")
}

// Redirect sends the client elsewhere.
func Redirect(status int, location string) Answer {
	return Raw(status, "text/plain", "").WithHeader("Location", location)
}

// Reset breaks the connection instead of answering.
func Reset() Answer { return Answer{name: "Reset", reset: true} }

// Storm is failure n times, then the answers that follow.
func Storm(n int, failure Answer, then ...Answer) []Answer {
	return append(slices.Repeat([]Answer{failure}, n), then...)
}

// String tells how the answer was made.
func (a Answer) String() string { return a.name }

// more is a copy whose name has one more method in it.
func (a Answer) more(format string, args ...any) Answer {
	a.name += "." + fmt.Sprintf(format, args...)
	return a
}

// with is a copy with a change, which its name tells.
func (a Answer) with(change func(*Answer), format string, args ...any) Answer {
	a = a.more(format, args...)
	change(&a)
	return a
}

// WithHeader sets a header of the answer. A Content-Length that is less than
// the body cuts it, one that is more breaks the connection; see
// [Answer.WrongLength] for a body that goes on after its length.
func (a Answer) WithHeader(name, value string) Answer {
	a = a.more("WithHeader(%s, %.40s)", name, value)
	a.header = a.header.Clone()
	a.header.Set(name, value)
	return a
}

// RetryAfter sets the header, a number of seconds or a date.
func (a Answer) RetryAfter(value string) Answer { return a.WithHeader("Retry-After", value) }

// HugeHeader adds n bytes of header.
func (a Answer) HugeHeader(n int) Answer { return a.WithHeader("X-Filler", strings.Repeat("x", n)) }

// WithStatus sets the status.
func (a Answer) WithStatus(status int) Answer {
	return a.with(func(a *Answer) { a.status = status }, "WithStatus(%d)", status)
}

// After sends an informational status first, such as 103.
func (a Answer) After(status int) Answer {
	return a.with(func(a *Answer) { a.early = append(slices.Clip(a.early), status) }, "After(%d)", status)
}

// CutAfter breaks the connection after n bytes of the body; of a WebSocket,
// after n bytes of the frames' contents, without a close frame.
func (a Answer) CutAfter(n int) Answer {
	return a.with(func(a *Answer) { a.cut = n }, "CutAfter(%d)", n)
}

// ByReset makes a break of the connection a TCP reset.
func (a Answer) ByReset() Answer {
	return a.with(func(a *Answer) { a.byReset = true }, "ByReset()")
}

// StallAfter stops after n events, with those on their way, and goes on when
// release is closed; it never goes on if release is nil. A client that goes
// away, and [Server.Close], end the wait.
func (a Answer) StallAfter(n int, release <-chan struct{}) Answer {
	return a.with(func(a *Answer) { a.stall, a.release = n, release }, "StallAfter(%d)", n)
}

// Stall is [Answer.StallAfter] before the first byte, the status included.
func (a Answer) Stall(release <-chan struct{}) Answer {
	return a.with(func(a *Answer) { a.stall, a.release = silent, release }, "Stall()")
}

// InPieces writes the body in network writes of the given sizes; what is left
// over goes in one.
func (a Answer) InPieces(sizes ...int) Answer {
	return a.with(func(a *Answer) { a.sizes = sizes }, "InPieces(%d sizes)", len(sizes))
}

// ByteByByte writes the body one byte at a time.
func (a Answer) ByteByByte() Answer {
	return a.with(func(a *Answer) { a.bytely = true }, "ByteByByte()")
}

// Gzip compresses the body, each event by itself so that it can be read at
// once.
func (a Answer) Gzip() Answer {
	a = a.WithHeader("Content-Encoding", "gzip").more("Gzip()")
	a.gzip = true
	return a
}
