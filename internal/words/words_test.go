// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package words_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/words"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		" ,;\x00 ":                    "",
		"Hello, World":                "hello world",
		"Café-Öl cafe\u0301":          "cafe ol cafe",
		"ÄÖÜ İstanbul ŁÓDŹ":           "aou istanbul łodz",
		"a_b/c.go 3.14 v1":            "a b c go 3 14 v1",
		"ПРИВЕТ мир":                  "привет мир",
		"我喜欢Go语言":                     "我 喜 欢 go 语 言",
		"ﬁne ½ ｆｕｌｌ":                  "fine 12 full",
		"bad\xffbytes":                "bad bytes",
		strings.Repeat("x", 200):      strings.Repeat("x", words.MaxWord),
		"a" + strings.Repeat("é", 99): "a" + strings.Repeat("e", words.MaxWord-1),
	} {
		if got := words.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What a query's syntax is elsewhere is none here.
func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		`one two`:                   `[[one] [two]]`,
		`"one two" three`:           `[[one two] [three]]`,
		`foo-bar`:                   `[[foo bar]]`,
		`a NEAR b`:                  `[[a] [near] [b]]`,
		`-x* OR (y:"z") ^ {w} + 'v`: `[[x] [or] [y] [z] [w] [v]]`,
		`open "quote here`:          `[[open] [quote here]]`,
		`"""a"""`:                   `[[a]]`,
	} {
		if q, err := words.Parse(in); err != nil || fmt.Sprint([][]string(q)) != want {
			t.Errorf("%s: %v, %v, want %s", in, q, err, want)
		}
	}
	for _, in := range []string{"", ` "" `, "-*", strings.Repeat("word ", 33)} {
		if q, err := words.Parse(in); err == nil {
			t.Errorf("%q: %v, want an error", in, q)
		}
	}
}

func TestFind(t *testing.T) {
	text := "The quick brown Fox, über all; the quick red fox"
	for query, want := range map[string]string{
		"fox":           "Fox",
		"uber":          "über",
		`red quick`:     "quick",
		`"quick red"`:   "quick red",
		`"red quick"`:   "",
		`"the quick b"`: "",
		`fox missing`:   "",
		`quick-brown`:   "quick brown",
	} {
		q, err := words.Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		from, to, found := q.Find(text)
		if found != (want != "") || text[from:to] != want {
			t.Errorf("%s: %q, %v, want %q", query, text[from:to], found, want)
		}
	}
}

func TestSnippet(t *testing.T) {
	text := strings.Repeat("ä\n", 100) + "here" + strings.Repeat("\tö", 100)
	at := strings.Index(text, "here")
	got := words.Snippet(text, at, at+4)
	if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\t") || !strings.Contains(got, "ä here ö") || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") || len(got) > 200 {
		t.Errorf("%q", got)
	}
	if got := words.Snippet("short", 0, 5); got != "short" {
		t.Errorf("%q", got)
	}
}

// Any text and any query: no panic, valid words, and a text is found by its own
// words.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"Café Öl", "我喜欢", `"a" -b*`, "\xff\x00e\u0301", "\u0301", "ᄀ각"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for w := range words.Of(text) {
			if w.Text == "" || len(w.Text) > words.MaxWord || !utf8.ValidString(w.Text) || strings.ContainsAny(w.Text, " \x00'\"\\") || w.From < 0 || w.To > len(text) || w.From >= w.To {
				t.Fatalf("%q: %+v", text, w)
			}
			_ = words.Snippet(text, w.From, w.To)
		}
		q, err := words.Parse(`"` + strings.ReplaceAll(text, `"`, " ") + `"`)
		if err != nil {
			return
		}
		if _, _, found := q.Find(text); !found {
			t.Fatalf("%q is not found in itself: %q", text, q)
		}
	})
}
