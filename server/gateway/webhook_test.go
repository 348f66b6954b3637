// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// hook is an event that a receiver got.
type hook struct {
	ID, Type string
	Data     struct {
		ID     string
		Action struct{ Type string } `json:"required_action"`
	}
}

// receiver takes events, and checks their signatures.
type receiver struct {
	server.Webhook
	got    chan hook
	refuse atomic.Int64 // how many it refuses first
}

func receive(t *testing.T) *receiver {
	t.Helper()
	const secret = "a secret of the test"
	to := &receiver{got: make(chan hook, 100)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var h hook
		if err == nil {
			err = json.Unmarshal(body, &h)
		}
		sum := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(sum, "%s.%s.%s", h.ID, r.Header.Get("webhook-timestamp"), body)
		want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
		if err != nil || r.Header.Get("webhook-signature") != want || r.Header.Get("webhook-id") != h.ID {
			t.Errorf("%v %s %v", r.Header, body, err)
		}
		if to.refuse.Add(-1) >= 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		to.got <- h
	}))
	t.Cleanup(s.Close)
	to.URL, to.Secret = s.URL, secret
	return to
}

// telling serves a gateway whose store sends events to a receiver until the end of the test.
func telling(t *testing.T, in store.Store, up *agenttest.Server, to *receiver) (w *world, keep *gateway.Store, end func()) {
	t.Helper()
	keep = &gateway.Store{In: in, Webhook: &to.Webhook}
	w = &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}}}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- keep.SendWebhooks(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.end()
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return w, keep, end
}

