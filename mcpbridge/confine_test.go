// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/sandbox"
)

// A11: a server starts with the profile that was chosen, or not at all. Only where nobody chose
// one, a system without a sandbox starts it as it is.
func TestServerWithoutSandbox(t *testing.T) {
	mcpbridge.WithoutSandbox(t)
	r := connect(t, mcpbridge.Options{}, program("sdk"))
	r.want("echo", `{"text":"a"}`, "a")
	chosen := program("sdk")
	chosen.Sandbox = func(folders ...string) sandbox.Profile {
		p := sandbox.Workspace(folders...)
		p.Without = []sandbox.Part{sandbox.Landlock, sandbox.Namespaces, sandbox.Seccomp, sandbox.Seatbelt}
		return p
	}
	b, err := mcpbridge.Connect(t.Context(), mcpbridge.Hurried(mcpbridge.Options{}), chosen)
	if err == nil || !strings.Contains(err.Error(), sandbox.ErrUnavailable.Error()) {
		t.Error(err)
	}
	if b != nil {
		_ = b.Close()
	}
}

// A server's profile may share the memory of its lists with others, which are started meanwhile.
func TestServersShareAProfile(t *testing.T) {
	shared := append(make([]string, 0, 64), t.TempDir())
	s := program("sdk")
	s.Sandbox = func(folders ...string) sandbox.Profile {
		p := sandbox.Network(folders...)
		p.Read = shared
		return p
	}
	r := connect(t, mcpbridge.Options{}, s)
	r.want("echo", `{"text":"a"}`, "a")
	if more := shared[:2]; more[1] != "" {
		t.Errorf("%q was written behind the list of the caller", more[1])
	}
}

// A11: of what a server's command line names, it reads the folder of the script alone, and
// what links led to when that was decided, also when it changes a link and starts again.
func TestServerReadsWhatItNames(t *testing.T) {
	if p := sandbox.Network(); p.Supported() != nil {
		t.Skip(p.Supported())
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, outside := filepath.Join(base, "work"), filepath.Join(base, "outside")
	for name, text := range map[string]string{
		"work/server.sh":  "cat $OUTSIDE/* > got-$RUN 2>&1\nln -sf $OUTSIDE/token later.json\n",
		"work/later.json": "{}", "outside/named": "NAMED", "outside/token": "TOKEN",
	} {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside/named", dir+"/data.json"); err != nil {
		t.Fatal(err)
	}
	s := mcpbridge.Server{Name: "s", Dir: dir, Command: []string{"sh", "server.sh", "data.json", "later.json"}, Optional: true, Env: map[string]string{"OUTSIDE": outside}}
	want := []string{dir + "/server.sh", dir, outside + "/named", dir + "/later.json"}
	if dir, list := s.Dir, s.Hold(); !slices.Contains(list, outside+"/named") || slices.ContainsFunc(list, func(p string) bool { return !slices.Contains(want, p) }) {
		t.Errorf("%s: %q", dir, list)
	}
	for _, run := range []string{"1", "2"} {
		s.Env["RUN"] = run
		b, err := mcpbridge.Connect(t.Context(), mcpbridge.Hurried(mcpbridge.Options{}), s)
		if err != nil {
			t.Fatal(err)
		}
		_ = b.Close()
		if text, err := os.ReadFile(dir + "/got-" + run); err != nil || strings.Contains(string(text), "TOKEN") {
			t.Errorf("start %s: %q %v", run, text, err)
		}
	}
	if to, _ := os.Readlink(dir + "/later.json"); to != outside+"/token" {
		t.Error("the server has not changed the link")
	}
}
