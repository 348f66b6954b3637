// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

func thought(id string) item.Item {
	return item.Must(&item.Reasoning{ID: id, Summary: []item.Part{}, EncryptedContent: "gAAA"})
}

// refusal is a 400 that names a place.
func refusal(code, param string) agenttest.Reply {
	return agenttest.Raw(400, "application/json", fmt.Sprintf(
		`{"error":{"message":"I do not like it.","type":"invalid_request_error","code":%q,"param":%q}}`, code, param))
}

var unreadable = refusal("invalid_encrypted_content", "")

// thinking is a rig whose model thinks, calls, and is then answered.
func thinking(t *testing.T, answers ...agenttest.Reply) *rig {
	r := newRig(t, append([]agenttest.Reply{agenttest.Completed(thought("rs_1"), call("c1", "echo", "one"))}, answers...)...)
	r.agent.Tools = []tool.Tool{echo()}
	return r
}

// fails runs to a failure and returns it with the result.
func (r *rig) fails(input ...item.Item) (*agent.Result, *endpoint.Error) {
	r.t.Helper()
	res, err := r.agent.Run(r.t.Context(), r.session, input...)
	var e *endpoint.Error
	if !errors.As(err, &e) {
		r.t.Fatalf("got %+v, %v", res, err)
	}
	return res, e
}

// R4: an endpoint that cannot read the reasoning is asked once without it, be it
// refused by status or by the stream's first event. The log keeps the reasoning,
// later runs leave it out, and what is thought from then on is sent.
func TestReasoningThatCannotBeRead(t *testing.T) {
	for name, refused := range map[string]agenttest.Reply{
		"400":             unreadable,
		"failed response": agenttest.Failed("invalid_encrypted_content", "No."),
		"error event":     agenttest.ErrorEvent("invalid_encrypted_content", "No."),
	} {
		t.Run(name, func(t *testing.T) {
			r := thinking(t, refused, agenttest.Completed(thought("rs_2"), item.Assistant("done")), agenttest.Completed(item.Assistant("more")))
			events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("go")))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(told[session.ReasoningDropped](events)); n != 1 {
				t.Errorf("it was told %d times", n)
			}
			want := []string{"user: go", `c1: echo({"text":"one"})`, "c1 = one"}
			if diff := cmp.Diff(want, outline(r.last())); diff != "" {
				t.Errorf("asked again with (-want +got):\n%s", diff)
			}
			kept := false
			for e := range r.session.Entries() {
				b, ok := e.Body.(session.OutputItem)
				kept = kept || ok && b.Item.ID() == "rs_1"
			}
			if !kept {
				t.Error("the reasoning is gone from the log")
			}
			r.reopen()
			r.run(item.User("and?"))
			want = append(want, "reasoning", "assistant: done", "user: and?")
			if diff := cmp.Diff(want, outline(r.last())); diff != "" {
				t.Errorf("the next run (-want +got):\n%s", diff)
			}
			if strings.Contains(string(r.server.Requests()[2].Body), `"id":"fc_`) {
				t.Error("the call still has the id that ties it to the reasoning")
			}
		})
	}
}

// R4 E2 E4: it is done once a run, only with something to leave out, and never
// after output. Otherwise the failure is the run's.
func TestReasoningIsDroppedOnce(t *testing.T) {
	for _, c := range []struct {
		name     string
		answers  []agenttest.Reply
		first    agenttest.Reply // instead of the reply that thinks
		requests int
	}{
		{name: "again", answers: []agenttest.Reply{unreadable, unreadable}, requests: 3},
		{name: "again, with new reasoning", answers: []agenttest.Reply{unreadable, agenttest.Completed(thought("rs_2"), call("c2", "echo", "two")), unreadable}, requests: 4},
		{name: "no reasoning", first: unreadable, requests: 1},
		{name: "after output", answers: []agenttest.Reply{agenttest.Failed("invalid_encrypted_content", "No.", item.Assistant("So far"))}, requests: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := thinking(t, c.answers...)
			if c.answers == nil {
				r = newRig(t, c.first)
			}
			res, e := r.fails(item.User("go"))
			if e.Class != endpoint.EncryptedContent || res.Why != agent.StopProviderError {
				t.Errorf("got %+v, %v", res, e)
			}
			if n := len(r.server.Requests()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			r.inputs()
		})
	}
}

