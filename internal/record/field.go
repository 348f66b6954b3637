// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// There are four groups of fields:
//
//   - Opt…: left out if empty. A value that the field cannot hold goes to the
//     record's list, so reading never fails.
//   - Text, Number, Decimal, Flag, Type, Member: always written, unless the record's
//     list says that they were absent.
//   - Need…, StrictText: members that a client acts on. Another kind of value is an
//     error.
//   - The others are described in their comments.

// WriteString appends a string member.
func (c *Codec) WriteString(name, v string) {
	c.Name(name)
	out, err := jsonx.AppendQuoted(c.Out, v)
	c.Took(name, out, err)
}

// WriteRaw appends a member with a JSON value, which it validates.
func (c *Codec) WriteRaw(name, v string) {
	value, err := jsonx.Checked(v)
	if err != nil {
		c.Fail(name, err)
		return
	}
	c.Name(name)
	c.Out = append(c.Out, value...)
}

// writeBool appends a boolean member.
func (c *Codec) writeBool(name string, v bool) {
	c.Name(name)
	c.Out = strconv.AppendBool(c.Out, v)
}

// Type is a constant type member. An object without it is accepted, and gets it when
// it is written.
func (c *Codec) Type(want string) { c.Constant("type", want) }

// TypeOrNull is like Type, but keeps a type that is null, or another value that is
// not a string.
func (c *Codec) TypeOrNull(want string) {
	if other, ok := c.extra.get("type"); c.Decoding || !ok || other == "" || other[0] == '"' {
		c.Type(want)
	}
}

// Constant is a string member with a fixed value.
func (c *Codec) Constant(name, want string) {
	if !c.Decoding {
		c.WriteString(name, want)
		return
	}
	if m := c.Find(name); m != nil && is(m.Value, want) {
		m.Taken = true
	}
}

// Kind is a constant type member; see [Codec.Member].
func (c *Codec) Kind(want string) { c.Member("type", want) }

// Member is a string member with a fixed value. If the object had no such member, or
// another value, it is written as it was read.
func (c *Codec) Member(name, want string) {
	if !c.Decoding {
		if !c.Kept(name) {
			c.WriteString(name, want)
		}
		return
	}
	switch m := c.Find(name); {
	case m == nil:
		c.Missing(name)
	case is(m.Value, want):
		m.Taken = true
	}
}

// is reports whether value is the string want, which contains nothing to escape.
func is(value, want string) bool {
	return len(value) == len(want)+2 && value[0] == '"' && value[1:len(value)-1] == want
}

// OptString is a string, left out if empty.
func (c *Codec) OptString(name string, v *string) {
	if !c.Decoding {
		if *v != "" {
			c.WriteString(name, *v)
		}
		return
	}
	if m := c.Find(name); m != nil && len(m.Value) > 2 && m.Value[0] == '"' {
		*v, m.Taken = jsonx.Unquote(m.Value), true
	}
}

// Text is a string that is always written.
func (c *Codec) Text(name string, v *string) { c.textOrOther(name, v) }

// NeedText is like Text for a member that a client acts on: a value that is not a
// string is an error.
func (c *Codec) NeedText(name string, v *string) {
	if other := c.textOrOther(name, v); other != nil {
		c.failText(name, "found "+jsonx.KindOf(other.Value)+", want a string")
	}
}

// textOrOther returns the member if it is present and not a string.
func (c *Codec) textOrOther(name string, v *string) (other *jsonx.Member) {
	if !c.Decoding {
		if *v != "" || !c.Kept(name) {
			c.WriteString(name, *v)
		}
		return nil
	}
	switch m := c.Find(name); {
	case m == nil:
		c.Missing(name)
	case m.Value[0] != '"':
		return m
	default:
		*v, m.Taken = jsonx.Unquote(m.Value), true
	}
	return nil
}

// NullText is a string that is always written, as null if empty.
func (c *Codec) NullText(name string, v *string) {
	if !c.Decoding {
		switch {
		case *v != "":
			c.WriteString(name, *v)
		case !c.Kept(name):
			c.WriteRaw(name, "null")
		}
		return
	}
	switch m := c.Find(name); {
	case m == nil:
		c.Missing(name)
	case m.Value == "null":
		m.Taken = true
	default:
		c.OptString(name, v)
	}
}

// StrictText is like OptString for a member that a client acts on: a value that is
// neither a string nor null is an error.
func (c *Codec) StrictText(name string, v *string) {
	c.OptString(name, v)
	if !c.Decoding || *v != "" {
		return
	}
	if m := c.Find(name); m != nil && m.Value != "null" && m.Value[0] != '"' {
		c.failText(name, "found "+jsonx.KindOf(m.Value)+", want a string")
	}
}

