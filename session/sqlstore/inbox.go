// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// A delivery is a row of antiphon_inbox from its arrival until its session is deleted.
// An append that takes it into the log marks the row with the entry's number and
// removes the text from it. The rest of the row makes the same delivery known when it
// is sent again.

// letter is a delivery in its stored form. In an encrypted store the key and the sum
// depend on the store's key, so that nobody can guess a short text from them.
type letter struct {
	delivery session.Delivery // of one that is new
	id       string
	key, sum session.Hash
	data     []byte
}

func (s *Store) letter(id string, d session.Delivery) (*letter, error) {
	lines, err := session.AppendDelivery(nil, d)
	if err != nil {
		return nil, err
	}
	l := &letter{delivery: d, id: id, key: s.seal.name(session.KeyHash(d.Key)), data: lines}
	l.sum = s.seal.name(session.Hash(sha256.Sum256(lines)))
	if s.seal != nil {
		l.data = s.seal.put(nil, lines, letterPlace(id, l.key))
	}
	return l, nil
}

// letterPlace returns the authenticated place of a delivery.
func letterPlace(id string, key session.Hash) []byte {
	return fmt.Appendf(nil, "delivery %x of %q", key, id)
}

// open reads a delivery from its row.
func (s *Store) openLetter(l *letter, n int64) (d session.Delivery, err error) {
	lines := l.data
	if s.seal != nil {
		lines, err = s.seal.get(bytes.Clone(l.data), letterPlace(l.id, l.key))
	}
	if err == nil && s.seal.name(session.Hash(sha256.Sum256(lines))) != l.sum {
		err = session.ErrDamaged
	}
	if err == nil {
		d, err = session.ParseDelivery(lines)
	}
	if err != nil {
		return d, &session.Damage{Session: l.id, Place: fmt.Sprintf("table antiphon_inbox, delivery %d", n), Problem: err.Error()}
	}
	d.Number = n
	return d, nil
}

// Deliver implements [session.Inbox].
func (s *Store) Deliver(ctx context.Context, id string, d session.Delivery) (r session.Receipt, err error) {
	if err := s.opened(); err != nil {
		return r, err
	}
	if err := cmp.Or(checkID(id), session.CheckDelivery(d), s.seal.usable()); err != nil {
		return r, err
	}
	l, err := s.letter(id, d)
	if err != nil {
		return r, err
	}
	err = s.write(ctx, func(ctx context.Context, t *tx) (err error) {
		if r, err = t.keepLetter(ctx, l); err == nil && r.Taken == 0 {
			if err = s.wakeWork(ctx, t, id); err == nil {
				err = t.notify(ctx, channelDelivery, id)
			}
		}
		return err
	})
	if errors.Is(err, session.ErrKeyUsed) {
		return r, fmt.Errorf("%w: %q", err, d.Key)
	}
	if err != nil {
		return r, s.fail("delivering", err)
	}
	if r.Taken == 0 {
		s.arrivals.tell(id, r.Number)
		s.workers.tell()
	}
	return r, nil
}

// keepLetter writes the row of a delivery, or finds the one with its key. It may be
// called again after a failure, whether that was before or after the commit.
func (t *tx) keepLetter(ctx context.Context, l *letter) (r session.Receipt, err error) {
	row, err := t.take(ctx, l.id) // locks it, so that the numbers rise in the order of the commits
	if err != nil {
		return r, err
	}
	var sum []byte
	err = t.row(ctx, `SELECT n, taken, sum FROM antiphon_inbox WHERE log = ? AND key = ?`, row.log, l.key[:]).Scan(&r.Number, &r.Taken, &sum)
	switch {
	case err == nil && !bytes.Equal(sum, l.sum[:]):
		return session.Receipt{}, session.ErrKeyUsed
	case !errors.Is(err, sql.ErrNoRows):
		return r, err
	}
	var waits session.Backlog
	err = t.row(ctx, `SELECT count(*), coalesce(sum(length(data)), 0) FROM antiphon_inbox WHERE taken = 0 AND log = ?`, row.log).Scan(&waits.Deliveries, &waits.Bytes)
	if err = cmp.Or(err, waits.Room(l.delivery, int64(len(l.data)))); err != nil {
		return session.Receipt{}, err
	}
	err = t.row(ctx, `SELECT coalesce(max(n), 0) + 1 FROM antiphon_inbox WHERE log = ?`, row.log).Scan(&r.Number)
	if err == nil {
		_, err = t.exec(ctx, `INSERT INTO antiphon_inbox (log, n, key, sum, data) VALUES (?, ?, ?, ?, ?)`, row.log, r.Number, l.key[:], l.sum[:], l.data)
	}
	return r, err
}

