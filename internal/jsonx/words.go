// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import (
	"encoding/binary"
	"math/bits"
)

// Words that repeat one byte eight times.
const (
	ones   = 0x0101010101010101
	highs  = 0x80 * ones
	quotes = '"' * ones
	slants = '\\' * ones
	blanks = 0x20 * ones
)

// Plain returns the first index at or after i of a byte that a JSON string cannot
// contain directly, or that needs a closer look: a quote, a backslash, a control
// character or a non-ASCII byte. If there is none it returns len(s). It examines
// eight bytes at a time.
func Plain(s string, i int) int {
	b := Bytes(s)
	for n := 0; i+8 <= len(b); n++ {
		if n == shortRun {
			i = plainBlocks(b, i)
			n = 0
			continue
		}
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		i += 8
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x80 {
			return i
		}
	}
	return i
}

// shortRun is the number of words after which a run counts as long, such as an image
// or a file.
const shortRun = 8

// plainBlocks continues in blocks of 32 bytes. It stops at the first block that
// contains a special byte or is incomplete.
func plainBlocks(b []byte, i int) int {
	for ; i+32 <= len(b); i += 32 {
		w := b[i : i+32 : i+32]
		if special(binary.LittleEndian.Uint64(w))|special(binary.LittleEndian.Uint64(w[8:]))|
			special(binary.LittleEndian.Uint64(w[16:]))|special(binary.LittleEndian.Uint64(w[24:])) != 0 {
			break
		}
	}
	return i
}

// special sets the high bit of each special byte of w. A subtraction borrows from
// the byte above only if the byte below is special itself, so the lowest bit set is
// always right. Higher ones may be wrong.
func special(w uint64) uint64 {
	return (w | (w - blanks) | ((w ^ quotes) - ones) | ((w ^ slants) - ones)) & highs
}

// load returns eight bytes of s as a word.
func load(s string, i int) uint64 { return binary.LittleEndian.Uint64(Bytes(s)[i:]) }
