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

const workColumns = `w.id, w.agent, w.tenant, w.priority, w.needs, w.due, w.state, w.since, w.attempts, w.reason, w.worker, w.claim, w.endpoint, w.approvals`

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
	return `(CAST(? AS TEXT) IS NULL OR ` + column + ` IN (` + t.listed() + `))`
}

// listed returns the query of the texts in a JSON array, which is its argument.
func (t *tx) listed() string {
	if t.postgres {
		return `SELECT json_array_elements_text(CAST(? AS JSON))`
	}
	return `SELECT value FROM json_each(?)`
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

// scanAll reads rows of workColumns, and closes them.
func (s *Store) scanAll(rows *sql.Rows) (list []queue.Work, err error) {
	defer rows.Close()
	for rows.Next() {
		w, err := s.scanWork(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, cmp.Or(rows.Err(), rows.Close())
}

// scanWork reads a row of workColumns and further columns.
func (s *Store) scanWork(row interface{ Scan(...any) error }, more ...any) (w queue.Work, err error) {
	var needs, state, approvals string
	var due, since int64
	var reason []byte
	err = row.Scan(append([]any{&w.Session, &w.Agent, &w.Tenant, &w.Priority, &needs, &due, &state, &since, &w.Attempts, &reason, &w.Worker, &w.Claim, &w.Endpoint, &approvals}, more...)...)
	if err == nil {
		err = json.Unmarshal([]byte(needs), &w.Needs)
	}
	w.Refuse = approvals == refusing
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

// refusing is what the column approvals has for work that refuses calls which need one.
const refusing = "refuse"

func approvalsOf(w queue.Work) string {
	if w.Refuse {
		return refusing
	}
	return ""
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
		if errors.Is(err, queue.ErrChanged) || errors.Is(err, queue.ErrFull) {
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
		_, err := t.exec(ctx, `INSERT INTO antiphon_work AS w (id, agent, tenant, priority, needs, due, approvals, state, since, attempts, reason, worker, claim)
			VALUES (?, ?, ?, ?, ?, ?, ?, 'ready', `+t.clock()+`, 0, ?, '', 0)
			ON CONFLICT (id) DO UPDATE SET agent = excluded.agent, tenant = excluded.tenant, priority = excluded.priority, needs = excluded.needs, due = excluded.due, approvals = excluded.approvals,
				state = 'ready', since = excluded.since, attempts = 0, reason = excluded.reason
			WHERE w.state <> 'running'`,
			w.Session, w.Agent, w.Tenant, w.Priority, string(needs), dueOf(w.Due), approvalsOf(w), s.sealReason(w.Session, ""))
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

// readyPage is the number of rows of a tenant that are read at once.
const readyPage = 32

// line is the work of a tenant that may begin, the most urgent first. Of what is ready,
// only as much is read as is needed: there may be much more of it than workers.
type line struct {
	tenant  string
	running int          // of the tenant, over all workers
	chosen  int          // candidates
	orphans []orphan     // work that was begun, and somebody may do it still; or that waited until now
	ready   []queue.Work // the next rows
	read    int          // how many rows were read of those that are ready
	more    bool         // there may be more
}

// orphan is work that is running, with the owner of the lease on its session, or that has
// waited until now.
type orphan struct {
	queue.Work
	owner string
}

// order compares work: what is more urgent comes first.
func order(a, b queue.Work) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Due.Compare(b.Due), strings.Compare(a.Session, b.Session))
}

// head returns the next work of the line, without knowing whether it may begin.
func (l *line) head() (w queue.Work, ok bool) {
	switch {
	case len(l.orphans) > 0 && (len(l.ready) == 0 || order(l.orphans[0].Work, l.ready[0]) < 0):
		return l.orphans[0].Work, true
	case len(l.ready) > 0:
		return l.ready[0], true
	}
	return w, false
}

// candidates looks once. A row that is left out because of what the worker lacks, or
// because somebody holds its session, makes room for the next one.
func (s *Store) candidates(ctx context.Context, want queue.Want) (list []queue.Work, err error) {
	most := max(want.Most, 1)
	x, err := s.orphans(ctx, want)
	if err != nil {
		return nil, err
	}
	for seen := map[string]bool{}; len(list) < most; {
		// If so many tenants that run nothing have work, no other one comes before them.
		for n := most + len(x.lines); !x.all && x.idle() < most; n *= 4 {
			if err := s.moreTenants(ctx, x, want, n); err != nil {
				return nil, err
			}
		}
		l := nextLine(x.lines, s.served.Load())
		if l == nil && x.all {
			break
		}
		if l == nil {
			continue
		}
		w, ok, err := s.shift(ctx, l, want)
		if err != nil {
			return nil, err
		}
		if ok && !seen[w.Session] {
			seen[w.Session] = true // it may have moved while the line was read
			l.chosen++
			list = append(list, w)
			s.turn.Store(&w.Tenant)
		}
	}
	return list, nil
}

// lines is what one look for work has read.
type lines struct {
	lines   []*line
	by      map[string]*line
	after   *string // the tenant after which it goes on; nil means at the first one
	wrapped bool    // it has begun at the first one again
	all     bool    // it has read all tenants
}

// of returns the line of a tenant.
func (x *lines) of(tenant string) *line {
	l := x.by[tenant]
	if l == nil {
		l = &line{tenant: tenant}
		x.by[tenant] = l
		x.lines = append(x.lines, l)
	}
	return l
}

// idle returns how many tenants have work but no runs and no candidates.
func (x *lines) idle() (n int) {
	for _, l := range x.lines {
		if _, ok := l.head(); ok && l.running+l.chosen == 0 {
			n++
		}
	}
	return n
}

// nextLine returns the line of the tenant with the fewest runs and candidates. Of several, those
// that follow the tenant whose work was begun last come first: otherwise the one with the most
// urgent work, and always more of it, would keep the others from ever beginning.
func nextLine(lines []*line, served *string) (best *line) {
	var first queue.Work
	for _, l := range lines {
		w, ok := l.head()
		if !ok {
			continue
		}
		if best != nil {
			if cmp.Or(cmp.Compare(l.running+l.chosen, best.running+best.chosen), takeTurns(served, l.tenant, best.tenant), order(w, first)) > 0 {
				continue
			}
		}
		best, first = l, w
	}
	return best
}

// takeTurns compares tenants: those that follow the one that was served last come first.
func takeTurns(served *string, a, b string) int {
	if served == nil || a == b {
		return 0
	}
	if after := a > *served; after != (b > *served) {
		if after {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

// shift takes the head of a line, and reports whether the worker may begin it.
func (s *Store) shift(ctx context.Context, l *line, want queue.Want) (w queue.Work, ok bool, err error) {
	limit, limited := want.Caps[l.tenant]
	w, _ = l.head()
	held := false
	places := l.running + l.chosen
	lacks := len(want.Lacks(w)) > 0
	switch w.State {
	case queue.Running:
		held = s.isHeld(ctx, w.Session, l.orphans[0].owner)
		places-- // it would take its own place
		fallthrough
	case queue.Waiting:
		l.orphans = l.orphans[1:]
		return w, !lacks && !held && (!limited || places < limit), nil
	}
	if l.ready = l.ready[1:]; limited && places >= limit {
		l.ready, l.more = nil, false // nor any other
	} else if len(l.ready) == 0 && l.more {
		err = s.readLine(ctx, l, want)
	}
	return w, !lacks && (!limited || places < limit), err
}

// orphans begins a look with the work that is running, and that which waited until now.
func (s *Store) orphans(ctx context.Context, want queue.Want) (*lines, error) {
	x := &lines{by: map[string]*line{}, after: cmp.Or(s.served.Load(), s.turn.Load())}
	err := s.begun(ctx, want, func(w orphan) {
		l := x.of(w.Tenant)
		if w.State == queue.Running {
			l.running++
		}
		if (want.Agents == nil || slices.Contains(want.Agents, w.Agent)) && (want.Tenants == nil || slices.Contains(want.Tenants, w.Tenant)) {
			l.orphans = append(l.orphans, w)
		}
	})
	for _, l := range x.lines {
		slices.SortFunc(l.orphans, func(a, b orphan) int { return order(a.Work, b.Work) })
	}
	return x, err
}

// Lost implements [queue.Queue].
func (s *Store) Lost(ctx context.Context) (list []queue.Work, err error) {
	if err := s.opened(); err != nil {
		return nil, err
	}
	err = s.reading(ctx, func() error {
		list = nil
		var all []orphan
		if err := s.begun(ctx, queue.Want{Agents: []string{}}, func(o orphan) { all = append(all, o) }); err != nil {
			return err
		}
		for _, o := range all {
			if o.State == queue.Running && !s.isHeld(ctx, o.Session, o.owner) {
				list = append(list, o.Work)
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.fail("looking for work", err)
	}
	return list, nil
}

// moreTenants reads the first rows of the next tenants. It goes on after the one whose work was
// begun last or, at first, where the last look has ended, so that each tenant gets its turn.
func (s *Store) moreTenants(ctx context.Context, x *lines, want queue.Want, n int) error {
	if want.Tenants != nil {
		x.all = true
		return s.firstReady(ctx, x, want, want.Tenants)
	}
	const from, next = `SELECT min(tenant), 1 FROM antiphon_work WHERE state = 'ready'`, `SELECT min(tenant) FROM antiphon_work WHERE state = 'ready' AND tenant > t.tenant`
	first, args := from, []any{n}
	if x.after != nil {
		first, args = from+` AND tenant > ?`, []any{*x.after, n}
	}
	found, err := s.reads.texts(ctx, `WITH RECURSIVE t (tenant, n) AS (`+first+` UNION ALL SELECT (`+next+`), n + 1 FROM t WHERE t.tenant IS NOT NULL AND n < ?)
		SELECT tenant FROM t WHERE tenant IS NOT NULL ORDER BY n`, args...)
	if err != nil {
		return err
	}
	switch {
	case len(found) == n:
		x.after = &found[n-1]
	case x.after != nil && !x.wrapped:
		x.after, x.wrapped = nil, true
	default:
		x.all = true
	}
	return s.firstReady(ctx, x, want, found)
}

// urgent is the order of the index antiphon_work_ready after its first columns.
const urgent = ` ORDER BY priority DESC, due, id`

// mayBegin returns the condition for work that is ready, due, and of an agent among
// [Want].Agents.
func (t *tx) mayBegin(tenant string) string {
	return `w.state = 'ready' AND w.tenant = ` + tenant + ` AND w.due <= ` + t.clock() + ` AND ` + t.among(`w.agent`)
}

// firstReady reads the first row of each tenant that is ready.
func (s *Store) firstReady(ctx context.Context, x *lines, want queue.Want, tenants []string) error {
	tenants = slices.DeleteFunc(slices.Clone(tenants), func(tenant string) bool { return x.by[tenant] != nil && x.by[tenant].read > 0 })
	if len(tenants) == 0 {
		return nil
	}
	t := &s.reads
	list := `SELECT DISTINCT value FROM json_each(?)`
	if t.postgres {
		list = `SELECT DISTINCT json_array_elements_text(CAST(? AS JSON))`
	}
	args := append(amongst(tenants)[:1], amongst(want.Agents)...)
	rows, err := t.rows(ctx, `WITH t (tenant) AS (`+list+`), first (id) AS (SELECT (SELECT w.id FROM antiphon_work w WHERE `+t.mayBegin(`t.tenant`)+urgent+` LIMIT 1) FROM t)
		SELECT `+workColumns+` FROM first JOIN antiphon_work w ON w.id = first.id`, args...)
	if err != nil {
		return err
	}
	works, err := s.scanAll(rows)
	for _, w := range works {
		l := x.of(w.Tenant)
		l.ready, l.read, l.more = []queue.Work{w}, 1, true
	}
	return err
}

// readLine reads the next rows of a line.
func (s *Store) readLine(ctx context.Context, l *line, want queue.Want) error {
	args := append(append([]any{l.tenant}, amongst(want.Agents)...), readyPage, l.read)
	rows, err := s.reads.rows(ctx, `SELECT `+workColumns+` FROM antiphon_work w WHERE `+s.reads.mayBegin(`?`)+urgent+` LIMIT ? OFFSET ?`, args...)
	if err != nil {
		return err
	}
	list, err := s.scanAll(rows)
	l.ready = append(l.ready, list...)
	l.read += len(l.ready)
	l.more = len(l.ready) == readyPage
	return err
}

// begun calls each for all work that is running, and for the first of that which has
// waited until now.
func (s *Store) begun(ctx context.Context, want queue.Want, each func(orphan)) error {
	owner, leases := `''`, ``
	if s.postgres {
		owner, leases = `coalesce(l.owner, '')`, ` LEFT JOIN antiphon_leases l ON l.id = w.id AND l.until > clock_timestamp()`
	}
	rows, err := s.reads.rows(ctx, `SELECT `+workColumns+`, `+owner+` FROM antiphon_work w`+leases+` WHERE w.state = 'running' OR w.id IN (
		SELECT id FROM antiphon_work WHERE state = 'waiting' AND due > 0 AND due <= `+s.reads.clock()+` AND `+s.reads.among(`agent`)+` ORDER BY due LIMIT `+fmt.Sprint(readyPage)+`)`, amongst(want.Agents)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var o orphan
		if o.Work, err = s.scanWork(rows, &o.owner); err != nil {
			return err
		}
		each(o)
	}
	return cmp.Or(rows.Err(), rows.Close())
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
		if err := t.full(ctx, w); err != nil {
			return err
		}
		begun, err = s.scanWork(t.row(ctx, `UPDATE antiphon_work SET state = 'running', since = `+t.clock()+`, attempts = attempts + 1, reason = ?, worker = ?, endpoint = ?, claim = claim + 1, told = 0
			WHERE id = ? AND claim = ? AND state = ? RETURNING `+strings.ReplaceAll(workColumns, `w.`, ``), s.sealReason(w.Session, ""), worker, w.Endpoint, w.Session, w.Claim, string(w.State)))
		return changed(err)
	})
	if err == nil {
		s.served.Store(&begun.Tenant)
	}
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
		state, due, looks := o.State, dueOf(o.Due), o.State == queue.Waiting || o.State == queue.Done
		if looks {
			var waits bool
			if err := t.row(ctx, `SELECT EXISTS (SELECT 1 FROM antiphon_inbox WHERE taken = 0 AND log = ? AND n > ?)`, row.log, o.Seen).Scan(&waits); err != nil {
				return err
			}
			if waits {
				state, due = queue.Ready, 0
			}
		}
		// A delivery to a nested session takes another row than this one, so whether one came
		// is looked at where the state is written: in the same statement.
		n, err := t.exec(ctx, `UPDATE antiphon_work SET state = CASE WHEN ? AND told <> 0 THEN 'ready' ELSE ? END, since = `+t.clock()+`, due = CASE WHEN ? AND told <> 0 THEN 0 ELSE CAST(? AS BIGINT) END, reason = ?, attempts = CASE WHEN ? THEN 0 ELSE attempts END
			WHERE id = ? AND claim = ? AND state = 'running'`, looks, string(state), looks, due, s.sealReason(w.Session, o.Reason), o.Well, w.Session, w.Claim)
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
	return s.readWork(ctx, `w.id > ? AND `+s.reads.among(`w.state`)+` ORDER BY w.id LIMIT `+fmt.Sprint(worksPage), append([]any{after}, amongst(states)...)...)
}

// WorkOf implements [queue.Reader].
func (s *Store) WorkOf(ctx context.Context, sessions []string) ([]queue.Work, error) {
	if err := s.opened(); err != nil {
		return nil, err
	}
	list := amongst(slices.Concat([]string{}, sessions))
	return s.readWork(ctx, `w.id IN (`+s.reads.listed()+`)`, list[1])
}

var _ queue.Reader = (*Store)(nil)

// readWork reads the rows for which a condition holds.
func (s *Store) readWork(ctx context.Context, where string, args ...any) (list []queue.Work, err error) {
	err = s.reading(ctx, func() error {
		rows, err := s.reads.rows(ctx, `SELECT `+workColumns+` FROM antiphon_work w WHERE `+where, args...)
		if err != nil {
			return err
		}
		list, err = s.scanAll(rows)
		return err
	})
	if err != nil {
		return nil, s.fail("reading the work", err)
	}
	return list, nil
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
