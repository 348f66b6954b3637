// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// The functions below read JSON that was checked with [item.JSON.Valid].

// eachMember visits the members of an object in their order, names decoded.
func eachMember(object item.JSON, visit func(name string, value item.JSON)) {
	if object != "" && object[0] == '{' {
		jsonx.EachMember(string(object), func(name, value string) { visit(jsonx.Unquote(name), item.JSON(value)) })
	}
}

// eachElement visits the elements of a list.
func eachElement(list item.JSON, visit func(i int, value item.JSON)) {
	if list != "" && list[0] == '[' {
		n := 0
		jsonx.EachElement(string(list), func(value string) {
			visit(n, item.JSON(value))
			n++
		})
	}
}

// member returns the named member of an object, or "". The last of several members with the name
// counts.
func member(object item.JSON, name string) item.JSON {
	value, _ := jsonx.MemberOf(string(object), name)
	return item.JSON(value)
}

// object is a JSON object whose members are taken once each; [object.rest] reports the members that
// were not taken.
type object struct {
	place
	members jsonx.Members
}

func (p place) open(v item.JSON) *object {
	o := &object{place: p}
	if v != "" && v[0] == '{' {
		jsonx.EachMember(string(v), o.members.Add)
		o.members.DropEarlier()
	}
	return o
}

// take returns the named member, or "" if it is absent or null.
func (o *object) take(name string) item.JSON {
	v := o.takeAny(name)
	if v == "null" {
		return ""
	}
	return v
}

func (o *object) takeAny(name string) item.JSON {
	m := o.members.Find(name)
	if m == nil {
		return ""
	}
	m.Taken = true
	return item.JSON(m.Value)
}

// text takes a member that is a string. A value of another type is not taken, so that it is
// reported.
func (o *object) text(name string) string {
	m := o.members.Find(name)
	if m == nil {
		return ""
	}
	s, ok := item.JSON(m.Value).Unquote()
	m.Taken = ok
	return s
}

// number takes a member that is a whole number.
func (o *object) number(name string) *int64 {
	n := o.peek(name)
	if n != nil {
		o.members.Find(name).Taken = true
	}
	return n
}

// peek reads a whole number without taking it.
func (o *object) peek(name string) *int64 {
	if m := o.members.Find(name); m != nil {
		if n, ok := integer(item.JSON(m.Value)); ok {
			return &n
		}
	}
	return nil
}

// rest reports the members that were not taken, except blank ones.
func (o *object) rest() {
	o.each(func(name string, _ item.JSON) { o.at(name).lose(noCounterpart) })
}

// keep returns the members that were not taken.
func (o *object) keep() (x item.Extra) {
	o.each(func(name string, v item.JSON) { x = append(x, item.Member{Name: name, Value: v}) })
	return x
}

func (o *object) each(visit func(name string, v item.JSON)) {
	for _, m := range o.members.List {
		if v := item.JSON(m.Value); !m.Taken && !blank(v) {
			visit(m.Name, v)
		}
	}
}

// isEmpty reports whether v is not a list, or an empty list.
func isEmpty(v item.JSON) bool {
	return v == "" || v[0] != '[' || v[jsonx.SkipSpace(string(v), 1)] == ']'
}

// blank reports whether a value is null or empty.
func blank(v item.JSON) bool {
	switch v {
	case "", "null", `""`, "[]", "{}":
		return true
	}
	return false
}

// integer reads a whole number in any notation.
func integer(v item.JSON) (int64, bool) { return jsonx.Integer(string(v)) }

// kindOf returns the kind of a value for an error message.
func kindOf(v item.JSON) string {
	if v != "" && v[0] == '[' && isEmpty(v) {
		return "an empty list"
	}
	return jsonx.KindOf(string(v))
}

// writer appends JSON after the first base bytes of buf, and adds commas where necessary.
type writer struct {
	buf  []byte
	base int
}

func appendTo(dst []byte) *writer { return &writer{buf: dst, base: len(dst)} }

// newWriter returns a writer of an object of its own, with room for most.
func newWriter() *writer { return &writer{buf: make([]byte, 0, 512)} }

func (w *writer) comma() {
	if n := len(w.buf); n > w.base && w.buf[n-1] != '{' && w.buf[n-1] != '[' && w.buf[n-1] != ':' {
		w.buf = append(w.buf, ',')
	}
}

func (w *writer) open(bracket byte) {
	w.comma()
	w.buf = append(w.buf, bracket)
}

func (w *writer) close(bracket byte) { w.buf = append(w.buf, bracket) }

func (w *writer) name(name string) {
	w.comma()
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

// raw writes a member, or an element if name is "".
func (w *writer) raw(name string, v item.JSON) {
	if name == "" {
		w.comma()
	} else {
		w.name(name)
	}
	w.buf = append(w.buf, v...)
}

func (w *writer) text(name, s string) {
	w.raw(name, "")
	out, err := jsonx.AppendQuoted(w.buf, s)
	if err != nil { // it is not UTF-8
		out = append(w.buf, item.Quote(s)...)
	}
	w.buf = out
}

// optText writes a string member unless it is empty.
func (w *writer) optText(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

func (w *writer) optRaw(name string, v item.JSON) {
	if v != "" {
		w.raw(name, v)
	}
}

func (w *writer) number(name string, n int64) { w.raw(name, item.JSON(strconv.FormatInt(n, 10))) }

func (w *writer) optNumber(name string, n *int64) {
	if n != nil {
		w.number(name, *n)
	}
}

func (w *writer) optFloat(name string, f *float64) {
	if f != nil {
		w.raw(name, item.JSON(strconv.FormatFloat(*f, 'f', -1, 64)))
	}
}

func (w *writer) optBool(name string, b *bool) {
	if b != nil {
		w.raw(name, item.JSON(strconv.FormatBool(*b)))
	}
}

// extra writes unknown members unchanged.
func (w *writer) extra(x item.Extra) {
	for _, m := range x {
		if m.Value != "" {
			w.raw("", item.Quote(m.Name))
			w.buf = append(w.buf, ':')
			w.buf = append(w.buf, strings.TrimSpace(string(m.Value))...)
		}
	}
}
