// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package antiphon_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// TestRules proves that every rule that a comment names stands in docs/rules.md,
// and that the page says which no test names.
func TestRules(t *testing.T) {
	page, err := os.ReadFile("docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	table, untested, _ := strings.Cut(string(page), "## Without a test")
	unproven := map[string]bool{} // the rules that no test has named so far
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \|`).FindAllStringSubmatch(table, -1) {
		if unproven[row[1]] {
			t.Errorf("docs/rules.md has %s twice", row[1])
		}
		unproven[row[1]] = true
	}
	known := maps.Clone(unproven)
	comment, name := regexp.MustCompile(`(?m)(?:^|\s)//(.*)$`), regexp.MustCompile(`\b[A-Z]\d{1,2}\b`)
	goFiles(t, func(dir, file string) {
		for _, c := range comment.FindAllStringSubmatch(unindented(t, file), -1) {
			for _, rule := range name.FindAllString(c[1], -1) {
				if !known[rule] {
					t.Errorf("%s names rule %s, which docs/rules.md does not have: %s", file, rule, c[1])
				}
				if strings.HasSuffix(file, "_test.go") || dir == "agenttest" {
					delete(unproven, rule)
				}
			}
		}
	})
	listed := name.FindAllString(untested, -1)
	slices.Sort(listed)
	if want := slices.Sorted(maps.Keys(unproven)); !slices.Equal(listed, want) {
		t.Errorf("docs/rules.md lists as without a test: %v\nbut those are: %v", listed, want)
	}
}
