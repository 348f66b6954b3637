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

// Reply is the answer of a [Server] to one request, over HTTP or as frames of a
// WebSocket. The constructors make a right answer, or a completely wrong one; the
// methods return a copy with one more fault, so faults can be combined. A Reply is
// immutable and may be used any number of times.
type Reply struct {
	name    string // a description for messages
	status  int
	header  http.Header
	pieces  func(n int, r Request) (contentType string, pieces []piece)
	edits   []func([]piece) []piece
	style   style
	early   []int           // informational statuses that come first
	cut     int             // informational statuses to send first
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
	through *through // the handler whose answers get the faults
}

// silent means a stall before the first byte.
const silent = -2

// piece is one event of a stream, or a raw body.
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

func newAnswer(name string, pieces func(n int, r Request) (string, []piece)) Reply {
	return Reply{name: name, status: http.StatusOK, header: http.Header{}, pieces: pieces, cut: -1, stall: -1, socket: socketFaults{closeAfter: -1}}
}

const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream; charset=utf-8"
)

// Completed answers with a completed response that has the items as its output, streamed
// or complete as requested. Items may be simple, such as item.Assistant("hello") and
// item.Call("call_1", "name", "{}"): missing members of output items are filled in.
// A warm-up request (generate is false) gets no items.
func Completed(items ...item.Item) Reply {
	return scripted("Reply", items, (*server.Writer).Complete)
}

// Incomplete is like [Completed] but stops early, for a reason such as
// max_output_tokens.
func Incomplete(reason string, items ...item.Item) Reply {
	return scripted("Incomplete", items, func(w *server.Writer) error { return w.Incomplete(reason) })
}

// Failed is like [Completed] but the response fails after the items, with an error of
// the given code and message.
func Failed(code, message string, items ...item.Item) Reply {
	return scripted("Failed", items, func(w *server.Writer) error { return w.Fail(code, message) })
}

// ErrorEvent is a stream that ends with an error event after the items.
func ErrorEvent(code, message string, items ...item.Item) Reply {
	return scripted("ErrorEvent", items, func(w *server.Writer) error { return w.Error(code, message) })
}

func scripted(name string, items []item.Item, end func(*server.Writer) error) Reply {
	for i, it := range items {
		if it.IsZero() {
			return Failure(http.StatusBadRequest, "empty_item", fmt.Sprintf("item %d of the test's Reply is the zero Item: make one with item.Assistant, item.Call and so on", i+1))
		}
	}
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
			panic(err) // a test built an invalid item
		}
		return s.body()
	})
}

// Events is a stream of the given data, one event each. If the data is an object
// with a type, the type is also the event field.
func Events(data ...string) Reply {
	return newAnswer(fmt.Sprintf("Events(%d)", len(data)), func(int, Request) (string, []piece) {
		var events []piece
		for _, d := range data {
			events = append(events, piece{text: d})
		}
		return typeStream, events
	})
}

// Failure is an HTTP error with the API's error body. On a WebSocket it is the
// corresponding error event, and the socket stays open.
func Failure(status int, code, message string) Reply {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	body := object("error", item.JSON(object("message", message, "type", kind, "param", nil, "code", code)))
	a := Raw(status, typeJSON, body)
	a.name = fmt.Sprintf("Failure(%d, %s)", status, code)
	return a
}

// PreviousResponseNotFound is the API's answer if the previous response does not
// exist, over HTTP and on a WebSocket.
func PreviousResponseNotFound(id string) Reply {
	return Failure(http.StatusBadRequest, "previous_response_not_found", "Previous response with id '"+id+"' not found.")
}

// Raw is an answer with the given status, content type and body, in one piece. On a
// WebSocket the events of a stream become frames, and any other answer is one frame.
func Raw(status int, contentType, body string) Reply {
	a := newAnswer(fmt.Sprintf("Raw(%d, %s, %d bytes)", status, contentType, len(body)), func(int, Request) (string, []piece) {
		return contentType, []piece{{pieceRaw, body}}
	})
	a.status = status
	return a
}

