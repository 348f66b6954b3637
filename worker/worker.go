// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package worker runs the sessions of a store that have something to do: any number of
// workers, in any number of processes and on any number of machines that share the store.
//
// [Submit] leaves work in the store: the agent's file with all that it includes as a
// value, a session, and the input in the inbox of the session. A [Worker] takes it when
// it is due, runs the session with exactly that value, and says in the store how that
// ended. A session whose run waits for an approval uses no worker; the answer, delivered
// by anybody, makes it ready again. If nobody answers in time, a worker continues
// without an answer.
//
// The session's log is authoritative, not the queue. A process that runs a session holds
// its lock and first reads the log. So if work is started twice, or its worker dies,
// nothing that the log records as done is done again: see package session.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// Worker runs sessions. Set its fields before Run; the fields named in their comments as
// optional have a default.
type Worker struct {
	// Config is how sessions are run: the Store, the endpoint, rules, limits, workspace,
	// sandbox and audit log. File, Session, Trust, Pause and Locked are set for each run:
	// nobody is at a terminal, so a call that needs an approval waits for a delivery.
	Config host.Config
	// Agents are the definitions that it may run.
	Agents *Agents
	// Name identifies the worker to people, such as the name of its machine and process.
	Name string

	// Labels are what the worker has, such as "gpu". It does no work that needs others. By itself
	// it also has "sandbox" if the system can confine programs, and "key=" with the base URL of
	// each endpoint for which its environment has a key.
	Labels []string
	// Host is the name of the worker's machine, which work names if its files are
	// only there. "" means that the worker does no such work.
	Host string
	// Volumes are folders, as full paths, in which sessions may work if their [Place] says so,
	// and in those below them. Work of one machine may also be in the workspace.
	Volumes []string
	// Repositories are the addresses of the git repositories that the worker may check out,
	// for sessions whose [Place] names one. An address that ends in "/" includes all
	// repositories below it.
	Repositories []string
	// Checkouts is the folder for these checkouts. "" means that there are none. An approval
	// holds for a call in one folder, so it has the same path at all workers.
	Checkouts string
	// KeepCheckouts is how long a checkout stays on the disk after the last run in it, if all its
	// changes are in the store. The next run makes it again, without the files that git ignores.
	// 0 means for ever.
	KeepCheckouts time.Duration
	// Tenants are those whose work it does. Nil means everybody's.
	Tenants []string
	// Caps are the most runs at once of a tenant, over all workers.
	Caps map[string]int
	// Runs is the most runs at once. 0 means 4.
	Runs int
	// Attempts is how often work may begin without going well. Then it is parked, with the
	// reason. 0 means 5.
	Attempts int
	// Backoff is the pause after a failed attempt, of which the first is number 1. Nil means
	// one that doubles from a second to five minutes, with jitter.
	Backoff func(attempt int) time.Duration
	// Drain is how long runs may take to end their turn when the worker stops. After that
	// they are cancelled. 0 means 30 seconds.
	Drain time.Duration
	// Patience is how long work waits for a worker that perhaps can do it, before one that cannot
	// parks it and says what is missing. 0 means a minute. Work that none of the workers of a
	// store that keeps a [queue.Roster] can do is parked at once.
	Patience time.Duration
	// ApprovalTime is how long an approval waits for each of the Approvers, one after the
	// other. After the last of them the call does not run, and the model reads that nobody
	// answered. 0 means for ever.
	ApprovalTime time.Duration
	// Approvers are the names of those who are asked, for people: the queue says whose answer
	// is awaited, and anybody may answer. Nil means one whose name is not known.
	Approvers []string
	// Prepare changes the agent of an open session before its run, for example as the request
	// says that the session answers. An error that wraps [ErrOver] leaves the session as it
	// is. If live is not nil, it is told the events of the run as they come, and nil when the run has ended, before
	// the session is closed. It must not wait. Prepare may be nil.
	Prepare func(ctx context.Context, h *host.Host) (live func(agent.Event), err error)
	// Poll is how often the worker looks for work if nothing wakes it. 0 means a second.
	Poll time.Duration
	// Log gets an event for each piece of work, without texts of the conversation. It is
	// optional.
	Log *slog.Logger

	// In simulations only: what it may run, and what draws a number from 0 to 1.
	stage stage
	draw  func() float64

	counting sync.Mutex
	counts   Counts
}

