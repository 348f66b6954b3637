// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// A record is a JSON object with known members. Its one fields method names
// each member once and serves both directions, so that reading and writing
// cannot drift apart.
type record interface{ fields(c *codec) }

// codec is one pass over a record's fields. When decoding, each call takes the
// named member out of the object if the field can hold its value; when
// encoding, it appends the member. What no field took goes to the record's
// Extra. The first error sticks.
type codec struct {
	decoding bool
	err      error

	members jsonx.Members // decoding: the object's members
	likely  []Item        // decoding: what a list of items most likely consists of

	out     []byte   // encoding: the text so far
	names   []string // encoding: the members written
	apart   bool     // encoding: the items of a List are left out
	inputAt int      // and belong here
	input   *List    // this one's

	scratch []byte // encoding: room that is used again, see recordText

	spelled *Extra // of the record's numbers, or nil
}

var codecs = sync.Pool{New: func() any { return new(codec) }}

func newCodec(decoding bool) *codec {
	c := codecs.Get().(*codec)
	*c = codec{decoding: decoding, members: c.members, names: c.names[:0], scratch: c.scratch}
	return c
}

func (c *codec) free() {
	c.members.Reset()
	clear(c.names)
	c.out, c.input, c.likely, c.spelled = nil, nil, nil, nil
	codecs.Put(c)
}

// decodeRecord reads the JSON object s, which has been validated, into r.
func decodeRecord(s string, r record) error {
	if s == "" || s[0] != '{' {
		return &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want an object"}
	}
	c := newCodec(true)
	defer c.free()
	c.open(s)
	r.fields(c)
	return c.err
}

// parseRecord is decodeRecord for text that has not been validated: it does
// both in one pass.
func parseRecord(s string, r record) error {
	if err := checkSize(s); err != nil {
		return err
	}
	sc := jsonx.Scanner{Text: s}
	start := jsonx.SkipSpace(s, 0)
	if start == len(s) || s[start] != '{' {
		value, err := trimValue(s)
		if err != nil {
			return err
		}
		return decodeRecord(value, r)
	}
	c := newCodec(true)
	defer c.free()
	end, err := sc.Object(start, c.members.Add)
	if err == nil {
		err = sc.End(end)
	}
	if err != nil {
		return syntaxError(err)
	}
	c.members.DropEarlier()
	r.fields(c)
	return c.err
}

// appendRecord appends r as a JSON object. On error dst is returned as it was.
func appendRecord(dst []byte, r record) ([]byte, error) {
	if isNil(r) {
		return dst, errNil
	}
	c := newCodec(false)
	defer c.free()
	c.out = append(dst, '{')
	r.fields(c)
	if c.err != nil {
		return dst, c.err
	}
	return append(c.out, '}'), nil
}

// appendOutward is appendRecord for others to read: payloads that are held are
// put in.
func appendOutward(dst []byte, r record) ([]byte, error) {
	out, err := appendRecord(dst, r)
	return wholeFrom(dst, out, err)
}

// errNil is about a value that somebody made by hand and that is nil, which an
// interface can hide.
var errNil = &ShapeError{Problem: "it is nil"}

// isNil reports whether a value is nil, or a nil pointer of whatever type.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// maxScratch is the size of the largest record that is encoded in a codec's
// scratch.
const maxScratch = 32 << 10

// recordText returns r as a JSON object, in memory of its own that it fills.
func recordText(r record) (string, error) {
	if isNil(r) {
		return "", errNil
	}
	c := newCodec(false)
	defer c.free()
	c.out = append(c.scratch[:0], '{')
	r.fields(c)
	if c.err != nil {
		return "", c.err
	}
	c.out = append(c.out, '}')
	if cap(c.out) > maxScratch {
		return jsonx.String(c.out), nil
	}
	c.scratch = c.out
	return string(c.out), nil
}

// open lists the members of an object that has been validated.
func (c *codec) open(s string) {
	jsonx.EachMember(s, c.members.Add)
	c.members.DropEarlier()
}

// find returns the named member, or nil.
func (c *codec) find(name string) *jsonx.Member { return c.members.Find(name) }

func (c *codec) fail(name string, err error) {
	if c.err != nil || err == nil {
		return
	}
	var shape *ShapeError
	if errors.As(err, &shape) {
		inner := *shape
		inner.Path = joinPath(name, inner.Path)
		c.err = &inner
		return
	}
	c.err = &ShapeError{Path: name, Problem: err.Error()}
}

