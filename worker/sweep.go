// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/antiphon-go/antiphon/internal/filelock"
)

// sweepEvery is how often a worker removes checkouts that nobody used for long.
const sweepEvery = time.Hour

// sweeping removes old checkouts until done is closed.
func (w *Worker) sweeping(ctx context.Context, done <-chan struct{}) {
	if w.Checkouts == "" || w.KeepCheckouts <= 0 {
		return
	}
	next := time.NewTicker(sweepEvery)
	defer next.Stop()
	for {
		if n, err := w.sweep(ctx, time.Now().Add(-w.KeepCheckouts)); w.Log != nil {
			if n > 0 {
				w.Log.Info("removed old checkouts", "number", n)
			}
			if err != nil {
				w.Log.Warn("an old checkout cannot be removed", "error", w.sayable(err))
			}
		}
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-next.C:
		}
	}
}

// sweep removes the checkouts that no run used since a time, and whose changes are in a store:
// perhaps not in this worker's, because workers of several stores have one folder.
func (w *Worker) sweep(ctx context.Context, before time.Time) (n int, err error) {
	root := filepath.Join(w.Checkouts, "sessions")
	list, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, e := range list {
		if ctx.Err() != nil {
			break
		}
		dir := filepath.Join(root, e.Name())
		gone, failed := sweepOne(dir, before)
		if gone {
			n++
		}
		err = errors.Join(err, failed)
	}
	return n, err
}

// sweepOne removes one checkout, if it may.
func sweepOne(dir string, before time.Time) (gone bool, err error) {
	old := func() (s state, is bool) {
		info, err := os.Stat(filepath.Join(dir, "state.json"))
		if errors.Is(err, fs.ErrNotExist) { // a worker that removed it was killed
			info, err = os.Stat(dir)
			return s, err == nil && !info.ModTime().After(before)
		}
		if err != nil || info.ModTime().After(before) {
			return s, false
		}
		text, err := os.ReadFile(filepath.Join(dir, "state.json"))
		is = err == nil && json.Unmarshal(text, &s) == nil && s.Kept && s.Next == ""
		return s, is && !changedSince(filepath.Join(dir, "files"), info.ModTime())
	}
	if _, is := old(); !is {
		return false, nil
	}
	lock, err := filelock.Take(filepath.Join(dir, "lock"))
	if errors.As(err, new(*filelock.BusyError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s, is := old() // a run may have been faster
	if !is {
		return false, lock.Release()
	}
	for _, name := range []string{"state.json", "files", "objects", "index", "home"} { // without its state it is none
		err = errors.Join(err, removeAll(filepath.Join(dir, name)))
	}
	err = errors.Join(err, dropReference(filepath.Dir(filepath.Dir(dir)), s.Repository, filepath.Base(dir)), lock.Release())
	_ = os.Remove(dir) // a run may make it again
	return err == nil, err
}

// changedSince reports whether somebody changed a file since the last run: a person may have.
func changedSince(folder string, then time.Time) bool {
	return filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(then) {
			err = fs.ErrExist
		}
		return err
	}) != nil
}

// dropReference removes what a checkout holds in the repository with what was fetched, and the
// repository if no other checkout holds anything in it.
func dropReference(root, address, name string) error {
	if address == "" {
		return nil
	}
	repository := filepath.Join(root, "repositories", short(hexSum(address))+".git")
	if _, err := os.Stat(repository); err != nil {
		return nil
	}
	lock, err := filelock.Take(repository + ".lock")
	if errors.As(err, new(*filelock.BusyError)) {
		return nil // somebody fetches: it stays
	}
	if err != nil {
		return err
	}
	refs := filepath.Join(repository, "refs", "antiphon")
	_, packed := os.Stat(filepath.Join(repository, "packed-refs"))
	err = os.Remove(filepath.Join(refs, name))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if left, failed := os.ReadDir(refs); err == nil && failed == nil && len(left) == 0 && errors.Is(packed, fs.ErrNotExist) {
		err = removeAll(repository)
	}
	return errors.Join(err, lock.Release())
}
