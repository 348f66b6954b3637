// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// sweepCommand is antiphon sessions gc.
type sweepCommand struct {
	OlderThan string `placeholder:"AGE" help:"Also delete sessions that were not written to for AGE, such as 30d, 2w or 12h."`
	Expired   bool   `help:"Like --older-than, with the age in $$ANTIPHON_KEEP."`
	Archived  bool   `help:"Of those, only the archived ones."`
	DryRun    bool   `help:"Only print what would be removed."`
	Force     bool   `short:"f" help:"Do not ask."`
}

// Help is shown by antiphon sessions gc --help.
func (sweepCommand) Help() string {
	return `Removes payloads that no session needs. It deletes sessions only with --older-than
or --expired: it lists them first and, at a terminal, asks. It leaves alone a session
that is in use, and one with input that no run has taken yet.

Also writes the database anew if something was deleted, so that no bytes of it
are left. Of a Postgres server that is true of its tables; its write-ahead log,
archives, standbys and backups have their own times.

Examples:
  antiphon sessions gc --older-than 90d --dry-run
  antiphon sessions gc --older-than 30d --archived --force
  ANTIPHON_KEEP=1y antiphon sessions gc --expired --force`
}

// sweptOut is what sessions gc --json prints.
type sweptOut struct {
	// Sessions were deleted because of their age. InUse were not deleted because they
	// are in use.
	Sessions []session.Info `json:"sessions,omitempty"`
	InUse    []session.Info `json:"in_use,omitempty"`
	// Waiting were not deleted because what somebody said waits in their inbox.
	Waiting []session.Info `json:"waiting,omitempty"`
	// Unread were not deleted because their inbox cannot be read, so somebody's words may wait there.
	Unread []session.Info `json:"unread,omitempty"`
	session.GCStats
}

// Run deletes and sweeps.
func (c *sweepCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	age, err := c.age(env)
	if err != nil {
		return usage(err)
	}
	return all.opened(ctx, env, false, func(store keeper) error {
		var out sweptOut
		if age > 0 {
			if out, err = c.expire(ctx, std, all, store, time.Now().Add(-age)); err != nil {
				return err
			}
		}
		if out.GCStats, err = store.Sweep(ctx, c.DryRun); err != nil {
			return err
		}
		word := "removed"
		if c.DryRun {
			word = "would be removed"
		}
		if out.Left == "" && !c.DryRun {
			word += "; the database holds no bytes of deleted data"
		}
		if out.Left != "" && !all.JSON {
			fmt.Fprintf(std.err, "antiphon: bytes of what was deleted are still in %s\n", out.Left)
		}
		deleted := ""
		if age > 0 {
			deleted = show.Plural(len(out.Sessions), "session") + ", "
		}
		return all.told(std, out, "%s%s and %s, %s in all, %s", deleted, show.Plural(out.Blobs, "blob"), show.Plural(out.Entries, "entry"), bytesOf(out.Bytes), word)
	})
}

// age returns how long sessions are kept, or 0 for no limit.
func (c *sweepCommand) age(env environment) (time.Duration, error) {
	switch {
	case c.OlderThan != "" && c.Expired:
		return 0, errors.New("--older-than says an age, --expired takes that of $ANTIPHON_KEEP: choose one")
	case c.OlderThan != "":
		return parseAge("--older-than", c.OlderThan)
	case c.Expired && env["ANTIPHON_KEEP"] == "":
		return 0, errors.New("--expired: $ANTIPHON_KEEP does not say how long sessions are kept; set it to an age such as 90d")
	case c.Expired:
		return parseAge("$ANTIPHON_KEEP", env["ANTIPHON_KEEP"])
	case c.Archived:
		return 0, errors.New("--archived chooses among the sessions that --older-than or --expired deletes: give one of them")
	}
	return 0, nil
}

