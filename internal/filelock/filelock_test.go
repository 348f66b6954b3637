// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/internal/filelock"
)

// TestTake proves that one has the lock at a time, that others are told who, and
// that a file that is left behind locks nothing. J2
func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "lock")
	one, err := filelock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	var busy *filelock.BusyError
	if _, err := filelock.Take(path); !errors.As(err, &busy) || !strings.HasPrefix(busy.Holder, "process ") {
		t.Errorf("%v", err)
	}
	if err := errors.Join(one.Release(), one.Release()); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("process 1 on a host\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	two, err := filelock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	two.Release()
}

// TestTakeTogether proves that many who take and release at once never have it
// together. J2
func TestTakeTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "lock")
	inside, taken := make(chan struct{}, 1), make(chan struct{}, 400)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				l, err := filelock.Take(path)
				if err != nil {
					continue
				}
				select {
				case inside <- struct{}{}:
				default:
					t.Error("two have the lock")
				}
				taken <- struct{}{}
				<-inside
				l.Release()
				os.Remove(filepath.Dir(path)) // as those do who leave no folder behind
			}
		})
	}
	all.Wait()
	if len(taken) == 0 {
		t.Error("nobody had it")
	}
}

// TestTakeFile proves that a file can be locked without a change to it. J2
func TestTakeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.md")
	if _, err := filelock.TakeFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := filelock.TakeFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var busy *filelock.BusyError
	if _, err := filelock.TakeFile(path); !errors.As(err, &busy) {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "text" {
		t.Errorf("%q %v", text, err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// TestTakeWithin proves that a lock is waited for, until it is given back or ctx
// ends. J2
func TestTakeWithin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	one, err := filelock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var busy *filelock.BusyError
	if _, err := filelock.TakeWithin(ctx, path, time.Hour); !errors.As(err, &busy) || busy.Holder == "" {
		t.Errorf("ctx ended: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		two, err := filelock.TakeWithin(t.Context(), path, time.Hour)
		got <- errors.Join(err, two.Release())
	}()
	time.Sleep(30 * time.Millisecond) // it also passes if the other has not looked yet
	if err := one.Release(); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// A holder may remove the folder of its lock while another process makes it.
func TestFolderRemoved(t *testing.T) {
	outer := filepath.Join(t.TempDir(), "outer")
	inner := filepath.Join(outer, "inner")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				l, err := filelock.TakeWithin(t.Context(), filepath.Join(inner, "lock"), 0)
				var busy *filelock.BusyError
				if err != nil && !errors.As(err, &busy) {
					t.Errorf("a removed folder: %v", err)
					return
				}
				_ = l.Release()
				_ = os.Remove(inner)
				_ = os.Remove(outer)
			}
		})
	}
	all.Wait()
}

// A folder that cannot be made is an error soon: nobody is about to make it.
func TestNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(file, "x", "lock")}
	if runtime.GOOS == "linux" {
		paths = append(paths, "/proc/nope/lock") // the system says that it does not exist
	}
	for _, path := range paths {
		if l, err := filelock.TakeWithin(t.Context(), path, 24*time.Hour); err == nil {
			t.Errorf("%s was locked", path)
			_ = l.Release()
		}
	}
}

// TestTakeNotALock proves that a lock is not taken on, and nothing written to, a link or a
// file that is not a lock. K7
func TestTakeNotALock(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	paths := []string{mine, dir}
	for name, to := range map[string]string{"there": mine, "gone": filepath.Join(dir, "new"), "folder": dir} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
		paths = append(paths, filepath.Join(dir, name))
	}
	for _, path := range paths {
		l, err := filelock.TakeWithin(t.Context(), path, 24*time.Hour)
		if err == nil || strings.Count(err.Error(), path) != 1 || !strings.Contains(err.Error(), "not a lock") {
			t.Errorf("%s: %v", path, err)
		}
		_ = l.Release()
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "text" {
		t.Errorf("%q %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "new")); err == nil {
		t.Error("a file was made through a link")
	}
}
