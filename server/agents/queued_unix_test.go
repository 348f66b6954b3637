// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agents_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/server/sessions"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
	"github.com/antiphon-go/antiphon/worker"
)

// hall is a server whose runs workers make, and what the test does in place of a worker.
type hall struct {
	*world
	store queues // another process's
}

type queues interface {
	store.Store
	session.Inbox
	session.Watcher
	queue.Queue
	queue.Roster
}

// queued serves an agent called "it" for workers. No worker runs.
func queued(t *testing.T, tools, script string, change func(*agents.Backend)) *hall {
	t.Helper()
	return inHall(serving(t, tools, script, func(b *agents.Backend) {
		b.Queue = true
		if change != nil {
			change(b)
		}
	}))
}

func inHall(w *world) *hall {
	w.t.Helper()
	in, err := store.Open(w.t.Context(), placeIn(w.t, w.dir), store.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { in.Close() })
	return &hall{w, in.(queues)}
}

// again serves the folder again, as the next process does.
func (h *hall) again(change func(*agents.Backend)) *hall {
	h.t.Helper()
	return inHall(reopened(h.t, h.dir, func(b *agents.Backend) {
		b.Queue = true
		if change != nil {
			change(b)
		}
	}))
}

// end ends the server. It may be called once.
func (h *hall) end() {
	h.stop()
	h.stop = func() {}
}

// sessionOf returns the session of a response.
func sessionOf(response string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(response, "resp_"), "_")
	return "api-" + id
}

// left waits until a response was left as work.
func (h *hall) left(response string) queue.Work {
	h.t.Helper()
	for {
		if row, err := h.store.Work(h.t.Context(), sessionOf(response)); err == nil && row.State != queue.Done {
			return row
		}
		time.Sleep(time.Millisecond)
	}
}

