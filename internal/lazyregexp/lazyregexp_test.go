// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package lazyregexp_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// It finds what the regular expression of package regexp does, and a mistake in one is found by
// the tests of its package.
func TestRegexp(t *testing.T) {
	p := lazyregexp.New(`^(\w+)-(\d+)$`)
	if m := p.FindStringSubmatch("row-12"); len(m) != 3 || m[1] != "row" || m[2] != "12" {
		t.Errorf("got %q", m)
	}
	if p.MatchString("row") || !p.Match([]byte("a-1")) || p.ReplaceAllString("a-1", "$2") != "1" {
		t.Error("another regular expression")
	}
	defer func() {
		if recover() == nil {
			t.Error("a mistake waits for the first use")
		}
	}()
	lazyregexp.New("(")
}
