// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// stepped is a store of sessions that tells its writes.
type stepped struct {
	wholeStore
	mu     sync.Mutex
	writes []string
}

type wholeStore interface {
	session.Catalog
	session.SubsessionStore
	session.Locker
	session.Forker
	session.Watcher
	session.Inbox
	session.Blobs
}

func (*stepped) Place() string { return "memory" }
func (*stepped) Close() error  { return nil }

func steps() *stepped {
	s := new(stepped)
	s.wholeStore = storetest.StepStore(nil, func(st storetest.Step) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if verb, _, _ := strings.Cut(st.Name, "/"); st.Done && slices.Contains([]string{"append", "create", "fork", "archive", "delete"}, verb) {
			s.writes = append(s.writes, verb)
		}
		return nil
	}).(wholeStore)
	return s
}

func (s *stepped) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.writes
	s.writes = nil
	return list
}

// The beginning of a response is one write, also if it continues another one. An item that is
// complete when the response ends is stored with the end.
func TestWrites(t *testing.T) {
	up := agenttest.NewServer(t)
	up.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Completed(item.Assistant("one")).InPieces(1 << 20)
	})
	in := steps()
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}}}
	keep := &gateway.Store{In: in}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	defer func() {
		w.end()
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	}()
	first := w.create(`{"model":"m","input":"a"}`)
	if got := strings.Join(in.take(), " "); got != "append append archive" {
		t.Errorf("writes: %s", got)
	}
	w.create(`{"model":"m","input":"b","previous_response_id":"` + first.ID + `"}`)
	if got := strings.Join(in.take(), " "); got != "fork append archive" {
		t.Errorf("writes of one that continues: %s", got)
	}
}

// unreadable adds an entry to a session that cannot be read.
func unreadable(t *testing.T, in store.Store, name string) {
	t.Helper()
	it, err := item.ParseString(`{"type":"antiphon:gateway_response_end","object_id":"x","items":"many"}`)
	if err != nil {
		t.Fatal(err)
	}
	info, err := in.Info(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err = in.Append(t.Context(), name, info.Entries, []session.Entry{{Seq: info.Entries + 1, Body: session.Note{Item: it}}}); err != nil {
		t.Fatal(err)
	}
}

// listed returns the sessions that lists of sessions show, the newest first.
func listed(t *testing.T, in store.Store) (ids []string) {
	t.Helper()
	for info, err := range in.List(t.Context(), session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	return ids
}

// A response that cannot be read hides no other that a killed server left.
func TestLeftUnreadable(t *testing.T) {
	to, in := receive(t), opened(t)
	var names []string
	for _, id := range []string{"resp_first", "resp_broken", "resp_last"} {
		left(t, in, &to.Webhook, server.StoredObject{Response: begun(t, id), Background: true, Input: []item.Item{item.User("x")}})
		for _, name := range listed(t, in) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	unreadable(t, in, names[1])
	keep := &gateway.Store{In: in}
	ids, err := keep.Left(t.Context())
	if slices.Sort(ids); err == nil || !strings.Contains(err.Error(), names[1]) || strings.Join(ids, " ") != "resp_first resp_last" {
		t.Errorf("%q %v", ids, err)
	}
	if err := keep.Close(); err != nil {
		t.Error(err)
	}
}

// watched is a store in which all sessions are two days old. It counts what is read and locked.
type watched struct {
	wholeStore
	mu             sync.Mutex
	entries, locks map[string]int
}

func old() *watched {
	return &watched{wholeStore: storetest.StepStore(nil, nil).(wholeStore), entries: map[string]int{}, locks: map[string]int{}}
}

func (*watched) Place() string { return "memory" }
func (*watched) Close() error  { return nil }

func (w *watched) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		for info, err := range w.wholeStore.List(ctx, q) {
			info.Updated = time.Now().Add(-48 * time.Hour)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (w *watched) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for e, err := range w.wholeStore.Load(ctx, id, after) {
			w.count(w.entries, id)
			if !yield(e, err) {
				return
			}
		}
	}
}

func (w *watched) Lock(ctx context.Context, id string) (func() error, error) {
	w.count(w.locks, id)
	return w.wholeStore.Lock(ctx, id)
}

func (w *watched) count(in map[string]int, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in[id]++
}

// taken returns what was read and locked of a session since it was asked the last time.
func (w *watched) taken(id string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("%d entries, %d locks", w.entries[id], w.locks[id])
	delete(w.entries, id)
	delete(w.locks, id)
	return text
}

// Of a conversation in which nobody has written for long, only the first entry is read, once, and it is not
// locked. Of a response without an end, only what it does not share with another session is read.
func TestLeftReadsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := old()
		talk := server.StoredObject{Conversation: &api.Conversation{ID: "conv_long"}}
		for range 20 {
			talk.Input = append(talk.Input, item.User("x"))
		}
		keep := &gateway.Store{In: in}
		if err := keep.Put(t.Context(), talk); err != nil {
			t.Fatal(err)
		}
		names := listed(t, in)
		left(t, in, nil, server.StoredObject{Response: begun(t, "resp_left"), Previous: "conv_long", Before: len(talk.Input), Input: []item.Item{item.User("y")}})
		for _, name := range listed(t, in) {
			if name != names[0] {
				names = append(names, name)
			}
		}
		for _, want := range []string{"1 entries, 0 locks", "0 entries, 0 locks"} {
			in.taken(names[0])
			in.taken(names[1])
			if ids, err := keep.Left(t.Context()); err != nil || strings.Join(ids, " ") != "resp_left" {
				t.Errorf("%q %v", ids, err)
			}
			if got := in.taken(names[0]); got != want {
				t.Errorf("of the conversation: %s, want %s", got, want)
			}
			if got := in.taken(names[1]); got != "5 entries, 1 locks" { // the first one twice
				t.Errorf("of the response: %s", got)
			}
			time.Sleep(2 * time.Hour)
		}
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	})
}

