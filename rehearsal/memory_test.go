// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

type weight int

func (w weight) size() int { return int(w) }

// What is kept is bounded by number and by size; the newest always stays.
func TestShelf(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s shelf[weight]
		limit := rapid.IntRange(1, 8).Draw(rt, "limit")
		var order []string
		for n := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if len(order) > 0 && rapid.IntRange(0, 3).Draw(rt, "what") == 0 {
				i := rapid.IntRange(0, len(order)-1).Draw(rt, "which")
				had := s.has(order[i])
				if s.remove(order[i]) != had {
					rt.Fatalf("removing %s, which was there: %v", order[i], had)
				}
				continue
			}
			id := fmt.Sprint(n)
			order = append(order, id)
			s.put(id, weight(rapid.IntRange(0, maxStoredBytes*3/4).Draw(rt, "size")), limit)
			if !s.has(id) {
				rt.Fatal("the newest went")
			}
		}
		sum := 0
		for id, w := range s.byID {
			sum += int(w)
			if !strings.Contains(strings.Join(order, " "), id) {
				rt.Fatalf("holds %s", id)
			}
		}
		if len(s.order) != len(s.byID) || sum != s.bytes || len(s.order) > limit || len(s.order) > 1 && sum > maxStoredBytes {
			rt.Fatalf("%d of %d things, %d of %d bytes, limit %d", len(s.order), len(s.byID), s.bytes, sum, limit)
		}
	})
}

// A run of the background keeps its own time, for all who follow it.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Script: parse(t, "turn\n  pause 1s\n  say one\n  pause 1s\n  say two\n"), Pace: -1}
		a, wrong := answered(s, []byte(`{"model":"m","input":"x","background":true}`))
		if wrong != nil {
			t.Fatal(wrong)
		}
		r := newRun(a)
		begin := time.Now()
		var got []string
		notes := noter(func(typ item.EventType, _ []byte) { got = append(got, fmt.Sprint(time.Since(begin), " ", typ)) })
		if status, done := r.progress(time.Now()); status != item.StatusInProgress || done != 0 {
			t.Errorf("at first %s, %d items", status, done)
		}
		if err := r.follow(t.Context(), 2, notes); err != nil {
			t.Error(err)
		}
		want := []string{
			"1s response.output_item.added", "1s response.content_part.added", "1s response.output_text.delta",
			"2s response.output_text.delta", "2s response.output_text.delta", "2s response.output_text.done",
			"2s response.content_part.done", "2s response.output_item.done", "2s response.completed",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		r.cancel() // too late
		if status, done := r.progress(time.Now()); status != item.StatusCompleted || done != 1 {
			t.Errorf("at last %s, %d items", status, done)
		}

		r, got = newRun(a), nil
		time.AfterFunc(1500*time.Millisecond, r.cancel)
		if err := r.follow(t.Context(), -1, notes); err != nil || len(got) != 6 {
			t.Errorf("cancelled behind %q, %v", got, err)
		}
		if status, _ := r.progress(time.Now().Add(time.Hour)); status != item.StatusCancelled {
			t.Errorf("then it is %s", status)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := newRun(a).follow(ctx, -1, notes); err == nil {
			t.Error("followed without a client")
		}
	})
}

type noter func(item.EventType, []byte)

func (n noter) wait(time.Duration) error { return nil }

func (n noter) send(typ item.EventType, data []byte) error {
	n(typ, data)
	return nil
}

