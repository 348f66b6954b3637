// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Run is one run of an agent on a session, from [Agent.Start] until it stops.
// It is the session's only writer meanwhile, by the session's lock: see
// [Agent.Run]. [Run.Say] and [Run.StopAfterTurn]
// may be called from other goroutines.
type Run struct {
	agent   *Agent
	session *session.Session
	input   []item.Item
	until   time.Time // when the time is over; zero is never

	mu        sync.Mutex
	inbox     []item.Item
	stopAfter bool
	stopped   bool // nothing reads the inbox any more

	tools  *tool.Set
	base   *tool.Set   // of them, without the one that reads what was left out
	found  []tool.Tool // of the agent's source, among them
	marks  bool        // the model has marks that say how to read what was left out
	offers bool        // and it has the tool for that
	state  plan.State
	totals Totals
	// failure is what ended the last turn, to be reported when the run stops.
	failure     error
	retries     *endpoint.Budget
	borrowed    bool // the retries are the caller's
	yield       func(Event, error) bool
	uncancelled context.Context // what has happened is written in any case
	quiet       bool            // the caller does not read the events of the stream
	left        bool            // the caller stopped iterating
	cancel      context.CancelFunc

	around  *scope // of a nested run
	depth   int
	asking  sync.Mutex // held while an approver is asked
	read    readCall
	asks    context.Context // in which the model is asked, where hooks make no other
	meta    *endpoint.Meta  // of asks; answers counts those that were heard
	answers int
	made    made
	inner   sync.WaitGroup // the goroutines of calls
	inside  chan any       // from the goroutines of calls to the run's own: *finished, or an Event
	over    chan struct{}  // closed when inside is not read any more
	// running counts the calls whose tools run, early are those that were started
	// while the reply came, held says that no more of this reply are.
	running int
	early   map[int64]bool // by their entries
	held    bool
	batch   batch
	asked   ModelCall // of the turn under way
	skip    int       // items that it leaves out, since the endpoint's conversation holds them
	heard   listener  // of its reply
	wanted  []Pending
	holding bool    // events wait until hooks have seen the reply
	waiting []Event // those

	began  time.Time   // the run, if it went on in another process
	single bool        // one effect is performed, and then another process may go on
	effect plan.Effect // the one under way, or the last one

	noticed    map[Noticed]bool // kinds with what they are about
	shortened  Compacted        // the last compaction
	compactErr error            // why it failed, if it did
	why        plan.Stop        // how it ended
	budget     *Budget          // what the run and those nested in it use
	price      Price
}

// Start prepares a run that gives the input to the model. Nothing happens until
// its events are ranged over.
func (a *Agent) Start(s *session.Session, input ...item.Item) *Run {
	return &Run{agent: a, session: s, input: input}
}

// Say adds input to a run under way. It reaches the model with the next
// request, after the outputs that are pending by then; a run that is about to
// stop for a limit or a cancel records it for the next run. Input that comes
// when the run has stopped is not taken: the error is [ErrStopped]. Input that
// cannot be sent gives an [*InputError].
func (r *Run) Say(input ...item.Item) error {
	if err := checkInput(input); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return ErrStopped
	}
	r.inbox = append(r.inbox, input...)
	return nil
}

// closeInbox closes the inbox, unless there is something in it.
func (r *Run) closeInbox() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = len(r.inbox) == 0
	return r.stopped
}

// StopAfterTurn ends the run once the reply under way and its calls are done.
func (r *Run) StopAfterTurn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopAfter = true
}

var (
	errMaxTime = errors.New("the run's time limit passed")
	errTwice   = errors.New("agent: the events of a run can be ranged over once")
)

// Events runs, and yields what happens. It may be ranged over once. The last
// event is [Stopped]; a run that ended because of an error yields that after
// it. Ending ctx, or breaking out of the range, cancels what is under way; what
// was complete is recorded, and calls without an output get one that says so.
// Calls of a reply that broke off get none: they were never started, and no
// request carries them.
func (r *Run) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if r.yield != nil {
			yield(nil, errTwice)
			return
		}
		if r.agent == nil {
			yield(nil, errors.New("agent: the *Agent is nil"))
			return
		}
		ctx, r.cancel = context.WithCancel(ctx)
		defer r.cancel()
		defer func() {
			r.mu.Lock()
			r.stopped = true
			r.mu.Unlock()
		}()
		if d := r.agent.Limits.MaxTime; d > 0 {
			var stop context.CancelFunc
			if r.began.IsZero() {
				r.began = time.Now()
			}
			r.until = r.began.Add(d)
			ctx, stop = context.WithDeadlineCause(ctx, r.until, errMaxTime)
			defer stop()
		}
		r.openBudget(ctx)
		if end := r.budget.start(time.Now()); !end.IsZero() {
			var stop context.CancelFunc
			ctx, stop = context.WithDeadlineCause(ctx, end, errMaxTime)
			defer stop()
			if r.until.IsZero() || end.Before(r.until) {
				r.until = end
			}
		}
		r.inside, r.over = make(chan any), make(chan struct{})
		r.retries = endpoint.BudgetFrom(ctx)
		r.borrowed = r.retries != nil
		r.fillRetries()
		r.yield = yield
		if err := r.hooked(ctx); err != nil && !r.left {
			yield(nil, err)
		}
	}
}

