// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedAttributes: every element and attribute of the vocabulary is
// documented, and every one in the documents' examples is in the vocabulary. U8
func TestDocumentedAttributes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal("no documents", err)
	}
	files = append(files, filepath.Join("..", "README.md"))
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
		all.WriteByte('\n')
		checkExamples(t, filepath.Base(file), string(text))
	}
	for tag, known := range tags {
		if !strings.Contains(all.String(), "<"+tag) {
			t.Errorf("<%s> is not documented", tag)
		}
		for attr := range strings.FieldsSeq(known.attrs) {
			if !regexp.MustCompile(`\b` + attr + "(=|`|\\b)").MatchString(all.String()) {
				t.Errorf("<%s %s> is not documented", tag, attr)
			}
		}
	}
}

// settings are the attributes that <config> has in settings only, where package cmd/antiphon
// checks them.
var settings = []string{"endpoints", "models", "prices", "bind"}

var (
	opening   = regexp.MustCompile(`<([a-z_]+)((?:\s+[a-z_0-9]+(?:="[^"]*")?)*)\s*/?>`)
	attribute = regexp.MustCompile(`([a-z_0-9]+)(?:="[^"]*")?`)
)

// checkExamples looks at the elements in a document's text.
func checkExamples(t *testing.T, name, text string) {
	t.Helper()
	for _, m := range opening.FindAllStringSubmatch(text, -1) {
		known, ok := tags[m[1]]
		if !ok {
			continue // HTML, or a word in angle brackets
		}
		if m[1] == "tool" && strings.Contains(m[2], "type=") {
			continue // its attributes are those of the type: see hostedOptions
		}
		for _, a := range attribute.FindAllStringSubmatch(m[2], -1) {
			if m[1] == "config" && slices.Contains(settings, a[1]) {
				continue
			}
			if !slices.Contains(strings.Fields(known.attrs), a[1]) {
				t.Errorf("%s: %s: <%s> has no attribute %s", name, m[0], m[1], a[1])
			}
		}
	}
}
