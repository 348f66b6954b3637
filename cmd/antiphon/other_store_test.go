// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// shelf is a store of a kind that this program has never heard of. It does what
// every store must, and it searches.
type shelf struct {
	*session.Memory
	place string
}

func (s shelf) Place() string { return s.place }
func (shelf) Close() error    { return nil }

// shelves are those that are there, by their places.
var shelves sync.Map

func init() {
	store.Register(store.Driver{Scheme: "shelf", Form: "shelf://NAME", Open: func(_ context.Context, place string, _ store.Options) (store.Store, error) {
		s, _ := shelves.LoadOrStore(place, shelf{new(session.Memory), place})
		return s.(shelf), nil
	}})
}

// TestOtherStore: another kind of store needs an import and nothing else: runs are
// kept in it, sessions are managed, and what it cannot do is said.
func TestOtherStore(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<user>Hello?</user>\n")
	in := []string{"--store", "shelf://" + t.Name()}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run", file, "--session", "work"}, 0, "new session work"},
		{[]string{"run", file, "And now?", "--session", "work"}, 0, "continues work"},
		{[]string{"sessions", "list"}, 0, "work"},
		{[]string{"sessions", "show", "work"}, 0, "And now?"},
		{[]string{"sessions", "fork", "work", "--name", "other"}, 0, "is a fork of"},
		{[]string{"sessions", "export", "work", "--to", "jsonl", "--out", filepath.Join(dir, "work.jsonl")}, 0, "work.jsonl"},
		{[]string{"sessions", "import", filepath.Join(dir, "work.jsonl"), "--name", "again", "--for", file}, 0, "is imported"},
		{[]string{"sessions", "rm", "other", "--force"}, 0, "is deleted"},
		{[]string{"sessions", "gc"}, 0, ""},
		{[]string{"sessions", "backup", filepath.Join(dir, "copy.db")}, exitUsage, in[1] + ": this kind of store does not copy itself"},
		{[]string{"sessions", "search", "Hello"}, 0, "work"},
		{[]string{"sessions", "index"}, exitUsage, "this kind of store does not keep an index"},
		{[]string{"sessions", "salvage", "work", "--as", "saved"}, exitUsage, "this kind of store does not salvage sessions"},
		{[]string{"doctor"}, exitUsage, "this kind of store does not say what it does with what it has committed"},
	} {
		o := program(t, append(c.args, in...)...)
		if o.code != c.code || !strings.Contains(o.out+o.err, c.want) {
			t.Errorf("%v: exit code %d, want %q in\n%s%s", c.args, o.code, c.want, o.out, o.err)
		}
	}
	if o := program(t, "sessions", "list", "--store", "attic://x"); o.code != exitUsage || !strings.Contains(o.err, "shelf://NAME") {
		t.Errorf("an unknown kind: exit code %d\n%s", o.code, o.err)
	}
}
