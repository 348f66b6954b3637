// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import "os"

// writable returns an error if the file is read-only.
func writable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o200 == 0 {
		err = &os.PathError{Op: "write", Path: path, Err: os.ErrPermission}
	}
	return err
}
