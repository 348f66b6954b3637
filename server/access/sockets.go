// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/server"
)

// sockets bounds the WebSockets, which stay open between requests. When there are too many, the
// one that has waited longest for a request makes room, as a connection does. V5
type sockets struct {
	mu    sync.Mutex
	last  int64
	all   map[*socket]struct{}
	byKey map[string]int
}

// socket is a WebSocket that is open.
type socket struct {
	of    *sockets
	key   string // the id of its key
	end   context.CancelFunc
	busy  int   // responses that are being made
	held  int64 // of the memory of all requests: messages, and what is remembered of the last response
	freed bool  // it was closed for its memory, which others have
	since int64 // when the last one ended, as a number that grows
}

// open counts a WebSocket. end closes it.
func (s *sockets) open(key *Key, g *Guard, end context.CancelFunc) (*socket, *server.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := max(1, g.Bounds.requests()/2) // other requests find room
	one := &socket{of: s, end: end}
	if key != nil {
		one.key = key.ID
		if most := g.Bounds.sockets(); s.byKey[one.key] >= most && !s.drop(g, one.key) {
			return nil, &server.Error{Status: http.StatusTooManyRequests, Type: "requests", Code: "rate_limit_exceeded", Header: retryAfter(time.Second),
				Message: fmt.Sprintf("The key %s has %d WebSockets, and all of them are in use. Please try again soon.", key.Name, most)}
		}
	}
	if len(s.all) >= total && !s.drop(g, "") {
		return nil, errBusy("too many WebSockets are in use")
	}
	if s.all == nil {
		s.all, s.byKey = map[*socket]struct{}{}, map[string]int{}
	}
	s.last++
	one.since = s.last
	s.all[one] = struct{}{}
	s.byKey[one.key]++
	return one, nil
}

// drop closes the WebSocket of a key that has waited longest, or of all keys if it is "". The
// caller must hold mu.
func (s *sockets) drop(g *Guard, key string) bool {
	return s.close(g, func(one *socket) bool { return key == "" || one.key == key }) != nil
}

// close closes the WebSocket that has waited longest of those that may be closed. The caller must
// hold mu.
func (s *sockets) close(g *Guard, may func(*socket) bool) *socket {
	var longest *socket
	for one := range s.all {
		if one.busy == 0 && may(one) && (longest == nil || one.since < longest.since) {
			longest = one
		}
	}
	if longest != nil {
		g.counts.dropped()
		longest.end()
		s.remove(longest)
	}
	return longest
}

// free closes the WebSocket other than but that has waited longest of those that hold memory, and
// gives its memory back.
func (s *sockets) free(g *Guard, but *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.close(g, func(one *socket) bool { return one != but && one.held > 0 })
	if one == nil {
		return false
	}
	g.counts.hold(-one.held, 0)
	one.held, one.freed = 0, true
	return true
}

// holds counts n bytes that the WebSocket has of the memory of all requests. It reports whether
// they belong to it, so that gives has to be called for them: it may have been closed meanwhile.
// A message has come, or a response has ended, so it has not waited long.
func (one *socket) holds(n int64) bool {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	if one.freed {
		return false
	}
	one.held += n
	one.of.last++
	one.since = one.of.last
	return true
}

// gives gives back n bytes, unless free has.
func (one *socket) gives(g *Guard, n int64) {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	if !one.freed {
		one.held -= n
		g.counts.hold(-n, 0)
	}
}

func (s *sockets) remove(one *socket) {
	if _, known := s.all[one]; !known {
		return
	}
	delete(s.all, one)
	if s.byKey[one.key]--; s.byKey[one.key] == 0 {
		delete(s.byKey, one.key)
	}
}

// closed is called when a WebSocket has ended.
func (one *socket) closed() {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	one.of.remove(one)
}

// works is called with 1 when a response begins in a WebSocket, and with -1 when it has ended.
func (one *socket) works(n int) {
	if one == nil {
		return
	}
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	one.busy += n
	one.of.last++
	one.since = one.of.last
}
