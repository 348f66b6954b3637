// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Run is one run of an agent on a session, from [Agent.Start] until it stops. While
// it runs it is the session's only writer, because it holds the session's lock: see
// [Agent.Run]. [Run.Say] and [Run.StopAfterTurn] may be called from other
// goroutines.
type Run struct {
	// agent is the agent of the current turn: one candidate of a Fallback. whole is the
	// same agent with all candidates, and first the agent that the run was started with.
	agent, whole, first *Agent
	spoke               int      // the number of handoffs that events have told of
	rulers              []ruler  // the agents that spoke before, whose denials stay
	handoffs            int      // how many of the log's handoffs it has carried out
	swapped             bool     // another agent speaks since the last request, with other tools
	candidate           int      // the index of agent's model in whole's Fallback
	sifted              bool     // what belongs to another candidate is not sent
	failed              failures // of the candidates that were asked for the current reply before

	session *session.Session
	input   []item.Item
	until   time.Time // when the time limit passes; zero means never
	// overtime says which limit that is.
	overtime *overtimeError
	wanted   *Answer // what the answer must be, or nil

	saying    sync.RWMutex // held by calls of Say, and by the run while it closes the inbox
	mu        sync.Mutex
	inbox     []item.Item // if the store has no inbox, or not yet the session
	stopAfter bool
	stopped   bool // the inbox is closed
	mail      mail

	tools  *tool.Set
	base   *tool.Set   // tools without the tool that reads shortened outputs
	found  []tool.Tool // those tools that the agent's ToolSource returned
	marks  bool        // an output was shortened, and its text says how to read the rest
	offers bool        // the model has the tool that reads the rest
	state  plan.State
	totals Totals
	// failure is the error that ended the last turn. It is returned when the run
	// stops.
	failure     error
	retries     *endpoint.Budget
	borrowed    bool // retries belongs to the caller
	yield       func(Event, error) bool
	uncancelled context.Context // the run's context without its cancellation: what has happened is always recorded
	quiet       bool            // the caller does not read events, so most are not made
	park        time.Duration   // of the outermost agent: see [Agent.Park]
	left        bool            // the caller stopped iterating
	cancel      context.CancelFunc

	around  *scope // the state of the parent run, for a subagent
	depth   int
	asking  sync.Mutex // held while an approver is asked
	ruled   sync.Map   // the rules by which an approver allowed calls, by the numbers of the calls
	read    readCall
	asks    context.Context // the context of requests to the model, reused if there are no hooks
	meta    *endpoint.Meta  // of asks; answers is the number of answers it had counted
	answers int
	made    made
	inner   sync.WaitGroup // the goroutines that run calls
	inside  chan any       // from those goroutines to the run's own: *finished, or an Event
	over    chan struct{}  // closed when inside is no longer read
	// running counts the calls whose tools run now. early holds the calls that were
	// started while the reply was arriving. held means that no further call of this
	// reply may start early.
	running int
	resting int            // calls that wait for their tool's rate, and do not count as running
	early   map[int64]bool // by the number of the call's entry
	held    bool
	batch   batch
	asked   ModelCall       // the request of the current turn
	skip    int             // the number of items not sent, because the endpoint's conversation holds them
	heard   listener        // collects the reply to asked
	beside  *beside         // the guards that run beside the current request, or nil
	shown   shown           // the input that hooks have seen
	agreed  map[int]int64   // for a guard, by its index: the last entry with input that it agreed to
	holding bool            // events wait in waiting until the hooks and guards have seen the reply
	waiting []Event         // events held back by holding
	behind  bool            // an entry was not durable yet when it was recorded
	pending []session.Entry // recorded but not yet known to be durable
	outbox  []unsaid        // events that wait until pending entries are durable

	began     time.Time // when the run began, possibly in another process
	pace      pace
	answerNow bool        // the current turn must be an answer
	single    bool        // performs a single effect; see Agent.Step
	takesOver bool        // continues a run that has not stopped, instead of beginning one
	effect    plan.Effect // the current effect, or the last one

	unkeyed    string                   // why a tool's ReadKey failed, until a notice reports it
	noticed    map[session.Noticed]bool // notices already recorded, by kind and subject
	shortened  *CompactionCall          // the last compaction
	compactErr error                    // why the last compaction failed, or nil
	why        plan.Stop                // how the run ended
	result     Result                   // Totals is unset; see totals
	budget     *Budget                  // counts the usage of the run and its subagents
	price      Price
	priced     string // the model whose price it is
}

