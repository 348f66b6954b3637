// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// A background response asks the next upstream before it asks one again. If all have failed, those that may answer later are
// asked again, after the shortest pause that one of them wants.
func TestBackgroundFallback(t *testing.T) {
	busy := func(after string) agenttest.Reply {
		return agenttest.Failure(http.StatusTooManyRequests, "rate_limit_exceeded", "Later.").RetryAfter(after)
	}
	well := agenttest.Completed(item.Assistant("Well."))
	for _, test := range []struct {
		name  string
		ups   [][]agenttest.Reply
		asked []int
		waits []time.Duration
		fails bool
	}{
		{"the next one answers", [][]agenttest.Reply{{busy("7"), well}, {well}}, []int{1, 1}, nil, false},
		{"the first one answers later", [][]agenttest.Reply{{busy("7"), well}, {busy("9"), well}}, []int{2, 1}, []time.Duration{7 * time.Second}, false},
		{"the second one answers later", [][]agenttest.Reply{{agenttest.Failure(401, "invalid_api_key", "No.")}, {busy("9"), well}}, []int{1, 2}, []time.Duration{9 * time.Second}, false},
		{"none answers", [][]agenttest.Reply{{busy("7"), busy("7"), busy("7"), busy("7"), busy("7")}, {agenttest.Failure(401, "invalid_api_key", "No.")}}, []int{3, 1}, []time.Duration{7 * time.Second, 7 * time.Second}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := serving(t)
			var mu sync.Mutex
			var waits []time.Duration
			var ups []*agenttest.Server
			for _, replies := range test.ups {
				up := agenttest.NewServer(t, replies...)
				u := open(t, up.URL, false)
				u.Config.Retry = endpoint.Retry{Max: 2, Rand: func() float64 { return 0 }, Sleep: func(_ context.Context, d time.Duration) error {
					mu.Lock()
					defer mu.Unlock()
					waits = append(waits, d)
					return nil
				}}
				ups, w.b.Upstreams = append(ups, up), append(w.b.Upstreams, u)
			}
			made := w.create(`{"model":"m","input":"a","background":true}`)
			got, err := w.typed().Wait(t.Context(), made.ID)
			if test.fails != (got != nil && got.Status == item.StatusFailed) || !test.fails && (err != nil || got.Text() != "Well.") {
				t.Errorf("%+v %v", got, err)
			}
			for i, up := range ups {
				if n := len(up.Requests()); n != test.asked[i] {
					t.Errorf("upstream %d was asked %d times", i, n)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(waits, test.waits) {
				t.Errorf("waited %v, want %v", waits, test.waits)
			}
		})
	}
}
