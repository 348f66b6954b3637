// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package antiphon_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsCode proves that Go code in the documents is built: each block stands
// in an example, or in a program of the repository, but for its indentation.
func TestDocsCode(t *testing.T) {
	var built strings.Builder
	goFiles(t, func(_, file string) {
		if strings.HasPrefix(filepath.Base(file), "example_") {
			built.WriteString(unindented(t, file))
		}
	})
	built.WriteString(unindented(t, filepath.FromSlash("bench/umbrella/main.go")))

	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no documents", err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```")
	for _, file := range append(files, "README.md") {
		for _, m := range block.FindAllStringSubmatch(unindented(t, file), -1) {
			if !strings.Contains(built.String(), m[1]) {
				t.Errorf("%s: this stands in no example_*_test.go:\n%s", file, m[1])
			}
		}
	}
}

// unindented returns a file's text without the tabs that its lines begin with.
func unindented(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(string(text), "")
}
