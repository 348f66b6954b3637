// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/record"
)

// Type is the type member of an item.
type Type string

// The item types of the schema. Each has a struct of its own. Items of other types
// are kept unchanged and decode to [*Unknown].
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

// The statuses of an api.Response and of items. Schema: Response.status.
const (
	StatusCompleted  = "completed"
	StatusFailed     = "failed"
	StatusInProgress = "in_progress"
	StatusCancelled  = "cancelled"
	StatusQueued     = "queued"
	StatusIncomplete = "incomplete"
)

// More statuses of items, while the endpoint is working on them. Schemas:
// WebSearchToolCall.status, CodeInterpreterToolCall.status, ImageGenToolCall.status,
// MCPToolCallStatus.
const (
	StatusSearching    = "searching"
	StatusInterpreting = "interpreting"
	StatusGenerating   = "generating"
	StatusCalling      = "calling"
)

// Item is one element of a conversation: the bytes as they were received or built,
// and the type. It is immutable. Items can be compared with ==, which compares their
// bytes. The zero Item is not a valid item.
//
// The same type is used in both directions: an output item of a response can be sent
// in the next request unchanged. Schemas: InputItem, OutputItem.
type Item struct {
	raw string
	typ Type
}

// Value is a decoded copy of an item: the struct for its type, such as [*Message] or
// [*FunctionCall], or [*Unknown]. Every Type constant has a struct with the same
// name. Changing a Value does not change the item it came from; [New] makes a new
// item.
type Value interface {
	ItemType() Type
	fielder
}

// Parse reads one item from a copy of data. The error is a [*SyntaxError], or a
// [*ShapeError] if data is JSON but not an object.
func Parse(data []byte) (Item, error) { return ParseString(string(data)) }

// ParseString is like [Parse] but does not copy s: the item shares its memory.
func ParseString(s string) (Item, error) {
	value, err := checked(s)
	if err != nil {
		return Item{}, err
	}
	return itemOf(value)
}

// ParseList reads a JSON array of items. The items share the memory of s.
func ParseList(s string) ([]Item, error) {
	value, err := checked(s)
	if err != nil {
		return nil, err
	}
	if value[0] != '[' {
		return nil, &ShapeError{Problem: "found " + jsonx.KindOf(value) + ", want a list of items"}
	}
	return itemsOf(value)
}

// itemsOf reads a validated array in one pass.
func itemsOf(s string) ([]Item, error) {
	i := jsonx.SkipSpace(s, 1)
	if s[i] == ']' {
		return []Item{}, nil
	}
	list := make([]Item, 0, 4)
	for s[i] != ']' {
		if s[i] != '{' {
			_, err := itemOf(s[i:jsonx.SkipValue(s, i)])
			return list, shaped(record.Indexed(len(list), err))
		}
		it, _, _, n := leadingItem(s[i:])
		list = append(list, it)
		if i = jsonx.SkipSpace(s, i+n); s[i] == ',' {
			i = jsonx.SkipSpace(s, i+1)
		}
	}
	return list, nil
}

// itemOf returns a validated value as an item.
func itemOf(s string) (Item, error) {
	if s[0] != '{' {
		return Item{}, &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want an item"}
	}
	it, _, _, _ := leadingItem(s)
	return it, nil
}

// leadingItem returns the validated object at the start of s as an item, with its
// id, its call_id and its length.
func leadingItem(s string) (it Item, id, callID string, length int) {
	var typ, role, idText, callText string
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
			idText = value
		case `"call_id"`:
			callText = value
		}
	})
	t, _ := JSON(typ).Unquote()
	// The API allows messages and references without a type.
	switch {
	case t != "":
	case role != "":
		t = string(TypeMessage)
	case idText != "":
		t = string(TypeItemReference)
	}
	id, _ = JSON(idText).Unquote()
	callID, _ = JSON(callText).Unquote()
	return Item{raw: s[:length], typ: Type(t)}, id, callID, length
}

