// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	_ "embed"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/chat"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// completionCommand is antiphon completion.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help is shown by antiphon completion --help.
func (completionCommand) Help() string {
	return `Prints a script for a shell, which then completes commands, flags, their values, files,
and the names of agents, sessions and models. The script asks the program for them, so it
stays right when the program changes. No endpoint is asked.

Examples:
  antiphon completion bash > ~/.local/share/bash-completion/completions/antiphon
  antiphon completion zsh > "${fpath[1]}/_antiphon"
  antiphon completion fish > ~/.config/fish/completions/antiphon.fish`
}

// The scripts ask the program that PATH names, not the one that is typed: a key press must not
// start ./antiphon of a stranger's folder.
var (
	//go:embed completion.bash
	bashScript string
	//go:embed completion.zsh
	zshScript string
	//go:embed completion.fish
	fishScript string
)

// Run prints the script.
func (c *completionCommand) Run(std stdio) error {
	scripts := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}
	_, err := io.WriteString(std.out, strings.ReplaceAll(scripts[c.Shell], "@complete@", completes))
	return err
}

// completes is the first argument with which the scripts call the program. The others are the
// words after its name, up to the one that is to be completed.
const completes = "__complete"

// The lines that mean the names of files or of folders, which shells know best.
const (
	anyFile   = ":files"
	anyFolder = ":folders"
)

// candidate is a word that fits, with a short text about it.
type candidate struct{ word, help string }

// completion finds the words that may stand at the end of a command line.
type completion struct {
	env   environment
	own   settings
	list  []candidate
	shell string     // anyFile or anyFolder, or ""
	root  *kong.Node // of the grammar
	// before is what the word has in front of what is completed, such as --model=.
	before, word string
}

// complete prints the candidates for the last of the words: each on a line, with a tab before the
// text about it. What cannot be read has no candidates: there is no place for an error.
func complete(ctx context.Context, w io.Writer, parser *kong.Kong, env environment, words []string) error {
	own, err := readSettings(env)
	if err != nil {
		own = settings{}
	}
	c := &completion{env: own.over(env), own: own, root: parser.Model.Node}
	if len(words) == 0 {
		words = []string{""}
	}
	c.find(ctx, words[:len(words)-1], words[len(words)-1])
	var b strings.Builder
	seen := map[string]bool{}
	for _, one := range c.list {
		if seen[one.word] || !utf8.ValidString(one.word) || strings.ContainsFunc(one.word, hiddenInNames) || one.word[0] == ':' {
			continue // a shell would put it into the command line
		}
		seen[one.word] = true
		b.WriteString(one.word)
		if one.help != "" {
			b.WriteString("\t" + show.Printable(one.help))
		}
		b.WriteByte('\n')
	}
	if c.shell != "" {
		b.WriteString(c.shell + "\n")
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// hiddenInNames reports whether a character must not come from a name into a command line.
func hiddenInNames(r rune) bool { return unicode.IsControl(r) || show.Reorders(r) }

// at is a place in the grammar.
type at struct {
	node   *kong.Node
	args   []string              // positional arguments so far
	wants  *kong.Flag            // whose value comes next
	used   map[*kong.Flag]string // that are given, and their values
	closed bool                  // behind --, where flags are arguments
}

// find looks up what may follow the words before.
func (c *completion) find(ctx context.Context, before []string, word string) {
	p := &at{node: c.root, used: map[*kong.Flag]string{}}
	for i, w := range before {
		if i == 0 && strings.HasPrefix(w, "-") || i == 0 && p.child(w) == nil && w != "help" {
			p.step("ask") // as antiphon itself reads it
		}
		if i > 0 || w != "help" {
			p.step(w)
		}
	}
	c.word = word
	switch name, value, given := strings.Cut(word, "="); {
	case p.wants != nil:
		c.values(ctx, p, p.wants.Value)
	case !p.closed && given && strings.HasPrefix(word, "--"):
		if f := p.flag(name[2:]); f != nil {
			c.before, c.word = name+"=", value
			c.values(ctx, p, f.Value)
		}
	case !p.closed && strings.HasPrefix(word, "-"):
		if p.node == c.root && len(before) == 0 {
			p.step("ask")
		}
		c.flags(p)
	default:
		c.commands(p.node)
		c.arguments(ctx, p)
	}
}

// child returns the command of a name.
func (p *at) child(name string) *kong.Node {
	for _, n := range p.node.Children {
		if n.Name == name || slices.Contains(n.Aliases, name) {
			return n
		}
	}
	return nil
}

// all yields the flags of the place, with those of a command that may be left out.
func (p *at) all(yield func(*kong.Flag) bool) {
	node := p.node
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			if !yield(f) {
				return
			}
		}
	}
}

// flag returns the flag of a name without hyphens.
func (p *at) flag(name string) *kong.Flag {
	for f := range p.all {
		if f.Name == name || slices.Contains(f.Aliases, name) || utf8.RuneCountInString(name) == 1 && string(f.Short) == name {
			return f
		}
	}
	return nil
}