// Start prepares a run that gives the input to the model. Nothing happens until the
// caller ranges over [Run.Events].
func (a *Agent) Start(s *session.Session, input ...item.Item) *Run {
	return a.start(s, slices.Clone(input))
}

// start is Start with a slice that nobody else uses.
func (a *Agent) start(s *session.Session, input []item.Item) *Run {
	r := &Run{first: a, whole: a, session: s, input: input}
	if a != nil {
		r.wanted, r.park = a.Answer, a.Park
	}
	r.narrow(0)
	return r
}

// Say adds input to a run that has not stopped. The input reaches the model with the
// next request, after the outputs that are pending by then. A run that is about to
// stop because of a limit or a cancellation records the input for the next run.
// After the run has stopped, Say returns [ErrStopped]. For input that cannot be sent
// it returns an [*InputError].
//
// If the session's store keeps an inbox (see [session.Inbox]), Say leaves the input
// there and returns when it is durable: then it reaches this run, or the next one if
// the process ends. With another error it is not known whether it was left there.
func (r *Run) Say(input ...item.Item) error {
	if err := checkInput(input); err != nil || len(input) == 0 {
		return err
	}
	r.saying.RLock()
	defer r.saying.RUnlock()
	if r.hasStopped() {
		return ErrStopped
	}
	if kept, err := r.leave(input); kept || err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inbox = append(r.inbox, input...)
	return nil
}

func (r *Run) hasStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// closeInbox closes the inbox if it is empty, and reports whether it did. The check
// and the closing are one step, so that input from a concurrent Say is either
// handled by this run or refused.
func (r *Run) closeInbox() bool {
	r.saying.Lock()
	defer r.saying.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = len(r.inbox) == 0 && !r.mail.arrived.Load()
	return r.stopped
}

// StopAfterTurn ends the run after the current reply and its calls are complete.
func (r *Run) StopAfterTurn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopAfter = true
}

var (
	errMaxTime = errors.New("the run's time limit passed")
	errTwice   = errors.New("agent: the events of a run can be ranged over once")
)

// overtimeError is errMaxTime with the limit that was used up. It is the cause of the
// context's end, also for the runs inside this one.
type overtimeError struct {
	limit  time.Duration
	shared bool // the time of a Budget
}

func (e *overtimeError) Error() string        { return errMaxTime.Error() }
func (e *overtimeError) Is(target error) bool { return target == errMaxTime }

// detail says for people what was used.
func (e *overtimeError) detail() string {
	if e.shared {
		return fmt.Sprintf("%s have passed since the first run of the budget began", e.limit)
	}
	return fmt.Sprintf("%s have passed", e.limit)
}

// Events performs the run and yields its events. It may be ranged over once. The
// last event is the [Recorded] entry [session.Stopped]; if the run ended because of
// an error, Events yields the error after it.
//
// Cancelling ctx or breaking out of the range cancels the work in progress. Complete
// items are recorded, and each call without an output gets one that says why. Calls
// of a reply that broke off get no output: they were never started, and no request
// carries them.
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
		if r.began.IsZero() {
			r.began = time.Now()
		}
		if d := r.agent.Limits.MaxTime; d > 0 {
			var stop context.CancelFunc
			r.until, r.overtime = r.began.Add(d), &overtimeError{limit: d}
			ctx, stop = context.WithDeadlineCause(ctx, r.until, r.overtime)
			defer stop()
		}
		r.openBudget(ctx)
		defer r.leaveBudget()
		// A shared budget has its own deadline. The earlier one of the two holds.
		if end, limit := r.budget.start(r.began); !end.IsZero() {
			var stop context.CancelFunc
			over := &overtimeError{limit: limit, shared: true}
			ctx, stop = context.WithDeadlineCause(ctx, end, over)
			defer stop()
			if r.until.IsZero() || end.Before(r.until) {
				r.until, r.overtime = end, over
			}
		}
		r.inside, r.over = make(chan any), make(chan struct{})
		r.retries = endpoint.BudgetFrom(ctx)
		r.borrowed = r.retries != nil
		r.fillRetries()
		// From here on events go to this caller, and a second range gets errTwice.
		r.yield = yield
		if err := r.hooked(ctx); err != nil && !r.left {
			yield(nil, err)
		}
	}
}

