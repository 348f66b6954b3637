// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// counted is a server whose backend says how often it was called.
type counted struct {
	t      *testing.T
	base   string
	client *http.Client
	runs   atomic.Int64
}

// serveCounted serves what f makes, or the number of the call.
func serveCounted(t *testing.T, f server.BackendFunc) *counted {
	t.Helper()
	w := &counted{t: t}
	s := &server.Server{Backend: server.BackendFunc(func(ctx context.Context, r *server.Request, out *server.Writer) error {
		n := w.runs.Add(1)
		if f != nil {
			return f(ctx, r, out)
		}
		return out.Text(fmt.Sprintf("run %d", n))
	})}
	base, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	own := new(http.Transport)
	w.base, w.client = base, &http.Client{Transport: own}
	t.Cleanup(func() {
		own.CloseIdleConnections()
		stop()
	})
	return w
}

// send sends a request, with a key unless it is "".
func (w *counted) send(ctx context.Context, method, path, key, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.base+"/"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// ask sends a request for a response.
func (w *counted) ask(key, body string) (int, string) {
	w.t.Helper()
	code, text, err := w.send(w.t.Context(), http.MethodPost, "responses", key, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return code, text
}

// idIn returns the first id of a response in a text.
func idIn(text string) string {
	_, id, _ := strings.Cut(text, `"id":"resp_`)
	id, _, _ = strings.Cut(id, `"`)
	return "resp_" + id
}

// The same key and body give the same response, once, however it is sent. Another body is
// refused. V4
func TestIdempotencyKey(t *testing.T) {
	for _, how := range []string{"", `,"stream":true`, `,"store":false`, `,"store":false,"stream":true`, `,"background":true`, `,"background":true,"stream":true`} {
		w := serveCounted(t, nil)
		body := `{"model":"m","input":"x"` + how + `}`
		code, first := w.ask("a", body)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", how, code, first)
		}
		_, again := w.ask("a", body)
		if strings.Contains(how, "background") && !strings.Contains(how, "stream") {
			first, again = idIn(first), idIn(again) // the response has gone on
		}
		if again != first || w.runs.Load() != 1 {
			t.Errorf("%s: %d runs, first\n%s\nthen\n%s", how, w.runs.Load(), first, again)
		}
		if strings.Contains(how, `"stream"`) && !strings.Contains(first, "response.completed") {
			t.Errorf("%s: %s", how, first)
		}
		if code, refused := w.ask("a", body+" "); code != http.StatusBadRequest || !strings.Contains(refused, "idempotency_key_reused") {
			t.Errorf("%s: %d %s", how, code, refused)
		}
		for _, key := range []string{"b", ""} {
			if _, other := w.ask(key, body); idIn(other) == idIn(first) {
				t.Errorf("%s: with the key %q: %s", how, key, other)
			}
		}
	}
}

// A response with a key does not end when its client is gone, and others with the key get it
// while it is made. V4
func TestKeyWhileItRuns(t *testing.T) {
	for _, how := range []string{"", `,"stream":true`, `,"store":false`} {
		begun, end := make(chan struct{}), make(chan struct{})
		w := serveCounted(t, func(ctx context.Context, _ *server.Request, out *server.Writer) error {
			_ = out.Text("one ")
			close(begun)
			select {
			case <-end:
			case <-ctx.Done():
				return ctx.Err()
			}
			return out.Text("two")
		})
		body := `{"model":"m","input":"x"` + how + `}`
		ctx, gone := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, _, err := w.send(ctx, http.MethodPost, "responses", "k", body)
			left <- err
		}()
		<-begun
		gone()
		if err := <-left; err == nil {
			t.Errorf("%s: the first client had an answer", how)
		}
		answers := make(chan string, 3)
		for range cap(answers) {
			go func() {
				_, text, err := w.send(t.Context(), http.MethodPost, "responses", "k", body)
				answers <- fmt.Sprint(text, err)
			}()
		}
		close(end)
		first := <-answers
		if !strings.Contains(first, `"status":"`+item.StatusCompleted+`"`) || !strings.Contains(first, `"one two"`) {
			t.Errorf("%s: %s", how, first)
		}
		for range cap(answers) - 1 {
			if next := <-answers; next != first {
				t.Errorf("%s: one answer\n%s\nanother\n%s", how, first, next)
			}
		}
		if n := w.runs.Load(); n != 1 {
			t.Errorf("%s: %d runs", how, n)
		}
	}
}

// A key whose request was refused, or whose response was deleted, may be used again. One that
// is too long is refused.
func TestKeyAgain(t *testing.T) {
	refuse := true
	w := serveCounted(t, func(_ context.Context, _ *server.Request, out *server.Writer) error {
		if refuse {
			return server.Invalid("busy", "", "Not now.")
		}
		return out.Text("yes")
	})
	const body = `{"model":"m","input":"x"}`
	for _, bad := range []string{`{`, `{"model":"m"}`, body} {
		if code, text := w.ask("k", bad); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, code, text)
		}
	}
	refuse = false
	_, made := w.ask("k", body)
	if code, text, err := w.send(t.Context(), http.MethodDelete, "responses/"+idIn(made), "", ""); code != http.StatusOK || err != nil {
		t.Errorf("%d %s %v", code, text, err)
	}
	if _, next := w.ask("k", body); idIn(next) == idIn(made) || !strings.Contains(next, "yes") {
		t.Errorf("made %s\nthen %s", made, next)
	}
	if code, text := w.ask(strings.Repeat("k", 256), body); code != http.StatusBadRequest || !strings.Contains(text, "Idempotency-Key") {
		t.Errorf("%d %s", code, text)
	}
}
