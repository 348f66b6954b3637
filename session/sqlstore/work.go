// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// The queue of work is the table antiphon_work, with a row for each session that has or
// had work. All times in it are of the database's clock, in milliseconds. The reason may
// repeat what a model or a tool said, so an encrypted store keeps it encrypted; the rest of
// the row is what schedulers need, and stays readable.

const workColumns = `w.id, w.agent, w.tenant, w.priority, w.needs, w.due, w.state, w.since, w.attempts, w.reason, w.worker, w.claim`

// clock returns the SQL expression for the database's time.
func (t *tx) clock() string {
	if t.postgres {
		return `CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)`
	}
	return `CAST(unixepoch('subsec') * 1000 AS INTEGER)`
}

// among returns the condition that a column is one of the texts in a JSON array, which is
// an argument of the statement. Null means any.
func (t *tx) among(column string) string {
	list := `SELECT value FROM json_each(?)`
	if t.postgres {
		list = `SELECT json_array_elements_text(CAST(? AS JSON))`
	}
	return `(CAST(? AS TEXT) IS NULL OR ` + column + ` IN (` + list + `))`
}

// amongst returns the two arguments of [tx.among].
func amongst[T ~string](list []T) []any {
	if list == nil {
		return []any{nil, "[]"}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // texts always have a JSON form
	}
	return []any{string(text), string(text)}
}

// scanWork reads a row of workColumns and further columns.
func (s *Store) scanWork(row interface{ Scan(...any) error }, more ...any) (w queue.Work, err error) {
	var needs, state string
	var due, since int64
	var reason []byte
	err = row.Scan(append([]any{&w.Session, &w.Agent, &w.Tenant, &w.Priority, &needs, &due, &state, &since, &w.Attempts, &reason, &w.Worker, &w.Claim}, more...)...)
	if err == nil {
		err = json.Unmarshal([]byte(needs), &w.Needs)
	}
	w.State, w.Since = queue.State(state), time.UnixMilli(since).UTC()
	if due > 0 {
		w.Due = time.UnixMilli(due).UTC()
	}
	w.Reason = s.openReason(w.Session, reason)
	return w, err
}

// reasonPlace returns the authenticated place of a reason.
func reasonPlace(id string) []byte { return fmt.Appendf(nil, "reason of %q", id) }

func (s *Store) sealReason(id, text string) []byte {
	if s.seal == nil {
		return []byte(text)
	}
	return s.seal.put(nil, []byte(text), reasonPlace(id))
}

// openReason returns a reason for people. Nothing depends on it, so one that cannot be
// read is no error.
func (s *Store) openReason(id string, stored []byte) string {
	if s.seal == nil {
		return string(stored)
	}
	if s.seal.closed() {
		return "(encrypted)"
	}
	text, err := s.seal.get(slices.Clone(stored), reasonPlace(id))
	if err != nil {
		return "(its text is damaged)"
	}
	return string(text)
}

// dueOf returns a time as it is stored.
func dueOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMilli(), 0)
}

// writeWork changes the queue in a transaction, and wakes who awaits work.
func (s *Store) writeWork(ctx context.Context, op string, do func(ctx context.Context, t *tx) error) error {
	if err := cmp.Or(s.opened(), s.seal.usable()); err != nil {
		return err
	}
	if err := s.write(ctx, do); err != nil {
		if errors.Is(err, queue.ErrChanged) {
			return err
		}
		return s.fail(op, err)
	}
	s.workers.tell()
	return nil
}

// Enqueue implements [queue.Queue].
func (s *Store) Enqueue(ctx context.Context, w queue.Work) error {
	if err := checkID(w.Session); err != nil {
		return err
	}
	needs, err := json.Marshal(slices.Concat([]string{}, w.Needs))
	if err != nil {
		return err
	}
	return s.writeWork(ctx, "leaving work", func(ctx context.Context, t *tx) error {
		if _, err := t.take(ctx, w.Session); err != nil {
			return err
		}
		_, err := t.exec(ctx, `INSERT INTO antiphon_work AS w (id, agent, tenant, priority, needs, due, state, since, attempts, reason, worker, claim)
			VALUES (?, ?, ?, ?, ?, ?, 'ready', `+t.clock()+`, 0, ?, '', 0)
			ON CONFLICT (id) DO UPDATE SET agent = excluded.agent, tenant = excluded.tenant, priority = excluded.priority, needs = excluded.needs, due = excluded.due,
				state = 'ready', since = excluded.since, attempts = 0, reason = excluded.reason
			WHERE w.state <> 'running'`,
			w.Session, w.Agent, w.Tenant, w.Priority, string(needs), dueOf(w.Due), s.sealReason(w.Session, ""))
		if err == nil {
			err = t.notify(ctx, channelWork, w.Session)
		}
		return err
	})
}

// Candidates implements [queue.Queue]. Work of tenants with as many runs comes in turns.
func (s *Store) Candidates(ctx context.Context, want queue.Want) (list []queue.Work, err error) {
	if err := s.opened(); err != nil {
		return nil, err
	}
	err = s.reading(ctx, func() error {
		list, err = s.candidates(ctx, want)
		return err
	})
	if err != nil {
		return nil, s.fail("looking for work", err)
	}
	return list, nil
}

