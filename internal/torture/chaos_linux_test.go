// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/trust"
	work "github.com/antiphon-go/antiphon/worker"
)

// This file is chaos on real parts: worker processes over a Postgres server with a standby.
// Workers are killed and frozen, connections are cut, the server is killed and started
// again, and in the middle it is lost for good and the standby takes its place.

// crewVariable makes the test binary a worker of the crew.
const crewVariable = "ANTIPHON_TORTURE_CREW"

func init() { lives[crewVariable] = liveInCrew }

// crewJob is what a worker of the crew is told.
type crewJob struct {
	Name, Store, URL, Folder string
}

func (j *crewJob) file() string      { return filepath.Join(j.Folder, "agents", "agent.md") }
func (j *crewJob) workspace() string { return filepath.Join(j.Folder, "workspace") }

// crewLease is short, so that a frozen worker loses its sessions soon.
const crewLease = time.Second

func openCrewStore(ctx context.Context, dsn string) (*sqlstore.Store, error) {
	return sqlstore.OpenPostgres(ctx, dsn, func(dsn string) (*sql.DB, error) { return sql.Open("pgx", dsn) },
		sqlstore.Options{Retry: time.Minute, Lease: crewLease, Connections: 4})
}

// config is how runs are done.
func (j *crewJob) config(store *sqlstore.Store) host.Config {
	return host.Config{
		File: j.file(), Store: store, Workspace: j.workspace(), Trust: trust.Everything,
		Endpoint: host.Endpoint{Model: "m", BaseURL: j.URL}, FrontEnd: host.FrontEnd{Program: "torture 1"},
	}
}

// liveInCrew is the life of a worker of the crew. It works until it is killed.
func liveInCrew(text string) int {
	ctx := context.Background()
	err := func() error {
		var j crewJob
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			return err
		}
		store, err := openCrewStore(ctx, j.Store)
		if err != nil {
			return err
		}
		own := filepath.Join(j.Folder, j.Name)
		w := &work.Worker{
			Config: j.config(store), Name: j.Name, Runs: 8, Attempts: 10_000, Poll: 100 * time.Millisecond,
			Agents:  &work.Agents{Folder: filepath.Join(own, "definitions"), Agreed: trust.Open(filepath.Join(own, "agreed.jsonl"))},
			Backoff: func(int) time.Duration { return 50 * time.Millisecond },
			Log:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
		}
		if _, err := w.Agents.Add(ctx, w.Config); err != nil {
			return err
		}
		w.Config.File = ""
		return w.Run(ctx)
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// crew is the processes of workers.
type crew struct {
	t    *testing.T
	jobs []crewJob

	mu    sync.Mutex
	procs []*exec.Cmd
	over  bool
	lives int
	all   sync.WaitGroup
}

// keep keeps the worker n alive: one that ends has a successor.
func (c *crew) keep(n int, log io.Writer) {
	text, err := json.Marshal(c.jobs[n])
	if err != nil {
		c.t.Error(err)
		return
	}
	for {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env, cmd.Stderr = append(os.Environ(), crewVariable+"="+string(text)), log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		c.mu.Lock()
		if c.over {
			c.mu.Unlock()
			return
		}
		err := cmd.Start()
		c.procs[n] = cmd
		c.lives++
		c.mu.Unlock()
		if err != nil {
			c.t.Error(err)
			return
		}
		_ = cmd.Wait() // it was killed
	}
}

func (c *crew) start(logs string) {
	c.procs = make([]*exec.Cmd, len(c.jobs))
	for n := range c.jobs {
		log, err := os.Create(filepath.Join(logs, fmt.Sprintf("worker-%d.log", n)))
		if err != nil {
			c.t.Fatal(err)
		}
		c.all.Go(func() {
			defer log.Close()
			c.keep(n, log)
		})
	}
}

// signal sends a signal to a worker that lives.
func (c *crew) signal(n int, s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cmd := c.procs[n]; cmd != nil && cmd.Process != nil {
		_ = cmd.Process.Signal(s) // or it has just ended
	}
}

func (c *crew) end() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	for n := range c.jobs {
		c.signal(n, syscall.SIGKILL)
	}
	c.all.Wait()
}