// Counts are what a worker has done since it started.
type Counts struct {
	Running int // now
	Begun   int64
	Done    int64 // ended with an answer
	Waiting int64 // ended because an answer of a person is needed
	Retried int64 // failed, and will be tried again
	Parked  int64 // failed for good, or could not be done
	// ParkedFor splits Parked by the kind of reason, of which there are few.
	ParkedFor map[string]int64

	Turns int64 // replies of models
	Calls int64 // calls that have their output
	Lost  int64 // sessions that another process had taken, because this one was frozen or cut off
}

// Counts returns the counts.
func (w *Worker) Counts() Counts {
	w.counting.Lock()
	defer w.counting.Unlock()
	c := w.counts
	c.ParkedFor = maps.Clone(c.ParkedFor)
	return c
}

// park counts work that was parked.
func (c *Counts) park(kind string) {
	c.Parked++
	if c.ParkedFor == nil {
		c.ParkedFor = map[string]int64{}
	}
	c.ParkedFor[kind]++
}

func (w *Worker) tally(change func(*Counts)) {
	w.counting.Lock()
	defer w.counting.Unlock()
	change(&w.counts)
}

// Run takes work until ctx is done. Then it takes no more, lets each run end its turn, and
// gives back what is not finished, for other workers. Run returns nil after that. An error
// of the store is logged and tried again, except for the first.
func (w *Worker) Run(ctx context.Context) error { return w.work(ctx, false) }

// Once is like Run, but returns as soon as there is nothing left that it may do now.
func (w *Worker) Once(ctx context.Context) error { return w.work(ctx, true) }

// pool is the runs of a worker.
type pool struct {
	*Worker
	queue  queue.Queue
	inbox  session.Inbox
	stage  stage
	limits queue.Limits // nil if the store keeps none
	// schedules are nil if the store keeps none.
	schedules queue.Schedules
	roster    *roster
	labels    []string // with those that it has by itself
	once      bool
	log       *slog.Logger
	fired     time.Time // when it looked at the schedules
	firedAll  time.Time // and also at those that are not due
	damage    string    // of schedules, as it was logged last
	looked    time.Time // when it looked after work that nobody does
	glanced   time.Time // when it looked only for what no worker can do
	listed    time.Time // sessions that were written before are known
	// lost is since when it knows that the worker of a piece of work has died, by its claim.
	lost map[claim]time.Time

	wake chan struct{}  // has an element if there may be something to do
	all  sync.WaitGroup // the goroutines of the runs

	mu   sync.Mutex          // guards what follows
	runs map[string]*running // by session
	// skip are sessions that cannot begin now, such as those that a person has open, and
	// when to try again.
	skip   map[string]time.Time
	ended  bool // a run has ended during the round, so there may be more to do
	drains bool // no more work is taken, and runs end with their turn
}

// claim is one beginning of a piece of work.
type claim struct {
	session string
	number  int64
}

// running is a run.
type running struct {
	work   queue.Work // as it was begun, once it was
	cancel context.CancelCauseFunc
	begun  bool         // the queue says that it runs
	open   conversation // nil until it is open
	moved  string       // why the session goes on elsewhere; only for its own goroutine
}

// Causes of the end of a run's context.
var (
	errDrained   = errors.New("the worker stops")
	errElsewhere = errors.New("another worker has it, or its session was deleted")
)

// parkedError is the cause of the end of a run whose work somebody parked.
type parkedError struct{ reason string }

func (e *parkedError) Error() string { return "parked: " + e.reason }

