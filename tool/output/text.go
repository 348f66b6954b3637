// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Sanitize makes text fit for a model and counts the repairs. Invalid UTF-8 and NUL
// become U+FFFD (one for each run, one for each surrogate), and escape sequences for
// terminals are removed. Everything else is unchanged, including white space and
// line ends of every kind. Text without such bytes is returned as is.
func Sanitize(s string) (clean string, repairs int) {
	i := firstDirty(s)
	if i == len(s) {
		return s, 0
	}
	var b strings.Builder
	b.Grow(len(s))
	for start := 0; ; {
		b.WriteString(s[start:i])
		if i == len(s) {
			return b.String(), repairs
		}
		n, replace := dirtyAt(s[i:])
		if replace {
			b.WriteRune(utf8.RuneError)
		}
		repairs++
		start = i + n
		i = start + firstDirty(s[start:])
	}
}

// firstDirty returns the index of the first byte to repair, or len(s).
func firstDirty(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == 0 || c == esc:
			return i
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 || controlString(r) || r == c1CSI || r == c1ST {
				return i
			}
			i += n
		}
	}
	return len(s)
}

// dirtyAt returns the length of the sequence to repair at the start of s, and
// whether a replacement character takes its place.
func dirtyAt(s string) (n int, replace bool) {
	switch s[0] {
	case 0:
		return 1, true
	case esc:
		return escapeLen(s), false
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return invalidLen(s), true
	case r == c1CSI:
		return size + csiLen(s[size:]), false
	case controlString(r):
		return size + stringLen(s[size:]), false
	}
	return size, false
}

// invalidLen returns the length of a run of invalid UTF-8. An encoded surrogate is a
// run of its own.
func invalidLen(s string) int {
	if isSurrogate(s) {
		return 3
	}
	n := 1
	for n < len(s) && !isSurrogate(s[n:]) {
		if r, size := utf8.DecodeRuneInString(s[n:]); r != utf8.RuneError || size != 1 {
			break
		}
		n++
	}
	return n
}

func isSurrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF && s[2] >= 0x80 && s[2] <= 0xBF
}

// Control characters that begin a sequence, as defined by ECMA-48. The eight-bit
// forms appear as the runes U+0090 to U+009F.
const (
	esc   = 0x1b
	bel   = 0x07
	c1CSI = 0x9b
	c1ST  = 0x9c
)

// controlString reports the eight-bit introducers DCS, SOS, OSC, PM and APC.
func controlString(r rune) bool {
	return r == 0x90 || r == 0x98 || r == 0x9d || r == 0x9e || r == 0x9f
}

// escapeLen returns the length of the sequence at the start of s, which begins with
// ESC. Of an incomplete sequence, only the recognized part counts.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 1
	}
	switch c := s[1]; {
	case c == '[':
		return 2 + csiLen(s[2:])
	case c == ']', c == 'P', c == 'X', c == '^', c == '_':
		return 2 + stringLen(s[2:])
	case c >= 0x20 && c <= 0x2f:
		n := 2
		for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
			n++
		}
		if n < len(s) && s[n] >= 0x30 && s[n] <= 0x7e {
			return n + 1
		}
		return 1 // an ESC before a space and text
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

// csiLen returns the length of the parameters, intermediate bytes and final byte.
func csiLen(s string) int {
	n := 0
	for n < len(s) && s[n] >= 0x30 && s[n] <= 0x3f {
		n++
	}
	for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
		n++
	}
	if n < len(s) && s[n] >= 0x40 && s[n] <= 0x7e {
		n++
	}
	return n
}

// stringLen returns the length of a control string including its terminator: BEL,
// ESC \ or U+009C. It returns 0 for a string that does not end on its line: this is
// treated as a stray introducer, so that it never swallows text.
func stringLen(s string) int {
	for n := 0; n < len(s); {
		switch c := s[n]; {
		case c == bel:
			return n + 1
		case c == esc:
			if n+1 < len(s) && s[n+1] == '\\' {
				return n + 2
			}
			return 0
		case c < 0x20 && c != '\t':
			return 0
		case c == 0xC2 && n+1 < len(s) && s[n+1] == c1ST:
			return n + 2
		}
		n++
	}
	return 0
}

// Redacted replaces the texts in [Policy.Secrets].
const Redacted = "[redacted]"

// minSecret is the minimum length in bytes of a secret. Shorter ones would match
// unrelated text.
const minSecret = 8

// redacted returns a text without the secrets.
func redacted(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= minSecret {
			text = endpoint.NewKey(s).Hide(text)
		}
	}
	return text
}

// redact removes the secrets from a settled result. Images and files are unchanged.
func (r *Result) redact(secrets []string) {
	if len(secrets) == 0 {
		return
	}
	r.Text = redacted(r.Text, secrets)
	for _, p := range r.Parts {
		if t, ok := p.(*item.InputText); ok {
			t.Text = redacted(t.Text, secrets)
		}
	}
	for i := range r.Commands {
		c := &r.Commands[i]
		c.Stdout, c.Stderr = redacted(c.Stdout, secrets), redacted(c.Stderr, secrets)
	}
}

