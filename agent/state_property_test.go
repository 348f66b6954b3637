// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// driver does what a run does, with a random model, random tools and random
// crashes, and no clock, wire or goroutine.
type driver struct {
	t       *rapid.T
	limits  plan.Limits
	room    plan.ContextBudget
	state   *plan.State
	log     []session.Entry
	calls   int
	crashes int
	turns   int             // of this run
	turnAt  int             // entry of the turn's start
	allowed map[string]bool // by a call's own mark
	ran     map[string]int
	waits   map[int64]bool // calls, by their entry, that wait in this run
	shorter int            // compactions since the model was asked
}

func (d *driver) add(bodies ...session.Body) {
	for _, b := range bodies {
		e := session.Entry{Seq: int64(len(d.log) + 1), Body: b}
		d.log = append(d.log, e)
		d.state.Apply(e)
	}
}

func (d *driver) pick(name string, n int) int { return rapid.IntRange(0, n-1).Draw(d.t, name) }

// crash drops everything but the log and starts the next run, so many times.
func (d *driver) crash() bool {
	if d.crashes == 0 || d.pick("crash", 12) > 0 {
		return false
	}
	d.crashes--
	d.state = &plan.State{Limits: d.limits, Room: d.room}
	for _, e := range d.log {
		d.state.Apply(e)
	}
	d.start()
	return true
}

func (d *driver) start() {
	d.turns, d.shorter = 0, 0
	d.waits = map[int64]bool{}
	d.add(session.RunStarted{})
}

// next names the effect, and proves that naming it is pure: asked twice, or by
// another who reads the same log, it is the same. So it is when it was written and
// read.
func (d *driver) next() plan.Effect {
	e := d.state.Next()
	if again := d.state.Next(); !reflect.DeepEqual(e, again) {
		d.t.Fatalf("asked twice: %#v, then %#v", e, again)
	}
	other := plan.State{Limits: d.limits, Room: d.room}
	for _, entry := range d.log {
		other.Apply(entry)
	}
	if again := other.Next(); !reflect.DeepEqual(e, again) {
		d.t.Fatalf("read again: %#v, then %#v", e, again)
	}
	data, err := plan.Marshal(e)
	if err != nil {
		d.t.Fatal(err)
	}
	if again, err := plan.Unmarshal(data); err != nil || !reflect.DeepEqual(e, again) {
		d.t.Fatalf("%s was read as %#v (%v)", data, again, err)
	}
	return e
}

func (d *driver) draw(kind int) item.Item {
	d.calls++
	mark := fmt.Sprintf("<%d>", d.calls)
	id := []string{"a", "b", ""}[d.pick("id", 3)]
	var it item.Item
	switch kind {
	case 0:
		it = item.Must(&item.Reasoning{ID: "rs" + mark})
	case 1:
		it = item.Assistant(mark)
	case 2:
		it = item.Must(&item.Unknown{Raw: item.JSON(fmt.Sprintf(`{"type":"computer_call","call_id":"u%s"}`, mark))})
	case 3:
		it = item.Must(&item.CustomToolCall{CallID: id, Name: "f", Input: mark})
	case 4:
		it = item.Must(&item.FunctionCall{CallID: id, Name: "f", Arguments: mark, Status: item.StatusIncomplete})
	case 5:
		it = item.Call(id, "f", "{}") // without a mark, to be repeated
	case 6:
		it = item.User(mark)
	default:
		it = item.Must(&item.FunctionCall{CallID: id, Name: "f", Arguments: mark})
	}
	return it
}

func (d *driver) ask(e plan.Ask) {
	if len(d.state.View().Open()) > 0 {
		d.t.Fatal("the model is asked while calls are open")
	}
	d.add(session.TurnStarted{Turn: e.Turn})
	d.turnAt = len(d.log)
	d.turns++
	d.shorter = 0
	if limit := d.limits.MaxTurns; d.turns > limit {
		d.t.Fatalf("asked %d times, of %d", d.turns, limit)
	}
	d.paired()
	for range d.pick("items", 5) {
		if d.crash() {
			return
		}
		kind := d.pick("kind", 9)
		if kind == 6 {
			continue // a model is not a user
		}
		it := d.draw(kind)
		d.add(session.OutputItem{Turn: e.Turn, Item: it})
		d.early(it)
	}
	status := []string{"completed", "completed", "completed", "incomplete", "failed", "cancelled"}[d.pick("status", 6)]
	end := session.TurnEnded{Turn: e.Turn, Status: status, Usage: &api.Usage{TotalTokens: 10}, Cost: 1}
	if d.pick("reported", 2) == 0 {
		end.Usage.InputTokens = int64(d.pick("input", 1000))
	}
	if status == "failed" && len(d.log) == d.turnAt && d.pick("full", 2) == 0 {
		end.Class = string(endpoint.ContextOverflow)
	}
	d.add(end)
	if status == "failed" && end.Class == "" && len(d.log) == d.turnAt+1 && d.pick("mend", 2) == 0 {
		d.mend()
	}
}

