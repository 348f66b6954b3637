// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// The kinds below take the record's Extra, because it may say better than the
// field what stood there: a value that the field cannot hold, or, as a member
// without a value, that an always written member was left out. Such a record
// ends with [codec.end].

// has reports whether the named member is there.
func (x Extra) has(name string) bool {
	return slices.ContainsFunc(x, func(m Member) bool { return m.Name == name })
}

// mark notes that an always written member was not there.
func (x *Extra) mark(name string) { *x = append(*x, Member{Name: name}) }

// end is rest for records with marks in their Extra.
func (c *codec) end(x *Extra) {
	if c.decoding || !slices.ContainsFunc(*x, unwritten) {
		c.rest(x)
		return
	}
	kept := slices.DeleteFunc(slices.Clone(*x), unwritten)
	c.rest(&kept)
}

func unwritten(m Member) bool { return m.Value == "" }

// kind is the constant type member, see [codec.member].
func (c *codec) kind(want string, x *Extra) { c.member("type", want, x) }

// typOrNull is the constant type member where null stands for it, which stays
// as it is. An object that left it out has it when it is written.
func (c *codec) typOrNull(want string, x *Extra) {
	if other, ok := x.Get("type"); c.decoding || !ok || other == "" || other[0] == '"' {
		c.typ(want)
	}
}

// member is a text with one value. Where the object left it out or had another,
// so does what is written.
func (c *codec) member(name, want string, x *Extra) {
	if !c.decoding {
		if !x.has(name) {
			c.writeString(name, want)
		}
		return
	}
	switch m := c.find(name); {
	case m == nil:
		x.mark(name)
	case is(m.Value, want):
		m.Taken = true
	}
}

// text is a text that is always written. A value that is not text stays for
// Extra.
func (c *codec) text(name string, v *string, x *Extra) { c.textOrOther(name, v, x) }

// needText is text for what a client acts on: a value that is not text is an
// error.
func (c *codec) needText(name string, v *string, x *Extra) {
	if other := c.textOrOther(name, v, x); other != nil {
		c.fail(name, &ShapeError{Problem: "found " + jsonx.KindOf(other.Value) + ", want a string"})
	}
}

// textOrOther returns the member that is not text, if it is there.
func (c *codec) textOrOther(name string, v *string, x *Extra) (other *jsonx.Member) {
	if !c.decoding {
		if *v != "" || !x.has(name) {
			c.writeString(name, *v)
		}
		return nil
	}
	switch m := c.find(name); {
	case m == nil:
		x.mark(name)
	case m.Value[0] != '"':
		return m
	default:
		*v, m.Taken = jsonx.Unquote(m.Value), true
	}
	return nil
}

// nullText is a text that is always written, null when empty.
func (c *codec) nullText(name string, v *string, x *Extra) {
	if !c.decoding {
		switch {
		case *v != "":
			c.writeString(name, *v)
		case !x.has(name):
			c.writeRaw(name, "null")
		}
		return
	}
	switch m := c.find(name); {
	case m == nil:
		x.mark(name)
	case m.Value == "null":
		m.Taken = true
	default:
		c.optString(name, v)
	}
}

// strictText is optString for what a client acts on: a value that is neither a
// text nor null is an error.
func (c *codec) strictText(name string, v *string) {
	c.optString(name, v)
	if !c.decoding || *v != "" {
		return
	}
	if m := c.find(name); m != nil && m.Value != "null" && m.Value[0] != '"' {
		c.fail(name, &ShapeError{Problem: "found " + jsonx.KindOf(m.Value) + ", want a string"})
	}
}

// code is optString that also reads a number: error codes of some servers are
// numbers. The number stays in Extra and is what is written while the field
// has its text.
func (c *codec) code(name string, v *string, x *Extra) {
	if !c.decoding {
		if other, _ := x.Get(name); other == "" || string(other) != *v {
			c.optString(name, v)
		}
		return
	}
	if c.optString(name, v); *v == "" {
		if m := c.find(name); m != nil && jsonx.IsNumber(m.Value) {
			*v = m.Value
		}
	}
}

// number is an integer that is always written. Another value stays for Extra.
func (c *codec) number(name string, v *int64, x *Extra) {
	if !c.decoding {
		if *v != 0 || !x.has(name) {
			c.writeInt(name, *v)
		}
		return
	}
	m := c.find(name)
	if m == nil {
		x.mark(name)
		return
	}
	if n, ok := jsonx.Integer(m.Value); ok {
		*v, m.Taken = n, true
		c.spellInt(name, m.Value, n)
	}
}

// needNumber is number for what a client acts on: another value is an error.
func (c *codec) needNumber(name string, v *int64, x *Extra) {
	c.number(name, v, x)
	if !c.decoding {
		return
	}
	if m := c.find(name); m != nil {
		c.fail(name, &ShapeError{Problem: "found " + jsonx.KindOf(m.Value) + ", want an integer"})
	}
}

// decimal is a number that is always written. Another value stays for Extra.
func (c *codec) decimal(name string, v *float64, x *Extra) {
	if !c.decoding {
		if *v != 0 || !x.has(name) {
			c.writeFloat(name, *v)
		}
		return
	}
	if c.find(name) == nil {
		x.mark(name)
		return
	}
	var p *float64
	if c.optFloat(name, &p); p != nil {
		*v = *p
	}
}

