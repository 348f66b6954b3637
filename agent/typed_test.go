// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// bill is a typed answer.
type bill struct {
	Vendor string `json:"vendor"`
	Total  uint64 `json:"total" minimum:"1"`
	State  string `json:"state" enum:"paid,open"`
}

const (
	goodBill = `{"vendor":"Tea","total":9007199254740993,"state":"open"}`
	badBill  = `{"vendor":"Tea","total":0,"state":"op"}`
)

func replying(texts ...string) (list []agenttest.Reply) {
	for _, text := range texts {
		list = append(list, agenttest.Completed(item.Assistant(text)))
	}
	return list
}

// notices returns the texts of a session's notices that an answer did not fit.
func unfitIn(s *session.Session) (list []string) {
	for e := range s.Entries() {
		if n, ok := e.Body.(session.Noticed); ok && n.Kind == session.NoticeUnfit {
			list = append(list, n.Text)
		}
	}
	return list
}

// G3: the schema goes with the request, the answer comes back exactly, and the
// caller's agent is as it was.
func TestRunAs(t *testing.T) {
	r := newRig(t, replying(goodBill)...)
	r.agent.Request.Text = `{"verbosity":"low"}`
	before := r.agent.Request
	got, err := agent.RunAs[bill](t.Context(), r.agent, r.session, item.User("?"))
	if err != nil || got.Value != (bill{"Tea", 1<<53 + 1, "open"}) || got.Repairs != 0 || got.Result.Why != agent.StopEndTurn {
		t.Fatalf("%+v, %v", got, err)
	}
	if got.Item.Role() != item.RoleAssistant || !strings.Contains(got.Item.JSON(), "9007199254740993") {
		t.Errorf("the item is %v", got.Item)
	}
	if !reflect.DeepEqual(before, r.agent.Request) || r.agent.Answer != nil {
		t.Error("the agent has changed")
	}
	r.inputs()
	text, err := api.ParseTextConfig(r.server.Requests()[0].Parse(t).Text)
	if err != nil || text.Verbosity != "low" || text.Format.Type != api.TextJSONSchema || text.Format.Name != "answer" || !*text.Format.Strict {
		t.Errorf("%+v, %v", text, err)
	}
	if want, _ := tool.SchemaOf[bill](); text.Format.Schema != want {
		t.Errorf("the schema is %s", text.Format.Schema)
	}
}