// hooked performs the run, with the BeforeRun and AfterRun hooks around it.
func (r *Run) hooked(ctx context.Context) (err error) {
	seen, hooks := RunCall{Session: r.session.ID(), Depth: r.depth, Model: r.agent.Request.Model, Started: time.Now()}, r.first.Hooks
	ctx, n, veto := before(ctx, "BeforeRun", hooks, beforeRun, &seen)
	r.uncancelled = context.WithoutCancel(ctx)
	defer func() {
		if n == 0 {
			return
		}
		seen.Ended, seen.Why, seen.Detail, seen.Err, seen.Totals = time.Now(), r.why.Why, r.why.Detail, err, r.totals
		if objection := after(ctx, "AfterRun", hooks[:n], afterRun, &seen); err == nil {
			err = objection
		}
	}()
	release := func() error { return nil }
	defer func() {
		if failure := release(); err == nil {
			err = failure
		}
	}()
	// Deferred calls run in reverse: first the tools end, then the lock is released,
	// and then AfterRun hooks see the result.
	defer r.windUp()
	if err = r.check(); err != nil {
		return err
	}
	// Only check comes before the lock, because it reads and writes nothing.
	if release, err = r.claim(ctx); err != nil {
		return err
	}
	guarded, stop := r.session.Guard(ctx)
	defer stop()
	halted, end := r.listen(guarded)
	defer end()
	err = r.loop(halted, veto)
	if failure := r.barrier(); err == nil {
		err = failure
	}
	if lost := context.Cause(guarded); errors.Is(lost, session.ErrLost) {
		err = lost // even a run that succeeded is an error then, because the session does not hold it
	}
	return err
}

// claim makes the run the session's only writer. Without it, a second run would
// notice the first one only when an append fails, after its tools have already run.
func (r *Run) claim(ctx context.Context) (release func() error, err error) {
	release, err = r.session.Hold(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errMaxTime) {
		// The run's time passed while it waited. The log must say that it stopped for
		// its limit, and only the owner of the lock may write that.
		release, err = r.session.Hold(r.uncancelled)
	}
	if err != nil {
		return func() error { return nil }, err
	}
	return release, nil
}

// windUp waits for everything that the run started. A run that stopped normally has
// nothing left to wait for. If the run broke off, because the store failed or by a
// panic, windUp cancels the tools first.
func (r *Run) windUp() {
	if r.running+r.resting > 0 {
		r.cancel()
	}
	for r.running+r.resting > 0 {
		switch m := (<-r.inside).(type) {
		case *finished:
			r.running--
			r.lose(m)
		case rests:
			r.rest(m)
		case starts:
			m.durable <- false // nothing can be recorded any more
		}
	}
	close(r.over)
	r.inner.Wait()
}

// fillRetries refills the retry budget, unless the budget belongs to the caller.
func (r *Run) fillRetries() {
	_, own := r.whole.Model.(Fallback)
	switch {
	case r.borrowed && !own:
		return
	case r.retries != nil && !r.borrowed:
		r.retries.Refill()
		return
	}
	r.retries = r.agent.retryBudget(r.agent.Model)
}

// retryBudget returns a new retry budget for requests to a model. It follows the
// agent's policy or, if the agent has none, the model's.
func (a *Agent) retryBudget(m Model) *endpoint.Budget {
	policy := a.Retry
	if own, ok := m.(Retrier); ok && isThere(m) && policy.IsZero() {
		policy = own.RetryPolicy()
	}
	return policy.Budget()
}

// loop performs effects until one of them stops the run, or a single effect for
// [Agent.Step]. It is the only loop: every kind of run makes progress here.
func (r *Run) loop(ctx context.Context, veto error) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	r.noteStart()
	r.mail.next = r.afterStop()
	// The run is opened even if a BeforeRun hook objected, so that the log shows the
	// objection.
	if veto != nil {
		if err := r.stopFor(veto); err != nil {
			return err
		}
	}
	for {
		if err := r.tellUnkeyed(ctx); err != nil {
			return err
		}
		if err := r.arrivals(ctx); err != nil {
			return err
		}
		// Everything is recorded and applied by now, so Next sees all that happened.
		e := r.state.Next()
		if stop, stops := e.(plan.Stop); stops {
			again, err := r.judgeAnswer(ctx, &stop)
			if err == nil && !again {
				again, err = r.takeQueued(ctx, &stop)
			}
			if err != nil {
				return err
			}
			if again || !r.closeInbox() {
				continue // input arrived after the plan decided to stop
			}
			e = stop
		}
		r.effect = e
		err := r.perform(ctx, e)
		if _, stops := e.(plan.Stop); err != nil || stops || r.single {
			return err
		}
	}
}

