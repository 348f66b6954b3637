// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// showCommand is antiphon sessions show.
type showCommand struct {
	Session string `arg:"" help:"The session."`
	AsSent  bool   `help:"Print what the next request would carry, and why each part is there or not."`
	Full    bool   `help:"Print texts in full instead of their beginnings."`
	All     bool   `help:"Print also the entries that only a run needs."`
	Follow  bool   `short:"f" help:"Go on with what is written, until Ctrl-C."`
}

// Help is shown by antiphon sessions show --help.
func (showCommand) Help() string {
	return `Each line begins with the entry's number, which sessions fork --at takes. Entries
that only a run needs, such as the start of a turn, are counted at the end.

Examples:
  antiphon sessions show work
  antiphon sessions show work --all
  antiphon sessions show work --full | less
  antiphon sessions show work --as-sent --json | jq .body.input
  antiphon sessions show work --follow --json`
}

// Run shows.
func (c *showCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	if c.AsSent && c.Follow {
		return usage(errors.New("--follow goes on with the entries, --as-sent shows what the next request carries: choose one"))
	}
	return all.with(ctx, env, c.Session, func(store keeper, info session.Info) error {
		switch {
		case c.AsSent:
			return c.asSent(ctx, std, env, all, store, info)
		case c.Follow:
			watcher, err := as[session.Watcher](store, "tell what is written to it")
			if err != nil {
				return err
			}
			return c.entries(std, env, all, watcher.Watch(ctx, info.ID, 0))
		}
		return c.entries(std, env, all, store.Load(ctx, info.ID, 0))
	})
}

func (c *showCommand) entries(std stdio, env environment, all *sessionsCommand, entries func(func(session.Entry, error) bool)) error {
	page := newPage(std, env, c.Full)
	page.all = c.All
	var line []byte
	for e, err := range entries {
		if err != nil {
			return err
		}
		if !all.JSON {
			page.entry(e)
		} else if line, err = session.AppendEntry(line[:0], e); err == nil {
			_, page.failure = fmt.Fprintln(std.out, all.hide(string(line)))
		} else {
			return err
		}
		if page.failure != nil {
			return page.failure
		}
	}
	if !all.JSON {
		page.leftOut(std)
	}
	return nil
}

// page prints entries for people.
type page struct {
	out     io.Writer
	hide    func(text string) string
	colour  bool
	full    bool
	failure error
	setup   session.Setup // that holds now
	last    spokenEntry   // what the model said last
	parts   spokenEntry   // what the reply under way goes on with
	all     bool          // also what only the loop needs
	lines   int
	unshown map[string]int // entries without a line, by their kind
}

// spokenEntry is an assistant message and its entry.
type spokenEntry struct {
	seq  int64
	text string
}

func newPage(std stdio, env environment, full bool) *page {
	_, noColour := env["NO_COLOR"]
	return &page{out: std.out, hide: env.Hide, colour: terminal(std.out) && !(noColour && env["NO_COLOR"] != "") && env["TERM"] != "dumb", full: full, unshown: map[string]int{}}
}

// line prints one line: the entry's number, a word that says what it is, and its
// text.
func (p *page) line(seq int64, colour, what, text string) {
	if p.failure != nil {
		return
	}
	p.lines++
	text = p.hide(text)
	if p.full {
		text = strings.ReplaceAll(strings.TrimRight(printable(text), "\n"), "\n", "\n"+strings.Repeat(" ", 21))
	} else {
		text = shorten(text, 110)
	}
	what = fmt.Sprintf("%-12s", shorten(what, 30))
	if p.colour && colour != "" {
		what = "\x1b[" + colour + "m" + what + "\x1b[0m"
	}
	_, p.failure = fmt.Fprintf(p.out, "%6d  %s %s\n", seq, what, text)
}

// entry prints what an entry says. What only the loop needs is counted.
func (p *page) entry(e session.Entry) {
	before := p.lines
	p.say(e)
	switch kind := session.Kind(e.Body); {
	case p.lines > before:
	case p.all:
		text, err := session.AppendEntry(nil, session.Entry{Seq: e.Seq, Body: e.Body})
		if err != nil {
			text = []byte(err.Error())
		}
		p.line(e.Seq, dim, strings.ReplaceAll(kind, "_", " "), string(text))
	default:
		p.unshown[kind]++
	}
}

// leftOut tells what has no line, so that a gap in the numbers is no riddle.
func (p *page) leftOut(std stdio) {
	n := 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(p.unshown)) {
		n += p.unshown[kind]
		kinds = append(kinds, fmt.Sprintf("%d %s", p.unshown[kind], strings.ReplaceAll(kind, "_", " ")))
	}
	if n > 0 {
		are := "are"
		if n == 1 {
			are = "is"
		}
		fmt.Fprintf(std.err, "antiphon: %s that only a run needs %s not shown (%s); --all shows all\n", plural(n, "entry"), are, strings.Join(kinds, ", "))
	}
}

