// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

// renameCommand is antiphon sessions rename.
type renameCommand struct {
	Session string  `arg:"" help:"The session."`
	Name    string  `arg:"" optional:"" help:"Its new name. Default: the one that it has."`
	For     string  `placeholder:"AGENT" help:"The agent's file that the session belongs to from now on, for example after the file was moved."`
	Title   *string `placeholder:"TEXT" help:"The title in lists. Empty: the beginning of the user's next message."`
	Owner   *string `placeholder:"OWNER" help:"The new owner. Empty: no owner."`
}

// Run renames.
func (c *renameCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	switch {
	case c.Name == "" && c.For == "" && c.Title == nil && c.Owner == nil:
		return usage(errors.New("give the session's new NAME, --for AGENT, --title TEXT or --owner OWNER"))
	case c.Name != "":
		if err := host.CheckName(c.Name); err != nil {
			return usage(err)
		}
	}
	return all.withWhole(ctx, env, c.Session, func(store keeper, info session.Info) error {
		if info.Nested {
			return usage(fmt.Errorf("%s is part of %s, and has no name of its own", info.ID, info.Parent))
		}
		if c.Title != nil || c.Owner != nil {
			err := store.Label(ctx, info.ID, session.Labels{Title: c.Title, Owner: c.Owner})
			if err != nil {
				return taken(unlabelled(err), info.Name)
			}
			if c.Name == "" && c.For == "" {
				return all.changed(ctx, std, store, info.ID, "%s is changed: antiphon sessions info shows its title and owner", info.ID)
			}
		}
		if c.For != "" {
			return c.bind(ctx, std, all, store, info)
		}
		if err := store.Rename(ctx, info.ID, c.Name); err != nil {
			return taken(err, c.Name)
		}
		return all.changed(ctx, std, store, info.ID, "%s is called %s now", info.ID, c.Name)
	})
}

// bind assigns a session to another agent's file.
func (c *renameCommand) bind(ctx context.Context, std stdio, all *sessionsCommand, k keeper, info session.Info) error {
	binder, err := as[store.Binder](k, "give a session to another file")
	if err != nil {
		return err
	}
	path, err := host.ResolvePath(c.For)
	if err != nil {
		return usage(fmt.Errorf("--for: %w", err))
	}
	name := cmp.Or(c.Name, info.Name)
	if err := binder.Bind(ctx, info.ID, path, name); err != nil {
		return taken(err, name)
	}
	return all.changed(ctx, std, k, info.ID, "%s belongs to %s now; antiphon run %s --session %s%s continues it", info.ID, path, quoted(c.For), quoted(cmp.Or(name, info.ID)), all.again())
}

// taken adds a hint to the error about a name that another session has.
func taken(err error, name string) error {
	if errors.Is(err, session.ErrExists) {
		return usage(fmt.Errorf("another session of the same file has the name %q; choose another name, or archive that session", name))
	}
	return err
}

// unlabelled marks the error for invalid labels as a usage error.
func unlabelled(err error) error {
	if errors.Is(err, session.ErrBadLabel) {
		return usage(err)
	}
	return err
}

// changed prints a session after a change.
func (c *sessionsCommand) changed(ctx context.Context, std stdio, store keeper, id, format string, args ...any) error {
	if !c.JSON {
		return c.told(std, nil, format, args...)
	}
	info, err := store.Info(ctx, id)
	if err != nil {
		return err
	}
	return c.printJSON(std, info)
}

// forkCommand is antiphon sessions fork.
type forkCommand struct {
	Session string `arg:"" help:"The session."`
	At      *int64 `placeholder:"N" help:"Fork after entry N, as sessions show counts them. Default: at the end."`
	Name    string `placeholder:"NAME" help:"The name of the fork. Default: the session's name and a number."`
}

// Run forks.
func (c *forkCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	if c.Name != "" {
		if err := host.CheckName(c.Name); err != nil {
			return usage(err)
		}
	}
	return all.with(ctx, env, c.Session, func(store keeper, info session.Info) error {
		at := info.Entries
		if c.At != nil {
			at = *c.At
		}
		if info.Entries == 0 {
			return usage(fmt.Errorf("%s has no entries to begin a fork with", info.ID))
		}
		if at > info.Entries || at < 1 {
			return usage(fmt.Errorf("--at %d: the session has the entries 1 to %d", at, info.Entries))
		}
		made, err := host.Fork(ctx, store, info, at, c.Name)
		if err != nil {
			return taken(err, c.Name)
		}
		if all.JSON {
			return all.printJSON(std, made)
		}
		for _, d := range made.Dropped {
			fmt.Fprintln(std.err, "!! "+show.Unbroken(all.hide("not taken over: "+d.What)))
		}
		name := made.Name
		if info.Path == "" { // otherwise only the id identifies it
			name = made.ID
		}
		file := "FILE"
		if info.Path != "" {
			file = quoted(info.Path)
		}
		return all.told(std, nil, "%s is a fork of %s at entry %d; antiphon run %s --session %s%s continues it", made.ID, info.ID, at, file, quoted(name), all.again())
	})
}