// parseAge parses a number with a unit.
func parseAge(what, text string) (time.Duration, error) {
	const day = 24 * time.Hour
	units := map[string]time.Duration{"h": time.Hour, "d": day, "w": 7 * day, "y": 365 * day}
	n, err := strconv.ParseUint(strings.TrimRight(text, "hdwy"), 10, 32)
	unit := units[strings.TrimLeft(text, "0123456789")]
	if err != nil || n == 0 || unit == 0 || n > 200*365*24 || time.Duration(n) > 200*365*day/unit {
		return 0, fmt.Errorf("%s %s: not an age; write a number and a unit: 12h, 30d, 4w or 1y", what, text)
	}
	return time.Duration(n) * unit, nil
}

// waitsInInbox says why a session is not deleted.
const waitsInInbox = "has something in its inbox that somebody said"

// expire deletes the sessions that were not written to since the given time.
func (c *sweepCommand) expire(ctx context.Context, std stdio, all *sessionsCommand, store keeper, since time.Time) (out sweptOut, err error) {
	old := func(i session.Info) bool { return i.Updated.Before(since) && (i.Archived || !c.Archived) }
	stays := func(info session.Info, list *[]session.Info, why string) {
		*list = append(*list, info)
		if !all.JSON {
			fmt.Fprintf(std.err, "antiphon: %s %s, and stays\n", info.ID, why)
		}
	}
	list, err := oldSessions(ctx, std, store, old)
	if err != nil {
		return out, err
	}
	if box, ok := store.(session.Inbox); ok {
		list = slices.DeleteFunc(list, func(info session.Info) bool {
			waits, err := hasDelivery(ctx, box, info.ID)
			switch {
			case err != nil:
				stays(info, &out.Unread, "has an inbox that cannot be read: "+show.Printable(all.hide(err.Error())))
			case waits:
				stays(info, &out.Waiting, waitsInInbox)
			}
			return err != nil || waits
		})
	}
	if !all.JSON && len(list) > 0 {
		fmt.Fprintf(std.err, "Not written to since %s:\n", when(since))
		for _, i := range list {
			fmt.Fprintf(std.err, "  %s  %s  %s  %s%s\n", i.ID, when(i.Updated), show.Plural(int(i.Entries), "entry"), show.Shorten(all.hide(cmp.Or(i.Name, i.Title, "-")), 40), specials(i))
		}
	}
	if c.DryRun || len(list) == 0 {
		out.Sessions = list
		return out, nil
	}
	if yes, err := c.sure(ctx, std, len(list)); err != nil || !yes {
		return out, err
	}
	for _, info := range list {
		gone, err := host.RemoveIf(ctx, store, info.ID, old)
		switch {
		case errors.Is(err, session.ErrBusy):
			stays(info, &out.InUse, "is in use")
		case errors.Is(err, session.ErrDeliveryWaits): // it, or a session nested in it
			stays(info, &out.Waiting, waitsInInbox)
		case err != nil:
			return out, err
		case gone:
			out.Sessions = append(out.Sessions, info)
		}
	}
	return out, nil
}

// oldSessions lists the sessions that are old. A damaged one stays, and hides no other.
func oldSessions(ctx context.Context, std stdio, store keeper, old func(session.Info) bool) (list []session.Info, err error) {
	for info, err := range store.List(ctx, session.Query{Archived: true}) {
		if errors.Is(err, session.ErrDamaged) {
			fmt.Fprintf(std.err, "antiphon: a session stays: %s\n", show.Printable(err.Error()))
			break
		}
		if err != nil {
			return nil, err
		}
		if old(info) {
			list = append(list, info)
		}
	}
	return list, nil
}

// hasDelivery reports whether a delivery in the inbox of a session waits to be taken.
func hasDelivery(ctx context.Context, box session.Inbox, id string) (bool, error) {
	for d, err := range box.Deliveries(ctx, id) {
		if err != nil {
			return false, err
		}
		if session.AllTaken(id, d) != nil {
			return true, nil
		}
	}
	return false, nil
}

func (c *sweepCommand) sure(ctx context.Context, std stdio, n int) (bool, error) {
	if c.Force {
		return true, nil
	}
	if !show.IsTerminal(std.in) || !show.IsTerminal(std.err) {
		return false, usage(fmt.Errorf("deleting %s needs --force; --dry-run only lists them", show.Plural(n, "session")))
	}
	return person.New(std.in, std.err).Agrees(ctx, fmt.Sprintf("Delete %s?", show.Plural(n, "session")))
}
