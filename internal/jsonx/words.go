// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import (
	"encoding/binary"
	"math/bits"
)

// Words with the same byte eight times.
const (
	ones   = 0x0101010101010101
	highs  = 0x80 * ones
	quotes = '"' * ones
	slants = '\\' * ones
	blanks = 0x20 * ones
)

// Plain returns the first index at or after i of a byte that a JSON string
// cannot hold as it is, or that needs a closer look: a quote, a backslash, a
// control character, a byte beyond ASCII. Without one it returns len(s). It
// looks at eight bytes at a time.
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

// shortRun is after how many words a run counts as long: an image, a file.
const shortRun = 8

// plainBlocks goes on in blocks of 32 bytes, and stops at the first one that
// holds a special byte or is not whole.
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

// special sets the high bit of the bytes of w that are special. A subtraction
// borrows from the byte above only where the one below is special itself, so
// the lowest bit that is set is right.
func special(w uint64) uint64 {
	return (w | (w - blanks) | ((w ^ quotes) - ones) | ((w ^ slants) - ones)) & highs
}

// load returns eight bytes of s as a word.
func load(s string, i int) uint64 { return binary.LittleEndian.Uint64(Bytes(s)[i:]) }
