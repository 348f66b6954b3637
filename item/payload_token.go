// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// A token stands in an item's text instead of the base64 of a payload that is
// held elsewhere. As text within a string it goes with whatever is made of the
// item: an edit, a decoded value, another form. It is
//
//	^ 26 letters drawn by the process, 8 digits the holder, 64 digits the hash, 12 digits the size
//
// so that nothing from outside can hold one by chance or design: nobody knows
// the letters, for no token leaves the process. It needs no escapes, and its
// first character is in no base64 and hardly in any text, which makes looking
// for it fast.
type token struct {
	holder uint32
	hash   [32]byte
	size   int64
}

const (
	secretLen = 26 // of rand.Text: at least 128 bits
	headLen   = 1 + secretLen
	tokenLen  = headLen + 8 + 64 + 12
	maxHeld   = 1<<48 - 1 // bytes of a payload
)

// tokenHead is what all tokens of this process begin with; nil until there is a
// [Holder], and so any token.
var tokenHead atomic.Pointer[string]

// drawHead makes the head of the tokens.
var drawHead = sync.OnceFunc(func() {
	head := "^" + rand.Text()[:secretLen]
	tokenHead.Store(&head)
})

func (t token) append(dst []byte) []byte {
	dst = append(dst, *tokenHead.Load()...)
	dst = appendHex(dst, uint64(t.holder), 8)
	dst = hex.AppendEncode(dst, t.hash[:])
	return appendHex(dst, uint64(t.size), 12)
}

func appendHex(dst []byte, v uint64, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[v>>shift&15])
	}
	return dst
}

// encoded is the length of the base64 that the token stands for.
func (t token) encoded() int { return base64.StdEncoding.EncodedLen(int(t.size)) }

// nextToken returns the index at or after i at which a token begins, or -1.
func nextToken(s string, i int) int {
	head := tokenHead.Load()
	if head == nil {
		return -1
	}
	n := strings.Index(s[i:], *head)
	if n < 0 {
		return -1
	}
	return i + n
}

// readToken reads the token that begins at i. It reports false if it is not
// whole: somebody cut the text.
func readToken(s string, i int) (t token, ok bool) {
	if i+tokenLen > len(s) {
		return token{}, false
	}
	rest := s[i+headLen : i+tokenLen]
	holder, err1 := strconv.ParseUint(rest[:8], 16, 32)
	_, err2 := hex.Decode(t.hash[:], jsonx.Bytes(rest[8:72]))
	size, err3 := strconv.ParseUint(rest[72:], 16, 48)
	t.holder, t.size = uint32(holder), int64(size)
	return t, err1 == nil && err2 == nil && err3 == nil && size > 0
}

// eachToken visits the tokens in a text. Ok is false for one that is not whole.
func eachToken(s string, visit func(at int, t token, ok bool)) {
	for i := nextToken(s, 0); i >= 0; {
		t, ok := readToken(s, i)
		visit(i, t, ok)
		next := i + headLen
		if ok {
			next = i + tokenLen
		}
		i = nextToken(s, next)
	}
}