// T12: whatever member of an item the endpoint does not take, the run goes on
// without it, the log keeps it, and no later prompt meets the same refusal.
func TestRefusedMember(t *testing.T) {
	const drawn = `{"id":"ig_1","type":"image_generation_call","status":"completed","result":"aGk=","action":"generate","size":"1024x1024","background":"opaque"}`
	image, err := item.ParseString(drawn)
	if err != nil {
		t.Fatal(err)
	}
	// As the API does: the first member of an item that it does not know is refused.
	strict := func(_ int, req agenttest.Request) agenttest.Reply {
		var body struct{ Input []map[string]any }
		if err := json.Unmarshal(req.Body, &body); err != nil {
			t.Error(err)
		}
		for i, it := range body.Input {
			for _, name := range []string{"action", "background", "size"} {
				if _, there := it[name]; there {
					return agenttest.Raw(400, "application/json", fmt.Sprintf(`{"error":{"message":"Unknown parameter: 'input[%d].%s'.","type":"invalid_request_error","param":"input[%d].%s","code":"unknown_parameter"}}`, i, name, i, name))
				}
			}
		}
		return agenttest.Completed(item.Assistant("nice"))
	}
	r := newRig(t, agenttest.Completed(image))
	r.run(item.User("draw"))
	r.server.Otherwise(strict)
	var quarantined []string
	for n := 1; ; n++ { // each run has two retries, and each decision stays
		events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("and?")))
		for _, q := range told[session.Quarantined](events) {
			quarantined = append(quarantined, q.Member)
		}
		if err == nil {
			break
		}
		if n > 2 {
			t.Fatalf("still refused: %v", err)
		}
	}
	if diff := cmp.Diff([]string{"action", "background", "size"}, quarantined); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	r.reopen()
	before := len(r.server.Requests())
	r.run(item.User("once more"))
	if n := len(r.server.Requests()) - before; n != 1 {
		t.Errorf("the next run asked %d times", n)
	}
	const sent = `{"id":"ig_1","type":"image_generation_call","status":"completed","result":"aGk="}`
	if last := r.server.Requests()[before]; !strings.Contains(string(last.Body), sent) {
		t.Errorf("sent %s", last.Body)
	}
	for e := range r.session.Entries() {
		if b, ok := e.Body.(session.OutputItem); ok && b.Item.ID() == "ig_1" && b.Item.JSON() != drawn {
			t.Errorf("the log has %s", b.Item.JSON())
		}
	}
}

// T12: a member that the endpoint does not take is left out, also of an item that
// the profile has taken other members from.
func TestRefusedMemberOfRewrittenItem(t *testing.T) {
	image, err := item.ParseString(`{"id":"ig_1","type":"image_generation_call","status":"completed","result":"aGk=","action":"generate","novel":1}`)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, agenttest.Completed(image))
	openai, err := endpoint.ByName("openai")
	if err != nil {
		t.Fatal(err)
	}
	client := r.server.Client()
	client.Profile, client.Key = &openai, endpoint.NewKey("sk-key")
	r.agent.Model = client
	r.run(item.User("draw"))
	r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
		if !strings.Contains(string(req.Body), `"novel"`) {
			return agenttest.Completed(item.Assistant("nice"))
		}
		return agenttest.Raw(400, "application/json", `{"error":{"message":"Unknown parameter: 'input[1].novel'.","type":"invalid_request_error","param":"input[1].novel","code":"unknown_parameter"}}`)
	})
	events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("and?")))
	if err != nil {
		t.Error(err)
	}
	if list := told[session.Quarantined](events); len(list) != 1 || list[0].Member != "novel" {
		t.Errorf("left out %+v", list)
	}
}

