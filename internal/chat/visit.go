// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
)

// This file is about conversations that run elsewhere: a chat shows a session that another
// process runs. J2

// visitor is a chat at a session that another process runs.
type visitor struct {
	*attach.View
	t     *dialogue
	store store.Store    // nil if the session is at a server
	there *attach.Remote // nil if it is in a store

	working func()    // ends what the terminal shows of the work; nil if none is under way
	since   time.Time // when the session was last seen to be somebody's
}

// settles is how long a session that was given away may be nobody's before it goes on here.
const settles = 20 * time.Second

// visit shows the session until nobody runs it any more. It returns [io.EOF] if the person
// leaves. With moved, whoever the session was given to may need a moment to take it.
func (t *dialogue) visit(ctx context.Context, info session.Info, holder string, moved bool) (err error) {
	in, err := t.conf.Program.OpenStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	log, err := t.conf.Program.AuditLog()
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, in, info.ID)
	if err != nil {
		return err
	}
	t.info, t.spoke = info, true
	t.cfg.Session, t.cfg.Last = info.ID, false
	t.printer(slices.Values(s.Log()[:0]))
	src := &attach.Stored{In: in, ID: info.ID, Audit: log, From: "chat"}
	t.print.Over = true
	v := &visitor{t: t, store: in, View: &attach.View{Err: t.std.Err, Who: t.who, Src: src, Info: info, Show: t.print}}
	v.Begin(s.Log())
	if moved {
		v.since = time.Now()
	}
	v.counted(s.Log()[:v.Shown], !moved)
	switch over, err := v.over(ctx); {
	case err != nil:
		return err
	case over:
		fmt.Fprintf(t.std.Err, "antiphon: nobody runs %s, so it goes on here\n", show.Printable(t.name()))
		return nil
	}
	who := cmp.Or(holder, "another process, or a worker soon,")
	fmt.Fprintf(t.std.Err, "antiphon: attached to %s, which %s runs: what you type is said to it, Esc stops its work, /take goes on with it here, and leaving leaves it running\n", show.Printable(t.name()), show.Printable(who))
	if attach.UnderWay(s) > 0 {
		v.works(ctx)
	} else if v.Asks, err = agent.PendingApprovals(ctx, s); err != nil {
		return err
	}
	defer v.rests()
	t.face.modeApplies(false)
	defer t.face.modeApplies(true)
	return v.stay(ctx)
}

// name is what people call the session.
func (t *dialogue) name() string { return cmp.Or(t.info.Name, t.info.ID) }

// counted takes what came before the run that is shown, and recalls the end of it.
func (v *visitor) counted(before []session.Entry, recalls bool) {
	for _, e := range before {
		v.t.count(e)
	}
	v.t.tell()
	if recalls {
		v.t.recall(slices.Values(before), mostRecalled)
	}
}

// works shows that the other process works: Esc asks it to stop.
func (v *visitor) works(ctx context.Context) {
	if v.working != nil {
		return
	}
	stop := func() {
		if err := v.Src.Stop(ctx); err != nil {
			fmt.Fprintln(v.Err, "!! "+show.Printable(v.t.env.Hide(err.Error())))
		}
	}
	v.working = v.t.face.watching(func() { go stop() }, func(text string) error {
		return v.steer(ctx, text)
	})
}

// steer says something to the work that is under way.
func (v *visitor) steer(ctx context.Context, text string) error {
	said, err := v.t.atOnce(ctx, text)
	if err != nil {
		return err
	}
	return v.Src.Say(ctx, false, said...)
}

func (v *visitor) rests() {
	if v.working != nil {
		v.working()
		v.working = nil
	}
}

// arrivals is what a visitor waits for: what the person types, and what happens in the session.
type arrivals struct {
	prompts chan string
	events  chan agent.Event
	failed  error // why events ended; valid once it is closed
}

