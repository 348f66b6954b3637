// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"compress/flate"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// packedPrefix begins the content of compactions that [Pack] made. It is not encrypted: a
// client could send the same history itself.
const packedPrefix = "antiphon:"

// Pack returns an item of type compaction that holds a history, for a [Compactor] whose model
// has no compactions of its own. A [Server] puts the history in place of the item when a
// client sends it, so that no backend receives it.
func Pack(history []item.Item) (packed item.Item, err error) {
	list, err := item.NewList(history...).MarshalJSON()
	if err != nil {
		return packed, err
	}
	var text strings.Builder
	text.WriteString(packedPrefix)
	to := base64.NewEncoder(base64.StdEncoding, &text)
	w, err := flate.NewWriter(to, flate.DefaultCompression)
	if err != nil {
		return packed, err
	}
	if _, err = w.Write(list); err == nil {
		err = errors.Join(w.Close(), to.Close())
	}
	if err != nil {
		return packed, err
	}
	return item.New(&item.Compaction{ID: idPrefix(item.TypeCompaction) + "_" + rand.Text(), EncryptedContent: text.String()})
}

// unpack returns the history in an item that Pack made, of at most limit bytes, and its size. ours
// is false for other items. The memory is held until ctx is done.
func unpack(ctx context.Context, it item.Item, limit int64) (history []item.Item, size int64, ours bool, err error) {
	if it.Type() != item.TypeCompaction {
		return nil, 0, false, nil
	}
	v, err := item.As[item.Compaction](it)
	if err != nil {
		return nil, 0, false, err
	}
	text, ours := strings.CutPrefix(v.EncryptedContent, packedPrefix)
	if !ours {
		return nil, 0, false, nil
	}
	from := flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	list, err := readHeld(ctx, from, limit)
	if err != nil {
		return nil, 0, true, err
	}
	history, err = item.ParseList(string(list))
	return history, int64(len(list)), true, err
}

// unpacked returns an input with histories in place of the items that hold them. Together they
// may be as large as a request. V5
func (s *Server) unpacked(ctx context.Context, input []item.Item) (whole []item.Item, _ *Error) {
	left := s.limit()
	for i, it := range input {
		history, size, ours, err := unpack(ctx, it, left)
		left -= size
		var full *Error
		switch {
		case errors.As(err, &full):
			return nil, full.complete()
		case !ours:
			whole = append(whole, it)
			continue
		case err == nil:
			if wrong := checkItems(history); wrong != nil {
				err = wrong
			}
		}
		if err != nil {
			return nil, Invalid("invalid_encrypted_content", fmt.Sprintf("input[%d]", i), "The encrypted content for item '%s' could not be verified.", it.ID())
		}
		if wrong := mayName(ctx, history, fmt.Sprintf("input[%d]", i)); wrong != nil {
			return nil, wrong
		}
		whole = append(whole, history...)
	}
	return whole, nil
}
