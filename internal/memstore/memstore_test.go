// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/internal/memstore"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
)

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T) session.Store {
		s := new(memstore.DB).Open(memstore.Options{})
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
