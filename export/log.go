// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Log is a session to export.
type Log struct {
	// Info is the information about the session besides its entries. All fields are
	// optional.
	Info session.Info
	// Entries are the session's log. Items with payloads elsewhere are completed one
	// by one.
	Entries []session.Entry
	// Load reads the log of the exported or of a nested session entry by entry. If it
	// is set, [JSONLines] uses it instead of Entries and Nested, and does not hold the
	// log in memory. It is called twice for each session; entries that are appended
	// between the calls are left out.
	Load func(id string) iter.Seq2[session.Entry, error]
	// Nested returns the log of a session that a call started, which is exported too.
	// If it is nil, or its error wraps [session.ErrNotFound], only the session's name
	// is written.
	Nested func(id string) ([]session.Entry, error)
	// Waiting yields the deliveries that wait for the exported or for a nested session. [JSONLines] writes them. If it
	// is nil, there are none.
	Waiting func(id string) iter.Seq2[session.Delivery, error]
	// Blob returns the data that an output refers to by id: the full text of a
	// shortened output, or an original that was refused. It returns nil without an
	// error if the data does not exist. If Blob is nil, only the ids are written.
	Blob func(id string) ([]byte, error)
	// Hide returns a text without secrets, like the method Hide of a key. Secrets that
	// it does not know cannot be distinguished from other text.
	Hide func(text string) string
}

func (l Log) hide(s string) string {
	if l.Hide == nil {
		return s
	}
	return l.Hide(s)
}

// nested returns the log of a session that a call started, or nil.
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

var errNoWriter = errors.New("export: the writer is nil")

// load reads the log of the exported session or of a nested one.
func (l Log) load(id string) iter.Seq2[session.Entry, error] {
	if l.Load != nil {
		if entries := l.Load(id); entries != nil {
			return entries
		}
		return func(yield func(session.Entry, error) bool) {
			yield(session.Entry{}, fmt.Errorf("the session %q: Log.Load returned no iterator", id))
		}
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

// waiting reads the deliveries that wait for a session.
func (l Log) waiting(id string) (list []session.Delivery, err error) {
	if l.Waiting == nil {
		return nil, nil
	}
	waiting := l.Waiting(id)
	if waiting == nil {
		return nil, fmt.Errorf("the session %q: Log.Waiting returned no iterator", id)
	}
	for d, err := range waiting {
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// part is one session of an export.
type part struct {
	id, parent string
	entries    int64
	blobs      []string // named by its outputs but not by earlier sessions
	waiting    []session.Delivery
}

// parts returns the exported session and its nested sessions, in the order in which
// they are written.
func (l Log) parts() (list []part, err error) {
	seen, named := map[string]bool{}, map[string]bool{}
	var look func(id, parent string) error
	look = func(id, parent string) error {
		seen[id] = true
		one := part{id: id, parent: parent}
		var inner []string
		var err error
		if one.waiting, err = l.waiting(id); err != nil {
			return err
		}
		for e, err := range l.load(id) {
			if err != nil {
				return err
			}
			one.entries++
			if taken, ok := e.Body.(session.Delivered); ok { // perhaps since its delivery was read
				one.waiting = slices.DeleteFunc(one.waiting, func(d session.Delivery) bool { return d.Key == taken.Key })
			}
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
		if one.entries == 0 && len(one.waiting) == 0 && len(list) > 0 {
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

// Kept returns the ids of the stored data that the outputs of the session and its
// nested sessions refer to, each once: see [KeptIn].
func (l Log) Kept() (ids []string, err error) {
	parts, err := l.parts()
	for _, p := range parts {
		ids = append(ids, p.blobs...)
	}
	return ids, err
}

// KeptIn returns the ids of the stored data that the output in an entry refers to:
// the full text of shortened outputs, and originals that were refused or replaced.
func KeptIn(e session.Entry) (ids []string) {
	if b, ok := e.Body.(session.CallOutput); ok {
		ids = output.StoredIDs(b.Item.JSON())
	}
	return ids
}

// nestedIn returns the id of the session that an entry's call started, or "".
func nestedIn(e session.Entry) string {
	switch b := e.Body.(type) {
	case session.CallStarted:
		return b.Session
	case session.SubagentUsage:
		return b.Session
	case session.Paused:
		return b.Session
	}
	return ""
}
