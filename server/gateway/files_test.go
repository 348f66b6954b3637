// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/server/internal/kept"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// uploaded uploads a file, and returns its id.
func (w *world) uploaded(name, content string) string {
	w.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	err := form.WriteField("purpose", "user_data")
	if err == nil {
		var part io.Writer
		if part, err = form.CreateFormFile("file", name); err == nil {
			_, err = io.WriteString(part, content)
		}
	}
	if err = errors.Join(err, form.Close()); err != nil {
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
	var f server.File
	if err = errors.Join(err, json.Unmarshal(text, &f)); err != nil || resp.StatusCode != http.StatusOK || f.ID == "" {
		w.t.Fatalf("%d %s %v", resp.StatusCode, text, err)
	}
	return f.ID
}

// naming is a request that names a file.
func naming(id string) string {
	return `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"Read."},{"type":"input_file","file_id":"` + id + `"}]}]}`
}

// An upstream receives the content of a file in the place of its id, which it does not know. What was asked stays when the
// file is deleted, also for what continues it, and after a restart.
func TestFiles(t *testing.T) {
	for name, chat := range map[string]bool{"responses": false, "chat": true} {
		t.Run(name, func(t *testing.T) {
			up, place := agenttest.NewServer(t), filepath.Join(t.TempDir(), "s.db")
			asked := func() string { return string(up.Requests()[len(up.Requests())-1].Body) }
			up.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("Yes.")) })
			base := up.URL
			if chat {
				local := agenttest.StartLocal(t, &agenttest.Local{Text: "Yes."})
				base, asked = local.URL, func() string { return string(local.Requests()[len(local.Requests())-1].Body) }
			}
			w, end := onDiskAt(t, place, open(t, base, chat))
			id := w.uploaded("one.txt", "The first.")
			const content = "data:text/plain;base64,VGhlIGZpcnN0Lg=="
			made := w.create(naming(id))
			if got := asked(); !strings.Contains(got, content) || strings.Contains(got, id) || !strings.Contains(got, "one.txt") {
				t.Errorf("asked %s", got)
			}
			if code, _, text := w.ask(http.MethodDelete, "/files/"+id, ""); code != http.StatusOK || !strings.Contains(text, `"deleted":true`) {
				t.Errorf("%d %s", code, text)
			}
			end()
			w, end = onDiskAt(t, place, open(t, base, chat))
			defer end()
			w.create(`{"model":"m","input":"Again.","previous_response_id":"` + made.ID + `"}`)
			if got := asked(); !strings.Contains(got, content) {
				t.Errorf("asked %s", got)
			}
			if _, refused := w.refused(naming(id), http.StatusBadRequest); text(refused, "param") != "input[0]" || !strings.Contains(text(refused, "message"), "file_id") {
				t.Errorf("%s", refused.JSON())
			}
			if code, _, text := w.ask(http.MethodGet, "/files/"+id+"/content", ""); code != http.StatusNotFound {
				t.Errorf("%d %s", code, text)
			}
		})
	}
}

// Files can be listed and read, and are in what is added to a conversation.
func TestFilesListed(t *testing.T) {
	up := says(t, "Yes.")
	w, end := onDisk(t, filepath.Join(t.TempDir(), "s.db"), up)
	defer end()
	one, two := w.uploaded("one.txt", "The first."), w.uploaded("two.txt", "The second.")
	for path, want := range map[string]string{
		"/files/" + one:              `"filename":"one.txt"`,
		"/files/" + one + "/content": "The first.",
		"/files?limit=1":             `"has_more":true`,
		"/files?after=" + two:        `"data":[{"id":"` + one,
	} {
		if code, _, text := w.ask(http.MethodGet, path, ""); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	for _, id := range []string{"file-of-the-operator", strings.ToUpper(two), "file-../" + two} {
		if code, _, text := w.ask(http.MethodGet, "/files/"+id, ""); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", id, code, text)
		}
	}
	part := func(id string) string {
		return `{"items":[{"role":"user","content":[{"type":"input_file","file_id":"` + id + `"}]}]}`
	}
	_, _, body := w.ask(http.MethodPost, "/conversations", part(one))
	talk, err := item.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	id := text(talk, "id")
	if code, _, text := w.ask(http.MethodPost, "/conversations/"+id+"/items", part(two)); code != http.StatusOK || !strings.Contains(text, "VGhlIHNlY29uZC4=") {
		t.Errorf("%d %s", code, text)
	}
	w.create(`{"model":"m","input":"What?","conversation":"` + id + `"}`)
	if got := string(up.Requests()[0].Body); !strings.Contains(got, "VGhlIGZpcnN0Lg==") || !strings.Contains(got, "VGhlIHNlY29uZC4=") {
		t.Errorf("asked %s", got)
	}
}