// However a request tells its history, the script sees all of it.
func TestEveryHistory(t *testing.T) {
	script := parse(t, "again\nturn\n  call look {{question | json | printf \"{\\\"at\\\": %s}\"}}\nturn\n  say {{question}}: {{output -1}}, first {{output 1}}\n")
	rapid.Check(t, func(rt *rapid.T) {
		whole, s := &Server{Script: script}, &Server{Script: script}
		var history []item.Item
		last := ""
		for n := range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			fresh := []item.Item{item.User(fmt.Sprint(rapid.StringMatching(`[a-z"{} ]{0,9}`).Draw(rt, "text"), n))}
			for range 2 {
				history = append(history, fresh...)
				want := post1(rt, whole, "/v1/responses", &item.Request{Model: "m", Input: item.NewList(history...)})
				req := &item.Request{Model: "m", Input: item.NewList(fresh...), PreviousResponseID: last}
				switch how := rapid.SampledFrom([]string{"whole", "id", "conversation", "compacted"}).Draw(rt, "how"); {
				case how == "id" || last == "":
				case how == "whole":
					req.Input, req.PreviousResponseID = item.NewList(history...), ""
				case how == "compacted":
					all, err := (&item.CompactRequest{Model: "m", Input: req.Input, PreviousResponseID: last}).AppendJSON(nil)
					if err != nil {
						rt.Fatal(err)
					}
					c, err := item.ParseCompacted(serveJSON(rt, s, "/v1/responses/compact", string(all)))
					if err != nil {
						rt.Fatal(err)
					}
					req.Input, req.PreviousResponseID = item.NewList(c.Output...), ""
				case how == "conversation":
					c, err := item.ParseConversation(serveJSON(rt, s, "/v1/conversations", ""))
					if err != nil {
						rt.Fatal(err)
					}
					before := history[:len(history)-len(fresh)]
					for i := 0; i < len(before); i += maxAdded {
						add, err := (&item.AddItems{Items: item.NewList(before[i:min(i+maxAdded, len(before))]...)}).AppendJSON(nil)
						if err != nil {
							rt.Fatal(err)
						}
						serveJSON(rt, s, "/v1/conversations/"+c.ID+"/items", string(add))
					}
					req.Conversation, req.PreviousResponseID = item.ConversationByID(c.ID), ""
				}
				got := post1(rt, s, "/v1/responses", req)
				if said(want) != said(got) {
					rt.Fatalf("said %q, want %q", said(got), said(want))
				}
				last = got.ID
				history = append(history, got.Output...)
				if it := got.Output[0]; it.IsCall() {
					fresh = []item.Item{textOutput(it.CallID(), fmt.Sprint("seen ", n))}
				}
			}
		}
	})
}

func said(r *item.Response) string { return calls(r) + r.Text() }

func post1(rt *rapid.T, s *Server, path string, req *item.Request) *item.Response {
	body, err := req.AppendJSON(nil)
	if err != nil {
		rt.Fatal(err)
	}
	r, err := item.ParseResponse(serveJSON(rt, s, path, string(body)))
	if err != nil {
		rt.Fatal(err)
	}
	return r
}

func serveJSON(rt *rapid.T, s *Server, path, body string) []byte {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader([]byte(body))))
	if w.Code != http.StatusOK {
		rt.Fatalf("%s %s: %d %s", path, body, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// The images of outputs that are text alone follow in a user message; it is not a
// new round, and the images are those of the outputs.
func TestCarried(t *testing.T) {
	call := func(id string) item.Item { return item.Call(id, "look", "") }
	img := func(data string) item.Part { return &item.InputImage{ImageURL: png(data)} }
	user := func(parts ...item.Part) item.Item {
		it, err := item.UserParts(parts...)
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	line := func(s string) item.Part { return &item.InputText{Text: s} }
	begin := []item.Item{item.User("x"), call("a"), call("b"), textOutput("a", `<image src="…"/>`), textOutput("b", `none`)}
	for _, test := range []struct {
		name  string
		last  item.Item
		round int
		sizes [2]int // of the first image of each output
	}{
		{"bare", user(img("1")), 0, [2]int{9, 0}},
		{"more than there are markers", user(img("1"), img("22")), 0, [2]int{0, 9}},
		{"named", user(line("From the output of b:"), img("333"), line("From the output of a:"), img("1")), 0, [2]int{9, 11}},
		{"named as nobody is", user(line("From the output of c:"), img("1")), 1, [2]int{}},
		{"said", user(line("Look:"), img("1")), 1, [2]int{}},
		{"text", item.User("And?"), 1, [2]int{}},
	} {
		f, err := factsOf(request(nil), append(begin[:len(begin):len(begin)], test.last))
		if err != nil {
			t.Fatal(err)
		}
		var sizes [2]int
		for i := range sizes {
			if m, err := f.image(i + 1); err == nil {
				sizes[i] = m.Size
			}
		}
		if f.at.round != test.round || sizes != test.sizes {
			t.Errorf("%s: round %d, images of %v bytes, want %d and %v", test.name, f.at.round, sizes, test.round, test.sizes)
		}
	}
}
