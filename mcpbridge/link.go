// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// pace holds the time limits of a link.
type pace struct {
	backoff func(failures int) time.Duration // delay before a server is started again
	tries   int                              // limit of consecutive failures
	ping    time.Duration                    // limit for a ping after a call timed out
	refresh time.Duration                    // limit for listing tools between two turns
	stream  time.Duration                    // limit for beginning a stream of notifications
	slow    time.Duration                    // delay before the event about a slow start
	grace   time.Duration                    // time for a program to end before it is signalled, and again before it is killed
}

var defaultPace = pace{
	backoff: func(failures int) time.Duration { return min(250*time.Millisecond<<min(failures, 6), 8*time.Second) },
	tries:   5,
	ping:    5 * time.Second,
	refresh: 5 * time.Second,
	stream:  5 * time.Second,
	slow:    3 * time.Second,
	grace:   2 * time.Second,
}

// link manages one server: it starts it, restarts it when it has ended, and knows
// its tools.
type link struct {
	bridge *Bridge
	server Server

	mu       sync.Mutex
	live     *session // the last session, which may have ended
	attempt  *attempt // the current attempt to start one
	failures int      // consecutive: failed starts, and sessions that answered no call
	last     error    // the last failure
	tools    []*listedTool
	stale    bool // the server announced changed tools
	listing  chan struct{}

	relisting atomic.Bool // a goroutine will list the tools
}

// attempt is a start that callers wait for.
type attempt struct {
	done chan struct{}
	err  error
}

func newLink(b *Bridge, s Server) *link {
	return &link{bridge: b, server: s, listing: make(chan struct{}, 1)}
}

// open starts the server and lists its tools for the first time.
func (l *link) open(ctx context.Context) error {
	if _, err := l.session(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.stale = true
	l.mu.Unlock()
	if err := l.relist(ctx); err != nil {
		return err
	}
	return l.checkIncluded()
}

// checkIncluded reports tools that the caller named and the server lacks.
func (l *link) checkIncluded() error {
	var names []string
	for _, t := range l.listed() {
		names = append(names, t.name)
	}
	missing := l.server.missing(names)
	if len(missing) == 0 {
		return nil
	}
	return &ServerError{Server: l.server.Name, Problem: fmt.Sprintf("has no tool %s; of those asked for it has: %s",
		strings.Join(missing, ", "), short(strings.Join(names, ", ")))}
}

// session returns a session with a running server. It starts one if necessary and
// waits for it until ctx is done.
func (l *link) session(ctx context.Context) (*session, error) {
	for {
		s, a, err := l.next()
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-a.done:
			if a.err != nil {
				return nil, a.err
			}
		case <-ctx.Done():
			return nil, &ServerError{Server: l.server.Name, Problem: "is not there yet: it is being started. Nothing was done.", Err: errNoAnswer}
		}
	}
}

// next returns the current session, or the attempt to start one.
func (l *link) next() (*session, *attempt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bridge.life.Err() != nil {
		return nil, nil, &ServerError{Server: l.server.Name, Problem: "was ended with the bridge. Nothing was done.", Err: errClosed}
	}
	if l.live != nil {
		if !l.live.over() {
			return l.live, nil, nil
		}
		l.count(l.live)
	}
	if l.attempt != nil {
		return nil, l.attempt, nil
	}
	if l.failures >= l.bridge.pace.tries {
		return nil, nil, &ServerError{Server: l.server.Name, Err: l.last, Problem: fmt.Sprintf(
			"failed %d times in a row and is not started again. Nothing was done. The last time: %v", l.failures, l.last)}
	}
	a := &attempt{done: make(chan struct{})}
	l.attempt = a
	again := l.live != nil || l.failures > 0
	go l.start(a, again)
	return nil, a, nil
}

// count retires a session that is over. A session that answered no call counts as a
// failure, so that a server that dies on every call is not restarted forever.
func (l *link) count(s *session) {
	if s.counted {
		return
	}
	s.counted = true
	if s.answered.Load() {
		l.failures = 0
		return
	}
	l.failures++
	l.last = s.cause()
}

