// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// outline is what a text's snippets are, one a line: lines, headings, first words.
func outline(source string) (lines []string) {
	for _, s := range splitMarkdown(source) {
		head, _, _ := strings.Cut(source[s.start:s.end], "\n")
		lines = append(lines, fmt.Sprintf("%d-%d %s | %s", s.first, s.last, strings.Join(s.headings, " > "), strings.TrimSpace(head)))
	}
	return lines
}

func TestSplitMarkdown(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"sections": {"intro\n\n# One\n\ntext\n\n## Two\nmore\n\n# Three\nend\n",
			[]string{"1-1  | intro", "3-5 One | # One", "7-8 One > Two | ## Two", "10-11 Three | # Three"}},
		"nothing but headings": {"# A\n\n## B\n\n### C\ntext\n## D\n# E\n# F\n## G\nx",
			[]string{"5-6 A > B > C | ### C", "7-11 F > G | ## D"}},
		"underlined": {"One\n===\ntext\n\nTwo\n---\ntext\n\n---\n\n- item\n---\n",
			[]string{"1-3 One | One", "5-12 One > Two | Two"}},
		"code is not cut and has no headings": {"# A\n\n```sh\n# no heading\n\n## nor this\n```\ntext\n\n~~~~\n~~~\n# no\n~~~~~\n# B",
			[]string{"1-13 A | # A", "14-14 B | # B"}},
		"an open fence goes to the end":    {"# A\n```\n# b\n", []string{"1-3 A | # A"}},
		"code in lists":                    {"1. item\n\n    ```\n    # no\n    ```\n\n# Yes\n", []string{"1-5  | 1. item", "7-7 Yes | # Yes"}},
		"indented code":                    {"text\n\n    ```\n\n# Yes\n", []string{"1-3  | text", "5-5 Yes | # Yes"}},
		"comments":                         {"# A\n<!--\n# no\n-->\n<div>\n# no\n</div>\n\n# B\n", []string{"1-7 A | # A", "9-9 B | # B"}},
		"front matter":                     {"---\ntitle: \"The Guide\"\ntags: [x]\n---\ntext\n\n# First\ntext\n", []string{"1-5 The Guide | ---", "7-8 The Guide > First | # First"}},
		"front matter in TOML":             {"+++\ntitle = 'T'\n+++\n# T\nx", []string{"1-5 T | +++"}},
		"no front matter":                  {"---\ntitle: x\n", []string{"1-2  | ---"}},
		"a byte order mark and CRLF":       {"\uFEFF# A\r\n\r\ntext\r\n", []string{"1-3 A | # A"}},
		"headings without their markup":    {"# The `run` [command](x.md) **now** {#run}  ##\n", []string{"1-1 The run command now | # The `run` [command](x.md) **now** {#run}  ##"}},
		"no space, seven signs, no text":   {"#no\n####### no\n#\nx", []string{"1-2  | #no", "3-4  | #"}},
		"empty":                            {"", nil},
		"white space":                      {" \n\t\n", nil},
		"a shallower heading closes":       {"### C\nx\n# A\ny\n## B\nz", []string{"1-2 C | ### C", "3-4 A | # A", "5-6 A > B | ## B"}},
		"a quotation has no heading of us": {"> # no\n> ```\n> x\n", []string{"1-3  | > # no"}},
	} {
		if d := cmp.Diff(c.want, outline(c.source)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestSplitMarkdownSizes(t *testing.T) {
	paragraph := strings.Repeat("Words make a line. ", 20) + "\n\n"
	fence := "```\n" + strings.Repeat("code of the fence\n", 250) + "```\n"
	source := "# Long\n\n" + strings.Repeat(paragraph, 30) + fence + strings.Repeat("x", 3*maxSnippet) + "\n"
	whole := false
	for _, s := range splitMarkdown(source) {
		text := source[s.start:s.end]
		if strings.HasPrefix(text, "Words") && len(text) > wantSnippet {
			t.Errorf("%d bytes of prose in one", len(text))
		}
		whole = whole || strings.HasSuffix(text, strings.TrimSpace(fence))
		if cmp.Diff([]string{"Long"}, s.headings) != "" {
			t.Errorf("headings %q", s.headings)
		}
	}
	if !whole {
		t.Error("the fence was cut")
	}
}

// foreignHeadings are the headings of a text, as another reader of Markdown sees
// them, those in lists and quotations left out.
func foreignHeadings(source string) (lines []string) {
	doc := goldmark.DefaultParser().Parse(text.NewReader([]byte(source)))
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			title := ""
			for i := range h.Lines().Len() {
				seg := h.Lines().At(i)
				title += string(seg.Value([]byte(source)))
			}
			lines = append(lines, fmt.Sprintf("%d %s", h.Level, plainHeading(title)))
		}
	}
	return lines
}

