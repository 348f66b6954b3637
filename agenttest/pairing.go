// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/item"
)

// CheckPairing reports problems in a request's input that the API would refuse: a
// call without exactly one output of its kind after it, an output without its call
// before it, two calls with one id, and reasoning that is not followed by an item of
// its reply. The error has one line per problem. It does not use the code that
// builds histories, so that it can check that code.
func CheckPairing(items ...item.Item) error {
	p := pairing{calls: map[pairKey]*paired{}}
	for i, it := range items {
		p.add(i, it)
	}
	p.end()
	return errors.Join(p.problems...)
}

// pairing walks over a history once.
type pairing struct {
	calls    map[pairKey]*paired
	order    []*paired
	thinking []int // reasoning that nothing followed yet
	problems []error
}

// pairKey identifies a call and its output.
type pairKey struct {
	call item.Type
	id   string
}

type paired struct {
	pairKey
	at      int
	outputs int
}

// answeredBy lists the type of output for each type of call.
var answeredBy = [][2]item.Type{
	{item.TypeFunctionCall, item.TypeFunctionCallOutput},
	{item.TypeCustomToolCall, item.TypeCustomToolCallOutput},
	{item.TypeLocalShellCall, item.TypeLocalShellCallOutput},
	{item.TypeShellCall, item.TypeShellCallOutput},
	{item.TypeApplyPatchCall, item.TypeApplyPatchCallOutput},
	{item.TypeComputerCall, item.TypeComputerCallOutput},
	{item.TypeToolSearchCall, item.TypeToolSearchOutput},
	{item.TypeMCPApprovalRequest, item.TypeMCPApprovalResponse},
}

func (p *pairing) problem(i int, format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("item %d: %s", i, fmt.Sprintf(format, args...)))
}

func (p *pairing) add(i int, it item.Item) {
	if it.Type() == item.TypeReasoning {
		p.thinking = append(p.thinking, i)
		return
	}
	if !saidByModel(it) {
		p.unfollowed()
	}
	p.thinking = nil
	switch {
	case it.IsCall():
		p.call(i, it)
	case it.IsOutput():
		p.output(i, it)
	}
}

func (p *pairing) call(i int, it item.Item) {
	c := &paired{pairKey{it.Type(), it.CallID()}, i, 0}
	switch earlier := p.calls[c.pairKey]; {
	case c.id == "":
		p.problem(i, "%s without a call id", it.Type())
	case earlier != nil:
		p.problem(i, "%s %q has the id of item %d", it.Type(), c.id, earlier.at)
	}
	p.calls[c.pairKey] = c
	p.order = append(p.order, c)
}

func (p *pairing) output(i int, it item.Item) {
	var key pairKey
	for _, pair := range answeredBy {
		if pair[1] == it.Type() {
			key = pairKey{pair[0], it.CallID()}
		}
	}
	c := p.calls[key]
	if c == nil {
		p.problem(i, "%s %q has no call before it", it.Type(), key.id)
		return
	}
	if c.outputs++; c.outputs > 1 {
		p.problem(i, "%s %q is output number %d of the call at item %d", it.Type(), key.id, c.outputs, c.at)
	}
}

// unfollowed reports reasoning without a following item.
func (p *pairing) unfollowed() {
	for _, i := range p.thinking {
		p.problem(i, "reasoning that no item of its reply follows")
	}
	p.thinking = nil
}

func (p *pairing) end() {
	p.unfollowed()
	for _, c := range p.order {
		if c.outputs == 0 {
			p.problem(c.at, "%s %q has no output behind it", c.call, c.id)
		}
	}
}

// saidByModel reports whether the item can be part of a reply. Items of unknown
// types can.
func saidByModel(it item.Item) bool {
	if it.Type() == item.TypeMessage {
		return it.Role() == item.RoleAssistant
	}
	return !it.IsOutput()
}
