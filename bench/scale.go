// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

const (
	pgRuns  = 64  // runs at once
	pgSteps = 100 // steps of a run in a measurement
)

// scaleSize says how much is measured.
type scaleSize struct {
	steps, rounds int
	claims        int // pieces of work, one after another
	parked        int // runs that wait
}

// scaleRow measures what many workers on one Postgres depend on: steps, claims, messages
// between processes, and runs that wait. Two stores stand for two processes. Without a
// configured server the row says so and measures nothing.
func scaleRow() row {
	r := row{name: "workers on Postgres", unit: "step", units: pgSteps, maxAllocs: -1}
	dsn := os.Getenv("ANTIPHON_POSTGRES")
	if dsn == "" {
		r.note = func() string {
			return "Not measured: there is no server. `.ci/postgres make bench` starts one and names it in ANTIPHON_POSTGRES."
		}
		return r
	}
	size := scaleSize{pgSteps, stepRounds, 200, 10_000}
	took := sync.OnceValue(func() scale {
		s, err := measureScale(dsn, size)
		s.err = err
		return s
	})
	of := func(figure func(scale) float64) func(result) float64 {
		return func(result) float64 { return figure(took()) }
	}
	r.bars = []bar{
		most("time of a durable step, of one bare commit of the same bytes", of(func(s scale) float64 { return s.step }), 2, 1.3),
		least(fmt.Sprintf("steps of %d runs at once, of those of one run", pgRuns), of(func(s scale) float64 { return s.many }), 10, 20),
		most("ms from the claim of work to its first step, median", of(func(s scale) float64 { return s.claim }), 5, 3),
		most("ms from an append to a watcher in another process, median", of(func(s scale) float64 { return s.watch }), 2, 1),
		least("appends a second while another process watches, of those without NOTIFY", of(func(s scale) float64 { return s.notified }), 0.8, 0.9),
		most(fmt.Sprintf("KB of memory for each of %d runs that wait", size.parked), of(func(s scale) float64 { return s.parked }), 1, 0.1),
	}
	r.note = func() string {
		s := took()
		text := fmt.Sprintf("The server and the runs share this machine; fsync is %s. A bare commit takes %s, one run makes %.0f steps a second, and %d runs make %.0f. From the submission of work in another process to its first step it takes %.1f ms (median). A log of these steps takes %.0f bytes for each in the database, with indexes.",
			s.fsync, short(s.bare), 1/s.one.Seconds(), pgRuns, s.many/s.one.Seconds(), s.submit, s.bytes)
		if s.err != nil {
			text += " It failed: " + s.err.Error() + "."
		}
		return text
	}
	return r
}

// scale holds the figures of the row.
type scale struct {
	step, many, claim, submit, watch, notified, parked, bytes float64

	bare, one time.Duration
	fsync     string
	err       error
}

func openPgx(dsn string) (*sql.DB, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*c), nil
}