// follow waits for prompts and events until ctx is done. A prompt that nobody takes is kept for what
// comes after the visit. end waits until both are over.
func (v *visitor) follow(ctx context.Context) (f *arrivals, end func()) {
	f = &arrivals{prompts: make(chan string), events: make(chan agent.Event)}
	ctx, stop := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(f.prompts)
		for {
			text, err := v.t.face.next(ctx)
			if err != nil {
				return
			}
			select {
			case f.prompts <- text:
			case <-ctx.Done():
				v.t.held = append(v.t.held, text)
				return
			}
		}
	})
	reading.Go(func() {
		defer close(f.events)
		for ev, err := range v.Src.Watch(ctx, v.Info.ID, v.Shown) {
			if f.failed = err; err != nil {
				return
			}
			select {
			case f.events <- ev:
			case <-ctx.Done():
				return
			}
		}
	})
	return f, func() {
		stop()
		reading.Wait()
	}
}

// stay shows what happens in the session, and passes on what the person types.
func (v *visitor) stay(ctx context.Context) error {
	f, end := v.follow(ctx)
	defer end()
	look := time.NewTicker(attach.LookAfter)
	defer look.Stop()
	for {
		if err := v.AskNext(ctx); errors.Is(err, agent.ErrNobody) || ctx.Err() != nil {
			return v.leave(ctx)
		} else if err != nil {
			return err
		}
		select {
		case ev, open := <-f.events:
			if !open {
				return cmp.Or(f.failed, v.leave(ctx))
			}
			if err := v.happened(ctx, ev); err != nil {
				return err
			}
		case text, open := <-f.prompts:
			if !open {
				return v.leave(ctx)
			}
			if taken, err := v.said(ctx, text); taken || err != nil {
				return err
			}
		case <-look.C:
			if over, err := v.over(ctx); err != nil {
				return err
			} else if over {
				fmt.Fprintf(v.t.std.Err, "antiphon: nobody else runs %s any more, so it goes on here\n", show.Printable(v.t.name()))
				return nil
			}
		}
	}
}

// leave says that the session stays where it is.
func (v *visitor) leave(ctx context.Context) error {
	v.Show.EndLine()
	v.t.left = true
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return io.EOF
}

// happened shows an event.
func (v *visitor) happened(ctx context.Context, ev agent.Event) error {
	e, ok := ev.(agent.Recorded)
	if !ok {
		return v.Take(ev)
	}
	v.since = time.Time{}
	switch e.Body.(type) {
	case session.RunStarted:
		v.works(ctx)
	case session.Stopped:
		v.rests()
	}
	err := v.Take(e)
	v.Stopped = nil
	switch e.Body.(type) {
	case session.OutputItem, session.TurnEnded:
		v.t.face.endText()
	}
	v.t.count(e.Entry)
	v.t.tell()
	return err
}

// said passes on what the person typed, and reports whether they take the session.
func (v *visitor) said(ctx context.Context, text string) (taken bool, err error) {
	if command, ok := strings.CutPrefix(strings.TrimSpace(text), "/"); ok {
		v.t.face.sent(text)
		name, _, _ := strings.Cut(command, " ")
		return v.command(ctx, name)
	}
	if strings.HasPrefix(text, "!") {
		v.t.face.sent(text)
		fmt.Fprintln(v.t.std.Err, "!! a shell line needs the conversation here: /take takes it")
		return false, nil
	}
	return false, v.pass(ctx, text)
}

// pass says a prompt to the session. One that the session does not get becomes the draft again.
func (v *visitor) pass(ctx context.Context, text string) error {
	t := v.t
	kept := false
	defer func() {
		if kept {
			t.face.sent(text)
		} else {
			t.face.unsent(text)
		}
	}()
	said, err := t.first(t.message(ctx, text, true, t.picture))
	if err != nil {
		t.warn(err)
		return nil
	}
	err = v.Src.Say(ctx, true, said...)
	if kept = err == nil; kept {
		t.conf.System, t.conf.Parts = "", nil
	}
	switch refused := new(server.Error); {
	case errors.As(err, &refused):
		fmt.Fprintln(t.std.Err, "!! "+show.Printable(refused.Message))
	case err != nil:
		return err
	case v.there != nil && v.there.Rests():
		fmt.Fprintln(t.std.Err, "   (said: nobody runs the session now, so it waits for its next run)")
	default:
		fmt.Fprintln(t.std.Err, "   (said: it is answered when what is under way is done)")
	}
	return nil
}

