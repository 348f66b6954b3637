// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// attached is a terminal that shows a session which another process runs. What the person
// types is delivered to that run, and so are their answers about calls. J2
type attached struct {
	std    stdio
	who    *person.Person
	store  keeper // nil if the session is at a server
	src    source
	info   session.Info
	show   *show.Printer
	screen *show.Screen // nil if there is no status line

	shown    int64                   // the number of the last entry that was shown
	began    bool                    // a run is under way, as far as passes was told
	asks     []agent.PendingApproval // that the person was not asked about yet
	asked    map[string]bool         // calls that they were asked about
	inside   int                     // subagents that are at work
	stopped  *session.Stopped        // how the run ended, or nil
	delivers int                     // how often the person said something
	live     strings.Builder         // the text of a message that was shown before its entry
	behind   bool                    // more of it has come than is shown before its entry

	// verdict returns the error of the command for a run that ended. A chat, which stays, has none.
	verdict func(session.Stopped) error
}

// mostUnsettled is how many bytes of a message are shown before its entry: pieces can come
// without an end.
const mostUnsettled = 1 << 20

// lookAfter is how long the log of an attached session may stay silent before it is checked
// that its holder is still there.
const lookAfter = time.Second

// attaches reports whether the run can attach to a session that another process holds: only
// a person at a terminal can use that, and not one who wants the answer in a file.
func (c *runCommand) attaches(err error, who *person.Person, found session.Info) bool {
	return errors.Is(err, session.ErrBusy) && who != nil && found.ID != "" && !c.NoAttach && c.Out == "" && c.Schema == ""
}

// attach shows the session until the run of its holder ends.
func (c *runCommand) attach(ctx context.Context, std stdio, env environment, who *person.Person, info session.Info, busy error) (err error) {
	store, err := c.open(ctx, env, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	log, err := auditLog(env)
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, store, info.ID)
	if err != nil {
		return err
	}
	p := show.NewPrinter(std.out, std.err, env)
	p.Waits, p.Quiet, p.Whole = c.screen, c.Quiet, c.ShowOutput
	p.Colour = p.Colour && !c.Plain
	p.Look = show.LookOf(p.Colour, c.Plain || env["TERM"] == "dumb")
	c.depicts(ctx, std, env, p)
	src := &stored{in: store, id: info.ID, audit: log, from: "run"}
	a := &attached{verdict: func(s session.Stopped) error { return c.verdict(s, unapproved{}) }, std: std, who: who, store: store, src: src, info: info, show: p, screen: c.screen, asked: map[string]bool{}}
	fmt.Fprintf(std.err, "antiphon: attached to %s, which %s runs: what you type is said to it, and Ctrl-C leaves it running\n", show.Printable(info.ID), show.Printable(holderOf(busy)))
	if c.Prompt == "-" { // standard input is the terminal, where the person goes on
		c.Prompt = ""
	}
	prompt, err := c.prompt(ctx, std)
	if err != nil {
		return err
	}
	if err := a.begin(ctx, s.Log(), prompt.said...); err != nil {
		return err
	}
	return a.follow(ctx, s)
}

// holderOf returns who holds a session, from the error that says so.
func holderOf(busy error) string {
	_, who, found := strings.Cut(busy.Error(), session.ErrBusy.Error()+": ")
	if who, _, _ = strings.Cut(who, "\n"); !found || who == "" {
		return "another process"
	}
	return who
}

// passes takes an entry that is not shown.
func (a *attached) passes(e session.Entry) {
	a.show.Calls.Add(e)
	a.show.Setup.Apply(e.Body)
	a.shown = e.Seq
	switch e.Body.(type) {
	case session.RunStarted:
		a.began = true
	case session.Stopped:
		a.began = false
	}
}

