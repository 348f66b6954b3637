// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/internal/private"
)

// Keys is a file of keys, which only its owner can read and write. A missing file has no
// keys. It is safe for concurrent use, also by several processes: a server notices when
// another process changes the file.
type Keys struct {
	path string

	mu   sync.Mutex
	seen fs.FileInfo // of the file that list was read from; nil if there was none
	list []Key
	byID map[string]int
}

// OpenKeys returns the keys in the file at path. It does not read the file.
func OpenKeys(path string) *Keys { return &Keys{path: path} }

// maxKeys is how large the file may be in bytes: some 100 000 keys.
const maxKeys = 64 << 20

// keyFile is the content of the file.
type keyFile struct {
	Version int   `json:"version"`
	Keys    []Key `json:"keys"`
}

// keyVersion is the version of the file's format.
const keyVersion = 1

// load reads the file if it has changed. The caller must hold mu.
func (k *Keys) load() error {
	if k.path == "" {
		return errors.New("access: the keys have no file: use OpenKeys")
	}
	info, err := os.Stat(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		k.seen, k.list, k.byID = nil, nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("the file of keys: %w", err)
	}
	if k.seen != nil && os.SameFile(info, k.seen) && info.ModTime().Equal(k.seen.ModTime()) && info.Size() == k.seen.Size() {
		return nil
	}
	k.seen = nil // a file that cannot be read gives no access
	text, err := private.ReadFile(k.path, maxKeys)
	if err != nil {
		return fmt.Errorf("the file of keys %s: %w", k.path, err)
	}
	var f keyFile
	if err := json.Unmarshal(text, &f); err != nil {
		return fmt.Errorf("the file of keys %s: %w", k.path, err)
	}
	if f.Version != keyVersion {
		return fmt.Errorf("the file of keys %s has version %d, and this program knows version %d", k.path, f.Version, keyVersion)
	}
	k.seen, k.list, k.byID = info, f.Keys, make(map[string]int, len(f.Keys))
	for i := range f.Keys {
		k.byID[f.Keys[i].ID] = i
	}
	return nil
}

// List returns all keys, oldest first, also those that are revoked or have expired.
func (k *Keys) List() ([]Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.load(); err != nil {
		return nil, err
	}
	return slices.Clone(k.list), nil
}

// any reports whether there is a key, valid or not.
func (k *Keys) any() (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.load()
	return len(k.list) > 0, err
}

// errUnknown, errExpired and errRevoked say why a key gives no access.
var (
	errUnknown = errors.New("the key is not known")
	errExpired = errors.New("the key has expired")
	errRevoked = errors.New("the key is revoked")
)

// find returns the key that somebody sent. Only who has the secret is told that a key has
// expired or was revoked.
func (k *Keys) find(sent string, now time.Time) (Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.load(); err != nil {
		return Key{}, err
	}
	found, secret := &nobody, ""
	if part := keyForm.FindStringSubmatch(sent); part != nil {
		secret = part[2]
		if i, ok := k.byID[part[1]]; ok {
			found = &k.list[i]
		}
	}
	switch {
	case !found.matches(secret) || found == &nobody:
		return Key{}, errUnknown
	case !found.Revoked.IsZero():
		return Key{}, errRevoked
	case !found.Valid(now):
		return Key{}, errExpired
	}
	return *found, nil
}

// still reports whether a key that was found is valid now.
func (k *Keys) still(id string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.load()
	i, ok := k.byID[id]
	return err == nil && ok && k.list[i].Valid(now)
}

// Create adds a key with the given name, project, scopes, limits and expiry. It returns
// the key as clients send it, which cannot be found out again, and its description.
func (k *Keys) Create(ctx context.Context, key Key) (sent string, made Key, err error) {
	now := time.Now().UTC().Truncate(time.Second)
	if err := key.check(now); err != nil {
		return "", Key{}, err
	}
	key.Created, key.Revoked = now, time.Time{}
	err = k.change(ctx, func(list []Key) ([]Key, error) {
		for i := range list {
			if list[i].Name == key.Name && list[i].Revoked.IsZero() {
				return nil, fmt.Errorf("there is a key with the name %s: choose another, or revoke that one", key.Name)
			}
		}
		for sent == "" || slices.ContainsFunc(list, func(other Key) bool { return other.ID == key.ID }) {
			sent = key.newSecret()
		}
		return append(list, key), nil
	})
	if err != nil {
		return "", Key{}, err
	}
	return sent, key, nil
}

// Revoke ends a key, given by its name or its id, at once. It stays in the list.
func (k *Keys) Revoke(ctx context.Context, which string) (Key, error) {
	var revoked Key
	err := k.change(ctx, func(list []Key) ([]Key, error) {
		for i := range list {
			if key := &list[i]; key.Revoked.IsZero() && (key.ID == which || key.Name == which) {
				key.Revoked = time.Now().UTC().Truncate(time.Second)
				revoked = *key
				return list, nil
			}
		}
		return nil, fmt.Errorf("no key has the name or the id %.80q, or it is revoked already", which)
	})
	return revoked, err
}

// lockTime is how long a change waits for another process. A change takes milliseconds.
const lockTime = 5 * time.Second

// change replaces the file. A reader finds the old file or the new one.
func (k *Keys) change(ctx context.Context, f func([]Key) ([]Key, error)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.path == "" {
		return k.load()
	}
	lock, err := filelock.TakeWithin(ctx, k.path+".lock", lockTime)
	if err != nil {
		return fmt.Errorf("the file of keys %s: %w", k.path, err)
	}
	err = k.load()
	if err == nil {
		var list []Key
		if list, err = f(slices.Clone(k.list)); err == nil {
			err = k.write(list)
		}
	}
	return errors.Join(err, lock.Release())
}

func (k *Keys) write(list []Key) error {
	text, err := json.Marshal(keyFile{keyVersion, list}, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(k.path), ".antiphon-keys-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = draft.Write(append(text, '\n'))
	if err = errors.Join(err, draft.Sync(), draft.Close()); err == nil {
		err = os.Rename(draft.Name(), k.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}
