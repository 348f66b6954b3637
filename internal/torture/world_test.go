// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// livesOfWorld is how many lives a world has, but for the last one, which is
// not ended.
const livesOfWorld = 15

// world is a store and all that is known of it.
type world struct {
	seed   uint64
	random *rand.Rand
	place  string // of the store
	ledger string
	server *httptest.Server
	model  *model
	total  *tally

	witness storetest.Auditor
	mu      sync.Mutex
	counts
	killed  map[string]int
	kinds   map[string]int    // of entries, at the end
	told    map[string]string // digests of items that were shown, and the sessions of their runs
	sent    map[string]string // what was sent to sessions, and the sessions
	blobs   map[string]string // hashes, and the sessions that keep them
	trouble []error
	known   map[string]int // how long each session was when it was looked at
}

func newWorld(seed uint64, dir, place string, total *tally) (*world, error) {
	r := rand.New(rand.NewPCG(seed, 6))
	text := script(r)
	s, err := rehearsal.Parse("world", []byte(text))
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	w := &world{
		seed: seed, random: r, place: place, ledger: filepath.Join(dir, "ledger"), total: total,
		killed: map[string]int{}, kinds: map[string]int{}, told: map[string]string{}, sent: map[string]string{}, blobs: map[string]string{}, known: map[string]int{},
	}
	w.model = &model{handler: &rehearsal.Server{Script: s}}
	w.server = httptest.NewServer(w.model)
	return w, nil
}

func (w *world) close() {
	w.server.CloseClientConnections()
	w.server.Close()
	w.counts.Requests = w.model.requests()
	w.total.mu.Lock()
	defer w.total.mu.Unlock()
	w.total.add(w.counts)
	for step, n := range w.killed {
		w.total.steps[step] += n
	}
	for kind, n := range w.kinds {
		w.total.kinds[kind] += n
	}
}

// play lives all lives and looks at what is left of each.
func (w *world) play(ctx context.Context) error {
	for life := range livesOfWorld {
		jobs := []job{w.job(life, draw(w.random))}
		if life == 0 && w.random.IntN(2) == 0 { // while the database is made
			jobs[0].Plan = plan{Last: 1000, Step: "open/sql/", Nth: 1 + w.random.IntN(40)}
		}
		if w.random.IntN(5) == 0 {
			jobs = append(jobs, w.job(life, draw(w.random)))
			jobs[1].Rude = w.random.IntN(3) == 0
			jobs[0].Clash, jobs[1].Clash = jobs[1].Rude, jobs[1].Rude
			meet := !isPostgres(w.place) && !jobs[1].Rude && w.random.IntN(4) == 0
			jobs[0].Meet, jobs[1].Meet = meet, meet
			w.Rivals++
		}
		cut := isPostgres(w.place) && w.random.IntN(3) == 0
		for i := range jobs {
			jobs[i].Cut = cut
			if w.random.IntN(3) == 0 {
				jobs[i].Clock = -w.random.IntN(1_000_000)
			}
		}
		if err := w.live(ctx, jobs); err != nil {
			return fmt.Errorf("life %d (%+v, beside one without locks: %t): %w", life, jobs[0].Plan, jobs[0].Clash, err)
		}
	}
	end := w.job(livesOfWorld, plan{Last: 1 << 40})
	end.Finish = true
	if err := w.live(ctx, []job{end}); err != nil {
		return fmt.Errorf("the last life: %w", err)
	}
	return w.ended(ctx)
}

func (w *world) job(life int, p plan) job {
	place := w.place
	if isPostgres(place) {
		place = with(place, "application_name", w.workerName())
	}
	return job{
		Store: place, Ledger: w.ledger, URL: w.server.URL + "/v1", Seed: w.random.Uint64(), Life: life, Plan: p,
		Sessions: []string{"a", "b", "c"},
	}
}

