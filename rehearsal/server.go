// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server answers as an endpoint of the Responses API does, and as one of Chat
// Completions; the package documentation lists what it serves. It needs no key,
// and neither keeps nor logs one that it is sent. The zero value plays no script
// and knows of no tool that it may call. The fields are set before the first
// request; then the server is safe for concurrent use.
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
	// Window is the context of the model in tokens, as this package counts them: a
	// request of more is refused with context_length_exceeded. 0 takes the
	// script's, a negative one is without a limit.
	Window int64
	// Now gives the time for created_at. Nil means a fixed time, so that equal
	// requests give equal answers.
	Now func() time.Time
	// MaxBody is the largest request in bytes; 0 means 256 MiB.
	MaxBody int64
	// MaxStored is how many responses are kept, and how many conversations; 0
	// means 1000. The oldest go first, also when all together are too large.
	MaxStored int
	// Without names parts of the API that this server is to be without: to see
	// what a client makes of an endpoint that has less.
	Without []Feature

	seen   prefixes
	memory memory
}

const defaultMaxBody = 256 << 20

// fixedTime is created_at without a clock.
var fixedTime = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

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
