// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/session"
)

// Preview returns the request that a run would send if it began now, and the session
// as it would be then. The session is a copy in memory, in which calls that can no
// longer run have their outputs. If calls still have to run or wait for approval,
// the history ends before their reply; [session.Explain] reports what is missing.
// Preview records nothing, asks nobody and runs no tool. The agent's Model may be
// nil.
func (a *Agent) Preview(ctx context.Context, s *session.Session) (*api.Request, *session.Session, error) {
	then, err := session.Open(ctx, new(session.Memory), s.ID())
	if err != nil {
		return nil, nil, err
	}
	var bodies []session.Body
	for e := range s.Entries() {
		bodies = append(bodies, e.Body)
	}
	// The copy is in memory, so that nothing below can change the real session.
	if _, err := then.Append(ctx, bodies...); err != nil {
		return nil, nil, err
	}
	r := a.Start(then)
	// This Run never executes Events, so the fields that Events would set are set
	// here.
	r.quiet, r.uncancelled, r.yield = true, ctx, func(Event, error) bool { return true }
	if err := r.equip(ctx); err != nil {
		return nil, nil, err
	}
	r.fold(a)
	if err := r.foresee(); err != nil {
		return nil, nil, err
	}
	return r.request(), then, nil
}

// foresee records the decisions that a run makes without the model, tools or an
// approver, up to its first request.
func (r *Run) foresee() error {
	if err := r.record(session.RunStarted{}); err != nil {
		return err
	}
	for {
		var err error
		switch e := r.state.Next().(type) {
		case plan.Skip:
			err = r.close(e.Calls)
		case plan.Collapse:
			err = r.collapse(e.Outputs)
		case plan.Ask, plan.Approve, plan.Call, plan.Compact, plan.Stop:
			return r.record(session.TurnStarted{Turn: r.state.Turn() + 1})
		}
		if err != nil {
			return err
		}
	}
}
