// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// shaky is a tool that returns errors, one after another, and then succeeds.
type shaky struct {
	mu     sync.Mutex
	errors []error
	at     []time.Duration // when it was called
	begun  time.Time
}

func (s *shaky) run(context.Context, struct{}) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Since(s.begun))
	if len(s.errors) == 0 {
		return "done", nil
	}
	err := s.errors[0]
	s.errors = s.errors[1:]
	if err == nil {
		panic("boom")
	}
	return "", err
}

// set returns a set of the tool, named t.
func (s *shaky) set(t *testing.T, opts ...tool.Option) *tool.Set {
	t.Helper()
	s.begun = time.Now()
	made, err := tool.New("t", "Does it.", s.run, opts...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(made)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func callT(ctx context.Context, set *tool.Set, arguments string) tool.Outcome {
	return set.Invoke(ctx, tool.Call{ID: "c", Name: "t", Arguments: arguments}, output.Policy{})
}

// T15, G11: which failures are repeated, how often, and after which pauses.
func TestRetries(t *testing.T) {
	busy, broken := errors.New("busy"), errors.New("broken")
	onlyBusy := func(err error) bool { return errors.Is(err, busy) }
	for _, c := range []struct {
		name      string
		errors    []error
		retry     tool.Retry
		arguments string
		timeout   time.Duration
		at        []time.Duration
		failure   tool.Failure
		text      string
	}{
		{name: "no error", retry: tool.Retry{Max: 2}, at: []time.Duration{0}, text: "done"},
		{name: "one", errors: []error{busy}, retry: tool.Retry{Max: 2}, at: []time.Duration{0, time.Second / 2}, text: "done"},
		{name: "two, the pause doubles", errors: []error{busy, busy}, retry: tool.Retry{Max: 2, Wait: time.Second}, at: []time.Duration{0, time.Second, 3 * time.Second}, text: "done"},
		{name: "too many", errors: []error{busy, busy, broken}, retry: tool.Retry{Max: 2, Wait: time.Second}, at: []time.Duration{0, time.Second, 3 * time.Second}, failure: tool.ToolError, text: "broken (3 attempts)"},
		{name: "another error", errors: []error{broken}, retry: tool.Retry{Max: 2, If: onlyBusy}, at: []time.Duration{0}, failure: tool.ToolError, text: "broken"},
		{name: "a panic", errors: []error{nil}, retry: tool.Retry{Max: 2}, at: []time.Duration{0}, failure: tool.Panicked, text: "boom"},
		{name: "arguments", retry: tool.Retry{Max: 2}, arguments: `{"a":1}`, failure: tool.BadArguments, text: "a"},
		{name: "the timeout is for all", errors: []error{busy, busy, busy}, retry: tool.Retry{Max: 9, Wait: time.Second}, timeout: 2 * time.Second, at: []time.Duration{0, time.Second}, failure: tool.TimedOut, text: "time limit of 2s"},
		{name: "long pauses", errors: []error{busy, busy}, retry: tool.Retry{Max: 2, Wait: time.Minute}, at: []time.Duration{0, time.Minute, 2 * time.Minute}, text: "done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shaky{errors: c.errors}
				set := s.set(t, tool.Idempotent(), tool.Retries(c.retry), tool.Timeout(c.timeout))
				arguments := c.arguments
				if arguments == "" {
					arguments = "{}"
				}
				out := callT(t.Context(), set, arguments)
				if out.Failure != c.failure || !strings.Contains(out.Content.Display(), c.text) || !slices.Equal(s.at, c.at) {
					t.Errorf("%v, %q, at %v", out.Failure, out.Content.Display(), s.at)
				}
			})
		})
	}
}