// say prints what an entry says to people.
func (p *page) say(e session.Entry) {
	switch b := e.Body.(type) {
	case session.Given:
		p.item(e.Seq, b.Item, "")
	case session.Received:
		p.received(e.Seq, b)
	case session.TurnStarted:
		if p.parts = (spokenEntry{}); b.Continues != 0 && b.Continues == p.last.seq {
			p.parts = p.last
		}
		p.mark(e)
	case session.Answered:
		p.answer(e.Seq, b)
	case session.Note:
		p.line(e.Seq, dim, "note", inWords(b.Item))
	default:
		p.mark(e)
	}
}

// received prints what a model said. Of a reply that goes on with one that broke
// off, and says again what was there, the rest is printed.
func (p *page) received(seq int64, b session.Received) {
	mark := ""
	if b.Partial {
		mark = "(broke off) "
	}
	if b.Item.Type() != item.TypeMessage {
		p.item(seq, b.Item, mark)
		return
	}
	text := inWords(b.Item)
	p.last = spokenEntry{seq, text}
	if before := p.parts; before.seq != 0 {
		p.parts = spokenEntry{}
		mark += fmt.Sprintf("(goes on with entry %d) ", before.seq)
		if rest, again := behind(text, before.text); again {
			text = "… " + rest
		}
	}
	p.line(seq, bold, string(b.Item.Role()), mark+text)
}

// behind returns what a text says behind its beginning, and whether it has that
// beginning, white space aside.
func behind(text, beginning string) (rest string, ok bool) {
	at := 0
	for _, word := range strings.Fields(beginning) {
		for _, r := range word {
			next := strings.TrimLeftFunc(text[at:], unicode.IsSpace)
			if !strings.HasPrefix(next, string(r)) {
				return "", false
			}
			at = len(text) - len(next) + len(string(r))
		}
	}
	return text[at:], at > 0
}

// item prints an item.
func (p *page) item(seq int64, it item.Item, mark string) {
	switch {
	case it.Type() == item.TypeMessage:
		p.line(seq, bold, string(it.Role()), mark+inWords(it))
	case it.Type() == item.TypeReasoning:
		p.line(seq, dim, "reasoning", mark+inWords(it))
	case it.IsCall():
		p.line(seq, yellow, "call", mark+inWords(it))
	case it.IsOutput():
		p.line(seq, green, "output", mark+inWords(it))
	default:
		p.line(seq, dim, string(it.Type()), mark+inWords(it))
	}
}

func (p *page) answer(seq int64, b session.Answered) {
	if b.Failed {
		p.line(seq, red, "failed", inWords(b.Item))
		return
	}
	p.line(seq, green, "output", inWords(b.Item))
}

