// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// This file asks the guards. They run in goroutines of their own and touch nothing
// of the run; the run's goroutine collects their answers and records what follows.
// Which input they have agreed to is read from the log: a turn that ended without
// breaking off proves it, because the end of a turn is recorded only after they
// agreed. So a crash at any point makes the next process ask them again.

// Guard checks what a model reads or says, and can object to it. What it objects to
// is withdrawn: no request carries it now or later, and neither does the [Result].
// The log keeps it, with the guard's name and reason: see [session.ItemsWithdrawn].
// The run ends with [StopVetoed], and its error is the [Tripwire]. The next run
// continues without the items.
//
// A guard checks what subagents say only if its agent holds its output back: see Hold and
// [Agent].HoldOutput. Otherwise their events are yielded at once: give their agents guards
// of their own.
//
// All guards of an agent run at the same time, each in its own goroutine and with its
// own copies. As soon as one objects, the contexts of the others end.
//
// A guard that returns an error, panics, does not answer within its Timeout, or is cut
// short because the run's context ends has neither agreed nor objected. Nothing is
// sent, shown or run on its account: the run ends with [StopVetoed] and a
// [*HookError], or for the reason why its context ended. Nothing is withdrawn except
// an unfinished reply, and the next run asks the guard again before anything else.
// The same holds if the process ends first, and for [Agent.Step] in another process.
//
// A guard that runs an agent with its context draws on the run's budgets and limits;
// other work draws on them by [GuardCall.Spend]. The log records this usage as a
// [session.SubagentUsage] without a call.
type Guard struct {
	// Name identifies the guard in errors, results, events and the log. If it is
	// empty, the guard's place is its name, such as "guard 1".
	Name string
	// Input checks messages before a model has answered them: those that were passed
	// to the run or to [Run.Say], or appended to the session. System and developer
	// messages are the program's own and are not checked. Messages that a program
	// appended, with a reply behind them that it appended too, are history. It returns
	// nil, nil to agree.
	// An error that wraps a Tripwire is an objection, too. An objection withdraws all
	// items of the GuardCall. Input may be nil.
	//
	// Input runs beside the request unless First is set: the request is sent at the
	// same time, and nothing of the reply is yielded, and no call starts, before all
	// guards agreed. An objection cancels the request and withdraws what has arrived
	// of the reply. The endpoint has then read the input, and may charge for it.
	// [Watch] and the log show a reply as it arrives.
	Input func(ctx context.Context, c *GuardCall) (*Tripwire, error)
	// First has Input answer before the request is sent, so that an endpoint never
	// gets input that the guard objects to. It is slower by the guard's time. A
	// compaction always waits for the guards.
	First bool
	// ToolOutputs has Input check the outputs of calls, too. A text that says why
	// replaces an output that is withdrawn.
	ToolOutputs bool
	// Output checks a reply when it is complete, or has broken off, and before its
	// calls start, except for calls that start early: see tool.Annotations.EarlyStart.
	// An objection withdraws the reply. Output may be nil.
	Output func(ctx context.Context, c *GuardCall) (*Tripwire, error)
	// Hold withholds the events of each reply until Output agreed, like
	// [Agent].HoldOutput. If it is false, the text of a reply that Output objects to
	// may have been yielded, and the caller should remove it from the screen.
	Hold bool
	// Timeout bounds one check: 0 means 30 seconds. A guard that does not return
	// within [tool.Grace] after its context has ended continues in its goroutine, but
	// its answer is not used. Within this time an objection still counts, and nothing else.
	Timeout time.Duration
}

const guardTimeout = 30 * time.Second

// GuardCall is what a [Guard] checks. It is an argument of guards, not a call that a
// model made. A guard may keep and change it.
type GuardCall struct {
	// Session is the session's id. Depth is 0, or higher in subagents. Turn is the
	// turn of the request or reply.
	Session string
	Depth   int
	Turn    int
	// Items are to be checked: new input, or a reply.
	Items []item.Item
	// History holds the items before them.
	History *item.List
	// Stored means that an earlier run recorded the reply, but ended before its guards
	// agreed.
	Stored bool

	budget *Budget
}

