// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// shape is how the outputs of the agent's calls are written: with the default
// limits, for one that says nothing of limits. No output can then be larger than
// what a request may carry.
func (a *Agent) shape() tool.Shape {
	s := a.Shape
	if s.Limit != nil {
		return s
	}
	if s.Usual == nil {
		s.Usual = tool.Limit{Bytes: tool.DefaultOutput}
	}
	if s.Turn == nil {
		s.Turn = tool.Limit{Bytes: tool.DefaultTurnOutput}
	}
	return s
}

// spill is where outputs are kept that the model gets shortened.
func (r *Run) spill() tool.Spill {
	if r.agent.Spill != nil {
		return r.agent.Spill
	}
	return BlobSpill(r.session.Blobs(), r.session.ID())
}

// Shortened reports whether an output of the log names the tool for what was left
// out of it, so that a run which goes on with the log must have that tool.
func Shortened(log []session.Entry) bool {
	for i := range log {
		if b, ok := log[i].Body.(session.Answered); ok && strings.Contains(b.Item.JSON(), tool.ReadOutputName) {
			return true
		}
	}
	return false
}

// BlobSpill returns a [tool.Spill] among the blobs of a store: outputs are there
// as long as the session of that id is, and the id of an output is its blob's
// hash. It is what an Agent without a Spill uses. Nil blobs are kept in memory, as
// long as the Spill is there.
func BlobSpill(blobs session.Blobs, id string) tool.Spill {
	if blobs == nil {
		blobs = new(session.Memory)
	}
	return blobSpill{blobs, id}
}

// blobSpill keeps outputs among the blobs of a session.
type blobSpill struct {
	blobs   session.Blobs
	session string
}

// Put implements [tool.Spill]. The id is the blob's hash.
func (p blobSpill) Put(ctx context.Context, data []byte) (id string, err error) {
	hash, err := p.blobs.PutBlob(ctx, p.session, data)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(hash[:]), nil
}

// Get implements [tool.Spill].
func (p blobSpill) Get(ctx context.Context, id string, offset, n int) (data []byte, size int, err error) {
	hash, err := hex.DecodeString(id)
	if err != nil || len(hash) != len(session.Hash{}) || hex.EncodeToString(hash) != id {
		return nil, 0, tool.ErrNotStored
	}
	b, length, err := p.blobs.OpenBlob(ctx, session.Hash(hash))
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