// candidates looks once. A row that is left out because of what the worker lacks, or
// because somebody holds its session, makes room for the next one.
func (s *Store) candidates(ctx context.Context, want queue.Want) (list []queue.Work, err error) {
	t := &s.reads
	owner, leases := `''`, ``
	if s.postgres {
		owner, leases = `coalesce(l.owner, '')`, `LEFT JOIN antiphon_leases l ON l.id = w.id AND l.until > clock_timestamp()`
	}
	args := append(amongst(want.Agents), amongst(want.Tenants)...)
	rows, err := t.rows(ctx, `SELECT `+workColumns+`, coalesce(b.n, 0), `+owner+` FROM antiphon_work w
		LEFT JOIN (SELECT tenant, count(*) AS n FROM antiphon_work WHERE state = 'running' GROUP BY tenant) b ON b.tenant = w.tenant `+leases+`
		WHERE (w.state = 'ready' AND w.due <= `+t.clock()+` OR w.state = 'running') AND `+t.among(`w.agent`)+` AND `+t.among(`w.tenant`)+`
		ORDER BY coalesce(b.n, 0) + row_number() OVER (PARTITION BY w.tenant ORDER BY w.priority DESC, w.due, w.id), w.priority DESC, w.due, w.id`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	chosen := map[string]int{}
	for len(list) < max(want.Most, 1) && rows.Next() {
		var running int
		var owner string
		w, err := s.scanWork(rows, &running, &owner)
		if err != nil {
			return nil, err
		}
		limit, limited := want.Caps[w.Tenant]
		if w.State == queue.Running {
			running-- // it would take its own place
		}
		lacks := slices.ContainsFunc(w.Needs, func(need string) bool { return !slices.Contains(want.Labels, need) })
		if lacks || limited && running+chosen[w.Tenant] >= limit || w.State == queue.Running && s.isHeld(ctx, w.Session, owner) {
			continue
		}
		chosen[w.Tenant]++
		list = append(list, w)
	}
	return list, cmp.Or(rows.Err(), rows.Close())
}

// isHeld reports whether somebody holds a session: owner is whose lease on it has not
// ended, on Postgres. One of a process of this machine that was killed does not count.
func (s *Store) isHeld(ctx context.Context, id, owner string) bool {
	if s.postgres {
		return owner != "" && !isDead(owner)
	}
	if s.holds.has(id) {
		return true
	}
	lock, err := filelock.TakeWithin(ctx, s.lockOf(id), 0)
	if err != nil {
		return true // whatever it is, Hold would say the same
	}
	_ = lock.Release()
	return false
}

// Begin implements [queue.Queue].
func (s *Store) Begin(ctx context.Context, w queue.Work, worker string) (begun queue.Work, err error) {
	err = s.writeWork(ctx, "beginning work", func(ctx context.Context, t *tx) error {
		begun, err = s.scanWork(t.row(ctx, `UPDATE antiphon_work SET state = 'running', since = `+t.clock()+`, attempts = attempts + 1, reason = ?, worker = ?, claim = claim + 1, told = 0
			WHERE id = ? AND claim = ? AND state = ? RETURNING `+strings.ReplaceAll(workColumns, `w.`, ``), s.sealReason(w.Session, ""), worker, w.Session, w.Claim, string(w.State)))
		return changed(err)
	})
	return begun, err
}

// changed turns the error for no row into [queue.ErrChanged].
func changed(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return queue.ErrChanged
	}
	return err
}

// Finish implements [queue.Queue].
func (s *Store) Finish(ctx context.Context, w queue.Work, o queue.Outcome) error {
	switch o.State {
	case queue.Ready, queue.Waiting, queue.Parked, queue.Done:
	default:
		return fmt.Errorf("work cannot be left as %q", o.State)
	}
	return s.writeWork(ctx, "leaving work", func(ctx context.Context, t *tx) error {
		row, err := t.take(ctx, w.Session) // no delivery arrives between the look and the commit
		if errors.Is(err, session.ErrNotFound) {
			return queue.ErrChanged // it was deleted, with its work
		}
		if err != nil {
			return err
		}
		state, looks := o.State, o.State == queue.Waiting || o.State == queue.Done
		if looks {
			var waits bool
			if err := t.row(ctx, `SELECT EXISTS (SELECT 1 FROM antiphon_inbox WHERE taken = 0 AND log = ?)`, row.log).Scan(&waits); err != nil {
				return err
			}
			if waits {
				state = queue.Ready
			}
		}
		// A delivery to a nested session takes another row than this one, so whether one came
		// is looked at where the state is written: in the same statement.
		n, err := t.exec(ctx, `UPDATE antiphon_work SET state = CASE WHEN ? AND told <> 0 THEN 'ready' ELSE ? END, since = `+t.clock()+`, due = ?, reason = ?, attempts = CASE WHEN ? THEN 0 ELSE attempts END
			WHERE id = ? AND claim = ? AND state = 'running'`, looks, string(state), dueOf(o.Due), s.sealReason(w.Session, o.Reason), o.Well, w.Session, w.Claim)
		if err == nil && n == 0 {
			err = queue.ErrChanged
		}
		if err == nil && state == queue.Ready {
			err = t.notify(ctx, channelWork, w.Session)
		}
		return err
	})
}

