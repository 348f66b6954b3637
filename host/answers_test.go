// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// M4: what is wrong with a file of answers is told with its line, in words that
// are not the program's own.
func TestBadAnswers(t *testing.T) {
	for line, want := range map[string]string{
		`{"tool":1,"allow":true}`:     `"tool" cannot be a number`,
		`{"tool":"a","allow":"yes"}`:  `"allow" cannot be a text`,
		`{"tool":"a","alow":true}`:    `unknown member "alow"`,
		`[1]`:                         `not a list`,
		`{tool`:                       `it is not JSON`,
		`{"tool":"a","allow":true} x`: `it is not JSON`,
		`{"tool":"a","tool":"b"}`:     `it is not JSON: duplicate`,
		`{"tool":"a"}`:                `"allow" is missing`,
		`{"allow":true}`:              `it matches no call`,
		`{"tool":"[","allow":true}`:   `pattern "["`,
		`{"tool":"a","allow":true,"remember":{"verdict":"x","tool":"a"}}`: `rule "x" for tool "a": verdict "x": want allow, ask or deny`,
	} {
		file := write(t, filepath.Join(t.TempDir(), "answers.jsonl"), "\n"+line+"\n")
		_, err := ReadAnswers(file, "--approve-from")
		if err == nil || !strings.HasPrefix(err.Error(), file+":2: ") || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "host.") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// write makes a file.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
