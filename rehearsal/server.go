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

// Server is the mock model, as a backend of a [server.Server] and as a server of
// its own. It answers as an endpoint of the Responses API does, and as one of Chat
// Completions; package server lists what is served. It needs no key, and neither
// keeps nor logs one that it is sent. The zero value plays no script
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

	seen prefixes

	once    sync.Once
	serving server.Server
	made    numbers
}

// A Feature is a part of the API that a [Server] can be without.
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

// fixedTime is created_at without a clock.
var fixedTime = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// ServeHTTP implements [http.Handler]. What stands in a path before the names
// of the API, such as /v1, is of no matter.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.server().ServeHTTP(w, r) }

// Start serves on a free port of 127.0.0.1 until stop is called. The base URL
// is what a client is configured with; it ends in /v1. Stop ends running
// requests, waits for them, and may be called more than once.
func (s *Server) Start() (baseURL string, stop func(), err error) { return s.server().Start() }

// server returns the server of which s is the backend.
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

// numbers makes ids that are the same each time a server is used in the same way.
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

// Models lists the rehearsal model. With a script's name it is a model too. It
// makes the server a [server.ModelLister].
func (s *Server) Models(_ context.Context, id string) ([]server.Model, error) {
	if id == "" {
		id = Model
	}
	if _, ok := ParseModel(id); !ok {
		return nil, nil
	}
	return []server.Model{{ID: id, Created: s.now().Unix(), OwnedBy: "antiphon"}}, nil
}
