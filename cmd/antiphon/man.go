// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand is antiphon man.
type manCommand struct {
	Command []string `arg:"" optional:"" help:"The command, such as run, or sessions list. Default: the program."`
	Out     string   `short:"o" placeholder:"FOLDER" help:"Write the pages of all commands into FOLDER, which must exist."`
}

// Help is shown by antiphon man --help.
func (manCommand) Help() string {
	return `Prints a manual page in the form that man reads, made from the same description of the
commands as --help.

Examples:
  antiphon man run | man -l -
  antiphon man --out ~/.local/share/man/man1`
}

// Run prints the page, or writes all.
func (c *manCommand) Run(std stdio, k *kong.Kong) error {
	if c.Out != "" {
		if len(c.Command) > 0 {
			return usage(errors.New("--out writes the pages of all commands: leave the command out"))
		}
		if err := os.MkdirAll(c.Out, 0o755); err != nil { //nolint:gosec // manuals are for everybody
			return err
		}
		return writePages(c.Out, k.Model.Node)
	}
	node, wrong := commandOf(k.Model.Node, c.Command)
	if node == nil {
		return usage(fmt.Errorf("there is no command %s; see antiphon --help", quoted(wrong)))
	}
	_, err := fmt.Fprint(std.out, page(node))
	return err
}

// commandOf returns the command below a node that words name, or nil and the word that names nothing.
func commandOf(node *kong.Node, words []string) (found *kong.Node, wrong string) {
	for _, word := range words {
		child := (&at{node: node}).child(word)
		if child == nil {
			return nil, word
		}
		node = child
	}
	return node, ""
}

// writePages writes the page of a command and of those below it.
func writePages(folder string, node *kong.Node) error {
	name := filepath.Join(folder, pageName(node)+".1")
	if err := os.WriteFile(name, []byte(page(node)), 0o644); err != nil { //nolint:gosec // a manual is for everybody
		return err
	}
	for _, child := range node.Children {
		if child.Hidden {
			continue
		}
		if err := writePages(folder, child); err != nil {
			return err
		}
	}
	return nil
}

// pageName returns the name of a command's page, such as antiphon-sessions-list.
func pageName(node *kong.Node) string { return strings.ReplaceAll(commandPath(node), " ", "-") }

// commandPath returns a command as it is typed, without its arguments.
func commandPath(node *kong.Node) string {
	if node.Parent == nil {
		return node.Name
	}
	return commandPath(node.Parent) + " " + node.Name
}

// page returns the manual page of a command.
func page(node *kong.Node) string {
	var m manual
	of := node
	if node.DefaultCmd != nil { // its name may be left out
		of = node.DefaultCmd
	}
	name := pageName(node)
	m.line(`.TH %s 1 "" "antiphon %s" "Antiphon"`, escaped(strings.ToUpper(name)), escaped(programVersion()))
	m.line(".nh\n.ad l\n.SH NAME") // so that words can be found, and copied
	about, detail, _ := strings.Cut(node.Help, "\n")
	if node.Parent != nil {
		detail = node.Detail
	}
	m.line(`%s \- %s`, escaped(name), escaped(strings.TrimSuffix(about, ".")))
	m.line(".SH SYNOPSIS")
	m.synopsis(node, of)
	if detail = strings.TrimSpace(detail); detail != "" {
		m.line(".SH DESCRIPTION")
		m.text(detail)
	}
	if len(node.Children) > 0 {
		m.line(".SH COMMANDS")
		for _, child := range node.Children {
			if !child.Hidden {
				m.line(".TP\n.B %s", escaped(commandPath(child)))
				m.text(child.Help)
			}
		}
	}
	if len(of.Positional) > 0 {
		m.line(".SH ARGUMENTS")
		for _, p := range of.Positional {
			m.line(".TP\n.I %s", escaped(strings.ToUpper(p.Name)))
			m.text(p.Help + valuesOf(p))
		}
	}
	m.flags(of)
	m.line(".SH EXIT STATUS")
	_, codes, _ := strings.Cut(description, "Exit codes: ")
	m.text(codes)
	if node.Parent != nil {
		m.line(".SH SEE ALSO\n.BR %s (1)", escaped(pageName(node.Parent)))
	}
	return m.String()
}

// manual builds a page.
type manual struct{ strings.Builder }

func (m *manual) line(format string, args ...any) { fmt.Fprintf(&m.Builder, format+"\n", args...) }

// synopsis says how a command is called. Of is the command that is meant if none is named.
func (m *manual) synopsis(node, of *kong.Node) {
	words := []string{`.B ` + escaped(commandPath(node)) + "\n"}
	switch {
	case of != node:
		words = append(words, `[\fICOMMAND\fR]`)
	case len(node.Children) > 0:
		words = append(words, `\fICOMMAND\fR`)
	}
	for _, p := range of.Positional {
		word := `\fI` + escaped(strings.ToUpper(p.Name)) + `\fR`
		if p.IsCumulative() {
			word += " ..."
		}
		if !p.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	m.line("%s%s", words[0], strings.Join(append(words[1:], `[\fIFLAGS\fR]`), " "))
}

// flags lists the flags under their headings, those without one first.
func (m *manual) flags(node *kong.Node) {
	var loose []*kong.Flag
	grouped := map[string][]*kong.Flag{}
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			if f.Group == nil || !slices.ContainsFunc(flagGroups, func(g kong.Group) bool { return g.Key == f.Group.Key }) {
				loose = append(loose, f)
			} else {
				grouped[f.Group.Key] = append(grouped[f.Group.Key], f)
			}
		}
	}
	m.line(".SH OPTIONS")
	for _, f := range loose {
		m.flag(f)
	}
	for _, g := range flagGroups {
		if len(grouped[g.Key]) > 0 {
			m.line(".SS %s", escaped(strings.TrimSuffix(g.Title, ":")))
		}
		for _, f := range grouped[g.Key] {
			m.flag(f)
		}
	}
}

// flag describes a flag.
func (m *manual) flag(f *kong.Flag) {
	said := `\fB` + escaped("--"+f.Name) + `\fR`
	if f.Short != 0 {
		said = `\fB` + escaped("-"+string(f.Short)) + `\fR, ` + said
	}
	if !f.IsBool() && !f.IsCounter() {
		said += ` \fI` + escaped(f.FormatPlaceHolder()) + `\fR`
	}
	m.line(".TP\n%s", said)
	m.text(f.Help + valuesOf(f.Value))
}

// valuesOf says which values there are, if the help does not.
func valuesOf(v *kong.Value) string {
	if v.Enum == "" {
		return ""
	}
	for _, one := range v.EnumSlice() {
		if !strings.Contains(v.Help, one) {
			return " One of: " + strings.Join(v.EnumSlice(), ", ") + "."
		}
	}
	return ""
}

// text writes paragraphs. Indented lines, such as examples, keep their line ends.
func (m *manual) text(text string) {
	kept := false
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, " ")
		switch {
		case line == "" && !kept:
			m.line(".PP")
			continue
		case line == "":
			continue
		case indented != kept && indented:
			m.line(".nf")
		case indented != kept:
			m.line(".fi\n.PP")
		}
		kept = indented
		m.line("%s", escaped(line))
	}
	if kept {
		m.line(".fi")
	}
}

// plainRoff replaces what means something to roff, or would become a typographic character that
// cannot be copied into a command line.
var plainRoff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\n", " ")

// escaped returns a text without meaning for roff.
func escaped(text string) string {
	text = plainRoff.Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
