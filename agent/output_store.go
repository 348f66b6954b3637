// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// outputPolicy returns the policy for the outputs of the agent's calls, with the
// default limits if the agent has no Limit. The defaults keep every output within
// the size that a request may have.
func (a *Agent) outputPolicy() output.Policy {
	s := a.Output
	if s.Limit != nil {
		return s
	}
	if s.Usual == nil {
		s.Usual = &usualLimit
	}
	if s.PerTurn == nil {
		s.PerTurn = &turnLimit
	}
	return s
}

// The limits of an agent that sets none; nothing writes to them.
var (
	usualLimit = output.Limit{Bytes: output.DefaultBytes}
	turnLimit  = output.Limit{Bytes: output.DefaultTurnBytes}
)

// outputStore returns the store for outputs that the model gets shortened.
func (r *Run) outputStore() output.Store {
	if r.agent.OutputStore != nil {
		return r.agent.OutputStore
	}
	return BlobOutputs(r.session.Blobs(), r.session.ID())
}

// Shortened reports whether an output in the log refers the model to the tool that
// reads what was left out. A run that continues the log must then offer this tool.
func Shortened(log []session.Entry) bool {
	for i := range log {
		if b, ok := log[i].Body.(session.CallOutput); ok && strings.Contains(b.Item.JSON(), tool.ReadOutputName) {
			return true
		}
	}
	return false
}

// BlobOutputs returns an [output.Store] that keeps outputs as blobs of the session
// with the given id. An output lasts as long as the session, and its id is the hash
// of its blob. Agents without an OutputStore use this store. If blobs is nil,
// outputs are kept in memory as long as the returned store exists.
func BlobOutputs(blobs session.Blobs, id string) output.Store {
	if nils.Is(blobs) {
		blobs = new(session.Memory)
	}
	return blobOutputs{blobs, id}
}

// blobOutputs stores outputs as blobs of a session.
type blobOutputs struct {
	blobs   session.Blobs
	session string
}

// Put implements [output.Store]. The id is the blob's hash.
func (p blobOutputs) Put(ctx context.Context, data []byte) (id string, err error) {
	hash, err := p.blobs.PutBlob(ctx, p.session, data)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(hash[:]), nil
}

// Get implements [output.Store].
func (p blobOutputs) Get(ctx context.Context, id string, offset, n int) (data []byte, size int, err error) {
	hash, err := hex.DecodeString(id)
	// The model chooses the id, so only the canonical form of a hash is accepted.
	if err != nil || len(hash) != len(session.Hash{}) || hex.EncodeToString(hash) != id {
		return nil, 0, output.ErrNotStored
	}
	b, length, err := p.blobs.OpenBlob(ctx, session.Hash(hash))
	if errors.Is(err, session.ErrNoBlob) {
		return nil, 0, output.ErrNotStored
	}
	if err == nil && nils.Is(b) {
		err = fmt.Errorf("the OpenBlob of the store %T returned no blob", p.blobs)
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
