// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/session"
)

// Step performs one effect of the session's run and appends its outcome: the model
// is asked once, or the calls of a reply run, or the run stops. It returns the
// effect. A program that calls it until that is a [plan.Stop] has done what
// [Agent.Run] does, and between any two calls another process may take over: the log
// is all that there is to know.
//
// If the session's last run has stopped, or there was none, Step begins a new one.
// What that is to answer is in the log by then: append [session.Given]. BeforeInput
// hooks do not see it, so check it before. If the run
// is under way, it goes on, and its limits count on. Where a process ended in the
// middle of an effect, the next Step records a [session.RunStarted] that Resumes the
// run: it asks again for a reply that broke off, and calls that were under way get
// the output that their outcome is not known, unless their tools may be run again.
//
// The end of ctx breaks off what is under way, which is recorded, and is the error.
// It does not stop the run: the next Step goes on. To stop it, append a
// [session.StopAsked]. With a [plan.Stop], the error is that of [Agent.Run]. Without an
// effect, nothing was done: the agent or the session does not allow a run. With another
// effect, the store or a hook failed in the middle of it, and the next Step finds out
// from the log how far it came.
//
// [Limits].MaxTime counts from the time that the log has of the run's start, so the
// clocks of the machines should agree.
//
// Hooks see each Step as a run: BeforeRun and AfterRun are called around it, with its
// part of the totals. Calls that start while the reply comes are done when Step
// returns. Step holds the session's lock meanwhile. It tells no events: a log can be
// watched where its store is a [session.Watcher].
func (a *Agent) Step(ctx context.Context, s *session.Session) (plan.Effect, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	r := a.Start(s)
	r.single, r.quiet = true, true
	if s != nil {
		r.began = begunAt(s)
	}
	var failure error
	for _, err := range r.Events(ctx) {
		failure = err
	}
	if _, stopped := r.effect.(plan.Stop); failure == nil && !stopped && ctx.Err() != nil {
		failure = context.Cause(ctx)
	}
	return r.effect, failure
}

// goOn makes up for what a run has in memory that goes on in another process: what
// it has used of its limits, and what it has told.
func (r *Run) goOn() {
	r.budget.spendHere(r.state.Used())
	for _, e := range slices.Backward(r.session.Log()) {
		switch b := e.Body.(type) {
		case session.Noticed:
			r.tells(Noticed(b))
		case session.RunStarted:
			if !b.Resumes {
				return
			}
		}
	}
}

// begunAt returns when the run began that is under way in a session, as far as its
// store keeps times; the zero Time if none is.
func begunAt(s *session.Session) time.Time {
	for _, e := range slices.Backward(s.Log()) {
		switch b := e.Body.(type) {
		case session.Stopped:
			return time.Time{}
		case session.RunStarted:
			if !b.Resumes {
				return e.Time
			}
		}
	}
	return time.Time{}
}

// settleStep ends a step in which the model was asked, and whose hooks agreed if
// they were judged: calls that were started while the reply came get their outputs,
// and the log says that the hooks need not be asked again.
func (r *Run) settleStep(ctx context.Context) error {
	if !r.single {
		return nil
	}
	if err := r.endEarly(ctx); err != nil || r.toJudge() == nil {
		return err
	}
	return r.record(judged)
}

// judged says in the log that the hooks agreed to a reply.
var judged = session.Noticed{Kind: session.NoticeJudged, Text: "the hooks have seen the reply"}
