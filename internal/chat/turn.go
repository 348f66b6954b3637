// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// turn says a text to the agent and shows what happens. Only what makes it impossible to go
// on is an error.
func (t *dialogue) turn(ctx context.Context, text string) error {
	for {
		t.halted = false
		err := t.oneTurn(ctx, text)
		if err != nil {
			return err
		}
		if text = ""; ctx.Err() != nil || !t.arrived(ctx) || t.moved != "" || t.halted { // said too late for the run
			return nil
		}
	}
}

// oneTurn is turn for one run of the agent. A prompt that the session does not get becomes the draft again.
func (t *dialogue) oneTurn(ctx context.Context, text string) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	end := t.face.working(func() { stop(errHalted) }, t.steer(ctx))
	defer end()
	t.print.Begin()
	t.told, t.replied = "", false
	t.print.Picture = func(name, uri string) { t.picture(work, name, uri) }
	had := false // by the session
	defer func() {
		if !had && text != "" {
			t.face.unsent(text)
		}
	}()
	a, said, err := t.prepare(work, text)
	if err == nil {
		had = len(said) == 0
		var noted *watchFiles
		noted, t.undone = t.watch(a), nil
		for ev, failure := range t.host.Say(work, said...) {
			if failure != nil {
				err = failure
				break
			}
			if !t.spoke {
				t.spoke = true
				t.face.remember(nil, t.draft())
			}
			if !had && hasSaid(ev) {
				had = true
				t.sent(text)
			}
			if err := t.print.Show(ev); err != nil {
				return err
			}
			t.follow(ev)
		}
		err = errors.Join(err, noted.record(ctx, t.host.Session))
	}
	t.print.EndLine()
	t.face.endText()
	t.tell()
	if err != nil {
		return t.failed(ctx, work, err)
	}
	t.replied = t.host.Result() != nil && t.host.Result().Why == agent.StopEndTurn
	return nil
}

// prepare returns the agent with what the person chose for it, and what is said to it.
func (t *dialogue) prepare(ctx context.Context, text string) (*agent.Agent, []item.Item, error) {
	a, err := t.host.Agent(ctx)
	if err != nil {
		return nil, nil, err
	}
	said, err := t.first(t.message(ctx, text, true, t.picture))
	if err != nil {
		return nil, nil, err
	}
	if len(said) > 0 {
		var ran []item.Item
		for _, text := range t.ran {
			ran = append(ran, item.User(text))
		}
		said = append(ran, said...)
	}
	t.plans(a)
	t.setEffort(a)
	if t.conf.Temperature != nil {
		a.Request.Temperature = t.conf.Temperature
	}
	a.CollapseReads = a.CollapseReads || t.collapses
	t.window = cmp.Or(t.window, a.Compaction.Window)
	return a, said, nil
}

// sent forgets what was sent with a prompt, because the session has it now.
func (t *dialogue) sent(text string) {
	t.conf.System, t.conf.Parts = "", nil
	t.face.sent(text)
	if t.ran != nil {
		t.ran = nil
		t.keepRan()
	}
}

// failed says why a turn of the context work failed. Only what makes it impossible to go on is an error.
func (t *dialogue) failed(ctx, work context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case work.Err() != nil:
		fmt.Fprintln(t.std.Err, "antiphon: stopped; what was said and done so far is kept")
		if _, err := t.host.Session.Append(ctx, session.Noticed{Kind: session.NoticeStoppedByPerson, Text: errHalted.Error()}); err != nil {
			t.warn(err)
		}
	case errors.Is(err, session.ErrLost):
		return err
	default:
		said, next := t.conf.Program.Failed(err, agent.Compaction{Auto: t.cfg.Compaction.Auto, At: t.cfg.Compaction.At})
		if said != t.told {
			fmt.Fprintln(t.std.Err, "!! "+strings.ReplaceAll(show.Printable(t.env.Hide(said)), "\n", "\n   "))
		}
		if next != "" {
			fmt.Fprintln(t.std.Err, "   "+next)
		}
	}
	return nil
}

