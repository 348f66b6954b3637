// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

// WatchSync calls seen for each folder whose names are made to last, until undo
// is called.
func WatchSync(seen func(dir string)) (undo func()) {
	before := syncFolder
	syncFolder = func(dir string) {
		before(dir)
		seen(dir)
	}
	return func() { syncFolder = before }
}

// LimitSources lowers how much a file may include, until undo is called.
func LimitSources(bytes int64) (undo func()) {
	before := maxSources
	maxSources = bytes
	return func() { maxSources = before }
}
