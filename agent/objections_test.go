// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

var errBomb = errors.New("no explosives")

// noBombs objects to items that speak of a bomb.
func noBombs(items ...item.Item) error {
	for _, it := range items {
		if strings.Contains(it.JSON(), "bomb") {
			return errBomb
		}
	}
	return nil
}

func inputGuard() agent.Hooks {
	return agent.Hooks{Name: "police", BeforeInput: func(_ context.Context, c *agent.InputCall) error { return noBombs(c.Input...) }}
}

func outputGuard() agent.Hooks {
	return agent.Hooks{Name: "police", AfterModel: func(_ context.Context, c *agent.ModelCall) error { return noBombs(c.Output...) }}
}

// historyGuard reads all that is sent.
func historyGuard() agent.Hooks {
	return agent.Hooks{Name: "police", BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
		var items []item.Item
		for _, it := range c.Request.Input.All() {
			items = append(items, it)
		}
		return ctx, noBombs(items...)
	}}
}

// guardedRig is a rig with a guard, and a tool that repeats its argument.
func guardedRig(t *testing.T, guard agent.Hooks, answers ...agenttest.Reply) *rig {
	r := newRig(t, answers...)
	r.agent.Hooks = []agent.Hooks{guard}
	r.agent.Tools = []tool.Tool{textTool("get", func(_ context.Context, s string) (string, error) { return strings.ToLower(s), nil })}
	return r
}

// What a guard objects to is not sent, now or later, is not in the result, and is
// in the log as withdrawn; and the session goes on. G2
func TestGuardHolds(t *testing.T) {
	for _, c := range []struct {
		name  string
		guard agent.Hooks
		reply []agenttest.Reply // before the last one
		text  string
		input bool
		want  []string // the last request
		fate  map[session.Disposition]int
	}{
		{"input", inputGuard(), nil, "a bomb", true, []string{"system: be nice", "user: hello"}, map[session.Disposition]int{session.TakenOut: 1, session.Sent: 3}},
		{"history", historyGuard(), nil, "a bomb", true, []string{"system: be nice", "user: hello"}, map[session.Disposition]int{session.TakenOut: 1, session.Sent: 3}},
		{
			"reply", outputGuard(), []agenttest.Reply{agenttest.Completed(call("c", "get", "BOMB"), item.Assistant("here is a bomb"))}, "tell me", false,
			[]string{"system: be nice", "user: tell me", "user: hello"}, map[session.Disposition]int{session.TakenOut: 2, session.Sent: 4},
		},
		{
			"a tool's output, read in the history", historyGuard(), []agenttest.Reply{agenttest.Completed(call("c", "get", "BOMB"))}, "tell me", true,
			[]string{"system: be nice", "user: tell me", `c: get({"text":"BOMB"})`, "c = The output of this call was withheld by a check. no explosives.", "user: hello"},
			map[session.Disposition]int{session.Replaced: 1, session.Sent: 5},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := guardedRig(t, c.guard, append(c.reply, agenttest.Completed(item.Assistant("hi")))...)
			res, err := r.agent.Run(t.Context(), r.session, item.System("be nice"), item.User(c.text))
			if res.Why != agent.StopVetoed || res.Guard != "police" || !errors.Is(err, errBomb) || res.Text != "" || !c.input && len(res.Items) > 0 {
				t.Errorf("%+v, %v", res, err)
			}
			if asked := len(r.server.Requests()); asked != len(c.reply) {
				t.Errorf("%d requests", asked)
			}
			checkClosed(t, r.session, c.name)
			r.reopen()
			if res := r.run(item.User("hello")); res.Text != "hi" {
				t.Errorf("%+v", res)
			}
			if diff := cmp.Diff(c.want, outline(r.last())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			fates := map[session.Disposition]int{}
			for _, l := range session.Explain(r.session.Entries()).Log {
				fates[l.Disposition]++
			}
			if diff := cmp.Diff(c.fate, fates); diff != "" {
				t.Errorf("fates (-want +got):\n%s", diff)
			}
		})
	}
}