// start makes an attempt. It does not end with the call that requested it.
func (l *link) start(a *attempt, again bool) {
	ctx, cancel := context.WithTimeout(l.bridge.life, l.server.StartTimeout)
	defer cancel()
	l.mu.Lock()
	failures := l.failures
	l.mu.Unlock()
	s, err := (*session)(nil), error(nil)
	if failures > 0 {
		err = pause(ctx, l.bridge.pace.backoff(failures-1))
	}
	if err == nil {
		s, err = l.dial(ctx)
	}
	l.mu.Lock()
	l.attempt = nil
	if err != nil {
		l.failures++
		l.last, a.err = err, err
	} else {
		l.live = s
		l.stale = l.stale || again
	}
	l.mu.Unlock()
	close(a.done)
	if err == nil && again {
		l.bridge.background(l.relistSoon)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listed returns the tools of the last listing.
func (l *link) listed() []*listedTool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools
}

// sayStarting reports a slow start.
func (l *link) sayStarting() {
	l.bridge.notify(Event{Server: l.server.Name, Kind: Starting, Text: fmt.Sprintf("it may take %v", l.server.StartTimeout)})
}

// outdated records that the server's tools have changed.
func (l *link) outdated() {
	l.mu.Lock()
	l.stale = true
	l.mu.Unlock()
}

// announced records that the server's tools have changed, and lists them. It is
// called from the goroutine that reads the server's messages, so it must not send a
// request itself.
func (l *link) announced() {
	l.outdated()
	if l.relisting.CompareAndSwap(false, true) { // one that waits is enough for all announcements until it begins
		l.bridge.background(l.relistSoon)
	}
}

// refresh lists the tools if they are known to have changed. It does not start a
// server that has ended: the next call does.
func (l *link) refresh(ctx context.Context) error {
	l.mu.Lock()
	gone := l.live == nil || l.live.over()
	l.mu.Unlock()
	if gone {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.bridge.pace.refresh)
	defer cancel()
	return l.relist(ctx)
}

// relistSoon is relist for the background. The next call that needs the tools lists
// them again, and reports the error.
func (l *link) relistSoon(ctx context.Context) {
	defer l.relisting.Store(false)
	_ = l.relist(ctx)
}

// relist lists the tools if they are stale, one listing at a time.
func (l *link) relist(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.server.StartTimeout)
	defer cancel()
	select {
	case l.listing <- struct{}{}:
		defer func() { <-l.listing }()
		l.relisting.Store(false) // what is announced from now on is listed again
	case <-ctx.Done():
		return &ServerError{Server: l.server.Name, Problem: "does not tell its tools", Err: errNoAnswer}
	}
	l.mu.Lock()
	stale := l.stale
	l.stale = false
	l.mu.Unlock()
	if !stale {
		return nil
	}
	tools, err := l.list(ctx)
	l.mu.Lock()
	if err != nil {
		l.stale = true
		l.mu.Unlock()
		return err
	}
	before := l.tools
	l.tools = l.keep(tools)
	changed := before != nil && !slices.Equal(before, l.tools)
	l.mu.Unlock()
	l.bridge.rebuild()
	if changed {
		l.bridge.notify(Event{Server: l.server.Name, Kind: Changed, Text: fmt.Sprintf("%d tools, before %d", len(tools), len(before))})
	}
	return nil
}

// keep returns the new list with the previous values of unchanged tools.
func (l *link) keep(tools []*listedTool) []*listedTool {
	for i, t := range tools {
		if j := slices.IndexFunc(l.tools, t.equal); j >= 0 {
			tools[i] = l.tools[j]
		}
	}
	return tools
}

func (l *link) list(ctx context.Context) ([]*listedTool, error) {
	s, err := l.session(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := s.list(ctx)
	if err != nil {
		return nil, s.explain(err, "did not tell its tools")
	}
	return tools, nil
}

// up reports whether the server was started and has listed its tools.
func (l *link) up() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools != nil
}

func (l *link) info() Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	info := Info{Name: l.server.Name, Tools: len(l.tools)}
	if l.live != nil {
		l.live.describe(&info)
		info.Up = !l.live.over()
	}
	return info
}

// close ends the session, and waits for a running attempt.
func (l *link) close() {
	l.mu.Lock()
	a := l.attempt
	l.mu.Unlock()
	if a != nil {
		<-a.done
	}
	l.mu.Lock()
	s := l.live
	l.mu.Unlock()
	if s != nil {
		s.end(errClosed)
		<-s.gone
	}
}

// isDone reports whether an error is a context error.
func isDone(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
