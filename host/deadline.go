// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
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
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.countDown(asking, q, end)
		}()
		d, err := next(asking, q)
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
func (c *Config) countDown(ctx context.Context, q agent.ApprovalRequest, end context.CancelCauseFunc) {
	for n := range max(1, len(c.Approvers)) {
		if n > 0 {
			c.notify(NoticeDeadline, "%s has not answered about %s within %v; %s is asked now: antiphon sessions approve", c.Approvers[n-1], q.Call.Name, c.ApprovalTime, c.Approvers[n])
		}
		over := time.NewTimer(c.ApprovalTime)
		select {
		case <-ctx.Done():
			over.Stop()
			return
		case <-over.C:
		}
	}
	end(errUnanswered)
}