// settleCommands makes the texts of commands valid, in a copy.
func (r *Result) settleCommands() {
	r.Commands = slices.Clone(r.Commands)
	for i := range r.Commands {
		c := &r.Commands[i]
		c.Stdout, _ = Sanitize(c.Stdout) // the repairs are counted in Text, which has the same content
		c.Stderr, _ = Sanitize(c.Stderr)
	}
}

// Envelope wraps an output in four blocks, so that a model can tell a failure, its
// reason and the output before it apart. All blocks are always present, in this
// order, even if empty:
//
//	status:
//	error
//
//	toolName:
//	read_file
//
//	error:
//	no such file: a.txt
//
//	output:
//	(as it is, to the end)
//
// The output is raw and comes last. A line of the error that looks like one of the
// four headings is indented by one space, and a name that is not plain text is
// quoted. So nothing before the output can begin a block. The text ends without a
// newline, unless the output has one.
func Envelope(failed bool, name, errText, output string) string {
	status := "success"
	if failed {
		status = "error"
	}
	errText = indentHeadings(errText)
	var b strings.Builder
	b.Grow(len(errText) + len(output) + len(name) + 48)
	b.WriteString("status:\n")
	b.WriteString(status)
	b.WriteString("\n\ntoolName:\n")
	b.WriteString(indentHeadings(PlainName(name)))
	b.WriteString("\n\nerror:\n")
	b.WriteString(errText)
	b.WriteString("\n\noutput:\n")
	b.WriteString(output)
	return b.String()
}

// maxName is the maximum length of an invalid tool name that is repeated to the
// model.
const maxName = 128

// PlainName returns a name unchanged if it is one line of visible text, and quoted
// otherwise. A model may call a tool by any text.
func PlainName(name string) string {
	if utf8.ValidString(name) && strings.IndexFunc(name, notVisible) < 0 {
		return Clip(name, maxName)
	}
	const few = maxName / 4 // quoting makes the name longer
	return strconv.QuoteToGraphic(Clip(strings.ToValidUTF8(name, "\uFFFD"), few))
}

func notVisible(r rune) bool { return !unicode.IsPrint(r) }

// indentHeadings puts a space before every line that equals a heading, ignoring
// white space at its end. A line may begin after any character that some readers
// treat as a line end.
func indentHeadings(s string) string {
	if !strings.Contains(s, ":") {
		return s
	}
	var b strings.Builder
	for rest := s; rest != ""; {
		line, end := rest, len(rest)
		if i := strings.IndexFunc(rest, isLineEnd); i >= 0 {
			_, size := utf8.DecodeRuneInString(rest[i:])
			line, end = rest[:i], i+size
		}
		if isHeading(line) {
			b.WriteByte(' ')
		}
		b.WriteString(rest[:end])
		rest = rest[end:]
	}
	return b.String()
}

func isHeading(line string) bool {
	switch strings.TrimRightFunc(line, unicode.IsSpace) {
	case "status:", "toolName:", "error:", "output:":
		return true
	}
	return false
}

func isLineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

// A success is text returned by a tool, which may come from a stranger: a page or a
// file can imitate a failure of the tool, or a mark of this package. A text of the
// first kind is wrapped. After a text of the second kind, a line says who wrote it.
// Neither changes the text itself.

// posesAsEnvelope reports whether a text begins like an [Envelope].
func posesAsEnvelope(text string) bool {
	const looked = 4096
	first := true
	for line := range strings.FieldsFuncSeq(text[:min(len(text), looked)], isLineEnd) {
		line = strings.TrimFunc(line, unseen)
		switch {
		case line == "":
		case !first:
			return strings.EqualFold(line, "error") || strings.EqualFold(line, "success")
		case !strings.EqualFold(line, "status:"):
			return false
		default:
			first = false
		}
	}
	return false
}

// unseen reports whether a character is invisible.
func unseen(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.Z)
}

// readsLikeMark reports whether a line looks like a mark for omitted text: "[12
// bytes left out here" or "[12 of 34 bytes left out here".
func readsLikeMark(line string) bool {
	line, ok := strings.CutPrefix(strings.TrimLeftFunc(line, unseen), "[")
	if !ok {
		return false
	}
	line, ok = cutNumber(strings.ToLower(line[:min(len(line), 100)]))
	if of, both := strings.CutPrefix(line, "of "); ok && both {
		line, ok = cutNumber(of)
	}
	return ok && strings.HasPrefix(line, "bytes left out here")
}

// cutNumber cuts a number and the following space off the text.
func cutNumber(text string) (string, bool) {
	rest := strings.TrimLeft(text, "0123456789")
	after, ok := strings.CutPrefix(rest, " ")
	return after, ok && len(rest) < len(text)
}

// disown adds a line after a text: lines in it that look like marks are part of the
// text.
func disown(text string) string {
	n := 0
	for line := range strings.FieldsFuncSeq(text, isLineEnd) {
		if readsLikeMark(line) {
			n++
		}
	}
	if n == 0 {
		return text
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + fmt.Sprintf("[in the output itself, lines that read like marks of bytes left out: %d; the tool put them out, and nothing can be read by them]", n)
}

// maxProblemText is the maximum length of an error's text that is repeated in
// another text.
const maxProblemText = 400

// Clip shortens a text to at most limit bytes, without splitting a character, and
// appends how much was cut.
func Clip(s string, limit int) string {
	limit = max(limit, 0)
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d more bytes)", s[:end], len(s)-end)
}
