// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/worker"
)

// A session moves in three steps, each of which another process finds done or not done: the
// queue says who goes on, the run that is under way is asked to end, and the one that goes on
// locks the session. The lock alone decides who runs it. The request to end names the run,
// so that it ends no other one if this run has died before it read the request.

// moveFlags are common to the commands that move a session.
type moveFlags struct {
	Now bool `help:"End the calls that run, instead of waiting for them. Their outcome is not known then."`
}

// mover asks the run of a session to end, because the session goes on elsewhere.
type mover struct {
	moveFlags
	std   stdio
	all   *sessionsCommand
	store keeper
	info  session.Info
	from  string // the command
	why   string // for those who read the log, and for the terminal that loses the run
}

// free asks the process that runs the session to end its run, and waits until none does. With once, it
// returns when the first such run has ended, also if somebody else runs it by then.
func (m *mover) free(ctx context.Context, once bool) error {
	asked := int64(0) // the run that was asked
	for {
		unlock, err := m.store.Lock(ctx, m.info.ID)
		if err == nil {
			return unlock()
		}
		if !errors.Is(err, session.ErrBusy) {
			return err
		}
		s, err2 := session.Open(ctx, m.store, m.info.ID)
		if err2 != nil {
			return err2
		}
		run := underWay(s)
		switch {
		case once && asked > 0 && run != asked:
			return nil
		case run == 0 && asked == 0: // a chat waits for its person: it lets the session go
			run = lastRun(s)
		}
		if run > 0 && run != asked {
			if err := m.ask(ctx, s, run, holderOf(err)); err != nil {
				return err
			}
			asked = run
		}
		if err := untilChanged(ctx, s); err != nil {
			return err
		}
	}
}

// underWay returns the number of the entry that began the run which has not ended, or 0.
func underWay(s *session.Session) (run int64) { return underWayIn(s.Entries()) }

func underWayIn(log iter.Seq[session.Entry]) (run int64) {
	for e := range log {
		switch e.Body.(type) {
		case session.RunStarted:
			run = e.Seq
		case session.Stopped:
			run = 0
		}
	}
	return run
}

// lastRun returns the number of the entry that began the last run, or 0.
func lastRun(s *session.Session) (run int64) {
	for e := range s.Entries() {
		if _, ok := e.Body.(session.RunStarted); ok {
			run = e.Seq
		}
	}
	return run
}

// untilChanged waits until a run begins or ends, or for as long as a process that has died
// may keep a lock unnoticed.
func untilChanged(ctx context.Context, s *session.Session) error {
	look, end := context.WithTimeout(ctx, lookAfter)
	defer end()
	for e, err := range s.Watch(look, int64(len(s.Log()))) {
		if err != nil {
			break
		}
		switch e.Body.(type) {
		case session.RunStarted, session.Stopped:
			return nil
		}
	}
	<-look.Done()
	return ctx.Err()
}

// ask delivers the request to one run, and says what it waits for or ends.
func (m *mover) ask(ctx context.Context, s *session.Session, run int64, holder string) error {
	d := session.Delivery{Delivered: session.Delivered{Key: rand.Text(), By: person.AccountName(), From: m.from}, Bodies: []session.Body{session.StopAsked{AfterTurn: !m.Now, Detail: m.why, Run: run}}}
	say := func(format string, args ...any) {
		fmt.Fprintln(m.std.err, "antiphon: "+show.Printable(m.all.hide(fmt.Sprintf(format, args...))))
	}
	for _, call := range running(s) {
		if m.Now {
			say("this call ends, and its outcome is not known: %s", call)
		} else {
			say("waits for the end of this call; --now ends it: %s", call)
		}
	}
	if _, err := s.Deliver(ctx, d); err != nil {
		return err
	}
	say("asked for the end of the run of %s, held by %s", m.info.ID, holder)
	return nil
}

// running describes the calls that run, if the session does.
func running(s *session.Session) (calls []string) {
	var view session.View
	for e := range s.Entries() {
		view.Apply(e)
	}
	for _, c := range view.Open() {
		if !c.Started || c.Lost {
			continue
		}
		const most = 200
		text := c.Item.Name()
		if call, err := agent.CallOf(c.Item); err == nil {
			text += " " + call.Arguments
		}
		if runes := []rune(text); len(runes) > most {
			text = string(runes[:most]) + "…"
		}
		calls = append(calls, show.Unbroken(text))
	}
	return calls
}

// movable returns an error for a session that cannot go on with its agent's file.
func movable(info session.Info) error {
	if info.Path == "" {
		return usage(&host.UnboundError{Session: info.ID})
	}
	if _, err := os.Stat(info.Path); err != nil {
		return usage(fmt.Errorf("the agent's file is not on this machine: %w", err))
	}
	return notAgent(info.Path)
}

// detachCommand is antiphon sessions detach.
type detachCommand struct {
	Session  string   `arg:"" help:"The session."`
	Tenant   string   `placeholder:"TENANT" help:"Whose work it is, for shares and limits."`
	Priority int      `placeholder:"N" help:"Work with a higher number is done sooner, within a tenant."`
	Needs    []string `placeholder:"LABEL" sep:"," help:"Labels that a worker must have."`
	placeFlag
	moveFlags
}

