// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/rehearsal"
)

// motions say how much moves in a chat. The first is the usual one.
var motions = []string{"full", "reduced"}

// keySets are the keys of the draft. The first are the usual ones.
var keySets = []string{"emacs", "vi"}

// bindHint says how keys are bound.
const bindHint = "write KEY=KEY, KEY=KEY KEY, KEY=/COMMAND, KEY KEY=/COMMAND or KEY=none, with semicolons between them, such as f2=/fullscreen; ctrl+t=ctrl+r"

// Problem says what is wrong with a value of a setting of the chat, and how it is written. It returns "" if nothing is, and for
// other settings.
func Problem(setting, value string) (problem, hint string) {
	one := func(of []string) (problem, hint string) {
		if slices.Contains(of, value) {
			return "", ""
		}
		return fmt.Sprintf("%s is %q", setting, value), "it is one of " + strings.Join(of, ", ")
	}
	switch setting {
	case "motion":
		return one(motions)
	case "keys":
		return one(keySets)
	case "titles", "suggest":
		return one(asides)
	case "notify":
		if _, err := parseNotify(value); err != nil {
			return err.Error(), notifyHint
		}
	case "bind":
		if _, err := tui.ParseBindings(value); err != nil {
			return "bind: " + err.Error(), bindHint
		}
	}
	return "", ""
}

// values completes the arguments of commands, and what is named behind @ besides files. It is called while the agent works, too.
func (t *dialogue) values(command, begin string) (found []string) {
	var all []string
	switch command {
	case "@":
		if names := t.named.Load(); names != nil {
			all = *names
		}
	case "allow":
		all = []string{"allow ", "ask ", "deny ", "reset"}
		if names := t.toolNames.Load(); names != nil {
			verdict := ""
			if word, _, two := strings.Cut(begin, " "); two {
				verdict, all = word+" ", nil
			}
			for _, name := range *names {
				all = append(all, verdict+name)
			}
		}
	case "collapse":
		all = []string{"on", "off"}
	case "context":
		all = []string{"drop "}
	case "copy", "edit":
		all = []string{"code"}
	case "effort":
		all = Efforts
	case "export":
		return filesAt(begin)
	case "mode":
		all = modes
	case "model":
		all = append(slices.Clone(t.conf.Models), rehearsal.Model)
	case "theme":
		all = tui.Themes
	}
	for _, one := range all {
		if strings.HasPrefix(one, begin) {
			found = append(found, one)
		}
	}
	return found
}
