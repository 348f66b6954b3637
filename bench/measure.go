// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// result is a row with its figures.
type result struct {
	row
	figures []figure
}

// figure is the cost of a row's work in one library, per repetition.
type figure struct {
	lib    string
	cpu    time.Duration // of all threads of the process; median over the rounds
	ratio  float64       // its time divided by ours; median over the rounds
	allocs float64
	bytes  float64
}

// span is the minimum time that a library works in one round.
const span = 150 * time.Millisecond

// measure runs the row's libraries in turn, round by round, so that a change in the
// machine's speed affects all of them.
func measure(r row, rounds int) (result, error) {
	if r.rounds > 0 {
		rounds = min(rounds, r.rounds)
	}
	times := make([][]time.Duration, len(r.libs))
	res := result{row: r}
	want := 0
	for i, l := range r.libs {
		if r.apart[l.name] != nil {
			res.figures = append(res.figures, figure{lib: l.name, allocs: math.NaN(), bytes: math.NaN()})
			continue
		}
		got, err := l.run() // warm-up
		if err != nil {
			return res, fmt.Errorf("%s: %w", l.name, err)
		}
		if i == 0 {
			want = got
		}
		if got != want {
			return res, fmt.Errorf("%s comes to %d, antiphon to %d", l.name, got, want)
		}
		least := settled
		if r.rounds > 0 {
			least = 0
		}
		allocs, size := allocations(l, least)
		res.figures = append(res.figures, figure{lib: l.name, allocs: allocs, bytes: size})
	}
	for round := range rounds {
		for i, l := range r.libs {
			own := r.apart[l.name]
			if own != nil && round >= apartRounds {
				continue
			}
			d, err := once(l, own, want)
			if err != nil {
				return res, fmt.Errorf("%s: %w", l.name, err)
			}
			times[i] = append(times[i], d)
		}
	}
	for i := range res.figures {
		ratios := make([]float64, len(times[i]))
		for k := range ratios {
			ratios[k] = float64(times[i][k]) / float64(times[0][k])
		}
		res.figures[i].ratio = median(ratios)
		res.figures[i].cpu = median(times[i])
	}
	return res, nil
}

// apartRounds is the number of rounds for a library in a separate process.
const apartRounds = 3

// once returns the processor time of one repetition: the mean over many in this
// process, or a single one in a separate process.
func once(l lib, own func() (int, time.Duration, error), want int) (time.Duration, error) {
	if own != nil {
		got, d, err := own()
		if err == nil && got != want {
			err = fmt.Errorf("it comes to %d, antiphon to %d", got, want)
		}
		return d, err
	}
	runtime.GC()
	began, start, n := time.Now(), cpuTime(), 0
	for time.Since(began) < span {
		if _, err := l.run(); err != nil {
			return 0, err
		}
		n++
	}
	return (cpuTime() - start) / time.Duration(n), nil
}

// cpuTime returns the processor time that this process has used, including garbage
// collection.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// settled is how long allocations are counted. The collection before it empties the
// pools of buffers, and filling them again must not count: of three short repetitions it
// was a quarter of all bytes.
const settled = 100 * time.Millisecond

// allocations returns the number and bytes of allocations per repetition, of at least one
// repetition.
func allocations(l lib, least time.Duration) (count, bytes float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	times, began := 0.0, time.Now()
	for times == 0 || time.Since(began) < least {
		_, _ = l.run() // errors were reported by an earlier run
		times++
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / times, float64(after.TotalAlloc-before.TotalAlloc) / times
}

// median returns the median of a list, which must not be empty.
func median[T time.Duration | float64](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}