// perform carries out an effect and records its outcome.
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
		// A compaction sends input to a model, too.
		if agreed, err := r.guardFirst(ctx, anyGuard); !agreed {
			return err
		}
		return r.compact(ctx, e)
	case plan.Stop:
		return r.stop(ctx, e)
	}
	return fmt.Errorf("agent: an effect of type %T cannot be performed", e)
}

// isThere reports whether the model is neither nil nor a nil pointer in a non-nil
// interface.
func isThere(model Model) bool {
	return !nils.Is(model)
}

// check returns an error for an invalid agent or input, before anything is locked,
// read or written.
func (r *Run) check() error {
	if err := checkInput(r.input); err != nil {
		return err
	}
	if err := r.checkHandoffs(); err != nil {
		return err
	}
	return r.findPrice(r.agent.Request.Model)
}

// checkAgent returns an error for an agent that cannot be used in this run.
func (r *Run) checkAgent(a *Agent) error {
	if !isThere(a.Model) {
		return errors.New("agent: no Model is set")
	}
	if err := checkRequest(&a.Request); err != nil {
		return err
	}
	if err := r.wanted.check(&a.Request); err != nil {
		return err
	}
	if err := a.Policy.check(); err != nil {
		return err
	}
	if err := checkGuards(a.Guards); err != nil {
		return err
	}
	if err := a.Limits.check(); err != nil {
		return err
	}
	if err := a.Compaction.check(); err != nil {
		return err
	}
	if err := checkOutput(&a.Output); err != nil {
		return err
	}
	switch f := a.Model.(type) {
	case Fallback:
		if err := f.check(&a.Request); err != nil {
			return err
		}
	case *Fallback: // it is a Model, too, but a run could not record which candidate it asks
		return errors.New("agent: Model is a *Fallback: want a Fallback")
	}
	for _, c := range a.models() {
		if _, err := r.priceOf(a, cmp.Or(c.Name, a.Request.Model)); err != nil {
			return err
		}
	}
	return nil
}

