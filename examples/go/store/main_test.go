// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// The suite holds for any store; it tests the optional interfaces that a store has.
func TestFolder(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T) session.Store { return &Folder{dir: t.TempDir()} })
}

func TestStore(t *testing.T) {
	store := &Folder{dir: t.TempDir()}
	for _, want := range []string{"has 6 entries", "has 12 entries"} {
		var out strings.Builder
		if err := run(t.Context(), store, &out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: %s", err, &out)
		}
	}
}
