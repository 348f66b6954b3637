// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/antiphon-go/antiphon/item"
)

// shelf keeps payloads, as a store does in its blobs.
type shelf map[[32]byte][]byte

func (s shelf) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s[hash])), nil
}

// A store keeps the image of an item apart, once, and reads the item back
// without it. The image is read when the item is sent.
func ExamplePayloadStore() {
	image := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 3000))
	received, _ := item.ParseString(`{"type":"image_generation_call","id":"ig_1","result":"` + image + `"}`)

	rest, payloads, payload := received.Split(1024)
	fmt.Println(rest)
	blobs := shelf{}
	for i, c := range payloads {
		blobs[c.Hash], _ = payload(i)
	}

	holder := item.NewHolder(blobs)
	defer holder.Close()
	held, _ := holder.Join(rest, payloads)
	fmt.Println(held.ID(), len(held.JSON()) < 200, held.Size())

	whole, _ := held.Whole()
	fmt.Println(whole == received)
	sent, _ := item.NewList(held).MarshalJSON()
	fmt.Println(string(sent) == "["+received.JSON()+"]")
	// Output:
	// {"type":"image_generation_call","id":"ig_1","result":""}
	// ig_1 true 4056
	// true
	// true
}
