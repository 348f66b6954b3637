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
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// steps is the number of steps in a measurement, and stepRounds the number of
// measurements.
const (
	steps      = 200
	stepRounds = 7
	manyRuns   = 16
)

// durableRow compares how long a run waits at each step, until the outcome is on the
// disk, with a bare commit of the same bytes. It measures elapsed time, because
// waiting for a disk takes no processor time.
func durableRow() row {
	took := sync.OnceValue(func() durable { return measureDurable(steps, stepRounds) })
	return row{
		name: "durable step on SQLite", unit: "step", units: steps, maxAllocs: -1,
		bars: []bar{
			most("time of a bare commit", func(result) float64 { return took().step }, 3, 1.5),
			least(fmt.Sprintf("steps of %d runs at once, of those of one run", manyRuns), func(result) float64 { return took().many }, 3, 5),
		},
		note: func() string {
			return fmt.Sprintf("A tool's output is appended to a session's log, synchronous=FULL. A bare commit takes %s here: an INSERT of the same bytes, prepared, in a file with the same settings. Time that passes, not processor time.",
				short(took().bare))
		},
	}
}

// durable holds the figures of the row: step is the time of a step relative to a
// bare commit, and many is how many times more steps many concurrent runs make than
// one run in the same time.
type durable struct {
	step, many float64
	bare       time.Duration
	err        error
}

// measureDurable measures bare commits and steps alternately, so that a change in
// the disk's speed affects all of them.
func measureDurable(steps, rounds int) (d durable) {
	d.step, d.many = math.NaN(), math.NaN()
	dir, err := os.MkdirTemp("", "antiphon-bench-")
	if err != nil {
		d.err = err
		return d
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := sqlstore.OpenSQLite(context.Background(), filepath.Join(dir, "sessions.db"), openSQLite, sqlstore.Options{})
	if err != nil {
		d.err = err
		return d
	}
	defer func() { _ = store.Close() }()
	commit, err := bareCommits(filepath.Join(dir, "bare.db"))
	if err != nil {
		d.err = err
		return d
	}
	var bare, step, many []time.Duration
	for range rounds {
		bare = append(bare, timed(&d.err, steps, commit))
		step = append(step, timed(&d.err, steps, appends(store, 1)))
		many = append(many, timed(&d.err, steps, appends(store, manyRuns)))
	}
	if d.err != nil {
		return d
	}
	d.bare = median(bare)
	d.step = float64(median(step)) / float64(d.bare)
	d.many = manyRuns * float64(median(step)) / float64(median(many))
	return d
}

// timed returns the mean time of one of the n steps that do makes.
func timed(failed *error, n int, do func(n int) error) time.Duration {
	began := time.Now()
	if err := do(n); err != nil {
		*failed = errors.Join(*failed, err)
	}
	return time.Since(began) / time.Duration(n)
}

func openSQLite(dsn string) (*sql.DB, error) { return sql.Open("sqlite", dsn) }

// outcomeOf returns the entry that a step writes.
func outcomeOf(seq int64) session.Entry {
	out := item.Must(&item.FunctionCallOutput{CallID: fmt.Sprintf("call_%d", seq), Output: item.Text(fileText)})
	return session.Entry{Seq: seq, Body: session.CallOutput{CallID: out.CallID(), Item: out}}
}

// bareCommits returns a function that inserts n rows, each in its own transaction.
func bareCommits(file string) (func(n int) error, error) {
	db, err := openSQLite("file:" + file + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB)"); err != nil {
		return nil, err
	}
	insert, err := db.Prepare("INSERT INTO t (data) VALUES (?)")
	if err != nil {
		return nil, err
	}
	data, err := session.AppendEntry(nil, outcomeOf(100))
	return func(n int) error {
		for range n {
			if _, err := insert.Exec(data); err != nil {
				return err
			}
		}
		return nil
	}, err
}

var sessions int // the number of sessions begun

// appends returns a function that appends n steps to each of runs new sessions,
// concurrently.
func appends(store session.Store, runs int) func(n int) error {
	return func(n int) error {
		var failed sync.Map
		var all sync.WaitGroup
		for range runs {
			sessions++
			id := fmt.Sprintf("run-%d", sessions)
			all.Go(func() {
				for seq := range int64(n) {
					if err := store.Append(context.Background(), id, seq, []session.Entry{outcomeOf(seq + 1)}); err != nil {
						failed.Store(id, err)
						return
					}
				}
			})
		}
		all.Wait()
		var errs []error
		failed.Range(func(_, err any) bool {
			errs = append(errs, err.(error))
			return true
		})
		return errors.Join(errs...)
	}
}
