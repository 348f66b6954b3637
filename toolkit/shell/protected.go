// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/obeyed"
)

// protected returns the reason for asking about a command that names a file which
// other programs run or obey, see files.Protected, or puts something into a folder that
// has such files, see files.Holds. A command that only reads may name them. What a
// program writes to without naming it is not known here.
func (c *Command) protected(q *inquiry, in *programs) string {
	folders, all := q.folders(in.dir)
	target := func(w word) string { return c.named(folders, w) }
	for _, w := range q.written {
		if !all {
			return lost
		}
		if why := target(w); why != "" {
			return why
		}
		if w.unknown {
			if why := c.holds(folders, word{text: filepath.Dir(w.text)}); why != "" {
				return why
			}
		}
	}
	for _, s := range q.commands {
		var n named
		n.sure, n.all = in.identify(s.words[0].text)
		goes := slices.Contains(goers, s.words[0].text)
		if !goes && s.leaf(n, q, in) {
			continue
		}
		if why := c.files.Protected(in.dir); why != "" && !goes {
			return why
		}
		if !all && !goes {
			return lost
		}
		nothing := !goes && s.putsNothing(n)
		for _, w := range s.words[1:] {
			_, value, _ := strings.Cut(w.text, "=")
			for _, name := range []string{w.text, value} {
				if why := target(word{text: name, unknown: w.unknown && !nothing}); why != "" {
					return why
				}
			}
		}
		if !goes && !nothing {
			if why := c.puts(folders, s.words[1:]); why != "" {
				return why
			}
		}
		if n.sure == "git" && configures(s.words[1:]) {
			return "it changes git's configuration, by which git can be made to start programs"
		}
	}
	return ""
}

// lost is the reason for asking about a command that goes to more folders than are followed.
const lost = "it changes its folder too often to follow where it writes"

// goers are the commands of shells that change the folder.
var goers = []string{"cd", "chdir", "pushd"}

// named returns why a name is asked about in one of the folders, or "".
func (c *Command) named(folders []string, w word) string {
	for _, name := range w.spellings() {
		if name == "" || filepath.IsAbs(name) {
			if why := c.files.Protected(name); why != "" {
				return why
			}
			continue
		}
		for _, dir := range folders {
			if why := c.files.Protected(filepath.Join(dir, name)); why != "" {
				return why
			}
		}
	}
	return ""
}

// holds returns why it is asked about that something is put into what a word names in one of the folders, or "".
func (c *Command) holds(folders []string, w word) string {
	for _, name := range w.spellings() {
		if filepath.IsAbs(name) {
			folders = []string{""}
		}
		for _, dir := range folders {
			if why := c.files.Holds(filepath.Join(dir, name)); why != "" {
				return why
			}
		}
	}
	return ""
}

// puts returns why a command is asked about that may put a file into a folder which one of its words, the
// value of an option, or the end of an option with one letter names.
func (c *Command) puts(folders []string, words []word) string {
	for _, w := range words {
		names := []string{w.text}
		if _, value, ok := strings.Cut(w.text, "="); ok {
			names = append(names, value)
		}
		if len(w.text) > 2 && w.text[0] == '-' && w.text[1] != '-' {
			names = append(names, w.text[2:])
		}
		for _, name := range names {
			if name == "" {
				continue // a variable; in which folder it lies is not known
			}
			if why := c.holds(folders, word{text: name, unknown: w.unknown}); why != "" {
				return why
			}
		}
	}
	return ""
}

// putsNothing reports whether a command puts no files into the folders that it names: it reads, makes
// empty folders, removes, changes what is there, or git takes files from there or has them of its own.
func (c simple) putsNothing(n named) bool {
	if n.sure == "git" {
		words := slices.DeleteFunc(slices.Clone(c.words), func(w word) bool { return w.text == "--no-pager" })
		return len(words) > 1 && slices.Contains([]string{"add", "stage", "rm", "commit", "restore", "checkout", "reset", "stash", "status", "diff", "log", "show", "blame", "ls-files", "check-ignore"}, words[1].text)
	}
	v, known := verbs[n.sure]
	return known && !v.runs || slices.Contains([]string{"mkdir", "rmdir", "rm", "chmod", "chown", "touch"}, n.sure)
}

// spellings returns the text of a word, and what it may become if it is a pattern for a folder that has obeyed files.
func (w word) spellings() []string {
	list := []string{filepath.FromSlash(w.text)}
	if w.unknown {
		for _, name := range obeyed.Matching(filepath.ToSlash(w.text)) {
			list = append(list, filepath.FromSlash(name))
		}
	}
	return list
}

// mostFolders is how many folders are followed. Each cd may double them.
const mostFolders = 128

// folders returns the folder of a command, and those in which parts of it may run because of cd. It reports
// whether these are all.
func (q *inquiry) folders(dir string) (list []string, all bool) {
	list = []string{dir}
	for _, to := range goals(q.commands, q.loops) {
		for _, name := range to.spellings() {
			for _, from := range slices.Clone(list) {
				path := name
				if !filepath.IsAbs(name) {
					path = filepath.Join(from, name)
				}
				if !slices.Contains(list, path) {
					list = append(list, path)
				}
			}
		}
		if len(list) > mostFolders {
			return list, false
		}
	}
	return list, true
}

// goals returns the words of each cd that may be a folder: some shells take the first one, some refuse a second one.
// With twice, those of a script that is read in two languages count twice, as in a loop.
func goals(commands []simple, twice bool) (list []word) {
	for _, s := range commands {
		if !slices.Contains(goers, s.words[0].text) || s.again && !twice {
			continue
		}
		for _, w := range s.words[1:] {
			if !slices.Contains([]string{"-", "--", "-L", "-P", "-e", "-n", ""}, w.text) {
				list = append(list, w)
			}
		}
	}
	return list
}

// configures reports whether words of git may be git config with more than a name to
// print.
func configures(words []word) bool {
	at := slices.IndexFunc(words, func(w word) bool { return w.text == "config" })
	if at < 0 {
		return false
	}
	names := 0
	for _, w := range words[at+1:] {
		switch {
		case w.unknown:
			return true
		case !strings.HasPrefix(w.text, "-"):
			names++
		case !slices.Contains([]string{"--get", "--get-all", "--list", "-l", "-z", "--global", "--local", "--show-origin", "--show-scope", "--name-only"}, w.text):
			return true
		}
	}
	return names > 1
}
