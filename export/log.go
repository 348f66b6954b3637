// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/session"
)

// Log is a session that is written out.
type Log struct {
	// Info is what is known of the session besides its entries. All of it may be
	// missing.
	Info session.Info
	// Entries are its log. Items whose payloads are kept elsewhere are made whole
	// one by one.
	Entries []session.Entry
	// Nested returns the log of a session that a call started, which is written
	// out too. Where it is nil, or its error wraps [session.ErrNotFound], only its
	// name is.
	Nested func(id string) ([]session.Entry, error)
	// Hide returns a text without the secrets that it holds, such as the method of
	// that name of a key. Secrets that it does not know cannot be told from other
	// texts.
	Hide func(text string) string
}

func (l Log) hide(s string) string {
	if l.Hide == nil {
		return s
	}
	return l.Hide(s)
}

// nested returns the log of a session that a call started, nil if there is none.
func (l Log) nested(id string) ([]session.Entry, error) {
	if l.Nested == nil {
		return nil, nil
	}
	entries, err := l.Nested(id)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the nested session %q: %w", id, err)
	}
	return entries, nil
}

// nestedIn returns the ids of the sessions that a log's calls started, each once.
func nestedIn(entries []session.Entry) (ids []string) {
	for _, e := range entries {
		id := ""
		switch b := e.Body.(type) {
		case session.CallStarted:
			id = b.Session
		case session.Nested:
			id = b.Session
		case session.Paused:
			id = b.Session
		}
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
