// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import "strings"

// Notices are the ways in which a terminal can tell a person something who looks at another
// window. The first is the usual one.
var Notices = []string{"bell", "osc9", "osc777", "osc99", "none"}

// longestNotice is how many columns of a notice are sent.
const longestNotice = 120

// noticeText returns the text of a notice: one line that no terminal obeys, and short, because
// what it is about may have been named by somebody else.
func noticeText(what, about string) string {
	if about != "" {
		what += ": " + about
	}
	return fitted(Shown(strings.Join(strings.Fields(what), " ")), longestNotice)
}

// notice returns the bytes that give a notice to a terminal.
func notice(kind, text string, tmux bool) string {
	const title = "antiphon"
	var seq string
	switch kind {
	case "", "bell":
		return "\a"
	case "osc9": // the text of one that began with a digit and a semicolon would mean something else
		seq = "\x1b]9;" + title + ": " + text + "\x1b\\"
	case "osc777": // semicolons end a field
		seq = "\x1b]777;notify;" + title + ";" + strings.ReplaceAll(text, ";", ",") + "\x1b\\"
	case "osc99": // the title, and then the text of the same notice
		seq = "\x1b]99;i=antiphon:d=0;" + title + "\x1b\\\x1b]99;i=antiphon:d=1:p=body;" + text + "\x1b\\"
	}
	if seq != "" && tmux { // which hands through only what is wrapped, if it is set to
		seq = throughTmux(seq)
	}
	return seq
}

// throughTmux wraps a sequence so that tmux hands it to its terminal, if allow-passthrough is on.
func throughTmux(seq string) string {
	return "\x1bPtmux;" + strings.ReplaceAll(seq, "\x1b", "\x1b\x1b") + "\x1b\\"
}

// ring tells the person something if they look at something else.
func (t *Terminal) ring(what string) {
	if !t.blurred {
		return
	}
	if t.opts.Tell != nil {
		t.opts.Tell(noticeText(what, t.opts.About))
		return
	}
	t.raw = append(t.raw, notice(t.opts.Notice, noticeText(what, t.opts.About), t.opts.Tmux)...)
}
