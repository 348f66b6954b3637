// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"errors"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Type is the type member of an item.
type Type string

// The item types of the schema, each with a struct of its own. Items of every
// other type are kept as they are and decode to [*Unknown].
const (
	TypeMessage              Type = "message"
	TypeFunctionCall         Type = "function_call"
	TypeFunctionCallOutput   Type = "function_call_output"
	TypeCustomToolCall       Type = "custom_tool_call"
	TypeCustomToolCallOutput Type = "custom_tool_call_output"
	TypeReasoning            Type = "reasoning"
	TypeItemReference        Type = "item_reference"
	TypeCompaction           Type = "compaction"
	TypeCompactionTrigger    Type = "compaction_trigger"
	TypeProgram              Type = "program"
	TypeProgramOutput        Type = "program_output"

	TypeLocalShellCall       Type = "local_shell_call"
	TypeLocalShellCallOutput Type = "local_shell_call_output"
	TypeShellCall            Type = "shell_call"
	TypeShellCallOutput      Type = "shell_call_output"
	TypeApplyPatchCall       Type = "apply_patch_call"
	TypeApplyPatchCallOutput Type = "apply_patch_call_output"
	TypeComputerCall         Type = "computer_call"
	TypeComputerCallOutput   Type = "computer_call_output"
	TypeToolSearchCall       Type = "tool_search_call"
	TypeToolSearchOutput     Type = "tool_search_output"
	TypeMCPApprovalRequest   Type = "mcp_approval_request"
	TypeMCPApprovalResponse  Type = "mcp_approval_response"

	TypeFileSearchCall      Type = "file_search_call"
	TypeWebSearchCall       Type = "web_search_call"
	TypeAdditionalTools     Type = "additional_tools"
	TypeImageGenerationCall Type = "image_generation_call"
	TypeCodeInterpreterCall Type = "code_interpreter_call"
	TypeMCPListTools        Type = "mcp_list_tools"
	TypeMCPCall             Type = "mcp_call"
)

// Item is one element of a conversation: the bytes as they were received or
// built, immutable, with the type read. Items compare with ==, which compares
// their bytes. The zero Item is not an item.
//
// One type serves both directions: an output item of a response goes into the
// next request as it is. Schemas: InputItem, OutputItem.
type Item struct {
	raw string
	typ Type
}

// Value is a decoded copy of an item: the struct of its type, such as
// [*Message] or [*FunctionCall], or [*Unknown]. Every Type constant has a
// struct of its name. Changing it changes no item; [New] makes one.
type Value interface {
	ItemType() Type
	record
}

// Parse reads one item from a copy of data. The error is a [*SyntaxError], or
// a [*ShapeError] when data is JSON but no object.
func Parse(data []byte) (Item, error) { return ParseString(string(data)) }

// ParseString reads one item without copying s.
func ParseString(s string) (Item, error) {
	value, err := trimValue(s)
	if err != nil {
		return Item{}, err
	}
	return itemOf(value)
}

// ParseList reads a JSON array of items. The items share the memory of s.
func ParseList(s string) ([]Item, error) {
	value, err := trimValue(s)
	if err != nil {
		return nil, err
	}
	if value[0] != '[' {
		return nil, &ShapeError{Problem: "found " + jsonx.KindOf(value) + ", want a list of items"}
	}
	return itemsOf(value)
}

// itemsOf indexes a validated array in one pass.
func itemsOf(s string) ([]Item, error) {
	i := jsonx.SkipSpace(s, 1)
	if s[i] == ']' {
		return []Item{}, nil
	}
	list := make([]Item, 0, 4)
	for s[i] != ']' {
		if s[i] != '{' {
			_, err := itemOf(s[i:jsonx.SkipValue(s, i)])
			return list, indexed(len(list), err)
		}
		it, _, n := leadingItem(s[i:])
		list = append(list, it)
		if i = jsonx.SkipSpace(s, i+n); s[i] == ',' {
			i = jsonx.SkipSpace(s, i+1)
		}
	}
	return list, nil
}

// consistsOf reports whether the list s is of just these items, with nothing but
// commas between them.
func consistsOf(s string, items []Item) bool {
	before := byte('[')
	for _, it := range items {
		if s[0] != before || !strings.HasPrefix(s[1:], it.raw) {
			return false
		}
		s, before = s[1+len(it.raw):], ','
	}
	return s == "]"
}

// itemOf indexes a validated value.
func itemOf(s string) (Item, error) {
	if s[0] != '{' {
		return Item{}, &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want an item"}
	}
	it, _, _ := leadingItem(s)
	return it, nil
}

