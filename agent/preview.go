// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Preview returns the request that a run would send if it began now, and the
// session as it would be then: a copy in memory, in which calls that cannot run
// any more have their outputs. Where others are to run or wait for somebody, the
// history is as far as they let it come; see [session.Explain] for what is not
// in it. Nothing is recorded, asked or run. The Model may be nil.
func (a *Agent) Preview(ctx context.Context, s *session.Session) (*item.Request, *session.Session, error) {
	then, err := session.Open(ctx, new(session.Memory), s.ID())
	if err != nil {
		return nil, nil, err
	}
	var bodies []session.Body
	for e := range s.Entries() {
		bodies = append(bodies, e.Body)
	}
	if _, err := then.Append(ctx, bodies...); err != nil {
		return nil, nil, err
	}
	r := a.Start(then)
	r.uncancelled, r.yield = ctx, func(Event, error) bool { return true }
	if err := r.equip(ctx); err != nil {
		return nil, nil, err
	}
	r.fold(a)
	if err := r.foresee(); err != nil {
		return nil, nil, err
	}
	return r.request(), then, nil
}

// foresee records what a run decides without asking anybody, up to its first
// request.
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
		default:
			return r.record(session.TurnStarted{Turn: r.state.Turn() + 1})
		}
		if err != nil {
			return err
		}
	}
}
