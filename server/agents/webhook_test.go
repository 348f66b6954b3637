// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// whsec is a made-up secret: 32 bytes in base64.
const whsec = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// receiver takes webhooks. It checks their signatures.
type receiver struct {
	url    string
	got    chan hook
	refuse atomic.Int64 // how many it refuses first
}

// hook is an event that was received.
type hook struct {
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	kind    string
	about   string
	id      string
}

func receive(t *testing.T) *receiver {
	t.Helper()
	to := &receiver{got: make(chan hook, 100)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v, %v", r.Method, r.Header, err)
		}
		var ev struct {
			ID, Object, Type string
			CreatedAt        int64 `json:"created_at"`
			Data             struct{ ID string }
		}
		if err := json.Unmarshal(body, &ev); err != nil || ev.Object != "event" || ev.CreatedAt == 0 {
			t.Errorf("%s: %v", body, err)
		}
		h := hook{map[string]string{}, string(body), ev.Type, ev.Data.ID, ev.ID}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			h.Headers[name] = r.Header.Get(name)
		}
		sum := hmac.New(sha256.New, []byte("0123456789abcdef0123456789abcdef"))
		fmt.Fprintf(sum, "%s.%s.%s", h.Headers["webhook-id"], h.Headers["webhook-timestamp"], h.Body)
		if want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil)); h.Headers["webhook-signature"] != want || h.Headers["webhook-id"] != ev.ID {
			t.Errorf("%v, want %s: %s", h.Headers, want, body)
		}
		if to.refuse.Add(-1) >= 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		to.got <- h
	}))
	t.Cleanup(s.Close)
	to.url = s.URL
	return to
}

// to has a backend send webhooks to a receiver.
func (r *receiver) to(b *agents.Backend) { b.Webhook = &server.Webhook{URL: r.url, Secret: whsec} }

