// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package excerpt

import "strconv"

// Number returns a number, such as a cost, with six digits and without an exponent.
func Number(x float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	if err != nil {
		rounded = x
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
