// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// What was written is read, wherever it is kept.
func TestSpool(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	rapid.Check(t, func(rt *rapid.T) {
		s := New(rapid.IntRange(0, 40).Draw(rt, "keep"))
		fill(rt, s)
	})
}

// fill writes pieces, and checks what can be read then.
func fill(rt *rapid.T, s *Spool) {
	var all []byte
	for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 30)).Draw(rt, "writes") {
		all = append(all, p...)
		if n, err := s.Write(p); n != len(p) || err != nil {
			rt.Fatal(n, err)
		}
	}
	s.Seal("unused", "unused")
	got, err := io.ReadAll(s.Reader())
	if err != nil || !bytes.Equal(got, all) || s.Total() != int64(len(all)) || s.Size() != s.Total() {
		rt.Fatalf("%q of %q, %d, %v", got, all, s.Total(), err)
	}
	from := rapid.IntRange(0, len(all)).Draw(rt, "from")
	part := make([]byte, rapid.IntRange(0, len(all)-from).Draw(rt, "n"))
	if n, err := s.ReadAt(part, int64(from)); n != len(part) || err != nil && err != io.EOF || !bytes.Equal(part, all[from:from+n]) {
		rt.Fatalf("%d of %d from %d: %v", n, len(part), from, err)
	}
}

// No file is left behind, also while the Spool is in use, where names can go
// before the files do.
func TestNothingStays(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	s := New(10)
	for range 100 {
		s.Write([]byte("0123456789"))
	}
	s.Seal("", "")
	if s.InMemory() {
		t.Error("there is no file")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 && runtime.GOOS != "windows" {
		t.Errorf("%q", left)
	}
	runtime.KeepAlive(s)
}

// Where there is no room for a file, both ends are kept and what is lost counted.
func TestNoRoom(t *testing.T) {
	var all []byte
	for n := range 1000 {
		all = fmt.Appendf(all, "%d,", n)
	}
	for name, s := range map[string]*Spool{"no folder": New(100), "full": New(100)} {
		if name == "no folder" {
			t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
			t.Setenv("TMP", filepath.Join(t.TempDir(), "none"))
		} else {
			t.Setenv("TMPDIR", t.TempDir())
			t.Setenv("TMP", t.TempDir())
		}
		s.Write(all[:90])
		var held int // how much of the beginning is kept
		if name == "full" {
			s.Write(all[90:200])
			held = 200
			closed, err := os.Open(os.DevNull) // to which nothing can be written
			if err != nil {
				t.Fatal(err)
			}
			defer closed.Close()
			good := s.file
			s.file = closed
			s.Write(all[200:260])
			s.file = good
		} else {
			s.Write(all[90:260])
			held = 100
		}
		for at := 260; at < len(all); at += 7 {
			s.Write(all[at:min(at+7, len(all))])
		}
		s.Seal("[gone]", "[end]")
		got, err := io.ReadAll(s.Reader())
		want := string(all[:held]) + "[gone]" + string(all[len(all)-100:]) + "[end]"
		if lost, why := s.Lost(); err != nil || string(got) != want || lost != int64(len(all)-held-100) || why == nil {
			t.Errorf("%s: %q, %d lost (%v), %v", name, got, lost, why, err)
		}
	}
}
