// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// evaluating lists builtins that run text, change the meaning of later words, or
// accept names: a shell runs the index in a[$(rm x)] wherever it expects a name
// or a number. Not every shell that may be called sh has all of them.
var evaluating = []string{
	"eval", "source", ".", "trap", "alias", "unalias", "enable", "hash", "bind", "complete", "compgen", "compopt", "fc", "mapfile", "readarray",
	"coproc", "shopt", "unset", "typeset", "getopts", "history", "let", "declare", "jobs", "ulimit", "caller",
	"pushd", "popd", "dirs", "disown", "suspend", "logout", "fg", "bg",
	"integer", "float", "compound", "nameref", "global", "print", "whence", "autoload", "alarm", "emulate", "noglob", "nocorrect", "vared", "zmodload",
}

// builtin records what a shell builtin does, and reports whether it needs no rule.
// If the builtin accepts names or numbers, only words that are plainly such are
// accepted.
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
			return false // sets $1, or lists variables
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
			return false // needs a rule, as if it were a program
		}
	default:
		return false
	}
	if !harmless {
		q.opaque("what %s does is only known when it runs", name)
	}
	return harmless
}

// isDigits reports whether a word is a number, and not a name that a shell would
// compute.
func isDigits(w word) bool {
	return w.number || !w.unknown && w.text != "" && strings.Trim(w.text, "0123456789") == ""
}

// reads records the variables that read sets.
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

// exports records the variables that export and similar builtins set.
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

var identifier = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// textFormat matches printf formats that treat every argument as text.
var textFormat = lazyregexp.New(`^([^%]|%-?[0-9]*(\.[0-9]+)?[sb]|%[%c])*$`)

// harmlessPrintf reports whether the format is known, so that it is not -v, which
// sets a variable, and whether no shell computes an argument.
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

// numeric lists the operators of test that take numbers, which some shells compute.
var numeric = []string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}

// harmlessTest reports whether all operators of a condition are visible. The
// operators -v and -R compute an index.
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

// A wrapping describes a program that runs the command given in its arguments, and
// the arguments before it. An option that is not listed makes the command unclear.
type wrapping struct {
	flags   string   // short options without a value
	values  string   // short options with a value
	long    []string // long options; one that takes the next word as its value ends in a space
	skip    int      // number of words before the command
	assigns bool     // NAME=value may come before the command
	self    bool     // the wrapper itself must be allowed, too
	strict  bool     // with any option no rule allows it
	open    bool     // it adds words to the command
	query   string   // short options with which it runs nothing
}

var wrappers = map[string]wrapping{
	"env":     {flags: "i0v", values: "uC", long: []string{"ignore-environment", "null", "debug", "unset ", "chdir "}, assigns: true, strict: true},
	"nice":    {flags: "0123456789", values: "n", long: []string{"adjustment "}},
	"nohup":   {},
	"timeout": {flags: "fpv", values: "ks", long: []string{"foreground", "preserve-status", "verbose", "kill-after ", "signal "}, skip: 1},
	"time":    {flags: "pv", long: []string{"portability", "verbose"}},
	"stdbuf":  {values: "ioe", long: []string{"input ", "output ", "error "}},
	"ionice":  {flags: "t", values: "cn", long: []string{"ignore", "class ", "classdata "}},
	"setsid":  {flags: "cfw", long: []string{"ctty", "fork", "wait"}, self: true},
	"sudo":    {flags: "AbEHKknPSvV", values: "aCcDghpRrtTUu", long: []string{"non-interactive", "preserve-env", "set-home", "stdin", "user ", "group "}, assigns: true, self: true},
	"doas":    {flags: "Ln", values: "Cu", self: true},
	"xargs":   {flags: "0oprtx", values: "adELnPsS", long: []string{"null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty", "arg-file ", "delimiter ", "max-args ", "max-procs ", "max-chars ", "max-lines"}, open: true},
	"busybox": {self: true},
	"toybox":  {self: true},
}

// shellWrappers lists wrappers that only a shell has.
var shellWrappers = map[string]wrapping{
	"command": {flags: "p", query: "vV"},
	"exec":    {flags: "cl", values: "a"},
	"builtin": {},
}

// runners lists programs that run other programs in ways that are not parsed here.
var runners = []string{
	"su", "runuser", "pkexec", "chroot", "unshare", "nsenter", "bwrap", "firejail", "proot", "fakeroot", "systemd-run",
	"strace", "ltrace", "gdb", "valgrind", "perf", "script", "watch", "parallel", "ssh", "rsh", "at", "batch", "crontab",
	"taskset", "chrt", "prlimit", "choom", "flock", "caffeinate", "dbus-run-session", "xvfb-run", "entr", "expect",
	"cmd", "fd", "fdfind",
}

