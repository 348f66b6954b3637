// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// J12: the lines, the page, show and info say which model, endpoint, settings,
// tools, file and program made each turn. A rehearsal is marked.
func TestWhoAnswered(t *testing.T) {
	agent, flags, srv := keeping(t, agenttest.Completed(item.Assistant("It says: a note.")), agenttest.Completed(item.Assistant("More.")), agenttest.Completed(item.Assistant("Once more.")))
	store := flags[5]
	if o := program(t, flags...); o.code != 0 {
		t.Fatal(o.err)
	}
	if o := program(t, append(flags[:len(flags):len(flags)], "--model", "other-model", "more?")...); o.code != 0 {
		t.Fatal(o.err)
	}
	rehearsed := append([]string{"run", agent, "--session", "work", "--store", store}, "--rehearsal", "and now?")
	if o := program(t, rehearsed...); o.code != 0 {
		t.Fatal(o.err)
	}

	folder := t.TempDir()
	lines := filepath.Join(folder, "work.jsonl")
	if o := program(t, "sessions", "--store", store, "export", "work", "--to", "jsonl", "-o", lines); o.code != 0 {
		t.Fatal(o.err)
	}
	hash := session.Fingerprint(read(t, agent))
	wantAll(t, "the lines", read(t, lines),
		`"model":"test-model"`, `"model":"other-model"`, `"endpoint":"`+strings.TrimSuffix(srv.URL, "/"), `"rehearsal":true`,
		`"api":"responses"`, `"profile":`, `"tool_choice":"auto"`, `{"name":"read_file","hash":"`,
		`"files":[{"name":"agent.md","hash":"`+hash, `"program":"antiphon `, `"request_id":"req_`)
	if n := strings.Count(read(t, lines), `"setup"`); n != 3 {
		t.Errorf("the setup is written %d times, not when it changed", n)
	}

	show := program(t, "sessions", "--store", store, "show", "work")
	wantAll(t, "show", show.out, "test-model at http://127.0.0.1", "other-model at", "the rehearsal, not a model", "agent.md")
	info := program(t, "sessions", "--store", store, "info", "work")
	wantAll(t, "info", info.out, "the rehearsal, not a model", "read_file", hash, "reported")
	pageFile := filepath.Join(folder, "work.html")
	if o := program(t, "sessions", "--store", store, "export", "work", "--to", "html", "-o", pageFile); o.code != 0 {
		t.Fatal(o.err)
	}
	wantAll(t, "the page", read(t, pageFile), "Answered by", "test-model at", "other-model at", "the rehearsal, not a model", hash)

	events := program(t, "run", agent, "--base-url", srv.URL, "--json")
	wantAll(t, "--json", events.out, `"kind":"run_started","setup":{"model":"test-model"`)
}

// wantAll reports what a text lacks.
func wantAll(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lack(s) %q:\n%.3000s", what, part, text)
		}
	}
}

// J12: the log, the page, show and --json name the rule that allowed a call and
// where it comes from.
func TestWhoAllowed(t *testing.T) {
	dir := t.TempDir()
	agent := write(t, filepath.Join(dir, "agent.md"), `<config model="m"/>
<tool name="append_to_file" approval="ask"/>
<tool name="read_file"/>
<tool name="read_directory"/>
<user>Go.</user>
`)
	answers := write(t, filepath.Join(dir, "answers.jsonl"), "\n"+`{"tool":"append_to_file","allow":false}`+"\n")
	srv := agenttest.NewServer(t,
		agenttest.Completed(item.Call("c1", "append_to_file", `{"path":"x","content":"y"}`), item.Call("c2", "read_file", `{"path":"agent.md"}`), item.Call("c3", "read_directory", `{}`)),
		agenttest.Completed(item.Assistant("done")))
	store := filepath.Join(dir, "s.db")
	o := program(t, "run", agent, "--session", "work", "--store", store, "--base-url", srv.URL, "--allow", "*_directory", "--approve-from", answers, "--json")
	wantAll(t, "--json", o.out, `"by":"`+answers, `"from":"--approve-from, line 2"`, `"rule":"allow *_directory"`, `"from":"--allow"`, `"rule":"allow what only reads"`)
	show := program(t, "sessions", "--store", store, "show", "work", "--full")
	wantAll(t, "show", show.out, "refused by "+answers+" (--approve-from, line 2)", "allowed by the rule: allow *_directory (--allow)", "allowed by the rule: allow what only reads (default)")
	page := filepath.Join(dir, "work.html")
	if o := program(t, "sessions", "--store", store, "export", "work", "--to", "html", "-o", page); o.code != 0 {
		t.Fatal(o.err)
	}
	wantAll(t, "the page", read(t, page), "allow *_directory (--allow)", "allow what only reads (default)", "(--approve-from, line 2)")
}

// What leaves a session does not tell where somebody keeps their files,
// unless that was asked for.
func TestExportHidesFolders(t *testing.T) {
	agent, flags, _ := keeping(t, agenttest.Completed(item.Assistant("It says: a note.")))
	if o := program(t, flags...); o.code != 0 {
		t.Fatal(o.err)
	}
	for _, form := range []string{"html", "jsonl"} {
		short := program(t, "sessions", "--store", flags[5], "export", "work", "--to", form).out
		if strings.Contains(short, filepath.Dir(agent)) || !strings.Contains(short, "agent.md") {
			t.Errorf("%s: the folder is in it, or the name is not", form)
		}
		if full := program(t, "sessions", "--store", flags[5], "export", "work", "--to", form, "--full-paths").out; !strings.Contains(full, "agent.md") || !strings.Contains(full, filepath.Dir(agent)) {
			t.Errorf("%s --full-paths: no full path", form)
		}
	}
}
