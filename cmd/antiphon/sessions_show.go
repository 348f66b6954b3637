// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// showCommand is antiphon sessions show.
type showCommand struct {
	Session string `arg:"" help:"The session."`
	AsSent  bool   `help:"Print what the next request would contain, and why."`
	Full    bool   `help:"Print texts in full instead of their beginnings."`
	All     bool   `help:"Also print entries that only a run needs."`
	Follow  bool   `short:"f" help:"Continue with new entries, until Ctrl-C."`
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
		return usage(errors.New("--follow shows new entries, --as-sent shows the next request: choose one"))
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
	p := show.NewLogPrinter(std.out, std.err, env, c.Full)
	p.All = c.All
	var line []byte
	for e, err := range entries {
		if err != nil {
			return err
		}
		if !all.JSON {
			err = p.Show(agent.Recorded{Entry: e})
		} else if line, err = agent.AppendEvent(line[:0], agent.Recorded{Entry: e}); err == nil {
			_, err = fmt.Fprintln(toJSON(std.out), all.hide(string(line)))
		}
		if err != nil {
			return err
		}
	}
	if !all.JSON {
		p.UnshownEntries()
	}
	return nil
}
