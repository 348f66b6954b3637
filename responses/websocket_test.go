// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// overSocket returns a chain on a server that remembers.
func overSocket(t *testing.T) (*responses.Chain, *keeper, *agenttest.Server) {
	t.Helper()
	k := newKeeper(numbered)
	srv := agenttest.NewServer(t)
	srv.Otherwise(k.answer(t))
	return newChain(t, srv, responses.WebSocket), k, srv
}

var (
	tokens = regexp.MustCompile(`"(input|total)_tokens":\d+`)
	ids    = regexp.MustCompile(`resp_[01]`)
)

// ofAnyRequest are events without what the server made of the request.
func ofAnyRequest(events []api.Event) []string {
	var list []string
	for _, ev := range events {
		list = append(list, ids.ReplaceAllString(tokens.ReplaceAllString(ev.JSON(), ""), "resp"))
	}
	return list
}

func classOf(err error) endpoint.Class {
	var e *endpoint.Error
	errors.As(err, &e)
	if e == nil {
		return ""
	}
	return e.Class
}

// sameOverBoth checks that an answer comes to the same on a socket and on a
// stream.
func sameOverBoth(t *testing.T, a agenttest.Reply) {
	t.Helper()
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return a })
	th := newChain(t, srv, responses.WebSocket)
	th.Client.Retry.Max = -1
	want := drain(t, th.Client, hello())
	got := drainModel(t.Context(), t, th, hello())
	if d := gocmp.Diff(ofAnyRequest(want.events), ofAnyRequest(got.events)); d != "" {
		t.Errorf("events (-stream +socket):\n%s", d)
	}
	if want.whole != got.whole || classOf(want.err) != classOf(got.err) {
		t.Errorf("whole %v and %v, errors %s and %s", want.whole, got.whole, describe(want.err), describe(got.err))
	}
	if len(want.items) != len(got.items) {
		t.Errorf("%d items and %d", len(want.items), len(got.items))
	}
	if sockets := srv.Sockets(); len(sockets) != 1 {
		t.Errorf("%d sockets", len(sockets))
	}
	_ = th.Close()
	srv.Close()
}

// S10: the same events and results as those of a stream.
func TestSocketEvents(t *testing.T) {
	call := item.Call("call_1", "f", `{"a":1}`)
	for name, a := range map[string]agenttest.Reply{
		"reply":            agenttest.Completed(item.Assistant("hello"), call),
		"incomplete":       agenttest.Incomplete("max_output_tokens", item.Assistant("hel")),
		"failed":           agenttest.Failed("server_error", "oh", call),
		"failed, first":    agenttest.Failed("server_error", "oh"),
		"error":            agenttest.ErrorEvent("server_error", "oh", call),
		"refused":          agenttest.ErrorEvent("invalid_prompt", "no"),
		"truncated":        agenttest.Completed(item.Assistant("hello")).WithoutLast().CloseAfter(99, 1000, ""),
		"done":             agenttest.Events(told("r", said("m", "x"))[:2]...).WithDone(),
		"unknown events":   agenttest.Completed(item.Assistant("hello")).WithEvent(2, `{"type":"new.event","x":1}`),
		"garbage":          agenttest.Completed(item.Assistant("hello")).WithEvent(3, `{"type":!}`),
		"quota, by status": agenttest.Failure(429, "insufficient_quota", "no"),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "quota, by status" {
				th, k, _ := overSocket(t)
				k.fail(func(int, agenttest.Request) *agenttest.Reply { return &a })
				var c talk
				e := wantClass(t, c.say(t, th, "one").err, endpoint.Quota)
				if e.Status != 429 || len(k.items()) != 1 {
					t.Errorf("status %d after %d requests", e.Status, len(k.items()))
				}
				return
			}
			sameOverBoth(t, a)
		})
	}
}

// S10: the same for all that was recorded.
func TestSocketCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpusDir(t), "streams", "*.sse"))
	if err != nil || len(files) == 0 {
		t.Skip("no recorded streams")
	}
	for i, file := range files {
		if testing.Short() && i%10 > 0 {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			sameOverBoth(t, agenttest.Raw(http.StatusOK, "text/event-stream", string(raw)).CloseAfter(1<<20, 1000, ""))
		})
	}
}

