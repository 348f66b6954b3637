// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// keeper is an endpoint with a memory: it goes on from what it has answered,
// over HTTP from every response that it stores, on a socket from the last one.
type keeper struct {
	mu      sync.Mutex
	stored  map[string][]string
	sockets map[int]map[string][]string
	// whole is what each answered request came to, with what was remembered.
	whole [][]string
	// sent is how many items each request brought, and which id it went on from.
	sent []int
	from []string
	// output says what the model answers, by the number of the answer.
	output func(n int) []item.Item
	// fault, if set, is what request n gets instead of an answer.
	fault func(n int, r agenttest.Request) *agenttest.Reply
}

func newKeeper(output func(n int) []item.Item) *keeper {
	return &keeper{stored: map[string][]string{}, sockets: map[int]map[string][]string{}, output: output}
}

func (k *keeper) answer(tb testing.TB) func(int, agenttest.Request) agenttest.Reply {
	return func(n int, r agenttest.Request) agenttest.Reply {
		k.mu.Lock()
		defer k.mu.Unlock()
		req := r.Parse(tb)
		k.sent = append(k.sent, req.Input.Len())
		k.from = append(k.from, req.PreviousResponseID)
		if k.fault != nil {
			if a := k.fault(n, r); a != nil {
				return *a
			}
		}
		var history []string
		if id := req.PreviousResponseID; id != "" {
			known, ok := k.stored[id]
			if r.Socket > 0 && !ok {
				known, ok = k.sockets[r.Socket][id]
			}
			if !ok {
				return agenttest.PreviousResponseNotFound(id)
			}
			history = slices.Clone(known)
		}
		for _, it := range req.Input.All() {
			history = append(history, it.JSON())
		}
		id := fmt.Sprintf("resp_%d", len(k.whole))
		output := k.output(len(k.whole))
		if g, _ := req.Extra.Get("generate"); g == "false" {
			output = nil
		} else {
			k.whole = append(k.whole, slices.Clone(history))
		}
		for _, it := range output {
			history = append(history, it.JSON())
		}
		if req.Store == nil || *req.Store {
			k.stored[id] = history
		}
		k.sockets[r.Socket] = map[string][]string{id: history}
		return agenttest.Events(told(id, output...)...)
	}
}

// forget is what a server does when it restarts, or has no room.
func (k *keeper) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.stored)
	clear(k.sockets)
}

// read is what the model read for each answer.
func (k *keeper) read() [][]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.whole)
}

// items are how many each request sent.
func (k *keeper) items() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.sent)
}

// ids are what each request went on from.
func (k *keeper) ids() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.from)
}

// fail sets what requests get instead of an answer.
func (k *keeper) fail(fault func(n int, r agenttest.Request) *agenttest.Reply) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault = fault
}

// told are the events of a response.
func told(id string, output ...item.Item) []string {
	events := []string{`{"type":"response.created","response":{"id":"` + id + `","status":"in_progress","output":[]}}`}
	var all []string
	for i, it := range output {
		all = append(all, it.JSON())
		events = append(events, `{"type":"response.output_item.done","output_index":`+strconv.Itoa(i)+`,"item":`+it.JSON()+`}`)
	}
	return append(events, `{"type":"response.completed","response":{"id":"`+id+`","status":"completed","output":[`+strings.Join(all, ",")+`]}}`)
}

func mustParse(s string) item.Item {
	it, err := item.ParseString(s)
	if err != nil {
		panic(err)
	}
	return it
}

func said(id, text string) item.Item {
	return mustParse(`{"id":"` + id + `","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":` + string(item.Quote(text)) + `,"annotations":[]}]}`)
}

func called(id, name, arguments string) item.Item {
	return mustParse(`{"id":"fc_` + id + `","type":"function_call","status":"completed","call_id":"call_` + id + `","name":"` + name + `","arguments":` + string(item.Quote(arguments)) + `}`)
}

func numbered(n int) []item.Item {
	return []item.Item{said(fmt.Sprintf("msg_%d", n), fmt.Sprintf("answer %d", n))}
}

// openAI is the profile of an endpoint that has all that a chain can use.
func openAI(t testing.TB) *endpoint.Profile {
	t.Helper()
	p, err := endpoint.ByName("openai")
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

func newChain(t testing.TB, srv *agenttest.Server, over responses.Transport) *responses.Chain {
	t.Helper()
	c := srv.Client()
	c.Profile = openAI(t)
	c.Key = endpoint.NewKey("sk-secret-key")
	th := &responses.Chain{Client: c, Transport: over}
	t.Cleanup(func() { _ = th.Close() })
	return th
}

var transports = map[string]responses.Transport{"HTTP": responses.HTTP, "WebSocket": responses.WebSocket}

// overBoth runs a test over each transport, with a server that remembers.
func overBoth(t *testing.T, test func(t *testing.T, th *responses.Chain, k *keeper, srv *agenttest.Server)) {
	for name, over := range transports {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(numbered)
			srv := agenttest.NewServer(t)
			srv.Otherwise(k.answer(t))
			test(t, newChain(t, srv, over), k, srv)
		})
	}
}

