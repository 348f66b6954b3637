// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// sessionsCommand is antiphon sessions.
type sessionsCommand struct {
	storeFlag
	JSON bool `name:"json" help:"Print the outcome as JSON."`
	hide func(text string) string

	List    listCommand    `cmd:"" help:"List the sessions, those written to last first."`
	Show    showCommand    `cmd:"" help:"Print what was said, entry by entry."`
	Info    infoCommand    `cmd:"" help:"Print what is known of a session, and what it has used."`
	Rename  renameCommand  `cmd:"" help:"Give a session another name."`
	Fork    forkCommand    `cmd:"" help:"Begin a session with the entries of another."`
	Compact compactCommand `cmd:"" help:"Send something shorter in the place of what was said, or take that back."`
	Export  exportCommand  `cmd:"" help:"Write a session as one HTML page, JSON lines or ChatMarkdown."`
	Import  importCommand  `cmd:"" help:"Read a session from JSON lines or ChatMarkdown."`
	Reset   resetCommand   `cmd:"" help:"Archive a session, so that its name begins anew with the next run."`
	Archive archiveCommand `cmd:"" help:"Put a session out of the way, or take it back."`
	Rm      removeCommand  `cmd:"" help:"Delete sessions, with those of their nested runs."`
	Gc      sweepCommand   `cmd:"" help:"Remove what no session needs any more."`
}

// Help is shown by antiphon sessions --help.
func (sessionsCommand) Help() string {
	return `A session is named by its id, by the beginning of one, or by its name where no
other has the same.

Examples:
  antiphon run agent.md --session work "What is there to do?"
  antiphon sessions list
  antiphon sessions show work --as-sent
  antiphon sessions fork work --at 42 --name another-way
  antiphon sessions export work --to html -o work.html`
}

// told prints what a command did: one line for people, or a value as JSON.
func (c *sessionsCommand) told(std stdio, value any, format string, args ...any) error {
	if c.JSON {
		return c.printJSON(std, value)
	}
	_, err := fmt.Fprintln(std.out, printable(c.hide(fmt.Sprintf(format, args...))))
	return err
}

// printJSON prints a value as indented JSON.
func (c *sessionsCommand) printJSON(std stdio, value any) error {
	text, err := json.Marshal(value, lineOptions, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, c.hide(string(text)))
	return err
}

// with opens the store for what a command does with one session of it.
func (c *sessionsCommand) with(ctx context.Context, env environment, name string, do func(store keeper, info session.Info) error) error {
	return c.opened(ctx, env, false, func(store keeper) error {
		info, err := find(ctx, store, name, false)
		if err != nil {
			return err
		}
		return do(store, info)
	})
}

// opened opens the store for what a command does with it.
func (c *sessionsCommand) opened(ctx context.Context, env environment, create bool, do func(store keeper) error) error {
	c.hide = env.hide
	store, err := c.open(ctx, env, create)
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Close())
}

// listCommand is antiphon sessions list.
type listCommand struct {
	File     string `arg:"" optional:"" help:"Only those of this agent's file."`
	Archived bool   `help:"Those that are archived, too."`
	Nested   bool   `help:"Those of nested runs, too."`
}

