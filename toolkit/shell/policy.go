// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// Decision is what a policy says of a command.
type Decision string

// The decisions. Denied wins over Asked, Asked over Allowed.
const (
	Unruled Decision = ""
	Allowed Decision = "allow"
	Asked   Decision = "ask"
	Denied  Decision = "deny"
)

// Rule describes commands: the program, then arguments. A star in an
// element stands for any characters.
//
// A program is named as it is in PATH; ./git is not git to an Allow rule, and
// is git to the others. To an Allow rule the arguments must be the command's
// first ones. To a Deny or Ask rule they may stand anywhere, in this order, so
// that no option in between hides them; -rf is there if both letters are, and
// --force also where it is cut short or has a value.
type Rule []string

// ParseRule reads a rule as a person writes it, its elements separated by
// white space: "git status".
func ParseRule(s string) (Rule, error) {
	r := Rule(strings.Fields(s))
	return r, r.check()
}

func (r Rule) String() string { return strings.Join(r, " ") }

func (r Rule) check() error {
	if len(r) == 0 || r[0] == "" {
		return errors.New("shell: a command rule is empty; it begins with a program")
	}
	return nil
}

// Policy decides about commands by what they are once read: the program,
// not the text. It looks through programs that run others (env, timeout, xargs,
// find -exec, sudo, sh -c and more), and a command line is read as a shell reads
// it. All the programs that a command would run must be allowed for it to be;
// one that is denied is enough. What cannot be told from the text, such as a
// program named by a variable, is asked about when there are rules that it could
// break, and is never allowed by one. A command line that shells are known to read
// in different ways, such as one with a carriage return, is refused when there are
// Deny rules, since none can be held against it; the reason says how to write it.
//
// It is a policy, not a sandbox: an allowed program does what it can do. Do not
// allow interpreters, or programs that take commands as options, unless all they
// can do is allowed.
type Policy struct {
	Allow, Ask, Deny []Rule
}

