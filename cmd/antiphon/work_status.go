// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
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

	work queue.Work // as it was read
}

// called returns the name that people use.
func (r *workRow) called() string { return cmp.Or(r.Name, r.Session) }

// queueOf returns the queue of a store.
func queueOf(in keeper) (queue.Queue, error) { return as[queue.Queue](in, "keep work") }

// rows returns work in the order of its change, with its session's name and what it waits for.
func rows(ctx context.Context, in keeper, outlook *worker.Outlook, only string, states ...queue.State) (list []workRow, err error) {
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
			Session: w.Session, Name: info.Name, State: w.State, Since: w.Since, Attempts: w.Attempts,
			Tenant: w.Tenant, Priority: w.Priority, Needs: w.Needs, Agent: w.Agent, Worker: w.Worker, Endpoint: w.Endpoint, work: w,
		}
		r.Waits, r.Next = outlook.Waits(w, now)
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
		outlook, err := worker.Look(ctx, in)
		if err != nil {
			return err
		}
		list, err := rows(ctx, in, outlook, c.Session, states...)
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
		if all.JSON {
			return all.printJSON(std, struct {
				Work      []workRow           `json:"work"`
				Count     map[queue.State]int `json:"count"`
				Age       float64             `json:"age_seconds"`
				Now       []worker.Card       `json:"workers"` // that run
				Endpoints []endpointRow       `json:"endpoints"`
			}{append([]workRow{}, list...), m.Works, m.Age.Seconds(), append([]worker.Card{}, outlook.Workers...), endpointRows(outlook.Endpoints)}, json.FormatNilSliceAsNull(true))
		}
		if err := c.print(std, all, list, outlook); err != nil {
			return err
		}
		said := measured(m)
		switch {
		case !outlook.Known:
		case len(outlook.Workers) > 0:
			said += "; " + show.Plural(len(outlook.Workers), "worker") + " running"
		case m.Works[queue.Ready]+m.Works[queue.Running] > 0:
			said += "; no worker runs: antiphon work --agents DIR starts one"
		}
		fmt.Fprintf(std.err, "antiphon: %s\n", said)
		return nil
	})
}

// print prints why each work and each endpoint waits.
func (c *workStatusCommand) print(std stdio, all *sessionsCommand, list []workRow, outlook *worker.Outlook) error {
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
			said += parkedHint(r)
		}
		fmt.Fprintf(w, "%s\tsince %s\t%s\n", show.Visible(r.called()), when(r.Since), show.Printable(all.hide(said)))
	}
	for _, e := range outlook.Endpoints {
		if why := idleBecause(e); why != "" && c.Session == "" {
			fmt.Fprintf(w, "%s\t\t%s\n", show.Visible(e.URL), show.Printable(all.hide(why)))
		}
	}
	return w.Flush()
}

// parkedHint says what an operator can do about parked work. If no worker can do it, to try it
// again would only park it again.
func parkedHint(r *workRow) string {
	switch worker.Lacks(r.work) {
	case worker.LacksVersion:
		return "; antiphon work submit FILE " + quoted(r.called()) + " --upgrade goes on with the version that submits it"
	case worker.LacksAgreement:
		return "; put the file into the folder --agents of a worker, and agree to it if it has powers"
	case worker.LacksOther:
		return ""
	}
	return "; antiphon work retry " + quoted(r.called())
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
		outlook, err := worker.Look(ctx, in)
		if err != nil {
			return err
		}
		list, err := rows(ctx, in, outlook, "", states...)
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
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", r.Session, show.Visible(r.Name), r.State, when(r.Since), r.Attempts,
				show.Visible(cmp.Or(r.Tenant, "-")), r.Agent[:min(12, len(r.Agent))], show.Visible(cmp.Or(r.Worker, "-")))
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

// none reports whether nothing is selected.
func (c *chosenWork) none() bool {
	return len(c.Sessions) == 0 && c.Tenant == "" && c.Agent == "" && c.Endpoint == "" && !c.All
}

// check completes the selection.
func (c *chosenWork) check() (err error) {
	if c.none() {
		return usage(errors.New("name the sessions, or give --tenant TENANT, --agent AGENT, --endpoint URL or --all"))
	}
	if c.Endpoint != "" {
		if c.Endpoint, err = baseURL(c.Endpoint); err != nil {
			return usage(err)
		}
	}
	return nil
}

// shortestHash is how much of a hash names an agent.
const shortestHash = 8