// early starts a call while the reply comes, as a run does that may. L3
func (d *driver) early(it item.Item) {
	open := d.state.View().Open()
	if !it.IsCall() || it.Status() == item.StatusIncomplete || it.Type() == "computer_call" || d.pick("early", 3) > 0 {
		return
	}
	c := open[len(open)-1]
	if slices.ContainsFunc(open[:len(open)-1], func(o session.OpenCall) bool { return o.CallID == c.CallID }) {
		return
	}
	d.allowed[it.JSON()] = true
	d.ran[it.JSON()]++
	d.add(session.Approval{CallID: c.CallID, Allowed: true}, session.CallStarted{CallID: c.CallID})
}

// mend decides to ask again what was refused, as a run does. R4 T12
func (d *driver) mend() {
	if d.pick("decision", 2) == 0 {
		d.add(session.ReasoningDropped{})
	} else if n := d.state.View().Items().Len(); n > 0 {
		seq, _ := d.state.View().Seq(d.pick("refused", n))
		d.add(session.Quarantined{Seq: seq})
	}
	for _, it := range d.state.View().Items().All() {
		if _, dropped := d.log[len(d.log)-1].Body.(session.ReasoningDropped); dropped && it.Type() == item.TypeReasoning {
			d.t.Fatalf("%s is still sent", it.JSON())
		}
	}
}

// compact does what a run does, and what a model that fails does. C3 C4
func (d *driver) compact(c plan.Compact) {
	if d.shorter++; d.shorter > 2 { // the tail may be shorter than what is not yet seen
		d.t.Fatalf("compaction number %d before the model is asked again", d.shorter)
	}
	if !d.room.On || c.Replaced <= 0 || c.Before <= 0 {
		d.t.Fatalf("%+v", c)
	}
	if d.crash() {
		return
	}
	b := session.Compacted{Through: c.Through, Kept: c.Kept, By: c.By, Before: c.Before, After: c.Before, Usage: &api.Usage{TotalTokens: 5}, Cost: 1}
	if d.pick("shorter", 3) == 0 {
		b.Failure = "why"
		d.add(b)
		return
	}
	b.Items, b.After = []item.Item{item.User("in short")}, c.Before-c.Replaced
	before := d.state.View().Items().Len()
	d.add(b)
	if after := d.state.View().Items().Len(); after > before || d.state.View().Compaction() != int64(len(d.log)) {
		d.t.Fatalf("%d items became %d by %+v", before, after, b)
	}
	d.paired()
}

func (d *driver) paired() {
	var items []item.Item
	for _, it := range d.state.View().Items().All() {
		items = append(items, it)
	}
	if err := agenttest.CheckPairing(items...); err != nil {
		d.t.Fatal(err)
	}
}

func (d *driver) closing(calls []plan.Skipped) {
	for _, ref := range calls {
		if d.crash() {
			return
		}
		if ref.Reason == "" {
			d.t.Fatal("a call is closed without a reason")
		}
		c := d.meant(ref.CallRef)
		out, ok, err := item.OutputFor(c.Item, item.Text(ref.Reason))
		if err != nil {
			d.t.Fatal(err)
		}
		if ok {
			d.add(session.CallOutput{CallID: c.CallID, Item: out})
		} else {
			d.add(session.CallDropped{CallID: c.CallID})
		}
	}
}

// meant returns the call that an effect names.
func (d *driver) meant(ref plan.CallRef) session.OpenCall {
	c, ok := d.state.Call(ref)
	if !ok || c.Seq != ref.Seq {
		d.t.Fatalf("%+v names %+v", ref, c)
	}
	return c
}

func (d *driver) approve(calls []plan.CallRef) {
	for _, ref := range calls {
		if d.crash() {
			return
		}
		c := d.meant(ref)
		if d.waits[c.Seq] {
			d.t.Fatalf("%s is asked about twice", c.Item.JSON())
		}
		if d.pick("later", 4) == 0 {
			d.waits[c.Seq] = true
			d.add(session.ApprovalAsked{CallID: c.CallID})
			continue
		}
		d.verdict(c)
	}
}

