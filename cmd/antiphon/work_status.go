// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/worker"
)

// workRow is a piece of work as commands print it.
type workRow struct {
	Session  string      `json:"session"`
	Name     string      `json:"name,omitempty"`
	State    queue.State `json:"state"`
	Waits    string      `json:"waits"` // who or what it waits for, or who does it
	Since    time.Time   `json:"since"`
	Next     time.Time   `json:"next,omitzero"` // the next try
	Attempts int         `json:"attempts"`
	Tenant   string      `json:"tenant,omitempty"`
	Priority int         `json:"priority,omitempty"`
	Needs    []string    `json:"needs,omitempty"`
	Agent    string      `json:"agent"`
	Worker   string      `json:"worker,omitempty"`
	Endpoint string      `json:"endpoint,omitempty"`

	path string     // of the agent's file
	work queue.Work // as it was read
}

// called returns the name that people use.
func (r *workRow) called() string { return cmp.Or(r.Name, r.Session) }

// queueOf returns the queue of a store.
func queueOf(in keeper) (queue.Queue, error) { return as[queue.Queue](in, "keep work") }

// rows returns work in the order of its change, and with its session's name.
func rows(ctx context.Context, in keeper, only string, states ...queue.State) (list []workRow, err error) {
	q, err := queueOf(in)
	if err != nil {
		return nil, err
	}
	if only != "" {
		info, err := find(ctx, in, only, false)
		if err != nil {
			return nil, err
		}
		only = info.ID
	}
	var works []queue.Work
	for w, err := range q.Works(ctx, states...) {
		if err != nil {
			return nil, err
		}
		if only == "" || w.Session == only {
			works = append(works, w)
		}
	}
	now := time.Now()
	for _, w := range works {
		info, err := in.Info(ctx, w.Session)
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return nil, err
		}
		r := workRow{
			Session: w.Session, Name: info.Name, State: w.State, Waits: worker.Waits(w, now), Since: w.Since, Attempts: w.Attempts,
			Tenant: w.Tenant, Priority: w.Priority, Needs: w.Needs, Agent: w.Agent, Worker: w.Worker, Endpoint: w.Endpoint, path: info.Path, work: w,
		}
		if (w.State == queue.Ready || w.State == queue.Waiting) && w.Due.After(now) {
			r.Next = w.Due
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b workRow) int { return a.Since.Compare(b.Since) })
	return list, nil
}

// workStatusCommand is antiphon work status.
type workStatusCommand struct {
	Session string `arg:"" optional:"" help:"Only the work of this session."`
}

