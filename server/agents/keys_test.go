// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// keyed sends a request for a response with a key.
func (w *world) keyed(key, body string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.base+"/responses", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	resp, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// said returns the response that a stream says. Its events must be valid.
func (w *world) said(stream string) *api.Response {
	w.t.Helper()
	var all api.Accumulator
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "data: ")
		if !ok {
			continue
		}
		w.spec.Check(w.t, "ResponseStreamEvent", []byte(data))
		ev, err := api.ParseEvent(bytes.Clone([]byte(data)))
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := all.Add(ev); err != nil {
			w.t.Errorf("%v: %s", err, data)
		}
	}
	r, whole := all.Response()
	if !whole {
		w.t.Fatalf("the stream broke off: %s", stream)
	}
	return r
}

// The same key and body give the same response after a restart too, and another body is
// refused. V4
func TestKeyAfterRestart(t *testing.T) {
	const script = "again\nturn\n  reason Look first.\n  say I look.\n  call read_file {\"path\": \"note.txt\"}\nturn\n  say Done: {{question}}\n"
	w := serving(t, reader, script, nil)
	write(t, w.dir, "note.txt", "Rain.")
	bodies := map[string]string{
		"whole":      `{"model":"it","input":"a"}`,
		"stream":     `{"model":"it","input":"b","stream":true}`,
		"background": `{"model":"it","input":"c","background":true,"stream":true}`,
	}
	first := map[string]string{}
	for key, body := range bodies {
		code, text := w.keyed(key, body)
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
		if _, again := w.keyed(key, body); key == "background" && again != text {
			t.Errorf("%s: first\n%s\nthen\n%s", key, text, again)
		}
		first[key] = text
	}
	w.stop()
	w.stop = func() {}
	next := reopened(t, w.dir, nil)
	for key, body := range bodies {
		code, again := next.keyed(key, body)
		if code != http.StatusOK || key == "background" && again != first[key] {
			t.Errorf("%s: %d, first\n%s\nthen\n%s", key, code, first[key], again)
		}
		if key != "background" { // its events were not kept, or its members come in another order
			read := next.response
			if key == "stream" {
				read = next.said
			}
			a, errA := read(first[key]).AppendJSON(nil)
			b, errB := read(again).AppendJSON(nil)
			if string(a) != string(b) || errA != nil || errB != nil {
				t.Errorf("first\n%s\nthen\n%s\n%v %v", a, b, errA, errB)
			}
		}
		if code, refused := next.keyed(key, strings.Replace(body, `"it"`, `"it" `, 1)); code != http.StatusBadRequest || !strings.Contains(refused, "idempotency_key_reused") {
			t.Errorf("%s: %d %s", key, code, refused)
		}
	}
	n := 0
	for info, err := range next.b.Store.List(t.Context(), session.Query{}) {
		if n++; err != nil || strings.Contains(info.ID, "-key-") {
			t.Error(info.ID, err)
		}
	}
	if n != len(bodies) {
		t.Errorf("%d sessions", n)
	}
}

