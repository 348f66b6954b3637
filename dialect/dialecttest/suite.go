// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package dialecttest tests that a [dialect.Dialect] keeps the guarantees that callers of a client
// rely on. The author of a dialect writes a [Wire], which is the server's side of the dialect, and
// calls [Run] in a test:
//
//	func TestDialect(t *testing.T) {
//		dialecttest.Run(t, dialecttest.Wire{Dialect: toy.Dialect{}, Stream: …, Whole: …, Read: …})
//	}
//
// The servers are scripted and run in the test's process; the tests open no connections.
package dialecttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Wire is the server's side of a dialect.
type Wire struct {
	Dialect dialect.Dialect
	// Stream returns a reply as an event stream. Each element holds the lines of one event and the
	// empty line after it. The last element is the mark for the end of the stream.
	Stream func(Reply) []string
	// Whole returns a reply as a single JSON object.
	Whole func(Reply) string
	// Read decodes a request like the server.
	Read func(body []byte) (*api.Request, error)
	// Lacks lists the features that the wire API does not have. Their tests are skipped.
	Lacks []Feature
}

// Feature is a feature that not every wire API has.
type Feature string

// The features.
const (
	Reasoning    Feature = "reasoning"
	Refusals     Feature = "refusals"
	Images       Feature = "images"
	OutputImages Feature = "images in outputs of tools"
	ToolChoice   Feature = "tool choice"
)

// Reply is the reply of a scripted model, in this order. The texts are lists of deltas; a reply
// that is a single object joins them.
type Reply struct {
	Reasoning []string
	Text      []string
	Refusal   []string
	// Calls are made in parallel. Their deltas alternate: first the first delta of each call, then
	// the second delta of each call.
	Calls         []Call
	Input, Output int64 // tokens
	// Limit is set if the reply stopped at the output limit.
	Limit bool
	// Error, if set, replaces the end of the reply.
	Error *api.APIError
}

// Call is a call of a tool.
type Call struct {
	ID, Name  string
	Arguments []string // JSON, as deltas
}

// Run runs the suite for [dialect.Client] and, if the dialect is a [dialect.Opener], for its own
// client.
func Run(t *testing.T, w Wire) {
	t.Run("Client", func(t *testing.T) {
		run(t, &suite{w, func(c *dialect.Config) dialect.Model { return dialect.Client{Config: c, Dialect: w.Dialect} }})
	})
	if opener, ok := w.Dialect.(dialect.Opener); ok {
		t.Run("Open", func(t *testing.T) { run(t, &suite{w, opener.Open}) })
	}
}

type suite struct {
	Wire
	open func(*dialect.Config) dialect.Model
}

func run(t *testing.T, s *suite) {
	for _, test := range []struct {
		name  string
		needs Feature
		run   func(*testing.T, *suite)
	}{
		{"Info", "", testInfo},
		{"Text", "", testText},
		{"Reasoning", Reasoning, testReasoning},
		{"Refusal", Refusals, testRefusal},
		{"ParallelCalls", "", testCalls},
		{"Limit", "", testLimit},
		{"Whole", "", testWhole},
		{"OtherForm", "", testOtherForm},
		{"Request", "", testRequest},
		{"RequestImage", Images, testImage},
		{"RequestOutputImage", OutputImages, testOutputImage},
		{"RequestToolChoice", ToolChoice, testToolChoice},
		{"ErrorBodies", "", testErrorBodies},
		{"ErrorInStream", "", testErrorInStream},
		{"BrokenAnywhere", "", testBroken},
		{"Foreign", "", testForeign},
		{"RetryBeforeOutput", "", testRetry},
		{"NoRetryAfterOutput", "", testNoRetry},
		{"KeyStaysAtHost", "", testKey},
		{"Cancel", "", testCancel},
		{"Stop", "", testStop},
	} {
		if test.needs == "" || !slices.Contains(s.Lacks, test.needs) {
			t.Run(test.name, func(t *testing.T) { test.run(t, s) })
		}
	}
}

// answer is one scripted answer of a server.
type answer struct {
	status int // 0 means 200
	header http.Header
	body   string
	cut    bool // the connection breaks after body
}

// script is a transport that returns its answers in order, and then repeats the last one.
type script struct {
	mu      sync.Mutex
	answers []answer
	asked   []*http.Request
	bodies  [][]byte
	closed  int
}