// open reads the log and records the start of the run. A reply that the hooks have
// not judged yet, because an earlier run ended first, is judged here.
func (r *Run) open(ctx context.Context) error {
	if err := r.equip(ctx); err != nil {
		return err
	}
	r.fold(r.agent)
	if err := r.undamaged(); err != nil {
		return err
	}
	if err := r.takeUp(ctx); err != nil {
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
	if err := r.give(ctx, begun, r.input); err != nil || !r.takesOver {
		return err
	}
	return r.carryBudget(ctx)
}

// begin returns the entries to record before the run does anything: its start. A
// step that continues a run in another process needs an entry only if it finds
// something to record, such as an interrupted effect.
func (r *Run) begin() []session.Body {
	begun := session.RunStarted{Setup: r.changed(), Conversation: r.conversation()}
	if r.takesOver = r.takesOver && r.state.UnderWay(); r.takesOver {
		r.recallNotices()
		if r.single && !r.state.Interrupted() && begun.Conversation.ID == "" {
			return nil
		}
		begun.Resumes = true
	}
	return []session.Body{begun}
}

// ErrEntriesLost is wrapped by the error of a run on a salvaged session in which
// entries were lost. To allow runs again, append a [session.Noticed] of the kind
// NoticeGapsAccepted.
var ErrEntriesLost = errors.New("entries of the session were lost")

// undamaged returns an error for a log in which an entry was lost. The lost entry may
// have withdrawn items, which would then be sent again.
func (r *Run) undamaged() error {
	if r.state.Gap() == 0 {
		return nil
	}
	id := r.session.ID()
	return fmt.Errorf("session %q: %w: one was entry %d; it may have withdrawn words that would be sent now\n"+
		"  hint: see what would be sent: antiphon sessions show %s --as-sent; to go on with it, salvage it with --accept-gaps", id, ErrEntriesLost, r.state.Gap(), id)
}

// arrivals records what came from outside since the last effect: input, a request to
// stop, and the end of the context.
func (r *Run) arrivals(ctx context.Context) error {
	r.mu.Lock()
	inbox, after := r.inbox, r.stopAfter
	r.inbox, r.stopAfter = nil, false
	r.mu.Unlock()
	if len(inbox) > 0 {
		if err := r.give(ctx, nil, inbox); err != nil {
			return err
		}
	}
	if err := r.takeMail(ctx); err != nil {
		return err
	}

	var bodies []session.Body
	asked := r.state.StopAsked()
	// Cancelling a step does not stop the run, but its time limit does.
	ended := ctx.Err() != nil && (!r.single || errors.Is(context.Cause(ctx), errMaxTime))
	if after && asked.Why == "" {
		// Recorded like everything else, so that another process that resumes the
		// run stops, too.
		bodies = append(bodies, session.StopAsked{Why: string(StopRequested), AfterTurn: true})
	}
	// A subagent may notice the deadline before the context of this run does.
	late := !r.until.IsZero() && !time.Now().Before(r.until)
	if (ended || late) && (asked.Why == "" || asked.AfterTurn) {
		bodies = append(bodies, r.endAsked(ctx, ended))
	}
	if len(bodies) == 0 {
		return nil
	}
	return r.record(bodies...)
}

// endAsked returns the request to stop of a run whose context ended or, if ended is false,
// whose time is over.
func (r *Run) endAsked(ctx context.Context, ended bool) session.StopAsked {
	over, cause := r.overtime, nils.Err(context.Cause(ctx))
	if ended && !errors.As(cause, &over) {
		ask := session.StopAsked{Why: string(StopCancelled)}
		if !errors.Is(cause, ctx.Err()) { // the caller says why
			ask.Detail = clip(cause.Error())
		}
		return ask
	}
	return session.StopAsked{Why: string(StopMaxTime), Detail: over.detail()}
}

// due returns the first time at which a call that waits for its result should be started
// again, or the zero Time if none does.
func (r *Run) due() (due time.Time) {
	for _, c := range r.state.View().Open() {
		if !c.Until.IsZero() && (due.IsZero() || c.Until.Before(due)) {
			due = c.Until
		}
	}
	return due
}

// endOfContext returns the error of a context that ended: its cause, which also is the
// context's own error, as in [context.Canceled], to errors.Is.
func endOfContext(ctx context.Context) error {
	err, cause := ctx.Err(), nils.Err(context.Cause(ctx))
	if err == nil || cause == nil || errors.Is(cause, err) {
		return cause
	}
	return &causeError{cause, err}
}

type causeError struct{ cause, err error }

func (e *causeError) Error() string { return e.cause.Error() }

func (e *causeError) Unwrap() []error { return []error{e.cause, e.err} }

// stop records and yields the end of the run, and returns the error that the run
// ends with.
func (r *Run) stop(ctx context.Context, s plan.Stop) error {
	if s.Why == StopVetoed {
		r.findObjection()
	}
	// The result lists waiting calls only if the run stopped because of them.
	if s.Why != StopApprovalPending {
		r.result.Pending = nil
	}
	if s.Why == StopApprovalPending || s.Why == StopNotYet {
		r.result.Due = r.due()
	}
	if !r.quiet {
		totals := r.totals
		r.progress(Progress{Kind: ProgressTotals, Totals: &totals})
	}
	if err := r.record(session.Stopped{Why: string(s.Why), Detail: s.Detail}); err != nil {
		return err
	}
	if err := r.barrier(); err != nil {
		return err
	}
	r.why = s
	path, next, _ := r.state.Speaker()
	if path = append(slices.Clip(path), next); next == "" {
		path = path[:len(path)-1]
	}
	if len(path) > 0 {
		r.result.Speaker = path[len(path)-1]
	}
	if s.Why != StopEndTurn {
		r.result.Answer = ""
	}
	return r.stopError(ctx, s)
}

// findObjection fills the result with what objected to the run.
func (r *Run) findObjection() {
	if r.failure == nil { // it was recorded by another process
		if t := r.tripwireIn(r.session.Log()); t != nil {
			r.failure = &HookError{Hook: t.Stage, Name: t.Guard, Err: t, guard: true}
		}
	}
	var hook *HookError
	if errors.As(r.failure, &hook) {
		r.result.Guard = hook.Name
	}
	if by := objection(r.failure, true); by != nil {
		r.result.Guard, r.result.Tripwire = by.Name, tripped(by)
	}
}

// stopError returns the error that the run ends with.
func (r *Run) stopError(ctx context.Context, s plan.Stop) error {
	switch s.Why {
	case StopUnfit:
		return r.unfit()
	case StopNothingToSend:
		return ErrNothingToSend
	case StopCancelled:
		return endOfContext(ctx)
	case StopVetoed:
		return cmp.Or(r.failure, errors.New(s.Detail)) // the hook may have objected in another process
	case StopProviderError, StopContextFull, StopBadItem:
		switch {
		case r.failure == nil && s.Why == StopContextFull:
			return contextFullError(s.Detail)
		case r.failure == nil:
			return errors.New(s.Detail)
		}
		return r.explainRefusal(r.failure)
	}
	return nil
}