// taken is a delivery that an append takes, by its key, with the number of its entry.
type taken struct {
	key session.Hash
	seq int64
}

// takeLetters marks the deliveries that an append takes.
func (t *tx) takeLetters(ctx context.Context, list []taken, log int64) error {
	for _, l := range list {
		if _, err := t.exec(ctx, `UPDATE antiphon_inbox SET taken = ?, data = ? WHERE log = ? AND key = ? AND taken = 0`, l.seq, []byte{}, log, l.key[:]); err != nil {
			return err
		}
	}
	return nil
}

// Deliveries implements [session.Inbox].
func (s *Store) Deliveries(ctx context.Context, id string) iter.Seq2[session.Delivery, error] {
	return func(yield func(session.Delivery, error) bool) {
		for d, err := range s.inbox(ctx, id) {
			if !yield(d, s.fail("reading deliveries", err)) {
				return
			}
		}
	}
}

// inbox yields the deliveries that wait for a session, up to the first damaged one. It reads a full inbox in pages, and no more
// of it than the caller wants.
func (s *Store) inbox(ctx context.Context, id string) iter.Seq2[session.Delivery, error] {
	return func(yield func(session.Delivery, error) bool) {
		for last, page := int64(0), 1; ; page = min(2*page, mostOnPage) {
			list, err := s.letters(ctx, id, last, page)
			for _, d := range list {
				if last = d.Number; !yield(d, nil) {
					return
				}
			}
			if err != nil {
				yield(session.Delivery{}, err)
			}
			if err != nil || len(list) < page {
				return
			}
		}
	}
}

// mostOnPage is the number of deliveries that are read at once. The first page is one, because many callers want no more.
const mostOnPage = 16

// letters reads at most so many of the deliveries that wait for a session, after a number and up to the first damaged one.
func (s *Store) letters(ctx context.Context, id string, after int64, most int) (list []session.Delivery, err error) {
	if err := s.opened(); err != nil {
		return nil, err
	}
	if err := s.seal.usable(); err != nil {
		return nil, err
	}
	err = s.reading(ctx, func() error {
		list = nil
		for d, failed := range s.eachLetter(ctx, &s.reads, id, `(SELECT log FROM antiphon_sessions WHERE id = ?) AND n > ? ORDER BY n LIMIT ?`, id, after, most) {
			if failed != nil {
				return failed
			}
			list = append(list, d)
		}
		return nil
	})
	return list, err
}

