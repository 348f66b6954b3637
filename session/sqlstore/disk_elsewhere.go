// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sqlstore

// fileSystem reports an unknown file system: only the Linux version can tell.
func fileSystem(string) (kind, weak string) { return "unknown", "" }
