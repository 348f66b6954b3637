// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// Salvage copies the undamaged parts of session from into a new session to, together
// with its nested sessions. Each entry keeps its number. A notice replaces each lost
// entry: it says that the entry was lost, and quotes the bytes stored in its place.
// The last entry of the copy says what it is a copy of. The damaged session is not
// changed.
//
// The copy does not carry over consent that may have been used already. For a call
// without an output that is followed by a lost entry, it is not known whether the
// call ran; approvals that led to nothing are void. If a lost entry may have
// withdrawn words, nothing is sent to the model until the user accepts that: see
// [store.Salvaged.Gaps].
func (s *Store) Salvage(ctx context.Context, from, to string) (store.Salvaged, error) {
	done := store.Salvaged{Session: to}
	err := s.salvage(ctx, from, to, &done)
	return done, s.fail("salvaging", err)
}

// salvage copies the session and then its nested sessions, whose ids begin with the
// id of the session.
func (s *Store) salvage(ctx context.Context, from, to string, done *store.Salvaged) error {
	if err := s.opened(); err != nil {
		return err
	}
	if err := s.seal.usable(); err != nil {
		return err
	}
	ids, err := s.reads.texts(ctx, `SELECT id FROM antiphon_sessions ORDER BY id`)
	// A damaged table may still have listed some sessions.
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

// salvageBatch is the number of entries in one append.
const salvageBatch = 256

// salvageOne copies one session: outer itself, or a session nested in it.
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
	if parent, ok := session.ParentOf(to); ok && from != outer {
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
	if err := c.letters(ctx, from); err != nil {
		return err
	}
	return c.finish(ctx)
}

// salvage is the state of copying one session.
type salvage struct {
	s     *Store
	row   *stored
	to    string
	done  *store.Salvaged
	found int // the number of damages known before
	batch []session.Entry
	end   int64 // the last entry written to the copy
	whole int64 // the number of entries copied
	gap   bool  // an entry was lost
	torn  bool  // the rest of the log is not known
	waits int   // deliveries that wait for the copy, too
	void  int   // those that were left out, because they allow or stop something
}

// note records damage to the session.
func (c *salvage) note(d *session.Damage) {
	d.Session = c.row.ID
	c.done.Damage = append(c.done.Damage, *d)
}

// copy appends each entry, or the notice that replaces it.
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

// keep makes the copy refer to the undamaged payloads of one part of the damaged
// session, including payloads that are only mentioned in texts, such as the full
// text of a long output. The damaged session can then be deleted without losing
// them.
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

// noted records the damage that an error reports, and returns all other errors.
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

// letters leaves the input that waits for the damaged session in the inbox of the copy. Answers about calls, and
// requests to stop, stay with the session that they were made for.
func (c *salvage) letters(ctx context.Context, from string) error {
	var list []session.Delivery // collected first: a list may hold the connection
	for d, err := range c.s.eachLetter(ctx, &c.s.reads, from, `? ORDER BY n`, c.row.log) {
		if err == nil {
			list = append(list, d)
		} else if err = c.noted(err); err != nil {
			return err
		}
	}
	for _, d := range list {
		input := slices.DeleteFunc(d.Bodies, func(b session.Body) bool { _, ok := b.(session.InputItem); return !ok })
		if d.Bodies = input; len(input) == 0 {
			c.void++
			continue
		}
		if _, err := c.s.Deliver(ctx, c.to, d); err != nil {
			return err
		}
		c.waits++
	}
	return nil
}

// keepBlob adds a reference from the copy's log to a payload.
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
	if c.waits > 0 {
		text += fmt.Sprintf("; %d messages wait for it that wait there, too", c.waits)
	}
	if c.void > 0 {
		text += fmt.Sprintf("; %d answers about calls and requests to stop that wait there do not wait for it", c.void)
	}
	c.say(session.NoticeSalvaged, text)
	c.done.Entries += c.whole
	if c.gap {
		c.done.Gaps = append(c.done.Gaps, c.to)
	}
	return c.flush(ctx)
}

// say adds a notice to the copy.
func (c *salvage) say(kind, text string) {
	c.batch = append(c.batch, session.Entry{Seq: c.end + int64(len(c.batch)) + 1, Body: session.Noticed{Kind: kind, Text: text}})
}

// flush appends the collected entries to the copy.
func (c *salvage) flush(ctx context.Context) error {
	err := c.s.Append(ctx, c.to, c.end, c.batch)
	c.end += int64(len(c.batch))
	c.batch = nil
	return err
}

// saved returns an entry if it is whole, or else the notice that replaces it.
func (s *Store) saved(found scanned) (e session.Entry, whole bool, damage *session.Damage) {
	if found.line != nil {
		e, err := s.split.ParseEntry(string(found.line))
		if err == nil && e.Seq == found.seq {
			if _, err = session.AppendEntry(nil, e); err == nil { // this also reads its payloads
				return e, true, nil
			}
		}
		damage = &session.Damage{Entry: found.seq, Place: "a payload of it, or its form", Problem: fmt.Sprint(err)}
		found.raw, found.damage = found.line, damage
	}
	kind := session.NoticeEntryLost
	if _, err := texts.ParseEntry(string(found.line)); err == nil {
		kind = session.NoticePayloadLost // only the payload is lost
	}
	text := fmt.Sprintf("entry %d was lost: %s", found.seq, found.damage.Problem)
	if len(found.raw) > 0 {
		text += fmt.Sprintf("; damaged, this is stored in its place: %q", found.raw)
	}
	return session.Entry{Seq: found.seq, Body: session.Noticed{Kind: kind, Text: text}}, false, damage
}

// renamedBody returns body with the ids of nested sessions changed to those of their
// copies.
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
	case session.SubagentUsage:
		b.Session = renamed(b.Session)
		return b
	case session.Paused:
		b.Session = renamed(b.Session)
		return b
	}
	return body
}
