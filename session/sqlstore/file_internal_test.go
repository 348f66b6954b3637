// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Each cause that the operating system has against writing has words and a hint
// of its own, also where SQLite gives the same code for all of them.
func TestCausesHaveTheirOwnWords(t *testing.T) {
	seen := map[string]bool{}
	for _, test := range []struct {
		err  error
		want string
	}{
		{syscall.ENOSPC, "the disk is full"},
		{syscall.EDQUOT, "quota"},
		{syscall.EFBIG, "may not grow"},
		{syscall.EROFS, "only be read"},
		{syscall.EACCES, "may not be written"},
		{syscall.ENOENT, "does not exist"},
	} {
		problem, hint := explain(fmt.Errorf("wrapped: %w", &os.PathError{Op: "write", Path: "x", Err: test.err}))
		if !strings.Contains(problem, test.want) || hint == "" || seen[problem] || seen[hint] {
			t.Errorf("%v: %q, hint %q", test.err, problem, hint)
		}
		seen[problem], seen[hint] = true, true
	}
	if problem, _ := explain(fs.ErrClosed); problem != "" {
		t.Errorf("another error: %q", problem)
	}
	if problem, _ := explain(nil); problem != "" {
		t.Errorf("no error: %q", problem)
	}
}