// otherShell matches shells that are not parsed here, under the names that
// distributions use: restricted, static, and with a version.
var otherShell = lazyregexp.New(`^(bsd-)?(r?(ba|da|a|k|mk|lk|pdk|ok|lok|po|ya|z|fi|c|tc|sa|b|sc|elvi|xon|o|y|hu|m|mr|ga|pw|tcl|wi|n|v|s)?sh|es|rc|nu|ion|oil|osh|murex|powershell|hilbish|closh|rush|bashdb)([-._]?[0-9][-._0-9a-z]*)?([-._]static)?(\.exe)?$`)

// shells lists the shells whose language is parsed.
var shells = []string{"sh", "bash", "dash", "ash"}

const maxWrapping = 10

// command records a program that is run, and what it runs in turn.
func (q *inquiry) command(c simple) {
	if q.depth++; q.depth > maxWrapping {
		q.opaque("commands within commands go too deep")
		return
	}
	defer func() { q.depth-- }()
	if len(c.words) == 0 {
		return
	}
	if c.words[0].unknown || c.words[0].text == "" {
		q.opaque("the program is named by what is only known when it runs (%q)", c)
		return
	}
	// Some file systems do not distinguish RM from rm.
	name := strings.ToLower(baseName(c.words[0].text))
	if w, ok := wrappers[name]; ok {
		q.wrapped(c, w)
		return
	}
	switch {
	case name == "find":
		q.find(c)
	case slices.Contains(shells, name):
		q.shell(c)
	case slices.Contains(runners, name), otherShell.MatchString(name):
		q.commands = append(q.commands, c)
		q.opaque("%s runs commands in a way that is not looked into", name)
	default:
		q.commands = append(q.commands, c)
	}
}

// wrapped looks through a wrapper. It records the wrapper too, because rules may
// deny it; the wrapper needs to be allowed only if it adds to what the command
// can do.
func (q *inquiry) wrapped(c simple, w wrapping) {
	inner, ok := q.unwrap(c, w)
	if !ok {
		q.commands = append(q.commands, c)
		return
	}
	c.through = !w.self && len(inner.words) > 0
	q.commands = append(q.commands, c)
	inner.open = c.open || w.open
	q.command(inner)
}

// unwrap returns the command that a wrapper runs. It reports false if nothing runs
// or if the command cannot be determined.
func (q *inquiry) unwrap(c simple, w wrapping) (inner simple, ok bool) {
	i, options := 1, true
	for ; i < len(c.words); i++ {
		text := c.words[i].text
		if c.words[i].unknown {
			q.opaque("the options of %q are only known when it runs", c)
			return inner, false
		}
		if name, _, set := strings.Cut(text, "="); w.assigns && set && (!options || !strings.HasPrefix(text, "-")) {
			q.sets(name)
			continue
		}
		if text == "--" && options {
			options = false // assignments may still follow
			continue
		}
		if !options || len(text) == 0 || text[0] != '-' || text == "-" && !w.assigns {
			break
		}
		if w.strict {
			q.taint("options of %q change the environment", c)
		}
		used, run := w.option(text)
		switch {
		case used == 0:
			q.opaque("the option %s of %q is not looked into", text, c)
			return inner, false
		case !run:
			return inner, false
		}
		i += used - 1
	}
	if i += w.skip; i >= len(c.words) {
		if c.open {
			q.opaque("the command of %q is only known when it runs", c)
		}
		return inner, !c.open // env and the like then do something themselves
	}
	inner.words = c.words[i:]
	return inner, true
}

// option returns the number of words that an option takes, 0 if the option is
// unknown, and reports whether the wrapper still runs a command.
func (w wrapping) option(text string) (used int, run bool) {
	if text == "-" {
		return 1, true // of env: an empty environment
	}
	if name, long := strings.CutPrefix(text, "--"); long {
		name, _, set := strings.Cut(name, "=")
		if slices.Contains(w.long, name+" ") {
			if set {
				return 1, true
			}
			return 2, true
		}
		if slices.Contains(w.long, name) {
			return 1, true
		}
		return 0, false
	}
	for i, letter := range text[1:] {
		switch {
		case strings.ContainsRune(w.query, letter):
			return 1, false
		case strings.ContainsRune(w.flags, letter):
		case strings.ContainsRune(w.values, letter):
			if i == len(text)-2 {
				return 2, true
			}
			return 1, true
		default:
			return 0, false
		}
	}
	return 1, true
}

// harmlessNames are variables that a command may be given without being another
// command for it.
var harmlessNames = []string{"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_COLLATE", "LC_NUMERIC", "LC_TIME", "TZ", "TERM", "NO_COLOR", "CI", "COLUMNS", "LINES"}

// sizeNames are those of them that mksh takes as arithmetic when a script sets
// them, which can run commands. Those of the environment are safe.
var sizeNames = []string{"COLUMNS", "LINES"}

