// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
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

// The same key and body give the same response at another server and after a restart, without
// another request to the upstream. Another body is refused, and a request that was refused leaves
// its key free. V4
func TestKeys(t *testing.T) {
	up := agenttest.NewServer(t, agenttest.Failure(http.StatusBadRequest, "invalid_prompt", "No."))
	up.Otherwise(func(n int, _ agenttest.Request) agenttest.Reply {
		return agenttest.Completed(item.Assistant(fmt.Sprint("reply ", n)))
	})
	place := filepath.Join(t.TempDir(), "s.db")
	w, end := onDisk(t, place, up)
	if code, text := w.keyed("whole", `{"model":"m","input":"a"}`); code != http.StatusBadRequest {
		t.Fatalf("%d %s", code, text)
	}
	bodies := map[string]string{
		"whole":      `{"model":"m","input":"a"}`,
		"stream":     `{"model":"m","input":"b","stream":true}`,
		"background": `{"model":"m","input":"c","background":true,"stream":true}`,
	}
	first := map[string]*api.Response{}
	read := func(key, text string) *api.Response {
		t.Helper()
		if key == "whole" {
			r, err := api.ParseResponse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		var sum api.Accumulator
		for _, ev := range w.parse(text) {
			if _, err := sum.Add(ev); err != nil {
				t.Fatal(err)
			}
		}
		r, _ := sum.Response()
		return r
	}
	for key, body := range bodies {
		code, text := w.keyed(key, body)
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
		first[key] = read(key, text)
	}
	asked := len(up.Requests())
	other, endOther := onDisk(t, place, up)
	again := func(at *world) {
		t.Helper()
		for key, body := range bodies {
			code, text := at.keyed(key, body)
			if r := read(key, text); code != http.StatusOK || r.ID != first[key].ID || r.Text() != first[key].Text() || r.Status != item.StatusCompleted {
				t.Errorf("%s: %d %s", key, code, text)
			}
			if code, text := at.keyed(key, strings.Replace(body, `"m"`, `"m" `, 1)); code != http.StatusBadRequest || !strings.Contains(text, "idempotency_key_reused") {
				t.Errorf("%s: %d %s", key, code, text)
			}
		}
	}
	again(other)
	endOther()
	end()
	next, end := onDisk(t, place, up)
	defer end()
	again(next)
	if n := len(up.Requests()); n != asked {
		t.Errorf("%d requests, and %d with the same keys", asked, n-asked)
	}
	if status, _, text := next.ask(http.MethodDelete, "/responses/"+first["whole"].ID, ""); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	if code, text := next.keyed("whole", bodies["whole"]); code != http.StatusOK || strings.Contains(text, first["whole"].ID) {
		t.Errorf("after it was deleted: %d %s", code, text)
	}
}

// backdated is a store in which a session is two days older than it is.
type backdated struct {
	store.Store
	old     string
	deleted chan struct{} // closed when that session is deleted
}

func (b *backdated) Info(ctx context.Context, id string) (session.Info, error) {
	info, err := b.Store.Info(ctx, id)
	return b.aged(info), err
}

func (b *backdated) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		for info, err := range b.Store.List(ctx, q) {
			if !yield(b.aged(info), err) {
				return
			}
		}
	}
}

func (b *backdated) aged(info session.Info) session.Info {
	if info.ID == b.old {
		info.Updated = info.Updated.Add(-48 * time.Hour)
	}
	return info
}

func (b *backdated) Delete(ctx context.Context, id string) error {
	err := b.Store.Delete(ctx, id)
	if err == nil && id == b.old {
		close(b.deleted)
	}
	return err
}

// Keys of owners are apart, and a claim begins to remove the old ones of its owner. V3 V4
func TestKeysApart(t *testing.T) {
	file, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in := &backdated{Store: file, deleted: make(chan struct{})}
	keys := func(owner string) (ids []string) {
		for info, err := range file.List(t.Context(), session.Query{Archived: true, Tags: []string{"gateway-key"}, Owner: owner}) {
			if err != nil {
				t.Error(err)
			}
			ids = append(ids, info.ID)
		}
		return ids
	}
	for _, owner := range []string{"red", "blue"} {
		keep := &gateway.Store{In: in, Owner: owner}
		made, name, release, err := keep.Claim(t.Context(), "k", "body")
		if err != nil || made != "" {
			t.Fatal(made, err)
		}
		if err := name(t.Context(), "resp_"+owner); err != nil {
			t.Fatal(err)
		}
		if err := keep.Put(t.Context(), server.StoredObject{Response: &api.Response{ID: "resp_" + owner, Status: item.StatusInProgress}}); err != nil {
			t.Fatal(err)
		}
		release()
		if made, _, _, err := keep.Claim(t.Context(), "k", "body"); err != nil || made != "resp_"+owner {
			t.Error(made, err)
		}
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	}
	red, blue := keys("red"), keys("blue")
	if len(red) != 1 || len(blue) != 1 {
		t.Fatalf("keys: %q, %q", red, blue)
	}
	in.old = red[0]
	later := &gateway.Store{In: in, Owner: "red"}
	made, _, release, err := later.Claim(t.Context(), "other", "body")
	if err != nil || made != "" {
		t.Fatal(made, err)
	}
	select {
	case <-in.deleted:
	case <-time.After(time.Minute):
		t.Error("the old key is still there")
	}
	if got := keys("red"); len(got) != 1 || got[0] == red[0] {
		t.Errorf("keys of red: %q, want that of the claim", got)
	}
	release()
	if err := later.Close(); err != nil {
		t.Error(err)
	}
	if got := keys("red"); len(got) != 0 {
		t.Errorf("keys of red: %q after a claim without a response", got)
	}
	if got := keys("blue"); !slices.Equal(got, blue) {
		t.Errorf("keys of blue: %q, want %q", got, blue)
	}
}