// A reply that a guard objects to is not yielded at all if output is held back;
// else the event says that it was shown. What it agrees to comes in order. G2
func TestGuardHoldsOutput(t *testing.T) {
	for _, hold := range []bool{false, true} {
		r := guardedRig(t, outputGuard(), agenttest.Completed(item.Assistant("fine")), agenttest.Completed(call("c", "get", "x"), item.Assistant("a bomb")))
		r.agent.HoldOutput = hold
		r.agent.Tools = []tool.Tool{textTool("get", func(context.Context, string) (string, error) { return "got", nil }, tool.ReadOnly(), tool.EarlyStart())}
		events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("one")))
		if err != nil || len(texts(events)) == 0 || len(told[session.OutputItem](events)) != 1 {
			t.Errorf("held %v: %v, %v", hold, events, err)
		}
		stopOf(t, events)
		events, err = drain(r.agent.Stream(t.Context(), r.session, item.User("two")))
		if !errors.Is(err, errBomb) {
			t.Error(err)
		}
		shown := len(texts(events)) + len(told[session.OutputItem](events)) + len(progressOf(events, agent.ProgressModel)) + len(told[session.CallStarted](events))
		if hold != (shown == 0) {
			t.Errorf("held %v: %d events show the reply", hold, shown)
		}
		gone := told[session.ItemsWithdrawn](events)
		if len(gone) != 1 || gone[0].By != "police" || gone[0].Reason != "no explosives." || len(gone[0].Seqs) == 0 {
			t.Errorf("held %v: %+v", hold, gone)
		}
		if len(told[session.TurnEnded](events)) != 1 {
			t.Errorf("held %v: no turn ended", hold)
		}
		// The call that ran early is in the log with its output, and gone with the reply.
		if started, answered := countOf[session.CallStarted](r.session), countOf[session.CallOutput](r.session); started != answered || (started == 0) != hold {
			t.Errorf("held %v: %d calls started, %d answered", hold, started, answered)
		}
		if err := noBombs(history(r.session)...); err != nil || len(history(r.session)) != 3 {
			t.Errorf("held %v: %v", hold, outline(history(r.session)))
		}
	}
}

func countOf[T session.Body](s *session.Session) (n int) {
	for e := range s.Entries() {
		if _, ok := e.Body.(T); ok {
			n++
		}
	}
	return n
}

// An error that only stops the run takes nothing out, nor does a panic where the
// hook will see the same again; elsewhere a guard that fails has not agreed.
func TestGuardStops(t *testing.T) {
	stop := &agent.StopError{Err: errors.New("enough for today")}
	for _, c := range []struct {
		name  string
		hooks agent.Hooks
		kept  bool
	}{
		{"input", agent.Hooks{BeforeInput: func(context.Context, *agent.InputCall) error { return stop }}, true},
		{"request", agent.Hooks{BeforeModel: func(ctx context.Context, _ *agent.ModelCall) (context.Context, error) { return ctx, stop }}, true},
		{"reply", agent.Hooks{AfterModel: func(context.Context, *agent.ModelCall) error { return stop }}, true},
		{"input, panic", agent.Hooks{BeforeInput: func(context.Context, *agent.InputCall) error { panic("oh") }}, false},
		{"request, panic", agent.Hooks{BeforeModel: func(context.Context, *agent.ModelCall) (context.Context, error) { panic("oh") }}, true},
		{"reply, panic", agent.Hooks{AfterModel: func(context.Context, *agent.ModelCall) error { panic("oh") }}, false},
	} {
		r := guardedRig(t, c.hooks, agenttest.Completed(item.Assistant("hi")))
		res, err := r.agent.Run(t.Context(), r.session, item.User("hello"))
		if res.Why != agent.StopVetoed || err == nil {
			t.Errorf("%s: %+v, %v", c.name, res, err)
		}
		if got := countOf[session.ItemsWithdrawn](r.session); (got == 0) != c.kept {
			t.Errorf("%s: %d withdrawals", c.name, got)
		}
	}
}

