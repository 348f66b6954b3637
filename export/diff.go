// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// code returns a text for a pre element, with the lines of diffs marked.
func code(s string) string {
	var b strings.Builder
	writeCode(&b, s)
	return b.String()
}

// writeCode writes the result of [code]. Between the elements that mark lines the
// text is unchanged, so that copying all of it gives the original text.
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

// patchStart is the first line of a patch for the tool apply_patch.
const patchStart = "*** Begin Patch"

var hunk = lazyregexp.New(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// differ marks the lines of patches and unified diffs in a text, and no other lines:
// inside a hunk, it counts lines as the hunk's head says.
type differ struct {
	out      *strings.Builder
	class    string // of the lines in run
	run      strings.Builder
	patch    bool // within a patch of apply_patch
	old, new int  // remaining lines of the hunk
}

func (d *differ) line(s string) { d.put(d.kind(s), s) }

// kind returns the class of a line, or "" for text.
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

// lines reads the number of lines of a hunk, which is 1 if it is omitted.
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
	default: // the hunk is shorter than its head says
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

// put adds a line to the current run of lines of the same class.
func (d *differ) put(class, s string) {
	if class != d.class {
		d.flush()
		d.class = class
	}
	d.run.WriteString(s)
}

// tags are the elements that mark lines. Like the signs, they carry the meaning for
// readers who cannot see colours.
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
