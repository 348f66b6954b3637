// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// J14: an encrypted store from its first run to its backup: what was said, read
// and answered is in no file beside it, and its key is nowhere.
func TestEncryptedSessions(t *testing.T) {
	const said = "what nobody else may read"
	agent, flags, srv := keeping(t, agenttest.Completed(item.Assistant("The note says: "+said)), agenttest.Completed(item.Assistant("Again: "+said)))
	write(t, filepath.Join(filepath.Dir(agent), "note.txt"), strings.Repeat(said+"\n", 10_000)) // more than a model gets at once
	dir := t.TempDir()
	key, store := filepath.Join(t.TempDir(), "key"), filepath.Join(dir, "private.db")
	flags[5] = store
	t.Setenv("ANTIPHON_STORE", store)

	o := program(t, "sessions", "key", "file:"+key)
	secret := strings.TrimSpace(read(t, key))
	if o.code != 0 || len(secret) != 64 || strings.Contains(o.out+o.err, secret) {
		t.Fatalf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "sessions", "key", "file:"+key); o.code != 2 || strings.TrimSpace(read(t, key)) != secret {
		t.Errorf("a key was replaced: %s", o.err)
	}
	with := []string{"--store-key", "file:" + key}
	do := func(want int, args ...string) outcome {
		t.Helper()
		o := program(t, args...)
		if o.code != want || strings.Contains(o.out+o.err, secret) {
			t.Fatalf("%v: exit code %d, want %d\n%s%s", args, o.code, want, o.out, o.err)
		}
		return o
	}
	do(0, append(flags, with...)...)
	sessions := func(want int, args ...string) outcome {
		t.Helper()
		return do(want, append([]string{"sessions", "--store", store}, args...)...)
	}
	asked := len(srv.Requests())
	for _, other := range [][]string{nil, {"--store-key", "file:" + write(t, filepath.Join(dir, "other"), sqlstore.NewSecret())}, {"--store-key", secret}, {"--store-key", "file:" + filepath.Join(dir, "none")}} {
		if o := do(2, append(append(flags[:len(flags):len(flags)], "go on"), other...)...); !strings.Contains(o.err, "key") {
			t.Error(o.err)
		}
	}
	if n := len(srv.Requests()); n != asked {
		t.Errorf("%d requests were sent without the key", n-asked)
	}
	_ = os.Remove(filepath.Join(dir, "other"))

	if o := sessions(2, "show", "work"); !strings.Contains(o.err, "--store-key") {
		t.Error(o.err)
	}
	if o := sessions(0, "list"); strings.Contains(o.out, "What does") || !strings.Contains(o.out, "work") {
		t.Error(o.out)
	}
	if o := sessions(0, append([]string{"list"}, with...)...); !strings.Contains(o.out, "What does note.txt say?") {
		t.Error(o.out)
	}
	if o := sessions(0, append([]string{"show", "work"}, with...)...); !strings.Contains(o.out, said) {
		t.Error(o.out)
	}
	sessions(0, "verify")
	sessions(0, append([]string{"verify"}, with...)...)
	backup := filepath.Join(dir, "backup.db")
	sessions(0, "backup", backup)
	if o := do(0, append([]string{"sessions", "--store", backup, "show", "work"}, with...)...); !strings.Contains(o.out, said) {
		t.Error(o.out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.Contains(string(text), "nobody else") || strings.Contains(string(text), "note.txt") || strings.Contains(string(text), secret) {
			t.Errorf("%s holds what was said", file)
		}
	}
	lines := filepath.Join(t.TempDir(), "work.jsonl")
	sessions(0, append([]string{"export", "work", "-o", lines}, with...)...)
	if !strings.Contains(read(t, lines), said) {
		t.Error("an export is not readable")
	}
	sessions(0, append([]string{"import", lines, "--name", "again"}, with...)...)
	do(0, append(append(flags[:len(flags):len(flags)], "go on"), with...)...)
}

// A key is in a file that others cannot read, in the keyring or in a variable; an
// error never repeats what was given, which may be the key.
func TestKeySources(t *testing.T) {
	keyring.MockInit()
	dir := t.TempDir()
	key, store := filepath.Join(dir, "key"), filepath.Join(dir, "s.db")
	secret := sqlstore.NewSecret()
	open := func(env environment, source string) error {
		t.Helper()
		store, err := (&storeFlag{Store: store, StoreKey: source}).open(t.Context(), env, true)
		if err == nil {
			err = store.Close()
		}
		return err
	}
	write(t, key, secret+"\n")
	if err := open(nil, "file:"+key); err != nil {
		t.Fatal(err)
	}
	env := environment{secretVariable: secret}
	if err := open(env, "env"); err != nil {
		t.Error(err)
	}
	if text := env.Hide("it is " + secret); strings.Contains(text, secret) {
		t.Error(text)
	}
	if o := program(t, "sessions", "key", "keyring:mine"); o.code != 0 {
		t.Error(o.err)
	}
	if o := program(t, "sessions", "key", "keyring:mine"); o.code != 2 {
		t.Error("a key in the keyring was replaced")
	}
	made, err := keyring.Get(keyService, "mine")
	if err != nil || sqlstore.CheckSecret(endpoint.NewKey(made)) != nil {
		t.Error(err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(key, 0o640); err != nil {
			t.Fatal(err)
		}
		if err := open(nil, "file:"+key); err == nil || !strings.Contains(err.Error(), "others may read") {
			t.Error(err)
		}
	}
	for _, source := range []string{"env", "keyring:mine", "keyring:none", "file:" + filepath.Join(dir, "none"), "file:" + dir, secret, "sha:" + secret, "file:", "keyring:"} {
		if err := open(nil, source); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", source, err)
		}
	}
	missing := "file:" + filepath.Join(dir, "none")
	if err := open(nil, missing); err == nil || !strings.Contains(err.Error(), "antiphon sessions key "+quoted(missing)+" makes one") {
		t.Error(err)
	}
	keyring.MockInitWithError(errors.New("no bus"))
	defer keyring.MockInit()
	if o := program(t, "sessions", "key", "keyring"); o.code != 2 || !strings.Contains(o.err, "no keyring") || !strings.Contains(o.err, "file:PATH") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	if err := open(nil, "none"); err == nil || !strings.Contains(err.Error(), "encrypted, and no key") {
		t.Error(err)
	}
}