// measureScale measures all figures.
func measureScale(dsn string, size scaleSize) (s scale, err error) {
	nan := math.NaN()
	s = scale{step: nan, many: nan, claim: nan, submit: nan, watch: nan, notified: nan, parked: nan, bytes: nan}
	ctx := context.Background()
	var stores [2]*sqlstore.Store
	for i := range stores {
		if stores[i], err = sqlstore.OpenPostgres(ctx, dsn+" antiphon_unsafe=fsync", openPgx, sqlstore.Options{}); err != nil {
			return s, err
		}
		defer func() { _ = stores[i].Close() }()
	}
	db, err := openPgx(dsn)
	if err != nil {
		return s, err
	}
	defer func() { _ = db.Close() }()
	for _, measure := range []func() error{
		func() error { return s.steps(db, stores[0], size.steps, size.rounds) },
		func() error { return s.claims(ctx, stores[0], stores[1], size.claims) },
		func() error { return s.watches(ctx, stores[0], stores[1], size) },
		func() error { return s.waits(ctx, stores[0], size.parked) },
	} {
		if err := measure(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// steps measures bare commits and steps alternately.
func (s *scale) steps(db *sql.DB, store *sqlstore.Store, steps, rounds int) error {
	ctx := context.Background()
	one, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = one.Close() }()
	if err := one.QueryRowContext(ctx, `SHOW fsync`).Scan(&s.fsync); err != nil {
		return err
	}
	if _, err := one.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS antiphon_bare (id bigserial PRIMARY KEY, data bytea)`); err != nil {
		return err
	}
	insert, err := one.PrepareContext(ctx, `INSERT INTO antiphon_bare (data) VALUES ($1)`)
	if err != nil {
		return err
	}
	data, err := session.AppendEntry(nil, outcomeOf(100))
	if err != nil {
		return err
	}
	commit := func(n int) error {
		for range n {
			if _, err := insert.Exec(data); err != nil {
				return err
			}
		}
		return nil
	}
	const size = `SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = 'r' AND relname LIKE 'antiphon_%' AND relname <> 'antiphon_bare'`
	var before, after float64
	if err := one.QueryRowContext(ctx, size).Scan(&before); err != nil {
		return err
	}
	var bare, step, many []time.Duration
	for range rounds {
		bare = append(bare, timed(&err, steps, commit))
		step = append(step, timed(&err, steps, appends(store, 1)))
		many = append(many, timed(&err, steps, appends(store, pgRuns)))
	}
	if err != nil {
		return err
	}
	if err := one.QueryRowContext(ctx, size).Scan(&after); err != nil {
		return err
	}
	s.bare, s.one = median(bare), median(step)
	s.step = float64(s.one) / float64(s.bare)
	s.many = pgRuns * float64(s.one) / float64(median(many))
	s.bytes = (after - before) / float64(rounds*steps*(1+pgRuns))
	return nil
}

// claims measures how long it takes a worker that is idle to begin work which another
// process leaves: from the submission, and from the moment at which the worker has found it.
func (s *scale) claims(ctx context.Context, submitter, worker *sqlstore.Store, claims int) error {
	woken := make(chan struct{}, 1)
	defer worker.Awaited(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})()
	var begins, submits []time.Duration
	for n := range claims {
		id := fmt.Sprintf("claim-%d", n)
		if err := submitter.Append(ctx, id, 0, []session.Entry{outcomeOf(1)}); err != nil {
			return err
		}
		began := time.Now()
		if err := submitter.Enqueue(ctx, queue.Work{Session: id, Agent: "bench"}); err != nil {
			return err
		}
		var found []queue.Work
		for len(found) == 0 {
			select {
			case <-woken:
			case <-time.After(time.Second):
			}
			var err error
			if found, err = worker.Candidates(ctx, queue.Want{Agents: []string{"bench"}, Most: 1}); err != nil {
				return err
			}
		}
		claimed := time.Now()
		held, unlock, err := worker.Hold(ctx, id)
		if err != nil {
			return err
		}
		w, err := worker.Begin(held, found[0], "bench")
		if err == nil {
			err = worker.Append(held, id, 1, []session.Entry{outcomeOf(2)})
		}
		begins, submits = append(begins, time.Since(claimed)), append(submits, time.Since(began))
		if err == nil {
			err = worker.Finish(held, w, queue.Outcome{State: queue.Done, Well: true})
		}
		if err = errors.Join(err, unlock()); err != nil {
			return err
		}
	}
	s.claim, s.submit = spread(begins)[0], spread(submits)[0]
	return nil
}

// watches measures how long an append takes to reach a watcher, and what it costs the
// appends that somebody watches.
func (s *scale) watches(ctx context.Context, writer, watcher *sqlstore.Store, size scaleSize) error {
	const id = "watched"
	if err := writer.Append(ctx, id, 0, []session.Entry{outcomeOf(1)}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	seen, ended := make(chan int64, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for e, err := range watcher.Watch(ctx, id, 0) {
			if err != nil {
				return
			}
			select {
			case seen <- e.Seq:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { stop(); <-ended }()
	until := func(seq int64) error {
		for {
			select {
			case got := <-seen:
				if got >= seq {
					return nil
				}
			case <-ended:
				return errors.New("the watcher ended")
			}
		}
	}
	seq := int64(1)
	if err := until(seq); err != nil {
		return err
	}
	var late, plain, watched []time.Duration
	for range size.claims {
		seq++
		if err := writer.Append(ctx, id, seq-1, []session.Entry{outcomeOf(seq)}); err != nil {
			return err
		}
		began := time.Now() // it is durable
		if err := until(seq); err != nil {
			return err
		}
		late = append(late, time.Since(began))
	}
	s.watch = spread(late)[0]
	var failed error
	for range size.rounds {
		plain = append(plain, timed(&failed, size.steps, appends(writer, 1)))
		watched = append(watched, timed(&failed, size.steps, func(n int) error {
			for range n {
				seq++
				if err := writer.Append(ctx, id, seq-1, []session.Entry{outcomeOf(seq)}); err != nil {
					return err
				}
			}
			return until(seq)
		}))
	}
	s.notified = float64(median(plain)) / float64(median(watched))
	return failed
}

// waits measures the memory of a process whose sessions wait, and have no row but that of
// their work.
func (s *scale) waits(ctx context.Context, store *sqlstore.Store, n int) error {
	before := memoryInUse()
	for i := range n {
		id := fmt.Sprintf("parked-%d", i)
		if err := store.Append(ctx, id, 0, []session.Entry{outcomeOf(1)}); err != nil {
			return err
		}
		if err := store.Enqueue(ctx, queue.Work{Session: id, Agent: "bench", Due: time.Now().Add(time.Hour)}); err != nil {
			return err
		}
	}
	during := memoryInUse()
	runtime.KeepAlive(store)
	s.parked = float64(int64(during-before)) / float64(n) / 1000
	return nil
}