// For an event about a response, what the response continues is not read.
func TestWebhookReadsLittle(t *testing.T) {
	in, to := old(), receive(t)
	talk := server.StoredObject{Conversation: &api.Conversation{ID: "conv_long"}}
	for range 100 {
		talk.Input = append(talk.Input, item.User("x"))
	}
	keep := &gateway.Store{In: in, Webhook: &to.Webhook}
	if err := keep.Put(t.Context(), talk); err != nil {
		t.Fatal(err)
	}
	before := listed(t, in)
	left(t, in, &to.Webhook, server.StoredObject{Response: begun(t, "resp_ends"), Background: true, Previous: "conv_long", Before: len(talk.Input), Input: []item.Item{item.User("y")}})
	name := slices.DeleteFunc(listed(t, in), func(id string) bool { return slices.Contains(before, id) })[0]
	if _, err := keep.EndLeft(t.Context(), "resp_ends", func(rec server.StoredObject) (server.StoredObject, error) {
		rec.Response.Status = item.StatusCompleted
		return rec, nil
	}); err != nil {
		t.Fatal(err)
	}
	in.taken(name)
	ctx, stop := context.WithCancel(t.Context())
	sent := make(chan error)
	go func() { sent <- keep.SendWebhooks(ctx) }()
	if got := <-to.got; got.Data.ID != "resp_ends" || got.Type != "response.completed" {
		t.Errorf("%+v", got)
	}
	stop()
	if err := errors.Join(<-sent, keep.Close()); err != nil {
		t.Error(err)
	}
	var entries int
	if text := in.taken(name); text == "" {
		t.Error("nothing was read")
	} else if _, err := fmt.Sscanf(text, "%d entries", &entries); err != nil || entries == 0 || entries > 50 {
		t.Errorf("%s were read, %v", text, err)
	}
}

// A response that another server makes is found as soon as that one is killed.
func TestLeftElsewhere(t *testing.T) {
	to, in := receive(t), opened(t)
	one, other := &gateway.Store{In: in, Webhook: &to.Webhook}, &gateway.Store{In: in, Webhook: &to.Webhook}
	if err := one.Put(t.Context(), server.StoredObject{Response: begun(t, "resp_left"), Background: true, Input: []item.Item{item.User("x")}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "resp_left"} {
		for _, keep := range []*gateway.Store{one, other} {
			if ids, err := keep.Left(t.Context()); err != nil || strings.Join(ids, " ") != want {
				t.Errorf("%q %v, want %q", ids, err, want)
			}
		}
		if err := one.Close(); err != nil { // the locks of a process end with it
			t.Error(err)
		}
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// Two servers that are asked at once for a response which a third one left end it once, and it is in its
// conversation once.
func TestLeftByTwo(t *testing.T) {
	const talk = "conv_talk"
	in := opened(t)
	before := &gateway.Store{In: in}
	if err := before.Put(t.Context(), server.StoredObject{Conversation: &api.Conversation{ID: talk}, Input: []item.Item{item.User("Before.")}}); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	begins := begun(t, "resp_left")
	begins.Conversation = &api.ConversationRef{ID: talk}
	left(t, in, nil, server.StoredObject{Response: begins, Previous: talk, Before: 1, Background: true, Input: []item.Item{item.User("Left.")}})

	var worlds []*world
	for range 2 {
		keep := &gateway.Store{In: in}
		w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, says(t, "Yes.").URL, false)}}}
		w.serve(&server.Server{Backend: w.b, Store: keep})
		defer func() {
			w.end()
			if err := keep.Close(); err != nil {
				t.Error(err)
			}
		}()
		worlds = append(worlds, w)
	}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			got, err := worlds[n%2].typed().Retrieve(t.Context(), "resp_left", nil)
			if err != nil || got.Status != item.StatusIncomplete || got.Text() != "One." {
				t.Errorf("%v %v", got, err)
			}
		})
	}
	all.Wait()
	for _, w := range worlds {
		_, _, list := w.ask("GET", "/conversations/"+talk+"/items?order=asc", "")
		if strings.Count(list, "Left.") != 1 || strings.Count(list, "One.") != 1 || strings.Index(list, "Before.") > strings.Index(list, "Left.") {
			t.Errorf("%s", list)
		}
	}
	ends := 0
	for info, err := range in.List(t.Context(), session.Query{Archived: true}) {
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range in.Load(t.Context(), info.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if n, ok := e.Body.(session.Note); ok && n.Item.Type() == "antiphon:gateway_response_end" {
				ends++
			}
		}
	}
	if ends != 1 {
		t.Errorf("%d ends", ends)
	}
}
