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
var ErrBadLabel = errors.New("not a label")

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
	return i, CheckLabels(i)
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

// CheckLabels reports, by an error that wraps [ErrBadLabel], an owner, a tag or a title that stores do not keep: tags
// are words of up to 64 characters, at most 32 of them; an owner has up to 256
// characters, a title up to 80; none has control characters.
func CheckLabels(i Info) error {
	if err := checkLabel("owner", i.Owner, maxOwner); err != nil {
		return err
	}
	if err := checkLabel("title", i.Title, maxTitle); err != nil {
		return err
	}
	if len(i.Tags) > maxTags {
		return fmt.Errorf("%w: %d tags: a session has at most %d", ErrBadLabel, len(i.Tags), maxTags)
	}
	for _, tag := range i.Tags {
		if tag == "" || strings.ContainsFunc(tag, unicode.IsSpace) {
			return fmt.Errorf("%w: tag %q: a tag is one word", ErrBadLabel, tag)
		}
		if err := checkLabel("tag", tag, maxTag); err != nil {
			return err
		}
	}
	return nil
}

func checkLabel(what, text string, most int) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%w: %s %q: it must be a text without control characters", ErrBadLabel, what, text)
	case utf8.RuneCountInString(text) > most:
		return fmt.Errorf("%w: %s %q: it may have at most %d characters", ErrBadLabel, what, text, most)
	}
	return nil
}
