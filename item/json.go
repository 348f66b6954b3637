// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// JSON is the text of one JSON value. It is immutable because it is a string. The
// empty JSON stands for an absent value. A JSON returned by this package is valid;
// one converted from a string is checked when it is encoded.
type JSON string

// MarshalJSON returns the text unchanged, including the payloads that it holds, so
// that other encoders can embed the value. An absent value is written as null.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		return []byte("null"), nil
	}
	if HasHeld(string(j)) {
		return appendWhole(nil, string(j))
	}
	return []byte(j), nil
}

// UnmarshalJSON stores a copy of data.
func (j *JSON) UnmarshalJSON(data []byte) error {
	*j = JSON(data)
	return nil
}

// Valid returns a [*SyntaxError] if j is not exactly one JSON value.
func (j JSON) Valid() error {
	return checkJSON(string(j))
}

// Quote returns s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) JSON {
	b, err := jsonx.AppendQuoted(make([]byte, 0, len(s)+2), s)
	if err != nil {
		b, _ = jsonx.AppendQuoted(nil, strings.ToValidUTF8(s, "\uFFFD"))
	}
	if len(b) == cap(b) { // nothing was escaped
		return JSON(jsonx.String(b))
	}
	return JSON(b)
}

// Unquote returns the text of a JSON string, and whether j is a string. An escaped
// surrogate without its partner becomes U+FFFD.
func (j JSON) Unquote() (string, bool) {
	if len(j) < 2 || j[0] != '"' {
		return "", false
	}
	return jsonx.Unquote(string(j)), true
}

// lengthOfHalf is the length of an escape such as \ud83d.
const lengthOfHalf = 6

// CutHalf cuts an escaped high surrogate, the first half of a character, off the end
// of a JSON string. half is the escape, for [JSON.WithHalf] to put in front of the
// text that follows. If there is none, whole is j and half is "".
func (j JSON) CutHalf() (whole JSON, half string) {
	end := len(j) - 1 // index of the closing quote
	at := end - lengthOfHalf
	if at < 1 || j[0] != '"' || j[at] != '\\' || j[at+1] != 'u' {
		return j, ""
	}
	// An even number of backslashes before it means that this one starts the escape.
	slashes := 0
	for j[at-1-slashes] == '\\' {
		slashes++
	}
	if r := jsonx.HexRune(string(j[at+2 : end])); slashes%2 != 0 || r < 0xD800 || r >= 0xDC00 {
		return j, ""
	}
	return j[:at] + `"`, strings.Clone(string(j[at:end]))
}

// WithHalf returns the JSON string with half, from [JSON.CutHalf], in front of its
// text.
func (j JSON) WithHalf(half string) JSON {
	if half == "" || j == "" || j[0] != '"' {
		return j
	}
	return `"` + JSON(half) + j[1:]
}

// Extra holds the members of a JSON object that a struct cannot hold in its fields,
// in their original order: members that this package does not know, and known ones
// whose value does not fit the field, such as null for an optional string. Encoding
// writes them back. A field that is set takes precedence over a member with the same
// name. A member with an empty Value records that a member that is normally always
// written was absent, so that encoding leaves it out again.
type Extra []Member

// MarshalJSON is an error, so that encoding/json does not write the struct that the Extra is
// in by the names of its Go fields, which no endpoint knows. [New] makes the JSON of an item,
// and [ToolJSON] that of a tool.
func (Extra) MarshalJSON() ([]byte, error) { return nil, errGoNames }

var errGoNames = errors.New("item: a struct with an Extra has no JSON of its own: make it with item.New or item.ToolJSON, or encode the request, the response or the item that it is part of")

// Member is the name of a member and its value.
type Member struct {
	Name  string
	Value JSON
}

// Get returns the value of the named member, and whether there is one.
func (x Extra) Get(name string) (JSON, bool) {
	for i := range x {
		if x[i].Name == name {
			return x[i].Value, true
		}
	}
	return "", false
}

// Set replaces the value of the named member, or adds the member at the end.
func (x *Extra) Set(name string, value JSON) {
	for i := range *x {
		if (*x)[i].Name == name {
			(*x)[i].Value = value
			return
		}
	}
	*x = append(*x, Member{Name: name, Value: value})
}

// Delete removes the named member, if there is one.
func (x *Extra) Delete(name string) {
	*x = slices.DeleteFunc(*x, func(m Member) bool { return m.Name == name })
}

// MaxDepth is the maximum depth of nested arrays and objects that this package
// reads.
const MaxDepth = jsonx.MaxDepth // 10 000

// DefaultMaxSize is the maximum size in bytes of one JSON text, such as a body, an
// event or an item, unless [SetMaxSize] changes it.
const DefaultMaxSize = jsonx.DefaultMaxSize

// SetMaxSize sets the maximum size in bytes of one JSON text that this package reads
// or embeds in another, and returns the previous limit. It applies to the whole
// program. 0 means [DefaultMaxSize]. The text is in memory already when this package
// sees it, so this limit is the last line of defense; to bound memory, limit what is
// read from sockets and files.
func SetMaxSize(bytes int) (old int) { return jsonx.SetMaxSize(bytes) }

// A SyntaxError reports text that is not JSON, or that this package does not accept.
// It accepts RFC 8259 in UTF-8, nested at most [MaxDepth] deep and at most
// [DefaultMaxSize] bytes long.
type SyntaxError struct {
	// Offset is the byte offset at which reading stopped.
	Offset int
	// Problem describes what is wrong there.
	Problem string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Problem)
}

// syntaxError converts an error of the scanner into one of this package.
func syntaxError(err error) error {
	if e, ok := err.(*jsonx.SyntaxError); ok {
		return (*SyntaxError)(e)
	}
	return err
}

// checkJSON accepts exactly one value, which may be surrounded by white space.
func checkJSON(s string) error {
	_, err := checked(s)
	return err
}

// checked validates s as one JSON value and returns it without the surrounding white
// space.
func checked(s string) (string, error) {
	value, err := jsonx.Checked(s)
	return value, syntaxError(err)
}

// memberOf finds a top-level member of a validated object. If a name occurs more
// than once, the last one wins.
func memberOf(s, name string) (JSON, bool) {
	value, ok := jsonx.MemberOf(s, name)
	return JSON(value), ok
}

// A ShapeError reports well-formed JSON that does not have the shape required by the
// schema, and that cannot be read leniently either: a call whose arguments are not a
// string, or an output that is a number. The item itself can still be read as JSON.
type ShapeError struct {
	// Type is the type of the item, or of the object where the path starts.
	Type Type
	// CallID is the item's call_id, if it has one.
	CallID string
	// Path is the path of the value, such as "output[2].image_url".
	Path string
	// Problem describes what was found and what was expected.
	Problem string
}

// Error returns a message with the item, the path and the problem.
func (e *ShapeError) Error() string {
	var b strings.Builder
	if e.Type != "" {
		fmt.Fprintf(&b, "%s: ", e.Type)
	}
	if e.CallID != "" {
		fmt.Fprintf(&b, "call %s: ", e.CallID)
	}
	if e.Path != "" {
		fmt.Fprintf(&b, "%s: ", e.Path)
	}
	b.WriteString(e.Problem)
	return b.String()
}

// ErrType is wrapped by the error of [As] for an item of another type.
var ErrType = errors.New("item is of another type")
