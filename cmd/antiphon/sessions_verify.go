// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// verifyCommand is antiphon sessions verify.
type verifyCommand struct {
	Sessions []string `arg:"" optional:"" name:"session" help:"The sessions. Default: all that the store holds."`
}

// Help is shown by antiphon sessions verify --help.
func (verifyCommand) Help() string {
	return `Reads every entry and every payload and compares it with the checksum that was
written with it. Without a session it also has SQLite check its file.

The exit code is 0 if no damage was found, 1 if something is damaged.`
}

// verified is what sessions verify --json prints.
type verified struct {
	Store  string           `json:"store,omitempty"`
	Whole  bool             `json:"whole"`
	Damage []session.Damage `json:"damage"`
}

// Run verifies.
func (c *verifyCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.opened(ctx, env, false, func(k keeper) error {
		verifier, err := as[session.Verifier](k, "verify what it holds")
		if err != nil {
			return err
		}
		ids, err := namedIDs(ctx, k, c.Sessions)
		if err != nil {
			return err
		}
		found := verified{Damage: []session.Damage{}}
		for d, err := range verifier.Verify(ctx, ids...) {
			if err != nil {
				return err
			}
			found.Damage = append(found.Damage, d)
			if !all.JSON {
				fmt.Fprintln(std.out, show.Unbroken(all.hide(d.Error())))
			}
		}
		found.Whole = len(found.Damage) == 0
		if all.JSON {
			err = all.printJSON(std, found)
		} else if found.Whole {
			err = all.told(std, nil, "no damage was found")
		}
		if err == nil && !found.Whole {
			err = fmt.Errorf("the store is damaged\n  hint: antiphon sessions salvage SESSION --as NAME%s copies the undamaged part of a session; antiphon sessions export SESSION%[1]s writes an undamaged one", all.again())
		}
		return err
	})
}

// namedIDs returns the ids of the sessions that a person names. A session with a
// damaged row can only be named by its whole id.
func namedIDs(ctx context.Context, store keeper, names []string) ([]string, error) {
	var ids []string
	for _, name := range names {
		info, err := find(ctx, store, name, false)
		if errors.Is(err, session.ErrDamaged) {
			info, err = session.Info{ID: name}, nil
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, info.ID)
	}
	return ids, nil
}

// backupCommand is antiphon sessions backup.
type backupCommand struct {
	File string `arg:"" help:"The new file. An existing file is not replaced."`
}

// Help is shown by antiphon sessions backup --help.
func (backupCommand) Help() string {
	return `The copy holds every session with its images and outputs, as it was when the
backup began; others may write meanwhile. It is read back and compared with its
checksums before it gets its name. It is a store: --store FILE opens it.

Examples:
  antiphon sessions backup ~/backups/sessions-$(date +%F).db
  antiphon sessions list --store ~/backups/sessions-2026-03-01.db`
}

// backedUp is what sessions backup --json prints.
type backedUp struct {
	Store string `json:"store"`
	File  string `json:"file"`
	store.BackedUp
}

// Run copies the store.
func (c *backupCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.opened(ctx, env, false, func(k keeper) error {
		backuper, err := as[store.Backuper](k, "copy itself")
		if err != nil {
			return err
		}
		done, err := backuper.Backup(ctx, c.File)
		if errors.Is(err, fs.ErrExist) {
			return usage(err)
		}
		if err != nil {
			return err
		}
		return all.told(std, backedUp{k.Place(), c.File, done}, "%s holds %s, %s and %s, %s; no damage was found",
			c.File, show.Plural(done.Sessions, "session"), show.Plural(int(done.Entries), "entry"), show.Plural(done.Blobs, "blob"), bytesOf(done.Bytes))
	})
}

// salvageCommand is antiphon sessions salvage.
type salvageCommand struct {
	Session string `arg:"" help:"The damaged session."`
	As      string `required:"" placeholder:"NAME" help:"The name of the copy."`

	AcceptGaps bool `help:"Allow runs to continue the copy although lost entries may have withdrawn items."`
}

// Help is shown by antiphon sessions salvage --help.
func (salvageCommand) Help() string {
	return `The copy has every entry that is whole, under its number. A notice replaces each
lost entry and quotes what is stored there. The damaged session stays as it is.

The copy has no approval that may have been used: calls that were open where an
entry is lost count as calls whose outcome is not known, and are not run again. A
lost entry may also have withdrawn words from what is sent. So a run refuses to go
on with such a copy, until you have looked at it (sessions show NAME --as-sent) and
make another one with --accept-gaps.

Examples:
  antiphon sessions verify work
  antiphon sessions salvage work --as work-saved`
}

// saved is what sessions salvage --json prints.
type saved struct {
	Session string           `json:"session"`
	Entries int64            `json:"entries"`
	Damage  []session.Damage `json:"damage"`
	Gaps    []string         `json:"gaps"`
}

// Run salvages.
func (c *salvageCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	if err := host.CheckName(c.As); err != nil {
		return usage(err)
	}
	return all.opened(ctx, env, false, func(k keeper) error {
		ids, err := namedIDs(ctx, k, []string{c.Session})
		if err != nil {
			return err
		}
		done, err := host.Salvage(ctx, k, ids[0], c.As, c.AcceptGaps, "--accept-gaps")
		if err != nil {
			return taken(err, c.As)
		}
		id := done.Session
		if all.JSON {
			return all.printJSON(std, saved{id, done.Entries, append([]session.Damage{}, done.Damage...), append([]string{}, done.Gaps...)})
		}
		for _, d := range done.Damage {
			fmt.Fprintln(std.err, show.Unbroken(all.hide("!! "+d.Error())))
		}
		if len(done.Gaps) > 0 {
			return all.told(std, nil, "%s is made of %s that are whole; antiphon sessions show %s --as-sent%s shows what is left. "+
				"A lost entry may have withdrawn some of it: to go on with it, salvage again with --accept-gaps", id, show.Plural(int(done.Entries), "entry"), quoted(c.As), all.again())
		}
		if len(done.Damage) == 0 {
			fmt.Fprintln(std.err, "antiphon: nothing is damaged in it; sessions fork copies a session that is whole")
		}
		return all.told(std, nil, "%s is made of %s that are whole; antiphon run FILE --session %s%s goes on with it", id, show.Plural(int(done.Entries), "entry"), quoted(c.As), all.again())
	})
}