// hooked runs between the hooks of the run.
func (r *Run) hooked(ctx context.Context) (err error) {
	seen := RunCall{Session: r.session.ID(), Depth: r.depth, Model: r.agent.Request.Model, Started: time.Now()}
	ctx, n, veto := before(ctx, "BeforeRun", r.agent.Hooks, beforeRun, &seen)
	r.uncancelled = context.WithoutCancel(ctx)
	defer func() {
		if n == 0 {
			return
		}
		seen.Ended, seen.Why, seen.Detail, seen.Err, seen.Totals = time.Now(), r.why.Why, r.why.Detail, err, r.totals
		if objection := after(ctx, "AfterRun", r.agent.Hooks[:n], afterRun, &seen); err == nil {
			err = objection
		}
	}()
	release := func() error { return nil }
	defer func() {
		if failure := release(); err == nil {
			err = failure
		}
	}()
	defer r.windUp()
	if err = r.check(); err != nil {
		return err
	}
	if release, err = r.claim(ctx); err != nil {
		return err
	}
	guarded, stop := r.session.Guard(ctx)
	defer stop()
	err = r.loop(guarded, veto)
	if lost := context.Cause(guarded); errors.Is(lost, session.ErrLost) {
		err = lost // J11: whatever the run came to, nobody will find it in the session
	}
	return err
}

// claim makes the run the session's only writer: G4. Without it, a second run
// would find out by an append that fails, when tools have run already.
func (r *Run) claim(ctx context.Context) (release func() error, err error) {
	release, err = r.session.Hold(ctx)
	if err != nil {
		return func() error { return nil }, err
	}
	return release, nil
}

// windUp waits for all that the run has started. In a run that came to its end
// there is nothing left; where it broke off, by a store that failed or a panic,
// tools are told to end.
func (r *Run) windUp() {
	if r.running > 0 {
		r.cancel()
	}
	for r.running > 0 {
		if f, done := (<-r.inside).(*finished); done {
			r.running--
			r.lose(f)
		}
	}
	close(r.over)
	r.inner.Wait()
}

// fillRetries fills the budget of retries, unless it is the caller's.
func (r *Run) fillRetries() {
	switch {
	case r.borrowed:
		return
	case r.retries != nil:
		r.retries.Refill()
		return
	}
	r.retries = r.agent.retryBudget(r.agent.Model)
}

// retryBudget returns a budget of retries for requests to a model: as the agent says or,
// if it says nothing, the model.
func (a *Agent) retryBudget(m Model) *endpoint.Budget {
	policy := a.Retry
	if own, ok := m.(Retrier); ok && isThere(m) && policy.IsZero() {
		policy = own.RetryPolicy()
	}
	return policy.Budget()
}

// loop performs effects until one says stop, or just one for [Agent.Step]. All runs
// make progress here.
func (r *Run) loop(ctx context.Context, veto error) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	if veto != nil {
		if err := r.stopFor(veto); err != nil {
			return err
		}
	}
	for {
		if err := r.arrivals(ctx); err != nil {
			return err
		}
		e := r.state.Next()
		if _, stops := e.(plan.Stop); stops && !r.closeInbox() {
			continue // something arrived
		}
		r.effect = e
		err := r.perform(ctx, e)
		if _, stops := e.(plan.Stop); err != nil || stops || r.single {
			return err
		}
	}
}

// perform does what an effect says and records the outcome.
func (r *Run) perform(ctx context.Context, e plan.Effect) error {
	switch e := e.(type) {
	case plan.Ask:
		return r.turn(ctx, e.Turn)
	case plan.Skip:
		return r.close(e.Calls)
	case plan.Approve:
		return r.approve(ctx, e.Calls)
	case plan.Call:
		return r.call(ctx, e.Calls)
	case plan.Collapse:
		return r.collapse(e.Outputs)
	case plan.Compact:
		return r.compact(ctx, e)
	case plan.Stop:
		return r.stop(ctx, e)
	}
	return fmt.Errorf("agent: an effect of type %T cannot be performed", e)
}

// isThere reports whether there is a model to ask, and not a nil of some type.
func isThere(model Model) bool {
	m := reflect.ValueOf(model)
	return m.IsValid() && (m.Kind() != reflect.Pointer || !m.IsNil())
}

// check reports what is wrong with the agent or the input, before anything is
// locked, read or written.
func (r *Run) check() error {
	if !isThere(r.agent.Model) {
		return errors.New("agent: no Model is set")
	}
	if err := checkInput(r.input); err != nil {
		return err
	}
	if err := checkRequest(&r.agent.Request); err != nil {
		return err
	}
	if err := r.agent.Policy.check(); err != nil {
		return err
	}
	return r.findPrice(r.agent.Request.Model)
}

