// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/server"
)

// Server is the mock model, as a backend of a [server.Server] and as a server by
// itself. It answers like an endpoint of the Responses API and of Chat Completions;
// package server lists the routes. It needs no key, and neither stores nor logs
// keys. The zero value has no script and no tools that it may call. Set the fields
// before the first request; then the server is safe for concurrent use.
type Server struct {
	// Script is the script to play. If it is nil, or has no turns for a user message,
	// the default behaviour applies: call each declared read-only tool once, with
	// arguments made up from its schema and the conversation, and report the results.
	Script *Script
	// ReadOnly reports whether a tool is read-only, because requests do not say so.
	// Nil means that no tool is.
	ReadOnly func(name string) bool
	// Pace is the delay before each piece of text. 0 means the script's value, a
	// negative value no delay.
	Pace time.Duration
	// Window is the context of the model in tokens, as counted by this package: a
	// longer request is refused with context_length_exceeded. 0 means the script's
	// value, a negative value no limit.
	Window int64
	// Now returns the time for created_at. Nil means a fixed time, so that equal
	// requests give equal answers.
	Now func() time.Time
	// MaxBody is the largest request in bytes; 0 means 256 MiB.
	MaxBody int64
	// MaxStored is the maximum number of stored responses, and of conversations; 0
	// means 1000. The oldest are removed first, also when their total size is too
	// large.
	MaxStored int
	// Without lists the parts of the API that this server does not serve, to test a
	// client against an endpoint that lacks them.
	Without []Feature

	seen prefixes

	once    sync.Once
	serving server.Server
	made    numbers
}

// A Feature is an optional part of the API of a [Server].
type Feature = server.Feature

// The features.
const (
	Models        = server.Models
	Responses     = server.Responses
	Stored        = server.Stored     // and previous_response_id
	Background    = server.Background // and the streams of stored responses
	Conversations = server.Conversations
	InputTokens   = server.InputTokens
	Compact       = server.Compact
	WebSocket     = server.WebSocket
	Chat          = server.Chat
)

// fixedTime is the default for created_at.
var fixedTime = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// ServeHTTP implements [http.Handler]. It ignores the part of a path before the
// names of the API, such as /v1.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.server().ServeHTTP(w, r) }

// Start serves on a free port of 127.0.0.1 until stop is called. The base URL is the
// one to configure in a client; it ends in /v1. stop ends running requests and waits
// for them. It may be called more than once.
func (s *Server) Start() (baseURL string, stop func(), err error) { return s.server().Start() }

// server returns the server whose backend is s.
func (s *Server) server() *server.Server {
	s.once.Do(func() {
		s.serving.Backend, s.serving.Without, s.serving.MaxBody = s, s.Without, s.MaxBody
		s.serving.Store = &server.Memory{Max: s.MaxStored}
		s.serving.Now, s.serving.NewID = s.now, s.made.id
	})
	return &s.serving
}

func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return fixedTime
}

// numbers makes ids that are the same whenever a server is used in the same way.
type numbers struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *numbers) id(prefix string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[prefix]++
	return fmt.Sprintf("%s%016x", prefix, c.n[prefix])
}

// Models lists the rehearsal model; with the name of a script it is a model too.
// Models implements [server.ModelLister].
func (s *Server) Models(_ context.Context, id string) ([]server.Model, error) {
	if id == "" {
		id = Model
	}
	if _, ok := ParseModel(id); !ok {
		return nil, nil
	}
	return []server.Model{{ID: id, Created: s.now().Unix(), OwnedBy: "antiphon"}}, nil
}