// G3: an answer that does not fit goes back with the reason, within a bound, and all
// of it is one run.
func TestRunAsRepairs(t *testing.T) {
	for _, c := range []struct {
		name    string
		repairs int
		replies []string
		asked   int
		fits    bool
	}{
		{"the first fits", 0, []string{goodBill}, 1, true},
		{"the second fits", 0, []string{badBill, goodBill}, 2, true},
		{"the third fits", 0, []string{badBill, "no JSON", goodBill}, 3, true},
		{"the third does not fit", 0, []string{badBill, "no JSON", badBill}, 3, false},
		{"one repair", 1, []string{badBill, badBill}, 2, false},
		{"no repair", -1, []string{badBill}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, replying(c.replies...)...)
			r.agent.Answer = &agent.Answer{Repairs: c.repairs, Name: "bill"}
			got, err := agent.RunAs[bill](t.Context(), r.agent, r.session, item.User("?"))
			if n := len(r.inputs()); n != c.asked || got.Result.Turns != n || got.Repairs != n-1 || len(unfitIn(r.session)) != n-1 {
				t.Errorf("%d requests, %d turns, %d repairs, %d notices", n, got.Result.Turns, got.Repairs, len(unfitIn(r.session)))
			}
			if runs := len(told[session.RunStarted](recordedOf(r.session))); runs != 1 {
				t.Errorf("%d runs", runs)
			}
			if c.fits {
				if err != nil || got.Value.State != "open" {
					t.Errorf("%+v, %v", got.Value, err)
				}
				return
			}
			var unfit *agent.AnswerError
			if !errors.As(err, &unfit) || unfit.Why != agent.StopUnfit || unfit.Text != badBill || unfit.Repairs != got.Repairs {
				t.Fatalf("%#v", err)
			}
			contains(t, err.Error(), "total: 0 is less than the minimum 1", `state: got "op", want one of "paid", "open"`)
			if got.Value != (bill{}) || got.Result.Why != agent.StopUnfit || got.Result.Text != badBill || !strings.Contains(got.Item.JSON(), "Tea") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// recordedOf returns the entries of a session as events.
func recordedOf(s *session.Session) (events []agent.Event) {
	for e := range s.Entries() {
		events = append(events, agent.Recorded{Entry: e})
	}
	return events
}

// The model reads what does not fit.
func TestRunAsReason(t *testing.T) {
	r := newRig(t, replying(badBill, goodBill)...)
	if _, err := agent.RunAs[bill](t.Context(), r.agent, r.session, item.User("?")); err != nil {
		t.Fatal(err)
	}
	last := r.last()
	m, err := item.As[item.Message](last[len(last)-1])
	if err != nil || m.Role != item.RoleUser {
		t.Fatalf("%v, %v", m, err)
	}
	contains(t, m.Content.Display(), "Your answer does not fit: ", "total: 0 is less than the minimum 1", "state", "JSON that fits and nothing else")
}

// checked has a rule that a schema cannot express.
type checked struct {
	A, B int
}

func (c *checked) Check() error {
	if c.A >= c.B {
		return errors.New("A must be less than B")
	}
	return nil
}

// G3: a type's own check is a reason to repair, and so is that of the Answer.
func TestRunAsCheck(t *testing.T) {
	r := newRig(t, replying(`{"A":2,"B":1}`, `{"A":1,"B":2}`, `{"A":1,"B":3}`)...)
	r.agent.Answer = &agent.Answer{Check: func(text string) error {
		if !strings.Contains(text, "3") {
			return errors.New("there must be a 3")
		}
		return nil
	}}
	got, err := agent.RunAs[checked](t.Context(), r.agent, r.session, item.User("?"))
	if err != nil || got.Value != (checked{1, 3}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if list := unfitIn(r.session); len(list) != 2 || !strings.HasSuffix(list[0], "A must be less than B") || !strings.HasSuffix(list[1], "there must be a 3") {
		t.Errorf("%q", list)
	}
}

// G3: what is not an object is in one.
func TestRunAsBoxed(t *testing.T) {
	r := newRig(t, replying(`{"answer":["a","b"]}`)...)
	list, err := agent.RunAs[[]string](t.Context(), r.agent, r.session, item.User("?"))
	if err != nil || !slices.Equal(list.Value, []string{"a", "b"}) {
		t.Errorf("%+v, %v", list, err)
	}
	r = newRig(t, replying(`{"answer":null}`, `{"answer":5}`)...)
	none, err := agent.RunAs[*bill](t.Context(), r.agent, r.session, item.User("?"))
	if err != nil || none.Value != nil {
		t.Errorf("%+v, %v", none, err)
	}
	five, err := agent.RunAs[int8](t.Context(), r.agent, r.session, item.User("?"))
	if err != nil || five.Value != 5 {
		t.Errorf("%+v, %v", five, err)
	}
}

// G3: a run that ends before it has an answer says why, and guesses nothing.
func TestRunAsStops(t *testing.T) {
	ask := textTool("ask", func(context.Context, string) (string, error) { return "", nil })
	refusal := item.Must(&item.Message{Role: item.RoleAssistant, Status: item.StatusCompleted, ID: "m", Content: item.Parts(&item.Refusal{Refusal: "I will not."})})
	for why, c := range map[agent.StopReason]struct {
		reply  agenttest.Reply
		change func(*agent.Agent)
		text   string
	}{
		agent.StopRefused:    {reply: agenttest.Completed(refusal), text: "I will not."},
		agent.StopIncomplete: {reply: agenttest.Incomplete("max_output_tokens", item.Assistant(goodBill[:20])), text: goodBill[:20]},
		agent.StopMaxTurns:   {reply: agenttest.Completed(item.Assistant(badBill)), text: badBill, change: func(a *agent.Agent) { a.Limits.MaxTurns = 1 }},
		agent.StopMaxTokens:  {reply: agenttest.Completed(item.Assistant(badBill)), text: badBill, change: func(a *agent.Agent) { a.Limits.MaxTokens = 1 }},
		agent.StopEmptyReply: {reply: agenttest.Completed()},
		agent.StopApprovalPending: {reply: agenttest.Completed(call("c", "ask", "x")), change: func(a *agent.Agent) {
			a.Tools, a.Policy = []tool.Tool{ask}, agent.Policy{Ask: []string{"ask"}, Pause: true}
		}},
	} {
		t.Run(string(why), func(t *testing.T) {
			r := newRig(t, c.reply)
			if c.change != nil {
				c.change(r.agent)
			}
			got, err := agent.RunAs[bill](t.Context(), r.agent, r.session, item.User("?"))
			var none *agent.AnswerError
			if !errors.As(err, &none) || none.Why != why || none.Text != c.text || got.Result.Why != why || got.Value != (bill{}) || len(r.server.Requests()) != 1 {
				t.Fatalf("%#v, %+v, %d requests", err, got, len(r.server.Requests()))
			}
			if c.text != "" && got.Item.IsZero() {
				t.Error("the item is missing")
			}
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), string(why)) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Errors of the run are the run's.
func TestRunAsErrors(t *testing.T) {
	r := newRig(t, agenttest.Failure(401, "invalid_api_key", "no"))
	got, err := agent.RunAs[bill](t.Context(), r.agent, r.session, item.User("?"))
	if err == nil || got.Result.Why != agent.StopProviderError || strings.Contains(err.Error(), "Instruct") {
		t.Errorf("%+v, %v", got, err)
	}
	for want, c := range map[string]struct {
		a *agent.Agent
		s *session.Session
	}{
		"*Agent is nil":    {nil, session.New()},
		"no Model":         {new(agent.Agent), session.New()},
		"leave it out":     {&agent.Agent{Model: r.agent.Model, Answer: &agent.Answer{Schema: new(tool.Schema)}}, session.New()},
		"has the format":   {&agent.Agent{Model: r.agent.Model, Request: api.Request{Text: api.TextAsObject}}, session.New()},
		"Request.Text":     {&agent.Agent{Model: r.agent.Model, Request: api.Request{Text: "{"}}, session.New()},
		"Session is nil":   {r.agent, nil},
		"nothing to send:": {r.agent, session.New()},
	} {
		got, err := agent.RunAs[bill](t.Context(), c.a, c.s)
		if err == nil || !strings.Contains(err.Error(), want) || got == nil || got.Result == nil {
			t.Errorf("%v, %+v, want %q", err, got, want)
		}
	}
	if _, err := agent.RunAs[chan int](t.Context(), r.agent, r.session); err == nil || !strings.Contains(err.Error(), "chan int") {
		t.Error(err)
	}
	if _, err := (&agent.Agent{Model: r.agent.Model, Answer: new(agent.Answer)}).Run(t.Context(), session.New(), item.User("?")); err == nil || !strings.Contains(err.Error(), "has no Schema") {
		t.Error(err)
	}
	for ev, err := range agent.StreamAs[chan int](t.Context(), r.agent, r.session) {
		if err == nil || ev.Final == nil {
			t.Errorf("%+v, %v", ev, err)
		}
	}
}

// G3: an endpoint without structured outputs ends the run with its own error and a
// hint; by choice the schema is in the instructions.
func TestRunAsWithoutStructuredOutputs(t *testing.T) {
	const refusal = `{"error":{"message":"Unsupported parameter: 'text.format'","type":"invalid_request_error","param":"text.format","code":"unsupported_parameter"}}`
	r := newRig(t, agenttest.Raw(400, "application/json", refusal), replying("```json\n" + goodBill + "\n```")[0])
	_, err := agent.RunAs[bill](t.Context(), r.agent, r.session, item.User("?"))
	if err == nil {
		t.Fatal("no error")
	}
	contains(t, err.Error(), "Unsupported parameter", "Answer.Instruct")

	r.agent.Answer, r.agent.Request.Instructions = &agent.Answer{Instruct: true}, "You read bills."
	got, err := agent.RunAs[bill](t.Context(), r.agent, session.New(), item.User("?"))
	if err != nil || got.Value.State != "open" {
		t.Fatalf("%+v, %v", got, err)
	}
	req := r.server.Requests()[1].Parse(t)
	schema, _ := tool.SchemaOf[bill]()
	if req.Text != "" || !strings.HasPrefix(req.Instructions, "You read bills.\n\nYour final answer must be JSON") || !strings.HasSuffix(req.Instructions, string(schema)) {
		t.Errorf("%s, %s", req.Text, req.Instructions)
	}
}

// G3: optional members and what strict mode lacks make the format one that is not
// strict.
func TestRunAsNotStrict(t *testing.T) {
	type loose struct {
		A string `json:"a,omitzero" minLength:"1"`
	}
	r := newRig(t, replying(`{"a":null}`)...)
	if _, err := agent.RunAs[loose](t.Context(), r.agent, r.session, item.User("?")); err != nil {
		t.Fatal(err)
	}
	text, err := api.ParseTextConfig(r.server.Requests()[0].Parse(t).Text)
	if err != nil || *text.Format.Strict {
		t.Errorf("%+v, %v", text.Format, err)
	}
}

// G3: over Chat Completions the format is response_format, and repairs work.
func TestRunAsChat(t *testing.T) {
	var bodies []string
	replies := []string{badBill, goodBill}
	chat := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		return w.Text(replies[len(bodies)-1])
	})}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(req.URL.Path, "/chat/completions") {
			bodies = append(bodies, string(body))
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		chat.ServeHTTP(w, req)
	}))
	defer web.Close()
	client := web.Client()
	defer client.CloseIdleConnections()
	a := &agent.Agent{Model: &completions.Client{BaseURL: web.URL + "/v1", HTTP: client}}
	a.Request.Model = "test-model"
	got, err := agent.RunAs[bill](t.Context(), a, session.New(), item.User("?"))
	if err != nil || got.Value.State != "open" || got.Repairs != 1 || len(bodies) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, body := range bodies {
		contains(t, body, `"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{`, `"strict":true`)
	}
}

