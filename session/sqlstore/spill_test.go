// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool/output"
)

// What one run stores another finds, as long as the session is there: it reads
// as MemorySpill does, under the same id.
func TestSpill(t *testing.T) {
	s, file := newSQLite(t)
	var memory output.MemoryStore
	data := bytes.Repeat([]byte("0123456789"), 60_000)
	id, err := agent.BlobOutputs(s, "a").Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := agent.BlobOutputs(s, "a").Put(t.Context(), data); err != nil || again != id {
		t.Errorf("the same data: %q and %q, %v", id, again, err)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(id) {
		t.Errorf("the id is %q", id)
	}
	inMemory, err := memory.Put(t.Context(), data)
	if err != nil || inMemory != id {
		t.Fatal(inMemory, id, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, file)
	spill := agent.BlobOutputs(s, "a")
	for _, at := range []int{-5, 0, 7, 262_143, 262_144, 599_990, 600_000, 700_000} {
		for _, n := range []int{-1, 0, 1, 20, 300_000, 1 << 30} {
			got, size, err := spill.Get(t.Context(), id, at, n)
			want, wantSize, wantErr := memory.Get(t.Context(), inMemory, at, n)
			if !bytes.Equal(got, want) || size != wantSize || err != wantErr {
				t.Errorf("%d bytes at %d: %d bytes of %d, %v, want %d", n, at, len(got), size, err, len(want))
			}
		}
	}
	for _, id := range []string{"", "x", id[:len(id)-1] + "g", "../../etc/passwd", string(bytes.Repeat([]byte("0"), 64))} {
		if _, _, err := spill.Get(t.Context(), id, 0, 1); !errors.Is(err, output.ErrNotStored) {
			t.Errorf("%q: got %v, want ErrNotStored", id, err)
		}
	}
	mustAppend(t, s, "a", 0, session.RunStarted{})
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := spill.Get(t.Context(), id, 0, 1); !errors.Is(err, output.ErrNotStored) {
		t.Errorf("the session is gone: got %v, want ErrNotStored", err)
	}
}
