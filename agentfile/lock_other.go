// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package agentfile

import (
	"errors"
	"io/fs"

	"github.com/antiphon-go/antiphon/internal/filelock"
)

// isReadOnly reports whether a file could not be made in a folder that cannot be
// written to.
func isReadOnly(err error) bool { return errors.Is(err, fs.ErrPermission) }

// alsoItself locks nothing: an open file could not be replaced.
func alsoItself(string) (*filelock.Lock, error) { return nil, nil }
