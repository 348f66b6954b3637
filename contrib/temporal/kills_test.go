// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// seed makes the kills of a test. A failure prints it.
var seed = rand.Uint64()

// Workers are killed at any step of their store, and frozen for longer than their signs of
// life may fail to come; the server is killed in the middle. Nothing is lost or doubled, and
// no call that ended runs again. D1 D2
func TestKills(t *testing.T) {
	needCLI(t)
	testKills(t, filepath.Join(t.TempDir(), "sessions.db"))
}

func TestKillsOnPostgres(t *testing.T) {
	needCLI(t)
	place := os.Getenv("ANTIPHON_POSTGRES")
	if place == "" {
		t.Skip("ANTIPHON_POSTGRES does not name a server: run .ci/postgres .ci/temporal")
	}
	schema := fmt.Sprintf("temporal_%d", seed)
	db, err := sql.Open("pgx", place)
	must(t, err)
	t.Cleanup(func() {
		_, err := db.Exec("DROP SCHEMA " + schema + " CASCADE")
		must(t, errors.Join(err, db.Close()))
	})
	_, err = db.ExecContext(t.Context(), "CREATE SCHEMA "+schema)
	must(t, err)
	testKills(t, place+" antiphon_unsafe=fsync search_path="+schema)
}

func testKills(t *testing.T, place string) {
	t.Logf("seed %d", seed)
	r, fate := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	const calls = 18
	n, dir := runs(t), t.TempDir()
	srv := &server{file: filepath.Join(dir, "temporal.db")}
	srv.start(t)
	t.Cleanup(func() { srv.end() })
	c, err := dial(srv.address())
	must(t, err)
	t.Cleanup(c.Close)

	store, err := openStore(t.Context(), place)
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	j := job{Address: srv.address(), Queue: fmt.Sprint(t.Name(), seed), Store: place, Ledger: filepath.Join(dir, "ledger"), Calls: calls}
	reports := []string{filepath.Join(dir, "report-0")}
	report, err := os.Create(reports[0])
	must(t, err)
	w := &world{t: t, Engine: &Engine{Client: c, Store: storetest.StepStore(store, storetest.Reporter(report)).(session.Inbox), Queue: j.Queue, Prefix: j.Queue + "/"}}

	// Two workers live at a time. Each life ends by a signal that nothing can catch.
	var crew sync.WaitGroup
	var mu sync.Mutex
	var alive []*exec.Cmd
	over := false
	life := func() (*exec.Cmd, bool) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return nil, false
		}
		mine := j
		mine.Report = filepath.Join(dir, fmt.Sprint("report-", len(reports)))
		reports = append(reports, mine.Report)
		if len(reports) < max(14, n) { // in the end somebody must stay alive
			mine.Die = 20 + fate.IntN(200)
		}
		cmd := mine.started(t)
		alive = append(alive, cmd)
		return cmd, true
	}
	end := func() {
		mu.Lock()
		over = true
		for _, cmd := range alive {
			_ = cmd.Process.Signal(syscall.SIGKILL)
		}
		mu.Unlock()
		crew.Wait()
	}
	t.Cleanup(end)
	for range 2 {
		crew.Go(func() {
			for {
				cmd, ok := life()
				if !ok {
					return
				}
				_ = cmd.Wait()
			}
		})
	}

	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(j.Queue, "-", i)
		w.begins(ids[i])
	}
	for i := range ids {
		w.insists(func(ctx context.Context) error { return w.Wake(ctx, ids[i], "") })
	}
	entries := func() (sum int64) {
		for _, id := range ids {
			info, err := store.Info(t.Context(), id)
			must(t, err)
			sum += info.Entries
		}
		return sum
	}
	icy := func() {
		mu.Lock()
		cmd := alive[len(alive)-1]
		mu.Unlock()
		freeze(cmd)
		defer thaw(cmd)
		time.Sleep(5 * time.Second / 2) // Heartbeat is 2 s
	}
	// The server dies twice, and people speak all the time.
	said := map[string][]string{}
	for part := int64(1); part <= 3; part++ {
		for began := entries(); entries()-began < int64(n*15); time.Sleep(20 * time.Millisecond) {
			if done(w, ids) {
				break
			}
		}
		icy()
		if part < 3 {
			srv.end()
			srv.start(t)
		}
		for _, id := range ids {
			key := fmt.Sprintf("Word %d for %s.", part, id)
			said[id] = append(said[id], key)
			for range 1 + r.IntN(2) {
				w.insists(func(ctx context.Context) error {
					_, err := w.Deliver(ctx, id, "", session.Delivery{Delivered: session.Delivered{Key: key, Queued: part == 2}, Bodies: []session.Body{session.InputItem{Item: item.User(key)}}})
					return err
				})
			}
		}
	}
	for end := time.Now().Add(5 * time.Minute); !done(w, ids); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			for _, id := range ids {
				s, err := w.State(t.Context(), id)
				t.Logf("%s: %+v, %v", id, s, err)
			}
			t.Fatal("the sessions do not come to their ends")
		}
	}
	end()

	var auditor storetest.Auditor
	for _, name := range reports {
		f, err := os.Open(name)
		must(t, err)
		must(t, auditor.Hear(f, nil))
		must(t, f.Close())
	}
	ran, err := agenttest.ReadCallLog(j.Ledger)
	must(t, err)
	counts, err := auditor.Check(t.Context(), store, func(id string, log []session.Entry) error {
		if !slices.Contains(ids, id) {
			return nil
		}
		if err := agenttest.CheckLog(log); err != nil {
			return err
		}
		mine := map[string]agenttest.CallCounts{}
		for key, n := range ran {
			if strings.HasPrefix(key, id+" ") {
				mine[key] = n
			}
		}
		if err := agenttest.CheckCalls(id, log, 0, mine); err != nil {
			return err
		}
		return heard(log, said[id])
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d lives of workers; %d entries, %d of them unsure", len(reports)-1, counts.Entries, counts.Unsure)
	if len(reports) < 4 || counts.Entries < n*calls*3 {
		t.Error("too little happened")
	}
}

// insists repeats what fails because the server is away.
func (w *world) insists(do func(ctx context.Context) error) {
	w.t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
		err = do(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	w.t.Fatal(err)
}

// done reports whether all sessions have an answer, and nothing is unread.
func done(w *world, ids []string) bool {
	for _, id := range ids {
		for range w.Store.Deliveries(w.t.Context(), id) {
			return false
		}
		log := w.log(id)
		stopped, ok := log[len(log)-1].Body.(session.Stopped)
		if !ok || stopped.Why != string(agent.StopEndTurn) {
			return false
		}
	}
	return true
}

// heard returns an error unless each text is in the log once.
func heard(log []session.Entry, texts []string) error {
	for _, text := range texts {
		n := 0
		for _, e := range log {
			if b, ok := e.Body.(session.InputItem); ok && strings.Contains(b.Item.JSON(), text) {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("%q is in the log %d times", text, n)
		}
	}
	return nil
}
