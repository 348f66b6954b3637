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

// What an owner, a tag and a title may have, in characters, and how many tags a
// session may have.
const (
	maxOwner = 256
	maxTag   = 64
	maxTags  = 32
)

// ErrBadLabel is wrapped by errors for an owner, a tag or a title that cannot be
// kept.
var ErrBadLabel = errors.New("not a valid label")

// Apply returns what is known of a session after the change, for stores. It
// refuses labels that cannot be told apart, seen or kept; see [CheckLabels].
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
		given.Title = "" // [TitleOf] made it, and it may be longer
	}
	return i, CheckLabels(given)
}

// cleanTags sorts tags and takes out those that are there twice. No tags are nil.
func cleanTags(tags []string) []string {
	if len(tags) == 0 {
		return nil
	}
	tags = slices.Clone(tags)
	slices.Sort(tags)
	return slices.Compact(tags)
}

// CheckLabels reports, by an error that wraps [ErrBadLabel] and says what one may
// be, an owner, a tag or a title that stores do not keep: tags are words of up to
// 64 characters, at most 32 of them; an owner has up to 256 characters, a title up
// to 80; none has control characters.
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

// onOneLine reports a text that has no more characters than it may have, and none
// that controls a terminal.
func onOneLine(text string, most int) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl) && utf8.RuneCountInString(text) <= most
}

// badLabel says what is wrong, and what would not be. Of a long text it shows the
// beginning.
func badLabel(what, text, may string) error {
	if r := []rune(text); len(r) > maxTag {
		text = string(r[:maxTag]) + "…"
	}
	return fmt.Errorf("%w: the %s %q: %s", ErrBadLabel, what, text, may)
}
