// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/rehearsal"
)

// standIn is an endpoint that is not a rehearsal as far as the program knows.
func standIn(t *testing.T) string {
	t.Helper()
	base, stop, err := new(rehearsal.Server).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return base
}

// TestSaysKnownServer: the line names the kind of server that answered the session
// before, which the first request is made for; another session is not asked so. U1
func TestSaysKnownServer(t *testing.T) {
	for _, api := range []string{"responses", "chat"} {
		dir := t.TempDir()
		file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
		l := agenttest.StartLocal(t, &agenttest.Local{Server: "llama.cpp", Text: "It is so."})
		run := func(name, prompt string) string {
			o := program(t, "run", file, prompt, "--model", "m", "--base-url", l.URL, "--api", api, "--session", name, "--store", filepath.Join(dir, "s.db"))
			if o.code != 0 {
				t.Errorf("exit code %d: %s", o.code, o.err)
			}
			return o.err
		}
		for i, step := range []struct{ session, profile string }{{"a", "careful"}, {"a", "llama.cpp"}, {"b", "careful"}, {"a", "llama.cpp"}} {
			if said := run(step.session, "And now?"); !strings.Contains(said, " answers (profile "+step.profile) {
				t.Errorf("%s, run %d: no %s in\n%s", api, i, step.profile, said)
			}
		}
	}
}

// TestEmptyNames: a name that is given and empty, as an unset variable of a script
// leaves it, is an error. Nobody else answers in its place, nothing is kept
// elsewhere, and nothing is sent. U1
func TestEmptyNames(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
	empty := write(t, filepath.Join(dir, "empty.md"), "<config model=\"\"/>\n<user>Hello?</user>\n")
	store := filepath.Join(dir, "s.db")
	key := "OPENAI_API_KEY=" + testKey
	for name, c := range map[string]struct {
		env, args []string
		want      string
	}{
		"--model":                {nil, []string{"run", file, "--model", ""}, "--model is empty"},
		"--model=":               {[]string{key}, []string{"run", file, "--model="}, "--model is empty"},
		"--base-url":             {[]string{key}, []string{"run", file, "--model", "m", "--base-url", " "}, "--base-url is empty"},
		"--session":              {nil, []string{"run", file, "--rehearsal", "--session", "", "--store", store}, "--session needs a name, and this one is empty"},
		"--out":                  {nil, []string{"run", file, "--rehearsal", "--out", ""}, "--out is empty"},
		"--store-key":            {nil, []string{"sessions", "list", "--store", store, "--store-key", ""}, "--store-key is empty"},
		"a file's model":         {nil, []string{"run", empty}, "<config>: model is empty"},
		"OPENAI_MODEL":           {[]string{"OPENAI_MODEL="}, []string{"run", file}, "OPENAI_MODEL is empty"},
		"OPENAI_MODEL with key":  {[]string{"OPENAI_MODEL=", key}, []string{"run", file}, "OPENAI_MODEL is empty"},
		"no model, with key":     {[]string{key}, []string{"run", file}, `no model is configured: give --model NAME, set OPENAI_MODEL, or write <config model="NAME"/> in the file`},
		"OPENAI_BASE_URL":        {[]string{"OPENAI_BASE_URL=", key}, []string{"run", file, "--model", "m"}, "OPENAI_BASE_URL is empty"},
		"OPENAI_BASE_URL, alone": {[]string{"OPENAI_BASE_URL="}, []string{"run", file}, "OPENAI_BASE_URL is empty"},
		"ANTIPHON_STORE_KEY":     {[]string{"ANTIPHON_STORE_KEY="}, []string{"run", file, "--rehearsal", "--session", "s", "--store", store}, "ANTIPHON_STORE_KEY is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			o := programEnv(t, c.env, c.args...)
			if o.code != exitUsage || o.out != "" || !strings.Contains(o.err, c.want) {
				t.Errorf("exit code %d, output %q, want %q in\n%s", o.code, o.out, c.want, o.err)
			}
			if _, err := os.Stat(store); err == nil {
				t.Error("a store was made")
			}
		})
	}
	unused := []string{"OPENAI_MODEL=", "OPENAI_BASE_URL="}
	if o := programEnv(t, unused, "run", file, "--model", "m", "--base-url", standIn(t)); o.code != exitOK {
		t.Errorf("variables that flags take the place of: exit code %d\n%s", o.code, o.err)
	}
	if o := programEnv(t, unused, "run", file, "--rehearsal"); o.code != exitOK {
		t.Errorf("variables that the rehearsal does not read: exit code %d\n%s", o.code, o.err)
	}
}

// TestSaysWhoAnswers: one line names model, host and profile. A session that
// holds the rehearsal's words warns before a real model reads them. U1
func TestSaysWhoAnswers(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
	base := standIn(t)
	for _, keep := range [][]string{
		{"--session", "work", "--store", filepath.Join(dir, "s.db")},
		{"--out", filepath.Join(dir, "talk.md")},
	} {
		if o := program(t, append([]string{"run", file, "--rehearsal"}, keep...)...); o.code != 0 || strings.Contains(o.err, "!!") {
			t.Fatalf("exit code %d\n%s", o.code, o.err)
		}
		o := program(t, append([]string{"run", file, "And now?", "--model", "m", "--base-url", base}, keep...)...)
		host := strings.TrimSuffix(strings.TrimPrefix(base, "http://"), "/v1")
		if want := "antiphon: m at " + host + " answers (profile careful)\n"; o.code != 0 || strings.Count(o.err, want) != 1 {
			t.Errorf("exit code %d, want once %q:\n%s", o.code, want, o.err)
		}
		if want := "!! the rehearsal model said 1 item of this conversation; m reads that as its own words."; !strings.Contains(o.err, want) {
			t.Errorf("no %q:\n%s", want, o.err)
		}
	}
}

// The error for profiles that are not there says who named the file.
func TestProfilesNotThere(t *testing.T) {
	agent := reader(t)
	for from, o := range map[string]outcome{
		"--profiles":         program(t, "run", agent, "--profiles", "nowhere.json"),
		"$ANTIPHON_PROFILES": programEnv(t, []string{"ANTIPHON_PROFILES=nowhere.json"}, "run", agent),
	} {
		if o.code != exitUsage || !strings.HasPrefix(o.err, "antiphon: "+from+" nowhere.json: ") {
			t.Errorf("%s: exit code %d, %s", from, o.code, o.err)
		}
	}
}

// U1: what cannot be a key is not sent anywhere, nor shown.
func TestNotAKey(t *testing.T) {
	srv := agenttest.NewServer(t)
	agent := write(t, filepath.Join(t.TempDir(), "agent.md"), "<config model=\"m\"/>\n<user>x</user>\n")
	for key, want := range map[string]string{
		"sk-…":              "contains …, so it is an example or a part of a key",
		`"sk-abcdefgh"`:     "is in quotes, which are not part of a key",
		"sk-abc\u00a0defgh": "has a character at byte 7 that no key has",
	} {
		o := programEnv(t, []string{"OPENAI_API_KEY=" + key}, "run", agent, "--base-url", srv.URL)
		if o.code != exitUsage || o.err != "antiphon: OPENAI_API_KEY "+want+"; copy the key again. Nothing was sent\n" {
			t.Errorf("%d %s", o.code, o.err)
		}
	}
	if n := len(srv.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}
