// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// Salvage copies what is whole of the session from into a new session to, with
// those that are nested in it. Each entry keeps its number. In the place of one
// that is lost stands a notice that says so and quotes what is stored there, and
// the last entry of the copy says what it is a copy of. The damaged session stays
// as it is.
//
// The copy takes no consent over that may have been used: of calls without an
// output that a lost entry follows, it is not known whether they ran; approvals
// that led to nothing are void. Where an entry is lost that may have withdrawn words,
// nothing is sent until that is accepted: see [store.Salvaged.Gaps].
func (s *Store) Salvage(ctx context.Context, from, to string) (store.Salvaged, error) {
	done := store.Salvaged{Session: to}
	err := s.salvage(ctx, from, to, &done)
	return done, s.fail("salvaging", err)
}

func (s *Store) salvage(ctx context.Context, from, to string, done *store.Salvaged) error {
	if err := s.seal.usable(); err != nil {
		return err
	}
	ids, err := s.reads.texts(ctx, `SELECT id FROM antiphon_sessions ORDER BY id`)
	if err != nil && !errors.Is(err, session.ErrDamaged) && codeOf(err) != sqliteCorrupt {
		return err
	}
	if err := s.salvageOne(ctx, from, to, from, to, done); err != nil {
		return err
	}
	for _, id := range ids {
		if inner, nested := strings.CutPrefix(id, from+"/"); nested {
			if err := s.salvageOne(ctx, id, to+"/"+inner, from, to, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// salvageBatch is how many entries are appended at once.
const salvageBatch = 256

// salvageOne copies a session: one called outer, or one that is nested in it.
func (s *Store) salvageOne(ctx context.Context, from, to, outer, newOuter string, done *store.Salvaged) error {
	row, err := s.reads.find(ctx, from)
	if row == nil {
		return err
	}
	c := &salvage{s: s, row: row, to: to, done: done, found: len(done.Damage)}
	var damage *session.Damage
	if errors.As(err, &damage) {
		c.note(damage)
	}
	info := session.Info{ID: to, Path: row.Path}
	if parent, ok := session.NestedIn(to); ok && from != outer {
		info = session.Info{ID: to, Parent: parent, Nested: true}
	}
	if damage == nil { // then the row is as it was written
		if info.Tags = row.Tags; row.titled && s.seal.usable() == nil {
			info.Title = s.seal.info(row).Title
		}
	}
	if err := s.Create(ctx, info); err != nil {
		return err
	}
	if err := c.copy(ctx, outer, newOuter); err != nil {
		return err
	}
	return c.finish(ctx)
}

// salvage is the copying of one session.
type salvage struct {
	s     *Store
	row   *stored
	to    string
	done  *store.Salvaged
	found int // how much damage was known before
	batch []session.Entry
	end   int64 // the last entry of the copy that is written
	whole int64 // entries that are copied
	gap   bool  // one was lost
	torn  bool  // how the log went on is not known
}

func (c *salvage) note(d *session.Damage) {
	d.Session = c.row.ID
	c.done.Damage = append(c.done.Damage, *d)
}

// copy appends each entry, or the notice that stands for it.
func (c *salvage) copy(ctx context.Context, outer, newOuter string) error {
	all := &scan{s: c.s, row: c.row}
	for at := range all.entries(ctx) {
		if at.seq == 0 {
			c.note(at.damage)
			c.torn = true
			continue
		}
		e, ok, d := c.s.saved(at)
		if d = cmp.Or(d, at.damage); d != nil {
			c.note(d)
		}
		if ok {
			c.whole++
			e.Body = renamedBody(e.Body, outer, newOuter)
		} else {
			c.gap = c.gap || e.Body.(session.Noticed).Kind == session.NoticeEntryLost
		}
		if c.batch = append(c.batch, e); len(c.batch) == salvageBatch {
			if err := c.flush(ctx); err != nil {
				return err
			}
		}
	}
	if all.err != nil {
		return all.err
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	for _, part := range all.spans {
		if err := c.keep(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// keep has the copy keep the whole payloads that a part of the damaged session
// keeps, also those that only texts of it name, such as the whole of a long output:
// the session may be deleted now.
func (c *salvage) keep(ctx context.Context, part span) error {
	blobs, err := c.s.reads.numbers(ctx, `SELECT blob FROM antiphon_refs WHERE log = ? AND first <= ?`, part.log, part.to)
	for _, blob := range blobs {
		if err == nil {
			err = c.s.checkBlob(ctx, blob)
		}
		if err == nil {
			err = c.keepBlob(ctx, blob, part.log)
		}
		if err = c.noted(err); err != nil {
			return err
		}
	}
	return c.noted(err)
}

// noted notes the damage that an error tells of, and returns other errors.
func (c *salvage) noted(err error) error {
	var d *session.Damage
	switch {
	case errors.As(err, &d):
		c.note(d)
	case codeOf(err) == sqliteCorrupt:
		c.note(&session.Damage{Place: c.s.place, Problem: err.Error()})
	default:
		return err
	}
	return nil
}

func (c *salvage) keepBlob(ctx context.Context, blob, log int64) error {
	return c.s.write(ctx, func(ctx context.Context, t *tx) error {
		if err := t.shareTree(ctx); err != nil {
			return err
		}
		_, err := t.exec(ctx, `INSERT INTO antiphon_refs (log, blob, first)
			SELECT s.log, r.blob, r.first FROM antiphon_refs r, antiphon_sessions s WHERE r.blob = ? AND r.log = ? AND s.id = ?
			ON CONFLICT (log, blob) DO NOTHING`, blob, log, c.to)
		return err
	})
}

// finish ends the copy with notices that say what it is.
func (c *salvage) finish(ctx context.Context) error {
	if c.torn {
		c.gap = true
		c.say(session.NoticeEntryLost, "entries may have been lost here: how the log went on is not known")
	}
	text := fmt.Sprintf("salvaged from the damaged session %s: %d of its entries are whole", c.row.ID, c.whole)
	if len(c.done.Damage) == c.found {
		text = fmt.Sprintf("salvaged from the session %s, which is not damaged: its %d entries are whole", c.row.ID, c.whole)
	}
	c.say(session.NoticeSalvaged, text)
	c.done.Entries += c.whole
	if c.gap {
		c.done.Gaps = append(c.done.Gaps, c.to)
	}
	return c.flush(ctx)
}

func (c *salvage) say(kind, text string) {
	c.batch = append(c.batch, session.Entry{Seq: c.end + int64(len(c.batch)) + 1, Body: session.Noticed{Kind: kind, Text: text}})
}

func (c *salvage) flush(ctx context.Context) error {
	err := c.s.Append(ctx, c.to, c.end, c.batch)
	c.end += int64(len(c.batch))
	c.batch = nil
	return err
}

// saved returns the entry, or the notice that stands for it.
func (s *Store) saved(found scanned) (e session.Entry, whole bool, damage *session.Damage) {
	if found.line != nil {
		e, err := s.split.ParseEntry(string(found.line))
		if err == nil && e.Seq == found.seq {
			if _, err = session.AppendEntry(nil, e); err == nil { // which reads its payloads
				return e, true, nil
			}
		}
		damage = &session.Damage{Entry: found.seq, Place: "a payload of it, or its form", Problem: fmt.Sprint(err)}
		found.raw, found.damage = found.line, damage
	}
	kind := session.NoticeEntryLost
	if _, err := texts.ParseEntry(string(found.line)); err == nil {
		kind = session.NoticePayloadLost // all but the payload is there
	}
	text := fmt.Sprintf("entry %d was lost: %s", found.seq, found.damage.Problem)
	if len(found.raw) > 0 {
		text += fmt.Sprintf("; damaged, this is stored in its place: %q", found.raw)
	}
	return session.Entry{Seq: found.seq, Body: session.Noticed{Kind: kind, Text: text}}, false, damage
}

// renamedBody is a body that names nested sessions as their copies are called.
func renamedBody(body session.Body, outer, newOuter string) session.Body {
	renamed := func(id string) string {
		if inner, nested := strings.CutPrefix(id, outer+"/"); nested {
			return newOuter + "/" + inner
		}
		return id
	}
	switch b := body.(type) {
	case session.CallStarted:
		b.Session = renamed(b.Session)
		return b
	case session.Nested:
		b.Session = renamed(b.Session)
		return b
	case session.Paused:
		b.Session = renamed(b.Session)
		return b
	}
	return body
}
