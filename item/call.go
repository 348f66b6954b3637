// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "strings"

// FunctionCall is the model's call of a function. Arguments is the raw string
// the model wrote, which need not be JSON. Schemas: FunctionToolCall,
// FunctionToolCallResource.
type FunctionCall struct {
	ID        string
	CallID    string
	Name      string
	Namespace string
	Arguments string
	Caller    *Caller
	Status    string
	CreatedBy string
	Extra     Extra
}

// FunctionCallOutput answers a [FunctionCall] by its CallID. Name and Namespace
// say what was called, where there is no such call. Schemas:
// FunctionCallOutputItemParam, FunctionToolCallOutput,
// FunctionToolCallOutputResource.
type FunctionCallOutput struct {
	ID        string
	CallID    string
	Output    Content
	Name      string
	Namespace string
	Caller    *Caller
	Status    string
	CreatedBy string
	Extra     Extra
}

// CustomToolCall is the model's call of a custom tool: its input is plain text,
// perhaps after a grammar. Schemas: CustomToolCall, CustomToolCallResource.
type CustomToolCall struct {
	ID        string
	CallID    string
	Name      string
	Namespace string
	Input     string
	Caller    *Caller
	Status    string
	CreatedBy string
	Extra     Extra
}

// CustomToolCallOutput answers a [CustomToolCall] by its CallID. Schema:
// CustomToolCallOutput, CustomToolCallOutputResource.
type CustomToolCallOutput struct {
	ID        string
	CallID    string
	Output    Content
	Caller    *Caller
	Status    string
	CreatedBy string
	Extra     Extra
}

// ItemType returns [TypeFunctionCall].
func (*FunctionCall) ItemType() Type { return TypeFunctionCall }

// ItemType returns [TypeFunctionCallOutput].
func (*FunctionCallOutput) ItemType() Type { return TypeFunctionCallOutput }

// ItemType returns [TypeCustomToolCall].
func (*CustomToolCall) ItemType() Type { return TypeCustomToolCall }

// ItemType returns [TypeCustomToolCallOutput].
func (*CustomToolCallOutput) ItemType() Type { return TypeCustomToolCallOutput }

func (v *FunctionCall) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeFunctionCall))
	c.optString("status", &v.Status)
	c.needText("arguments", &v.Arguments, &v.Extra)
	c.needText("call_id", &v.CallID, &v.Extra)
	c.needText("name", &v.Name, &v.Extra)
	c.optString("namespace", &v.Namespace)
	optRecord(c, "caller", &v.Caller)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}

func (v *FunctionCallOutput) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeFunctionCallOutput))
	c.optString("status", &v.Status)
	c.optString("call_id", &v.CallID)
	c.content("output", &v.Output, &v.Extra)
	c.optString("name", &v.Name)
	c.optString("namespace", &v.Namespace)
	optRecord(c, "caller", &v.Caller)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}

func (v *CustomToolCall) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeCustomToolCall))
	c.optString("status", &v.Status)
	c.needText("call_id", &v.CallID, &v.Extra)
	c.needText("input", &v.Input, &v.Extra)
	c.needText("name", &v.Name, &v.Extra)
	c.optString("namespace", &v.Namespace)
	optRecord(c, "caller", &v.Caller)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}

func (v *CustomToolCallOutput) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeCustomToolCallOutput))
	c.optString("status", &v.Status)
	c.optString("call_id", &v.CallID)
	c.content("output", &v.Output, &v.Extra)
	optRecord(c, "caller", &v.Caller)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}

// Call returns a function call, as an imported conversation needs it. Empty
// arguments become {}.
func Call(callID, name, arguments string) Item {
	if arguments == "" {
		arguments = "{}"
	}
	return Must(&FunctionCall{CallID: clean(callID), Name: clean(name), Arguments: clean(arguments)})
}

// Output returns the output of a function call. The error names a part that
// cannot be encoded.
func Output(callID string, out Content) (Item, error) {
	if callID == "" {
		return Item{}, &ShapeError{Type: TypeFunctionCallOutput, Problem: "no call id: which call is it the output of?"}
	}
	return New(&FunctionCallOutput{CallID: callID, Output: out})
}

// Instructs reports whether the item is a message of the system or the developer:
// what a program says about the conversation, and nobody in it.
func (it Item) Instructs() bool {
	return it.Type() == TypeMessage && (it.Role() == RoleSystem || it.Role() == RoleDeveloper)
}

// SaysNothing reports whether an item of a reply tells its reader nothing: a message
// without a word, or a step on the way to an answer, such as reasoning, a call, or
// the output of a call. An item of an unknown type may be an answer.
func (it Item) SaysNothing() bool {
	switch it.Type() {
	case TypeMessage:
	case TypeImageGenerationCall:
		return false // its result is a picture
	default:
		return newValue(it.Type()) != nil
	}
	const text = `"text":"`
	if i := strings.Index(it.JSON(), text); i >= 0 {
		if c := it.JSON()[i+len(text)]; c > ' ' && c != '"' && c != '\\' {
			return false // nearly all messages
		}
	}
	m, err := As[Message](it)
	return err == nil && strings.TrimSpace(m.Content.Display()) == ""
}