func (w *Worker) work(ctx context.Context, once bool) error {
	if w.stage == nil && (w.Agents == nil || w.Agents.Agreed == nil || w.Agents.Folder == "") {
		return errors.New("worker: no Agents are set")
	}
	if i := slices.IndexFunc(w.Labels, isPlace); i >= 0 {
		return &host.ConfigError{Err: fmt.Errorf("the label %q is a place\n  hint: the host and the volumes of a worker say which places it has", w.Labels[i])}
	}
	q, box, err := parts(w.Config.Store)
	if err != nil {
		return err
	}
	p := &pool{
		Worker: w, queue: q, inbox: box, once: once, log: w.Log, wake: make(chan struct{}, 1), runs: map[string]*running{}, skip: map[string]time.Time{},
	}
	p.limits, _ = p.Config.Store.(queue.Limits)
	p.schedules, _ = p.Config.Store.(queue.Schedules)
	p.labels = slices.Concat(w.Labels, w.own())
	p.roster = newRoster(p)
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.log = p.log.With("worker", w.Name)
	if p.stage = w.stage; p.stage == nil {
		p.stage = &files{w, p.log, map[string]agentfile.Definition{}, map[string]string{}, map[string]string{}, map[string]bool{}}
	}
	defer q.Awaited(p.stir)()
	p.log.Info("worker started", "runs", p.most())
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { p.watch(context.WithoutCancel(ctx), done) })
	watch.Go(func() { w.sweeping(ctx, done) })
	err = p.loop(ctx)
	p.drain()
	close(done)
	watch.Wait()
	if failed := p.roster.leave(context.WithoutCancel(ctx)); failed != nil {
		p.log.Error("the store failed", "error", failed.Error())
	}
	p.log.Info("worker stopped")
	return err
}

// orElse returns value, or the default if it is not positive.
func orElse[T int | time.Duration](value, usual T) T {
	if value > 0 {
		return value
	}
	return usual
}

// most is the most runs at once.
func (p *pool) most() int { return orElse(p.Runs, 4) }

// chance draws a number from 0 to 1.
func (w *Worker) chance() float64 {
	if w.draw != nil {
		return w.draw()
	}
	return rand.Float64()
}

// pause is the time between two looks for work.
func (p *pool) pause() time.Duration { return orElse(p.Poll, time.Second) }

// stir makes the loop look for work.
func (p *pool) stir() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// loop takes work until ctx is done or, with once, until there is nothing to do.
func (p *pool) loop(ctx context.Context) error {
	poll := time.NewTicker(p.pause())
	defer poll.Stop()
	for first := true; ; first = false {
		busy, err := p.round(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (first || p.once):
			return err
		case err != nil:
			p.log.Error("the store failed", "error", err.Error())
		case p.once && !busy:
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-poll.C:
		}
		// If both are there, one look is enough, and a simulation replays exactly.
		select {
		case <-p.wake:
		default:
		}
		select {
		case <-poll.C:
		default:
		}
	}
}

// parkedPoll is how often a worker looks whether its runs were parked, so that they stop
// within a second.
const parkedPoll = 250 * time.Millisecond

// watch ends the runs whose work was parked, until done is closed: also while the loop is
// busy or waits for the last runs. A failure of the store is left to the loop to report.
func (p *pool) watch(ctx context.Context, done <-chan struct{}) {
	poll := time.NewTicker(min(p.pause(), parkedPoll))
	defer poll.Stop()
	for {
		select {
		case <-done:
			return
		case <-poll.C:
			_ = p.stopParked(ctx)
		}
	}
}

// round begins what may begin, and parks what nobody does. It reports whether something
// runs or may begin.
func (p *pool) round(ctx context.Context) (busy bool, err error) {
	p.mu.Lock()
	p.ended = false
	p.mu.Unlock()
	if err := p.roster.enter(ctx); err != nil {
		return false, err
	}
	if err := p.fire(ctx); err != nil {
		return false, err
	}
	if err := p.fill(ctx); err != nil {
		return true, err
	}
	moved, err := p.lookAfter(ctx) // also if there is no room: it may be hours until there is
	if moved {
		p.stir()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return moved || p.ended || len(p.runs) > 0, err
}

// count is the number of runs.
func (p *pool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.runs)
}

// stopParked ends the runs whose work was parked by somebody.
func (p *pool) stopParked(ctx context.Context) error {
	p.mu.Lock()
	var ours []running // as they are now
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(p.runs)) {
		if r := p.runs[id]; r.begun {
			ours, ids = append(ours, running{work: r.work, cancel: r.cancel}), append(ids, id)
		}
	}
	p.mu.Unlock()
	now, err := worksOf(ctx, p.queue, ids)
	if err != nil {
		return err
	}
	for _, r := range ours {
		switch w, known := now[r.work.Session]; { // or it has just ended, and cancelling it changes nothing
		case known && w.State == queue.Parked:
			r.cancel(&parkedError{w.Reason})
		case !known || w.State != queue.Running || w.Claim != r.work.Claim:
			r.cancel(errElsewhere)
		}
	}
	return nil
}

