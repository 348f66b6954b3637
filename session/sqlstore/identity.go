// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// Identity returns 16 digits that no other file has, except for copies of this one. The first
// call writes them into the file. For Postgres it returns an error.
//
// They are in two numbers of the file's head that SQLite leaves to programs, and not in a table, so that
// older versions of this package still open the file.
func (s *Store) Identity(ctx context.Context) (string, error) {
	if err := s.opened(); err != nil {
		return "", err
	}
	if s.postgres {
		return "", &Error{Store: s.place, Op: "identifying", Problem: "it is not a file"}
	}
	id, err := readIdentity(ctx, &s.reads)
	if err == nil && id == "" {
		err = s.commit.write(ctx, func(ctx context.Context, t *tx) error {
			if id, err = readIdentity(ctx, t); err != nil || id != "" { // another process was faster
				return err
			}
			var random [8]byte
			_, _ = rand.Read(random[:]) // it never fails
			for i, name := range numbers {
				number := int32(binary.BigEndian.Uint32(random[4*i:]))
				if _, err := t.q.ExecContext(ctx, fmt.Sprintf("PRAGMA %s = %d", name, number)); err != nil {
					return err
				}
			}
			id, err = readIdentity(ctx, t)
			return err
		})
	}
	if err != nil {
		return "", s.fail("identifying", err)
	}
	return id, nil
}

// numbers are the two that SQLite leaves to programs.
var numbers = [2]string{"application_id", "user_version"}

// readIdentity returns the digits that the file has, or "".
func readIdentity(ctx context.Context, t *tx) (id string, err error) {
	var both uint64
	for _, name := range numbers {
		var number int32
		if err := t.row(ctx, "PRAGMA "+name).Scan(&number); err != nil {
			return "", err
		}
		both = both<<32 | uint64(uint32(number))
	}
	if both == 0 {
		return "", nil
	}
	return fmt.Sprintf("%016x", both), nil
}