// New encodes v as an item. The error is a [*ShapeError] with the path of a string
// that is not UTF-8, or of an Extra member that is not JSON.
func New(v Value) (Item, error) {
	if nils.Is(v) {
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

// Must is like [New] but panics on error. It is for values known to be valid, such
// as literals.
func Must(v Value) Item {
	it, err := New(v)
	if err != nil {
		panic(err)
	}
	return it
}

// withType returns the error with the type and the call id of its item.
func withType(err error, t Type, callID string) error {
	var shape *ShapeError
	if !errors.As(err, &shape) {
		return err
	}
	e := *shape
	e.Type, e.CallID = t, callID
	return &e
}

// Type returns the item's type. The API allows messages and references to leave out
// their type; Type returns it for those too. For other items without a type it
// returns "".
func (it Item) Type() Type { return it.typ }

// JSON returns the item's bytes, exactly as they were received or built. If the item
// holds payloads, the text contains references to them, which are meaningless
// outside this process. Use [Item.Whole] for text that leaves the process.
func (it Item) JSON() string { return it.raw }

// IsZero reports whether it is the zero Item.
func (it Item) IsZero() bool { return it.raw == "" }

// String returns a short description for people. It never contains the whole item.
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

// MarshalJSON returns a copy of the item's bytes, including the payloads that it
// holds. The zero Item is null.
func (it Item) MarshalJSON() ([]byte, error) { return JSON(it.raw).MarshalJSON() }

// UnmarshalJSON stores a copy of data. A null gives the zero Item.
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

// Member returns the value of the named top-level member, and whether there is one.
func (it Item) Member(name string) (JSON, bool) { return memberOf(it.raw, name) }

// text returns the named member if it is a string, and "" otherwise.
func (it Item) text(name string) string {
	v, _ := it.Member(name)
	s, _ := v.Unquote()
	return s
}

// ID returns the id member, or "".
func (it Item) ID() string { return it.text("id") }

// Name returns the name member, or "". For a call it is the name of the tool.
func (it Item) Name() string { return it.text("name") }

// Role returns the role member, or "".
func (it Item) Role() Role { return Role(it.text("role")) }

// Status returns the status member, or "".
func (it Item) Status() string { return it.text("status") }

// Decode returns a copy of the item as the struct for its type, or as an [*Unknown].
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

// As decodes the item into T, the struct for its type:
//
//	call, err := item.As[item.FunctionCall](it)
//
// If the item has another type, the error wraps [ErrType].
func As[T any, P interface {
	*T
	Value
}](it Item) (*T, error) {
	v := P(new(T))
	if err := it.decode(v); err != nil {
		return nil, err
	}
	return (*T)(v), nil
}

// decode decodes the item into the struct for its type.
func (it Item) decode(v Value) error {
	if u, ok := v.(*Unknown); ok {
		u.Raw = JSON(it.raw)
		return nil
	}
	if v.ItemType() != it.typ {
		return fmt.Errorf("%w: %s, not %s", ErrType, it.typ, v.ItemType())
	}
	if err := decodeRecord(it.raw, v); err != nil {
		return withType(err, it.typ, it.CallID())
	}
	return nil
}

// With returns a copy of the item with the member set. It replaces an existing
// member in place and adds a new one at the end. If a name occurs more than once,
// only the last value is kept. Other members keep their bytes and their order, which
// decoding and encoding does not guarantee. The error is a [*SyntaxError] if value
// is not JSON.
func (it Item) With(name string, value JSON) (Item, error) {
	if err := value.Valid(); err != nil {
		return Item{}, err
	}
	there := false
	edited := it.edit(func(n string, v JSON) (JSON, bool) {
		if n == name {
			there = true
			return value, true
		}
		return v, true
	}, func(b []byte) []byte {
		if there {
			return b
		}
		return appendMember(b, string(Quote(name)), string(value))
	})
	return itemOf(edited)
}

// Without returns a copy of the item without the named members. Other members keep
// their bytes and their order. If the item has none of them, it is returned
// unchanged.
func (it Item) Without(names ...string) Item {
	if !slices.ContainsFunc(names, func(n string) bool { _, ok := it.Member(n); return ok }) {
		return it
	}
	edited := it.edit(func(n string, v JSON) (JSON, bool) { return v, !slices.Contains(names, n) },
		func(b []byte) []byte { return b })
	out, _ := itemOf(edited) // cannot fail: the members of a valid object remain valid
	return out
}

// edit copies the item member by member. If a name occurs more than once, the last
// value is kept, in the position of the first. end may append more members.
func (it Item) edit(change func(name string, value JSON) (JSON, bool), end func([]byte) []byte) string {
	type named struct{ name, literal, value string }
	// Most items have no more members, so that this needs no allocation.
	var room [16]named
	members := room[:0]
	if it.raw != "" {
		jsonx.EachMember(it.raw, func(literal, value string) {
			name := jsonx.Unquote(literal)
			for i := range members {
				if members[i].name == name {
					members[i].value = value
					return
				}
			}
			members = append(members, named{name, literal, value})
		})
	}
	out := append(make([]byte, 0, len(it.raw)+64), '{')
	for _, m := range members {
		if value, keep := change(m.name, JSON(m.value)); keep {
			out = appendMember(out, m.literal, string(value))
		}
	}
	return jsonx.String(append(end(out), '}'))
}

// appendMember appends a member to the object that dst contains so far.
func appendMember(dst []byte, literal, value string) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	dst = append(append(dst, literal...), ':')
	return append(dst, value...)
}

// newValue returns an empty struct for items of type t, or nil if there is none.
func newValue(t Type) Value {
	switch t {
	case TypeMessage:
		return new(Message)
	case TypeReasoning:
		return new(Reasoning)
	case TypeItemReference:
		return new(ItemReference)
	case TypeCompaction:
		return new(Compaction)
	case TypeCompactionTrigger:
		return new(CompactionTrigger)
	case TypeProgram:
		return new(Program)
	case TypeProgramOutput:
		return new(ProgramOutput)
	case TypeFileSearchCall:
		return new(FileSearchCall)
	case TypeWebSearchCall:
		return new(WebSearchCall)
	case TypeAdditionalTools:
		return new(AdditionalTools)
	case TypeImageGenerationCall:
		return new(ImageGenerationCall)
	case TypeCodeInterpreterCall:
		return new(CodeInterpreterCall)
	case TypeMCPListTools:
		return new(MCPListTools)
	case TypeMCPCall:
		return new(MCPCall)
	}
	if k := kindOf(t); k != nil {
		return k.newValue(t)
	}
	return nil
}
