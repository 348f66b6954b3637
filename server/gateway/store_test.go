// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
)

// inMemory is a store of sessions.
type inMemory struct{ session.Memory }

func (*inMemory) Place() string { return "memory" }
func (*inMemory) Close() error  { return nil }

// The durable store and the one in memory give the same answers to any series of calls.
func TestStoreIsLikeMemory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plain, durable := new(server.Memory), &gateway.Store{In: new(inMemory), Owner: "o"}
		var ids []string
		n := 0
		items := func() []item.Item {
			list := []item.Item{}
			for range rapid.IntRange(0, 3).Draw(rt, "items") {
				n++
				list = append(list, item.Must(&item.Message{ID: fmt.Sprintf("msg_%d", n), Role: item.RoleUser, Content: item.Text("x")}))
			}
			return list
		}
		both := func(what string, f func(server.Store) error) {
			a, b := f(plain), f(durable)
			if (a == nil) != (b == nil) || errors.Is(a, server.ErrNotFound) != errors.Is(b, server.ErrNotFound) {
				rt.Fatalf("%s: %v in memory, %v", what, a, b)
			}
		}
		ctx := context.Background()
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			pick := ""
			if len(ids) > 0 {
				pick = rapid.SampledFrom(ids).Draw(rt, "id")
			}
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0, 1:
				n++
				id, before := fmt.Sprintf("resp_%d", n), 0
				previous := pick
				if old, err := plain.Get(ctx, previous); err != nil {
					previous = ""
				} else {
					all, _ := plain.Items(ctx, previous)
					before = len(all)
					if old.Response != nil {
						if old.Response.Status != "completed" {
							continue
						}
						before += len(old.Response.Output)
					}
				}
				rec := server.StoredObject{Response: &api.Response{ID: id, Status: "in_progress", Output: []item.Item{}}, Previous: previous, Before: before, Input: items()}
				drop := func() {}
				if rapid.Bool().Draw(rt, "prepared") {
					prepared := rec
					prepared.Previous = rapid.SampledFrom([]string{previous, pick}).Draw(rt, "prepared previous")
					drop = durable.Prepare(ctx, prepared)
				}
				both("begin "+id, func(s server.Store) error { return s.Put(ctx, rec) })
				drop()
				ids = append(ids, id)
			case 2:
				old, err := plain.Get(ctx, pick)
				if err != nil || old.Response == nil {
					continue
				}
				r := *old.Response
				r.Status, r.Output = rapid.SampledFrom([]string{"completed", "failed"}).Draw(rt, "status"), items()
				old.Response, old.Note = &r, `{"a":1}`
				both("end "+pick, func(s server.Store) error { return s.Put(ctx, old) })
			case 3:
				n++
				id := fmt.Sprintf("conv_%d", n)
				rec := server.StoredObject{Conversation: &api.Conversation{ID: id, Metadata: "{}"}, Input: items()}
				both("talk "+id, func(s server.Store) error { return s.Put(ctx, rec) })
				ids = append(ids, id)
			case 4:
				more := items()
				both("add to "+pick, func(s server.Store) error { return s.Add(ctx, pick, more...) })
			case 5:
				which := fmt.Sprintf("msg_%d", rapid.IntRange(0, n).Draw(rt, "which"))
				both("remove from "+pick, func(s server.Store) error { return s.Remove(ctx, pick, which) })
			case 6:
				if pick != "" {
					both("delete "+pick, func(s server.Store) error { return s.Delete(ctx, pick) })
				}
			}
			for _, id := range ids {
				compare(rt, plain, durable, id)
			}
		}
		if err := durable.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

func compare(rt *rapid.T, plain, durable server.Store, id string) {
	ctx := context.Background()
	a, errA := plain.Get(ctx, id)
	b, errB := durable.Get(ctx, id)
	if (errA == nil) != (errB == nil) {
		rt.Fatalf("%s: %v in memory, %v", id, errA, errB)
	}
	if errA != nil {
		return
	}
	show := func(rec server.StoredObject) string {
		if rec.Conversation != nil {
			text, _ := rec.Conversation.AppendJSON(nil)
			return string(text)
		}
		text, err := rec.Response.AppendJSON(nil)
		return fmt.Sprint(string(text), err, rec.Previous, rec.Before, len(rec.Input), rec.Note)
	}
	if show(a) != show(b) {
		rt.Fatalf("%s\n%s in memory\n%s", id, show(a), show(b))
	}
	listA, _ := plain.Items(ctx, id)
	listB, err := durable.Items(ctx, id)
	if err != nil || fmt.Sprint(item.NewList(listA...).MarshalJSON()) != fmt.Sprint(item.NewList(listB...).MarshalJSON()) {
		rt.Fatalf("%s has %v in memory, %v, %v", id, listA, listB, err)
	}
}

