// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/antiphon-go/antiphon/decode"
)

// BenchmarkDecoder measures what a decoder of a program with all the packages of antiphon costs
// besides decoding: its image ends after the first bytes.
func BenchmarkDecoder(b *testing.B) {
	for b.Loop() {
		if _, _, err := (decode.Images{}).Fit([]byte("\x89PNG\r\n\x1a\n")); err == nil {
			b.Fatal("an image without a header was read")
		}
	}
}