func (d *driver) verdict(c session.OpenCall) {
	allowed := d.pick("allowed", 3) > 0
	d.allowed[c.Item.JSON()] = allowed
	a := session.Approval{CallID: c.CallID, Allowed: allowed, Reason: "because", By: "someone"}
	if allowed && d.pick("edited", 3) == 0 {
		a.Edited = "{}"
	}
	d.add(a)
}

// answers are given, or not, when the run has stopped for them. L7
func (d *driver) answers() {
	seen := map[string]bool{}
	for _, c := range d.state.View().Open() {
		if c.Asked && c.Paused == "" && !seen[c.CallID] && d.pick("answer", 3) > 0 {
			d.verdict(c)
		}
		seen[c.CallID] = true
	}
}

func (d *driver) call(calls []plan.CallRef) {
	var running []session.OpenCall
	for _, ref := range calls {
		if d.crash() {
			return
		}
		c := d.meant(ref)
		if c.Started && !c.Lost { // early
			running = append(running, c)
			continue
		}
		if c.Given && !c.Asked || c.Lost || d.waits[c.Seq] || c.Paused == "" && d.broken(c.Item) {
			d.t.Fatalf("%v is run", c)
		}
		d.fork(c)
		begun := session.CallStarted{CallID: c.CallID}
		if d.pick("nested", 6) == 0 || c.Paused != "" {
			begun.Session = "inner"
		}
		if marked := c.Item.JSON() != item.Call(c.CallID, "f", "{}").JSON(); marked {
			if !d.allowed[c.Item.JSON()] {
				d.t.Fatalf("%s is run, and nobody allowed it", c.Item.JSON())
			}
			if begun.Session == "" { // what is nested goes on
				d.ran[c.Item.JSON()]++
			}
			if d.ran[c.Item.JSON()] > 1 {
				d.t.Fatalf("%s is run twice", c.Item.JSON())
			}
		}
		d.add(begun)
		running = append(running, c)
	}
	for len(running) > 0 {
		if d.crash() {
			return
		}
		i := d.pick("done", len(running))
		c := running[i]
		running = slices.Delete(running, i, i+1)
		if d.nested(c) {
			d.add(session.SubagentUsage{CallID: c.CallID, Session: "inner", Turns: 1, Tokens: 10, Cost: 1})
			if d.pick("paused", 2) == 0 {
				d.add(session.Paused{CallID: c.CallID, Session: "inner"})
				d.waits[c.Seq] = true
				continue
			}
		}
		out, _, err := item.OutputFor(c.Item, item.Text("ok"))
		if err != nil {
			d.t.Fatal(err)
		}
		d.add(session.CallOutput{CallID: c.CallID, Item: out})
	}
}

// nested reports whether the last start of the call was of a run.
func (d *driver) nested(c session.OpenCall) bool {
	for i := len(d.log) - 1; ; i-- {
		if b, ok := d.log[i].Body.(session.CallStarted); ok && b.CallID == c.CallID {
			return b.Session != ""
		}
	}
}

// fork forks at a call, as a tool of it would. The fork's request is well paired,
// begins with the run's, and has the call. F1 P1 I12
func (d *driver) fork(c session.OpenCall) {
	if c.Given || d.pick("fork", 3) > 0 {
		return
	}
	bodies, err := agent.Forked(slices.Clone(d.log), c)
	if err != nil {
		d.t.Fatal(err)
	}
	bodies = append(bodies, session.RunStarted{}, session.InputItem{Item: item.User("the task")}, session.TurnStarted{Turn: 100})
	var v session.View
	for i, b := range bodies {
		v.Apply(session.Entry{Seq: int64(i + 1), Body: b})
	}
	if n := len(v.Open()); n > 0 {
		d.t.Fatalf("%d calls are open in the fork", n)
	}
	var items []item.Item
	task := false
	for _, it := range v.Items().All() {
		items = append(items, it)
		task = it.Role() == item.RoleUser
	}
	if err := agenttest.CheckPairing(items...); err != nil {
		d.t.Fatal(err)
	}
	own := strings.TrimSuffix(d.state.View().Items().JSON(), "]")
	if got := v.Items().JSON(); !strings.HasPrefix(got, own) || !task {
		d.t.Fatalf("the fork has\n%s, the run\n%s", got, own)
	}
}

