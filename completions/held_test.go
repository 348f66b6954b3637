// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// blobs is a source of payloads in memory.
type blobs map[[32]byte][]byte

func (b blobs) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	if data, ok := b[hash]; ok {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	return nil, os.ErrNotExist
}

// TestHeldSent: items that hold their payloads elsewhere become the messages
// that whole ones become, for every profile and in one piece. // W8 J4
func TestHeldSent(t *testing.T) {
	url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("antiphon"), 6_000))
	image := &item.InputImage{ImageURL: url}
	file := &item.InputFile{Filename: "a.pdf", FileData: url}
	user, err := item.UserParts(&item.InputText{Text: "see"}, image, file)
	if err != nil {
		t.Fatal(err)
	}
	call := item.Must(&item.FunctionCall{CallID: "c", Name: "show", Arguments: "{}"})
	output := item.Must(&item.FunctionCallOutput{CallID: "c", Output: item.Parts(&item.InputText{Text: "here"}, image, file)})
	src := blobs{}
	h := item.NewHolder(src)
	hold := func(it item.Item) item.Item {
		rest, payloads, payload := it.Split(0)
		for i, c := range payloads {
			src[c.Hash], _ = payload(i)
		}
		held, err := h.Join(rest, payloads)
		if err != nil || !held.Externalized() {
			t.Fatal("not held", err)
		}
		return held
	}
	whole, held := item.NewList(user, call, output, item.User("and?")), item.NewList(hold(user), call, hold(output), item.User("and?"))
	for _, name := range (*endpoint.Table)(nil).Names() {
		p, err := endpoint.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		p.APIs = nil
		var sent [2]string
		for i, l := range []*item.List{whole, held} {
			srv := agenttest.NewServer(t)
			srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return reply("yes") })
			c := client(srv)
			c.Profile = &p
			_, err := c.Create(t.Context(), &api.Request{Model: "m", Input: l})
			var refused *endpoint.RefusedError
			if errors.As(err, &refused) {
				sent[i] = err.Error()
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, r := range srv.Requests() {
				sent[i] += string(r.Body)
			}
			if item.HasHeld(sent[i]) || sent[i] == "" {
				t.Errorf("%s: a reference was sent, or nothing", name)
			}
		}
		if sent[0] != sent[1] {
			t.Errorf("%s: of whole items %d bytes were sent, of held ones %d", name, len(sent[0]), len(sent[1]))
		}
		o := completions.OptionsFor(&p)
		want, _, err1 := completions.FromItems(whole, o)
		got, _, err2 := completions.FromItems(held, o)
		if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of messages, want %d; %v, %v", name, len(got), len(want), err1, err2)
		}
		want, _, err1 = completions.AppendRequest([]byte("x"), &api.Request{Model: "m", Input: whole}, o)
		got, _, err2 = completions.AppendRequest([]byte("x"), &api.Request{Model: "m", Input: held}, o)
		if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: a request of %d bytes, want %d; %v, %v", name, len(got), len(want), err1, err2)
		}
	}
	h.Close()
	var e *item.HeldError
	if _, _, err := completions.FromItems(held, completions.Options{}); !errors.As(err, &e) {
		t.Errorf("after the store was closed: %v", err)
	}
	srv := agenttest.NewServer(t)
	if _, err := client(srv).Create(t.Context(), &api.Request{Model: "m", Input: held}); !errors.As(err, &e) || len(srv.Requests()) > 0 {
		t.Errorf("after the store was closed: %v, %d requests", err, len(srv.Requests()))
	}
}
