// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/antiphon-go/antiphon/agent"
)

// This file is the workflow of a session. It must be deterministic: everything that it
// learns comes from signals, timers, results of steps, and the settings recorded at its
// start.

// settings are those of the worker that starts a run of the workflow. They are recorded
// in its history, because the next worker may have others.
type settings struct {
	Attempts    int           `json:"attempts"`
	Backoff     time.Duration `json:"backoff"`
	Heartbeat   time.Duration `json:"heartbeat"`
	StepTime    time.Duration `json:"step_time"`
	Recheck     time.Duration `json:"recheck"`
	StepsPerRun int           `json:"steps_per_run"`
	Attributes  bool          `json:"attributes"`
}

func (e *Engine) settings() settings {
	return settings{
		Attempts: cmp.Or(e.Attempts, 5), Backoff: cmp.Or(e.Backoff, 2*time.Second), Heartbeat: cmp.Or(e.Heartbeat, 20*time.Second),
		StepTime: cmp.Or(e.StepTime, 24*time.Hour), Recheck: cmp.Or(e.Recheck, time.Minute), StepsPerRun: cmp.Or(e.StepsPerRun, 300), Attributes: e.attributes,
	}
}

// The longest times between looks without a signal.
const (
	longestRecheck = 6 * time.Hour
	longestBusy    = 30 * time.Second
	backoffFactor  = 64
)

// loop is one run of the workflow.
type loop struct {
	settings
	state State
	wake  workflow.ReceiveChannel
	retry workflow.ReceiveChannel
	mode  mode // of the next step
	looks int  // how often it waited in a row without news
}

// session is the workflow.
func (e *Engine) session(ctx workflow.Context, t Task) (State, error) {
	l := &loop{wake: workflow.GetSignalChannel(ctx, SignalWake), retry: workflow.GetSignalChannel(ctx, SignalRetry), state: State{Session: t.Session, Agent: t.Agent}}
	if t.State != nil {
		l.state, l.looks = *t.State, t.Looks
	}
	if l.state.Status == Parked {
		l.mode = mailOnly
	}
	err := workflow.SetQueryHandler(ctx, QueryState, func() (State, error) { return l.state, nil })
	if err == nil {
		err = workflow.SideEffect(ctx, func(workflow.Context) any { return e.settings() }).Get(&l.settings)
	}
	if err == nil && t.State == nil {
		err = l.is(ctx, Running, "")
	}
	for n := 1; err == nil; n++ {
		var over bool
		if over, err = l.turn(ctx); over || err != nil {
			break
		}
		if full := n >= l.StepsPerRun || workflow.GetInfo(ctx).GetContinueAsNewSuggested(); full && l.betweenEffects() {
			return l.state, workflow.NewContinueAsNewError(ctx, SessionWorkflow, Task{Session: t.Session, Agent: l.state.Agent, State: &l.state, Looks: l.looks})
		}
	}
	if errors.Is(ctx.Err(), workflow.ErrCanceled) {
		return l.state, l.cancelled(ctx)
	}
	return l.state, err
}

// betweenEffects reports whether the workflow may continue as new: no step is under way,
// and everything that anybody delivered is in the log.
func (l *loop) betweenEffects() bool {
	return (l.mode == usual || l.mode == mailOnly) && l.wake.Len() == 0 && l.retry.Len() == 0
}

// turn performs a step and waits as long as its result says. It reports whether the
// workflow is over.
func (l *loop) turn(ctx workflow.Context) (over bool, err error) {
	// Deliveries are kept before their signals are sent, so this step sees what belongs
	// to the signals that have arrived.
	drain(l.wake)
	if drain(l.retry) {
		l.mode, l.state.Failed = again, 0
	}
	r, err := l.step(ctx, l.mode)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		l.state.Problem = problemOf(err)
		return false, l.park(ctx, WhyStep)
	}
	l.state.Entry = max(l.state.Entry, r.Entry)
	l.state.Agent = cmp.Or(r.Agent, l.state.Agent)
	switch {
	case r.Busy:
		return false, l.busy(ctx)
	case r.Idle && l.state.Status == Parked:
		return false, l.park(ctx, l.state.Why)
	}
	l.state.Problem = r.Closed
	if !r.Idle {
		l.state.Steps++
		if r.Closed != "" {
			l.mode = again
			return false, l.rest(ctx, Waiting, WhyEndpoint, r.Due)
		}
		if r.Why == "" {
			l.progress(r)
			return false, l.next(ctx, r)
		}
	}
	return l.stopped(ctx, r)
}

// progress counts the endpoint's failures in a row: an effect that follows a reply shows
// that there was one.
func (l *loop) progress(r stepResult) {
	if r.Effect == effectCall {
		l.state.Failed = 0
	}
}

// next goes on with the run at once.
func (l *loop) next(ctx workflow.Context, r stepResult) error {
	l.mode, l.looks = usual, 0
	if r.Unread > 0 {
		l.mode = unread
	}
	return l.is(ctx, Running, "")
}

