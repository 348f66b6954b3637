// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// aroundItem is the largest number of lists and objects around an item in an entry.
// An item may nest as deeply there as it may alone.
const aroundItem = 3

// open checks the text s and finds the members of its object. An item usually comes
// last; open parses it at once, which also checks it, so that its text is not scanned
// twice.
func (c *codec) open(s string) {
	s = strings.Trim(s, " \t\r\n")
	if s == "" || s[0] != '{' {
		c.failf("", "not a JSON object")
		return
	}
	sc := jsonx.Scanner{Text: s, Depth: -aroundItem}
	end, err := sc.ObjectWith(0, c.add, func(name string, i int) int {
		last := len(s) - 1
		if name != `"item"` || i >= last || s[i] != '{' {
			return 0
		}
		var err error
		if c.last, err = item.ParseString(s[i:last]); err != nil {
			return 0
		}
		return last
	})
	if err == nil {
		err = sc.End(end)
	}
	c.Fail("", err)
}

func (c codec) item(name string, v *item.Item) {
	// open has usually parsed the item already.
	if !c.last.IsZero() {
		if m := c.Find(name); m != nil {
			*v, m.Taken = c.last, true
		}
		return
	}
	c.split.values().Need(c.Codec, name, v, !v.IsZero())
}

func (c codec) items(name string, v *[]item.Item) { c.split.values().NeedList(c.Codec, name, v) }

// values reads and writes items. s is nil if payloads stay in their items.
func (s *Split) values() record.Values[item.Item] {
	return record.Values[item.Item]{Read: s.read, Append: s.append}
}

// append appends an item: unchanged; as a JSON string if it contains newlines,
// because an entry is one line; null if it is zero. An item with separate payloads
// is a list of its skeleton and the payloads.
func (s *Split) append(dst []byte, it item.Item) ([]byte, error) {
	if it.IsZero() {
		return append(dst, "null"...), nil
	}
	skeleton, payloads, err := s.cut(it)
	if err != nil {
		return dst, err
	}
	if len(payloads) > 0 {
		dst = append(dst, '[')
	}
	if strings.ContainsAny(skeleton, "\n\r") {
		dst = append(dst, item.Quote(skeleton)...)
	} else {
		dst = append(dst, skeleton...)
	}
	for _, one := range payloads { // cannot fail: the fields are numbers
		dst, _ = record.Append(append(dst, ','), func(c *record.Codec) { payloadFields(&one, codec{Codec: c}) })
	}
	if len(payloads) > 0 {
		dst = append(dst, ']')
	}
	return dst, nil
}

func (s *Split) read(value string) (item.Item, error) {
	switch value[0] {
	case 'n':
		return item.Item{}, nil
	case '"':
		text, _ := unquoted(value)
		return item.ParseString(text)
	case '[':
		return s.join(value)
	}
	return item.ParseString(value)
}

// join reads an item and its payloads. Only a [Split] can read them, because only
// its store has the payloads.
func (s *Split) join(value string) (it item.Item, err error) {
	if s == nil {
		return it, errors.New("its payloads are kept elsewhere")
	}
	var skeleton string
	var payloads []item.Payload
	first := true
	jsonx.EachElement(value, func(e string) {
		if first {
			if skeleton = e; e[0] == '"' {
				skeleton, _ = unquoted(e)
			}
			first = false
			return
		}
		var one item.Payload
		if problem := readObject(e, func(c codec) { payloadFields(&one, c); c.close("payload") }); err == nil {
			err = problem
		}
		payloads = append(payloads, one)
	})
	if first {
		err = errors.New("not an item with payloads")
	}
	if err != nil {
		return it, err
	}
	return s.Join(skeleton, payloads)
}

// cut returns the text of an item to write, and the payloads removed from it.
// Without a split it returns the whole item.
func (s *Split) cut(it item.Item) (skeleton string, payloads []item.Payload, err error) {
	if s == nil {
		it, err = it.Whole()
		return it.JSON(), nil, err
	}
	skeleton, payloads, read := it.Split(s.Min)
	for i, one := range payloads {
		if err := s.Keep(one, func() ([]byte, error) { return read(i) }); err != nil {
			return "", nil, err
		}
	}
	return skeleton, payloads, nil
}

// payloadFields names the members of a separately stored payload.
func payloadFields(p *item.Payload, c codec) {
	c.int("at", &p.At)
	c.int64("size", &p.Size)
	c.hash("sha256", &p.Hash)
}
