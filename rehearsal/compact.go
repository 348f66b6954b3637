// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/antiphon-go/antiphon/item"
)

// compact serves POST /responses/compact. The whole history becomes one item,
// in whose content it is packed: a model that does not think cannot sum up, and
// a script that goes on asks for facts.
func (s *Server) compact(c *call) *problem {
	q, wrong := s.readInput(c, "")
	if wrong != nil {
		return wrong
	}
	defer s.release(q)
	items, wrong := unpacked(q.all(), s.limit())
	if wrong != nil {
		return wrong
	}
	text, err := pack(items)
	if err != nil {
		return internal(err)
	}
	tools, _ := q.body.Member("tools")
	in := s.seen.take(q.req, tools, q.all())
	it, err := item.New(&item.Compaction{ID: "cmp" + idMark + in.hash, EncryptedContent: text})
	if err != nil {
		return internal(err)
	}
	usage := usageOf(in, []output{{done: it}})
	return c.send(&item.Compacted{ID: "resp" + idMark + in.hash + "_compact", CreatedAt: s.now(), Output: []item.Item{it}, Usage: &usage})
}

// sumSize is how much of the hash of what is packed stands before it.
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

var errPacked = errors.New("this is not the content of a compaction of the rehearsal's")

// unpack is the reverse of pack, up to a size.
func unpack(text string, limit int64) ([]item.Item, error) {
	b, err := base64.StdEncoding.DecodeString(text)
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

// unpacked returns a history with what its compactions stand for in their
// place.
func unpacked(items []item.Item, limit int64) ([]item.Item, *problem) {
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
		v, err := item.As[item.Compaction](it)
		if err != nil {
			return nil, unreadable(err)
		}
		list, err := unpack(v.EncryptedContent, limit)
		if err != nil {
			return nil, invalid("invalid_encrypted_content", "input",
				"The encrypted content for item %s could not be verified.", fmt.Sprintf("'%s'", v.ID))
		}
		all = append(all, list...)
	}
	if all == nil {
		return items, nil
	}
	return all, checkPairs(all, len(all))
}