// T12: reasoning that the endpoint refuses for what is deep in it is left out, and
// does not end the session.
func TestRefusedWithinReasoning(t *testing.T) {
	thought, err := item.ParseString(`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm","novel":1}]}`)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, agenttest.Completed(thought, item.Assistant("so")))
	r.run(item.User("draw"))
	r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
		if !strings.Contains(string(req.Body), `"novel"`) {
			return agenttest.Completed(item.Assistant("nice"))
		}
		return refusal("unknown_parameter", "input[1].summary[0].novel")
	})
	r.run(item.User("and?"))
	r.reopen()
	before := len(r.server.Requests())
	r.run(item.User("once more"))
	if n := len(r.server.Requests()) - before; n != 1 {
		t.Errorf("the next run asked %d times", n)
	}
}

var pixel = func() *item.InputImage {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return &item.InputImage{ImageURL: "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes()), Detail: item.DetailAuto}
}()

// camera returns an image.
func camera() tool.Tool {
	return tool.Must("camera", "Takes a picture.", func(context.Context, struct{}) (item.Content, error) {
		return item.Parts(&item.InputText{Text: "click"}, pixel), nil
	})
}

func picture(text string) item.Item {
	it, err := item.UserParts(&item.InputText{Text: text}, pixel)
	if err != nil {
		panic(err)
	}
	return it
}

// T12: the one item that a request is refused for is replaced, once, by a marker
// that says why; the run goes on, and so does the next one. The log keeps the
// item. Where the item cannot be told, or has no other form, the failure is the
// run's after exactly one request (E2).
func TestRefusedItem(t *testing.T) {
	shoot := agenttest.Completed(item.Call("c1", "camera", "{}"), item.Call("c2", "camera", "{}"))
	const gone = "The original output of this call is left out: the endpoint refused it. I do not like it."
	img := "click\n" + item.Parts(pixel).Display()
	for _, c := range []struct {
		name    string
		input   item.Item
		calls   bool
		refused agenttest.Reply
		want    []string // what changes in the history, nil for nothing
	}{
		{"an output", item.User("q"), true, refusal("invalid_value", "input[4].output"), []string{"user: q", "c1()", "c2()", "c1 = " + img, "c2 = " + gone}},
		{"a part of an output", item.User("q"), true, refusal("", "input[3].output[1].image_url"), []string{"user: q", "c1()", "c2()", "c1 = " + gone, "c2 = " + img}},
		{"an item", item.User("q"), true, refusal("invalid_value", "input[3]"), []string{"user: q", "c1()", "c2()", "c1 = " + gone, "c2 = " + img}},
		{"a place in words", item.User("q"), true, refusal("invalid_value", "input.3.output"), []string{"user: q", "c1()", "c2()", "c1 = " + gone, "c2 = " + img}},
		{"a message", picture("q"), false, refusal("invalid_value", "input[0].content[1].image_url"),
			[]string{"user: q\nAn image is left out here: the endpoint refused it. I do not like it."}},
		{"the only image", picture("q"), false, refusal("invalid_image_format", ""),
			[]string{"user: q\nAn image is left out here: the endpoint refused it. I do not like it."}},
		{"the only image, in the stream", picture("q"), false, agenttest.Failed("image_parse_error", "I do not like it."),
			[]string{"user: q\nAn image is left out here: the endpoint refused it. I do not like it."}},
		{"a call", item.User("q"), true, refusal("invalid_value", "input[1].arguments"), nil},
		{"another member", item.User("q"), true, refusal("invalid_value", "input[3].call_id"), nil},
		{"a message without an image", item.User("q"), true, refusal("invalid_value", "input[0].content"), nil},
		{"beyond the end", item.User("q"), true, refusal("invalid_value", "input[5].output"), nil},
		{"far beyond the end", item.User("q"), true, refusal("invalid_value", "input[99999999999999999999].output"), nil},
		{"two images", item.User("q"), true, refusal("invalid_image", ""), nil},
		{"no image", item.User("q"), false, refusal("invalid_image", ""), nil},
		{"the instructions", item.User("q"), true, refusal("invalid_value", "instructions"), nil},
		{"the input", item.User("q"), true, refusal("invalid_value", "input"), nil},
		{"another class", picture("q"), false, refusal("content_policy_violation", "input[0]"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var answers []agenttest.Reply
			if c.calls {
				answers = append(answers, shoot)
			}
			before := len(answers)
			r := newRig(t, append(answers, c.refused)...)
			r.agent.Tools = []tool.Tool{camera()}
			if c.want == nil {
				why := agent.StopProviderError
				switch c.name { // which item it is, is known
				case "a call", "another member", "a message without an image":
					why = agent.StopBadItem
				}
				if res, e := r.fails(c.input); res.Why != why || e.Sent {
					t.Errorf("got %+v, %v", res, e)
				}
				if n := len(r.server.Requests()); n != before+1 {
					t.Errorf("%d requests", n)
				}
				return
			}
			r.server.Add(agenttest.Completed(item.Assistant("done")), agenttest.Completed(item.Assistant("more")))
			events, err := drain(r.agent.Stream(t.Context(), r.session, c.input))
			if err != nil {
				t.Fatal(err)
			}
			if q := told[session.Quarantined](events); len(q) != 1 || q[0].Reason != "I do not like it." {
				t.Errorf("told: %v", q)
			}
			if diff := cmp.Diff(c.want, brief(r.last())); diff != "" {
				t.Errorf("asked again with (-want +got):\n%s", diff)
			}
			r.reopen()
			r.run(item.User("and?"))
			if diff := cmp.Diff(append(c.want, "assistant: done", "user: and?"), brief(r.last())); diff != "" {
				t.Errorf("the next run (-want +got):\n%s", diff)
			}
			stored := 0
			for e := range r.session.Entries() {
				switch b := e.Body.(type) {
				case session.InputItem:
					stored += strings.Count(b.Item.JSON(), pixel.ImageURL)
				case session.CallOutput:
					stored += strings.Count(b.Item.JSON(), pixel.ImageURL)
				}
			}
			if want := max(1, 2*before); stored != want {
				t.Errorf("%d images are stored, want %d", stored, want)
			}
		})
	}
}

// brief is an outline with calls and outputs in their own form.
func brief(items []item.Item) (lines []string) {
	for _, it := range items {
		switch it.Type() {
		case item.TypeFunctionCall:
			lines = append(lines, it.CallID()+"()")
		default:
			lines = append(lines, outline([]item.Item{it})...)
		}
	}
	return lines
}

// T12: among several images the one is meant that no endpoint has taken yet; and
// an item that was replaced is not replaced again.
func TestNewImageIsMeant(t *testing.T) {
	bad := refusal("invalid_image", "")
	r := newRig(t, agenttest.Completed(item.Assistant("I see.")), bad, agenttest.Completed(item.Assistant("Not this one.")), refusal("invalid_value", "input[2]"))
	r.run(picture("one"))
	r.reopen()
	r.run(picture("two"))
	want := []string{"user: one\n" + item.Parts(pixel).Display(), "assistant: I see.", "user: two\nAn image is left out here: the endpoint refused it. I do not like it."}
	if diff := cmp.Diff(want, outline(r.last())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.reopen()
	r.fails(item.User("and?"))
	if n := len(r.server.Requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
}

// R4 T12: the same where reasoning has gone from before it.
func TestNewImageIsMeantBehindReasoning(t *testing.T) {
	r := newRig(t,
		agenttest.Completed(thought("rs_1"), item.Assistant("I see.")), agenttest.Completed(thought("rs_2"), item.Assistant("I do.")),
		agenttest.Completed(item.Assistant("And again.")), unreadable, refusal("invalid_image", ""), agenttest.Completed(item.Assistant("Not this one.")))
	r.run(picture("one"))
	r.run(picture("two"))
	r.run(picture("three"))
	r.run(picture("four"))
	shown := item.Parts(pixel).Display()
	want := []string{"user: one\n" + shown, "assistant: I see.", "user: two\n" + shown, "assistant: I do.",
		"user: three\n" + shown, "assistant: And again.", "user: four\nAn image is left out here: the endpoint refused it. I do not like it."}
	if diff := cmp.Diff(want, outline(r.last())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// rewriter is a model that sends another input than it was given, and says so in
// its errors.
type rewriter struct {
	memory
	index int
}

type rewritten struct {
	error
	index int
}

func (e rewritten) RefusedItem() int { return e.index }
func (e rewritten) Unwrap() error    { return e.error }

func (m *rewriter) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	if len(m.asked) > 0 {
		return m.memory.Stream(ctx, req)
	}
	m.asked = append(m.asked, req)
	return func(yield func(api.Event, error) bool) {
		err := &endpoint.Error{Class: endpoint.BadRequest, Status: 400, Param: "input[0]", Message: "No."}
		yield(api.Event{}, rewritten{err, m.index})
	}
}

// T12: a client that rewrites the input says itself which item was refused.
func TestRefusedItemIsMapped(t *testing.T) {
	for index, want := range map[int]int{-1: 1, 0: 2, 1: 2, 7: 1} {
		m := &rewriter{memory{replies: []any{[]item.Item{item.Assistant("done")}}}, index}
		a := &agent.Agent{Model: m}
		_, err := a.Run(t.Context(), session.New(), picture("one"), picture("two"))
		if len(m.asked) != want || (err == nil) != (want == 2) {
			t.Errorf("index %d: asked %d times, %v", index, len(m.asked), err)
			continue
		}
		if want == 2 {
			for i := range 2 {
				if got := strings.Contains(m.asked[1].Input.At(i).JSON(), "left out here"); got != (i == index) {
					t.Errorf("index %d: item %d: %v", index, i, got)
				}
			}
		}
	}
}

// E1 R4: what the client repeats and what the loop decides come out of one
// budget, which each answer fills again; one that the caller brings is not
// filled.
func TestOneBudget(t *testing.T) {
	busy := agenttest.Failure(500, "server_error", "oh")
	for _, c := range []struct {
		name     string
		max      int
		lent     bool
		answers  []agenttest.Reply
		requests int
		ok       bool
	}{
		{"two for both", 2, false, []agenttest.Reply{busy, unreadable, agenttest.Completed(item.Assistant("done"))}, 4, true},
		{"the client takes the last", 1, false, []agenttest.Reply{busy, unreadable}, 3, false},
		{"the loop takes the last", 1, false, []agenttest.Reply{unreadable, busy}, 3, false},
		{"none at all", -1, false, []agenttest.Reply{unreadable}, 2, false},
		{"filled by an answer", 1, false, []agenttest.Reply{unreadable, agenttest.Completed(call("c2", "echo", "two")), busy, agenttest.Completed(item.Assistant("done"))}, 5, true},
		{"the caller's", 1, true, []agenttest.Reply{unreadable, agenttest.Completed(call("c2", "echo", "two")), busy}, 4, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := thinking(t, c.answers...)
			r.agent.Retry.Max = c.max
			ctx := t.Context()
			if c.lent {
				ctx = endpoint.WithBudget(ctx, r.agent.Retry.Budget())
				r.agent.Retry.Max = 10
			}
			_, err := r.agent.Run(ctx, r.session, item.User("go"))
			if n := len(r.server.Requests()); n != c.requests || (err == nil) != c.ok {
				t.Errorf("%d requests, want %d: %v", n, c.requests, err)
			}
		})
	}
}

// E1: the zero Retry has its defaults, and its waits are the run's.
func TestAgentRetries(t *testing.T) {
	waits := 0
	r := newRig(t)
	r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Failure(500, "", "oh") })
	r.agent.Retry = endpoint.Retry{Sleep: func(context.Context, time.Duration) error { waits++; return nil }}
	r.fails(item.User("go"))
	if n := len(r.server.Requests()); n != 1+endpoint.DefaultRetries || waits != n-1 {
		t.Errorf("%d requests, %d waits", n, waits)
	}
}

// patient is a model that brings a retry policy.
type patient struct {
	agent.Model
	policy endpoint.Retry
}

func (p patient) RetryPolicy() endpoint.Retry { return p.policy }

// E1: the model's own policy counts where the agent has none.
func TestPolicyOfTheModel(t *testing.T) {
	for _, c := range []struct {
		own      endpoint.Retry
		requests int
	}{{endpoint.Retry{}, 4}, {endpoint.Retry{Max: 1, Sleep: func(context.Context, time.Duration) error { return nil }}, 2}} {
		r := newRig(t)
		r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Failure(500, "", "oh") })
		policy := r.agent.Retry
		policy.Max = 3
		r.agent.Model, r.agent.Retry = patient{r.agent.Model, policy}, c.own
		r.fails(item.User("go"))
		if n := len(r.server.Requests()); n != c.requests {
			t.Errorf("%d requests, want %d", n, c.requests)
		}
	}
}

