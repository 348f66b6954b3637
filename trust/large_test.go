// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// largeVariable names the store that a copy of this test reads and changes.
const largeVariable = "ANTIPHON_TEST_TRUST_LARGE"

// K1: what a store of 100 MB costs is time and not memory, whatever is done with it.
func TestLargeStoreNeedsLittleMemory(t *testing.T) {
	if path := os.Getenv(largeVariable); path != "" {
		useLarge(path)
	}
	const grants = 2000
	size := 50 << 10
	if testing.Short() {
		size /= 8
	}
	path := filepath.Join(t.TempDir(), "trust.jsonl")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for n := range grants {
		g := grantAt(fmt.Sprintf("/%d.md", n))
		for len(g.Sources)*130 < size { // about as many bytes as a source's line has
			g.Sources = append(g.Sources, Source{Path: fmt.Sprintf("/included/%d/%d.md", n, len(g.Sources)), Hash: g.Hash})
		}
		if err := json.MarshalWrite(w, g); err != nil {
			t.Fatal(err)
		}
		_ = w.WriteByte('\n')
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), largeVariable+"="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	n, seen := 0, map[string]bool{}
	for g, err := range Open(path).All() {
		if err != nil {
			t.Fatal(err)
		}
		n++
		seen[g.Path] = true
	}
	if n != grants || len(seen) != grants || seen["/5.md"] || !seen["/new.md"] {
		t.Errorf("%d grants of %d files", n, len(seen))
	}
}

// useLarge does all that can be done with a store, and exits with an error if it needs much memory.
func useLarge(path string) {
	ctx, s := context.Background(), Open(path)
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	_, _, err := s.Find(Claim{Path: "/none.md"})
	fail(err)
	fail(s.Add(ctx, grantAt("/new.md")))
	_, err = s.Remove(ctx, func(g Grant) bool { return g.Path == "/5.md" })
	fail(err)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if got := memory.HeapSys >> 20; got > 40 { // most of it is the buffer of a line, and garbage
		fail(fmt.Errorf("the heap has %d MB", got))
	}
	fmt.Printf("the heap has %d MB\n", memory.HeapSys>>20)
	os.Exit(0)
}

// K1: two processes that add, replace and remove at once neither lose nor double a grant, also of a
// large store.
func TestWritersOfOneStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trust.jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first, second := Open(path), Open(path) // the lock is one of the file, not of the value
	const each = 25
	done := make(chan error)
	for name, s := range map[string]*Store{"a": first, "b": second} {
		go func() {
			done <- func() error {
				for n := range each {
					mine := fmt.Sprintf("/%s%d.md", name, n)
					for _, path := range []string{mine, "/shared.md", mine} { // the second time replaces the first
						if err := s.Add(context.Background(), grantAt(path)); err != nil {
							return err
						}
					}
					if n%5 == 4 {
						removed, err := s.Remove(context.Background(), func(g Grant) bool { return g.Path == mine })
						if err != nil || len(removed) != 1 {
							return fmt.Errorf("%s was there %d times: %w", mine, len(removed), err)
						}
					}
				}
				return nil
			}()
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	list, err := first.List()
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, g := range list {
		got = append(got, g.Path)
	}
	for n := range each {
		if n%5 != 4 {
			want = append(want, fmt.Sprintf("/a%d.md", n), fmt.Sprintf("/b%d.md", n))
		}
	}
	want = append(want, "/shared.md")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// K1: a change writes other lines as they are, also what a newer version wrote into them.
func TestOtherLinesStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trust.jsonl")
	line := `{ "path": "/a.md", "hash": "` + strings.Repeat("ab", 32) + `", "newer": [1, 2] }` + "\n"
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Open(path)
	if err := s.Add(t.Context(), GrantOf(Claim{Path: "/b.md"}, time.Unix(0, 0))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove(t.Context(), func(g Grant) bool { return g.Path == "/none" }); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), line) {
		t.Errorf("%s, %v", text, err)
	}
}
