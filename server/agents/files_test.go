// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/session"
)

// upload sends a form with a file, unless its name is "", and fields.
func (w *world) upload(name, content string, fields map[string]string) (int, string) {
	w.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for field, value := range fields {
		if err := form.WriteField(field, value); err != nil {
			w.t.Fatal(err)
		}
	}
	if name != "" {
		part, err := form.CreateFormFile("file", name)
		if err == nil {
			_, err = io.WriteString(part, content)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		w.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.base+"/files", &body)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
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

// uploaded uploads a file that must be accepted.
func (w *world) uploaded(name, content string) (f server.File) {
	w.t.Helper()
	code, text := w.upload(name, content, map[string]string{"purpose": "user_data"})
	if err := json.Unmarshal([]byte(text), &f); code != http.StatusOK || err != nil {
		w.t.Fatalf("%d %s %v", code, text, err)
	}
	return f
}

// Files can be uploaded, listed, read and deleted, also by the next server, and requests name
// them.
func TestFiles(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", nil)
	one, two := w.uploaded("one.txt", "The first."), w.uploaded("two.txt", "The second.")
	ask := `{"model":"it","input":[{"role":"user","content":[{"type":"input_text","text":"Read."},{"type":"input_file","file_id":"` + one.ID + `"}]}]}`
	made := w.create(ask)
	w.stop()
	w.stop = func() {}
	w = reopened(t, w.dir, nil)
	if _, text := w.send(http.MethodGet, "responses/"+made.ID+"/input_items", ""); !strings.Contains(text, "data:text/plain;base64,VGhlIGZpcnN0Lg==") || !strings.Contains(text, "one.txt") {
		t.Error(text)
	}
	for path, want := range map[string]string{
		"files/" + one.ID:              `"filename":"one.txt"`,
		"files/" + one.ID + "/content": "The first.",
		"files?limit=1":                `"has_more":true`,
		"files?order=asc":              `"first_id":"` + one.ID,
		"files?after=" + two.ID:        `"data":[{"id":"` + one.ID,
		"files?purpose=vision":         `"data":[]`,
	} {
		if code, text := w.send(http.MethodGet, path, ""); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, text := w.send(http.MethodDelete, "files/"+one.ID, ""); code != http.StatusOK || !strings.Contains(text, `"deleted":true`) {
		t.Errorf("%d %s", code, text)
	}
	w.refused(http.MethodGet, "files/"+one.ID+"/content", "", "not found")
	w.refused(http.MethodDelete, "files/"+one.ID, "", "not found")
	w.refused(http.MethodPost, "responses", ask, "input[0].content[1].file_id")
	w.refused(http.MethodPost, "responses", strings.Replace(ask, one.ID, "file-of-the-operator", 1), "not found")
	w.refused(http.MethodGet, "files/"+strings.ToUpper(two.ID), "", "not found")
	if _, text := w.send(http.MethodGet, "files", ""); strings.Contains(text, one.ID) || !strings.Contains(text, two.ID) {
		t.Error(text)
	}
	w.same(made)
}

// What a request names counts with what all requests may have together, until it is done. V5
func TestFilesHeld(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", nil)
	one := w.uploaded("one.txt", strings.Repeat("x", 3000))
	var held atomic.Int64
	s := &server.Server{Backend: w.b}
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(out, r.WithContext(server.WithHold(r.Context(), func(ctx context.Context, n int64) error {
			if held.Load()+n > 5000 {
				return &server.Error{Status: http.StatusServiceUnavailable, Message: "Full."}
			}
			held.Add(n)
			context.AfterFunc(ctx, func() { held.Add(-n) })
			return nil
		})))
	}))
	defer s.Close()
	defer front.Close()
	defer front.CloseClientConnections()
	w.base = front.URL + "/v1"
	part := `{"type":"input_file","file_id":"` + one.ID + `"}`
	ask := func(parts string) string { return `{"model":"it","input":[{"role":"user","content":[` + parts + `]}]}` }
	w.create(ask(part))
	for held.Load() != 0 {
		runtime.Gosched()
	}
	if code, text := w.send(http.MethodPost, "responses", ask(part+","+part)); code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", code, text)
	}
	for held.Load() != 0 {
		runtime.Gosched()
	}
}