// fill begins work while there is room.
func (p *pool) fill(ctx context.Context) error {
	hashes, err := p.stage.fits()
	if err != nil {
		return err
	}
	p.mu.Lock()
	room := p.most() - len(p.runs)
	now := time.Now()
	maps.DeleteFunc(p.skip, func(_ string, until time.Time) bool { return now.After(until) })
	most := room + len(p.runs) + len(p.skip)
	p.mu.Unlock()
	if room <= 0 || len(hashes) == 0 { // no hashes would mean all
		return nil
	}
	want := p.want()
	want.Agents, want.Most = hashes, most
	list, err := p.choose(ctx, want)
	for _, c := range list {
		if p.begin(ctx, c.Work, c.open); p.count() >= p.most() {
			break
		}
	}
	return err
}

// choice is work that may begin, with what opens its session.
type choice struct {
	queue.Work
	open opener
}

// choose returns work that may begin. What cannot begin because of its endpoint keeps nothing
// else from it.
func (p *pool) choose(ctx context.Context, want queue.Want) (list []choice, err error) {
	works, err := p.queue.Candidates(ctx, want)
	if err != nil || len(works) == 0 { // an idle worker asks for no limits
		return nil, err
	}
	shut, full, err := closed(ctx, p.limits)
	if err != nil {
		return nil, err
	}
	first, err := p.orphansAt(ctx, full, want)
	for err == nil {
		list = nil
		for _, w := range works {
			c, err := p.choiceOf(ctx, w)
			if err != nil {
				return nil, err
			}
			// What has no opener is parked by lookAfter, unless another worker is faster.
			if c.open != nil && !shut[c.Endpoint] && !full[c.Endpoint] {
				list = append(list, c)
			}
		}
		// The endpoint of an agent may be known only now.
		agents := slices.DeleteFunc(slices.Clone(want.Agents), func(hash string) bool { url := p.stage.url(hash); return shut[url] || full[url] })
		if len(agents) == len(want.Agents) || len(agents) == 0 {
			break
		}
		want.Agents = agents
		works, err = p.queue.Candidates(ctx, want)
	}
	return append(first, list...), err
}

// choiceOf completes work. Its open is nil if the worker cannot run it.
func (p *pool) choiceOf(ctx context.Context, w queue.Work) (c choice, err error) {
	c.Work = w
	c.open, c.Endpoint, err = p.stage.opener(ctx, w)
	c.Cap = p.Caps[w.Tenant]
	return c, err
}

// orphansAt returns work at endpoints whose places are all taken that has such a place already:
// its worker has died.
func (p *pool) orphansAt(ctx context.Context, full map[string]bool, want queue.Want) (list []choice, err error) {
	if len(full) == 0 {
		return nil, nil
	}
	works, err := p.queue.Lost(ctx)
	for _, w := range works {
		if !slices.Contains(want.Agents, w.Agent) || !p.serves(w.Tenant) || len(want.Lacks(w)) > 0 {
			continue
		}
		c, err := p.choiceOf(ctx, w)
		if err != nil {
			return nil, err
		}
		if c.open != nil && full[c.Endpoint] && w.Endpoint == c.Endpoint {
			list = append(list, c)
		}
	}
	return list, err
}

// begin starts the run of a piece of work, unless it runs already.
func (p *pool) begin(ctx context.Context, w queue.Work, open opener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, skipped := p.skip[w.Session]; skipped || p.runs[w.Session] != nil || p.drains {
		return
	}
	// A worker that stops lets its runs end their turn.
	held, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &running{work: w, cancel: cancel}
	p.runs[w.Session] = r
	p.all.Go(func() {
		defer cancel(nil)
		began := p.perform(held, r, open)
		p.mu.Lock()
		delete(p.runs, w.Session)
		p.ended = true
		if !began {
			p.skip[w.Session] = time.Now().Add(p.pause())
		}
		p.mu.Unlock()
		p.stir()
	})
}

// needed begins the reason of work that is parked because no worker can do it. A worker
// that can makes it ready again.
const needed = "needs "

