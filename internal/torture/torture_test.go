// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

var (
	kills = flag.Int("kills", 0, "how many processes to kill")
	seed  = flag.Uint64("seed", 0, "play the world of this seed alone")
	first = flag.Uint64("first", 1, "the seed of the first world")
)

// lives are the processes that the test binary can be, by the variable that makes it one.
var lives = map[string]func(job string) int{jobVariable: live, transcriptVariable: liveInFile}

func TestMain(m *testing.M) {
	for variable, live := range lives {
		if text := os.Getenv(variable); text != "" {
			os.Exit(live(text))
		}
	}
	goleak.VerifyTestMain(m)
}

// few is how many kills a plain go test does.
const few = 30

func wanted(t *testing.T) int {
	if *kills > 0 {
		return *kills
	}
	text := os.Getenv("ANTIPHON_KILLS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("ANTIPHON_KILLS: %v", err)
	}
	return n
}

// J1 J2 J4 P1: whatever a process is killed at, all that it completed is there,
// once, and the next one goes on.
func TestKills(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: kills processes")
	}
	torture(t, wanted(t), func(t *testing.T, dir string) (place string, done func()) {
		return filepath.Join(dir, "sessions.db"), func() {}
	})
}

// J1 J2 J4 P1: the same on Postgres, whose connections break too.
func TestKillsOnPostgres(t *testing.T) {
	server := os.Getenv("ANTIPHON_POSTGRES")
	if server == "" {
		t.Skip("wants a Postgres server: ANTIPHON_POSTGRES: skipped")
	}
	torture(t, max(few, wanted(t)/4), func(t *testing.T, _ string) (place string, done func()) { return newSchema(t, server) })
}

// storePlace makes a place for a world's store, which has a folder of its own.
type storePlace func(t *testing.T, dir string) (place string, done func())

// torture plays worlds until enough processes are killed, some at once.
func torture(t *testing.T, want int, place storePlace) {
	if runtime.GOOS == "windows" {
		t.Skip("needs pipes that a child inherits by number, which Windows has not: skipped")
	}
	total := newTally()
	if *seed > 0 {
		play(t, *seed, place, total)
		total.print(t)
		return
	}
	var mu sync.Mutex
	next := *first - 1
	draw := func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		if total.killed() >= want || t.Failed() {
			return 0
		}
		next++
		return next
	}
	var wg sync.WaitGroup
	for range min(2*runtime.GOMAXPROCS(0), max(1, want/livesOfWorld)) {
		wg.Go(func() {
			for s := draw(); s > 0; s = draw() {
				play(t, s, place, total)
			}
		})
	}
	wg.Wait()
	total.print(t)
	if want >= many && !t.Failed() {
		total.everywhere(t)
	}
}

// many kills meet everything that there is to meet.
const many = 1000

// everywhere wants kills at all kinds of steps, and something of all that the
// checks are about: else they would prove nothing.
func (t *tally) everywhere(tt *testing.T) {
	for _, kind := range []string{
		"append/given", "append/run_started", "append/turn_started", "append/received", "append/turn_ended", "append/approval",
		"append/call_started", "append/answered", "append/nested", "append/stopped",
		"lock", "unlock", "load", "create", "deliver", "fork", "rename", "archive", "delete", "sweep", "put", "open/sql/", "tool/", "event/", "stream", "any moment",
	} {
		// Entries share an append, so a kind may stand anywhere in the name of its step.
		where, what, _ := strings.Cut(kind, "/")
		if !slices.ContainsFunc(slices.Collect(maps.Keys(t.steps)), func(s string) bool {
			return strings.HasPrefix(s, kind) || where == "append" && strings.HasPrefix(s, "append/") && strings.Contains(s, what)
		}) {
			tt.Errorf("nothing was killed at %s", kind)
		}
	}
	for what, n := range map[string]int{
		"appends without an outcome that are there": t.UnsureThere, "appends without an outcome that are not": t.Unsure - t.UnsureThere,
		"failed appends": t.Failed, "uncertain calls": t.Uncertain, "calls that ran again": t.Repeated, "refused locks": t.Busy,
		"compactions": t.kinds["compacted"], "approvals": t.kinds["approval_asked"], "nested runs": t.kinds["nested"], "deliveries": t.kinds["delivered"],
	} {
		if n == 0 {
			tt.Errorf("there were no %s", what)
		}
	}
}

// play plays one world and says which, if something is wrong with it. Of a world
// that is in order nothing is left.
func play(t *testing.T, seed uint64, makePlace storePlace, total *tally) {
	dir := filepath.Join(t.TempDir(), "world")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Error(err)
		return
	}
	place, done := makePlace(t, dir)
	defer done()
	w, err := newWorld(seed, dir, place, total)
	if err == nil {
		err = w.play(t.Context())
		w.close()
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		t.Errorf("-seed %d: %v", seed, err)
	}
}

// tally counts over all worlds.
type tally struct {
	mu sync.Mutex
	counts
	steps, kinds map[string]int
}

// counts are those of one world, or of all.
type counts struct {
	Kills, Lives, Rivals, Busy, Torn, Cuts    int
	Excused                                   int // errors of a store that was made to fail
	Entries, Items, Told, Sessions            int
	Unsure, UnsureThere, Failed, FailedThere  int
	Calls, Ran, Uncertain, Repeated, Requests int
}

func newTally() *tally { return &tally{steps: map[string]int{}, kinds: map[string]int{}} }

func (t *tally) killed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Kills
}

func (t *tally) print(tt *testing.T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tt.Log(t.counts.String())
	tt.Log("killed at:\n" + table(t.steps))
	tt.Log("entries:\n" + table(t.kinds))
}

func (c counts) String() string {
	return fmt.Sprintf("%d kills in %d lives (%d with a rival, %d times refused a lock, %d torn files, %d broken connections, %d errors for a full disk and the like): %d sessions with %d entries and %d items, %d told of; "+
		"%d appends without an outcome, of which %d are there, %d failed ones, of which %d are; "+
		"%d calls, of which %d ran, %d uncertain, %d run again; %d requests",
		c.Kills, c.Lives, c.Rivals, c.Busy, c.Torn, c.Cuts, c.Excused, c.Sessions, c.Entries, c.Items, c.Told,
		c.Unsure, c.UnsureThere, c.Failed, c.FailedThere, c.Calls, c.Ran, c.Uncertain, c.Repeated, c.Requests)
}