// mark prints what happened between items.
func (p *page) mark(e session.Entry) {
	changed := p.setup.Apply(e.Body)
	switch b := e.Body.(type) {
	case session.RunStarted, session.TurnStarted:
		if changed {
			p.line(e.Seq, dim, "setup", p.inWords(&p.setup))
		}
	case session.TurnEnded:
		text := b.Status
		if b.Model != "" && b.Model != p.setup.Model && !p.setup.Rehearsal {
			text += ", by " + b.Model
		}
		if b.Setup != nil {
			text += ", a hook had " + b.Setup.String() + " asked"
		}
		if b.ServiceTier != "" && b.ServiceTier != "default" {
			text += ", service tier " + b.ServiceTier
		}
		if p.full && b.RequestID != "" {
			text += ", request " + b.RequestID
		}
		if b.Usage != nil {
			text += fmt.Sprintf(", %d tokens (%d in, %d cached, %d out)", b.Usage.TotalTokens, b.Usage.InputTokens, b.Usage.Cached(), b.Usage.OutputTokens)
		}
		if b.Reason != "" {
			text += ": " + b.Reason
		}
		p.line(e.Seq, dim, fmt.Sprintf("turn %d", b.Turn), text)
	case session.ApprovalAsked:
		p.line(e.Seq, yellow, "asked", b.Tool+" "+b.Arguments)
	case session.Approval:
		colour := yellow
		if b.Allowed && b.By == "" {
			colour = dim
		}
		p.line(e.Seq, colour, "verdict", verdictOf(b))
		if b.Remember != nil {
			p.line(e.Seq, yellow, "rule", "remembered: "+b.Remember.String())
		}
	case session.Nested:
		p.line(e.Seq, dim, "nested", fmt.Sprintf("%s: %s, %d tokens", b.Session, plural(b.Turns, "turn"), b.Tokens))
	case session.Withdrawn:
		p.line(e.Seq, yellow, "withdrawn", b.Reason)
	case session.ItemsWithdrawn:
		p.line(e.Seq, yellow, "withdrawn", strings.TrimPrefix(fmt.Sprintf("%s: entries %v: %s", b.By, b.Seqs, b.Reason), ": "))
	case session.ReasoningDropped:
		p.line(e.Seq, yellow, "dropped", "the reasoning before: "+b.Reason)
	case session.Quarantined:
		what := fmt.Sprintf("entry %d", b.Seq)
		if b.Member != "" {
			what = fmt.Sprintf("%s of entry %d", b.Member, b.Seq)
		}
		p.line(e.Seq, yellow, "quarantine", what+": "+b.Reason)
	case session.Compacted:
		if b.Failure != "" {
			p.line(e.Seq, red, "as it was", fmt.Sprintf("not compacted by %s: %s", b.By, b.Failure))
			return
		}
		p.line(e.Seq, yellow, "compacted", fmt.Sprintf("up to entry %d, by %s: about %d tokens became %d", b.Through, b.By, b.Before, b.After))
	case session.Restored:
		p.line(e.Seq, yellow, "restored", fmt.Sprintf("what entry %d replaced", b.Seq))
	case session.Collapsed:
		p.line(e.Seq, dim, "collapsed", fmt.Sprintf("%s, repeated by entry %d", plural(len(b.Seqs), "read"), b.By))
	case session.Noticed:
		p.line(e.Seq, yellow, "notice", b.Text)
	case session.Superseded:
		p.line(e.Seq, dim, "superseded", fmt.Sprintf("%s, said again from the beginning by entry %d", entriesOf(b.Seqs), b.By))
	case session.Stopped:
		p.line(e.Seq, dim, "stopped", strings.ReplaceAll(b.Why, "_", " ")+colon(b.Detail))
	}
}

// inWords says what makes turns: on one line, or in full.
func (p *page) inWords(s *session.Setup) string {
	text := s.String()
	if len(s.Tools) > 0 {
		text += ", " + plural(len(s.Tools), "tool")
	}
	if len(s.Files) > 0 {
		text += ", " + s.Files[0].Name
	}
	if s.Program != "" {
		text += ", " + s.Program
	}
	if !p.full {
		return text
	}
	for name, value := range s.Details() {
		text += "\n" + name + " " + value
	}
	return text
}

// entriesOf names entries.
func entriesOf(seqs []int64) string {
	var list []string
	for _, seq := range seqs {
		list = append(list, strconv.FormatInt(seq, 10))
	}
	if len(list) == 1 {
		return "entry " + list[0]
	}
	return "entries " + strings.Join(list, ", ")
}

func verdictOf(b session.Approval) string {
	word := "refused"
	if b.Allowed {
		word = "allowed"
	}
	word += session.DecidedBy(b.By, b.From, b.Rule)
	if b.Edited != "" {
		word += " with other arguments: " + b.Edited
	}
	return word + colon(b.Reason)
}

// colon puts a text after a colon, if there is one.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// inWords is what an item says, for people: images and files as markers.
func inWords(it item.Item) string {
	switch {
	case it.Type() == item.TypeMessage:
		if m, err := item.As[item.Message](it); err == nil {
			return m.Content.Display()
		}
	case it.Type() == item.TypeReasoning:
		if r, err := item.As[item.Reasoning](it); err == nil {
			return summaryOf(r)
		}
	case it.IsOutput():
		if c, err := outputContent(it); err == nil {
			return c.Display()
		}
	case it.IsCall() && it.Name() != "":
		arguments, ok := it.Member("arguments")
		if !ok {
			arguments, _ = it.Member("input")
		}
		text, _ := arguments.Unquote()
		return it.Name() + " " + text
	case it.IsCall():
		return hostedCall(it)
	}
	return it.String()
}

// hostedCall is what a call of a kind of the API's own asks for.
func hostedCall(it item.Item) string {
	body, _ := it.Decode()
	switch c := body.(type) {
	case *item.ShellCall:
		if c.Action != nil {
			return "shell " + strings.Join(c.Action.Commands, "\n")
		}
	case *item.LocalShellCall:
		if c.Action != nil {
			return "local_shell " + strings.Join(c.Action.Command, " ")
		}
	case *item.ApplyPatchCall:
		if c.Operation != nil {
			return "apply_patch " + c.Operation.Type + " " + c.Operation.Path
		}
	}
	return it.String()
}

// summaryOf is what there is to read of a reasoning.
func summaryOf(r *item.Reasoning) string {
	if text := (item.Content{Parts: r.Summary}).Display(); text != "" {
		return text
	}
	return "(encrypted, or without a summary)"
}
