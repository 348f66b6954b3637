// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// spells has a record's numbers written as they came: x holds those that this
// package would write in another way, such as 1.0 and 1e3, and those with more
// digits than a field holds. It comes first in the fields method. W11
func (c *codec) spells(x *Extra) { c.spelled = x }

// spell remembers how a number came, unless it would be written so anyway.
func (c *codec) spell(name, text string, written []byte) {
	if c.spelled != nil && string(written) != text {
		*c.spelled = append(*c.spelled, Member{Name: name, Value: JSON(text)})
	}
}

// spelling is how the named number came, "" if it would be written so anyway.
func (c *codec) spelling(name string) string {
	if c.spelled == nil {
		return ""
	}
	text, _ := c.spelled.Get(name)
	return string(text)
}

// writeInt writes a whole number.
func (c *codec) writeInt(name string, n int64) {
	text := c.spelling(name)
	c.name(name)
	if came, ok := jsonx.Integer(text); ok && came == n {
		c.out = append(c.out, text...)
		return
	}
	c.out = strconv.AppendInt(c.out, n, 10)
}

// spellInt remembers how a whole number came.
func (c *codec) spellInt(name, text string, n int64) {
	var room [24]byte
	c.spell(name, text, strconv.AppendInt(room[:0], n, 10))
}

// spellFloat remembers how a number came.
func (c *codec) spellFloat(name, text string, f float64) {
	if len(text) <= 15 && !strings.ContainsAny(text, ".eE-") {
		return // nearly all
	}
	var room [32]byte
	c.spell(name, text, appendFloat(room[:0], f))
}