// These begin what a worker may lack.
const (
	noDefinition = needed + "its agent's definition: "
	noVersion    = needed + "a worker of the version "
	noAgreement  = needed + "the agreement of "
)

// lookAfter parks work that no worker has taken because something is missing, and makes
// ready what this worker can do by now.
func (p *pool) lookAfter(ctx context.Context) (moved bool, err error) {
	began := time.Now()
	states := p.lookedFor(began)
	if len(states) == 0 {
		return false, nil
	}
	hashes, err := p.stage.agreed()
	if err != nil {
		return false, err
	}
	nobodyDoes, err := p.roster.read(ctx)
	if err != nil {
		return false, err
	}
	list, moved, err := p.collect(ctx, states)
	if err != nil {
		return moved, err
	}
	for _, w := range list {
		why, err := p.missing(ctx, w, hashes)
		if err != nil {
			return moved, err
		}
		hopeless := why != "" && nobodyDoes(w, why, p.waitedLong(w) && p.serves(w.Tenant))
		to, reason := verdict(w, why, p.waitsForEver(w), hopeless)
		if err := p.apply(ctx, w, to, reason); err != nil {
			return moved || to == queue.Ready, err
		}
		moved = moved || to == queue.Ready
	}
	// A look takes its time if there is much work, so that there are fewer of them then.
	p.glanced = time.Now().Add(max(p.pause(), 50*time.Since(began)))
	return moved, nil
}

// patience is how long work that this worker cannot do waits for one that can.
func (p *pool) patience() time.Duration {
	if p.once {
		return 0
	}
	return orElse(p.Patience, time.Minute)
}

// lookedFor returns the states of the work to look at now: all that matter from time to time,
// in between only what is ready, and nothing right after a look.
func (p *pool) lookedFor(now time.Time) []queue.State {
	switch whole := p.once || now.Sub(p.looked) >= min(p.patience(), 10*time.Second); {
	case whole:
		p.looked = now
		return []queue.State{queue.Ready, queue.Parked, queue.Waiting}
	case p.roster == nil || now.Before(p.glanced):
		return nil
	}
	return []queue.State{queue.Ready}
}

// collect returns the work in these states of which somebody must see whether it can be done, and
// the work whose worker is lost. It makes ready what waits for something that has been written.
func (p *pool) collect(ctx context.Context, states []queue.State) (list []queue.Work, moved bool, err error) {
	waiting := map[string]queue.Work{}
	for w, err := range p.queue.Works(ctx, states...) {
		switch {
		case err != nil:
			return nil, false, err
		case w.State == queue.Waiting && (w.Due.IsZero() || time.Until(w.Due) > 0):
			waiting[w.Session] = w
			if p.waitsForEver(w) {
				list = append(list, w)
			}
		case p.serves(w.Tenant), w.State == queue.Ready && p.roster != nil: // perhaps nobody serves its tenant
			list = append(list, w)
		}
	}
	if slices.Contains(states, queue.Waiting) {
		if moved, err = p.wakeWritten(ctx, waiting); err != nil {
			return nil, moved, err
		}
	}
	lost, err := p.queue.Lost(ctx)
	if err != nil {
		return nil, moved, err
	}
	before := p.lost
	p.lost = map[claim]time.Time{}
	for _, w := range lost {
		if !p.serves(w.Tenant) {
			continue
		}
		c := claim{w.Session, w.Claim}
		if p.lost[c] = before[c]; p.lost[c].IsZero() {
			p.lost[c] = time.Now()
		}
		w.Since, w.Due = p.lost[c], time.Time{}
		list = append(list, w)
	}
	return list, moved, nil
}

// waitedLong reports whether work waits, and was due, for as long as it may.
func (p *pool) waitedLong(w queue.Work) bool {
	waits := time.Since(w.Since)
	if !w.Due.IsZero() {
		waits = min(waits, time.Since(w.Due))
	}
	return waits >= p.patience()
}

