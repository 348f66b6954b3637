// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package typo measures how far a mistyped name is from a known one, for hints
// such as "did you mean".
package typo

// Distance returns the Levenshtein distance of a and b: how many bytes must be
// inserted, deleted or replaced to make one of the other. It takes time and
// memory in the product of their lengths, so callers bound these.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