// E5: a history that is too long stops the run for a reason of its own, after
// one request, with what can be done about it.
func TestContextFull(t *testing.T) {
	for name, full := range map[string]agenttest.Reply{
		"400":             refusal("context_length_exceeded", "input"),
		"failed response": agenttest.Failed("context_length_exceeded", "I do not like it."),
	} {
		r := thinking(t, full)
		res, e := r.fails(item.User("go"))
		if res.Why != agent.StopContextFull || e.Class != endpoint.ContextOverflow || len(r.server.Requests()) != 2 {
			t.Errorf("%s: %+v, %v", name, res, e)
		}
		contains(t, res.Detail, "new session", "I do not like it.")
		r.reopen()
		r.server.Add(agenttest.Completed(item.Assistant("done")))
		if res := r.run(); res.Why != agent.StopEndTurn {
			t.Errorf("%s: with another model: %+v", name, res)
		}
	}
}

// J1: a crash after any entry of a run that left something out: the next process
// goes on with the same decisions and comes to an end.
func TestCrashBesideDecisions(t *testing.T) {
	answers := func(_ int, req agenttest.Request) agenttest.Reply {
		body := string(req.Body)
		switch {
		case strings.Contains(body, "rs_1"):
			return unreadable
		case strings.Contains(body, "base64"):
			return refusal("invalid_image", "")
		case strings.Contains(body, "left out"):
			return agenttest.Completed(item.Assistant("done"))
		case strings.Contains(body, "go on"):
			return agenttest.Completed(item.Call("c2", "camera", "{}"))
		}
		return agenttest.Completed(thought("rs_1"), item.Call("c1", "camera", "{}"))
	}
	prepare := func() *rig {
		r := newRig(t)
		r.agent.Tools = []tool.Tool{camera()}
		r.server.Otherwise(answers)
		return r
	}
	whole := prepare()
	whole.run(item.User("go"))
	var log []session.Entry
	for e := range whole.session.Entries() {
		log = append(log, e)
	}
	for n := range len(log) {
		r := prepare()
		if err := r.store.Append(t.Context(), "s", 0, log[:n]); err != nil {
			t.Fatal(err)
		}
		r.reopen()
		if res := r.run(item.User("go on")); res.Why != agent.StopEndTurn {
			t.Errorf("after entry %d: %+v", n, res)
		}
		r.inputs()
	}
}

// S8: what came in a reply that broke off is marked as such, in the events and
// in the result; what came before it is not.
func TestPartialResult(t *testing.T) {
	r := thinking(t, agenttest.Failed("server_error", "oh", item.Assistant("So far"), call("c2", "echo", "two")))
	res, _ := r.fails(item.User("go"))
	if diff := cmp.Diff([]string{"assistant: So far", `c2: echo({"text":"two"})`}, outline(res.Partial)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(res.Items) != 5 {
		t.Errorf("%d items", len(res.Items))
	}
	want := []string{"user: go", "reasoning", `c1: echo({"text":"one"})`, "c1 = one", "assistant: So far", brokenOff}
	if diff := cmp.Diff(want, outline(history(r.session))); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}