func joinPath(outer, inner string) string {
	if inner == "" || inner[0] == '[' {
		return outer + inner
	}
	return outer + "." + inner
}

func indexed(i int, err error) error {
	var shape *ShapeError
	if !errors.As(err, &shape) {
		shape = &ShapeError{Problem: err.Error()}
	}
	inner := *shape
	inner.Path = joinPath("["+strconv.Itoa(i)+"]", inner.Path)
	return &inner
}

// name appends the member's name, with the comma it needs.
func (c *codec) name(name string) {
	if c.out[len(c.out)-1] != '{' {
		c.out = append(c.out, ',')
	}
	c.out = append(c.out, '"')
	c.out = append(c.out, name...)
	c.out = append(c.out, '"', ':')
	c.names = append(c.names, name)
}

func (c *codec) writeString(name, v string) {
	c.name(name)
	out, err := jsonx.AppendQuoted(c.out, v)
	c.out = out
	c.fail(name, err)
}

// typ is the constant type member. An object that left it out is taken as it is.
func (c *codec) typ(want string) { c.constant("type", want) }

// constant is a text member with one value.
func (c *codec) constant(name, want string) {
	if !c.decoding {
		c.writeString(name, want)
		return
	}
	if m := c.find(name); m != nil && is(m.Value, want) {
		m.Taken = true
	}
}

// is reports whether the value is a constant, which has nothing to escape.
func is(value, want string) bool {
	return len(value) == len(want)+2 && value[0] == '"' && value[1:len(value)-1] == want
}

// optString is a text that is left out when empty. What it cannot hold, an
// empty text included, stays for Extra.
func (c *codec) optString(name string, v *string) {
	if !c.decoding {
		if *v != "" {
			c.writeString(name, *v)
		}
		return
	}
	if m := c.find(name); m != nil && len(m.Value) > 2 && m.Value[0] == '"' {
		*v, m.Taken = jsonx.Unquote(m.Value), true
	}
}

// raw is any value, left out when absent.
func (c *codec) raw(name string, v *JSON) {
	if !c.decoding {
		if *v != "" {
			c.writeRaw(name, *v)
		}
		return
	}
	if m := c.find(name); m != nil {
		*v, m.Taken = JSON(m.Value), true
	}
}

func (c *codec) writeRaw(name string, v JSON) {
	value, err := trimValue(string(v))
	if err != nil {
		c.fail(name, err)
		return
	}
	c.name(name)
	c.out = append(c.out, value...)
}

// optBool is true, false or absent.
func (c *codec) optBool(name string, v **bool) {
	if !c.decoding {
		if *v != nil {
			c.name(name)
			c.out = strconv.AppendBool(c.out, **v)
		}
		return
	}
	if m := c.find(name); m != nil && (m.Value == "true" || m.Value == "false") {
		*v, m.Taken = new(m.Value == "true"), true
	}
}

// optInt is an integer or absent.
func (c *codec) optInt(name string, v **int64) {
	if !c.decoding {
		if *v != nil {
			c.writeInt(name, **v)
		}
		return
	}
	if m := c.find(name); m != nil {
		if n, ok := jsonx.Integer(m.Value); ok {
			*v, m.Taken = new(n), true
			c.spellInt(name, m.Value, n)
		}
	}
}

// optFloat is a number or absent. One that a float64 does not hold stays for
// Extra: a whole number beyond 2^53, or one that would become 0.
func (c *codec) optFloat(name string, v **float64) {
	if !c.decoding {
		if *v != nil {
			c.writeFloat(name, **v)
		}
		return
	}
	if m := c.find(name); m != nil && jsonx.IsNumber(m.Value) {
		if f, err := strconv.ParseFloat(m.Value, 64); err == nil && holds(f, m.Value) {
			*v, m.Taken = new(f), true
			c.spellFloat(name, m.Value, f)
		}
	}
}

func holds(f float64, number string) bool {
	if f == 0 {
		mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
		return !strings.ContainsAny(mantissa, "123456789")
	}
	n, err := strconv.ParseInt(number, 10, 64)
	return err != nil || math.Abs(f) <= 1<<53 || float64(n) == f && int64(f) == n
}

func (c *codec) writeFloat(name string, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		c.fail(name, errors.New("not a finite number"))
		return
	}
	text := c.spelling(name)
	c.name(name)
	if came, err := strconv.ParseFloat(text, 64); err == nil && came == f {
		c.out = append(c.out, text...)
		return
	}
	c.out = appendFloat(c.out, f)
}

