// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// T6: both kinds keep what they are given, once, under an id of its content.
func TestStore(t *testing.T) {
	for name, s := range map[string]Store{"memory": new(MemoryStore), "directory": &DirStore{Dir: filepath.Join(t.TempDir(), "a", "b")}} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := s.Get(t.Context(), idOf([]byte("x")), 0, 1); !errors.Is(err, ErrNotStored) {
				t.Errorf("before anything is stored: %v", err)
			}
			data := []byte("0123456789")
			id, err := s.Put(t.Context(), data)
			if err != nil || !isID(id) {
				t.Fatal(id, err)
			}
			data[0] = 'x' // the caller's again
			for _, c := range []struct {
				offset, n int
				want      string
			}{{0, 100, "0123456789"}, {3, 4, "3456"}, {9, 4, "9"}, {10, 4, ""}, {99, 4, ""}, {-1, 2, "01"}, {0, -1, ""}, {2, math.MaxInt, "23456789"}} {
				got, size, err := s.Get(t.Context(), id, c.offset, c.n)
				if err != nil || string(got) != c.want || size != 10 {
					t.Errorf("%d bytes from %d: %q of %d, %v", c.n, c.offset, got, size, err)
				}
				clear(got)
			}
			if again, err := s.Put(t.Context(), []byte("0123456789")); err != nil || again != id {
				t.Errorf("%s %v", again, err)
			}
			if empty, err := s.Put(t.Context(), nil); err != nil || empty == id {
				t.Errorf("%s %v", empty, err)
			} else if _, size, err := s.Get(t.Context(), empty, 0, 5); size != 0 || err != nil {
				t.Error(size, err)
			}
			for _, bad := range []string{"", ".", "..", "../" + id, id + "/", id[:63], id + "0", "a/../" + id, "\x00", string(bytes.ToUpper([]byte("abcdef"))) + id[6:]} {
				if _, _, err := s.Get(t.Context(), bad, 0, 1); !errors.Is(err, ErrNotStored) {
					t.Errorf("%q: %v", bad, err)
				}
			}
		})
	}
}

// One file for each output, named by its content, also when many store the same
// at once; a damaged one is made anew; nothing is left behind.
func TestDirStore(t *testing.T) {
	dir := t.TempDir()
	s := &DirStore{Dir: dir}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if _, err := s.Put(t.Context(), []byte{byte(i % 2), 1, 2}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	id := idOf([]byte{0, 1, 2})
	if err := os.WriteFile(filepath.Join(dir, id), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), []byte{0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.Get(t.Context(), id, 0, 10); err != nil || !bytes.Equal(got, []byte{0, 1, 2}) {
		t.Errorf("%q %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%v: others can read it (%v)", e, err)
		}
	}
	// A link that somebody put there leads nowhere.
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := idOf([]byte("link"))
	if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
		t.Skip("no links here: ", err)
	}
	if got, _, err := s.Get(t.Context(), link, 0, 10); err == nil {
		t.Errorf("a link was followed: %q", got)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&DirStore{Dir: file}).Put(t.Context(), []byte("x")); err == nil {
		t.Error("stored in a file")
	}
}

// K7: a file is believed only if it has the hash that it is named by, and one that
// has not is made anew.
func TestOutputsAreVerified(t *testing.T) {
	dir := t.TempDir()
	o := &DirStore{Dir: dir}
	data := bytes.Repeat([]byte("0123456789abcdef"), 150_000) // more than two pieces
	id, err := o.Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{-1, 0, 5, 1<<20 - 3, 1 << 20, 2<<20 + 7, len(data) - 4, len(data), len(data) + 9} {
		got, size, err := o.Get(t.Context(), id, at, 1<<20+10)
		from := min(max(at, 0), len(data))
		if want := data[from:min(from+1<<20+10, len(data))]; err != nil || size != len(data) || !bytes.Equal(got, want) {
			t.Errorf("from %d: %d bytes of %d, want %d, %v", at, len(got), size, len(want), err)
		}
	}
	file := filepath.Join(dir, id)
	changed := bytes.Clone(data)
	changed[len(changed)-1]++
	for name, text := range map[string][]byte{"changed": changed, "cut off": data[:100], "empty": nil, "longer": append(bytes.Clone(data), 'x')} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _, err := o.Get(t.Context(), id, 0, 10); err == nil || !strings.Contains(err.Error(), "changed or damaged") {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if again, err := o.Put(t.Context(), data); err != nil || again != id {
			t.Fatal(err)
		}
		if got, _, err := o.Get(t.Context(), id, 0, 10); err != nil || !bytes.Equal(got, data[:10]) {
			t.Errorf("%s, stored again: %q %v", name, got, err)
		}
	}
	for _, other := range []string{"", "../" + id, strings.ToUpper(id), strings.Repeat("0", len(id))} {
		if _, _, err := o.Get(t.Context(), other, 0, 1); !errors.Is(err, ErrNotStored) {
			t.Errorf("%q: %v", other, err)
		}
	}
	if err := os.Rename(file, file[:len(file)-32]); err != nil { // as older versions named it
		t.Fatal(err)
	}
	if got, _, err := o.Get(t.Context(), id[:32], 3, 4); err != nil || string(got) != "3456" {
		t.Errorf("under an id of an older version: %q %v", got, err)
	}
	if _, _, err := o.Get(t.Context(), id, 3, 4); !errors.Is(err, ErrNotStored) {
		t.Errorf("under a name that is not there: %v", err)
	}
	none, err := o.Put(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, size, err := o.Get(t.Context(), none, 0, 1); err != nil || len(got)+size > 0 {
		t.Errorf("of nothing: %q %v", got, err)
	}
}
