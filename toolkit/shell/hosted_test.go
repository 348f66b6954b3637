// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

// hostedKit runs calls of one of the API's own tools.
func hostedKit(t *testing.T, kind item.Type, make func(*files.Files) (tool.Tool, error)) (*kittest.Kit, func(arguments string) tool.Outcome) {
	t.Helper()
	k := kittest.New(t)
	k.Add(make(k.Files))
	return k, func(arguments string) tool.Outcome {
		return k.Set.Invoke(t.Context(), tool.Call{Kind: kind, Name: kind.Tool(), Arguments: arguments}, output.Policy{})
	}
}

// A2: the API's own shell runs each command line, tells of each how it ended, and
// keeps the limits of the call.
func TestShellTool(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell: this test is skipped")
	}
	k, call := hostedKit(t, item.TypeShellCall, func(f *files.Files) (tool.Tool, error) { return APITool(f, Options{}) })
	k.Write("f", "text\n")
	o := call(`{"commands":["cat f","echo oops >&2; exit 3"],"max_output_length":4096}`)
	late := call(`{"commands":["sleep 60"],"timeout_ms":100}`)
	if o.Failed || late.Failed {
		t.Fatalf("%+v\n%+v", o, late)
	}
	var got []string
	for _, c := range append(o.Commands, late.Commands...) {
		code := int64(-1)
		if c.Outcome.ExitCode != nil {
			code = *c.Outcome.ExitCode
		}
		got = append(got, fmt.Sprintf("%s %d %q %q", c.Outcome.Type, code, c.Stdout, c.Stderr))
	}
	if diff := cmp.Diff([]string{`exit 0 "text\n" ""`, `exit 3 "" "oops\n"`, `timeout -1 "" ""`}, got); diff != "" {
		t.Error(diff)
	}
	want := "$ cat f\ntext\n[exit code 0]\n$ echo oops >&2; exit 3\nstderr:\noops\n[the command failed with exit code 3]\n"
	if o.Content.Text != want {
		t.Errorf("%q, want %q", o.Content.Text, want)
	}
	for arguments, says := range map[string]string{
		`{"commands":[]}`:                            "there are no commands",
		`{"commands":["ls"],"user":"root"}`:          "another user",
		`{"commands":["ls"],"env":{"A":"b"}}`:        "variables cannot be set",
		`{"commands":["ls"],"timeout_ms":-1}`:        "negative",
		`{"commands":["ls"],"commands":["rm x"]}`:    "duplicate object member name",
		`{"commands":["ls"],"Com_mands":["rm x"]}`:   "duplicate object member name",
		`{"Com_mands":["ls"]}`:                       "in two ways",
		`{"commands":["ls"],"timeout-ms":1}`:         "in two ways",
		`{"commands":"ls"}`:                          "cannot be read",
		`{"commands":["yes"],"max_output_length":1}`: "",
	} {
		if o := call(arguments); says != "" && (!o.Failed || !strings.Contains(o.Error, says)) {
			t.Errorf("%s: %q", arguments, o.Content.Display())
		} else if says == "" && len(o.Content.Text) > output.MinBytes {
			t.Errorf("%s: %d bytes", arguments, len(o.Content.Text))
		}
	}
}

// A2: local_shell runs a list that no shell reads.
func TestLocalShellTool(t *testing.T) {
	k, call := hostedKit(t, item.TypeLocalShellCall, func(f *files.Files) (tool.Tool, error) { return APILocalTool(f, Options{}) })
	k.Write("sub/f", "text\n")
	if o := call(`{"type":"exec","command":["echo","$HOME;ls"],"env":{}}`); o.Failed || o.Content.Text != "$HOME;ls\n" {
		t.Errorf("%+v", o)
	}
	if o := call(`{"type":"exec","command":["ls"],"env":{},"working_directory":"sub"}`); o.Failed || o.Content.Text != "f\n" {
		t.Errorf("%+v", o)
	}
	if o := call(`{"command":["ls"],"working_directory":"/"}`); !o.Failed || !strings.Contains(o.Content.Text, "is outside of") {
		t.Errorf("%+v", o)
	}
	if o := call(`{"command":["no-such-program"]}`); !o.Failed || !strings.Contains(o.Error, "cannot run") {
		t.Errorf("%+v", o)
	}
}

// A2 A5: deny over ask over allow, over all the commands of a call.
func TestShellToolPolicy(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell: this test is skipped")
	}
	k := kittest.New(t)
	own, err := APITool(k.Files, Options{Policy: Policy{Allow: []Rule{{"ls"}, {"cat"}}, Deny: []Rule{{"rm"}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := own.(*shell)
	for arguments, want := range map[string]session.Verdict{
		`{"commands":["ls a","cat f"]}`:       session.Allow,
		`{"commands":["ls a","date"]}`:        "",
		`{"commands":["ls a","env rm -r x"]}`: session.Deny,
		`{"commands":["date","rm x","ls"]}`:   session.Deny,
		`{"commands":[]}`:                     "",
	} {
		if got, why := s.Approval(tool.Call{Name: "shell", Arguments: arguments}, nil); got != want {
			t.Errorf("%s: %q (%s), want %q", arguments, got, why, want)
		}
	}
	rules := s.Suggest(tool.Call{Name: "shell", Arguments: `{"commands":["ls a","date"]}`})
	if len(rules) != 2 || rules[1].Prefix[0] != "date" || rules[1].Tool != "shell" {
		t.Errorf("%+v", rules)
	}
	if got, _ := s.Approval(tool.Call{Name: "shell", Arguments: `{"commands":["date"]}`}, rules); got != session.Allow {
		t.Error(got)
	}
	set, err := tool.NewSet(own)
	if err != nil {
		t.Fatal(err)
	}
	o := set.Invoke(t.Context(), tool.Call{Kind: item.TypeShellCall, Name: "shell", Arguments: `{"commands":["rm f"]}`}, output.Policy{})
	if !o.Failed || !strings.Contains(o.Error, "was refused and not run") {
		t.Errorf("%+v", o)
	}
}