// Ids of the operator's account pass if that is allowed, and those of files here have their content.
func TestFilesBesideAccount(t *testing.T) {
	up := says(t, "Yes.")
	w, end := onDisk(t, filepath.Join(t.TempDir(), "s.db"), up)
	defer end()
	w.b.AccountIDs = true
	w.create(naming("file-abc"))
	w.create(naming(w.uploaded("one.txt", "The first.")))
	if a, b := string(up.Requests()[0].Body), string(up.Requests()[1].Body); !strings.Contains(a, "file-abc") || !strings.Contains(b, "VGhlIGZpcnN0Lg==") {
		t.Errorf("asked %s\n%s", a, b)
	}
}

// Files belong to a project, and those that expire are removed. V3
func TestFilesOfProjects(t *testing.T) {
	in, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	red, blue := &gateway.Store{In: in, Owner: "red"}, &gateway.Store{In: in, Owner: "blue"}
	f, err := red.AddFile(t.Context(), server.File{Name: "a", Purpose: "vision"}, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	_, info := blue.File(t.Context(), f.ID)
	_, content := blue.OpenFile(t.Context(), f.ID)
	for _, err := range []error{info, content, blue.DeleteFile(t.Context(), f.ID)} {
		if !errors.Is(err, server.ErrNotFound) {
			t.Error(err)
		}
	}
	for got, err := range blue.Files(t.Context()) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := errors.Join(red.Close(), blue.Close()); err != nil {
		t.Error(err)
	}
	gone, err := red.AddFile(t.Context(), server.File{Name: "b", Purpose: "vision", Expires: time.Now().Unix() - 1}, []byte("y"))
	if err != nil {
		t.Fatal(err)
	}
	expired, _ := kept.FileSession(gone.ID)
	swept := &backdated{Store: in, old: expired, deleted: make(chan struct{})}
	old := &gateway.Store{In: swept, Owner: "red"}
	if _, err := old.AddFile(t.Context(), server.File{Name: "c", Purpose: "vision"}, []byte("z")); err != nil { // sweeps
		t.Fatal(err)
	}
	select {
	case <-swept.deleted:
	case <-time.After(time.Minute):
		t.Fatal("the file that has expired is not removed")
	}
	if err := errors.Join(red.Close(), old.Close()); err != nil {
		t.Error(err)
	}
	left := 0
	for info, err := range in.List(t.Context(), session.Query{Archived: true}) {
		if left++; err != nil || strings.HasSuffix(info.ID, strings.TrimPrefix(gone.ID, "file-")) {
			t.Errorf("%+v %v", info, err)
		}
	}
	if left != 2 {
		t.Errorf("%d files are left", left)
	}
}

// What a request in the background names counts once, as long as the response is made. V5
func TestFilesHeld(t *testing.T) {
	stall := make(chan struct{})
	up := agenttest.NewServer(t)
	up.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Completed(item.Assistant("Yes.")).StallAfter(2, stall)
	})
	w, end := onDisk(t, filepath.Join(t.TempDir(), "s.db"), up)
	defer end()
	var taken atomic.Int64
	given := make(chan int64, 10)
	w.wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(out, r.WithContext(server.WithHold(r.Context(), func(ctx context.Context, n int64) error {
				taken.Add(n)
				context.AfterFunc(ctx, func() { given <- n })
				return nil
			})))
		})
	})
	made := w.create(strings.Replace(naming(w.uploaded("one.txt", strings.Repeat("x", 3000))), "{", `{"background":true,`, 1))
	if code, _, text := w.ask(http.MethodGet, "/responses/"+made.ID, ""); code != http.StatusOK { // the first request has ended
		t.Errorf("%d %s", code, text)
	}
	if len(given) > 0 {
		t.Error("the memory is given back before the response has ended")
	}
	close(stall)
	if got, err := w.typed().Wait(t.Context(), made.ID); err != nil || got.Text() != "Yes." {
		t.Errorf("%v %v", got, err)
	}
	if n := <-given; n != 4000 || taken.Load() != n {
		t.Errorf("%d bytes are given back of %d", n, taken.Load())
	}
}

