// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
)

// convertCommand implements antiphon convert.
type convertCommand struct {
	File   string `arg:"" default:"-" help:"What to convert; - is standard input."`
	From   string `enum:"auto,messages,chat,items,lines,request,session,chatmd" default:"auto" help:"What it is: ${enum}."`
	To     string `enum:"messages,chat,items,lines,request,chatmd" required:"" placeholder:"messages|chat|items|lines|request|chatmd" help:"What it becomes: ${enum}."`
	Out    string `placeholder:"FILE" help:"Write to FILE instead of standard output."`
	Force  bool   `help:"Overwrite the file of --out."`
	Strict bool   `help:"Write nothing if something would be lost."`
}

// Help returns the text of antiphon convert --help.
func (convertCommand) Help() string {
	return `The forms of a conversation:
  messages  the list of messages of Chat Completions
  chat      the body of a request to Chat Completions; reads a response too
  items     the list of items of the Responses API
  lines     the same, one item per line
  request   the body of a request to the Responses API; reads a response too
  session   the JSON lines that sessions export writes; only as a source
  chatmd    ChatMarkdown

Nothing is lost silently: standard error lists what the other form cannot
represent, one per line. With --strict a loss is an error.

Examples:
  antiphon convert history.json --to chatmd --out history.md
  antiphon convert agent.md --to request | jq .
  antiphon convert messages.json --to lines --strict`
}

// A document is a conversation on its way from one form to another: a request. If
// a form is not a request, only the input of the request is used.
type document struct {
	from    string
	request *api.Request
	losses  []completions.Loss

	// For ChatMarkdown: declared returns the declarations as written in a file at
	// the path out, and elsewhere lists what no other form can represent.
	declared  func(out string) (string, error)
	elsewhere []completions.Loss
	out       string // the file to write, "" for standard output
}

func (d *document) lose(path, format string, args ...any) {
	d.losses = append(d.losses, completions.Loss{Path: path, What: fmt.Sprintf(format, args...)})
}

// Run converts the conversation.
func (c *convertCommand) Run(ctx context.Context, std stdio) error {
	name, data, err := c.input(ctx, std)
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
		fmt.Fprintln(std.err, show.Unbroken("antiphon: "+label+": "+l.String()))
	}
	if n > 0 && c.Strict {
		return usage(fmt.Errorf("nothing was written, for %s would be lost (--strict)", show.Plural(n, "thing")))
	}
	return c.output(std, out)
}

// explainForm adds to an error how the form was detected, if it was a guess.
func explainForm(asked, form string, err error) error {
	if asked == "auto" {
		return fmt.Errorf("%w\n  hint: it was read as %s; --from names another form", err, form)
	}
	return err
}

// maxConverted is the size of the largest file that is converted.
const maxConverted = 1 << 30

func (c *convertCommand) input(ctx context.Context, std stdio) (name string, data []byte, err error) {
	if c.File != "-" {
		if info, err := os.Stat(c.File); err == nil && info.Mode().IsRegular() && info.Size() > maxConverted { // it is not read first
			return "", nil, fmt.Errorf("%s is larger than %d MiB", c.File, maxConverted>>20)
		}
		data, err = readAtMost(ctx, c.File, maxConverted)
		return c.File, data, err
	}
	if show.IsTerminal(std.in) {
		return "", nil, errors.New("give a file, or pipe something in")
	}
	data, err = unlessEnded(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(std.in, maxConverted+1)) })
	if err == nil && len(data) > maxConverted {
		err = fmt.Errorf("standard input has more than %d MiB", maxConverted>>20)
	}
	return "-", data, err
}

// output writes the whole text. If it fails to write a file, it leaves no part of
// it.
func (c *convertCommand) output(std stdio, out []byte) error {
	if c.Out == "" {
		if c.To == formChatmd {
			return writeForeign(std.out, string(out))
		}
		_, err := toJSON(std.out).Write(out)
		return err
	}
	_, err := writeFile(c.Out, c.Force, func(w io.Writer) error {
		_, err := w.Write(out)
		return err
	})
	return err
}

// placeless lists the forms that cannot hold the parameters of a request.
var placeless = map[string]string{
	formMessages: "a list of messages",
	formItems:    "a list of items",
	formLines:    "a line for each item",
	formChatmd:   "ChatMarkdown",
}

// parameters records the loss of everything in a request except its input.
func (d *document) parameters(r api.Request, form string) {
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

// lead converts the instructions to the first message, where Chat Completions has
// them.
func (d *document) lead(r *api.Request) error {
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
