// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
)

// IsNumber reports whether a JSON value is a number.
func IsNumber(s string) bool { return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') }

// Integer returns the value of a JSON number that is an integer, in any notation,
// such as 1.0 or 1e3. ok is false for other values, and for integers that it cannot
// represent exactly.
func Integer(s string) (int64, bool) {
	if n, length := ShortNumber(s); length == len(s) && length > 0 {
		return n, true
	}
	if !IsNumber(s) {
		return 0, false
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	// The number has a fraction or an exponent, or is too large. Beyond 2^53 a
	// float64 does not hold every integer.
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// KindOf returns the kind of a JSON value, for error messages.
func KindOf(s string) string {
	switch {
	case s == "":
		return "nothing"
	case s[0] == '{':
		return "an object"
	case s[0] == '[':
		return "a list"
	case s[0] == '"':
		return "a string"
	case IsNumber(s):
		return fmt.Sprintf("the number %.20s", s)
	default:
		return cmp.Or(s, "nothing")
	}
}

// ShortNumber reads the digits at the start of s as an integer. It returns the
// number of digits, or 0 if they are not a JSON integer of at most 18 digits.
func ShortNumber(s string) (n int64, length int) {
	for length < len(s) && length < 19 && s[length] >= '0' && s[length] <= '9' {
		n = n*10 + int64(s[length]-'0')
		length++
	}
	if length == 19 || length > 1 && s[0] == '0' {
		return 0, 0
	}
	return n, length
}
