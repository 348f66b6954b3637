// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
)

// IsNumber reports whether a value is a number.
func IsNumber(s string) bool { return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') }

// Integer reads a JSON number that is a whole number, however it is spelled.
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
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// KindOf names the kind of a JSON value for an error message.
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

// ShortNumber reads a whole number of up to 18 digits and returns its length,
// 0 for any other.
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