// Run prints why work does not move.
func (c *workStatusCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error {
		states := []queue.State{queue.Running, queue.Ready, queue.Waiting, queue.Parked}
		if c.Session != "" {
			states = nil
		}
		list, err := rows(ctx, in, c.Session, states...)
		if err != nil {
			return err
		}
		q, err := queueOf(in)
		if err != nil {
			return err
		}
		m, err := worker.Measure(ctx, q)
		if err != nil {
			return err
		}
		cards, known, err := worker.Running(ctx, in)
		if err != nil {
			return err
		}
		var idle []queue.Endpoint
		if limits, ok := in.(queue.Limits); ok && c.Session == "" {
			if idle, err = limits.Endpoints(ctx); err != nil {
				return err
			}
		}
		if all.JSON {
			return all.printJSON(std, struct {
				Work  []workRow           `json:"work"`
				Count map[queue.State]int `json:"count"`
				Age   float64             `json:"age_seconds"`
				Now   []worker.Card       `json:"workers"` // that run
			}{append([]workRow{}, list...), m.Works, m.Age.Seconds(), append([]worker.Card{}, cards...)})
		}
		w := tabwriter.NewWriter(std.out, 0, 4, 2, ' ', 0)
		for i := range list {
			r := &list[i]
			said := r.Waits
			asks := worker.AwaitsApproval(r.work)
			if !r.Next.IsZero() && !asks { // else it says until when
				said += "; next try " + r.Next.Local().Format(time.DateTime)
			}
			switch {
			case asks:
				said += "; antiphon sessions approve " + quoted(r.called())
			case r.State == queue.Parked:
				said += "; antiphon work retry " + quoted(r.called())
			}
			fmt.Fprintf(w, "%s\tsince %s\t%s\n", visible(r.called()), when(r.Since), printable(all.hide(said)))
		}
		for _, e := range idle {
			if why := idleBecause(e); why != "" {
				fmt.Fprintf(w, "%s\t\t%s\n", visible(e.URL), printable(all.hide(why)))
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		said := measured(m)
		switch {
		case !known:
		case len(cards) > 0:
			said += "; " + plural(len(cards), "worker") + " running"
		case m.Works[queue.Ready] > 0:
			said += "; no worker runs: antiphon work --agents DIR starts one"
		}
		fmt.Fprintf(std.err, "antiphon: %s\n", said)
		return nil
	})
}

// measured describes a queue.
func measured(m worker.Metrics) string {
	var parts []string
	for _, s := range []queue.State{queue.Running, queue.Ready, queue.Waiting, queue.Parked, queue.Done} {
		if m.Works[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", m.Works[s], s))
		}
	}
	if len(parts) == 0 {
		return "there is no work"
	}
	text := strings.Join(parts, ", ")
	if m.Works[queue.Ready] > 0 && m.Age > 0 {
		text += "; the oldest that could begin waits for " + m.Age.Round(time.Second).String()
	}
	return text
}

// workListCommand is antiphon work list.
type workListCommand struct {
	State  string `placeholder:"STATE" enum:",ready,running,waiting,parked,done" default:"" help:"Only work in this state: ready, running, waiting, parked or done."`
	Tenant string `placeholder:"TENANT" help:"Only the work of this tenant."`
}

// Run lists.
func (c *workListCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error {
		var states []queue.State
		if c.State != "" {
			states = append(states, queue.State(c.State))
		}
		list, err := rows(ctx, in, "", states...)
		if err != nil {
			return err
		}
		if c.Tenant != "" {
			list = slices.DeleteFunc(list, func(r workRow) bool { return r.Tenant != c.Tenant })
		}
		if all.JSON {
			return all.printJSON(std, append([]workRow{}, list...))
		}
		if len(list) == 0 {
			if c.State != "" || c.Tenant != "" {
				fmt.Fprintln(std.err, "antiphon: there is no such work; antiphon work list shows all")
				return nil
			}
			fmt.Fprintln(std.err, "antiphon: there is no work; antiphon work submit makes some")
			return nil
		}
		w := tabwriter.NewWriter(std.out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "SESSION\tNAME\tSTATE\tSINCE\tATTEMPTS\tTENANT\tAGENT\tWORKER")
		for _, r := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", r.Session, visible(r.Name), r.State, when(r.Since), r.Attempts,
				visible(cmp.Or(r.Tenant, "-")), r.Agent[:min(12, len(r.Agent))], visible(cmp.Or(r.Worker, "-")))
		}
		return w.Flush()
	})
}

// chosenWork selects the work that a command is about.
type chosenWork struct {
	Sessions []string `arg:"" optional:"" help:"The sessions."`
	Tenant   string   `placeholder:"TENANT" help:"All of this tenant."`
	Agent    string   `placeholder:"AGENT" help:"All of this agent: its file, or the beginning of the hash of its definition."`
	Endpoint string   `placeholder:"URL" help:"The endpoint with this base URL, for all workers, and what runs there."`
	All      bool     `help:"All."`
}

// check completes the selection.
func (c *chosenWork) check() (err error) {
	if len(c.Sessions) == 0 && c.Tenant == "" && c.Agent == "" && c.Endpoint == "" && !c.All {
		return usage(errors.New("name the sessions, or give --tenant TENANT, --agent AGENT, --endpoint URL or --all"))
	}
	if c.Endpoint != "" {
		if c.Endpoint, err = baseURL(c.Endpoint); err != nil {
			return usage(err)
		}
	}
	return nil
}

