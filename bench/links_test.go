// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUmbrellaLinks proves that a user's program links nothing that it does not
// use: a package may leave its initialisation behind, with methods of its types, and no
// functions. Package regexp is linked, because tools check the patterns of their schemas.
func TestUmbrellaLinks(t *testing.T) {
	program := filepath.Join(t.TempDir(), "umbrella")
	if out, err := exec.Command("go", "build", "-o", program, "./umbrella").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command("go", "tool", "nm", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	// What writes and reads the entries of a log is for stores that keep text.
	if codec := []byte("antiphon/session.makeKinds"); bytes.Contains(out, codec) {
		t.Errorf("%s is linked, and with it the codec of a log, in a program that keeps its sessions in memory", codec)
	}
	for _, unused := range []string{
		"github.com/coder/websocket", "github.com/google/jsonschema-go/jsonschema", "golang.org/x/image/draw",
		"encoding/json", "log/slog", "html", "html/template", "text/template",
	} {
		var functions []string
		for line := range strings.Lines(string(out)) {
			// address, kind, name
			f := strings.Fields(line)
			if len(f) < 3 || f[1] != "T" && f[1] != "t" {
				continue
			}
			if name, ok := strings.CutPrefix(f[2], unused+"."); ok && !strings.HasPrefix(name, "init") && !strings.Contains(name, ".") {
				functions = append(functions, f[2])
			}
		}
		if n := len(functions); n > 0 {
			t.Errorf("%d functions of %s are linked, such as %s", n, unused, functions[0])
		}
	}
}
