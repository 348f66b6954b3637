// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/trust"
)

// ErrOver means that a session has nothing to go on with until somebody submits work again.
var ErrOver = errors.New("the response or request that this work belongs to has ended")

var (
	errGone      = errors.New("the session is gone")
	errExhausted = errors.New("it began too often and did not end: its worker died each time")
)

// perform runs a session and says in the queue how that ended. It reports whether the
// work began: a session that somebody else has open does not.
func (p *pool) perform(ctx context.Context, r *running, open opener) (began bool) {
	log := p.log.With("session", r.work.Session, "agent", short(r.work.Agent))
	var begun queue.Work
	g := p.gate(r.work.Endpoint)
	held := ctx
	if p.limits != nil {
		held = endpoint.WithGate(ctx, g)
	}
	h, err := open(held, func(ctx context.Context, info session.Info) (err error) {
		if info.Path != "" {
			log = log.With("file", info.Path)
		}
		if begun, err = p.queue.Begin(ctx, r.work, p.Name); err != nil {
			return err
		}
		began = true
		p.mu.Lock()
		r.begun, r.work = true, begun
		p.mu.Unlock()
		p.tally(func(c *Counts) { c.Begun++; c.Running++ })
		log.Info("work begun", "attempt", begun.Attempts)
		if begun.Attempts > p.attempts() {
			return errExhausted
		}
		return nil
	})
	var res *agent.Result
	if err == nil {
		err = p.giveUp(held, r.work.Session)
	}
	if err == nil {
		res, err = p.run(held, r, h, g)
	}
	if k, ok := h.(interface{ keep(context.Context) error }); ok && began {
		// Before anybody else may have the session.
		err = errors.Join(k.keep(ctx), err)
	}
	if began {
		p.tally(func(c *Counts) { c.Running-- })
		p.finish(ctx, begun, r.moved, res, err, log.Info)
	}
	if h != nil {
		err = errors.Join(err, h.Close())
	}
	if errors.Is(err, errGone) {
		err = errors.Join(err, p.queue.Move(context.WithoutCancel(ctx), r.work, queue.Parked, errGone.Error()))
	}
	if !began && !errors.Is(err, session.ErrBusy) && !errors.Is(err, queue.ErrChanged) && !errors.Is(err, queue.ErrFull) {
		log.Warn("work did not begin", "error", p.sayable(err))
	}
	return began
}

// run runs an open session until it stops.
func (p *pool) run(ctx context.Context, r *running, h conversation, g *Gate) (*agent.Result, error) {
	p.mu.Lock()
	r.open = h
	if p.drains {
		h.StopAfterTurn()
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		r.open = nil
		p.mu.Unlock()
	}()
	tell := func(agent.Event) {}
	if t, ok := h.(interface{ tell(agent.Event) }); ok {
		tell = t.tell
	}
	defer tell(nil)
	var failure error
	for event, err := range h.Stream(ctx, "") {
		if err != nil {
			failure = err
		} else {
			tell(event)
		}
		if e, ok := event.(agent.Recorded); ok {
			g.Count(ctx, e.Body)
			p.countStep(e.Body)
			if b, ok := e.Body.(session.StopAsked); ok && b.Run != 0 {
				r.moved = cmp.Or(b.Detail, "it goes on elsewhere")
			}
		}
	}
	return h.Result(), failure
}