// flag is true or false and always written. Another value stays for Extra.
func (c *codec) flag(name string, v *bool, x *Extra) {
	if !c.decoding {
		if *v || !x.has(name) {
			c.name(name)
			c.out = strconv.AppendBool(c.out, *v)
		}
		return
	}
	switch m := c.find(name); {
	case m == nil:
		x.mark(name)
	case m.Value == "true", m.Value == "false":
		*v, m.Taken = m.Value == "true", true
	}
}

// index is a place in a list, -1 where there is none; that is left out.
func (c *codec) index(name string, v *int) {
	n := int64(*v)
	c.upTo(math.MaxInt32, name, &n)
	*v = int(n)
}

// sequence is a number counted from 0, -1 where there is none; that is left
// out.
func (c *codec) sequence(name string, v *int64) { c.upTo(math.MaxInt64, name, v) }

func (c *codec) upTo(limit int64, name string, v *int64) {
	if !c.decoding {
		if *v >= 0 {
			c.name(name)
			c.out = strconv.AppendInt(c.out, *v, 10)
		}
		return
	}
	*v = -1
	if m := c.find(name); m != nil {
		if n, ok := jsonx.Integer(m.Value); ok && n >= 0 && n <= limit {
			*v, m.Taken = n, true
		}
	}
}

// numbers is a list of integers, left out when nil.
func (c *codec) numbers(name string, v *[]int64) {
	if !c.decoding {
		if *v != nil {
			appendArray(c, name, *v, func(dst []byte, n int64) ([]byte, error) { return strconv.AppendInt(dst, n, 10), nil })
		}
		return
	}
	m := c.find(name)
	if m == nil || m.Value[0] != '[' {
		return
	}
	list, whole := []int64{}, true
	jsonx.EachElement(m.Value, func(s string) {
		n, ok := jsonx.Integer(s)
		whole = whole && ok
		list = append(list, n)
	})
	if whole {
		*v, m.Taken = list, true
	}
}

// stringMap is an object whose members are texts, left out when nil and written
// in the order of its names.
func (c *codec) stringMap(name string, v *map[string]string) {
	if !c.decoding {
		if *v != nil {
			c.name(name)
			out, err := appendStringMap(c.out, *v)
			c.out = out
			c.fail(name, err)
		}
		return
	}
	m := c.find(name)
	if m == nil || m.Value[0] != '{' {
		return
	}
	got, whole := map[string]string{}, true
	jsonx.EachMember(m.Value, func(key, value string) {
		if whole = whole && value[0] == '"'; whole {
			got[jsonx.Unquote(key)] = jsonx.Unquote(value)
		}
	})
	if whole {
		*v, m.Taken = got, true
	}
}

func appendStringMap(dst []byte, m map[string]string) ([]byte, error) {
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = jsonx.AppendQuoted(dst, key); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = jsonx.AppendQuoted(dst, m[key]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// item is one item, left out when zero. What is not an object stays for Extra.
func (c *codec) item(name string, v *Item) {
	if !c.decoding {
		if !v.IsZero() {
			c.name(name)
			c.out = append(c.out, v.raw...)
		}
		return
	}
	if m := c.find(name); m != nil && m.Value[0] == '{' {
		it, err := itemOf(m.Value)
		c.fail(name, err)
		*v, m.Taken = it, true
	}
}

// orEmpty writes a member that the schema wants and that is nil as empty, which
// is [], {} or null, where Extra does not say otherwise. It comes before the
// member's own field.
func (c *codec) orEmpty(name string, empty JSON, isNil bool, x *Extra) {
	if !c.decoding {
		if isNil && !x.has(name) {
			c.writeRaw(name, empty)
		}
		return
	}
	switch m := c.find(name); {
	case m == nil:
		x.mark(name)
	case m.Value == string(empty):
		m.Taken = true
	}
}

// recordList is a list of objects, left out when nil. What is not a list of
// objects stays for Extra.
func recordList[T any, P interface {
	*T
	record
}](c *codec, name string, v *[]T) {
	if !c.decoding {
		if list := *v; list != nil {
			c.writeArray(name, len(list), func(dst []byte, i int) ([]byte, error) { return appendRecord(dst, P(&list[i])) })
		}
		return
	}
	list := []T{}
	if c.eachObject(name, func(s string) error {
		list = append(list, *new(T))
		return decodeRecord(s, P(&list[len(list)-1]))
	}) {
		*v = list
	}
}

// eachObject calls read for each element of the member of that name, and reports
// whether that is a list of objects. It is apart from recordList, of which there
// is one for each type.
//
//go:noinline
func (c *codec) eachObject(name string, read func(s string) error) bool {
	m := c.find(name)
	if m == nil || !isListOf(m.Value, '{') {
		return false
	}
	i := 0
	jsonx.EachElement(m.Value, func(s string) {
		if err := read(s); err != nil {
			c.fail(name, indexed(i, err))
		}
		i++
	})
	m.Taken = true
	return true
}

// isListOf reports whether s is a list of which every element begins with first.
func isListOf(s string, first byte) bool {
	if s == "" || s[0] != '[' {
		return false
	}
	whole := true
	jsonx.EachElement(s, func(e string) { whole = whole && e[0] == first })
	return whole
}
