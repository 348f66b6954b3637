// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// unruled means that no rule of the policy matches the command.
const unruled session.Verdict = ""

// A Rule describes commands by a program and its arguments. A star in an element
// matches any characters.
//
// The program is named as in PATH. For an Allow rule ./git is not git; for the
// others it is. The arguments of an Allow rule must be the first ones of the
// command. Those of a Deny or Ask rule may appear anywhere, in this order, so that
// options in between cannot hide them; -rf matches if both letters are present,
// and --force matches also if it is abbreviated or has a value.
type Rule []string

// ParseRule parses a rule whose elements are separated by white space, such as
// "git status".
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

// A Policy decides about commands by their parsed form: by the program, not by
// the text. It looks through programs that run other programs (env, timeout,
// xargs, find -exec, sudo, sh -c and more), and it parses command lines as a shell
// does. A command is allowed only if all programs it would run are, and denied if
// one of them is.
//
// With a Deny or Ask rule, whatever could get round it is asked about: a program
// named by a variable, a command line that writes to a file or changes variables, and
// each program that is not known to only read and print with its options, because it
// may start others: perl, make, tar, sh x.sh, ./x. An Allow rule that names the
// program, or an answer about it, takes the place of the question. A command line that shells are known to interpret in different ways,
// such as one with a carriage return, is denied if there are Deny rules, because
// none of them could be checked; the reason says how to rewrite it.
//
// A policy is not a sandbox: an allowed program can do everything that the profile of
// commands lets it do. Do not allow interpreters, or programs that accept commands as options, unless
// everything they can do is acceptable.
type Policy struct {
	Allow, Ask, Deny []Rule
	answers          [][]string // the words of what people have allowed
}

