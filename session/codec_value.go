// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// codec is one pass over the members of an entry. Writing, each call appends
// the member if it is not zero; reading, it takes the member. What nobody took
// is from a newer program.
type codec struct {
	out []byte // writing

	decoding bool
	members  jsonx.Members
	line     string    // what is read
	last     item.Item // its item, if that comes last

	split *Split
	err   error // the first one
}

func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *codec) failf(format string, args ...any) { c.fail(fmt.Errorf(format, args...)) }

// aroundItem is how many lists and objects stand around an item in an entry at
// most: an item may nest as deep in there as by itself.
const aroundItem = 3

// open checks the text s and finds the members of the object that it has to be.
// An item mostly comes last. It is read here already, which checks it, so that
// its text is not walked over twice.
func (c *codec) open(s string) {
	s = strings.Trim(s, " \t\r\n")
	if s == "" || s[0] != '{' {
		c.failf("not a JSON object")
		return
	}
	c.line = s
	sc := jsonx.Scanner{Text: s, Depth: -aroundItem, Passer: c}
	end, err := sc.Object(0, c.add)
	if err == nil {
		err = sc.End(end)
	}
	if err != nil {
		c.fail(err)
		return
	}
}

// Pass reads the item that comes last.
func (c *codec) Pass(name string, i int) int {
	end := len(c.line) - 1
	if name != `"item"` || i >= end || c.line[i] != '{' {
		return 0
	}
	var err error
	if c.last, err = item.ParseString(c.line[i:end]); err != nil {
		return 0
	}
	return end
}

// openChecked is open for the value of a member.
func (c *codec) openChecked(value string) {
	if value == "" || value[0] != '{' {
		c.failf("not a JSON object")
		return
	}
	jsonx.EachMember(value, c.add)
}

func (c *codec) add(name, value string) {
	if name == `""` {
		c.failf("a member without a name")
	}
	c.members.Add(name, value)
}

// eachElement visits the elements of the value of a member and reports whether
// it is a list.
func eachElement(value string, visit func(string)) bool {
	if value[0] != '[' {
		return false
	}
	jsonx.EachElement(value, visit)
	return true
}

// take returns the text of the named member, or "".
func (c *codec) take(name string) string {
	m := c.members.Find(name)
	if m == nil {
		return ""
	}
	m.Taken = true
	return m.Value
}

// close reports a member that nobody took.
func (c *codec) close(what string) {
	for _, m := range c.members.List {
		if !m.Taken {
			c.fail(fmt.Errorf("%w: member %q of kind %q", ErrNewer, m.Name, what))
		}
	}
}

// name appends a member's name, which needs no escapes.
func (c *codec) name(name string) {
	if c.out[len(c.out)-1] != '{' {
		c.out = append(c.out, ',')
	}
	c.out = append(append(append(c.out, '"'), name...), '"', ':')
}

func (c *codec) text(name string, v *string) {
	if !c.decoding {
		if *v != "" {
			c.name(name)
			c.out = appendText(c.out, *v)
		}
		return
	}
	if value := c.take(name); value != "" {
		var err error
		if *v, err = textOf(value); err != nil {
			c.failf("%s: %w", name, err)
		}
	}
}

// appendText writes a text as a JSON string, and one that is not UTF-8 as an
// object with its base64.
func appendText(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		dst = append(dst, `{"base64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(s))
		return append(dst, `"}`...)
	}
	return append(dst, item.Quote(s)...)
}

func textOf(value string) (string, error) {
	if s, ok := unquoted(value); ok {
		return s, nil
	}
	inner := codec{decoding: true}
	inner.openChecked(value)
	s, ok := unquoted(inner.take("base64"))
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if !ok || err != nil || inner.err != nil {
		return "", errors.New("no text")
	}
	return string(b), nil
}

// unquoted reads the value of a member that is a string.
func unquoted(value string) (string, bool) { return item.JSON(value).Unquote() }

func (c *codec) bool(name string, v *bool) {
	if !c.decoding {
		if *v {
			c.name(name)
			c.out = append(c.out, "true"...)
		}
		return
	}
	switch c.take(name) {
	case "", "false":
	case "true":
		*v = true
	default:
		c.failf("%s: neither true nor false", name)
	}
}