// file returns the path that sessions have whose agent is selected, or "". The file may be gone, or be on another machine,
// where its work is to be stopped all the same.
func (c *chosenWork) file() string {
	if c.Agent == "" {
		return ""
	}
	if path, err := host.ResolvePath(c.Agent); err == nil {
		return path
	}
	path, err := filepath.Abs(c.Agent)
	if err != nil {
		return c.Agent
	}
	if folder, err := host.ResolvePath(filepath.Dir(path)); err == nil {
		path = filepath.Join(folder, filepath.Base(path))
	}
	return path
}

// found returns an error if an agent was selected that no work has, whatever its state: its name may be wrong.
// n is how much work was meant.
func (c *chosenWork) found(ctx context.Context, in keeper, n int) error {
	if n > 0 || c.Agent == "" {
		return nil
	}
	if _, err := host.ResolvePath(c.Agent); err == nil {
		return nil
	}
	agent := chosenWork{Agent: c.Agent}
	list, err := agent.chosen(ctx, in, nil, nil)
	if err != nil {
		return err
	}
	for _, err := range list {
		return err
	}
	return usage(fmt.Errorf("--agent %s: there is no such file here, and no such work whose agent has this path or a hash that begins so\n  hint: antiphon work list shows the hashes", quoted(c.Agent)))
}