// scripted answers like a model that makes a number of calls, one after the other, and
// then says that it is done. It knows the run by its first words.
func scripted(calls int, asked *atomic.Int64) *server.Server {
	return &server.Server{Backend: server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
		asked.Add(1)
		run, n := "", 0
		for _, it := range r.Items {
			if m, err := item.As[item.Message](it); err == nil && m.Role == item.RoleUser && run == "" {
				run = strings.TrimPrefix(m.Content.Display(), "Run ")
			}
			if it.Type() == item.TypeFunctionCall {
				n++
			}
		}
		if n == calls {
			return w.Text("Done " + run)
		}
		args := fmt.Sprintf(`{"path":"%s.txt","content":"%s %d\n"}`, run, run, n)
		return w.Item(item.Call(fmt.Sprintf("call_%s_%d", run, n), "append_to_file", args))
	})}
}

// size is how much the chaos has to do, such as 200x18: runs and calls of each.
func chaosSize(t *testing.T) (runs, calls int) {
	text := os.Getenv("ANTIPHON_CHAOS")
	if text == "" {
		return 24, 6
	}
	if n, err := fmt.Sscanf(text, "%dx%d", &runs, &calls); n != 2 || runs < 1 || calls < 1 {
		t.Fatalf("ANTIPHON_CHAOS=%s: %v, want runs and calls, such as 200x18", text, err)
	}
	return runs, calls
}

