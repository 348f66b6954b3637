// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/antiphon-go/antiphon/item"
)

// Helpers that all stores share.

// callerKey is the context key of the context passed to [WithoutCancel].
type callerKey struct{}

// WithoutCancel returns a copy of ctx that is not cancelled with it, because what
// has happened must be written. [Caller] still returns ctx.
func WithoutCancel(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithValue(context.WithoutCancel(ctx), callerKey{}, ctx)
}

// Caller returns the context that [WithoutCancel] made ctx from, or ctx itself. A
// store that retries a failed operation stops waiting soon after the caller's
// context ends.
func Caller(ctx context.Context) context.Context {
	if c, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return c
	}
	return ctx
}

// Conflict returns the error of a store for an append that expected entry number
// after to be the last one; it wraps [ErrConflict].
func Conflict(end, after int64) error {
	return fmt.Errorf("%w: it has %d entries, not %d", ErrConflict, end, after)
}

// NoEntry returns the error of a store for a fork at an entry that does not exist.
func NoEntry(at, end int64) error {
	return fmt.Errorf("cannot fork at entry %d: the session has %d entries", at, end)
}

// BadCursor returns the error of a store for a [Query.After] that the store did not
// return.
func BadCursor(after string) error {
	return fmt.Errorf("%q: %w: give the cursor of a page's last line, with the same query", after, ErrBadCursor)
}

// CheckSeqs returns an error if the entries are not numbered consecutively after
// number after.
func CheckSeqs(after int64, entries []Entry) error {
	for i, e := range entries {
		if want := after + int64(i) + 1; e.Seq != want {
			return fmt.Errorf("entry %d has the number %d", want, e.Seq)
		}
	}
	return nil
}

// maxTitle is the maximum length of a session's title in characters.
const maxTitle = 80

// TitleOf returns the title that entries give to a session: the beginning of the
// first message of a user, on one line. A message that a guard withdrew in the same
// entries is skipped.
func TitleOf(entries []Entry) string {
	withdrawn := map[int64]bool{}
	for _, e := range entries {
		if b, ok := e.Body.(ItemsWithdrawn); ok {
			for _, seq := range b.Seqs {
				withdrawn[seq] = true
			}
		}
	}
	for _, e := range entries {
		given, ok := e.Body.(InputItem)
		if !ok || withdrawn[e.Seq] || given.Item.Type() != item.TypeMessage || given.Item.Role() != item.RoleUser {
			continue
		}
		if m, err := item.As[item.Message](given.Item); err == nil {
			if title := titleOf(m.Content); title != "" {
				return title
			}
		}
	}
	return ""
}

func titleOf(c item.Content) string {
	text := c.Text
	for _, p := range c.Parts {
		if t, ok := p.(*item.InputText); ok {
			text += " " + t.Text
		}
		if len(text) > 16*maxTitle {
			break
		}
	}
	var title strings.Builder
	n := 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		if n > 0 {
			title.WriteByte(' ')
			n++
		}
		for _, r := range word {
			if n++; n > maxTitle-1 {
				return title.String() + "…"
			}
			title.WriteRune(r)
		}
	}
	return title.String()
}
