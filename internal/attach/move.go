// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
)

// A session moves in three steps, each of which another process finds done or not done: the
// queue says who goes on, the run that is under way is asked to end, and the one that goes on
// locks the session. The lock alone decides who runs it. The request to end names the run,
// so that it ends no other one if this run has died before it read the request.

// Mover asks the run of a session to end, because the session goes on elsewhere.
type Mover struct {
	Store store.Store
	Info  session.Info
	From  string // the command
	Why   string // for those who read the log, and for the terminal that loses the run
	Now   bool   // end the calls that run, instead of waiting for them

	Err  io.Writer                // for the person
	Hide func(text string) string // removes what is secret
}

// Free asks the process that runs the session to end its run, and waits until none does. With once, it
// returns when the first such run has ended, also if somebody else runs it by then.
func (m *Mover) Free(ctx context.Context, once bool) error {
	asked := int64(0) // the run that was asked
	for {
		unlock, err := m.Store.Lock(ctx, m.Info.ID)
		if err == nil {
			return unlock()
		}
		if !errors.Is(err, session.ErrBusy) {
			return err
		}
		s, err2 := session.Open(ctx, m.Store, m.Info.ID)
		if err2 != nil {
			return err2
		}
		run := UnderWay(s)
		switch {
		case once && asked > 0 && run != asked:
			return nil
		case run == 0 && asked == 0: // a chat waits for its person: it lets the session go
			run = lastRun(s)
		}
		if run > 0 && run != asked {
			if err := m.ask(ctx, s, run, HolderOf(err)); err != nil {
				return err
			}
			asked = run
		}
		if err := untilChanged(ctx, s); err != nil {
			return err
		}
	}
}

// UnderWay returns the number of the entry that began the run which has not ended, or 0.
func UnderWay(s *session.Session) (run int64) {
	for e := range s.Entries() {
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
	look, end := context.WithTimeout(ctx, LookAfter)
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
func (m *Mover) ask(ctx context.Context, s *session.Session, run int64, holder string) error {
	d := session.Delivery{Delivered: session.Delivered{Key: rand.Text(), By: person.AccountName(), From: m.From}, Bodies: []session.Body{session.StopAsked{AfterTurn: !m.Now, Detail: m.Why, Run: run}}}
	say := func(format string, args ...any) {
		fmt.Fprintln(m.Err, "antiphon: "+show.Printable(m.Hide(fmt.Sprintf(format, args...))))
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
	say("asked for the end of the run of %s, held by %s", m.Info.ID, holder)
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

// SetAside takes a session's work from workers. The caller holds the session.
func SetAside(ctx context.Context, in store.Store, id, why string) error {
	return moveWork(ctx, in, id, queue.Parked, why, func(w queue.Work) bool {
		return w.State != queue.Done && (w.State != queue.Parked || w.Reason != why)
	})
}

// AnsweredHere says that nothing is left to do of work that was set aside.
func AnsweredHere(ctx context.Context, in store.Store, id, why string) error {
	return moveWork(ctx, in, id, queue.Done, why+", and answered there", func(w queue.Work) bool { return w.State == queue.Parked && w.Reason == why })
}

// moveWork changes the state of a session's work if it has some for which that is meant.
func moveWork(ctx context.Context, in store.Store, id string, to queue.State, why string, meant func(queue.Work) bool) error {
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