func appendFloat(dst []byte, f float64) []byte {
	format := byte('f') // plain digits, as clients expect of a time
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

// optStrings is a list of texts, left out when nil.
func (c *codec) optStrings(name string, v *[]string) {
	if !c.decoding {
		if *v != nil {
			appendArray(c, name, *v, jsonx.AppendQuoted)
		}
		return
	}
	m := c.find(name)
	if m == nil || m.Value[0] != '[' {
		return
	}
	list := []string{}
	whole := true
	jsonx.EachElement(m.Value, func(s string) {
		whole = whole && s[0] == '"'
		if whole {
			list = append(list, jsonx.Unquote(s))
		}
	})
	if whole {
		*v, m.Taken = list, true
	}
}

func appendItem(dst []byte, it Item) ([]byte, error) {
	if it.raw == "" {
		return dst, errors.New("found no item")
	}
	return append(dst, it.raw...), nil
}

// items is a list of items, left out when nil. A zero Item in it is an error.
func (c *codec) items(name string, v *[]Item) {
	if !c.decoding {
		if *v != nil {
			appendArray(c, name, *v, appendItem)
		}
		return
	}
	if m := c.find(name); m != nil && m.Value[0] == '[' {
		if len(c.likely) > 0 && consistsOf(m.Value, c.likely) {
			*v, m.Taken = c.likely, true
			return
		}
		list, err := itemsOf(m.Value)
		if err != nil {
			c.fail(name, err)
			return
		}
		*v, m.Taken = list, true
	}
}

// optRecord is a nested object, left out when nil. What is not an object stays
// for Extra. Like the other generic kinds it is thin: its body is linked once
// for each type.
func optRecord[T any, P interface {
	*T
	record
}](c *codec, name string, v **T) {
	if !c.decoding {
		if *v != nil {
			c.writeRecord(name, P(*v))
		}
		return
	}
	if m := c.findObject(name); m != nil {
		r := new(T)
		if c.readRecord(m, P(r)) {
			*v = r
		}
	}
}

// findObject returns the member of that name if it holds an object. It is apart
// from optRecord, of which there is one for each type.
//
//go:noinline
func (c *codec) findObject(name string) *jsonx.Member {
	if m := c.find(name); m != nil && m.Value[0] == '{' {
		return m
	}
	return nil
}

func (c *codec) writeRecord(name string, r record) {
	c.name(name)
	out, err := appendRecord(c.out, r)
	c.out = out
	c.fail(name, err)
}

func (c *codec) readRecord(m *jsonx.Member, r record) bool {
	if err := decodeRecord(m.Value, r); err != nil {
		c.fail(m.Name, err)
		return false
	}
	m.Taken = true
	return true
}

// appendArray appends a member that is a list.
func appendArray[T any](c *codec, name string, list []T, one func([]byte, T) ([]byte, error)) {
	c.writeArray(name, len(list), func(dst []byte, i int) ([]byte, error) { return one(dst, list[i]) })
}

func (c *codec) writeArray(name string, n int, one func(dst []byte, i int) ([]byte, error)) {
	c.name(name)
	c.out = append(c.out, '[')
	for i := range n {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		out, err := one(c.out, i)
		if err != nil {
			c.fail(name, indexed(i, err))
			return
		}
		c.out = out
	}
	c.out = append(c.out, ']')
}

// rest is the record's Extra. It comes last in every fields method.
func (c *codec) rest(x *Extra) {
	if c.decoding {
		for i := range c.members.List {
			if m := &c.members.List[i]; !m.Taken {
				*x = append(*x, Member{Name: m.Name, Value: JSON(m.Value)})
			}
		}
		return
	}
	if len(*x) == 0 {
		return
	}
	written := make(map[string]bool, len(c.names)+len(*x))
	for _, name := range c.names {
		written[name] = true
	}
	for _, m := range *x {
		if !written[m.Name] {
			written[m.Name] = true
			c.extra(m)
		}
	}
}

func (c *codec) extra(m Member) {
	value, err := trimValue(string(m.Value))
	if err != nil {
		c.fail(m.Name, err)
		return
	}
	if c.out[len(c.out)-1] != '{' {
		c.out = append(c.out, ',')
	}
	if c.out, err = jsonx.AppendQuoted(c.out, m.Name); err != nil {
		c.fail(m.Name, err)
		return
	}
	c.out = append(append(c.out, ':'), value...)
}
