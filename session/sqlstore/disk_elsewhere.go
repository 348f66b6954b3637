// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sqlstore

// fileSystem does not know the kinds of file systems here.
func fileSystem(string) (kind, weak string) { return "unknown", "" }
