// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

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
				want := post1(rt, whole, "/v1/responses", &api.Request{Model: "m", Input: item.NewList(history...)})
				req := &api.Request{Model: "m", Input: item.NewList(fresh...), PreviousResponseID: last}
				switch how := rapid.SampledFrom([]string{"whole", "id", "conversation", "compacted"}).Draw(rt, "how"); {
				case how == "id" || last == "":
				case how == "whole":
					req.Input, req.PreviousResponseID = item.NewList(history...), ""
				case how == "compacted":
					all, err := (&api.CompactRequest{Model: "m", Input: req.Input, PreviousResponseID: last}).AppendJSON(nil)
					if err != nil {
						rt.Fatal(err)
					}
					c, err := api.ParseCompacted(serveJSON(rt, s, "/v1/responses/compact", string(all)))
					if err != nil {
						rt.Fatal(err)
					}
					req.Input, req.PreviousResponseID = item.NewList(c.Output...), ""
				case how == "conversation":
					c, err := api.ParseConversation(serveJSON(rt, s, "/v1/conversations", ""))
					if err != nil {
						rt.Fatal(err)
					}
					before := history[:len(history)-len(fresh)]
					for i := 0; i < len(before); i += 20 {
						add, err := (&api.AddItems{Items: item.NewList(before[i:min(i+20, len(before))]...)}).AppendJSON(nil)
						if err != nil {
							rt.Fatal(err)
						}
						serveJSON(rt, s, "/v1/conversations/"+c.ID+"/items", string(add))
					}
					req.Conversation, req.PreviousResponseID = api.ConversationByID(c.ID), ""
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

func said(r *api.Response) string { return calls(r) + r.Text() }

func post1(rt *rapid.T, s *Server, path string, req *api.Request) *api.Response {
	body, err := req.AppendJSON(nil)
	if err != nil {
		rt.Fatal(err)
	}
	r, err := api.ParseResponse(serveJSON(rt, s, path, string(body)))
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
