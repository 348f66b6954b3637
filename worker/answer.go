// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
)

// takes is how long Answer waits for a run to take an answer.
const takes = 2 * time.Second

// Answer answers a call of the session id, or of a session nested in it, that waits for an
// approval. It decides like [agent.Decide], waits a moment until the run that is under way
// has taken the answer, and wakes the work of the session like [Wake]. If somebody else was
// first, the error wraps [agent.ErrDecided] and names them. If the run is in the middle of
// something for longer, Answer returns nil, and the log says later which answer counted.
func Answer(ctx context.Context, in session.Store, id string, d agent.Decision) error {
	if nils.Is(in) {
		return errors.New("worker: no Store is set")
	}
	outer, err := session.Open(ctx, in, id)
	if err != nil {
		return err
	}
	if err := agent.Decide(ctx, outer, d); err != nil {
		return err
	}
	if err := wasFirst(ctx, in, outer, d); err != nil {
		return err
	}
	_, err = Wake(ctx, in, id) // the answer may be in the log, and not in the inbox
	return err
}

// wasFirst waits a moment until the run that is under way has taken a decision. The error
// names who was first, if it was somebody else.
func wasFirst(ctx context.Context, in session.Store, outer *session.Session, d agent.Decision) error {
	id := d.Session
	if id == "" {
		id = outer.ID()
	}
	s, err := session.Open(ctx, in, id)
	if err != nil {
		return err
	}
	waits := func() bool {
		for waiting, err := range s.Deliveries(ctx) {
			if err == nil && slices.ContainsFunc(waiting.Bodies, func(b session.Body) bool {
				a, ok := b.(session.Approval)
				return ok && a.CallID == d.CallID && (d.Number == 0 || a.Number == d.Number)
			}) {
				return true
			}
		}
		return false
	}
	if waits() {
		look, stop := context.WithTimeout(ctx, takes)
		defer stop()
		for _, err := range s.Watch(look, int64(len(s.Log()))) {
			if err != nil || !waits() {
				break
			}
		}
		if waits() {
			return nil
		}
	}
	return agent.Decide(ctx, outer, d) // it is there already, or another one is
}