// talk is a conversation as a caller keeps it.
type talk struct {
	history []item.Item
	store   *bool
}

func (c *talk) request() *api.Request {
	return &api.Request{Model: "m", Instructions: "be brief", Input: item.NewList(c.history...), Store: c.store}
}

// say adds to the history, asks, and adds the answer.
func (c *talk) say(t *testing.T, m agent.Model, text string) drained {
	t.Helper()
	c.history = append(c.history, item.User(text))
	d := drainModel(t.Context(), t, m, c.request())
	c.history = append(c.history, d.items...)
	return d
}

// drainModel is drain for any model.
func drainModel(ctx context.Context, t *testing.T, m agent.Model, req *api.Request) drained {
	t.Helper()
	var d drained
	var acc api.Accumulator
	for ev, err := range m.Stream(ctx, req) {
		if d.err != nil {
			t.Errorf("%q and %v were yielded after the error", ev.Type, err)
		}
		if d.err = err; err != nil {
			presentable(t, err)
			if strings.Contains(err.Error(), "sk-secret") {
				t.Errorf("the key is in %q", err)
			}
			continue
		}
		d.events = append(d.events, ev)
		items, err := acc.Add(ev)
		if err != nil {
			t.Errorf("event %s: %v", ev.Type, err)
		}
		d.items = append(d.items, items...)
	}
	d.resp, d.whole = acc.Response()
	return d
}

func asTexts(items []item.Item) []string {
	var list []string
	for _, it := range items {
		list = append(list, it.JSON())
	}
	return list
}

// A chain sends what is new; the model reads all of it.
func TestChainSendsWhatIsNew(t *testing.T) {
	overBoth(t, func(t *testing.T, th *responses.Chain, k *keeper, srv *agenttest.Server) {
		var c talk
		for n := range 4 {
			before := asTexts(c.history)
			if d := c.say(t, th, "question "+strconv.Itoa(n)); d.err != nil || len(d.items) != 1 {
				t.Fatalf("turn %d: %d items, %v", n, len(d.items), d.err)
			}
			want := append(before, item.User("question "+strconv.Itoa(n)).JSON())
			if d := gocmp.Diff(want, k.read()[n]); d != "" {
				t.Errorf("turn %d: the model read (-want +got):\n%s", n, d)
			}
		}
		if d := gocmp.Diff([]int{1, 1, 1, 1}, k.items()); d != "" {
			t.Errorf("items sent:\n%s", d)
		}
		if d := gocmp.Diff([]string{"", "resp_0", "resp_1", "resp_2"}, k.ids()); d != "" {
			t.Errorf("went on from:\n%s", d)
		}
		for _, r := range srv.Requests() {
			if got := r.Parse(t).Instructions; got != "be brief" {
				t.Errorf("instructions are %q", got)
			}
		}
		if n := len(srv.Sockets()); th.Transport == responses.WebSocket && n != 1 {
			t.Errorf("%d sockets", n)
		}
	})
}

// store:false: over HTTP nothing is there to go on from, on a socket there is.
func TestChainWithoutStore(t *testing.T) {
	overBoth(t, func(t *testing.T, th *responses.Chain, k *keeper, _ *agenttest.Server) {
		no := false
		c := talk{store: &no}
		for n := range 3 {
			if d := c.say(t, th, "question"); d.err != nil {
				t.Fatalf("turn %d: %v", n, d.err)
			}
		}
		want := []int{1, 3, 5}
		if th.Transport == responses.WebSocket {
			want = []int{1, 1, 1}
		}
		if d := gocmp.Diff(want, k.items()); d != "" {
			t.Errorf("items sent:\n%s", d)
		}
	})
}