// While one server begins the response for a key, another one waits, and has it then. A key
// that names a response that did not begin is free. V4
func TestClaim(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", nil)
	made := w.create(`{"model":"it","input":"x"}`)
	one, two := alone(t, w.dir), alone(t, w.dir)
	id, name, release, err := one.Claim(t.Context(), "k", "body")
	if err != nil || id != "" {
		t.Fatal(id, err)
	}
	type claim struct {
		id  string
		err error
	}
	other := make(chan claim, 1)
	go func() {
		id, _, _, err := two.Claim(t.Context(), "k", "body")
		other <- claim{id, err}
	}()
	if err := name(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	release()
	if got := <-other; got.id != made.ID || got.err != nil {
		t.Errorf("%+v", got)
	}
	if _, _, _, err := two.Claim(t.Context(), "k", "other"); !errors.Is(err, server.ErrKeyUsed) {
		t.Error(err)
	}
	id, name, release, err = one.Claim(t.Context(), "lost", "body")
	if err != nil || id != "" {
		t.Fatal(id, err)
	}
	if err := name(t.Context(), made.ID[:strings.LastIndex(made.ID, "_")]+"_99"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, _, _, err := two.Claim(ctx, "lost", "body"); err == nil {
		t.Error("a key was claimed twice")
	}
	release()
	id, _, release, err = two.Claim(t.Context(), "lost", "other")
	if err != nil || id != "" {
		t.Fatal(id, err)
	}
	release()
}

// Keys belong to a project, and are kept for a time. V3 V4
func TestKeysApart(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", func(b *agents.Backend) { b.Owner = "red" })
	code, text := w.keyed("k", `{"model":"it","input":"x"}`)
	if code != http.StatusOK {
		t.Fatal(text)
	}
	made := w.response(text)
	hash := ""
	for info, err := range w.b.Store.List(t.Context(), session.Query{Tags: []string{"responses-key"}, Archived: true}) {
		if err != nil || info.Owner != "red" {
			t.Errorf("%+v, %v", info, err)
		}
		s, err := session.Open(t.Context(), w.b.Store, info.ID)
		if err != nil {
			t.Fatal(err)
		}
		for e := range s.Entries() {
			if n, ok := e.Body.(session.Note); ok {
				v, _ := n.Item.Member("body")
				hash = strings.Trim(string(v), `"`)
			}
		}
	}
	same, blue, late := alone(t, w.dir), alone(t, w.dir), alone(t, w.dir)
	same.Owner, blue.Owner, late.Owner, late.KeepKeys = "red", "blue", "red", time.Nanosecond
	for b, want := range map[*agents.Backend]string{same: made.ID, blue: "", late: ""} {
		id, _, release, err := b.Claim(t.Context(), "k", hash)
		if err != nil || id != want {
			t.Errorf("%s: %s, %v; want %s", b.Owner, id, err, want)
		}
		if release != nil {
			release()
		}
	}
	if _, err := late.Unfinished(t.Context()); err != nil {
		t.Error(err)
	}
	for info, err := range w.b.Store.List(t.Context(), session.Query{Tags: []string{"responses-key"}, Owner: "red", Archived: true}) {
		t.Errorf("%s is left: %v", info.ID, err)
	}
	if r := w.get(made.ID); r.Status != item.StatusCompleted {
		t.Error(r.Status)
	}
}

// If another server has named its own response for a key meanwhile, because this one stood still
// for longer than its lease, the one that begins here is given up, and the next attempt has the
// other one's answer, or makes the only one. V4
func TestKeyLost(t *testing.T) {
	var in store.Store
	var once sync.Once
	other := func(s storetest.Step) error {
		begins := func(e session.Entry) bool {
			n, ok := e.Body.(session.Note)
			return ok && n.Item.Type() == "antiphon:response"
		}
		if s.Done || !slices.ContainsFunc(s.Entries, begins) {
			return nil
		}
		once.Do(func() {
			for info, err := range in.List(t.Context(), session.Query{Tags: []string{"responses-key"}, Archived: true}) {
				if err != nil {
					t.Error(err)
					return
				}
				it, err := item.Parse([]byte(`{"type":"antiphon:idempotency_key","response_id":"resp_` + strings.Repeat("a", 26) + `_1","body":"x"}`))
				if err == nil {
					err = in.Append(t.Context(), info.ID, info.Entries, []session.Entry{{Seq: info.Entries + 1, Body: session.Note{Item: it}}})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		return nil
	}
	w := serving(t, "", "again\nturn\n  say Yes.\n", func(b *agents.Backend) {
		in = b.Store
		b.Store = &steppedStore{storetest.StepStore(in, other).(wholeStore), in}
	})
	code, text := w.keyed("k", `{"model":"it","input":"x"}`)
	if code != http.StatusConflict {
		t.Errorf("%d %s", code, text)
	}
	if code, text = w.keyed("k", `{"model":"it","input":"x"}`); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
	var left []string
	for info, err := range in.List(t.Context(), session.Query{Tags: []string{"responses-api"}}) {
		if err != nil {
			t.Error(err)
		}
		left = append(left, info.ID)
	}
	if len(left) != 1 {
		t.Errorf("there are %q", left)
	}
}

// wholeStore is what storetest.StepStore returns for a store of package sqlstore.
type wholeStore interface {
	session.Catalog
	session.SubsessionStore
	session.Locker
	session.Forker
	session.Watcher
	session.Inbox
	session.Blobs
}

type steppedStore struct {
	wholeStore
	in store.Store
}

func (s *steppedStore) Place() string { return s.in.Place() }
func (s *steppedStore) Close() error  { return s.in.Close() }