func ownHeadings(source string) (lines []string) {
	for _, b := range blocksOf(source) {
		if b.kind == heading {
			lines = append(lines, fmt.Sprintf("%d %s", b.level, b.title))
		}
	}
	return lines
}

// The documents of this repository have the headings that goldmark sees.
func TestHeadingsAgainstGoldmark(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, "../../README.md", "../../CHANGELOG.md")
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(foreignHeadings(string(source)), ownHeadings(string(source))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Snippets are in order, apart, of bounded size, at the lines they say, and
// leave out nothing but white space and headings.
func FuzzSplitMarkdown(f *testing.F) {
	f.Add("# A\n\ntext\n\n```\n# x\n```\n## B\n\n- a\n- b\n")
	f.Add("---\ntitle: x\n---\nA\n===\n<!-- x\n-->\n\n~~~\n")
	f.Add(strings.Repeat("wörter ohne ende ", 700))
	f.Add(strings.Repeat("# heading\n", 190) + "```\n" + strings.Repeat("code\n", 1590) + "```")
	f.Add("---\ntitle: x\n---\n# a\n" + strings.Repeat("long ", 2000) + "\n===\n")
	f.Add("# a\n" + strings.Repeat("\n", 3000) + strings.Repeat("word ", 2000))
	f.Add("\v\f\u00a0")
	f.Add("\uFEFF+++\n+++\n\xff\xfe\r\n#\t#\n")
	f.Fuzz(func(t *testing.T, source string) {
		headings := map[int]bool{}
		at := 0
		for _, b := range blocksOf(source) {
			if b.start < at || b.end <= b.start || b.end > len(source) || strings.Trim(source[at:b.start], " \t\r\n\uFEFF") != "" {
				t.Fatalf("block %+v behind %d", b, at)
			}
			if at = b.end; b.kind == heading {
				for i := b.start; i < b.end; i++ {
					headings[i] = true
				}
			}
		}
		at = 0
		check := func(to int) {
			for i := at; i < to; i++ {
				if !headings[i] && !strings.Contains(" \t\r\n\uFEFF", source[i:i+1]) {
					t.Fatalf("%q at %d is in no snippet", source[i], i)
				}
			}
		}
		for _, s := range splitMarkdown(source) {
			if s.start < at || s.end <= s.start || s.end > len(source) {
				t.Fatalf("%+v behind %d", s, at)
			}
			check(s.start)
			at = s.end
			if s.first != 1+strings.Count(source[:s.start], "\n") || s.last != 1+strings.Count(source[:s.end], "\n") {
				t.Fatalf("lines of %+v", s)
			}
			if len(s.headings) > 7 {
				t.Fatalf("headings %q", s.headings)
			}
			if s.end-s.start > maxSnippet {
				t.Fatalf("%d bytes", s.end-s.start)
			}
		}
		check(len(source))
	})
}

// The worst that a file can do takes as long as any, and headings alone are not
// snippets each.
func TestSplitMarkdownBounded(t *testing.T) {
	for _, unit := range []string{"#\n", "# a\n", "a\n=\n", "`", "```\n", "<!--\n", "<pre>\n", "[", "[a](", "<", "- ", "> ", "    ", "---\n", "a ", "\xff", "title:", "{#", "*", "_ ", "<div\n"} {
		source := strings.Repeat(unit, (1<<17)/len(unit))
		for _, text := range []string{source, "# " + source, "---\n" + source + "\n---\n"} {
			if n := len(splitMarkdown(text)); n > len(text)/500 {
				t.Errorf("%q: %d snippets", unit, n)
			}
		}
	}
}
