// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"
	"testing"
	"time"
)

// J3: no text of a model keeps an export busy: what a parser of Markdown would
// take long for is shown as it is, and what is left is within the bounds that
// were measured. The test is about the whole of it ending in the time that tests
// have.
func TestMarkdownThatTakesLong(t *testing.T) {
	units := []string{"[", "![", "*", "**", "_", "`", "``a", ">", "> ", "- ", "* ", "1. ", "<", "<a ", "&", "\\", "|", "|a|b\n|-|-\n", "~", "~~a", "[a](", "[a][", "[]: x\n", "[^", "http://", "a@b.c ", "*a_", "**a ", "# ", "\n", "\t", "  -", "<!--", "<?", "<![CDATA[",
		"a**b", "[a](b", "*a **a ", "<a>", "x\n===\n", "- a\n", "> - ", "(", "[[[](", "`a", "a`b``", "www.", "www.a.", "|\n", "a|", "&#", "[x](<", "~~~\n", "```\n", ")", "\"", "[a]: <b> '", "a\n> ", "1) a\n", "\n\n[a", strings.Repeat("1. ", 50) + "\n", strings.Repeat("> ", 100) + "a\n", strings.Repeat("*a_", 900) + "\n\n"}
	for _, unit := range units {
		s := strings.Repeat(unit, maxMarkdown/len(unit))
		start := time.Now()
		_, read := markdown(s, func(s string) string { return s })
		t.Logf("%.20q: %v, read as Markdown: %v", unit, time.Since(start), read)
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
