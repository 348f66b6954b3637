// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Answer is what a [Server] gives for one request. Its constructors make a
// right answer, or one that is wrong as a whole; its methods return a copy with
// one more fault.
type Answer struct {
	status  int
	header  http.Header
	pieces  func(n int, r Request) (contentType string, pieces []string)
	edits   []func([]string) []string
	cut     int             // bytes after which the connection breaks; -1 never
	stall   int             // pieces after which it waits; -1 never
	release <-chan struct{} // ends the wait
	sizes   []int           // of network writes
	reset   bool
}

func newAnswer(pieces func(n int, r Request) (string, []string)) Answer {
	return Answer{status: http.StatusOK, header: http.Header{}, pieces: pieces, cut: -1, stall: -1}
}

const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream; charset=utf-8"
)

// Reply answers with a completed response that has the items as its output, as
// a stream or whole, as the request wants it. Items may be as easy as
// item.Assistant("hello") and item.Call("call_1", "name", "{}"): what an output
// item must have besides is filled in.
func Reply(items ...item.Item) Answer {
	return scripted(items, func(s *script) (string, []string) { return s.finish(item.EventCompleted, "null", "null") })
}

// Incomplete is [Reply] that stops early for a reason such as
// max_output_tokens.
func Incomplete(reason string, items ...item.Item) Answer {
	return scripted(items, func(s *script) (string, []string) {
		return s.finish(item.EventIncomplete, "null", object("reason", reason))
	})
}

// Failed is [Reply] whose response fails after the items, with an error of the
// given code and message.
func Failed(code, message string, items ...item.Item) Answer {
	return scripted(items, func(s *script) (string, []string) {
		return s.finish(item.EventFailed, object("code", code, "message", message), "null")
	})
}

// ErrorEvent is a stream that ends with an error event after the items.
func ErrorEvent(code, message string, items ...item.Item) Answer {
	return scripted(items, func(s *script) (string, []string) {
		s.event(item.EventError, "code", code, "message", message, "param", nil)
		return typeStream, s.events
	})
}

func scripted(items []item.Item, finish func(*script) (string, []string)) Answer {
	return newAnswer(func(n int, r Request) (string, []string) {
		s := newScript(n, r)
		for _, it := range items {
			s.item(it)
		}
		return finish(s)
	})
}

// Events is a stream of the given data, one event each. A text that is an
// object with a type gets it as its event field too.
func Events(data ...string) Answer {
	return newAnswer(func(int, Request) (string, []string) {
		var events []string
		for _, d := range data {
			events = append(events, frame(d))
		}
		return typeStream, events
	})
}

// Failure is an HTTP error with the API's error body.
func Failure(status int, code, message string) Answer {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	body := object("error", item.JSON(object("message", message, "type", kind, "param", nil, "code", code)))
	return Raw(status, typeJSON, body)
}

// Raw is an answer of any status, content type and body, taken as one piece.
func Raw(status int, contentType, body string) Answer {
	a := newAnswer(func(int, Request) (string, []string) { return contentType, []string{body} })
	a.status = status
	return a
}

// WebPage is an HTML page, as proxies and wrong paths give.
func WebPage(status int, title string) Answer {
	return Raw(status, "text/html; charset=utf-8", "<!DOCTYPE html>\n<html><head><title>"+title+"</title></head><body><h1>"+title+"</h1></body></html>\n")
}

// Reset breaks the connection instead of answering.
func Reset() Answer { return Answer{reset: true} }

// WithHeader sets a header of the answer. A Content-Length that is not that of
// the body is sent as given.
func (a Answer) WithHeader(name, value string) Answer {
	a.header = a.header.Clone()
	a.header.Set(name, value)
	return a
}

// RetryAfter sets the header, a number of seconds or a date.
func (a Answer) RetryAfter(value string) Answer { return a.WithHeader("Retry-After", value) }

// WithStatus sets the status.
func (a Answer) WithStatus(status int) Answer {
	a.status = status
	return a
}

// WithoutLast leaves out the last event, of a stream the one that says that it
// is whole. The body ends properly all the same.
func (a Answer) WithoutLast() Answer {
	return a.edit(func(p []string) []string { return p[:max(0, len(p)-1)] })
}

// WithEvent puts an event with the given data before event n, counted from 0
// and from the end if negative.
func (a Answer) WithEvent(n int, data string) Answer {
	return a.edit(func(p []string) []string {
		if n < 0 {
			n += len(p)
		}
		return slices.Insert(p, min(max(n, 0), len(p)), frame(data))
	})
}

// WithDone ends the stream with data: [DONE], as some servers do.
func (a Answer) WithDone() Answer {
	return a.edit(func(p []string) []string { return append(p, frame("[DONE]")) })
}

// CutAfter breaks the connection after n bytes of the body.
func (a Answer) CutAfter(n int) Answer {
	a.cut = n
	return a
}

// StallAfter stops after n events, with those on their way, and goes on when
// release is closed; it never goes on if release is nil. A client that goes
// away, and [Server.Close], end the wait.
func (a Answer) StallAfter(n int, release <-chan struct{}) Answer {
	a.stall, a.release = n, release
	return a
}

// InPieces writes the body in network writes of the given sizes; what is left
// over goes in one.
func (a Answer) InPieces(sizes ...int) Answer {
	a.sizes = sizes
	return a
}

func (a Answer) edit(f func([]string) []string) Answer {
	a.edits = append(slices.Clip(a.edits), f)
	return a
}

// write sends the answer to request n.
func (a Answer) write(w http.ResponseWriter, r *http.Request, n int, got Request, closed <-chan struct{}) {
	if a.reset {
		reset(w)
		return
	}
	contentType, pieces := a.pieces(n, got)
	for _, edit := range a.edits {
		pieces = edit(pieces)
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Request-Id", "req_"+strconv.Itoa(n))
	if !strings.HasPrefix(contentType, "text/event-stream") {
		h.Set("Content-Length", strconv.Itoa(len(strings.Join(pieces, ""))))
	}
	for name, values := range a.header {
		h[name] = values
	}
	w.WriteHeader(a.status)
	out := &output{w: w, flush: http.NewResponseController(w).Flush, left: a.cut, limit: -1}
	if n, err := strconv.Atoi(h.Get("Content-Length")); err == nil {
		out.limit = n
	}
	if a.stall < 0 {
		out.inPieces(strings.Join(pieces, ""), a.sizes)
		return
	}
	at := min(a.stall, len(pieces))
	out.inPieces(strings.Join(pieces[:at], ""), a.sizes)
	select {
	case <-a.release:
	case <-r.Context().Done():
		return
	case <-closed:
		return
	}
	out.inPieces(strings.Join(pieces[at:], ""), nil)
}

// output writes a body up to the byte where it is to break.
type output struct {
	w     http.ResponseWriter
	flush func() error
	left  int // bytes until the break; negative: none
	limit int // bytes until the Content-Length; negative: none
}

func (o *output) inPieces(body string, sizes []int) {
	for _, n := range sizes {
		n = min(n, len(body))
		o.write(body[:n])
		body = body[n:]
	}
	o.write(body)
}

func (o *output) write(s string) {
	if o.limit >= 0 {
		s = s[:min(len(s), o.limit)] // net/http refuses to send more than was announced
		o.limit -= len(s)
	}
	breaks := o.left >= 0 && len(s) >= o.left
	if breaks {
		s = s[:o.left]
	} else if o.left >= 0 {
		o.left -= len(s)
	}
	_, _ = o.w.Write([]byte(s)) // a client that is gone is none of ours
	_ = o.flush()
	if breaks {
		panic(http.ErrAbortHandler)
	}
}
