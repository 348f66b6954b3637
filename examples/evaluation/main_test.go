// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// Scores count each run, say why one failed, and give the share that passed.
func TestEvaluation(t *testing.T) {
	var out strings.Builder
	share, err := run(t.Context(), &out, 2)
	if err != nil || share < 0.66 || share > 0.67 {
		t.Errorf("%v %v", share, err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range [][]string{{"looks it up", "2 of 2"}, {"knows its limits", "0 of 2", "it calls [weather], not []"}, {"is polite", "2 of 2"}} {
		for _, w := range want {
			if !strings.Contains(lines[i], w) {
				t.Errorf("%q is missing in %q", w, lines[i])
			}
		}
	}
}
