// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// settled ends a run that has nothing to ask: nobody asked anything, or what was
// asked has its answer. An answer that a kept conversation ends with is shown
// again, and the run has done what it was started for: a run that is killed
// between storing its answer and its end may be started again until it ends
// with 0. It reports whether it has ended the run. U3
func (c *runCommand) settled(std stdio, env environment, sess *session.Session, prompt asked) (bool, error) {
	if prompt.text != "" {
		return false, nil
	}
	if !asksSomething(sess) {
		return true, usage(fmt.Errorf("nothing to answer: %s has no <user> message; give a prompt, or add one", c.File))
	}
	if unanswered(sess) {
		return false, nil
	}
	last := lastReply(sess)
	switch {
	case prompt.empty:
		return true, usage(fmt.Errorf("nothing to answer: standard input was empty, and what %s asks has been answered", c.File))
	case !c.keeps() || len(last.items) == 0 && !last.ended:
		return true, usage(fmt.Errorf("nothing to answer: what %s asks has been answered; give a prompt to go on", c.File))
	}
	return true, c.showStored(std, env, last)
}

// keeps reports whether a later run can go on with the conversation.
func (c *runCommand) keeps() bool { return c.inSession() || c.Out != "" || c.InPlace }

// asksSomething reports whether a log holds more than instructions and replies.
func asksSomething(s *session.Session) bool {
	for e := range s.Entries() {
		if given, ok := e.Body.(session.Given); ok && !given.Item.Instructs() && given.Item.Role() != item.RoleAssistant {
			return true
		}
	}
	return false
}

// reply is what the model said last.
type reply struct {
	items  []item.Item
	turn   int
	ended  bool
	status string
	reason string

	silence string // what the run said of a reply that says nothing
}

// lastReply returns the reply that a log ends with.
func lastReply(s *session.Session) (last reply) {
	for e := range s.Entries() {
		switch b := e.Body.(type) {
		case session.TurnStarted:
			last = reply{turn: b.Turn}
		case session.Received:
			last.items = append(last.items, b.Item)
		case session.Answered:
			last = reply{}
		case session.Given: // in a transcript, replies are given too
			if last.ended || b.Item.Role() != item.RoleAssistant {
				last = reply{}
			}
			if b.Item.Role() == item.RoleAssistant {
				last.items = append(last.items, b.Item)
				last.status = cmp.Or(b.Item.Status(), last.status)
			}
		case session.TurnEnded:
			last.ended, last.status, last.reason = true, cmp.Or(b.Status, last.status), b.Reason
		case session.Stopped:
			if b.Why == string(agent.EmptyReply) {
				last.silence = b.Detail
			}
		}
	}
	return last
}

// showStored shows a reply that is in the log, as a run would have shown it.
func (c *runCommand) showStored(std stdio, env environment, last reply) error {
	stop := agent.Stopped{Why: agent.Answered}
	switch {
	case last.status == item.StatusIncomplete:
		stop.Why, stop.Detail = agent.Incomplete, last.reason
	case !slices.ContainsFunc(last.items, func(it item.Item) bool { return !it.SaysNothing() }):
		stop.Why, stop.Detail = agent.EmptyReply, cmp.Or(last.silence, "the model said nothing")
	}
	p := newPrinter(std, env)
	p.quiet = c.Quiet
	show := p.show
	if c.JSON {
		show = (&jsonLines{out: std.out}).show
	}
	if stop.Why != agent.EmptyReply && !c.Quiet {
		fmt.Fprintln(std.err, "antiphon: all that was asked has been answered, and nothing is sent; this is the stored answer")
	}
	var problems []error
	for _, it := range last.items {
		problems = append(problems, show(agent.ItemDone{Turn: last.turn, Item: it}))
	}
	if problems = append(problems, show(stop)); errors.Join(problems...) != nil {
		return errors.Join(problems...)
	}
	return c.verdict(stop, nil)
}
