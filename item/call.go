// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strings"

	"github.com/antiphon-go/antiphon/internal/record"
)

// FunctionCall is a call of a function by the model. Arguments is the string exactly
// as the model wrote it, which may not be valid JSON. Schemas: FunctionToolCall,
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

// FunctionCallOutput is the answer to the [FunctionCall] with the same CallID. Name
// and Namespace say what was called if there is no such call. Schemas:
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

// CustomToolCall is a call of a custom tool by the model. Its input is plain text,
// which may follow a grammar. Schemas: CustomToolCall, CustomToolCallResource.
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

// CustomToolCallOutput is the answer to the [CustomToolCall] with the same CallID.
// Schemas: CustomToolCallOutput, CustomToolCallOutputResource.
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
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeFunctionCall))
	c.OptString("status", &v.Status)
	c.NeedText("arguments", &v.Arguments)
	c.NeedText("call_id", &v.CallID)
	c.NeedText("name", &v.Name)
	c.OptString("namespace", &v.Namespace)
	record.Opt(c, "caller", &v.Caller, (*Caller).fields)
	c.OptString("created_by", &v.CreatedBy)
}

func (v *FunctionCallOutput) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeFunctionCallOutput))
	c.OptString("status", &v.Status)
	c.OptString("call_id", &v.CallID)
	contentMember(c, "output", &v.Output)
	c.OptString("name", &v.Name)
	c.OptString("namespace", &v.Namespace)
	record.Opt(c, "caller", &v.Caller, (*Caller).fields)
	c.OptString("created_by", &v.CreatedBy)
}

func (v *CustomToolCall) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeCustomToolCall))
	c.OptString("status", &v.Status)
	c.NeedText("call_id", &v.CallID)
	c.NeedText("input", &v.Input)
	c.NeedText("name", &v.Name)
	c.OptString("namespace", &v.Namespace)
	record.Opt(c, "caller", &v.Caller, (*Caller).fields)
	c.OptString("created_by", &v.CreatedBy)
}

func (v *CustomToolCallOutput) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeCustomToolCallOutput))
	c.OptString("status", &v.Status)
	c.OptString("call_id", &v.CallID)
	contentMember(c, "output", &v.Output)
	record.Opt(c, "caller", &v.Caller, (*Caller).fields)
	c.OptString("created_by", &v.CreatedBy)
}

// Call returns a function call, as needed to import a conversation. Empty arguments
// become {}.
func Call(callID, name, arguments string) Item {
	if arguments == "" {
		arguments = "{}"
	}
	return Must(&FunctionCall{CallID: clean(callID), Name: clean(name), Arguments: clean(arguments)})
}

// Output returns the output of a function call. The error names a part that cannot
// be encoded, or reports an empty callID.
func Output(callID string, out Content) (Item, error) {
	if callID == "" {
		return Item{}, &ShapeError{Type: TypeFunctionCallOutput, Problem: "no call id: which call is it the output of?"}
	}
	return New(&FunctionCallOutput{CallID: callID, Output: out})
}

// Instructs reports whether the item is a system or developer message. Such a
// message comes from the program rather than from a participant of the conversation.
func (it Item) Instructs() bool {
	return it.Type() == TypeMessage && (it.Role() == RoleSystem || it.Role() == RoleDeveloper)
}

// firstAgent is the name of the agent that speaks to the caller where the endpoint runs
// several.
const firstAgent = "/root"

// FromSubagent reports whether an item is from an agent that another agent started at the
// endpoint, in the API's multi-agent mode: its member agent names it, such as
// /root/reader. What such an agent says is for the other agents and is no answer.
func (it Item) FromSubagent() bool {
	if !strings.Contains(it.JSON(), `"agent_name"`) {
		return false // true of nearly all items
	}
	agent, ok := it.Member("agent")
	if !ok {
		return false
	}
	name, _ := memberOf(string(agent), "agent_name")
	who, ok := name.Unquote()
	return ok && who != "" && who != firstAgent
}

// SaysNothing reports whether an item of a reply contains nothing for its reader: it
// is an empty message, a message of another agent at the endpoint, or a step towards the
// answer, such as reasoning, a call or its output. An item of an unknown type may be an
// answer, so it returns false for those.
func (it Item) SaysNothing() bool {
	switch it.Type() {
	case TypeMessage:
		if it.FromSubagent() {
			return true
		}
	case "multi_agent_call", "multi_agent_call_output", "agent_message": // the published schema has no types for them
		return true
	case TypeImageGenerationCall:
		return false // its result is an image
	default:
		// All other known types are steps towards an answer.
		return newValue(it.Type()) != nil
	}
	const text = `"text":"`
	if i := strings.Index(it.JSON(), text); i >= 0 {
		if c := it.JSON()[i+len(text)]; c > ' ' && c != '"' && c != '\\' {
			return false // true of nearly all messages, and needs no decoding
		}
	}
	m, err := As[Message](it)
	return err == nil && strings.TrimSpace(m.Content.Display()) == ""
}

// The types of a [Caller]. The schema CallableToolAllowedCaller calls them direct
// and programmatic.
const (
	CallerDirect  = "direct"
	CallerProgram = "program"
)

// Caller says who made a call: the model itself, or a program that it wrote; see
// [Program]. It must be sent back with the call and with its output. Schemas:
// ToolCallCaller, ToolCallCallerParam.
type Caller struct {
	// Type is [CallerDirect] or [CallerProgram].
	Type string
	// CallerID is the call id of the program.
	CallerID string
	Extra    Extra
}

func (v *Caller) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("type", &v.Type)
	c.OptString("caller_id", &v.CallerID)
}