// runningFirst returns work in some states, what runs first: it is to be stopped before the rest is
// looked at.
func runningFirst(ctx context.Context, q queue.Queue, states []queue.State) (list []queue.Work, err error) {
	for w, err := range q.Works(ctx, states...) {
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	rank := func(w queue.Work) int {
		if w.State == queue.Running {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b queue.Work) int { return cmp.Or(rank(a)-rank(b), a.Since.Compare(b.Since)) })
	return list, nil
}

// chosen yields the work in some states that is meant, what runs first. More selects further work,
// and may be nil. Rest gets the named sessions that have no such work; if it is nil, these are an error.
func (c *chosenWork) chosen(ctx context.Context, in keeper, more func(queue.Work) bool, rest func(session.Info) (bool, error), states ...queue.State) (iter.Seq2[queue.Work, error], error) {
	q, err := queueOf(in)
	if err != nil {
		return nil, err
	}
	file := c.file()
	named := map[string]bool{}
	for _, name := range c.Sessions {
		info, err := findWhole(ctx, in, name, false)
		if err != nil {
			return nil, err
		}
		w, err := q.Work(ctx, info.ID)
		switch {
		case err == nil && slices.Contains(states, w.State):
			named[info.ID] = true
			continue
		case err != nil && !errors.Is(err, session.ErrNotFound):
			return nil, err
		}
		done := false
		if rest != nil {
			if done, err = rest(info); err != nil {
				return nil, err
			}
		}
		if !done {
			return nil, usage(fmt.Errorf("%s has no work that is %s", quoted(name), oneOf(states)))
		}
	}
	list, err := runningFirst(ctx, q, states)
	return func(yield func(queue.Work, error) bool) {
		for _, w := range list {
			ok := c.All || named[w.Session] || more != nil && more(w) || c.Tenant != "" && w.Tenant == c.Tenant || len(c.Agent) >= shortestHash && strings.HasPrefix(w.Agent, c.Agent)
			if !ok && file != "" {
				info, err := in.Info(ctx, w.Session)
				if err != nil && !errors.Is(err, session.ErrNotFound) {
					yield(w, err)
					return
				}
				ok = info.Path == file
			}
			if ok && !yield(w, nil) {
				return
			}
		}
	}, err
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
func moveRow(ctx context.Context, q queue.Queue, w queue.Work, to queue.State, reason string, from []queue.State) (moved bool, err error) {
	for slices.Contains(from, w.State) {
		if err := q.Move(ctx, w, to, reason); !errors.Is(err, queue.ErrChanged) {
			return err == nil, err
		}
		if w, err = q.Work(ctx, w.Session); errors.Is(err, session.ErrNotFound) {
			return false, nil // it was deleted since
		} else if err != nil {
			return false, err
		}
	}
	return false, nil
}

// move changes the state of work and prints what was done. It returns how much work was in the list.
func (c *workCommand) move(ctx context.Context, std stdio, all *sessionsCommand, in keeper, list iter.Seq2[queue.Work, error], to queue.State, reason string, from []queue.State) (n int, err error) {
	q, err := queueOf(in)
	if err != nil {
		return 0, err
	}
	done := []string{}
	for w, err := range list {
		moved := false
		n++
		if err == nil {
			moved, err = moveRow(ctx, q, w, to, reason, from)
		}
		switch {
		case err != nil:
			return n, err
		case moved:
			done = append(done, w.Session)
		default:
			info, _ := in.Info(ctx, w.Session) // without a name, the id says which
			fmt.Fprintf(std.err, "antiphon: %s was left: its work is no longer %s\n", quoted(cmp.Or(info.Name, w.Session)), oneOf(from))
		}
	}
	return n, all.told(std, done, "%s: %s", show.Plural(len(done), "session"), to)
}

// stoppedEndpoint is the reason of work that was parked because its endpoint was stopped,
// and the beginning of that of a run that found it so.
func stoppedEndpoint(url string) string { return "the endpoint " + url + " was stopped" }

// workRetryCommand is antiphon work retry.
type workRetryCommand struct {
	chosenWork
	Drained bool `help:"What antiphon work drain has parked: all of it, or of what is named."`
}

// drainedBy begins the reason of work that was parked by antiphon work drain. The name of who did it
// follows.
const drainedBy = "drained by "

// Run makes work ready.
func (c *workRetryCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	if c.Drained && c.none() {
		c.All = true
	}
	if err := c.check(); err != nil {
		return err
	}
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error { return c.retry(ctx, std, in, work, all) })
}

// retry makes work of a store ready.
func (c *workRetryCommand) retry(ctx context.Context, std stdio, in keeper, work *workCommand, all *sessionsCommand) error {
	states := []queue.State{queue.Parked}
	if len(c.Sessions) > 0 {
		states = append(states, queue.Ready, queue.Waiting, queue.Done)
	}
	var there func(queue.Work) bool
	if c.Endpoint != "" {
		limits, err := limitsOf(in)
		if err == nil {
			err = limits.Stop(ctx, c.Endpoint, "")
		}
		if err != nil {
			return err
		}
		// What failed there and is to be tried later is tried now, because the endpoint's pause is over, too.
		now := time.Now()
		there = func(w queue.Work) bool {
			stopped := w.State == queue.Parked && strings.HasPrefix(w.Reason, stoppedEndpoint(c.Endpoint))
			return stopped || w.State == queue.Ready && w.Endpoint == c.Endpoint && w.Reason != "" && now.Before(w.Due)
		}
		states = append(states, queue.Ready)
	}
	list, err := c.chosen(ctx, in, there, nil, states...)
	if err != nil {
		return err
	}
	if there != nil && len(c.Sessions) == 0 { // of the rest, what is parked
		list = only(list, func(w queue.Work) bool { return w.State == queue.Parked || there(w) })
	}
	if c.Drained {
		list = only(list, func(w queue.Work) bool { return w.State == queue.Parked && strings.HasPrefix(w.Reason, drainedBy) })
	}
	n, err := work.move(ctx, std, all, in, list, queue.Ready, person.AccountName()+" retries it", states)
	return cmp.Or(err, c.found(ctx, in, n))
}

// only yields what fits, and errors.
func only(list iter.Seq2[queue.Work, error], fits func(queue.Work) bool) iter.Seq2[queue.Work, error] {
	return func(yield func(queue.Work, error) bool) {
		for w, err := range list {
			if (err != nil || fits(w)) && !yield(w, err) {
				return
			}
		}
	}
}

// workDrainCommand is antiphon work drain.
type workDrainCommand struct {
	Tenant string        `placeholder:"TENANT" help:"Only the work of this tenant."`
	Wait   time.Duration `default:"1m" placeholder:"TIME" help:"How long to wait for what runs."`
}

// Help is shown by antiphon work drain --help.
func (workDrainCommand) Help() string {
	return `Parks all work that is ready and waits for what runs, such as before maintenance. It
stops nothing: runs may end within --wait, and if some still run then, the exit code is
1. New work, and work that gets an answer, begins as usual while a worker runs.

antiphon work retry --drained undoes it.

Examples:
  antiphon work drain
  antiphon work drain --tenant anna --wait 10m`
}

// Run parks what is ready, and waits for the end of what runs.
func (c *workDrainCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	if c.Wait < 0 {
		return usage(errors.New("--wait cannot be negative"))
	}
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error { return c.drain(ctx, std, in, all) })
}

// drain parks what is ready in a store, and waits for what runs.
func (c *workDrainCommand) drain(ctx context.Context, std stdio, in keeper, all *sessionsCommand) error {
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
		list, err := rows(ctx, in, &worker.Outlook{}, "", queue.Ready, queue.Running)
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
				moved, err := moveRow(ctx, q, r.work, queue.Parked, drainedBy+person.AccountName(), []queue.State{queue.Ready})
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
		switch {
		case runs == 0 && len(parked) == 0:
			return all.told(std, parked, "nothing was ready, and nothing runs")
		case runs == 0:
			return all.told(std, parked, "%s parked; antiphon work retry --drained makes them ready again", show.Plural(len(parked), "session"))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return fmt.Errorf("%s still run; antiphon work park --all stops them", show.Plural(runs, "session"))
		case <-changed:
		case <-poll.C:
		}
	}
}
