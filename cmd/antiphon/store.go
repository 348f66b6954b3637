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

// find returns the session that a person means: by its id, by its name, or by
// the beginning of an id that no other has; see [beginsID]. Of one name, those
// count that are archived, or those that are not.
func find(ctx context.Context, store session.Catalog, name string, archived bool) (session.Info, error) {
	if name == "" {
		return session.Info{}, usage(errors.New("a session is wanted, and its name is empty"))
	}
	info, err := store.Info(ctx, name)
	if err == nil || !errors.Is(err, session.ErrNotFound) {
		return info, err
	}
	named, more, err := few(ctx, store, session.Query{Name: name, Archived: true})
	if err != nil {
		return session.Info{}, err
	}
	if meant := slices.DeleteFunc(slices.Clone(named), func(i session.Info) bool { return i.Archived != archived }); len(meant) > 0 {
		named = meant
	}
	var alike []session.Info
	if len(named) == 0 {
		if alike, more, err = few(ctx, store, session.Query{Prefix: name, Archived: true}); err != nil {
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
			if alike, err = similar(ctx, store, name); err != nil {
				return session.Info{}, err
			}
		}
		return session.Info{}, usage(fmt.Errorf("there is no session %q%s; antiphon sessions list shows those that are there", name, butThese(alike)))
	case 1:
		return named[0], nil
	}
	var b strings.Builder
	for _, info := range named {
		fmt.Fprintf(&b, "\n  %s  %s%s", info.ID, cmp.Or(info.Path, info.Title), specials(info))
	}
	if more {
		b.WriteString("\n  and others")
	}
	return session.Info{}, usage(fmt.Errorf("%q means several sessions; name one by its id:%s", name, b.String()))
}

// maxLooked is among how many sessions, those written to last, a name that is nearly
// the same is looked for.
const maxLooked = 1000

// similar returns the sessions, of those written to last, whose names the one that
// was typed may be a slip of.
func similar(ctx context.Context, store session.Catalog, name string) (list []session.Info, err error) {
	for info, err := range store.List(ctx, session.Query{Archived: true, Limit: maxLooked}) {
		if err != nil {
			return nil, err
		}
		if host.Nearly(info.Name, name) {
			list = append(list, info)
		}
	}
	return list, nil
}

// findWhole is like find for commands that change or delete a session: a few
// digits of an id that were mistyped must not mean another session, so these
// commands need a whole name or id.
func findWhole(ctx context.Context, store session.Catalog, name string, archived bool) (session.Info, error) {
	info, err := find(ctx, store, name, archived)
	if err == nil && info.ID != name && info.Name != name {
		return session.Info{}, usage(fmt.Errorf("%q is only the beginning of an id; to change or delete the session, give its whole name or id: %s", name, info.ID))
	}
	return info, err
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

// butThese names the first sessions that a person may have meant.
func butThese(alike []session.Info) string {
	var names []string
	for _, info := range alike {
		if name := cmp.Or(info.Name, info.ID); !slices.Contains(names, name) && len(names) < 3 {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "; there is " + names[0]
	}
	return "; there are " + strings.Join(names, ", ")
}

// maxAmbiguous is how many sessions are named that may be meant.
const maxAmbiguous = 20

// few returns the first sessions of a list, and whether there are more.
func few(ctx context.Context, store session.Catalog, q session.Query) (list []session.Info, more bool, err error) {
	q.Limit = maxAmbiguous + 1
	for info, err := range store.List(ctx, q) {
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