// warn shows an error after which the chat goes on.
func (t *dialogue) warn(err error) {
	fmt.Fprintln(t.std.Err, "!! "+show.Printable(t.env.Hide(err.Error())))
}

// hasSaid reports whether the session has what was said: it has recorded it, or a turn begins, because the
// same message already waited for its answer.
func hasSaid(ev agent.Event) bool {
	e, ok := ev.(agent.Recorded)
	if !ok {
		return false
	}
	switch e.Body.(type) {
	case session.InputItem, session.TurnStarted:
		return true
	}
	return false
}

// follow shows what an event says about the conversation as a whole.
func (t *dialogue) follow(ev agent.Event) {
	switch ev := ev.(type) {
	case agent.Recorded:
		t.count(ev.Entry)
		t.waiting.kept(t.host.Session.ID(), ev.Body)
		switch b := ev.Body.(type) {
		case session.RunStarted:
			t.began = ev.Seq
		case session.StopAsked:
			if b.Run == t.began {
				t.moved = cmp.Or(b.Detail, "somebody asked for it")
			}
		case session.Delivered:
			t.others, t.halted = b.By != person.Name, t.halted || b.From == queue.FromPark && b.Entries > 0
		case session.InputItem:
			if b.Own {
				return
			}
			if m, err := item.As[item.Message](b.Item); err == nil && t.others {
				t.face.said(m.Content.Display())
			}
			if !t.others { // the history has it since it was typed
				t.remembered = max(t.remembered, ev.Seq)
			}
			t.others = false
		case session.TurnEnded:
			t.ended = ev.Seq
			t.face.endText()
			t.tell()
		case session.Stopped:
			if why := agent.StopReason(b.Why); why != agent.StopEndTurn && why != agent.StopCancelled {
				t.print.Note(show.Yellow, "!! %s%s", strings.ReplaceAll(b.Why, "_", " "), show.Colon(show.Printable(b.Detail)))
				t.told = b.Detail
			}
		}
	case agent.SubagentEvent:
		t.calls.nested(ev)
		if e, ok := ev.Event.(agent.Recorded); ok {
			t.waiting.kept(ev.Session, e.Body)
		}
	case agent.Progress:
		switch {
		case ev.Kind == agent.ProgressDelayed:
			t.face.Last(show.CallKey(ev.CallID), "waits "+ev.Wait.String()+show.Colon(ev.Reason))
		case ev.Kind == agent.ProgressCache && ev.Cache.Broken != nil && ev.Cache.Broken.Why == plan.ByTools:
			t.tooled[t.ended] = true
		}
	}
}

// atOnce returns what is said to work that is under way, with the files that it names. What needs a
// question or is none for the model is an error: it waits until the work is over.
func (t *dialogue) atOnce(ctx context.Context, text string) ([]item.Item, error) {
	switch {
	case strings.HasPrefix(text, "!"):
		return nil, errors.New("a shell line is run when the work is over")
	case strings.HasPrefix(text, "/"):
		return nil, errors.New("a command is done when the work is over")
	}
	for _, name := range filesIn(text) {
		if real, err := realPath(name); err != nil || !t.maySend(real) {
			return nil, fmt.Errorf("@%s is asked about when the work is over", show.Visible(name))
		}
	}
	return t.message(ctx, text, false, func(context.Context, string, string) {}) // keys wait for this, and a picture for keys
}

// steer returns what says something to the work: the run takes it with its next request.
func (t *dialogue) steer(ctx context.Context) func(string) error {
	s := t.host.Session
	return func(text string) error {
		if text == "/detach" {
			return t.handOver(ctx)
		}
		said, err := t.atOnce(ctx, text)
		if err != nil {
			return err
		}
		d := session.Delivery{Delivered: session.Delivered{Key: rand.Text(), By: person.Name, From: "chat"}}
		for _, it := range said {
			d.Bodies = append(d.Bodies, session.InputItem{Item: it})
		}
		_, err = s.Deliver(ctx, d)
		return err
	}
}
