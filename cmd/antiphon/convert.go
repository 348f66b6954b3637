// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
)

// convertCommand is antiphon convert.
type convertCommand struct {
	File   string `arg:"" default:"-" help:"What to convert; - is standard input."`
	From   string `enum:"auto,messages,chat,items,lines,request,session,chatmd" default:"auto" help:"What it is: ${enum}."`
	To     string `enum:"messages,chat,items,lines,request,chatmd" required:"" placeholder:"messages|chat|items|lines|request|chatmd" help:"What it becomes: ${enum}."`
	Out    string `placeholder:"FILE" help:"Write to FILE instead of standard output."`
	Force  bool   `help:"Overwrite the file of --out."`
	Strict bool   `help:"Write nothing where something would be lost."`
}

// Help is shown by antiphon convert --help.
func (convertCommand) Help() string {
	return `The forms of a conversation:
  messages  the list of messages of Chat Completions
  chat      the body of a request to Chat Completions; read also: its answer
  items     the list of items of the Responses API
  lines     the same, one item a line
  request   the body of a request to the Responses API; read also: a response
  session   what sessions export writes as JSON lines; it is only read
  chatmd    ChatMarkdown

Nothing is lost silently: what the other form has no place for is named on
standard error, a line each. With --strict that is an error.

Examples:
  antiphon convert history.json --to chatmd --out history.md
  antiphon convert agent.md --to request | jq .
  antiphon convert messages.json --to lines --strict`
}

// document is a conversation between two forms: a request, of which only the
// input counts where the form is not a request.
type document struct {
	from    string
	request *item.Request
	losses  []completions.Loss

	// Of ChatMarkdown: what it declares, as it stands in a file at the path out;
	// and what every other form has no place for.
	declared  func(out string) (string, error)
	elsewhere []completions.Loss
	out       string // the file that is written, "" for standard output
}

func (d *document) lose(path, format string, args ...any) {
	d.losses = append(d.losses, completions.Loss{Path: path, What: fmt.Sprintf(format, args...)})
}

// Run converts.
func (c *convertCommand) Run(ctx context.Context, std stdio) error {
	name, data, err := c.input(std)
	if err != nil {
		return usage(err)
	}
	form := c.From
	if form == "auto" {
		form = sniffForm(data)
	}
	doc, err := readForm(ctx, form, name, data)
	if err != nil {
		return usage(explainForm(c.From, form, err))
	}
	doc.out = c.Out
	out, err := doc.write(c.To)
	if err != nil {
		return usage(err)
	}
	n := 0
	for _, l := range doc.losses {
		label := "moved"
		if l.Kind != completions.Moved {
			label, n = "lost", n+1
		}
		fmt.Fprintln(std.err, unbroken("antiphon: "+label+": "+l.String()))
	}
	if n > 0 && c.Strict {
		return usage(fmt.Errorf("nothing was written, for %s would be lost (--strict)", plural(n, "thing")))
	}
	return c.output(std, out)
}

// explainForm says how the form was found, where that was a guess.
func explainForm(asked, form string, err error) error {
	if asked == "auto" {
		return fmt.Errorf("read as %s (--from says otherwise): %w", form, err)
	}
	return err
}

func (c *convertCommand) input(std stdio) (name string, data []byte, err error) {
	if c.File != "-" {
		data, err = os.ReadFile(c.File)
		return c.File, data, err
	}
	if terminal(std.in) {
		return "", nil, errors.New("give a file, or pipe something in")
	}
	data, err = io.ReadAll(std.in)
	return "-", data, err
}

// output writes the whole or, to a file, nothing.
func (c *convertCommand) output(std stdio, out []byte) error {
	if c.Out == "" {
		if terminal(std.out) {
			out = []byte(forTerminal(c.To, string(out)))
		}
		_, err := std.out.Write(out)
		return err
	}
	_, err := writeFile(c.Out, c.Force, func(w io.Writer) error {
		_, err := w.Write(out)
		return err
	})
	return err
}

// forTerminal is a converted text as a terminal may show it: without what would
// move the cursor, set the clipboard or make text look like another. In JSON it is
// escaped, so that nothing is lost; ChatMarkdown has no escapes, and loses it here
// and not in a file or a pipe.
func forTerminal(form, text string) string {
	if form == formChatmd {
		return printable(text)
	}
	var b strings.Builder
	for _, r := range text {
		if r >= 0x7f && r < 0xa0 || reorders(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// placeless says what has no place for a request's parameters.
var placeless = map[string]string{
	formMessages: "a list of messages",
	formItems:    "a list of items",
	formLines:    "a line for each item",
	formChatmd:   "ChatMarkdown",
}

// parameters names what a request holds besides its input.
func (d *document) parameters(r item.Request, form string) {
	r.Input = nil
	text, err := r.MarshalJSON()
	if err != nil {
		return
	}
	rest, err := item.Parse(text)
	if err != nil {
		return
	}
	for _, name := range memberNames(rest.JSON()) {
		switch name {
		case "input", "messages":
		case "reasoning":
			v, _ := rest.Member(name)
			for _, inner := range memberNames(string(v)) {
				d.lose(name+"."+inner, "%s has no place for it", placeless[form])
			}
		default:
			d.lose(name, "%s has no place for it", placeless[form])
		}
	}
}

// lead makes the instructions the first message, as Chat Completions has them.
func (d *document) lead(r *item.Request) error {
	if r.Instructions == "" {
		return nil
	}
	d.losses = append(d.losses, completions.Loss{Path: "instructions", What: "become the first message", Kind: completions.Moved})
	first, err := item.New(&item.Message{Role: item.RoleSystem, Content: item.Text(r.Instructions)})
	if err != nil {
		return err
	}
	list := item.NewList(first)
	for _, it := range r.Input.All() {
		list.Append(it)
	}
	r.Instructions, r.Input = "", list
	return nil
}
