// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/server"
)

const twoRounds = `
turn
  reason Hm.
  call look {"at": "it"}
turn
  say You: {{question}}; it: {{output "look" 1}}
round
turn
  say Then {{question}}, and before it was {{output 1}}
`

// A conversation by previous_response_id is the one that carries its history:
// the script sees all of it, the counts and the items are the same. W1 S9
func TestPreviousResponse(t *testing.T) {
	whole, short := clientOf(t, serve(t, twoRounds, nil)), clientOf(t, serve(t, twoRounds, nil))
	history, id := new(item.List), ""
	step := func(items ...item.Item) *api.Response {
		t.Helper()
		history.Append(items...)
		a := ask(t, whole, &api.Request{Input: history})
		b := ask(t, short, &api.Request{Input: item.NewList(items...), PreviousResponseID: id, Instructions: ""})
		if id != b.PreviousResponseID {
			t.Errorf("previous_response_id %q, want %q", b.PreviousResponseID, id)
		}
		b.PreviousResponseID = ""
		a.Extra.Delete("previous_response_id")
		b.Extra.Delete("previous_response_id")
		if d := cmp.Diff(encoded(t, a), encoded(t, b)); d != "" {
			t.Errorf("(-whole +continued):\n%s", d)
		}
		history.Append(a.Output...)
		id = b.ID
		return b
	}
	first := step(item.User("Hello."))
	second := step(item.Must(&item.FunctionCallOutput{CallID: first.Output[1].CallID(), Output: item.Text("blue")}))
	if got := second.Text(); got != "You: Hello.; it: blue" {
		t.Errorf("said %q", got)
	}
	if got := step(item.User("what?")).Text(); got != "Then what?, and before it was blue" {
		t.Errorf("said %q", got)
	}
}

