// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
)

// Host is an agent's file, open for one run, with the session that the run is
// written to. It has that session for itself: until Close, another [Open] of it is
// an error that wraps [session.ErrBusy]. It is for one goroutine; any number of
// hosts may be open at once.
type Host struct {
	// File is the agent's file.
	File *agentfile.File
	// Session is the conversation: that of the configuration's Session or Transcript,
	// or one in memory.
	Session *session.Session
	// Store has the session, and Info is what the store knew of it when it was
	// opened. Store is nil for others.
	Store store.Store
	Info  session.Info

	cfg   Config
	until time.Time // when MaxTime has passed
	spend *agent.Budget

	closeStore func() error    // nil if it is not ours
	unlock     func() error    // nil as long as the session is not locked
	earlier    []session.Entry // what earlier runs left in the session
	fresh      bool            // the session was made for this run, which has not begun yet

	agent  *agent.Agent
	names  []string    // of all tools, those of nested agents included
	unsure atomic.Bool // an MCP server is missing, so that names may be too
	spill  tool.Spill
	stops  []func()

	mu    sync.Mutex
	asked agent.Spent // by agents in messages, before the run
}

// Open loads an agent's file, and opens its session or begins it. Agents that stand
// in the file's messages are asked; else nothing is started and nothing is sent. An
// error that is about the configuration, the file or the store's place is a
// [ConfigError] or a [store.PlaceError], one about the time that the limits leave is
// a [LimitError]. What was made for a run that cannot begin is taken back.
func Open(ctx context.Context, cfg Config) (*Host, error) {
	h := &Host{cfg: cfg, until: time.Now().Add(cfg.Limits.MaxTime), spend: &agent.Budget{Tokens: cfg.Limits.MaxTokens, Cost: cfg.Limits.MaxCost}}
	if err := h.cfg.check(ctx); err != nil {
		return nil, err
	}
	// Agents in messages and the run itself share what the limits leave.
	if err := h.open(agent.WithBudget(ctx, h.spend)); err != nil {
		return nil, errors.Join(h.late(err), h.Close())
	}
	return h, nil
}

func (h *Host) open(ctx context.Context) (err error) {
	options := h.cfg.options()
	options.Runner = h.runner(ctx)
	switch {
	case h.cfg.keeps():
		return h.keep(ctx, options)
	case h.cfg.Transcript == "":
		if h.File, err = agentfile.Load(ctx, h.cfg.File, options); err != nil {
			return LoadError(err)
		}
		h.warn()
		h.Session, err = h.File.Session(ctx)
		return err
	}
	var transcript *agentfile.Transcript
	if h.File, transcript, err = agentfile.OpenTranscript(ctx, h.cfg.File, h.cfg.Transcript, options); err != nil {
		return LoadError(err)
	}
	h.warn()
	h.Session, err = session.Open(ctx, transcript, h.cfg.Transcript)
	return err
}

func (h *Host) warn() {
	for _, w := range h.File.Warnings {
		h.cfg.notify(NoticeFile, "%s", w)
	}
}

// Fresh reports whether the session was made by [Open], and no run of it has begun.
// Close deletes it then.
func (h *Host) Fresh() bool { return h.fresh }

// Close ends what was started for the run, and gives the session and the store
// back. A session of a run that could not begin, for want of a model or a file,
// goes with it.
func (h *Host) Close() (err error) {
	for _, stop := range h.stops {
		stop()
	}
	if h.File != nil {
		_ = h.File.Close() // servers may end as they like
	}
	if h.unlock != nil {
		if h.fresh && len(h.earlier) == 0 {
			err = errors.Join(err, h.Store.Delete(context.Background(), h.Info.ID))
		}
		err = errors.Join(err, h.unlock())
	}
	if h.closeStore != nil {
		err = errors.Join(err, h.closeStore())
	}
	h.File, h.stops, h.unlock, h.closeStore = nil, nil, nil, nil
	return err
}

// Run says something to the agent and runs it to its end. An empty text goes on
// with what waits for an answer. What it returns is as of [agent.Agent.Run].
func (h *Host) Run(ctx context.Context, text string) (*agent.Result, error) {
	a, err := h.ready(ctx)
	if err != nil {
		return nil, err
	}
	defer h.tellUnused()
	res, err := a.Run(agent.WithBudget(ctx, h.spend), h.Session, input(text, h.Session)...)
	if res != nil {
		res.Totals.Nested.Add(h.asked)
	}
	return res, h.rescued(err)
}

// Stream is like Run, and yields what happens. What agents in messages used before
// is in the totals of the last event. An error is yielded once, with a nil event.
func (h *Host) Stream(ctx context.Context, text string) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		a, err := h.ready(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		defer h.tellUnused()
		for ev, err := range a.Stream(agent.WithBudget(ctx, h.spend), h.Session, input(text, h.Session)...) {
			if end, ok := ev.(agent.Stopped); ok {
				end.Totals.Nested.Add(h.asked)
				end.All = end.Totals.All()
				ev = end
			}
			if err != nil {
				err = h.rescued(err)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

func (h *Host) ready(ctx context.Context) (*agent.Agent, error) {
	a, err := h.Agent(ctx)
	if err == nil {
		h.fresh = false
	}
	return a, err
}

func (h *Host) tellUnused() {
	if h.cfg.Answers != nil {
		h.cfg.Answers.tellUnused(&h.cfg.Front, h.Session)
	}
}

// LoadError is the error of a file that was not loaded: a [ConfigError], unless an
// agent in it failed, which is like the failure of a run, another run writes to
// it, or the disk is full.
func LoadError(err error) error {
	var inner *agentfile.AgentError
	if errors.As(err, &inner) || errors.Is(err, session.ErrBusy) || diskFull(err) {
		return err
	}
	return &ConfigError{err}
}
