// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// needs reports damage if a payload of an entry is missing, or if antiphon_refs does
// not list it. That table has no checksums, and a sweep removes the payloads that it
// does not list.
func (w *walk) needs(ctx context.Context, e *scanned, log int64) error {
	if e.damage != nil || w.s.seal.closed() {
		return nil
	}
	for _, p := range payloadsOf(e.line) {
		problem, err := w.s.unkept(ctx, p, log, e.seq)
		if err != nil {
			return err
		}
		if problem != "" {
			e.damage = &session.Damage{Entry: e.seq, Place: fmt.Sprintf("table antiphon_refs, log %d", log), Problem: problem}
		}
	}
	return nil
}

// payloadsOf returns the payloads of an entry that are stored separately. It returns
// none for a line that is not an entry; reading the entry reports that.
func payloadsOf(line []byte) (found []item.Payload) {
	if !bytes.Contains(line, []byte(`"sha256":`)) {
		return nil
	}
	split := session.Split{Join: func(_ string, payloads []item.Payload) (item.Item, error) {
		found = append(found, payloads...)
		return item.Item{}, nil
	}}
	_, _ = split.ParseEntry(string(line))
	return found
}

// unkept describes what is wrong with the storage of an entry's payload, or returns
// "" if nothing is.
func (s *Store) unkept(ctx context.Context, p item.Payload, log, seq int64) (problem string, err error) {
	name := s.seal.name(p.Hash)
	var stored, kept int
	err = s.reads.row(ctx, `SELECT count(*), count(r.blob) FROM antiphon_blobs b
		LEFT JOIN antiphon_refs r ON r.blob = b.blob AND r.log = ? AND r.first <= ? WHERE b.hash = ?`, log, seq, name[:]).Scan(&stored, &kept)
	switch {
	case codeOf(err) == sqliteCorrupt:
		return err.Error(), nil
	case err != nil:
		return "", err
	case stored == 0:
		return fmt.Sprintf("its payload %x is missing", p.Hash[:8]), nil
	case kept == 0:
		return fmt.Sprintf("the row that keeps its payload %x is missing, so that gc would remove the payload", p.Hash[:8]), nil
	}
	return "", nil
}
