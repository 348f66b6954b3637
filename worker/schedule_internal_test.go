// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"
	"time"
	_ "time/tzdata" // so that the zone is known everywhere
)

// Times are those of the zone's clocks, also when these are changed.
func TestScheduleTimes(t *testing.T) {
	for _, tt := range []struct{ cron, after, want string }{
		{"30 2 * * *", "2026-03-27T12:00:00Z", "2026-03-28T01:30:00Z"}, // winter
		{"30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"}, // there is no half past two on the 29th
		{"30 3 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z"}, // summer
		{"0 9 * * MON-FRI", "2026-11-27T12:00:00Z", "2026-11-30T08:00:00Z"},
		{"@daily", "2026-11-27T12:00:00Z", "2026-11-27T23:00:00Z"},
		{"30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"}, // half past two comes twice on the 25th
		{"30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"30 2 * * *", "2026-10-25T01:00:00Z", "2026-10-26T01:30:00Z"},
		{"30 1-3 * * *", "2026-10-25T00:30:00Z", "2026-10-25T02:30:00Z"},
		{"*/30 2 * * *", "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z"},
		{"30 * * * *", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"}, // each hour
	} {
		after, err := time.Parse(time.RFC3339, tt.after)
		if err != nil {
			t.Fatal(err)
		}
		s := Schedule{Cron: tt.cron, Zone: "Europe/Berlin"}
		if got, err := s.next(after); err != nil || got.UTC().Format(time.RFC3339) != tt.want {
			t.Errorf("%s after %s: %v, %v, want %s", tt.cron, tt.after, got.UTC(), err, tt.want)
		}
	}
}
