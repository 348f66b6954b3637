// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

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

// TestChatAttachRemote proves that a chat at another computer shows a session through a server, answers
// about its calls, says something to it and leaves it; and that it says that the server is gone, and goes
// on when it is back, with every row once. J2 V2
func TestChatAttachRemote(t *testing.T) {
	t.Parallel()
	dir, one := chatter(t, "again\nturn\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\nturn\n  say It was: {{if failed -1}}{{error -1}}{{else}}done{{end}}\n", "--session work --owner shop")
	env := []string{"XDG_DATA_HOME=" + dir + "/data"}
	o := programEnv(t, env, "keys", "create", "lead", "--project", "shop", "--scopes", "sessions,approve")
	key := strings.TrimSpace(o.out)
	if o.code != exitOK || !strings.HasPrefix(key, "antiphon_") {
		t.Fatalf("%d %s%s", o.code, o.out, o.err)
	}
	serve := func(listen string) *terminalOf {
		return openTerminal(t, dir, "export XDG_DATA_HOME="+dir+"/data; antiphon serve agent.md --store s.db --listen "+listen)
	}
	server := serve("127.0.0.1:0")
	at := strings.TrimSuffix(listening.FindString(server.until(t, "/v1/responses")), "/v1")

	one.keys(t, "go", "Enter")
	one.until(t, "run it?")
	attach := "antiphon chat --attach " + at + "/work"
	two := openTerminal(t, t.TempDir(), "export XDG_DATA_HOME="+dir+"/elsewhere ANTIPHON_SERVER_KEY="+key+"; "+attach)
	two.until(t, "attached to "+at+"/work")
	two.until(t, "run it?")
	two.answers(t, "y", "It was: done")
	one.until(t, "answered by lead (session route): yes")
	one.until(t, "It was: done")

	two.does(t, "more", "(said: ")
	asked := func(screen string) bool { return strings.Count(screen, "run it?") == 2 }
	one.untilThat(t, "the second question", asked)
	two.untilThat(t, "the second question", asked)
	server.keys(t, "C-c")
	two.until(t, "the connection to "+strings.TrimPrefix(at, "http://")+" is lost")
	one.answers(t, "n not there", "It was: The call was refused by the person in charge: not there")
	server.until(t, "[exit code 0]")
	serve(strings.TrimPrefix(at, "http://")).until(t, "/v1/responses")
	two.until(t, "connected to "+strings.TrimPrefix(at, "http://")+" again")
	two.until(t, "answered by ")
	screen := two.until(t, "It was: The call was refused by the person in charge: not there")
	if strings.Count(screen, "It was: done") != 1 || strings.Count(screen, "It was: The call") != 1 {
		t.Errorf("rows are lost or doubled:\n%s", screen)
	}
	two.does(t, "/take", "!! /take needs the store of the session")
	two.keys(t, "C-d")
	two.until(t, "left "+at+"/work; "+attach+" returns")
	two.until(t, "[exit code 0]")
	one.keys(t, "C-d")
	one.until(t, "[exit code 0]")
}

// TestFilesForServers proves that a session at a server gets the files that a prompt names; that one outside of the folder
// is asked about first, and is not sent at once; and that a word behind an @ that names no file is text.
func TestFilesForServers(t *testing.T) {
	waves := read(t, filepath.Join(examplesDir, "tour", "waves.png"))
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