// A hook that only stops the run takes back nothing that another objects to, before
// it or behind it. G2
func TestStopBesideObjection(t *testing.T) {
	no, stop := errors.New("a secret"), &agent.StopError{}
	before := func(err error) agent.Hooks {
		return agent.Hooks{Name: "before", BeforeModel: func(ctx context.Context, _ *agent.ModelCall) (context.Context, error) { return ctx, err }}
	}
	after := func(name string, err error) agent.Hooks {
		return agent.Hooks{Name: name, AfterModel: func(context.Context, *agent.ModelCall) error { return err }}
	}
	for _, c := range []struct {
		name  string
		hooks []agent.Hooks
		by    string // who objects to what is withdrawn
	}{
		{"request, stopped behind it", []agent.Hooks{after("stop", stop), before(no)}, "before"},
		{"request, objected to behind it", []agent.Hooks{after("late", no), before(stop)}, ""},
		{"reply, stopped first", []agent.Hooks{after("stop", stop), after("guard", no)}, "guard"},
		{"reply, stopped last", []agent.Hooks{after("guard", no), after("stop", stop)}, "guard"},
		{"reply, only stopped", []agent.Hooks{after("stop", stop)}, ""},
	} {
		r := guardedRig(t, c.hooks[0], agenttest.Completed(item.Assistant("a secret")))
		r.agent.Hooks = c.hooks
		res, err := r.agent.Run(t.Context(), r.session, item.User("hello"))
		if res.Why != agent.StopVetoed || err == nil {
			t.Errorf("%s: %+v, %v", c.name, res, err)
		}
		by := ""
		for e := range r.session.Entries() {
			if w, ok := e.Body.(session.ItemsWithdrawn); ok {
				by = w.By
				if w.Reason != no.Error()+"." {
					t.Errorf("%s: the reason is %q", c.name, w.Reason)
				}
			}
		}
		if by != c.by {
			t.Errorf("%s: withdrawn by %q, want %q", c.name, by, c.by)
		}
	}
}

// Input that comes while a run is under way is guarded too.
func TestGuardSay(t *testing.T) {
	r := guardedRig(t, inputGuard(), agenttest.Completed(call("c", "get", "x")), agenttest.Completed(item.Assistant("done")))
	var run *agent.Run
	r.agent.Tools = []tool.Tool{textTool("get", func(context.Context, string) (string, error) { return "got", run.Say(item.User("a bomb")) })}
	run = r.agent.Start(r.session, item.User("go"))
	if _, err := drain(run.Events(t.Context())); !errors.Is(err, errBomb) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"user: go", `c: get({"text":"x"})`, "c = got"}, outline(history(r.session))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.reopen()
	r.run()
	r.inputs()
}