// A file that is no image is refused where it is named as one, like data that is none, and not added to a
// conversation whose requests an upstream would refuse from then on.
func TestFilesNoImage(t *testing.T) {
	w, end := onDisk(t, filepath.Join(t.TempDir(), "s.db"), says(t, "Yes."))
	defer end()
	_, _, body := w.ask(http.MethodPost, "/conversations", "{}")
	talk, err := item.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"notes.txt": "The first.", "notes.png": "The first.", "cut.png": "\x89PNG"} {
		list := `[{"role":"user","content":[{"type":"input_text","text":"Look."},{"type":"input_image","detail":"auto","file_id":"` + w.uploaded(name, content) + `"}]}]}`
		if _, got := w.refused(`{"model":"m","input":`+list, http.StatusBadRequest); text(got, "code") != "invalid_image_format" || text(got, "param") != "input[0].content[1].file_id" {
			t.Errorf("%s: %s", name, got.JSON())
		}
		for _, path := range []string{"/conversations", "/conversations/" + text(talk, "id") + "/items"} {
			code, _, text := w.ask(http.MethodPost, path, `{"items":`+list)
			if code != http.StatusBadRequest || !strings.Contains(text, "invalid_image_format") || !strings.Contains(text, "items[0].content[1].file_id") {
				t.Errorf("%s at %s: %d %s", name, path, code, text)
			}
		}
	}
	if code, _, text := w.ask(http.MethodGet, "/conversations/"+text(talk, "id")+"/items", ""); code != http.StatusOK || !strings.Contains(text, `"data":[]`) {
		t.Errorf("%d %s", code, text)
	}
}

// A picture of a screen may be an uploaded file, too. What cannot be one is refused without that advice.
func TestFilesScreenshot(t *testing.T) {
	w, end := onDisk(t, filepath.Join(t.TempDir(), "s.db"), says(t, "Yes."))
	defer end()
	list := func(id string) string {
		return `[{"type":"computer_call","id":"cu_1","call_id":"c1","action":{"type":"screenshot"},"pending_safety_checks":[],"status":"completed"},` +
			`{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","file_id":"` + id + `"}}]}`
	}
	shot := func(id string) string { return `{"model":"m","input":` + list(id) }
	screen := w.uploaded("screen.png", "\x89PNG\r\n\x1a\n")
	w.create(shot(screen))
	_, _, body := w.ask(http.MethodPost, "/conversations", "{}")
	talk, err := item.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if code, _, text := w.ask(http.MethodPost, "/conversations/"+text(talk, "id")+"/items", `{"items":`+list(screen)); code != http.StatusOK || !strings.Contains(text, "data:image/png;base64,iVBORw0KGgo=") || strings.Contains(text, screen) {
		t.Errorf("%d %s", code, text)
	}
	if _, got := w.refused(shot(w.uploaded("notes.txt", "x")), http.StatusBadRequest); text(got, "param") != "input[1].output.file_id" {
		t.Errorf("%s", got.JSON())
	}
	for body, advises := range map[string]bool{
		shot("file-abc"):   true,
		naming("file-abc"): true,
		`{"model":"m","input":"a","prompt":{"id":"pmpt_1"}}`:                                     false,
		`{"model":"m","input":"a","tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}`: false,
		`{"model":"m","input":[{"type":"tomorrows_item","file_id":"file-abc"}]}`:                 false,
	} {
		_, got := w.refused(body, http.StatusBadRequest)
		if message := text(got, "message"); strings.Contains(message, "uploaded") != advises || !strings.Contains(message, "--account-ids") {
			t.Errorf("%s: %s", body, message)
		}
	}
}

// asked is a store that counts what is asked for files.
type asked struct {
	*gateway.Store
	looks, reads atomic.Int64
}

func (c *asked) File(ctx context.Context, id string) (server.File, error) {
	c.looks.Add(1)
	return c.Store.File(ctx, id)
}

func (c *asked) OpenFile(ctx context.Context, id string) (io.ReadCloser, error) {
	c.reads.Add(1)
	return c.Store.OpenFile(ctx, id)
}

// A request that names a file often looks for it once, also if there is none. It cannot name any number of
// files. V5
func TestFilesNamedOften(t *testing.T) {
	in, up := opened(t), says(t, "Yes.")
	keep := &asked{Store: &gateway.Store{In: in}}
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}, AccountIDs: true}}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	defer func() {
		w.end()
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	}()
	names := func(ids ...string) string {
		parts := make([]string, len(ids))
		for i, id := range ids {
			parts[i] = `{"role":"user","content":[{"type":"input_file","file_id":"` + id + `"}]}`
		}
		return `{"model":"m","input":[` + strings.Join(parts, ",") + `]}`
	}
	id := w.uploaded("one.txt", "The first.")
	w.create(names(slices.Repeat([]string{id, "file-abc"}, 1000)...))
	if looks, reads := keep.looks.Load(), keep.reads.Load(); looks != 2 || reads != 1 {
		t.Errorf("%d looks, %d reads", looks, reads)
	}
	if got := string(up.Requests()[0].Body); strings.Count(got, "VGhlIGZpcnN0Lg==") != 1000 || strings.Count(got, "file-abc") != 1000 {
		t.Errorf("asked %.1000s", got)
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("file-%026d", i)
	}
	keep.looks.Store(0)
	if _, got := w.refused(names(many...), http.StatusBadRequest); text(got, "param") != "input[500].content[0].file_id" || keep.looks.Load() != 500 {
		t.Errorf("%d looks: %s", keep.looks.Load(), got.JSON())
	}
}
