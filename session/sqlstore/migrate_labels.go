// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import "context"

// addNameKeys is the step to format 3: it computes the second index of names. It
// leaves the index of words empty. All sessions are marked as not indexed, and the
// first search indexes them in small transactions; see [Store.Search].
func addNameKeys(ctx context.Context, t *tx) error {
	names, err := t.texts(ctx, `SELECT DISTINCT name FROM antiphon_sessions WHERE name <> ''`)
	for _, name := range names {
		if err == nil {
			_, err = t.exec(ctx, `UPDATE antiphon_sessions SET name_key = ? WHERE name = ? AND name <> ''`, nameKeyOf(name), name)
		}
	}
	return err
}
