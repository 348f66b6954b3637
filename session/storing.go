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

// What stores have in common.

// callerKey is the key of the context that [WithoutCancel] was given.
type callerKey struct{}

// WithoutCancel returns a copy of ctx that does not end with it: what has
// happened must be written. [Caller] still knows ctx.
func WithoutCancel(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithValue(context.WithoutCancel(ctx), callerKey{}, ctx)
}

// Caller returns the context that [WithoutCancel] made ctx of, or ctx itself. A
// store that tries again what has failed stops waiting soon after it has ended.
func Caller(ctx context.Context) context.Context {
	if c, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return c
	}
	return ctx
}

// Conflict is the error of a store for an append that expected entry number
// after to be the last one; it wraps [ErrConflict].
func Conflict(end, after int64) error {
	return fmt.Errorf("%w: it has %d entries, not %d", ErrConflict, end, after)
}

// NoEntry is the error of a store for a fork at an entry that is not there.
func NoEntry(at, end int64) error {
	return fmt.Errorf("entry %d to fork at: it has %d", at, end)
}

// BadCursor is the error of a store for a [Query.After] that it did not give.
func BadCursor(after string) error {
	return fmt.Errorf("%q: %w: give the cursor of a page's last line, with the same query", after, ErrBadCursor)
}

// CheckSeqs reports entries that are not numbered as those that follow after.
func CheckSeqs(after int64, entries []Entry) error {
	for i, e := range entries {
		if want := after + int64(i) + 1; e.Seq != want {
			return fmt.Errorf("entry %d has the number %d", want, e.Seq)
		}
	}
	return nil
}

// maxTitle is the length in characters of a session's title.
const maxTitle = 80

// TitleOf returns the title that entries give to a session: the beginning of
// the first message of a user, in one line. One that a guard withdrew at once
// gives none.
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
		given, ok := e.Body.(Given)
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
