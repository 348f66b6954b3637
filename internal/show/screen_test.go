// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// U4: each of several waits has a line, as in a chat; on a low screen, and of many, the newest, with the number
// of the others. All of them go when something is printed.
func TestStatusLines(t *testing.T) {
	for _, c := range []struct {
		waits, rows int
		want        string
	}{
		{1, 24, "… call 1, 9s"},
		{3, 24, "… call 1, 9s\n… call 2, 9s\n… call 3, 9s"},
		{6, 24, "… call 3, 9s (and 2 more)\n… call 4, 9s\n… call 5, 9s\n… call 6, 9s"},
		{3, 5, "… call 3, 9s (and 2 more)"},
	} {
		file, err := os.Create(filepath.Join(t.TempDir(), "screen"))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		s := &Screen{to: file, size: func() (int, int) { return 80, c.rows }}
		for n := range c.waits {
			s.waits = append(s.waits, wait{what: fmt.Sprintf("call %d", n+1), began: now.Add(-9 * time.Second)})
		}
		s.draw(now)
		s.erase()
		want := c.want + "\r\x1b[J"
		if up := strings.Count(c.want, "\n"); up > 0 {
			want = c.want + fmt.Sprintf("\x1b[%dA\r\x1b[J", up)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file.Name()); err != nil || string(got) != want {
			t.Errorf("%d waits on %d rows: %q, %v, want %q", c.waits, c.rows, got, err, want)
		}
	}
}

// What a person types at any time stands on a line of its own below the status lines, which stay as they
// are until something else is waited for. When it is entered, the lines above it go, and it stays.
func TestStatusLinesAboveTyping(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	at := int64(0)
	wrote := func() string {
		b := make([]byte, 1000)
		n, _ := file.ReadAt(b, at)
		at += int64(n)
		return string(b[:n])
	}
	s := &Screen{to: file, size: func() (int, int) { return 20, 24 }}
	s.TypedBelow()
	s.Wait("a", "model")
	began := time.Date(2026, 3, 1, 14, 5, 6, 0, time.Local)
	s.waits[0].began = began
	later := began.Add(time.Hour)
	want := func(what, text string) {
		t.Helper()
		if got := wrote(); got != text {
			t.Errorf("%s: %q, want %q", what, got, text)
		}
	}
	s.draw(later)
	want("a wait", "… model, since 14:…\n")
	s.draw(later.Add(time.Second))
	want("the same wait, later", "")
	s.Entered("a line of 26 columns there")
	want("a line is entered", "\x1b[3A\r\x1b[Ja line of 26 columns there\n")
	s.Entered("without a status line")
	want("a line without a status line", "")
	s.draw(time.Now().Add(time.Hour))
	want("the wait again", "… model, since 14:…\n")
	s.Wait("b", "call")
	s.waits[1].began = began
	s.draw(time.Now().Add(time.Hour))
	want("another wait", "\x1b[1A\r\x1b[J… model, since 14:…\n… call, since 14:0…\n")
}
