// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	goparser "go/parser"
	"go/token"
	"strings"
	"testing"
)

// The script in the package's documentation is one that a reader can copy.
func TestDocumentedScript(t *testing.T) {
	file, err := goparser.ParseFile(token.NewFileSet(), "doc.go", nil, goparser.ParseComments|goparser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	var script []string
	inside := false
	for line := range strings.Lines(file.Doc.Text()) {
		code, ok := strings.CutPrefix(line, "\t")
		inside = ok && (inside || strings.HasPrefix(code, "# ")) || inside && strings.TrimSpace(line) == ""
		if inside {
			script = append(script, code)
		}
	}
	parsed, err := Parse("doc.go", []byte(strings.Join(script, "")))
	if err != nil || len(script) < 10 {
		t.Fatalf("%d lines of script: %v", len(script), err)
	}
	if turns := len(parsed.rounds[0]); turns != 2 {
		t.Errorf("the first round has %d turns, not 2", turns)
	}
}