// broken reports whether a marked call came in a reply that broke off.
func (d *driver) broken(call item.Item) bool {
	if call.JSON() == item.Call(call.CallID(), "f", "{}").JSON() {
		return false
	}
	said := false
	for _, e := range d.log {
		switch b := e.Body.(type) {
		case session.OutputItem:
			said = said || b.Item == call
		case session.TurnEnded:
			if said {
				return b.BrokeOff()
			}
		case session.RunStarted:
			if said {
				return true
			}
		}
	}
	return false
}

// arrivals are input and wishes to stop.
func (d *driver) arrivals() {
	switch d.pick("arrivals", 27) {
	case 6: // by hand, and back
		if seq := d.state.View().Compaction(); seq > 0 && len(d.state.View().Open()) == 0 {
			d.add(session.Restored{Seq: seq})
		}
	case 7:
		if n := d.state.View().Items().Len(); n > 0 && len(d.state.View().Open()) == 0 {
			through, _ := d.state.View().Boundary(d.pick("by hand", n+1))
			d.add(session.Compacted{Through: through, Items: []item.Item{item.User("by hand")}})
		}
	case 0:
		d.add(session.InputItem{Item: d.draw(6)})
	case 1:
		d.add(session.InputItem{Item: d.draw(d.pick("given", 8))})
	case 2:
		d.add(session.StopAsked{Why: string(agent.StopCancelled)})
	case 3:
		d.add(session.StopAsked{Why: string(agent.StopRequested), AfterTurn: true})
	case 4: // from a file that knows that it was asked
		if open := d.state.View().Open(); len(open) > 0 && open[0].Given {
			d.waits[open[0].Seq] = true
			d.add(session.ApprovalAsked{CallID: open[0].CallID})
		}
	case 5:
		d.add(session.StopAsked{Why: string(agent.StopMaxCost), Detail: "a budget"})
	}
}

// P1 L3 L4 L6 L7 C3 C4: over random models, tools, approvals, early starts, nested
// runs, crashes and wishes, deciding always comes to an end, never asks with open
// calls, never runs what nobody allowed or what may have run before, stops with
// calls open only if all of them wait, and every stop leaves a history that can
// be sent.
func TestDecideAlwaysEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &driver{
			t: t, crashes: 3, allowed: map[string]bool{}, ran: map[string]int{},
			limits: plan.Limits{MaxTurns: 4, MaxRepeats: rapid.IntRange(0, 3).Draw(t, "repeats"), MaxTokens: int64(rapid.IntRange(0, 40).Draw(t, "tokens")), MaxCost: float64(rapid.IntRange(0, 4).Draw(t, "cost"))},
		}
		if rapid.Bool().Draw(t, "room") {
			d.room = plan.ContextBudget{On: true, Start: int64(d.pick("start", 200)), Window: int64(d.pick("window", 400)), Keep: int64(d.pick("keep", 100)), By: session.BySummary}
		}
		d.state = &plan.State{Limits: d.limits, Room: d.room}
		for range 3 {
			d.start()
			d.add(session.InputItem{Item: d.draw(6)})
			d.untilStop()
		}
		d.start()
		d.add(session.TurnStarted{Turn: 100})
		d.paired()
	})
}

func (d *driver) untilStop() {
	for range 200 {
		n := len(d.log)
		d.arrivals()
		if len(d.log) > n {
			d.shorter = 0
		}
		if d.crash() {
			continue
		}
		switch e := d.next().(type) {
		case plan.Ask:
			d.ask(e)
		case plan.Skip:
			d.closing(e.Calls)
		case plan.Approve:
			d.approve(e.Calls)
		case plan.Call:
			d.call(e.Calls)
		case plan.Compact:
			d.compact(e)
		case plan.Stop:
			d.stop(e)
			return
		}
	}
	d.t.Fatal("it does not end")
}

// stop looks at what is open, and ends the run.
func (d *driver) stop(e plan.Stop) {
	open := d.state.View().Open()
	first := map[string]bool{}
	for _, c := range open {
		if !first[c.CallID] && !d.waits[c.Seq] && e.Why == agent.StopApprovalPending {
			d.t.Fatalf("%v does not wait", c)
		}
		first[c.CallID] = true
	}
	if e.Why == "" || (len(open) > 0) != (e.Why == agent.StopApprovalPending) {
		d.t.Fatalf("%+v with %d open calls", e, len(open))
	}
	d.add(session.Stopped{Why: string(e.Why)})
	d.answers()
}
