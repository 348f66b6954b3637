// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"testing"
)

// TestAboutCall pins what rows of calls say.
func TestAboutCall(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"path":"a.txt"}`:                                  "a.txt",
		`{"path":"a.txt","content":"one\ntwo\n"}`:           "a.txt +2",
		`{"path":"a.txt","find":"one\n","replace":"two\n"}`: "a.txt +1 −1",
		`{"command":["go","test","it's"]}`:                  `go test 'it'\''s'`,
		`{"command":"ls -l"}`:                               "ls -l",
		`{}`:                                                "",
		`{"n":1}`:                                           `{"n":1}`,
		`not json`:                                          "not json",
		"*** Begin Patch\n*** Update File: a.go\n@@\n-x\n+y\n+z\n*** End Patch": "a.go +2 −1",
		`{"path":"a\u001b[2Jb"}`: "a<U+001B>[2Jb",
	} {
		if got := AboutCall(arguments, func(text string) string { return text }); got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
	}
}
