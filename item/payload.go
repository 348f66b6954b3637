// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Payload describes a payload that [Item.Split] took out of an item's text: the
// base64 of an image or a file.
type Payload struct {
	// At is where in the rest of the text the base64 belongs, in bytes.
	At int
	// Size is the number of bytes that the base64 stands for.
	Size int64
	// Hash is their SHA-256.
	Hash [32]byte
}

// LeastPayload is the size in bytes below which [Item.Split] takes nothing out: a
// Payload would be larger.
const LeastPayload = 128

// Split splits an item for a store that keeps large payloads apart, each once:
// into the item's text without them, where each belongs, and the payloads
// themselves. [Holder.Join] puts them together again, byte for byte.
//
// A payload is a string of the item that is base64, as a whole or after the
// head of a data URI, of at least least bytes. It is taken out only if encoding
// it again gives the same text: in the standard alphabet, padded, without line
// ends or escapes. Names, ids, what is said in words, and encrypted_content stay
// where they are, whatever they look like.
//
// A payload that the item holds already is described without being read. Read
// returns the bytes of one, and loads those that are held.
func (it Item) Split(least int) (rest string, payloads []Payload, read func(i int) ([]byte, error)) {
	c := splitter{s: it.raw}
	eachToken(it.raw, func(at int, t token, ok bool) {
		if ok {
			c.found = append(c.found, found{from: at, to: at + tokenLen, token: t, held: true})
		}
	})
	eachPayload(it.raw, max(least, LeastPayload), func(from, to int) {
		c.found = append(c.found, found{from: from, to: to})
	})
	if len(c.found) == 0 {
		return it.raw, nil, c.read
	}
	slices.SortFunc(c.found, func(a, b found) int { return a.from - b.from })
	rest, payloads = c.split()
	return rest, payloads, c.read
}

// splitter splits one text.
type splitter struct {
	s     string
	found []found
}

// found is a payload: its base64, or the token of one that is held.
type found struct {
	from, to int
	held     bool
	token    token
}

func (c *splitter) split() (string, []Payload) {
	payloads := make([]Payload, len(c.found))
	rest := make([]byte, 0, len(c.s)-c.found[0].to+c.found[0].from)
	last := 0
	for i := range c.found {
		f := &c.found[i]
		rest = append(rest, c.s[last:f.from]...)
		last = f.to
		if f.held {
			payloads[i] = Payload{At: len(rest), Size: f.token.size, Hash: f.token.hash}
			continue
		}
		size, hash := sumBase64(c.s[f.from:f.to])
		payloads[i] = Payload{At: len(rest), Size: size, Hash: hash}
	}
	return jsonx.String(append(rest, c.s[last:]...)), payloads
}

func (c *splitter) read(i int) ([]byte, error) {
	if i < 0 || i >= len(c.found) {
		return nil, fmt.Errorf("there is no payload %d, but %d of them", i, len(c.found))
	}
	f := c.found[i]
	if f.held {
		return f.token.load()
	}
	return base64.StdEncoding.DecodeString(c.s[f.from:f.to])
}

// Held reports whether the item holds payloads that are kept elsewhere: it came
// from [Holder.Join], or was made of such an item.
func (it Item) Held() bool { return HasHeld(it.raw) }

// Whole returns the item with all its payloads in it, byte for byte as it was
// before [Item.Split]. An item that holds none is returned as it is. The error is
// a [*HeldError].
func (it Item) Whole() (Item, error) {
	if !it.Held() {
		return it, nil
	}
	b, err := appendWhole(make([]byte, 0, it.Size()), it.raw)
	if err != nil {
		return Item{}, err
	}
	return Item{raw: jsonx.String(b), typ: it.typ}, nil
}

// Size returns the length in bytes of the whole item, without reading what it
// holds.
func (it Item) Size() int {
	n := len(it.raw)
	eachToken(it.raw, func(_ int, t token, ok bool) {
		if ok {
			n += t.encoded() - tokenLen
		}
	})
	return n
}

// HasHeld reports whether a text has the beginning of a reference to a payload
// that is held. None is to be found in what leaves the process: tests look with
// this at what came out.
func HasHeld(s string) bool { return nextToken(s, 0) >= 0 }

// ShowHeld returns a text for people with a short description instead of each
// reference to a payload that is held, such as a log takes it.
func ShowHeld(s string) string {
	if !HasHeld(s) {
		return s
	}
	var out []byte
	last := 0
	eachToken(s, func(at int, t token, ok bool) {
		out = append(out, s[last:at]...)
		if last = at + len(*tokenHead.Load()); ok {
			last = at + tokenLen
			out = fmt.Appendf(out, "(%d bytes, sha256:%x)", t.size, t.hash[:8])
		}
	})
	return jsonx.String(append(out, s[last:]...))
}
