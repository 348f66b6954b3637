// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agents_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// fifo is a tool that runs until the test lets it end. running waits for it.
func fifo(t *testing.T, w *world) (running func() (end func())) {
	t.Helper()
	name := filepath.Join(w.dir, "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() func() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0) // waits for the reader
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

const waiting = `<tool name="wait" command="cat fifo" description="Waits." approval="allow"/>` + "\n"

const waits = "turn\n  say I wait.\n  call wait {}\nturn\n  say Done.\n"

// A background response can be read while it is made, cancelled and streamed again.
func TestAgentInBackground(t *testing.T) {
	w := serving(t, waiting, waits, nil)
	running := fifo(t, w)
	made := w.create(`{"model":"it","input":"x","background":true,"stream":false}`)
	end := running()
	if r := w.get(made.ID); r.Status != item.StatusInProgress || !strings.HasPrefix(kinds(r), "message:I wait.") {
		t.Errorf("%s: %s", r.Status, kinds(r))
	}
	status, body := w.send(http.MethodPost, "responses/"+made.ID+"/cancel", "")
	if status != http.StatusOK || w.response(body).Status != item.StatusCancelled {
		t.Errorf("%d %s", status, body)
	}
	end()
	w.stop()
	w.stop = func() {}
	next := reopened(t, w.dir, nil)
	if r := next.get(made.ID); r.Status != item.StatusCancelled || !strings.HasPrefix(kinds(r), "message:I wait.") {
		t.Errorf("%s: %s", r.Status, kinds(r))
	}
	// What was cancelled can be continued: the call has an output that says so.
	after := next.create(`{"model":"it","input":"y","previous_response_id":"` + made.ID + `"}`)
	if after.Status != item.StatusCompleted {
		t.Errorf("%s: %s", after.Status, kinds(after))
	}
}

// A conversation is not deleted by halves while a response in it is made, and can be deleted
// afterwards. J9
func TestDeleteBusyConversation(t *testing.T) {
	w := serving(t, waiting, waits, nil)
	running := fifo(t, w)
	_, body := w.send(http.MethodPost, "conversations", `{}`)
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan *api.Response)
	go func() { done <- w.create(`{"model":"it","input":"x","conversation":"` + talk.ID + `"}`) }()
	end := running()
	if status, body := w.send(http.MethodDelete, "conversations/"+talk.ID, ""); status != http.StatusConflict || !strings.Contains(body, "conversation_locked") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := w.send(http.MethodGet, "conversations/"+talk.ID, ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	end()
	if r := <-done; r.Status != item.StatusCompleted {
		t.Errorf("%s: %s", r.Status, kinds(r))
	}
	if status, body := w.send(http.MethodDelete, "conversations/"+talk.ID, ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	for info, err := range w.b.Store.List(t.Context(), session.Query{Archived: true}) {
		if strings.Contains(info.ID, strings.ToLower(strings.TrimPrefix(talk.ID, "conv_"))) {
			t.Errorf("left: %+v, %v", info, err)
		}
	}
}

// firstID reads the beginning of a stream, up to the first id, and returns it.
func firstID(t *testing.T, stream io.Reader) string {
	t.Helper()
	var head strings.Builder
	one := make([]byte, 1)
	for {
		if _, err := io.ReadFull(stream, one); err != nil {
			t.Fatal(head.String(), err)
		}
		head.Write(one)
		_, id, found := strings.Cut(head.String(), `"id":"`)
		if id, _, whole := strings.Cut(id, `"`); found && whole {
			return id
		}
	}
}

// A response can be deleted while another client waits for it: it ends, and nothing is left. J9
func TestDeleteRunning(t *testing.T) {
	w := serving(t, waiting, waits, nil)
	running := fifo(t, w)
	resp := w.open(t.Context(), http.MethodPost, "responses", `{"model":"it","input":"x","stream":true}`)
	defer resp.Body.Close()
	end := running()
	id := firstID(t, resp.Body)
	if status, body := w.send(http.MethodDelete, "responses/"+id, ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	end()
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(rest), "response.incomplete") || !strings.Contains(string(rest), "was deleted") {
		t.Errorf("%s, %v", rest, err)
	}
	w.refused(http.MethodGet, "responses/"+id, "", "not found")
	for info, err := range w.b.Store.List(t.Context(), session.Query{Archived: true}) {
		t.Errorf("left: %+v, %v", info, err)
	}
}

// A client that goes away ends its response, which keeps what was complete. Others are
// served.
func TestClientGone(t *testing.T) {
	w := serving(t, waiting, waits, nil)
	running := fifo(t, w)
	ctx, gone := context.WithCancel(t.Context())
	resp := w.open(ctx, http.MethodPost, "responses", `{"model":"it","input":"x","stream":true}`)
	end := running()
	id := firstID(t, resp.Body)
	gone()
	resp.Body.Close()
	end()
	w.stop()
	w.stop = func() {}
	next := reopened(t, w.dir, nil)
	if r := next.get(id); r.Status != item.StatusCancelled && r.Status != item.StatusIncomplete {
		t.Errorf("%s: %s", r.Status, kinds(r))
	}
}

// A server that stops lets responses end, and those that take too long are incomplete.
func TestDrain(t *testing.T) {
	said := make(chan string, 10)
	w := serving(t, waiting, waits, func(b *agents.Backend) { b.Log = func(err error) { said <- err.Error() } })
	running := fifo(t, w)
	done := make(chan *api.Response)
	go func() {
		_, r := w.stream(`{"model":"it","input":"x","stream":true}`)
		done <- r
	}()
	end := running()
	late, stop := context.WithCancel(t.Context())
	stop()
	w.b.Drain(late)
	r := <-done
	end()
	if r.Status != item.StatusIncomplete || r.Error == nil || !strings.HasPrefix(kinds(r), "message:I wait. | mcp_call:wait") {
		t.Errorf("%s, %v: %s", r.Status, r.Error, kinds(r))
	}
	if got := <-said; got != "not ended in time, and therefore incomplete: "+r.ID {
		t.Error(got)
	}
	w.same(r)
	w.refused(http.MethodPost, "responses", `{"model":"it","input":"x"}`, "about to stop")
}

// nobody makes a response of a folder whose server has gone away with a call running.
func abandoned(t *testing.T) (dir, id string) {
	t.Helper()
	w := serving(t, waiting, waits, nil)
	running := fifo(t, w)
	made := w.create(`{"model":"it","input":"x","background":true}`)
	end := running()
	w.stop()
	w.stop = func() {}
	end()
	return w.dir, made.ID
}

// again takes a response up, in a server that ends at once, and returns what Resume does.
func again(t *testing.T, b *agents.Backend, id string) error {
	t.Helper()
	rec, err := b.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	return b.Resume(ctx, id, server.NewWriter(*rec.Response, func(api.Event) error {
		end(server.ErrLeft)
		return nil
	}))
}

// A background response goes on in the next server. D2
func TestGoesOn(t *testing.T) {
	dir, id := abandoned(t)
	next := reopened(t, dir, nil)
	for {
		if r := next.get(id); r.Status == item.StatusCompleted {
			if got := kinds(r); got != "message:I wait. | mcp_call:wait | message:Done." || r.Usage == nil || r.Usage.TotalTokens == 0 {
				t.Errorf("%s, %+v", got, r.Usage)
			}
			break
		}
		runtime.Gosched()
	}
	if ids, err := next.b.Unfinished(t.Context()); len(ids) > 0 || err != nil {
		t.Error(ids, err)
	}
}

// A background response whose agent's file has changed since it began is not gone on with: its
// history and its calls are those of another file. It says so, and keeps what was complete. D3
func TestChangedMeanwhile(t *testing.T) {
	dir, id := abandoned(t)
	write(t, dir, "it.md", strings.ReplaceAll(fileText(t, dir, "it.md"), "Be brief.", "Be rude."))
	next := reopened(t, dir, nil)
	r := next.get(id)
	for ; r.Status == item.StatusInProgress || r.Status == item.StatusQueued; r = next.get(id) {
		runtime.Gosched()
	}
	if got := kinds(r); r.Status != item.StatusIncomplete || r.Error == nil || !strings.Contains(r.Error.Message, "has changed") || got != "message:I wait. | mcp_call:wait" {
		t.Errorf("%s: %s, %+v", r.Status, got, r.Error)
	}
	after := next.create(`{"model":"it","input":"y","previous_response_id":"` + id + `"}`)
	if after.Status != item.StatusCompleted {
		t.Errorf("%s: %s", after.Status, kinds(after))
	}
}

// A response that ends its server each time fails after some attempts, and so does one whose
// agent cannot be opened any more. Others are told to leave it alone until then. D4
func TestTakenUpInVain(t *testing.T) {
	dir, id := abandoned(t)
	b := alone(t, dir)
	for i := range 10 {
		if err := again(t, b, id); err == nil {
			if i != 5 {
				t.Errorf("it failed after %d attempts", i)
			}
			break
		} else if !errors.Is(err, server.ErrLeft) {
			t.Fatal(err)
		}
	}
	if rec, err := b.Get(t.Context(), id); err != nil || rec.Response.Status != item.StatusFailed || rec.Response.Error == nil {
		t.Errorf("%+v, %v", rec.Response, err)
	}

	dir, id = abandoned(t)
	b = alone(t, dir)
	b.Agents[0].Config.Trust = nil
	for range 3 {
		if err := again(t, b, id); !errors.Is(err, server.ErrLeft) {
			t.Error(err)
		}
	}
	if rec, err := b.Get(t.Context(), id); err != nil || rec.Response.Status != item.StatusFailed || !strings.HasPrefix(kinds(rec.Response), "message:I wait.") {
		t.Errorf("%+v, %v", rec.Response, err)
	}
	if ids, err := b.Unfinished(t.Context()); len(ids) > 0 || err != nil {
		t.Error(ids, err)
	}
}

// A response that nobody makes can be cancelled.
func TestStopLeft(t *testing.T) {
	dir, id := abandoned(t)
	b := alone(t, dir)
	if err := b.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if rec, err := b.Get(t.Context(), id); err != nil || rec.Response.Status != item.StatusCancelled {
		t.Errorf("%+v, %v", rec.Response, err)
	}
	if err := b.Stop(t.Context(), "resp_unknown"); !errors.Is(err, server.ErrNotFound) {
		t.Error(err)
	}
}

// A client that asks another server with the key of a response that is being made has the
// same response, when it has ended. V4
func TestKeyElsewhere(t *testing.T) {
	w := serving(t, waiting, waits, nil)
	running := fifo(t, w)
	other := reopened(t, w.dir, nil)
	answers := make(chan string, 2)
	ask := func(w *world) {
		_, text := w.keyed("k", `{"model":"it","input":"x"}`)
		answers <- text
	}
	go ask(w)
	end := running()
	go ask(other)
	end()
	for range cap(answers) {
		r := w.response(<-answers)
		if got := kinds(r); r.Status != item.StatusCompleted || got != "message:I wait. | mcp_call:wait | message:Done." {
			t.Errorf("%s: %s", r.Status, got)
		}
		w.same(r)
	}
}

// A background response whose server ended between its answer and the record that the run has
// ended is complete in the next server. D2
func TestGoesOnAfterAnswer(t *testing.T) {
	var dead atomic.Bool
	w := serving(t, "", "again\nturn\n  say Yes.\n", func(b *agents.Backend) {
		in := b.Store
		b.Store = &steppedStore{storetest.StepStore(in, func(s storetest.Step) error {
			if s.Done || !strings.HasPrefix(s.Name, "append/") {
				return nil
			}
			if last := len(s.Entries) - 1; session.Kind(s.Entries[last].Body) == "stopped" && !dead.Swap(true) && last > 0 {
				if err := in.Append(context.Background(), s.Session, s.After, s.Entries[:last]); err != nil {
					t.Error(err)
				}
			}
			if dead.Load() {
				return errors.New("the process has ended")
			}
			return nil
		}).(wholeStore), in}
	})
	made := w.create(`{"model":"it","input":"x","background":true}`)
	for !dead.Load() {
		runtime.Gosched()
	}
	w.stop()
	w.stop = func() {}
	next := reopened(t, w.dir, nil)
	r := next.get(made.ID)
	for ; r.Status == item.StatusInProgress || r.Status == item.StatusQueued; r = next.get(made.ID) {
		runtime.Gosched()
	}
	if r.Status != item.StatusCompleted || kinds(r) != "message:Yes." {
		t.Errorf("%s, %v: %s", r.Status, r.Error, kinds(r))
	}
}

// The server that goes on with a background response knows for which key it is.
func TestGoesOnForKey(t *testing.T) {
	w := serving(t, waiting, waits, nil)
	running := fifo(t, w)
	s := &server.Server{Backend: w.b}
	want := server.Caller{Key: "ci", KeyID: "key_1"}
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(out, r.WithContext(server.WithCaller(r.Context(), want)))
	}))
	defer front.Close()
	defer front.CloseClientConnections()
	w.base = front.URL + "/v1"
	w.create(`{"model":"it","input":"x","background":true}`)
	end := running()
	s.Close()
	w.stop()
	w.stop = func() {}
	end()
	known := make(chan server.Caller, 1)
	next := &server.Server{Backend: alone(t, w.dir), Admit: func(ctx context.Context, _ *server.Request) (func(server.Outcome), error) {
		c, _ := server.CallerOf(ctx)
		known <- c
		return nil, nil
	}}
	next.Resume()
	if c := <-known; c != want {
		t.Errorf("%+v", c)
	}
	next.Close()
}

