// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/tool"
)

// turnsOfRun is the number of turns with a call in a run, and turnRounds how often
// each kind of run is measured.
const (
	turnsOfRun = 40
	turnRounds = 9
)

// turn is a model in memory and its tool. The model calls the tool in each turn
// except the last. They measure how long the loop takes from the complete call to
// the tool, and from the tool's end to the next request.
type turn struct {
	asked         int
	said, ended   time.Time
	toTool, toAsk []time.Duration
}

// lastTurn is the reply that ends a run.
const lastTurn = `{"type":"response.completed","response":{"id":"resp_last","object":"response","status":"completed","output":[{"id":"msg_last","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"done"}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}`

func (t *turn) Stream(context.Context, *api.Request) iter.Seq2[api.Event, error] {
	if !t.ended.IsZero() {
		t.toAsk = append(t.toAsk, time.Since(t.ended))
	}
	n := t.asked
	t.asked++
	return func(yield func(api.Event, error) bool) {
		if n == turnsOfRun {
			yield(api.ParseEvent([]byte(lastTurn)))
			return
		}
		for data := range dataOf(callStream(int64(n))) {
			ev, err := api.ParseEvent(data)
			t.said = time.Now() // overwritten until the event after the call
			if !yield(ev, err) {
				return
			}
		}
	}
}

// tool returns the tool that the model calls.
func (t *turn) tool() tool.Tool {
	return tool.Must("read_file", "Reads a file.", func(context.Context, fileInput) (string, error) {
		t.toTool = append(t.toTool, time.Since(t.said))
		t.ended = time.Now()
		return fileText, nil
	}, tool.ReadOnly())
}

// play runs all turns on a session.
func (t *turn) play(s *session.Session) error {
	a := &agent.Agent{Model: t, Tools: []tool.Tool{t.tool()}}
	res, err := a.Run(context.Background(), s, item.User("Read on."))
	if err == nil && (res.Turns != turnsOfRun+1 || res.Calls != turnsOfRun) {
		err = fmt.Errorf("the run stopped after %d turns and %d calls: %s %s", res.Turns, res.Calls, res.Why, res.Detail)
	}
	return err
}

var runsOfTurns atomic.Int64

