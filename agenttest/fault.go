// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/responses"
)

// Server is a Responses API on a loopback socket that gives the specified answers,
// right or wrong: the first [Reply] to the first request, and so on. A request
// without an answer left fails the test. All paths are served alike. A request for a
// WebSocket is accepted: each message on it is then a request like any other, and
// its answer is sent as frames. A Server is safe for concurrent use; the assignment
// of answers to concurrent requests is not defined.
type Server struct {
	// URL is the base URL, for responses.Client.BaseURL. It ends in /v1.
	URL string

	tb     testing.TB
	http   *httptest.Server
	client *http.Client
	faults faulty
	close  func()

	mu       sync.Mutex
	answers  []Reply
	upgrades []Reply // for requests for a WebSocket
	fallback func(n int, r Request) Reply
	requests []Request
	sent     []*strings.Builder
	upgraded []Request
}

// Request is a request as the server received it.
type Request struct {
	Method string
	Path   string
	Query  string      // raw, without the question mark
	Header http.Header // for a message on a WebSocket, the header of the handshake
	Body   []byte
	// Socket is the number of the WebSocket, from 1; 0 for HTTP.
	Socket int
}

// Parse parses the body. An invalid body fails the test.
func (r Request) Parse(tb testing.TB) *api.Request {
	tb.Helper()
	if r.Socket > 0 {
		return r.parseMessage(tb)
	}
	req, err := api.ParseRequest(r.Body)
	if err != nil {
		tb.Fatalf("request body: %v\n%s", err, r.Body)
	}
	return req
}

func (r Request) parseMessage(tb testing.TB) *api.Request {
	tb.Helper()
	ev, err := api.ParseClientEvent(r.Body)
	create, ok := ev.(*api.CreateEvent)
	if err != nil || !ok {
		tb.Fatalf("message on the socket: %v\n%s", err, r.Body)
	}
	return create.Request
}

// NewServer starts a server that is closed at the end of the test.
func NewServer(tb testing.TB, answers ...Reply) *Server {
	return newServer(tb, answers, (*httptest.Server).Start)
}

// NewTLSServer is like [NewServer] with https. Only the clients that [Server.Client]
// and [Server.HTTP] return trust its certificate.
func NewTLSServer(tb testing.TB, answers ...Reply) *Server {
	return newServer(tb, answers, (*httptest.Server).StartTLS)
}

func newServer(tb testing.TB, answers []Reply, start func(*httptest.Server)) *Server {
	closed := make(chan struct{})
	s := &Server{tb: tb}
	s.faults = faulty{pick: s.next, refuse: s.upgrade, closed: closed}
	s.Add(answers...)
	s.http = httptest.NewUnstartedServer(&s.faults)
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that does not trust the certificate reports the error itself
	start(s.http)
	s.URL = s.http.URL + "/v1"
	s.client = s.http.Client()
	s.close = sync.OnceFunc(func() {
		close(closed)
		s.client.CloseIdleConnections()
		s.http.Close()
		s.faults.handlers.Wait()
	})
	tb.Cleanup(s.close)
	return s
}

// Close ends all stalled answers, waits for the others, and stops the server. It may
// be called more than once.
func (s *Server) Close() {
	if s.close != nil {
		s.close()
	}
}

// Client returns a new client of the server. It retries as often as the default
// client, without delays.
func (s *Server) Client() *responses.Client {
	return &responses.Client{
		BaseURL: s.URL,
		HTTP:    s.client,
		Retry: endpoint.Retry{
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		},
	}
}

// HTTP returns the http.Client of [Server.Client], which trusts the server.
func (s *Server) HTTP() *http.Client { return s.client }

// Add appends further answers.
func (s *Server) Add(answers ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range answers {
		if a.upgrade {
			s.upgrades = append(s.upgrades, a)
		} else {
			s.answers = append(s.answers, a)
		}
	}
}

// Otherwise sets the function that provides answers when no answer is left. It gets
// the request and its number, from 0, and may be called concurrently. It is not
// called for requests for a WebSocket.
func (s *Server) Otherwise(f func(n int, r Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fallback = f
}

// Requests returns the requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Sockets returns the requests for a WebSocket so far, including refused ones.
func (s *Server) Sockets() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.upgraded)
}

// Sent returns the part of the body of the answer to request n that has been written
// to the connection; frames are separated by newlines. A TCP reset may have
// destroyed its end on the way.
func (s *Server) Sent(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 || n >= len(s.sent) {
		return ""
	}
	return s.sent[n].String()
}

// next records a request and picks its answer.
func (s *Server) next(r Request) (n int, a Reply, sent func(string)) {
	s.mu.Lock()
	n = len(s.requests)
	s.requests = append(s.requests, r)
	text := new(strings.Builder)
	s.sent = append(s.sent, text)
	fallback := s.fallback
	given := len(s.answers) > 0
	if given {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	sent = func(more string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		text.WriteString(more)
	}
	switch {
	case given:
		return n, a, sent
	case fallback != nil:
		return n, fallback(n, r), sent
	}
	s.tb.Errorf("request %d has no answer: %s %s %.300s", n, r.Method, r.Path, r.Body)
	return n, Failure(http.StatusTeapot, "no_answer_left", "the test has no answer for this request"), sent
}

// upgrade records a request for a WebSocket, and picks an answer that refuses it, or
// nil.
func (s *Server) upgrade(r Request) (n int, refusal *Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upgraded = append(s.upgraded, r)
	if len(s.upgrades) > 0 {
		refusal, s.upgrades = &s.upgrades[0], s.upgrades[1:]
	}
	return len(s.upgraded), refusal
}
