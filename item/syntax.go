// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// MaxDepth is how deep arrays and objects may nest in what this package reads.
const MaxDepth = jsonx.MaxDepth // 10 000

// DefaultMaxSize is how many bytes one JSON text may have, unless [SetMaxSize]
// says otherwise: a body, an event, an item.
const DefaultMaxSize = 256 << 20

var maxSize atomic.Int64 // 0 is the default

// SetMaxSize sets how many bytes one JSON text may have that this package reads
// or puts into another, for the whole program, and returns what it was. 0 means
// [DefaultMaxSize]. A text is in memory before this package sees it, so this is
// the last line: what bounds memory are the limits of whoever reads from a
// socket or a file.
func SetMaxSize(bytes int) (old int) {
	return cmp.Or(int(maxSize.Swap(int64(max(bytes, 0)))), DefaultMaxSize)
}

// checkSize reports a text that is too large.
func checkSize(s string) error {
	limit := cmp.Or(int(maxSize.Load()), DefaultMaxSize)
	if len(s) <= limit {
		return nil
	}
	return &SyntaxError{Offset: limit, Problem: fmt.Sprintf("larger than %d bytes", limit)}
}

// A SyntaxError reports text that is not JSON, or not JSON that this package
// accepts: RFC 8259 in UTF-8, nested at most [MaxDepth] deep, of at most
// [DefaultMaxSize] bytes.
type SyntaxError struct {
	// Offset is the byte at which reading stopped, counted from 0.
	Offset int
	// Problem says what is wrong there.
	Problem string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Problem)
}

// syntaxError makes an error of the scanner one of this package.
func syntaxError(err error) error {
	if e, ok := err.(*jsonx.SyntaxError); ok {
		return (*SyntaxError)(e)
	}
	return err
}

// checkJSON accepts exactly one value with white space around it.
func checkJSON(s string) error {
	_, err := trimValue(s)
	return err
}

// trimValue validates s as one value and returns it without the white space
// around it.
func trimValue(s string) (string, error) {
	if err := checkSize(s); err != nil {
		return "", err
	}
	value, err := jsonx.Whole(s)
	return value, syntaxError(err)
}

// memberOf finds a top-level member of a validated object; the last of equal
// names wins.
func memberOf(s, name string) (JSON, bool) {
	value, ok := jsonx.MemberOf(s, name)
	return JSON(value), ok
}
