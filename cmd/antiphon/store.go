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
	"slices"
	"strconv"
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

// as returns the store as T, an optional interface; see [store.As].
func as[T any](k keeper, does string) (T, error) {
	t, err := store.As[T](k, does)
	if err != nil {
		return t, usage(err)
	}
	return t, nil
}

// storeFlag holds the flags of the store of sessions.
type storeFlag struct {
	Store string `placeholder:"PLACE" help:"Where sessions are kept: an SQLite file, or postgres://…. Default: $$ANTIPHON_STORE, or sessions.db in the user's data folder."`

	StoreRetry time.Duration `name:"store-retry" placeholder:"D" help:"How long to retry while the store is unreachable, busy or out of disk space. Default: 30s for Postgres, 5s for a file."`

	StoreKey string `name:"store-key" placeholder:"WHERE" help:"Where the key of an encrypted store is: file:PATH, keyring, keyring:NAME, env ($$ANTIPHON_STORE_SECRET) or none. A new store is encrypted with it. Default: $$ANTIPHON_STORE_KEY, or none."`

	begins string // the command that begins a store, for a hint; "" for antiphon run
}

// at returns the place of the store and the options for opening it. A missing store
// is created if create is set.
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
	if create {
		err = f.checkFolder(env, place)
	}
	return place, o, err
}

// checkFolder returns an error if a store in a file would be created in a folder that
// does not exist. A mistyped place would otherwise begin an empty store, in which
// the user's sessions seem to be lost. The folder of the default place is created.
func (f *storeFlag) checkFolder(env environment, place string) error {
	if !store.IsPath(place) {
		return nil
	}
	folder := filepath.Dir(place)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return nil // opening the store reports other errors
	}
	if usual, err := dataFile(env); err == nil && usual == place {
		return nil
	}
	from := "--store"
	if f.Store == "" {
		from = "$ANTIPHON_STORE"
	}
	return usage(fmt.Errorf("%s: %s: the folder %s does not exist; create it, or name another place", from, place, folder))
}

// open opens the store.
func (f *storeFlag) open(ctx context.Context, env environment, create bool) (keeper, error) {
	place, o, err := f.at(env, create)
	if err != nil {
		return nil, err
	}
	isNew := false
	if store.IsPath(place) && create {
		_, none := os.Stat(place)
		isNew = errors.Is(none, fs.ErrNotExist)
	}
	k, err := store.Open(ctx, place, o)
	if err == nil && isNew {
		made(ctx, env, k)
	}
	var absent *store.AbsentError
	if errors.As(err, &absent) {
		if folder := f.checkFolder(env, place); folder != nil {
			return k, folder // no command would make a store there
		}
		err = fmt.Errorf("%w; %s makes one", err, cmp.Or(f.begins, "antiphon run FILE --session NAME"))
	}
	return k, err
}

// place returns the place of the store.
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

// isStore reports whether a path is the store's own file.
func (f *storeFlag) isStore(env environment, path string) bool {
	place, err := f.place(env)
	return err == nil && sameFile(place, path)
}

// again returns the flags that name the same store in a suggested command. It does
// not repeat an address, which may contain a password.
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

// dataFile returns the default place of sessions: in the user's data folder,
// according to the XDG base directory specification or the conventions of the
// system.
func dataFile(env environment) (string, error) {
	dir := env["XDG_DATA_HOME"]
	if runtime.GOOS == "windows" && dir == "" {
		dir = env["LOCALAPPDATA"]
	}
	if !filepath.IsAbs(dir) { // including ""
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usage(errors.New("the home folder for sessions is not known; give --store FILE"))
		}
		dir = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(dir, "antiphon", "sessions.db"), nil
}

// resolvedOnce returns the path of a file, or the path that it had before it was
// moved or deleted.
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

// find returns the session that a person names; see [host.Find].
func find(ctx context.Context, store session.Catalog, name string, archived bool) (session.Info, error) {
	if n, counted := fromLast(name); counted {
		return nth(ctx, store, n)
	}
	info, err := host.Find(ctx, store, name, archived)
	return info, orList(err)
}

// findWhole is like find for commands that change or delete a session.
func findWhole(ctx context.Context, store session.Catalog, name string, archived bool) (session.Info, error) {
	if n, counted := fromLast(name); counted {
		return nth(ctx, store, n)
	}
	info, err := host.FindWhole(ctx, store, name, archived)
	return info, orList(err)
}

// counting begins what stands for -1, -2 and so on, which name the last session, the one before
// it and so on. No session can have such a name, and it is not read as a flag.
const counting = "/-"

// countsBack replaces -1, -2 and so on in the place of a session's name.
func countsBack(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		digits, isNumber := strings.CutPrefix(arg, "-")
		if n, err := strconv.Atoi(digits); !isNumber || err != nil || n < 1 || strings.ContainsAny(digits, "+-") {
			continue
		}
		named := i > 0 && (args[i-1] == "--session" || args[i-1] == "--attach" || args[i-1] == "--in")
		if named || args[0] == "sessions" && i > 1 && (args[1] != "tag" || i == 2) && !strings.HasPrefix(args[i-1], "--") {
			args[i] = counting + digits
		}
	}
	return args
}

// fromLast returns the number behind [counting].
func fromLast(name string) (n int, counted bool) {
	digits, counted := strings.CutPrefix(name, counting)
	n, err := strconv.Atoi(digits)
	return n, counted && err == nil
}

// lastByNumber turns --session -1 into --last.
func lastByNumber(name *string, last *bool) error {
	n, counted := fromLast(*name)
	switch {
	case !counted:
		return nil
	case n > 1:
		return usage(fmt.Errorf("--session -%d: only -1, the last session, can be named so; -r chooses another one", n))
	}
	*name, *last = "", true
	return nil
}

// nth returns the nth session from the last that was written to, 1 being that one.
func nth(ctx context.Context, in session.Catalog, n int) (found session.Info, err error) {
	left := n
	for info, err := range in.List(ctx, session.Query{Limit: n}) {
		if err != nil { // also a damaged row, behind all others: it may be the one that is meant
			return found, err
		}
		left--
		found = info
	}
	if left == 0 {
		return found, nil
	}
	return session.Info{}, usage(fmt.Errorf("there are fewer sessions than -%d counts: antiphon sessions list shows them", n))
}

// orList adds the command that lists sessions, or the sessions that may have been
// meant.
func orList(err error) error {
	var none *host.NoSessionError
	var many *host.AmbiguousError
	switch {
	case errors.As(err, &none):
		return usage(fmt.Errorf("%w; antiphon sessions list shows all sessions", err))
	case errors.As(err, &many):
		var b strings.Builder
		for _, info := range many.Sessions {
			fmt.Fprintf(&b, "\n  %s  %s%s", info.ID, cmp.Or(info.Path, info.Title), specials(info))
		}
		if many.More {
			b.WriteString("\n  and others")
		}
		return usage(fmt.Errorf("%q matches several sessions; give one of the ids:%s", many.Name, b.String()))
	}
	return err
}
