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

// A Driver opens stores of one kind.
type Driver struct {
	// Scheme is the part before "://" in the places of these stores. It is "" for
	// stores in files, whose places are paths.
	Scheme string
	// Form shows in messages how to write a place, for example
	// "redis://HOST/NUMBER". It is empty for drivers of a second scheme for the same
	// stores.
	Form string
	// Open opens the store at a place. If the problem is the place itself, the error
	// is a [PlaceError].
	Open func(ctx context.Context, place string, o Options) (Store, error)
}

var (
	mu      sync.Mutex
	drivers []Driver
)

// Register adds a driver for [Open]. Call it in the init function of a package. It
// panics if the scheme already has a driver.
func Register(d Driver) {
	mu.Lock()
	defer mu.Unlock()
	if slices.ContainsFunc(drivers, func(other Driver) bool { return other.Scheme == d.Scheme }) {
		panic("store: there are two drivers of the scheme " + d.Scheme)
	}
	drivers = append(drivers, d)
}

// Open opens the store at a place. Register the driver of its scheme first,
// usually by importing a package such as session/sqlstore.
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

// IsPath reports whether a place is a path. Otherwise it is an address, which may
// contain a password.
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

// Check returns a [PlaceError] if no driver opens the place. It also rejects a
// misspelled address that would be used as a path, because the password in it
// would become part of a file name. The error does not repeat the place.
func Check(place string) error {
	scheme, _, found := strings.Cut(place, ":")
	found = found && (len(scheme) > 1 || strings.HasPrefix(place[len(scheme):], "://")) // otherwise it is a drive, as in C:\sessions.db
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
		problem = scheme + ":… is not a supported kind of store"
	case setting && slices.Contains([]string{"host", "user", "dbname", "password", "port", "service"}, name):
		problem = "the form NAME=VALUE … is not read"
	case !paths:
		problem = "this program has no stores in files"
	default:
		return nil
	}
	return &PlaceError{fmt.Errorf("%s; give %s", problem, forms())}
}

// forms describes how to write places.
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
