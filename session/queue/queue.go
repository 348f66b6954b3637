// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue defines the queue of work: which sessions have something to do, who
// does it, and why the others wait. A store of sessions implements [Queue]; package
// worker takes the work.
//
// A session has at most one row of work. What there is to do stands in the session
// itself, as entries that have no answer and as deliveries in its inbox: the row says
// only that somebody must look, with which agent, and when. So a row that is lost,
// late or taken twice loses nothing: whoever runs the session must hold its lock.
package queue

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"
)

// ErrChanged means that somebody else has changed the work since it was read.
var ErrChanged = errors.New("somebody else has changed the work")

// FromPark is the means, as [session.Delivered] has it, of a request to stop by which an operator
// ends a run that no worker makes.
//
// [session.Delivered]: https://pkg.go.dev/github.com/antiphon-go/antiphon/session#Delivered
const FromPark = "work park"

// State says what happens to a piece of work.
type State string

const (
	// Ready work is done by the next worker that may, from Due on.
	Ready State = "ready"
	// Running work was begun by a worker. If that worker no longer holds the session, its
	// work may be begun again.
	Running State = "running"
	// Waiting work needs a delivery to the session, such as an approval: it is ready as
	// soon as one arrives. If it has a Due, it may also begin from then on.
	Waiting State = "waiting"
	// Parked work failed too often, or an operator parked it. It waits for an operator.
	Parked State = "parked"
	// Done work has its answer. A delivery to the session makes it ready again.
	Done State = "done"
)

// Work is the row of a session.
type Work struct {
	Session  string
	Agent    string    // the hash of the agent's definition: see package worker
	Tenant   string    // whose work it is, for shares and limits; may be empty
	Priority int       // higher is sooner, within a tenant
	Needs    []string  // labels that a worker must have
	Due      time.Time // not before; the zero value means now or, while it waits, never

	// Refuse refuses calls that need an approval. Otherwise they wait for one.
	Refuse bool

	// Endpoint is the base URL of the model that answers, without secrets, as far as the
	// worker that began it last knows. A worker sets it before Begin.
	Endpoint string

	// Cap is the most runs at once of the tenant, over all workers, which a worker sets before
	// Begin. 0 means no limit.
	Cap int

	// The store sets the rest.
	State    State
	Since    time.Time // the time of the last change of State
	Attempts int       // how often it was begun since it last went well
	Reason   string    // why it is in this state, for people
	Worker   string    // who began it last
	Claim    int64     // rises each time that it is begun
}

// Want selects work for a worker.
type Want struct {
	Labels []string // the worker's; work with other needs is not for it
	// Has reports whether the worker has a need that is not among its Labels. Nil means no. It
	// must not block or call the store.
	Has     func(need string) bool
	Agents  []string       // the definitions that it may run; nil means all
	Tenants []string       // whose work it does; nil means everybody's
	Most    int            // how many candidates, at least 1
	Caps    map[string]int // the most runs at once of a tenant; a tenant that is missing has no limit
}

// Lacks returns the needs of work that the worker does not have.
func (w Want) Lacks(work Work) (needs []string) {
	for _, need := range work.Needs {
		if !slices.Contains(w.Labels, need) && (w.Has == nil || !w.Has(need)) {
			needs = append(needs, need)
		}
	}
	return needs
}

// Outcome is how a worker leaves a piece of work.
type Outcome struct {
	State  State     // Ready, Waiting, Parked or Done
	Due    time.Time // for Ready and Waiting
	Reason string
	Well   bool // it went well: the attempts are counted from 0 again
	// Seen is the number of a delivery. Finish does not count the deliveries up to it as
	// waiting, because the run has left them for later: see session.Delivered.Queued.
	Seen int64
}

// Queue is implemented by stores that keep work. All times are the store's own.
type Queue interface {
	// Enqueue adds work of an existing session, or makes the work that it has ready with
	// the new agent, tenant, priority, needs, time and rule about approvals, unless it runs: then only a worker's
	// Finish decides, and it finds the deliveries.
	Enqueue(ctx context.Context, w Work) error
	// Candidates returns work that a worker may begin now: ready and due, waiting until a
	// time that has come, or running without its session being held. Tenants with fewer runs come first, and take turns; of
	// one tenant, higher priority comes first, then what is due longer.
	Candidates(ctx context.Context, want Want) ([]Work, error)
	// Lost returns work that is running without its session being held, whatever it needs: its
	// worker has died or was cut off. Candidates returns those that a worker may begin again.
	Lost(ctx context.Context) ([]Work, error)
	// Begin marks work as running, if it is still as Candidates returned it. The caller
	// holds the session. Otherwise the error wraps ErrChanged, or [ErrFull] if its tenant has
	// as many runs as its Cap, or the store keeps [Limits] and its Endpoint has as many as it may have.
	Begin(ctx context.Context, w Work, worker string) (Work, error)
	// Finish leaves work that Begin returned. If a delivery waits in the session's inbox,
	// Waiting and Done become Ready, and due at once. If somebody else has begun it, the error wraps ErrChanged.
	Finish(ctx context.Context, w Work, o Outcome) error
	// Work returns the work of a session, or an error that wraps session.ErrNotFound.
	Work(ctx context.Context, session string) (Work, error)
	// Works yields work in the order of sessions; states nil means all.
	Works(ctx context.Context, states ...State) iter.Seq2[Work, error]
	// Move changes the state of work by hand, if it is still as it was read: Parked stops it
	// at once if it runs (its worker notices), Ready tries it again with the attempts counted
	// from 0. If its state has changed or it was begun since, the error wraps ErrChanged.
	Move(ctx context.Context, w Work, to State, reason string) error
	// Awaited calls changed when work may have become ready by a call of this store, and
	// perhaps when another process has made it so: who waits must also look from time to
	// time. Changed must not block or call the store.
	Awaited(changed func()) (stop func())
}

// Reader is implemented by queues that read the work of several sessions at once.
type Reader interface {
	// WorkOf returns the work of those sessions that have some, in no particular order.
	WorkOf(ctx context.Context, sessions []string) ([]Work, error)
}
