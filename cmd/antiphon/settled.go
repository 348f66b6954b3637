// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
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
	if !host.AsksSomething(sess) {
		return true, usage(fmt.Errorf("nothing to answer: %s has no <user> message; give a prompt, or add one", c.File))
	}
	if host.Unanswered(sess) {
		return false, nil
	}
	last := host.LastReply(sess)
	switch {
	case prompt.empty:
		return true, usage(fmt.Errorf("nothing to answer: standard input was empty, and what %s asks has been answered", c.File))
	case !c.keeps() || len(last.Items) == 0 && !last.Ended:
		return true, usage(fmt.Errorf("nothing to answer: what %s asks has been answered; give a prompt to go on", c.File))
	}
	return true, c.showStored(std, env, last)
}

// keeps reports whether a later run can go on with the conversation.
func (c *runCommand) keeps() bool { return c.inSession() || c.Out != "" || c.InPlace }

// showStored shows a reply that is in the log, as a run would have shown it.
func (c *runCommand) showStored(std stdio, env environment, last host.Reply) error {
	stop := last.Stop()
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
	for _, it := range last.Items {
		problems = append(problems, show(agent.ItemDone{Turn: last.Turn, Item: it}))
	}
	if problems = append(problems, show(stop)); errors.Join(problems...) != nil {
		return errors.Join(problems...)
	}
	return c.verdict(stop, nil)
}