func (c *codec) int64(name string, v *int64) {
	if !c.decoding {
		if *v != 0 {
			c.name(name)
			c.out = strconv.AppendInt(c.out, *v, 10)
		}
		return
	}
	if value := c.take(name); value != "" {
		*v = c.whole(name, value)
	}
}

// whole reads an integer as it is written here.
func (c *codec) whole(name, value string) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	var room [20]byte
	if err != nil || string(strconv.AppendInt(room[:0], n, 10)) != value {
		c.failf("%s: no whole number", name)
	}
	return n
}

func (c *codec) int(name string, v *int) {
	n := int64(*v)
	c.int64(name, &n)
	if *v = int(n); int64(*v) != n {
		c.failf("%s: %d is too large here", name, n)
	}
}

func (c *codec) float(name string, v *float64) {
	if !c.decoding {
		if math.IsNaN(*v) || math.IsInf(*v, 0) {
			c.failf("%s: %v cannot be written", name, *v)
		} else if *v != 0 || math.Signbit(*v) {
			c.name(name)
			c.out = strconv.AppendFloat(c.out, *v, 'g', -1, 64)
		}
		return
	}
	if value := c.take(name); value != "" {
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			c.failf("%s: no number", name)
		}
		*v = n
	}
}

// elements writes or reads a list that is left out when nil.
func elements[T any](c *codec, name string, v *[]T, write func(T), read func(string) T) {
	if !c.decoding {
		if *v == nil {
			return
		}
		c.name(name)
		c.out = append(c.out, '[')
		for i, x := range *v {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			write(x)
		}
		c.out = append(c.out, ']')
		return
	}
	value := c.take(name)
	if value == "" {
		return
	}
	*v = []T{}
	if !eachElement(value, func(e string) { *v = append(*v, read(e)) }) {
		c.failf("%s: no list", name)
	}
}

func (c *codec) texts(name string, v *[]string) {
	elements(c, name, v, func(s string) { c.out = appendText(c.out, s) }, func(e string) string {
		s, err := textOf(e)
		if err != nil {
			c.failf("%s: %w", name, err)
		}
		return s
	})
}

func (c *codec) int64s(name string, v *[]int64) {
	elements(c, name, v, func(n int64) { c.out = strconv.AppendInt(c.out, n, 10) }, func(e string) int64 {
		return c.whole(name, e)
	})
}

// fielder names the members of a part of a body.
type fielder interface{ fields(c *codec) }

// object writes or reads one object in place.
func (c *codec) object(name, value string, v fielder) {
	if !c.decoding {
		c.out = append(c.out, '{')
		v.fields(c)
		c.out = append(c.out, '}')
		return
	}
	inner := codec{decoding: true}
	inner.openChecked(value)
	v.fields(&inner)
	inner.close(name)
	c.fail(inner.err)
}

// part is an object that is left out when nil.
func part[T any, P interface {
	*T
	fielder
}](c *codec, name string, v **T) {
	if !c.decoding {
		if *v != nil {
			c.name(name)
			c.object(name, "", P(*v))
		}
		return
	}
	if value := c.take(name); value != "" {
		*v = new(T)
		c.object(name, value, P(*v))
	}
}

// list is a list of objects.
func list[T any, P interface {
	*T
	fielder
}](c *codec, name string, v *[]T) {
	elements(c, name, v, func(x T) { c.object(name, "", P(&x)) }, func(e string) (x T) {
		c.object(name, e, P(&x))
		return x
	})
}

func (c *codec) usage(name string, v **item.Usage) {
	if !c.decoding {
		if *v == nil {
			return
		}
		b, err := (*v).MarshalJSON()
		if err != nil {
			c.failf("%s: %w", name, err)
			return
		}
		c.name(name)
		c.out = append(c.out, b...)
		return
	}
	value := c.take(name)
	if value == "" {
		return
	}
	u, err := item.ParseUsage(item.JSON(value))
	if err != nil {
		c.failf("%s: %w", name, err)
		return
	}
	*v = u
}
