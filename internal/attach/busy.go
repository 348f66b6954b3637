// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/worker"
)

// Busy says what happens to a session now, for lists: "" if nothing does.
func Busy(ctx context.Context, k store.Store, info session.Info) string {
	if q, ok := k.(queue.Queue); ok {
		if w, err := q.Work(ctx, info.ID); err == nil && w.State != queue.Done {
			return " (" + show.Shorten(show.Visible(worker.Waits(w, time.Now())), 80) + ")"
		}
	}
	unlock, err := k.Lock(ctx, info.ID)
	if err == nil {
		_ = unlock()
		if waitsForPerson(ctx, k, info) {
			return " (waits for you)"
		}
		return ""
	}
	if !errors.Is(err, session.ErrBusy) {
		return ""
	}
	if s, err := session.Open(ctx, k, info.ID); err == nil {
		switch pending, err := agent.PendingApprovals(ctx, s); {
		case err == nil && len(pending) > 0:
			return " (waits for you, elsewhere)"
		case UnderWay(s) > 0:
			return " (runs elsewhere)"
		}
	}
	return " (open elsewhere)"
}

// waitsForPerson reports whether the last run of a session has ended because a call waits for an approval, or a question
// of the model for an answer. It reads only the end of the log.
func waitsForPerson(ctx context.Context, k store.Store, info session.Info) (waits bool) {
	const end = 16 // entries
	for e, err := range k.Load(ctx, info.ID, max(0, info.Entries-end)) {
		if err != nil {
			return false
		}
		switch b := e.Body.(type) {
		case session.RunStarted:
			waits = false
		case session.Stopped:
			why := agent.StopReason(b.Why)
			waits = why == agent.StopApprovalPending || why == agent.StopNotYet && strings.Contains(b.Detail, PersonsAnswer)
		}
	}
	return waits
}

// PersonsAnswer is what a question of the model waits for.
const PersonsAnswer = "the answer of a person"
