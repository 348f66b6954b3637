// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

// This file holds the question about a store in a file that somebody else may have made: what it
// remembers lets calls run. Stores on servers have no question, because a team shares them.

// shownCarried is how many of the things that a store remembers are shown.
const shownCarried = 20

// vouch returns an error unless what a store remembers counts: it is in the user's data folder, this
// machine made it, nothing in it lets anything happen, or a person says that it is theirs.
func (t *truster) vouch(ctx context.Context, in keeper) error {
	src, known, err := t.owns(ctx, in)
	if err != nil || known {
		return err
	}
	s, n, err := t.carried(ctx, in, src.Path)
	if err != nil {
		return err
	}
	if n == 0 { // what it remembers from now on was said here
		if err := t.stores.Add(ctx, trust.GrantOf(claimOf(src), t.now())); err != nil {
			fmt.Fprintf(t.std.err, "!! the store is not remembered as yours: %s\n", show.Printable(err.Error()))
		}
		return nil
	}
	if t.who != nil {
		done, err := t.who.Alone(ctx)
		if err != nil {
			return err
		}
		defer done()
	}
	hidden := t.display(s)
	if t.who == nil {
		return usage(fmt.Errorf("what the store %s remembers does not count here, because this machine did not make it\n  hint: antiphon trust --mine %s says that it is yours; a session of somebody else comes in by antiphon sessions export ID --to jsonl and antiphon sessions import",
			show.Visible(in.Place()), quoted(in.Place())))
	}
	if err := t.confirmMine(ctx, s, hidden, storeHelp); err != nil {
		return fmt.Errorf("the store %s: %w", show.Visible(in.Place()), err)
	}
	return t.adopt(ctx, src)
}

// storeHelp explains the answers about a store.
const storeHelp = "   y: all that it remembers counts from now on, as if you had said it here\n   n: it is not used; antiphon sessions show and export still read it"

// owns reports whether a store counts as the user's without a question. src is its place and content.
func (t *truster) owns(ctx context.Context, in keeper) (src trust.Source, known bool, err error) {
	local, ok := in.(store.Local)
	if !ok || local.File() == "" {
		return src, true, nil
	}
	src.Path = local.File()
	if data, err := filepath.EvalSymlinks(filepath.Dir(t.store.Path())); err == nil && filepath.Dir(src.Path) == data {
		return src, true, nil // who can write there can agree to anything
	}
	one, err := as[store.Identified](in, "tell itself from others")
	if err != nil {
		return src, false, err
	}
	id, err := one.Identity(ctx)
	if err != nil {
		return src, false, err
	}
	src.Hash = trust.Hash([]byte(id))
	if known, err = t.stores.Knows(src); err != nil {
		err = usage(err)
	}
	return src, known, err
}

// carried returns what a store remembers, for people, and how much that is, up to one more than is shown.
func (t *truster) carried(ctx context.Context, in keeper, path string) (s show.Shown, n int, err error) {
	slow := time.AfterFunc(patience, func() {
		fmt.Fprintf(t.std.err, "antiphon: all of the store %s is read, because this machine did not make it\n", show.Visible(path))
	})
	defer slow.Stop()
	s.Add("?? ", "This machine did not make the store "+show.Visible(path)+". It remembers", "")
	for d, err := range host.Carried(ctx, in) {
		if err != nil {
			return s, n, err
		}
		if n++; n > shownCarried {
			s.Add("   ", "and more", "")
			break
		}
		where := ""
		if d.Session != "" {
			where = " (session " + show.Visible(d.Session) + ")"
		}
		s.Add("   ", show.Visible(d.What)+where, "")
	}
	s.Add("   ", "All of this counts as said by you, once you say that the store is yours.", "")
	return s, n, nil
}

// adopt records and remembers that a store is the person's.
func (t *truster) adopt(ctx context.Context, src trust.Source) error {
	claim, by := claimOf(src), "the caller of the command"
	if t.who != nil {
		by = person.Name
	}
	a := trust.Agreement{Decided: session.DeciderPerson, By: by, From: "the question about a store", Shown: t.seen.String()}
	if err := t.record(ctx, audit.Agreed(claim, a, nil)); err != nil {
		return err
	}
	return t.stores.Add(ctx, trust.GrantOf(claim, t.now()))
}

// claimOf returns the claim of a store, which has no powers of a file.
func claimOf(src trust.Source) trust.Claim {
	return trust.Claim{Path: src.Path, Sources: []trust.Source{src}}
}

// isDatabase reports whether a file is a database of SQLite.
func isDatabase(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == magic
}

// adoptStore is antiphon trust --mine STORE.
func (c *trustAddCommand) adoptStore(ctx context.Context, t *truster, env environment) (err error) {
	flags := storeFlag{Store: c.File, StoreKey: c.StoreKey, StoreRetry: time.Second}
	in, err := flags.open(ctx, env, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	src, known, err := t.owns(ctx, in)
	if err != nil {
		return err
	}
	if known {
		fmt.Fprintf(t.std.out, "%s counts as yours already\n", show.Visible(c.File))
		return nil
	}
	s, n, err := t.carried(ctx, in, src.Path)
	if err != nil {
		return err
	}
	hidden := 0
	if n > 0 {
		hidden = t.display(s)
	}
	switch {
	case c.Diff:
		return nil
	case n == 0, c.Yes:
	case t.who == nil:
		return errNobodyMine
	default:
		if err := t.confirmMine(ctx, s, hidden, storeHelp); err != nil {
			return err
		}
	}
	if err := t.adopt(ctx, src); err != nil {
		return err
	}
	fmt.Fprintf(t.std.out, "%s counts as yours\n", show.Visible(c.File))
	return nil
}

// made remembers a store that this program has just made as the user's. One that is not remembered is asked about later.
func made(ctx context.Context, env environment, in keeper) {
	t, err := newTruster("", &trustFlags{}, stdio{}, env, nil)
	if err != nil {
		return
	}
	if src, known, err := t.owns(ctx, in); err == nil && !known {
		_ = t.stores.Add(ctx, trust.GrantOf(claimOf(src), t.now())) // as above
	}
}

// openVouched opens the store for a command that runs agents, and asks about one that somebody else may have made.
func (f *storeFlag) openVouched(ctx context.Context, std stdio, env environment) (keeper, error) {
	in, err := f.open(ctx, env, true)
	if err != nil {
		return nil, err
	}
	if err := vouched(ctx, in, std, env); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// vouched is [truster.vouch] for commands that run the agents of several files.
func vouched(ctx context.Context, in keeper, std stdio, env environment) error {
	var who *person.Person
	if show.IsTerminal(std.in) && show.IsTerminal(std.err) {
		who = person.New(std.in, std.err)
	}
	t, err := newTruster("", &trustFlags{}, std, env, who)
	if err != nil {
		return err
	}
	return t.vouch(ctx, in)
}