// leadingItem indexes the validated object at the start of s and returns the
// names that it goes by, and its length.
func leadingItem(s string) (it Item, n names, length int) {
	var typ, role, id, callID string
	length = jsonx.EachMember(s, func(name, value string) {
		if strings.IndexByte(name, '\\') >= 0 {
			name = string(Quote(jsonx.Unquote(name)))
		}
		switch name {
		case `"type"`:
			typ = value
		case `"role"`:
			role = value
		case `"id"`:
			id = value
		case `"call_id"`:
			callID = value
		}
	})
	t, _ := JSON(typ).Unquote()
	switch {
	case t != "":
	case role != "":
		t = string(TypeMessage)
	case id != "":
		t = string(TypeItemReference)
	}
	n.call.typ = Type(t)
	n.id, _ = JSON(id).Unquote()
	n.call.id, _ = JSON(callID).Unquote()
	return Item{raw: s[:length], typ: Type(t)}, n, length
}

// New encodes v as an item. The error is a [*ShapeError] with the path of a
// text that is not UTF-8, or of an Extra member that is not JSON.
func New(v Value) (Item, error) {
	if isNil(v) {
		return Item{}, errNil
	}
	if u, ok := v.(*Unknown); ok {
		return ParseString(string(u.Raw))
	}
	s, err := recordText(v)
	if err != nil {
		return Item{}, withType(err, v.ItemType(), "")
	}
	return Item{raw: s, typ: v.ItemType()}, nil
}

// Must is New for values known to be good, such as literals. It panics on error.
func Must(v Value) Item {
	it, err := New(v)
	if err != nil {
		panic(err)
	}
	return it
}

func withType(err error, t Type, callID string) error {
	var shape *ShapeError
	if !errors.As(err, &shape) {
		return err
	}
	e := *shape
	e.Type, e.CallID = t, callID
	return &e
}

// Type returns the item's type. A message or reference that leaves its type
// out, as the API allows, has that type all the same; another item without a
// type has "".
func (it Item) Type() Type { return it.typ }

// JSON returns the item's bytes, exactly as they were received or built. In an
// item that holds payloads, references stand in their place, which mean nothing
// to anybody else: for those, see [Item.Whole].
func (it Item) JSON() string { return it.raw }

// IsZero reports whether it is not an item at all.
func (it Item) IsZero() bool { return it.raw == "" }

// String returns a short description for people, never the whole payload.
func (it Item) String() string {
	if it.raw == "" {
		return "no item"
	}
	s := string(it.typ)
	if s == "" {
		s = "untyped item"
	}
	for _, part := range []string{string(it.Role()), it.Name(), it.CallID()} {
		if part != "" {
			s += " " + part
		}
	}
	return s
}

// MarshalJSON returns a copy of the item's bytes, with the payloads that it
// holds; the zero Item is null.
func (it Item) MarshalJSON() ([]byte, error) { return JSON(it.raw).MarshalJSON() }

// UnmarshalJSON keeps a copy of data; null gives the zero Item.
func (it *Item) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*it = Item{}
		return nil
	}
	v, err := Parse(data)
	if err == nil {
		*it = v
	}
	return err
}

// Member returns the named top-level member, and whether there is one.
func (it Item) Member(name string) (JSON, bool) { return memberOf(it.raw, name) }

func (it Item) text(name string) string {
	v, _ := it.Member(name)
	s, _ := v.Unquote()
	return s
}

// ID returns the id member, or "".
func (it Item) ID() string { return it.text("id") }

// Name returns the name member, or "": the tool that a call names.
func (it Item) Name() string { return it.text("name") }

// Role returns the role member, or "".
func (it Item) Role() Role { return Role(it.text("role")) }

// Status returns the status member, or "".
func (it Item) Status() string { return it.text("status") }

// Decode returns a copy of the item in the struct of its type, or [*Unknown].
// The error is a [*ShapeError] with the item's type and call_id.
func (it Item) Decode() (Value, error) {
	if it.raw == "" {
		return nil, &ShapeError{Problem: "it is the zero Item"}
	}
	v := newValue(it.typ)
	if v == nil {
		return &Unknown{Raw: JSON(it.raw)}, nil
	}
	if err := decodeRecord(it.raw, v); err != nil {
		return nil, withType(err, it.typ, it.CallID())
	}
	return v, nil
}

// As decodes the item into T, the struct of its type:
//
//	call, err := item.As[item.FunctionCall](it)
//
// An item of another type gives an error that wraps [ErrType].
func As[T any, P interface {
	*T
	Value
}](it Item) (*T, error) {
	v := P(new(T))
	if u, ok := any(v).(*Unknown); ok {
		u.Raw = JSON(it.raw)
		return (*T)(v), nil
	}
	if v.ItemType() != it.typ {
		return nil, fmt.Errorf("%w: %s, not %s", ErrType, it.typ, v.ItemType())
	}
	if err := decodeRecord(it.raw, v); err != nil {
		return nil, withType(err, it.typ, it.CallID())
	}
	return (*T)(v), nil
}