// arrived is the reason of work that a delivery made ready.
const arrived = "a delivery arrived"

// wakeWork makes work ready that waits for a delivery to the session, or has its answer.
// A session that is nested belongs to the work of the outer one. If that runs, it may
// have looked for the delivery already: it is told to look once more. Its row is written
// in every state, so that a Begin that is on its way waits for the commit and sees the
// delivery, or is told.
func (s *Store) wakeWork(ctx context.Context, t *tx, id string) error {
	_, err := t.exec(ctx, `UPDATE antiphon_work SET state = 'ready', since = `+t.clock()+`, due = 0, reason = ? WHERE id = ? AND state IN ('waiting', 'done')`, s.sealReason(id, arrived), id)
	const rests = `state IN ('waiting', 'done')`
	for outer, nested := session.ParentOf(id); nested && err == nil; outer, nested = session.ParentOf(outer) {
		_, err = t.exec(ctx, `UPDATE antiphon_work SET told = 1, state = CASE WHEN `+rests+` THEN 'ready' ELSE state END, since = CASE WHEN `+rests+` THEN `+t.clock()+` ELSE since END,
			due = CASE WHEN `+rests+` THEN 0 ELSE due END, reason = CASE WHEN `+rests+` THEN ? ELSE reason END WHERE id = ?`, s.sealReason(outer, arrived), outer)
	}
	return err
}

// Work implements [queue.Queue].
func (s *Store) Work(ctx context.Context, id string) (w queue.Work, err error) {
	if err := s.opened(); err != nil {
		return w, err
	}
	err = s.reading(ctx, func() error {
		w, err = s.scanWork(s.reads.row(ctx, `SELECT `+workColumns+` FROM antiphon_work w WHERE w.id = ?`, id))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return w, fmt.Errorf("%w: the session %q has no work", session.ErrNotFound, id)
	}
	if err != nil {
		return w, s.fail("reading the work", err)
	}
	return w, nil
}

// Works implements [queue.Queue].
func (s *Store) Works(ctx context.Context, states ...queue.State) iter.Seq2[queue.Work, error] {
	return func(yield func(queue.Work, error) bool) {
		for after := ""; ; {
			page, err := s.works(ctx, after, states)
			for _, w := range page {
				if !yield(w, nil) {
					return
				}
				after = w.Session
			}
			if err != nil {
				yield(queue.Work{}, err)
			}
			if err != nil || len(page) < worksPage {
				return
			}
		}
	}
}

// worksPage is the number of rows that are read at once.
const worksPage = 500

// works reads the rows after a session.
func (s *Store) works(ctx context.Context, after string, states []queue.State) (page []queue.Work, err error) {
	if err := s.opened(); err != nil {
		return nil, err
	}
	if len(states) == 0 {
		states = nil
	}
	err = s.reading(ctx, func() error {
		page = nil
		args := append([]any{after}, amongst(states)...)
		rows, err := s.reads.rows(ctx, `SELECT `+workColumns+` FROM antiphon_work w WHERE w.id > ? AND `+s.reads.among(`w.state`)+` ORDER BY w.id LIMIT `+fmt.Sprint(worksPage), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			w, err := s.scanWork(rows)
			if err != nil {
				return err
			}
			page = append(page, w)
		}
		return cmp.Or(rows.Err(), rows.Close())
	})
	if err != nil {
		return nil, s.fail("reading the work", err)
	}
	return page, nil
}

// Move implements [queue.Queue].
func (s *Store) Move(ctx context.Context, w queue.Work, to queue.State, reason string) error {
	if to != queue.Ready && to != queue.Parked && to != queue.Done {
		return fmt.Errorf("work cannot be moved to %q", to)
	}
	return s.writeWork(ctx, "moving work", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, `UPDATE antiphon_work SET state = ?, since = `+t.clock()+`, due = 0, reason = ?, attempts = CASE WHEN ? THEN 0 ELSE attempts END
			WHERE id = ? AND claim = ? AND state = ?`, string(to), s.sealReason(w.Session, reason), to == queue.Ready, w.Session, w.Claim, string(w.State))
		if err == nil && n == 0 {
			err = queue.ErrChanged
		}
		if err == nil {
			err = t.notify(ctx, channelWork, w.Session)
		}
		return err
	})
}

// awaiting are those who wait for work.
type awaiting struct {
	mu   sync.Mutex
	list []*func()
}

func (a *awaiting) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, changed := range a.list {
		(*changed)()
	}
}

// Awaited implements [queue.Queue]. Changes of other processes are told on Postgres.
func (s *Store) Awaited(changed func()) (stop func()) {
	s.wakes.start()
	a := &s.workers
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, &changed)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.list = slices.DeleteFunc(a.list, func(f *func()) bool { return f == &changed })
	}
}

var _ queue.Queue = (*Store)(nil)