// Where a profile does not promise previous_response_id, it is not tried: a
// server that ignores it would answer to half of the history.
func TestChainByProfile(t *testing.T) {
	k := newKeeper(numbered)
	srv := agenttest.NewServer(t)
	srv.Otherwise(k.answer(t))
	th := &responses.Chain{Client: srv.Client()}
	var c talk
	for range 3 {
		if d := c.say(t, th, "question"); d.err != nil {
			t.Fatal(d.err)
		}
	}
	if d := gocmp.Diff([]int{1, 3, 5}, k.items()); d != "" {
		t.Errorf("items sent:\n%s", d)
	}
	p := openAI(t)
	p.WebSocket = endpoint.No
	th = newChain(t, srv, responses.WebSocket)
	th.Client.Profile = p
	if d := c.say(t, th, "question"); d.err != nil || len(srv.Sockets()) != 0 || th.Uses() != responses.HTTP {
		t.Errorf("%d sockets, %v", len(srv.Sockets()), d.err)
	}
}

// Any other history than the last one and its answer is sent whole.
func TestChainOtherHistories(t *testing.T) {
	yes := true
	for name, edit := range map[string]func(c *talk, r *api.Request){
		"an edited question": func(c *talk, r *api.Request) {
			c.history[0] = item.User("another")
			r.Input = item.NewList(c.history...)
		},
		"an edited answer": func(c *talk, r *api.Request) {
			c.history[1] = said("msg_0", "edited")
			r.Input = item.NewList(c.history...)
		},
		"a fork":        func(c *talk, r *api.Request) { r.Input = item.NewList(c.history[0], item.User("other way")) },
		"a compaction":  func(c *talk, r *api.Request) { r.Input = item.NewList(item.User("summary"), c.history[4]) },
		"nothing new":   func(c *talk, r *api.Request) { r.Input = item.NewList(c.history[:4]...) },
		"another model": func(_ *talk, r *api.Request) { r.Model = "other" },
		"an id of its own": func(_ *talk, r *api.Request) {
			r.PreviousResponseID = "resp_0"
		},
		"in the background": func(_ *talk, r *api.Request) { r.Background = &yes },
	} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, th *responses.Chain, k *keeper, srv *agenttest.Server) {
				var c talk
				c.say(t, th, "one")
				c.say(t, th, "two")
				c.history = append(c.history, item.User("three"))
				req := c.request()
				edit(&c, req)
				if d := drainModel(t.Context(), t, th, req); d.err != nil {
					t.Fatal(d.err)
				}
				if k.items()[2] != req.Input.Len() || k.ids()[2] != req.PreviousResponseID {
					t.Errorf("sent %d items of %d, from %q", k.items()[2], req.Input.Len(), k.ids()[2])
				}
				got := srv.Requests()[2]
				if own := req.PreviousResponseID != "" || req.Background != nil; own && got.Socket > 0 {
					t.Error("sent over the socket")
				}
			})
		})
	}
}

// E6: a dead id is retired, and the whole history is sent, once and at once.
func TestChainDeadID(t *testing.T) {
	overBoth(t, func(t *testing.T, th *responses.Chain, k *keeper, srv *agenttest.Server) {
		th.Client.Retry.Max = -1 // it is not a retry
		var c talk
		c.say(t, th, "one")
		c.say(t, th, "two")
		k.forget()
		d := c.say(t, th, "three")
		if d.err != nil || len(d.events) != 3 {
			t.Fatalf("%d events, %v", len(d.events), d.err)
		}
		c.say(t, th, "four")
		if d := gocmp.Diff([]int{1, 1, 1, 5, 1}, k.items()); d != "" {
			t.Errorf("items sent:\n%s", d)
		}
		if d := gocmp.Diff([]string{"", "resp_0", "resp_1", "", "resp_2"}, k.ids()); d != "" {
			t.Errorf("went on from:\n%s", d)
		}
	})
}

// E6: if the whole history is refused too, that is the error; the request was
// made twice and no more.
func TestChainDeadTwice(t *testing.T) {
	overBoth(t, func(t *testing.T, th *responses.Chain, k *keeper, srv *agenttest.Server) {
		var c talk
		c.say(t, th, "one")
		k.fail(func(int, agenttest.Request) *agenttest.Reply {
			a := agenttest.PreviousResponseNotFound("resp_x")
			return &a
		})
		d := c.say(t, th, "two")
		wantClass(t, d.err, endpoint.PreviousResponse)
		if len(k.items()) != 3 {
			t.Errorf("%d requests", len(k.items()))
		}
	})
}

// An endpoint that keeps no responses, whatever it says, is not asked in vain
// for ever.
func TestChainKeepsNothing(t *testing.T) {
	overBoth(t, func(t *testing.T, th *responses.Chain, k *keeper, srv *agenttest.Server) {
		answer := k.answer(t)
		srv.Otherwise(func(n int, r agenttest.Request) agenttest.Reply { k.forget(); return answer(n, r) })
		var c talk
		for range 5 {
			if d := c.say(t, th, "question"); d.err != nil {
				t.Fatal(d.err)
			}
		}
		if d := gocmp.Diff([]int{1, 1, 3, 1, 5, 7, 9}, k.items()); d != "" {
			t.Errorf("items sent:\n%s", d)
		}
	})
}

