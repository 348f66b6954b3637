// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// Server is a Responses API on a loopback socket that answers what it was told
// to, right or wrong: the first [Answer] to the first request, and so on. A
// request with no answer left fails the test. It is safe for concurrent use;
// which of several requests at once gets which answer is then open.
type Server struct {
	// URL is the base URL, for responses.Client.BaseURL. It ends in /v1.
	URL string

	tb     testing.TB
	http   *httptest.Server
	client *http.Client
	closed chan struct{}
	close  func()

	mu       sync.Mutex
	answers  []Answer
	fallback func(n int, r Request) Answer
	requests []Request
}

// Request is one request as the server got it.
type Request struct {
	Method string
	Path   string
	Header http.Header
	Body   []byte
}

// Parse reads the body. A body that is no request fails the test.
func (r Request) Parse(tb testing.TB) *item.Request {
	tb.Helper()
	req, err := item.ParseRequest(r.Body)
	if err != nil {
		tb.Fatalf("request body: %v\n%s", err, r.Body)
	}
	return req
}

// NewServer starts a server, which the end of the test closes.
func NewServer(tb testing.TB, answers ...Answer) *Server {
	s := &Server{tb: tb, answers: answers, closed: make(chan struct{})}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL + "/v1"
	s.client = s.http.Client()
	s.close = sync.OnceFunc(func() {
		close(s.closed)
		s.client.CloseIdleConnections()
		s.http.Close()
	})
	tb.Cleanup(s.close)
	return s
}

// Close ends all answers that are stalled, waits for the rest, and stops the
// server. It may be called more than once.
func (s *Server) Close() { s.close() }

// Client returns a new client of the server that retries as often as any
// client, without waiting.
func (s *Server) Client() *responses.Client {
	return &responses.Client{
		BaseURL: s.URL,
		HTTP:    s.client,
		Retry: endpoint.Retry{
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		},
	}
}

// Add puts further answers behind those left.
func (s *Server) Add(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answers...)
}

// Otherwise sets what answers when no answer is left: f gets the request and
// its number, from 0. It may be called from several goroutines at once.
func (s *Server) Otherwise(f func(n int, r Request) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fallback = f
}

// Requests returns the requests so far, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	got := Request{r.Method, r.URL.Path, r.Header.Clone(), body}
	n, answer := s.next(got)
	answer.write(w, r, n, got, s.closed)
}

// next records a request and picks its answer.
func (s *Server) next(r Request) (int, Answer) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, r)
	var answer Answer
	fallback := s.fallback
	given := len(s.answers) > 0
	if given {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	switch {
	case given:
		return n, answer
	case fallback != nil:
		return n, fallback(n, r)
	}
	s.tb.Errorf("request %d has no answer: %s %s %.300s", n, r.Method, r.Path, r.Body)
	return n, Failure(http.StatusTeapot, "no_answer_left", "the test has no answer for this request")
}

// reset ends a connection in a way that the other side sees as an error.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
