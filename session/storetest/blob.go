// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/antiphon-go/antiphon/session"
)

// some returns n bytes, others for each seed.
func some(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, seed))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func wantBlob(t *testing.T, s session.Blobs, hash session.Hash, want []byte) {
	t.Helper()
	b, size, err := s.OpenBlob(t.Context(), hash)
	if err != nil {
		t.Error(err)
		return
	}
	defer b.Close()
	if size != int64(len(want)) {
		t.Errorf("%d bytes, want %d", size, len(want))
	}
	got, err := io.ReadAll(iotest.HalfReader(b))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("a blob of %d bytes is read as %d others: %v", len(want), len(got), err)
	}
	for at := range int64(len(want) + 2) {
		if at > 3 && at%70_001 != 0 && at < int64(len(want)-2) {
			continue
		}
		part := make([]byte, 5)
		n, err := b.ReadAt(part, at)
		rest := want[min(at, int64(len(want))):]
		if !bytes.Equal(part[:n], rest[:min(5, len(rest))]) || (err == io.EOF) != (n < 5) || err != nil && err != io.EOF {
			t.Errorf("at %d: %d bytes, %v", at, n, err)
		}
	}
}

// J4: blobs are kept by their content and read back whole.
func testBlobs(t *testing.T, s session.Store) {
	b := has[session.Blobs](t, s)
	put(t, s, "a", 0, said("1"))
	for n, size := range []int{0, 1, 5000, 256 << 10, 256<<10 + 1, 1_000_000} {
		data := some(size, uint64(n))
		for range 2 {
			hash, err := b.PutBlob(t.Context(), "a", data)
			if err != nil || hash != session.Hash(sha256.Sum256(data)) {
				t.Fatalf("%x, %v", hash, err)
			}
			wantBlob(t, b, hash, data)
		}
	}
	if _, _, err := b.OpenBlob(t.Context(), session.Hash{1}); !errors.Is(err, session.ErrNoBlob) {
		t.Errorf("one that is not there: got %v, want ErrNoBlob", err)
	}
	wantEntries(t, load(t, s, "a", 0), entries(0, said("1")))
	if _, err := b.PutBlob(t.Context(), "new", []byte("x")); err != nil {
		t.Errorf("for a session that nobody wrote to: %v", err)
	}
	put(t, s, "new", 0, said("1"))
}

// Sweep removes only data that nobody needs, even during concurrent writes.
func testSweep(t *testing.T, s session.Store) {
	b, c := has[session.Blobs](t, s), has[session.Catalog](t, s)
	keep := func(id string, data []byte) session.Hash {
		hash, err := b.PutBlob(t.Context(), id, data)
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	one, both := some(5000, 1), some(300_000, 2)
	ofA, ofBoth := keep("a", one), keep("a", both)
	keep("b", both)
	if swept, err := c.Sweep(t.Context(), false); unleft(&swept, err) != nil || swept != (session.GCStats{}) {
		t.Errorf("nothing is free: swept %+v, %v", swept, err)
	}
	if err := c.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	want := session.GCStats{Blobs: 1, Bytes: 5000}
	for _, dry := range []bool{true, true, false} {
		wantBlob(t, b, ofA, one) // until it is swept
		if swept, err := c.Sweep(t.Context(), dry); unleft(&swept, err) != nil || swept != want {
			t.Errorf("swept %+v, %v, want %+v", swept, err, want)
		}
	}
	if _, _, err := b.OpenBlob(t.Context(), ofA); !errors.Is(err, session.ErrNoBlob) {
		t.Errorf("the swept blob: got %v, want ErrNoBlob", err)
	}
	wantBlob(t, b, ofBoth, both)
	testSweepBeside(t, b, c)
}

// testSweepBeside appends and deletes the same picture in several sessions during
// sweeps.
func testSweepBeside(t *testing.T, s session.Blobs, c session.Catalog) {
	image := session.InputItem{Item: picture(50_000, 9)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var sweeping, writing sync.WaitGroup
	sweeping.Go(func() {
		for ctx.Err() == nil {
			if _, err := c.Sweep(t.Context(), false); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for w := range 4 {
		writing.Go(func() {
			for n := range 15 {
				id := fmt.Sprintf("w%d-%d", w, n)
				if err := s.Append(t.Context(), id, 0, entries(0, image)); err != nil {
					t.Error(err)
					return
				}
				for e, err := range s.Load(t.Context(), id, 0) {
					if err != nil {
						t.Error(err)
					} else if it, err := e.Body.(session.InputItem).Item.Whole(); err != nil || it != image.Item {
						t.Errorf("%s: %v", id, err)
					}
				}
				if err := c.Delete(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	stop()
	sweeping.Wait()
}

// unleft removes the part of the result that depends on the environment.
func unleft(swept *session.GCStats, err error) error {
	swept.Left = ""
	return err
}
