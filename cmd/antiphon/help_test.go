// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestRunHelpIsGrouped: the flags of run stand under headings, none but --help
// outside of them.
func TestRunHelpIsGrouped(t *testing.T) {
	o := program(t, "run", "--help")
	at := 0
	for _, g := range flagGroups {
		i := strings.Index(o.out, "\n"+g.Title+"\n")
		if i < at {
			t.Errorf("%q stands at %d, behind %d", g.Title, i, at)
		}
		at = i
	}
	_, flags, _ := strings.Cut(o.out, "\nFlags:\n")
	loose, _, _ := strings.Cut(flags, "\n\n")
	if strings.Count(loose, "--") != 1 || !strings.Contains(loose, "--help") {
		t.Errorf("without a heading:\n%s", loose)
	}
}
