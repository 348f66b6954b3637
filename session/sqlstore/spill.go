// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"encoding/hex"
	"errors"
	"io"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Spill keeps outputs that are too long to be sent in a session's blobs: they
// are there as long as the session is.
type Spill struct {
	store   session.Blobs
	session string
}

// Spill returns the [tool.Spill] of a session.
func (s *Store) Spill(id string) *Spill { return &Spill{s, id} }

var _ tool.Spill = (*Spill)(nil)

// Put implements [tool.Spill]. The id is the blob's hash.
func (p *Spill) Put(ctx context.Context, data []byte) (id string, err error) {
	hash, err := p.store.PutBlob(ctx, p.session, data)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(hash[:]), nil
}

// Get implements [tool.Spill].
func (p *Spill) Get(ctx context.Context, id string, offset, n int) (data []byte, size int, err error) {
	hash, err := hex.DecodeString(id)
	if err != nil || len(hash) != len(session.Hash{}) || hex.EncodeToString(hash) != id {
		return nil, 0, tool.ErrNotStored
	}
	b, length, err := p.store.OpenBlob(ctx, session.Hash(hash))
	if errors.Is(err, session.ErrNoBlob) {
		return nil, 0, tool.ErrNotStored
	}
	if err != nil {
		return nil, 0, err
	}
	defer b.Close()
	size = int(length)
	from := min(max(offset, 0), size)
	data = make([]byte, min(max(n, 0), size-from))
	if _, err := b.ReadAt(data, int64(from)); err != nil && err != io.EOF {
		return nil, 0, err
	}
	return data, size, nil
}