// selects reports whether a row belongs to the tenant or the agent that is meant.
func (c *chosenWork) selects(r *workRow, file string) bool {
	if c.Tenant != "" && r.Tenant == c.Tenant {
		return true
	}
	return c.Agent != "" && (file != "" && r.path == file || len(c.Agent) >= shortestHash && strings.HasPrefix(r.Agent, c.Agent))
}

// shortestHash is how much of a hash names an agent.
const shortestHash = 8

// chosen returns the work, of all in some states or named one by one.
func (c *chosenWork) chosen(ctx context.Context, in keeper, states ...queue.State) (list []workRow, err error) {
	every, err := rows(ctx, in, "", states...)
	if err != nil || c.All {
		return every, err
	}
	file := ""
	if c.Agent != "" { // if it is not a file, it may be a hash
		if file, err = host.ResolvePath(c.Agent); err != nil && len(c.Agent) < shortestHash {
			return nil, usage(err)
		}
	}
	for i := range every {
		if c.selects(&every[i], file) {
			list = append(list, every[i])
		}
	}
	for _, name := range c.Sessions {
		info, err := findWhole(ctx, in, name, false)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(every, func(r workRow) bool { return r.Session == info.ID })
		if i < 0 {
			return nil, usage(fmt.Errorf("%s has no work that is %s", quoted(name), oneOf(states)))
		}
		list = append(list, every[i])
	}
	return list, nil
}

func oneOf(states []queue.State) string {
	var names []string
	for _, s := range states {
		names = append(names, string(s))
	}
	return strings.Join(names, " or ")
}

// moveRow changes the state of a piece of work if it is still in one of some states, and
// reports whether it was.
func moveRow(ctx context.Context, q queue.Queue, r workRow, to queue.State, reason string, from []queue.State) (moved bool, err error) {
	for w := r.work; slices.Contains(from, w.State); {
		if err := q.Move(ctx, w, to, reason); !errors.Is(err, queue.ErrChanged) {
			return err == nil, err
		}
		if w, err = q.Work(ctx, r.Session); errors.Is(err, session.ErrNotFound) {
			return false, nil // it was deleted since
		} else if err != nil {
			return false, err
		}
	}
	return false, nil
}

// move changes the state of work and prints what was done.
func (c *workCommand) move(ctx context.Context, std stdio, all *sessionsCommand, in keeper, list []workRow, to queue.State, reason string, from []queue.State) error {
	q, err := queueOf(in)
	if err != nil {
		return err
	}
	done := []string{}
	for _, r := range list {
		moved, err := moveRow(ctx, q, r, to, reason, from)
		switch {
		case err != nil:
			return err
		case moved:
			done = append(done, r.Session)
		default:
			fmt.Fprintf(std.err, "antiphon: %s was left: its work is no longer %s\n", quoted(r.called()), oneOf(from))
		}
	}
	return all.told(std, done, "%s: %s", plural(len(done), "session"), to)
}

// workParkCommand is antiphon work park.
type workParkCommand struct {
	chosenWork
	Reason string `placeholder:"TEXT" help:"Why, for people."`
}

// Run parks.
func (c *workParkCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	if err := c.check(); err != nil {
		return err
	}
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error {
		states := []queue.State{queue.Running, queue.Ready, queue.Waiting}
		list, err := c.chosen(ctx, in, states...)
		if err != nil {
			return err
		}
		if c.Endpoint != "" {
			if err := c.stop(ctx, in, &list); err != nil {
				return err
			}
		}
		return work.move(ctx, std, all, in, list, queue.Parked, cmp.Or(c.Reason, "an operator parked it"), states)
	})
}

// stop stops an endpoint, and adds what runs there to the list of what is parked. What does
// not run stays as it is, because it cannot begin.
func (c *workParkCommand) stop(ctx context.Context, in keeper, list *[]workRow) error {
	limits, err := limitsOf(in)
	if err != nil {
		return err
	}
	why := cmp.Or(c.Reason, "an operator stopped it")
	if err := limits.Stop(ctx, c.Endpoint, why); err != nil {
		return err
	}
	c.Reason = stoppedEndpoint(c.Endpoint) + ": " + why
	running, err := rows(ctx, in, "", queue.Running)
	for _, r := range running {
		if r.Endpoint == c.Endpoint && !slices.ContainsFunc(*list, func(o workRow) bool { return o.Session == r.Session }) {
			*list = append(*list, r)
		}
	}
	return err
}

