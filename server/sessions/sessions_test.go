// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/sessions"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

const writes = "turn\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\nturn\n  say It was: {{if failed -1}}{{error -1}}{{else}}done{{end}}\n"

// until watches a session until an event is as wanted, and returns the session as it was
// told then, and the entries.
func (w *world) until(c *sessions.Client, id string, wanted func(s sessions.Session, log []session.Entry) bool) (s sessions.Session, log []session.Entry) {
	w.t.Helper()
	for ev, err := range c.Watch(w.t.Context(), id, id, 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		if ev.Session != nil {
			s = *ev.Session
		} else {
			log = append(log, *ev.Entry)
		}
		if wanted(s, log) {
			return s, log
		}
	}
	w.t.Fatal("the stream ended")
	return s, log
}

// waits reports whether a call waits.
func waits(s sessions.Session, _ []session.Entry) bool { return len(s.Pending) > 0 }

// A front end sees a session that another process runs, answers about its calls, says
// something to it, and what it reads is the log, entry by entry. Who answered, and the hash
// of what they saw, is in the log; the second answer is told who was first. D1 V2
func TestFrontEnd(t *testing.T) {
	w := serving(t, nil)
	wait := w.runs("work", writes, "go")
	c := w.as("lead")
	s, err := c.Get(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	s, _ = w.until(c, s.ID, waits)
	p := s.Pending[0]
	if s.Name != "work" || s.Agent != "work" || s.Status != sessions.StatusWaiting || p.Tool != "append_to_file" || !strings.Contains(p.Arguments, "new.txt") || p.Session != s.ID {
		t.Fatalf("%+v", s)
	}
	if _, err := c.Say(t.Context(), s.ID, "more", true); err != nil {
		t.Fatal(err)
	}
	d := agent.Decision{Session: p.Session, Number: p.Number, CallID: p.CallID, Allow: true, Shown: "all of it"}
	if err := w.as("reader").Answer(t.Context(), s.ID, d); err == nil || !strings.Contains(err.Error(), "'approve'") {
		t.Error("a key without the scope:", err)
	}
	if err := c.Answer(t.Context(), s.ID, d); err != nil {
		t.Fatal(err)
	}
	if err := c.Answer(t.Context(), s.ID, d); err != nil {
		t.Error("the same answer again:", err)
	}
	no := d
	no.Allow = false
	if err := w.as("approver").Answer(t.Context(), s.ID, no); !errors.Is(err, agent.ErrDecided) || !strings.Contains(err.Error(), "lead") {
		t.Error("the second answer:", err)
	}
	if why := wait(); why != string(agent.StopEndTurn) {
		t.Error(why)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "new.txt"))
	if err != nil || string(text) != "one\n" {
		t.Errorf("%q %v", text, err)
	}
	s, read := w.until(c, s.ID, func(s sessions.Session, log []session.Entry) bool {
		return s.Status == sessions.StatusIdle && len(log) == len(w.log(s.ID))
	})
	all := lines(t, w.log(s.ID))
	if got := lines(t, read); !slices.Equal(got, all) {
		t.Errorf("read\n%s\nthe log is\n%s", strings.Join(got, "\n"), strings.Join(all, "\n"))
	}
	shown := fmt.Sprintf("%x", sha256.Sum256([]byte("all of it")))
	joined := strings.Join(all, "\n")
	for _, want := range []string{`"by":"lead"`, shown, "more", `"session route"`} {
		if !strings.Contains(joined, want) {
			t.Errorf("the log lacks %s:\n%s", want, joined)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.records) == 0 || w.records[0].Kind != audit.KindAllowed || w.records[0].By != "lead" || w.records[0].Shown != audit.Hash("all of it") {
		t.Errorf("audited: %+v", w.records)
	}
}

// A run is stopped, and what is said to a session that nobody runs waits there. D1
func TestStopAndWait(t *testing.T) {
	w := serving(t, nil)
	wait := w.runs("slow", "turn\n  say one\n  pause 10m\n  say two\n", "go")
	c := w.as("reader")
	s, err := c.Get(t.Context(), "slow")
	if err != nil {
		t.Fatal(err)
	}
	w.until(c, s.ID, func(s sessions.Session, log []session.Entry) bool {
		return s.Status == sessions.StatusRunning && slices.ContainsFunc(log, func(e session.Entry) bool { _, ok := e.Body.(session.TurnStarted); return ok })
	})
	if _, err := c.Stop(t.Context(), s.ID, "enough", false); err != nil {
		t.Fatal(err)
	}
	if why := wait(); why != string(agent.StopRequested) {
		t.Error(why)
	}
	const said = `{"input":"Hello","key":"k"}`
	for range 2 { // the second time counts once
		if status, text := w.send("reader", "POST", "/slow/input", said); status != http.StatusOK || !strings.Contains(text, `"key":"k"`) {
			t.Error(status, text)
		}
	}
	if s, err = c.Get(t.Context(), s.ID); err != nil || s.Deliveries != 1 || s.Status != sessions.StatusIdle {
		t.Errorf("%+v %v", s, err)
	}
	if status, text := w.send("reader", "POST", "/slow/input", `{"input":"Other","key":"antiphon: schedule daily 2026-11-29T09:00:00Z"}`); status != http.StatusBadRequest || !strings.Contains(text, "the program's own") {
		t.Errorf("a key of the program's own deliveries: %d %s", status, text)
	}
	if status, text := w.send("reader", "POST", "/slow/input", `{"input":"Other","key":"k"}`); status != http.StatusConflict || !strings.Contains(text, "key_used") {
		t.Error(status, text)
	}
}

// The log is read from any entry on, and no other cursor is taken. V2
func TestCursor(t *testing.T) {
	w := serving(t, nil)
	wait := w.runs("it", "turn\n  say Hello\n", "go")
	wait()
	c := w.as("reader")
	s, err := c.Get(t.Context(), "it")
	if err != nil {
		t.Fatal(err)
	}
	all := lines(t, w.log(s.ID))
	if int64(len(all)) != s.Entries {
		t.Fatal(s.Entries, len(all))
	}
	for after := range s.Entries + 1 {
		var got []session.Entry
		for ev, err := range c.Read(t.Context(), s.ID, s.ID, after) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Entry != nil {
				got = append(got, *ev.Entry)
			}
		}
		if !slices.Equal(lines(t, got), all[after:]) {
			t.Errorf("after %d: %v", after, lines(t, got))
		}
	}
	status, text := w.send("reader", "GET", fmt.Sprintf("/it/events?follow=false&after=%d", s.Entries-1), "")
	if want := fmt.Sprintf("id: %d\nevent: entry\ndata: %s\n\n", s.Entries, all[s.Entries-1]); status != http.StatusOK || !strings.HasSuffix(text, want) || !strings.HasPrefix(text, "event: session\ndata: {") {
		t.Errorf("%d %s\nwant %s", status, text, want)
	}
	for _, wrong := range []string{"-1", "x", fmt.Sprint(s.Entries + 1)} {
		if status, text := w.send("reader", "GET", "/it/events?after="+wrong, ""); status != http.StatusBadRequest || !strings.Contains(text, `"after"`) {
			t.Error(wrong, status, text)
		}
	}
}

