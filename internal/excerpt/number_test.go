// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package excerpt_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/internal/excerpt"
)

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1e-06: "0.000001", 1.0 / 3: "0.333333", 5: "5", 1234567.89: "1234570", 0.1 + 0.2: "0.3", -2.5e-7: "-0.00000025"} {
		if got := excerpt.Number(x); got != want {
			t.Errorf("%g is %s, want %s", x, got, want)
		}
	}
}
