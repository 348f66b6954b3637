// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server serves the Responses API, and Chat Completions, over a [Backend]; the
// package documentation lists the routes. It neither keeps nor logs a key that it
// is sent, and asks for none: who may call it is decided by a handler around it.
// The fields are set before the first request; then the server is safe for
// concurrent use.
type Server struct {
	// Backend makes the responses. It must be set.
	Backend Backend
	// Store keeps responses and conversations. Nil means a [Memory].
	Store Store
	// Without names parts of the API that this server is to be without.
	Without []Feature
	// MaxBody is the largest request in bytes; 0 means 256 MiB.
	MaxBody int64
	// Now gives the times that objects are said to be created at. Nil means
	// time.Now.
	Now func() time.Time
	// NewID makes the ids of responses, conversations and their items: the prefix,
	// such as "resp_", and something that no other id has. Nil means random ids.
	NewID func(prefix string) string
	// ErrorLog gets the errors of the backend and of the store that clients are not
	// told. Nil means the log package's standard logger.
	ErrorLog *log.Logger

	memory Memory // the store if there is no other

	mu       sync.Mutex
	jobs     map[string]*job     // the kept responses that are being made, by id
	held     map[string]*Request // what goes on from a conversation, by its id
	again    int                 // how many responses were given another id than they wished
	lifetime context.Context     // ends what is made in the background
	end      context.CancelFunc
	running  sync.WaitGroup // requests of Start, and what is made in the background

	changing sync.Mutex // held while a conversation is read and put again
}

const defaultMaxBody = 256 << 20

// Start serves on a free port of 127.0.0.1 until stop is called. The base URL is
// what a client is configured with; it ends in /v1. Stop ends running requests,
// waits for them, and may be called more than once.
func (s *Server) Start() (baseURL string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.enter() {
				defer s.running.Done()
				s.ServeHTTP(w, r)
			}
		}),
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
		s.shut()
		_ = server.Close() // what is wrong with a connection no longer matters
		<-served
		s.Close()
	})
	return "http://" + listener.Addr().String() + "/v1", stop, nil
}

// Close cancels the responses that are made in the background, and waits for
// them. An [http.Server] is shut down before.
func (s *Server) Close() {
	s.shut()
	s.running.Wait()
}

// enter counts something that Close is to wait for, unless the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.living().Err() != nil {
		return false
	}
	s.running.Add(1)
	return true
}

func (s *Server) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.living()
	s.end()
}

// living returns the context of what outlives its request. The caller holds mu.
func (s *Server) living() context.Context {
	if s.lifetime == nil {
		s.lifetime, s.end = context.WithCancel(context.Background())
	}
	return s.lifetime
}

func (s *Server) store() Store {
	if s.Store != nil {
		return s.Store
	}
	return &s.memory
}

// now is the time in seconds since 1970.
func (s *Server) now() float64 {
	now := s.Now
	if now == nil {
		now = time.Now
	}
	return float64(now().Unix())
}

func (s *Server) newID(prefix string) string {
	if s.NewID != nil {
		return s.NewID(prefix)
	}
	return prefix + rand.Text()
}

func (s *Server) logf(format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}
