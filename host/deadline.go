// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
)

// errUnanswered is the cause of the end of a question that nobody answered in time.
var errUnanswered = errors.New("nobody answered in time")

// inTime returns an approver that asks like next, until the time of the last of the Approvers is over. Then
// nobody has answered: the call was neither allowed nor refused. Who is to be asked after the first one is
// told by a notice; anybody may answer, here or elsewhere.
func (c *Config) inTime(next agent.Approver) agent.Approver {
	if c.ApprovalTime <= 0 {
		return next
	}
	return func(ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
		asking, end := context.WithCancelCause(ctx)
		defer end(nil)
		limit := &approvalClock{changed: make(chan struct{}, 1)}
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.countDown(asking, limit, q, end)
		}()
		d, err := next(context.WithValue(asking, approvalClockKey{}, limit), q)
		end(nil)
		<-done
		if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(asking), errUnanswered) {
			return d, err
		}
		waited := c.ApprovalTime * time.Duration(max(1, len(c.Approvers)))
		c.notify(NoticeDeadline, "nobody answered about %s within %v, so the call does not run", q.Call.Name, waited)
		return agent.Decision{From: fmt.Sprintf("the terminal, after %v", waited), Decided: session.DeciderUnanswered}, nil
	}
}

// countDown ends a question when the time of the last approver is over, unless ctx ends before.
func (c *Config) countDown(ctx context.Context, limit *approvalClock, q agent.ApprovalRequest, end context.CancelCauseFunc) {
	for n := range max(1, len(c.Approvers)) {
		if n > 0 {
			c.notify(NoticeDeadline, "%s has not answered about %s within %v; %s is asked now: antiphon sessions approve", c.Approvers[n-1], q.Call.Name, c.ApprovalTime, c.Approvers[n])
		}
		if !limit.wait(ctx, c.ApprovalTime) {
			return
		}
	}
	end(errUnanswered)
}

// approvalClock measures how long a question is in front of a person.
type approvalClock struct {
	mu      sync.Mutex
	unseen  int
	changed chan struct{}
}

type approvalClockKey struct{}

// Unseen tells the host that the approver that received ctx cannot show its question yet, because another
// question is open. [Config].ApprovalTime is paused until seen is called.
func Unseen(ctx context.Context) (seen func()) {
	limit, ok := ctx.Value(approvalClockKey{}).(*approvalClock)
	if !ok {
		return func() {}
	}
	limit.count(1)
	return sync.OnceFunc(func() { limit.count(-1) })
}

func (l *approvalClock) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unseen += n
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *approvalClock) stopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unseen > 0
}

// wait returns true when the question was in front of a person for so long, or false if ctx ends before.
func (l *approvalClock) wait(ctx context.Context, left time.Duration) bool {
	for left > 0 {
		began := time.Now()
		timer := time.NewTimer(left)
		over, runs := timer.C, !l.stopped()
		if !runs {
			over = nil
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-over:
			return true
		case <-l.changed:
			timer.Stop()
		}
		if runs {
			left -= time.Since(began)
		}
	}
	return true
}
