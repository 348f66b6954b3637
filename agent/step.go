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

// Step performs one effect of the session's run and records its outcome: it asks the
// model once, or runs the calls of a reply, or stops the run. It returns the effect.
// A program that calls Step until the effect is a [plan.Stop] has done what
// [Agent.Run] does. Between two calls another process may take over, because the log
// is the only state.
//
// If the session's last run has stopped, or there was none, Step begins a new run.
// The input of that run must already be in the log: append it as
// [session.InputItem]. The BeforeInput hooks see it before the model is asked, and
// input that they object to is withdrawn. If a run is under way, Step continues it.
// Its limits and its [Budget] continue from the usage that the log records for the
// run and its subagents.
//
// If a process ended in the middle of an effect, the next Step records a
// [session.RunStarted] with Resumes set. It asks again for a reply that broke off.
// Calls that were in progress get an output that says that their outcome is not
// known, unless their tools may be run again.
//
// When ctx is done, Step cancels the work in progress, records the cancellation and
// returns the context's error. This does not stop the run: the next Step continues
// it. To stop the run, append a [session.StopAsked].
//
// With a [plan.Stop], the error is the one that [Agent.Run] would return. With a nil
// effect, nothing was done, because the agent or the session does not allow a run.
// With any other effect, an error means that the store or a hook failed in the
// middle of it; the next Step finds out from the log how far it came.
//
// [Limits].MaxTime counts from the start of the run as the log records it, so the
// clocks of the machines should agree.
//
// Hooks see each Step as a run: BeforeRun and AfterRun are called around it, with
// its part of the totals. Calls that start while the reply is arriving are complete
// when Step returns. Step holds the session's lock while it works. It yields no
// events; use [Watch] to follow the log.
func (a *Agent) Step(ctx context.Context, s *session.Session) (plan.Effect, error) {
	if err := ctx.Err(); err != nil {
		return nil, endOfContext(ctx)
	}
	r := a.Start(s)
	// Steps of different processes must add up to one run, so a step takes over a
	// run that is under way instead of starting another.
	r.single, r.takesOver, r.quiet = true, true, true
	if s != nil {
		r.began = begunAt(s)
	}
	var failure error
	for _, err := range r.Events(ctx) {
		failure = err
	}
	if _, stopped := r.effect.(plan.Stop); failure == nil && !stopped && ctx.Err() != nil {
		failure = endOfContext(ctx)
	}
	return r.effect, failure
}

// recallNotices marks the notices that the run recorded in another process, so that
// they are not repeated.
func (r *Run) recallNotices() {
	for _, e := range slices.Backward(r.session.Log()) {
		switch b := e.Body.(type) {
		case session.Noticed:
			r.tells(b)
		case session.RunStarted:
			if !b.Resumes {
				return
			}
		}
	}
}

// begunAt returns the start of the run that is under way in a session, or the zero
// Time if there is none or the store does not keep times.
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

// settleStep ends a step that asked the model and whose hooks did not object. Calls
// that started early get their outputs, and the log records that the hooks need not
// judge the reply again, because another process may perform the next step.
func (r *Run) settleStep(ctx context.Context) error {
	if !r.single {
		return nil
	}
	if err := r.endEarly(ctx); err != nil || r.toJudge() == nil {
		return err
	}
	return r.record(judged)
}

// judged records that the hooks did not object to a reply.
var judged = session.Noticed{Kind: session.NoticeJudged, Text: "the hooks have seen the reply"}