// Run lists.
func (c *listCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	q := session.Query{Archived: c.Archived, Nested: c.Nested}
	if c.File != "" {
		var err error
		if q.Path, err = resolved(c.File); err != nil {
			return usage(err)
		}
	}
	infos := []session.Info{}
	err := all.opened(ctx, env, false, func(store keeper) error {
		for info, err := range store.List(ctx, q) {
			if err != nil {
				return err
			}
			infos = append(infos, info)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if all.JSON {
		return all.printJSON(std, infos)
	}
	return all.table(std, infos)
}

// table prints sessions for people.
func (c *sessionsCommand) table(std stdio, infos []session.Info) error {
	if len(infos) == 0 {
		_, err := fmt.Fprintln(std.err, "antiphon: no sessions (--archived lists those that are out of the way); antiphon run FILE --session NAME makes one")
		return err
	}
	w := tabwriter.NewWriter(std.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tID\tENTRIES\tUPDATED\tFILE\tBEGINS WITH")
	for _, info := range infos {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", cmp.Or(printable(info.Name), "-"), info.ID, info.Entries,
			when(info.Updated), cmp.Or(shorten(info.Path, 60), "-"), shorten(c.hide(info.Title), 40)+specials(info))
	}
	return w.Flush()
}

// specials says what is special about a session.
func specials(info session.Info) string {
	var words []string
	if info.Archived {
		words = append(words, "archived")
	}
	switch {
	case info.Nested:
		words = append(words, "nested in "+info.Parent)
	case info.Parent != "":
		words = append(words, fmt.Sprintf("a fork of %s at %d", info.Parent, info.At))
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// infoCommand is antiphon sessions info.
type infoCommand struct {
	Session string `arg:"" help:"The session."`
}

// account is what sessions info prints.
type account struct {
	session.Info
	Items  int            `json:"items"`
	Turns  int            `json:"turns"`
	Calls  int            `json:"calls"`
	Tokens tokens         `json:"tokens"`
	Cost   float64        `json:"cost,omitempty"`
	Stop   string         `json:"stopped,omitempty"`
	Open   []string       `json:"open_calls,omitempty"`
	Kinds  map[string]int `json:"kinds"`
}

// tokens are as the endpoint reported them.
type tokens struct {
	Input  int64 `json:"input"`
	Cached int64 `json:"cached"`
	Output int64 `json:"output"`
	Total  int64 `json:"total"`
}

// Run prints what is known.
func (c *infoCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.with(ctx, env, c.Session, func(store keeper, info session.Info) error {
		s, err := session.Open(ctx, store, info.ID)
		if err != nil {
			return err
		}
		a := accountOf(info, s)
		if all.JSON {
			return all.printJSON(std, a)
		}
		return a.print(std)
	})
}

func accountOf(info session.Info, s *session.Session) account {
	a := account{Info: info, Kinds: map[string]int{}}
	var view session.View
	for e := range s.Entries() {
		view.Apply(e)
		a.Kinds[session.Kind(e.Body)]++
		switch b := e.Body.(type) {
		case session.Given, session.Answered:
			a.Items++
		case session.Received:
			a.Items++
			if b.Item.IsCall() {
				a.Calls++
			}
		case session.TurnEnded:
			a.Turns++
			a.use(b.Usage, b.Cost)
		case session.Compacted:
			a.use(b.Usage, b.Cost)
		case session.RunStarted:
			a.Stop = "interrupted"
		case session.Stopped:
			a.Stop = b.Why
		}
	}
	for _, call := range view.Open() {
		a.Open = append(a.Open, fmt.Sprintf("%s %s", call.Item.Name(), call.CallID))
	}
	return a
}

// use counts what an answer of the endpoint has used.
func (a *account) use(u *item.Usage, cost float64) {
	a.Cost += cost
	if u == nil {
		return
	}
	a.Tokens.Input += u.InputTokens
	a.Tokens.Cached += u.Cached()
	a.Tokens.Output += u.OutputTokens
	a.Tokens.Total += u.TotalTokens
}

func (a *account) print(std stdio) error {
	w := tabwriter.NewWriter(std.out, 0, 4, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	line("id", "%s%s", a.ID, specials(a.Info))
	line("name", "%s", cmp.Or(a.Name, "-"))
	line("file", "%s", cmp.Or(a.Path, "-"))
	line("created", "%s", when(a.Created))
	line("updated", "%s", when(a.Updated))
	line("log", "%s, %s, %s, %s", plural(int(a.Entries), "entry"), plural(a.Items, "item"), plural(a.Turns, "turn"), plural(a.Calls, "call"))
	line("tokens", "%d (%d in, %d cached, %d out)", a.Tokens.Total, a.Tokens.Input, a.Tokens.Cached, a.Tokens.Output)
	if a.Cost > 0 {
		line("cost", "%.6g", a.Cost)
	}
	if a.Stop != "" {
		line("last run", "%s", strings.ReplaceAll(a.Stop, "_", " "))
	}
	for _, call := range a.Open {
		line("waits", "%s", call)
	}
	return w.Flush()
}
