// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"errors"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/record"
)

// codec reads and writes the members of a JSON object; see [record.Codec].
type codec = record.Codec

// fielder is a struct with one method that names its members for both directions.
type fielder interface{ fields(c *codec) }

// decodeRecord reads the JSON object s, which must be valid JSON, into r.
func decodeRecord(s string, r fielder) error { return shaped(record.Decode(s, r.fields)) }

// parseRecord is like decodeRecord for text that has not been validated.
func parseRecord(s string, r fielder) error { return shaped(record.Parse(s, r.fields)) }

// appendRecord appends r as a JSON object. On error it returns dst unchanged.
func appendRecord(dst []byte, r fielder) ([]byte, error) {
	if nils.Is(r) {
		return dst, errNil
	}
	out, err := record.Append(dst, r.fields)
	return out, shaped(err)
}

// recordText returns r as a JSON object in a string without spare capacity.
func recordText(r fielder) (string, error) {
	if nils.Is(r) {
		return "", errNil
	}
	s, err := record.Text(r.fields)
	return s, shaped(err)
}

// shaped converts an error of package record into one that callers know: a
// [*ShapeError] whose path starts at the object that was read or written, or a
// [*SyntaxError].
func shaped(err error) error {
	e, ok := err.(*record.Error)
	if !ok {
		return syntaxError(err)
	}
	var inner *ShapeError
	if errors.As(e.Err, &inner) {
		// Copy before setting the path: the error may be shared, as errNil is.
		shape := *inner
		shape.Path = record.Path(e.Path, shape.Path)
		return &shape
	}
	if e.Err != nil {
		return &ShapeError{Path: e.Path, Problem: syntaxError(e.Err).Error()}
	}
	return &ShapeError{Path: e.Path, Problem: e.Problem}
}

// errNil reports a value that is nil. An interface can hide a nil pointer, so this
// is found only when the value is used.
var errNil = &ShapeError{Problem: "it is nil"}

// itemValues reads and writes items in a member of a record.
var itemValues = record.Values[Item]{Read: itemOf, Append: appendItem, ReadAll: itemsOf}

// appendItem appends an item's own bytes.
func appendItem(dst []byte, it Item) ([]byte, error) {
	if it.raw == "" {
		return dst, errors.New("found no item")
	}
	return append(dst, it.raw...), nil
}

// unknown is a value of a type without a struct. It consists of its text only.
type unknown interface{ rawJSON() JSON }

// typeOf returns the type member of a validated object, or "".
func typeOf(s string) string {
	v, _ := memberOf(s, "type")
	t, _ := v.Unquote()
	return t
}

// typeOfRaw is like typeOf. A caller may have made raw, so it need not be valid
// JSON.
func typeOfRaw(raw JSON) string {
	value, err := checked(string(raw))
	if err != nil {
		return ""
	}
	return typeOf(value)
}

// parseUnion reads an object into the struct for its type. known returns an empty
// struct for a type; other wraps an object of any other type.
func parseUnion[V fielder](s, what string, known func(typ string) (V, bool), other func(JSON) V) (V, error) {
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
func appendUnion[V fielder](dst []byte, v V) ([]byte, error) {
	if nils.Is(v) {
		return dst, errNil
	}
	if u, ok := any(v).(unknown); ok {
		value, err := checked(string(u.rawJSON()))
		return append(dst, value...), err
	}
	return appendRecord(dst, v)
}

// parseListOf reads a JSON list. An absent list or null gives nil.
func parseListOf[V any](j JSON, values record.Values[V]) ([]V, error) {
	if j == "" {
		return nil, nil
	}
	value, err := checked(string(j))
	if err != nil || value == "null" {
		return nil, err
	}
	if value[0] != '[' {
		return nil, &ShapeError{Problem: "found " + jsonx.KindOf(value) + ", want a list"}
	}
	list, err := values.ReadList(value)
	return list, shaped(err)
}

// listJSON encodes a list. A nil list is written as [].
func listJSON[V any](list []V, values record.Values[V]) (JSON, error) {
	b, err := values.AppendList(nil, list)
	if err != nil {
		return "", shaped(err)
	}
	return JSON(b), nil
}

// parseBody reads a record from a copy of data.
func parseBody[T any, P interface {
	*T
	fielder
}](data []byte) (*T, error) {
	v := new(T)
	if err := parseRecord(string(data), P(v)); err != nil {
		return nil, err
	}
	return v, nil
}

// clean returns s as valid UTF-8, with U+FFFD in place of invalid bytes.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Package api uses these in addition to what is exported; see [record.Share].
func init() {
	record.Share(itemValues)
	record.Share(partValues)
	record.Share(toolValues)
	record.Share(annotationValues)
	record.Share(logprobValues)
	record.Share(record.Values[ShellOutput]{
		Read: func(s string) (v ShellOutput, err error) {
			err = decodeRecord(s, &v)
			return v, err
		},
		Append: func(dst []byte, v ShellOutput) ([]byte, error) { return appendRecord(dst, &v) },
	})
	// Reads an item from validated text, with its id and call_id.
	record.Share(func(s string) (it Item, id, callID string) {
		it, id, callID, _ = leadingItem(s)
		return it, id, callID
	})
	record.Share((*List).appendRaw)
}
