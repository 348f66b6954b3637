// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile writes the text to a file, and creates missing folders. After a crash
// the file has either its old or its new content.
func replaceFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	if err := makeFolders(dir); err != nil {
		return plain(err)
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return plain(err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return plain(err)
	}
	syncFolder(dir)
	return nil
}

// makeFolders creates a folder and its parents durably.
func makeFolders(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeFolders(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	syncFolder(filepath.Dir(dir))
	return nil
}

// syncFolder makes the names in a folder durable if the system supports it. It is a
// variable so that tests can observe it.
var syncFolder = func(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	_ = f.Sync() // some systems do not support this for folders
	_ = f.Close()
}