// finish says in the queue how a run ended. If the session was lost, or somebody parked
// the work, the queue knows better. Moved is why the session goes on elsewhere, if it does.
func (p *pool) finish(ctx context.Context, w queue.Work, moved string, res *agent.Result, failure error, log func(string, ...any)) {
	cause := context.Cause(ctx)
	if errors.Is(failure, session.ErrLost) || errors.Is(cause, errElsewhere) || errors.As(cause, new(*parkedError)) {
		log("work left", "reason", p.sayable(cmp.Or(failure, cause)))
		if errors.Is(failure, session.ErrLost) {
			p.tally(func(c *Counts) { c.Lost++ })
		}
		return
	}
	o := p.outcome(ctx, w, res, failure)
	if moved != "" && failure == nil && res != nil && (res.Why == agent.StopRequested || res.Why == agent.StopApprovalPending) {
		o = queue.Outcome{State: queue.Parked, Well: true, Reason: moved} // also if whoever takes it dies now
	}
	o.Reason = p.sayable(errors.New(o.Reason))
	if o.State == queue.Waiting {
		o.Seen = p.leftForLater(context.WithoutCancel(ctx), w.Session)
		p.setDeadline(context.WithoutCancel(ctx), w.Session, &o)
	}
	err := p.queue.Finish(context.WithoutCancel(ctx), w, o)
	switch {
	case errors.Is(err, queue.ErrChanged):
		log("work left", "reason", "somebody else has it")
		return
	case err != nil:
		p.log.Error("the store failed", "session", w.Session, "error", p.sayable(err))
		return
	}
	p.tally(func(c *Counts) {
		switch o.State {
		case queue.Done:
			c.Done++
		case queue.Waiting:
			c.Waiting++
		case queue.Parked:
			c.park(kindOf(moved, res, failure))
		case queue.Ready:
			c.Retried++
		}
	})
	log("work ended", "state", string(o.State), "reason", o.Reason)
}

// leftForLater returns the number of the last delivery that no run takes before it has
// its answer. Without it, work that waits for an approval would be ready at once, for ever.
func (p *pool) leftForLater(ctx context.Context, id string) (last int64) {
	other := func(b session.Body) bool { _, input := b.(session.InputItem); return !input }
	for d, err := range nils.Each(p.inbox, "Deliveries", p.inbox.Deliveries(ctx, id)) {
		if err != nil || !d.Queued || slices.ContainsFunc(d.Bodies, other) {
			break
		}
		last = d.Number
	}
	return last
}

// lastDelivery returns the number of the last delivery that waits.
func (p *pool) lastDelivery(ctx context.Context, id string) (last int64) {
	for d, err := range nils.Each(p.inbox, "Deliveries", p.inbox.Deliveries(ctx, id)) {
		if err != nil {
			break
		}
		last = d.Number
	}
	return last
}

// outcome decides what becomes of work after a run.
func (p *pool) outcome(ctx context.Context, w queue.Work, res *agent.Result, failure error) queue.Outcome {
	if errors.As(failure, new(*placeFailure)) { // nobody else has the files
		return queue.Outcome{State: queue.Parked, Reason: failure.Error()}
	}
	if errors.Is(context.Cause(ctx), errDrained) {
		return queue.Outcome{State: queue.Ready, Well: true, Reason: "given back: " + errDrained.Error()}
	}
	var untrusted *trust.UntrustedError
	var closed *closedError
	switch {
	case errors.As(failure, &closed) && closed.stopped == "":
		return queue.Outcome{State: queue.Ready, Well: true, Due: time.Now().Add(closed.wait), Reason: closed.Error()} // no attempt is counted
	case errors.As(failure, &closed):
		return queue.Outcome{State: queue.Parked, Reason: closed.Error()}
	case errors.Is(failure, ErrOver):
		return queue.Outcome{State: queue.Done, Well: true, Reason: ErrOver.Error(), Seen: p.lastDelivery(context.WithoutCancel(ctx), w.Session)}
	case errors.Is(failure, agent.ErrNothingToSend):
		return queue.Outcome{State: queue.Done, Well: true, Reason: "nothing was left to do"}
	case errors.As(failure, &untrusted):
		return queue.Outcome{State: queue.Parked, Reason: "the operator has not agreed to all that it may do at this worker: " + failure.Error()}
	case failure != nil && !passes(failure):
		return queue.Outcome{State: queue.Parked, Reason: failure.Error()}
	case failure != nil && w.Attempts >= p.attempts():
		return queue.Outcome{State: queue.Parked, Reason: fmt.Sprintf("it failed %d times: %v", w.Attempts, failure)}
	case failure != nil:
		return queue.Outcome{State: queue.Ready, Due: time.Now().Add(p.after(w.Attempts, failure)), Reason: failure.Error()}
	case res == nil:
		return queue.Outcome{State: queue.Parked, Reason: "it ended without a result"}
	}
	switch res.Why {
	case agent.StopEndTurn, agent.StopRefused:
		return queue.Outcome{State: queue.Done, Well: true, Reason: string(res.Why)}
	case agent.StopApprovalPending:
		return queue.Outcome{State: queue.Waiting, Well: true, Reason: anApproval + toolsOf(res.Pending), Due: res.Due}
	case agent.StopNotYet:
		return queue.Outcome{State: queue.Waiting, Well: true, Reason: strings.TrimPrefix(res.Detail, "waiting for "), Due: res.Due}
	case agent.StopRequested:
		if p.stopping() && res.Detail == "" {
			return queue.Outcome{State: queue.Ready, Well: true, Reason: "given back: " + errDrained.Error()}
		}
		return queue.Outcome{State: queue.Done, Well: true, Reason: "stopped, " + cmp.Or(res.Detail, "as asked")}
	}
	return queue.Outcome{State: queue.Parked, Reason: strings.TrimSuffix(fmt.Sprintf("stopped at %s: %s", res.Why, res.Detail), ": ")}
}

