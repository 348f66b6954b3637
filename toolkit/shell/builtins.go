// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// evaluating are commands of a shell that run text, change what later words
// mean, or take names: the index in a[$(rm x)] is run wherever a shell looks
// for a name or a number. Not all are in all shells that may be called sh.
var evaluating = []string{
	"eval", "source", ".", "trap", "alias", "unalias", "enable", "hash", "bind", "complete", "compgen", "compopt", "fc", "mapfile", "readarray",
	"coproc", "shopt", "unset", "typeset", "getopts", "history", "let", "declare", "jobs", "ulimit", "caller",
	"pushd", "popd", "dirs", "disown", "suspend", "logout", "fg", "bg",
	"integer", "float", "compound", "nameref", "global", "print", "whence", "autoload", "alarm", "emulate", "noglob", "nocorrect", "vared", "zmodload",
}

// builtin notes what a command of the shell itself does beside being run, and
// reports whether a rule could not be about it. Where it takes names or
// numbers, only what is plainly that is looked through.
func (q *inquiry) builtin(name string, args []word) (harmless bool) {
	known := !slices.ContainsFunc(args, func(w word) bool { return w.unknown })
	switch name {
	case "true", "false", ":", "pwd", "times", "echo":
		return true
	case "exit", "return", "break", "continue", "shift", "wait":
		harmless = !slices.ContainsFunc(args, func(w word) bool { return !isDigits(w) })
	case "printf":
		harmless = harmlessPrintf(args)
	case "test", "[":
		harmless = harmlessTest(args)
	case "set":
		if harmless = known && harmlessSet(args); known && !slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "+") }) {
			return false // it sets $1, or lists
		}
	case "read":
		harmless = known && q.reads(args)
	case "cd":
		q.moved = true
		return len(args) == 1 && known && filepath.IsLocal(args[0].text) && args[0].text != "-"
	case "export", "readonly", "local":
		if known && q.exports(args) {
			return false
		}
	case "kill", "type", "umask":
		if known && !slices.ContainsFunc(args, func(w word) bool { return strings.ContainsAny(w.text, "[$`") }) {
			return false // for a rule, as if it were a program
		}
	default:
		return false
	}
	if !harmless {
		q.opaque("what %s does is only known when it runs", name)
	}
	return harmless
}

// isDigits reports whether a word is a number, and no name that would be
// computed.
func isDigits(w word) bool {
	return w.number || !w.unknown && w.text != "" && strings.Trim(w.text, "0123456789") == ""
}

// reads notes the variables that read sets.
func (q *inquiry) reads(args []word) bool {
	for _, w := range args {
		switch {
		case w.text == "-r":
		case identifier.MatchString(w.text):
			q.variable(w.text)
		default:
			return false
		}
	}
	return true
}

// exports notes the variables that export and its like set.
func (q *inquiry) exports(args []word) bool {
	for _, w := range args {
		name, _, _ := strings.Cut(w.text, "=")
		if !identifier.MatchString(name) {
			return false
		}
		q.sets(name)
	}
	return true
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// textFormat fits formats of printf that take every argument as a text.
var textFormat = regexp.MustCompile(`^([^%]|%-?[0-9]*(\.[0-9]+)?[sb]|%[%c])*$`)

// harmlessPrintf knows the format, so that it is not -v, which sets a variable,
// and that no shell computes an argument.
func harmlessPrintf(args []word) bool {
	if len(args) > 0 && !args[0].unknown && args[0].text == "--" {
		args = args[1:]
	} else if len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		return false
	}
	if len(args) == 0 || args[0].unknown {
		return false
	}
	if textFormat.MatchString(args[0].text) {
		return true
	}
	return !strings.Contains(args[0].text, "n") && !slices.ContainsFunc(args[1:], func(w word) bool { return !isDigits(w) })
}

// numeric are the operators of test that take numbers, which some shells
// compute.
var numeric = []string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}

// harmlessTest lets conditions pass whose operators are all in sight. -v and -R
// compute an index.
func harmlessTest(args []word) bool {
	if slices.ContainsFunc(args, func(w word) bool { return !w.unknown && (w.text == "-v" || w.text == "-R") }) {
		return false
	}
	operands := slices.Clone(args)
	if n := len(operands); n > 0 && operands[n-1].text == "]" {
		operands = operands[:n-1]
	}
	if slices.ContainsFunc(operands, func(w word) bool { return slices.Contains(numeric, w.text) }) {
		return !slices.ContainsFunc(operands, func(w word) bool {
			return !isDigits(w) && (w.unknown || !slices.Contains(numeric, w.text))
		})
	}
	if !slices.ContainsFunc(operands, func(w word) bool { return w.unknown && !w.number }) {
		return true
	}
	if slices.ContainsFunc(operands, func(w word) bool { return w.many }) {
		return false
	}
	switch len(operands) {
	case 2:
		return !operands[0].unknown && slices.Contains([]string{"-n", "-z", "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L"}, operands[0].text)
	case 3:
		return !operands[1].unknown && slices.Contains([]string{"=", "!="}, operands[1].text)
	}
	return false
}

func harmlessSet(args []word) bool {
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch {
		case text == "--":
			return true
		case len(text) < 2 || text[0] != '-' && text[0] != '+':
			return false
		case strings.Trim(text[1:], "euxfvC") == "":
		case strings.Trim(text[1:], "euxfvC") == "o" && strings.HasSuffix(text, "o"):
			if i++; i == len(args) || !slices.Contains(shellOptions, args[i].text) {
				return false
			}
		default:
			return false
		}
	}
	return len(args) > 0
}