// visitHelp is what /help shows during a visit.
const visitHelp = `  this conversation runs elsewhere. What you type is said to it, after what is under way; Alt-S says it at once
  Esc stops its work. Questions about its calls can be answered here, too: the first answer counts
  /take   ends its run there, after the calls that are under way, and goes on here
  /cost, /keys   as always
  /quit   leaves; it runs on`

// command performs a command, and reports whether the person takes the session.
func (v *visitor) command(ctx context.Context, name string) (taken bool, err error) {
	switch name {
	case "quit", "exit", "q", "detach":
		return false, v.leave(ctx)
	case "keys":
		v.t.keys()
	case "cost":
		v.t.cost()
	case "take":
		if v.there != nil {
			fmt.Fprintln(v.t.std.Err, "!! /take needs the store of the session, and it is at a server")
			return false, nil
		}
		return true, v.takeOver(ctx)
	case "help", "?":
		fmt.Fprintln(v.t.std.Err, visitHelp)
	default:
		fmt.Fprintf(v.t.std.Err, "!! /%s needs the conversation here: /take takes it, /help lists what can be done from here\n", show.Printable(show.Shorten(name, 40)))
	}
	return false, nil
}

// takeOver ends the session's run elsewhere.
func (v *visitor) takeOver(ctx context.Context) error {
	why := "taken to a terminal by " + person.AccountName()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	v.rests()
	defer v.t.face.working(stop, nil)()
	m := attach.Mover{Err: v.t.std.Err, Hide: v.t.env.Hider(), Store: v.store, Info: v.Info, From: "chat", Why: why}
	if err := m.Free(waiting, false); err != nil {
		return err
	}
	v.t.taken = why
	return attach.SetAside(ctx, v.store, v.Info.ID, why)
}

// over reports whether nobody runs the session, and no worker will by itself.
func (v *visitor) over(ctx context.Context) (bool, error) {
	gone, err := v.Look(ctx)
	if !gone || err != nil {
		return false, err
	}
	if !v.since.IsZero() && time.Since(v.since) < settles {
		return false, nil
	}
	q, ok := v.store.(queue.Queue)
	if !ok {
		return true, nil
	}
	w, err := q.Work(ctx, v.Info.ID)
	if errors.Is(err, session.ErrNotFound) {
		return true, nil
	}
	return err == nil && (w.State == queue.Done || w.State == queue.Parked), err
}

// errArrived is why the wait for a prompt ends: somebody else said something.
var errArrived = errors.New("a delivery has arrived")

// next waits for the next prompt. The text is empty if somebody else said something to the
// session, or took it: then moved is set.
func (t *dialogue) next(ctx context.Context) (string, error) {
	if len(t.held) > 0 {
		text := t.held[0]
		t.held = t.held[1:]
		return text, nil
	}
	if t.lost() { // also if a terminal that is there says so
		return "", io.EOF
	}
	for {
		waiting, end := context.WithCancelCause(ctx)
		stop := t.host.Session.Notify(func() { end(errArrived) })
		text, err := "", error(nil)
		if !t.arrived(ctx) && t.moved == "" {
			text, err = t.face.next(waiting)
		}
		stop()
		again := errors.Is(context.Cause(waiting), errArrived) && ctx.Err() == nil && err != nil
		end(nil)
		if !again {
			return text, err
		}
	}
}

// arrived reports whether somebody said something that has no answer yet, and notes if somebody else
// goes on with the session. It reports each delivery once: one that a turn does not take, because
// the turn fails, waits for the next prompt.
func (t *dialogue) arrived(ctx context.Context) (input bool) {
	last := int64(0)
	for e := range t.host.Session.Entries() {
		if _, ok := e.Body.(session.RunStarted); ok {
			last = e.Seq
		}
	}
	for d, err := range t.host.Session.Deliveries(ctx) {
		if err != nil {
			return input // what cannot be read waits for the next prompt, too
		}
		for _, b := range d.Bodies {
			switch b := b.(type) {
			case session.InputItem:
				input = input || !t.tried[d.Key]
			case session.StopAsked:
				if b.Run > 0 && b.Run == last && b.Why == "" && !t.older[d.Key] {
					t.moved = cmp.Or(b.Detail, "somebody asked for it")
				}
			}
		}
		t.tried[d.Key] = true
	}
	return input
}
