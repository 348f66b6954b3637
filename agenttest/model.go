// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/responses"
)

// Model is a model for tests that opens no socket: an agent.Model that answers each
// request with a [Reply]. It streams the events that a [Server] would send, and a
// responses.Client reads them, so an agent sees what it sees of a server: deltas,
// usage, failures, replies that break off. [Script] and [ModelFunc] make one.
//
// A Model works in a testing/synctest bubble: retries do not wait, and no goroutine
// is left after a reply. It is safe for concurrent use; the assignment of a script's
// replies to concurrent requests is not defined.
type Model struct {
	tb     testing.TB // nil for a ModelFunc
	f      func(ctx context.Context, req *api.Request) Reply
	client *responses.Client

	mu       sync.Mutex
	script   []Reply
	requests []*api.Request
}

// Script returns a model that gives the replies one after the other:
//
//	model := agenttest.Script(t, agenttest.Completed(item.Assistant("Hello.")))
//
// A request after the last reply fails the test, with the number of the turn and the
// end of the request, and so does a reply that is left at the end of the test. A turn
// is a request here: retries, compactions and subagents count.
func Script(tb testing.TB, replies ...Reply) *Model {
	m := newModel()
	m.tb, m.script = tb, slices.Clone(replies)
	tb.Cleanup(m.checkUsed)
	return m
}

// ModelFunc returns a model whose replies f decides:
//
//	model := agenttest.ModelFunc(func(ctx context.Context, req *api.Request) agenttest.Reply { … })
//
// f gets each request as it would be sent. Requests may be concurrent. A panic in f
// is the test's. Without a function, each request fails.
func ModelFunc(f func(ctx context.Context, req *api.Request) Reply) *Model {
	m := newModel()
	m.f = f
	return m
}

func newModel() *Model {
	m := new(Model)
	m.client = &responses.Client{
		BaseURL: "http://model.invalid/v1", // it stays in memory
		HTTP:    &http.Client{Transport: (*modelTransport)(m)},
		Profile: &endpoint.Profile{Name: "test model"}, // requests are not changed
		// A reply that stalls ends with its request and not by a clock, which in a
		// bubble of fake time would jump.
		IdleTimeout: -1,
		Retry:       endpoint.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	}
	return m
}

// Stream implements agent.Model.
func (m *Model) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return m.client.Stream(ctx, req)
}

// RetryPolicy returns the default number of retries, without delays. A reply such as
// Failure(503, …) is asked for again, and the next attempt gets the next reply.
func (m *Model) RetryPolicy() endpoint.Retry { return m.client.RetryPolicy() }

// Add appends replies to a script.
func (m *Model) Add(replies ...Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = append(m.script, replies...)
}

// Requests returns the requests so far as they would have been sent, in the order of
// arrival. Each attempt of a request that is retried is one.
func (m *Model) Requests() []*api.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// next records a request and picks its reply.
func (m *Model) next(ctx context.Context, req *api.Request) (n int, a Reply) {
	m.mu.Lock()
	n = len(m.requests)
	m.requests = append(m.requests, req)
	left := len(m.script) > 0
	if left {
		a, m.script = m.script[0], m.script[1:]
	}
	m.mu.Unlock()
	switch {
	case left:
		return n, a
	case m.f != nil:
		return n, m.f(ctx, req)
	case m.tb == nil:
		return n, Failure(http.StatusTeapot, "no_function", "the model of the test has no function: give ModelFunc one that is not nil")
	}
	m.tb.Errorf("turn %d: the script has no reply left, it had %d: add one, or find out why the model is asked again; %s", n+1, n, lastOf(req))
	return n, Failure(http.StatusTeapot, "no_reply_left", fmt.Sprintf("turn %d: the script of the test has no reply left", n+1))
}

func (m *Model) checkUsed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.script); n > 0 && !m.tb.Failed() {
		m.tb.Errorf("the model was asked %d times, and the script has more replies, %d: the next is %v", len(m.requests), n, m.script[0])
	}
}

// lastOf describes a request by its last item.
func lastOf(req *api.Request) string {
	n := 0
	if req.Input != nil {
		n = req.Input.Len()
	}
	if n == 0 {
		return "the request is empty"
	}
	return fmt.Sprintf("the request ends with item %d: %.300s", n, req.Input.At(n-1).JSON())
}

// modelTransport answers the requests of a Model's client in memory.
type modelTransport Model

// RoundTrip implements [http.RoundTripper].
func (t *modelTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	m := (*Model)(t)
	body, err := takeBody(r)
	if err != nil {
		return nil, err
	}
	req, err := api.ParseRequest(body)
	if err != nil {
		return nil, fmt.Errorf("agenttest: the request cannot be read: %w", err)
	}
	n, a := m.next(r.Context(), req)
	ctx, cancel := context.WithCancel(r.Context())
	in, out := io.Pipe()
	w := &memoryWriter{header: http.Header{}, out: out, begun: make(chan struct{})}
	got := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header, Body: body}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := w.serve(a, &delivery{n: n, got: got, r: r, gone: ctx, sent: func(string) {}})
		_ = out.CloseWithError(err)
	}()
	end := func() {
		cancel()
		_ = in.Close()
		<-done
	}
	select {
	case <-w.begun:
	case <-done:
		select {
		case <-w.begun:
		default:
			end()
			return nil, errBroken
		}
	case <-ctx.Done():
		end()
		return nil, context.Cause(r.Context())
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sentHeader, ContentLength: -1, Request: r,
		Body: &memoryBody{in, end},
	}, nil
}

// errBroken is the error of a connection that a [Reply] breaks.
var errBroken = errors.New("the connection broke")

// memoryWriter is the http.ResponseWriter of an answer in memory. A reply that breaks
// the connection panics with http.ErrAbortHandler, as it does on a server, because
// the writer has no connection that could be taken over.
type memoryWriter struct {
	header, sentHeader http.Header
	status             int
	out                *io.PipeWriter
	begun              chan struct{} // closed when the status was written
}

// serve writes the reply, and returns the error with which its body ends.
func (w *memoryWriter) serve(a Reply, d *delivery) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			err = errBroken
		default:
			panic(v)
		}
	}()
	a.write(w, d)
	return nil // the reader gets io.EOF
}

// Header implements [http.ResponseWriter].
func (w *memoryWriter) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *memoryWriter) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK && status != http.StatusSwitchingProtocols {
		return
	}
	w.status, w.sentHeader = status, w.header.Clone()
	close(w.begun)
}

// Write implements [http.ResponseWriter].
func (w *memoryWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if len(b) == 0 {
		return 0, nil // a pipe would wait for a reader
	}
	return w.out.Write(b)
}

// memoryBody is the body of an answer in memory. Close waits until the answer's
// goroutine has ended.
type memoryBody struct {
	io.Reader
	end func()
}

// Close implements [io.Closer].
func (b *memoryBody) Close() error {
	b.end()
	return nil
}