// After any sequence of objections, no request holds what was objected to, calls
// and outputs pair up, and the session goes on. G2 P1
func TestAnyVeto(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, bad := 0, func(what string) string {
			if rapid.IntRange(0, 3).Draw(t, what) == 0 {
				return "bomb"
			}
			return "fine"
		}
		text := func(what string) string {
			n++
			return fmt.Sprintf("%s %d", bad(what), n)
		}
		outputOf := func(_ context.Context, in string) (string, error) { // draws nothing: tools run side by side
			if strings.HasSuffix(in, "0") || strings.HasSuffix(in, "5") {
				return "bomb of " + strings.TrimPrefix(in, "bomb"), nil
			}
			return "output of " + strings.TrimPrefix(in, "bomb"), nil
		}
		model := &memory{}
		a := &agent.Agent{Model: model, Policy: agent.Policy{Allow: []string{"*"}}, HoldOutput: rapid.Bool().Draw(t, "hold")}
		a.Limits.MaxTurns = 4
		a.Tools = []tool.Tool{
			textTool("get", outputOf),
			textTool("peek", outputOf, tool.ReadOnly(), tool.EarlyStart()),
		}
		a.Hooks = []agent.Hooks{inputGuard(), outputGuard(), historyGuard()}[rapid.IntRange(0, 2).Draw(t, "from"):]
		model.replies = []any{listen(func(_ context.Context, yield func(api.Event, error) bool) {
			var items []item.Item
			for range rapid.IntRange(0, 2).Draw(t, "calls") {
				n++
				items = append(items, item.Must(&item.Reasoning{ID: fmt.Sprintf("rs_%d", n)}), call(fmt.Sprintf("c%d", n%3), rapid.SampledFrom([]string{"get", "peek"}).Draw(t, "tool"), text("arguments")))
			}
			if len(items) == 0 || rapid.Bool().Draw(t, "says") {
				items = append(items, item.Assistant(text("reply")))
			}
			speak(yield, fmt.Sprintf("resp_%d", n), items...)
		})}
		store := new(session.Memory)
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			s, err := session.Open(context.Background(), store, "s")
			if err != nil {
				t.Fatal(err)
			}
			res, err := a.Run(context.Background(), s, item.User(text("input")))
			if (res.Why == agent.StopVetoed) != errors.Is(err, errBomb) || err != nil && res.Why != agent.StopVetoed {
				t.Fatalf("%+v, %v", res, err)
			}
			if strings.Contains(res.Text, "bomb") && len(a.Hooks) > 1 {
				t.Fatalf("the result says %q", res.Text)
			}
		}
		a.Hooks, model.replies = nil, []any{[]item.Item{item.Assistant("the end")}}
		s, err := session.Open(context.Background(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		withdrawn := map[int64]bool{}
		for e := range s.Entries() {
			if b, ok := e.Body.(session.ItemsWithdrawn); ok {
				for _, seq := range b.Seqs {
					withdrawn[seq] = true
				}
			}
		}
		gone := map[item.Item]bool{}
		for e := range s.Entries() {
			switch b := e.Body.(type) {
			case session.InputItem:
				gone[b.Item] = gone[b.Item] || withdrawn[e.Seq]
			case session.OutputItem:
				gone[b.Item] = gone[b.Item] || withdrawn[e.Seq]
			case session.CallOutput:
				gone[b.Item] = gone[b.Item] || withdrawn[e.Seq]
			}
		}
		if res, err := a.Run(context.Background(), s, item.User("go on")); err != nil || res.Text != "the end" {
			t.Fatalf("%+v, %v", res, err)
		}
		var last []item.Item
		for _, it := range model.asked[len(model.asked)-1].Input.All() {
			if last = append(last, it); gone[it] {
				t.Fatalf("it is sent again: %s", it.JSON())
			}
		}
		if err := agenttest.CheckPairing(last...); err != nil {
			t.Fatal(err)
		}
	})
}

