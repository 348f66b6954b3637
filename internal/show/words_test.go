// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"testing"
)

// What a person cannot see is shown by its number: the list is of what is
// printable.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain é 世界 👍 «ok»":                  "plain é 世界 👍 «ok»",
		"a\u200bb\u2060c\ufeffd\u202ee":      "a<U+200B>b<U+2060>c<U+FEFF>d<U+202E>e",
		"\x1b[31m\x07\u00ad\u00a0":           "<U+001B>[31m<U+0007><U+00AD><U+00A0>",
		"\u3164\u115f\u2800\ufe0f\U000e0041": "<U+3164><U+115F><U+2800><U+FE0F><U+E0041>",
	} {
		if got := Visible(text); got != want {
			t.Errorf("visible(%q) = %q, want %q", text, got, want)
		}
	}
}

// A list of the program keeps its borders in one line, and foreign text cannot begin another one.
func TestUnbroken(t *testing.T) {
	for text, want := range map[string]string{
		"it is not trusted, and it\n  reads a\n  starts b\r\n  hint: trust it\n": "it is not trusted, and it reads a; starts b; hint: trust it ",
		"one\ntwo\rthree\tfour": "one two three four",
		"  as it was\n\n  x":    "  as it was  x",
	} {
		if got := Unbroken(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
