// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// codec reads and writes the members of a JSON object; see [record.Codec].
type codec = record.Codec

// fielder is a struct with one method that names its members for both directions.
type fielder interface{ fields(c *codec) }

// Functions of package item that read and write its values inside records. They are
// shared through package record, because users of item do not need them.
var (
	itemValues        = record.Shared[record.Values[item.Item]]()
	partValues        = record.Shared[record.Values[item.Part]]()
	toolValues        = record.Shared[record.Values[item.Tool]]()
	annotationValues  = record.Shared[record.Values[item.Annotation]]()
	logprobValues     = record.Shared[record.Values[item.TokenLogprob]]()
	shellOutputValues = record.Shared[record.Values[item.ShellOutput]]()

	namedItem  = record.Shared[func(s string) (it item.Item, id, callID string)]()
	appendList = record.Shared[func(l *item.List, dst []byte) []byte]()
)

// decodeRecord reads the JSON object s, which must be valid JSON, into r.
func decodeRecord(s string, r fielder) error { return shaped(record.Decode(s, r.fields)) }

// parseRecord is like decodeRecord for text that has not been validated.
func parseRecord(s string, r fielder) error { return shaped(record.Parse(s, r.fields)) }

// parseBody reads a body, such as a request or an answer, from a copy of data.
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

// appendRecord appends r as a JSON object. On error it returns dst unchanged.
func appendRecord(dst []byte, r fielder) ([]byte, error) {
	if nils.Is(r) {
		return dst, errNil
	}
	out, err := record.Append(dst, r.fields)
	return out, shaped(err)
}

// appendOutward is appendRecord for text that leaves the program. It inserts the
// payloads that the record only refers to.
func appendOutward(dst []byte, r fielder) ([]byte, error) {
	out, err := appendRecord(dst, r)
	return wholeFrom(dst, out, err)
}

// wholeFrom inserts payloads into the text that was appended to dst, if the text
// only refers to them. On error it returns dst unchanged.
func wholeFrom(dst, out []byte, err error) ([]byte, error) {
	if err != nil || !item.HasHeld(jsonx.String(out[len(dst):])) {
		return out, err
	}
	whole, err := item.JSON(out[len(dst):]).MarshalJSON()
	if err != nil {
		return dst, err
	}
	return append(dst, whole...), nil
}

// bodyOf encodes a record as a body. The record may contain one list of items, which
// the body uses without a copy.
func bodyOf(r fielder) (item.Body, error) {
	if nils.Is(r) {
		return nil, errNil
	}
	before, list, after, err := record.Around(r.fields)
	if err != nil {
		return nil, shaped(err)
	}
	if list == nil {
		return item.TextBody(before), nil
	}
	return item.ListBody(before, list.(*item.List), after), nil
}

// listMember is a list of items. It is left out if nil.
func listMember(c *codec, name string, v **item.List) {
	if !c.Decoding {
		if *v != nil && !c.LeaveOut(name, *v) {
			c.Name(name)
			c.Out = appendList(*v, c.Out)
		}
		return
	}
	var items []item.Item
	itemValues.List(c, name, &items)
	if items != nil {
		*v = item.NewList(items...)
	}
}

// unknown is a value of a type without a struct. It consists of its text only.
type unknown interface{ rawJSON() item.JSON }

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

// shaped converts an error of package record into one that callers know: an
// [*item.ShapeError] whose path starts at the object that was read or written, or an
// [*item.SyntaxError].
func shaped(err error) error {
	e, ok := err.(*record.Error)
	if !ok {
		return syntaxError(err)
	}
	var inner *item.ShapeError
	if errors.As(e.Err, &inner) {
		// Copy before setting the path: the error may be shared, as errNil is.
		shape := *inner
		shape.Path = record.Path(e.Path, shape.Path)
		return &shape
	}
	if e.Err != nil {
		return &item.ShapeError{Path: e.Path, Problem: syntaxError(e.Err).Error()}
	}
	return &item.ShapeError{Path: e.Path, Problem: e.Problem}
}

// syntaxError converts an error of the scanner into one of package item.
func syntaxError(err error) error {
	if e, ok := err.(*jsonx.SyntaxError); ok {
		return (*item.SyntaxError)(e)
	}
	return err
}

// withType returns the error with the type of its event or response.
func withType(err error, t item.Type) error {
	var shape *item.ShapeError
	if !errors.As(err, &shape) {
		return err
	}
	e := *shape
	e.Type, e.CallID = t, ""
	return &e
}

// checked validates s as one JSON value and returns it without the surrounding white
// space.
func checked(s string) (string, error) {
	value, err := jsonx.Checked(s)
	return value, syntaxError(err)
}

// memberOf finds a top-level member of a validated object. If a name occurs more
// than once, the last one wins.
func memberOf(s, name string) (item.JSON, bool) {
	value, ok := jsonx.MemberOf(s, name)
	return item.JSON(value), ok
}

// typeOfRaw returns the type member of raw, or "". A caller may have made raw, so it
// need not be valid JSON.
func typeOfRaw(raw item.JSON) string {
	value, err := checked(string(raw))
	if err != nil {
		return ""
	}
	v, _ := memberOf(value, "type")
	t, _ := v.Unquote()
	return t
}

// errNil reports a value that is nil. An interface can hide a nil pointer, so this
// is found only when the value is used.
var errNil = &item.ShapeError{Problem: "it is nil"}

// clean returns s as valid UTF-8, with U+FFFD in place of invalid bytes.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
