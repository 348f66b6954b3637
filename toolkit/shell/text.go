// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// The parser that a decision is based on is not the shell that runs the command
// line. Where the two differ, the policy judges other commands than those that
// run. For example, the parser joins lines at "\" CR LF and at a "\" that ends a
// comment, and no shell does. So a text is first checked as bytes, and only text
// that all shells are known to parse in the same way reaches the parser.
// TestCommandAgainstShells compares the parser with the shells on this machine;
// add the differences it finds here.

// misreadable returns what a shell may interpret differently in a command line, or
// "".
func misreadable(text string) string {
	if what := strangeCharacter(text); what != "" {
		return what
	}
	if strings.HasSuffix(text, `\`) {
		return "it ends in a backslash"
	}
	return strangeContinuation(text)
}

// strangeCharacter finds characters other than tab, newline, printable ASCII, and
// letters, digits, marks, punctuation and symbols beyond ASCII. Some shells treat
// Unicode blanks as blanks, some skip NUL, and they all treat CR differently.
func strangeCharacter(text string) string {
	if !utf8.ValidString(text) {
		return "it holds bytes that are not UTF-8"
	}
	for _, r := range text {
		switch {
		case r == '\t' || r == '\n' || r >= ' ' && r < 0x7f:
		case r == '\r':
			return "it holds a carriage return"
		case r < ' ' || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S):
			return "it holds a control character or an unusual blank"
		}
	}
	return ""
}

// strangeContinuation accepts a backslash at the end of a line only between words
// of one command: not near a comment or a here-document, and not inside an
// operator or a name.
func strangeContinuation(text string) string {
	if !strings.Contains(text, "\\\n") {
		return ""
	}
	if strings.Contains(text, "<<") {
		return "a backslash at the end of a line beside a here-document"
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines[:len(lines)-1] {
		rest, ok := strings.CutSuffix(line, `\`)
		switch {
		case !ok:
		case strings.Contains(line, "#") || strings.HasPrefix(strings.TrimLeft(lines[i+1], " \t"), "#"):
			return "a backslash at the end of a line beside a #, which may begin a comment"
		case strings.HasSuffix(rest, `\`):
			return "several backslashes at the end of a line"
		case strings.TrimSpace(rest) == "":
			return "a line that is nothing but a backslash, behind which ksh93 begins a command"
		}
	}
	return ""
}

// strangeComment reports whether there is a # that begins a comment for the parser
// but is part of a word for a shell, as in ( ls 'a'# ; rm b ). The parser would
// miss the rest of that line. Each # must be in a text or an expansion that the
// parser found, or in a comment that begins where all shells begin one, and none
// may hide where a substitution ends.
func strangeComment(text string, file *syntax.File) bool {
	if !strings.Contains(text, "#") {
		return false
	}
	known, strange := make([]bool, len(text)), false
	mark := func(from, to syntax.Pos) {
		for i := from.Offset(); i < min(to.Offset(), uint(len(text))); i++ {
			known[i] = true
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Comment:
			at := n.Pos().Offset()
			strange = strange || at > 0 && !strings.ContainsRune(" \t\n;&|(", rune(text[at-1]))
			mark(n.Pos(), n.End())
		case *syntax.CmdSubst:
			strange = strange || hidesItsEnd(n)
		case *syntax.Lit, *syntax.SglQuoted:
			mark(n.Pos(), n.End())
		case *syntax.ParamExp:
			end := n.End()
			if n.Exp != nil && n.Exp.Word != nil {
				end = n.Exp.Word.Pos()
			}
			mark(n.Pos(), end)
		}
		return true
	})
	for i, seen := range known {
		strange = strange || text[i] == '#' && !seen
	}
	return strange
}

// hidesItsEnd reports whether a comment within a command substitution holds what
// posh counts when it looks for the end of the substitution: it does not know
// comments there, so $(ls #) is complete to it.
func hidesItsEnd(c *syntax.CmdSubst) (hides bool) {
	syntax.Walk(c, func(n syntax.Node) bool {
		comment, ok := n.(*syntax.Comment)
		hides = hides || ok && strings.ContainsAny(comment.Text, "()'\"`\\$")
		return true
	})
	return hides
}
