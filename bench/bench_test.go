// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// BenchmarkRows does the work of every row with every library, for profiles and
// for comparisons between commits.
func BenchmarkRows(b *testing.B) {
	for _, r := range rows(20) {
		for _, l := range r.libs {
			b.Run(r.name+"/"+l.name, func(b *testing.B) {
				b.SetBytes(int64(r.bytes))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := l.run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestRowsAgree proves that the libraries of a row do the same work, and that
// ours keeps to its allocations.
func TestRowsAgree(t *testing.T) {
	for _, r := range rows(20) {
		res, err := measure(r, 1)
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		if r.maxAllocs < 0 {
			continue
		}
		if got := res.allocsPerUnit(); got > r.maxAllocs+0.1 {
			t.Errorf("%s: %.2f allocations a %s, want %g", r.name, got, r.unit, r.maxAllocs)
		}
	}
}
