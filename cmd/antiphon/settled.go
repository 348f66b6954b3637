// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// settled ends a run that has nothing to ask, because there is no question or the
// question has its answer. If a kept conversation ends with an answer, the answer is
// shown again and the run succeeds: so a run that is killed after storing its answer
// can be started again until it ends with 0. settled reports whether it has ended
// the run. U3
func (c *runCommand) settled(std stdio, env environment, sess *session.Session, prompt asked) (bool, error) {
	if prompt.says() || waitsInbox(sess) {
		return false, nil
	}
	if !host.AsksSomething(sess) {
		if c.builtIn {
			return true, usage(errors.New("nothing to answer: give a question, as in antiphon \"What is new in this folder?\""))
		}
		return true, usage(fmt.Errorf("nothing to answer: %s has no <user> message; give a prompt, or add one", c.File))
	}
	if host.Unanswered(sess) {
		return false, nil
	}
	last := host.LastReply(sess)
	if c.Schema != "" && c.keeps() && !prompt.empty && len(last.Items) > 0 && last.Stop().Why == string(agent.StopEndTurn) {
		return false, nil // the run checks the stored answer, and sends something only if it does not fit
	}
	switch {
	case prompt.empty:
		return true, usage(fmt.Errorf("nothing to answer: standard input was empty, and the question in %s has been answered", c.File))
	case !c.keeps() || len(last.Items) == 0 && !last.Ended:
		return true, usage(fmt.Errorf("nothing to answer: the question in %s has been answered; give a prompt to continue", c.File))
	}
	return true, c.showStored(std, env, last)
}

// waitsInbox reports whether the run has something to take from the inbox of its session.
func waitsInbox(sess *session.Session) bool {
	for _, err := range sess.Deliveries(context.Background()) {
		_ = err // the run reads them again, and reports it
		return true
	}
	return false
}

// keeps reports whether a later run can continue the conversation.
func (c *runCommand) keeps() bool { return c.inSession() || c.Out != "" || c.InPlace }

// showStored shows a stored reply in the same way as a run.
func (c *runCommand) showStored(std stdio, env environment, last host.Reply) error {
	stop := last.Stop()
	if stop.Why != string(agent.StopEmptyReply) && !c.Quiet {
		fmt.Fprintln(std.err, "antiphon: the question has been answered already, so nothing is sent; this is the stored answer")
	}
	p := show.NewPrinter(std.out, std.err, env)
	p.Quiet = c.Quiet
	c.depicts(context.Background(), std, env, p)
	show := p.Show
	if c.JSON {
		show = (&jsonLines{out: toJSON(std.out)}).show
	}
	var problems []error
	for _, e := range last.Entries {
		if b, ok := e.Body.(session.InputItem); ok && !c.JSON { // what a transcript has as given is a reply all the same
			e.Body = session.OutputItem{Turn: last.Turn, Item: b.Item}
		}
		problems = append(problems, show(agent.Recorded{Entry: e}))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return c.verdict(stop, unapproved{})
}