// A call that had not begun when its server ended is made once, however often the response is
// continued: where it is continued first, and not in the forks. D2
func TestCallOfForksIsMadeOnce(t *testing.T) {
	for _, before := range []string{"approval", "call_started"} {
		t.Run(before, func(t *testing.T) { callOfForks(t, before) })
	}
}

// callOfForks ends a server before it writes an entry of a kind, and continues its response three times.
func callOfForks(t *testing.T, before string) {
	t.Helper()
	const script = "turn\n  call append_to_file {\"path\":\"done.txt\",\"content\":\"once\\n\"}\nturn\n  say Done.\nagain\nturn\n  say Well.\n"
	var dead atomic.Bool
	w := serving(t, "<tool name=\"append_to_file\" approval=\"allow\"/>\n", script, func(b *agents.Backend) {
		in := b.Store
		b.Store = &steppedStore{storetest.StepStore(in, func(s storetest.Step) error {
			n := slices.IndexFunc(s.Entries, func(e session.Entry) bool { return session.Kind(e.Body) == before })
			if !s.Done && strings.HasPrefix(s.Name, "append/") && n >= 0 && !dead.Swap(true) && n > 0 {
				if err := in.Append(context.Background(), s.Session, s.After, s.Entries[:n]); err != nil {
					t.Error(err)
				}
			}
			if dead.Load() {
				return errors.New("the process has ended")
			}
			return nil
		}).(wholeStore), in}
	})
	_, first, _ := strings.Cut(readEnough(t, w.open(t.Context(), "POST", "responses", `{"model":"it","input":"x","stream":true}`)), `"id":"resp_`)
	id, _, _ := strings.Cut("resp_"+first, `"`)
	w.stop()
	w.stop = func() {}
	next := reopened(t, w.dir, nil)
	r := next.get(id)
	for ; r.Status == item.StatusInProgress; r = next.get(id) {
		runtime.Gosched()
	}
	if r.Status != item.StatusIncomplete {
		t.Fatalf("%s, %v", r.Status, r.Error)
	}
	for range 3 {
		if r := next.create(`{"model":"it","input":"y","previous_response_id":"` + id + `"}`); r.Status != item.StatusCompleted {
			t.Errorf("%s, %v: %s", r.Status, r.Error, kinds(r))
		}
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "done.txt")); err != nil || string(text) != "once\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func readEnough(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil && len(text) == 0 {
		t.Fatal(err)
	}
	return string(text)
}
