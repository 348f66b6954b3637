// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"strings"
	"unicode"
)

// A success is the text that a tool returned, and that may be a stranger's: a
// page or a file can be written so that it reads like a failure of the tool, or
// like a mark of this package. The first is wrapped, and after the second a line
// says whose words they are: neither changes the text itself.

// posesAsEnvelope reports a text that begins like an [Envelope].
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

// unseen reports characters that show nothing.
func unseen(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.Z)
}

// readsLikeMark reports a line that reads like a mark of what was left out: "[12
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

// cutNumber cuts a number and the blank after it off the text.
func cutNumber(text string) (string, bool) {
	rest := strings.TrimLeft(text, "0123456789")
	after, ok := strings.CutPrefix(rest, " ")
	return after, ok && len(rest) < len(text)
}

// disown says after a text that its lines that read like marks are its own.
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