// evaluatedNames are variables whose value a shell runs, or takes as arithmetic,
// which can run commands too.
var evaluatedNames = []string{
	"PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT_COMMAND", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "MAILPATH", "FCEDIT", "EXECIGNORE",
	"RANDOM", "SRANDOM", "SECONDS", "LINENO", "HISTCMD", "OPTIND", "BASHPID", "PPID", "UID", "EUID", "EPOCHSECONDS", "EPOCHREALTIME", "TMOUT",
	"KSHEGID", "KSHGID", "KSHUID", "PGRP", "PIPESTATUS", "USER_ID",
}

// sets notes that a variable is set for a command: PATH, LD_PRELOAD and many
// more make another program of it.
func (q *inquiry) sets(name string) {
	if slices.Contains(evaluatedNames, name) || strings.HasPrefix(name, "BASH_FUNC_") {
		q.opaque("a shell runs or computes what the variable %s holds", name)
	}
	if !slices.Contains(harmlessNames, name) {
		q.taint("the variable %s is set, which can change what a command does", name)
	}
}

// find looks into the commands that find runs.
func (q *inquiry) find(c simple) {
	q.commands = append(q.commands, c)
	if c.open || slices.ContainsFunc(c.words, func(w word) bool { return w.unknown }) {
		q.opaque("the arguments of %q are only known when it runs", c)
		return
	}
	for i := 1; i < len(c.words); i++ {
		switch text := c.words[i].text; text {
		case "-delete", "-fprint", "-fprint0", "-fprintf", "-fls":
			q.taint("%q of find writes or deletes", text)
		case "-exec", "-execdir", "-ok", "-okdir":
			q.moved = q.moved || strings.HasSuffix(text, "dir")
			inner, used := execOf(c.words[i+1:])
			if used == 0 {
				q.opaque("%q of find has no end", text)
				return
			}
			i += used
			q.command(inner)
		}
	}
}

// execOf returns the command up to ";" or "+", and how many words that is with
// the end.
func execOf(words []word) (inner simple, used int) {
	for i, w := range words {
		if w.text == ";" || w.text == "+" && i > 0 && words[i-1].text == "{}" {
			return inner, i + 1
		}
		w.unknown = strings.Contains(w.text, "{}")
		inner.words = append(inner.words, w)
	}
	return inner, 0
}

// shell reads what is given to sh -c.
func (q *inquiry) shell(c simple) {
	script, given, ok := shellScript(c.words)
	switch {
	case !ok || c.open && given:
		q.commands = append(q.commands, c)
		q.opaque("the arguments of %q are not looked into", c)
	case !given:
		q.commands = append(q.commands, c) // a file, by the shell's own rule
		if !plainFile.MatchString(script) {
			q.misread("a shell's file by the name %s, which ksh93 runs as a command line if there is no such file", wording.Clipped(script))
		}
	default:
		if slices.ContainsFunc(c.words, plusC) {
			q.misread("the option +c, which is -c to some shells and not to others")
		}
		c.through = true
		q.commands = append(q.commands, c)
		q.script(script, strings.ToLower(baseName(c.words[0].text)))
	}
}

// plainFile fits names of files that no shell takes for more than one word.
var plainFile = lazyregexp.New(`^[-+.,:@%/_0-9A-Za-z]+$`)

// plusC reports an option with c that begins with a plus.
func plusC(w word) bool {
	return strings.HasPrefix(w.text, "+") && strings.Contains(w.text, "c")
}

// shellScript returns the word after -c, or the name of a file. It reports false
// for options that are not known here.
func shellScript(words []word) (script string, given, ok bool) {
	withC := false
	for i := 1; i < len(words); i++ {
		w := words[i]
		if w.unknown {
			return "", withC, false
		}
		name := strings.TrimLeft(w.text, "-+")
		switch {
		case w.text == "" || w.text[0] != '-' && w.text[0] != '+' || w.text == "-" || w.text == "--":
			if w.text == "-" || w.text == "--" {
				if i++; i == len(words) || words[i].unknown {
					return "", withC, false
				}
			}
			return words[i].text, withC, true
		case strings.HasPrefix(w.text, "--"):
			if !slices.Contains([]string{"norc", "noprofile", "posix", "login", "verbose"}, name) {
				return "", withC, false
			}
		case strings.Trim(name, "celuxvfn") == "":
			withC = withC || strings.Contains(name, "c")
		case name == "o" || strings.Trim(name, "celuxvfn") == "o" && strings.HasSuffix(name, "o"):
			withC = withC || strings.Contains(name, "c")
			if i++; i == len(words) || words[i].unknown || !slices.Contains(shellOptions, words[i].text) {
				return "", withC, false
			}
		default:
			return "", withC, false
		}
	}
	return "", false, false // it reads its input
}

// shellOptions are those of set -o that change nothing about what is run.
var shellOptions = []string{"errexit", "nounset", "xtrace", "pipefail", "noglob", "noclobber", "verbose"}
