// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

const defaultParallel = 8

func (r *Run) annotations(name string) (tool.Annotations, bool) {
	t, known := r.tools.Lookup(name)
	if !known {
		return tool.Annotations{}, false
	}
	return tool.AnnotationsOf(t), true
}

// judge applies the rules to a call: those of the agent's policy and of the
// session, and what is denied around a nested run.
func (r *Run) judge(call tool.Call, annotations tool.Annotations) plan.Judgement {
	t, _ := r.tools.Lookup(call.Name)
	for o := r.around; o != nil; o = o.run.around {
		there := annotations
		if outer, ok := o.tools.Lookup(call.Name); ok {
			there.Approval = tool.AnnotationsOf(outer).Approval
		}
		if j := o.run.agent.Policy.judge(t, call, there, o.rules); j.Verdict == session.Deny {
			return j
		}
	}
	return r.agent.Policy.judge(t, call, annotations, r.state.Rules())
}

// approve gets a verdict on each call, one after the other, and records them.
// A call of a tool that does not exist may go on: it comes back with the names
// of those that do.
func (r *Run) approve(ctx context.Context, calls []plan.CallRef) error {
	for _, ref := range calls {
		c, ok := r.state.Call(ref)
		if !ok {
			continue
		}
		verdict, judged, unasked := Verdict{Allowed: true, rule: "allow calls of unknown tools, which run nothing", From: plan.ByDefault}, plan.Judgement{}, false
		call, err := r.callOf(&c)
		annotations, known := r.annotations(call.Name)
		switch {
		case err != nil:
			verdict = Verdict{Reason: "The call cannot be read: " + err.Error(), rule: "deny calls that cannot be read", From: plan.ByDefault}
		case c.Paused != "" && !r.goesOn(&c, annotations): // known or not: it was started once
			verdict = Verdict{Reason: sessionElsewhere, rule: denyElsewhere, From: plan.ByDefault}
		case known || plan.Hosted(c.Item):
			judged = r.judge(call, annotations)
			verdict, unasked = r.decide(ctx, call, annotations, judged)
		}
		if ctx.Err() != nil {
			return nil // whatever was said about it, the run is over
		}
		if verdict.Later && !verdict.Allowed {
			err = r.wait(c, call, judged.WhyAsk(call.Name))
		} else {
			err = r.verdict(ctx, c, verdict, unasked)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decide asks the approver if there is need to, one at a time with those of all
// nested runs.
func (r *Run) decide(ctx context.Context, call tool.Call, annotations tool.Annotations, judged plan.Judgement) (Verdict, bool) {
	root := r.root()
	if judged.Verdict == session.Ask {
		root.asking.Lock()
		defer root.asking.Unlock()
	}
	t, _ := r.tools.Lookup(call.Name)
	v, unasked := r.agent.Policy.decide(ctx, t, call, annotations, judged)
	if v.Later && !v.Allowed && root != r && !root.session.KeepsNested() {
		return r.agent.Policy.unasked(cannotWait, call.Name, judged), true
	}
	return v, unasked
}

// cannotWait is what the model of a nested run reads about a call whose session
// would be gone by the time that somebody answers.
const cannotWait = "The call was refused: %s needs an approval, and calls of nested runs cannot wait for one here. Nothing was done."

// root is the outermost run.
func (r *Run) root() *Run {
	for r.around != nil {
		r = r.around.run
	}
	return r
}

// verdict records what was decided about a call.
func (r *Run) verdict(ctx context.Context, c session.OpenCall, v Verdict, unasked bool) error {
	v.Reason, _ = tool.Sanitize(v.Reason)
	a := session.Approval{CallID: c.CallID, Allowed: v.Allowed, Reason: v.Reason, By: v.By, From: v.From, Rule: v.rule, Remember: v.Remember}
	if v.Allowed {
		a.Edited = v.Arguments
	}
	if err := r.record(a); err != nil {
		return err
	}
	if !v.Allowed {
		r.totals.RefusedCalls++
		objection := r.showRefusal(ctx, c, v.Reason)
		r.emit(CallRefused{CallID: c.CallID, Tool: plan.ToolName(c.Item), Reason: v.Reason, NoApprover: unasked, By: a.By, From: a.From, Rule: a.Rule})
		if objection != nil {
			return r.stopFor(objection)
		}
	}
	return nil
}

// showRefusal lets hooks see that a call was refused.
func (r *Run) showRefusal(ctx context.Context, c session.OpenCall, reason string) error {
	if len(r.agent.Hooks) == 0 {
		return nil
	}
	now := time.Now()
	seen := ToolCall{Session: r.session.ID(), Depth: r.depth, Turn: r.state.Turn(), Started: now, Ended: now, Failure: tool.NotRun, Error: reason}
	seen.Call, _ = CallOf(c.Item)
	seen.Call.ID, seen.Call.Name = c.CallID, plan.ToolName(c.Item) // also of a call that cannot be read
	seen.Annotations, _ = r.annotations(seen.Call.Name)
	return after(ctx, "CallRefused", r.agent.Hooks, callRefused, &seen)
}

// wait records that a call waits for an answer.
func (r *Run) wait(c session.OpenCall, call tool.Call, why string) error {
	t, _ := r.tools.Lookup(call.Name)
	asked := session.ApprovalAsked{
		CallID: c.CallID, Number: c.Number, Tool: call.Name, Arguments: call.Arguments, Custom: call.Custom, Reason: why, Rules: suggest(t, call),
	}
	if c.Asked && asksTheSame(pendingOf(r.session, c), asked) {
		// The log says so already. A run that is started to see whether there is
		// an answer by now must not make it longer each time.
		r.state.Wait(c.CallID, c.Number)
	} else if err := r.record(asked); err != nil {
		return err
	}
	c.Question = &asked
	p := pendingOf(r.session, c)
	p.Command = commandOf(t, call)
	r.wanted = append(r.wanted, p)
	r.emit(ApprovalAsked{p})
	return nil
}

// asksTheSame reports whether what is asked about a call is what was asked. A
// transcript does not keep the reason and the rules.
func asksTheSame(before Pending, now session.ApprovalAsked) bool {
	if before.Tool != now.Tool || before.Arguments != now.Arguments || before.Custom != now.Custom {
		return false
	}
	return before.Reason == "" && before.Rules == nil || before.Reason == now.Reason && reflect.DeepEqual(before.Rules, now.Rules)
}

// close gives calls that will not run the output that says why. A call whose
// kind has no such output leaves the view.
func (r *Run) close(calls []plan.Skipped) error {
	for _, ref := range calls {
		c, ok := r.state.Call(ref.CallRef)
		if !ok {
			continue
		}
		text := ref.Reason
		if !plan.Hosted(c.Item) {
			text = tool.Envelope(true, plan.ToolName(c.Item), ref.Reason, "")
		}
		out, ok, err := item.OutputFor(c.Item, item.Text(text))
		if err != nil {
			return err
		}
		if !ok {
			if err := r.record(session.Withdrawn{CallID: c.CallID, Reason: ref.Reason}); err != nil {
				return err
			}
			continue
		}
		done := CallDone{CallID: c.CallID, Tool: plan.ToolName(c.Item), Item: out, Failed: true, Error: ref.Reason, Synthetic: true}
		if err := r.answer(done); err != nil {
			return err
		}
	}
	return nil
}

// bound is how many calls may run at once.
func (r *Run) bound() int {
	if p := r.agent.Request.ParallelToolCalls; p != nil && !*p {
		return 1
	}
	return max(1, cmp.Or(r.agent.Parallel, defaultParallel))
}

// call runs the calls' tools: side by side up to the bound, a tool that is
// marked exclusive by itself. It returns when all have their outputs, those that
// were started early among them.
func (r *Run) call(ctx context.Context, calls []plan.CallRef) error {
	bound := r.bound()
	var failure error
	r.batch = batch{size: len(calls)}
	for _, ref := range calls {
		c, ok := r.state.Call(ref)
		if !ok || r.early[c.Seq] {
			continue
		}
		t, _ := r.annotations(plan.ToolName(c.Item))
		if t.Exclusive {
			r.settle(ctx, 0, &failure)
		} else {
			r.settle(ctx, bound-1, &failure)
		}
		if failure == nil && ctx.Err() == nil {
			failure = r.start(ctx, &c, false)
		}
		if t.Exclusive {
			r.settle(ctx, 0, &failure)
		}
	}
	r.settle(ctx, 0, &failure)
	r.early = nil
	if failure == nil {
		return r.fit(ctx, calls)
	}
	r.lose(r.batch.large...)
	return failure
}

// batch is what is known of the outputs of calls that are run together.
type batch struct {
	size  int
	outs  []*tool.Outcome // all so far, if they share a limit
	large []*finished     // those that may have to be shortened, when all are there
}

// settle records outputs until no more than so many calls run, and passes on
// what nested runs tell meanwhile.
func (r *Run) settle(ctx context.Context, until int, failure *error) {
	for r.running > until {
		switch m := (<-r.inside).(type) {
		case *finished:
			r.running--
			if *failure == nil {
				*failure = r.returned(ctx, m)
			} else {
				r.lose(m)
			}
		case Event:
			r.emit(m)
		}
		if *failure != nil {
			r.cancel() // nothing can be recorded any more
		}
	}
}

// returned records an output, unless its size depends on the others.
func (r *Run) returned(ctx context.Context, f *finished) error {
	if r.agent.shape().Turn == nil {
		return r.finish(ctx, f)
	}
	r.batch.outs = append(r.batch.outs, &f.out)
	if r.agent.shape().Settled(&f.out, r.batch.size) {
		return r.finish(ctx, f)
	}
	r.batch.large = append(r.batch.large, f)
	return nil
}

// fit makes the outputs that are large keep within what the turn may have, and
// records them in call order. T7
func (r *Run) fit(ctx context.Context, calls []plan.CallRef) (err error) {
	if len(r.batch.large) == 0 {
		return nil
	}
	r.agent.shape().Fit(r.uncancelled, r.batch.outs...)
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

// send hands something to the run's own goroutine. When the run is over, nobody
// takes it any more.
func (r *Run) send(m any) {
	select {
	case r.inside <- m:
	case <-r.over:
	}
}

// finished is a call whose tool has returned.
type finished struct {
	call  session.OpenCall // when it was started
	hooks []Hooks          // those whose after is due
	ctx   context.Context
	seen  ToolCall
	scope *scope    // of a nested run
	given tool.Call // what the tool gets
	out   tool.Outcome
	// before says what is known of an earlier start of the call, "" if there was
	// none.
	before string
}

func (f *finished) invoke(r *Run) {
	f.out = r.tools.Invoke(f.ctx, f.given, r.agent.shape())
	f.seen.Ended = time.Now()
	switch f.out.Failure {
	case tool.NotRun, tool.UnknownTool, tool.BadArguments:
		if f.before != "" { // that nothing was done is true of this start only
			f.out.Error = f.before
			f.out.Content = item.Text(tool.Envelope(true, f.given.Name, f.before, ""))
		}
	}
}

const denyElsewhere = "deny what was started as a run of another session"

// goesOn reports whether a call that was started goes on where it was: its tool
// starts runs, and the run that the log names is the one this very call starts.
// What the log says of it is not enough, for a log can be copied.
func (r *Run) goesOn(c *session.OpenCall, annotations tool.Annotations) bool {
	return annotations.Nested && c.Paused == r.session.NestedID(*c)
}

// startedBefore is what there is to tell of an earlier start of a call.
func startedBefore(c *session.OpenCall) string {
	switch {
	case c.Lost:
		return plan.OutcomeUnknown
	case c.Paused != "":
		return plan.StoppedWaiting
	}
	return ""
}

// start records that a call begins and starts its tool; the outcome comes to
// settle. A call that turns out to be refused after all is not started: the next
// effect closes it.
func (r *Run) start(ctx context.Context, c *session.OpenCall, early bool) error {
	call, err := r.callOf(c)
	if err != nil {
		return err
	}
	said := call.Arguments
	allowed := *cmp.Or(c.Verdict, &session.Approval{})
	call.Arguments = cmp.Or(allowed.Edited, said)
	t, _ := r.tools.Lookup(call.Name)
	f := &finished{call: *c, ctx: ctx, given: call, before: startedBefore(c), seen: ToolCall{
		Session: r.session.ID(), Depth: r.depth, Turn: r.state.Turn(), Call: call, Started: time.Now(),
	}}
	if t != nil {
		f.seen.Annotations = tool.AnnotationsOf(t)
	}
	if c.Paused != "" && !r.goesOn(c, f.seen.Annotations) {
		return r.verdict(ctx, *c, Verdict{Reason: sessionElsewhere, rule: denyElsewhere, From: plan.ByDefault}, false)
	}
	if c.Lost && !f.seen.Annotations.Idempotent { // it was declared to be, then
		return r.verdict(ctx, *c, Verdict{Reason: plan.OutcomeUnknown, From: plan.ByDefault}, false)
	}
	if objection, j := r.admit(f); objection != "" {
		return r.verdict(ctx, *c, Verdict{Reason: cmp.Or(f.before, objection), rule: j.Rule, From: j.From}, false)
	}
	if plan.Hosted(c.Item) {
		return r.approveHosted(ctx, f, said)
	}
	begun := session.CallStarted{CallID: c.CallID, Repeatable: f.seen.Annotations.Idempotent}
	if f.given.Arguments != said {
		f.given.Edited, begun.Arguments = true, f.given.Arguments
	}
	if f.seen.Annotations.Nested {
		f.scope = r.scope(*c)
		begun.Session = f.scope.id
	}
	if err := r.record(begun); err != nil {
		f.seen.Ended, f.out.Failure = time.Now(), tool.NotRun
		r.lose(f)
		return err
	}
	if !r.quiet {
		r.emit(CallStarted{CallID: call.ID, Tool: call.Name, Arguments: f.given.Arguments, Edited: f.given.Edited, Early: early, By: allowed.By, From: allowed.From, Rule: allowed.Rule})
	}
	if f.scope != nil {
		f.ctx = context.WithValue(f.ctx, scopeKey{}, f.scope)
	}
	if r.batch.size == 1 && !early && f.scope == nil { // as most are: nothing runs beside it
		f.invoke(r)
		return r.returned(ctx, f)
	}
	r.running++
	r.inner.Add(1)
	go func() {
		defer r.inner.Done()
		f.invoke(r)
		r.send(f)
		if f.scope != nil && f.out.Abandoned {
			<-f.scope.ended
		}
	}()
	return nil
}

// notEditable answers the endpoint about a call whose arguments somebody changed:
// the endpoint takes yes or no, and nothing else.
const notEditable = "The call was not approved: its arguments were changed, and a call that the endpoint makes can only be approved as it is."

// approveHosted tells the endpoint that it may make the call it asked about.
func (r *Run) approveHosted(ctx context.Context, f *finished, said string) error {
	f.seen.Ended = time.Now()
	if f.given.Arguments != said {
		f.out.Failed, f.out.Failure, f.out.Error, f.out.Content = true, tool.NotRun, notEditable, item.Text(notEditable)
	}
	return r.finish(ctx, f)
}

// admit lets hooks see a call, and rules see what became of it. It returns what
// the model is told if the call is not to run after all.
func (r *Run) admit(f *finished) (objection string, by plan.Judgement) {
	hooks := r.agent.Hooks
	if len(hooks) > 0 {
		inner, n, err := before(f.ctx, "BeforeTool", hooks, beforeTool, &f.seen)
		f.ctx, f.hooks = inner, hooks[:n]
		if err != nil {
			objection = "The call was refused by a check: " + hookText(err) + " Nothing was done."
			by = plan.Judgement{Rule: "deny what a check objects to", From: "a hook"}
		}
	}
	f.given.Arguments = f.seen.Call.Arguments // nothing else of it is a hook's to change
	if j := r.judge(f.given, f.seen.Annotations); j.Verdict == session.Deny && objection == "" {
		objection, by = j.Denied(f.given.Name), j
	}
	if objection != "" && len(f.hooks) > 0 {
		f.seen.Ended, f.seen.Failure, f.seen.Error = time.Now(), tool.NotRun, objection
		_ = after(f.ctx, "AfterTool", f.hooks, afterTool, &f.seen) // the call is refused already
	}
	return objection, by
}

// hookText is what the model reads about a hook's error: what the hook says, and
// of a panic nothing.
func hookText(err error) string {
	var h *HookError
	if !errors.As(err, &h) || h.Stack != nil {
		return "the check itself failed."
	}
	return strings.TrimSuffix(h.Err.Error(), ".") + "."
}

// lose lets hooks see the end of calls of which nothing can be recorded any
// more.
func (r *Run) lose(calls ...*finished) {
	for _, f := range calls {
		if len(f.hooks) > 0 {
			f.seen.Output, f.seen.Failure, f.seen.Error = f.out.Content, f.out.Failure, f.out.Error
			_ = after(f.ctx, "AfterTool", f.hooks, afterTool, &f.seen) // the store's error counts
		}
	}
}

// finish records the outcome of a call.
func (r *Run) finish(ctx context.Context, f *finished) error {
	seen, out := &f.seen, &f.out
	r.marks = r.marks || len(out.Stored) > 0
	d := CallDone{CallID: f.call.CallID, Tool: seen.Call.Name, Synthetic: plan.Hosted(f.call.Item), Failed: out.Failed, Error: out.Error, Took: seen.Ended.Sub(seen.Started),
		LeftOut: out.LeftOut, Kept: slices.Concat(out.Stored, out.Originals)}
	var bodies []session.Body
	paused := false
	if f.scope != nil {
		d.Session = f.scope.id
		bodies, paused = f.scope.entries()
		r.nested(bodies)
		paused = paused && ctx.Err() == nil
	}
	if len(f.hooks) > 0 {
		seen.Output, seen.Failure, seen.Error, seen.Paused = out.Content, out.Failure, out.Error, paused
		if err := after(f.ctx, "AfterTool", f.hooks, afterTool, seen); err != nil {
			reason := "The output of this call was withheld by a check: " + hookText(err)
			d.Failed, d.Error = true, reason
			seen.Output = item.Text(tool.Envelope(true, d.Tool, reason, ""))
		}
		if d.Edited = !reflect.DeepEqual(seen.Output, out.Content); d.Edited {
			out.Content, out.Commands, out.Failed = seen.Output, nil, d.Failed
		}
	}
	if paused {
		r.wanted = append(r.wanted, f.scope.wanted...)
		if err := r.record(bodies...); err != nil {
			return err
		}
		r.emit(CallPaused{CallID: d.CallID, Tool: d.Tool, Session: d.Session})
		return nil
	}
	d.Item = outputItem(f.call.Item, d.Tool, out)
	return r.answer(d, bodies...)
}

// nested counts what nested runs used.
func (r *Run) nested(bodies []session.Body) {
	for _, b := range bodies {
		if n, ok := b.(session.Nested); ok {
			r.totals.Nested.Add(Spent{Turns: n.Turns, Tokens: n.Tokens, Cost: n.Cost})
		}
	}
}

// outputItem puts an outcome into the item that answers the call. Invoke made
// the content valid; should it not encode all the same, the model is told.
func outputItem(call item.Item, name string, out *tool.Outcome) item.Item {
	it, ok, err := answerTo(call, out)
	if err == nil && ok {
		return it
	}
	reason := "The output cannot be sent."
	if err != nil {
		reason += " " + err.Error()
	}
	it, _, _ = item.OutputFor(call, item.Text(tool.Envelope(true, name, reason, "")))
	return it
}

// answer records an output, after what else is to be recorded with it, and
// tells of it.
func (r *Run) answer(d CallDone, bodies ...session.Body) error {
	answered := session.Answered{CallID: d.CallID, Item: d.Item, Failed: d.Failed, Edited: d.Edited}
	var err error
	if len(bodies) == 0 { // as mostly
		err = r.record(answered)
	} else {
		err = r.record(append(bodies, answered)...)
	}
	if err != nil {
		return err
	}
	if !d.Synthetic {
		r.totals.Calls++
		if d.Failed {
			r.totals.FailedCalls++
		}
	}
	r.emit(d)
	return nil
}

// startEarly starts the call that the reply just made, if its tool allows that
// and so do the rules, and every call of the reply before it was started too.
// What its verdict is does not depend on anybody who would have to be asked.
func (r *Run) startEarly(ctx context.Context, it item.Item) error {
	if r.held || r.holding || !it.IsCall() {
		return nil
	}
	r.held = true
	t, known := r.annotations(plan.ToolName(it))
	if !known || !t.EarlyStart || t.Exclusive || t.Nested || r.running >= r.bound() || ctx.Err() != nil {
		return nil
	}
	c, ok := r.state.MayStart(it)
	if !ok {
		return nil
	}
	call, err := CallOf(it)
	if err != nil {
		return nil // it is told when the reply is whole
	}
	j := r.judge(call, t)
	if j.Verdict != session.Allow {
		return nil
	}
	c.Verdict = &session.Approval{CallID: c.CallID, Allowed: true, From: j.From, Rule: j.Rule}
	if err := r.record(*c.Verdict); err != nil {
		return err
	}
	running := r.running
	if err := r.start(ctx, &c, true); err != nil || r.running == running {
		return err
	}
	if r.early == nil {
		r.early = map[int64]bool{}
	}
	r.early[c.Seq], r.held = true, false
	return nil
}
