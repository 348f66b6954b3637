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
