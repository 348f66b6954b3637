// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// vault is a source of payloads by their hashes.
type vault map[[32]byte][]byte

func (v vault) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	data, ok := v[hash]
	if !ok {
		return nil, errors.New("no such payload")
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// An item whose images are kept elsewhere is written whole, and one whose images
// are gone is an error, not a transcript without them.
func TestAppendHeld(t *testing.T) {
	data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("pixels"), 1000))
	whole := item.Must(&item.FunctionCallOutput{CallID: "c", Output: item.Parts(&item.InputText{Text: "see"}, &item.InputImage{ImageURL: "data:image/png;base64," + data})})
	rest, payloads, payload := whole.Split(1000)
	if len(payloads) != 1 {
		t.Fatalf("%d payloads", len(payloads))
	}
	kept := vault{}
	var err error
	if kept[payloads[0].Hash], err = payload(0); err != nil {
		t.Fatal(err)
	}
	holder := item.NewHolder(kept)
	defer holder.Close()
	held, err := holder.Join(rest, payloads)
	if err != nil || !held.Externalized() {
		t.Fatal(err)
	}
	want, err := Append(nil, whole)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Append(nil, held)
	if err != nil || string(got) != string(want) || !strings.Contains(string(got), data) {
		t.Errorf("%v: %.200s", err, got)
	}
	clear(kept)
	if got, err = Append([]byte("before"), held); err == nil || string(got) != "before" {
		t.Errorf("%v: %.200s", err, got)
	}
}
