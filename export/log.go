// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"iter"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Log is a session that is written out.
type Log struct {
	// Info is what is known of the session besides its entries. All of it may be
	// missing.
	Info session.Info
	// Entries are its log. Items whose payloads are kept elsewhere are made whole
	// one by one.
	Entries []session.Entry
	// Load reads a session's log, the exported one's or a nested one's, entry by
	// entry. Where it is set, [JSONLines] uses it instead of Entries and Nested, and
	// needs no memory for the log. It is called twice for each session; what is
	// appended between the two calls is left out.
	Load func(id string) iter.Seq2[session.Entry, error]
	// Nested returns the log of a session that a call started, which is written
	// out too. Where it is nil, or its error wraps [session.ErrNotFound], only its
	// name is.
	Nested func(id string) ([]session.Entry, error)
	// Blob returns what is kept under an id that an output names: the whole of one
	// that was shortened, or an original that was refused. nil without an error is
	// one that is not there. Where Blob is nil, only the names are written.
	Blob func(id string) ([]byte, error)
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

// load reads the log of the exported session, or of one that is nested in it.
func (l Log) load(id string) iter.Seq2[session.Entry, error] {
	if l.Load != nil {
		return l.Load(id)
	}
	entries, err := l.Entries, error(nil)
	if id != l.Info.ID {
		entries, err = l.nested(id)
	}
	return func(yield func(session.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(session.Entry{}, err)
		}
	}
}

// part is one session of an export.
type part struct {
	id, parent string
	entries    int64
	blobs      []string // that its outputs name and no session before it
}

// parts are the exported session and those that are nested in it, in the order in
// which they are written.
func (l Log) parts() (list []part, err error) {
	seen, named := map[string]bool{}, map[string]bool{}
	var look func(id, parent string) error
	look = func(id, parent string) error {
		seen[id] = true
		one := part{id: id, parent: parent}
		var inner []string
		for e, err := range l.load(id) {
			if err != nil {
				return err
			}
			one.entries++
			for _, blob := range KeptIn(e) {
				if !named[blob] {
					named[blob] = true
					one.blobs = append(one.blobs, blob)
				}
			}
			if below := nestedIn(e); below != "" {
				inner = append(inner, below)
			}
		}
		if one.entries == 0 && len(list) > 0 {
			return nil
		}
		list = append(list, one)
		for _, id := range inner {
			if seen[id] {
				continue
			}
			if err := look(id, one.id); err != nil {
				return err
			}
		}
		return nil
	}
	err = look(l.Info.ID, "")
	return list, err
}

// Kept returns the ids of all that the outputs of the session and of those nested in
// it name, each once: see [KeptIn].
func (l Log) Kept() (ids []string, err error) {
	parts, err := l.parts()
	for _, p := range parts {
		ids = append(ids, p.blobs...)
	}
	return ids, err
}

// KeptIn returns the ids that the output in an entry names as kept beside the log:
// the whole of what the model got shortened, and originals that were refused or
// replaced.
func KeptIn(e session.Entry) (ids []string) {
	if b, ok := e.Body.(session.Answered); ok {
		ids = tool.StoredIDs(b.Item.JSON())
	}
	return ids
}

// nestedIn returns the id of the session that an entry's call started, or "".
func nestedIn(e session.Entry) string {
	switch b := e.Body.(type) {
	case session.CallStarted:
		return b.Session
	case session.Nested:
		return b.Session
	case session.Paused:
		return b.Session
	}
	return ""
}
