// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"regexp"
	"strconv"
	"strings"
)

// code returns a text for a pre element, with the lines of diffs marked.
func code(s string) string {
	var b strings.Builder
	writeCode(&b, s)
	return b.String()
}

// writeCode writes what [code] returns. Between the elements that mark lines
// the text is as it was, so that copying the whole gives the whole.
func writeCode(b *strings.Builder, s string) {
	if !strings.Contains(s, "@@") && !strings.Contains(s, patchStart) {
		writeText(b, s)
		return
	}
	d := differ{out: b}
	for line := range strings.Lines(s) {
		d.line(line)
	}
	d.flush()
}

// patchStart begins a patch of the tool apply_patch.
const patchStart = "*** Begin Patch"

var hunk = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// differ marks the lines of patches and of unified diffs in a text, and of
// nothing else: within a hunk, lines are counted as its head says.
type differ struct {
	out      *strings.Builder
	class    string // of the lines in run
	run      strings.Builder
	patch    bool // within a patch of apply_patch
	old, new int  // lines that the hunk still has
}

func (d *differ) line(s string) { d.put(d.kind(s), s) }

// kind returns the class of a line, "" for text.
func (d *differ) kind(s string) string {
	switch {
	case d.patch:
		return d.inPatch(s)
	case d.old > 0 || d.new > 0:
		return d.inHunk(s)
	case strings.HasPrefix(s, patchStart):
		d.patch = true
		return "meta"
	case strings.HasPrefix(s, "--- ") || strings.HasPrefix(s, "+++ ") || strings.HasPrefix(s, "diff --git "):
		return "meta"
	}
	m := hunk.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	d.old, d.new = lines(m[1]), lines(m[2])
	return "meta"
}

// lines reads a hunk's number of lines, which is 1 if it is left out.
func lines(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return 1
}

func (d *differ) inHunk(s string) string {
	switch s[0] {
	case '+':
		d.new--
		return "add"
	case '-':
		d.old--
		return "del"
	case ' ', '\n', '\r':
		d.old--
		d.new--
	case '\\':
	default: // the hunk is shorter than it said
		d.old, d.new = 0, 0
		return d.kind(s)
	}
	return "same"
}

func (d *differ) inPatch(s string) string {
	switch {
	case strings.HasPrefix(s, "*** "):
		d.patch = !strings.HasPrefix(s, "*** End Patch")
		return "meta"
	case strings.HasPrefix(s, "@@"):
		return "meta"
	case s[0] == '+':
		return "add"
	case s[0] == '-':
		return "del"
	}
	return "same"
}

// put adds a line to the run of lines of its class.
func (d *differ) put(class, s string) {
	if class != d.class {
		d.flush()
		d.class = class
	}
	d.run.WriteString(s)
}

// tags are the elements that mark lines. They say what they are to those who
// cannot see the colour, as the signs do.
var tags = map[string][2]string{
	"":     {"", ""},
	"same": {`<span class="same">`, "</span>"},
	"meta": {`<span class="meta">`, "</span>"},
	"add":  {"<ins>", "</ins>"},
	"del":  {"<del>", "</del>"},
}

func (d *differ) flush() {
	if d.run.Len() == 0 {
		return
	}
	d.out.WriteString(tags[d.class][0])
	writeText(d.out, d.run.String())
	d.out.WriteString(tags[d.class][1])
	d.run.Reset()
}