// playAll plays the given number of runs concurrently, each on its own session.
func playAll(store session.Store, runs int) (all []*turn, err error) {
	var wg sync.WaitGroup
	errs := make([]error, runs)
	for i := range runs {
		t := &turn{}
		all = append(all, t)
		wg.Go(func() {
			s, err := session.Open(context.Background(), store, fmt.Sprintf("turns-%d", runsOfTurns.Add(1)))
			if err == nil {
				err = t.play(s)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return all, errors.Join(errs...)
}

// turnRow compares whole turns with a call on SQLite with bare commits and with the
// same turns in memory.
func turnRow() row {
	took := sync.OnceValue(measureTurns)
	bound := func(what string, got func(turns) float64, gate, goal float64) bar {
		return most(what, func(result) float64 { return got(took()) }, gate, goal)
	}
	return row{
		name: "whole turn with a call on SQLite", unit: "turn", units: turnsOfRun, maxAllocs: -1,
		bars: []bar{
			bound("time of a bare commit", func(t turns) float64 { return t.wall }, 4, 3),
			bound("processor time of a turn in memory", func(t turns) float64 { return t.cpu }, 5, 3.5),
			bound("ms from the call to its tool, median", func(t turns) float64 { return t.toTool[0] }, 0.8, 0.6),
			bound("99th percentile", func(t turns) float64 { return t.toTool[1] }, 2, 1.2),
			bound("ms from the tool's end to the next request, median", func(t turns) float64 { return t.toAsk[0] }, 0.75, 0.55),
			bound("99th percentile", func(t turns) float64 { return t.toAsk[1] }, 1.5, 1.1),
			least(fmt.Sprintf("turns of %d runs at once, of those of one run", manyRuns), func(result) float64 { return took().many }, 5, 8),
		},
		note: func() string {
			t := took()
			text := fmt.Sprintf("Runs of %d turns on a session, synchronous=FULL, beside a model in memory. A turn takes %s here and a bare commit %s; ratios are medians of %d paired rounds. Time that passes, but for the second figure.",
				turnsOfRun, short(t.took), short(t.bare), turnRounds)
			if t.err != nil {
				text += " It failed: " + t.err.Error() + "."
			}
			return text
		},
	}
}

// turns holds the figures of the row: wall is the time of a turn relative to a bare
// commit, cpu its processor time relative to a turn in memory, and many how many
// times more turns many concurrent runs make than one run in the same time.
type turns struct {
	wall, cpu, many float64
	toTool, toAsk   [2]float64 // median and 99th percentile, ms
	took, bare      time.Duration
	err             error
}

// measureTurns measures the runs and bare commits alternately, so that a change in
// the disk's speed affects all of them. A figure that it cannot measure is NaN,
// which misses its bar.
func measureTurns() (t turns) {
	missing := math.NaN()
	t.wall, t.cpu, t.many = missing, missing, missing
	t.toTool, t.toAsk = [2]float64{missing, missing}, [2]float64{missing, missing}
	dir, err := os.MkdirTemp("", "antiphon-bench-")
	if err != nil {
		t.err = err
		return t
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := sqlstore.OpenSQLite(context.Background(), filepath.Join(dir, "sessions.db"), openSQLite, sqlstore.Options{})
	if err != nil {
		t.err = err
		return t
	}
	defer func() { _ = store.Close() }()
	commit, err := bareCommits(filepath.Join(dir, "bare.db"))
	if err != nil {
		t.err = err
		return t
	}
	var wall, cpu, many []float64
	var took, bares, toTool, toAsk []time.Duration
	for range turnRounds {
		bare := timed(&t.err, steps, commit)
		began, used := time.Now(), cpuTime()
		one, err := playAll(store, 1)
		each, cost := time.Since(began)/turnsOfRun, cpuTime()-used
		used = cpuTime()
		_, failed := playAll(new(session.Memory), 1)
		memory := cpuTime() - used
		began = time.Now()
		_, failedToo := playAll(store, manyRuns)
		together := time.Since(began) / turnsOfRun
		if t.err = errors.Join(t.err, err, failed, failedToo); t.err != nil {
			return t
		}
		took, bares = append(took, each), append(bares, bare)
		wall = append(wall, float64(each)/float64(bare))
		cpu = append(cpu, float64(cost)/float64(memory))
		many = append(many, manyRuns*float64(each)/float64(together))
		toTool, toAsk = append(toTool, one[0].toTool...), append(toAsk, one[0].toAsk...)
	}
	t.wall, t.cpu, t.many = median(wall), median(cpu), median(many)
	t.took, t.bare = median(took), median(bares)
	t.toTool, t.toAsk = spread(toTool), spread(toAsk)
	return t
}

// spread returns the median and the 99th percentile in milliseconds. It sorts the
// list.
func spread(list []time.Duration) [2]float64 {
	slices.Sort(list)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return [2]float64{ms(list[len(list)/2]), ms(list[len(list)*99/100])}
}

// postgresRow compares turns on Postgres with pgbench. Without a configured server
// the row says so and measures nothing.
func postgresRow() row {
	r := row{name: "turns on Postgres", unit: "turn", units: turnsOfRun, maxAllocs: -1}
	dsn, bin := os.Getenv("ANTIPHON_POSTGRES"), os.Getenv("ANTIPHON_POSTGRES_BIN")
	if dsn == "" || bin == "" {
		r.note = func() string {
			return "Not measured: there is no server. `.ci/postgres make bench` starts one and names it in ANTIPHON_POSTGRES."
		}
		return r
	}
	took := sync.OnceValue(func() postgres { return measurePostgres(dsn, bin) })
	r.bars = []bar{
		most("round trips a barrier", func(result) float64 { return took().trips }, 2, 1.05),
		least(fmt.Sprintf("commits of %d runs at once, of those of pgbench", manyRuns), func(result) float64 { return took().commits }, 0.4, 0.6),
		least("runs at once on 20 connections", func(result) float64 { return took().runs }, 200, 200),
	}
	r.note = func() string {
		p := took()
		text := fmt.Sprintf("The server, pgbench and the runs share this machine. pgbench inserts rows of the same size from as many clients: %.0f commits a second.", p.floor)
		if p.err != nil {
			text += " It failed: " + p.err.Error() + "."
		}
		return text
	}
	return r
}

// postgres holds the figures of the row: trips is the number of round trips per
// append, commits the rate of appends relative to pgbench, runs the number of
// concurrent runs that succeeded, and floor the commits per second of pgbench.
type postgres struct {
	trips, commits, runs, floor float64
	err                         error
}

// pgRounds is how often runs and pgbench are measured, alternately.
const pgRounds = 5

// measurePostgres measures the runs and pgbench alternately. It accepts a server
// without fsync, because the ratio is compared on the same server.
func measurePostgres(dsn, bin string) (p postgres) {
	p = postgres{math.NaN(), math.NaN(), math.NaN(), math.NaN(), nil}
	var trips atomic.Int64
	open := func(dsn string) (*sql.DB, error) {
		c, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		dial := c.DialFunc
		c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return countedConn{conn, &trips}, err
		}
		return stdlib.OpenDB(*c), nil
	}
	store, err := sqlstore.OpenPostgres(context.Background(), dsn+" antiphon_unsafe=fsync antiphon_connections=20", open, sqlstore.Options{})
	if err != nil {
		p.err = err
		return p
	}
	defer func() { _ = store.Close() }()
	db, err := open(dsn)
	if err != nil {
		p.err = err
		return p
	}
	defer func() { _ = db.Close() }()
	script, err := os.CreateTemp("", "antiphon-bench-*.sql")
	if err == nil {
		defer func() { _ = os.Remove(script.Name()) }()
		_, err = fmt.Fprintf(script, "INSERT INTO antiphon_bench (data) VALUES (repeat('x', %d));\n", len(fileText)+200)
		err = errors.Join(err, script.Close())
	}
	if err == nil {
		_, err = db.Exec(`CREATE TABLE IF NOT EXISTS antiphon_bench (id bigserial PRIMARY KEY, data text)`)
	}
	if err != nil {
		p.err = err
		return p
	}
	counted := &counting{Store: store}
	if _, p.err = playAll(counted, 1); p.err != nil { // warm-up
		return p
	}
	var ratios, floors []float64
	for range pgRounds {
		floor, err := pgbench(bin, dsn, script.Name())
		counted.appends.Store(0)
		began := time.Now()
		_, failed := playAll(counted, manyRuns)
		if p.err = errors.Join(err, failed); p.err != nil {
			return p
		}
		rate := float64(counted.appends.Load()) / time.Since(began).Seconds()
		ratios, floors = append(ratios, rate/floor), append(floors, floor)
	}
	p.commits, p.floor = median(ratios), median(floors)
	counted.appends.Store(0)
	trips.Store(0)
	if _, p.err = playAll(counted, 1); p.err != nil {
		return p
	}
	p.trips = float64(trips.Load()) / float64(counted.appends.Load())
	if _, p.err = playAll(counted, 200); p.err == nil {
		p.runs = 200
	}
	return p
}

// counting is a store that counts appends.
type counting struct {
	*sqlstore.Store
	appends atomic.Int64
}

func (c *counting) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	c.appends.Add(1)
	return c.Store.Append(ctx, id, after, entries)
}

// countedConn counts writes. Each write is one round trip, because the driver waits
// for the answer to a message, or batch of messages, before it sends the next.
type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countedConn) Write(data []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(data)
}

var tps = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

// pgbench returns the number of commits per second of single INSERTs.
func pgbench(bin, dsn, script string) (float64, error) {
	out, err := exec.Command(filepath.Join(bin, "pgbench"), "-n", "-M", "prepared", "-c", strconv.Itoa(manyRuns), "-j", "2", "-T", "2", "-f", script, dsn).CombinedOutput()
	found := tps.FindSubmatch(out)
	if err != nil || found == nil {
		return 0, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
