// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
)

// J3: a command that changes or deletes a session takes no beginning of an id.
func TestChangesNeedAWholeNameOrID(t *testing.T) {
	ctx := context.Background()
	store := &session.Memory{}
	id := host.NewSessionID("plan")
	if err := store.Create(ctx, session.Info{ID: id, Name: "plan", Path: "/agent.md"}); err != nil {
		t.Fatal(err)
	}
	for _, whole := range []string{id, "plan"} {
		if info, err := findWhole(ctx, store, whole, false); err != nil || info.ID != id {
			t.Errorf("%s means %q: %v", whole, info.ID, err)
		}
	}
	part := id[:len(id)-5]
	if info, err := find(ctx, store, part, false); err != nil || info.ID != id {
		t.Errorf("%s means %q: %v", part, info.ID, err)
	}
	if _, err := find(ctx, store, "paln", false); err == nil || !strings.Contains(err.Error(), `session "paln" not found; similar name: plan; `) {
		t.Errorf("a slip: %v", err)
	}
	if _, err := findWhole(ctx, store, part, false); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("%s: %v, want an error that names %s", part, err, id)
	}
}

// How to go on stands behind the page.
func TestMoreStandsBehindThePage(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "s.db")
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<user>Hello?</user>\n")
	for _, name := range []string{"a", "b"} {
		program(t, "run", file, "--session", name, "--store", store)
	}
	var both bytes.Buffer
	if code := run(t.Context(), []string{"sessions", "--store", store, "list", "--limit", "1"}, nil, stdio{strings.NewReader(""), &both, &both}); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if lines := strings.Split(strings.TrimSpace(both.String()), "\n"); len(lines) != 3 || !strings.Contains(lines[2], "there are more") {
		t.Errorf("%q", lines)
	}
}
