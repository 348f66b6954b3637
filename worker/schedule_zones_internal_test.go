// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"strings"
	"testing"
	"time"
)

// The times of a schedule are those that a search of each minute finds, in zones whose clocks change at midnight,
// by half an hour, by two hours or by a whole day.
func TestScheduleTimesOfZones(t *testing.T) {
	for _, z := range []struct{ zone, from string }{
		{"Europe/Berlin", "2026-03-27"}, {"Europe/Berlin", "2026-10-23"},
		{"Australia/Lord_Howe", "2026-04-03"}, {"Australia/Lord_Howe", "2026-10-02"}, // half an hour
		{"America/Havana", "2026-03-06"}, {"America/Havana", "2026-10-30"}, // at midnight, and at one
		{"Asia/Beirut", "2026-03-27"}, {"Asia/Beirut", "2026-10-23"}, // at midnight
		{"Africa/Cairo", "2026-04-22"}, {"Africa/Cairo", "2026-10-28"},
		{"Antarctica/Troll", "2026-03-27"}, {"Antarctica/Troll", "2026-10-23"}, // two hours
		{"Pacific/Apia", "2011-12-28"},                                         // a day is missing
		{"America/St_Johns", "2006-03-31"}, {"America/St_Johns", "2006-10-27"}, // a minute after midnight
	} {
		place, err := time.LoadLocation(z.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, err := time.ParseInLocation(time.DateOnly, z.from, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			cron string
			is   func(minute, hour int) bool
		}{
			{"0 0 * * *", func(m, h int) bool { return m == 0 && h == 0 }},
			{"15 0 * * *", func(m, h int) bool { return m == 15 && h == 0 }},
			{"30 1 * * *", func(m, h int) bool { return m == 30 && h == 1 }},
			{"45 1,2 * * *", func(m, h int) bool { return m == 45 && (h == 1 || h == 2) }},
			{"*/20 0-3 * * *", func(m, h int) bool { return m%20 == 0 && h <= 3 }},
			{"59 23 * * *", func(m, h int) bool { return m == 59 && h == 23 }},
			{"10 * * * *", func(m, _ int) bool { return m == 10 }},
			{"*/7 * * * *", func(m, _ int) bool { return m%7 == 0 }},
		} {
			s := Schedule{Cron: c.cron, Zone: z.zone}
			hourly := strings.Fields(c.cron)[1] == "*"
			at := from
			for minute := from.Add(time.Minute); minute.Before(from.AddDate(0, 0, 5)); minute = minute.Add(time.Minute) {
				if local := minute.In(place); !c.is(local.Minute(), local.Hour()) || !hourly && again(minute, place) {
					continue
				}
				got, err := s.next(at)
				if err != nil || !got.Equal(minute) {
					t.Errorf("%s in %s after %s: %s, %v, want %s", c.cron, z.zone, at.In(place), got, err, minute.In(place))
					break
				}
				at = minute
			}
		}
	}
}

// again reports whether the clocks of a place have shown the time of a minute before.
func again(minute time.Time, place *time.Location) bool {
	const shown = "2006-01-02 15:04"
	for back := time.Minute; back <= 3*time.Hour; back += time.Minute {
		if minute.Add(-back).In(place).Format(shown) == minute.In(place).Format(shown) {
			return true
		}
	}
	return false
}
