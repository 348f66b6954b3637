// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// A5: a tool whose calls are allowed does not write to the store in use, wherever it is,
// to the transcript, nor to what the program names, without a question.
func TestProtectedStore(t *testing.T) {
	for name, tt := range map[string]struct {
		set     func(c *host.Config, dir string)
		refused int
	}{
		"place": {func(c *host.Config, dir string) { c.Place, c.Session = filepath.Join(dir, "s.db"), "one" }, 3},
		"store": {func(c *host.Config, dir string) {
			s, err := store.Open(t.Context(), filepath.Join(dir, "s.db"), store.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			c.Store, c.Session = s, "two"
		}, 3},
		"transcript": {func(c *host.Config, dir string) { c.Transcript = filepath.Join(dir, "talk.md") }, 3},
	} {
		dir := t.TempDir()
		script := "turn\n"
		for _, name := range []string{"s.db", "s.db-wal", "talk.md", "talk.md.cut", "log/audit.jsonl", "notes.txt"} {
			script += "  call append_to_file {\"path\":\"" + name + "\",\"content\":\"forged\"}\n"
		}
		write(t, filepath.Join(dir, "s.script"), script+"turn\n  say Done.\n")
		write(t, filepath.Join(dir, "notes.txt"), "")
		if err := os.Mkdir(filepath.Join(dir, "log"), 0o700); err != nil {
			t.Fatal(err)
		}
		file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:s.script\"/>\n<tool name=\"append_to_file\"/>\n<user>x</user>\n")
		cfg := host.Config{File: file, Workspace: dir, Rules: []session.Rule{{Verdict: session.Allow, Tool: "*"}}, Protected: []string{filepath.Join(dir, "log", "audit.jsonl")}}
		tt.set(&cfg, dir)
		h, err := host.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		res, err := h.Run(t.Context(), "")
		if err != nil || res.Totals.RefusedCalls != tt.refused {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "notes.txt"))
		if err != nil || !strings.HasPrefix(string(text), "forged") {
			t.Errorf("what is not protected: %q, %v", text, err)
		}
	}
}