// D1 D2 D4: workers, connections and the server are killed, frozen and cut all the time,
// and the standby takes over. Nothing is lost, nothing doubled, no call that finished runs
// again, and no work waits for nobody.
func TestChaosOnPostgres(t *testing.T) {
	runs, calls := chaosSize(t)
	source := *seed
	if source == 0 {
		source = rand.Uint64()
	}
	t.Logf("seed %d", source)
	r := rand.New(rand.NewPCG(source, 0))
	primary := newCluster(t)
	standby := primary.standby(t)
	primary.sql(t, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")

	dir := t.TempDir()
	var asked atomic.Int64
	watched := &model{handler: scripted(calls, &asked)}
	endpoint := httptest.NewServer(watched)
	defer endpoint.Close()
	j := crewJob{URL: endpoint.URL + "/v1", Folder: dir, Store: fmt.Sprintf("host=%s,%s user=antiphon dbname=postgres target_session_attrs=read-write connect_timeout=10 antiphon_unsafe=fsync", primary.dir, standby.dir)}
	for _, path := range []string{filepath.Dir(j.file()), j.workspace()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(j.file(), []byte("<tool name=\"append_to_file\" approval=\"allow\"/>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := openCrewStore(t.Context(), j.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	c := &crew{t: t}
	for n := range 4 {
		mine := j
		mine.Name = fmt.Sprint("worker-", n)
		c.jobs = append(c.jobs, mine)
	}
	defer c.end()
	ids := submitted(t, j, store, runs)
	c.start(dir)

	// Something happens each time that the model has been asked so often again: in the middle
	// the server is lost, and else what comes next in a list that is shuffled each time.
	all := int64(runs * (calls + 1))
	each := max(min(all/24, 80), 1) // in a large one, about every two seconds
	happened := map[string]int{}
	var coming []string
	lost := false
	for next := each; !isDone(t, store, ids); {
		if asked.Load() < next {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		next += each
		say(t, store, ids[r.IntN(runs)], r.IntN(3))
		if !lost && asked.Load() > all/2 {
			lost = true
			primary.kill(t)
			standby.sql(t, "SELECT pg_promote()")
			continue
		}
		if len(coming) == 0 {
			coming = []string{"kill", "kill", "kill", "kill", "freeze", "freeze", "cut", "cut", "restart"}
			r.Shuffle(len(coming), func(i, j int) { coming[i], coming[j] = coming[j], coming[i] })
		}
		what, n := coming[0], r.IntN(len(c.jobs))
		coming = coming[1:]
		happened[what]++
		alive := primary
		if lost {
			alive = standby
		}
		switch what {
		case "kill":
			c.signal(n, syscall.SIGKILL)
		case "freeze":
			c.signal(n, syscall.SIGSTOP)
			time.AfterFunc(2*crewLease, func() { c.signal(n, syscall.SIGCONT) })
		case "cut":
			alive.sql(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
		case "restart":
			alive.kill(t)
			alive.start(t)
		}
	}
	c.end()
	t.Logf("%d runs of %d calls, %d lives of workers; %v; the server was lost: %t; the model was asked %d times", runs, calls, c.lives, happened, lost, asked.Load())
	if !lost {
		t.Error("the server was not lost")
	}
	for _, err := range watched.problems {
		t.Error(err)
	}
	unknown := 0
	for n, id := range ids {
		unknown += judged(t, store, id, n, calls, j.workspace())
	}
	t.Logf("the outcome of %d calls of %d is unknown", unknown, runs*calls)
}

// submitted leaves the work.
func submitted(t *testing.T, j crewJob, store *sqlstore.Store, runs int) (ids []string) {
	for n := range runs {
		cfg := j.config(store)
		cfg.Session = fmt.Sprint("run-", n)
		job := work.Job{Config: cfg, Key: "first", Input: []item.Item{item.User(fmt.Sprint("Run ", n))}}
		for range 2 { // the second time as by a caller that got no answer
			receipt, err := work.Submit(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			if len(ids) <= n {
				ids = append(ids, receipt.Session.ID)
			}
		}
	}
	return ids
}

// say delivers one of a few sentences to a session, perhaps not for the first time.
func say(t *testing.T, store *sqlstore.Store, id string, n int) {
	key := fmt.Sprint("more-", n)
	_, err := store.Deliver(t.Context(), id, session.Delivery{Delivered: session.Delivered{Key: key}, Bodies: []session.Body{session.InputItem{Item: item.User(key)}}})
	if err != nil {
		t.Errorf("saying something: %v", err)
	}
}

// isDone reports whether all work is done. It fails the test if some never will be.
func isDone(t *testing.T, store *sqlstore.Store, ids []string) bool {
	done := 0
	for w, err := range store.Works(t.Context()) {
		switch {
		case err != nil:
			t.Fatal(err)
		case w.State == queue.Done:
			done++
		case w.State == queue.Parked || w.State == queue.Waiting:
			t.Fatalf("%s is %s: %s", w.Session, w.State, w.Reason)
		}
	}
	return done == len(ids)
}

// judged compares what a session says with what its tool did, and returns the number of
// calls whose outcome is unknown.
func judged(t *testing.T, store *sqlstore.Store, id string, run, calls int, workspace string) (unknown int) {
	s, err := session.Open(t.Context(), store, id)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(workspace, fmt.Sprint(run, ".txt")))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for line := range strings.Lines(string(text)) {
		ran[strings.TrimSuffix(line, "\n")]++
	}
	made, started, outputs, said := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	last := ""
	for e := range s.Entries() {
		switch b := e.Body.(type) {
		case session.InputItem:
			if m, err := item.As[item.Message](b.Item); err == nil && m.Role == item.RoleUser {
				last = m.Content.Display()
				said[last]++
			}
		case session.OutputItem:
			if b.Item.Type() == item.TypeFunctionCall {
				made[b.Item.CallID()]++
			} else {
				last = ""
			}
		case session.CallStarted:
			started[b.CallID]++
		case session.CallOutput:
			outputs[b.CallID]++
			if k := strings.TrimPrefix(b.CallID, fmt.Sprintf("call_%d_", run)); !b.Failed && ran[fmt.Sprint(run, " ", k)] != 1 {
				t.Errorf("%s, %s: it succeeded and ran %d times", id, b.CallID, ran[fmt.Sprint(run, " ", k)])
			} else if b.Failed {
				unknown++
			}
		}
	}
	// A reply that broke off is asked for again, so a call may be made twice.
	for k := range calls {
		call, line := fmt.Sprintf("call_%d_%d", run, k), fmt.Sprintf("%d %d", run, k)
		if made[call] == 0 || started[call] != 1 || outputs[call] != 1 || ran[line] > 1 {
			t.Errorf("%s, %s: made %d times, started %d, answered %d, ran %d", id, call, made[call], started[call], outputs[call], ran[line])
		}
	}
	if len(made) != calls || len(ran) > calls || said[fmt.Sprint("Run ", run)] != 1 || last != "" {
		t.Errorf("%s: %d calls, %d ran; said %v; %q has no answer", id, len(made), len(ran), said, last)
	}
	for words, n := range said {
		if n != 1 {
			t.Errorf("%s: %q was said %d times", id, words, n)
		}
	}
	return unknown
}
