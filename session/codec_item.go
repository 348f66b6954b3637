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
	m := c.find(name)
	if m == nil {
		return
	}
	if *v = m.item; v.IsZero() {
		*v = c.readItem(name, m.value)
	}
}

func (c *codec) items(name string, v *[]item.Item) {
	elements(c, name, v, c.writeItem, func(e string) item.Item { return c.readItem(name, e) })
}

// writeItem appends an item: as it is; as a JSON string if there are newlines
// in it; null for none. One whose payloads were cut out is a list: what is left
// of it, and then the cuts.
func (c *codec) writeItem(it item.Item) {
	if it.IsZero() {
		c.out = append(c.out, "null"...)
		return
	}
	skeleton, cuts, err := c.cut(it)
	if err != nil {
		c.fail(err)
		return
	}
	if len(cuts) > 0 {
		c.out = append(c.out, '[')
	}
	if strings.ContainsAny(skeleton, "\n\r") {
		c.out = append(c.out, item.Quote(skeleton)...)
	} else {
		c.out = append(c.out, skeleton...)
	}
	for _, cut := range cuts {
		c.out = append(c.out, `,{`...)
		(*cutting)(&cut).fields(c)
		c.out = append(c.out, '}')
	}
	if len(cuts) > 0 {
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

// joined reads an item and its cuts.
func (c *codec) joined(value string) (it item.Item, err error) {
	if c.split == nil {
		return it, errors.New("its payloads are kept elsewhere")
	}
	var skeleton string
	var cuts []item.Cut
	first := true
	whole := eachElement(value, func(e string) {
		if first {
			if skeleton = e; e[0] == '"' {
				skeleton, _ = unquoted(e)
			}
			first = false
			return
		}
		var cut item.Cut
		c.object("cut", e, (*cutting)(&cut))
		cuts = append(cuts, cut)
	})
	if !whole || first {
		return it, errors.New("no item with cuts")
	}
	if c.err != nil {
		return it, c.err
	}
	return c.split.Join(skeleton, cuts)
}

// cut returns the text of an item to be written, and what was cut out of it.
// Without a split it is the whole item.
func (c *codec) cut(it item.Item) (skeleton string, cuts []item.Cut, err error) {
	if c.split == nil {
		it, err = it.Whole()
		return it.JSON(), nil, err
	}
	skeleton, cuts, payload := it.Cut(c.split.Min)
	for i, cut := range cuts {
		if err := c.split.Keep(cut, func() ([]byte, error) { return payload(i) }); err != nil {
			return "", nil, err
		}
	}
	return skeleton, cuts, nil
}

// cutting is a payload that was cut out, as it is written.
type cutting item.Cut

func (p *cutting) fields(c *codec) {
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
