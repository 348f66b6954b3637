// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import "github.com/antiphon-go/antiphon/toolkit/internal/files"

// DefaultRootName is the name of the first root when it is given none.
const DefaultRootName = files.DefaultRootName

// MaxEditBytes is the largest file that append_to_file, find_and_replace and a
// patch change.
const MaxEditBytes = files.MaxEditBytes

// Root is a directory that tools may work in.
type Root = files.Root

// Files are the opened roots of a set of tools. The first root is the one that
// a plain relative path belongs to. It is safe for concurrent use; writes
// through one Files are done one at a time.
//
// Close closes the roots, and Roots returns them with absolute paths. The other
// methods are for the tools of this module.
type Files = files.Files

// Open opens the roots. It fails when there are none, when a name is invalid or
// given twice, and when a path is not a directory that can be opened. The caller
// closes the Files when no tool uses it any more.
func Open(roots ...Root) (*Files, error) { return files.Open(roots...) }

// fileTools are the tools of this package over the roots of a Files, as methods.
type fileTools struct{ *Files }
