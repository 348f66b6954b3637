// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/antiphon-go/antiphon/item"
)

// What stores have in common.

// Conflict is the error of a store for an append that expected entry number
// after to be the last one; it wraps [ErrConflict].
func Conflict(end, after int64) error {
	return fmt.Errorf("%w: it has %d entries, not %d", ErrConflict, end, after)
}

// NoEntry is the error of a store for a fork at an entry that is not there.
func NoEntry(at, end int64) error {
	return fmt.Errorf("entry %d to fork at: it has %d", at, end)
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
// the first message of a user, in one line.
func TitleOf(entries []Entry) string {
	for _, e := range entries {
		given, ok := e.Body.(Given)
		if !ok || given.Item.Type() != item.TypeMessage || given.Item.Role() != item.RoleUser {
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