// open reads the log and records the run's start.
func (r *Run) open(ctx context.Context) error {
	if err := r.equip(ctx); err != nil {
		return err
	}
	r.fold(r.agent)
	if err := r.whole(); err != nil {
		return err
	}
	if err := r.resume(); err != nil {
		return err
	}
	begun, stored := r.begin(), r.toJudge()
	veto, agreed := uninterrupted(ctx, r.judgeStored(ctx, stored))
	if stored != nil && veto == nil && agreed && len(begun) == 0 {
		begun = append(begun, judged)
	}
	if !agreed && !objects(veto, true) {
		begun = append(begun, notJudged)
	}
	if veto != nil {
		r.failure = veto
		if err := r.withdrawStored(veto, begun, vetoed(veto)); err != nil || len(r.input) == 0 {
			return err
		}
		begun = nil
	}
	return r.give(ctx, begun, r.input)
}

// begin returns what is to be recorded before the run does anything: its start or,
// where it goes on in another process, what that process finds.
func (r *Run) begin() []session.Body {
	begun := session.RunStarted{Setup: r.changed(), Conversation: r.conversation()}
	if r.single && r.state.UnderWay() {
		if !r.state.Interrupted() && begun.Conversation.ID == "" {
			r.goOn()
			return nil
		}
		begun.Resumes = true
		r.goOn()
	}
	return []session.Body{begun}
}

// ErrEntriesLost is wrapped by the error of a run on a session that was salvaged
// and in which entries are lost, until a [session.Noticed] of the kind
// NoticeGapsAccepted is appended to it.
var ErrEntriesLost = errors.New("entries of the session were lost")

// whole is the error for a log in which an entry was lost: that may have taken back
// words that would be sent again.
func (r *Run) whole() error {
	if r.state.Gap() == 0 {
		return nil
	}
	id := r.session.ID()
	return fmt.Errorf("session %q: %w: one was entry %d; it may have withdrawn words that would be sent now\n"+
		"  hint: see what would be sent: antiphon sessions show %s --as-sent; to go on with it, salvage it with --accept-gaps", id, ErrEntriesLost, r.state.Gap(), id)
}

// record appends to the log and folds what it appended. Events follow it, so that
// they never announce what a crash could lose. It writes what has happened even when
// the run's context has ended.
func (r *Run) record(bodies ...session.Body) error {
	entries, err := r.session.Append(r.uncancelled, bodies...)
	if err != nil {
		return err
	}
	for _, e := range entries {
		r.state.Apply(e)
	}
	return nil
}

// emit tells whoever ranges over the events. Once they leave, the run is
// cancelled and goes on in silence until it is in order.
func (r *Run) emit(ev Event) {
	if r.holding {
		r.waiting = append(r.waiting, ev)
		return
	}
	if r.left || r.yield(ev, nil) {
		return
	}
	r.left = true
	r.cancel()
}

// arrivals records what came from outside since the last effect: input, a wish
// to stop, the end of the context.
func (r *Run) arrivals(ctx context.Context) error {
	r.mu.Lock()
	inbox, after := r.inbox, r.stopAfter
	r.inbox, r.stopAfter = nil, false
	r.mu.Unlock()

	var bodies []session.Body
	asked := r.state.StopAsked()
	ended := ctx.Err() != nil && (!r.single || errors.Is(context.Cause(ctx), errMaxTime)) // of a step the run goes on
	if after && asked.Why == "" {
		bodies = append(bodies, session.StopAsked{Why: string(StoppedAfter), AfterTurn: true})
	}
	late := !r.until.IsZero() && !time.Now().Before(r.until) // a nested run may be told before ctx is
	if (ended || late) && (asked.Why == "" || asked.AfterTurn) {
		why := MaxTime
		if ended && !errors.Is(context.Cause(ctx), errMaxTime) {
			why = Cancelled
		}
		bodies = append(bodies, session.StopAsked{Why: string(why)})
	}
	if len(bodies)+len(inbox) == 0 {
		return nil
	}
	return r.give(ctx, nil, inbox, bodies...)
}

// stop records and tells the end of the run, and returns the error it ended
// with.
func (r *Run) stop(ctx context.Context, s plan.Stop) error {
	if err := r.record(session.Stopped{Why: string(s.Why), Detail: s.Detail}); err != nil {
		return err
	}
	r.why = s
	stopped := Stopped{Why: s.Why, Detail: s.Detail, Totals: r.totals, All: r.totals.All()}
	var hook *HookError
	if s.Why == Vetoed && errors.As(r.failure, &hook) {
		stopped.Guard = hook.Name
	}
	if s.Why == ApprovalWanted {
		stopped.Wanted = r.wanted
	}
	r.emit(stopped)
	switch s.Why {
	case NothingToSend:
		return ErrNothingToSend
	case Cancelled:
		return context.Cause(ctx)
	case Vetoed:
		return r.failure
	case ProviderError, ContextFull, BadItem:
		switch {
		case r.failure == nil && s.Why == ContextFull:
			return contextFullError(s.Detail)
		case r.failure == nil:
			return errors.New(s.Detail)
		}
		return r.failure
	}
	return nil
}