// hold locks the session of a response, as its worker does.
func (h *hall) hold(response string) (s *session.Session, free func()) {
	h.t.Helper()
	s, err := session.Open(h.t.Context(), h.store, sessionOf(response))
	if err != nil {
		h.t.Fatal(err)
	}
	unlock, err := s.WaitLock(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return s, func() {
		h.t.Helper()
		if err := unlock(); err != nil {
			h.t.Error(err)
		}
	}
}

// waiting returns the keys of the deliveries that wait for a session.
func (h *hall) waiting(response string) (keys []string) {
	h.t.Helper()
	for d, err := range h.store.Deliveries(h.t.Context(), sessionOf(response)) {
		if err != nil {
			h.t.Fatal(err)
		}
		keys = append(keys, d.Key)
	}
	return keys
}

// ended reads a response until it has ended.
func (h *hall) ended(id string) *api.Response {
	h.t.Helper()
	for {
		if r := h.get(id); r.Status != item.StatusQueued && r.Status != item.StatusInProgress {
			return r
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// done waits until nobody has anything to do for a response.
func (h *hall) done(response string) queue.Work {
	h.t.Helper()
	for {
		row, err := h.store.Work(h.t.Context(), sessionOf(response))
		if err != nil {
			h.t.Fatal(err)
		}
		if row.State == queue.Done || row.State == queue.Parked {
			return row
		}
		time.Sleep(time.Millisecond)
	}
}

// cancel cancels a response, and its client reads so.
func (h *hall) cancel(id string) {
	h.t.Helper()
	status, body := h.send(http.MethodPost, "responses/"+id+"/cancel", "")
	if status != http.StatusOK || h.response(body).Status != item.StatusCancelled {
		h.t.Errorf("%d %s", status, body)
	}
}

// works starts a worker. It takes nobody's work if idle is set.
func (h *hall) works(idle bool, change func(*worker.Worker)) {
	h.t.Helper()
	state := h.t.TempDir()
	in, err := store.Open(h.t.Context(), placeIn(h.t, h.dir), store.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	w := &worker.Worker{
		Config:  host.Config{Store: in, Workspace: h.dir, Sandbox: "full"},
		Agents:  &worker.Agents{Folder: filepath.Join(state, "definitions"), Agreed: trust.Open(filepath.Join(state, "agreed.jsonl"))},
		Prepare: agents.Prepare, Name: "w", Backoff: func(int) time.Duration { return 0 },
	}
	if idle {
		w.Tenants = []string{"nobody"}
	}
	if change != nil {
		change(w)
	}
	cfg := w.Config
	cfg.File, cfg.Trust = filepath.Join(h.dir, "it.md"), trust.Everything
	if _, err := w.Agents.Add(h.t.Context(), cfg); err != nil {
		h.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(h.t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	h.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
		in.Close()
	})
	for {
		if cards, _, err := worker.Running(h.t.Context(), h.store); err != nil {
			h.t.Fatal(err)
		} else if len(cards) > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

const background = `{"model":"it","input":"x","background":true}`

// A cancel that the client has read is durable, also while a worker that has not begun the run holds the session. The
// next response of the session is made nevertheless.
func TestQueueCancelBeforeRun(t *testing.T) {
	h := queued(t, "", "again\nturn\n  say Yes.\n", nil)
	r := h.create(background)
	h.left(r.ID)
	_, free := h.hold(r.ID)
	h.cancel(r.ID)
	if keys := h.waiting(r.ID); len(keys) != 1 || keys[0] != session.OwnKey("cancel %s", r.ID) {
		t.Errorf("%q", keys)
	}
	free()
	if row := h.done(r.ID); row.State != queue.Done {
		t.Errorf("%+v", row)
	}
	if r = h.ended(r.ID); r.Status != item.StatusCancelled {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
	if keys := h.waiting(r.ID); len(keys) != 0 {
		t.Errorf("the next response would stop: %q", keys)
	}
	h.works(false, nil)
	if r = h.create(`{"model":"it","input":"y","previous_response_id":"` + r.ID + `"}`); r.Status != item.StatusCompleted {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
}

// deaf is a store that takes no deliveries.
type deaf struct {
	queues
	deaf atomic.Bool
}

func (q *deaf) Deliver(ctx context.Context, id string, d session.Delivery) (session.Receipt, error) {
	if q.deaf.Load() {
		return session.Receipt{}, errors.New("the store failed")
	}
	return q.queues.Deliver(ctx, id, d)
}

// A client reads of no cancel that the store refused: the response goes on, also at the next server.
func TestQueueCancelRefused(t *testing.T) {
	var q *deaf
	h := queued(t, "", "turn\n  say Yes.\n", func(b *agents.Backend) {
		q = &deaf{queues: b.Store.(queues)}
		b.Store = q
	})
	r := h.create(background)
	h.left(r.ID)
	_, free := h.hold(r.ID)
	q.deaf.Store(true)
	if status, body := h.send(http.MethodPost, "responses/"+r.ID+"/cancel", ""); status != http.StatusInternalServerError {
		t.Errorf("%d %s", status, body)
	}
	if now := h.get(r.ID); now.Status != item.StatusQueued && now.Status != item.StatusInProgress {
		t.Errorf("%s %+v", now.Status, now.Error)
	}
	free()
	h.end()
	h.works(false, nil)
	if r = h.again(nil).ended(r.ID); r.Status != item.StatusCompleted {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
}

// A response whose session was deleted beside its server can be cancelled, and is not found then.
func TestQueueCancelDeleted(t *testing.T) {
	h := queued(t, "", "turn\n  say Yes.\n", nil)
	r := h.create(background)
	h.left(r.ID)
	if err := h.store.Delete(t.Context(), sessionOf(r.ID)); err != nil {
		t.Fatal(err)
	}
	if status, body := h.send(http.MethodPost, "responses/"+r.ID+"/cancel", ""); status != http.StatusOK && status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
	if status, body := h.send(http.MethodGet, "responses/"+r.ID, ""); status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
}

// A delivery with the key of a cancel is none unless it is a cancel: what it says is not lost, and the response goes on. Nobody can
// choose such a key at the routes.
func TestQueueCancelKeys(t *testing.T) {
	h := queued(t, "", "again\nturn\n  say Yes.\n", nil)
	r := h.create(background)
	h.left(r.ID)
	route := httptest.NewServer(&sessions.Handler{Store: h.store})
	defer route.Close()
	for _, key := range []string{session.OwnKey("cancel %s", r.ID), session.OwnKey("end of %s, run 1: 2", r.ID)} {
		resp, err := h.client.Post(route.URL+sessions.Path+"/"+sessionOf(r.ID)+"/input", "application/json", strings.NewReader(`{"input":"And this.","key":"`+key+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", key, resp.StatusCode)
		}
		if _, err := h.store.Deliver(t.Context(), sessionOf(r.ID), session.Delivery{
			Delivered: session.Delivered{Key: key, From: "sessions say"}, Bodies: []session.Body{session.InputItem{Item: item.User("And this.")}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if status, body := h.send(http.MethodPost, "responses/"+r.ID+"/cancel", ""); status != http.StatusInternalServerError {
		t.Errorf("%d %s", status, body)
	}
	h.works(false, nil)
	if r = h.ended(r.ID); r.Status != item.StatusCompleted {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
	s, err := session.Open(t.Context(), h.store, sessionOf(r.ID))
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, e := range s.Log() {
		if in, ok := e.Body.(session.InputItem); ok && strings.Contains(in.Item.JSON(), "And this.") {
			said++
		}
	}
	if said += len(h.waiting(r.ID)); said != 2 {
		t.Errorf("%d of 2 deliveries are left", said)
	}
}

// A response does not begin while it is not certain that no request to stop waits that was for an earlier one.
func TestQueueInboxUnread(t *testing.T) {
	var q *brokenEnd
	var backend *agents.Backend
	h := queued(t, "", "again\nturn\n  say Yes.\n", func(b *agents.Backend) {
		q = &brokenEnd{queues: b.Store.(queues), inbox: true}
		b.Store, backend = q, b
	})
	r := h.create(background)
	h.left(r.ID)
	h.cancel(r.ID)
	h.done(r.ID)
	r = h.ended(r.ID)
	for backend.Busy(sessionOf(r.ID)) { // a moment longer, and would make a fork
		time.Sleep(time.Millisecond)
	}
	q.gone.Store(true)
	q.broken.Store(true)
	next := `{"model":"it","input":"y","background":true,"previous_response_id":"` + r.ID + `"}`
	if status, body := h.send(http.MethodPost, "responses", next); status != http.StatusInternalServerError {
		t.Errorf("%d %s", status, body)
	}
	q.broken.Store(false)
	h.left(h.create(next).ID)
}

// A cancel that waits for the session ends the response in the next server, also if no worker ever runs.
func TestQueueCancelLater(t *testing.T) {
	h := queued(t, "", "turn\n  say Yes.\n", nil)
	r := h.create(background)
	h.left(r.ID)
	h.end()
	if _, err := h.store.Deliver(t.Context(), sessionOf(r.ID), session.Delivery{
		Delivered: session.Delivered{Key: session.OwnKey("cancel %s", r.ID), From: "cancel"}, Bodies: []session.Body{session.StopAsked{Why: string(agent.StopRequested)}},
	}); err != nil {
		t.Fatal(err)
	}
	next := h.again(nil)
	if r = next.ended(r.ID); r.Status != item.StatusCancelled {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
	if row := next.done(r.ID); row.State != queue.Done {
		t.Errorf("%+v", row)
	}
}

// A worker does not go on with a response that was cancelled during an earlier run of it, also while no server is there.
func TestQueueCancelledRun(t *testing.T) {
	h := queued(t, "", "turn\n  say Yes.\n", nil)
	r := h.create(background)
	s, row, free := h.begins(r.ID)
	run, err := s.Append(t.Context(), session.RunStarted{})
	if err != nil {
		t.Fatal(err)
	}
	h.end()
	if _, err := h.store.Deliver(t.Context(), s.ID(), session.Delivery{
		Delivered: session.Delivered{Key: session.OwnKey("cancel %s", r.ID), From: "cancel"}, Bodies: []session.Body{session.StopAsked{Run: run[0].Seq}},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), session.Stopped{Why: string(agent.StopRequested)}); err != nil {
		t.Fatal(err)
	}
	if err := h.store.Finish(t.Context(), row, queue.Outcome{State: queue.Ready, Well: true, Reason: "given back"}); err != nil {
		t.Fatal(err)
	}
	free()
	h.works(false, nil)
	h.done(r.ID)
	s, err = session.Open(t.Context(), h.store, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Log() {
		if session.Kind(e.Body) == "turn_started" {
			t.Errorf("the worker went on: %+v", e)
		}
	}
	next := h.again(nil)
	if r = next.ended(r.ID); r.Status != item.StatusCancelled {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
}

// A response that is cancelled or deleted at another server ends at its own, although no worker takes it.
func TestQueueEndedElsewhere(t *testing.T) {
	h := queued(t, "", "turn\n  say Yes.\n", nil)
	other := h.again(nil)
	resp := h.open(t.Context(), http.MethodPost, "responses", `{"model":"it","input":"x","background":true,"stream":true}`)
	defer resp.Body.Close()
	id := firstID(t, resp.Body)
	h.left(id)
	other.cancel(id)
	if rest, err := io.ReadAll(resp.Body); err != nil || strings.Contains(string(rest), "failed") {
		t.Errorf("%v\n%s", err, rest)
	}
	if row := h.done(id); row.State != queue.Done {
		t.Errorf("%+v", row)
	}
	h.works(true, nil)
	for _, more := range []string{`,"previous_response_id":"` + id + `"`, ""} {
		resp = h.open(t.Context(), http.MethodPost, "responses", `{"model":"it","input":"x","stream":true`+more+`}`)
		defer resp.Body.Close()
		id = firstID(t, resp.Body)
		h.left(id)
		if status, body := other.send(http.MethodDelete, "responses/"+id, ""); status != http.StatusOK {
			t.Errorf("%d %s", status, body)
		}
		if rest, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(rest), "was deleted") {
			t.Errorf("%v\n%s", err, rest)
		}
		if more != "" && h.done(id).State != queue.Done {
			t.Error("the work is left")
		}
	}
}

// begins takes the work of a response as a worker, and returns its session.
func (h *hall) begins(response string) (s *session.Session, row queue.Work, free func()) {
	h.t.Helper()
	row = h.left(response)
	s, free = h.hold(response)
	row, err := h.store.Begin(h.t.Context(), row, "w")
	if err != nil {
		h.t.Fatal(err)
	}
	return s, row, free
}

// Work whose worker has died goes on with the file that the next response finds, and not with its own.
func TestQueueWorkLost(t *testing.T) {
	h := queued(t, "", "again\nturn\n  say Yes.\n", nil)
	r := h.create(background)
	h.left(r.ID)
	h.cancel(r.ID)
	row := h.done(r.ID)
	if err := h.store.Enqueue(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	_, lost, free := h.begins(r.ID)
	free()
	write(t, h.dir, "it.md", strings.ReplaceAll(fileText(t, h.dir, "it.md"), "Be brief.", "Be rude."))
	h.create(`{"model":"it","input":"y","background":true,"previous_response_id":"` + r.ID + `"}`)
	for {
		if row, err := h.store.Work(t.Context(), lost.Session); err != nil {
			t.Fatal(err)
		} else if row.State == queue.Ready {
			if row.Agent == lost.Agent {
				t.Error("the worker would run the old file")
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
}

// A response whose work is parked fails, its client is told as much as without workers, and its operator reads why.
func TestQueueParked(t *testing.T) {
	h := queued(t, "", "turn\n  say Yes.\n", nil)
	for _, c := range []struct {
		entries       []session.Body
		code, message string
	}{
		{[]session.Body{
			session.TurnEnded{Turn: 1, Status: item.StatusFailed, Reason: "slow down", Class: "rate_limit"},
			session.Stopped{Why: string(agent.StopProviderError), Detail: "slow down"},
		}, "rate_limit_exceeded", "limits its rate"},
		{[]session.Body{session.Stopped{Why: string(agent.StopNotYet), Detail: "waiting for the result of x"}}, "server_error", "or an operator stopped it"},
		{nil, "server_error", "or an operator stopped it"},
	} {
		r := h.create(background)
		s, row, free := h.begins(r.ID)
		if len(c.entries) > 0 {
			if _, err := s.Append(t.Context(), append([]session.Body{session.RunStarted{}, session.TurnStarted{Turn: 1}}, c.entries...)...); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.store.Move(t.Context(), row, queue.Parked, "the reason"); err != nil {
			t.Fatal(err)
		}
		free()
		r = h.ended(r.ID)
		if r.Status != item.StatusFailed || r.Error == nil || r.Error.Code != c.code || !strings.Contains(r.Error.Message, c.message) {
			t.Errorf("%s %+v", r.Status, r.Error)
		}
		for row.State = queue.Running; !strings.HasPrefix(row.Reason, "its client was told"); time.Sleep(time.Millisecond) {
			if row = h.done(r.ID); row.State != queue.Parked || !strings.HasSuffix(row.Reason, "the reason") {
				t.Fatalf("%+v", row)
			}
		}
	}
}

// brokenQueue is a store whose rows cannot be read.
type brokenQueue struct {
	queues
	broken atomic.Bool
}

func (q *brokenQueue) Work(ctx context.Context, id string) (queue.Work, error) {
	if q.broken.Load() {
		return queue.Work{}, errors.New("the store failed")
	}
	return q.queues.Work(ctx, id)
}

// A response that cannot be followed fails, and is not read as incomplete later.
func TestQueueBroken(t *testing.T) {
	var q *brokenQueue
	h := queued(t, "", "turn\n  say Yes.\n", func(b *agents.Backend) {
		q = &brokenQueue{queues: b.Store.(queues)}
		b.Store = q
	})
	h.works(true, nil)
	resp := h.open(t.Context(), http.MethodPost, "responses", `{"model":"it","input":"x","stream":true}`)
	defer resp.Body.Close()
	id := firstID(t, resp.Body)
	h.left(id)
	q.broken.Store(true)
	if rest, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(rest), "response.failed") {
		t.Errorf("%v\n%s", err, rest)
	}
	q.broken.Store(false)
	if r := h.ended(id); r.Status != item.StatusFailed {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
}

// blind is a store whose logs cannot be watched.
type blind struct{ queues }

func (blind) Watch(context.Context, string, int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) { yield(session.Entry{}, errors.New("the store failed")) }
}

// shut is a store that takes no work.
type shut struct{ queues }

func (shut) Enqueue(context.Context, queue.Work) error { return errors.New("the store failed") }

// A response whose log cannot be watched fails, and one that cannot be left as work. Nobody works on it any more.
func TestQueueFailing(t *testing.T) {
	for _, change := range []func(queues) queues{func(in queues) queues { return blind{in} }, func(in queues) queues { return shut{in} }} {
		h := queued(t, "", "turn\n  say Yes.\n", func(b *agents.Backend) { b.Store = change(b.Store.(queues)) })
		h.works(true, nil)
		resp := h.open(t.Context(), http.MethodPost, "responses", `{"model":"it","input":"x","stream":true}`)
		defer resp.Body.Close()
		id := firstID(t, resp.Body)
		if rest, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(rest), "response.failed") {
			t.Errorf("%v\n%s", err, rest)
		}
		if r := h.get(id); r.Status != item.StatusFailed {
			t.Errorf("%s %+v", r.Status, r.Error)
		}
		if row, err := h.store.Work(t.Context(), sessionOf(id)); err == nil && row.State != queue.Done {
			t.Errorf("%+v", row)
		}
	}
}

// brokenEnd is a store that fails once a worker has given a response up: at the second look at its row, or at its inbox.
type brokenEnd struct {
	queues
	inbox  bool
	broken atomic.Bool
	gone   atomic.Bool // the worker has given it up, and this process knows
	failed atomic.Int64
}

func (q *brokenEnd) fails() error {
	if q.broken.Load() && q.gone.Load() {
		q.failed.Add(1)
		return errors.New("the store failed")
	}
	return nil
}

func (q *brokenEnd) Work(ctx context.Context, id string) (queue.Work, error) {
	if !q.inbox {
		if err := q.fails(); err != nil {
			return queue.Work{}, err
		}
	}
	row, err := q.queues.Work(ctx, id)
	if err == nil && row.State == queue.Done {
		q.gone.Store(true)
	}
	return row, err
}

func (q *brokenEnd) Deliveries(ctx context.Context, id string) iter.Seq2[session.Delivery, error] {
	if q.inbox {
		if err := q.fails(); err != nil {
			return func(yield func(session.Delivery, error) bool) { yield(session.Delivery{}, err) }
		}
	}
	return q.queues.Deliveries(ctx, id)
}

// A background response that a worker has completed is completed, also if the store fails when its server reads so.
func TestQueueBrokenEnd(t *testing.T) {
	for _, inbox := range []bool{false, true} {
		var q *brokenEnd
		h := queued(t, "", "turn\n  say Yes.\n", func(b *agents.Backend) {
			q = &brokenEnd{queues: b.Store.(queues), inbox: inbox}
			b.Store = q
		})
		r := h.create(background)
		h.left(r.ID)
		q.broken.Store(true)
		h.works(false, nil)
		for q.failed.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		h.end()
		if r = h.again(nil).ended(r.ID); r.Status != item.StatusCompleted || kinds(r) != "message:Yes." {
			t.Errorf("inbox %v: %s %+v %s", inbox, r.Status, r.Error, kinds(r))
		}
	}
}

// slow is a store that takes no work until its process ends.
type slow struct {
	queues
	asked chan struct{}
}

func (q *slow) Enqueue(ctx context.Context, _ queue.Work) error {
	close(q.asked)
	<-ctx.Done()
	return context.Cause(ctx)
}

// A response whose server ended before it left it as work, and whose file cannot be opened since, has failed after three
// attempts.
func TestQueueNeverLeft(t *testing.T) {
	q := &slow{asked: make(chan struct{})}
	h := queued(t, "", "turn\n  say Yes.\n", func(b *agents.Backend) {
		q.queues = b.Store.(queues)
		b.Store = q
	})
	r := h.create(background)
	<-q.asked
	h.end()
	write(t, h.dir, "it.md", "<config model=\"rehearsal:it.script\"/>\n<no-such-tag/>\n")
	b := alone(t, h.dir)
	b.Queue = true
	for range 3 {
		if err := again(t, b, r.ID); !errors.Is(err, server.ErrLeft) {
			t.Error(err)
		}
	}
	if rec, err := b.Get(t.Context(), r.ID); err != nil || rec.Response.Status != item.StatusFailed {
		t.Errorf("%+v, %v", rec.Response, err)
	}
}

// mortal is the store of a process that ends when it records an answer to an approval.
type mortal struct {
	queues
	dead atomic.Bool
}

func (m *mortal) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	if slices.ContainsFunc(entries, func(e session.Entry) bool { return session.Kind(e.Body) == "approval" }) {
		m.dead.Store(true)
	}
	if m.dead.Load() {
		return errors.New("the process has ended")
	}
	return m.queues.Append(ctx, id, after, entries)
}

// A client's answer to an approval is in the log before workers get the response, also if the server ended before
// it had recorded it. J1
func TestQueueAnswerKept(t *testing.T) {
	w := serving(t, "<tool name=\"append_to_file\"/>\n", "turn\n  call append_to_file {\"path\":\"done.txt\",\"content\":\"once\\n\"}\nturn\n  say Done.\n", nil)
	first := w.create(`{"model":"it","input":"x"}`)
	w.stop()
	w.stop = func() {}
	var m *mortal
	h := inHall(reopened(t, w.dir, func(b *agents.Backend) {
		m = &mortal{queues: b.Store.(queues)}
		b.Queue, b.Store = true, m
	}))
	r := h.create(`{"model":"it","background":true,"previous_response_id":"` + first.ID + `","input":[{"type":"mcp_approval_response","approval_request_id":"` + first.Output[0].ID() + `","approve":true}]}`)
	for !m.dead.Load() {
		time.Sleep(time.Millisecond)
	}
	h.end()
	next := h.again(nil)
	next.get(r.ID)
	next.left(r.ID)
	s, free := next.hold(r.ID)
	defer free()
	if pending, err := agent.PendingApprovals(t.Context(), s); len(pending) != 0 || err != nil {
		t.Errorf("a worker would ask again: %+v, %v", pending, err)
	}
}

// A conversation is busy from the beginning of a response to its end, also while no worker holds it: nothing is added
// to the middle of the response, and it is not deleted. J9
func TestQueueConversationBusy(t *testing.T) {
	h := queued(t, "", "again\nturn\n  say Yes.\n", nil)
	other := h.again(nil)
	_, body := h.send(http.MethodPost, "conversations", `{}`)
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r := h.create(`{"model":"it","input":"x","background":true,"conversation":"` + talk.ID + `"}`)
	h.left(r.ID)
	items := `{"items":[{"type":"message","role":"user","content":"more"}]}`
	for _, at := range []*hall{h, other} {
		for _, c := range [][3]string{{http.MethodPost, "conversations/" + talk.ID + "/items", items}, {http.MethodDelete, "conversations/" + talk.ID, ""}} {
			if status, body := at.send(c[0], c[1], c[2]); status != http.StatusConflict || !strings.Contains(body, "conversation_locked") {
				t.Errorf("%s: %d %s", c[0], status, body)
			}
		}
	}
	h.cancel(r.ID)
	h.done(r.ID)
	if status, body := other.send(http.MethodPost, "conversations/"+talk.ID+"/items", items); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	if status, body := other.send(http.MethodDelete, "conversations/"+talk.ID, ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

// A function of the client with the name of one of the agent's tools is refused before anything is left for workers. One
// with the name of a subagent's tool is not. V1
func TestQueueToolTwice(t *testing.T) {
	w := serving(t, reader+`<tool name="helper" agent="helper.md" local description="Helps."/>`+"\n"+`<tool mcp_server="http://127.0.0.1:1/mcp" server="none"/>`+"\n", "again\nturn\n  say Yes.\n", func(b *agents.Backend) { b.Queue = true })
	write(t, w.dir, "helper.md", "<config model=\"rehearsal:it.script\"/>\n<tool name=\"append_to_file\"/>\n")
	h := inHall(w)
	for _, name := range []string{"read_file", "helper"} {
		status, text := h.send(http.MethodPost, "responses", `{"model":"it","input":"x","background":true,"tools":[{"type":"function","name":"other"},{"type":"function","name":"`+name+`"}]}`)
		if status != http.StatusBadRequest || !strings.Contains(text, "tools[1].name") || !strings.Contains(text, "'"+name+"'") {
			t.Errorf("%d %s", status, text)
		}
	}
	for info, err := range h.store.List(t.Context(), session.Query{}) {
		t.Errorf("left: %+v, %v", info, err)
	}
	r := h.create(`{"model":"it","input":"x","background":true,"tools":[{"type":"function","name":"append_to_file","parameters":null,"strict":null}]}`)
	h.left(r.ID)
	h.cancel(r.ID)
	h.done(r.ID)
}

// A response in a session that its operator has archived goes on there, and not in a new session with the file's own
// question.
func TestQueueArchived(t *testing.T) {
	h := queued(t, "", "again\nturn\n  say {{question}}\n", nil)
	h.works(false, nil)
	r := h.create(`{"model":"it","input":"x"}`)
	if err := h.store.Archive(t.Context(), sessionOf(r.ID), true); err != nil {
		t.Fatal(err)
	}
	r = h.create(`{"model":"it","input":"y","previous_response_id":"` + r.ID + `"}`)
	if got := kinds(r); r.Status != item.StatusCompleted || got != "message:y" {
		t.Errorf("%s %+v %s", r.Status, r.Error, got)
	}
	for info, err := range h.store.List(t.Context(), session.Query{Archived: true}) {
		if err != nil || info.ID != sessionOf(r.ID) {
			t.Errorf("%+v, %v", info, err)
		}
	}
}

// The server asks no agent in a message of a file, at its own endpoint and without the limits of workers.
func TestQueueAgentInMessage(t *testing.T) {
	h := queued(t, "", "turn\n  say Yes.\n", nil)
	write(t, h.dir, "critic.md", "<config model=\"rehearsal\"/>\n<system>Judge.</system>\n")
	write(t, h.dir, "it.md", "<config model=\"rehearsal\"/>\n<user>The critic says: <agent src=\"critic.md\" local>Judge this.</agent></user>\n")
	if status, body := h.send(http.MethodPost, "responses", background); status != http.StatusServiceUnavailable || !strings.Contains(body, "agent_invalid") {
		t.Errorf("%d %s", status, body)
	}
	for info, err := range h.store.List(t.Context(), session.Query{Archived: true}) {
		t.Errorf("left: %+v, %v", info, err)
	}
}

// counting counts how often the logs of sessions are read.
type counting struct {
	queues
	loads atomic.Int64
}

func (c *counting) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	c.loads.Add(1)
	return c.queues.Load(ctx, id, after)
}

// A server does not read a response again and again that another one serves.
func TestQueueServedElsewhere(t *testing.T) {
	h := queued(t, "", "turn\n  say Yes.\n", nil)
	r := h.create(background)
	h.left(r.ID)
	in := &counting{queues: h.store}
	b := alone(t, h.dir)
	b.Queue, b.Store = true, in
	ids, err := b.Unfinished(t.Context())
	if len(ids) != 1 || err != nil {
		t.Fatal(ids, err)
	}
	for range 3 {
		for _, id := range ids {
			if err := again(t, b, id); !errors.Is(err, server.ErrLeft) {
				t.Error(err)
			}
		}
		before := in.loads.Load()
		b.LookAgain()
		if ids, err = b.Unfinished(t.Context()); len(ids) != 0 || err != nil || in.loads.Load() != before {
			t.Errorf("%d reads: %q, %v", in.loads.Load()-before, ids, err)
		}
	}
	h.end()
	b.LookAgain()
	if ids, err = b.Unfinished(t.Context()); len(ids) != 1 || err != nil {
		t.Errorf("nobody takes it up: %q, %v", ids, err)
	}
}

// spoilt is a store with a row that cannot be read, which a list tells behind all others.
type spoilt struct{ queues }

func (s spoilt) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		for info, err := range s.queues.List(ctx, q) {
			if !yield(info, err) {
				return
			}
		}
		yield(session.Info{}, &session.Damage{Problem: "its row is damaged"})
	}
}

// A session that cannot be read keeps no response from being taken up. J8
func TestUnfinishedDamaged(t *testing.T) {
	h := queued(t, "", "turn\n  say Yes.\n", nil)
	h.left(h.create(background).ID)
	b := alone(t, h.dir)
	b.Queue, b.Store = true, spoilt{h.store}
	if ids, err := b.Unfinished(t.Context()); len(ids) != 1 || !errors.Is(err, session.ErrDamaged) {
		t.Errorf("%q, %v", ids, err)
	}
}

// The same on the server of .ci/postgres.
func TestQueueOnPostgres(t *testing.T) {
	postgresHost(t)
	for name, test := range map[string]func(*testing.T){
		"CancelBeforeRun":  TestQueueCancelBeforeRun,
		"CancelLater":      TestQueueCancelLater,
		"CancelledRun":     TestQueueCancelledRun,
		"EndedElsewhere":   TestQueueEndedElsewhere,
		"WorkLost":         TestQueueWorkLost,
		"Parked":           TestQueueParked,
		"Broken":           TestQueueBroken,
		"Failing":          TestQueueFailing,
		"BrokenEnd":        TestQueueBrokenEnd,
		"AnswerKept":       TestQueueAnswerKept,
		"ConversationBusy": TestQueueConversationBusy,
		"Archived":         TestQueueArchived,
		"AgentInMessage":   TestQueueAgentInMessage,
		"ServedElsewhere":  TestQueueServedElsewhere,
		"Deltas":           TestQueueDeltas,
		"DeltasWorkerDies": TestQueueDeltasWorkerDies,
		"DeltasServerDies": TestQueueDeltasServerDies,
		"Functions":        TestQueueFunctions,
	} {
		t.Run(name, test)
	}
}