// opened opens a store of sessions, which is closed when the test has ended.
func opened(t *testing.T) store.Store {
	t.Helper()
	in, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

// allSent waits until nothing is to be sent any more.
func allSent(t *testing.T, in store.Store) {
	t.Helper()
	for left := 1; left > 0; runtime.Gosched() {
		left = 0
		for _, err := range in.List(t.Context(), session.Query{Tags: []string{"gateway-webhook"}, Nested: true}) {
			if left++; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The operator is told when a background response of an upstream has ended, whatever its end, and again until it is accepted.
// Others are told to their clients alone.
func TestWebhook(t *testing.T) {
	to, in := receive(t), opened(t)
	stall := make(chan struct{})
	defer close(stall)
	yes := agenttest.Completed(item.Assistant("Yes."))
	up := agenttest.NewServer(t, yes, yes, agenttest.Failure(http.StatusBadRequest, "invalid_prompt", "No."), yes.StallAfter(4, stall))
	w, _, end := telling(t, in, up, to)
	to.refuse.Store(1)
	w.create(`{"model":"m","input":"x"}`)
	made := w.create(`{"model":"m","input":"x","background":true}`)
	first, second := <-to.got, <-to.got
	if first != second || first.Type != "response.completed" || first.Data.ID != made.ID {
		t.Errorf("%+v, then %+v", first, second)
	}
	failed := w.create(`{"model":"m","input":"x","background":true}`)
	if got := <-to.got; got.Type != "response.failed" || got.Data.ID != failed.ID {
		t.Errorf("%+v", got)
	}
	cancelled := w.create(`{"model":"m","input":"x","background":true,"stream":false}`)
	if code, _, text := w.ask(http.MethodPost, "/responses/"+cancelled.ID+"/cancel", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	if got := <-to.got; got.Type != "response.cancelled" || got.Data.ID != cancelled.ID {
		t.Errorf("%+v", got)
	}
	allSent(t, in)
	end()
	if len(to.got) > 0 {
		t.Errorf("%+v", <-to.got)
	}
}

// The operator is told that an approval is wanted, also by a response that a client waits for.
func TestWebhookOfApproval(t *testing.T) {
	to, in := receive(t), opened(t)
	up := agenttest.NewServer(t)
	up.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Completed(item.Must(&item.MCPApprovalRequest{ID: "mcpr_1", ServerLabel: "s", Name: "open", Arguments: "{}"}))
	})
	w, _, _ := telling(t, in, up, to)
	tools := `"tools":[{"type":"mcp","server_label":"s","server_url":"https://mcp.example/mcp"}]`
	made := w.create(`{"model":"m","input":"x",` + tools + `}`)
	if got := <-to.got; got.Type != "agent.session.action_required" || got.Data.ID != made.ID || got.Data.Action.Type != "mcp_approval_request" {
		t.Errorf("%+v", got)
	}
	w.create(`{"model":"m","input":"x","store":false,` + tools + `}`)
	later := w.create(`{"model":"m","input":"x","background":true,` + tools + `}`)
	if a, b := <-to.got, <-to.got; a.Type != "response.completed" || b.Type != "agent.session.action_required" || a.Data.ID != later.ID || b.Data.ID != later.ID {
		t.Errorf("%+v, %+v", a, b)
	}
	allSent(t, in)
}

// What a server has not sent, the next one sends. What was deleted, nobody sends.
func TestWebhookAfterRestart(t *testing.T) {
	to, in, up := receive(t), opened(t), says(t, "Yes.")
	keep := &gateway.Store{In: in, Webhook: &to.Webhook} // nobody sends
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}}}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	made, gone := w.create(`{"model":"m","input":"x","background":true}`), w.create(`{"model":"m","input":"x","background":true}`)
	for _, id := range []string{made.ID, gone.ID} {
		if _, err := w.typed().Wait(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if code, _, text := w.ask(http.MethodDelete, "/responses/"+gone.ID, ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	w.end()
	if err := keep.Close(); err != nil {
		t.Error(err)
	}
	_, _, end := telling(t, in, up, to)
	if got := <-to.got; got.Data.ID != made.ID || got.Type != "response.completed" {
		t.Errorf("%+v", got)
	}
	allSent(t, in)
	end()
	if len(to.got) > 0 {
		t.Errorf("%+v", <-to.got)
	}
}

// left is a store in which a server that was killed left a response.
func left(t *testing.T, in store.Store, to *server.Webhook, rec server.StoredObject) {
	t.Helper()
	keep := &gateway.Store{In: in, Webhook: to}
	if err := keep.Put(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	it := item.Assistant("One.")
	if err := keep.AddOutput(t.Context(), rec.ID(), 0, it); err != nil {
		t.Fatal(err)
	}
	if err := keep.Close(); err != nil { // the locks of a process end with it
		t.Fatal(err)
	}
}

// begun is a response that has begun.
func begun(t *testing.T, id string) *api.Response {
	t.Helper()
	r, err := api.ParseResponse([]byte(`{"id":"` + id + `","object":"response","created_at":1,"status":"in_progress","background":true,"model":"m","output":[],"parallel_tool_calls":true,` +
		`"tools":[],"error":null,"incomplete_details":null,"instructions":null,"metadata":{},"tool_choice":"auto","temperature":null,"top_p":null}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A background response whose server was killed ends, and is told, also if nobody asks for it.
func TestWebhookOfLeft(t *testing.T) {
	to, in := receive(t), opened(t)
	rec := server.StoredObject{Response: begun(t, "resp_left"), Background: true, Input: []item.Item{item.User("x")}}
	left(t, in, &to.Webhook, rec)
	w, _, _ := telling(t, in, says(t, "Yes."), to)
	if got := <-to.got; got.Data.ID != "resp_left" || got.Type != "response.incomplete" {
		t.Errorf("%+v", got)
	}
	if got, err := w.typed().Retrieve(t.Context(), "resp_left", nil); err != nil || got.Status != item.StatusIncomplete || got.Text() != "One." {
		t.Errorf("%v %v", got, err)
	}
	allSent(t, in)
}

// A response that a killed server left, and of which nobody may have heard, does not stay in lists for
// ever. A conversation does.
func TestLeftForADay(t *testing.T) {
	file := opened(t)
	rec := server.StoredObject{Response: begun(t, "resp_left"), Input: []item.Item{item.User("x")}}
	left(t, file, nil, rec)
	in := &backdated{Store: file}
	in.old = listed(t, file)[0]
	keep := &gateway.Store{In: in}
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, says(t, "Yes.").URL, false)}}}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	for len(listed(t, file)) > 0 {
		runtime.Gosched()
	}
	if _, err := w.typed().CreateConversation(t.Context(), nil); err != nil {
		t.Error(err)
	}
	w.end()
	if err := keep.Close(); err != nil {
		t.Error(err)
	}
	in.old = listed(t, file)[0]
	again := &gateway.Store{In: in}
	if ids, err := again.Left(t.Context()); err != nil || len(ids) > 0 {
		t.Errorf("%q %v", ids, err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// An event to which the receiver does not answer does not keep others from being sent.
func TestWebhookHangs(t *testing.T) {
	in, first, second := opened(t), make(chan struct{}), make(chan struct{})
	var got atomic.Int64
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		switch got.Add(1) {
		case 1:
			close(first)
			select {
			case <-second:
			case <-r.Context().Done():
				t.Error("the second event waits until the sender gives up on the first one")
			}
		case 2:
			close(second)
		}
	}))
	defer hooks.Close()
	w, _, end := telling(t, in, says(t, "Yes."), &receiver{Webhook: server.Webhook{URL: hooks.URL, Secret: "a secret of the test"}})
	w.create(`{"model":"m","input":"x","background":true}`)
	<-first
	w.create(`{"model":"m","input":"x","background":true}`)
	<-second
	allSent(t, in)
	end()
}

// The fields are checked before anything is sent.
func TestWebhookFields(t *testing.T) {
	in := opened(t)
	for want, keep := range map[string]*gateway.Store{
		"not set":           {In: in},
		"no store":          {Webhook: &server.Webhook{}},
		"must begin":        {In: in, Webhook: &server.Webhook{URL: "http://hooks.example", Secret: strings.Repeat("x", 16)}},
		"shorter than 16 b": {In: in, Webhook: &server.Webhook{URL: "https://hooks.example", Secret: "x"}},
	} {
		if err := keep.SendWebhooks(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