// A process that ends between a reply and the guard that would have read it leaves
// the reply in the log. The next run has the guard read it before anything else:
// wherever the log ends, no later request and no result holds what the guard
// objects to. G2 J1
func TestGuardAfterCrash(t *testing.T) {
	tools := []tool.Tool{textTool("get", func(context.Context, string) (string, error) { return "got", nil }, tool.ReadOnly(), tool.EarlyStart())}
	reply := agenttest.Completed(item.Must(&item.Reasoning{ID: "rs_1", Summary: []item.Part{}}), call("c", "get", "x"), item.Assistant("a bomb"))
	whole := guardedRig(t, outputGuard(), agenttest.Completed(item.Assistant("fine")), reply)
	whole.agent.Tools = tools
	whole.run(item.User("one"))
	if _, err := whole.agent.Run(t.Context(), whole.session, item.User("two")); !errors.Is(err, errBomb) {
		t.Fatal(err)
	}
	var log []session.Entry
	for e := range whole.session.Entries() {
		log = append(log, e)
	}
	judged := 0
	for n := range len(log) + 1 {
		for _, input := range [][]item.Item{nil, {item.User("three")}} {
			r := guardedRig(t, outputGuard())
			r.agent.Tools = tools
			r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("hi")) })
			if err := r.store.Append(t.Context(), "s", 0, log[:n]); err != nil {
				t.Fatal(err)
			}
			r.reopen()
			var stored []agent.ModelCall
			r.agent.Hooks[0].AfterModel = func(_ context.Context, c *agent.ModelCall) error {
				if c.Stored {
					stored = append(stored, *c)
				}
				return noBombs(c.Output...)
			}
			res, err := r.agent.Run(t.Context(), r.session, input...)
			at := fmt.Sprintf("%d entries, %d given", n, len(input))
			if noBombs(res.Items...) != nil || strings.Contains(res.Text, "bomb") {
				t.Errorf("%s: the result holds it: %+v", at, res)
			}
			bad := slices.ContainsFunc(log[:n], func(e session.Entry) bool {
				b, ok := e.Body.(session.OutputItem)
				return ok && noBombs(b.Item) != nil
			}) && !slices.ContainsFunc(log[:n], func(e session.Entry) bool { _, ok := e.Body.(session.ItemsWithdrawn); return ok })
			if bad != errors.Is(err, errBomb) || bad && (res.Why != agent.StopVetoed || res.Guard != "police" || len(r.server.Requests()) > 0) {
				t.Errorf("%s: %+v, %v", at, res, err)
			}
			for _, c := range stored {
				judged++
				if c.Request == nil || noBombs(itemsOf(c.Request.Input)...) != nil || c.Turn == 0 || len(c.Output) == 0 || c.Status == "" || c.Session != "s" {
					t.Errorf("%s: the guard saw %+v", at, c)
				}
			}
			stored = nil
			r.reopen()
			if res := r.run(item.User("hello")); res.Text != "hi" || len(stored) > 0 {
				t.Errorf("%s: then %+v, judged again %v", at, res, stored)
			}
			for _, items := range r.inputs() {
				if err := noBombs(items...); err != nil {
					t.Errorf("%s: sent: %v", at, outline(items))
				}
			}
			checkClosed(t, r.session, at)
		}
	}
	if judged == 0 {
		t.Error("no log ends between a reply and its guard")
	}
}

// A compaction does not read a reply that no guard has read. G2
func TestGuardBeforeCompact(t *testing.T) {
	whole := guardedRig(t, outputGuard(), agenttest.Completed(item.Assistant("a bomb")))
	if _, err := whole.agent.Run(t.Context(), whole.session, item.User("one")); !errors.Is(err, errBomb) {
		t.Fatal(err)
	}
	var log []session.Entry
	for e := range whole.session.Entries() {
		log = append(log, e)
		if _, ended := e.Body.(session.TurnEnded); ended {
			break
		}
	}
	r := guardedRig(t, outputGuard())
	if err := r.store.Append(t.Context(), "s", 0, log); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	if _, err := r.agent.Compact(t.Context(), r.session); !errors.Is(err, errBomb) || noBombs(history(r.session)...) != nil {
		t.Errorf("%v: %v", err, outline(history(r.session)))
	}
}

// A hook that fails because the run is cancelled, or its time is up, has not
// objected to what it was reading: nothing is withdrawn, the run ends for the
// reason that it has, and the next one has the hook read it again. G2 L4 L6
func TestGuardCutShort(t *testing.T) {
	for _, why := range []agent.StopReason{agent.StopCancelled, agent.StopMaxTime} {
		t.Run(string(why), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			read, later := 0, false
			r := guardedRig(t, agent.Hooks{Name: "police", BeforeModel: func(ctx context.Context, _ *agent.ModelCall) (context.Context, error) {
				if read++; later {
					return ctx, nil
				}
				if why == agent.StopCancelled {
					cancel()
				}
				<-ctx.Done()
				return ctx, fmt.Errorf("asking the police: %w", ctx.Err())
			}}, agenttest.Completed(item.Assistant("Hello.")))
			if why == agent.StopMaxTime {
				r.agent.Limits.MaxTime = 20 * time.Millisecond
			}
			res, _ := r.agent.Run(ctx, r.session, item.User("good morning"))
			if res == nil || res.Why != why {
				t.Errorf("%+v", res)
			}
			for e := range r.session.Entries() {
				if w, ok := e.Body.(session.ItemsWithdrawn); ok {
					t.Errorf("withdrawn: %+v", w)
				}
			}
			r.agent.Limits.MaxTime, later, read = 0, true, 0
			if res := r.run(); res.Why != agent.StopEndTurn || read != 1 || !strings.Contains(r.last()[0].JSON(), "good morning") {
				t.Errorf("%+v, read %d times, %v", res, read, outline(r.last()))
			}
		})
	}
}

