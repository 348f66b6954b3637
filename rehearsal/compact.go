// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// Compact packs the whole history into one item. The mock model cannot summarise,
// and a script that continues needs the facts of the history. Compact implements
// [server.Compactor].
func (s *Server) Compact(_ context.Context, r *server.Request) (*api.Compacted, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	items, err := s.unpacked(r.Items)
	if err != nil {
		return nil, err
	}
	text, err := pack(items)
	if err != nil {
		return nil, err
	}
	in := s.seen.take(r)
	it, err := item.New(&item.Compaction{ID: "cmp" + idMark + in.hash, EncryptedContent: text})
	if err != nil {
		return nil, err
	}
	usage := usageOf(in, []item.Item{it})
	return &api.Compacted{ID: "resp" + idMark + in.hash + "_compact", Output: []item.Item{it}, Usage: &usage}, nil
}

// sumSize is the number of bytes of the hash before the packed content.
const sumSize = 8

// pack makes the content of a compaction.
func pack(items []item.Item) (string, error) {
	list, err := item.NewList(items...).MarshalJSON()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(list)
	var b bytes.Buffer
	b.Write(sum[:sumSize])
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return "", err
	}
	if _, err = w.Write(list); err == nil {
		err = w.Close()
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), err
}

var errPacked = errors.New("not a compaction of the rehearsal")

// maxUnpacked limits the size of an unpacked compaction.
const maxUnpacked = 256 << 20

// unpack reverses pack, up to a size limit.
func unpack(it item.Item, limit int64) ([]item.Item, error) {
	v, err := item.As[item.Compaction](it)
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.DecodeString(v.EncryptedContent)
	if err != nil || len(b) < sumSize {
		return nil, errPacked
	}
	list, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b[sumSize:])), limit))
	if err != nil {
		return nil, errPacked
	}
	if sum := sha256.Sum256(list); !bytes.Equal(sum[:sumSize], b[:sumSize]) {
		return nil, errPacked
	}
	return item.ParseList(string(list))
}

// unpacked returns a history in which compactions are replaced by the items that
// they contain.
func (s *Server) unpacked(items []item.Item) ([]item.Item, error) {
	var all []item.Item
	for i, it := range items {
		if it.Type() != item.TypeCompaction {
			if all != nil {
				all = append(all, it)
			}
			continue
		}
		if all == nil {
			all = append([]item.Item{}, items[:i]...)
		}
		list, err := unpack(it, cmp.Or(s.MaxBody, maxUnpacked))
		if err != nil {
			return nil, server.Invalid("invalid_encrypted_content", "input", "The encrypted content for item '%s' could not be verified.", it.ID())
		}
		all = append(all, list...)
	}
	if all == nil {
		return items, nil
	}
	return all, server.CheckPairs(all)
}