// sending has a backend send until the end of the test, or until stop is called.
func sending(t *testing.T, b *agents.Backend) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.SendWebhooks(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// allSent waits until nothing is to be sent any more.
func (w *world) allSent() {
	w.t.Helper()
	for left := 1; left > 0; runtime.Gosched() {
		left = 0
		for _, err := range w.b.Store.List(w.t.Context(), session.Query{Tags: []string{"responses-webhook"}, Nested: true}) {
			if left++; err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// The operator is told when a background response has ended, and again until it is accepted.
// Others are told to their clients alone.
func TestWebhook(t *testing.T) {
	to := receive(t)
	said := make(chan string, 100)
	w := serving(t, "", "again\nturn\n  say Yes.\n", func(b *agents.Backend) {
		to.to(b)
		b.Log = func(err error) { said <- err.Error() }
	})
	stop := sending(t, w.b)
	to.refuse.Store(1)
	w.create(`{"model":"it","input":"x"}`)
	made := w.create(`{"model":"it","input":"x","background":true}`)
	first, second := <-to.got, <-to.got
	if first.kind != "response.completed" || first.about != made.ID || first.id != second.id || first.Body != second.Body {
		t.Errorf("%+v, then %+v", first, second)
	}
	w.allSent()
	stop()
	host := strings.TrimPrefix(to.url, "http://")
	if got := <-said; !strings.Contains(got, "the event response.completed: the receiver at "+host+" answered with status 500; attempt 1, and the next one is in 1s") {
		t.Errorf("logged %q", got)
	}
	if len(to.got) > 0 {
		t.Errorf("%+v", <-to.got)
	}
	if r := w.get(made.ID); r.Status != item.StatusCompleted {
		t.Error(r.Status)
	}
}

// What a server has not sent, the next one sends. What was deleted, nobody sends.
func TestWebhookAfterRestart(t *testing.T) {
	to := receive(t)
	w := serving(t, "", "again\nturn\n  say Yes.\n", to.to)
	made := w.create(`{"model":"it","input":"x","background":true}`)
	gone := w.create(`{"model":"it","input":"x","background":true}`)
	for _, id := range []string{made.ID, gone.ID} {
		for r := w.get(id); r.Status != item.StatusCompleted; r = w.get(id) {
			runtime.Gosched()
		}
	}
	if code, text := w.send(http.MethodDelete, "responses/"+gone.ID, ""); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	w.stop()
	w.stop = func() {}
	next := reopened(t, w.dir, to.to)
	stop := sending(t, next.b)
	if got := <-to.got; got.about != made.ID || got.kind != "response.completed" {
		t.Errorf("%+v", got)
	}
	next.allSent()
	stop()
	if len(to.got) > 0 {
		t.Errorf("%+v", <-to.got)
	}
}

// The operator is told that approvals are wanted, also by a response that a client waits for.
func TestWebhookOfApproval(t *testing.T) {
	to := receive(t)
	w := serving(t, asking, "again\nturn\n  call open_door {}\n", to.to)
	stop := sending(t, w.b)
	const wants = "agent.session.action_required"
	made := w.create(`{"model":"it","input":"x"}`)
	if got := <-to.got; got.kind != wants || got.about != made.ID || !strings.Contains(got.Body, `"required_action":{"type":"mcp_approval_request"}`) {
		t.Errorf("%+v", got)
	}
	later := w.create(`{"model":"it","input":"x","background":true}`)
	if a, b := <-to.got, <-to.got; a.kind != "response.completed" || b.kind != wants || a.about != later.ID || b.about != later.ID || a.id == b.id {
		t.Errorf("%+v, %+v", a, b)
	}
	w.create(`{"model":"it","input":"x","store":false}`)
	w.allSent()
	stop()
	if len(to.got) > 0 {
		t.Errorf("%+v", <-to.got)
	}
}

// Of two servers over one store, one sends. The other one goes on when it ends. D1
func TestWebhookOnce(t *testing.T) {
	to := receive(t)
	w := serving(t, "", "again\nturn\n  say Yes.\n", to.to)
	other := reopened(t, w.dir, to.to)
	stops := []func(){sending(t, w.b), sending(t, other.b)}
	seen := map[string]bool{}
	for i := range 4 {
		if i == 2 {
			stops[0]()
		}
		made := w.create(`{"model":"it","input":"x","background":true}`)
		if got := <-to.got; got.about != made.ID || seen[made.ID] {
			t.Errorf("%+v", got)
		}
		seen[made.ID] = true
		w.allSent()
	}
	stops[1]()
	if len(to.got) > 0 {
		t.Errorf("%+v", <-to.got)
	}
}

// looked is a store that counts the entries that are read of sessions, and the rounds of who
// sends webhooks.
type looked struct {
	store.Store
	entries atomic.Int64
	breaks  atomic.Bool // the next time that there are entries, an error is behind them
	rounds  chan struct{}
}

func (l *looked) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		read := 0
		for e, err := range l.Store.Load(ctx, id, after) {
			l.entries.Add(1)
			if !yield(e, err) {
				return
			}
			read++
		}
		if read > 0 && l.breaks.CompareAndSwap(true, false) {
			yield(session.Entry{}, errors.New("the store is gone"))
		}
	}
}

func (l *looked) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	if q.Nested {
		select {
		case l.rounds <- struct{}{}:
		case <-ctx.Done():
		}
	}
	return l.Store.List(ctx, q)
}

// The log of a response that is still being made is read once, and not in each round.
func TestWebhookOfRunning(t *testing.T) {
	to := receive(t)
	w := serving(t, asking, "again\nturn\n  say Yes.\n", to.to)
	made := w.create(`{"model":"it","input":"x"}`)
	name := "api-" + strings.Split(made.ID, "_")[1]
	s, err := session.Open(t.Context(), w.b.Store, name)
	if err != nil {
		t.Fatal(err)
	}
	begun := len(s.Log())
	id := strings.Join([]string{"resp", strings.TrimPrefix(name, "api-"), strconv.Itoa(begun + 1)}, "_")
	note := func(kind, status string) session.Note {
		it, err := item.ParseString(`{"type":"antiphon:response` + kind + `","response_id":"` + id + `","background":true,"response":{"id":"` + id + `","object":"response","status":"` + status + `","model":"it","output":[]}}`)
		if err != nil {
			t.Fatal(err)
		}
		return session.Note{Item: it}
	}
	if _, err := s.Append(t.Context(), note("", "in_progress")); err != nil {
		t.Fatal(err)
	}
	err = w.b.Store.Create(t.Context(), session.Info{ID: name + "/" + strconv.Itoa(begun+1) + "-.webhook", Parent: name, At: int64(begun) + 1, Nested: true, Tags: []string{"responses-webhook"}})
	if err != nil {
		t.Fatal(err)
	}
	in := &looked{Store: w.b.Store, rounds: make(chan struct{})}
	other := &agents.Backend{Store: in, Agents: w.b.Agents, Log: w.b.Log}
	to.to(other)
	sending(t, other)
	<-in.rounds
	<-in.rounds
	once := in.entries.Load()
	<-in.rounds
	if n := in.entries.Load(); n != once {
		t.Errorf("%d entries were read again", n-once)
	}
	in.breaks.Store(true) // what was read before it is read again
	if _, err := s.Append(t.Context(), note("_end", "completed")); err != nil {
		t.Fatal(err)
	}
	go func() {
		for t.Context().Err() == nil {
			select {
			case <-in.rounds:
			case <-t.Context().Done():
			}
		}
	}()
	if got := <-to.got; got.about != id || got.kind != "response.completed" {
		t.Errorf("%+v", got)
	}
	w.allSent()
}

// For the events about a response, what it continues is not read.
func TestWebhookReadsLittle(t *testing.T) {
	to := receive(t)
	w := serving(t, asking, "again\nturn\n  say Yes.\n", to.to)
	before := ""
	for range 20 {
		before = w.create(`{"model":"it","input":"x"` + before + `}`).ID
		before = `,"previous_response_id":"` + before + `"`
	}
	made := w.create(`{"model":"it","input":"x","background":true` + before + `}`)
	s, err := session.Open(t.Context(), w.b.Store, "api-"+strings.Split(made.ID, "_")[1])
	if err != nil {
		t.Fatal(err)
	}
	for w.get(made.ID).Status != item.StatusCompleted {
		runtime.Gosched()
	}
	in := &looked{Store: w.b.Store, rounds: make(chan struct{}, 1000)}
	other := &agents.Backend{Store: in, Agents: w.b.Agents, Log: w.b.Log}
	to.to(other)
	stop := sending(t, other)
	if got := <-to.got; got.about != made.ID || got.kind != "response.completed" {
		t.Errorf("%+v", got)
	}
	w.allSent()
	stop()
	if n, all := in.entries.Load(), int64(len(s.Log())); n == 0 || n > all/3 {
		t.Errorf("%d entries were read of %d", n, all)
	}
}

// A receiver must be named so that nobody else can read or forge what it gets.
func TestWebhookCheck(t *testing.T) {
	for _, test := range []struct{ url, secret, want string }{
		{"https://hooks.example/x?y", whsec, ""},
		{"http://localhost:1/x", "sixteen bytes ok", ""},
		{"http://hooks.example/x", whsec, "https://"},
		{"https://user:word@hooks.example", whsec, "password"},
		{"https:///x", whsec, "https://"},
		{"ftp://hooks.example", whsec, "https://"},
		{"", whsec, "https://"},
		{"https://a b", whsec, "parsed"},
		{"https://hooks.example", "", "shorter"},
		{"https://hooks.example", "whsec_!", "base64"},
	} {
		err := (&server.Webhook{URL: test.url, Secret: test.secret}).Check()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q, %q: %v", test.url, test.secret, err)
		}
	}
	if err := new(agents.Backend).SendWebhooks(t.Context()); err == nil {
		t.Error("webhooks were sent to nobody")
	}
}

// OpenAI's own client accepts the events.
func TestOfficialClientOfWebhooks(t *testing.T) {
	modules, node := installed(t, "openai")
	to := receive(t)
	w := serving(t, asking, "again\nturn\n  call open_door {}\n", to.to)
	sending(t, w.b)
	w.create(`{"model":"it","input":"x","background":true}`)
	list, err := json.Marshal([]hook{<-to.got, <-to.got})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "events.json", string(list))
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "webhooks.cjs"), filepath.Join(dir, "events.json"), whsec)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
