// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"io"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/sse"
)

// silence is the default of Server.Silence: proxies close streams after 30 to 60 seconds.
const silence = 15 * time.Second

// stream is an event stream that is never silent for long.
type stream struct {
	every time.Duration

	mu    sync.Mutex
	to    *sse.Writer
	next  *time.Timer // nil before the first event, unless there is a head
	head  func()      // sets the headers of a stream that begins with a comment; may be nil
	begun bool        // the headers are set
	spoke bool        // since the last tick
	holds bool        // events wait for flush
	ended bool
}

func (s *Server) stream(to io.Writer) *stream {
	return &stream{to: sse.NewWriter(to), every: cmp.Or(s.Silence, silence) / 2}
}

// await lets the stream begin with a comment if there is no event for long: until then the request
// can be refused with a status. head sets the headers.
func (s *stream) await(head func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head, s.next = head, time.AfterFunc(2*s.every, s.tick)
}

// start sets the headers, unless the stream has begun.
func (s *stream) start(head func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		head()
	}
}

// begin begins the stream before its first event.
func (s *stream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = time.AfterFunc(s.every, s.tick)
	}
}

// refuse ends a stream whose request was refused, or returns the error if the stream has not begun.
// It returns nil for nil. event is the error as an event of a type.
func (s *stream) refuse(wrong *Error, kind string, event func(*Error) string) *Error {
	if wrong == nil {
		return nil
	}
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		return wrong
	}
	_ = s.to.Text(kind, event(wrong)) // a client that is gone is not an error
	return nil
}

func (s *stream) event(kind, data string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoke = true
	if s.next == nil && !s.ended { // a request may be refused until its first event
		s.next = time.AfterFunc(s.every, s.tick)
	}
	if !s.holds {
		return s.to.Text(kind, data)
	}
	if n, err := s.to.Add(kind, data); n < mostHeld {
		return err
	}
	return s.to.Flush()
}

// mostHeld is how many bytes of events may wait.
const mostHeld = 32 << 10

// flush sends the events that wait. Later ones wait for the next call.
func (s *stream) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = true
	return s.to.Flush()
}

// tick breaks the silence, if there is one: a timer for each event would cost more. If the
// client is gone, the HTTP server notices the failed write, and ends the context of the
// request.
func (s *stream) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	if !s.begun && s.head != nil {
		s.begun = true
		s.head()
	}
	if !s.spoke && s.to.Comment("") != nil {
		return
	}
	s.spoke = false
	s.next.Reset(s.every)
}

// end sends the events that wait, and ends the comments: nothing is written after it returned.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.to.Flush() // a client that is gone is not an error
	if s.ended = true; s.next != nil {
		s.next.Stop()
	}
}