// The list has pages, and says of a session what each route says.
func TestList(t *testing.T) {
	w := serving(t, nil)
	for i := range 5 {
		if err := w.in.Create(t.Context(), session.Info{ID: fmt.Sprint("s", i), Name: fmt.Sprint("n", i%4), Path: fmt.Sprint("/a", i, ".md"), Owner: shop}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.in.Create(t.Context(), session.Info{ID: "foreign", Name: "n1", Owner: "other"}); err != nil {
		t.Fatal(err)
	}
	c, seen := w.as("reader"), map[string]bool{}
	for after, pages := "", 0; pages == 0 || after != ""; pages++ {
		page, err := c.List(t.Context(), after, 2)
		if err != nil || len(page.Data) > 2 || pages > 5 {
			t.Fatalf("%+v %v", page, err)
		}
		for _, s := range page.Data {
			if one, err := c.Get(t.Context(), s.ID); err != nil || fmt.Sprint(one) != fmt.Sprint(s) {
				t.Errorf("%+v %+v %v", one, s, err)
			}
			seen[s.ID] = true
		}
		after = page.Next
	}
	if len(seen) != 5 || seen["foreign"] {
		t.Error(seen)
	}
	if status, text := w.send("reader", "GET", "?name=n1", ""); status != 200 || strings.Count(text, `"id"`) != 1 || !strings.Contains(text, `"s1"`) {
		t.Error(status, text)
	}
	if s, err := c.Get(t.Context(), "n2"); err != nil || s.ID != "s2" || s.Agent != "a2" {
		t.Error(s, err)
	}
}

// A session that does not move says why, in the words of antiphon work status.
func TestWorkSaysWhy(t *testing.T) {
	w := serving(t, nil)
	q := w.in.(queue.Queue)
	if err := w.in.Create(t.Context(), session.Info{ID: "s", Owner: shop}); err != nil {
		t.Fatal(err)
	}
	if err := q.Enqueue(t.Context(), queue.Work{Session: "s", Needs: []string{"gpu"}}); err != nil {
		t.Fatal(err)
	}
	is := func(status sessions.Status, waits string) {
		t.Helper()
		if s, err := w.as("reader").Get(t.Context(), "s"); err != nil || s.Status != status || s.Waits != waits {
			t.Errorf("%+v %v", s, err)
		}
	}
	row := func() queue.Work {
		t.Helper()
		now, err := q.Work(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	is(sessions.StatusQueued, "waits for a worker with gpu")
	begun, err := q.Begin(t.Context(), row(), "build1")
	if err != nil {
		t.Fatal(err)
	}
	is(sessions.StatusRunning, "runs at build1")
	if err := q.Finish(t.Context(), begun, queue.Outcome{State: queue.Waiting, Due: time.Now().Add(time.Hour), Reason: "the result of build"}); err != nil {
		t.Fatal(err)
	}
	is(sessions.StatusQueued, "waits for the result of build")
	if err := q.Move(t.Context(), row(), queue.Parked, "too dear"); err != nil {
		t.Fatal(err)
	}
	is(sessions.StatusParked, "parked, waits for an operator: too dear")
	if err := q.Move(t.Context(), row(), queue.Done, "answered"); err != nil {
		t.Fatal(err)
	}
	is(sessions.StatusIdle, "")
}

// What is wrong with a request is said by name, and needs the scope first.
func TestRefusals(t *testing.T) {
	w := serving(t, nil)
	for i, name := range []string{"a", "a", "b"} {
		if err := w.in.Create(t.Context(), session.Info{ID: fmt.Sprint("s", i), Name: name, Path: fmt.Sprint("/", i), Owner: shop}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.in.Create(t.Context(), session.Info{ID: "models", Owner: shop}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key, method, path, body string
		status                  int
		want                    string
	}{
		{"api", "GET", "", "", 403, "'sessions'"},
		{"api", "GET", "/s0", "", 403, "'sessions'"},
		{"api", "GET", "/models", "", 403, "'sessions'"},
		{"api", "GET", "/s0/events", "", 403, "'sessions'"},
		{"api", "POST", "/s0/input", `{"input":"x"}`, 403, "'sessions'"},
		{"api", "POST", "/s0/stop", "", 403, "'sessions'"},
		{"reader", "POST", "/s0/approvals", "", 403, "'approve'"},
		{"approver", "GET", "/s0", "", 403, "'sessions'"},
		{"none", "GET", "/s0", "", 401, "API key"},
		{"lead", "GET", "?limit=0", "", 400, `"limit"`},
		{"lead", "GET", "?limit=1000", "", 400, "1 to 100"},
		{"lead", "GET", "?after=x", "", 400, `"after"`},
		{"lead", "GET", "?key=x", "", 400, "Unknown parameter: 'key'"},
		{"lead", "GET", "/none", "", 404, "not found"},
		{"lead", "GET", "/a", "", 409, "ambiguous_name"},
		{"lead", "GET", "/models", "", 200, `"models"`},
		{"lead", "GET", "/s0/nothing", "", 404, "unknown_url"},
		{"lead", "DELETE", "/s0", "", 405, "method_not_supported"},
		{"lead", "GET", "/s0/events?follow=maybe", "", 400, `"follow"`},
		{"lead", "GET", "/s0/events?session=s1", "", 404, "not found"},
		{"lead", "GET", "/s0/events?session=s0/1", "", 404, "not found"},
		{"lead", "POST", "/s0/input", `{"input":" "}`, 400, `"input"`},
		{"lead", "POST", "/s0/input", `{"inptu":"x"}`, 400, "Unknown parameter: 'inptu'."},
		{"lead", "POST", "/s0/input", `{"inptu":"x"}`, 400, `"param": "inptu"`},
		{"lead", "POST", "/s0/input", `{"input":"x","later":1}`, 400, "Invalid type for 'later': expected a boolean."},
		{"lead", "POST", "/s0/approvals", `{"number":"1"}`, 400, "Invalid type for 'number': expected an integer."},
		{"lead", "POST", "/s0/approvals", `{"remember":{"prefix":[1]}}`, 400, `"param": "remember.`},
		{"lead", "POST", "/s0/input", `[]`, 400, "is not a JSON object"},
		{"lead", "POST", "/s0/input", `{"input"`, 400, "is not JSON: "},
		{"lead", "POST", "/s0/input", `{"input":"x","key":"` + strings.Repeat("k", 300) + `"}`, 400, "256 characters"},
		{"lead", "POST", "/s0/input", `{"input":5}`, 400, `"input"`},
		{"lead", "POST", "/s0/input", `{"input":[]}`, 400, `"input"`},
		{"lead", "POST", "/s0/input", `{"input":[{"type":"output_text","text":"x"}]}`, 400, "input[0]"},
		{"lead", "POST", "/s0/input", `{"input":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"https://example.com/x.png"}]}`, 400, "input[1]"},
		{"lead", "POST", "/s0/input", `{"input":[{"type":"input_image","file_id":"file-1"}]}`, 400, "input[0]"},
		{"lead", "POST", "/s0/input", `{"input":[{"type":"input_file","file_url":"https://example.com/x.pdf"}]}`, 400, "input[0]"},
		{"lead", "POST", "/s0/input", `{"input":[{"type":"input_file","file_data":"data:application/pdf;base64,***"}]}`, 400, "input[0]"},
		{"lead", "POST", "/s0/input", `{"input":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`, 400, "valid image"},
		{"lead", "POST", "/s0/input", `{"input":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`, 400, "Invalid 'input[1].image_url'"},
		{"lead", "POST", "/s0/input", `{"input":[{"type":"input_text","text":" "},{"type":"input_text","text":""}]}`, 400, "'input' is empty"},
		{"lead", "POST", "/s0/input", `{"input":[{"type":"input_text","text":"see"},{"type":"input_file","filename":"x.pdf","file_data":"data:application/pdf;base64,AAAA"}]}`, 200, `"session.delivery"`},
		{"lead", "POST", "/s0/input", `{"input":"` + strings.Repeat("x", 64<<20) + `"}`, 413, "larger"},
		{"lead", "POST", "/s0/stop", `{"reason":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "larger than"},
		{"lead", "POST", "/s0/approvals", `{}`, 400, `"call_id"`},
		{"lead", "POST", "/s0/approvals", `{"call_id":"c"}`, 400, `"number"`},
		{"lead", "POST", "/s0/approvals", `{"call_id":"c","number":1}`, 400, `"approve"`},
		{"lead", "POST", "/s0/approvals", `{"call_id":"c","number":1,"approve":true}`, 404, "no_such_approval"},
		{"lead", "POST", "/s0/approvals", `{"call_id":"c","number":1,"approve":true,"session":"s1"}`, 404, "no_such_approval"},
	} {
		if status, text := w.send(test.key, test.method, test.path, test.body); status != test.status || !strings.Contains(text, test.want) {
			t.Errorf("%s %s %s: %d %s", test.key, test.method, test.path, status, text)
		}
	}
}

// What clients leave for a session is bounded, and a request to stop still finds room.
func TestInboxFull(t *testing.T) {
	w := serving(t, nil)
	if err := w.in.Create(t.Context(), session.Info{ID: "s", Owner: shop}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.in.(session.Inbox).Deliver(t.Context(), "s", session.Delivery{
		Delivered: session.Delivered{Key: "1"}, Bodies: []session.Body{session.InputItem{Item: item.User(strings.Repeat("x", 96<<20))}},
	}); err != nil {
		t.Fatal(err)
	}
	if status, text := w.send("reader", "POST", "/s/input", `{"input":"x"}`); status != http.StatusConflict || !strings.Contains(text, `"inbox_full"`) || !strings.Contains(text, session.ErrInboxFull.Error()) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := w.send("reader", "POST", "/s/stop", ""); status != http.StatusConflict || !strings.Contains(text, `"not_running"`) {
		t.Errorf("nothing runs: %d %s", status, text)
	}
	log, err := session.Open(t.Context(), w.in, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), session.RunStarted{}); err != nil { // its process ended, and it can go on
		t.Fatal(err)
	}
	if status, text := w.send("reader", "POST", "/s/stop", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
}

// crowded is a store in which all inboxes are full.
type crowded struct{ *sqlstore.Store }

func (crowded) Deliver(context.Context, string, session.Delivery) (session.Receipt, error) {
	return session.Receipt{}, session.ErrInboxFull
}

// An answer for which there is no room is refused like input.
func TestAnswerToFullInbox(t *testing.T) {
	w := serving(t, func(h *sessions.Handler) { h.Store = crowded{h.Store.(*sqlstore.Store)} })
	wait := w.runs("work", writes, "go")
	s, err := w.as("lead").Get(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	s, _ = w.until(w.as("lead"), s.ID, waits)
	p := s.Pending[0]
	body := fmt.Sprintf(`{"call_id":%q,"number":%d,"approve":true}`, p.CallID, p.Number)
	if status, text := w.send("lead", "POST", "/work/approvals", body); status != http.StatusConflict || !strings.Contains(text, `"inbox_full"`) {
		t.Errorf("%d %s", status, text)
	}
	if _, err := w.in.(session.Inbox).Deliver(t.Context(), s.ID, session.Delivery{Delivered: session.Delivered{Key: "stop"}, Bodies: []session.Body{session.StopAsked{}}}); err != nil {
		t.Fatal(err)
	}
	wait()
}

// The memory for what a request becomes is held before it is parsed. V5
func TestRequestsHeld(t *testing.T) {
	w := serving(t, nil)
	if err := w.in.Create(t.Context(), session.Info{ID: "s", Owner: shop}); err != nil {
		t.Fatal(err)
	}
	var held int64
	full := false
	ctx := server.WithHold(t.Context(), func(_ context.Context, n int64) error {
		if held = n; full {
			return &server.Error{Status: http.StatusServiceUnavailable, Message: "no room"}
		}
		return nil
	})
	body := `{"input":"` + strings.Repeat("x", 1000) + `"}`
	for _, status := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		answer := httptest.NewRecorder()
		w.h.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, "POST", sessions.Path+"/s/input", strings.NewReader(body)))
		if answer.Code != status || held != 2*int64(len(body)) {
			t.Errorf("%d %s, %d bytes held", answer.Code, answer.Body, held)
		}
		full = true
	}
	waiting := 0
	for _, err := range w.in.(session.Inbox).Deliveries(t.Context(), "s") {
		if err != nil {
			t.Fatal(err)
		}
		waiting++
	}
	if waiting != 1 {
		t.Errorf("%d deliveries", waiting)
	}
}

// A stream without news sends comments, and one whose key is revoked ends.
func TestSilence(t *testing.T) {
	w := serving(t, func(h *sessions.Handler) { h.Silence = time.Millisecond })
	if err := w.in.Create(t.Context(), session.Info{ID: "s", Owner: shop}); err != nil {
		t.Fatal(err)
	}
	resp := w.open("reader", "GET", "/s/events", "")
	defer resp.Body.Close()
	if resp.Header.Get("X-Accel-Buffering") != "no" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		t.Error(resp.Header)
	}
	read, comments := bufio.NewScanner(resp.Body), 0
	for read.Scan() {
		if strings.HasPrefix(read.Text(), ":") {
			comments++
		}
		if comments == 3 {
			w.revoke("reader")
			comments++
		}
	}
	if comments < 4 {
		t.Error(comments, read.Err())
	}
}

// spoilt is a store with a session that cannot be read. It takes a place in a list, and is told behind all others.
type spoilt struct{ *sqlstore.Store }

func (s spoilt) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		var damage error
		for info, err := range s.Store.List(ctx, q) {
			if info.ID == "s2" {
				damage = &session.Damage{Session: "s2", Problem: "its row is damaged"}
			} else if !yield(info, err) {
				return
			}
		}
		if damage != nil {
			yield(session.Info{}, damage)
		}
	}
}

// A session that cannot be read hides no other, on whatever page it would be. J8
func TestListDamaged(t *testing.T) {
	var told atomic.Int64
	w := serving(t, func(h *sessions.Handler) {
		h.Store, h.Log = spoilt{h.Store.(*sqlstore.Store)}, func(err error) {
			if errors.Is(err, session.ErrDamaged) {
				told.Add(1)
			}
		}
	})
	for i := range 5 {
		if err := w.in.Create(t.Context(), session.Info{ID: fmt.Sprint("s", i), Owner: shop}); err != nil {
			t.Fatal(err)
		}
	}
	for size := 2; size < 7; size++ {
		seen := map[string]bool{}
		for after, pages := "", 0; pages == 0 || after != ""; pages++ {
			page, err := w.as("reader").List(t.Context(), after, size)
			if err != nil || len(page.Data) > size || pages > 5 {
				t.Fatalf("%d a page: %+v %v", size, page, err)
			}
			for _, s := range page.Data {
				seen[s.ID] = true
			}
			after = page.Next
		}
		if len(seen) != 4 {
			t.Errorf("%d a page: %v", size, seen)
		}
	}
	if told.Load() == 0 {
		t.Error("nobody is told of the damage")
	}
}
