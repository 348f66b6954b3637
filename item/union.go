// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"errors"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// unknown is a value of a type without a struct: its text, and nothing else.
type unknown interface{ rawJSON() JSON }

// typeOf returns the type member of a validated object, or "".
func typeOf(s string) string {
	v, _ := memberOf(s, "type")
	t, _ := v.Unquote()
	return t
}

// typeOfRaw is typeOf for a text that a caller may have made, and which need not
// be JSON.
func typeOfRaw(raw JSON) string {
	value, err := trimValue(string(raw))
	if err != nil {
		return ""
	}
	return typeOf(value)
}

// parseUnion reads an object into the struct of its type.
func parseUnion[V record](s, what string, known func(typ string) (V, bool), other func(JSON) V) (V, error) {
	if s == "" || s[0] != '{' {
		var none V
		return none, &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want " + what}
	}
	v, ok := known(typeOf(s))
	if !ok {
		return other(JSON(s)), nil
	}
	return v, decodeRecord(s, v)
}

// appendUnion appends one value of a union.
func appendUnion[V record](dst []byte, v V) ([]byte, error) {
	switch v := any(v).(type) {
	case nil:
		return dst, errors.New("no value")
	case unknown:
		value, err := trimValue(string(v.rawJSON()))
		return append(dst, value...), err
	}
	return appendRecord(dst, v)
}

// optUnion is one value of a union, left out when nil. What is not an object
// stays for Extra.
func optUnion[V record](c *codec, name string, v *V, parse func(s string) (V, error)) {
	if !c.decoding {
		if any(*v) != nil {
			c.name(name)
			out, err := appendUnion(c.out, *v)
			c.out = out
			c.fail(name, err)
		}
		return
	}
	if m := c.find(name); m != nil && m.Value[0] == '{' {
		got, err := parse(m.Value)
		if c.fail(name, err); err == nil {
			*v, m.Taken = got, true
		}
	}
}

// unionList is a list of values of a union, left out when nil. What is not a list
// of objects stays for Extra.
func unionList[V record](c *codec, name string, v *[]V, parse func(s string) (V, error)) {
	if !c.decoding {
		if *v != nil {
			appendArray(c, name, *v, appendUnion[V])
		}
		return
	}
	m := c.find(name)
	if m == nil || !isListOf(m.Value, '{') {
		return
	}
	list, err := parseUnionList(m.Value, parse)
	c.fail(name, err)
	*v, m.Taken = list, true
}

// parseListOf reads the text of a list, an absent one as none.
func parseListOf[V any](j JSON, parse func(s string) (V, error)) ([]V, error) {
	if j == "" {
		return nil, nil
	}
	value, err := trimValue(string(j))
	if err != nil || value == "null" {
		return nil, err
	}
	if value[0] != '[' {
		return nil, &ShapeError{Problem: "found " + jsonx.KindOf(value) + ", want a list"}
	}
	return parseUnionList(value, parse)
}

// listJSON writes a list, nil as [].
func listJSON[V any](list []V, one func([]byte, V) ([]byte, error)) (JSON, error) {
	dst := []byte{'['}
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = one(dst, v); err != nil {
			return "", indexed(i, err)
		}
	}
	return JSON(append(dst, ']')), nil
}

// parseUnionList reads a validated list.
func parseUnionList[V any](s string, parse func(s string) (V, error)) ([]V, error) {
	list := []V{}
	var err error
	jsonx.EachElement(s, func(e string) {
		if err != nil {
			return
		}
		v, problem := parse(e)
		if problem != nil {
			err = indexed(len(list), problem)
			return
		}
		list = append(list, v)
	})
	return list, err
}

// parseBody reads a body, such as that of a request or an answer, from a copy
// of data.
func parseBody[T any, P interface {
	*T
	record
}](data []byte) (*T, error) {
	v := new(T)
	if err := parseRecord(string(data), P(v)); err != nil {
		return nil, err
	}
	return v, nil
}