// eachLetter yields the deliveries that wait for a session. which ends the query: the log, as a number or as a query, and the
// order. It goes on behind a damaged one.
func (s *Store) eachLetter(ctx context.Context, t *tx, id, which string, args ...any) iter.Seq2[session.Delivery, error] {
	return func(yield func(session.Delivery, error) bool) {
		rows, err := t.rows(ctx, `SELECT n, key, sum, data FROM antiphon_inbox WHERE taken = 0 AND log = `+which, args...)
		if err != nil {
			yield(session.Delivery{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var n int64
			var key, sum []byte
			l := &letter{id: id}
			if err = rows.Scan(&n, &key, &sum, &l.data); err != nil {
				break
			}
			copy(l.key[:], key)
			copy(l.sum[:], sum)
			if d, err := s.openLetter(l, n); !yield(d, err) {
				return
			}
		}
		if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
			yield(session.Delivery{}, err)
		}
	}
}

// arrivals tells those who listen of deliveries. Those of this store are told at once.
// Others are found by one goroutine for the whole store, which exists only while
// somebody listens.
type arrivals struct {
	s     *Store
	mu    sync.Mutex
	by    map[string]*listeners
	alive chan struct{} // closed to end the goroutine; nil if there is none
	stir  chan struct{} // has an element if the goroutine is to look at once
}

// listeners are those of one session.
type listeners struct {
	last int64 // the newest delivery that they were told of
	tell []*func()
}

// Notify implements [session.Inbox]. Deliveries of other processes are seen at the
// interval [Options.Poll]; on Postgres, when they are told, and rarely without that.
func (s *Store) Notify(id string, arrived func()) (stop func()) {
	a := &s.arrivals
	if s.opened() != nil {
		return func() {}
	}
	s.wakes.start()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by[id] == nil {
		if a.by == nil {
			a.by = map[string]*listeners{}
		}
		a.by[id] = new(listeners)
	}
	a.by[id].tell = append(a.by[id].tell, &arrived)
	if a.alive == nil {
		a.alive, a.stir = make(chan struct{}), make(chan struct{}, 1)
		go a.poll(a.alive, a.stir)
	}
	return func() { a.forget(id, &arrived) }
}

// forget removes a listener.
func (a *arrivals) forget(id string, arrived *func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.by[id]
	if l == nil {
		return
	}
	if l.tell = slices.DeleteFunc(l.tell, func(f *func()) bool { return f == arrived }); len(l.tell) == 0 {
		delete(a.by, id)
	}
	if len(a.by) == 0 {
		a.end()
	}
}

// end ends the goroutine. The caller holds a.mu.
func (a *arrivals) end() {
	if a.alive != nil {
		close(a.alive)
		a.alive = nil
	}
}

// close ends the goroutine for good.
func (a *arrivals) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by = nil
	a.end()
}

// tell tells the listeners of a session that delivery n has arrived.
func (a *arrivals) tell(id string, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.by[id]
	if l == nil || n <= l.last {
		return
	}
	l.last = n
	for _, arrived := range l.tell {
		(*arrived)()
	}
}

// heard tells the listeners of a session that another process has delivered something.
func (a *arrivals) heard(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.by[id]; l != nil {
		for _, arrived := range l.tell {
			(*arrived)()
		}
	}
}

// again has the goroutine look at once.
func (a *arrivals) again() {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case a.stir <- struct{}{}:
	default:
	}
}

// poll looks for deliveries until alive is closed.
func (a *arrivals) poll(alive, stir <-chan struct{}) {
	tick := time.NewTimer(a.s.wakes.pause())
	defer tick.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // a query that hangs ends with the listeners
		<-alive
		cancel()
	}()
	for {
		select {
		case <-alive:
			return
		case <-tick.C:
		case <-stir:
		}
		tick.Reset(a.s.wakes.pause())
		a.mu.Lock()
		ids := slices.Sorted(maps.Keys(a.by))
		a.mu.Unlock()
		for part := range slices.Chunk(ids, mostAsked) {
			a.look(ctx, part)
		}
	}
}

// mostAsked is the largest number of sessions in one query.
const mostAsked = 64

// look tells of the deliveries to some sessions. An error may pass, and the next look
// repeats the query.
func (a *arrivals) look(ctx context.Context, ids []string) {
	size := 1 // a power of two, so that there are few different statements
	for size < len(ids) {
		size *= 2
	}
	args := make([]any, size)
	for i := range args {
		args[i] = ids[min(i, len(ids)-1)]
	}
	rows, err := a.s.reads.rows(ctx, `SELECT s.id, max(i.n) FROM antiphon_sessions s JOIN antiphon_inbox i ON i.log = s.log
		WHERE i.taken = 0 AND s.id IN (?`+strings.Repeat(`, ?`, size-1)+`) GROUP BY s.id`, args...)
	if err != nil {
		return
	}
	defer rows.Close()
	newest := map[string]int64{}
	for rows.Next() {
		var id string
		var n int64
		if rows.Scan(&id, &n) != nil {
			return
		}
		newest[id] = n
	}
	for id, n := range newest {
		a.tell(id, n)
	}
}

var _ session.Inbox = (*Store)(nil)
