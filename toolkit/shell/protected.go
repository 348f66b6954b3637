// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path/filepath"
	"slices"
	"strings"
)

// protected returns the reason for asking about a command that names a file which
// other programs run or obey, see files.Protected. A command that only reads may name
// it. What a program writes to without naming it is not known here.
func (c *Command) protected(q *inquiry, in *programs) string {
	folders := q.folders(in.dir)
	target := func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return c.files.Protected(name)
		}
		for _, dir := range folders {
			if why := c.files.Protected(filepath.Join(dir, name)); why != "" {
				return why
			}
		}
		return ""
	}
	for _, name := range q.written {
		if why := target(name); why != "" {
			return why
		}
	}
	for _, s := range q.commands {
		var n named
		n.sure, n.all = in.identify(s.words[0].text)
		goes := s.words[0].text == "cd"
		if !goes && s.leaf(n, q, in) {
			continue
		}
		if why := c.files.Protected(in.dir); why != "" && !goes {
			return why
		}
		for _, w := range s.words[1:] {
			_, value, _ := strings.Cut(w.text, "=")
			for _, name := range []string{w.text, value} {
				if why := target(name); why != "" {
					return why
				}
			}
		}
		if n.sure == "git" && configures(s.words[1:]) {
			return "it changes git's configuration, by which git can be made to start programs"
		}
	}
	return ""
}

// mostFolders is how many folders are followed. Each cd doubles them.
const mostFolders = 64

// folders returns the folder of a command, and those in which parts of it may run because of cd.
func (q *inquiry) folders(dir string) []string {
	list := []string{dir}
	for _, s := range q.commands {
		if s.words[0].text != "cd" || len(s.words) < 2 {
			continue
		}
		to := s.words[len(s.words)-1].text
		for _, from := range slices.Clone(list) {
			if to = filepath.FromSlash(to); !filepath.IsAbs(to) {
				list = append(list, filepath.Join(from, to))
				continue
			}
			list = append(list, to)
			break
		}
		if len(list) > mostFolders {
			break
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