// WebPage is an HTML page, as proxies and wrong paths return.
func WebPage(status int, title string) Reply {
	return Raw(status, "text/html; charset=utf-8", "<!DOCTYPE html>\n<html><head><title>"+title+"</title></head><body><h1>"+title+"</h1></body></html>\n")
}

// Redirect redirects the client.
func Redirect(status int, location string) Reply {
	return Raw(status, "text/plain", "").WithHeader("Location", location)
}

// Reset breaks the connection instead of answering.
func Reset() Reply { return Reply{name: "Reset", reset: true} }

// maxAnswers is the largest number of answers that one call makes.
const maxAnswers = 1 << 16

// Storm is failure n times, at most 65536 times, followed by the other answers. A negative n
// counts as 0.
func Storm(n int, failure Reply, then ...Reply) []Reply {
	return append(slices.Repeat([]Reply{failure}, min(max(n, 0), maxAnswers)), then...)
}

// String describes the answer.
func (a Reply) String() string { return a.name }

// more returns a copy whose name has one more method.
func (a Reply) more(format string, args ...any) Reply {
	a.name += "." + fmt.Sprintf(format, args...)
	return a
}

// with returns a copy with a change, and adds the change to its name.
func (a Reply) with(change func(*Reply), format string, args ...any) Reply {
	a = a.more(format, args...)
	change(&a)
	return a
}

// WithHeader sets a header of the answer. A Content-Length smaller than the body
// cuts the body; a larger one breaks the connection. See [Reply.WrongLength] for a
// body that continues after its length.
func (a Reply) WithHeader(name, value string) Reply {
	a = a.more("WithHeader(%s, %.40s)", name, value)
	if a.header = a.header.Clone(); a.header == nil {
		a.header = http.Header{}
	}
	a.header.Set(name, value)
	return a
}

// RetryAfter sets the header, a number of seconds or a date.
func (a Reply) RetryAfter(value string) Reply { return a.WithHeader("Retry-After", value) }

// HugeHeader adds n bytes of header, at most 16 MiB.
func (a Reply) HugeHeader(n int) Reply {
	return a.WithHeader("X-Filler", strings.Repeat("x", min(max(n, 0), 16<<20)))
}

// WithStatus sets the status.
func (a Reply) WithStatus(status int) Reply {
	return a.with(func(a *Reply) { a.status = status }, "WithStatus(%d)", status)
}

// After sends an informational status first, such as 103.
func (a Reply) After(status int) Reply {
	return a.with(func(a *Reply) { a.early = append(slices.Clip(a.early), status) }, "After(%d)", status)
}

// CutAfter breaks the connection after n bytes of the body or, on a WebSocket, after
// n bytes of the frames' contents, without a close frame.
func (a Reply) CutAfter(n int) Reply {
	return a.with(func(a *Reply) { a.cut = n }, "CutAfter(%d)", n)
}

// ByReset breaks the connection by a TCP reset.
func (a Reply) ByReset() Reply {
	return a.with(func(a *Reply) { a.byReset = true }, "ByReset()")
}

// StallAfter stops after n events have been sent, and continues when release is
// closed, or never if release is nil. The wait ends when the client disconnects or
// [Server.Close] is called.
func (a Reply) StallAfter(n int, release <-chan struct{}) Reply {
	return a.with(func(a *Reply) { a.stall, a.release = n, release }, "StallAfter(%d)", n)
}

// Stall is like [Reply.StallAfter], but stalls before the first byte, including the
// status.
func (a Reply) Stall(release <-chan struct{}) Reply {
	return a.with(func(a *Reply) { a.stall, a.release = silent, release }, "Stall()")
}

// InPieces writes the body in network writes of the given sizes, and the rest in one
// write.
func (a Reply) InPieces(sizes ...int) Reply {
	return a.with(func(a *Reply) { a.sizes = sizes }, "InPieces(%d sizes)", len(sizes))
}

// ByteByByte writes the body one byte at a time.
func (a Reply) ByteByByte() Reply {
	return a.with(func(a *Reply) { a.bytely = true }, "ByteByByte()")
}

// Gzip compresses the body. Each event is flushed, so that it can be read at once.
func (a Reply) Gzip() Reply {
	a = a.WithHeader("Content-Encoding", "gzip").more("Gzip()")
	a.gzip = true
	return a
}
