// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package agentfile

import (
	"errors"
	"io/fs"
)

// isReadOnly reports whether a file could not be made in a folder that cannot be
// written to.
func isReadOnly(err error) bool { return errors.Is(err, fs.ErrPermission) }