// G3: a process may end after any entry; a run without input goes on from there.
func TestRunAsGoesOn(t *testing.T) {
	whole := newRig(t, replying(badBill, goodBill)...)
	if _, err := agent.RunAs[bill](t.Context(), whole.agent, whole.session, item.User("?")); err != nil {
		t.Fatal(err)
	}
	log := whole.session.Log()
	for n := 1; n <= len(log); n++ {
		var bodies []session.Body
		for _, e := range log[:n] {
			bodies = append(bodies, e.Body)
		}
		if !slices.ContainsFunc(bodies, func(b session.Body) bool { _, is := b.(session.InputItem); return is }) {
			continue // nothing was said yet
		}
		s := session.New()
		if _, err := s.Append(t.Context(), bodies...); err != nil {
			t.Fatal(err)
		}
		r := newRig(t)
		// The model's answers fit from the second one on.
		r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
			if strings.Contains(string(req.Body), "does not fit") {
				return replying(goodBill)[0]
			}
			return replying(badBill)[0]
		})
		got, err := agent.RunAs[bill](t.Context(), r.agent, s)
		if err != nil || got.Value.State != "open" {
			t.Errorf("after %d entries (%T): %+v, %v", n, log[n-1].Body, got, err)
		}
		if asked := len(r.inputs()); asked > 2 || n == len(log) && asked > 0 {
			t.Errorf("after %d entries (%T): %d requests", n, log[n-1].Body, asked)
		}
		// Two if the log was cut between a notice and its message, which no store does.
		if n := len(unfitIn(s)); n < 1 || n > 2 {
			t.Errorf("%d notices", n)
		}
	}
}