func (p Policy) check() error {
	for _, r := range slices.Concat(p.Allow, p.Ask, p.Deny) {
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}

// word is one word of a command. What an unknown one says is decided when the
// command runs; it may become several words.
type word struct {
	text    string
	unknown bool
	many    bool // it may be several words, or none
	number  bool // it is only known when it runs, and a number or nothing then
}

// simple is one program run with its words.
type simple struct {
	words   []word
	open    bool // words come that are not in the text
	neutral bool // a part of the shell that does nothing that needs a rule
	through bool // what it runs needs a rule, and not it, if it is what its name says
}

func (s simple) String() string {
	var texts []string
	for _, w := range s.words {
		if w.unknown {
			texts = append(texts, "…")
		} else {
			texts = append(texts, w.text)
		}
	}
	if s.open {
		texts = append(texts, "…")
	}
	return wording.Clipped(strings.Join(texts, " "))
}

// inquiry is what was found out about a command: all that it runs, what could
// not be told, and what keeps it from being allowed by a rule.
type inquiry struct {
	commands []simple
	differs  string // why a shell may run something else than was read, or ""
	unclear  []string
	tainted  []string
	moved    bool // a command runs elsewhere than in the working directory
	depth    int
}

// misread notes that a shell may read the command line differently, so that
// nothing that was found out about it is sure.
func (q *inquiry) misread(format string, a ...any) {
	q.opaque(format, a...)
	q.differs = cmp.Or(q.differs, q.unclear[len(q.unclear)-1])
}

func (q *inquiry) opaque(format string, a ...any) {
	q.unclear = append(q.unclear, fmt.Sprintf(format, a...))
}

func (q *inquiry) taint(format string, a ...any) {
	q.tainted = append(q.tainted, fmt.Sprintf(format, a...))
}

// with returns the policy with rules that have a prefix of a command.
func (p Policy) with(rules []session.Rule) Policy {
	for _, r := range rules {
		if r.Member != "command" || len(r.Prefix) == 0 || r.Prefix[0] == "" {
			continue
		}
		switch rule := Rule(r.Prefix); r.Verdict {
		case session.Allow:
			p.Allow = append(slices.Clip(p.Allow), rule)
		case session.Ask:
			p.Ask = append(slices.Clip(p.Ask), rule)
		case session.Deny:
			p.Deny = append(slices.Clip(p.Deny), rule)
		}
	}
	return p
}

func inquireArgv(argv []string) *inquiry {
	var words []word
	for _, arg := range argv {
		words = append(words, word{text: arg})
	}
	q := new(inquiry)
	q.command(simple{words: words})
	return q
}

func inquireScript(script string) *inquiry {
	q := new(inquiry)
	q.script(script, "sh")
	return q
}

// verbName is an argument that names something a program does: status, run,
// not a file or an option.
var verbName = regexp.MustCompile(`^[a-z][a-z-]*$`)

// suggest returns rules that would allow all that is run: each program with what
// it is told to do, or with all its arguments.
func (q *inquiry) suggest() (rules []Rule) {
	for _, c := range q.commands {
		if c.neutral || c.through {
			continue
		}
		words := c.words
		if len(words) > 1 && verbName.MatchString(words[1].text) {
			words = words[:2]
		}
		var r Rule
		for _, w := range words {
			if w.unknown || strings.Contains(w.text, "*") {
				return nil
			}
			r = append(r, w.text)
		}
		if !slices.ContainsFunc(rules, func(other Rule) bool { return slices.Equal(other, r) }) {
			rules = append(rules, r)
		}
	}
	return rules
}

// judge decides, the strictest first.
func (p Policy) judge(q *inquiry, in *programs) (Decision, string) {
	if q.moved && slices.ContainsFunc(q.commands, relativeProgram) {
		q.taint("a program is named from a directory that the command goes to")
	}
	if q.differs != "" && len(p.Deny) > 0 {
		return Denied, "shells may read the command line differently, so no rule can be held against it: " + q.differs
	}
	var doubt string
	names := make([]named, len(q.commands))
	for i, c := range q.commands {
		names[i].sure, names[i].all = in.identify(c.words[0].text)
	}
	for i, c := range q.commands {
		for _, r := range p.Deny {
			switch r.forbids(c, names[i], in) {
			case yes:
				return Denied, fmt.Sprintf("the rule %q denies %q", r, c)
			case maybe:
				doubt = fmt.Sprintf("it cannot be told whether the rule %q denies %q", r, c)
			}
		}
	}
	for i, c := range q.commands {
		for _, r := range p.Ask {
			if r.forbids(c, names[i], in) != no {
				return Asked, fmt.Sprintf("the rule %q wants %q to be asked about", r, c)
			}
		}
	}
	switch {
	case doubt != "":
		return Asked, doubt
	case len(q.unclear) > 0 && len(p.Deny)+len(p.Ask) > 0:
		return Asked, "it cannot be told what the command does: " + q.unclear[0]
	case len(q.unclear) > 0:
		return Unruled, "it cannot be told what the command does: " + q.unclear[0]
	case len(q.tainted) > 0:
		return Unruled, q.tainted[0]
	}
	return p.allowed(q, names, in)
}

func relativeProgram(c simple) bool {
	name := c.words[0].text
	return !filepath.IsAbs(name) && strings.ContainsRune(filepath.ToSlash(name), '/')
}

// named is what a program is called: for a rule that allows, and for others.
type named struct {
	sure string
	all  []string
}

// plain reports whether a program is what its name says, and the name is in
// lower case, as those of the programs that are looked through are.
func (n named) plain() bool { return n.sure != "" && n.sure == strings.ToLower(n.sure) }

func (p Policy) allowed(q *inquiry, names []named, in *programs) (Decision, string) {
	var by []string
	for i, c := range q.commands {
		if c.neutral || c.through && names[i].plain() {
			continue
		}
		at := slices.IndexFunc(p.Allow, func(r Rule) bool { return r.permits(c, names[i], in) })
		if at < 0 {
			return Unruled, fmt.Sprintf("no rule is about %q", c)
		}
		by = append(by, fmt.Sprintf("%q", p.Allow[at]))
	}
	if len(by) == 0 {
		return Unruled, ""
	}
	return Allowed, "allowed by " + strings.Join(slices.Compact(by), ", ")
}

// permits reports whether an Allow rule fits.
func (r Rule) permits(c simple, n named, in *programs) bool {
	if strings.ContainsRune(filepath.ToSlash(r[0]), '/') {
		if !in.same(r[0], c.words[0].text) {
			return false
		}
	} else if n.sure == "" || !fits(r[0], n.sure) {
		return false
	}
	if len(c.words) < len(r) {
		return false
	}
	for i, want := range r[1:] {
		if w := c.words[i+1]; w.unknown || !fits(want, w.text) {
			return false
		}
	}
	return true
}

// same reports whether two paths of programs are one, both taken from the
// working directory.
func (p *programs) same(rule, name string) bool {
	if !strings.ContainsRune(filepath.ToSlash(name), '/') {
		return false
	}
	a, err := p.find(rule)
	if err != nil {
		return false
	}
	b, err := p.find(name)
	return err == nil && filepath.Clean(a) == filepath.Clean(b)
}

type answer int

const (
	no answer = iota
	maybe
	yes
)

// forbids reports whether a Deny or Ask rule fits.
func (r Rule) forbids(c simple, n named, in *programs) answer {
	if !slices.ContainsFunc(n.all, func(name string) bool { return fits(strings.ToLower(r[0]), strings.ToLower(name)) }) && !in.same(r[0], c.words[0].text) {
		return no
	}
	rest, unsure := c.words[1:], c.open
	for _, w := range rest {
		unsure = unsure || w.unknown
	}
	for _, want := range r[1:] {
		i := slices.IndexFunc(rest, func(w word) bool { return !w.unknown && saysSo(want, w.text) })
		switch {
		case i >= 0:
			rest = rest[i+1:]
		case letters(want, c.words[1:]):
		case unsure:
			return maybe
		default:
			return no
		}
	}
	return yes
}

// saysSo reports whether an argument is the one a rule names, a long option
// also when it has a value or is cut short.
func saysSo(want, arg string) bool {
	if fits(want, arg) {
		return true
	}
	if !strings.HasPrefix(want, "--") || !strings.HasPrefix(arg, "--") {
		return false
	}
	name, _, _ := strings.Cut(arg, "=")
	return len(name) > 2 && strings.HasPrefix(want, name)
}

// letters reports whether all the short options of "-rf" are given, together or
// not.
func letters(want string, words []word) bool {
	if len(want) < 2 || want[0] != '-' || want[1] == '-' {
		return false
	}
	var given strings.Builder
	for _, w := range words {
		if !w.unknown && len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-' {
			given.WriteString(w.text[1:])
		}
	}
	for _, letter := range want[1:] {
		if !strings.ContainsRune(given.String(), letter) {
			return false
		}
	}
	return true
}

// fits reports whether a text is as a pattern, in which a star stands for any
// characters.
func fits(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}