// RoundTrip returns the next answer.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[min(len(s.asked), len(s.answers)-1)]
	s.asked, s.bodies = append(s.asked, r), append(s.bodies, body)
	resp := &http.Response{
		StatusCode: max(a.status, 200), ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Header: a.header.Clone(), Body: &scripted{strings.NewReader(a.body), a.cut, s},
	}
	if a.status != 0 {
		resp.StatusCode = a.status
	}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	if resp.Header.Get("Content-Type") == "" {
		kind := "text/event-stream"
		if strings.HasPrefix(a.body, "{") {
			kind = "application/json"
		}
		resp.Header.Set("Content-Type", kind)
	}
	return resp, nil
}

type scripted struct {
	io.Reader
	cut bool
	s   *script
}

// Read reads the body up to the point where the connection breaks.
func (b *scripted) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.cut {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close counts the calls.
func (b *scripted) Close() error {
	b.s.mu.Lock()
	b.s.closed++
	b.s.mu.Unlock()
	return nil
}

const (
	host   = "models.test"
	secret = "sk-conformance-secret"
)

// client returns a client of a server with these answers. The client does not retry.
func (s *suite) client(answers ...answer) (dialect.Model, *dialect.Config, *script) {
	sc := &script{answers: answers}
	c := &dialect.Config{
		BaseURL: "https://" + host + "/v1", Key: endpoint.NewKey(secret), HTTP: &http.Client{Transport: sc}, Retry: endpoint.Retry{Max: -1},
		Profile: &endpoint.Profile{Name: "conformance"},
	}
	return s.open(c), c, sc
}

func (s *suite) stream(r Reply) answer { return answer{body: strings.Join(s.Stream(r), "")} }

func question() *api.Request {
	return &api.Request{Model: "m", Input: item.NewList(item.User("What is it?"))}
}

// heard is a stream as its caller sees it.
type heard struct {
	events                   []api.EventType
	text, refusal, reasoning string
	deltas                   []string // of the text
	items                    []item.Item
	resp                     *api.Response // of the last event
	last                     api.EventType
	err                      error
}

// listen reads a stream. It checks two rules for every stream: sequence numbers rise, and only an
// error may follow the last event.
func listen(t *testing.T, events iter.Seq2[api.Event, error]) *heard {
	t.Helper()
	h := &heard{}
	number := int64(-1)
	for ev, err := range events {
		if h.err != nil {
			t.Fatalf("something follows the error %v: %v, %v", h.err, ev.JSON(), err)
		}
		if err != nil {
			h.err = err
			continue
		}
		if h.last != "" {
			t.Errorf("%s follows the last event", ev.JSON())
		}
		if ev.Type == api.EventCreated {
			number = -1 // the response begins, perhaps again
		}
		if n := ev.SequenceNumber; n >= 0 && n <= number {
			t.Errorf("event %d follows event %d", n, number)
		} else if n >= 0 {
			number = n
		}
		h.add(t, ev)
	}
	return h
}

func (h *heard) add(t *testing.T, ev api.Event) {
	t.Helper()
	h.events = append(h.events, ev.Type)
	switch ev.Type {
	case api.EventTextDelta:
		h.text += ev.Delta
		h.deltas = append(h.deltas, ev.Delta)
	case api.EventRefusalDelta:
		h.refusal += ev.Delta
	case api.EventReasoningTextDelta, api.EventSummaryTextDelta:
		h.reasoning += ev.Delta
	case api.EventItemDone:
		it, err := ev.Item()
		if err != nil {
			t.Error(err)
		}
		h.items = append(h.items, it)
	}
	if ev.Terminal() && ev.Type != api.EventError {
		h.last = ev.Type
		if r, err := ev.Response(); err == nil {
			h.resp = r
		}
	}
}

// calls returns the calls among items, each as one line.
func calls(items []item.Item) (list []string) {
	for _, it := range items {
		if it.IsCall() {
			list = append(list, describe(it))
		}
	}
	return list
}

func describe(it item.Item) string {
	c, err := item.As[item.FunctionCall](it)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s(%s)", c.CallID, c.Name, c.Arguments)
}

func (r *Reply) calls() (list []string) {
	for _, c := range r.Calls {
		list = append(list, fmt.Sprintf("%s %s(%s)", c.ID, c.Name, strings.Join(c.Arguments, "")))
	}
	return list
}

func class(err error) endpoint.Class {
	var e *endpoint.Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}

// creator is a client that can send a request without streaming.
type creator interface {
	Create(context.Context, *api.Request) (*api.Response, error)
}
