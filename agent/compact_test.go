// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// small is a model whose context is small. It tells summaries from turns by their
// instructions.
type small struct {
	window int // in tokens of [plan.Estimate]; 0: none
	reply  func(n int) []item.Item
	// summary is what it writes; nil: a short text.
	summary func(ctx context.Context, req *api.Request) (string, error)
	turns   []*api.Request
	sums    []*api.Request
}

func sizeOf(req *api.Request) (tokens int) {
	for _, it := range req.Input.All() {
		tokens += plan.Estimate(req.Model, it)
	}
	return tokens
}

func overflow() error {
	return endpoint.FromAPI("context_length_exceeded", "invalid_request_error", "Your input exceeds the context window of this model.", "input")
}

func (m *small) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		tokens := sizeOf(req)
		isSummary := strings.HasPrefix(req.Instructions, "You write the memory of an assistant")
		if isSummary {
			m.sums = append(m.sums, req)
		} else {
			m.turns = append(m.turns, req)
		}
		if m.window > 0 && tokens > m.window {
			yield(api.Event{}, overflow())
			return
		}
		var items []item.Item
		if isSummary {
			text, err := "what was before", error(nil)
			if m.summary != nil {
				text, err = m.summary(ctx, req)
			}
			if err != nil {
				yield(api.Event{}, err)
				return
			}
			items = []item.Item{item.Assistant(text)}
		} else {
			items = m.reply(len(m.turns))
		}
		var output []string
		for i, it := range items {
			output = append(output, it.JSON())
			if !yield(event(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, it.JSON()), nil) {
				return
			}
		}
		yield(event(`{"type":"response.completed","response":{"id":"r","status":"completed","output":[%s],"usage":{"input_tokens":%d,"output_tokens":5,"total_tokens":%d}}}`,
			strings.Join(output, ","), tokens, tokens+5), nil)
	}
}

// reading is a model that calls echo n times with a long text, and then answers.
func reading(n, bytes int) func(int) []item.Item {
	return func(turn int) []item.Item {
		if turn > n {
			return []item.Item{item.Assistant("done")}
		}
		return []item.Item{call(fmt.Sprintf("c%d", turn), "echo", strings.Repeat(fmt.Sprintf("text %d ", turn), bytes/7))}
	}
}

func compacting(m *small) *agent.Agent {
	a := &agent.Agent{Model: m, Policy: agent.Policy{Allow: []string{"*"}}, Compaction: agent.Compaction{At: 3000, Keep: 1000}}
	a.Request.Model = "test-model"
	a.Tools = append(a.Tools, echo())
	return a
}

