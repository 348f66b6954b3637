// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/zalando/go-keyring"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
)

// keyService is the name of the program in keyrings.
const keyService = "antiphon"

// secretVariable holds the key for the source env.
const secretVariable = host.StoreSecret

// keySource is the place of the key of an encrypted store.
type keySource struct {
	kind string // file, keyring, env
	name string // of the file, or in the keyring
}

// source returns the source of the store's key, or nil.
func (f *storeFlag) source(env environment) (*keySource, error) {
	if err := env.Filled("ANTIPHON_STORE_KEY"); err != nil && f.StoreKey == "" {
		return nil, err
	}
	return parseSource(cmp.Or(f.StoreKey, env["ANTIPHON_STORE_KEY"]))
}

// parseSource parses a source. Errors do not repeat the text, because it may be the
// key.
func parseSource(text string) (*keySource, error) {
	kind, name, named := strings.Cut(text, ":")
	switch {
	case text == "" || text == "none":
		return nil, nil
	case text == "env", kind == "file" && name != "":
		return &keySource{kind, name}, nil
	case text == "keyring", kind == "keyring" && named && name != "":
		return &keySource{kind, cmp.Or(name, "sessions")}, nil
	}
	return nil, fmt.Errorf("--store-key or $ANTIPHON_STORE_KEY: not a place where a key is kept; give file:PATH, keyring, keyring:NAME, env (for $%s) or none, never the key itself", secretVariable)
}

// options returns the options of the store, with its key.
func (f *storeFlag) options(env environment, create bool) (store.Options, error) {
	o := store.Options{Create: create, Keyless: !create}
	source, err := f.source(env)
	if err != nil {
		return o, usage(err)
	}
	if source != nil {
		o.Key = func(context.Context) (endpoint.Key, error) { return source.read(env) }
	}
	return o, nil
}

// read returns the key.
func (k *keySource) read(env environment) (endpoint.Key, error) {
	var text string
	var err error
	switch k.kind {
	case "env":
		if text = env[secretVariable]; text == "" {
			return endpoint.Key{}, k.fail(fmt.Errorf("$%s is not set", secretVariable))
		}
	case "keyring":
		if text, err = ringGet(keyService, k.name); errors.Is(err, keyring.ErrNotFound) {
			err = fmt.Errorf("it has no key called %q; antiphon sessions key %s makes one, for a new store", k.name, quoted(k.String()))
		} else if err != nil {
			err = noKeyring(err)
		}
	default:
		text, err = readKeyFile(k.name)
	}
	if err != nil {
		return endpoint.Key{}, k.fail(k.next(err))
	}
	key := endpoint.NewKey(text)
	if err := sqlstore.CheckSecret(key); err != nil {
		return endpoint.Key{}, k.fail(err)
	}
	return key, nil
}

// String returns the source in the form of --store-key.
func (k *keySource) String() string {
	if k.kind == "env" {
		return k.kind
	}
	return k.kind + ":" + k.name
}

func (k *keySource) fail(err error) error {
	return usage(fmt.Errorf("the key of the store (%s): %w", k, err))
}

// next adds a hint to the error about a missing file.
func (k *keySource) next(err error) error {
	if k.kind == "file" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w\n  hint: antiphon sessions key %s makes one, for a new store; an existing store needs the key that created it", err, quoted(k.String()))
	}
	return err
}

// noKeyring adds a hint to the error about an unusable keyring.
func noKeyring(err error) error {
	return fmt.Errorf("this system has no keyring that can be used: %w\n  hint: keep the key in a file: file:PATH", err)
}

// readKeyFile reads a key from a file that only its owner can read.
func readKeyFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would wait
		return "", errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err = f.Stat()
	switch {
	case err != nil:
		return "", err
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others may read the file (mode %04o); chmod 600 it, and think about a new key", info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, 1024))
	return string(text), err
}

// keyCommand is antiphon sessions key.
type keyCommand struct {
	Place string `arg:"" help:"file:PATH, keyring or keyring:NAME."`
}

// Help is shown by antiphon sessions key --help.
func (keyCommand) Help() string {
	return `The key is random and is not printed. A store that is new is encrypted with the
key that --store-key names, for good; without the key nobody can read it.

Examples:
  antiphon sessions key keyring
  antiphon sessions key file:$HOME/antiphon.key
  antiphon run agent.md --session work --store private.db --store-key keyring
  export ANTIPHON_STORE=~/private.db ANTIPHON_STORE_KEY=keyring`
}

// madeKey is what sessions key --json prints.
type madeKey struct {
	Key string `json:"key"` // where it is
}

// Run makes a key.
func (c *keyCommand) Run(std stdio, env environment, all *sessionsCommand) error {
	all.hide = env.Hider()
	source, err := parseSource(c.Place)
	switch {
	case err != nil: // the argument may be a key, so it is not repeated
		return usage(errors.New("give file:PATH, keyring or keyring:NAME: where the new key is to be kept, never a key"))
	case source == nil || source.kind == "env":
		return usage(errors.New("give file:PATH, keyring or keyring:NAME: this program cannot set a variable of your shell"))
	}
	if err := source.make(); err != nil {
		return source.fail(err)
	}
	return all.told(std, madeKey{source.String()}, "a new key is in %s; keep a copy in a safe place: without it nobody can read the stores that are made with it", source)
}

// make stores a new key, unless one exists.
func (k *keySource) make() error {
	if k.kind == "keyring" {
		_, err := ringGet(keyService, k.name)
		if err == nil {
			return fmt.Errorf("there is a key called %q already; give another NAME", k.name)
		}
		if errors.Is(err, keyring.ErrNotFound) {
			err = ringSet(keyService, k.name, sqlstore.NewSecret())
		}
		if err != nil {
			return noKeyring(err)
		}
		return nil
	}
	f, err := os.OpenFile(k.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errors.New("the file exists already; give another name")
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(sqlstore.NewSecret() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(k.name))
	}
	return nil
}
