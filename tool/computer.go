// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Computer makes the API's own computer tool from a function that operates a screen:
// it performs the actions of a call in order and returns a screenshot of the screen
// after them, as PNG, JPEG, GIF or WebP. Def is an [*item.ComputerTool], or an
// [*item.ComputerPreviewTool] for the older models.
//
// Coordinates are pixels of the last screenshot, which is therefore sent unchanged
// and refused if it has more than [output.MaxImageBytes]. The function must return an
// error for an action that it does not support, such as an [*item.UnknownAction].
// Only a screenshot can answer the call: after an error, and after a refusal, the call
// leaves the history (see [session.CallDropped]), the model reads why in a message, and
// the run goes on. To let the model see that an action had no effect, return the
// screenshot without an error.
//
// Calls run one at a time. They need an approval like those of any tool, with the
// arguments {"actions": […]}. If the endpoint warns of a call (see
// [item.SafetyCheck]), a person is asked even if a rule allows the tool, and sees the
// warnings as "pending_safety_checks"; an approval acknowledges them.
func Computer(def item.Tool, fn func(ctx context.Context, actions []item.ComputerAction) (screenshot []byte, err error), opts ...Option) (Tool, error) {
	if kind, _ := item.CallKindOf(def); kind.Call != item.TypeComputerCall {
		return nil, fmt.Errorf("tool: definition is %T: want *item.ComputerTool or *item.ComputerPreviewTool", def)
	}
	if fn == nil {
		return nil, fmt.Errorf("tool %s: function is nil", item.ToolComputer)
	}
	return Raw(def, func(ctx context.Context, call Call) (Result, error) {
		actions, err := actionsOf(call)
		if err != nil {
			return Result{}, err
		}
		data, err := fn(ctx, actions)
		if err != nil {
			return Result{}, err
		}
		image, err := output.Image(data)
		if err != nil {
			return Result{}, fmt.Errorf("the screenshot cannot be sent: %w", err)
		}
		return Result{Parts: []item.Part{image}}, nil
	}, append([]Option{Exclusive()}, opts...)...)
}

// actionsOf reads the actions from the arguments of a call.
func actionsOf(call Call) ([]item.ComputerAction, error) {
	bad := func(problem string) error {
		return &ArgumentsError{Tool: call.Name, Problem: problem, Offset: -1, Schema: computerArguments}
	}
	if _, err := item.ParseString(call.Arguments); err != nil {
		return nil, bad(err.Error())
	}
	// The arguments are members of the call, so they are read as such.
	members := strings.TrimLeft(strings.TrimLeft(call.Arguments, " \t\r\n")[1:], " \t\r\n")
	if members[0] == '}' {
		return nil, bad("actions is empty")
	}
	it, err := item.ParseString(`{"type":"computer_call","call_id":"c",` + members)
	if err != nil {
		return nil, bad(err.Error())
	}
	c, err := item.As[item.ComputerCall](it)
	switch {
	case err != nil:
		return nil, bad(err.Error())
	case len(c.Actions) == 0:
		return nil, bad("actions is empty")
	}
	return c.Actions, nil
}

// computerArguments is the schema of the arguments of a call, for people who change
// them.
const computerArguments = `{"type":"object","properties":{"actions":{"type":"array","minItems":1}},"required":["actions"]}`