// onDisk serves a gateway whose responses are in a store.
func onDisk(t *testing.T, place string, up *agenttest.Server) (w *world, end func()) {
	t.Helper()
	return onDiskAt(t, place, open(t, up.URL, false))
}

// onDiskAt is onDisk for an upstream of any kind.
func onDiskAt(t *testing.T, place string, up gateway.Upstream) (w *world, end func()) {
	t.Helper()
	in, err := store.Open(t.Context(), place, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	keep := &gateway.Store{In: in, Owner: t.Name()} // other tests use the same server of Postgres
	w = &world{t: t, spec: nil, b: &gateway.Backend{Upstreams: []gateway.Upstream{up}}}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	return w, func() {
		w.end()
		if err := errors.Join(keep.Close(), in.Close()); err != nil {
			t.Error(err)
		}
	}
}

// What was prepared for a response that an upstream refused is gone.
func TestRefusedLeavesNothing(t *testing.T) {
	in := new(inMemory)
	sessions := func() (n int) {
		for _, err := range in.List(t.Context(), session.Query{Archived: true}) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	answers := agenttest.NewServer(t, agenttest.Failure(http.StatusBadRequest, "invalid_prompt", "No."), agenttest.Completed(item.Assistant("Yes.")))
	at, err := url.Parse(strings.TrimSuffix(answers.URL, "/v1"))
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(at)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for sessions() == 0 && r.Context().Err() == nil { // until it is prepared
			time.Sleep(time.Millisecond)
		}
		pass.ServeHTTP(w, r)
	}))
	defer up.Close()
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL+"/v1", false)}}}
	keep := &gateway.Store{In: in}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	defer w.end()
	w.refused(`{"model":"m","input":"a"}`, http.StatusBadRequest)
	if n := sessions(); n != 0 {
		t.Errorf("%d sessions after a refusal", n)
	}
	w.create(`{"model":"m","input":"a"}`)
	if n := sessions(); n != 1 {
		t.Errorf("%d sessions after a response", n)
	}
}

// After a restart, responses and conversations are there, can be continued, and none is in
// progress. W8 J1
func TestRestart(t *testing.T) { restarts(t, filepath.Join(t.TempDir(), "s.db")) }

// The same on the server of .ci/postgres.
func TestRestartOnPostgres(t *testing.T) {
	host := regexp.MustCompile(`host=(/\S+)`).FindStringSubmatch(os.Getenv("ANTIPHON_POSTGRES"))
	if host == nil {
		t.Skip("no ANTIPHON_POSTGRES: `.ci/postgres go test ./server/gateway` starts a server and sets it")
	}
	restarts(t, "postgres://antiphon@/postgres?antiphon_unsafe=fsync&host="+host[1])
}