// stopped decides what follows from the end of a run.
func (l *loop) stopped(ctx workflow.Context, r stepResult) (over bool, err error) {
	if r.Unread > 0 || l.wake.Len() > 0 || l.retry.Len() > 0 {
		return false, l.next(ctx, r)
	}
	switch r.Why {
	case agent.StopApprovalPending, agent.StopNotYet:
		l.mode, l.state.Failed = usual, 0
		return false, l.rest(ctx, Waiting, string(r.Why), r.Due)
	case agent.StopProviderError:
		if r.Idle { // by a run that this workflow did not see
			return false, l.park(ctx, string(r.Why))
		}
		if l.state.Failed++; l.state.Failed >= l.Attempts {
			return false, l.park(ctx, string(r.Why))
		}
		if err := l.is(ctx, Running, string(r.Why)); err != nil {
			return false, err
		}
		l.mode = again
		_, err := l.wait(ctx, l.Backoff*time.Duration(min(1<<(min(l.state.Failed, 16)-1), backoffFactor)))
		return false, err
	case agent.StopContextFull, agent.StopBadItem: // another attempt would fail, too
		return false, l.park(ctx, string(r.Why))
	}
	l.state.Failed = 0
	return true, l.is(ctx, Done, string(r.Why))
}

// park waits for a delivery, or for a person who wants another attempt.
func (l *loop) park(ctx workflow.Context, why string) error {
	l.mode = mailOnly
	return l.rest(ctx, Parked, why, time.Time{})
}

// rest waits until there is news, or until a time if it is not zero. It costs nothing but a
// timer, which makes up for signals that were never sent.
func (l *loop) rest(ctx workflow.Context, status Status, why string, until time.Time) error {
	if err := l.is(ctx, status, why); err != nil {
		return err
	}
	d := min(l.Recheck<<min(l.looks, 16), longestRecheck)
	if !until.IsZero() {
		// The step decides by its own clock, which may be behind.
		if left := max(until.Sub(workflow.Now(ctx)), time.Second); d < 0 || left < d {
			d = left
		}
	}
	l.looks++
	told, err := l.wait(ctx, d)
	if told {
		l.looks = 0
	}
	return err
}

// busy waits for another program that writes to the session. That is no failure,
// however long it takes.
func (l *loop) busy(ctx workflow.Context) error {
	if l.state.Status != Parked {
		if err := l.is(ctx, Running, WhyBusy); err != nil {
			return err
		}
	}
	d := min(time.Second<<min(l.looks, 16), longestBusy)
	l.looks++
	_, err := l.wait(ctx, d)
	return err
}

// wait returns when a signal is there or the time is over, and reports whether it was a
// signal. It waits for signals only if the time is negative.
func (l *loop) wait(ctx workflow.Context, d time.Duration) (told bool, err error) {
	news := func() bool { return l.wake.Len() > 0 || l.retry.Len() > 0 }
	l.state.Next = time.Time{}
	if d < 0 {
		err = workflow.Await(ctx, news)
		return true, err
	}
	l.state.Next = workflow.Now(ctx).Add(d)
	told, err = workflow.AwaitWithTimeout(ctx, d, news)
	l.state.Next = time.Time{}
	return told, err
}

// is sets the status, for queries and searches.
func (l *loop) is(ctx workflow.Context, status Status, why string) error {
	if l.state.Status == status && l.state.Why == why {
		return nil
	}
	if l.state.Status != status {
		l.state.Since = workflow.Now(ctx)
	}
	l.state.Status, l.state.Why = status, why
	if !l.Attributes {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx,
		temporal.NewSearchAttributeKeyKeyword(attributeSession).ValueSet(l.state.Session),
		temporal.NewSearchAttributeKeyKeyword(attributeAgent).ValueSet(l.state.Agent),
		temporal.NewSearchAttributeKeyKeyword(attributeStatus).ValueSet(string(status)),
		temporal.NewSearchAttributeKeyKeyword(attributeWhy).ValueSet(why))
}

// step runs the activity.
func (l *loop) step(ctx workflow.Context, m mode) (r stepResult, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: l.StepTime,
		HeartbeatTimeout:    l.Heartbeat,
		// A retry repeats no effect: it continues from the log, which says what has
		// happened.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: l.Backoff, BackoffCoefficient: 2, MaximumInterval: backoffFactor * l.Backoff, MaximumAttempts: int32(l.Attempts)},
	})
	in := stepInput{Session: l.state.Session, Agent: l.state.Agent, Mode: m}
	if m == stop {
		in.Key = "workflow cancelled: " + workflow.GetInfo(ctx).WorkflowExecution.RunID
	}
	err = workflow.ExecuteActivity(ctx, StepActivity, in).Get(ctx, &r)
	return r, err
}

// cancelled stops the run of a workflow that somebody cancelled.
func (l *loop) cancelled(ctx workflow.Context) error {
	cancelled := ctx.Err()
	ctx, free := workflow.NewDisconnectedContext(ctx)
	defer free()
	for l.looks = 0; ; {
		r, err := l.step(ctx, stop)
		if err != nil {
			l.state.Problem = problemOf(err)
			_ = l.is(ctx, Parked, WhyStep)
			return cancelled
		}
		if l.state.Entry = max(l.state.Entry, r.Entry); !r.Busy {
			_ = l.is(ctx, Done, string(r.Why))
			return cancelled
		}
		if err := l.busy(ctx); err != nil {
			return cancelled
		}
	}
}

// drain takes the signals that have arrived. They have no content.
func drain(c workflow.ReceiveChannel) (some bool) {
	for c.ReceiveAsync(nil) {
		some = true
	}
	return some
}

// problemOf returns the reason of a step that failed, for people.
func problemOf(err error) string {
	var timeout *temporal.TimeoutError
	var application *temporal.ApplicationError
	switch {
	case errors.As(err, &timeout):
		return "the worker ended or stood still in the middle of a step: " + timeout.TimeoutType().String()
	case errors.As(err, &application):
		return application.Message()
	}
	return brief(err)
}
