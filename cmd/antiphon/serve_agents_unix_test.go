// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// A new file of a served folder is served once it can be: without a mistake, and with an agreement if it has powers.
// Until then the log says once what is missing. Rules of the server are about it, too. K1
func TestServeNewFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for looks at a folder")
	}
	s := servedFiles(t, "--deny", "wait")
	write(t, filepath.Join(s.dir, "quick.script"), "again\nturn\n  say Hello.\n")
	s.start()
	answers := func(name string) {
		t.Helper()
		if r := s.response(http.MethodPost, "responses", `{"model":"`+name+`","input":"x"}`); r.Status != item.StatusCompleted {
			t.Errorf("%s: %s, %+v", name, r.Status, r.Error)
		}
	}
	refused := func(name string) {
		t.Helper()
		if status, text := s.send(http.MethodPost, "responses", `{"model":"`+name+`","input":"x"}`); status != http.StatusNotFound || !strings.Contains(text, "model_not_found") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	has := func(part string, want bool) {
		t.Helper()
		if _, list := s.send(http.MethodGet, "models", ""); strings.Contains(list, part) != want {
			t.Error(list)
		}
	}
	const plain = "<config model=\"rehearsal:quick.script\" description=\"Is quick.\"/>\n"
	in := func(name string) string { return filepath.Join(s.dir, name) }
	broken := write(t, in("broken.md"), plain+"<toolx/>\n")
	powerful := write(t, in("powerful.md"), plain+"<tool name=\"wipe\" command=\"true\" description=\"Wipes.\" approval=\"allow\"/>\n")
	write(t, in("quick.md"), plain)
	for _, said := range []string{"broken.md is not served: ", "powerful.md is not served: ", "antiphon trust " + powerful, "the model quick is " + in("quick.md")} {
		s.process.until(t, said)
	}
	answers("quick")
	has(`"Is quick."`, true)
	refused("powerful")
	refused("broken")

	if o := program(t, "trust", powerful, "--yes"); o.code != exitOK { // what is not corrected is not said again
		t.Fatal(o.err)
	}
	if err := os.Rename(in("quick.md"), in("fast.md")); err != nil {
		t.Fatal(err)
	}
	if said := s.process.until(t, "the model powerful is "+powerful); strings.Contains(said, "is not served") || !strings.Contains(said, "the model fast is ") {
		t.Error(said)
	}
	answers("powerful")
	answers("fast")
	has(`"quick"`, false)
	write(t, broken, plain)
	s.process.until(t, "the model broken is "+broken)
	answers("broken")
	s.process.signal(t, syscall.SIGTERM)
	if code, rest := s.process.wait(t); code != exitOK {
		t.Errorf("exit code %d, %s", code, rest)
	}
}
