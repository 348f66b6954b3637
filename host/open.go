// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/trust"
)

// Host is an agent's file, open for one run, with the run's session. It has
// exclusive access to the session: until Close, another [Open] of the session fails
// with an error that wraps [session.ErrBusy]. A Host is not safe for concurrent use,
// except for StopAfterTurn, but any number of hosts may be open at once.
type Host struct {
	// File is the agent's file.
	File *agentfile.File
	// Session is the conversation: the configuration's Session or Transcript, or a
	// session in memory.
	Session *session.Session
	// Store is the store of the session, and Info the store's information about it
	// when it was opened. Store is nil for transcripts and sessions in memory.
	Store store.Store
	Info  session.Info

	cfg    Config
	until  time.Time // the end of MaxTime
	spend  *agent.Budget
	result *agent.Result // of the last Stream
	beside []item.Item   // what was said before a prompt that waits for its answer

	closeStore func() error    // nil if the caller owns the store
	unlock     func() error    // nil while the session is not locked
	earlier    []session.Entry // entries of earlier runs
	fresh      bool            // the session was made for this run, which has not begun

	agent *agent.Agent
	names []string // of all tools, including those of agents as tools
	// allowable are those that a rule of the configuration can allow by name.
	allowable []string
	unsure    atomic.Bool // an MCP server is missing, so names may be missing too

	unrecorded atomic.Bool // the audit log could not be written, as a notice said

	spill output.Store
	stops []func()

	allowed []trust.Variable // by the agreement about the file
	sent    []string         // values of variables that are sent to servers, and hidden elsewhere

	mu    sync.Mutex
	asked agent.Usage // usage of agents in messages, before the run
	run   *agent.Run  // the run of Run or Stream, while it is under way
	after bool        // StopAfterTurn was called
}

// Open loads an agent's file, and opens or creates its session. It asks the agents
// in the file's messages, but starts and sends nothing else. An error about the
// configuration, the file or the place of the store is a [ConfigError] or a
// [store.PlaceError], and an error about the time limit is a [LimitError]. If the
// run cannot begin, everything made for it is removed.
func Open(ctx context.Context, cfg Config) (*Host, error) {
	h := &Host{cfg: cfg, until: time.Now().Add(cfg.Limits.MaxTime), spend: &agent.Budget{Tokens: cfg.Limits.MaxTokens, Cost: cfg.Limits.MaxCost}}
	if err := h.cfg.check(ctx); err != nil {
		return nil, err
	}
	// Agents in messages and the run share the limits.
	if err := h.open(agent.WithBudget(ctx, h.spend)); err != nil {
		return nil, errors.Join(h.late(err), h.Close())
	}
	return h, nil
}

// open loads the file and opens its session: in the store, in memory, or in a
// transcript.
func (h *Host) open(ctx context.Context) (err error) {
	options := h.cfg.options()
	if !h.cfg.RefuseMessageAgents {
		options.Runner = h.runner(ctx)
	}
	options.Consent = func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
		a, err := h.agree(ctx, c)
		h.allowed = a.Variables // of the last question, which is about all of the file
		return a, err
	}
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

// warn reports the warnings about the file, and whether its programs are confined. A11
func (h *Host) warn() {
	if s := available(); h.File.RunsPrograms() && h.cfg.Sandbox != sandbox.NameFull && !s.Confines() {
		h.cfg.notify(NoticeSandbox, "this system has no sandbox, so programs run with all your permissions, and each command is asked about, unless its profile is full: %s", strings.Join(s.Missing, "; "))
	}
	for _, w := range h.File.Warnings {
		h.cfg.notify(NoticeFile, "%s", w)
	}
}

// Fresh reports whether the session was created by [Open] and its first run has not
// begun. Close then deletes the session.
func (h *Host) Fresh() bool { return h.fresh }

// Close ends everything that was started for the run, and releases the session and
// the store. It deletes the session of a run that could not begin, for example
// because a model or a file was missing, unless words wait in its inbox.
func (h *Host) Close() (err error) {
	for _, stop := range h.stops {
		stop()
	}
	if h.File != nil {
		err = h.File.Close() // records what the run left in the transcript, and releases its lock
	}
	if h.unlock != nil {
		if h.fresh && len(h.earlier) == 0 {
			err = errors.Join(err, h.dismiss())
		}
		err = errors.Join(err, h.unlock())
	}
	if h.closeStore != nil {
		err = errors.Join(err, h.closeStore())
	}
	h.File, h.stops, h.unlock, h.closeStore = nil, nil, nil, nil
	return err
}

