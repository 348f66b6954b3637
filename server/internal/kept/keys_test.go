// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package kept_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/server/internal/kept"
	"github.com/antiphon-go/antiphon/session"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
)

// beside is a store in which something happens before a session is archived, once.
type beside struct {
	store.Store
	before func(id string)
}

func (b *beside) Archive(ctx context.Context, id string, archived bool) error {
	if do := b.before; do != nil {
		b.before = nil
		do(id)
	}
	return b.Store.Archive(ctx, id, archived)
}

// open opens a book, and returns also what lists its keys.
func open(t *testing.T) (*kept.Book, *beside, func() []string) {
	t.Helper()
	file, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	in := &beside{Store: file}
	b := &kept.Book{In: in, Owner: "red", Prefix: "key-", Tag: "key", Find: func(context.Context, string) error { return nil }}
	return b, in, func() (ids []string) {
		for info, err := range in.List(t.Context(), session.Query{Archived: true, Tags: []string{"key"}}) {
			if err != nil {
				t.Error(err)
			}
			ids = append(ids, info.ID)
		}
		return ids
	}
}

// claim claims a key for which no response was made.
func claim(t *testing.T, b *kept.Book, key string) (release func()) {
	t.Helper()
	made, _, release, err := b.Claim(t.Context(), key, "body")
	if err != nil || made != "" {
		t.Fatal(made, err)
	}
	return release
}

// A key is claimed also if a sweep removes its session before it is locked. V4
func TestClaimBesideSweep(t *testing.T) {
	b, in, keys := open(t)
	in.before = func(id string) {
		if err := in.Delete(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	defer claim(t, b, "k")()
	if got := keys(); len(got) != 1 || in.before != nil {
		t.Errorf("keys: %q", got)
	}
}

// A sweep removes the keys that are old, and leaves those for which a response begins. V4
func TestSweep(t *testing.T) {
	b, _, keys := open(t)
	_, name, release, err := b.Claim(t.Context(), "old", "body")
	if err != nil {
		t.Fatal(err)
	}
	if err := name(t.Context(), "resp_1"); err != nil {
		t.Fatal(err)
	}
	release()
	old := keys()
	defer claim(t, b, "claimed")()
	all := keys()
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{
		{0, all},
		{48 * time.Hour, slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(old, id) })},
	} {
		if err := b.Sweep(t.Context(), time.Now().Add(step.after)); err != nil {
			t.Fatal(err)
		}
		if got := keys(); !slices.Equal(got, step.want) {
			t.Errorf("after %v the keys are %q, want %q", step.after, got, step.want)
		}
	}
}

// A key whose request was refused leaves nothing, and who waited for it has it.
func TestRefusedLeavesNothing(t *testing.T) {
	b, _, keys := open(t)
	_, _, release, err := b.Claim(t.Context(), "k", "body")
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		_, name, release, err := b.Claim(context.Background(), "k", "other body")
		if err == nil {
			err = name(context.Background(), "resp_1")
			release()
		}
		second <- err
	}()
	release()
	if err := <-second; err != nil {
		t.Error(err)
	}
	_, _, release, err = b.Claim(t.Context(), "junk", "body")
	if err != nil {
		t.Fatal(err)
	}
	release()
	if ids := keys(); len(ids) != 1 {
		t.Errorf("keys: %q, want that of the second claim", ids)
	}
	if made, _, _, err := b.Claim(t.Context(), "k", "other body"); err != nil || made != "resp_1" {
		t.Error(made, err)
	}
}
