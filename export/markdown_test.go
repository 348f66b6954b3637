// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"
	"testing"
)

// J3: no text of a model keeps an export busy: what a parser of Markdown would take long for is
// shown as it is, and the parser gets only texts within the bounds that were measured.
func TestMarkdownThatTakesLong(t *testing.T) {
	refused := []string{"[", "![", "`", "``a", ">", "> ", "- ", "* ", "1. ", "<", "<a ", "[a](", "[a][", "[]: x\n", "[^", "*a_", "**a ", "  -", "<!--", "<?", "<![CDATA[",
		"a**b", "[a](b", "*a **a ", "<a>", "> - ", "(", "[[[](", "`a", "a`b``", "[x](<", "```\n", ")", "[a]: <b> '"}
	read := []string{"*", "**", "_", "&", "\\", "|", "|a|b\n|-|-\n", "~", "~~a", "http://", "a@b.c ", "# ", "\n", "\t", "x\n===\n", "- a\n", "www.", "www.a.", "|\n", "a|", "&#", "~~~\n", "\"",
		"a\n> ", "1) a\n", "\n\n[a", strings.Repeat("1. ", 50) + "\n", strings.Repeat("> ", 100) + "a\n", strings.Repeat("*a_", 900) + "\n\n"}
	for want, units := range map[bool][]string{false: refused, true: read} {
		for _, unit := range units {
			s := strings.Repeat(unit, maxMarkdown/len(unit))
			if _, got := markdown(s, func(s string) string { return s }); got != want {
				t.Errorf("%.20q: read as Markdown: %v", unit, got)
			}
		}
	}
	if _, got := markdown(strings.Repeat("a", maxMarkdown+1), func(s string) string { return s }); got {
		t.Error("a text that is too long is read as Markdown")
	}
}

// What people write is read as Markdown.
func TestMarkdownIsRead(t *testing.T) {
	for _, s := range []string{"", "a", "---\n", strings.Repeat("-", 500), strings.Repeat("=", 500) + "\n", "- [x] a\n  - b\n", "1. a\n2. b\n", "3.14159 " + strings.Repeat("2", 500), strings.Repeat("| a | b | `c` |\n", 500), strings.Repeat("a paragraph with *some* [links](b).\n\n", 1000)} {
		if _, read := markdown(s, func(s string) string { return s }); !read {
			t.Errorf("%.40q is not read", s)
		}
	}
}
