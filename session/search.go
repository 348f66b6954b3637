// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/words"
	"github.com/antiphon-go/antiphon/item"
)

// What stores say, wrapped, of searches and pages.
var (
	// ErrNoIndex: the store keeps no index of words, so that it cannot be searched.
	ErrNoIndex = errors.New("the store keeps no index of words to search in")
	// ErrNoWords: there is nothing to search for, or too much.
	ErrNoWords = errors.New("that cannot be searched for")
	// ErrBadCursor: a list or a search cannot go on there.
	ErrBadCursor = errors.New("no page ended there")
)

// searched parses the words of a search, for stores.
func searched(text string) (words.Query, error) {
	q, err := words.Parse(text)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNoWords, err)
	}
	return q, err
}

// Searcher is implemented by a [Catalog] that finds sessions by what was said.
type Searcher interface {
	Catalog
	// Search yields where the words stand, newest first. What was committed before
	// it began is found. A search without words is an error, and so is one in a
	// store without an index, which wraps [ErrNoIndex].
	Search(ctx context.Context, s Search) iter.Seq2[Found, error]
}

// Search says what to look for, and among which sessions. It looks in the
// messages of users and of the model, in the outputs of calls, and in the titles
// that people gave; not in what was withdrawn, superseded or kept apart from its
// entry, such as the rest of a long output.
type Search struct {
	// Words must all stand in one entry, in any order. Words in double quotes must
	// follow one another. Case, diacritics and punctuation do not matter, and there
	// is no other syntax.
	Words string
	// In is the id of the one session to look in. Then every place is found, and
	// the Query does not count, except for Owner, Limit and After. If it is "", each
	// session is found once, by its newest place.
	In string
	// Query chooses among the sessions. Name and Prefix do not count.
	Query
}

// Found is a place where the words of a search stand.
type Found struct {
	// Session is the one that the entry was written to; for an entry that forks
	// share with a session that is gone, or that the Query does not take, a fork.
	Session Info `json:"session"`
	// Entry is its number, 0 for the session's title. By says who said it:
	// "user", "assistant", "output" or "title".
	Entry int64     `json:"entry"`
	By    string    `json:"by"`
	Time  time.Time `json:"time,omitzero"`
	// Snippet is what stands around the first of the words, in one line.
	Snippet string `json:"snippet"`
	// Cursor goes on after this place, as [Query.After].
	Cursor string `json:"cursor"`
}

// maxSearchText is how much of an entry's text can be found.
const maxSearchText = 256 << 10

// SearchText returns the part of an entry that a search looks in, for stores,
// and who said it; "" for one that it does not look in. Of a text of more than
// 256 KiB that is the beginning.
func SearchText(b Body) (by, text string) {
	var it item.Item
	switch b := b.(type) {
	case Given:
		it = b.Item
	case Received:
		it = b.Item
	case Answered:
		it = b.Item
	default:
		return "", ""
	}
	switch {
	case it.Type() == item.TypeMessage:
		if role := it.Role(); role == item.RoleUser || role == item.RoleAssistant {
			if m, err := item.As[item.Message](it); err == nil {
				by, text = string(role), plainText(m.Content)
			}
		}
	case it.IsOutput():
		by, text = "output", outputText(it)
	}
	text = item.ShowHeld(text)
	if len(text) > maxSearchText {
		text = strings.ToValidUTF8(text[:maxSearchText], "")
	}
	return by, text
}

// Unsaid returns the entries that a search must not find from then on: what was
// withdrawn, and what another entry says again.
func Unsaid(b Body) []int64 {
	switch b := b.(type) {
	case ItemsWithdrawn:
		return b.Seqs
	case Superseded:
		return b.Seqs
	}
	return nil
}

// plainText is the text of a content, without images and files.
func plainText(c item.Content) string {
	if c.IsText() {
		return c.Text
	}
	var lines []string
	for _, part := range c.Parts {
		switch p := part.(type) {
		case *item.InputText:
			lines = append(lines, p.Text)
		case *item.OutputText:
			lines = append(lines, p.Text)
		case *item.Refusal:
			lines = append(lines, p.Refusal)
		}
	}
	return strings.Join(lines, "\n")
}

// outputText is the text of a call's output.
func outputText(it item.Item) string {
	switch it.Type() {
	case item.TypeFunctionCallOutput:
		if out, err := item.As[item.FunctionCallOutput](it); err == nil {
			return plainText(out.Output)
		}
	case item.TypeCustomToolCallOutput:
		if out, err := item.As[item.CustomToolCallOutput](it); err == nil {
			return plainText(out.Output)
		}
	case item.TypeShellCallOutput:
		if out, err := item.As[item.ShellCallOutput](it); err == nil {
			var lines []string
			for _, part := range out.Output {
				lines = append(lines, part.Stdout, part.Stderr)
			}
			return strings.Join(lines, "\n")
		}
	}
	for _, member := range []string{"output", "result"} {
		if value, ok := it.Member(member); ok {
			if text, ok := value.Unquote(); ok {
				return text
			}
		}
	}
	return ""
}
