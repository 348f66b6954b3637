// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/item"
)

// toolName matches the tool names that the API accepts.
var toolName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// minOutputTokens is the API's lower bound.
const minOutputTokens = 16

// memberTypes are the types of members that a request can have. What cannot be read
// as its type is in [api.Request.Extra], and would be ignored.
var memberTypes = map[string]string{
	"stream": "a boolean", "store": "a boolean", "background": "a boolean", "parallel_tool_calls": "a boolean",
	"temperature": "a number", "top_p": "a number",
	"max_output_tokens": "an integer", "max_tool_calls": "an integer", "top_logprobs": "an integer",
	"model": "a string", "instructions": "a string", "previous_response_id": "a string", "truncation": "a string", "service_tier": "a string",
	"prompt_cache_key": "a string", "prompt_cache_retention": "a string", "safety_identifier": "a string", "user": "a string",
	"tools": "an array", "include": "an array", "context_management": "an array",
	"reasoning": "an object", "stream_options": "an object", "prompt": "an object", "prompt_cache_options": "an object", "moderation": "an object",
}

func checkMembers(req *api.Request) *Error {
	for _, m := range req.Extra {
		if want := memberTypes[m.Name]; want != "" && string(m.Value) != "null" {
			if m.Value == `""` && m.Name == "instructions" { // none, as some clients say it
				continue
			}
			if m.Value == `""` { // a string that names nothing
				return Invalid("invalid_value", m.Name, "Invalid '%s': it is empty. Leave it out, or give it a value.", m.Name)
			}
			return Invalid("invalid_type", m.Name, "Invalid type for '%s': expected %s.", m.Name, want)
		}
	}
	switch {
	case req.Model == "":
		return Invalid("missing_required_parameter", "model", "Missing required parameter: 'model'.")
	case req.MaxOutputTokens != nil && *req.MaxOutputTokens < minOutputTokens:
		return Invalid("integer_below_min_value", "max_output_tokens",
			"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= %d, but got %d instead.", minOutputTokens, *req.MaxOutputTokens)
	case len(req.Tools) == 0 && forces(req.ToolChoice):
		return Invalid("", "tool_choice", "Tool choice is only allowed when 'tools' are specified.")
	}
	return nil
}

// forces reports whether a tool choice wants a call, which no model can make without tools.
func forces(choice item.JSON) bool {
	switch choice {
	case "", "null", `"auto"`, `"none"`:
		return false
	}
	return true
}

func checkTools(req *api.Request) *Error {
	seen := map[string]bool{}
	for i, t := range req.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		var name string
		switch t := t.(type) {
		case *item.FunctionTool:
			name = t.Name
		case *item.CustomTool:
			name = t.Name
		default:
			continue // a built-in tool
		}
		if !toolName.MatchString(name) {
			return Invalid("invalid_value", at+".name", "Invalid '%s.name': %q does not match '%s'.", at, name, toolName)
		}
		if seen[name] {
			return Invalid("invalid_value", at+".name", "Invalid '%s.name': a second tool is named %q.", at, name)
		}
		seen[name] = true
		if fn, ok := t.(*item.FunctionTool); ok && fn.Parameters != "" && fn.Parameters != "null" {
			if !describesObject(fn.Parameters) {
				return Invalid("invalid_function_parameters", at+".parameters",
					"Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", name)
			}
		}
	}
	return nil
}

// describesObject reports whether a schema's type is, or may be, an object.
func describesObject(schema item.JSON) bool {
	object, err := item.ParseString(string(schema))
	if err != nil {
		return false
	}
	typ, _ := object.Member("type")
	if one, ok := typ.Unquote(); ok {
		return one == "object"
	}
	var several []string
	return json.Unmarshal([]byte(typ), &several) == nil && slices.Contains(several, "object")
}

// maxCallID is the API's limit for the length of a call_id.
const maxCallID = 64

// CheckItems returns an error for items whose content the API would refuse, such as an inline image whose
// data is not an image. It is for backends that take items by routes of their own.
func CheckItems(items []item.Item) error {
	if wrong := checkItems(items); wrong != nil {
		return wrong
	}
	return nil
}

