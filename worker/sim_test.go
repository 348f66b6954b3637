// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	simSchedules = flag.Int("schedules", 0, "how many schedules the simulation plays; 0 means ANTIPHON_SCHEDULES, or 200")
	simSeed      = flag.Uint64("seed", 0, "the only schedule that the simulation plays, with -v all that happens in it; 0 plays -schedules of them")
	simFirst     = flag.Uint64("first", 1, "the seed of the first schedule")
)

// simCount returns how many schedules are to be played.
func simCount(t *testing.T) int {
	t.Helper()
	if *simSchedules > 0 {
		return *simSchedules
	}
	if text := os.Getenv("ANTIPHON_SCHEDULES"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal("ANTIPHON_SCHEDULES: ", err)
		}
		return n
	}
	return 200
}

// played is what came of a schedule.
type played struct {
	trace    uint64
	problems []string
	made     int // operations and events
	given    int // calls that did not run because nobody answered
	without  int // work that was parked because its machine was lost
}

// play plays the schedule of a seed.
func play(t *testing.T, seed uint64, bad defect, tell func(string, ...any), only ...int) (got played) {
	if only == nil {
		only = allKinds
	}
	synctest.Test(t, func(*testing.T) {
		w := newWorld(seed, bad, only)
		w.tell = tell
		w.run()
		got = played{w.trace, w.problems, w.made, w.unanswered, w.without}
	})
	return got
}

// run plays a schedule to its end: faults for a time, then none until all is done.
func (w *world) run() {
	faults, patience := 20*time.Second, 10*time.Minute
	if w.shares {
		faults = 0
	}
	for time.Since(w.begun) < faults {
		w.step(w.begun.Add(faults))
		w.again()
	}
	w.calm = true
	for _, p := range w.procs {
		w.thaw(p)
		w.join(p)
	}
	w.unplan()
	looked := time.Now()
	for end := time.Now().Add(patience); ; w.again() {
		if time.Since(looked) > 300*time.Millisecond {
			looked = time.Now()
			quiet := w.quiet()
			if quiet && !w.gone {
				break
			}
			if quiet { // and what only the lost machine can do is parked
				w.gone = false
				if w.parked {
					w.without++
				}
			}
		}
		if !time.Now().Before(end) {
			w.problem("%s after the last fault, something is left to do", patience)
			break
		}
		w.step(end)
	}
	w.verdict()
	w.close(patience)
}

// close ends all processes.
func (w *world) close(patience time.Duration) {
	w.end()
	for _, p := range w.procs {
		p.stop()
	}
	over := make(chan struct{})
	go func() { w.all.Wait(); close(over); w.stir() }()
	synctest.Wait()
	for end := time.Now().Add(patience); time.Now().Before(end); w.step(end) {
		select {
		case <-over:
			return
		default:
		}
	}
	panic(fmt.Sprintf("the processes of a schedule do not end: %s", w.problems))
}

// D5: after any schedule of kills, freezes, cuts, delays, lost answers and repeated
// deliveries, nothing is lost or doubled, no call that must not be is repeated, and
// everything is done. A schedule is its seed: -run 'TestSimulation$' -seed N -v shows it.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		for _, p := range play(t, *simSeed, sound, t.Logf).problems {
			t.Error(p)
		}
		return
	}
	const parts = 8
	n := simCount(t)
	begun, made, given, without := time.Now(), 0, 0, 0
	var mu sync.Mutex
	t.Run("schedules", func(t *testing.T) {
		for part := range parts {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for i := part; i < n && !t.Failed(); i += parts {
					seed := *simFirst + uint64(i)
					got := play(t, seed, sound, nil)
					for _, p := range got.problems {
						t.Errorf("seed %d: %s", seed, p)
					}
					mu.Lock()
					made += got.made
					given += got.given
					without += got.without
					mu.Unlock()
				}
			})
		}
	})
	if given == 0 && n >= 100 {
		t.Error("somebody has always answered in time")
	}
	if without == 0 && n >= 100 {
		t.Error("no machine was lost that had something to do")
	}
	t.Logf("%d schedules, %d operations, %d calls about which nobody answered, %d sessions whose machine was lost, %s a schedule", n, made, given, without, time.Since(begun)/time.Duration(n))
}

// D5: a seed replays exactly.
func TestSimulationReplays(t *testing.T) {
	for i := range min(simCount(t), 1000) / 10 {
		seed := *simFirst + uint64(i)
		if a, b := play(t, seed, sound, nil), play(t, seed, sound, nil); a.trace != b.trace || a.made != b.made {
			t.Errorf("seed %d: %x after %d operations, and then %x after %d", seed, a.trace, a.made, b.trace, b.made)
		}
	}
}

// The simulation finds what is wrong: each fault that is planted on purpose, within a
// number of schedules.
func TestSimulationFindsFaults(t *testing.T) {
	for _, tt := range []struct {
		bad  defect
		only kinds // nil means all
	}{
		{noEpochs, nil}, {noEpochs, kinds{freeze}}, {noEpochs, kinds{part}},
		{hasty, nil}, {onlyNewer, nil}, {newKeys, nil},
		{earlyLook, nil}, {noWake, nil}, {noKeys, nil}, {lostAppend, nil}, {noHeirs, nil}, {noLost, nil}, {noCards, nil}, {oldCards, nil},
		{noCaps, nil}, {noTurns, nil},
		{noPauses, nil}, {oldLooks, nil}, {noSlots, nil}, {noTokens, nil}, {noPlaces, nil},
		{twoOwners, nil}, {noStable, nil}, {stuck, nil}, {overlaps, nil}, {allMissed, nil},
		{assents, nil}, {impatient, nil},
	} {
		t.Run(fmt.Sprint(tt.bad, tt.only), func(t *testing.T) {
			t.Parallel()
			const most = 2000
			for seed := range uint64(most) {
				if got := play(t, seed+1, tt.bad, nil, tt.only...); len(got.problems) > 0 {
					t.Logf("seed %d: %s", seed+1, got.problems[0])
					return
				}
			}
			t.Errorf("not found in %d schedules", most)
		})
	}
}
