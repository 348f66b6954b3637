// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Keep sets the list for members that a struct has no field for. Call it first in a
// fields method. After the fields, reading adds the members that they did not take,
// and writing appends the members that they did not write.
//
// The list also records what a field cannot express: a value that does not fit the
// field, or, as a member without a value, that a member that is normally always
// written was absent.
func Keep[X ~[]M, M ~struct {
	Name  string
	Value J
}, J ~string](c *Codec, x *X) {
	c.extra = extraOf[X, M, J](x)
}

// Spell makes the numbers of a struct be written as they were read. x holds the text
// of those that would be written differently, such as 1.0 and 1e3, and of those with
// more digits than a field can hold. Call it first in a fields method.
func Spell[X ~[]M, M ~struct {
	Name  string
	Value J
}, J ~string](c *Codec, x *X) {
	c.spelled = extraOf[X, M, J](x)
}

// extraOf returns x itself as an *Extra. The constraint guarantees that both types
// have the same memory layout. A copy would cost an allocation for each record that
// keeps members.
func extraOf[X ~[]M, M ~struct {
	Name  string
	Value J
}, J ~string](x *X) *Extra {
	return (*Extra)(unsafe.Pointer(x))
}

// get returns the value of the named member, and whether there is one. x may be nil.
func (x *Extra) get(name string) (string, bool) {
	if x != nil {
		for i := range *x {
			if (*x)[i].Name == name {
				return (*x)[i].Value, true
			}
		}
	}
	return "", false
}

// Kept reports whether the record's list contains the named member.
func (c *Codec) Kept(name string) bool {
	_, ok := c.extra.get(name)
	return ok
}

// Missing records that a member that is normally always written was absent.
func (c *Codec) Missing(name string) { *c.extra = append(*c.extra, Member{Name: name}) }

// rest adds the members that no field took to the record's list, or writes the list.
func (c *Codec) rest() {
	x := c.extra
	if x == nil {
		return
	}
	if c.Decoding {
		for i := range c.Members.List {
			if m := &c.Members.List[i]; !m.Taken {
				*x = append(*x, Member{m.Name, m.Value})
			}
		}
		return
	}
	// Many lists have nothing to write, and need no map.
	if !slices.ContainsFunc(*x, Member.written) {
		return
	}
	// A member that a field has written takes precedence over one in the list.
	if c.written == nil {
		c.written = make(map[string]bool, len(c.names)+len(*x))
	}
	for _, name := range c.names {
		c.written[name] = true
	}
	for _, m := range *x {
		if m.written() && !c.written[m.Name] {
			c.written[m.Name] = true
			c.writeExtra(m)
		}
	}
	if len(c.written) > maxWritten {
		c.written = nil
	}
	clear(c.written)
}

// maxWritten is the number of members of a record whose map is not used again.
const maxWritten = 256

// written reports whether the member is to be written. It is false for a member that
// only records that it was absent.
func (m Member) written() bool { return m.Value != "" }

// writeExtra appends a member of the list. The caller may have made it, so both name
// and value are checked.
func (c *Codec) writeExtra(m Member) {
	value, err := jsonx.Checked(m.Value)
	if err != nil {
		c.Fail(m.Name, err)
		return
	}
	if c.Out[len(c.Out)-1] != '{' {
		c.Out = append(c.Out, ',')
	}
	if c.Out, err = jsonx.AppendQuoted(c.Out, m.Name); err != nil {
		c.Fail(m.Name, err)
		return
	}
	c.Out = append(append(c.Out, ':'), value...)
}

// spell records the text of a number, unless it would be written that way anyway.
func (c *Codec) spell(name, text string, written []byte) {
	if c.spelled != nil && string(written) != text {
		*c.spelled = append(*c.spelled, Member{name, text})
	}
}

// spelling returns the recorded text of a number, or "".
func (c *Codec) spelling(name string) string {
	text, _ := c.spelled.get(name)
	return text
}

// writeInt appends an integer, with its recorded text if that has the same value.
func (c *Codec) writeInt(name string, n int64) {
	text := c.spelling(name)
	c.Name(name)
	if came, ok := jsonx.Integer(text); ok && came == n {
		c.Out = append(c.Out, text...)
		return
	}
	c.Out = strconv.AppendInt(c.Out, n, 10)
}

// spellInt records the text of an integer.
func (c *Codec) spellInt(name, text string, n int64) {
	var room [24]byte
	c.spell(name, text, strconv.AppendInt(room[:0], n, 10))
}

// spellFloat records the text of a number that is not an integer field. A short text
// of digits is always written the same way.
func (c *Codec) spellFloat(name, text string, f float64) {
	if len(text) <= 15 && !strings.ContainsAny(text, ".eE-") {
		return // true of nearly all numbers
	}
	var room [32]byte
	c.spell(name, text, appendFloat(room[:0], f))
}
