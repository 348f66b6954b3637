// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/session"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
)

// shelf is a store of another kind, which does only what it must.
type shelf struct {
	*session.Memory
	place string
}

func (s shelf) Place() string { return s.place }
func (shelf) Close() error    { return nil }

func init() {
	store.Register(store.Driver{Scheme: "shelf", Form: "shelf://NAME", Open: func(_ context.Context, place string, _ store.Options) (store.Store, error) {
		return shelf{&session.Memory{}, place}, nil
	}})
}

// TestOpen: a place is opened by the driver of its scheme, and what such a store
// cannot do is said by its name.
func TestOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	for _, place := range []string{"shelf://top", file} {
		s, err := store.Open(t.Context(), place, store.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		if s.Place() != place || store.Encrypted(s) {
			t.Errorf("%s is at %s, encrypted: %v", place, s.Place(), store.Encrypted(s))
		}
		_, err = store.As[store.Backuper](s, "copy itself")
		if place == file {
			if err != nil {
				t.Errorf("%s: %v", place, err)
			}
		} else if !errors.Is(err, errors.ErrUnsupported) || err.Error() != "shelf://top: this kind of store does not copy itself: unsupported operation" {
			t.Errorf("%s: %v", place, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDriverNotImported: a program without the driver of a place is told which import it
// lacks, without the password.
func TestDriverNotImported(t *testing.T) {
	_, err := store.Open(t.Context(), "postgres://me:hunter2@localhost/db", store.Options{})
	if err == nil || !strings.Contains(err.Error(), `add import _ "github.com/jackc/pgx/v5/stdlib"`) || !strings.Contains(err.Error(), "localhost") || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

// TestAbsent: without Create no store is made.
func TestAbsent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	_, err := store.Open(t.Context(), file, store.Options{})
	var absent *store.AbsentError
	var place *store.PlaceError
	if !errors.As(err, &absent) || !errors.As(err, &place) || absent.Place != file {
		t.Errorf("%v", err)
	}
	if _, err := store.Open(t.Context(), file, store.Options{Create: true}); err != nil {
		t.Error(err)
	}
}

// TestCheck: what is meant to be an address is not taken for a path, and errors do
// not repeat what may hold a password.
func TestCheck(t *testing.T) {
	for place, want := range map[string]string{
		"":                            "is empty",
		":memory:":                    ":memory: would keep nothing; give the path of a file, or postgres://USER@HOST/DATABASE, or shelf://NAME",
		"postgres:/u:secret@h/db":     "such a store is written postgres://",
		"POSTGRES://u:secret@h/db":    "such a store is written postgres://",
		"shelf:top":                   "such a store is written shelf://",
		"redis://secret@h/1":          "redis:… is not a supported kind of store",
		"file:x.db":                   "file:… is not a supported kind of store",
		"host=h password=secret":      "the form NAME=VALUE … is not read",
		"postgres://u:secret@h/db":    "",
		"postgresql://u:secret@h/db":  "",
		"sessions.db":                 "",
		"notes: a plan/a=b.db":        "",
		filepath.Join("a", "b.db"):    "",
		`C:\Users\a\sessions.db`:      "",
		"shelf://top":                 "",
		"1:2.db":                      "",
		"./postgres:/u@h/not-address": "",
	} {
		err := store.Check(place)
		var bad *store.PlaceError
		switch {
		case want == "":
			if err != nil {
				t.Errorf("%s: %v", place, err)
			}
		case !errors.As(err, &bad), !strings.Contains(err.Error(), want), strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: %v, want %q", place, err, want)
		}
	}
}