// A stored answer that is not an answer is not judged.
func TestRunAsStoredNone(t *testing.T) {
	refusal := item.Must(&item.Message{Role: item.RoleAssistant, Status: item.StatusCompleted, ID: "m", Content: item.Parts(&item.Refusal{Refusal: "I will not."})})
	for _, reply := range []agenttest.Reply{agenttest.Completed(refusal), agenttest.Incomplete("max_output_tokens", item.Assistant(goodBill))} {
		r := newRig(t, reply)
		for range 2 {
			_, err := agent.RunAs[bill](t.Context(), r.agent, r.session)
			if !errors.Is(err, agent.ErrNothingToSend) {
				t.Errorf("%v", err)
			}
			if len(r.server.Requests()) > 0 {
				break
			}
			if _, err := agent.RunAs[bill](t.Context(), r.agent, r.session, item.User("?")); err == nil {
				t.Error("no error")
			}
		}
		if n := len(r.server.Requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
	}
}

// G3: an agent with an Answer repairs in every kind of run: here in steps, each of
// which may be in another process.
func TestAnswerInSteps(t *testing.T) {
	schema, err := tool.NewSchema[bill]()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, replying(badBill, badBill, goodBill)...)
	r.agent.Answer = &agent.Answer{Schema: schema, Repairs: 1}
	if _, err := r.session.Append(t.Context(), session.InputItem{Item: item.User("?")}); err != nil {
		t.Fatal(err)
	}
	for {
		r.reopen()
		effect, err := r.agent.Step(t.Context(), r.session)
		if stop, stopped := effect.(plan.Stop); stopped {
			var unfit *agent.AnswerError
			if stop.Why != agent.StopUnfit && !errors.As(err, &unfit) {
				t.Errorf("%+v, %v", stop, err)
			}
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.inputs()); n != 2 {
		t.Errorf("%d requests", n)
	}
	r = newRig(t, replying(badBill, goodBill)...)
	r.agent.Answer = &agent.Answer{Schema: schema}
	if res := r.run(item.User("?")); res.Text != goodBill || res.Turns != 2 {
		t.Errorf("%+v", res)
	}
}

// G3: a subagent's own answer fits, and a fork's answer is free.
func TestAnswerOfSubagents(t *testing.T) {
	inner := newRig(t, replying(badBill, goodBill)...)
	schema, err := tool.NewSchema[bill]()
	if err != nil {
		t.Fatal(err)
	}
	inner.agent.Answer = &agent.Answer{Schema: schema}
	reads, err := agent.AsTool("read", "Reads.", inner.agent)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, agenttest.Completed(item.Call("a", "read", `{"task":"x"}`), item.Call("b", "fork", `{"command":"y"}`)))
	r.agent.Tools = []tool.Tool{reads, agent.ForkTool()}
	r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
		if strings.Contains(string(req.Body), "You are the fork") {
			if strings.Contains(string(req.Body), "json_schema") {
				t.Error("the fork has the format")
			}
			return replying("free")[0]
		}
		return replying(goodBill)[0]
	})
	if _, err := agent.RunAs[bill](t.Context(), r.agent, r.session, item.User("?")); err != nil {
		t.Fatal(err)
	}
	out := outputs(r.last())
	if out["a"] != goodBill || out["b"] != "free" {
		t.Errorf("%q", out)
	}
}