// A form without what a file needs is refused by name.
func TestUploadRefused(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", nil)
	for _, test := range []struct {
		name, content string
		fields        map[string]string
		want          string
	}{
		{"", "", map[string]string{"purpose": "user_data"}, "'file'"},
		{"a", "x", nil, "'purpose'"},
		{"a", "x", map[string]string{"purpose": "batch"}, "'batch'"},
		{"a", "", map[string]string{"purpose": "user_data"}, "empty"},
		{"a\xff", "x", map[string]string{"purpose": "user_data"}, "UTF-8"},
		{strings.Repeat("a", 256), "x", map[string]string{"purpose": "user_data"}, "255 bytes"},
		{"a", "x", map[string]string{"purpose": strings.Repeat("user_data", 1<<10)}, "purpose"},
		{"a", "x", map[string]string{"purpose": "user_data", "\xff": "y"}, "Unknown parameter"},
		{"a", "x", map[string]string{"purpose": "user_data", "other": "y"}, "'other'"},
		{"a", "x", map[string]string{"purpose": "user_data", "expires_after[anchor]": "now"}, "expires_after.anchor"},
		{"a", "x", map[string]string{"purpose": "user_data", "expires_after[seconds]": "1"}, "expires_after.seconds"},
		{"a", "x", map[string]string{"purpose": "user_data", "expires_after[anchor]": "created_at"}, "Missing required parameter: 'expires_after.seconds'"},
	} {
		if code, text := w.upload(test.name, test.content, test.fields); code != http.StatusBadRequest || !strings.Contains(text, test.want) {
			t.Errorf("%v: %d %s", test, code, text)
		}
	}
	w.refused(http.MethodPost, "files", `{}`, "multipart/form-data")
	w.refused(http.MethodPost, "vector_stores", `{}`, "vector_stores")
}

// A file that another server is writing is not taken for an old one.
func TestSweepOfFiles(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", nil)
	const begun = "api-file-begun"
	if err := w.b.Store.Create(t.Context(), session.Info{ID: begun, Owner: w.b.Owner, Tags: []string{"responses-file", "responses-file-expires"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := alone(t, w.dir).Unfinished(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := w.b.Store.Info(t.Context(), begun); err != nil {
		t.Error(err)
	}
}

// Files belong to a project, and those that expire are removed. V3
func TestFilesApart(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", func(b *agents.Backend) { b.Owner = "red" })
	f := w.uploaded("a.txt", "x")
	blue := alone(t, w.dir)
	blue.Owner = "blue"
	if _, err := blue.File(t.Context(), f.ID); !errors.Is(err, server.ErrNotFound) {
		t.Error(err)
	}
	if err := blue.DeleteFile(t.Context(), f.ID); !errors.Is(err, server.ErrNotFound) {
		t.Error(err)
	}
	old, err := blue.AddFile(t.Context(), server.File{Name: "b", Purpose: "vision", Expires: time.Now().Unix() - 1}, []byte("y"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blue.OpenFile(t.Context(), old.ID); !errors.Is(err, server.ErrNotFound) {
		t.Error(err)
	}
	if _, err := blue.Unfinished(t.Context()); err != nil {
		t.Error(err)
	}
	for got, err := range blue.Files(t.Context()) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A form with a field twice is refused: one of the two would be lost.
func TestFileTwice(t *testing.T) {
	w := serving(t, "", "turn\n  say Hi.\n", nil)
	for _, twice := range []string{"file", "purpose"} {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		for _, field := range []string{"purpose", "file", twice} {
			create := form.CreateFormField
			if field == "file" {
				create = func(field string) (io.Writer, error) { return form.CreateFormFile(field, "a.txt") }
			}
			part, err := create(field)
			if err == nil {
				_, err = io.WriteString(part, "user_data")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := form.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+"/files", &body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", form.FormDataContentType())
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), `"param": "`+twice+`"`) {
			t.Errorf("%s: %d %s %v", twice, resp.StatusCode, text, err)
		}
	}
}
