// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of an owner, a tag and a title in characters, and the number of tags per
// session.
const (
	maxOwner = 256
	maxTag   = 64
	maxTags  = 32
)

// ErrBadLabel is wrapped by errors for an invalid owner, tag or title.
var ErrBadLabel = errors.New("not a valid label")

// Apply returns the session's information after the change, for stores. It refuses
// labels that [CheckLabels] refuses.
func (l Labels) Apply(i Info) (Info, error) {
	if l.Title != nil {
		i.Title = *l.Title
	}
	if l.Owner != nil {
		i.Owner = *l.Owner
	}
	tags := slices.DeleteFunc(slices.Clone(i.Tags), func(tag string) bool { return slices.Contains(l.Untag, tag) })
	i.Tags = cleanTags(append(tags, l.Tags...))
	given := i
	if l.Title == nil {
		given.Title = "" // made by [TitleOf], which allows longer titles
	}
	return i, CheckLabels(given)
}

// cleanTags sorts tags and removes duplicates. It returns nil if there are none.
func cleanTags(tags []string) []string {
	if len(tags) == 0 {
		return nil
	}
	tags = slices.Clone(tags)
	slices.Sort(tags)
	return slices.Compact(tags)
}

// CheckLabels returns an error that wraps [ErrBadLabel] and states the limit if an
// owner, a tag or a title is not valid. Tags are words of up to 64 characters, at
// most 32 per session; an owner has up to 256 characters, a title up to 80. Control
// characters are not allowed.
func CheckLabels(i Info) error {
	switch {
	case !onOneLine(i.Owner, maxOwner):
		return badLabel("owner", i.Owner, fmt.Sprintf("an owner is a text of up to %d characters on one line", maxOwner))
	case !onOneLine(i.Title, maxTitle):
		return badLabel("title", i.Title, fmt.Sprintf("a title is a text of up to %d characters on one line", maxTitle))
	case len(i.Tags) > maxTags:
		return fmt.Errorf("%w: %d tags: a session has up to %d", ErrBadLabel, len(i.Tags), maxTags)
	}
	for _, tag := range i.Tags {
		if tag == "" || strings.ContainsFunc(tag, unicode.IsSpace) || !onOneLine(tag, maxTag) {
			return badLabel("tag", tag, fmt.Sprintf("a tag is one word of up to %d characters, such as bug or customer=4711", maxTag))
		}
	}
	return nil
}

// onOneLine reports whether a text has at most the given number of characters and no
// control characters, which could change the state of a terminal.
func onOneLine(text string, most int) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl) && utf8.RuneCountInString(text) <= most
}

// badLabel returns an error with the problem and the allowed values. It shortens
// long texts.
func badLabel(what, text, may string) error {
	if r := []rune(text); len(r) > maxTag {
		text = string(r[:maxTag]) + "…"
	}
	return fmt.Errorf("%w: the %s %q: %s", ErrBadLabel, what, text, may)
}
