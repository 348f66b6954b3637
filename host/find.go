// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
)

// errNoStore reports a store that is nil, or a nil pointer.
var errNoStore = errors.New("host: the store is nil: open one, for example by store.Open")

// Find returns the session that a person names: by its id, by its name, or by a
// unique beginning of its id that includes at least four of the digits at its end.
// archived selects between archived and other sessions of the same name. The
// person's mistakes are [ConfigError]s that wrap a [NoSessionError] or an
// [AmbiguousError].
func Find(ctx context.Context, in session.Catalog, name string, archived bool) (session.Info, error) {
	if nils.Is(in) {
		return session.Info{}, errNoStore
	}
	if name == "" {
		return session.Info{}, invalid("the name of the session is empty; give its name or id")
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

// FindWhole is like [Find], but requires a complete name or id. It is for callers
// that change or delete a session: a few mistyped digits of an id must not select
// another session (rule J3 in docs/rules.md).
func FindWhole(ctx context.Context, in session.Catalog, name string, archived bool) (session.Info, error) {
	info, err := Find(ctx, in, name, archived)
	if err == nil && info.ID != name && info.Name != name {
		return session.Info{}, invalid("%q is only the beginning of an id; to change or delete the session, give its whole name or id: %s", name, info.ID)
	}
	return info, err
}

// NoSessionError means that no session has the name or the id. It wraps
// [session.ErrNotFound].
type NoSessionError struct {
	Name string
	// Alike are sessions with similar names.
	Alike []session.Info
}

// Error names the first of the similar sessions.
func (e *NoSessionError) Error() string {
	var names []string
	for _, info := range e.Alike {
		if name := called(info); !slices.Contains(names, name) && len(names) < 3 {
			names = append(names, name)
		}
	}
	said := fmt.Sprintf("session %q not found", e.Name)
	switch len(names) {
	case 0:
		return said
	case 1:
		return said + "; similar name: " + names[0]
	}
	return said + "; similar names: " + strings.Join(names, ", ")
}

// Unwrap returns [session.ErrNotFound].
func (e *NoSessionError) Unwrap() error { return session.ErrNotFound }

// AmbiguousError means that a name matches several sessions.
type AmbiguousError struct {
	Name string
	// Sessions are the matching sessions; if More is set, only the first of them.
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
	return fmt.Sprintf("%q matches several sessions; give one of the ids: %s", e.Name, strings.Join(ids, ", "))
}

// similar returns recently written sessions whose names are similar to the given
// one.
func similar(ctx context.Context, in session.Catalog, name string) (list []session.Info, err error) {
	for info, err := range nils.Each(in, "List", in.List(ctx, session.Query{Archived: true, Limit: maxLooked})) {
		if errors.Is(err, session.ErrDamaged) { // a row that cannot be read, behind all others
			break
		}
		if err != nil {
			return nil, err
		}
		if Nearly(info.Name, name) {
			list = append(list, info)
		}
	}
	return list, nil
}

// leastDigits is the minimum number of digits of an id to give.
const leastDigits = 4

// beginsID reports whether text is the beginning of an id that includes some of its
// digits. The part before the digits is the session's first name and does not
// identify the session: plan would also match plan-final, and a session that has
// been renamed.
func beginsID(id, text string) bool {
	rest, ok := strings.CutPrefix(id, text)
	digits := text[strings.LastIndexByte(text, '-')+1:]
	return ok && len(digits) < len(text) && len(digits) >= leastDigits && isHex(digits) && isHex(rest)
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

// maxAmbiguous is the maximum number of sessions in an AmbiguousError.
const maxAmbiguous = 20

// few returns the first sessions of a list, and whether there are more.
func few(ctx context.Context, in session.Catalog, q session.Query) (list []session.Info, more bool, err error) {
	q.Limit = maxAmbiguous + 1
	for info, err := range nils.Each(in, "List", in.List(ctx, q)) {
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