// G3: StreamAs yields the events of the run and values that grow, each the beginning
// of the last; a repair begins again.
func TestStreamAs(t *testing.T) {
	type day struct {
		Text  string   `json:"text"`
		Date  string   `json:"date" format:"date"`
		Hours []int    `json:"hours"`
		Names []string `json:"names"`
	}
	const good = `{"text":"Ein schöner Tag 😀","date":"2026-12-01","hours":[10,112],"names":["ab","cd"]}`
	r := newRig(t, agenttest.Completed(item.Assistant(`{"text":"Nein","date":"1"}`)).ByteByByte(), agenttest.Completed(item.Assistant(good)).ByteByByte())
	var final *agent.Typed[day]
	var parts []day
	var stops, turns int
	for ev, err := range agent.StreamAs[day](t.Context(), r.agent, r.session, item.User("?")) {
		if err != nil {
			t.Fatal(err)
		}
		if final != nil {
			t.Error("an event after the last")
		}
		if ev.Partial != nil {
			parts = append(parts, *ev.Partial)
		}
		if e, ok := ev.Event.(agent.Recorded); ok {
			switch e.Body.(type) {
			case session.Stopped:
				stops++
			case session.TurnStarted:
				turns++
				parts = nil
			}
		}
		if final = ev.Final; (final == nil) == (ev.Event == nil) {
			t.Errorf("%+v", ev)
		}
	}
	if final == nil || final.Repairs != 1 || stops != 1 || turns != 2 || len(parts) == 0 {
		t.Fatalf("%+v, %d stops, %d turns, %d parts", final, stops, turns, len(parts))
	}
	want := day{"Ein schöner Tag 😀", "2026-12-01", []int{10, 112}, []string{"ab", "cd"}}
	if !reflect.DeepEqual(final.Value, want) || !reflect.DeepEqual(parts[len(parts)-1], want) {
		t.Errorf("%+v, at last %+v", final.Value, parts[len(parts)-1])
	}
	for _, p := range parts {
		if !strings.HasPrefix(want.Text, p.Text) || p.Date != "" && p.Date != want.Date || len(p.Hours) > 2 || !slices.Equal(p.Hours, want.Hours[:len(p.Hours)]) {
			t.Errorf("%+v", p)
		}
	}
}