func restarts(t *testing.T, place string) {
	t.Helper()
	stall := make(chan struct{})
	up := agenttest.NewServer(t)
	up.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
		r := agenttest.Completed(item.Assistant(fmt.Sprint("reply ", n)))
		if n == 2 {
			return r.StallAfter(5, stall)
		}
		return r
	})
	w, end := onDisk(t, place, up)
	first := w.create(`{"model":"m","input":"a","background":true,"stream":false}`)
	if got, err := w.typed().Wait(t.Context(), first.ID); err != nil || got.Text() != "reply 0" {
		t.Fatalf("%v %v", got, err)
	}
	talk, err := w.typed().CreateConversation(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.create(`{"model":"m","input":"b","conversation":"` + talk.ID + `"}`)
	unfinished := w.create(`{"model":"m","input":"c","background":true}`)
	other, endOther := onDisk(t, place, up) // a second server over the same store
	if got, err := other.typed().Retrieve(t.Context(), unfinished.ID, nil); err != nil || got.Status != item.StatusInProgress && got.Status != item.StatusQueued {
		t.Errorf("while it is made, another server says %v, %v", got, err)
	}
	end()
	close(stall)
	if got, err := other.typed().Retrieve(t.Context(), unfinished.ID, nil); err != nil || got.Status == item.StatusInProgress || got.Status == item.StatusQueued {
		t.Errorf("after the server ended: %v, %v", got, err)
	}
	endOther()
	w, end = onDisk(t, place, up)
	defer end()
	next := w.create(`{"model":"m","input":"d","previous_response_id":"` + first.ID + `"}`)
	sent := string(up.Requests()[len(up.Requests())-1].Body)
	if !strings.Contains(sent, "reply 0") || next.PreviousResponseID != first.ID {
		t.Errorf("sent %s", sent)
	}
	if _, _, list := w.ask(http.MethodGet, "/conversations/"+talk.ID+"/items", ""); !strings.Contains(list, "reply 1") {
		t.Errorf("%s", list)
	}
	last := first.Output
	if got, err := w.typed().Retrieve(t.Context(), first.ID, nil); err == nil {
		last = got.Output
	}
	w.create(`{"model":"m","input":[{"type":"item_reference","id":"` + last[0].ID() + `"},{"role":"user","content":"e"}]}`)
	if sent := string(up.Requests()[len(up.Requests())-1].Body); !strings.Contains(sent, "reply 0") {
		t.Errorf("sent %s", sent)
	}
}

// A server that has lost a response, which another one has ended, writes no second end. V2
func TestEndedElsewhere(t *testing.T) {
	in := opened(t)
	keep := &gateway.Store{In: in}
	rec := server.StoredObject{Response: begun(t, "resp_lost"), Input: []item.Item{item.User("x")}}
	if err := keep.Put(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	other := begun(t, "resp_lost")
	other.Status = item.StatusIncomplete
	end, err := item.ParseString(`{"type":"antiphon:gateway_response_end","object_id":"resp_lost","object":` + responseJSON(t, other) + `}`)
	if err != nil {
		t.Fatal(err)
	}
	for info, err := range in.List(t.Context(), session.Query{}) {
		if err == nil {
			err = in.Append(t.Context(), info.ID, info.Entries, []session.Entry{{Seq: info.Entries + 1, Body: session.Note{Item: end}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, status := range []string{item.StatusCompleted, item.StatusFailed, item.StatusFailed} {
		own := begun(t, "resp_lost")
		own.Status, rec.Response = status, own
		if err := keep.Put(t.Context(), rec); !errors.Is(err, server.ErrEnded) {
			t.Errorf("%s: %v", status, err)
		}
		if busy, err := keep.Busy(t.Context(), "resp_lost"); busy || err != nil {
			t.Errorf("%s: what was lost is still held: %v %v", status, busy, err)
		}
	}
	if got, err := keep.Get(t.Context(), "resp_lost"); err != nil || got.Response.Status != item.StatusIncomplete {
		t.Errorf("%v %v", got.Response, err)
	}
	if err := keep.Close(); err != nil {
		t.Error(err)
	}
}

// A reference to an item of a response that continued another one is found after a restart, too.
func TestItemOfContinued(t *testing.T) {
	place, up := filepath.Join(t.TempDir(), "s.db"), agenttest.NewServer(t)
	up.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
		return agenttest.Completed(item.Must(&item.Message{ID: fmt.Sprint("msg_of_", n), Role: item.RoleAssistant, Status: item.StatusCompleted,
			Content: item.Content{Parts: []item.Part{&item.OutputText{Text: fmt.Sprint("reply ", n)}}}}))
	})
	w, end := onDisk(t, place, up)
	first := w.create(`{"model":"m","input":"a"}`)
	second := w.create(`{"model":"m","input":"b","previous_response_id":"` + first.ID + `"}`)
	end()
	w, end = onDisk(t, place, up)
	defer end()
	w.create(`{"model":"m","input":[{"type":"item_reference","id":"` + second.Output[0].ID() + `"},{"role":"user","content":"c"}]}`)
	if sent := string(up.Requests()[2].Body); !strings.Contains(sent, "reply 1") {
		t.Errorf("sent %s", sent)
	}
}