// Run leaves the session as work, and ends its run at this machine's terminal or another.
func (c *detachCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	cfg, err := workConfig(std, env)
	if err != nil {
		return err
	}
	place, err := c.place()
	if err != nil {
		return usage(err)
	}
	return all.withWhole(ctx, env, c.Session, func(in keeper, info session.Info) error {
		q, err := queueOf(in)
		if err != nil {
			return err
		}
		if err := movable(info); err != nil {
			return err
		}
		type detached struct {
			Session string `json:"session"`
			Worker  string `json:"worker,omitempty"`
		}
		if w, err := q.Work(ctx, info.ID); err == nil && w.State == queue.Running {
			return all.told(std, detached{info.ID, w.Worker}, "%s: the worker %s runs it already", info.ID, w.Worker)
		} else if err != nil && !errors.Is(err, session.ErrNotFound) {
			return err
		}
		cfg.File, cfg.Session, cfg.Owner, cfg.Store = info.Path, info.ID, info.Owner, in
		// Workers find it busy until its run has ended or died, and go on then. The agent is
		// the file as it is now, as for the run at the terminal.
		if _, err := worker.Submit(ctx, worker.Job{Config: cfg, Tenant: c.Tenant, Priority: c.Priority, Needs: c.Needs, Place: place, Upgrade: true}); err != nil {
			return err
		}
		m := mover{moveFlags: c.moveFlags, std: std, all: all, store: in, info: info, from: "sessions detach", why: "handed over to workers by " + person.AccountName()}
		if err := m.free(ctx, true); err != nil {
			return err
		}
		return all.told(std, detached{Session: info.ID}, "%s: workers go on with it; antiphon work status %s says how it goes", info.ID, quoted(cmp.Or(info.Name, info.ID)))
	})
}

// takeCommand is antiphon sessions take.
type takeCommand struct {
	Session string `arg:"" help:"The session."`
	moveFlags
	endpointFlags `group:"who"`
	trustFlags    `group:"may"`
}

// Run ends the session's run elsewhere, and goes on with it at this terminal.
func (c *takeCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.withWhole(ctx, env, c.Session, func(in keeper, info session.Info) error {
		if err := movable(info); err != nil {
			return err
		}
		taken := "taken to a terminal by " + person.AccountName()
		m := mover{moveFlags: c.moveFlags, std: std, all: all, store: in, info: info, from: "sessions take", why: taken}
		for {
			if err := m.free(ctx, false); err != nil {
				return err
			}
			run := runCommand{
				File: info.Path,
				runFlags: runFlags{
					Session: info.ID, Owner: info.Owner, JSON: all.JSON, CompactBy: "summary", NoAttach: true,
					storeFlag: all.storeFlag, endpointFlags: c.endpointFlags, trustFlags: c.trustFlags,
				},
				locked: func(ctx context.Context, _ session.Info) error { return setAside(ctx, in, info.ID, taken) },
			}
			err := run.Run(ctx, std, env)
			switch {
			case errors.Is(err, session.ErrBusy): // a worker was faster: it is asked, too
				continue
			case err == nil:
				return answeredHere(ctx, in, info.ID, taken)
			}
			if errors.Is(err, errMovedOn) {
				return err
			}
			fmt.Fprintf(std.err, "antiphon: the session stays with you; antiphon sessions detach %s leaves it to workers\n", quoted(cmp.Or(info.Name, info.ID)))
			return err
		}
	})
}

// setAside takes a session's work from workers. The caller holds the session.
func setAside(ctx context.Context, in keeper, id, why string) error {
	return moveWork(ctx, in, id, queue.Parked, why, func(w queue.Work) bool {
		return w.State != queue.Done && (w.State != queue.Parked || w.Reason != why)
	})
}

// answeredHere says that nothing is left to do of work that was set aside.
func answeredHere(ctx context.Context, in keeper, id, why string) error {
	return moveWork(ctx, in, id, queue.Done, why+", and answered there", func(w queue.Work) bool { return w.State == queue.Parked && w.Reason == why })
}

// moveWork changes the state of a session's work if it has some for which that is meant.
func moveWork(ctx context.Context, in keeper, id string, to queue.State, why string, meant func(queue.Work) bool) error {
	q, ok := in.(queue.Queue)
	if !ok {
		return nil
	}
	for {
		w, err := q.Work(ctx, id)
		if errors.Is(err, session.ErrNotFound) || err == nil && !meant(w) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := q.Move(ctx, w, to, why); !errors.Is(err, queue.ErrChanged) {
			return err
		}
	}
}

var errMovedOn = errors.New("the run has ended here, and the session goes on elsewhere")

// movedAway is how a run ends whose session goes on elsewhere.
func movedAway(why string) error {
	return &exitError{exitLimit, fmt.Errorf("%w: %s", errMovedOn, why)}
}