// Breaking out cancels the run, and the outcome of a failure is the last event.
func TestStreamAsEnds(t *testing.T) {
	r := newRig(t, replying(goodBill, badBill)...)
	for range agent.StreamAs[bill](t.Context(), r.agent, r.session, item.User("?")) {
		break
	}
	log := r.session.Log()
	if stop, ok := log[len(log)-1].Body.(session.Stopped); !ok || stop.Why != string(agent.StopCancelled) {
		t.Errorf("%v", log[len(log)-1])
	}
	r = newRig(t, replying(badBill)...)
	r.agent.Answer = &agent.Answer{Repairs: -1}
	var last agent.TypedEvent[bill]
	var err error
	for last, err = range agent.StreamAs[bill](t.Context(), r.agent, r.session, item.User("?")) {
	}
	var unfit *agent.AnswerError
	if !errors.As(err, &unfit) || last.Final == nil || last.Final.Result.Text != badBill {
		t.Errorf("%+v, %v", last, err)
	}
}

// A person who says something meanwhile is heard first.
func TestRunAsSay(t *testing.T) {
	r := newRig(t, replying("I will look.", goodBill)...)
	schema, err := tool.NewSchema[bill]()
	if err != nil {
		t.Fatal(err)
	}
	r.agent.Answer = &agent.Answer{Schema: schema}
	run := r.agent.Start(r.session, item.User("?"))
	said := false
	for _, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if !said {
			said = true
			if err := run.Say(item.User("and be quick")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(unfitIn(r.session)); n > 1 || run.Result().Text != goodBill {
		t.Errorf("%d repairs, %+v", n, run.Result())
	}
}

// G3: what a caller puts into the input as the model's words is not the answer.
func TestRunAsOwnWords(t *testing.T) {
	r := newRig(t)
	_, err := agent.RunAs[bill](t.Context(), r.agent, r.session, item.User("q"), item.Assistant(`{"vendor":"x","total":666}`))
	if err == nil {
		t.Error("the caller's own words were returned as the model's answer")
	}
}

// touchy is a type whose own check panics.
type touchy struct {
	Name string `json:"name"`
}

func (touchy) Check() error { panic("oh") }

// G3 G8: a panic in the check of a type is the run's error, and is not sent to the model.
func TestRunAsCheckPanics(t *testing.T) {
	r := newRig(t, saying(`{"name":"a"}`))
	got, err := agent.RunAs[touchy](t.Context(), r.agent, r.session, item.User("go"))
	if err == nil || !strings.Contains(err.Error(), "it panicked: oh") || got.Result.Why != agent.StopVetoed || got.Repairs != 0 || got.Value.Name != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// brittle reads its own JSON, and panics.
type brittle struct{}

func (*brittle) UnmarshalJSON([]byte) error { panic("oh") }
func (brittle) JSONSchema() item.JSON       { return `{"type":"string"}` }

// G3 G8: a type that panics while it reads a partial answer ends the run as in RunAs, and
// does not reach the loop over the events.
func TestStreamAsReaderPanics(t *testing.T) {
	type answer struct {
		Part brittle `json:"part"`
		Text string  `json:"text"`
	}
	r := newRig(t, saying(`{"part":"a","text":"one two three"}`))
	var final *agent.Typed[answer]
	var failed error
	for ev, err := range agent.StreamAs[answer](t.Context(), r.agent, r.session, item.User("go")) {
		if ev.Partial != nil {
			t.Errorf("a partial value: %+v", ev.Partial)
		}
		final, failed = ev.Final, err
	}
	if final == nil || failed == nil || !strings.Contains(failed.Error(), "it panicked: oh") || final.Result.Why != agent.StopVetoed {
		t.Errorf("%+v, %v", final, failed)
	}
}

// G3: repairs that a run made before it crashed count in the run that goes on.
func TestRepairsCountAfterCrash(t *testing.T) {
	whole := newRig(t, saying("no"), saying("no"), saying("no"))
	_, err := agent.RunAs[bill](t.Context(), whole.agent, whole.session, item.User("go"))
	var unfit *agent.AnswerError
	if !errors.As(err, &unfit) || unfit.Repairs != 2 {
		t.Fatal(err)
	}
	log := whole.session.Log()
	for n := range log {
		if b, ok := log[n].Body.(session.Noticed); !ok || b.Kind != session.NoticeUnfit {
			continue
		}
		r := newRig(t, saying("no"), saying("no"), saying("no"))
		if err := r.store.Append(t.Context(), "s", 0, log[:n+2]); err != nil {
			t.Fatal(err)
		}
		r.reopen()
		_, err := agent.RunAs[bill](t.Context(), r.agent, r.session)
		if !errors.As(err, &unfit) || unfit.Repairs != 2 {
			t.Errorf("after entry %d: %v", n+2, err)
		}
	}
}

// G3: a type's own check holds for a pointer to it, too.
func TestRunAsCheckOfPointer(t *testing.T) {
	r := newRig(t, replying(`{"answer":{"A":2,"B":1}}`, `{"answer":{"A":1,"B":2}}`, `{"answer":null}`)...)
	got, err := agent.RunAs[*checked](t.Context(), r.agent, r.session, item.User("?"))
	if err != nil || got.Value == nil || *got.Value != (checked{1, 2}) || got.Repairs != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err = agent.RunAs[*checked](t.Context(), r.agent, r.session, item.User("?")); err != nil || got.Value != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
