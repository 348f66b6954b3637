// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import "github.com/antiphon-go/antiphon/toolkit/internal/files"

// DefaultRootName is the default name of the first root.
const DefaultRootName = files.DefaultRootName

// MaxEditBytes is the maximum size of a file that append_to_file, find_and_replace
// and a patch can change.
const MaxEditBytes = files.MaxEditBytes

// Root is a directory that tools may work in.
type Root = files.Root

// Files are the opened roots of a set of tools. A plain relative path belongs to the
// first root. Files are safe for concurrent use; writes through one Files are
// sequential.
//
// Close closes the roots, and Roots returns them with absolute paths. The other
// methods are for the tools of this module.
type Files = files.Files

// Open opens the roots. It fails if there are none, if a name is invalid or
// repeated, or if a path is not a directory that can be opened. The caller closes
// the Files when no tool uses them any more.
func Open(roots ...Root) (*Files, error) { return files.Open(roots...) }

// fileTools are the tools of this package over the roots of a Files, as methods.
type fileTools struct{ *Files }
