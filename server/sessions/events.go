// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

const (
	// usualSilence is shorter than what proxies allow, 30 to 60 seconds.
	usualSilence = 15 * time.Second
	// looks is how often a stream looks for what a log does not say: that the process that
	// ran the session is gone, and questions of subagents.
	looks = time.Second
	// looksIdle is how often it looks while the log names nobody who works.
	looksIdle = 5 * time.Second
	// settles is how long it waits for further entries before it looks at what they changed:
	// it reads the whole log.
	settles = 20 * time.Millisecond
)

// The types of events.
const (
	typeSession = "session" // the data is a Session
	typeEntry   = "entry"   // the data is an entry of the log, as session.AppendEntry writes it
	typeText    = "text"    // the data is a Text
)

// events serves GET /antiphon/v1/sessions/{id}/events: the entries of the log after a
// number, and those that follow. V2
func (h *Handler) events(w http.ResponseWriter, r *http.Request, info session.Info) error {
	if err := given(r, "after", "follow", "session"); err != nil {
		return err
	}
	follow := true
	switch text := r.URL.Query().Get("follow"); text {
	case "", "true":
	case "false":
		follow = false
	default:
		return server.Invalid("invalid_value", "follow", "'follow' must be true or false.")
	}
	log := info
	if nested := r.URL.Query().Get("session"); nested != "" && nested != info.ID {
		var err error
		if log, err = h.Store.Info(r.Context(), nested); err != nil {
			return err
		}
		if !h.owns(log) || !strings.HasPrefix(nested, info.ID+"/") {
			return session.ErrNotFound
		}
	}
	after, err := cursor(r, log.Entries)
	if err != nil {
		return err
	}
	watcher, err := store.As[session.Watcher](h.Store, "be watched")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy is not to hold events back
	s := &stream{h: h, ctx: r.Context(), info: info, out: sse.NewWriter(w), sent: after}
	if follow {
		s.follow(watcher, log.ID, after)
	} else {
		s.read(log.ID, after)
	}
	return nil
}

// cursor returns the number of the last entry that a client has.
func cursor(r *http.Request, last int64) (after int64, err error) {
	name, text := "after", r.URL.Query().Get("after")
	if again := r.Header.Get("Last-Event-ID"); again != "" { // of a browser that lost the connection
		name, text = "Last-Event-ID", again
	}
	if text == "" {
		return 0, nil
	}
	after, err = strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 || after > last {
		return 0, server.Invalid("invalid_value", name, "'%s' must be the number of an entry, or 0; the last entry is %d.", name, last)
	}
	return after, nil
}

// stream sends a session to a client. Its methods return when the client is gone.
type stream struct {
	h    *Handler
	ctx  context.Context
	info session.Info
	out  *sse.Writer
	line []byte

	told  string // the last session event
	state Session
	sent  int64 // the last entry
	wrote Text  // the last text
}

// read sends the entries that there are.
func (s *stream) read(id string, after int64) {
	if s.look() != nil {
		return
	}
	for e, err := range nils.Each(s.h.Store, "Load", s.h.Store.Load(s.ctx, id, after)) {
		if err != nil {
			s.broken(err)
			return
		}
		if s.entry(e) != nil {
			return
		}
	}
}

// follow sends the entries that there are, and those that follow.
func (s *stream) follow(in session.Watcher, id string, after int64) {
	ctx, end := context.WithCancel(s.ctx)
	entries, failed := watch(ctx, in, id, after)
	defer func() {
		end()
		for range entries { // until the watch is over
		}
	}()
	if s.look() != nil {
		return
	}
	silence := cmp.Or(s.h.Silence, usualSilence)
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	next := time.NewTimer(s.pause())
	defer next.Stop()
	more, unread := s.h.Live.read(id)
	defer unread()
	var text <-chan time.Time // when more of a text is sent
	for {
		err := error(nil)
		select {
		case <-ctx.Done():
			return
		case e, open := <-entries:
			if !open {
				s.broken(*failed)
				return
			}
			if err = s.entry(e); err == nil && changes(e.Body) {
				next.Reset(settles)
			}
			if s.h.Live != nil && text == nil { // a text may have waited for the entry
				text = time.After(batch)
			}
		case <-more:
			if text == nil {
				text = time.After(batch)
			}
			continue
		case <-text:
			text = nil
			if t, ok := s.h.Live.next(id, s.wrote, s.sent); !ok {
				continue
			} else if err = s.write(t); err == nil {
				s.wrote = t
			}
		case <-next.C:
			told := s.told
			err = s.look()
			next.Reset(s.pause())
			if told == s.told {
				if err != nil {
					return
				}
				continue // nothing was sent
			}
		case <-quiet.C:
			err = s.out.Comment("")
		}
		if err != nil {
			return
		}
		quiet.Reset(silence)
	}
}

// watch watches a session in a goroutine until ctx is done. failed says why it ended; it is valid once
// entries is closed.
func watch(ctx context.Context, in session.Watcher, id string, after int64) (entries <-chan session.Entry, failed *error) {
	to := make(chan session.Entry)
	failed = new(error)
	go func() {
		defer close(to)
		for e, err := range nils.Each(in, "Watch", in.Watch(ctx, id, after)) {
			if *failed = err; err != nil {
				return
			}
			select {
			case to <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return to, failed
}

// changes reports whether an entry may change what a session event says, apart from the
// number of entries.
func changes(b session.Body) bool {
	switch b.(type) {
	case session.RunStarted, session.Stopped, session.ApprovalAsked, session.Approval, session.CallStarted, session.CallOutput, session.Paused, session.Delivered:
		return true
	}
	return false
}

// pause is how long to wait before the next look.
func (s *stream) pause() time.Duration {
	if s.state.inside {
		return looks
	}
	return looksIdle
}

// entry sends an entry.
func (s *stream) entry(e session.Entry) (err error) {
	if s.line, err = session.AppendEntry(s.line[:0], e); err != nil {
		s.broken(err)
		return err
	}
	s.sent = e.Seq
	return s.out.Numbered(e.Seq, typeEntry, s.line)
}

// write sends a piece of a text.
func (s *stream) write(t Text) error {
	line, err := json.Marshal(t, asIs)
	if err != nil {
		s.broken(err)
		return err
	}
	return s.out.Event(typeText, line)
}

// look sends what the session is like now, if that changed.
func (s *stream) look() error {
	info, err := s.h.Store.Info(s.ctx, s.info.ID)
	if err == nil {
		s.state, err = s.h.describe(s.ctx, info, s.h.looking(s.ctx))
	}
	if err != nil {
		s.broken(err)
		return err
	}
	compared := s.state
	compared.Entries, compared.Updated = 0, 0 // entries have events of their own
	text, err := json.Marshal(compared, asIs)
	if err != nil {
		s.broken(err)
		return err
	}
	if string(text) == s.told {
		return nil
	}
	s.told = string(text)
	if text, err = json.Marshal(s.state, asIs); err == nil {
		err = s.out.Event(typeSession, text)
	}
	return err
}

// broken logs why a stream ends early. The client takes it up again, and is told then.
func (s *stream) broken(err error) {
	if err != nil && !errors.Is(err, session.ErrNotFound) && s.ctx.Err() == nil && s.h.Log != nil {
		s.h.Log(err)
	}
}