// verdict returns the state that work gets, and the reason, or "" if it stays as it is. why is what
// this worker lacks for it, or ""; forEver means that it waits for an approval without a deadline;
// hopeless that no worker will do it.
func verdict(w queue.Work, why string, forEver, hopeless bool) (to queue.State, reason string) {
	switch parked := w.State == queue.Parked; {
	case forEver && why == "": // its run sets a time
		return queue.Ready, "its approval has a deadline now"
	case forEver:
		return "", ""
	case !parked && why != "" && hopeless:
		if w.State == queue.Running {
			why += "; it was begun by " + orUnknown(w.Worker) + ", which died or was cut off"
		}
		return queue.Parked, why
	case parked && why == "" && strings.HasPrefix(w.Reason, needed):
		return queue.Ready, "a worker that can do it is there"
	}
	return "", ""
}

// apply moves work to a state, if there is one. It is no error that somebody else was faster.
func (p *pool) apply(ctx context.Context, w queue.Work, to queue.State, reason string) error {
	if to == "" {
		return nil
	}
	err := p.queue.Move(ctx, w, to, reason)
	if err == nil && to == queue.Parked {
		p.log.Warn("work parked", "session", w.Session, "reason", reason)
		p.tally(func(c *Counts) { c.park("missing") })
	}
	if errors.Is(err, queue.ErrChanged) {
		return nil
	}
	return err
}

// wakeWritten makes ready what waits for something that was written to the log of the
// session since: whoever wrote it may have died before [Wake].
func (p *pool) wakeWritten(ctx context.Context, waiting map[string]queue.Work) (moved bool, err error) {
	before := p.listed
	p.listed = time.Now().Add(-time.Minute) // clocks differ
	if len(waiting) == 0 {
		return false, nil
	}
	var written []queue.Work
	for info, err := range nils.Each(p.Config.Store, "List", p.Config.Store.List(ctx, session.Query{})) { // the most recently written first
		if err != nil {
			return false, err
		}
		if info.Updated.Before(before) {
			break
		}
		if w, ok := waiting[info.ID]; ok && info.Updated.After(w.Since) {
			written = append(written, w)
		}
	}
	for _, w := range written {
		if err := p.queue.Move(ctx, w, queue.Ready, answered); err != nil && !errors.Is(err, queue.ErrChanged) {
			return true, err
		}
	}
	return len(written) > 0, nil
}

// serves reports whether the worker does the work of a tenant.
func (w *Worker) serves(tenant string) bool {
	return w.Tenants == nil || slices.Contains(w.Tenants, tenant)
}

// missing says what this worker lacks to do a piece of work, or returns "".
func (p *pool) missing(ctx context.Context, w queue.Work, hashes []string) (why string, err error) {
	if !p.serves(w.Tenant) {
		if w.Tenant == "" {
			return needed + "a worker for work without a tenant", nil
		}
		return needed + "a worker for the tenant " + w.Tenant, nil
	}
	if lacks := p.want().Lacks(w); len(lacks) > 0 {
		why = needed + "a worker " + described(lacks, "with the labels ")
		if _, err := p.workspace(w.Session, lacks); err != nil {
			why += ": " + err.Error()
		}
		return why, nil
	}
	if !slices.Contains(hashes, w.Agent) {
		// The hash covers the version of the program, so nobody can agree to it at a worker of
		// another version.
		if why, err := p.stage.otherVersion(ctx, w.Agent); err != nil || why != "" {
			return why, err
		}
		info, err := p.Config.Store.Info(ctx, w.Session)
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return "", err
		}
		return noAgreement + "a worker's operator to this version of " + orUnknown(info.Path) + " (" + short(w.Agent) + ")", nil
	}
	return p.stage.lacks(ctx, w.Agent)
}

// short is the beginning of a hash, for people.
func short(hash string) string { return hash[:min(12, len(hash))] }

// drain ends the runs: each with its turn, or when the time for that is up.
func (p *pool) drain() {
	p.mu.Lock()
	p.drains = true
	for _, r := range p.runs {
		if r.open != nil {
			r.open.StopAfterTurn()
		}
	}
	n := len(p.runs)
	p.mu.Unlock()
	p.log.Info("worker stops", "runs", n)
	ended := make(chan struct{})
	go func() {
		p.all.Wait()
		close(ended)
	}()
	late := time.NewTimer(orElse(p.Drain, 30*time.Second))
	defer late.Stop()
	select {
	case <-ended:
		return
	case <-late.C:
	}
	p.mu.Lock()
	for _, r := range p.runs {
		r.cancel(errDrained)
	}
	p.mu.Unlock()
	<-ended
}
