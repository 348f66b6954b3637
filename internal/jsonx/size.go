// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import (
	"cmp"
	"fmt"
	"sync/atomic"
)

// DefaultMaxSize is the maximum size in bytes of one JSON text, unless [SetMaxSize]
// changes it.
const DefaultMaxSize = 256 << 20

// maxSize is atomic because SetMaxSize may be called while other goroutines read.
var maxSize atomic.Int64

func init() { maxSize.Store(DefaultMaxSize) }

// SetMaxSize sets the maximum size in bytes of a text and returns the previous
// limit. 0 means [DefaultMaxSize].
func SetMaxSize(bytes int) (old int) {
	return int(maxSize.Swap(int64(cmp.Or(max(bytes, 0), DefaultMaxSize))))
}

// CheckSize returns a [*SyntaxError] if the text is too large. It is small enough to
// be inlined, because it is called for every event of a stream.
func CheckSize(s string) error {
	if int64(len(s)) > maxSize.Load() {
		return tooLarge()
	}
	return nil
}

//go:noinline
func tooLarge() error {
	limit := int(maxSize.Load())
	return &SyntaxError{Offset: limit, Problem: fmt.Sprintf("larger than %d bytes", limit)}
}

// Checked is like [Whole], and also limits the size of s.
func Checked(s string) (value string, err error) {
	if err := CheckSize(s); err != nil {
		return "", err
	}
	return Whole(s)
}
