// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPast proves that every line that is kept is the one that was added, whichever is asked for and in whatever order, and that what
// is in memory is bounded.
func TestPast(t *testing.T) {
	texts := []string{"", "a", "ä\x1b[2mb", strings.Repeat("wide ", 50), strings.Repeat("x", mostPacked), strings.Repeat("y", 3*mostRecent)}
	rapid.Check(t, func(r *rapid.T) {
		var p past
		defer p.close()
		var all []string
		for range rapid.IntRange(1, 6).Draw(r, "parts") {
			which := rapid.IntRange(0, len(texts)-1).Draw(r, "text")
			lines := rapid.IntRange(1, 600).Draw(r, "lines")
			if which > 3 { // long ones
				lines = 1 + lines%4
			}
			for range lines {
				one := texts[which] + fmt.Sprint(len(all)%7)
				if all = append(all, one); p.add(one) {
					r.Fatal("lines are dropped")
				}
			}
			if p.bytes > mostRecent && len(p.recent) > 1 {
				r.Fatalf("%d bytes are in memory", p.bytes)
			}
			if p.begin() != 0 || p.end() != len(all) {
				r.Fatalf("lines %d to %d of %d", p.begin(), p.end(), len(all))
			}
			for range 3 {
				from := rapid.IntRange(0, len(all)-1).Draw(r, "from")
				for i := from; i < min(from+50, len(all)); i++ {
					if p.line(i) != all[i] {
						r.Fatalf("line %d is %.50q, want %.50q", i, p.line(i), all[i])
					}
				}
			}
		}
	})
}

// TestPastIsHidden proves that the file of lines has none of their words, and is of no use twice with one key.
func TestPastIsHidden(t *testing.T) {
	var p past
	defer p.close()
	for i := range 5000 {
		p.add(fmt.Sprintf("a secret, line %d", i))
	}
	read := func() []byte {
		text, err := io.ReadAll(io.NewSectionReader(p.file, 0, p.size))
		if err != nil || len(text) < mostPacked {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		return text
	}
	first := read()
	if bytes.Contains(first, []byte("secret")) {
		t.Error("words stand in the file")
	}
	p.size = mostFile + 1 // a new file
	for i := range 5000 {
		p.add(fmt.Sprintf("a secret, line %d", i))
	}
	if begin := p.begin(); begin == 0 || p.line(begin) != fmt.Sprintf("a secret, line %d", begin) && p.line(begin) != fmt.Sprintf("a secret, line %d", begin-5000) {
		t.Errorf("the first line is %d: %q", begin, p.line(begin))
	}
	if again := read(); bytes.Equal(first[:1000], again[:1000]) {
		t.Error("a key is used twice")
	}
}

// TestPastWithoutFile proves that without room for a file the newest lines are kept, and that lines that a file does not give back do no
// harm.
func TestPastWithoutFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the folder of temporary files is another variable")
	}
	var q past
	defer q.close()
	for i := range 5000 {
		q.add(fmt.Sprintf("line %d", i))
	}
	if err := q.file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if got := q.line(3); got != unreadable {
		t.Errorf("line 3 is %q", got)
	}
	t.Setenv("TMPDIR", t.TempDir()+string(os.PathSeparator)+"nowhere")
	var p past
	defer p.close()
	dropped := false
	for i := range 200_000 {
		dropped = p.add(fmt.Sprintf("line %d", i)) || dropped
	}
	if !dropped || p.bytes > mostWithout || p.begin() == 0 || p.end() != 200_000 {
		t.Errorf("%d bytes of the lines %d to %d", p.bytes, p.begin(), p.end())
	}
	for _, i := range []int{p.begin(), 199_999} {
		if got := p.line(i); got != fmt.Sprintf("line %d", i) {
			t.Errorf("line %d is %q", i, got)
		}
	}
}