// Text returns the text of the messages and outputs among the Items, one after
// another on lines of their own. It does not contain images, files, reasoning and the
// arguments of calls.
func (c *GuardCall) Text() string {
	var texts []string
	for _, it := range c.Items {
		if text := textOf(it); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// textOf returns the text of a message or of the output of a call.
func textOf(it item.Item) string {
	switch it.Type() {
	case item.TypeMessage:
		if m, err := item.As[item.Message](it); err == nil {
			return m.Content.Display()
		}
	case item.TypeFunctionCallOutput:
		if o, err := item.As[item.FunctionCallOutput](it); err == nil {
			return o.Output.Display()
		}
	case item.TypeCustomToolCallOutput:
		if o, err := item.As[item.CustomToolCallOutput](it); err == nil {
			return o.Output.Display()
		}
	default:
		if it.IsOutput() {
			return it.JSON() // the API's own tools have outputs of many forms
		}
	}
	return ""
}

// Spend draws the usage of a guard's own requests from the run's limits and budgets.
// Runs of an agent with the guard's context are counted already. Spend may be called
// by several goroutines, until the guard returns.
func (c *GuardCall) Spend(u Usage) { c.budget.Spend(u) }

// Tripwire is the objection of a [Guard]. It is the error of the run that it ends,
// so errors.As finds it, and it is in [Result].Tripwire and in the event
// [ProgressTripped].
type Tripwire struct {
	// Guard is the guard's name, and Stage is "input" or "output". The run sets both.
	Guard string `json:"guard"`
	Stage string `json:"stage"`
	// Reason is the explanation for people. It is stored in the log, and the model
	// reads it in place of a withdrawn output, so it should not quote the item.
	Reason string `json:"reason,omitempty"`
	// Value is the guard's own result, such as scores. The log does not keep it.
	Value any `json:"value,omitempty"`
}

// The stages of a [Tripwire].
const (
	stageInput  = "input"
	stageOutput = "output"
)

func (t *Tripwire) Error() string {
	if t == nil {
		return "<nil>" // fmt prints a Result without an objection by it
	}
	return fmt.Sprintf("guard %s objects to the %s: %s", t.Guard, t.Stage, cmp.Or(t.Reason, "it gives no reason"))
}

// tripped returns the objection of a guard in an error, or nil.
func tripped(err error) *Tripwire {
	var t *Tripwire
	if errors.As(err, &t) {
		return t
	}
	return nil
}

// undecided reports whether an error says that a guard could not decide.
func undecided(err error) bool {
	var hook *HookError
	return errors.As(err, &hook) && hook.guard && tripped(hook) == nil
}

// checkGuards returns an error for a guard that checks nothing, or less than it says.
func checkGuards(guards []Guard) error {
	for i := range guards {
		if g := &guards[i]; g.Input == nil && g.Output == nil {
			return fmt.Errorf("agent: Guards[%d] (%s) checks nothing: set Input or Output", i, nameOfGuard(guards, i))
		} else if g.Input == nil && (g.First || g.ToolOutputs) {
			return fmt.Errorf("agent: Guards[%d] (%s) has First or ToolOutputs, which are about Input, and no Input", i, nameOfGuard(guards, i))
		} else if g.Output == nil && g.Hold {
			return fmt.Errorf("agent: Guards[%d] (%s) has Hold, which is about Output, and no Output", i, nameOfGuard(guards, i))
		} else if g.Timeout < 0 {
			return fmt.Errorf("agent: Guards[%d] (%s) has the Timeout %v: want a positive one, or 0 for %v", i, nameOfGuard(guards, i), g.Timeout, guardTimeout)
		}
	}
	return nil
}

func nameOfGuard(guards []Guard, i int) string {
	return cmp.Or(guards[i].Name, fmt.Sprintf("guard %d", i+1))
}

// holdsOutput reports whether the events of a reply are held back until it has been
// judged.
func (a *Agent) holdsOutput() bool {
	return a.HoldOutput || slices.ContainsFunc(a.Guards, func(g Guard) bool { return g.Hold && g.Output != nil })
}

func (a *Agent) judgesOutput() bool {
	return slices.ContainsFunc(a.Guards, func(g Guard) bool { return g.Output != nil })
}

// check is one guard with what it is asked.
type check struct {
	name, stage string
	timeout     time.Duration
	ask         func(ctx context.Context, c *GuardCall) (*Tripwire, error)
	call        *GuardCall
	seqs        []int64 // the entries of the call's items
	guard       int     // the index in Agent.Guards
}

func (r *Run) newCheck(i int, stage string, call GuardCall) *check {
	g := &r.agent.Guards[i]
	c := &check{name: nameOfGuard(r.agent.Guards, i), stage: stage, timeout: g.Timeout, ask: g.Input, guard: i}
	if stage == stageOutput {
		c.ask = g.Output
	}
	if c.timeout <= 0 {
		c.timeout = guardTimeout
	}
	call.Session, call.Depth, call.budget = r.session.ID(), r.depth, r.budget.Child()
	call.Items, call.History = slices.Clone(call.Items), call.History.Clone()
	c.call = &call
	return c
}

// answer is what one guard said.
type answer struct {
	at   int // the index of its check
	trip *Tripwire
	err  error
	late bool // its context had ended: only an objection counts
}

// run asks the guard and returns its answer, or an error if it gave none in time.
func (c *check) run(ctx context.Context) answer {
	own, stop := context.WithTimeout(WithBudget(ctx, c.call.budget), c.timeout)
	defer stop()
	answered := make(chan answer, 1)
	go func() {
		a, returned := answer{}, false
		defer func() {
			if !returned { // it panicked, or called runtime.Goexit
				a.err = c.failed(fmt.Errorf("it panicked: %v", recover()), debug.Stack())
			}
			answered <- a
		}()
		trip, err := c.ask(own, c.call)
		a.late = own.Err() != nil
		err, returned = nils.Err(err), true
		if err != nil && nils.Is(err) { // such as a nil *Tripwire, which has a text
			err = fmt.Errorf("its error is a nil %T, which is not a nil error", err)
		}
		if trip == nil {
			trip = tripped(err)
		}
		if a.trip = c.objection(trip); trip == nil && err != nil {
			a.err = c.failed(err, nil)
		}
	}()
	a, there := answer{}, true
	select {
	case a = <-answered:
	case <-own.Done():
		grace := time.NewTimer(tool.Grace)
		defer grace.Stop()
		select {
		case a = <-answered:
		case <-grace.C:
			there = false
		}
	}
	if there && (a.trip != nil || !a.late) {
		return a
	}
	if ctx.Err() != nil {
		return answer{err: c.failed(context.Cause(ctx), nil)}
	}
	return answer{err: c.failed(fmt.Errorf("it did not answer within %v", c.timeout), nil)}
}

// failed returns the error for a guard that did not decide. It stops the run, and is
// not an objection.
func (c *check) failed(err error, stack []byte) error {
	return &HookError{Hook: c.stage, Name: c.name, Err: &StopError{err}, Stack: stack, guard: true}
}

// objection returns the guard's own copy of a Tripwire, with its name. A guard may
// return the same Tripwire many times.
func (c *check) objection(t *Tripwire) *Tripwire {
	if t == nil {
		return nil
	}
	own := *t
	own.Guard, own.Stage = c.name, c.stage
	return &own
}

// runAll asks guards at the same time. It returns the objection of the first guard
// in the list that objects or, if none does, the errors of those that did not decide.
// Doomed is called as soon as it is certain that not all agree.
func runAll(ctx context.Context, checks []*check, doomed func()) (by *check, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := make(chan answer, len(checks))
	for i, c := range checks {
		go func() {
			a := c.run(ctx)
			a.at = i
			answers <- a
		}()
	}
	all := make([]answer, len(checks))
	for range checks {
		a := <-answers
		all[a.at] = a
		if a.trip != nil {
			stop() // the others need not answer any more
		}
		if a.trip != nil || a.err != nil {
			doomed()
		}
	}
	var failed []error
	for i, a := range all {
		if a.trip != nil {
			return checks[i], &HookError{Hook: checks[i].stage, Name: checks[i].name, Err: a.trip, guard: true}
		}
		if a.err != nil {
			failed = append(failed, a.err)
		}
	}
	if len(failed) == 1 {
		return nil, failed[0]
	}
	return nil, errors.Join(failed...)
}

// spent records the usage of guards, which counts in the run.
func (r *Run) spent(checks []*check) error {
	var sum Usage
	for _, c := range checks {
		sum.Add(c.call.budget.Used())
	}
	if sum == (Usage{}) {
		return nil
	}
	used := session.SubagentUsage{Turns: sum.Turns, Tokens: sum.Tokens, Cost: sum.Cost}
	r.nested([]session.Body{used})
	return r.record(used)
}

// inputChecks returns the checks of new input that are due, of guards that go first or
// of those that run beside the request, or of all.
func (r *Run) inputChecks(due func(*Guard) bool) []*check {
	if !slices.ContainsFunc(r.agent.Guards, func(g Guard) bool { return g.Input != nil && due(&g) }) {
		return nil
	}
	var checks []*check
	unanswered := unreadIn(r.session.Log()).without(isInstruction)
	all, fresh := r.inherited()
	for i := range r.agent.Guards {
		g := &r.agent.Guards[i]
		if g.Input == nil || !due(g) {
			continue
		}
		u := unanswered
		if fresh && i >= len(r.first.Guards) { // see lend
			u = all
		}
		due := u.without(func(w *waiting) bool { return w.seq <= r.agreed[i] || !g.ToolOutputs && w.it.IsOutput() })
		if len(due.list) > 0 {
			c := r.newCheck(i, stageInput, GuardCall{Turn: r.state.Turn() + 1, Items: due.items(), History: r.before(u.seqs())})
			c.seqs = due.seqs()
			checks = append(checks, c)
		}
	}
	return checks
}

// agree remembers what guards agreed to, so that this process does not ask them again
// if the request has to be repeated.
func (r *Run) agree(checks []*check) {
	if r.agreed == nil {
		r.agreed = map[int]int64{}
	}
	for _, c := range checks {
		r.agreed[c.guard] = c.seqs[len(c.seqs)-1]
	}
}

func goesFirst(g *Guard) bool  { return g.First }
func runsBeside(g *Guard) bool { return !g.First }
func anyGuard(*Guard) bool     { return true }

// guardNow asks guards about new input and waits for them. It returns their veto, the
// entries that it withdraws, if any, and an error of the store.
func (r *Run) guardNow(ctx context.Context, due func(*Guard) bool) (veto error, gone []int64, err error) {
	checks := r.inputChecks(due)
	if len(checks) == 0 {
		return nil, nil, nil
	}
	by, veto := runAll(ctx, checks, func() {})
	if err := r.spent(checks); err != nil {
		return nil, nil, err
	}
	switch {
	case veto == nil:
		r.agree(checks)
	case by != nil:
		gone = withReply(by.seqs, r.session.Log())
	}
	return veto, gone, nil
}

// withReply adds the entries of replies that broke off to those of input, in order.
func withReply(seqs []int64, log []session.Entry) []int64 {
	all := slices.Concat(seqs, unreadIn(log).said)
	slices.Sort(all)
	return slices.Compact(all)
}

// guardFirst asks guards about new input before something is sent, and reports
// whether they agreed. Otherwise it has recorded why the run ends.
func (r *Run) guardFirst(ctx context.Context, due func(*Guard) bool) (agreed bool, err error) {
	veto, gone, err := r.guardNow(ctx, due)
	switch {
	case err != nil || veto == nil:
		return err == nil, err
	case len(gone) > 0:
		return false, r.withdraw(veto, gone)
	case interrupted(ctx, veto):
		return false, nil // the run ends with the reason why its context ended
	}
	return false, r.stopFor(veto)
}

// beside is the input guards that run beside one request.
type beside struct {
	checks []*check
	done   chan struct{} // closed when they have answered
	stop   context.CancelFunc
	// by and veto are their answer. They may be read after done is closed.
	by   *check
	veto error
	// told means that the run has taken the answer.
	told bool
}

// startBeside asks the input guards that run beside the request, and returns the
// context for the request, which ends when not all of them agree.
func (r *Run) startBeside(ctx, inner context.Context) context.Context {
	r.beside = nil
	checks := r.inputChecks(runsBeside)
	if len(checks) == 0 {
		return inner
	}
	inner, cancel := context.WithCancel(inner)
	guards, stop := context.WithCancel(ctx)
	b := &beside{checks: checks, done: make(chan struct{}), stop: func() { stop(); cancel() }}
	r.beside = b
	go func() {
		defer close(b.done)
		b.by, b.veto = runAll(guards, checks, cancel)
	}()
	return inner
}

// vetoed reports whether guards beside the request did not agree. It may be called
// after their answer was taken.
func (b *beside) vetoed() bool { return b != nil && b.told && b.veto != nil }

// leave ends the guards without waiting for them, because nothing can be recorded any
// more.
func (b *beside) leave() {
	if b != nil {
		b.stop()
	}
}

// deciding returns a channel that is closed when the guards beside the request have
// answered. It returns nil if there are no such guards, or if the answer was taken.
func (b *beside) deciding() <-chan struct{} {
	if b == nil || b.told {
		return nil
	}
	return b.done
}

// answered takes the answer of the guards beside the request if it is there. If they
// agreed, it yields what was held back because of them. It returns their veto.
func (r *Run) answered() error {
	b := r.beside
	if b == nil {
		return nil
	}
	if b.told {
		return b.veto
	}
	select {
	case <-b.done:
	default:
		return nil
	}
	b.told = true
	if b.veto == nil && !r.agent.holdsOutput() {
		r.release(true)
	}
	return b.veto
}

// endBeside waits for the guards beside the request, and records their usage. It
// returns their veto. It must be called once before the end of the turn is recorded,
// because that end says that they agreed.
func (r *Run) endBeside() (veto, err error) {
	b := r.beside
	if b == nil {
		return nil, nil
	}
	<-b.done
	b.stop()
	if err := r.spent(b.checks); err != nil {
		return nil, err
	}
	if veto = r.answered(); veto == nil {
		r.agree(b.checks)
	}
	return veto, nil
}

// vetoBeside ends a turn that guards beside the request did not agree to. What came of
// the reply is withdrawn, and with it the input if a guard objects. If the guards
// could not decide, the input waits for the next run. Also holds what hooks said.
func (r *Run) vetoBeside(also error) error {
	var input []int64
	if by := r.beside.by; by != nil {
		input = by.seqs
	}
	// Without entries to withdraw this only stops the run.
	err := r.withdraw(r.beside.veto, withReply(input, r.session.Log()))
	if r.failure != nil {
		r.failure = errors.Join(r.failure, also)
	}
	return err
}

// vetoedBeside reports whether guards beside the request did not agree to it. Guards
// that were cut short have said nothing: the run ends for the reason why its context
// ended, and the next one asks them.
func (r *Run) vetoedBeside(ctx context.Context) bool {
	return r.beside.vetoed() && (r.beside.by != nil || !interrupted(ctx, r.beside.veto))
}

// guardReply asks the output guards about a reply.
func (r *Run) guardReply(ctx context.Context, output []item.Item, turn int, stored bool) error {
	if len(output) == 0 || !r.agent.judgesOutput() {
		return nil
	}
	var checks []*check
	history := item.NewList()
	v := r.state.View()
	for i, it := range v.Items().All() {
		if seq, _ := v.Seq(i); seq >= r.state.TurnEntry() {
			break
		}
		history.Append(it)
	}
	for i := range r.agent.Guards {
		if r.agent.Guards[i].Output != nil {
			checks = append(checks, r.newCheck(i, stageOutput, GuardCall{Turn: turn, Items: output, History: history, Stored: stored}))
		}
	}
	_, veto := runAll(ctx, checks, func() {})
	if err := r.spent(checks); err != nil {
		return err
	}
	return veto
}

// replyIn returns the items of the log's last turn, including what arrived of items
// that never became complete.
func replyIn(log []session.Entry) (items []item.Item) {
	for _, e := range slices.Backward(log) {
		switch b := e.Body.(type) {
		case session.OutputItem:
			items = append(items, b.Item)
		case session.TurnStarted:
			slices.Reverse(items)
			return items
		}
	}
	return nil
}

// tripwireIn returns the objection that the log records last, if it is one of the
// agent's guards, for a process that takes a run over after it. The guard's own value
// is gone.
func (r *Run) tripwireIn(log []session.Entry) *Tripwire {
	for _, e := range slices.Backward(log) {
		switch b := e.Body.(type) {
		case session.RunStarted:
			if !b.Resumes {
				return nil
			}
		case session.ItemsWithdrawn:
			for i := range r.agent.Guards {
				if nameOfGuard(r.agent.Guards, i) != b.By || b.By == "" {
					continue
				}
				t := &Tripwire{Guard: b.By, Stage: stageOutput, Reason: strings.TrimSuffix(b.Reason, ".")}
				for _, w := range log {
					if _, input := w.Body.(session.InputItem); input && slices.Contains(b.Seqs, w.Seq) {
						t.Stage = stageInput
					}
				}
				return t
			}
			return nil
		}
	}
	return nil
}