// A response is no ground to go on from unless it is certain what it covers.
func TestChainUncertain(t *testing.T) {
	a, b := said("msg_a", "a"), said("msg_b", "b")
	done := func(i int, it item.Item) string {
		return `{"type":"response.output_item.done","output_index":` + strconv.Itoa(i) + `,"item":` + it.JSON() + `}`
	}
	end := func(members string) string {
		return `{"type":"response.completed","response":{"status":"completed"` + members + `}}`
	}
	both := `,"output":[` + a.JSON() + `,` + b.JSON() + `]`
	for name, tt := range map[string]struct {
		events []string
		known  bool
	}{
		"as it should be":        {[]string{done(0, a), done(1, b), end(`,"id":"r"` + both)}, true},
		"no output":              {[]string{done(0, a), done(1, b), end(`,"id":"r"`)}, true},
		"no places":              {[]string{done(-1, a), done(-1, b), end(`,"id":"r"` + both)}, true},
		"no id":                  {[]string{done(0, a), done(1, b), end(both)}, false},
		"other order":            {[]string{done(1, b), done(0, a), end(`,"id":"r"` + both)}, false},
		"other order, no output": {[]string{done(1, b), done(0, a), end(`,"id":"r"`)}, false},
		"one not done":           {[]string{done(0, a), end(`,"id":"r"` + both)}, false},
		"another id":             {[]string{done(0, a), done(1, said("msg_c", "b")), end(`,"id":"r"` + both)}, false},
		"not stored":             {[]string{done(0, a), done(1, b), end(`,"id":"r","store":false` + both)}, false},
		"incomplete":             {[]string{done(0, a), `{"type":"response.incomplete","response":{"id":"r","status":"incomplete","output":[` + a.JSON() + `]}}`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, agenttest.Events(tt.events...), agenttest.Completed(item.Assistant("hi")))
			th := newChain(t, srv, responses.HTTP)
			var c talk
			if d := c.say(t, th, "one"); d.err != nil {
				t.Fatal(d.err)
			}
			c.say(t, th, "two")
			if got := srv.Requests()[1].Parse(t).PreviousResponseID; (got == "r") != tt.known {
				t.Errorf("goes on from %q", got)
			}
		})
	}
}

