// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// rendered returns a manual page as a person reads it.
func rendered(t *testing.T, page string) string {
	t.Helper()
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("needs groff: not there, so this test is skipped")
	}
	cmd := exec.Command("groff", "-k", "-man", "-ww", "-Tutf8", "-P-cbou", page)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil || said.Len() > 0 {
		t.Errorf("%s: %v\n%s", page, err, said.String())
	}
	return strings.NewReplacer("\u2010", "-", "\u2212", "-").Replace(string(out))
}

// TestManualPages: each command has a page that a real groff reads without a warning, and that
// says what --help says.
func TestManualPages(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "share", "man1") // which is made
	if o := programEnv(t, nil, "man", "--out", folder); o.code != exitOK || o.out != "" || o.err != "" {
		t.Fatalf("%+v", o)
	}
	var cli grammar
	parser, err := kong.New(&cli, kong.Name("antiphon"))
	if err != nil {
		t.Fatal(err)
	}
	squeezed := func(text string) string { return regexp.MustCompile(`\s+`).ReplaceAllString(text, "") }
	for _, leaf := range append(parser.Model.Leaves(true), parser.Model.Node) {
		page := filepath.Join(folder, strings.ReplaceAll(commandPath(leaf), " ", "-")+".1")
		if testing.Short() && leaf.Name != "run" {
			continue
		}
		text := squeezed(rendered(t, page))
		for _, group := range leaf.AllFlags(true) {
			for _, f := range group {
				if f.Name != "help" && (!strings.Contains(text, "--"+f.Name) || !strings.Contains(text, squeezed(f.Help))) {
					t.Errorf("%s: --%s is not there as --help has it", page, f.Name)
				}
			}
		}
		for _, p := range leaf.Positional {
			if !strings.Contains(text, squeezed(p.Help)) {
				t.Errorf("%s: %s is not there", page, p.Name)
			}
		}
	}
}

// TestManual: a page is printed by the name of its command, and a command that does not exist is
// an error.
func TestManual(t *testing.T) {
	for args, want := range map[string]string{
		"man":               ".TH ANTIPHON 1 ",
		"man run":           ".TH ANTIPHON\\-RUN 1 ",
		"man sessions list": ".TH ANTIPHON\\-SESSIONS\\-LIST 1 ",
	} {
		if o := programEnv(t, nil, strings.Fields(args)...); o.code != exitOK || !strings.HasPrefix(o.out, want) {
			t.Errorf("%s: %+v", args, o)
		}
	}
	for _, args := range []string{"man sessions nonsense", "man run --out ."} {
		if o := programEnv(t, nil, strings.Fields(args)...); o.code != exitUsage || o.out != "" {
			t.Errorf("%s: %+v", args, o)
		}
	}
}
