// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
)

// TestUnseen proves that the time of an approver does not run while the question waits behind another one.
func TestUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended time.Duration
		c := &Config{ApprovalTime: time.Minute}
		approve := c.inTime(func(ctx context.Context, _ agent.ApprovalRequest) (agent.Decision, error) {
			began := time.Now()
			time.Sleep(20 * time.Second) // seen
			seen := Unseen(ctx)
			other := Unseen(ctx)
			time.Sleep(time.Hour)
			other()
			time.Sleep(time.Hour)
			if ctx.Err() != nil {
				t.Error("the question ended before it was seen")
			}
			seen()
			seen()
			<-ctx.Done()
			ended = time.Since(began)
			return agent.Decision{}, ctx.Err()
		})
		d, err := approve(t.Context(), agent.ApprovalRequest{})
		if want := 2*time.Hour + time.Minute; err != nil || d.Decided != session.DeciderUnanswered || ended != want {
			t.Errorf("%+v, %v, after %v, want %v", d, err, ended, want)
		}
	})
	Unseen(t.Context())() // without a time it does nothing
}