// live runs workers at once, ends them, and looks at what is left.
func (w *world) live(ctx context.Context, jobs []job) error {
	w.Lives++
	var wg sync.WaitGroup
	for i := range jobs {
		jobs[i].Beside = len(jobs) > 1
		wg.Go(func() {
			if err := w.process(ctx, jobs[i]); err != nil {
				w.problem(err)
			}
		})
	}
	wg.Wait()
	if isPostgres(w.place) {
		if err := w.settle(ctx); err != nil {
			return err
		}
	} else if w.random.IntN(3) == 0 {
		torn, err := tear(w.random, w.place)
		if err != nil {
			return err
		}
		if torn {
			w.Torn++
		}
	}
	if err := w.look(ctx); err != nil {
		w.problem(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.trouble...)
}

func (w *world) problem(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = append(w.trouble, err)
}

// process runs one worker until its end.
func (w *world) process(ctx context.Context, j job) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer from.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text), "GOMAXPROCS=2")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{to}, &stderr
	err = cmd.Start()
	to.Close()
	if err != nil {
		return err
	}
	end := &ending{kill: cmd.Process.Kill}
	if j.Plan.stream > 0 {
		w.model.killAt(j.Plan.stream, func() { end.end("stream") })
	}
	if j.Plan.after > 0 {
		defer time.AfterFunc(time.Duration(j.Plan.after)*time.Microsecond, func() { end.end("any moment") }).Stop()
	}
	stopCutting := w.cutting(ctx, j)
	said := w.hear(from)
	stopCutting()
	w.model.killAt(0, nil)
	said.exit = cmd.Wait()
	said.killed, said.late, said.stderr = cmd.ProcessState.ExitCode() < 0, ctx.Err(), stderr.String()
	said.step = cmp.Or(said.step, end.by())
	return w.buried(said)
}

// cutting breaks the connections of a worker until it is stopped.
func (w *world) cutting(ctx context.Context, j job) (stop func()) {
	if !j.Cut {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, err := w.cut(ctx, rand.New(rand.NewPCG(j.Seed, 1)))
		if err != nil {
			w.problem(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Cuts += n
	}()
	return func() { cancel(); <-done }
}

// ending ends a worker from outside.
type ending struct {
	mu   sync.Mutex
	kill func() error
	what string
}

func (e *ending) end(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.what == "" && e.kill() == nil {
		e.what = what
	}
}

func (e *ending) by() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.what
}

// said is what a worker said of itself, and how it ended.
type said struct {
	step   string // that it was killed at
	ended  bool
	bad    []string
	err    error // of the reports
	exit   error
	killed bool // by a signal
	late   error
	stderr string
}

// hear listens to a worker until it is gone.
func (w *world) hear(from *os.File) said {
	var s said
	s.err = w.witness.Hear(from, func(line string) {
		what, rest, _ := strings.Cut(line, " ")
		w.mu.Lock()
		defer w.mu.Unlock()
		switch what {
		case "killed":
			s.step = rest
		case "ended":
			s.ended = true
		case "bad":
			s.bad = append(s.bad, rest)
		case "told":
			hash, id, _ := strings.Cut(rest, " ")
			w.told[hash] = id
		case "sent":
			id, text, _ := strings.Cut(rest, " ")
			w.sent[text] = id
		case "busy":
			w.Busy++
		case "excused":
			w.Excused++
		case "put":
			hash, id, _ := strings.Cut(rest, " ")
			w.blobs[hash] = id
		}
	})
	return s
}

// buried counts how a worker ended, if that is as it was to be.
func (w *world) buried(s said) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(s.bad) > 0:
		return fmt.Errorf("the worker: %s", strings.Join(s.bad, "\n"))
	case s.err != nil:
		return s.err
	case strings.Contains(s.stderr, "DATA RACE"):
		return fmt.Errorf("the worker: %s", s.stderr)
	case s.late != nil:
		return fmt.Errorf("the worker did not end: %w\n%s", s.late, s.stderr)
	case s.killed && s.step != "":
		w.Kills++
		w.killed[s.step]++
		w.total.count()
	case s.exit != nil:
		return fmt.Errorf("the worker: %w\n%s", s.exit, s.stderr)
	case !s.ended:
		return fmt.Errorf("the worker ended without a word\n%s", s.stderr)
	}
	return nil
}

// count counts a kill at once, so that worlds know when there are enough.
func (t *tally) count() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Kills++
}

func (t *tally) add(c counts) {
	t.Lives += c.Lives
	t.Rivals += c.Rivals
	t.Busy += c.Busy
	t.Torn += c.Torn
	t.Excused += c.Excused
	t.Cuts += c.Cuts
	t.Entries += c.Entries
	t.Items += c.Items
	t.Told += c.Told
	t.Sessions += c.Sessions
	t.Unsure += c.Unsure
	t.UnsureThere += c.UnsureThere
	t.Failed += c.Failed
	t.FailedThere += c.FailedThere
	t.Calls += c.Calls
	t.Ran += c.Ran
	t.Uncertain += c.Uncertain
	t.Repeated += c.Repeated
	t.Requests += c.Requests
}

// table lists steps by how often something ended there.
func table(steps map[string]int) string {
	var names []string
	for name := range steps {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(steps[b]-steps[a], strings.Compare(a, b)) })
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%6d  %s\n", steps[name], name)
	}
	return b.String()
}
