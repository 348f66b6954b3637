// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// Work that waits for an approval is due when the time of the person who is asked is over.
// The worker that begins it then tells the session that nobody answered, or leaves it again
// until the next person's time is over. Who is asked until when follows from the time of the
// question in the log: nothing else is kept, so workers that die in between change nothing.

// lookAgain is the pause after which work is begun again that should have gone on without
// an answer and did not.
const lookAgain = time.Minute

// awaiting is whose answers a session waits for.
type awaiting struct {
	reason string
	until  time.Time               // when the first time is over; the zero value means that nobody is asked
	over   []agent.PendingApproval // calls about which nobody answered in time
}

// awaited reads whose answers a session waits for.
func (p *pool) awaited(ctx context.Context, id string) (a awaiting, err error) {
	s, err := session.Open(ctx, p.Config.Store, id)
	if err != nil {
		return a, err
	}
	pending, err := agent.PendingApprovals(ctx, s)
	if err != nil || len(pending) == 0 {
		return a, err
	}
	now, last, first := time.Now(), max(1, len(p.Approvers))-1, 0
	for _, call := range pending {
		at, err := agent.AskedAt(ctx, p.Config.Store, call)
		if err != nil {
			return a, err
		}
		if at.IsZero() {
			at = now // the store keeps no times, so the time is never over
		}
		n := int(max(0, now.Sub(at)) / p.ApprovalTime)
		if n > last {
			a.over = append(a.over, call)
			n = last
		}
		if until := at.Add(time.Duration(n+1) * p.ApprovalTime); a.until.IsZero() || until.Before(a.until) {
			a.until, first = until, n
		}
	}
	a.reason = p.awaits(pending, first, a.until)
	return a, nil
}

// awaits says whose answer is awaited until when, and what happens then.
func (p *pool) awaits(pending []agent.PendingApproval, stage int, until time.Time) string {
	text := anApproval + toolsOf(pending)
	if stage < len(p.Approvers) {
		text = p.Approvers[stage] + "'s approval of " + toolsOf(pending)
	}
	text += " until " + until.UTC().Format(time.DateTime) + " UTC, then "
	if stage+1 < len(p.Approvers) {
		return text + "asks " + p.Approvers[stage+1]
	}
	return text + "goes on without an answer"
}

// giveUp tells a session, before it runs, about which calls nobody answered in time. An
// answer that was delivered before is taken first, and counts. If the worker dies now, the
// next one finds the delivery.
func (p *pool) giveUp(ctx context.Context, id string) error {
	if p.ApprovalTime <= 0 {
		return nil
	}
	a, err := p.awaited(ctx, id)
	if err != nil {
		return err
	}
	for _, call := range a.over {
		from := fmt.Sprintf("the worker, after %v", p.ApprovalTime*time.Duration(max(1, len(p.Approvers))))
		_, err := p.inbox.Deliver(ctx, call.Session, session.Delivery{
			Delivered: session.Delivered{Key: session.OwnKey("nobody answered about call %d", call.Number), From: from},
			Bodies:    []session.Body{session.Approval{CallID: call.CallID, Number: call.Number, From: from, Decided: session.DeciderUnanswered}},
		})
		if err != nil && !errors.Is(err, session.ErrKeyUsed) { // by a worker with other times
			return err
		}
		p.log.Warn("nobody answered", "session", call.Session, "tool", call.Tool)
	}
	return nil
}

// setDeadline sets until when work that waits for an approval does so, and says for whom.
func (p *pool) setDeadline(ctx context.Context, id string, o *queue.Outcome) {
	if p.ApprovalTime <= 0 || !forApproval(o.Reason) {
		return
	}
	until := time.Now().Add(lookAgain)
	switch a, err := p.awaited(ctx, id); {
	case err != nil:
		p.log.Error("the store failed", "session", id, "error", p.sayable(err))
	case a.until.After(time.Now()):
		until, o.Reason = a.until, p.sayable(errors.New(a.reason))
	}
	if o.Due.IsZero() || until.Before(o.Due) { // else a polling tool is asked before
		o.Due = until
	}
}

// waitsForEver reports whether work waits for an approval without a time, because it began
// to wait at a worker that sets none, and this one does.
func (p *pool) waitsForEver(w queue.Work) bool {
	return p.ApprovalTime > 0 && w.Due.IsZero() && AwaitsApproval(w) && (p.Tenants == nil || slices.Contains(p.Tenants, w.Tenant))
}

// Beginnings of the reasons of work that waits.
const (
	anApproval = "an approval of "
	aResult    = "the result of "
)

// AwaitsApproval reports whether work waits for an approval, and not for the result of a
// polling tool alone.
func AwaitsApproval(w queue.Work) bool { return w.State == queue.Waiting && forApproval(w.Reason) }

func forApproval(reason string) bool { return !strings.HasPrefix(reason, aResult) }
