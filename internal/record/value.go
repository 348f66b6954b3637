// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Opt is a nested object, left out if nil. A value that is not an object goes to the
// record's list. Like the other generic functions it is short, because the linker
// includes one copy of its body per type.
func Opt[T any](c *Codec, name string, v **T, fields func(*T, *Codec)) {
	if !c.object(name, *v != nil, func(c *Codec) {
		if c.Decoding {
			*v = new(T)
		}
		fields(*v, c)
	}) {
		*v = nil
	}
}

// object is Opt without the type parameter. It reports whether the value can stay: one
// that could not be read cannot.
func (c *Codec) object(name string, set bool, fields func(*Codec)) bool {
	if !c.Decoding {
		if set {
			c.Name(name)
			out, err := Append(c.Out, fields)
			c.Took(name, out, err)
		}
		return true
	}
	m := c.Find(name)
	if m == nil || m.Value[0] != '{' {
		return true
	}
	if err := Decode(m.Value, fields); err != nil {
		c.Fail(name, err)
		return false
	}
	m.Taken = true
	return true
}

// List is a list of objects, left out if nil. A value that is not a list of objects
// goes to the record's list.
func List[T any](c *Codec, name string, v *[]T, fields func(*T, *Codec)) {
	list := *v
	if c.Decoding {
		list = []T{}
	}
	if c.objects(name, list != nil, len(list), func(c *Codec, i int) {
		if c.Decoding {
			list = append(list, *new(T))
		}
		fields(&list[i], c)
	}) {
		*v = list
	}
}

// objects is List without the type parameter: one reads or writes element i. It reports
// whether it read a list.
func (c *Codec) objects(name string, set bool, n int, one func(c *Codec, i int)) bool {
	if !c.Decoding {
		if set {
			c.writeArray(name, n, func(dst []byte, i int) ([]byte, error) {
				return Append(dst, func(c *Codec) { one(c, i) })
			})
		}
		return false
	}
	m := c.Find(name)
	if m == nil || !listOf(m.Value, '{') {
		return false
	}
	i := 0
	jsonx.EachElement(m.Value, func(s string) {
		if err := Decode(s, func(c *Codec) { one(c, i) }); err != nil {
			c.Fail(name, Indexed(i, err))
		}
		i++
	})
	m.Taken = true
	return true
}

// Array appends a member that is a list.
func Array[T any](c *Codec, name string, list []T, one func([]byte, T) ([]byte, error)) {
	c.writeArray(name, len(list), func(dst []byte, i int) ([]byte, error) { return one(dst, list[i]) })
}

// writeArray is Array without the type parameter, so that it is linked only once.
func (c *Codec) writeArray(name string, n int, one func(dst []byte, i int) ([]byte, error)) {
	c.Name(name)
	c.Out = append(c.Out, '[')
	for i := range n {
		if i > 0 {
			c.Out = append(c.Out, ',')
		}
		out, err := one(c.Out, i)
		if err != nil {
			c.Fail(name, Indexed(i, err))
			return
		}
		c.Out = out
	}
	c.Out = append(c.Out, ']')
}

// Values holds functions that read values of a type from validated text and append
// them.
type Values[V any] struct {
	Read   func(s string) (V, error)
	Append func(dst []byte, v V) ([]byte, error)
	// ReadAll reads a validated list in one pass. It may be nil.
	ReadAll func(s string) ([]V, error)
}

// One is a value that is an object. If set is false, it is left out. A value that is
// not an object goes to the record's list.
func (k Values[V]) One(c *Codec, name string, v *V, set bool) {
	if !c.Decoding {
		k.write(c, name, v, set)
	} else if m := c.Find(name); m != nil && m.Value[0] == '{' {
		k.take(c, m, v)
	}
}

// Need is a value of any kind. If set is false, it is left out. A value that cannot
// be read is an error.
func (k Values[V]) Need(c *Codec, name string, v *V, set bool) {
	if !c.Decoding {
		k.write(c, name, v, set)
	} else if m := c.Find(name); m != nil {
		k.take(c, m, v)
	}
}

func (k Values[V]) write(c *Codec, name string, v *V, set bool) {
	if set {
		c.Name(name)
		out, err := k.Append(c.Out, *v)
		c.Took(name, out, err)
	}
}

func (k Values[V]) take(c *Codec, m *jsonx.Member, v *V) {
	got, err := k.Read(m.Value)
	if c.Fail(m.Name, err); err == nil {
		*v, m.Taken = got, true
	}
}

// List is a list of values, left out if nil. A value that is not a list goes to the
// record's list. An element that cannot be read is an error.
func (k Values[V]) List(c *Codec, name string, v *[]V) { k.listOr(c, name, v, false) }

// NeedList is like List, but a value that is not a list is an error.
func (k Values[V]) NeedList(c *Codec, name string, v *[]V) { k.listOr(c, name, v, true) }

func (k Values[V]) listOr(c *Codec, name string, v *[]V, need bool) {
	if !c.Decoding {
		if *v != nil {
			Array(c, name, *v, k.Append)
		}
		return
	}
	switch m := c.Find(name); {
	case m == nil:
	case m.Value[0] == '[':
		list, err := k.ReadList(m.Value)
		c.Fail(name, err)
		*v, m.Taken = list, true
	case need:
		c.failText(name, "found "+jsonx.KindOf(m.Value)+", want a list")
	}
}

// Objects is like List, but a list with elements that are not objects goes to the
// record's list.
func (k Values[V]) Objects(c *Codec, name string, v *[]V) {
	if c.Decoding {
		if m := c.Find(name); m == nil || !listOf(m.Value, '{') {
			return
		}
	}
	k.List(c, name, v)
}

// ReadList reads a validated list. It stops at the first element that cannot be
// read.
func (k Values[V]) ReadList(s string) ([]V, error) {
	if k.ReadAll != nil {
		return k.ReadAll(s)
	}
	list := []V{}
	var err error
	jsonx.EachElement(s, func(e string) {
		if err != nil {
			return
		}
		v, problem := k.Read(e)
		if problem != nil {
			err = Indexed(len(list), problem)
			return
		}
		list = append(list, v)
	})
	return list, err
}

// AppendList appends a list. A nil list is written as [].
func (k Values[V]) AppendList(dst []byte, list []V) ([]byte, error) {
	out := append(dst, '[')
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = k.Append(out, v); err != nil {
			return dst, Indexed(i, err)
		}
	}
	return append(out, ']'), nil
}
