// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// Outlook is what keeps work that is ready from beginning, as it was when it was made.
type Outlook struct {
	Workers   []Card           // that run; see [Running]
	Known     bool             // the store keeps the Workers
	Endpoints []queue.Endpoint // with limits; see [queue.Limits]
	// Brief leaves out what only the operator should read: addresses of endpoints, names and limits of
	// tenants, and why an endpoint was stopped.
	Brief bool

	runs map[string]int // of tenants, over all workers
}

// Look returns the outlook of the work of a store.
func Look(ctx context.Context, in session.Store) (*Outlook, error) {
	if nils.Is(in) {
		return nil, errors.New("worker: no Store is set")
	}
	o := &Outlook{runs: map[string]int{}}
	var err error
	if o.Workers, o.Known, err = Running(ctx, in); err != nil {
		return nil, err
	}
	if limits, ok := in.(queue.Limits); ok {
		if o.Endpoints, err = limits.Endpoints(ctx); err != nil {
			return nil, err
		}
	}
	if q, ok := in.(queue.Queue); ok {
		for w, err := range q.Works(ctx, queue.Running) {
			if err != nil {
				return nil, err
			}
			o.runs[w.Tenant]++
		}
	}
	return o, nil
}

// Waits says in words who or what idle work waits for, or who does it, as the function [Waits]
// does. Of work that could begin, it also says if its endpoint or its tenant keeps it from that
// at all workers that can do it, and of work that runs, if its worker is gone. Next is when that
// may end, if it is known.
func (o *Outlook) Waits(w queue.Work, now time.Time) (text string, next time.Time) {
	if o.gone(w) {
		return "waits for " + aWorker(w) + ": " + w.Worker + ", which ran it, is gone", time.Time{}
	}
	if !mayBegin(w, now) {
		return Waits(w, now), time.Time{}
	}
	why, next := o.blocked(w, now)
	return waits(w, now, cmp.Or(why, aWorker(w))), next
}

// gone reports whether work runs at a worker that is not there any more.
func (o *Outlook) gone(w queue.Work) bool {
	return o.Known && w.State == queue.Running && w.Worker != "" &&
		!slices.ContainsFunc(o.Workers, func(c Card) bool { return c.Name == w.Worker })
}

// mayBegin reports whether only a worker is missing.
func mayBegin(w queue.Work, now time.Time) bool {
	return (w.State == queue.Ready || w.State == queue.Waiting && !w.Due.IsZero()) && !now.Before(w.Due)
}

// blocked returns what keeps work from beginning at all workers that can do it, or "".
func (o *Outlook) blocked(w queue.Work, now time.Time) (why string, next time.Time) {
	for _, c := range o.Workers {
		if able, _ := c.can(w); !able {
			continue
		}
		here, ends := o.blockedAt(c, w, now)
		if here == "" {
			return "", time.Time{}
		}
		if why == "" || !ends.IsZero() && (next.IsZero() || ends.Before(next)) {
			why, next = here, ends
		}
	}
	return why, next
}

// blockedAt is blocked for one worker.
func (o *Outlook) blockedAt(c Card, w queue.Work, now time.Time) (why string, next time.Time) {
	if most, limited := c.Caps[w.Tenant]; limited && o.runs[w.Tenant] >= most {
		if o.Brief {
			return "another run to end", time.Time{}
		}
		return fmt.Sprintf("a run of the tenant %s to end, of which %d may be under way at once", w.Tenant, most), time.Time{}
	}
	url := cmp.Or(c.Endpoints[w.Agent], w.Endpoint)
	at := slices.IndexFunc(o.Endpoints, func(e queue.Endpoint) bool { return e.URL == url })
	if at < 0 {
		return "", time.Time{}
	}
	if why = Closed(o.Endpoints[at]); why == "" {
		return "", time.Time{}
	}
	if wait := o.Endpoints[at].Wait; wait > 0 && o.Endpoints[at].Stopped == "" {
		next = now.Add(wait)
	}
	if o.Brief {
		return "its endpoint, which takes no run now", next
	}
	return "its endpoint " + url + ", which " + why, next
}

// Closed says in words why no run may begin at an endpoint now, as the end of a sentence about
// it, or returns "".
func Closed(e queue.Endpoint) string {
	switch {
	case e.Stopped != "":
		return "was stopped: " + e.Stopped
	case e.Wait > 0:
		return "asked to wait for another " + e.Wait.Round(time.Second).String()
	case e.Runs > 0 && int64(e.Running) >= e.Runs:
		return fmt.Sprintf("has as many runs as it may have at once (%d)", e.Runs)
	}
	return ""
}
