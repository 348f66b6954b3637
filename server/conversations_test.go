// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
)

// raw sends any request and returns the status, and the error if it is one.
func raw(t *testing.T, c *responses.Client, method, url, body string) (int, *api.APIError) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	e, err := api.ParseErrorBody(got)
	if err != nil {
		t.Fatalf("%s: %s", resp.Status, got)
	}
	return resp.StatusCode, e.Error
}

func itemsOf(t *testing.T, c *responses.Client, id string) (got []string) {
	t.Helper()
	for it, err := range c.ConversationItems(t.Context(), id, &responses.ListOptions{Order: responses.Ascending, Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		if it.ID() == "" {
			t.Errorf("without an id: %s", it.JSON())
		}
		got = append(got, strings.TrimSpace(fmt.Sprint(it.Type(), " ", it.Role())))
	}
	return got
}

// A conversation grows by what is said in it, and can be read and changed.
func TestConversations(t *testing.T) {
	c := clientOf(t, serve(t, twoRounds, nil))
	ctx := t.Context()
	talk, err := c.CreateConversation(ctx, &api.CreateConversation{Items: item.NewList(item.System("Be brief.")), Metadata: `{"a":"b"}`})
	if err != nil {
		t.Fatal(err)
	}
	in := api.ConversationByID(talk.ID)
	first := ask(t, c, &api.Request{Input: users("Hello."), Conversation: in})
	if first.Conversation == nil || first.Conversation.ID != talk.ID {
		t.Errorf("the response is of %v", first.Conversation)
	}
	added, err := c.AddConversationItems(ctx, talk.ID,
		item.NewList(item.Must(&item.FunctionCallOutput{CallID: first.Output[1].CallID(), Output: item.Text("blue")})))
	if err != nil || len(added) != 1 || added[0].ID() == "" {
		t.Fatalf("added %v, %v", added, err)
	}
	// Streamed, and not stored: the conversation keeps it all the same.
	for _, err := range c.Stream(ctx, &api.Request{Model: "m", Conversation: in, Store: new(false)}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"message system", "message user", "reasoning", "function_call", "function_call_output", "message assistant"}
	if d := cmp.Diff(want, itemsOf(t, c, talk.ID)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// In the background, which ends by itself.
	begun := ask(t, c, &api.Request{Input: users("what?"), Conversation: in, Background: new(true)})
	if r, err := c.Wait(ctx, begun.ID); err != nil || r.Text() != "Then what?, and before it was blue" {
		t.Errorf("%v %v", r, err)
	}
	if got := itemsOf(t, c, talk.ID); len(got) != 8 {
		t.Errorf("items: %q", got)
	}

	one, err := c.RetrieveConversationItem(ctx, talk.ID, added[0].ID())
	if err != nil || one != added[0] {
		t.Errorf("%s %v, want %s", one.JSON(), err, added[0].JSON())
	}
	if err := c.DeleteConversationItem(ctx, talk.ID, added[0].ID()); err != nil {
		t.Error(err)
	}
	if _, err := c.RetrieveConversationItem(ctx, talk.ID, added[0].ID()); failure(t, err).Class != endpoint.NotFound {
		t.Errorf("an item that was deleted: %v", err)
	}
	if _, err := c.Create(ctx, &api.Request{Model: "m", Input: users("?"), Conversation: in}); !strings.Contains(failure(t, err).Message, "No tool output found") {
		t.Errorf("a conversation without an output: %v", err)
	}
	if _, err := c.UpdateConversation(ctx, talk.ID, &api.UpdateConversation{Metadata: `{"c":"d"}`}); err != nil {
		t.Error(err)
	}
	if got, err := c.RetrieveConversation(ctx, talk.ID); err != nil || got.Metadata != `{"c":"d"}` {
		t.Errorf("%v %v", got, err)
	}
	if err := c.DeleteConversation(ctx, talk.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.RetrieveConversation(ctx, talk.ID); failure(t, err).Class != endpoint.NotFound {
		t.Errorf("a conversation that was deleted: %v", err)
	}
}

// A conversation is held by one response at a time; a failed one leaves nothing.
func TestConversationLocked(t *testing.T) {
	c := clientOf(t, serve(t, "turn\n  say {{question}}\n  pause 10m\nround\nturn\n  say {{output 9}}\n", nil))
	ctx := t.Context()
	talk, err := c.CreateConversation(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := api.ConversationByID(talk.ID)
	begun := ask(t, c, &api.Request{Input: users("a"), Conversation: in, Background: new(true)})
	if _, err := c.Create(ctx, &api.Request{Model: "m", Input: users("b"), Conversation: in}); failure(t, err).Code != "conversation_locked" {
		t.Errorf("two at once: %v", err)
	}
	if _, err := c.Cancel(ctx, begun.ID); err != nil {
		t.Error(err)
	}
	if got := itemsOf(t, c, talk.ID); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
	if _, err := c.AddConversationItems(ctx, talk.ID, item.NewList(item.User("a"), item.Assistant("b"))); err != nil {
		t.Error(err)
	}
	for range 2 { // a mistake of the script's lets go of the conversation
		if _, err := c.Create(ctx, &api.Request{Model: "m", Input: users("c"), Conversation: in}); failure(t, err).Code != "rehearsal_script" {
			t.Errorf("a mistake: %v", err)
		}
	}
	if n, err := c.CountTokens(ctx, &api.Request{Model: "m", Input: users("c"), Conversation: in}); err != nil || n != 3 {
		t.Errorf("%d tokens, %v", n, err)
	}
}

// S9: tokens are counted as the usage of the response does, with the history.
func TestCountTokens(t *testing.T) {
	c := clientOf(t, serve(t, "again\nturn\n  say Hello there.\n", nil))
	req := &api.Request{Instructions: "Be brief.", Input: users("One", "Two"), Tools: []item.Tool{&item.FunctionTool{Name: "f", Parameters: `{"type":"object"}`}}}
	for range 3 {
		req.Model = "m"
		n, err := c.CountTokens(t.Context(), req)
		r := ask(t, c, req)
		if err != nil || n == 0 || n != r.Usage.InputTokens {
			t.Errorf("counted %d, %v, used %d", n, err, r.Usage.InputTokens)
		}
		req.PreviousResponseID, req.Input = r.ID, users("Three")
	}
	if _, err := c.CountTokens(t.Context(), &api.Request{Model: "m", Input: item.NewList(item.Call("c", "f", "{}"))}); !strings.Contains(failure(t, err).Message, "No tool output") {
		t.Errorf("%v", err)
	}
}

// A compacted history is one item, shorter than what it stands for, with which
// the script goes on as without.
func TestCompact(t *testing.T) {
	c := clientOf(t, serve(t, twoRounds, nil))
	long := strings.Repeat("blue and green ", 200)
	history := users("Hello.")
	history.Append(ask(t, c, &api.Request{Input: history}).Output...)
	history.Append(item.Must(&item.FunctionCallOutput{CallID: history.At(2).CallID(), Output: item.Text(long)}))
	r := ask(t, c, &api.Request{Input: history})
	for _, req := range []*api.CompactRequest{
		{Model: "m", Input: item.NewList(append(listOf(history), r.Output...)...)},
		{Model: "m", PreviousResponseID: r.ID},
	} {
		got, err := c.Compact(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Output) != 1 || len(got.Output[0].JSON()) > history.Size()/3 || got.Usage.TotalTokens == 0 {
			t.Errorf("compacted: %d items, %v", len(got.Output), got.Usage)
		}
		next := ask(t, c, &api.Request{Input: item.NewList(got.Output[0], item.User("what?"))})
		if text := next.Text(); text != "Then what?, and before it was "+strings.TrimSpace(long) && text != "Then what?, and before it was "+long {
			t.Errorf("said %q", text)
		}
	}
}

func listOf(l *item.List) (items []item.Item) {
	for _, it := range l.All() {
		items = append(items, it)
	}
	return items
}

// A server can be without parts of the API, and says so as endpoints do.
func TestWithout(t *testing.T) {
	base := serve(t, "again\nturn\n  say x\n", func(s *rehearsal.Server) {
		s.Without = []rehearsal.Feature{
			rehearsal.Models, rehearsal.Stored, rehearsal.Background, rehearsal.Conversations,
			rehearsal.InputTokens, rehearsal.Compact, rehearsal.WebSocket, rehearsal.Chat,
		}
	})
	c := clientOf(t, base)
	ctx := t.Context()
	r := ask(t, c, &api.Request{Input: users("a")})
	if _, err := c.Create(ctx, &api.Request{Model: "m", Input: users("a"), PreviousResponseID: r.ID}); failure(t, err).Class != endpoint.PreviousResponse {
		t.Errorf("previous_response_id: %v", err)
	}
	if _, err := c.Create(ctx, &api.Request{Model: "m", Input: users("a"), Background: new(true)}); failure(t, err).Class != endpoint.BadRequest {
		t.Errorf("background: %v", err)
	}
	if _, err := c.Create(ctx, &api.Request{Model: "m", Input: users("a"), Conversation: api.ConversationByID("c")}); failure(t, err).Class != endpoint.BadRequest {
		t.Errorf("conversation: %v", err)
	}
	for _, path := range []string{"GET /models", "GET /responses/" + r.ID, "POST /responses/compact", "POST /responses/input_tokens", "POST /conversations", "POST /chat/completions"} {
		method, path, _ := strings.Cut(path, " ")
		if status, e := raw(t, c, method, base+path, "{}"); status != http.StatusNotFound || e.Code != "unknown_url" || !strings.HasSuffix(e.Message, "serves POST /v1/responses.") {
			t.Errorf("%s: %d %+v", path, status, e)
		}
	}
	chain := &responses.Chain{Client: c, Transport: responses.WebSocket}
	defer chain.Close()
	for _, err := range chain.Stream(ctx, &api.Request{Model: "m", Input: users("a")}) {
		if err != nil {
			t.Error(err)
		}
	}
	if chain.Uses() != responses.HTTP {
		t.Error("a WebSocket was opened")
	}
}

// Many clients at once, each in its own conversation, disturb nobody.
func TestManyAtOnce(t *testing.T) {
	base := serve(t, "again\nturn\n  call look {}\nturn\n  say {{question}} {{output -1}}\n", func(s *rehearsal.Server) { s.MaxStored = 500 })
	c := &responses.Client{BaseURL: base, Profile: full, HTTP: &http.Client{Transport: new(http.Transport)}}
	defer c.HTTP.CloseIdleConnections()
	var group sync.WaitGroup
	for n := range 24 {
		group.Go(func() {
			transport := responses.HTTP
			if n%2 == 0 {
				transport = responses.WebSocket
			}
			chain := &responses.Chain{Client: c, Transport: transport}
			defer chain.Close()
			history := new(item.List)
			for turn := range 5 {
				history.Append(item.User(fmt.Sprintf("%d.%d", n, turn)))
				if _, err := heard(t, chain, history); err != nil {
					t.Error(err)
					return
				}
				history.Append(item.Must(&item.FunctionCallOutput{CallID: history.At(history.Len() - 1).CallID(), Output: item.Text("seen")}))
				got, err := heard(t, chain, history)
				if want := fmt.Sprintf("%d.%d seen", n, turn); err != nil || got != want {
					t.Errorf("said %q, %v, want %q", got, err, want)
				}
			}
			talk, err := c.CreateConversation(t.Context(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			for range 2 {
				if _, err := c.Create(t.Context(), &api.Request{Model: "m", Input: users("x", "y"), Conversation: api.ConversationByID(talk.ID), Store: new(false)}); err != nil && !strings.Contains(err.Error(), "No tool output found") {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// heard asks, appends the answer's items, and returns its text.
func heard(t *testing.T, chain *responses.Chain, history *item.List) (string, error) {
	var acc api.Accumulator
	for ev, err := range chain.Stream(t.Context(), &api.Request{Model: "m", Input: history.Clone()}) {
		if err != nil {
			return "", err
		}
		if _, err := acc.Add(ev); err != nil {
			return "", err
		}
	}
	r, _ := acc.Response()
	history.Append(r.Output...)
	return r.Text(), nil
}

func TestConversationRefusals(t *testing.T) {
	base := serve(t, "again\nturn\n  say x\n", nil)
	c := clientOf(t, base)
	talk, err := c.CreateConversation(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	many := `{"items":[` + strings.Repeat(`{"role":"user","content":"x"},`, 20) + `{"role":"user","content":"x"}]}`
	at := "/conversations/" + talk.ID
	for _, test := range []struct{ path, body, code, param string }{
		{"/conversations", many, "array_above_max_length", "items"},
		{"/conversations", `{"metadata":5}`, "invalid_type", "metadata"},
		{"/conversations", `{"items":5}`, "invalid_type", "items"},
		{at, `{"metadata":[]}`, "invalid_type", "metadata"},
		{at, `[]`, "invalid_type", ""},
		{at + "/items", `{}`, "missing_required_parameter", "items"},
		{at + "/items", `{"items":"x"}`, "invalid_type", "items"},
		{at + "/items", many, "array_above_max_length", "items"},
		{at + "/items", `{"items":[{"role":"tool","content":"x"}]}`, "invalid_value", "items[0].role"},
		{at + "/items", `{"items":[{"type":"item_reference","id":"msg_1"}]}`, "", "items[0]"},
		{at + "/items?limit=0", `{`, "", ""},
	} {
		status, e := raw(t, c, "POST", base+test.path, test.body)
		if status != http.StatusBadRequest || e == nil || e.Code != test.code || e.Param != test.param {
			t.Errorf("POST %s %.80s: %d %+v", test.path, test.body, status, e)
		}
	}
	for _, path := range []string{at + "/items/none", "/conversations/none", "/conversations/none/items"} {
		if status, e := raw(t, c, "GET", base+path, ""); status != http.StatusNotFound || !strings.Contains(e.Message, "'none'") {
			t.Errorf("GET %s: %d %+v", path, status, e)
		}
	}
	// An item of a conversation can be named where it is not a part.
	added, err := c.AddConversationItems(t.Context(), talk.ID, users("Hello."))
	if err != nil {
		t.Fatal(err)
	}
	ask(t, c, &api.Request{Input: item.NewList(item.Must(&item.ItemReference{ID: added[0].ID()}))})
}

// Each item of a list can be reached, page by page and by its id, also if a client gave the same id to
// several items: those that are added to a conversation get others, and in the input of a response,
// which is kept as it was sent, the list tells them apart.
func TestRepeatedIDs(t *testing.T) {
	base := serve(t, "again\nturn\n  say x\n", nil)
	c := clientOf(t, base)
	message := func(id, text string) string {
		return fmt.Sprintf(`{"type":"message","id":%q,"role":"user","content":[{"type":"input_text","text":%q}]}`, id, text)
	}
	all := strings.Join([]string{message("msg_a", "one"), message("msg_b", "two"), message("msg_a", "three"), message("msg_a_2", "four"), message("msg_a", "five")}, ",")
	get := func(path string, v any) {
		t.Helper()
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(v); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %s, %v", path, resp.Status, err)
		}
	}
	type listed struct {
		ID      string
		Content []struct{ Text string }
	}
	pages := func(at string) (texts, ids []string) {
		for after, n := "", 0; n < 20; n++ {
			var page struct {
				Data   []listed
				LastID string `json:"last_id"`
				More   bool   `json:"has_more"`
			}
			get(at+"?order=asc&limit=1"+after, &page)
			for _, it := range page.Data {
				texts, ids = append(texts, it.Content[0].Text), append(ids, it.ID)
			}
			if after = "&after=" + page.LastID; !page.More {
				break
			}
		}
		return texts, ids
	}
	talk, err := c.CreateConversation(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := "/conversations/" + talk.ID + "/items"
	for _, body := range []string{message("msg_a", "zero"), all} {
		if status, e := raw(t, c, "POST", base+at, `{"items":[`+body+`]}`); status != http.StatusOK {
			t.Fatal(status, e)
		}
	}
	input, err := item.ParseList("[" + all + "]")
	if err != nil {
		t.Fatal(err)
	}
	r := ask(t, c, &api.Request{Input: item.NewList(input...)})
	for path, want := range map[string][]string{at: {"zero", "one", "two", "three", "four", "five"}, "/responses/" + r.ID + "/input_items": {"one", "two", "three", "four", "five"}} {
		texts, ids := pages(path)
		if !slices.Equal(texts, want) {
			t.Errorf("the pages of %s have %q (%q), want %q", path, texts, ids, want)
		}
	}
	_, ids := pages(at)
	if len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(ids) || ids[0] != "msg_a" || ids[2] != "msg_b" {
		t.Errorf("ids %q", ids)
	}
	for i, id := range ids {
		var it listed
		if get(at+"/"+id, &it); it.Content[0].Text != []string{"zero", "one", "two", "three", "four", "five"}[i] {
			t.Errorf("%s is %s", id, it.Content[0].Text)
		}
	}
	for i, id := range ids { // each is its own: a repeated request deletes nothing else
		for _, want := range []int{http.StatusOK, http.StatusNotFound} {
			if status, e := raw(t, c, "DELETE", base+at+"/"+id, ""); status != want {
				t.Errorf("DELETE %s: %d %+v", id, status, e)
			}
		}
		if texts, _ := pages(at); len(texts) != len(ids)-1-i {
			t.Errorf("after %s there are %q", id, texts)
		}
	}
}