// quoted returns a name in shell syntax.
func quoted(name string) string { return trust.CommandLine(name) }

// resetCommand is antiphon sessions reset.
type resetCommand struct {
	Session string `arg:"" help:"The session."`
}

// Run archives the session under another name.
func (c *resetCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.withWhole(ctx, env, c.Session, func(store keeper, info session.Info) error {
		if info.Archived {
			return usage(fmt.Errorf("%s is archived already", info.ID))
		}
		if err := store.Archive(ctx, info.ID, true); err != nil {
			return err
		}
		return all.changed(ctx, std, store, info.ID, "%s is archived; the next run with --session %s begins anew", info.ID, quoted(info.Name))
	})
}

// archiveCommand is antiphon sessions archive.
type archiveCommand struct {
	Session string `arg:"" help:"The session."`
	Undo    bool   `help:"Take it back."`
}

// Run archives.
func (c *archiveCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.opened(ctx, env, false, func(store keeper) error {
		info, err := findWhole(ctx, store, c.Session, c.Undo)
		if err != nil {
			return err
		}
		if c.Undo && !info.Archived {
			return usage(fmt.Errorf("%s is not archived", info.ID))
		}
		if err := store.Archive(ctx, info.ID, !c.Undo); err != nil {
			return taken(err, info.Name)
		}
		word := "archived"
		if c.Undo {
			word = "back in the list"
		}
		return all.changed(ctx, std, store, info.ID, "%s is %s", info.ID, word)
	})
}

// removeCommand is antiphon sessions rm.
type removeCommand struct {
	Sessions []string `arg:"" name:"session" help:"The sessions."`
	Force    bool     `short:"f" help:"Do not ask."`
}

// Run deletes. At a terminal it asks first; otherwise it needs --force.
func (c *removeCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.opened(ctx, env, false, func(store keeper) error {
		list, err := findAll(ctx, store, c.Sessions)
		if err != nil && len(c.Sessions) > 1 {
			err = &exitError{codeOf(err), fmt.Errorf("nothing was deleted: %w", err)}
		}
		if err != nil {
			return err
		}
		deleted, err := c.removeAll(ctx, std, all, store, list)
		switch {
		case err != nil && len(deleted) > 0:
			err = &exitError{codeOf(err), fmt.Errorf("deleted %d of %d, then: %w", len(deleted), len(list), err)}
		case err != nil && len(list) > 1:
			err = &exitError{codeOf(err), fmt.Errorf("nothing was deleted: %w", err)}
		}
		if all.JSON && (err == nil || len(deleted) > 0) {
			err = errors.Join(err, all.printJSON(std, deleted))
		}
		return err
	})
}

// removeAll deletes sessions until one cannot be deleted, and returns the deleted
// ones.
func (c *removeCommand) removeAll(ctx context.Context, std stdio, all *sessionsCommand, store keeper, list []session.Info) ([]session.Info, error) {
	deleted := []session.Info{}
	if !c.Force && !(show.IsTerminal(std.in) && show.IsTerminal(std.err)) {
		each := make([]string, len(list))
		for i, info := range list {
			each[i] = fmt.Sprintf("%s, which has %s,", info.ID, show.Plural(int(info.Entries), "entry"))
		}
		return nil, usage(fmt.Errorf("deleting %s needs --force", strings.Join(each, " and ")))
	}
	who := person.New(std.in, std.err)
	for _, info := range list {
		yes, err := c.sure(ctx, std, who, info)
		if err == nil && !yes {
			fmt.Fprintf(std.err, "antiphon: %s is kept\n", show.Visible(info.ID))
			continue
		}
		if err == nil {
			err = inUse(host.Remove(ctx, store, info), info, all.again())
		}
		if err != nil {
			return deleted, err
		}
		deleted = append(deleted, info)
		if !all.JSON {
			if err := all.told(std, nil, "%s is deleted", info.ID); err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

// inUse adds a hint to the error about a session that is being written to.
func inUse(err error, info session.Info, flags string) error {
	if !errors.Is(err, session.ErrBusy) {
		return err
	}
	said, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s is in use: %s\n  hint: end that process or wait for it, and delete again; antiphon sessions archive %s%s removes it from the list now", info.ID, said, quoted(info.ID), flags)
}

// findAll finds all sessions before any is deleted, so that a wrong name deletes
// nothing.
func findAll(ctx context.Context, store keeper, names []string) (list []session.Info, err error) {
	for _, name := range names {
		info, err := findWhole(ctx, store, name, false)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(other session.Info) bool { return other.ID == info.ID }) {
			list = append(list, info)
		}
	}
	return list, nil
}

func (c *removeCommand) sure(ctx context.Context, std stdio, who *person.Person, info session.Info) (bool, error) {
	if c.Force {
		return true, nil
	}
	return who.Agrees(ctx, fmt.Sprintf("Delete %s (%s, last written to %s)?", info.ID, show.Plural(int(info.Entries), "entry"), when(info.Updated)))
}

func bytesOf(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