// S10: a socket that is lost before any event costs one retry, which sends the
// whole history over a new socket.
func TestSocketLostBefore(t *testing.T) {
	for name, fault := range map[string]agenttest.Reply{
		"reset":        agenttest.Reset(),
		"cut":          agenttest.Completed(item.Assistant("lost")).CutAfter(0),
		"cut within":   agenttest.Completed(item.Assistant("lost")).CutAfter(7),
		"by reset":     agenttest.Completed(item.Assistant("lost")).CutAfter(7).ByReset(),
		"limit":        agenttest.ConnectionLimitReached(),
		"closed":       agenttest.Events().CloseAfter(0, 1000, "bye"),
		"going away":   agenttest.Events().CloseAfter(0, 1001, ""),
		"no code":      agenttest.Events().CloseAfter(0, 0, ""),
		"wrong code":   agenttest.Events().CloseAfter(0, 1005, ""),
		"server error": agenttest.Events().CloseAfter(0, 1011, "oh"),
		"overloaded":   agenttest.Failure(503, "server_is_overloaded", "busy"),
		"first event":  agenttest.Events(`{"type":"error","status":500,"error":{"code":"server_error","message":"oh"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			th, k, srv := overSocket(t)
			var waits []time.Duration
			th.Client.OnRetry = func(err error, wait time.Duration, _ int) {
				presentable(t, err)
				waits = append(waits, wait)
			}
			var c talk
			c.say(t, th, "one")
			faults := []agenttest.Reply{fault}
			k.fail(func(int, agenttest.Request) (a *agenttest.Reply) {
				if len(faults) > 0 {
					a, faults = &faults[0], nil
				}
				return a
			})
			if d := c.say(t, th, "two"); d.err != nil || len(d.events) != 3 {
				t.Fatalf("%d events, %v", len(d.events), d.err)
			}
			c.say(t, th, "three")
			if d := gocmp.Diff([]int{1, 1, 3, 1}, k.items()); d != "" {
				t.Errorf("items sent:\n%s", d)
			}
			if len(waits) != 1 || len(srv.Sockets()) != 2 {
				t.Errorf("%d retries, %d sockets", len(waits), len(srv.Sockets()))
			}
		})
	}
}

// E1: reconnects draw on the same budget as all other retries.
func TestSocketBudget(t *testing.T) {
	th, k, srv := overSocket(t)
	k.fail(func(int, agenttest.Request) *agenttest.Reply {
		a := agenttest.Reset()
		return &a
	})
	var c talk
	wantClass(t, c.say(t, th, "one").err, endpoint.Network) // the last attempts were over HTTP
	if n := len(srv.Requests()); n != 1+endpoint.DefaultRetries || len(srv.Sockets()) != 1 {
		t.Errorf("%d sockets, %d requests", len(srv.Sockets()), n)
	}
}

// S10: where a new socket does not last to the first event, the next attempt is
// over HTTP; the next response may have a socket again.
func TestSocketShaky(t *testing.T) {
	th, k, srv := overSocket(t)
	lost := []agenttest.Reply{agenttest.Completed(item.Assistant("lost")).CutAfter(0), agenttest.Events().CloseAfter(0, 1011, "")}
	k.fail(func(_ int, r agenttest.Request) (a *agenttest.Reply) {
		if r.Socket > 0 && len(lost) > 0 {
			a, lost = &lost[0], lost[1:]
		}
		return a
	})
	var c talk
	if d := c.say(t, th, "one"); d.err != nil || th.Uses() != responses.WebSocket {
		t.Fatal(d.err)
	}
	c.say(t, th, "two")
	if d := c.say(t, th, "three"); d.err != nil {
		t.Fatal(d.err)
	}
	var sockets []int
	for _, r := range srv.Requests() {
		sockets = append(sockets, r.Socket)
	}
	if d := gocmp.Diff([]int{1, 0, 2, 0, 3}, sockets); d != "" {
		t.Errorf("sockets:\n%s", d)
	}
	lost = []agenttest.Reply{agenttest.Events().CloseAfter(0, 1011, "")}
	th = newChain(t, srv, responses.WebSocket)
	th.Client.Retry.Max = -1
	wantClass(t, th.Warm(t.Context(), c.request()), endpoint.Truncated)
	lost = []agenttest.Reply{agenttest.Events().CloseAfter(0, 1011, ""), agenttest.Events().CloseAfter(0, 1011, "")}
	th.Client.Retry.Max = 0
	if err := th.Warm(t.Context(), c.request()); err != nil { // not over HTTP, where there is no warming up
		t.Error(err)
	}
}

// A request that cannot be written, for the server hangs up or does not read.
func TestSocketWrite(t *testing.T) {
	large := &api.Request{Model: "m", Input: item.NewList(item.User(strings.Repeat("x", 32<<20)))}
	th := plainSocket(t, func(conn *websocket.Conn) { _ = conn.CloseNow() })
	th.Client.Retry.Max = -1
	wantClass(t, drainModel(t.Context(), t, th, large).err, endpoint.Truncated)
	done := make(chan struct{})
	th = plainSocket(t, func(*websocket.Conn) { <-done })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantClass(t, drainModel(ctx, t, th, large).err, endpoint.Canceled)
	close(done)
}

// T12: an item that is refused is named by its place in the whole history.
func TestChainRefusedItem(t *testing.T) {
	overBoth(t, func(t *testing.T, th *responses.Chain, k *keeper, _ *agenttest.Server) {
		var c talk
		c.say(t, th, "one")
		k.fail(func(int, agenttest.Request) *agenttest.Reply {
			a := agenttest.Raw(400, "application/json", `{"error":{"type":"invalid_request_error","code":"invalid_value","param":"input[1]","message":"no"}}`)
			return &a
		})
		c.history = append(c.history, item.User("two"))
		err := c.say(t, th, "three").err
		var named interface{ RefusedItem() int }
		if !errors.As(err, &named) || named.RefusedItem() != 3 || k.items()[1] != 2 {
			t.Errorf("sent %v, error %v", k.items(), err)
		}
		wantClass(t, err, endpoint.BadRequest)
	})
}

// S10: a socket that is lost between two responses is replaced before anything
// is sent, and without a retry.
func TestSocketLostBetween(t *testing.T) {
	for name, after := range map[string]agenttest.Reply{
		"closed": agenttest.Events(told("r", said("m", "x"))...).CloseAfter(99, 1001, "restart"),
		"cut":    agenttest.Events(append(told("r", said("m", "x")), "{}")...).CutAfter(len(strings.Join(told("r", said("m", "x")), ""))),
		"limit": agenttest.Events(append(told("r", said("m", "x")),
			`{"type":"error","status":400,"error":{"code":"websocket_connection_limit_reached","message":"60 minutes"}}`)...),
		"garbage": agenttest.Events(append(told("r", said("m", "x")), "{")...),
	} {
		t.Run(name, func(t *testing.T) {
			th, k, srv := overSocket(t)
			th.Client.Retry.Max = -1
			srv.Add(after)
			var c talk
			if d := c.say(t, th, "one"); d.err != nil {
				t.Fatal(d.err)
			}
			<-th.Lost()
			if d := c.say(t, th, "two"); d.err != nil {
				t.Fatal(d.err)
			}
			if d := gocmp.Diff([]int{3}, k.items()); d != "" || len(srv.Sockets()) != 2 {
				t.Errorf("%d sockets; items sent:\n%s", len(srv.Sockets()), d)
			}
		})
	}
}

// A socket is replaced before the server ends it for its age.
func TestSocketAge(t *testing.T) {
	th, k, srv := overSocket(t)
	var c talk
	c.say(t, th, "one")
	th.Age()
	if d := c.say(t, th, "two"); d.err != nil || len(srv.Sockets()) != 2 {
		t.Errorf("%d sockets, %v", len(srv.Sockets()), d.err)
	}
	if d := gocmp.Diff([]int{1, 3}, k.items()); d != "" {
		t.Errorf("items sent:\n%s", d)
	}
}

// What a server says between two responses is not part of either.
func TestSocketUnasked(t *testing.T) {
	for name, tt := range map[string]struct {
		late    []string
		sockets int
	}{
		"news":         {[]string{`{"type":"rate_limits.updated"}`, `{"type":"response.metadata"}`}, 1},
		"an item":      {[]string{told("resp_y", said("n", "late"))[1]}, 2},
		"a last event": {[]string{told("resp_y")[1]}, 2},
		"another answer": {[]string{`{"type":"response.created","response":{"id":"resp_y","previous_response_id":"resp_x"}}`,
			told("resp_y", said("n", "late"))[1]}, 2},
		"a lot":           {slices.Repeat(told("resp_y", said("n", "late"))[1:2], 50), 2},
		"news and a part": {[]string{`{"type":"news"}`, `{"type":"response.output_text.delta","item_id":"n","delta":"late"}`}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(numbered)
			srv := agenttest.NewServer(t)
			var begun atomic.Bool
			answer := k.answer(t)
			srv.Otherwise(func(n int, r agenttest.Request) agenttest.Reply {
				a := answer(n, r)
				if begun.Swap(true) {
					return a
				}
				for _, event := range tt.late {
					a = a.WithEvent(1<<20, event)
				}
				return a
			})
			th := newChain(t, srv, responses.WebSocket)
			var c talk
			for n := range 3 {
				before := len(k.read())
				d := c.say(t, th, "question")
				ours := false // a question that was given up may arrive behind its repetition
				for i := before; i < len(k.read()) && len(d.items) > 0; i++ {
					ours = ours || d.items[0] == numbered(i)[0]
				}
				if d.err != nil || len(d.events) != 3 || !ours {
					t.Fatalf("turn %d: %v, %v", n, asTexts(d.items), d.err)
				}
			}
			if n := len(srv.Sockets()); n != tt.sockets {
				t.Errorf("%d sockets", n)
			}
		})
	}
}

// A server that takes no notice of previous_response_id, and says so, gets the
// whole history.
func TestSocketTakesNoNotice(t *testing.T) {
	for _, known := range []bool{true, false} {
		srv := agenttest.NewServer(t)
		srv.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
			events := told("resp_"+strconv.Itoa(n), numbered(n)...)
			events[0] = `{"type":"response.created","response":{"id":"x","previous_response_id":null}}`
			return agenttest.Events(events...)
		})
		th := newChain(t, srv, responses.WebSocket)
		want := []int{1, 1, 1, 1}
		if !known {
			th.Client.Profile = nil
			want = []int{1, 1, 3, 1, 5, 7}
		}
		var c talk
		for range 4 {
			if d := c.say(t, th, "question"); d.err != nil || len(d.events) != 3 {
				t.Fatalf("%d events, %v", len(d.events), d.err)
			}
		}
		var sent []int
		for _, r := range srv.Requests() {
			sent = append(sent, r.Parse(t).Input.Len())
		}
		if d := gocmp.Diff(want, sent); d != "" {
			t.Errorf("items sent:\n%s", d)
		}
	}
}

// A socket whose responses do not begin as such is good for one.
func TestSocketWithoutBeginning(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
		return agenttest.Events(told("resp_"+strconv.Itoa(n), numbered(n)...)[1:]...)
	})
	th := newChain(t, srv, responses.WebSocket)
	var c talk
	for range 3 {
		if d := c.say(t, th, "question"); d.err != nil || len(d.events) != 2 {
			t.Fatalf("%d events, %v", len(d.events), d.err)
		}
	}
	for i, r := range srv.Requests() {
		if req := r.Parse(t); req.Input.Len() != 2*i+1 || r.Socket != i+1 {
			t.Errorf("request %d: %d items on socket %d", i, req.Input.Len(), r.Socket)
		}
	}
}

// E4: after output nothing is sent again, and what was complete is kept.
func TestSocketLostAfter(t *testing.T) {
	for name, tt := range map[string]struct {
		fault agenttest.Reply
		class endpoint.Class
	}{
		"closed": {agenttest.Completed(item.Assistant("one"), item.Call("c", "f", "{}")).WithoutLast().CloseAfter(99, 1001, "restart"), endpoint.Truncated},
		"cut":    {agenttest.Completed(item.Assistant("one"), item.Call("c", "f", "{}")).WithoutLast().WithEvent(99, strings.Repeat("x", 99)).CutAfter(1 << 20), endpoint.Truncated},
		"limit": {agenttest.Completed(item.Assistant("one"), item.Call("c", "f", "{}")).WithoutLast().
			WithEvent(99, `{"type":"error","status":400,"error":{"code":"websocket_connection_limit_reached","message":"60 minutes"}}`), endpoint.Reconnect},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "cut" {
				tt.fault = agenttest.Events(append(told("r", said("a", "x"), said("b", "x"))[:3], `{"type":"cut"}`)...).
					CutAfter(len(strings.Join(told("r", said("a", "x"), said("b", "x"))[:3], "")) + 5)
			}
			srv := agenttest.NewServer(t, tt.fault, agenttest.Completed(item.Assistant("two")))
			th := newChain(t, srv, responses.WebSocket)
			var c talk
			d := c.say(t, th, "one")
			var partial *responses.PartialError
			if !errors.As(d.err, &partial) || len(partial.Items) != 2 || partial.Err.SafeToRetry() {
				t.Fatalf("got %s", describe(d.err))
			}
			wantClass(t, d.err, tt.class)
			if n := len(srv.Requests()); n != 1 {
				t.Fatalf("%d requests", n)
			}
			if d := c.say(t, th, "two"); d.err != nil || d.text() != "two" {
				t.Errorf("%q, %v", d.text(), d.err)
			}
			if req := srv.Requests()[1].Parse(t); req.PreviousResponseID != "" || req.Input.Len() != len(c.history)-1 {
				t.Errorf("sent %d items from %q", req.Input.Len(), req.PreviousResponseID)
			}
		})
	}
}

// S10: an endpoint that has no WebSocket is asked over HTTP from then on.
func TestSocketRefused(t *testing.T) {
	for name, refusal := range map[string]agenttest.Reply{
		"400":       agenttest.Failure(400, "", "what is this"),
		"404":       agenttest.Raw(404, "text/plain", "not found"),
		"405":       agenttest.Failure(405, "", "no GET"),
		"426":       agenttest.Raw(426, "text/plain", ""),
		"501":       agenttest.Raw(501, "text/plain", ""),
		"a page":    agenttest.WebPage(200, "Welcome"),
		"an object": agenttest.Raw(200, "application/json", `{"status":"ok"}`),
	} {
		t.Run(name, func(t *testing.T) {
			th, k, srv := overSocket(t)
			th.Client.Retry.Max = -1
			srv.Add(refusal.AtUpgrade())
			if th.Uses() != responses.WebSocket {
				t.Error("not over a socket")
			}
			var c talk
			for range 3 {
				if d := c.say(t, th, "question"); d.err != nil {
					t.Fatal(d.err)
				}
			}
			if d := gocmp.Diff([]int{1, 1, 1}, k.items()); d != "" {
				t.Errorf("items sent:\n%s", d)
			}
			if len(srv.Sockets()) != 1 || th.Uses() != responses.HTTP {
				t.Errorf("%d sockets asked for, uses %q", len(srv.Sockets()), th.Uses())
			}
		})
	}
}

// E1, E2, E3, E7: what else a handshake can come to.
func TestSocketHandshake(t *testing.T) {
	busy := agenttest.Failure(503, "server_is_overloaded", "busy").AtUpgrade()
	no := agenttest.Failure(401, "invalid_api_key", "expired").AtUpgrade()
	for name, tt := range map[string]struct {
		answers []agenttest.Reply
		class   endpoint.Class // "" for none
		sockets int
	}{
		"busy":        {[]agenttest.Reply{busy, busy}, "", 3},
		"too busy":    {[]agenttest.Reply{busy, busy, busy}, endpoint.Overloaded, 3},
		"old key":     {[]agenttest.Reply{no}, "", 2},
		"wrong key":   {[]agenttest.Reply{no, no}, endpoint.Auth, 2},
		"forbidden":   {[]agenttest.Reply{agenttest.Failure(403, "permission_denied", "no").AtUpgrade()}, endpoint.Forbidden, 1},
		"quota":       {[]agenttest.Reply{agenttest.Failure(429, "insufficient_quota", "no").AtUpgrade()}, endpoint.Quota, 1},
		"reset":       {[]agenttest.Reply{agenttest.Reset().AtUpgrade()}, "", 2},
		"elsewhere":   {[]agenttest.Reply{agenttest.Redirect(307, "http://elsewhere.invalid/v1/responses").AtUpgrade()}, endpoint.Protocol, 1},
		"key in text": {[]agenttest.Reply{agenttest.Failure(403, "no", "your key sk-secret-key is bad").AtUpgrade()}, endpoint.Forbidden, 1},
	} {
		t.Run(name, func(t *testing.T) {
			th, _, srv := overSocket(t)
			th.Client.Refresh = func(context.Context) (endpoint.Key, error) { return endpoint.NewKey("sk-secret-new"), nil }
			srv.Add(tt.answers...)
			var c talk
			d := c.say(t, th, "one")
			if classOf(d.err) != tt.class || (d.err == nil) != (tt.class == "") || len(srv.Sockets()) != tt.sockets {
				t.Errorf("%d sockets, error %s", len(srv.Sockets()), describe(d.err))
			}
			if tt.class != "" && len(srv.Requests()) != 0 {
				t.Errorf("%d requests", len(srv.Requests()))
			}
		})
	}
}

// B5: the key is in the handshake and nowhere else.
func TestSocketKey(t *testing.T) {
	th, _, srv := overSocket(t)
	p := openAI(t)
	p.SocketHeader = map[string]string{"OpenAI-Beta": "sockets"}
	th.Client.Profile = p
	th.Client.Header = http.Header{"X-Own": {"1"}}
	var c talk
	c.say(t, th, "one")
	h := srv.Sockets()[0].Header
	if h.Get("Authorization") != "Bearer sk-secret-key" || h.Get("OpenAI-Beta") != "sockets" || h.Get("X-Own") != "1" || h.Get("User-Agent") != dialect.DefaultUserAgent {
		t.Errorf("headers: %v", h)
	}
	body := string(srv.Requests()[0].Body)
	if strings.Contains(body, "sk-secret") || strings.Contains(body, `"stream"`) || !strings.HasPrefix(body, `{"type":"response.create"`) {
		t.Errorf("message: %s", body)
	}
}

// E3: a key that ran out while the socket was open is renewed.
func TestSocketKeyRunsOut(t *testing.T) {
	th, k, srv := overSocket(t)
	th.Client.Refresh = func(context.Context) (endpoint.Key, error) { return endpoint.NewKey("sk-secret-new"), nil }
	var c talk
	c.say(t, th, "one")
	k.fail(func(_ int, r agenttest.Request) *agenttest.Reply {
		if r.Header.Get("Authorization") == "Bearer sk-secret-new" {
			return nil
		}
		a := agenttest.Failure(401, "token_expired", "expired")
		return &a
	})
	if d := c.say(t, th, "two"); d.err != nil || len(srv.Sockets()) != 2 {
		t.Errorf("%d sockets, %v", len(srv.Sockets()), d.err)
	}
}

// wss is spoken where the base URL is https.
func TestSocketTLS(t *testing.T) {
	k := newKeeper(numbered)
	srv := agenttest.NewTLSServer(t)
	srv.Otherwise(k.answer(t))
	th := newChain(t, srv, responses.WebSocket)
	var c talk
	c.say(t, th, "one")
	if d := c.say(t, th, "two"); d.err != nil || len(srv.Sockets()) != 1 {
		t.Errorf("%d sockets, %v", len(srv.Sockets()), d.err)
	}
	th = newChain(t, srv, responses.WebSocket)
	th.Client.HTTP = &http.Client{Transport: &http.Transport{}}
	e := wantClass(t, c.say(t, th, "one").err, endpoint.Network)
	if e.SafeToRetry() || !strings.Contains(e.Error(), "certificate") {
		t.Error(e)
	}
}

// Warming up sends what is there already, and makes no answer.
func TestWarm(t *testing.T) {
	th, k, srv := overSocket(t)
	c := talk{history: []item.Item{item.User("zero")}}
	if err := th.Warm(t.Context(), c.request()); err != nil {
		t.Fatal(err)
	}
	if d := c.say(t, th, "one"); d.err != nil {
		t.Fatal(d.err)
	}
	c.say(t, th, "two")
	if d := gocmp.Diff([]int{1, 1, 1}, k.items()); d != "" {
		t.Errorf("items sent:\n%s", d)
	}
	if d := gocmp.Diff([]string{"zero", "one"}, questions(k.read()[0])); d != "" {
		t.Errorf("the model read:\n%s", d)
	}
	if body := string(srv.Requests()[0].Body); !strings.Contains(body, `"generate":false`) {
		t.Errorf("sent %s", body)
	}
	if body := string(srv.Requests()[1].Body); strings.Contains(body, `"generate"`) {
		t.Errorf("sent %s", body)
	}
}

func questions(history []string) []string {
	var list []string
	for _, s := range history {
		m, err := item.As[item.Message](mustParse(s))
		if err == nil {
			list = append(list, m.Content.Display())
		}
	}
	return list
}

// Without history there is something to warm up too; what cannot be warmed up
// is left alone.
func TestWarmOther(t *testing.T) {
	th, k, srv := overSocket(t)
	if err := th.Warm(t.Context(), &api.Request{Model: "m", Instructions: "be brief"}); err != nil {
		t.Fatal(err)
	}
	var c talk
	c.say(t, th, "one")
	if d := gocmp.Diff([]string{"", "resp_0"}, k.ids()); d != "" || len(srv.Sockets()) != 1 {
		t.Errorf("%d sockets; went on from:\n%s", len(srv.Sockets()), d)
	}
	over := newChain(t, srv, responses.HTTP)
	if err := over.Warm(t.Context(), c.request()); err != nil || len(k.items()) != 2 {
		t.Errorf("%d requests, %v", len(k.items()), err)
	}
	refused := newChain(t, srv, responses.WebSocket)
	srv.Add(agenttest.Raw(404, "text/plain", "").AtUpgrade())
	if err := refused.Warm(t.Context(), c.request()); err != nil || len(k.items()) != 2 {
		t.Errorf("%d requests, %v", len(k.items()), err)
	}
	if d := c.say(t, refused, "two"); d.err != nil || refused.Uses() != responses.HTTP {
		t.Error(d.err)
	}
	failing := newChain(t, srv, responses.WebSocket)
	srv.Add(agenttest.Failure(403, "permission_denied", "no").AtUpgrade())
	wantClass(t, failing.Warm(t.Context(), c.request()), endpoint.Forbidden)
}

// S8: breaking off and cancelling end the socket; the next request dials anew
// and sends the whole history.
func TestSocketCancel(t *testing.T) {
	for name, stop := range map[string]bool{"break": true, "cancel": false} {
		t.Run(name, func(t *testing.T) {
			th, k, srv := overSocket(t)
			var c talk
			c.say(t, th, "one")
			srv.Add(agenttest.Completed(item.Assistant("never all of this")).StallAfter(5, nil))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.history = append(c.history, item.User("two"))
			var failure error
			for ev, err := range th.Stream(ctx, c.request()) {
				if failure = err; ev.Type != api.EventTextDelta {
					continue
				}
				if cancel(); stop {
					break
				}
			}
			if !stop {
				wantClass(t, failure, endpoint.Canceled)
			}
			<-th.Lost() // at once: there is none
			if d := drainModel(t.Context(), t, th, c.request()); d.err != nil {
				t.Fatal(d.err)
			}
			if d := gocmp.Diff([]int{1, 3}, k.items()); d != "" || len(srv.Sockets()) != 2 {
				t.Errorf("%d sockets; items sent:\n%s", len(srv.Sockets()), d)
			}
		})
	}
}

// S8: a context that ends while the server says nothing, or does not even
// answer the handshake.
func TestSocketCancelEarly(t *testing.T) {
	for name, answer := range map[string]agenttest.Reply{
		"handshake": agenttest.Raw(404, "text/plain", "").Stall(nil).AtUpgrade(),
		"answer":    agenttest.Completed(item.Assistant("hi")).Stall(nil),
	} {
		t.Run(name, func(t *testing.T) {
			th, _, srv := overSocket(t)
			srv.Add(answer)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			wantClass(t, drainModel(ctx, t, th, hello()).err, endpoint.Canceled)
			srv.Close()
		})
	}
}

// S7: silence is bounded, in the handshake, before the first event, and
// between two.
func TestSocketIdle(t *testing.T) {
	for name, events := range map[string]int{"handshake": -1, "answer": 0, "event": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				c := inBubble(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					n++
					if events < 0 {
						<-r.Context().Done()
						return
					}
					conn, err := websocket.Accept(w, r, nil)
					if err != nil {
						t.Error(err)
						return
					}
					_, _, _ = conn.Read(t.Context())
					for _, event := range told("resp_0", said("m", "hi"))[:events] {
						_ = conn.Write(t.Context(), websocket.MessageText, []byte(event))
					}
					_, _, _ = conn.Read(t.Context()) // until the client hangs up
				}))
				c.Profile, c.IdleTimeout = openAI(t), 50*time.Millisecond
				th := &responses.Chain{Client: c, Transport: responses.WebSocket}
				wantClass(t, drainModel(t.Context(), t, th, hello()).err, endpoint.Idle)
				_ = th.Close()
				synctest.Wait() // the server sees that the client is gone
				if n != 1 {
					t.Errorf("%d sockets", n)
				}
			})
		})
	}
}

// W11: sizes are bounded by MaxEvent and by nothing below it.
func TestSocketSizes(t *testing.T) {
	big := agenttest.Events(told("resp_0", said("m", strings.Repeat("x", 3<<20)))...)
	th, _, srv := overSocket(t)
	srv.Add(big, big)
	var c talk
	if d := c.say(t, th, "one"); d.err != nil || len(d.items) != 1 || len(d.items[0].JSON()) < 3<<20 {
		t.Errorf("%d items, %v", len(d.items), d.err)
	}
	th = newChain(t, srv, responses.WebSocket)
	th.Client.MaxEvent = 1 << 20
	wantClass(t, drainModel(t.Context(), t, th, hello()).err, endpoint.TooLarge)
}

// A server that takes no large messages gets a large request over HTTP.
func TestSocketTooLargeForServer(t *testing.T) {
	th, k, srv := overSocket(t)
	small := func(_ int, r agenttest.Request) *agenttest.Reply {
		if r.Socket == 0 || len(r.Body) < 1<<20 {
			return nil
		}
		a := agenttest.Events().CloseAfter(0, 1009, "")
		return &a
	}
	k.fail(small)
	var c talk
	c.say(t, th, "one")
	if d := c.say(t, th, strings.Repeat("x", 2<<20)); d.err != nil {
		t.Fatal(d.err)
	}
	reqs := srv.Requests()
	if last := reqs[len(reqs)-1]; len(reqs) != 3 || last.Socket != 0 {
		t.Errorf("%d requests, the last on socket %d", len(reqs), last.Socket)
	}
	if th.Uses() != responses.WebSocket {
		t.Error("sockets were given up")
	}
}

// To send a request that is too large for the socket over HTTP counts as a retry: in all there are
// not more requests than the policy permits. E4
func TestSocketTooLargeIsARetry(t *testing.T) {
	tooLarge := agenttest.Events().CloseAfter(0, 1009, "")
	failed := agenttest.Failed("server_error", "later")
	cut := agenttest.Completed(item.Assistant("hi")).CutAfter(27).UntilClose()
	whole := agenttest.Completed(item.Assistant("hi"))
	for name, tt := range map[string]struct {
		retries  int
		replies  []agenttest.Reply
		requests int
		class    endpoint.Class
	}{
		"after a failure, and then cut": {2, []agenttest.Reply{failed, tooLarge, cut, whole}, 3, endpoint.Truncated},
		"after a failure":               {2, []agenttest.Reply{failed, tooLarge, whole}, 3, ""},
		"with the last retry":           {2, []agenttest.Reply{failed, failed, tooLarge, whole}, 3, endpoint.TooLarge},
		"without retries":               {-1, []agenttest.Reply{tooLarge, whole}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, tt.replies...)
			th := newChain(t, srv, responses.WebSocket)
			th.Client.Retry.Max = tt.retries
			if d := drainModel(t.Context(), t, th, hello()); tt.class != "" {
				wantClass(t, d.err, tt.class)
			} else if d.err != nil {
				t.Error(d.err)
			}
			if got := len(srv.Requests()); got != tt.requests {
				t.Errorf("%d requests, want %d", got, tt.requests)
			}
		})
	}
}

// Messages that are none.
func TestSocketGarbage(t *testing.T) {
	ok := agenttest.Completed(item.Assistant("hi"))
	for name, tt := range map[string]struct {
		answer agenttest.Reply
		class  endpoint.Class
	}{
		"no JSON":  {ok.WithEvent(0, "hello"), ""}, // what is around it is whole
		"a list":   {ok.WithEvent(0, "[]"), ""},
		"damaged":  {ok.WithEvent(0, `{"type":nope}`), endpoint.Protocol},
		"binary":   {ok.WithBinary(0, "{}"), endpoint.Protocol},
		"empty":    {ok.WithEvent(0, ""), ""},
		"blank":    {ok.WithEvent(0, " \n"), ""},
		"an error": {agenttest.Events(`{"error":{"message":"no","code":"invalid_prompt"}}`).CloseAfter(99, 1000, ""), endpoint.Policy},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, tt.answer)
			th := newChain(t, srv, responses.WebSocket)
			d := drainModel(t.Context(), t, th, hello())
			if classOf(d.err) != tt.class || len(srv.Requests()) != 1 {
				t.Errorf("%d requests, %s", len(srv.Requests()), describe(d.err))
			}
		})
	}
}

// Requests at once do not mix: the second goes over HTTP, whole.
func TestChainAtOnce(t *testing.T) {
	overBoth(t, func(t *testing.T, th *responses.Chain, k *keeper, srv *agenttest.Server) {
		var c talk
		c.say(t, th, "one")
		first := c
		first.history = append(first.history, item.User("two"))
		for ev, err := range th.Stream(t.Context(), first.request()) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Type != api.EventCreated {
				continue
			}
			other := talk{history: []item.Item{item.User("other")}}
			if d := other.say(t, th, "and more"); d.err != nil || other.history[2] != numbered(2)[0] {
				t.Errorf("got %v, %v", other.history, d.err)
			}
		}
		first.history = append(first.history, numbered(1)...)
		if d := first.say(t, th, "three"); d.err != nil {
			t.Fatal(d.err)
		}
		if d := gocmp.Diff([]int{1, 1, 2, 1}, k.items()); d != "" {
			t.Errorf("items sent:\n%s", d)
		}
		if srv.Requests()[2].Socket != 0 {
			t.Error("the second one went over the socket")
		}
	})
}

// Close breaks off what is under way; the chain can be used again.
func TestChainClose(t *testing.T) {
	overBoth(t, func(t *testing.T, th *responses.Chain, _ *keeper, srv *agenttest.Server) {
		srv.Add(agenttest.Completed(item.Assistant("never all of this")).StallAfter(5, nil))
		var failure error
		for ev, err := range th.Stream(t.Context(), hello()) {
			if failure = err; ev.Type == api.EventTextDelta {
				if err := th.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if e := wantClass(t, failure, endpoint.Canceled); !strings.Contains(e.Error(), "the chain was closed") {
			t.Error(e)
		}
		if d := drainModel(t.Context(), t, th, hello()); d.err != nil {
			t.Error(d.err)
		}
		if err := errors.Join(th.Close(), th.Close()); err != nil {
			t.Error("closing failed")
		}
	})
}

// The zero Chain is that of the zero Client; a request that does not fit the
// endpoint is refused before anything is sent.
func TestChainZero(t *testing.T) {
	var th responses.Chain
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantClass(t, drainModel(ctx, t, &th, hello()).err, endpoint.Canceled)
	th.Client = &responses.Client{BaseURL: "ftp://x"}
	if d := drainModel(t.Context(), t, &th, hello()); d.err == nil || th.Warm(t.Context(), hello()) == nil {
		t.Error("no error for a base URL that is none")
	}
}

// plainSocket is a server of one kind of socket, without any protocol.
func plainSocket(t *testing.T, serve func(*websocket.Conn)) *responses.Chain {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		serve(conn)
	}))
	t.Cleanup(srv.Close)
	th := &responses.Chain{Client: &responses.Client{BaseURL: srv.URL, HTTP: srv.Client(), Profile: openAI(t)}, Transport: responses.WebSocket}
	t.Cleanup(func() { _ = th.Close() })
	return th
}

// A server that is told of the end reads a normal closure; and its pings are
// answered while nothing is asked of it.
func TestSocketManners(t *testing.T) {
	closed, pinged := make(chan websocket.StatusCode, 1), make(chan error, 1)
	th := plainSocket(t, func(conn *websocket.Conn) {
		ctx := context.Background()
		_, _, err := conn.Read(ctx)
		for _, m := range told("resp_0", said("m", "x")) {
			if err == nil {
				err = conn.Write(ctx, websocket.MessageText, []byte(m))
			}
		}
		if err != nil {
			pinged <- err
			return
		}
		ends := make(chan websocket.StatusCode)
		go func() {
			_, _, err := conn.Read(ctx)
			ends <- websocket.CloseStatus(err)
		}()
		pinged <- conn.Ping(ctx)
		closed <- <-ends
	})
	if d := drainModel(t.Context(), t, th, hello()); d.err != nil {
		t.Fatal(d.err)
	}
	if err := <-pinged; err != nil {
		t.Errorf("ping: %v", err)
	}
	_ = th.Close()
	if code := <-closed; code != websocket.StatusNormalClosure {
		t.Errorf("closed with %d", code)
	}
}

// S7: pings are not life.
func TestSocketPingsAreNoLife(t *testing.T) {
	th := plainSocket(t, func(conn *websocket.Conn) {
		_, _, _ = conn.Read(context.Background())
		ctx := conn.CloseRead(context.Background())
		for conn.Ping(ctx) == nil {
		}
	})
	th.Client.IdleTimeout = 50 * time.Millisecond
	wantClass(t, drainModel(t.Context(), t, th, hello()).err, endpoint.Idle)
}

// A server that does not answer a close frame does not hold Close up for ever.
func TestSocketDeafServer(t *testing.T) {
	release := make(chan struct{})
	th := plainSocket(t, func(conn *websocket.Conn) {
		ctx := context.Background()
		_, _, _ = conn.Read(ctx)
		for _, m := range told("resp_0", said("m", "x")) {
			_ = conn.Write(ctx, websocket.MessageText, []byte(m))
		}
		<-release
	})
	if d := drainModel(t.Context(), t, th, hello()); d.err != nil {
		t.Fatal(d.err)
	}
	_ = th.Close()
	close(release)
}
