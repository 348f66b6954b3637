// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agents_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/worker"
)

// slowModel is a model that says a piece each time the test lets it.
type slowModel struct {
	base  string
	goOn  chan struct{}
	asked atomic.Int32
}

func newSlowModel(t *testing.T, replies ...[]string) *slowModel {
	t.Helper()
	m := &slowModel{goOn: make(chan struct{})}
	s := &server.Server{Backend: server.BackendFunc(func(ctx context.Context, _ *server.Request, w *server.Writer) error {
		n := int(m.asked.Add(1)) - 1
		for i, text := range replies[min(n, len(replies)-1)] {
			if i > 0 {
				select {
				case <-m.goOn:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if err := w.Text(text); err != nil {
				return err
			}
		}
		return nil
	})}
	base, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	m.base = base
	return m
}

// talking serves an agent that asks a model, for workers, and starts a worker.
func talking(t *testing.T, m *slowModel, change func(*worker.Worker)) *hall {
	t.Helper()
	return talkingAt(t, m, nil, change)
}

func talkingAt(t *testing.T, m *slowModel, serves func(*agents.Backend), change func(*worker.Worker)) *hall {
	t.Helper()
	h := queued(t, "", "turn\n  say Never.\n", serves)
	write(t, h.dir, "it.md", "<config model=\"m\"/>\n<system>Be brief.</system>\n")
	h.works(false, func(w *worker.Worker) {
		w.Config.Endpoint = host.Endpoint{BaseURL: m.base}
		if change != nil {
			change(w)
		}
	})
	return h
}

// listening reads the events of a stream one by one.
type listening struct {
	t     *testing.T
	lines *bufio.Scanner
	all   api.Accumulator
}

func (h *hall) listen(body string) *listening {
	h.t.Helper()
	resp := h.open(context.Background(), http.MethodPost, "responses", body)
	if resp.StatusCode != http.StatusOK {
		h.t.Fatal(resp.Status)
	}
	return listenTo(h.t, resp)
}

func listenTo(t *testing.T, resp *http.Response) *listening {
	t.Helper()
	t.Cleanup(func() { resp.Body.Close() })
	return &listening{t: t, lines: bufio.NewScanner(resp.Body)}
}

// until reads events until the text of their deltas ends like this, and returns that text.
func (l *listening) until(end string) (text string) {
	l.t.Helper()
	for l.lines.Scan() {
		data, ok := bytes.CutPrefix(l.lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		ev, err := api.ParseEvent(bytes.Clone(data))
		if err == nil {
			_, err = l.all.Add(ev)
		}
		if err != nil {
			l.t.Fatal(err)
		}
		if text += ev.Delta; end != "" && strings.HasSuffix(text, end) {
			return text
		}
	}
	if end != "" {
		l.t.Fatalf("the stream ended after %q", text)
	}
	return text
}

// end reads the rest of a stream.
func (l *listening) end() (text string, r *api.Response) {
	l.t.Helper()
	text = l.until("")
	r, whole := l.all.Response()
	if !whole {
		l.t.Fatal("the stream broke off")
	}
	return text, r
}

// The client of a stream reads what the model of a worker says while it says it.
func TestQueueDeltas(t *testing.T) {
	for _, kind := range []string{"", `,"background":true`} {
		m := newSlowModel(t, []string{"Water ", "is ", "wet."})
		h := talking(t, m, nil)
		l := h.listen(`{"model":"it","input":"x","stream":true` + kind + `}`)
		l.until("Water ")
		m.goOn <- struct{}{}
		l.until("is ")
		m.goOn <- struct{}{}
		rest, r := l.end()
		if rest != "wet." || r.Status != item.StatusCompleted || kinds(r) != "message:Water is wet." {
			t.Errorf("%q %s %s", rest, r.Status, kinds(r))
		}
		h.same(r)
		nothingBeside(h, r.ID)
	}
}

// nothingBeside waits until no text of a response that has ended is kept any more: the client reads the end first.
func nothingBeside(h *hall, id string) {
	h.t.Helper()
	for beside(h, id) {
		time.Sleep(5 * time.Millisecond)
	}
}

// beside reports whether text of a response is kept beside its session.
func beside(h *hall, id string) bool {
	h.t.Helper()
	for info, err := range h.store.List(h.t.Context(), session.Query{Nested: true}) {
		if err != nil {
			h.t.Fatal(err)
		}
		if strings.HasPrefix(info.ID, sessionOf(id)) && strings.HasSuffix(info.ID, ".deltas") {
			return true
		}
	}
	return false
}

// mute is the store of a worker that loses the end of a reply, as if it had died before.
type mute struct {
	queues
	dead atomic.Bool
}

func (m *mute) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	if m.dead.Load() && !strings.Contains(id, "/") {
		return errors.New("the process has ended")
	}
	return m.queues.Append(ctx, id, after, entries)
}

func (m *mute) Finish(ctx context.Context, w queue.Work, o queue.Outcome) error {
	m.dead.Store(false)
	return m.queues.Finish(ctx, w, o)
}

// dying reads the first two pieces of a message whose worker then dies.
func dying(t *testing.T, m *slowModel, attempts int) (h *hall, l *listening) {
	t.Helper()
	return dyingAt(t, m, attempts, nil)
}

func dyingAt(t *testing.T, m *slowModel, attempts int, change func(*agents.Backend)) (h *hall, l *listening) {
	t.Helper()
	var gone *mute
	h = talkingAt(t, m, change, func(w *worker.Worker) {
		gone = &mute{queues: w.Config.Store.(queues)}
		w.Config.Store, w.Attempts = gone, attempts
	})
	l = h.listen(`{"model":"it","input":"x","stream":true}`)
	l.until("Water ")
	m.goOn <- struct{}{}
	l.until("is ")
	gone.dead.Store(true)
	m.goOn <- struct{}{}
	return h, l
}

// half fails if a response does not begin with the message whose worker died.
func half(t *testing.T, r *api.Response) {
	t.Helper()
	if len(r.Output) == 0 {
		t.Fatal("the message is lost")
	}
	first, err := item.As[item.Message](r.Output[0])
	if err != nil || first.Status != item.StatusIncomplete || !strings.HasPrefix("Water is lost.", first.Content.Display()) || !strings.HasPrefix(first.Content.Display(), "Water is ") {
		t.Errorf("%s %v", r.Output[0].JSON(), err)
	}
}

// What clients have seen of a message whose worker died is an item of its own that is not complete, also for who reads the
// response later. The next worker asks again.
func TestQueueDeltasWorkerDies(t *testing.T) {
	m := newSlowModel(t, []string{"Water ", "is ", "lost."}, []string{"Wine ", "is ", "red."})
	h, l := dying(t, m, 0)
	l.until("Wine ")
	m.goOn <- struct{}{}
	l.until("is ")
	m.goOn <- struct{}{}
	rest, r := l.end()
	if rest != "red." || r.Status != item.StatusCompleted || len(r.Output) != 2 || !strings.HasSuffix(kinds(r), " | message:Wine is red.") {
		t.Errorf("%q %s %s", rest, r.Status, kinds(r))
	}
	half(t, r)
	h.same(r)
	nothingBeside(h, r.ID)
}

// The same if no worker goes on.
func TestQueueDeltasNobodyGoesOn(t *testing.T) {
	h, l := dying(t, newSlowModel(t, []string{"Water ", "is ", "lost."}), 1)
	_, r := l.end()
	if r.Status != item.StatusFailed || len(r.Output) != 1 {
		t.Errorf("%s %s", r.Status, kinds(r))
	}
	half(t, r)
	h.same(r)
	nothingBeside(h, r.ID)
}

// textless is the store of a server that cannot read the session with the text of a response.
type textless struct{ queues }

func (d textless) Info(ctx context.Context, id string) (session.Info, error) {
	if strings.HasSuffix(id, ".deltas") {
		return session.Info{}, errors.New("the store failed")
	}
	return d.queues.Info(ctx, id)
}

// Text that a client has seen is not deleted if the log could not be told of it.
func TestQueueDeltasKept(t *testing.T) {
	m := newSlowModel(t, []string{"Water ", "is ", "lost."})
	h, l := dyingAt(t, m, 1, func(b *agents.Backend) { b.Store = textless{b.Store.(queues)} })
	if _, r := l.end(); r.Status != item.StatusFailed {
		t.Errorf("%s %s", r.Status, kinds(r))
	}
	kept := ""
	for info, err := range h.store.List(t.Context(), session.Query{Nested: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(info.ID, ".deltas") {
			for e := range h.store.Load(t.Context(), info.ID, 0) {
				if n, ok := e.Body.(session.Note); ok {
					kept += n.Item.JSON()
				}
			}
		}
	}
	if !strings.Contains(kept, "Water") {
		t.Errorf("of the text there is only %q", kept)
	}
}

// The next server goes on with the stream of a background response in the middle of a text.
func TestQueueDeltasServerDies(t *testing.T) {
	m := newSlowModel(t, []string{"Water ", "is ", "wet."})
	h := talking(t, m, nil)
	l := h.listen(`{"model":"it","input":"x","stream":true,"background":true}`)
	l.until("Water ")
	r, _ := l.all.Response()
	h.end()
	next := h.again(nil)
	m.goOn <- struct{}{}
	m.goOn <- struct{}{}
	resp := next.open(t.Context(), http.MethodGet, "responses/"+r.ID+"?stream=true", "")
	text, r := listenTo(t, resp).end()
	if text != "Water is wet." || r.Status != item.StatusCompleted || kinds(r) != "message:Water is wet." {
		t.Errorf("%q %s %s", text, r.Status, kinds(r))
	}
	next.same(r)
}

const weather = `"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}},"strict":false}]`

// A client runs its own functions, and its next request has their outputs, also if another server takes it and the worker is
// another one.
func TestQueueFunctions(t *testing.T) {
	h := queued(t, "", "turn\n  call get_weather {\"city\":\"Oslo\"}\nturn\n  say Cold.\n", nil)
	h.works(false, nil)
	for _, stream := range []bool{false, true} {
		var r *api.Response
		if stream {
			_, r = h.stream(`{"model":"it","input":"x","stream":true,` + weather + `}`)
		} else {
			r = h.create(`{"model":"it","input":"x",` + weather + `}`)
		}
		if r.Status != item.StatusCompleted || kinds(r) != "function_call:get_weather" {
			t.Fatalf("%s %+v %s", r.Status, r.Error, kinds(r))
		}
		h.same(r)
		if row := h.done(r.ID); row.State != queue.Done {
			t.Errorf("%+v", row)
		}
		next := h.create(`{"model":"it","previous_response_id":"` + r.ID + `","input":[{"type":"function_call_output","call_id":"` + r.Output[0].CallID() + `","output":"Minus 3"}],` + weather + `}`)
		if next.Status != item.StatusCompleted || kinds(next) != "message:Cold." {
			t.Errorf("%s %+v %s", next.Status, next.Error, kinds(next))
		}
		h.same(next)
	}
}

// A server that takes up the response of another one knows the client's functions.
func TestQueueFunctionsServerDies(t *testing.T) {
	h := queued(t, "", "turn\n  call get_weather {\"city\":\"Oslo\"}\n", nil)
	r := h.create(`{"model":"it","input":"x","background":true,` + weather + `}`)
	h.left(r.ID)
	h.end()
	h.works(false, nil)
	next := h.again(nil)
	if r = next.ended(r.ID); r.Status != item.StatusCompleted || kinds(r) != "function_call:get_weather" {
		t.Errorf("%s %+v %s", r.Status, r.Error, kinds(r))
	}
}

// A function that the API or the agent does not allow is refused, and nothing is left.
func TestQueueFunctionsRefused(t *testing.T) {
	h := queued(t, "<tool name=\"append_to_file\"/>\n", "turn\n  say Yes.\n", nil)
	h.works(false, nil)
	h.refused(http.MethodPost, "responses", `{"model":"it","input":"x","tools":[{"type":"function","name":"bad name","parameters":null,"strict":false}]}`, "tools[0]")
	h.refused(http.MethodPost, "responses", `{"model":"it","input":"x","tools":[{"type":"mcp","server_label":"s","server_url":"https://example.org/","authorization":"k"}]}`, "token")
	h.refused(http.MethodPost, "responses", `{"model":"it","input":"x","tools":[{"type":"function","name":"append_to_file","parameters":null,"strict":false}]}`, "the agent has a tool called 'append_to_file' itself")
}
