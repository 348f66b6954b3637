// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/session"
)

// Find returns the session that a person means: by its id, by its name, or by
// the beginning of an id that no other has, with at least four of the digits at its
// end. Of one name, those count that are archived, or those that are not. What a
// person got wrong is a [ConfigError] with a [NoSessionError] or an [AmbiguousError].
func Find(ctx context.Context, in session.Catalog, name string, archived bool) (session.Info, error) {
	if name == "" {
		return session.Info{}, invalid("a session is wanted, and its name is empty")
	}
	info, err := in.Info(ctx, name)
	if err == nil || !errors.Is(err, session.ErrNotFound) {
		return info, err
	}
	named, more, err := few(ctx, in, session.Query{Name: name, Archived: true})
	if err != nil {
		return session.Info{}, err
	}
	if meant := slices.DeleteFunc(slices.Clone(named), func(i session.Info) bool { return i.Archived != archived }); len(meant) > 0 {
		named = meant
	}
	var alike []session.Info
	if len(named) == 0 {
		if alike, more, err = few(ctx, in, session.Query{Prefix: name, Archived: true}); err != nil {
			return session.Info{}, err
		}
		for _, i := range alike {
			if beginsID(i.ID, name) {
				named = append(named, i)
			}
		}
	}
	switch len(named) {
	case 0:
		if len(alike) == 0 {
			if alike, err = similar(ctx, in, name); err != nil {
				return session.Info{}, err
			}
		}
		return session.Info{}, &ConfigError{&NoSessionError{name, alike}}
	case 1:
		return named[0], nil
	}
	return session.Info{}, &ConfigError{&AmbiguousError{name, named, more}}
}

// FindWhole is like [Find] for what changes or deletes a session: a few digits of an
// id that were mistyped must not mean another session, so it takes a whole name or
// id. J3
func FindWhole(ctx context.Context, in session.Catalog, name string, archived bool) (session.Info, error) {
	info, err := Find(ctx, in, name, archived)
	if err == nil && info.ID != name && info.Name != name {
		return session.Info{}, invalid("%q is only the beginning of an id; to change or delete the session, give its whole name or id: %s", name, info.ID)
	}
	return info, err
}

// NoSessionError says that there is no session of a name or an id. It wraps
// [session.ErrNotFound].
type NoSessionError struct {
	Name string
	// Alike are sessions that may have been meant.
	Alike []session.Info
}

// Error names the first sessions that may have been meant.
func (e *NoSessionError) Error() string {
	var names []string
	for _, info := range e.Alike {
		if name := called(info); !slices.Contains(names, name) && len(names) < 3 {
			names = append(names, name)
		}
	}
	said := fmt.Sprintf("there is no session %q", e.Name)
	switch len(names) {
	case 0:
		return said
	case 1:
		return said + "; there is " + names[0]
	}
	return said + "; there are " + strings.Join(names, ", ")
}

// Unwrap returns [session.ErrNotFound].
func (e *NoSessionError) Unwrap() error { return session.ErrNotFound }

// AmbiguousError says that a name means several sessions.
type AmbiguousError struct {
	Name string
	// Sessions are those that it means, the first of them if there are More.
	Sessions []session.Info
	More     bool
}

// Error names the ids.
func (e *AmbiguousError) Error() string {
	var ids []string
	for _, info := range e.Sessions {
		ids = append(ids, info.ID)
	}
	if e.More {
		ids = append(ids, "and others")
	}
	return fmt.Sprintf("%q means several sessions; name one by its id: %s", e.Name, strings.Join(ids, ", "))
}

// similar returns the sessions, of those written to last, whose names the one that
// was typed may be a slip of.
func similar(ctx context.Context, in session.Catalog, name string) (list []session.Info, err error) {
	for info, err := range in.List(ctx, session.Query{Archived: true, Limit: maxLooked}) {
		if err != nil {
			return nil, err
		}
		if Nearly(info.Name, name) {
			list = append(list, info)
		}
	}
	return list, nil
}

// leastDigits is how many digits of an id have to be given.
const leastDigits = 4

// beginsID reports whether a text is the beginning of an id with some of its
// digits. The part in front of the digits is the session's first name and does
// not tell sessions apart: plan would also mean plan-final, and a session that
// has another name by now.
func beginsID(id, text string) bool {
	rest, ok := strings.CutPrefix(id, text)
	digits := text[strings.LastIndexByte(text, '-')+1:]
	return ok && len(digits) < len(text) && len(digits) >= leastDigits && isHex(digits) && isHex(rest)
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

// maxAmbiguous is how many sessions are named that may be meant.
const maxAmbiguous = 20

// few returns the first sessions of a list, and whether there are more.
func few(ctx context.Context, in session.Catalog, q session.Query) (list []session.Info, more bool, err error) {
	q.Limit = maxAmbiguous + 1
	for info, err := range in.List(ctx, q) {
		if err != nil {
			return nil, false, err
		}
		list = append(list, info)
	}
	if len(list) > maxAmbiguous {
		return list[:maxAmbiguous], true, nil
	}
	return list, false, nil
}
