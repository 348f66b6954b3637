// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/worker"
)

// mode says when a step does something.
type mode string

const (
	usual    mode = ""       // if a run is under way, or there is something new
	unread   mode = "unread" // the same: something is known to be unread
	mailOnly mode = "mail"   // if a delivery waits
	again    mode = "again"  // in any case
	stop     mode = "stop"   // ask the run to stop, and perform its last steps
)

// stepInput and stepResult are what Temporal keeps of a step: references and numbers.
type stepInput struct {
	Session string `json:"session"`
	Agent   string `json:"agent,omitzero"`
	Mode    mode   `json:"mode,omitzero"`
	Key     string `json:"key,omitzero"` // of the request to stop
}

type stepResult struct {
	// Idle means that there was nothing to do, and Busy that another program writes to
	// the session.
	Idle bool `json:"idle,omitzero"`
	Busy bool `json:"busy,omitzero"`
	// Agent is the name for the next steps, or "" if it stays.
	Agent string `json:"agent,omitzero"`
	// Effect is the kind of the last effect.
	Effect string `json:"effect,omitzero"`
	// Why is how the run stopped, or "" if it goes on.
	Why agent.StopReason `json:"why,omitzero"`
	// Entry is the number of the last entry of the log.
	Entry int64 `json:"entry,omitzero"`
	// Unread is the number of deliveries that the next step takes.
	Unread int `json:"unread,omitzero"`
	// Due is when a run that waits must be looked at again, although nobody delivers
	// anything; zero means never.
	Due time.Time `json:"due,omitzero"`
	// Closed is why nothing may be sent to an endpoint until Due. The run has stopped for that alone.
	Closed string `json:"closed,omitzero"`
}

// step performs one effect of the session's run, together with the decisions before it
// that need no time.
func (e *Engine) step(ctx context.Context, in stepInput) (out stepResult, err error) {
	defer beat(ctx)()
	if in.Mode == mailOnly {
		if out.Unread, err = e.unread(ctx, in.Session); err != nil || out.Unread == 0 {
			return stepResult{Idle: true}, failure(err)
		}
	}
	opened, err := e.Open(ctx, in.Session, in.Agent)
	if errors.Is(err, session.ErrBusy) {
		return stepResult{Busy: true}, failure(e.ask(ctx, in))
	}
	if err != nil {
		return out, failure(err)
	}
	defer func() {
		if opened.Close == nil {
			return
		}
		// Everything is in the log by then, so the step counts.
		if failed := opened.Close(); failed != nil {
			activity.GetLogger(ctx).Warn("closing the session", "session", in.Session, "error", brief(failed))
		}
	}()
	gaveUp, err := e.giveUp(ctx, opened.Session)
	if err != nil {
		return out, failure(err)
	}
	if in.Mode != again && !gaveUp {
		if out, err = e.idle(ctx, opened.Session); err != nil || out.Idle {
			return out, failure(err)
		}
	}
	if err := e.ask(ctx, in); err != nil {
		return out, failure(err)
	}
	if in.Mode != stop { // somebody may have limited an endpoint since the worker began
		if err := e.uncounted(ctx); err != nil {
			return out, failure(err)
		}
	}
	return e.perform(ctx, in, opened)
}

// perform performs effects until one of them has taken time, or the run stops.
func (e *Engine) perform(ctx context.Context, in stepInput, opened *Opened) (out stepResult, err error) {
	out.Agent = opened.Name
	gate := e.gate(ctx, opened.Session)
	ctx = endpoint.WithGate(ctx, gate)
	for {
		before := last(opened.Session)
		effect, err := opened.Agent.Step(ctx, opened.Session)
		for _, entry := range opened.Session.Log()[before:] {
			gate.Count(ctx, entry.Body)
		}
		stopped, ended := effect.(plan.Stop)
		switch {
		case ended: // its error is in the log
		case errors.Is(err, session.ErrBusy):
			return stepResult{Busy: true}, nil
		case ctx.Err() != nil:
			return out, interrupted(ctx)
		case err != nil:
			return out, failure(err)
		}
		out.Effect = kind(effect)
		due, closed := gate.Closed()
		refused := closed != nil && out.Effect == effectAsk // now the log gets the end of the run
		if !ended && (in.Mode == stop || quick(effect) || refused) {
			continue
		}
		out.Why, out.Entry = stopped.Why, last(opened.Session)
		if closed != nil && out.Why == agent.StopProviderError { // no attempt is counted
			out.Why, out.Due, out.Closed = "", due, brief(closed)
			return out, nil
		}
		if out.Unread, err = e.unread(ctx, in.Session); err == nil && waits(out.Why) {
			out.Due, err = e.due(ctx, opened.Session)
		}
		return out, failure(err)
	}
}

// gate returns the gate for the requests of a step, by which all workers of the store share the limits of endpoints.
func (e *Engine) gate(ctx context.Context, s *session.Session) *worker.Gate {
	limits, _ := e.Store.(queue.Limits)
	var setup session.Setup
	for _, entry := range s.Log() {
		setup.Apply(entry.Body)
	}
	return worker.NewGate(limits, setup.Endpoint, func(err error) {
		activity.GetLogger(ctx).Warn("the limits of an endpoint", "session", s.ID(), "error", brief(err))
	})
}

// interrupted returns the error of a step whose context has ended. If the worker stops,
// another one goes on; otherwise the workflow was cancelled, or has given up on the step.
func interrupted(ctx context.Context) error {
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return failure(errors.New("the worker was stopped in the middle of a step"))
	default:
		return ctx.Err()
	}
}

