// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func spokenWords(text string) string {
	var words []string
	eachWord(text, func(w []byte) { words = append(words, string(w)) })
	return strings.Join(words, " ")
}

func TestEachWord(t *testing.T) {
	for text, want := range map[string]string{
		"Hello, World":             "hello world",
		"parallelToolCalls":        "parallel tool call paralleltoolcall",
		"parallel_tool_calls":      "parallel tool call paralleltoolcall",
		"HTTPServer":               "http serv httpserv",
		"os.Root sha256 UTF-8":     "os root sha256 utf 8",
		"the user's don't they’ll": "the user don they",
		"Größe naïve café":         "gross naiv caf",
		"cafe\u0301":               "caf",
		"Ελλάδα Москва":            "ελλάδα москва",
		"東京都 is":                   "東京 京都 is",
		"_ __init__ a_":            "init a",
		"a\xffb\x00c":              "a b c",
		strings.Repeat("x", 100):   "",
		"":                         "",
	} {
		if got := spokenWords(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Forms of a word come out equal, and different words do not.
func TestStem(t *testing.T) {
	for _, forms := range []string{
		"index indexes indexed indexing",
		"configure configures configured configuring configuration configurations",
		"query queries", "apply applied applies applying",
		"run runs running runner", "stop stopped stopping", "call calls called calling caller",
		"write writes writing writer writers", "parse parses parser parsing",
		"box boxes", "search searches searched searching", "class classes", "file files",
		"organize organise organization organisation", "deploy deployment deployed",
		"quick quickly", "compress compression compressed", "use uses used using", "note notes noted noting",
	} {
		words := strings.Fields(forms)
		for _, w := range words[1:] {
			if a, b := string(stem([]byte(words[0]))), string(stem([]byte(w))); a != b {
				t.Errorf("%s is %s, %s is %s", words[0], a, w, b)
			}
		}
	}
	for _, pair := range []string{"user use", "station state", "bus bug", "string stress", "king kin", "need ned", "this thing"} {
		a, b, _ := strings.Cut(pair, " ")
		if x, y := string(stem([]byte(a))), string(stem([]byte(b))); x == y {
			t.Errorf("%s and %s are both %s", a, b, x)
		}
	}
}

func FuzzEachWord(f *testing.F) {
	f.Add("The parallelToolCalls of HTTPServer_2, 東京都 ﬁ ẞ İ user's")
	f.Add("singing inging eded ss ies s ed ation")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		eachWord(text, func(w []byte) {
			if n++; len(w) == 0 || !utf8.Valid(w) || len(w) > 8*maxWord {
				t.Fatalf("word %q", w)
			}
		})
		if n > 2*len(text) {
			t.Fatalf("%d words of %d bytes", n, len(text))
		}
	})
}