// stoppedEndpoint is the reason of work that was parked because its endpoint was stopped,
// and the beginning of that of a run that found it so.
func stoppedEndpoint(url string) string { return "the endpoint " + url + " was stopped" }

// workRetryCommand is antiphon work retry.
type workRetryCommand struct {
	chosenWork
	Drained bool `help:"All that antiphon work drain has parked."`
}

// drainedReason is the reason of work that was parked by antiphon work drain.
const drainedReason = "drained by an operator"

// Run makes work ready.
func (c *workRetryCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	if c.Drained {
		c.All = true
	}
	if err := c.check(); err != nil {
		return err
	}
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error {
		states := []queue.State{queue.Parked}
		if len(c.Sessions) > 0 {
			states = append(states, queue.Ready, queue.Waiting, queue.Done)
		}
		list, err := c.chosen(ctx, in, states...)
		if err != nil {
			return err
		}
		if c.Drained {
			list = slices.DeleteFunc(list, func(r workRow) bool { return !strings.HasSuffix(r.Waits, ": "+drainedReason) })
		}
		if c.Endpoint != "" {
			if err := c.allow(ctx, in, &list); err != nil {
				return err
			}
		}
		return work.move(ctx, std, all, in, list, queue.Ready, "an operator retries it", states)
	})
}

// allow lets an endpoint take requests again, and adds what was parked because it was
// stopped.
func (c *workRetryCommand) allow(ctx context.Context, in keeper, list *[]workRow) error {
	limits, err := limitsOf(in)
	if err != nil {
		return err
	}
	if err := limits.Stop(ctx, c.Endpoint, ""); err != nil {
		return err
	}
	parked, err := rows(ctx, in, "", queue.Parked)
	for _, r := range parked {
		if strings.HasPrefix(r.work.Reason, stoppedEndpoint(c.Endpoint)) && !slices.ContainsFunc(*list, func(o workRow) bool { return o.Session == r.Session }) {
			*list = append(*list, r)
		}
	}
	return err
}

// workDrainCommand is antiphon work drain.
type workDrainCommand struct {
	Tenant string        `placeholder:"TENANT" help:"Only the work of this tenant."`
	Wait   time.Duration `default:"1m" placeholder:"TIME" help:"How long to wait for what runs."`
}

// Run parks what is ready, and waits for the end of what runs.
func (c *workDrainCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	if c.Wait < 0 {
		return usage(errors.New("--wait cannot be negative"))
	}
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error {
		q, err := queueOf(in)
		if err != nil {
			return err
		}
		changed := make(chan struct{}, 1)
		defer q.Awaited(func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})()
		late := time.NewTimer(c.Wait)
		defer late.Stop()
		poll := time.NewTicker(time.Second / 4)
		defer poll.Stop()
		parked := []string{}
		for {
			list, err := rows(ctx, in, "", queue.Ready, queue.Running)
			if err != nil {
				return err
			}
			runs := 0
			for _, r := range list {
				switch {
				case c.Tenant != "" && r.Tenant != c.Tenant:
				case r.State == queue.Running:
					runs++
				default:
					moved, err := moveRow(ctx, q, r, queue.Parked, drainedReason, []queue.State{queue.Ready})
					if err != nil {
						return err
					}
					if moved {
						parked = append(parked, r.Session)
					} else {
						runs++ // or it is done: the next look says
					}
				}
			}
			if runs == 0 {
				return all.told(std, parked, "%s parked; antiphon work retry --drained makes them ready again", plural(len(parked), "session"))
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-late.C:
				return fmt.Errorf("%s still run; antiphon work park --all stops them", plural(runs, "session"))
			case <-changed:
			case <-poll.C:
			}
		}
	})
}
