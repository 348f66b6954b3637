// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

const defaultParallel = 8

func (r *Run) annotations(name string) (tool.Annotations, bool) {
	t, known := r.tools.Lookup(name)
	if !known {
		return tool.Annotations{}, false
	}
	return tool.AnnotationsOf(t), true
}

// polls reports whether a tool is meant to be called repeatedly.
func (r *Run) polls(name string) bool {
	t, _ := r.annotations(name)
	return t.Polling
}

// close records an output for each call that will not run, which says why. If no
// output exists for the kind of call, the call is removed from the view instead, and a
// message says why.
func (r *Run) close(calls []plan.Skipped) error {
	for _, ref := range calls {
		c, ok := r.state.Call(ref.CallRef)
		if !ok {
			continue
		}
		text := ref.Reason
		if !plan.Hosted(c.Item) {
			// Local tools return their failures in the same form.
			text = output.Envelope(true, plan.ToolName(c.Item), ref.Reason, "")
		}
		out, ok, err := item.OutputFor(c.Item, item.Text(text))
		if err != nil {
			return err
		}
		if !ok {
			if err := r.recordNoted(c.Item, text, session.CallDropped{CallID: c.CallID, Reason: ref.Reason}); err != nil {
				return err
			}
			continue
		}
		out = withCaller(out, c.Item)
		done := session.CallOutput{CallID: c.CallID, Item: out, Failed: true}
		if c.Item.Type() == item.TypeToolSearchCall {
			err = r.recordNoted(c.Item, text, done)
		} else {
			err = r.answer(done, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bound returns how many calls may run at once.
func (r *Run) bound() int {
	if p := r.agent.Request.ParallelToolCalls; p != nil && !*p {
		return 1
	}
	return max(1, cmp.Or(r.agent.Parallel, defaultParallel))
}

// call runs the tools of the calls, concurrently up to the bound. An exclusive tool
// runs alone. call returns when all calls have their outputs, including the calls
// that were started early.
func (r *Run) call(ctx context.Context, calls []plan.CallRef) error {
	bound := r.bound()
	var failure error
	var ready []*finished // their starts are recorded, and they are launched together after one barrier
	r.batch = batch{size: len(calls)}
	for _, ref := range calls {
		c, ok := r.state.Call(ref)
		if !ok || r.early[c.Seq] {
			continue
		}
		t, _ := r.annotations(plan.ToolName(c.Item))
		// The number of calls that may still run when this one starts.
		most := bound - 1
		if t.Exclusive {
			most = 0
		}
		// Ready calls take a place, too, so start them before waiting for a free
		// one.
		if r.running+len(ready) > most {
			r.launch(ctx, &ready, &failure)
			r.settle(ctx, most, &failure)
		}
		if failure == nil && ctx.Err() == nil {
			var f *finished
			if f, failure = r.start(ctx, &c, false); f != nil {
				ready = append(ready, f)
			}
		}
		if t.Exclusive {
			r.launch(ctx, &ready, &failure)
			r.settle(ctx, 0, &failure)
		}
	}
	r.launch(ctx, &ready, &failure)
	r.settle(ctx, 0, &failure)
	r.early = nil
	if failure == nil {
		return r.fit(ctx, calls)
	}
	r.lose(r.batch.large...)
	return failure
}

// batch collects the outputs of calls that run together.
type batch struct {
	size  int
	outs  []*output.Output // all outputs so far, if there is a limit per turn
	large []*finished      // outputs that may have to be shortened when all are known
}

// settle records outputs until at most the given number of calls run, and emits the
// events of subagents that arrive meanwhile. After a failure it cancels the tools,
// and only the hooks see their outcomes.
func (r *Run) settle(ctx context.Context, until int, failure *error) {
	for r.running > until || until == 0 && r.resting > 0 {
		// All recording happens in this goroutine, so outcomes are recorded one at a
		// time.
		switch m := r.next(failure).(type) {
		case *finished:
			r.running--
			if *failure == nil {
				*failure = r.returned(ctx, m)
			} else {
				r.lose(m)
			}
		case rests:
			r.rest(m)
		case starts:
			r.begins(m, failure)
		case Event:
			r.emit(m)
		}
		if *failure != nil {
			r.cancel() // nothing can be recorded any more
		}
	}
}

// rest counts a call that begins or ends to wait for its rate.
func (r *Run) rest(begins rests) {
	n := 1
	if !begins {
		n = -1
	}
	r.resting += n
	r.running -= n
}

// next returns the next message from a call: a *finished, rests, starts or an Event. If it has to
// wait, it first makes sure that everything recorded is durable and emitted, so that
// an observer sees the run's state while tools work.
func (r *Run) next(failure *error) any {
	select {
	case m := <-r.inside:
		return m
	default:
	}
	if err := r.barrier(); err != nil && *failure == nil {
		*failure = err
		r.cancel() // nothing can be recorded any more
	}
	return <-r.inside
}

// returned records an output, unless its size depends on the other outputs of the
// turn.
func (r *Run) returned(ctx context.Context, f *finished) error {
	if r.agent.outputPolicy().PerTurn == nil {
		return r.finish(ctx, f)
	}
	r.batch.outs = append(r.batch.outs, &f.out.Output)
	if r.agent.outputPolicy().WithinTurn(&f.out.Output, r.batch.size) {
		return r.finish(ctx, f)
	}
	r.batch.large = append(r.batch.large, f)
	return nil
}

// fit shortens the large outputs to the limit of the turn, and records them in call
// order.
func (r *Run) fit(ctx context.Context, calls []plan.CallRef) (err error) {
	if len(r.batch.large) == 0 {
		return nil
	}
	r.agent.outputPolicy().FitTurn(r.uncancelled, r.batch.outs...)
	for _, c := range calls {
		for _, f := range r.batch.large {
			if f.call.Seq == c.Seq {
				if err != nil {
					r.lose(f)
				} else {
					err = r.finish(ctx, f)
				}
			}
		}
	}
	return err
}

// send passes a message to the run's own goroutine. After the run is over it drops
// the message.
func (r *Run) send(m any) {
	select {
	case r.inside <- m:
	case <-r.over:
	}
}

// finished is a call whose tool has returned.
type finished struct {
	call  session.OpenCall // its state when it was started
	hooks []Hooks          // hooks whose AfterTool is due
	ctx   context.Context
	seen  ToolCall
	scope *scope    // of a subagent
	given tool.Call // the call as the tool gets it
	other string    // the whole name of the tool that the call means, if there is none: see toolOf
	early bool      // started while the reply was arriving
	mark  session.CallStarted
	due   bool // the mark is recorded when the call has waited for its rate
	out   tool.Outcome
	// before describes an earlier start of the call for the model; "" if there was
	// none.
	before string
}

// mayWait reports whether the call may wait before it runs, or between attempts.
func (f *finished) mayWait() bool {
	return f.seen.Annotations.Rate != nil || f.seen.Annotations.Retry != nil || f.seen.Annotations.Polling
}

// rests is a message from a call's goroutine: it begins or ends to wait for its rate.
// Meanwhile another call may take its place.
type rests bool

// starts is a message from a call's goroutine: it has waited for its rate, and may run
// once its start is durable.
type starts struct {
	f       *finished
	durable chan bool
}

// begins records the start of a call that has waited.
func (r *Run) begins(s starts, failure *error) {
	if *failure == nil {
		*failure = r.record(s.f.mark)
	}
	if *failure == nil {
		*failure = r.barrier()
	}
	s.durable <- *failure == nil
}

// told returns the call's context, in which waits become events. The first wait of a
// call does not hold other calls, and neither do those for a result, unless calls are made
// one after another.
func (f *finished) told(r *Run, together bool) context.Context {
	return tool.WithWait(f.ctx, func(w tool.Wait) func() {
		if !r.quiet {
			r.send(Progress{Kind: ProgressDelayed, Turn: f.seen.Turn, CallID: f.call.CallID, Tool: f.seen.Call.Name, Wait: w.For, Reason: w.Reason, Retry: w.Again && !w.NotYet})
		}
		if w.Again && !w.NotYet || !together {
			return nil
		}
		r.send(rests(true))
		return func() { r.send(rests(false)) }
	})
}

// toolOf returns the tool of a call, or nil if it is unknown. A call that names a group in which the
// tool of its name is not means another tool: toolOf returns nil and the whole name. Endpoints name a
// tool without a group as its own.
func (r *Run) toolOf(it item.Item, name string) (t tool.Tool, other string) {
	t, known := r.tools.Lookup(name)
	if !known {
		return nil, ""
	}
	group := tool.AnnotationsOf(t).Namespace
	if group == nil {
		return t, ""
	}
	value, _ := it.Member("namespace")
	meant, _ := value.Unquote()
	if meant == "" || meant == group.Name || meant == name {
		return t, ""
	}
	return nil, meant + "." + name
}

func (f *finished) invoke(r *Run) {
	given := f.given
	given.Name = cmp.Or(f.other, given.Name)
	f.out = r.tools.Invoke(f.ctx, given, r.agent.outputPolicy())
	f.seen.Ended = time.Now()
	switch f.out.Failure {
	case tool.NotRun, tool.UnknownTool, tool.BadArguments:
		if f.before != "" { // "nothing was done" is true of this start only
			f.out.Error = f.before
			f.out.Content = item.Text(output.Envelope(true, f.given.Name, f.before, ""))
		}
	}
}

// allowUnknown is the rule by which calls of unknown tools are allowed.
const allowUnknown = "allow calls of unknown tools, which run nothing"

// unknownBefore is the text that the model reads about a call whose tool is known by now.
const unknownBefore = "The call was refused: its tool was unknown when the run was interrupted, so nobody was asked about the call. Nothing was done. Another call asks."

const denyElsewhere = "deny what was started as a run of another session"

// deniedElsewhere is the verdict on such a call.
var deniedElsewhere = session.Approval{Reason: sessionElsewhere, Rule: denyElsewhere, From: plan.ByDefault, Decided: session.DeciderRule}

// goesOn reports whether a paused call may continue its subagent: the tool must
// start subagents, and the session in the log must be the one that this call would
// start. The session's id alone proves nothing, because a log can be copied.
func (r *Run) goesOn(c *session.OpenCall, annotations tool.Annotations) bool {
	return annotations.Subagent && c.Paused == r.session.NestedID(*c)
}

// repeatable reports whether a call of the tool may be started again if a crash hides
// its outcome: because that does no harm, or because the tool can be asked first.
func repeatable(a tool.Annotations) bool { return a.Idempotent || a.Polling || a.Inquirer != nil }

// startedBefore describes an earlier start of a call for the model, or returns "".
func startedBefore(c *session.OpenCall) string {
	switch {
	case c.Lost:
		return plan.OutcomeUnknown
	case c.Paused != "":
		return plan.StoppedWaiting
	case !c.Until.IsZero():
		return plan.StoppedAsking
	}
	return ""
}

// start records the start of a call and returns the call for launch. If the call is
// refused after all, start records the refusal and returns nil; the next effect
// closes the call.
func (r *Run) start(ctx context.Context, c *session.OpenCall, early bool) (*finished, error) {
	call, err := r.callOf(c)
	if err != nil {
		return nil, err
	}
	said := call.Arguments
	allowed := *cmp.Or(c.Verdict, &session.Approval{})
	call.Arguments = cmp.Or(allowed.Edited, said)
	t, other := r.toolOf(c.Item, call.Name)
	f := &finished{call: *c, ctx: ctx, given: call, other: other, before: startedBefore(c), seen: ToolCall{
		tool: t, Session: r.session.ID(), Depth: r.depth, Turn: r.state.Turn(), Speaker: r.speaker(), Call: call, Verdict: allowed, Started: time.Now(),
	}}
	if t != nil {
		f.seen.Annotations = tool.AnnotationsOf(t)
	}
	if refusal := r.overtaken(c, f); refusal != nil {
		return nil, r.verdict(ctx, *c, *refusal, false)
	}
	if refusal := r.admit(f); refusal != nil {
		refusal.Reason = cmp.Or(f.before, refusal.Reason)
		// A person is asked about another call, if there is one.
		unasked := refusal.Decided == session.DeciderNobody && r.agent.Policy.Approver == nil
		return nil, r.verdict(ctx, *c, *refusal, unasked)
	}
	// The endpoint runs the call, so there is nothing to start here.
	if plan.Hosted(c.Item) {
		return nil, r.approveHosted(ctx, f, said)
	}
	// The start is recorded before the tool runs: a call that is marked and has no
	// output after a crash may have taken effect.
	begun := session.CallStarted{CallID: c.CallID, Repeatable: repeatable(f.seen.Annotations)}
	if f.given.Arguments != said {
		f.given.Edited, begun.Arguments = true, f.given.Arguments
	}
	if f.seen.Annotations.Subagent {
		f.scope = r.scope(*c)
		begun.Session = f.scope.id
	}
	// A call that waits has not started: after a crash it must not count as one that
	// may have run.
	if f.mark, f.due = begun, f.seen.Annotations.Rate != nil; !f.due {
		if err := r.record(begun); err != nil {
			r.drop(f)
			return nil, err
		}
	}
	if f.scope != nil {
		f.ctx = context.WithValue(f.ctx, scopeKey{}, f.scope)
	}
	if f.seen.Annotations.Folders != nil {
		f.ctx = tool.WithPlace(f.ctx, r.places(f))
	}
	f.early = early
	return f, nil
}

// overtaken returns a refusal if a call must not start although it was allowed, because of what happened since then.
func (r *Run) overtaken(c *session.OpenCall, f *finished) *session.Approval {
	refused := func(reason string) *session.Approval {
		return &session.Approval{Reason: reason, From: plan.ByDefault, Decided: session.DeciderProgram}
	}
	t, about, allowed := f.seen.tool, f.seen.Annotations, f.seen.Verdict
	switch {
	case c.Paused != "" && !r.goesOn(c, about): // the tool may have changed since the call was paused, or the log is a copy
		elsewhere := deniedElsewhere
		return &elsewhere
	case c.Lost && !repeatable(about): // it was idempotent when it was started, but is not any more
		return refused(plan.OutcomeUnknown)
	case allowed.Definition != "" && allowed.Definition != r.definition(c.Item, t, f.given.Name):
		return refused(changedSince)
	case t != nil && allowed.Rule == allowUnknown && allowed.From == plan.ByDefault:
		// Nobody was asked about it when its tool was unknown, and the run was interrupted.
		return refused(unknownBefore)
	}
	// Before the hooks, which may record a start. The limit may be lower than when the call was approved.
	return r.tooDeep(c, about)
}

// drop reports to the hooks that a call was not started, because its start could not
// be recorded.
func (r *Run) drop(f *finished) {
	f.seen.Ended, f.out.Failure = time.Now(), tool.NotRun
	r.lose(f)
}

// launch starts the tools of the ready calls, once the reply, the verdicts and the
// starts of the calls are durable. settle receives the outcomes. After a failure
// nothing is started.
func (r *Run) launch(ctx context.Context, ready *[]*finished, failure *error) {
	if *failure == nil && len(*ready) > 0 {
		*failure = r.barrier()
	}
	for _, f := range *ready {
		switch {
		case *failure != nil:
			r.drop(f)
		case r.batch.size == 1 && !f.early && f.scope == nil && !f.mayWait(): // the usual case: nothing runs beside it, so it needs no goroutine
			f.invoke(r)
			*failure = r.returned(ctx, f)
		default:
			r.run(f)
		}
	}
	*ready = nil
}

// run runs a tool in its own goroutine.
func (r *Run) run(f *finished) {
	if f.seen.Annotations.Polling {
		f.ctx = tool.WithPatience(f.ctx, r.park)
	}
	if f.mayWait() {
		f.ctx = r.tools.Reserve(f.told(r, r.bound() > 1), f.given) // in the order of the calls
	}
	if f.due {
		f.ctx = tool.WithStart(f.ctx, func() bool {
			s := starts{f, make(chan bool, 1)}
			r.send(s)
			select {
			case durable := <-s.durable:
				return durable
			case <-r.over:
				return false
			}
		})
	}
	r.running++
	r.inner.Add(1)
	go func() {
		defer r.inner.Done()
		f.invoke(r)
		r.send(f)
		if f.scope != nil && f.out.Abandoned {
			// A subagent still writes to its session, so the run must not end before
			// it.
			<-f.scope.ended
		}
	}()
}

// notEditable is the answer to the endpoint about a call whose arguments were
// changed. The endpoint accepts only yes or no.
const notEditable = "The call was not approved: its arguments were changed, and a call that the endpoint makes can only be approved as it is."

// approveHosted approves a call that the endpoint wants to make.
func (r *Run) approveHosted(ctx context.Context, f *finished, said string) error {
	f.seen.Ended = time.Now()
	if f.given.Arguments == said {
		return r.finish(ctx, f)
	}
	f.out.Failed, f.out.Failure, f.out.Error, f.out.Content = true, tool.NotRun, notEditable, item.Text(notEditable)
	if err := r.finish(ctx, f); err != nil {
		return err
	}
	return r.refused(ctx, f.call, session.Approval{Reason: notEditable, Rule: "deny other arguments than the endpoint's", From: plan.ByDefault, Decided: session.DeciderProgram})
}

// admit calls the BeforeTool hooks and applies the rules to the arguments as the
// hooks left them. If the call must not run after all, it returns the text for the
// model and the ruling that decided.
func (r *Run) admit(f *finished) (refusal *session.Approval) {
	hooks := r.agent.Hooks
	if len(hooks) > 0 {
		inner, n, err := before(f.ctx, "BeforeTool", hooks, beforeTool, &f.seen)
		f.ctx, f.hooks = inner, hooks[:n]
		if err != nil {
			refusal = &session.Approval{
				Reason: "The call was refused by a check: " + hookText(err) + " Nothing was done.",
				Rule:   "deny what a check objects to", From: "a hook", Decided: session.DeciderProgram,
			}
		}
	}
	f.given.Arguments = f.seen.Call.Arguments // hooks may change nothing else of the call
	// The rules are applied again, because a hook may have changed the arguments,
	// and because rules may have been added since the verdict.
	if j := r.judge(f.given, f.seen.Annotations); refusal == nil {
		if j.Verdict == session.Deny {
			refusal = &session.Approval{Reason: j.Denied(f.given.Name), Rule: j.Rule, From: j.From, Decided: session.DeciderRule}
		} else {
			refusal = r.outdated(f, j)
		}
	}
	if refusal != nil && len(f.hooks) > 0 {
		f.seen.Ended, f.seen.Failure, f.seen.Error = time.Now(), tool.NotRun, refusal.Reason
		// An error changes nothing, because the call is already refused.
		_ = after(f.ctx, "AfterTool", f.hooks, afterTool, &f.seen)
	}
	return refusal
}

// outdated returns a refusal if the tool asks now about what the model wrote, for a reason that the
// call's approval was not given for: another call has run since then, and may have changed
// what this one does. K6
func (r *Run) outdated(f *finished, now plan.Ruling) *session.Approval {
	call, err := r.callOf(&f.call)
	if err != nil {
		return nil
	}
	if call.Arguments != f.given.Arguments { // a person or a hook wants these instead
		now = r.judge(call, f.seen.Annotations)
	}
	asks, known := whyTool(now), f.seen.Verdict.Asked
	switch {
	case asks == "" || asks == known:
		return nil
	case known == "" && f.seen.Verdict.Decided != session.DeciderRule: // a program that did not record why it asked
		return nil
	}
	return &session.Approval{
		Reason: fmt.Sprintf("The call was refused, because what it does has changed since it was approved: %s. Nothing was done. Another call asks again.", strings.TrimSuffix(asks, ".")),
		Rule:   now.Rule, From: now.From, Decided: session.DeciderNobody,
	}
}

// whyTool returns the tool's reason to ask about a call, or "" if it has none.
func whyTool(j plan.Ruling) string {
	if j.Verdict != session.Ask {
		return ""
	}
	return j.Reason
}

// hookText returns the text for the model about a hook's error. The text of a panic
// is left out.
func hookText(err error) string {
	var h *HookError
	if !errors.As(err, &h) || h.Stack != nil {
		return "the check itself failed."
	}
	if t := tripped(h); t != nil {
		return strings.TrimSuffix(cmp.Or(t.Reason, "a check objects to it"), ".") + "."
	}
	return strings.TrimSuffix(h.Err.Error(), ".") + "."
}

// lose reports the end of calls to the hooks when nothing can be recorded any more.
func (r *Run) lose(calls ...*finished) {
	for _, f := range calls {
		if len(f.hooks) > 0 {
			f.seen.Output, f.seen.Failure, f.seen.Error = f.out.Content, f.out.Failure, f.out.Error
			// The store's error takes precedence.
			_ = after(f.ctx, "AfterTool", f.hooks, afterTool, &f.seen)
		}
	}
}

// finish records the outcome of a call, after the AfterTool hooks have seen it.
func (r *Run) finish(ctx context.Context, f *finished) error {
	seen, out := &f.seen, &f.out
	r.marks = r.marks || len(out.Stored) > 0
	handing := r.handing(f) // it may change the outcome
	done := session.CallOutput{CallID: f.call.CallID, Failed: out.Failed}
	failure := out.Error
	var bodies []session.Body
	paused := false
	if f.scope != nil {
		bodies, paused = f.scope.entries()
		r.nested(bodies)
		paused = paused && ctx.Err() == nil
	}
	later := out.NotYet != nil && ctx.Err() == nil
	if len(f.hooks) > 0 {
		seen.Output, seen.Failure, seen.Error, seen.Paused = out.Content, out.Failure, out.Error, paused || later
		if err := after(f.ctx, "AfterTool", f.hooks, afterTool, seen); err != nil {
			failure = "The output of this call was withheld by a check: " + hookText(err)
			done.Failed = true
			seen.Output = item.Text(output.Envelope(true, seen.Call.Name, failure, ""))
		}
		// The structured results of a shell call or a search no longer match the changed text.
		if done.Edited = !reflect.DeepEqual(seen.Output, out.Content); done.Edited {
			out.Content, out.Commands, out.Found, out.Failed = seen.Output, nil, nil, done.Failed
		}
	}
	hosted := plan.Hosted(f.call.Item)
	if later && !done.Edited {
		return r.later(f, out.NotYet)
	}
	if !r.quiet && !hosted {
		r.emit(Progress{Kind: ProgressReturned, Turn: seen.Turn, CallID: done.CallID, Tool: seen.Call.Name, Took: seen.Ended.Sub(seen.Started),
			Error: failure, LeftOut: out.LeftOut, Kept: slices.Concat(out.Stored, out.Originals)})
	}
	if paused {
		r.result.Pending = append(r.result.Pending, f.scope.wanted...)
		return r.record(bodies...)
	}
	if done.Item = outputItem(f.call.Item, seen.Call.Name, out); done.Item.IsZero() {
		why, _ := output.Sanitize(cmp.Or(failure, noScreenshot))
		return r.counted(true, r.recordNoted(f.call.Item, unsentText(out), append(bodies, session.CallDropped{CallID: done.CallID, Reason: why})...))
	}
	if f.call.Item.Type() == item.TypeToolSearchCall && (done.Failed || done.Edited || out.FoundLeftOut > 0) {
		return r.counted(done.Failed, r.recordNoted(f.call.Item, unsentText(out), append(bodies, done)...))
	}
	if !handing || done.Failed {
		return r.answer(done, !hosted, bodies...)
	}
	// The notice comes first, because it refers to the call while it is open.
	n := handoffNotice(f)
	if err := r.answer(done, true, append(bodies, n)...); err != nil {
		return err
	}
	if objection := after(ctx, "Noticed", r.agent.Hooks, noticed, &n); objection != nil {
		return r.stopFor(objection)
	}
	return nil
}

// later records that a call is made again later, by another run.
func (r *Run) later(f *finished, n *tool.NotYet) error {
	why, _ := output.Sanitize(n.Reason)
	if !r.quiet {
		r.emit(Progress{Kind: ProgressDelayed, Turn: f.seen.Turn, CallID: f.call.CallID, Tool: f.seen.Call.Name, Wait: n.After, Reason: why})
	}
	return r.record(session.Paused{CallID: f.call.CallID, Until: time.Now().Add(n.After).UTC(), Reason: why})
}

// nested adds the usage of subagents to the totals.
func (r *Run) nested(bodies []session.Body) {
	for _, b := range bodies {
		if n, ok := b.(session.SubagentUsage); ok {
			r.totals.Nested.Add(Usage{Turns: n.Turns, Tokens: n.Tokens, Cost: n.Cost})
		}
	}
}

// outputItem returns the item that answers the call. Invoke makes the content valid;
// if it cannot be encoded all the same, the item says so to the model.
func outputItem(call item.Item, name string, out *tool.Outcome) item.Item {
	it, ok, err := answerTo(call, out)
	if err == nil && ok {
		return withCaller(it, call)
	}
	reason := "The output cannot be sent."
	if err != nil {
		reason += " " + err.Error()
	}
	it, _, _ = item.OutputFor(call, item.Text(output.Envelope(true, name, reason, "")))
	return withCaller(it, call)
}

// answer records an output, after the other bodies. ran reports whether a tool
// produced it, so that it counts in the totals.
func (r *Run) answer(done session.CallOutput, ran bool, bodies ...session.Body) error {
	var err error
	if len(bodies) == 0 { // the usual case, without a copy
		err = r.record(done)
	} else {
		err = r.record(append(bodies, done)...)
	}
	if !ran {
		return err
	}
	return r.counted(done.Failed, err)
}

// counted counts a call that ran, unless its output could not be recorded.
func (r *Run) counted(failed bool, err error) error {
	if err != nil {
		return err
	}
	r.totals.Calls++
	if failed {
		r.totals.FailedCalls++
	}
	return nil
}

// startEarly starts a call while the rest of its reply is still arriving, if its
// tool and the rules allow that and every earlier call of the reply was started,
// too. It never asks for approval: a call that needs one waits for the end of the
// reply.
func (r *Run) startEarly(ctx context.Context, it item.Item) error {
	if r.held || !it.IsCall() {
		return nil
	}
	// If this call does not start, no later call of the reply may overtake it.
	r.held = true
	if r.holding {
		return nil
	}
	t, known := r.annotations(plan.ToolName(it))
	if !known || !t.EarlyStart || t.Exclusive || t.Subagent || t.Polling || t.Rate != nil || t.Retry != nil || r.running >= r.bound() || ctx.Err() != nil {
		return nil
	}
	c, ok := r.state.MayStart(it)
	if _, other := r.toolOf(it, plan.ToolName(it)); !ok || other != "" {
		return nil
	}
	call, err := CallOf(it)
	if err != nil {
		return nil // it is reported when the reply is complete
	}
	// Only a rule may allow an early start. A verdict that asks waits for approve.
	j := r.judge(call, t)
	if j.Verdict != session.Allow {
		return nil
	}
	c.Verdict = &session.Approval{CallID: c.CallID, Allowed: true, From: j.From, Rule: j.Rule, Decided: session.DeciderRule}
	if err := r.record(*c.Verdict); err != nil {
		return err
	}
	f, failure := r.start(ctx, &c, true)
	if f == nil {
		return failure
	}
	if r.launch(ctx, &[]*finished{f}, &failure); failure != nil {
		return failure
	}
	if r.early == nil {
		r.early = map[int64]bool{}
	}
	r.early[c.Seq], r.held = true, false
	return nil
}
