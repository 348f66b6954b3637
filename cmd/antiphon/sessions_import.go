// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// importCommand is antiphon sessions import.
type importCommand struct {
	File string `arg:"" help:"JSON lines or a transcript; - is standard input."`
	Name string `placeholder:"NAME" help:"The name of the session. Default: its previous name, or the file's."`
	For  string `placeholder:"AGENT" help:"The agent's file that it belongs to, so that a run can continue it. Default: none."`

	Trust bool `help:"Agree to what is asked about: what a transcript reads, and the sites from which the conversation lets the endpoint fetch."`
}

// Help is shown by antiphon sessions import --help.
func (importCommand) Help() string {
	return `FILE is one of two. JSON lines, of sessions export --to jsonl, hold everything, and
come back entry by entry. A transcript, of run --out or sessions export --to chatmd,
holds what was said. Anything else, such as an HTML page, and a file that was cut
short, is refused with what it seems to be, and nothing of it stays.

What is imported is a new session; nothing that is there is changed. It brings no
authority: approvals of calls that have not run, remembered rules and the like
are dropped, and each is listed. Without --for it belongs to no agent: it can be
shown, exported and forked, and no run takes it. If the conversation lets the
endpoint fetch images or files from addresses, you are asked once about the sites;
without a terminal, --trust agrees.

Examples:
  antiphon sessions import work.jsonl --for agent.md
  antiphon sessions import talk.md --name talk --for agent.md
  ssh host antiphon sessions export work --to jsonl | antiphon sessions import -`
}

// Run imports.
func (c *importCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	path := ""
	if c.For != "" {
		var err error
		if path, err = host.ResolvePath(c.For); err != nil {
			return usage(fmt.Errorf("--for: %w", err))
		}
	}
	if c.Name != "" {
		if err := host.CheckName(c.Name); err != nil {
			return usage(err)
		}
	}
	f, name, done, err := c.input(ctx, std)
	if err != nil {
		return usage(err)
	}
	defer done()
	head, err := io.ReadAll(io.LimitReader(f, sniffed))
	if err == nil {
		err = notImportable(name, head, len(head) < sniffed)
	}
	if err != nil {
		return usage(err)
	}
	options, err := fileOptions()
	if err != nil {
		return err
	}
	t, err := newTruster(c.File, &trustFlags{Trust: c.Trust}, std, env, nil)
	if err != nil {
		return err
	}
	options.Consent = t.recorded(t.askToRead)
	return all.opened(ctx, env, true, func(store keeper) error {
		how := host.Import{Store: store, Name: c.Name, Path: path, Options: options}
		how.Consent = t.recorded(func(ctx context.Context, claim trust.Claim) (trust.Agreement, error) {
			return c.agree(ctx, t, claim, !all.JSON && show.IsTerminal(std.in) && show.IsTerminal(std.err))
		})
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		var made *host.Imported
		if head[0] == '{' { // an exported session
			if made, err = how.Lines(ctx, name, f); err != nil {
				return err
			}
		} else {
			if name == standardInput {
				how.Name = cmp.Or(c.Name, "imported")
			}
			if made, err = how.Transcript(ctx, name, f); err != nil {
				return severalProblems(std, err)
			}
		}
		return c.tell(std, all, made)
	})
}

// agree asks the person about the sites from which the conversation lets the endpoint fetch.
func (c *importCommand) agree(ctx context.Context, t *truster, claim trust.Claim, canAsk bool) (trust.Agreement, error) {
	switch {
	case c.Trust:
		return trust.Agreement{Powers: claim.Powers, Decided: session.DeciderFlag, From: "--trust"}, nil
	case !canAsk:
		return trust.Agreement{}, usage(fmt.Errorf("%w\n  hint: nothing was imported; --trust imports it, and its runs let the endpoint do this", &trust.UntrustedError{Claim: claim}))
	}
	t.who = person.New(t.std.in, t.std.err)
	s, hidden := t.show(claim)
	t.who.Unasked()
	for {
		answer, ok, err := t.reply(ctx, "import it? [y]es, [n]o:", s, &hidden)
		if err != nil {
			return trust.Agreement{}, err
		}
		a := trust.Agreement{Decided: session.DeciderPerson, By: person.Name, From: show.AtTerminal, Shown: t.seen.String()}
		switch {
		case !ok || answer == "n" || answer == "no":
			return a, usage(errors.New("nothing was imported"))
		case answer == "y" || answer == "yes":
			a.Powers = claim.Powers
			return a, nil
		case answer != "":
			fmt.Fprintln(t.std.err, "   y: makes the session; its runs let the endpoint do this without asking\n   n: imports nothing")
		}
	}
}

// input opens the file. Standard input and pipes are copied to a temporary file,
// because an export is read twice and may not fit into memory; done removes the
// copy.
func (c *importCommand) input(ctx context.Context, std stdio) (f *os.File, name string, done func(), err error) {
	if c.File == "-" {
		f, done, err = spooled(ctx, std, std.in)
		return f, standardInput, done, err
	}
	if f, err = unlessEnded(ctx, func() (*os.File, error) { return os.Open(c.File) }); err != nil {
		return nil, "", nil, err
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return f, c.File, func() { _ = f.Close() }, err
	}
	defer f.Close()
	whole, done, err := spooled(ctx, std, f)
	return whole, c.File, done, err
}

// spooled copies a pipe to a temporary file that can be read twice.
func spooled(ctx context.Context, std stdio, in io.Reader) (f *os.File, done func(), err error) {
	if f, err = os.CreateTemp("", "antiphon-import-*"); err != nil {
		return nil, nil, err
	}
	done = func() { _ = f.Close(); _ = os.Remove(f.Name()) }
	err = await(ctx, std, readingInput, func() error {
		_, err := io.Copy(f, in)
		return err
	})
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
	}
	return f, done, err
}

// severalProblems prints the problems of a transcript on separate lines.
func severalProblems(std stdio, err error) error {
	var problems chatmd.ErrorList
	if !errors.As(err, &problems) || len(problems) < 2 {
		return err
	}
	fmt.Fprintln(std.err, show.Printable(problems.Error()))
	return usage(fmt.Errorf("%s in the file; nothing was imported", show.Plural(len(problems), "problem")))
}

// tell prints what was made and what was dropped.
func (c *importCommand) tell(std stdio, all *sessionsCommand, made *host.Imported) error {
	if all.JSON {
		return all.printJSON(std, made)
	}
	for _, d := range made.Dropped {
		where := fmt.Sprintf("entry %d", d.Entry)
		if d.Session != made.ID {
			where += " of " + d.Session
		}
		fmt.Fprintln(std.err, "!! "+show.Unbroken(all.hide(fmt.Sprintf("dropped, %s: %s", where, d.What))))
	}
	for _, site := range made.Sites {
		fmt.Fprintln(std.err, "!! "+show.Unbroken(all.hide("a run that continues it "+trust.Power{Kind: trust.Loads, What: site}.String())))
	}
	owner := fmt.Sprintf("it belongs to no agent, so no run can continue it; antiphon sessions rename %s --for AGENT%s changes that", quoted(made.ID), all.again())
	if made.Path != "" {
		owner = fmt.Sprintf("antiphon run %s --session %s%s continues it", quoted(c.For), quoted(cmp.Or(made.Name, made.ID)), all.again())
	}
	return all.told(std, nil, "%s is imported, with %s; %s", made.ID, show.Plural(made.Read, "entry"), owner)
}