// Code is like OptString but also reads a number, because some servers use numbers
// as error codes. The number is kept in the record's list and is written as long as
// the field still has its text.
func (c *Codec) Code(name string, v *string) {
	if !c.Decoding {
		if other, _ := c.extra.get(name); other == "" || other != *v {
			c.OptString(name, v)
		}
		return
	}
	if c.OptString(name, v); *v == "" {
		if m := c.Find(name); m != nil && jsonx.IsNumber(m.Value) {
			*v = m.Value
		}
	}
}

// OptStrings is a list of strings, left out if nil.
func (c *Codec) OptStrings(name string, v *[]string) {
	if !c.Decoding {
		if *v != nil {
			Array(c, name, *v, jsonx.AppendQuoted)
		}
		return
	}
	m := c.Find(name)
	if m == nil || !listOf(m.Value, '"') {
		return
	}
	list := []string{}
	jsonx.EachElement(m.Value, func(s string) { list = append(list, jsonx.Unquote(s)) })
	*v, m.Taken = list, true
}

// StringMap is an object whose values are strings. It is left out if nil, and
// written in the order of the names.
func (c *Codec) StringMap(name string, v *map[string]string) {
	if !c.Decoding {
		if *v != nil {
			c.Name(name)
			out, err := AppendStringMap(c.Out, *v)
			c.Took(name, out, err)
		}
		return
	}
	m := c.Find(name)
	if m == nil || m.Value[0] != '{' {
		return
	}
	// If one value is not a string, the whole object goes to the record's list.
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

// AppendStringMap appends an object whose values are strings, in the order of the
// names.
func AppendStringMap(dst []byte, m map[string]string) ([]byte, error) {
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

// Raw is any JSON value, left out if absent.
func Raw[J ~string](c *Codec, name string, v *J) {
	if !c.Decoding {
		if *v != "" {
			c.WriteRaw(name, string(*v))
		}
		return
	}
	if m := c.Find(name); m != nil {
		*v, m.Taken = J(m.Value), true
	}
}

// RawList is a list of any JSON values, left out if nil.
func RawList[J ~string](c *Codec, name string, v *[]J) {
	if !c.Decoding {
		if *v != nil {
			Array(c, name, *v, func(dst []byte, one J) ([]byte, error) {
				value, err := jsonx.Checked(string(one))
				return append(dst, value...), err
			})
		}
		return
	}
	if m := c.Find(name); m != nil && m.Value[0] == '[' {
		list := []J{}
		jsonx.EachElement(m.Value, func(s string) { list = append(list, J(s)) })
		*v, m.Taken = list, true
	}
}

// OrEmpty handles a member that is required by the schema. If isNil, it writes the
// member as empty, which is [], {} or null, unless the record's list contains it.
// Call it before the member's own field.
func (c *Codec) OrEmpty(name, empty string, isNil bool) {
	if !c.Decoding {
		if isNil && !c.Kept(name) {
			c.WriteRaw(name, empty)
		}
		return
	}
	switch m := c.Find(name); {
	case m == nil:
		c.Missing(name)
	case m.Value == empty:
		m.Taken = true
	}
}

// OptBool is true, false or absent.
func (c *Codec) OptBool(name string, v **bool) {
	if !c.Decoding {
		if *v != nil {
			c.writeBool(name, **v)
		}
		return
	}
	if m := c.Find(name); m != nil && (m.Value == "true" || m.Value == "false") {
		*v, m.Taken = new(m.Value == "true"), true
	}
}

// Flag is a boolean that is always written.
func (c *Codec) Flag(name string, v *bool) {
	if !c.Decoding {
		if *v || !c.Kept(name) {
			c.writeBool(name, *v)
		}
		return
	}
	switch m := c.Find(name); {
	case m == nil:
		c.Missing(name)
	case m.Value == "true", m.Value == "false":
		*v, m.Taken = m.Value == "true", true
	}
}

// OptInt is an integer or absent.
func (c *Codec) OptInt(name string, v **int64) {
	if !c.Decoding {
		if *v != nil {
			c.writeInt(name, **v)
		}
		return
	}
	if m := c.Find(name); m != nil {
		if n, ok := jsonx.Integer(m.Value); ok {
			*v, m.Taken = new(n), true
			c.spellInt(name, m.Value, n)
		}
	}
}

// Number is an integer that is always written.
func (c *Codec) Number(name string, v *int64) {
	if !c.Decoding {
		if *v != 0 || !c.Kept(name) {
			c.writeInt(name, *v)
		}
		return
	}
	m := c.Find(name)
	if m == nil {
		c.Missing(name)
		return
	}
	if n, ok := jsonx.Integer(m.Value); ok {
		*v, m.Taken = n, true
		c.spellInt(name, m.Value, n)
	}
}

// NeedNumber is like Number for a member that a client acts on: another kind of
// value is an error.
func (c *Codec) NeedNumber(name string, v *int64) {
	c.Number(name, v)
	if !c.Decoding {
		return
	}
	if m := c.Find(name); m != nil {
		c.failText(name, "found "+jsonx.KindOf(m.Value)+", want an integer")
	}
}

// Index is an index in a list. A value of -1 means that it is absent, and is not
// written.
func (c *Codec) Index(name string, v *int) {
	n := int64(*v)
	c.upTo(math.MaxInt32, name, &n)
	*v = int(n)
}

// Sequence is a number that counts from 0. A value of -1 means that it is absent,
// and is not written.
func (c *Codec) Sequence(name string, v *int64) { c.upTo(math.MaxInt64, name, v) }

// upTo is a number from 0 to limit, or -1 if absent. A value that is not such a
// number goes to the record's list.
func (c *Codec) upTo(limit int64, name string, v *int64) {
	if !c.Decoding {
		if *v >= 0 {
			c.Name(name)
			c.Out = strconv.AppendInt(c.Out, *v, 10)
		}
		return
	}
	*v = -1
	if m := c.Find(name); m != nil {
		if n, ok := jsonx.Integer(m.Value); ok && n >= 0 && n <= limit {
			*v, m.Taken = n, true
		}
	}
}

// Numbers is a list of integers, left out if nil.
func (c *Codec) Numbers(name string, v *[]int64) {
	if !c.Decoding {
		if *v != nil {
			Array(c, name, *v, func(dst []byte, n int64) ([]byte, error) { return strconv.AppendInt(dst, n, 10), nil })
		}
		return
	}
	m := c.Find(name)
	if m == nil || m.Value[0] != '[' {
		return
	}
	// If one element is not an integer, the whole list goes to the record's list.
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

// OptFloat is a number or absent. A number that a float64 cannot represent goes to
// the record's list: an integer beyond 2^53, or a number that would become 0.
func (c *Codec) OptFloat(name string, v **float64) {
	if !c.Decoding {
		if *v != nil {
			c.writeFloat(name, **v)
		}
		return
	}
	if m := c.Find(name); m != nil && jsonx.IsNumber(m.Value) {
		if f, err := strconv.ParseFloat(m.Value, 64); err == nil && holds(f, m.Value) {
			*v, m.Taken = new(f), true
			c.spellFloat(name, m.Value, f)
		}
	}
}

// Decimal is a number that is always written.
func (c *Codec) Decimal(name string, v *float64) {
	if !c.Decoding {
		if *v != 0 || !c.Kept(name) {
			c.writeFloat(name, *v)
		}
		return
	}
	if c.Find(name) == nil {
		c.Missing(name)
		return
	}
	var p *float64
	if c.OptFloat(name, &p); p != nil {
		*v = *p
	}
}

// holds reports whether f represents the number well enough; see [Codec.OptFloat].
func holds(f float64, number string) bool {
	if f == 0 {
		mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
		return !strings.ContainsAny(mantissa, "123456789")
	}
	n, err := strconv.ParseInt(number, 10, 64)
	return err != nil || math.Abs(f) <= 1<<53 || float64(n) == f && int64(f) == n
}

// writeFloat appends a number, with its recorded text if that has the same value.
// JSON has no text for infinities and NaN.
func (c *Codec) writeFloat(name string, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		c.Fail(name, errors.New("not a finite number"))
		return
	}
	text := c.spelling(name)
	c.Name(name)
	if text != "" { // an error of ParseFloat takes two allocations
		if came, err := strconv.ParseFloat(text, 64); err == nil && came == f {
			c.Out = append(c.Out, text...)
			return
		}
	}
	c.Out = appendFloat(c.Out, f)
}

// appendFloat appends the shortest text that reads back as f.
func appendFloat(dst []byte, f float64) []byte {
	format := byte('f') // plain digits, as clients expect for times
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

// listOf reports whether s is a list in which every element begins with first.
func listOf(s string, first byte) bool {
	if s == "" || s[0] != '[' {
		return false
	}
	whole := true
	jsonx.EachElement(s, func(e string) { whole = whole && e[0] == first })
	return whole
}