func encoded(t testing.TB, r *api.Response) string {
	t.Helper()
	b, err := r.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What is stored can be had again, item by item too, until it is deleted.
func TestStored(t *testing.T) {
	c := clientOf(t, serve(t, twoRounds, nil))
	ctx := t.Context()
	first := ask(t, c, &api.Request{Input: item.NewList(item.System("Be brief."), item.User("Hello."))})
	out := item.Must(&item.FunctionCallOutput{CallID: first.Output[1].CallID(), Output: item.Text("blue")})
	r := ask(t, c, &api.Request{Input: item.NewList(out), PreviousResponseID: first.ID})
	again, err := c.Retrieve(ctx, r.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(encoded(t, r), encoded(t, again)); d != "" {
		t.Errorf("(-made +retrieved):\n%s", d)
	}
	want := []string{"message system", "message user", "reasoning ", "function_call ", "function_call_output "}
	for _, limit := range []int{0, 1, 2} {
		var got []string
		for it, err := range c.InputItems(ctx, r.ID, &responses.ListOptions{Limit: limit, Order: responses.Ascending}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(it.Type(), " ", it.Role()))
			if it.ID() == "" || it.Type() != item.TypeReasoning && it.Status() != item.StatusCompleted {
				t.Errorf("listed %s", it.JSON())
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, d)
		}
	}
	var listed item.Item
	for it, err := range c.InputItems(ctx, r.ID, nil) { // newest first
		if err != nil || it.Type() != item.TypeFunctionCallOutput {
			t.Errorf("listed first: %s %v", it.JSON(), err)
		}
		listed = it
		break
	}
	// An item can be named in place of being sent.
	call := item.Must(&item.ItemReference{ID: first.Output[1].ID()})
	if got := ask(t, c, &api.Request{Input: item.NewList(item.User("Hello."), call, item.Must(&item.ItemReference{ID: listed.ID()}))}); got.Text() != "You: Hello.; it: blue" {
		t.Errorf("by reference: %q", got.Text())
	}
	if err := c.Delete(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Retrieve(ctx, r.ID, nil); failure(t, err).Class != endpoint.NotFound {
		t.Errorf("retrieved after it was deleted: %v", err)
	}
	if err := c.Delete(ctx, r.ID); failure(t, err).Class != endpoint.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := c.Cancel(ctx, first.ID); failure(t, err).Class != endpoint.BadRequest {
		t.Errorf("cancelled what is not of the background: %v", err)
	}
}

// A response that is incomplete is a part of its conversation, and can be continued: without the
// call that broke off, which nobody can answer, and the reasoning that led to it. R6
func TestContinueIncomplete(t *testing.T) {
	var seen []string
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
		var list []string
		for _, it := range r.Items {
			list = append(list, string(it.Type()))
		}
		seen = append(seen, strings.Join(list, " "))
		_ = w.Text("Well.")
		_ = w.Item(item.Must(&item.Reasoning{ID: "rs_1"}))
		_ = w.Item(item.Must(&item.FunctionCall{CallID: "c", Name: "f", Arguments: `{"a`, Status: item.StatusIncomplete}))
		return w.Incomplete("max_output_tokens")
	})}
	defer s.Close()
	made := func(body string) string {
		status, text := call(s, http.MethodPost, "responses", body)
		r, err := api.ParseResponse([]byte(text))
		if status != http.StatusOK || err != nil || r.Status != item.StatusIncomplete || len(r.Output) != 3 {
			t.Fatalf("%s: %d %s %v", body, status, text, err)
		}
		return r.ID
	}
	id := made(`{"model":"m","input":"x"}`)
	made(`{"model":"m","input":"y","previous_response_id":"` + id + `"}`)
	_, text := call(s, http.MethodPost, "conversations", "{}")
	talk, err := api.ParseConversation([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	made(`{"model":"m","input":"x","conversation":"` + talk.ID + `"}`)
	made(`{"model":"m","input":"y","conversation":"` + talk.ID + `"}`)
	if want := []string{"message", "message message message", "message", "message message message"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

// A response that failed can be continued with what it had said, as that of every other server; the text of a
// message that was open is incomplete, and a call that was open is left out. Without output there is nothing
// to continue, and nothing of it joins a conversation.
func TestContinueFailed(t *testing.T) {
	var seen []item.Item
	ways := map[string]func(w *server.Writer) error{
		"nothing": func(w *server.Writer) error { return w.Begin("") },
		"message": func(w *server.Writer) error {
			return errors.Join(w.Open(&item.Message{}), w.Delta("half of it"))
		},
		"call": func(w *server.Writer) error {
			return errors.Join(w.Text("I look."), w.Open(&item.FunctionCall{CallID: "c", Name: "f"}), w.Delta(`{"a`))
		},
	}
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
		seen = r.Items
		if way := ways[r.Model]; way != nil {
			return errors.Join(way(w), errors.New("broken"))
		}
		return w.Text("Well.")
	}), ErrorLog: log.New(io.Discard, "", 0)}
	defer s.Close()
	for name, want := range map[string]string{"nothing": "", "message": "half of it", "call": "I look."} {
		_, text := call(s, http.MethodPost, "conversations", "{}")
		talk, err := api.ParseConversation([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, text = call(s, http.MethodPost, "responses", `{"model":"`+name+`","input":"x","conversation":"`+talk.ID+`"}`)
		r, err := api.ParseResponse([]byte(text))
		if err != nil || r.Status != item.StatusFailed || r.Text() != want || len(r.Output) != min(len(want), 1) || name == "message" && r.Output[0].Status() != item.StatusIncomplete {
			t.Errorf("%s: %v %s", name, err, text)
		}
		if _, list := call(s, http.MethodGet, "conversations/"+talk.ID+"/items", ""); strings.Contains(list, `"message"`) {
			t.Errorf("%s: the conversation has %s", name, list)
		}
		status, text := call(s, http.MethodPost, "responses", `{"model":"m","input":"y","previous_response_id":"`+r.ID+`"}`)
		switch {
		case want == "" && (status != http.StatusBadRequest || !strings.Contains(text, "is failed: only a response")):
			t.Errorf("%s: %d %s", name, status, text)
		case want != "" && (status != http.StatusOK || len(seen) != 3 || !strings.Contains(seen[1].JSON(), want)):
			t.Errorf("%s: %d %s, with %v", name, status, text, seen)
		}
	}
}

// store false, an id of nobody's and one that had to go are told as such. E1
func TestNotStored(t *testing.T) {
	c := clientOf(t, serve(t, "again\nturn\n  say x\n", func(s *rehearsal.Server) { s.MaxStored = 2 }))
	unstored := ask(t, c, &api.Request{Input: users("a"), Store: new(false)})
	var kept []string
	for _, s := range []string{"b", "c", "c"} { // equal requests have ids of their own
		kept = append(kept, ask(t, c, &api.Request{Input: users(s)}).ID)
	}
	if kept[1] == kept[2] {
		t.Errorf("two responses have the id %s", kept[1])
	}
	for id, there := range map[string]bool{unstored.ID: false, kept[0]: false, kept[1]: true, kept[2]: true, "resp_none": false} {
		_, err := c.Create(t.Context(), &api.Request{Model: "m", Input: users("next"), PreviousResponseID: id, Store: new(false)})
		var e *endpoint.Error
		switch {
		case there && err != nil:
			t.Errorf("%s: %v", id, err)
		case !there && (!errors.As(err, &e) || e.Class != endpoint.PreviousResponse || e.Code != "previous_response_not_found"):
			t.Errorf("%s: %v", id, err)
		}
		if _, err := c.Retrieve(t.Context(), id, nil); (err == nil) != there {
			t.Errorf("%s retrieved: %v", id, err)
		}
	}
}

// A response of the background goes on without its client, and its stream is
// taken up where it was left. S10
func TestBackground(t *testing.T) {
	c := clientOf(t, serve(t, "again\nturn\n  reason Hm.\n  pause 60ms\n  say one two three\n", nil))
	c.Retry = endpoint.Retry{Max: 5, Base: 5 * time.Millisecond}
	ctx := t.Context()
	begun := ask(t, c, &api.Request{Input: users("a"), Background: new(true)})
	if begun.Status != item.StatusQueued || len(begun.Output) != 0 {
		t.Errorf("begun: %s", encoded(t, begun))
	}
	_, err := c.Create(ctx, &api.Request{Model: "m", Input: users("b"), PreviousResponseID: begun.ID})
	if err != nil && failure(t, err).Class != endpoint.BadRequest {
		t.Errorf("gone on from before its end: %v", err)
	}
	r, err := c.Wait(ctx, begun.ID)
	if err != nil || r.Text() != "one two three" {
		t.Errorf("waited for %v, %v", r, err)
	}

	var all []string
	for ev, err := range c.Stream(ctx, &api.Request{Model: "m", Input: users("c"), Background: new(true)}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, shown(ev))
		if ev.Type == api.EventCreated {
			first, err := ev.Response()
			if err != nil {
				t.Fatal(err)
			}
			begun = first
		}
	}
	if len(all) < 10 || all[1] != string(api.EventQueued)+" " {
		t.Errorf("streamed %q", all)
	}
	for after := -1; after < len(all)-1; after++ {
		var got []string
		for ev, err := range c.Follow(ctx, begun.ID, int64(after)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, shown(ev))
		}
		if d := cmp.Diff(all[after+1:], got); d != "" {
			t.Errorf("behind %d (-want +got):\n%s", after, d)
		}
	}
}

