// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The examples of docs/chatmarkdown.md are what the language takes, laid out as
// antiphon fmt does, and all elements that it lists are known.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "chatmarkdown.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```html\n")
	if len(blocks) < 6 {
		t.Errorf("%d examples", len(blocks)-1)
	}
	for _, b := range blocks[1:] {
		src, _, _ := strings.Cut(b, "```")
		f, err := Parse("docs/chatmarkdown.md", []byte(src))
		if err != nil || len(f.Warnings) > 0 {
			t.Errorf("%v %v\nin\n%s", err, f.Warnings, src)
			continue
		}
		if out, err := f.Format(); err != nil || out != src {
			t.Errorf("%v\n%s\nis not laid out as\n%s", err, src, out)
		}
	}
	for tag, spec := range tags {
		if !strings.Contains(string(text), "`<"+tag+">`") && !strings.Contains(string(text), "`<"+tag+"/>`") {
			t.Errorf("<%s> is not in the docs", tag)
		}
		for attr := range strings.FieldsSeq(spec.attrs) {
			if tag == "config" && !strings.Contains(string(text), attr) {
				t.Errorf("<%s %s> is not in the docs", tag, attr)
			}
		}
	}
}

// The examples of the project are laid out as antiphon fmt does.
func TestExamplesAreFormatted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "examples", "*", "*.md"))
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		if filepath.Base(path) == "README.md" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		src := strings.ReplaceAll(string(text), "\r\n", "\n")
		f, _ := Parse(path, []byte(src))
		if out, err := f.Format(); err != nil || out != src {
			t.Errorf("%s: %v", path, err)
		}
	}
}
