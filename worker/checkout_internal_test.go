// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/memstore"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// D2: whenever workers are killed, a run has the files that the log speaks of, or the model
// is told that it has not. Two machines go on with a session in turn; each run writes to a
// file, and may be killed before or after any operation of the store, and while its files
// are made.
func TestKilledCheckouts(t *testing.T) {
	t.Parallel()
	told, lost, swept := 0, 0, 0
	for seed := range uint64(40) {
		k := newKilled(t, seed)
		for range 12 {
			k.life()
		}
		told += k.told()
		lost, swept = lost+k.lost, swept+k.swept
	}
	if told == 0 || lost == 0 || swept == 0 {
		t.Errorf("the model was told %d times, changes were lost %d times, and checkouts removed %d times", told, lost, swept)
	}
}

var errKill = errors.New("the worker is killed")

// killed is a session whose workers are killed.
type killed struct {
	*testing.T
	r        *rand.Rand
	seed     uint64
	store    *memstore.Store
	machines [2]string
	steps    int // until the worker is killed; below 0 it is not

	truth string // what the file has, as far as the log tells
	known int    // how often the model was told before the last run began
	lost  int
	lives int
	swept int
}

func newKilled(t *testing.T, seed uint64) *killed {
	k := &killed{T: t, r: rand.New(rand.NewPCG(seed, 7)), seed: seed, machines: [2]string{t.TempDir(), t.TempDir()}, steps: -1}
	k.store = new(memstore.DB).Open(memstore.Options{Net: func(_ context.Context, _ string, do func() error) error {
		if k.step() { // before
			return errKill
		}
		err := do()
		if k.step() { // after
			return errKill
		}
		return err
	}})
	if err := k.store.Create(t.Context(), session.Info{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	return k
}

// step reports whether the worker is dead.
func (k *killed) step() bool {
	if k.steps > 0 {
		k.steps--
	}
	return k.steps == 0
}

// told is how often the model was told that files are lost.
func (k *killed) told() (n int) {
	k.Helper()
	for _, err := range k.store.Deliveries(k.Context(), "s") {
		if err != nil {
			k.Fatal(err)
		}
		n++
	}
	return n
}

// life is a worker that runs the session, and perhaps dies.
func (k *killed) life() {
	k.Helper()
	k.lives++
	if k.steps = -1; k.r.IntN(3) > 0 {
		k.steps = 1 + k.r.IntN(30)
	}
	w := &Worker{Checkouts: k.machines[k.r.IntN(2)]}
	if k.r.IntN(3) == 0 {
		n, err := w.sweep(k.Context(), time.Now().Add(time.Minute))
		if err != nil {
			k.Fatal(err)
		}
		k.swept += n
	}
	w.Config.Store = k.store
	c := w.checkoutOf("s")
	file := filepath.Join(c.files(), "file")
	c.build = func(_ context.Context, _, _ string, patch []byte) error {
		if k.step() {
			return errKill
		}
		c.noted.Commit, c.state.Base = "commit", "base"
		err := os.WriteFile(file, patch, 0o600)
		if k.step() {
			return errKill
		}
		return err
	}
	c.diff = func(context.Context) ([]byte, error) { return os.ReadFile(file) }
	if err := k.run(c, file); err != nil && !errors.Is(err, errKill) {
		k.Fatalf("seed %d, life %d: %v", k.seed, k.lives, err)
	}
	if err := c.end(); err != nil { // as the system does for a process that died
		k.Fatal(err)
	}
}

func (k *killed) run(c *checkout, file string) error {
	ctx := k.Context()
	steps := k.steps
	k.steps = -1
	s, unlock, err := session.OpenLocked(ctx, k.store, "s", nil)
	if err != nil {
		return err
	}
	k.steps = steps
	defer func() {
		k.steps = -1 // a lease ends by itself
		_ = unlock()
	}()
	if err := c.take(); err != nil {
		return err
	}
	if err := c.begin(ctx, "/repo#main"); err != nil {
		return k.dead(err)
	}
	if err := c.began(ctx, s); err != nil {
		return k.dead(err)
	}
	steps = k.steps
	k.steps = -1 // the test looks
	has, err := os.ReadFile(file)
	if err != nil {
		k.Fatal(err)
	}
	now := k.told()
	if string(has) != k.truth {
		k.lost++
		if now == k.known {
			k.Errorf("seed %d, life %d: the file has %q, the log speaks of %q, and nobody was told", k.seed, k.lives, has, k.truth)
		}
	}
	k.known, k.truth, k.steps = now, string(has), steps
	for n := range k.r.IntN(3) {
		id := fmt.Sprintf("call_%d_%d", k.lives, n)
		if _, err := s.Append(ctx, session.CallStarted{CallID: id}); err != nil {
			return k.dead(err)
		}
		c.called()
		after := k.truth + strings.Repeat("x", 1+k.lives)
		if err := os.WriteFile(file, []byte(after), 0o600); err != nil {
			k.Fatal(err)
		}
		out, err := item.Output(id, item.Text("done"))
		if err != nil {
			k.Fatal(err)
		}
		_, err = s.Append(ctx, session.CallOutput{CallID: id, Item: out})
		k.truth = after // what a call may have done is in the log since it started
		if err != nil {
			return k.dead(err)
		}
		if k.r.IntN(2) == 0 {
			if err := c.keep(ctx, s); err != nil {
				return k.dead(err)
			}
		}
	}
	return k.dead(c.keep(ctx, s))
}

// dead returns errKill if the worker is dead.
func (k *killed) dead(err error) error {
	if k.steps == 0 {
		return errKill
	}
	return err
}

// D2: a worker that makes the files of a session after another one did, whose run did not begin, goes on.
func TestLostFilesAreToldOnce(t *testing.T) {
	s := new(memstore.DB).Open(memstore.Options{Net: func(_ context.Context, _ string, do func() error) error { return do() }})
	if err := s.Create(t.Context(), session.Info{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		c := &checkout{w: &Worker{Name: name, Config: host.Config{Store: s}}, id: "a", noted: placeNote{Run: "run"}}
		if err := c.tellLost(t.Context()); err != nil {
			t.Errorf("the worker %s: %v", name, err)
		}
	}
	n := 0
	for _, err := range s.Deliveries(t.Context(), "a") {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d deliveries", n)
	}
}
