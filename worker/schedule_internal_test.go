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

// A schedule that was due for years, because its store was restored or a clock was wrong when it was added, is caught up with
// at once: 26 years of minutes would keep a worker from all other work for minutes.
func TestScheduleOfYears(t *testing.T) {
	now := time.Date(2026, 10, 25, 1, 30, 30, 0, time.UTC) // half past two in winter, for the first time
	for _, tt := range []struct{ cron, zone, since, at, next string }{
		{"* * * * *", "Europe/Berlin", "2000-01-01T00:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T01:31:00Z"},
		{"*/7 2 * * *", "Europe/Berlin", "2000-01-01T00:00:00Z", "2026-10-25T00:56:00Z", "2026-10-26T01:00:00Z"},
		{"* * 29 2 *", "", "1970-01-01T00:00:00Z", "2024-02-29T23:59:00Z", "2028-02-29T00:00:00Z"},
		{"@yearly", "", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"@hourly", "", "2026-10-25T02:00:00Z", "0001-01-01T00:00:00Z", "2026-10-25T02:00:00Z"},
	} {
		since, err := time.Parse(time.RFC3339, tt.since)
		if err != nil {
			t.Fatal(err)
		}
		s := Schedule{Cron: tt.cron, Zone: tt.zone}
		at, n, next, err := s.last(since, now)
		if err != nil || at.UTC().Format(time.RFC3339) != tt.at || next.UTC().Format(time.RFC3339) != tt.next || n > mostMissed {
			t.Errorf("%s: %v, %d, %v, %v", tt.cron, at.UTC(), n, next.UTC(), err)
		}
	}
}
