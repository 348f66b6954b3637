// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

func (c *codec) item(name string, v *item.Item) {
	if !c.decoding {
		if !v.IsZero() {
			c.name(name)
			c.writeItem(*v)
		}
		return
	}
	value := c.take(name)
	if value == "" {
		return
	}
	if *v = c.last; v.IsZero() {
		*v = c.readItem(name, value)
	}
}

func (c *codec) items(name string, v *[]item.Item) {
	elements(c, name, v, c.writeItem, func(e string) item.Item { return c.readItem(name, e) })
}

// writeItem appends an item: as it is; as a JSON string if there are newlines
// in it; null for none. One whose payloads are kept apart is a list: what is
// left of it, and then the payloads.
func (c *codec) writeItem(it item.Item) {
	if it.IsZero() {
		c.out = append(c.out, "null"...)
		return
	}
	skeleton, payloads, err := c.splitItem(it)
	if err != nil {
		c.fail(err)
		return
	}
	if len(payloads) > 0 {
		c.out = append(c.out, '[')
	}
	if strings.ContainsAny(skeleton, "\n\r") {
		c.out = append(c.out, item.Quote(skeleton)...)
	} else {
		c.out = append(c.out, skeleton...)
	}
	for _, p := range payloads {
		c.out = append(c.out, `,{`...)
		(*payloadFields)(&p).fields(c)
		c.out = append(c.out, '}')
	}
	if len(payloads) > 0 {
		c.out = append(c.out, ']')
	}
}

func (c *codec) readItem(name, value string) item.Item {
	if value == "null" {
		return item.Item{}
	}
	it, err := c.parseItem(value)
	if err != nil {
		c.failf("%s: %w", name, err)
	}
	return it
}

func (c *codec) parseItem(value string) (item.Item, error) {
	switch value[0] {
	case '"':
		s, ok := unquoted(value)
		if !ok {
			return item.Item{}, errors.New("no text")
		}
		return item.ParseString(s)
	case '[':
		return c.joined(value)
	}
	return item.ParseString(value)
}

// joined reads an item and its payloads.
func (c *codec) joined(value string) (it item.Item, err error) {
	if c.split == nil {
		return it, errors.New("its payloads are kept elsewhere")
	}
	var skeleton string
	var payloads []item.Payload
	first := true
	whole := eachElement(value, func(e string) {
		if first {
			if skeleton = e; e[0] == '"' {
				skeleton, _ = unquoted(e)
			}
			first = false
			return
		}
		var p item.Payload
		c.object("payload", e, (*payloadFields)(&p))
		payloads = append(payloads, p)
	})
	if !whole || first {
		return it, errors.New("not an item with payloads")
	}
	if c.err != nil {
		return it, c.err
	}
	return c.split.Join(skeleton, payloads)
}

// splitItem returns the text of an item to be written, and the payloads that were
// taken out of it. Without a split it is the whole item.
func (c *codec) splitItem(it item.Item) (skeleton string, payloads []item.Payload, err error) {
	if c.split == nil {
		it, err = it.Whole()
		return it.JSON(), nil, err
	}
	skeleton, payloads, read := it.Split(c.split.Min)
	for i, p := range payloads {
		if err := c.split.Keep(p, func() ([]byte, error) { return read(i) }); err != nil {
			return "", nil, err
		}
	}
	return skeleton, payloads, nil
}

// payloadFields writes and reads a payload that is kept apart.
type payloadFields item.Payload

func (p *payloadFields) fields(c *codec) {
	c.int("at", &p.At)
	c.int64("size", &p.Size)
	c.hash("sha256", &p.Hash)
}

func (c *codec) hash(name string, v *[32]byte) {
	if !c.decoding {
		c.name(name)
		c.out = append(hex.AppendEncode(append(c.out, '"'), v[:]), '"')
		return
	}
	s, _ := unquoted(c.take(name))
	if b, err := hex.DecodeString(s); err != nil || copy(v[:], b) != len(v) || len(b) != len(v) {
		c.failf("%s: no hash", name)
	}
}