// kindOf returns the kind of reason for which work was parked after a run.
func kindOf(moved string, res *agent.Result, failure error) string {
	var untrusted *trust.UntrustedError
	var closed *closedError
	switch {
	case failure == nil && moved != "":
		return "taken"
	case failure == nil && res != nil:
		return string(res.Why) // such as a limit
	case errors.As(failure, &closed):
		return "endpoint_stopped"
	case errors.As(failure, &untrusted):
		return "not_agreed"
	case errors.Is(failure, errExhausted), failure != nil && passes(failure):
		return "attempts"
	}
	return "failed"
}

// countStep counts what a run has done.
func (w *Worker) countStep(b session.Body) {
	switch b.(type) {
	case session.TurnEnded:
		w.tally(func(c *Counts) { c.Turns++ })
	case session.CallOutput:
		w.tally(func(c *Counts) { c.Calls++ })
	}
}

func (p *pool) stopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drains
}

// toolsOf names the tools of calls.
func toolsOf(calls []agent.PendingApproval) string {
	var names []string
	for _, c := range calls {
		if !slices.Contains(names, c.Tool) {
			names = append(names, c.Tool)
		}
	}
	if len(names) == 0 {
		return "a call"
	}
	return strings.Join(names, ", ")
}

// passes reports whether the next attempt may succeed although nobody does anything.
func passes(err error) bool {
	var config *host.ConfigError
	var hook *agent.HookError
	var api *endpoint.Error
	switch {
	case errors.As(err, &hook), errors.As(err, new(*placeFailure)), errors.Is(err, errExhausted), errors.Is(err, errGone), errors.As(err, &config), errors.Is(err, agent.ErrContextFull), errors.Is(err, agent.ErrEntriesLost), errors.Is(err, session.ErrNewer), errors.Is(err, session.ErrDamaged):
		return false
	case errors.As(err, &api):
		switch api.Class {
		case endpoint.RateLimit, endpoint.Overloaded, endpoint.Server, endpoint.Network, endpoint.Truncated, endpoint.Idle, endpoint.Reconnect, endpoint.Protocol, endpoint.Canceled:
			return true
		}
		return false
	}
	return true
}

func (w *Worker) attempts() int { return orElse(w.Attempts, 5) }

// after is the pause after a failed attempt, which is at least what the endpoint asked for.
func (w *Worker) after(attempt int, failure error) time.Duration {
	const first, most = time.Second, 5 * time.Minute
	var pause time.Duration
	if w.Backoff != nil {
		pause = w.Backoff(attempt)
	} else {
		pause = min(most, first<<min(attempt-1, 20))
		pause = pause/2 + rand.N(pause/2+1)
	}
	var api *endpoint.Error
	if errors.As(failure, &api) {
		pause = max(pause, api.RetryAfter)
	}
	return pause
}

// sayable returns the text of an error for the queue and the log: without secrets, on one
// line and not long. People do not know the worker's copies of their files, so the names of these
// are left without the folder.
func (w *Worker) sayable(err error) string {
	if err == nil {
		return ""
	}
	const most = 500
	text := strings.Join(strings.Fields(w.Config.Environment.Hide(err.Error())), " ")
	if w.Agents != nil {
		text = w.Agents.withoutFolders(text)
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
