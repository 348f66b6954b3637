// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"slices"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// With returns a copy of the item with the member set: replaced where it
// stands, or added at the end; of equal names only the last stays. All other
// members keep their bytes and their order, which editing by decoding does not
// promise. The error is a [*SyntaxError] for a value that is not JSON.
func (it Item) With(name string, value JSON) (Item, error) {
	if err := value.Valid(); err != nil {
		return Item{}, err
	}
	there := false
	edited := it.edit(func(n string, v JSON) (JSON, bool) {
		if n == name {
			there = true
			return value, true
		}
		return v, true
	}, func(b []byte) []byte {
		if there {
			return b
		}
		return appendMember(b, string(Quote(name)), string(value))
	})
	return itemOf(edited)
}

// Without returns a copy of the item without the named members; the others keep
// their bytes and their order. An item that has none of them is returned as it
// is.
func (it Item) Without(names ...string) Item {
	if !slices.ContainsFunc(names, func(n string) bool { _, ok := it.Member(n); return ok }) {
		return it
	}
	edited := it.edit(func(n string, v JSON) (JSON, bool) { return v, !slices.Contains(names, n) },
		func(b []byte) []byte { return b })
	out, _ := itemOf(edited) // it is an object, and what is left of it was read before
	return out
}

// edit copies the item member by member. Of equal names the last stays, in the
// place of the first.
func (it Item) edit(change func(name string, value JSON) (JSON, bool), end func([]byte) []byte) string {
	type named struct{ name, literal, value string }
	var room [16]named
	members := room[:0]
	if it.raw != "" {
		jsonx.EachMember(it.raw, func(literal, value string) {
			name := jsonx.Unquote(literal)
			for i := range members {
				if members[i].name == name {
					members[i].value = value
					return
				}
			}
			members = append(members, named{name, literal, value})
		})
	}
	out := append(make([]byte, 0, len(it.raw)+64), '{')
	for _, m := range members {
		if value, keep := change(m.name, JSON(m.value)); keep {
			out = appendMember(out, m.literal, string(value))
		}
	}
	return jsonx.String(append(end(out), '}'))
}

func appendMember(dst []byte, literal, value string) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	dst = append(append(dst, literal...), ':')
	return append(dst, value...)
}
