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
	"io"
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

// unpack returns the history in an item that Pack made, of at most limit bytes. ours is false
// for other items.
func unpack(it item.Item, limit int64) (history []item.Item, ours bool, err error) {
	if it.Type() != item.TypeCompaction {
		return nil, false, nil
	}
	v, err := item.As[item.Compaction](it)
	if err != nil {
		return nil, false, err
	}
	text, ours := strings.CutPrefix(v.EncryptedContent, packedPrefix)
	if !ours {
		return nil, false, nil
	}
	from := flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	list, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(list)) > limit {
		err = errors.New("the history is too long")
	}
	if err != nil {
		return nil, true, err
	}
	history, err = item.ParseList(string(list))
	return history, true, err
}

// unpacked returns an input with histories in place of the items that hold them.
func (s *Server) unpacked(ctx context.Context, input []item.Item) (whole []item.Item, _ *Error) {
	for i, it := range input {
		history, ours, err := unpack(it, s.limit())
		switch {
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