func (p Policy) check() error {
	for _, r := range slices.Concat(p.Allow, p.Ask, p.Deny) {
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}

// A word is one word of a command. The value of an unknown word is determined only
// when the command runs, and it may then be several words.
type word struct {
	text    string
	unknown bool
	many    bool // may become several words, or none
	number  bool // unknown, but a number or nothing when the command runs
}

// simple is one program with its words.
type simple struct {
	words   []word
	open    bool // further words are added that are not in the text
	neutral bool // a shell builtin that is harmless and needs no rule
	again   bool // the script was read once before, with the same cds
	through bool // the program that it runs needs a rule; it does not need one itself, if it is the program its name says
}

func (c simple) String() string {
	var texts []string
	for _, w := range c.words {
		if w.unknown {
			texts = append(texts, "…")
		} else {
			texts = append(texts, w.text)
		}
	}
	if c.open {
		texts = append(texts, "…")
	}
	return wording.Clipped(strings.Join(texts, " "))
}

// An inquiry collects the facts about a command: all programs it runs, what could
// not be determined, and what keeps a rule from allowing it.
type inquiry struct {
	asked    []string // the words of the call, or its script
	commands []simple
	written  []word // the files that output is redirected to
	differs  string // why a shell may run something other than what was parsed, or ""
	unclear  []string
	tainted  []string
	loops    bool // commands may run more than once, or in another order
	moved    bool // a command runs in another directory than the working directory
	depth    int
}

// misread records that a shell may interpret the command line differently, so
// that none of the facts about it are certain.
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

// with returns the policy extended by the rules that have a command prefix, as far as
// they are about commands with a profile.
func (p Policy) with(rules []session.Rule, profile sandbox.Profile) Policy {
	for _, r := range rules {
		if !about(r, profile) || len(r.Prefix) == 0 || r.Prefix[0] == "" {
			continue
		}
		switch rule := Rule(r.Prefix); r.Verdict {
		case session.Allow:
			p.answers = append(slices.Clip(p.answers), rule)
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
	q := &inquiry{asked: argv}
	q.command(simple{words: words})
	return q
}

func inquireScript(script string) *inquiry {
	q := &inquiry{asked: []string{script}}
	q.script(script, "sh")
	return q
}

// judge decides, the strictest first.
func (p Policy) judge(q *inquiry, in *programs) (session.Verdict, string) {
	if q.moved && slices.ContainsFunc(q.commands, relativeProgram) {
		q.taint("a program is named from a directory that the command goes to")
	}
	if q.differs != "" && len(p.Deny) > 0 {
		return session.Deny, "shells may read the command line differently, so no rule can be held against it: " + q.differs
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
				return session.Deny, fmt.Sprintf("the rule %q denies %q", r, c)
			case maybe:
				doubt = fmt.Sprintf("it is not certain whether the rule %q denies %q", r, c)
			}
		}
	}
	for i, c := range q.commands {
		for _, r := range p.Ask {
			if r.forbids(c, names[i], in) != no {
				return session.Ask, fmt.Sprintf("the rule %q asks about %q", r, c)
			}
		}
	}
	switch {
	case doubt != "":
		return session.Ask, doubt
	case len(q.unclear) > 0 && len(p.Deny)+len(p.Ask) > 0:
		return session.Ask, "the command cannot be analysed: " + q.unclear[0]
	case len(q.unclear) > 0:
		return unruled, "the command cannot be analysed: " + q.unclear[0]
	case len(q.tainted) > 0 && len(p.Deny)+len(p.Ask) > 0:
		return session.Ask, "the rules that deny or ask may not hold: " + q.tainted[0]
	case len(q.tainted) > 0:
		return unruled, q.tainted[0]
	}
	verdict, reason := p.allowed(q, names, in)
	if verdict == unruled && len(p.Deny)+len(p.Ask) > 0 {
		for i, c := range q.commands {
			if !p.allows(c, names[i], q, in) && !c.leaf(names[i], q, in) {
				return session.Ask, fmt.Sprintf("%q may start other programs or write files, so the rules that deny or ask cannot be held against what it does", c)
			}
		}
	}
	return verdict, reason
}

// leaf reports whether a command is known to start no other program and to write
// nothing, with the options that it has.
func (c simple) leaf(n named, q *inquiry, in *programs) bool {
	if c.neutral || c.through && n.plain() || slices.Contains([]string{"cd", "kill", "set", "type", "umask"}, c.words[0].text) {
		return true
	}
	words, ok := c.known()
	if !ok || n.sure == "" {
		return false
	}
	words[0] = n.sure
	v, name, rest, ok := verbOf(words)
	if strings.HasPrefix(name, "git ") && (q.moved || repositoryProblem(in.dir, in.writable) != "") {
		return false
	}
	return ok && !v.runs && v.safe(rest, nil, nil)
}

// allows reports whether an Allow rule that names the program, or an answer, is about
// a command. A rule for any program does not say that this one was thought of.
func (p Policy) allows(c simple, n named, q *inquiry, in *programs) bool {
	return slices.ContainsFunc(p.Allow, func(r Rule) bool { return !strings.Contains(r[0], "*") && r.permits(c, n, in) }) || p.covers(c, n, q, in)
}

func relativeProgram(c simple) bool {
	name := c.words[0].text
	return !filepath.IsAbs(name) && strings.ContainsRune(filepath.ToSlash(name), '/')
}

// named holds the names of a program: the one for Allow rules, and all for other
// rules.
type named struct {
	sure string
	all  []string
}

// plain reports whether a program is the one its name says and the name is in
// lower case, as are those of the programs that are looked through.
func (n named) plain() bool { return n.sure != "" && n.sure == strings.ToLower(n.sure) }

func (p Policy) allowed(q *inquiry, names []named, in *programs) (session.Verdict, string) {
	if p.answered(q, names, in) {
		return session.Allow, "allowed by an answer before"
	}
	var by []string
	for i, c := range q.commands {
		if c.neutral || c.through && names[i].plain() {
			continue
		}
		at := slices.IndexFunc(p.Allow, func(r Rule) bool { return r.permits(c, names[i], in) })
		switch {
		case at >= 0:
			by = append(by, fmt.Sprintf("%q", p.Allow[at]))
		case p.covers(c, names[i], q, in):
			by = append(by, "an answer before")
		default:
			return unruled, fmt.Sprintf("no rule is about %q", c)
		}
	}
	if len(by) == 0 {
		return unruled, ""
	}
	return session.Allow, "allowed by " + strings.Join(slices.Compact(by), ", ")
}

// permits reports whether an Allow rule matches.
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

// same reports whether two paths name the same program. Both are relative to the
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

// forbids reports whether a Deny or Ask rule matches.
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

// saysSo reports whether an argument matches one in a rule. A long option also
// matches with a value or abbreviated.
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

// letters reports whether all short options in a text such as "-rf" are given,
// together or separately.
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

// fits reports whether text matches pattern, in which a star matches any
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