func checkItems(items []item.Item) *Error {
	for i, it := range items {
		at := fmt.Sprintf("input[%d]", i)
		if it.Type() == "" {
			return Invalid("missing_required_parameter", at+".type", "Missing required parameter: '%s.type': only a message with a role needs none.", at)
		}
		v, err := it.Decode()
		var shape *item.ShapeError
		if errors.As(err, &shape) {
			path := at + "." + shape.Path
			return Invalid("invalid_type", path, "Invalid type for '%s': %s.", path, shape.Problem)
		}
		if id := it.CallID(); len(id) > maxCallID {
			return Invalid("string_above_max_length", at+".call_id",
				"Invalid '%s.call_id': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, maxCallID, len(id))
		}
		if it.Type() == item.TypeCompactionTrigger {
			return Invalid("invalid_value", at+".type", "Invalid '%s.type': this server compacts at POST /v1/responses/compact only.", at)
		}
		if p := checkValue(at, it, v); p != nil {
			return p
		}
		if p := checkHalfOf(at, it); p != nil {
			return p
		}
		if it.Type() == item.TypeMCPApprovalResponse {
			if p := approvalAnswer.wrongMembers(at, it.JSON()); p != nil {
				return p
			}
		}
	}
	return nil
}

// approvalAnswer is the shape of an answer to a request for approval. What is no yes and no no is not an answer:
// nobody has refused the call.
var approvalAnswer = fields(members{"approval_request_id": anyText, "approve": boolean, "reason": anyText}, "approval_request_id", "approve")

func checkValue(at string, it item.Item, v item.Value) *Error {
	switch v := v.(type) {
	case *item.Message:
		switch v.Role {
		case item.RoleUser, item.RoleAssistant, item.RoleSystem, item.RoleDeveloper:
		default:
			return Invalid("invalid_value", at+".role", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", v.Role)
		}
		return checkMessage(at, it, v)
	case *item.FunctionCall:
		return checkCallName(at, v.Name)
	case *item.CustomToolCall:
		return checkCallName(at, v.Name)
	case *item.FunctionCallOutput:
		return checkOutput(at, it, v.Output)
	case *item.CustomToolCallOutput:
		return checkOutput(at, it, v.Output)
	}
	return nil
}

func checkCallName(at, name string) *Error {
	if toolName.MatchString(name) {
		return nil
	}
	return Invalid("invalid_value", at+".name", "Invalid '%s.name': %q does not match '%s'.", at, name, toolName)
}

// CheckPairs returns an error for a history that the API would refuse: each call
// needs exactly one output of the right kind after it, and no other outputs may
// occur. A backend that replaces items, for example in a compaction, should check
// the result.
func CheckPairs(items []item.Item) error {
	if wrong := checkPairs(items, len(items)); wrong != nil {
		return wrong
	}
	return nil
}

// pairing finds calls and outputs in a history that do not match.
type pairing struct {
	calls map[string]*pair
	order []*pair
	own   int // index of the first item of the request itself
}

type pair struct {
	index    int
	id       string
	want     item.Type
	answered bool
}

// checkPairs checks that each call has exactly one output of the right kind after
// it, and that there are no other outputs. The items before index own were not sent
// with the request.
func checkPairs(items []item.Item, own int) *Error {
	p := pairing{calls: map[string]*pair{}, own: own}
	for i, it := range items {
		var found *Error
		switch {
		case it.IsCall():
			found = p.call(i, it)
		case it.IsOutput():
			found = p.output(i, it)
		}
		if found != nil {
			return found
		}
	}
	for _, c := range p.order {
		if !c.answered {
			return Invalid("", "input", "No tool output found for %s %s.", kind(items[c.index].Type()), c.id)
		}
	}
	return nil
}

// place returns the path of what names the call of an item.
func (p *pairing) place(i int, it item.Item) string {
	member := "call_id"
	switch it.Type() {
	case item.TypeMCPApprovalRequest:
		member = "id"
	case item.TypeMCPApprovalResponse:
		member = "approval_request_id"
	}
	if i < p.own {
		return fmt.Sprintf("history[%d].%s", i, member)
	}
	return fmt.Sprintf("input[%d].%s", i-p.own, member)
}

func (p *pairing) call(i int, it item.Item) *Error {
	id := it.CallID()
	at := p.place(i, it)
	if id == "" {
		return Invalid("missing_required_parameter", at, "Missing required parameter: '%s'.", at)
	}
	if p.calls[id] != nil {
		return Invalid("invalid_value", at, "Invalid '%s': a second call has the call_id %s.", at, id)
	}
	c := &pair{index: i, id: id, want: it.Type().Output()}
	p.calls[id] = c
	p.order = append(p.order, c)
	return nil
}

func (p *pairing) output(i int, it item.Item) *Error {
	id := it.CallID()
	at := p.place(i, it)
	if id == "" {
		return Invalid("missing_required_parameter", at, "Missing required parameter: '%s'.", at)
	}
	c := p.calls[id]
	if c == nil && it.Type() == item.TypeMCPApprovalResponse {
		return Invalid("", at, "Invalid '%s': no request for approval %s is in this request or in what it continues. Send previous_response_id with the response that asked.", at, id)
	}
	if c == nil || c.want != it.Type() {
		return Invalid("", "input", "No tool call found for %s with call_id %s.", kind(it.Type()), id)
	}
	if c.answered {
		return Invalid("invalid_value", at, "Invalid '%s': a second output for the call %s.", at, id)
	}
	c.answered = true
	return nil
}

// kind returns a type as words, such as "function call output".
func kind(t item.Type) string {
	b := []byte(t)
	for i, c := range b {
		if c == '_' {
			b[i] = ' '
		}
	}
	return string(b)
}