// L2, S10: an agent's conversation ends with the same history over a client and
// over a chain, on either transport, and less goes over the wire.
func TestChainOfAgent(t *testing.T) {
	add := tool.Must("add", "Adds.", func(_ context.Context, in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (string, error) {
		return strconv.Itoa(in.A + in.B), nil
	})
	script := func(n int) []item.Item {
		id := strconv.Itoa(n)
		if n%3 == 2 {
			return []item.Item{said("msg_"+id, "answer "+id)}
		}
		reasoning := mustParse(`{"id":"rs_` + id + `","type":"reasoning","summary":[],"encrypted_content":"abc"}`)
		return []item.Item{reasoning, called(id+"a", "add", `{"a":1,"b":`+id+`}`), called(id+"b", "add", `{"a":2,"b":`+id+`}`)}
	}
	run := func(t *testing.T, model func(*agenttest.Server) agent.Model) (history []string, bytes int) {
		k := newKeeper(script)
		srv := agenttest.NewServer(t)
		srv.Otherwise(k.answer(t))
		no := false
		a := &agent.Agent{Model: model(srv), Tools: []tool.Tool{add}, Request: api.Request{Model: "m", Instructions: "add", Store: &no}}
		s := session.New()
		for _, question := range []string{"first", "second", "third"} {
			res, err := a.Run(t.Context(), s, item.User(question))
			if err != nil || res.Why != agent.StopEndTurn {
				t.Fatal(res, err)
			}
		}
		for _, r := range srv.Requests() {
			bytes += len(r.Body)
		}
		return k.read()[len(k.read())-1], bytes
	}
	want, all := run(t, func(srv *agenttest.Server) agent.Model { return newChain(t, srv, responses.HTTP).Client })
	for name, over := range transports {
		t.Run(name, func(t *testing.T) {
			got, bytes := run(t, func(srv *agenttest.Server) agent.Model { return newChain(t, srv, over) })
			if d := gocmp.Diff(want, got); d != "" {
				t.Errorf("history (-client +chain):\n%s", d)
			}
			if over == responses.WebSocket && bytes >= all/2 {
				t.Errorf("%d bytes sent, by a client %d", bytes, all)
			}
		})
	}
}

// What the model reads is what the caller gave, whatever happens to ids,
// sockets and histories.
func TestChainProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := newKeeper(func(n int) []item.Item {
			items := numbered(n)
			if n%2 == 0 {
				items = append(items, called(strconv.Itoa(n), "f", "{}"))
			}
			return items
		})
		srv := agenttest.NewServer(t)
		defer srv.Close()
		srv.Otherwise(k.answer(t))
		over := rapid.SampledFrom([]responses.Transport{responses.HTTP, responses.WebSocket}).Draw(rt, "over")
		th := newChain(t, srv, over)
		defer th.Close()
		var store *bool
		if rapid.Bool().Draw(rt, "store") {
			store = new(bool)
		}
		histories := [][]item.Item{nil}
		for turn := range rapid.IntRange(1, 8).Draw(rt, "turns") {
			at := rapid.IntRange(0, len(histories)-1).Draw(rt, "history")
			h := slices.Clone(histories[at])
			if len(h) > 0 {
				i := rapid.IntRange(0, len(h)-1).Draw(rt, "place")
				switch rapid.SampledFrom([]string{"", "", "", "", "edit", "cut", "drop", "fork"}).Draw(rt, "edit") {
				case "edit":
					h[i] = item.User("edited " + strconv.Itoa(turn))
				case "cut":
					h = h[:i]
				case "drop":
					h = slices.Delete(h, i, i+1)
				case "fork":
					histories = append(histories, slices.Clone(h[:i]))
				}
			}
			h = append(h, item.User("say "+strconv.Itoa(turn)))
			if rapid.IntRange(0, 3).Draw(rt, "forgets") == 0 {
				k.forget()
			}
			loss := rapid.SampledFrom([]string{"", "", "reset", "cut", "limit", "close"}).Draw(rt, "loss")
			k.fail(func(int, agenttest.Request) *agenttest.Reply {
				a := map[string]agenttest.Reply{
					"reset": agenttest.Reset(),
					"cut":   agenttest.Events(told("resp_lost")...).CutAfter(10),
					"limit": agenttest.ConnectionLimitReached(),
					"close": agenttest.Events().CloseAfter(0, 1012, "restart"),
				}[cmp.Or(loss, "none")]
				if loss == "" || over == responses.HTTP && (loss == "limit" || loss == "close") {
					return nil
				}
				loss = ""
				return &a
			})
			n := len(k.read())
			d := drainModel(t.Context(), t, th, &api.Request{Model: "m", Input: item.NewList(h...), Store: store})
			if d.err != nil || len(k.read()) != n+1 {
				rt.Fatalf("turn %d: %d answers, %v", turn, len(k.read())-n, d.err)
			}
			if diff := gocmp.Diff(asTexts(h), k.read()[n]); diff != "" {
				rt.Fatalf("turn %d: the model read (-want +got):\n%s", turn, diff)
			}
			histories[at] = append(h, d.items...)
		}
	})
}

// B3: a Chain that cannot send what is new alone says so, once; one that can
// says nothing.
func TestChainNotesTheWholeHistory(t *testing.T) {
	yes, no := true, false
	for name, tt := range map[string]struct {
		over    responses.Transport
		profile *endpoint.Profile
		store   *bool
		want    int
	}{
		"continues":             {responses.HTTP, openAI(t), &yes, 0},
		"a socket":              {responses.WebSocket, openAI(t), &no, 0},
		"store is off":          {responses.HTTP, openAI(t), &no, 1},
		"an unknown endpoint":   {responses.HTTP, &endpoint.Careful, &yes, 1},
		"nor has it any socket": {responses.WebSocket, &endpoint.Profile{Name: "none", WebSocket: endpoint.No, PreviousResponse: endpoint.No}, &yes, 1},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(numbered)
			srv := agenttest.NewServer(t)
			srv.Otherwise(k.answer(t))
			th := newChain(t, srv, tt.over)
			th.Client.Profile = tt.profile
			var notes []api.Note
			ctx := api.WithNotes(t.Context(), func(n api.Note) { notes = append(notes, n) })
			history := item.NewList()
			for range 3 {
				history.Append(item.User("question"))
				for ev, err := range th.Stream(ctx, &api.Request{Model: "m", Store: tt.store, Input: history.Clone()}) {
					if err != nil {
						t.Fatal(err)
					}
					if ev.Type == api.EventItemDone {
						it, err := ev.Item()
						if err != nil {
							t.Fatal(err)
						}
						history.Append(it)
					}
				}
			}
			if len(notes) != tt.want || tt.want > 0 && notes[0].Kind != api.NoteWholeHistory {
				t.Errorf("%+v", notes)
			}
		})
	}
}
