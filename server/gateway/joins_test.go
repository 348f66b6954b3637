// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// joining returns a response that continues a conversation, with the items that join it.
func joining(t *testing.T, keep *gateway.Store) (rec server.StoredObject, items []item.Item) {
	t.Helper()
	const talk = "conv_talk"
	question, answer := item.User("Question."), item.Assistant("Answer.")
	rec = server.StoredObject{Response: begun(t, "resp_joins"), Previous: talk, Before: 1, Input: []item.Item{question}}
	rec.Response.Conversation = &api.ConversationRef{ID: talk}
	err := errors.Join(
		keep.Put(t.Context(), server.StoredObject{Conversation: &api.Conversation{ID: talk}, Input: []item.Item{item.User("Before.")}}),
		keep.Put(t.Context(), rec),
		keep.AddOutput(t.Context(), "resp_joins", 0, answer),
	)
	if err != nil {
		t.Fatal(err)
	}
	return rec, []item.Item{question, answer}
}

// meanwhile says something in the conversation.
func meanwhile(t *testing.T, keep *gateway.Store) {
	t.Helper()
	if err := keep.Add(t.Context(), "conv_talk", item.User("Meanwhile.")); err != nil {
		t.Fatal(err)
	}
}

// said returns what is in the conversation.
func said(t *testing.T, keep *gateway.Store) (words string) {
	t.Helper()
	items, err := keep.Items(t.Context(), "conv_talk")
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		for _, one := range []string{"Before.", "Meanwhile.", "Question.", "Answer."} {
			if strings.Contains(it.JSON(), one) {
				words += " " + one
			}
		}
	}
	return strings.TrimSpace(words)
}

// A server that is killed between the two writes at the end of a response leaves it in its conversation, and
// the next server does not add it a second time. V2
func TestKilledAfterJoin(t *testing.T) {
	in := opened(t)
	keep := &gateway.Store{In: in}
	rec, items := joining(t, keep)
	meanwhile(t, keep)
	if err := keep.Join(t.Context(), rec, items...); err != nil {
		t.Fatal(err)
	}
	if err := keep.Close(); err != nil { // the locks of a process end with it
		t.Fatal(err)
	}
	next := &gateway.Store{In: in}
	for range 2 {
		got, err := next.EndLeft(t.Context(), rec.ID(), func(rec server.StoredObject) (server.StoredObject, error) {
			if added, err := next.AddLeft(t.Context(), rec, items...); err != nil || !added {
				t.Errorf("%v %v", added, err)
			}
			rec.Response.Status = item.StatusIncomplete
			return rec, nil
		})
		if err != nil || got.Response.Text() != "Answer." {
			t.Errorf("%+v %v", got.Response, err)
		}
	}
	if words := said(t, next); words != "Before. Meanwhile. Question. Answer." {
		t.Errorf("in the conversation: %s", words)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// endElsewhere writes the end of a response as a server does that has taken it over.
func endElsewhere(t *testing.T, in store.Store, rec server.StoredObject) {
	t.Helper()
	other := *rec.Response
	other.Status = item.StatusIncomplete
	end, err := item.ParseString(`{"type":"antiphon:gateway_response_end","object_id":"resp_joins","object":` + responseJSON(t, &other) + `}`)
	if err != nil {
		t.Fatal(err)
	}
	for info, err := range in.List(t.Context(), session.Query{}) {
		if err == nil && info.Parent != "" {
			err = in.Append(t.Context(), info.ID, info.Entries, []session.Entry{{Seq: info.Entries + 1, Body: session.Note{Item: end}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A server that has lost a response, which another one has ended, adds nothing to the conversation. V2
func TestLostDoesNotJoin(t *testing.T) {
	in := opened(t)
	keep := &gateway.Store{In: in}
	rec, items := joining(t, keep)
	meanwhile(t, keep)
	endElsewhere(t, in, rec)
	if err := keep.Join(t.Context(), rec, items...); !errors.Is(err, server.ErrEnded) {
		t.Error(err)
	}
	if words := said(t, keep); words != "Before. Meanwhile." {
		t.Errorf("in the conversation: %s", words)
	}
	if err := keep.Close(); err != nil {
		t.Error(err)
	}
}

// waiting is a store in which something happens before a server gets the lock of a session.
type waiting struct {
	store.Store
	session string
	before  func()
}

func (w *waiting) Lock(ctx context.Context, id string) (func() error, error) {
	if before := w.before; before != nil && id == w.session {
		w.before = nil
		before()
	}
	return w.Store.Lock(ctx, id)
}

// While a server waits for the conversation, another one takes over the response, which is in the
// conversation once, and not after what was said later. V2
func TestLostWhileJoining(t *testing.T) {
	for name, test := range map[string]struct {
		goesOn, ends bool
		want         error
		said         string
	}{
		"ended":          {ends: true, want: server.ErrEnded, said: "Before. Question. Answer."},
		"went on":        {goesOn: true, ends: true, want: server.ErrEnded, said: "Before. Meanwhile."},
		"joined, no end": {said: "Before. Question. Answer."},
	} {
		t.Run(name, func(t *testing.T) {
			in := &waiting{Store: opened(t)}
			keep, other := &gateway.Store{In: in}, &gateway.Store{In: in}
			rec, items := joining(t, keep)
			for info, err := range in.List(t.Context(), session.Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				if info.Parent != "" {
					in.session = info.Parent
				}
			}
			in.before = func() {
				if test.goesOn {
					meanwhile(t, other)
				}
				if added, err := other.AddLeft(t.Context(), rec, items...); err != nil || added == test.goesOn {
					t.Errorf("AddLeft: %v %v", added, err)
				}
				if test.ends {
					endElsewhere(t, in, rec)
				}
			}
			if err := keep.Join(t.Context(), rec, items...); !errors.Is(err, test.want) {
				t.Errorf("Join: %v", err)
			}
			if in.before != nil {
				t.Error("nobody locked the conversation")
			}
			if words := said(t, keep); words != test.said {
				t.Errorf("in the conversation: %s", words)
			}
			if err := keep.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A response does not become a fork of a conversation that has as many items as before, but others. V1
func TestForkOfChanged(t *testing.T) {
	keep := &gateway.Store{In: opened(t)}
	named := func(id string) item.Item {
		return item.Must(&item.Message{ID: id, Role: item.RoleUser, Content: item.Text("x")})
	}
	if err := keep.Put(t.Context(), server.StoredObject{Conversation: &api.Conversation{ID: "conv_talk"}, Input: []item.Item{named("msg_1"), named("msg_2")}}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]error{"msg_0": server.ErrNotFound, "msg_1": nil} {
		rec := server.StoredObject{Response: begun(t, "resp_of_"+id), Previous: "conv_talk", Before: 2, History: []item.Item{named(id), named("msg_2")}}
		if err := keep.Put(t.Context(), rec); !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := keep.Close(); err != nil {
		t.Error(err)
	}
}
