// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A number of a decoded value is a float64 that stands for its shortest decimal, or a
// [*big.Rat] if the literal has more digits than a float64 holds. The text of a call
// is what a tool gets, so a check of the rounded number would be a check of another
// number.

const (
	floatDigits = 15      // each decimal with so many digits has its own float64
	floatWhole  = 1 << 53 // each whole number up to here has its own float64
	maxDigits   = 1000    // more digits, or a larger exponent, take too long to check
)

// parseValue decodes JSON, with numbers as described above. A number beyond the range
// of a float64 is an error.
func parseValue(text string) (v any, err error) {
	err = json.Unmarshal([]byte(text), &v)
	if err != nil || !hasLongNumber(text) {
		return v, err
	}
	v = nil // the unmarshaler must not meet values of the first pass
	err = json.Unmarshal([]byte(text), &v, exactNumbers)
	return v, err
}

var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	text, err := dec.ReadValue()
	if err == nil {
		*v, err = numberOf(string(text))
	}
	return err
}))

// hasLongNumber reports whether JSON has a number that a float64 may not hold.
func hasLongNumber(text string) bool {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '-' || '0' <= c && c <= '9':
			rest := strings.TrimLeft(text[i:], "+-.eE0123456789")
			number := text[i : len(text)-len(rest)]
			if len(number) > floatDigits || strings.ContainsAny(number, "eE") {
				return true
			}
			i += len(number) - 1
		}
	}
	return false
}

// plainIntegers returns JSON in which whole numbers that are written with a point or
// an exponent, such as 10.0, are written without. It does not round: 2^53+1 keeps its
// last digit.
func plainIntegers(text string) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			end := i + 1
			for ; end < len(text) && text[end] != '"'; end++ {
				if text[end] == '\\' {
					end++
				}
			}
			end = min(end+1, len(text))
			out = append(out, text[i:end]...)
			i = end
		case c == '-' || '0' <= c && c <= '9':
			number := text[i : len(text)-len(strings.TrimLeft(text[i:], "+-.eE0123456789"))]
			out = append(out, plainInteger(number)...)
			i += len(number)
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// plainInteger returns a number without point and exponent if it is whole and may fit
// an integer of Go, and otherwise the number itself.
func plainInteger(number string) string {
	const digits = 20 // of the largest uint64
	if !strings.ContainsAny(number, ".eE") {
		return number
	}
	v, err := numberOf(number)
	if err != nil {
		return number
	}
	r, ok := v.(*big.Rat)
	if !ok {
		r, ok = new(big.Rat).SetString(number)
	}
	if !ok || !r.IsInt() || len(r.Num().String()) > digits {
		return number
	}
	return r.Num().String()
}

// numberOf returns the number that a literal stands for.
func numberOf(text string) (any, error) {
	digits, exponent := text, "0"
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		digits, exponent = text[:i], text[i+1:]
	}
	if n, err := strconv.Atoi(exponent); err != nil || n > maxDigits || n < -maxDigits || len(digits) > maxDigits {
		return nil, fmt.Errorf("a number has more than %d digits or an exponent beyond %[1]d, and cannot be checked", maxDigits)
	}
	significant := strings.TrimLeft(strings.ReplaceAll(digits, ".", ""), "-0")
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && (significant == "" || len(significant) <= floatDigits && math.Abs(f) >= 0x1p-1022) {
		return f, nil
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	if r.IsInt() && math.Abs(f) <= floatWhole && r.Num().IsInt64() && big.NewInt(int64(f)).Cmp(r.Num()) == 0 {
		return f, nil
	}
	return r, nil
}

// wholeNumber returns a whole number exactly.
func wholeNumber(n int64) any {
	if -floatWhole <= n && n <= floatWhole {
		return float64(n)
	}
	return new(big.Rat).SetInt64(n)
}

func isNumber(v any) bool {
	switch v.(type) {
	case float64, *big.Rat:
		return true
	}
	return false
}

// compareNumbers compares two numbers as [cmp.Compare] does.
func compareNumbers(a, b any) int {
	x, isFloat := a.(float64)
	y, both := b.(float64)
	if isFloat && both {
		return cmp.Compare(x, y)
	}
	return ratOf(a).Cmp(ratOf(b))
}

// divides reports whether n is a multiple of m, which is not 0. Fractions are divided
// exactly: 0.07 is a multiple of 0.01, and 0.07/0.01 of floats is not whole.
func divides(m, n any) bool {
	x, isFloat := n.(float64)
	y, both := m.(float64)
	if isFloat && both && x == math.Trunc(x) && y == math.Trunc(y) && math.Abs(x) <= floatWhole && math.Abs(y) <= floatWhole {
		return math.Mod(x, y) == 0
	}
	return new(big.Rat).Quo(ratOf(n), ratOf(m)).IsInt()
}

// ratOf returns a number exactly. A float64 stands for its shortest decimal.
func ratOf(v any) *big.Rat {
	if r, ok := v.(*big.Rat); ok {
		return r
	}
	f, _ := v.(float64)
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return r
}

// appendRat writes a number as a float64 of the same value is written.
func appendRat(b []byte, r *big.Rat) []byte {
	places, _ := r.FloatPrec()
	return append(b, r.FloatString(places)...)
}
