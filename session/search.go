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

// Errors that stores return, wrapped, for searches and pages.
var (
	// ErrNoIndex means that the store keeps no word index, so it cannot be searched.
	ErrNoIndex = errors.New("the store has no word index to search")
	// ErrNoWords means that the search has no words, or too many.
	ErrNoWords = errors.New("the search is not valid")
	// ErrBadCursor means that a list or a search cannot continue at the given cursor.
	ErrBadCursor = errors.New("the cursor is unknown: no page ended at it")
)

// searched parses the words of a search, for stores.
func searched(text string) (words.Query, error) {
	q, err := words.Parse(text)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNoWords, err)
	}
	return q, err
}

// Searcher is implemented by a [Catalog] that can search the text of its sessions.
type Searcher interface {
	Catalog
	// Search yields the places where the words occur, newest first. It finds
	// everything that was committed before it began. A search without words is an
	// error; in a store without an index the error wraps [ErrNoIndex].
	Search(ctx context.Context, s Search) iter.Seq2[SearchResult, error]
}

// Search describes the words to search for and the sessions to search. It searches
// the messages of users and the model, the outputs of calls, and titles that people
// set. It does not search items that were withdrawn or superseded, or that are kept
// apart from their entries, such as the rest of a long output.
type Search struct {
	// Words must all occur in one entry, in any order. Words in double quotes must
	// follow one another. Case, diacritics and punctuation are ignored. There is no
	// other syntax.
	Words string
	// In is the id of the only session to search. Then every place is found, and of
	// the Query only Owner, Limit and After apply. If it is "", each session is found
	// once, at its newest place.
	In string
	// Query selects the sessions. Name and Prefix are ignored.
	Query
}

// SearchResult is a place where the words of a search occur.
type SearchResult struct {
	// Session is the session that the entry was written to. If that session is deleted
	// or not selected by the Query, it is a fork that shares the entry.
	Session Info `json:"session"`
	// Entry is the number of the entry, or 0 for the session's title. By is the source
	// of the text: "user", "assistant", "output" or "title".
	Entry int64     `json:"entry"`
	By    string    `json:"by"`
	Time  time.Time `json:"time,omitzero"`
	// Snippet is the text around the first of the words, on one line.
	Snippet string `json:"snippet"`
	// Cursor continues the search after this place, as [Query.After].
	Cursor string `json:"cursor"`
}

// maxSearchText is the size of the searchable part of an entry's text.
const maxSearchText = 256 << 10

// SearchText returns the searchable text of an entry, for stores, and its source; by
// is "" for an entry without such text. Of a text of more than 256 KiB only the
// beginning is returned.
func SearchText(b Body) (by, text string) {
	var it item.Item
	switch b := b.(type) {
	case InputItem:
		it = b.Item
	case OutputItem:
		it = b.Item
	case CallOutput:
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

// Unsaid returns the numbers of the entries that b hides from searches: those that
// it withdraws, and those whose text it repeats.
func Unsaid(b Body) []int64 {
	switch b := b.(type) {
	case ItemsWithdrawn:
		return b.Seqs
	case Superseded:
		return b.Seqs
	}
	return nil
}

// plainText returns the text of a content, without images and files.
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

// outputText returns the text of a call's output.
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
