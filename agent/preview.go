// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Preview returns the request that a run would send if it began now and decided
// nothing new before. Where calls wait for their outputs, the history is as far
// as they let it come; see [session.Explain] for what is not in it. Nothing is
// recorded, asked or run. The Model may be nil.
func (a *Agent) Preview(ctx context.Context, s *session.Session) (*item.Request, error) {
	r := a.Start(s)
	if err := r.equip(ctx); err != nil {
		return nil, err
	}
	for e := range s.Entries() {
		r.state.Apply(e)
	}
	next := int64(len(s.Log())) + 1
	r.state.Apply(session.Entry{Seq: next, Body: session.RunStarted{}})
	r.state.Apply(session.Entry{Seq: next + 1, Body: session.TurnStarted{Turn: r.state.turn + 1}})
	return r.request(), nil
}
