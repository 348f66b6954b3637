// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"github.com/antiphon-go/antiphon/item"
)

// CheckPairs reports what the API would refuse in a history: it wants exactly one
// output of the right kind after each call, and no other output. A backend that
// replaces items, such as compactions by what they stand for, checks the result.
func CheckPairs(items []item.Item) error {
	if wrong := checkPairs(items, len(items)); wrong != nil {
		return wrong
	}
	return nil
}

// outputTypes names the type that answers each type of call.
var outputTypes = map[item.Type]item.Type{
	item.TypeFunctionCall:       item.TypeFunctionCallOutput,
	item.TypeCustomToolCall:     item.TypeCustomToolCallOutput,
	item.TypeLocalShellCall:     item.TypeLocalShellCallOutput,
	item.TypeShellCall:          item.TypeShellCallOutput,
	item.TypeApplyPatchCall:     item.TypeApplyPatchCallOutput,
	item.TypeComputerCall:       item.TypeComputerCallOutput,
	item.TypeToolSearchCall:     item.TypeToolSearchOutput,
	item.TypeMCPApprovalRequest: item.TypeMCPApprovalResponse,
}

// pairing walks over a history and finds calls and outputs that do not belong
// together.
type pairing struct {
	calls map[string]*pair
	order []*pair
	own   int // index of the first item that the request itself carries
}

type pair struct {
	index    int
	id       string
	want     item.Type
	answered bool
}

// checkPairs wants exactly one output of the right kind after each call, and
// no other. The items before the one at own were not sent with the request.
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

// place names the call_id of an item.
func (p *pairing) place(i int) string {
	if i < p.own {
		return fmt.Sprintf("history[%d].call_id", i)
	}
	return fmt.Sprintf("input[%d].call_id", i-p.own)
}

func (p *pairing) call(i int, it item.Item) *Error {
	id := it.CallID()
	at := p.place(i)
	if id == "" {
		return Invalid("missing_required_parameter", at, "Missing required parameter: '%s'.", at)
	}
	if p.calls[id] != nil {
		return Invalid("invalid_value", at, "Invalid '%s': a second call has the call_id %s.", at, id)
	}
	c := &pair{index: i, id: id, want: outputTypes[it.Type()]}
	p.calls[id] = c
	p.order = append(p.order, c)
	return nil
}

func (p *pairing) output(i int, it item.Item) *Error {
	id := it.CallID()
	at := p.place(i)
	if id == "" {
		return Invalid("missing_required_parameter", at, "Missing required parameter: '%s'.", at)
	}
	c := p.calls[id]
	if c == nil || c.want != it.Type() {
		return Invalid("", "input", "No tool call found for %s with call_id %s.", kind(it.Type()), id)
	}
	if c.answered {
		return Invalid("invalid_value", at, "Invalid '%s': a second output for the call %s.", at, id)
	}
	c.answered = true
	return nil
}

// kind names a type in a sentence: "function call output".
func kind(t item.Type) string {
	b := []byte(t)
	for i, c := range b {
		if c == '_' {
			b[i] = ' '
		}
	}
	return string(b)
}
