// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
)

// Server answers POST …/responses as a Responses API endpoint does, streamed
// or whole. It needs no key, and neither keeps nor logs one that it is sent.
// The zero value plays no script and knows of no tool that it may call. The
// fields are set before the first request; then the server is safe for
// concurrent use.
type Server struct {
	// Script is what to play. Nil, or a user message that the script has no
	// turns for, means the default: call each declared tool that only reads,
	// once, with arguments made up from its schema and the conversation, and
	// tell what came back.
	Script *Script
	// ReadOnly says whether the tool of that name only reads, which no request
	// tells. Nil means that none does.
	ReadOnly func(name string) bool
	// Pace is a wait before each piece of text. 0 takes the script's, a
	// negative one is none.
	Pace time.Duration
	// Now gives the time for created_at. Nil means a fixed time, so that equal
	// requests give equal answers.
	Now func() time.Time
	// MaxBody is the largest request in bytes; 0 means 256 MiB.
	MaxBody int64

	seen prefixes
}

const defaultMaxBody = 256 << 20

// fixedTime is created_at without a clock.
var fixedTime = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, wrong := s.receive(w, r)
	if wrong != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(wrong.status)
		_, _ = w.Write(wrong.body()) // a client that is gone is no error
		return
	}
	w.Header().Set("X-Request-Id", "req_"+strings.TrimPrefix(a.id, "resp_"))
	pace := s.Pace
	if pace == 0 && s.Script != nil {
		pace = s.Script.pace
	}
	if want := a.request.Stream; want != nil && *want {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		a.stream(&stream{ctx: r.Context(), w: sse.NewWriter(w), pace: pace})
		return
	}
	a.whole(r.Context(), w, pace)
}

// whole sends the answer in one piece, after the time that a stream takes.
func (a *answer) whole(ctx context.Context, w http.ResponseWriter, pace time.Duration) {
	b, err := a.response(true).AppendJSON(nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if sleep(ctx, a.duration(pace)) != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // a client that is gone is no error
}

// receive reads a request and makes the answer to it.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) (*answer, *problem) {
	if !strings.HasSuffix(r.URL.Path, "/responses") {
		return nil, &problem{http.StatusNotFound, invalidRequest, "unknown_url", "",
			fmt.Sprintf("Unknown request URL: %s %s. The rehearsal serves POST /v1/responses.", r.Method, r.URL.Path)}
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, &problem{http.StatusMethodNotAllowed, invalidRequest, "method_not_supported", "",
			fmt.Sprintf("Not allowed to %s on %s. The rehearsal serves POST /v1/responses.", r.Method, r.URL.Path)}
	}
	limit := s.MaxBody
	if limit == 0 {
		limit = defaultMaxBody
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &problem{http.StatusRequestEntityTooLarge, invalidRequest, "request_too_large", "",
			fmt.Sprintf("The request is larger than %d bytes.", limit)}
	case err != nil:
		return nil, invalid("", "", "We could not read the body of your request: %v.", err)
	}
	return s.answer(body)
}

// answer makes the response to a body.
func (s *Server) answer(body []byte) (*answer, *problem) {
	req, items, wrong := readRequest(body)
	if wrong != nil {
		return nil, wrong
	}
	object, err := item.Parse(body)
	if err != nil {
		return nil, invalid("", "", "%v", err)
	}
	f, err := factsOf(req, items)
	if err != nil {
		return nil, invalid("", "", "%v", err)
	}
	steps, wrong := s.steps(f)
	if wrong != nil {
		return nil, wrong
	}
	tools, _ := object.Member("tools")
	in := s.seen.take(req, tools, items)
	list, tail, err := build(steps, naming{in.hash, f.at.total + 1}, req)
	if err != nil {
		return nil, invalid(codeScript, "", "%v", err)
	}
	now := fixedTime
	if s.Now != nil {
		now = s.Now()
	}
	return &answer{
		id: "resp_" + in.hash, body: object, request: req, created: now.Unix(),
		outputs: list, usage: usageOf(in, list), tail: tail,
	}, nil
}

// Start serves on a free port of 127.0.0.1 until stop is called. The base URL
// is what a client is configured with; it ends in /v1. Stop ends running
// requests, waits for them, and may be called more than once.
func (s *Server) Start() (baseURL string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &gate{handler: s}
	server := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // always ends with ErrServerClosed
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		g.shut()
		_ = server.Close() // what is wrong with a connection no longer matters
		<-served
		g.running.Wait()
	})
	return "http://" + listener.Addr().String() + "/v1", stop, nil
}

// gate counts the requests that run, so that stop can wait for them.
type gate struct {
	handler http.Handler
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.enter() {
		return
	}
	defer g.running.Done()
	g.handler.ServeHTTP(w, r)
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Add(1)
	}
	return !g.closed
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
