// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

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
	src := &attach.Stored{In: store, ID: info.ID, Audit: log, From: "run"}
	a := &attached{run: c, View: attach.View{Err: std.err, Who: who, Src: src, Info: info, Show: p}}
	fmt.Fprintf(std.err, "antiphon: attached to %s, which %s runs: what you type is said to it, and Ctrl-C leaves it running\n", show.Printable(info.ID), show.Printable(attach.HolderOf(busy)))
	if c.Prompt == "-" { // standard input is the terminal, where the person goes on
		c.Prompt = ""
	}
	prompt, err := c.prompt(ctx, std)
	if err != nil {
		return err
	}
	a.Begin(s.Log())
	if len(prompt.said) > 0 {
		if err := a.say(ctx, prompt.said...); err != nil {
			return err
		}
	}
	return a.follow(ctx, s)
}

// attached is a run that shows a session which another process runs. What the person types is delivered to that run, and so are
// their answers about calls. J2
type attached struct {
	run *runCommand
	attach.View
	delivers int // how often the person said something
}

// say delivers what the person said.
func (a *attached) say(ctx context.Context, said ...item.Item) error {
	if err := a.Src.Say(ctx, false, said...); err != nil {
		return err
	}
	a.delivers++
	a.Show.EndLine()
	fmt.Fprintln(a.Err, "   (said: the run takes it with its next request)")
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
		for ev, err := range a.Src.Watch(watching, a.Info.ID, a.Shown) {
			select {
			case entries <- watched{ev, err}:
			case <-watching.Done():
				return
			}
		}
	}()
	typed := a.Who.Typed()
	a.run.screen.TypedBelow()
	look := time.NewTicker(attach.LookAfter)
	defer look.Stop()
	for {
		if err := a.AskNext(ctx); err != nil {
			return a.left(ctx, err)
		}
		select {
		case <-ctx.Done():
			return a.left(ctx, ctx.Err())
		case w, open := <-entries:
			if w.err != nil || !open {
				return a.left(ctx, w.err)
			}
			if err := a.Take(w.event); err != nil {
				return err
			}
			if a.Stopped != nil {
				return a.ended(ctx, s)
			}
			look.Reset(attach.LookAfter)
		case line, open := <-typed:
			if !open {
				return a.left(ctx, nil)
			}
			a.run.screen.Entered(line)
			if line != "" {
				if err := a.say(ctx, item.User(line)); err != nil {
					return err
				}
			}
		case <-look.C:
			if gone, err := a.Look(ctx); gone || err != nil {
				return errors.Join(err, a.ended(ctx, s))
			}
		}
	}
}

// left says that the run goes on without the person.
func (a *attached) left(ctx context.Context, err error) error {
	a.Show.EndLine()
	if err == nil || ctx.Err() != nil || errors.Is(err, agent.ErrNobody) {
		fmt.Fprintf(a.Err, "antiphon: left %s, which runs on\n", show.Printable(a.Info.ID))
		return nil
	}
	return err
}

// ended says how the run of the holder ended, and what waits for the next one.
func (a *attached) ended(ctx context.Context, s *session.Session) error {
	a.Show.EndLine()
	waits := 0
	for _, err := range s.Deliveries(ctx) {
		if err != nil {
			return err
		}
		waits++
	}
	if a.delivers > 0 && waits > 0 {
		fmt.Fprintf(a.Err, "antiphon: the run has ended before it took %s; run it again to go on with that\n", show.Plural(waits, "delivery"))
	}
	switch {
	case a.Stopped == nil:
		return &exitError{exitLimit, errors.New("the process that ran the session has ended before its run was done; run it again to continue")}
	case a.Stopped.Why == string(agent.StopApprovalPending):
		return &exitError{exitNeedsAllow, fmt.Errorf("a call waits for an approval: answer by antiphon sessions approve %s", a.Info.ID)}
	}
	return a.run.verdict(*a.Stopped, unapproved{})
}
