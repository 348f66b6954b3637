// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/worker"
)

// This file is about attaching to a session, and about leaving one: to workers, to another
// terminal, or for now. J2

// comeBack returns a command that continues the session.
func (t *dialogue) comeBack() string {
	words := "antiphon chat"
	if t.conf.File != "" {
		words += " " + quoted(t.conf.File)
	}
	return words + " --session " + quoted(cmp.Or(t.info.Name, t.info.ID)) + t.conf.StoreFlags
}

// goneElsewhere lets the session go, because somebody else goes on with it, and shows it from then
// on.
func (t *dialogue) goneElsewhere(ctx context.Context) error {
	why := t.moved
	t.moved = ""
	t.found = t.info
	err := t.close()
	if err != nil {
		return err
	}
	if t.detached.Load() {
		return io.EOF
	}
	fmt.Fprintf(t.std.Err, "antiphon: the session goes on elsewhere: %s\n", show.Printable(t.env.Hide(why)))
	if err := t.visit(ctx, t.found, "", true); err != nil {
		return err
	}
	t.found = session.Info{}
	return t.begin(ctx)
}

// untilLeft returns a context that also ends when the person leaves.
func (t *dialogue) untilLeft(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	if live, ok := t.face.(*liveFace); ok {
		go func() {
			select {
			case <-live.t.Left():
				end()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, end
}

// handOver leaves the conversation to workers: they go on when the reply and the calls that are
// under way are done. It may be called while the run is under way.
func (t *dialogue) handOver(ctx context.Context) error {
	here := t.here.Load()
	if here == nil {
		return errors.New("no session is open")
	}
	in, info := here.store, here.info
	if _, err := store.As[queue.Queue](in, "keep work"); err != nil {
		return err
	}
	cfg, err := t.conf.Program.Work(t.std.Err, info)
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, in, info.ID)
	if err != nil {
		return err
	}
	run := attach.UnderWay(s)
	if run == 0 {
		return errors.New("nothing is under way that workers could go on with; Ctrl-D leaves, and all is kept")
	}
	cfg.File, cfg.Session, cfg.Owner, cfg.Store = info.Path, info.ID, info.Owner, in
	if _, err := worker.Submit(ctx, worker.Job{Config: cfg, Upgrade: true}); err != nil {
		return err
	}
	t.detached.Store(true)
	d := session.Delivery{Delivered: session.Delivered{Key: rand.Text(), By: person.Name, From: "chat"}, Bodies: []session.Body{session.StopAsked{AfterTurn: true, Detail: "handed over to workers by " + person.AccountName(), Run: run}}}
	_, err = s.Deliver(ctx, d)
	return err
}

// whenLost returns what is called when the terminal is gone. If a question of the model waits for an answer, the
// run ends with the question open, other subagents are stopped, and whoever opens the session next is asked. Otherwise the
// settings say whether the work is left to workers. If they cannot take it, it is stopped.
func (t *dialogue) whenLost(ctx context.Context) (context.Context, func()) {
	ctx, stop := context.WithCancel(ctx)
	t.gone, t.leaves = make(chan struct{}), make(chan struct{})
	var once sync.Once
	lost := func() {
		once.Do(func() {
			defer close(t.leaves)
			ends := func(subagent string) {
				if t.stopSubagent(context.WithoutCancel(ctx), subagent) != nil {
					stop()
				}
			}
			if t.waiting.lost(ends, func() { close(t.gone) }) {
				return
			}
			if t.env["ANTIPHON_HANGUP"] != "detach" || t.handOver(context.WithoutCancel(ctx)) != nil {
				stop()
			}
		})
	}
	t.conf.Program.Hangup(lost)
	return ctx, lost
}

// lost reports whether the terminal is gone.
func (t *dialogue) lost() bool {
	select {
	case <-t.gone:
		return true
	default: // also if it is nil
		return false
	}
}

// Ask asks the person a question of the model. If they are gone, it waits for a later run. D1
func (t *dialogue) Ask(ctx context.Context, q toolkit.Question) (string, error) {
	t.waiting.asked(1)
	answer, err := t.who.Ask(ctx, q)
	switch {
	case !errors.Is(err, toolkit.ErrNobody):
		t.waiting.asked(-1)
		return answer, err
	case ctx.Err() != nil: // they have left, which stops the work
		t.waiting.asked(-1)
		return "", ctx.Err()
	}
	return "", &tool.NotYet{Reason: attach.PersonsAnswer}
}

// openQuestions are the questions of the model that wait for an answer. When the terminal is gone, they stay open, and the
// subagents beside those that asked are stopped. It is safe for concurrent use.
type openQuestions struct {
	mu     sync.Mutex
	n      int               // in no log yet
	owners map[string]string // subagents that are under way, and the session that started each
	begun  map[string]bool   // those of them whose run has begun
	waits  map[string]bool   // those of them that wait for a person
	stop   func(string)      // stops a subagent; nil as long as there is a terminal
}

func (o *openQuestions) asked(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n += n
	o.stopOthers()
}

// postponed notes that a subagent has a call that stays open, because nobody can approve it.
func (o *openQuestions) postponed(subagent string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wait(subagent)
}

func (o *openQuestions) wait(subagent string) {
	if o.waits == nil {
		o.waits = map[string]bool{}
	}
	o.waits[subagent] = true
}

// lost calls gone, and reports whether a question is open. Then it has other subagents stopped.
func (o *openQuestions) lost(stop func(subagent string), gone func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	gone()
	if o.n == 0 {
		return false
	}
	o.stop = stop
	return true
}

// kept takes the next entry of the log of a session, which may be a subagent's.
func (o *openQuestions) kept(of string, body session.Body) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch b := body.(type) {
	case session.CallStarted:
		if o.owners == nil {
			o.owners = map[string]string{}
		}
		if b.Session != "" {
			o.owners[b.Session] = of
		}
	case session.RunStarted:
		if o.begun == nil {
			o.begun = map[string]bool{}
		}
		o.begun[of] = true
	case session.Paused:
		if b.Session == "" && b.Reason == attach.PersonsAnswer {
			o.n--
			o.wait(of)
		} else if o.waits[b.Session] {
			o.wait(of)
		}
		o.over(b.Session)
	case session.SubagentUsage:
		if !o.waits[b.Session] { // otherwise the call that waits follows
			o.over(b.Session)
		}
	}
	o.stopOthers()
}

func (o *openQuestions) over(subagent string) {
	delete(o.owners, subagent)
	delete(o.begun, subagent)
	delete(o.waits, subagent)
}

// stopOthers stops the subagents that neither wait for a person nor for a subagent that does: one whose run has not begun
// yet as soon as it does.
func (o *openQuestions) stopOthers() {
	if o.stop == nil || o.n > 0 {
		return
	}
	spared := map[string]bool{}
	for one := range o.waits {
		for there := true; there && !spared[one]; one, there = o.owners[one] {
			spared[one] = true
		}
	}
	for one := range o.owners {
		if !spared[one] && o.begun[one] {
			go o.stop(one)
			delete(o.owners, one)
		}
	}
}

// stopSubagent asks the run of a subagent to end now.
func (t *dialogue) stopSubagent(ctx context.Context, id string) error {
	here := t.here.Load()
	if here == nil {
		return nil
	}
	s, err := session.Open(ctx, here.store, id)
	if err != nil {
		return err
	}
	run := attach.UnderWay(s)
	if run == 0 {
		return nil
	}
	d := session.Delivery{Delivered: session.Delivered{Key: rand.Text(), By: person.Name, From: "chat"}, Bodies: []session.Body{session.StopAsked{Detail: "the terminal is gone", Run: run}}}
	_, err = s.Deliver(ctx, d)
	return err
}

// handed waits until a terminal that is gone has left the work to workers, and reports whether it has.
// A question that is open then is theirs.
func (t *dialogue) handed(ctx context.Context) bool {
	if t.leaves == nil {
		return false
	}
	select {
	case <-t.leaves:
	case <-ctx.Done():
		select { // the first one takes either
		case <-t.leaves:
		default:
			return false
		}
	}
	return t.detached.Load()
}
