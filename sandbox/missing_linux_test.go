// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestMissingIsSaid proves that a system says what it does not confine, in sentences
// that name it, and that one with namespaces says nothing about them.
func TestMissingIsSaid(t *testing.T) {
	list := missingOfNamespaces(errors.New("no space left"))
	for _, about := range []string{"no space left", "command lines", "permissions and times", "Unix sockets", "to hosts", "limit of processes"} {
		if !slices.ContainsFunc(list, func(text string) bool { return strings.Contains(text, about) }) {
			t.Errorf("nothing is said about %s: %q", about, list)
		}
	}
	has := Available()
	said := slices.ContainsFunc(has.Missing, func(text string) bool {
		return strings.Contains(text, "without namespaces, programs have no Unix sockets")
	})
	if said == has.Has(Namespaces) {
		t.Errorf("%+v", has)
	}
}
