// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chat

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/server/sessions"
)

// TestFilesForServers proves that a session at a server gets the files that a prompt names; that one outside of the folder
// is asked about first, and is not sent at once; and that a word behind an @ that names no file is text.
func TestFilesForServers(t *testing.T) {
	waves := read(t, filepath.Join("..", "..", "examples", "tour", "waves.png"))
	d, face, screen := conversing(t, "turn\n  say Yes.\n")
	write(t, "notes.txt", "the notes")
	write(t, "waves.png", waves)
	other := write(t, filepath.Join(t.TempDir(), "other.txt"), "the other")
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	d.who = person.New(strings.NewReader("n\ny\n"), screen)
	src := attach.NewRemote(&sessions.Client{URL: server.URL}, sessions.Session{ID: "s"})
	v := &visitor{t: d, there: src, View: &attach.View{Err: screen, Src: src}}
	for _, text := range []string{"see @notes.txt @waves.png", "and @ann", "see @" + other} {
		if _, err := v.said(t.Context(), text); err != nil || !slices.Contains(face.kept, text) {
			t.Errorf("%s: %v, kept %q:\n%s", text, err, face.kept, screen)
		}
	}
	if err := v.steer(t.Context(), "at once @notes.txt"); err != nil {
		t.Error(err)
	}
	if err := v.steer(t.Context(), "at once @"+other); err == nil || !strings.Contains(err.Error(), "is asked about when the work is over") {
		t.Error(err)
	}
	if _, err := v.said(t.Context(), "now see @"+other); err != nil {
		t.Error(err)
	}
	for i, want := range []string{
		`"input":[{"type":"input_text","text":"see @notes.txt @waves.png"},{"type":"input_text","text":"notes.txt:\n\nthe notes"},{"type":"input_image"`,
		`{"input":"and @ann",`, `{"input":"see @` + other + `",`, `"text":"notes.txt:\n\nthe notes"}]`, `the other"}]`,
	} {
		if len(bodies) != 5 || !strings.Contains(bodies[i], want) {
			t.Fatalf("%d bodies, want %s in %.300q", len(bodies), want, bodies[min(i, len(bodies)-1)])
		}
	}
}
