// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
)

// keeper is an open store of sessions.
type keeper = store.Store

// as returns the store as something that not every store is; see [store.As].
func as[T any](k keeper, does string) (T, error) {
	t, err := store.As[T](k, does)
	if err != nil {
		return t, usage(err)
	}
	return t, nil
}

// storeFlag says where sessions are kept.
type storeFlag struct {
	Store string `placeholder:"PLACE" help:"Where sessions are kept: a file of SQLite's, or postgres://…. Default: $$ANTIPHON_STORE, or sessions.db in the folder for data."`

	StoreRetry time.Duration `name:"store-retry" placeholder:"D" help:"For how long to try again while the server of the store cannot be reached, others keep it busy or its disk is full. Default: 30s for Postgres, 5s for a file."`

	StoreKey string `name:"store-key" placeholder:"WHERE" help:"Where the key of an encrypted store is: file:PATH, keyring, keyring:NAME, env ($$ANTIPHON_STORE_SECRET) or none. A new store is encrypted with it. Default: $$ANTIPHON_STORE_KEY, or none."`
}

// at says where the store is, and how it is opened. A store that is not there is
// made if create is set.
func (f *storeFlag) at(env environment, create bool) (place string, o store.Options, err error) {
	if place, err = f.place(env); err != nil {
		return "", o, err
	}
	if o, err = f.options(env, create); err != nil {
		return "", o, err
	}
	if o.Retry = f.StoreRetry; o.Retry < 0 {
		return "", o, usage(fmt.Errorf("--store-retry is %v, want a time such as 2m", f.StoreRetry))
	}
	return place, o, nil
}

// open opens the store.
func (f *storeFlag) open(ctx context.Context, env environment, create bool) (keeper, error) {
	place, o, err := f.at(env, create)
	if err != nil {
		return nil, err
	}
	k, err := store.Open(ctx, place, o)
	var absent *store.AbsentError
	if errors.As(err, &absent) {
		err = fmt.Errorf("%w; antiphon run FILE --session NAME makes one", err)
	}
	return k, err
}

// place is where the store is.
func (f *storeFlag) place(env environment) (string, error) {
	if err := env.Filled("ANTIPHON_STORE"); err != nil && f.Store == "" {
		return "", err
	}
	place := cmp.Or(f.Store, env["ANTIPHON_STORE"])
	if place == "" {
		return dataFile(env)
	}
	if err := store.Check(place); err != nil {
		return "", usage(fmt.Errorf("--store: %w", err))
	}
	return place, nil
}

// isStore reports a path that is the store's own file.
func (f *storeFlag) isStore(env environment, path string) bool {
	place, err := f.place(env)
	return err == nil && sameFile(place, path)
}

// again returns the flags that name the same store in a command that is
// proposed. An address may hold a password, so that it is not repeated.
func (f *storeFlag) again() string {
	flags := ""
	switch {
	case !store.IsPath(f.Store):
		flags = " --store PLACE"
	case f.Store != "":
		flags = " --store " + quoted(f.Store)
	}
	if f.StoreKey != "" {
		flags += " --store-key " + quoted(f.StoreKey)
	}
	return flags
}

// dataFile is where sessions are kept by default: in the user's folder for data,
// by the XDG base directory specification or what is usual elsewhere.
func dataFile(env environment) (string, error) {
	dir := env["XDG_DATA_HOME"]
	if runtime.GOOS == "windows" && dir == "" {
		dir = env["LOCALAPPDATA"]
	}
	if !filepath.IsAbs(dir) { // which includes ""
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usage(errors.New("there is no home folder to keep sessions in; give --store FILE"))
		}
		dir = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(dir, "antiphon", "sessions.db"), nil
}

// resolvedOnce is the path that a file has, or had before it was moved or deleted.
func resolvedOnce(path string) (string, error) {
	now, err := host.ResolvePath(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return now, err
	}
	folder, err := host.ResolvePath(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Abs(path)
	}
	return filepath.Join(folder, filepath.Base(path)), err
}

// find returns the session that a person means; see [host.Find].
func find(ctx context.Context, store session.Catalog, name string, archived bool) (session.Info, error) {
	info, err := host.Find(ctx, store, name, archived)
	return info, orList(err)
}

// findWhole is like find for commands that change or delete a session.
func findWhole(ctx context.Context, store session.Catalog, name string, archived bool) (session.Info, error) {
	info, err := host.FindWhole(ctx, store, name, archived)
	return info, orList(err)
}

// orList says how to see the sessions that are there, or which were meant.
func orList(err error) error {
	var none *host.NoSessionError
	var many *host.AmbiguousError
	switch {
	case errors.As(err, &none):
		return usage(fmt.Errorf("%w; antiphon sessions list shows those that are there", err))
	case errors.As(err, &many):
		var b strings.Builder
		for _, info := range many.Sessions {
			fmt.Fprintf(&b, "\n  %s  %s%s", info.ID, cmp.Or(info.Path, info.Title), specials(info))
		}
		if many.More {
			b.WriteString("\n  and others")
		}
		return usage(fmt.Errorf("%q means several sessions; name one by its id:%s", many.Name, b.String()))
	}
	return err
}
