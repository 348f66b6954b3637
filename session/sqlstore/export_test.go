// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

// Waiting returns how many writes wait for the next commit.
func (s *Store) Waiting() int {
	s.commit.mu.Lock()
	defer s.commit.mu.Unlock()
	return len(s.commit.queue)
}

// Formats returns the version of the newest format of a dialect, and the SQL
// that makes an empty database of it.
func Formats(dialect string) (newest int, schema string) {
	all, err := migrationsOf(migrations, dialect)
	if err != nil {
		panic(err)
	}
	for _, m := range all {
		schema += m.sql
	}
	return len(all), schema
}