// dismiss deletes the session of a run that did not begin, unless words wait for it.
func (h *Host) dismiss() error {
	err := session.DeleteIfTaken(context.Background(), h.Store, h.Info.ID)
	if errors.Is(err, session.ErrDeliveryWaits) {
		h.tellOf(NoticeKept, h.Info, "the run did not begin; the session %s stays, because what somebody said waits in its inbox", called(h.Info))
		return nil
	}
	return err
}

// Run sends text to the agent and runs it until it stops. An empty text continues
// with the file's own messages, with deliveries to the session, and with calls that wait
// for an answer. If there is no question at all, the error wraps
// [agent.ErrNothingToSend]. The result is that of [agent.Agent.Run].
func (h *Host) Run(ctx context.Context, text string) (*agent.Result, error) {
	said := spoken(text)
	a, err := h.ready(ctx, said)
	if err != nil {
		return nil, err
	}
	defer h.tellUnused()
	res, err := a.Run(agent.WithBudget(ctx, h.spend), h.Session, h.unsaid(said)...)
	if res != nil {
		res.Totals.Nested.Add(h.asked)
	}
	return res, h.rescued(err)
}

// Stream is like Run, but yields events. The usage of agents in messages before the
// run is part of the totals: see [agent.ProgressTotals]. An error is yielded once,
// with a nil event.
func (h *Host) Stream(ctx context.Context, text string) iter.Seq2[agent.Event, error] {
	return h.Say(ctx, spoken(text)...)
}

// Say is like Stream, and sends items: messages with images and files, or instructions. If the
// last item already waits for its answer, it is not sent again, and of the other items only the
// new ones are sent.
func (h *Host) Say(ctx context.Context, said ...item.Item) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		a, err := h.ready(ctx, said)
		if err != nil {
			yield(nil, err)
			return
		}
		defer h.tellUnused()
		run := a.Start(h.Session, h.unsaid(said)...)
		h.follow(run)
		defer func() {
			h.follow(nil)
			h.result = run.Result()
		}()
		for ev, err := range run.Events(agent.WithBudget(ctx, h.spend)) {
			if p, ok := ev.(agent.Progress); ok && p.Kind == agent.ProgressTotals {
				totals := *p.Totals
				totals.Nested.Add(h.asked)
				p.Totals = &totals
				ev = p
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

// unsaid returns what of said the session does not have yet.
func (h *Host) unsaid(said []item.Item) []item.Item {
	if len(said) == 0 {
		return nil
	}
	left := unsaid(said, h.beside, h.Session)
	if len(left) == len(said) { // the prompt is a new one
		h.beside = nil
	}
	h.beside = append(h.beside, said[:len(said)-1]...)
	return left
}

// Result returns the result of the last [Host.Stream] after its events have ended, or nil.
func (h *Host) Result() *agent.Result { return h.result }

// StopAfterTurn ends the run of Stream after the current reply and its calls are
// complete: see [agent.Run.StopAfterTurn]. If there is none, the next one ends before it
// asks anything. It may be called beside all other methods.
func (h *Host) StopAfterTurn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.after = true; h.run != nil {
		h.run.StopAfterTurn()
	}
}

// follow sets the run that is under way, or nil.
func (h *Host) follow(run *agent.Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run = run; run != nil && h.after {
		run.StopAfterTurn()
	}
}

// waits reports whether deliveries wait in the inbox of the session.
func (h *Host) waits(ctx context.Context) bool {
	for _, err := range h.Session.Deliveries(ctx) {
		_ = err // the run reads them again, and reports it
		return true
	}
	return false
}

// ready returns the agent for a run. From then on Close keeps the session, because
// the run may write to it. Without a question there is no run.
func (h *Host) ready(ctx context.Context, said []item.Item) (*agent.Agent, error) {
	a, err := h.Agent(ctx)
	asks := func(it item.Item) bool { return !it.Instructs() }
	if err == nil && !slices.ContainsFunc(said, asks) && !AsksSomething(h.Session) && !h.waits(ctx) {
		err = agent.ErrNothingToSend
	}
	if err == nil {
		watchLast(a)
		h.fresh = false
	}
	return a, err
}

// tellUnused reports the answers that no call has used.
func (h *Host) tellUnused() {
	if h.cfg.Answers != nil {
		h.cfg.Answers.tellUnused(&h.cfg.FrontEnd, h.Session)
	}
}

// LoadError classifies the error of a file that was not loaded. It is a
// [ConfigError], unless an agent in the file failed, which is like the failure of a
// run, another run is writing to the file, or the disk is full.
func LoadError(err error) error {
	var inner *agentfile.AgentError
	if errors.As(err, &inner) || errors.Is(err, session.ErrBusy) || diskFull(err) {
		return err
	}
	return &ConfigError{err}
}