// ask leaves a request to stop in the inbox, if the step is to make one. The run that is
// under way, here or elsewhere, sees it at once.
func (e *Engine) ask(ctx context.Context, in stepInput) error {
	if in.Mode != stop {
		return nil
	}
	_, err := e.Store.Deliver(ctx, in.Session, session.Delivery{
		Delivered: session.Delivered{Key: in.Key, From: "temporal"}, Bodies: []session.Body{session.StopAsked{Detail: "the workflow was cancelled"}},
	})
	return err
}

// idle reports whether there is nothing to do: nobody delivered anything, and the log
// ends with the end of a run. Another step would begin a run that has nothing to send.
func (e *Engine) idle(ctx context.Context, s *session.Session) (out stepResult, err error) {
	waiting, queued := 0, 0
	for d, err := range e.Store.Deliveries(ctx, s.ID()) {
		if err != nil {
			return out, err
		}
		if waiting++; d.Queued {
			queued++
		}
	}
	log := s.Log()
	if len(log) == 0 && waiting == 0 {
		return stepResult{Idle: true, Why: agent.StopNothingToSend}, nil
	}
	if len(log) == 0 {
		return out, nil
	}
	stopped, ok := log[len(log)-1].Body.(session.Stopped)
	why := agent.StopReason(stopped.Why)
	if why == agent.StopApprovalPending {
		waiting -= queued // it waits for the answer of this run, which waits for a person
	}
	if !ok || waiting > 0 {
		return out, nil
	}
	out = stepResult{Idle: true, Why: why, Entry: last(s)}
	if !waits(why) {
		return out, nil
	}
	if out.Due, err = e.due(ctx, s); err != nil || !out.Due.IsZero() && !time.Now().Before(out.Due) {
		return stepResult{}, err
	}
	return out, nil
}

// waits reports whether a run that has stopped goes on by itself, or when somebody answers.
func waits(why agent.StopReason) bool {
	return why == agent.StopApprovalPending || why == agent.StopNotYet
}

// due returns when a run that waits must go on: a polling tool is asked again, or nobody has
// answered in time.
func (e *Engine) due(ctx context.Context, s *session.Session) (due time.Time, err error) {
	sooner := func(at time.Time) {
		if !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	var state plan.State
	for _, entry := range s.Log() {
		state.Apply(entry)
	}
	for _, c := range state.View().Open() {
		sooner(c.Until)
	}
	if e.ApprovalTime <= 0 {
		return due, nil
	}
	pending, err := agent.PendingApprovals(ctx, s)
	for _, call := range pending {
		at, err := agent.AskedAt(ctx, e.Store, call)
		if err != nil {
			return due, err
		}
		if !at.IsZero() {
			sooner(at.Add(e.ApprovalTime))
		}
	}
	return due, err
}

// giveUp tells a session about which calls nobody answered in time, and reports whether there
// are any. An answer that was delivered before is taken first, and counts.
func (e *Engine) giveUp(ctx context.Context, s *session.Session) (some bool, err error) {
	if e.ApprovalTime <= 0 {
		return false, nil
	}
	pending, err := agent.PendingApprovals(ctx, s)
	for _, call := range pending {
		at, err := agent.AskedAt(ctx, e.Store, call)
		if err != nil {
			return some, err
		}
		if at.IsZero() || time.Since(at) < e.ApprovalTime {
			continue
		}
		some = true
		from := fmt.Sprintf("temporal, after %v", e.ApprovalTime)
		_, err = e.Store.Deliver(ctx, call.Session, session.Delivery{
			Delivered: session.Delivered{Key: session.OwnKey("nobody answered about call %d", call.Number), From: from},
			Bodies:    []session.Body{session.Approval{CallID: call.CallID, Number: call.Number, From: from, Decided: session.DeciderUnanswered}},
		})
		if err != nil && !errors.Is(err, session.ErrKeyUsed) { // by a worker with another time
			return some, err
		}
	}
	return some, err
}

// unread counts the deliveries that the next step takes. Input that waits for the answer
// of the run is taken when the run has one.
func (e *Engine) unread(ctx context.Context, id string) (n int, err error) {
	for d, err := range e.Store.Deliveries(ctx, id) {
		if err != nil {
			return n, err
		}
		if !d.Queued {
			n++
		}
	}
	return n, nil
}

func last(s *session.Session) int64 {
	log := s.Log()
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].Seq
}

// quick reports whether an effect only records decisions.
func quick(e plan.Effect) bool {
	switch e.(type) {
	case plan.Approve, plan.Skip, plan.Collapse:
		return true
	case plan.Ask, plan.Call, plan.Compact, plan.Stop:
	}
	return false
}

const (
	effectAsk  = "ask"
	effectCall = "call"
)

// kind names an effect as its JSON does.
func kind(e plan.Effect) string {
	switch e.(type) {
	case plan.Ask:
		return effectAsk
	case plan.Skip:
		return "skip"
	case plan.Approve:
		return "approve"
	case plan.Call:
		return effectCall
	case plan.Collapse:
		return "collapse"
	case plan.Compact:
		return "compact"
	case plan.Stop:
		return "stop"
	}
	return ""
}

// failure returns an error in the form in which Temporal keeps it: short, and without
// the errors that it wraps.
func failure(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewApplicationErrorWithOptions(brief(err), WhyStep, temporal.ApplicationErrorOptions{NonRetryable: errors.Is(err, ErrMissing) || errors.Is(err, ErrElsewhere)})
}

// brief returns the beginning of the first line of an error: a history is no place for
// what a long one quotes.
func brief(err error) string {
	const most = 300
	text, _, _ := strings.Cut(err.Error(), "\n")
	text, _ = output.Sanitize(text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// beat tells the server that the activity is alive, until the returned function is called.
func beat(ctx context.Context) (end func()) {
	every := activity.GetInfo(ctx).HeartbeatTimeout / 3
	if every <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); done.Wait() }
}