// Cancel ends a response of the background for all who follow it. S8
func TestBackgroundCancel(t *testing.T) {
	c := clientOf(t, serve(t, "turn\n  reason Hm.\n  say one\n  pause 10m\n  say two\n", nil))
	c.Retry = endpoint.Retry{Max: 3, Base: time.Millisecond}
	ctx := t.Context()
	var last error
	id := ""
	for ev, err := range c.Stream(ctx, &api.Request{Model: "m", Input: users("a"), Background: new(true)}) {
		last = err
		if ev.Type == api.EventCreated {
			r, err := ev.Response()
			if err != nil {
				t.Fatal(err)
			}
			id = r.ID
		}
		if ev.Delta != "one" {
			continue
		}
		r, err := c.Cancel(ctx, id)
		if err != nil || r.Status != item.StatusCancelled || len(r.Output) != 1 {
			t.Errorf("cancelled: %v %v", r, err)
		}
	}
	var e *endpoint.Error
	if !errors.As(last, &e) || e.Class != endpoint.Canceled {
		t.Errorf("the stream ended with %v", last)
	}
}

// What cannot be done with what is stored is refused in so many words.
func TestStoredRefusals(t *testing.T) {
	base := serve(t, "again\nturn\n  say x\n", nil)
	c := clientOf(t, base)
	sync := ask(t, c, &api.Request{Input: users("a")}).ID
	quiet := ask(t, c, &api.Request{Input: users("b"), Background: new(true)}).ID
	for _, test := range []struct {
		method, path, body string
		status             int
		param, want        string
	}{
		{"GET", "/responses/" + sync + "?stream=true", "", 400, "stream", "'background'"},
		{"GET", "/responses/" + sync, `{"stream":true}`, 400, "stream", "'background'"}, // as OpenAI's client for Go asks
		{"GET", "/responses/" + quiet + "?stream=true", "", 400, "stream", "'stream'"},
		{"GET", "/responses/" + quiet + "?stream=true&starting_after=x", "", 400, "starting_after", "'x'"},
		{"GET", "/responses/none/input_items", "", 404, "", "'none'"},
		{"GET", "/responses/" + sync + "/input_items?limit=1000", "", 400, "limit", "<= 100, but got 1000"},
		{"GET", "/responses/" + sync + "/input_items?limit=0", "", 400, "limit", ">= 1"},
		{"GET", "/responses/" + sync + "/input_items?limit=x", "", 400, "limit", "'x'"},
		{"GET", "/responses/" + sync + "/input_items?order=up", "", 400, "order", "'up'"},
		{"GET", "/responses/" + sync + "/input_items?after=none", "", 400, "after", "'none'"},
		{"POST", "/responses", `{"model":"m","input":"x","background":true,"store":false}`, 400, "background", "'store'"},
		{"POST", "/responses", `{"model":"m","input":"x","previous_response_id":"a","conversation":"b"}`, 400, "", "Mutually exclusive"},
		{"POST", "/responses", `{"model":"m","input":"x","conversation":"none"}`, 404, "", "Conversation with id 'none' not found."},
		{"POST", "/responses", `{"model":"m","input":"x","conversation":[]}`, 400, "conversation", "an id"},
		{"POST", "/responses", `{"model":"m","input":[{"type":"compaction_trigger"}]}`, 400, "input[0].type", "/responses/compact"},
		{"POST", "/responses", `{"model":"m","input":[{"type":"compaction","id":"cmp_1","encrypted_content":"eHh4eHh4eHh4eHh4"}]}`, 400, "input", "'cmp_1'"},
		{"POST", "/responses/compact", `{"input":"x"}`, 400, "model", "'model'"},
		{"GET", "/models/gpt-5", "", 404, "model", "'gpt-5'"},
	} {
		status, e := raw(t, c, test.method, base+test.path, test.body)
		if status != test.status || e == nil || e.Param != test.param || !strings.Contains(e.Message, test.want) {
			t.Errorf("%s %s %s: %d %+v", test.method, test.path, test.body, status, e)
		}
	}
}

// shown is a copy of what an event is and says.
func shown(ev api.Event) string { return fmt.Sprintf("%s %s", ev.Type, ev.Delta) }