// begin shows the run that is under way from its start, and says the prompt. The log may
// lack entries that have passed.
func (a *attached) begin(ctx context.Context, log []session.Entry, prompt ...item.Item) error {
	from := len(log)
	if a.began {
		from = 0
	}
	for i, e := range log {
		switch e.Body.(type) {
		case session.RunStarted:
			from, a.began = i, true
		case session.Stopped:
			from, a.began = len(log), false
		}
	}
	began := a.began
	for _, e := range log[:from] {
		a.passes(e)
	}
	a.began = began
	if len(prompt) == 0 {
		return nil
	}
	return a.say(ctx, prompt...)
}

// say delivers what the person said.
func (a *attached) say(ctx context.Context, said ...item.Item) error {
	if err := a.src.say(ctx, false, said...); err != nil {
		return err
	}
	a.delivers++
	a.show.EndLine()
	fmt.Fprintln(a.std.err, "   (said: the run takes it with its next request)")
	return nil
}

// follow shows what happens until the run has ended, its holder is gone, or the person
// leaves.
func (a *attached) follow(ctx context.Context, s *session.Session) error {
	watching, end := context.WithCancel(ctx)
	defer end()
	type watched struct {
		event agent.Event
		err   error
	}
	entries := make(chan watched)
	go func() {
		defer close(entries)
		for ev, err := range a.src.watch(watching, a.info.ID, a.shown) {
			select {
			case entries <- watched{ev, err}:
			case <-watching.Done():
				return
			}
		}
	}()
	typed := a.who.Typed()
	a.screen.TypedBelow()
	look := time.NewTicker(lookAfter)
	defer look.Stop()
	for {
		if err := a.askNext(ctx); err != nil {
			return a.left(ctx, err)
		}
		select {
		case <-ctx.Done():
			return a.left(ctx, ctx.Err())
		case w, open := <-entries:
			if w.err != nil || !open {
				return a.left(ctx, w.err)
			}
			if err := a.take(w.event); err != nil {
				return err
			}
			if a.stopped != nil {
				return a.ended(ctx, s)
			}
			look.Reset(lookAfter)
		case line, open := <-typed:
			if !open {
				return a.left(ctx, nil)
			}
			a.screen.Entered(line)
			if line != "" {
				if err := a.say(ctx, item.User(line)); err != nil {
					return err
				}
			}
		case <-look.C:
			if gone, err := a.look(ctx); gone || err != nil {
				return errors.Join(err, a.ended(ctx, s))
			}
		}
	}
}

// left says that the run goes on without the person.
func (a *attached) left(ctx context.Context, err error) error {
	a.show.EndLine()
	if err == nil || ctx.Err() != nil || errors.Is(err, agent.ErrNobody) {
		fmt.Fprintf(a.std.err, "antiphon: left %s, which runs on\n", show.Printable(a.info.ID))
		return nil
	}
	return err
}

// take shows an event, and notes what an entry asks of the person.
func (a *attached) take(ev agent.Event) error {
	if d, ok := ev.(agent.Delta); ok {
		return a.takePiece(d)
	}
	e, ok := ev.(agent.Recorded)
	if !ok {
		return nil
	}
	a.settle(e)
	a.shown = e.Seq
	switch b := e.Body.(type) {
	case session.InputItem:
		if m, err := item.As[item.Message](b.Item); err == nil && !b.Own {
			a.show.Tell(show.Dim, "<< %s", a.show.Short(m.Content.Display(), 1000))
		}
	case session.ApprovalAsked:
		a.asks = append(a.asks, agent.PendingApproval{Session: a.info.ID, Number: b.Number, CallID: b.CallID, Tool: b.Tool, Arguments: b.Arguments, Custom: b.Custom, Reason: b.Reason, Rules: b.Rules})
	case session.Approval:
		a.asks = slices.DeleteFunc(a.asks, func(p agent.PendingApproval) bool {
			return p.CallID == b.CallID && (b.Number == 0 || b.Number == p.Number)
		})
	case session.CallStarted:
		if b.Session != "" {
			a.inside++
		}
	case session.SubagentUsage:
		a.inside--
	case session.Stopped:
		a.stopped = &b
	}
	return a.show.Show(e)
}

