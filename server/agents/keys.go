// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"

	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/kept"
)

// tagKeys marks the sessions that name the responses that were made for an Idempotency-Key.
const tagKeys = "responses-key"

// book returns what remembers keys. V4
func (b *Backend) book() *kept.Book {
	b.keysOnce.Do(func() {
		b.keys = &kept.Book{
			In: b.store(), Owner: b.owner(), Prefix: prefix + "key-", Tag: tagKeys, Keep: b.KeepKeys, Log: b.report,
			Find: func(ctx context.Context, id string) error {
				_, err := b.Get(ctx, id)
				return err
			},
		}
	})
	return b.keys
}

// Claim implements [server.Rememberer].
func (b *Backend) Claim(ctx context.Context, key, body string) (made string, name func(context.Context, string) error, release func(), err error) {
	return b.book().Claim(ctx, key, body)
}

// stillNamed returns an error if another server has named a response for the key of this one.
func (b *Backend) stillNamed(ctx context.Context, id string) error {
	err := b.book().Check(ctx, id)
	if errors.Is(err, kept.ErrLost) {
		return errLocked
	}
	return err
}

var _ server.Rememberer = (*Backend)(nil)