func (m *small) paired(t *testing.T) {
	t.Helper()
	for i, req := range m.turns {
		if err := agenttest.CheckPairing(itemsOf(req.Input)...); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func itemsOf(list *item.List) (items []item.Item) {
	for _, it := range list.All() {
		items = append(items, it)
	}
	return items
}

// bodies returns the entries of one kind.
func bodies[B session.Body](s *session.Session) (list []B) {
	for e := range s.Entries() {
		if b, ok := e.Body.(B); ok {
			list = append(list, b)
		}
	}
	return list
}

// C2 C4: a long run compacts by itself before each request that would be too
// large; instructions and the task stay as they are, the log keeps all.
func TestCompactsByItself(t *testing.T) {
	m := &small{reply: reading(20, 2000), window: 5000}
	a := compacting(m)
	s := session.New()
	system := item.System("be brief")
	res, err := a.Run(t.Context(), s, system, item.User("the task"))
	if err != nil || res.Why != agent.StopEndTurn || res.Turns != 21 {
		t.Fatalf("%+v %v", res, err)
	}
	m.paired(t)
	for i, req := range m.turns {
		if n := sizeOf(req); n > 3000+1200 {
			t.Errorf("request %d has %d tokens", i, n)
		}
		items := itemsOf(req.Input)
		if items[0] != system || items[1].JSON() != item.User("the task").JSON() {
			t.Errorf("request %d begins with %v", i, outline(items[:2]))
		}
	}
	done := bodies[session.Compacted](s)
	if len(done) < 3 || len(done) != len(m.sums) || res.Compactions != len(done) {
		t.Fatalf("%d compactions by %d summaries, %d told", len(done), len(m.sums), res.Compactions)
	}
	for _, c := range done {
		if c.Failure != "" || c.By != session.BySummary || c.After >= c.Before*9/10 || c.Usage == nil {
			t.Errorf("%+v", c)
		}
		text := outline(c.Items)[0]
		contains(t, text, "user: [This is a summary.", "what was before")
	}
	if got := len(bodies[session.CallOutput](s)); got != 20 {
		t.Errorf("the log has %d outputs", got)
	}
	var sum int64
	for e := range s.Entries() {
		switch b := e.Body.(type) {
		case session.TurnEnded:
			sum += b.Usage.TotalTokens
		case session.Compacted:
			sum += b.Usage.TotalTokens
		}
	}
	if res.TotalTokens != sum {
		t.Errorf("%d tokens are told, %d were used", res.TotalTokens, sum)
	}
	if last := res.Cache[len(res.Cache)-1]; last.Broken != nil && last.Broken.Why != session.ByCompaction {
		t.Errorf("%+v", last.Broken)
	}
}

// C4: with a threshold and without one it is off, or on by the window alone.
func TestCompactionIsOffByDefault(t *testing.T) {
	m := &small{reply: reading(6, 4000)}
	a := compacting(m)
	a.Compaction = agent.Compaction{}
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("q")); err != nil || len(m.sums) > 0 {
		t.Fatal(err, len(m.sums))
	}
	a.Compaction = agent.Compaction{Auto: true} // the window is not known
	m.turns = nil
	if _, err := a.Run(t.Context(), s, item.User("q")); err != nil || len(m.sums) > 0 {
		t.Fatal(err, len(m.sums))
	}
	a.Compaction.Window = 8000 // a quarter is for the reply, and of the rest 0.8 may be filled
	m.turns = nil
	if _, err := a.Run(t.Context(), s, item.User("q")); err != nil || len(m.sums) == 0 {
		t.Fatal(err, len(m.sums))
	}
}

// C5: the summariser sees markers for images and files, and no base64 wherever
// it stands; what it says is not copied with any.
func TestSummaryHasNoBase64(t *testing.T) {
	secret := strings.Repeat("QUJDREVGR0hJSktM", 400)
	m := &small{reply: reading(4, 3000)}
	m.summary = func(context.Context, *api.Request) (string, error) {
		return "see data:image/png;base64," + secret, nil
	}
	a := compacting(m)
	s := session.New()
	picture := item.Must(&item.Message{Role: item.RoleUser, Content: item.Parts(
		&item.InputImage{ImageURL: "data:image/png;base64," + secret}, &item.InputFile{Filename: "a.pdf", FileData: "data:application/pdf;base64," + secret})})
	history := []item.Item{
		picture,
		item.Call("i1", "look", `{"data":"`+secret+`"}`),
		item.Must(&item.FunctionCallOutput{CallID: "i1", Output: item.Parts(&item.InputImage{ImageURL: "data:image/jpeg;base64," + secret, Detail: item.DetailLow})}),
		item.Must(&item.Unknown{Raw: item.JSON(`{"type":"image_generation_call","id":"ig_1","status":"completed","result":"` + secret + `"}`)}),
		item.User("and here: <img src='data:image/gif;base64," + secret + "'> seen?"),
		item.Assistant("yes"),
		item.User(strings.Repeat("a question ", 100)),
	}
	a.Compaction.Keep = 500
	if _, err := a.Run(t.Context(), s, history...); err != nil {
		t.Fatal(err)
	}
	if len(m.sums) == 0 {
		t.Fatal("nothing was summed up")
	}
	for i, req := range m.sums {
		b, err := req.AppendJSON(nil)
		if err != nil || strings.Contains(string(b), secret[:40]) || len(req.Tools) > 0 {
			t.Errorf("summary %d: %v, %d tools, %s", i, err, len(req.Tools), b)
		}
	}
	contains(t, m.sums[0].Input.At(0).JSON(), "<image src=", "<file name=", "image/png, 4800 bytes", "[image_generation_call]", "seen?")
	for _, c := range bodies[session.Compacted](s) {
		for _, it := range c.Items {
			if strings.Contains(it.JSON(), secret[:40]) {
				t.Errorf("the summary holds base64: %s", it.JSON())
			}
		}
	}
}

// C5: what is longer than the summariser's window is summed up in parts, and
// these again; a part that proves to be too long is split.
func TestSummarySplits(t *testing.T) {
	for _, window := range []int64{0, 3000} { // told, or found out
		m := &small{reply: reading(10, 6000)}
		a := compacting(m)
		a.Compaction.At, a.Compaction.Keep = 15_000, 2000
		writer := &small{window: 2200}
		a.Compaction.Model, a.Compaction.Request.Model = writer, "test-model"
		a.Compaction.Window = window
		s := session.New()
		res, err := a.Run(t.Context(), s, item.User("q"))
		if err != nil || res.Why != agent.StopEndTurn {
			t.Fatal(res.Why, res.Detail, err)
		}
		done := bodies[session.Compacted](s)
		if len(done) == 0 || done[0].Failure != "" || len(writer.sums) < 4 || len(m.sums) > 0 {
			t.Fatalf("window %d: %d compactions in %d requests: %+v", window, len(done), len(writer.sums), done)
		}
		if u := done[0].Usage; u == nil || u.TotalTokens < 3000 {
			t.Errorf("usage: %+v", u)
		}
	}
}

// C3: what fails changes nothing, and the run goes on.
func TestFailedCompaction(t *testing.T) {
	for _, c := range []struct {
		name    string
		summary func(context.Context, *api.Request) (string, error)
		want    string
	}{
		{"error", func(context.Context, *api.Request) (string, error) { return "", errors.New("no service") }, "no service"},
		{"silence", func(context.Context, *api.Request) (string, error) { return " \n", nil }, "the model said nothing"},
		{"long", func(context.Context, *api.Request) (string, error) { return strings.Repeat("bla ", 20_000), nil }, "save too little"},
	} {
		m := &small{reply: reading(8, 2000), summary: c.summary}
		a := compacting(m)
		s := session.New()
		res, err := a.Run(t.Context(), s, item.User("q"))
		if err != nil || res.Why != agent.StopEndTurn {
			t.Fatalf("%s: %v %+v", c.name, err, res)
		}
		done := bodies[session.Compacted](s)
		if len(done) == 0 || len(done) > 8 {
			t.Errorf("%s: tried %d times", c.name, len(done))
		}
		for i, b := range done {
			contains(t, b.Failure, c.want)
			if b.Items != nil || b.After != b.Before || i > 0 && b.Before < done[i-1].Before*11/10 {
				t.Errorf("%s: %+v", c.name, b)
			}
		}
		for i := 1; i < len(m.turns); i++ {
			if before := itemsOf(m.turns[i-1].Input); !slices.Equal(itemsOf(m.turns[i].Input)[:len(before)], before) {
				t.Errorf("%s: request %d does not begin with the one before", c.name, i)
			}
		}
	}
}

// C3: a cancel in the middle leaves the session as it was, and a later run goes
// on with it.
func TestCancelledCompaction(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	m := &small{reply: reading(8, 2000)}
	m.summary = func(inner context.Context, _ *api.Request) (string, error) {
		cancel(stop)
		<-inner.Done()
		return "", inner.Err()
	}
	a := compacting(m)
	s := session.New()
	res, err := a.Run(ctx, s, item.User("q"))
	if !errors.Is(err, stop) || res.Why != agent.StopCancelled || res.Detail != stop.Error() {
		t.Fatal(res.Why, err)
	}
	if done := bodies[session.Compacted](s); len(done) > 0 {
		t.Fatalf("%+v", done)
	}
	m.summary = nil
	if res, err = a.Run(t.Context(), s, item.User("go on")); err != nil || res.Why != agent.StopEndTurn {
		t.Fatal(res.Why, err)
	}
	m.paired(t)
	if len(bodies[session.Compacted](s)) == 0 {
		t.Error("the next run did not compact")
	}
}

// C3: what is said while the summary is written comes behind it.
func TestInputWhileCompacting(t *testing.T) {
	m := &small{reply: reading(4, 3000)}
	a := compacting(m)
	s := session.New()
	run := a.Start(s, item.User("q"))
	m.summary = func(context.Context, *api.Request) (string, error) {
		return "short", run.Say(item.User("by the way"))
	}
	if _, err := drain(run.Events(t.Context())); err != nil {
		t.Fatal(err)
	}
	m.paired(t)
	lines := outline(itemsOf(m.turns[len(m.turns)-1].Input))
	said := 0
	for _, l := range lines {
		if l == "user: by the way" {
			said++
		}
	}
	if said != len(m.sums) {
		t.Errorf("said %d times, sent %d times: %q", len(m.sums), said, lines)
	}
}

// E5: the endpoint says that the history is too long: one compaction, one retry,
// then a clear error. Off, it is an error at once.
func TestOverflowCompactsOnce(t *testing.T) {
	long := []item.Item{item.User(strings.Repeat("tell me ", 1000)), item.Assistant(strings.Repeat("I tell ", 2000)), item.User("and now?")}
	for _, c := range []struct {
		name       string
		window     int
		compaction agent.Compaction
		why        agent.StopReason
		turns      int
		sums       int
		detail     string
	}{
		{"helped", 4000, agent.Compaction{Auto: true, Keep: 100}, agent.StopEndTurn, 2, 1, ""},
		{"once", 50, agent.Compaction{Auto: true, Keep: 100, By: session.ByDropping}, agent.StopContextFull, 2, 0, "although it was made shorter"},
		{"long questions", 2000, agent.Compaction{Auto: true}, agent.StopEndTurn, 2, 1, ""},
		{"nothing to gain", 50, agent.Compaction{Auto: true, Keep: 100}, agent.StopContextFull, 1, 1, "could not be made shorter"},
		{"off", 4000, agent.Compaction{}, agent.StopContextFull, 1, 0, "start a new session"},
	} {
		m := &small{window: c.window, reply: func(int) []item.Item { return []item.Item{item.Assistant("a")} }}
		a := compacting(m)
		a.Compaction = c.compaction
		a.Compaction.Request.Model = "gpt-4" // which has a known window
		s := session.New()
		input := long
		if c.name == "long questions" {
			input = nil
			for n := range 5 {
				input = append(input, item.User(strings.Repeat("word ", 400)), item.Assistant(fmt.Sprint("well ", n)))
			}
			input = append(input, item.User("and now?"))
		}
		res, err := a.Run(t.Context(), s, input...)
		if res.Why != c.why || (err != nil) != (c.why == agent.StopContextFull) || len(m.turns) != c.turns || len(m.sums) < c.sums || c.sums == 0 && len(m.sums) > 0 {
			t.Errorf("%s: %s after %d turns and %d summaries: %v", c.name, res.Why, len(m.turns), len(m.sums), err)
		}
		contains(t, res.Detail, c.detail)
		var e *endpoint.Error
		if c.why == agent.StopContextFull && (!errors.As(err, &e) || e.Class != endpoint.ContextOverflow) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// ownCompaction is a model whose endpoint makes histories shorter itself.
type ownCompaction struct {
	*small
	err      error
	requests []*api.CompactRequest
}

func (m *ownCompaction) Compact(_ context.Context, req *api.CompactRequest) (*api.Compacted, error) {
	m.requests = append(m.requests, req)
	if m.err != nil {
		return nil, m.err
	}
	packed := item.Must(&item.Unknown{Raw: `{"type":"compaction","id":"cmp_1","encrypted_content":"c2VjcmV0"}`})
	return &api.Compacted{Output: []item.Item{item.User("kept by it"), packed}, Usage: &api.Usage{InputTokens: 100, OutputTokens: 10, TotalTokens: 110}}, nil
}

// C6: the endpoint's own compaction is used by choice, and a summary in its
// place where there is none.
func TestEndpointCompaction(t *testing.T) {
	for _, c := range []struct {
		name string
		by   string
		err  error
		want string
	}{
		{"chosen", session.ByEndpoint, nil, session.ByEndpoint},
		{"not chosen", "", nil, session.BySummary},
		{"there is none", session.ByEndpoint, fmt.Errorf("404: %w", errors.ErrUnsupported), session.BySummary},
	} {
		m := &ownCompaction{small: &small{reply: reading(4, 3000)}, err: c.err}
		a := compacting(m.small)
		a.Model = m
		a.Compaction.By = c.by
		s := session.New()
		if res, err := a.Run(t.Context(), s, item.System("rules"), item.User("q")); err != nil || res.Why != agent.StopEndTurn {
			t.Fatal(c.name, err)
		}
		m.paired(t)
		done := bodies[session.Compacted](s)
		if len(done) == 0 || done[0].By != c.want || done[0].Failure != "" || (len(m.requests) > 0) != (c.by != "") {
			t.Fatalf("%s: %+v, %d requests", c.name, done, len(m.requests))
		}
		said := 0
		for _, n := range bodies[session.Noticed](s) {
			if n.Kind == session.NoticeSummaryInstead {
				said++
			}
		}
		if instead := c.by == session.ByEndpoint && c.want == session.BySummary; said > 1 || (said == 1) != instead {
			t.Errorf("%s: said %d times that there is none", c.name, said)
		}
		if c.want != session.ByEndpoint {
			continue
		}
		if done[0].Usage.TotalTokens != 110 || done[0].Kept != nil {
			t.Errorf("%+v", done[0])
		}
		for _, it := range m.requests[0].Input.All() {
			if it.Role() == item.RoleSystem {
				t.Error("instructions are sent to be compacted")
			}
		}
		got := outline(itemsOf(m.turns[len(m.turns)-1].Input))[:3]
		if diff := cmp.Diff([]string{"system: rules", "user: kept by it", "compaction"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// C2 F3: compacted by hand and restored, a session sends byte for byte what it
// sent; a fork from before the compaction has never lost anything.
func TestCompactAndRestore(t *testing.T) {
	m := &small{reply: reading(6, 2000)}
	a := compacting(m)
	a.Compaction = agent.Compaction{}
	store := new(session.Memory)
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Restore(t.Context(), s, 0); err == nil {
		t.Error("restored, and nothing was compacted")
	}
	if _, err := a.Compact(t.Context(), s); !errors.Is(err, agent.ErrNothingToCompact) {
		t.Errorf("an empty session: %v", err)
	}
	if _, err := a.Run(t.Context(), s, item.System("rules"), item.User("q")); err != nil {
		t.Fatal(err)
	}
	whole, at := history(s), int64(len(s.Log()))
	done, err := a.Compact(t.Context(), s)
	if err != nil || done.Err != nil || len(done.Replaced) == 0 || done.After >= done.Before {
		t.Fatal(done, err)
	}
	short := history(s)
	if len(short) >= len(whole) || short[0] != whole[0] {
		t.Errorf("%d items of %d: %q", len(short), len(whole), outline(short))
	}
	again, err := a.Compact(t.Context(), s)
	if err == nil && again.After >= again.Before*9/10 {
		t.Errorf("%+v", again)
	}
	fork, err := s.Fork(t.Context(), at, "fork")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outline(whole), outline(history(fork))); diff != "" {
		t.Errorf("the fork (-before +now):\n%s", diff)
	}
	if _, err := agent.Restore(t.Context(), s, 3); err == nil {
		t.Error("an entry was restored that is not a compaction")
	}
	if left, err := agent.Restore(t.Context(), s, 0); err != nil || left != 0 {
		t.Fatal(left, err)
	}
	for i, it := range history(s) {
		if it != whole[i] {
			t.Errorf("item %d is %s, was %s", i, it.JSON(), whole[i].JSON())
		}
	}
	if len(history(s)) != len(whole) {
		t.Errorf("%d items, were %d", len(history(s)), len(whole))
	}
	if res, err := a.Run(t.Context(), s, item.User("go on")); err != nil || res.Why != agent.StopEndTurn {
		t.Error(err)
	}
	m.paired(t)
}

// C4: a context that nothing can make smaller ends the run with a reason.
func TestContextFullOfTheNewest(t *testing.T) {
	m := &small{reply: reading(3, 40_000)}
	a := compacting(m)
	a.Compaction = agent.Compaction{Window: 8000, Auto: true}
	s := session.New()
	res, err := a.Run(t.Context(), s, item.User("q"))
	if res.Why != agent.StopContextFull || err == nil || len(m.turns) != 1 {
		t.Fatal(res.Why, err, len(m.turns))
	}
	contains(t, res.Detail, "of the model's 8000", "too little")
}

// C4 X: hooks may look, object, and write what replaces others.
func TestCompactionHooks(t *testing.T) {
	m := &small{reply: reading(8, 2000)}
	a := compacting(m)
	var seen []string
	object := true
	a.Hooks = []agent.Hooks{{
		BeforeCompact: func(ctx context.Context, c *agent.CompactionCall) (context.Context, error) {
			seen = append(seen, fmt.Sprintf("before %s %d", c.By, min(len(c.Replaced), 1)))
			if object {
				object = false
				return ctx, errors.New("not now")
			}
			c.Items = []item.Item{item.User("my own")}
			return ctx, nil
		},
		AfterCompact: func(_ context.Context, c *agent.CompactionCall) error {
			seen = append(seen, fmt.Sprintf("after %v", c.Err))
			c.Items = append(c.Items, item.User("and more"))
			return nil
		},
	}}
	s := session.New()
	events, err := drain(a.Stream(t.Context(), s, item.User("q")))
	if err != nil || len(m.sums) > 0 {
		t.Fatal(err, len(m.sums))
	}
	done := bodies[session.Compacted](s)
	if len(done) < 2 {
		t.Fatalf("%+v", done)
	}
	contains(t, done[0].Failure, "BeforeCompact", "not now")
	if diff := cmp.Diff([]string{"user: my own", "user: and more"}, outline(done[1].Items)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"before summary 1", "before summary 1", "after <nil>"}, seen[:3]); diff != "" {
		t.Error(diff)
	}
	compacted := told[session.Compacted](events)
	if began := progressOf(events, agent.ProgressCompacting); len(compacted) != len(done) || len(began) != len(done) || compacted[0].Failure == "" || began[1].Items == 0 {
		t.Errorf("%+v, %+v", compacted, began)
	}
}

// L4: what summaries take counts: a limit of tokens ends the run.
func TestSummariesCount(t *testing.T) {
	m := &small{reply: reading(100, 2000)}
	a := compacting(m)
	a.Prices = func(string) (agent.Price, bool) { return agent.Price{Input: 1e6, Output: 1e6}, true }
	shared := &agent.Budget{}
	a.Budget = shared
	a.Limits.MaxTokens = 40_000
	res, err := a.Run(t.Context(), session.New(), item.User("q"))
	if err != nil || res.Why != agent.StopMaxTokens || res.Compactions == 0 {
		t.Fatalf("%+v %v", res, err)
	}
	if used := shared.Used(); used.Tokens != res.TotalTokens || int64(used.Cost) != res.TotalTokens || res.Cost != used.Cost || used.Turns != res.Turns {
		t.Errorf("the budget says %+v, the result %+v", used, res.Totals)
	}
}

// R4 C6: what one endpoint made of a history cannot be read by another. Then all
// of it is sent again.
func TestUnreadableCompaction(t *testing.T) {
	first := &ownCompaction{small: &small{reply: reading(4, 3000)}}
	a := compacting(first.small)
	a.Model, a.Compaction.By = first, session.ByEndpoint
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("q")); err != nil || len(first.requests) == 0 {
		t.Fatal(err)
	}
	other := &refusing{small: &small{reply: reading(0, 0)}}
	a.Model, a.Compaction = other, agent.Compaction{}
	events, err := drain(a.Stream(t.Context(), s, item.User("go on")))
	if err != nil {
		t.Fatal(err)
	}
	other.paired(t)
	if n := len(other.turns); n != 1 || len(itemsOf(other.turns[0].Input)) != 1+2*4+2 {
		t.Errorf("%d turns: %q", n, outline(itemsOf(other.turns[0].Input)))
	}
	if restored := told[session.Restored](events); len(restored) == 0 || len(bodies[session.Restored](s)) != len(restored) {
		t.Errorf("%+v", restored)
	}
}

// refusing is a model that cannot read what others have encrypted.
type refusing struct{ *small }

func (m *refusing) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	for _, it := range req.Input.All() {
		if it.Type() == item.TypeCompaction {
			return func(yield func(api.Event, error) bool) {
				yield(api.Event{}, endpoint.FromAPI("invalid_encrypted_content", "invalid_request_error", "It could not be verified.", ""))
			}
		}
	}
	return m.small.Stream(ctx, req)
}

// C4: what the endpoint reports counts, and not a guess.
func TestReportsCorrectGuesses(t *testing.T) {
	m := &small{reply: reading(8, 3000)}
	a := compacting(m)
	a.Compaction.Estimator = guess(0.1)
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("q")); err != nil {
		t.Fatal(err)
	}
	if len(m.sums) == 0 {
		t.Error("nothing was compacted, although the endpoint reported more than the threshold")
	}
	for i, req := range m.turns {
		if n := sizeOf(req); n > 3000+2*1600 {
			t.Errorf("request %d has %d tokens", i, n)
		}
	}
}

// C3 J1: after a crash at any entry of a run that compacts, a later run goes on
// with a history that can be sent, and runs no tool again.
func TestCrashAfterAnyEntryOfCompaction(t *testing.T) {
	m := &small{reply: reading(6, 2500)}
	s := session.New()
	if _, err := compacting(m).Run(t.Context(), s, item.System("rules"), item.User("q")); err != nil {
		t.Fatal(err)
	}
	log := s.Log()
	for n := range log {
		store := new(session.Memory)
		if err := store.Append(t.Context(), "s", 0, log[:n]); err != nil {
			t.Fatal(err)
		}
		again, err := session.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		next := &small{reply: reading(2, 2500)}
		res, err := compacting(next).Run(t.Context(), again, item.User("go on"))
		if err != nil || res.Why != agent.StopEndTurn {
			t.Fatalf("after entry %d: %v %v", n, res.Why, err)
		}
		next.paired(t)
		for _, req := range next.turns {
			if sizeOf(req) > 3000+2*1600 {
				t.Errorf("after entry %d: a request of %d tokens", n, sizeOf(req))
			}
		}
	}
}

// What a compaction cannot do is refused before the model is asked, and not when the
// history is long. G8
func TestCompactionChecked(t *testing.T) {
	for want, c := range map[string]agent.Compaction{
		`By is "magic"`: {Auto: true, By: "magic"},
		"Share is 80":   {Auto: true, Share: 80},
		"Share is -1":   {Share: -1},
		"At is -1":      {At: -1},
		"Window is -1":  {Auto: true, Window: -1},
		"Keep is -1":    {Auto: true, Keep: -1},
	} {
		m := &small{reply: func(int) []item.Item { return []item.Item{item.Assistant("yes")} }}
		a, s := &agent.Agent{Model: m, Compaction: c}, session.New()
		if _, err := a.Run(t.Context(), s, item.User("hi")); err == nil || !strings.Contains(err.Error(), "agent: Compaction."+want) || len(m.turns)+len(s.Log()) > 0 {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := a.Compact(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Compact, %s: %v", want, err)
		}
	}
}
