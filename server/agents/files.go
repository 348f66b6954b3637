// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"context"
	"io"
	"iter"

	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/kept"
)

// There are two kinds of files: those of clients, and those in the outputs of tools. A client
// cannot name files of the account that the agent's model is paid by.

// uploads are the files of clients.
func (b *Backend) uploads() kept.Files {
	return kept.Files{In: b.store(), Owner: b.owner(), Apart: b.Owner != ""}
}

// AddFile implements [server.Filer].
func (b *Backend) AddFile(ctx context.Context, f server.File, content []byte) (server.File, error) {
	return b.uploads().AddFile(ctx, f, content)
}

// File implements [server.Filer].
func (b *Backend) File(ctx context.Context, id string) (server.File, error) {
	if _, ok := kept.FileSession(id); ok {
		return b.uploads().File(ctx, id)
	}
	f, _, err := b.outputFile(ctx, id)
	return f, err
}

// OpenFile implements [server.Filer].
func (b *Backend) OpenFile(ctx context.Context, id string) (io.ReadCloser, error) {
	if _, ok := kept.FileSession(id); ok {
		return b.uploads().OpenFile(ctx, id)
	}
	_, content, err := b.outputFile(ctx, id)
	return io.NopCloser(bytes.NewReader(content)), err
}

// Files implements [server.Filer]. It yields those of clients.
func (b *Backend) Files(ctx context.Context) iter.Seq2[server.File, error] {
	return b.uploads().Files(ctx)
}

// DeleteFile implements [server.Filer].
func (b *Backend) DeleteFile(ctx context.Context, id string) error {
	if _, ok := kept.FileSession(id); ok {
		return b.uploads().DeleteFile(ctx, id)
	}
	if _, err := b.File(ctx, id); err != nil {
		return err
	}
	return server.Invalid("unsupported_value", "", "The file '%s' is in the output of a tool, and is deleted with its response.", id)
}

var _ server.Filer = (*Backend)(nil)
