// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session/queue"
)

// Waits says in words who or what idle work waits for, or who does it.
func Waits(w queue.Work, now time.Time) string { return waits(w, now, aWorker(w)) }

// aWorker names the worker that work waits for.
func aWorker(w queue.Work) string { return "a worker" + withNeeds(w) }

// waits is Waits with what work that could begin waits for.
func waits(w queue.Work, now time.Time, object string) string {
	switch w.State {
	case queue.Running:
		return "runs at " + orUnknown(w.Worker)
	case queue.Waiting:
		if !w.Due.IsZero() && !now.Before(w.Due) {
			return "waits for " + object + "; before, it waited for " + w.Reason
		}
		return "waits for " + w.Reason
	case queue.Parked:
		return "parked, waits for an operator: " + w.Reason
	case queue.Done:
		return "done: " + w.Reason
	}
	text := "waits for " + object
	if now.Before(w.Due) {
		text = "waits for its time" + withNeeds(w)
	}
	if w.Reason != "" {
		text += "; before: " + w.Reason
	}
	return text
}

// Lack is the kind of what parked work lacks.
type Lack string

// The kinds of what work may lack.
const (
	LacksVersion   Lack = "version"   // a worker of the version of the program with which it began
	LacksAgreement Lack = "agreement" // the agreement of a worker's operator
	LacksOther     Lack = "other"     // a worker with something else, such as a label
)

// Lacks returns what work lacks that is parked because no worker can do it, or "". A worker
// that can do it makes it ready again.
func Lacks(w queue.Work) Lack {
	switch {
	case w.State != queue.Parked || !strings.HasPrefix(w.Reason, needed):
		return ""
	case strings.HasPrefix(w.Reason, noVersion):
		return LacksVersion
	case strings.HasPrefix(w.Reason, noAgreement):
		return LacksAgreement
	}
	return LacksOther
}

func withNeeds(w queue.Work) string {
	if len(w.Needs) == 0 {
		return ""
	}
	return " " + described(w.Needs, "with ")
}

// Metrics are measures of a queue, for graphs and alarms.
type Metrics struct {
	// Works counts the work by state.
	Works map[queue.State]int
	// Tenants splits Works by tenant.
	Tenants map[string]map[queue.State]int
	// Age is how long the oldest work that is ready and due has been so.
	Age time.Duration
	// Attempts is the sum of the attempts of work that did not go well yet.
	Attempts int
}

// Measure measures the work of a queue that is in some states, or all.
func Measure(ctx context.Context, q queue.Queue, states ...queue.State) (m Metrics, err error) {
	m.Works, m.Tenants = map[queue.State]int{}, map[string]map[queue.State]int{}
	if nils.Is(q) {
		return m, errors.New("worker: there is no queue")
	}
	now := time.Now()
	for w, err := range q.Works(ctx, states...) {
		if err != nil {
			return m, err
		}
		m.Works[w.State]++
		if m.Tenants[w.Tenant] == nil {
			m.Tenants[w.Tenant] = map[queue.State]int{}
		}
		m.Tenants[w.Tenant][w.State]++
		if w.State != queue.Done {
			m.Attempts += w.Attempts
		}
		if (w.State == queue.Ready || w.State == queue.Waiting && !w.Due.IsZero()) && !now.Before(w.Due) {
			since := w.Since
			if since.Before(w.Due) {
				since = w.Due
			}
			m.Age = max(m.Age, now.Sub(since))
		}
	}
	return m, nil
}
