// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// withImage is a message with an address that an endpoint fetches.
func withImage(t *testing.T) session.Body {
	t.Helper()
	it, err := item.ParseString(`{"type":"message","role":"user","content":[{"type":"input_image","detail":"auto","image_url":"http://10.0.0.1/x.png"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	return session.InputItem{Item: it}
}

// K1: addresses of a stranger that the endpoint would fetch are imported by nobody without a yes.
func TestImportOfAddresses(t *testing.T) {
	dir := t.TempDir()
	store, transcript := filepath.Join(dir, "s.db"), filepath.Join(dir, "talk.md")
	write(t, transcript, `<user>x<img src="http://10.0.0.1/x.png"/></user>`+"\n")
	for _, file := range []string{forged(t, filepath.Join(dir, "agent.md"), withImage(t), session.RunStarted{}, session.Stopped{Why: "answered"}), transcript} {
		for _, flags := range [][]string{nil, {"--json"}} {
			o := program(t, append([]string{"sessions", "--store", store, "import", file}, flags...)...)
			if o.code != exitUsage || !strings.Contains(o.err, "lets the endpoint fetch from http://10.0.0.1\n  hint: nothing was imported; --trust imports it") {
				t.Errorf("%s %q: exit code %d: %s", file, flags, o.code, o.err)
			}
		}
		if o := program(t, "sessions", "--store", store, "list", "--json"); strings.Contains(o.out, "{") {
			t.Errorf("%s: something is left: %s", file, o.out)
		}
		o := program(t, "sessions", "--store", store, "import", file, "--name", "agreed", "--trust")
		if o.code != 0 || !strings.Contains(o.out+o.err, "is imported") {
			t.Errorf("%s: exit code %d: %s", file, o.code, o.err)
		}
		program(t, "sessions", "--store", store, "rm", "agreed", "--force")
	}
}

// K1: at a terminal the person is asked once, and no imports nothing.
func TestImportAsksAboutAddresses(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for a terminal")
	}
	t.Parallel()
	for key, says := range map[string]string{"n": "nothing was imported", "y": "is imported, with"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text, err := os.ReadFile(forged(t, filepath.Join(dir, "agent.md"), withImage(t), session.RunStarted{}, session.Stopped{Why: "answered"}))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "other.jsonl"), string(text))
			term := openTerminal(t, dir, "antiphon sessions --store new.db import other.jsonl")
			if shown := term.until(t, "import it? [y]es, [n]o:"); !strings.Contains(shown, "lets the endpoint fetch from http://10.0.0.1") {
				t.Errorf("the question does not say what it is about:\n%s", shown)
			}
			term.keys(t, key, "Enter")
			term.until(t, says)
		})
	}
}
