// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
)

func TestStoreMemory(t *testing.T) {
	storetest.TestStore(t, func(*testing.T) session.Store { return new(session.Memory) })
}

// plain is a store that can do nothing besides.
type plain struct{ session.Store }

func TestStorePlain(t *testing.T) {
	storetest.TestStore(t, func(*testing.T) session.Store { return plain{new(session.Memory)} })
}
