// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"iter"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/kept"
)

// files are the files of clients. The server puts their content into requests, so upstreams do not
// need them.
func (s *Store) files() kept.Files {
	return kept.Files{In: s.In, Owner: s.Owner, Apart: s.Owner != ""}
}

// AddFile implements [server.Filer].
func (s *Store) AddFile(ctx context.Context, f server.File, content []byte) (server.File, error) {
	if nils.Is(s.In) {
		return f, errNoSessions
	}
	s.sweep()
	return s.files().AddFile(ctx, f, content)
}

// File implements [server.Filer].
func (s *Store) File(ctx context.Context, id string) (server.File, error) {
	if nils.Is(s.In) {
		return server.File{}, errNoSessions
	}
	return s.files().File(ctx, id)
}

// OpenFile implements [server.Filer].
func (s *Store) OpenFile(ctx context.Context, id string) (io.ReadCloser, error) {
	if nils.Is(s.In) {
		return nil, errNoSessions
	}
	return s.files().OpenFile(ctx, id)
}

// Files implements [server.Filer].
func (s *Store) Files(ctx context.Context) iter.Seq2[server.File, error] {
	if nils.Is(s.In) {
		return func(yield func(server.File, error) bool) { yield(server.File{}, errNoSessions) }
	}
	return s.files().Files(ctx)
}

// DeleteFile implements [server.Filer].
func (s *Store) DeleteFile(ctx context.Context, id string) error {
	if nils.Is(s.In) {
		return errNoSessions
	}
	return s.files().DeleteFile(ctx, id)
}

var _ server.Filer = (*Store)(nil)
