// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/session"
)

// draft returns the file that keeps what is written and not sent: beside the default place
// of sessions, readable only by the user. Before anything was said it belongs to the agent's
// file, because the session is not kept. No other terminal has the same file, until undraft.
func (t *dialogue) draft() string {
	if t.conf.Data == "" {
		return ""
	}
	name := t.info.ID
	if t.host != nil && t.host.Fresh() {
		name = "new-" + session.Fingerprint(t.info.Path)
	}
	path, claimed := t.drafts[name]
	if !claimed {
		if t.drafts == nil {
			sweepLocks(filepath.Join(t.conf.Data, "draft-locks"))
		}
		path = t.claim(filepath.Join(t.conf.Data, "drafts"), name)
		if t.drafts == nil {
			t.drafts = map[string]string{}
		}
		t.drafts[name] = path
	}
	return path
}

// mostDrafts is the number of terminals that keep a draft for one session.
const mostDrafts = 16

// claim takes a file for the draft that no other terminal has taken: one that a terminal has left
// behind, or else a new one. It returns "" if there are too many.
func (t *dialogue) claim(dir, name string) string {
	var all, left []string
	for n := 1; n <= mostDrafts; n++ {
		path := filepath.Join(dir, name)
		if n > 1 {
			path += fmt.Sprintf("-%d", n)
		}
		all = append(all, path)
		for _, file := range []string{path, path + ".ran"} {
			if _, err := os.Lstat(file); err == nil {
				left = append(left, path)
			}
		}
	}
	for _, path := range append(left, all...) {
		lock, err := filelock.TakeWithin(context.Background(), filepath.Join(filepath.Dir(dir), "draft-locks", filepath.Base(path)), 0)
		if busy := new(filelock.BusyError); errors.As(err, &busy) {
			continue
		}
		if err == nil { // otherwise there are no locks here
			t.draftLocks = append(t.draftLocks, lock)
		}
		return path
	}
	return ""
}

// sweepLocks removes locks of drafts that chats which were killed have left behind, and that nobody has: those that
// are older than a day, so that no chat that begins now finds its own taken for an instant.
func sweepLocks(dir string) {
	entries, _ := os.ReadDir(dir) // if there is no folder, there are no locks in it
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < 24*time.Hour {
			continue
		}
		if lock, err := filelock.TakeWithin(context.Background(), filepath.Join(dir, e.Name()), 0); err == nil {
			_ = lock.Release() // which removes it
		}
	}
}

// undraft lets other terminals have the files of the drafts.
func (t *dialogue) undraft() {
	for _, lock := range t.draftLocks {
		_ = lock.Release() // the system does it, too, at the end of the process
	}
	t.drafts, t.draftLocks = nil, nil
}
