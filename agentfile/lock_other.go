// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package agentfile

import (
	"errors"
	"io/fs"

	"github.com/antiphon-go/antiphon/internal/filelock"
)

// isReadOnly reports whether a file could not be created because its folder is not
// writable.
func isReadOnly(err error) bool { return errors.Is(err, fs.ErrPermission) }

// alsoItself does nothing, because a locked file could not be replaced on this
// system.
func alsoItself(string) (*filelock.Lock, error) { return nil, nil }