// takePiece shows a piece of a message that has no entry yet.
func (a *attached) takePiece(d agent.Delta) error {
	if a.behind || a.live.Len()+len(d.Text) > mostUnsettled {
		if !a.behind {
			a.show.EndLine()
			fmt.Fprintln(a.std.err, "   (the message is long: its rest is shown when it is complete)")
		}
		a.behind = true
		return nil
	}
	a.live.WriteString(d.Text)
	return a.show.Show(d)
}

// settle ends a text that was shown before its entry: what the entry has more is added, and a
// text that differs or has no entry does not count as shown.
func (a *attached) settle(e agent.Recorded) {
	live := a.live.String()
	switch b := e.Body.(type) {
	case session.OutputItem:
		m, err := item.As[item.Message](b.Item)
		if err != nil {
			return
		}
		if rest, same := strings.CutPrefix(m.Content.Display(), live); same && live != "" {
			a.show.Text(rest)
			a.live.Reset()
			a.behind = false
			return
		}
	case session.RunStarted, session.TurnStarted, session.TurnEnded, session.Stopped:
	default:
		return
	}
	a.live.Reset()
	if a.behind = false; live != "" {
		a.show.Drop()
	}
}

// askNext asks the person about a call that waits, if one does and everything before it was
// shown.
func (a *attached) askNext(ctx context.Context) error {
	if len(a.asks) == 0 {
		return nil
	}
	p := a.asks[0]
	a.asks = a.asks[1:]
	key := fmt.Sprint(p.Session, " ", p.Number)
	if a.asked[key] {
		return nil
	}
	pending, err := a.src.pending(ctx)
	if err != nil {
		return err
	}
	same := func(o agent.PendingApproval) bool { return o.Session == p.Session && o.Number == p.Number }
	if !slices.ContainsFunc(pending, same) {
		return nil // it was answered by now
	}
	a.asked[key] = true
	a.show.EndLine()
	d, err := askBeside(ctx, a.who, a.src, p)
	if errors.Is(err, errAnswered) {
		return nil
	}
	if err != nil {
		return err
	}
	err = a.src.answer(ctx, p, d)
	if errors.Is(err, agent.ErrDecided) || errors.As(err, new(*server.Error)) {
		fmt.Fprintf(a.std.err, "   %s\n", show.Visible(err.Error()))
		return nil
	}
	return err
}

// look finds the questions of subagents, whose logs are not watched, and reports whether
// the holder is gone and everything that it wrote was shown.
func (a *attached) look(ctx context.Context) (gone bool, err error) {
	asks, gone, err := a.src.look(ctx, a.shown, a.inside > 0)
	for _, p := range asks {
		if p.Session != a.info.ID {
			a.asks = append(a.asks, p)
		}
	}
	return gone, err
}

// ended says how the run of the holder ended, and what waits for the next one.
func (a *attached) ended(ctx context.Context, s *session.Session) error {
	a.show.EndLine()
	waits := 0
	for _, err := range s.Deliveries(ctx) {
		if err != nil {
			return err
		}
		waits++
	}
	if a.delivers > 0 && waits > 0 {
		fmt.Fprintf(a.std.err, "antiphon: the run has ended before it took %s; run it again to go on with that\n", show.Plural(waits, "delivery"))
	}
	switch {
	case a.stopped == nil:
		return &exitError{exitLimit, errors.New("the process that ran the session has ended before its run was done; run it again to continue")}
	case a.stopped.Why == string(agent.StopApprovalPending):
		return &exitError{exitNeedsAllow, fmt.Errorf("a call waits for an approval: answer by antiphon sessions approve %s", a.info.ID)}
	}
	return a.verdict(*a.stopped)
}
