// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// TestStore is what a test of a store calls.
func ExampleTestStore() {
	// func TestMyStore(t *testing.T) {
	_ = func(t *testing.T) {
		storetest.TestStore(t, func(t *testing.T) session.Store {
			return new(session.Memory) // and with t.Cleanup what closes it
		})
	}
}