// Only tools that may run again are repeated, and a rate must allow something.
func TestPaceChecked(t *testing.T) {
	none := func(context.Context, struct{}) (string, error) { return "", nil }
	for name, opts := range map[string][]tool.Option{
		"not declared": {tool.Retries(tool.Retry{Max: 1})},
		"negative":     {tool.ReadOnly(), tool.Retries(tool.Retry{Max: -1})},
		"no retries":   {tool.ReadOnly(), tool.Retries(tool.Retry{Wait: time.Second})},
		"no calls":     {tool.RateLimit(&tool.Rate{Per: time.Second})},
		"no time":      {tool.RateLimit(&tool.Rate{Calls: 1})},
		"no rate":      {tool.RateLimit(nil)},
		"an agent":     {tool.ReadOnly(), tool.Subagent(), tool.Retries(tool.Retry{Max: 1})},
		"nil":          {tool.ReadOnly(), nil},
	} {
		if _, err := tool.New("t", "", none, opts...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// G11: whatever waits are cancelled, no period holds more starts than the rate allows, and
// the cancelled waits do not hold up later calls.
func TestRateCancelled(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := new(shaky)
			rate := &tool.Rate{Calls: 1 + random.IntN(3), Per: time.Minute}
			set := s.set(t, tool.RateLimit(rate))
			var all sync.WaitGroup
			for range 60 {
				patience := time.Hour
				if random.IntN(2) == 0 {
					patience = time.Duration(random.IntN(120)) * time.Second
				}
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					callT(ctx, set, "{}")
				})
				time.Sleep(time.Duration(random.IntN(20)) * time.Second)
			}
			all.Wait()
			for i := range len(s.at) - rate.Calls {
				if gap := s.at[i+rate.Calls] - s.at[i]; gap < rate.Per {
					t.Fatalf("seed %d: %d starts within %v: %v", seed, rate.Calls+1, gap, s.at)
				}
			}
			// A crowd that is cancelled leaves no trace.
			time.Sleep(2 * rate.Per)
			crowd, cancel := context.WithCancel(t.Context())
			for range 20 {
				all.Go(func() { callT(crowd, set, "{}") })
			}
			synctest.Wait()
			cancel()
			all.Wait()
			n, before := len(s.at), time.Now()
			if out := callT(t.Context(), set, "{}"); out.Failed || len(s.at) != n+1 || time.Since(before) != rate.Per {
				t.Errorf("seed %d: after the crowd a call waited %v for %v: %+v", seed, time.Since(before), rate.Per, out)
			}
		})
	}
}

// A rate holds over all calls of all its tools; a wait is told, and ends with the
// context, before the tool has started.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(shaky)
		rate := &tool.Rate{Calls: 2, Per: time.Minute}
		set := s.set(t, tool.RateLimit(rate), tool.Timeout(time.Second)) // the wait is not part of the timeout
		var mu sync.Mutex
		var waits []time.Duration
		var over atomic.Int64
		ctx := tool.WithWait(t.Context(), func(w tool.Wait) func() {
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, w.For)
			if w.Again || !strings.Contains(w.Reason, "t may start 2 times in 1m0s") {
				t.Errorf("%+v", w)
			}
			return func() { over.Add(1) }
		})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if out := callT(ctx, set, "{}"); out.Failed {
					t.Errorf("%+v", out)
				}
			})
		}
		all.Wait()
		slices.Sort(waits)
		if want := []time.Duration{0, 0, time.Minute, time.Minute, 2 * time.Minute}; !slices.Equal(s.at, want) || !slices.Equal(waits, want[2:]) || over.Load() != 3 {
			t.Errorf("started at %v, waits %v, %d over", s.at, waits, over.Load())
		}
		// The rate is used up; a call whose context ends does not start, and gives its
		// place back.
		if out := callT(t.Context(), set, "{}"); out.Failed {
			t.Errorf("%+v", out)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n := len(s.at)
		if out := callT(short, set, "{}"); out.Failure != tool.NotRun || len(s.at) != n {
			t.Errorf("%+v, %d starts more", out, len(s.at)-n)
		}
	})
}

// A call whose time limit passes while it waits before another attempt is not running:
// what became of it is known. T15 G11
func TestTimeoutWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := errors.New("busy")
		for name, opts := range map[string][]tool.Option{
			"rate":  {tool.RateLimit(&tool.Rate{Calls: 1, Per: time.Hour}), tool.Retries(tool.Retry{Max: 5, Wait: time.Second})},
			"pause": {tool.Retries(tool.Retry{Max: 5, Wait: time.Hour})},
		} {
			s := &shaky{errors: []error{busy, busy}}
			out := callT(t.Context(), s.set(t, append(opts, tool.Idempotent(), tool.Timeout(5*time.Second))...), "{}")
			if out.Failure != tool.TimedOut || out.Error != "busy (1 attempt; the time limit of 5s passed before the next one)" || len(s.at) != 1 {
				t.Errorf("%s: %d attempts, %+v", name, len(s.at), out)
			}
		}
	})
}
