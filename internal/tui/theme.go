// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import "strings"

// Themes are the names of the themes. The first is the usual one, for dark backgrounds.
var Themes = []string{"dark", "light", "contrast", "none"}

// themes say what stands for the styles of the usual theme. Yellow and cyan cannot be read on
// white, nor dim text and blue by everybody on black.
var themes = map[string]*strings.Replacer{
	"light":    replacer(yellow, magenta, cyan, blue),
	"contrast": replacer(dim, "", blue, "1;36", green, "1;32", yellow, "1;33", magenta, "1;35", cyan, "1;36", red, "1;31"),
	"none":     replacer(red, "", green, "", yellow, "", blue, "", magenta, "", cyan, ""),
}

// red is a style of notes, which other packages write.
const red = "31"

// replacer replaces styles by others, or by nothing.
func replacer(styles ...string) *strings.Replacer {
	for i, style := range styles {
		if style != "" {
			styles[i] = "\x1b[" + style + "m"
		}
	}
	return strings.NewReplacer(styles...)
}

// SetTheme changes the styles of what is shown from now on. It reports false for a name that is
// not among [Themes].
func (t *Terminal) SetTheme(name string) bool {
	theme, other := themes[name]
	if !other && name != Themes[0] {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.theme = theme
	t.changed()
	return true
}

// themed returns lines in the styles of the theme.
func (t *Terminal) themed(lines []string) []string {
	if t.theme == nil {
		return lines
	}
	list := make([]string, len(lines))
	for i, line := range lines {
		list[i] = t.theme.Replace(line)
	}
	return list
}
