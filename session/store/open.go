// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Driver opens stores of one kind.
type Driver struct {
	// Scheme is what the places of such stores begin with, before "://". That of
	// stores in files is "": their places are paths.
	Scheme string
	// Form shows how a place is written, for messages, such as
	// "redis://HOST/NUMBER". Drivers of a second scheme for the same stores have
	// none.
	Form string
	// Open opens the store at a place. An error that is about the place itself is
	// a [PlaceError].
	Open func(ctx context.Context, place string, o Options) (Store, error)
}

var (
	mu      sync.Mutex
	drivers []Driver
)

// Register makes a kind of store known to [Open]. It is meant to be called by the
// init function of a package, and panics if there is a driver of that scheme.
func Register(d Driver) {
	mu.Lock()
	defer mu.Unlock()
	if slices.ContainsFunc(drivers, func(other Driver) bool { return other.Scheme == d.Scheme }) {
		panic("store: there are two drivers of the scheme " + d.Scheme)
	}
	drivers = append(drivers, d)
}

// Open opens the store at a place.
func Open(ctx context.Context, place string, o Options) (Store, error) {
	if err := Check(place); err != nil {
		return nil, err
	}
	scheme, _, _ := strings.Cut(place, "://")
	if IsPath(place) {
		scheme = ""
	}
	d, _ := driver(scheme)
	return d.Open(ctx, place, o)
}

// IsPath reports a place that is a path, and not an address, which may hold a
// password.
func IsPath(place string) bool { return !strings.Contains(place, "://") }

func driver(scheme string) (Driver, bool) {
	mu.Lock()
	defer mu.Unlock()
	i := slices.IndexFunc(drivers, func(d Driver) bool { return d.Scheme == scheme })
	if i < 0 {
		return Driver{}, false
	}
	return drivers[i], true
}

// Check refuses a place that no driver opens, with a [PlaceError], and also what
// is meant to be an address and would be taken for a path: that file would have a
// password in its name. The error does not repeat the place.
func Check(place string) error {
	scheme, _, found := strings.Cut(place, ":")
	found = found && (len(scheme) > 1 || strings.HasPrefix(place[len(scheme):], "://")) // else it is a disk, as of C:\sessions.db
	wanted, known := driver(strings.ToLower(scheme))
	_, paths := driver("")
	name, _, setting := strings.Cut(place, "=")
	problem := ""
	switch {
	case place == "":
		problem = "the place of the store is empty"
	case place == ":memory:":
		problem = ":memory: would keep nothing"
	case found && known && scheme == wanted.Scheme && !IsPath(place):
		return nil
	case found && known && scheme != "":
		return &PlaceError{fmt.Errorf("such a store is written %s://…, with two slashes and in small letters", wanted.Scheme)}
	case found && (strings.EqualFold(scheme, "file") || !IsPath(place)):
		problem = "a store cannot be at " + scheme + ":…"
	case setting && slices.Contains([]string{"host", "user", "dbname", "password", "port", "service"}, name):
		problem = "the form NAME=VALUE … is not read"
	case !paths:
		problem = "this program has no stores in files"
	default:
		return nil
	}
	return &PlaceError{fmt.Errorf("%s; give %s", problem, forms())}
}

// forms says how places are written.
func forms() string {
	mu.Lock()
	defer mu.Unlock()
	var list []string
	for _, d := range drivers {
		if d.Form != "" {
			list = append(list, d.Form)
		}
	}
	if len(list) == 0 {
		return "a place of a kind of store that the program imports, such as session/sqlstore"
	}
	return strings.Join(list, ", or ")
}