// A guard of replies that was cut short has neither agreed nor objected: nothing is
// withdrawn and nothing that was held back is told, the run ends for the reason
// that it has, and the next one asks the guard before anything else, as often as it
// is cut short again. What another hook says counts all the same. G2 L4 L6
func TestGuardOfRepliesCutShort(t *testing.T) {
	for _, c := range []struct {
		name   string
		reply  string
		times  int   // that the guard is cut short
		beside error // what a second hook says
		why    agent.StopReason
		want   []string
	}{
		{"a reply that is fine", "fine", 1, nil, agent.StopCancelled, []string{"user: one", "c: get({\"text\":\"x\"})", "assistant: fine", "c = error: The call was not started: the run was stopped first. Nothing was done.", "assistant: hi", "user: hello"}},
		{"a reply that is not", "a bomb", 1, nil, agent.StopCancelled, []string{"user: one", "user: hello"}},
		{"cut short again and again", "a bomb", 3, nil, agent.StopCancelled, []string{"user: one", "user: again", "user: again", "user: hello"}},
		{"another hook objects", "fine", 1, errBomb, agent.StopVetoed, []string{"user: one", "assistant: hi", "user: hello"}},
		{"another hook stops the run", "a bomb", 1, &agent.StopError{Err: errBomb}, agent.StopVetoed, []string{"user: one", "user: hello"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cancel context.CancelFunc
			left, stored := c.times, 0
			r := guardedRig(t, agent.Hooks{Name: "police", AfterModel: func(ctx context.Context, call *agent.ModelCall) error {
				if call.Stored {
					stored++
				}
				if left--; left >= 0 {
					cancel()
					return fmt.Errorf("asking the police: %w", ctx.Err())
				}
				return noBombs(call.Output...)
			}}, agenttest.Completed(call("c", "get", "x"), item.Assistant(c.reply)))
			r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("hi")) })
			r.agent.HoldOutput = true
			r.agent.Hooks = append(r.agent.Hooks, agent.Hooks{Name: "other", AfterModel: func(context.Context, *agent.ModelCall) error {
				if stored > 0 || left < c.times {
					return nil
				}
				return c.beside
			}})
			input := "one"
			for range c.times {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				cancel = end
				res, err := r.agent.Run(ctx, r.session, item.User(input))
				if res.Why != c.why || err == nil || res.Text != "" || strings.Contains(fmt.Sprint(res.Items), "message") {
					t.Errorf("%+v, %v", res, err)
				}
				input = "again"
				r.reopen()
			}
			res, err := r.agent.Run(t.Context(), r.session)
			if bad := strings.Contains(c.reply, "bomb"); bad != errors.Is(err, errBomb) || bad && (res.Guard != "police" || res.Why != agent.StopVetoed) {
				t.Errorf("%+v, %v", res, err)
			}
			r.reopen()
			if res := r.run(item.User("hello")); res.Text != "hi" {
				t.Errorf("%+v", res)
			}
			asked := c.times
			if errors.Is(c.beside, errBomb) && !errors.As(c.beside, new(*agent.StopError)) {
				asked = 0 // it is withdrawn
			}
			if stored != asked {
				t.Errorf("the guard saw %d stored replies, want %d", stored, asked)
			}
			if diff := cmp.Diff(c.want, outline(r.last())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkClosed(t, r.session, c.name)
		})
	}
}
