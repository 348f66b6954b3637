// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// workParkCommand is antiphon work park.
type workParkCommand struct {
	chosenWork
	Reason string `placeholder:"TEXT" help:"Why, for people."`
}

// Help is shown by antiphon work park --help.
func (workParkCommand) Help() string {
	return `Stops work within a second and ends the programs of its calls, also at terminals and
servers that use the store. Parked work stays where it is until antiphon work retry.
Name sessions, or select work by --tenant, --agent, --endpoint or --all.

Work that is submitted later begins as usual. With --endpoint, workers send nothing
more to that endpoint until antiphon work retry --endpoint URL.

Examples:
  antiphon work park monday --reason "wrong branch"
  antiphon work park --agent agents/review.md
  antiphon work park --endpoint https://api.openai.com/v1`
}

// Run parks.
func (c *workParkCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	if err := c.check(); err != nil {
		return err
	}
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error { return c.park(ctx, std, in, work, all) })
}

// park stops work of a store. An endpoint is stopped first, so that nothing begins there
// meanwhile. What does not run there stays as it is, because it cannot begin. Then runs
// outside of the workers are asked to stop, which have no row that could be parked.
func (c *workParkCommand) park(ctx context.Context, std stdio, in keeper, work *workCommand, all *sessionsCommand) error {
	who := "by " + person.AccountName() + show.Colon(c.Reason)
	reason := "stopped " + who
	var there func(queue.Work) bool
	if c.Endpoint != "" {
		limits, err := limitsOf(in)
		if err != nil {
			return err
		}
		if err := limits.Stop(ctx, c.Endpoint, who); err != nil {
			return err
		}
		fmt.Fprintf(std.err, "antiphon: workers send nothing to %s until antiphon work retry --endpoint %s\n", show.Visible(c.Endpoint), quoted(c.Endpoint))
		reason = stoppedEndpoint(c.Endpoint) + ": " + who
		there = func(w queue.Work) bool { return w.State == queue.Running && w.Endpoint == c.Endpoint }
	}
	others, err := c.others(ctx, in)
	if err != nil {
		return err
	}
	for i := range others {
		if err := others[i].stop(ctx, in, c.Reason); err != nil {
			return err
		}
	}
	states := []queue.State{queue.Running, queue.Ready, queue.Waiting}
	ended := func(info session.Info) (bool, error) {
		return slices.ContainsFunc(others, func(r otherRun) bool { return r.info.ID == info.ID }), nil
	}
	list, err := c.chosen(ctx, in, there, ended, states...)
	if err != nil {
		return err
	}
	n, err := work.move(ctx, std, all, in, list, queue.Parked, reason, states)
	if err != nil {
		return err
	}
	return cmp.Or(tellStopped(ctx, std, in, others, reason), c.found(ctx, in, n+len(others)))
}

// otherRun is a run of a process that is not a worker: a terminal or a server.
type otherRun struct {
	info session.Info
	log  *session.Session
}

// others returns the runs outside of the workers that are meant. A worker stops those whose
// row says that they run.
func (c *workParkCommand) others(ctx context.Context, in keeper) (list []otherRun, err error) {
	locks, ok := in.(session.LockLister)
	if !ok {
		return nil, nil
	}
	ids, err := locks.Locked(ctx)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	q, err := queueOf(in)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, name := range c.Sessions {
		info, err := findWhole(ctx, in, name, false)
		if err != nil {
			return nil, err
		}
		named[info.ID] = true
	}
	for _, id := range ids {
		if _, nested := session.ParentOf(id); nested {
			continue
		}
		w, err := q.Work(ctx, id)
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return nil, err
		}
		if w.State == queue.Running {
			continue
		}
		one := otherRun{}
		if one.info, err = in.Info(ctx, id); err == nil {
			one.log, err = session.Open(ctx, in, id)
		}
		switch {
		case errors.Is(err, session.ErrNotFound): // it was deleted since
		case err != nil:
			return nil, err
		case attach.UnderWay(one.log) > 0 && (named[id] || c.means(&one, w)):
			list = append(list, one)
		}
	}
	return list, nil
}

// means reports whether a selection other than by name includes a run. w is the work of its
// session, or the zero value. The owner of a session without work counts as its tenant.
func (c *workParkCommand) means(r *otherRun, w queue.Work) bool {
	if c.All || c.Tenant != "" && cmp.Or(w.Tenant, r.info.Owner) == c.Tenant {
		return true
	}
	if c.Agent != "" && (r.info.Path == c.file() || len(c.Agent) >= shortestHash && strings.HasPrefix(w.Agent, c.Agent)) {
		return true
	}
	var setup session.Setup
	for e := range r.log.Entries() {
		setup.Apply(e.Body)
	}
	return c.Endpoint != "" && setup.Endpoint == c.Endpoint
}

// stop leaves the request to stop in the inbox of a run. It names the run, so that it ends no
// later one if this run has ended before it reads the request.
func (r *otherRun) stop(ctx context.Context, in keeper, reason string) error {
	d := session.Delivery{
		Delivered: session.Delivered{Key: rand.Text(), By: person.AccountName(), From: queue.FromPark},
		Bodies: []session.Body{session.StopAsked{
			Why: string(agent.StopRequested), Run: attach.UnderWay(r.log), Detail: "stopped by " + person.AccountName() + " with antiphon work park" + show.Colon(reason),
		}},
	}
	_, err := r.log.Deliver(ctx, d)
	return err
}

// stopsWithin is how long park waits until runs outside of the workers have stopped.
const stopsWithin = 2 * time.Second

// tellStopped says which runs have stopped. The work that their sessions have is parked, because the
// request to stop, as any delivery, has made it ready.
func tellStopped(ctx context.Context, std stdio, in keeper, others []otherRun, reason string) error {
	q, err := queueOf(in)
	if err != nil {
		return err
	}
	late := time.Now().Add(stopsWithin)
	for i := range others {
		r := &others[i]
		what := "was stopped"
		if stopped, err := r.stopped(ctx, in, late); err != nil {
			return err
		} else if !stopped {
			what = "was asked to stop, and has not stopped yet"
		}
		w, err := q.Work(ctx, r.info.ID)
		if err == nil {
			_, err = moveRow(ctx, q, w, queue.Parked, reason, []queue.State{queue.Running, queue.Ready, queue.Waiting})
		}
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return err
		}
		fmt.Fprintf(std.err, "antiphon: %s runs at a terminal or a server, and %s; nothing keeps a person or a client from running it again\n", quoted(cmp.Or(r.info.Name, r.info.ID)), what)
	}
	return nil
}

// stopped waits until a run has stopped, and reports false if it has not by then.
func (r *otherRun) stopped(ctx context.Context, in keeper, late time.Time) (bool, error) {
	for after := int64(len(r.log.Log())); ; {
		for e, err := range in.Load(ctx, r.info.ID, after) {
			if err != nil {
				return false, err
			}
			if _, ok := e.Body.(session.Stopped); ok {
				return true, nil
			}
			after = e.Seq
		}
		if !time.Now().Before(late) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