// step goes on behind a word.
func (p *at) step(word string) {
	switch child := p.child(word); {
	case p.wants != nil:
		p.used[p.wants], p.wants = word, nil
	case p.closed:
		p.args = append(p.args, word)
	case word == "--":
		p.closed = true
	case len(word) > 1 && word[0] == '-':
		name, value, given := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if short := !strings.HasPrefix(word, "--"); short && len(name) > 1 {
			_, size := utf8.DecodeRuneInString(name)
			given, name = true, name[:size] // its value follows at once, or other letters
		}
		if f := p.flag(name); f != nil {
			p.used[f] = value
			if !given && !f.IsBool() && !f.IsCounter() {
				p.wants = f
			}
		}
	case child != nil:
		p.node, p.args = child, nil
	default:
		p.args = append(p.args, word)
	}
}

// commands adds the commands below a place.
func (c *completion) commands(node *kong.Node) {
	for _, n := range node.Children {
		if !n.Hidden {
			c.add(n.Name, n.Help)
		}
	}
}

// flags adds the flags that can still be given.
func (c *completion) flags(p *at) {
	for f := range p.all {
		if _, used := p.used[f]; !used || f.IsCumulative() {
			c.add("--"+f.Name, f.Help)
		}
	}
}

// arguments adds the values of the argument that comes next.
func (c *completion) arguments(ctx context.Context, p *at) {
	node := p.node
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	list := node.Positional
	switch {
	case len(list) == 0:
	case len(p.args) < len(list):
		c.values(ctx, p, list[len(p.args)])
	case list[len(list)-1].IsCumulative():
		c.values(ctx, p, list[len(list)-1])
	}
}

// add adds a candidate if it begins as the word does.
func (c *completion) add(word, help string) {
	if word != "" && strings.HasPrefix(word, c.word) {
		c.list = append(c.list, candidate{c.before + word, help})
	}
}

// named adds a name that somebody chose, unless it would be read as a flag.
func (c *completion) named(name, help string) {
	if !strings.HasPrefix(name, "-") {
		c.add(name, help)
	}
}

// values adds what a flag or an argument may be.
func (c *completion) values(ctx context.Context, p *at, v *kong.Value) {
	what := v.Name
	if v.Flag != nil && v.Flag.PlaceHolder != "" {
		what = v.Flag.PlaceHolder
	}
	for _, one := range strings.FieldsFunc(v.Enum, func(r rune) bool { return r == ',' || r == ' ' }) {
		c.add(one, "")
	}
	if strings.Contains(what, "|") { // those in small letters are values
		for one := range strings.SplitSeq(what, "|") {
			if one == strings.ToLower(one) {
				c.add(one, "")
			}
		}
	}
	switch what {
	case "FILE", "file", "file-or-hash", "file-or-folder":
		c.shell = anyFile
	case "FOLDER", "DIR":
		c.shell = anyFolder
	case "SESSION":
		c.sessions(ctx, p)
	}
	c.namedValues(ctx, p, v)
}

// namedValues adds what the value with a name may be.
func (c *completion) namedValues(ctx context.Context, p *at, v *kong.Value) {
	switch v.Name {
	case "model":
		c.models()
	case "base-url":
		c.names(c.own.endpoints)
	case "effort":
		for _, one := range chat.Efforts {
			c.add(one, "")
		}
	case "sandbox":
		for _, one := range sandbox.Names() {
			c.add(one, "")
		}
	case "profile":
		for _, one := range (*endpoint.Table)(nil).Names() {
			c.add(one, "")
		}
	case "api":
		c.add(endpoint.APIResponses, "the Responses API")
		c.add(endpoint.APIChat, "Chat Completions")
	case "session", "attach":
		c.sessions(ctx, p)
	case "store":
		c.shell = anyFile
	case "agent":
		c.agents()
		c.shell = anyFile
	case "endpoint-name":
		c.names(c.own.endpoints)
		c.add("openai", endpoint.DefaultBaseURL)
	case "command":
		if of, _ := commandOf(c.root, p.args); p.node.Name == "man" && of != nil {
			c.commands(of)
		}
	case "file":
		if slices.Contains([]string{"run", "chat", "submit"}, p.node.Name) {
			c.agents()
		}
	}
}

// names adds the names that the settings give to something.
func (c *completion) names(list map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		c.named(name, list[name])
	}
}

// models adds the models that are known without asking an endpoint.
func (c *completion) models() {
	c.names(c.own.models)
	c.named(c.env["OPENAI_MODEL"], "the usual model")
	c.add(rehearsal.Model, "no key, no network, no cost")
}

// agents adds the agents that have names.
func (c *completion) agents() {
	for _, folder := range agentFolders(c.env) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if name, isAgent := strings.CutSuffix(e.Name(), ".md"); isAgent {
				c.named(name, "agent in "+show.Visible(folder))
			}
		}
	}
}

// The most sessions that are looked at for a key press, and how long that may take.
const (
	mostCompleted = 200
	completeTime  = 2 * time.Second
)

// sessions adds the names of sessions, the last written ones first. A store that is not a file is
// not asked, because that may take long.
func (c *completion) sessions(ctx context.Context, p *at) {
	var flags storeFlag
	for f, value := range p.used {
		if f.Name == "store" {
			flags.Store = value
		}
	}
	place, err := flags.place(c.env)
	if err != nil || !store.IsPath(place) {
		return
	}
	ctx, end := context.WithTimeout(ctx, completeTime)
	defer end()
	k, err := store.Open(ctx, place, store.Options{Keyless: true, Retry: -1})
	if err != nil {
		return
	}
	defer k.Close()
	for info, err := range k.List(ctx, session.Query{Limit: mostCompleted}) {
		if err != nil {
			return
		}
		c.named(cmp.Or(info.Name, info.ID), when(info.Updated))
	}
}
