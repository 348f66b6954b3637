// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// leave stores a response in a conversation, as its server left it when it was killed: without
// an end, and with some output.
func leave(t *testing.T, in store.Store, output ...item.Item) {
	t.Helper()
	killed := &gateway.Store{In: in}
	talk := server.StoredObject{Conversation: &api.Conversation{ID: "conv_1", Metadata: "{}"}, Input: []item.Item{item.Must(&item.Message{ID: "msg_1", Role: item.RoleUser, Content: item.Text("before")})}}
	begun := server.StoredObject{
		Response: &api.Response{ID: "resp_left", Model: "m", Status: item.StatusInProgress, Output: []item.Item{}, Conversation: &api.ConversationRef{ID: "conv_1"}},
		Previous: "conv_1", Before: 1, Input: []item.Item{item.User("asked")},
	}
	if err := errors.Join(killed.Put(t.Context(), talk), killed.Put(t.Context(), begun)); err != nil {
		t.Fatal(err)
	}
	for i, it := range output {
		if err := killed.AddOutput(t.Context(), "resp_left", i, it); err != nil {
			t.Fatal(err)
		}
	}
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
}

// failing is a store of sessions whose writes fail as the test says.
func failing(fail func(verb string) error) *stepped {
	s := new(stepped)
	s.wholeStore = storetest.StepStore(nil, func(st storetest.Step) error {
		if verb, _, _ := strings.Cut(st.Name, "/"); !st.Done {
			return fail(verb)
		}
		return nil
	}).(wholeStore)
	return s
}

// serveIn serves a gateway with a store of sessions.
func serveIn(t *testing.T, in store.Store) *world {
	t.Helper()
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, says(t, "answer").URL, false)}}}
	keep := &gateway.Store{In: in}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	t.Cleanup(func() {
		w.end()
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// said returns which of some words are in a conversation, in their order.
func (w *world) said(words ...string) string {
	w.t.Helper()
	code, _, list := w.ask(http.MethodGet, "/conversations/conv_1/items?order=asc", "")
	if code != http.StatusOK {
		w.t.Fatal(code, list)
	}
	var got []string
	for rest := list; ; {
		at, found := len(rest), ""
		for _, word := range words {
			if i := strings.Index(rest, `"`+word+`"`); i >= 0 && i < at {
				at, found = i, word
			}
		}
		if found == "" {
			return strings.Join(got, " ")
		}
		got, rest = append(got, found), rest[at+len(found):]
	}
}

var all = []string{"before", "asked", "half", "next", "answer"}

// A response whose server was killed joins its conversation at its place, once, or not at all if
// the conversation went on without it.
func TestLeftInConversation(t *testing.T) {
	get := func(w *world) {
		t.Helper()
		code, _, text := w.ask(http.MethodGet, "/responses/resp_left", "")
		if code != http.StatusOK || !strings.Contains(text, `"incomplete"`) || !strings.Contains(text, "half") {
			t.Errorf("%d %s", code, text)
		}
	}
	next := func(w *world) {
		w.create(`{"model":"m","input":"next","conversation":"conv_1"}`)
	}
	for want, does := range map[string][]func(*world){
		"before asked half":             {get, get},
		"before asked half next answer": {get, next, get},
		"before next answer":            {next, get, get},
	} {
		in := steps()
		leave(t, in, item.Assistant("half"))
		w := serveIn(t, in)
		for _, do := range does {
			do(w)
		}
		if got := w.said(all...); got != want {
			t.Errorf("the conversation is %q, want %q", got, want)
		}
	}
}

// A write that fails while a left response ends is made up for, and nothing is there twice.
func TestLeftFails(t *testing.T) {
	for n := range int64(4) {
		var writes, failed atomic.Int64
		writes.Store(-1000)
		in := failing(func(verb string) error {
			if slices.Contains([]string{"append", "archive"}, verb) && writes.Add(1) == n {
				failed.Add(1)
				return errors.New("disk full")
			}
			return nil
		})
		leave(t, in, item.Assistant("half"))
		w := serveIn(t, in)
		writes.Store(-1)
		for range 3 {
			w.ask(http.MethodGet, "/responses/resp_left", "")
		}
		code, _, text := w.ask(http.MethodGet, "/responses/resp_left", "")
		if got := w.said(all...); got != "before asked half" || code != http.StatusOK || !strings.Contains(text, `"incomplete"`) {
			t.Errorf("write %d failed: the conversation is %q, and the response %d %s", n, got, code, text)
		}
		if n < 3 && failed.Load() == 0 {
			t.Errorf("there is no write %d", n)
		}
	}
}

// Once the end of a response is stored, nothing that fails makes another one.
func TestEndIsTheEnd(t *testing.T) {
	in := failing(func(verb string) error {
		if verb == "archive" || verb == "delete" {
			return errors.New("the database is gone")
		}
		return nil
	})
	w := serveIn(t, in)
	events := w.events(`{"model":"m","input":"x","background":true,"stream":true}`)
	last := events[len(events)-1]
	if last.Type != api.EventCompleted {
		t.Errorf("the stream ends with %s", last.JSON())
	}
	if r := w.create(`{"model":"m","input":"x"}`); r.Status != item.StatusCompleted {
		t.Errorf("the response is %s", r.Status)
	}
}

// An item that could not be stored is sent with the failure, so no event is missing. V2
func TestItemFails(t *testing.T) {
	up := agenttest.NewServer(t, agenttest.Completed(item.Assistant("one"), item.Assistant("two")))
	var appends atomic.Int64
	in := failing(func(verb string) error {
		if verb == "append" && appends.Add(1) == 2 { // after the beginning
			return errors.New("disk full")
		}
		return nil
	})
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}}}
	keep := &gateway.Store{In: in}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	defer w.end()
	items := 0
	events := w.events(`{"model":"m","input":"x","stream":true}`) // it checks the numbers
	for _, ev := range events {
		if ev.Type == api.EventItemDone {
			items++
		}
	}
	if last := events[len(events)-1]; last.Type != api.EventFailed || items != 1 || strings.Count(last.JSON(), `"one"`) != 1 {
		t.Errorf("%d items ended before %s", items, last.JSON())
	}
}

// A response that nobody asks for ends after a day. If it has no output, its client may never have heard of it
// and asked again, so its input does not join the conversation.
func TestLeftUnheard(t *testing.T) {
	for want, output := range map[string][]item.Item{"before": nil, "before asked half": {item.Assistant("half")}} {
		in := old()
		leave(t, in, output...)
		w := serveIn(t, in)
		w.said()                     // looking for such responses begins with a request
		for len(listed(t, in)) > 1 { // lists omit a response that has ended
			runtime.Gosched()
		}
		if got := w.said(all...); got != want {
			t.Errorf("the conversation is %q, want %q", got, want)
		}
		code, _, text := w.ask(http.MethodGet, "/responses/resp_left", "")
		if code != http.StatusOK || !strings.Contains(text, `"incomplete"`) {
			t.Errorf("%d %s", code, text)
		}
		w.create(`{"model":"m","input":"next","previous_response_id":"resp_left"}`)
	}
}
