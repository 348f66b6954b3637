// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/session"
)

// This file holds the meaning of a rule that an answer leaves behind. It covers
// what was shown: the same words, or a verb with options that are known to be
// harmless, on files in the roots. A prefix of the words would cover much more: git
// log with --output, git grep with -O, sed with a second script.

// answered reports whether a rule that an answer left behind covers all that was
// asked for: the same words, in the first root. A command that names the same
// programs by other words is not covered.
func (p Policy) answered(q *inquiry, names []named, in *programs) bool {
	if !in.first || !slices.ContainsFunc(p.answers, func(words []string) bool { return slices.Equal(words, q.asked) }) {
		return false
	}
	for i, c := range q.commands {
		if !c.neutral && names[i].sure == "" && !strings.ContainsRune(filepath.ToSlash(c.words[0].text), '/') {
			return false // another program by the name is found first
		}
	}
	return len(q.commands) > 0
}

// covers reports whether an answer about a verb covers a command.
func (p Policy) covers(c simple, n named, q *inquiry, in *programs) bool {
	if len(p.answers) == 0 || n.sure == "" {
		return false
	}
	words, ok := c.known()
	if !ok {
		return false
	}
	words[0] = n.sure
	v, name, rest, ok := verbOf(words)
	if !ok || q.moved || v.runs && !in.first {
		return false
	}
	if strings.HasPrefix(name, "git ") && repositoryProblem(in.dir, in.writable) != "" {
		return false
	}
	return slices.ContainsFunc(p.answers, func(rule []string) bool {
		if len(rule) < 2 || rule[len(rule)-1] != session.KnownOptions {
			return false
		}
		_, of, fixed, ok := verbOf(rule[:len(rule)-1])
		return ok && of == name && v.safe(rest, fixed, in.inRoots)
	})
}

// known returns the words of a command if all of them are known.
func (c simple) known() (words []string, ok bool) {
	for _, w := range c.words {
		if w.unknown {
			return nil, false
		}
		words = append(words, w.text)
	}
	return words, !c.open
}

// suggest returns the rule that an answer about the call can leave behind: the verb,
// if it is known and the whole call is one program, otherwise the same words.
func (q *inquiry) suggest(permits func(words []string) bool) []string {
	var main []simple
	for _, c := range q.commands {
		same := func(other simple) bool { return slices.Equal(other.words, c.words) } // a script is read by two grammars
		if !c.neutral && !c.through && !slices.ContainsFunc(main, same) {
			main = append(main, c)
		}
	}
	if len(main) == 1 {
		if words, ok := main[0].known(); ok {
			words[0] = baseName(words[0])
			if v, name, rest, ok := verbOf(words); ok {
				rule := strings.Fields(name)
				if others, _, ok := v.read(rest); ok && v.operands == sameWords {
					rule = append(rule, others...)
				}
				if rule = append(rule, session.KnownOptions); permits(rule) {
					return rule
				}
			}
		}
	}
	if n := len(q.asked); n == 0 || q.asked[n-1] == session.KnownOptions || !permits(q.asked) {
		return nil
	}
	return q.asked
}

// suggest returns the rules that would allow all commands of a call to the named
// tool, or none if no rules would.
func (c *Command) suggest(name string, list []asked) (rules []session.Rule) {
	for _, a := range list {
		within, err := c.confinement(a)
		if err != nil {
			return nil
		}
		member := memberOf(within.profile)
		if of, err := profileOf(member); err != nil || !within.profile.Covers(of) {
			return nil // a rule would cover more than this profile
		}
		rule := func(words []string) session.Rule {
			return session.Rule{Verdict: session.Allow, Tool: name, Member: member, Prefix: words}
		}
		words := c.inquire(a).suggest(func(words []string) bool {
			decision, _ := c.judge([]asked{a}, []session.Rule{rule(words)})
			return decision == session.Allow
		})
		if words == nil {
			return nil
		}
		if !slices.ContainsFunc(rules, func(r session.Rule) bool {
			return r.Member == member && slices.Equal(r.Prefix, words)
		}) {
			rules = append(rules, rule(words))
		}
	}
	return rules
}

// inRoots reports whether a word is a path in the roots, however a program reads it:
// as text, or through the links on the way. A file that does not exist is nowhere
// else. Without dirs the path must not be a directory.
func (p *programs) inRoots(word string, dirs bool) bool {
	if word == "-" {
		return true // the input, which is empty or another command's output
	}
	if word == "" || strings.HasPrefix(word, "~") || strings.HasPrefix(word, "@") || strings.ContainsRune(word, 0) {
		return false
	}
	full := word
	if !filepath.IsAbs(word) {
		full = p.dir + string(filepath.Separator) + word // not cleaned: a link may come before ".."
	}
	real, err := filepath.EvalSymlinks(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		real = filepath.Clean(full)
	case err != nil && len(word) > 255:
		real = filepath.Clean(full) // too long for a file
	case err != nil:
		return false
	}
	if !within(p.writable, filepath.Clean(full)) || !within(p.writable, real) {
		return false
	}
	if info, err := os.Stat(real); !dirs && err == nil && info.IsDir() {
		return false
	}
	return true
}

// within reports whether a path is one of the directories or below one.
func within(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	})
}
