// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// readCall caches the last decoded call, because most calls are decoded for their
// verdict and right afterwards to be started.
type readCall struct {
	of   int64 // the call's entry
	call tool.Call
	err  error
}

func (r *Run) callOf(c *session.OpenCall) (tool.Call, error) {
	if r.read.of != c.Seq {
		call, err := CallOf(c.Item)
		call.Imported, call.Session, call.Number, call.Again = c.Imported, r.session.ID(), c.Number, c.Lost
		r.read = readCall{c.Seq, call, err}
	}
	return r.read.call, r.read.err
}

// CallOf decodes a call item into the form that its tool sees. It decodes function
// calls, custom calls, and calls of the API's own tools that run locally, whose
// arguments are the JSON of their operation or action; those of a computer call are an
// object with its actions. It also decodes the endpoint's
// request to approve an MCP call, as a call of LABEL.TOOL with its arguments.
func CallOf(it item.Item) (tool.Call, error) {
	switch it.Type() {
	case item.TypeFunctionCall:
		c, err := item.As[item.FunctionCall](it)
		if err != nil {
			return tool.Call{}, err
		}
		return tool.Call{ID: c.CallID, Name: c.Name, Arguments: c.Arguments}, nil
	case item.TypeCustomToolCall:
		c, err := item.As[item.CustomToolCall](it)
		if err != nil {
			return tool.Call{}, err
		}
		return tool.Call{ID: c.CallID, Name: c.Name, Arguments: c.Input, Custom: true}, nil
	case item.TypeMCPApprovalRequest:
		m, err := item.As[item.MCPApprovalRequest](it)
		if err != nil {
			return tool.Call{}, err
		}
		return tool.Call{ID: m.ID, Kind: it.Type(), Name: plan.ToolName(it), Arguments: m.Arguments}, nil
	case item.TypeComputerCall:
		c, err := item.As[item.ComputerCall](it)
		if err != nil {
			return tool.Call{}, err
		}
		name, with := plan.CalledBy(it)
		return tool.Call{ID: c.CallID, Kind: it.Type(), Name: name, Arguments: string(with), Warnings: warnings(c.PendingSafetyChecks)}, nil
	case item.TypeShellCall:
		s, err := item.As[item.ShellCall](it)
		if err != nil {
			return tool.Call{}, err
		}
		// The endpoint runs such a call in a container of its own.
		if s.Environment != nil && s.Environment.Type != item.EnvironmentLocal {
			return tool.Call{}, fmt.Errorf("it is for the environment %q, which is not here", s.Environment.Type)
		}
	}
	if it.Type().Tool() == "" {
		return tool.Call{}, fmt.Errorf("no tool runs for an item of type %s", it.Type())
	}
	name, with := plan.CalledBy(it)
	return tool.Call{ID: it.CallID(), Kind: it.Type(), Name: name, Arguments: string(with)}, nil
}

// warnings returns safety checks as a text for people.
func warnings(checks []item.SafetyCheck) string {
	var texts []string
	for _, c := range checks {
		text := strings.Trim(c.Code+": "+c.Message, ": ")
		texts = append(texts, output.Clip(cmp.Or(text, c.ID, "it gives no reason"), maxReason))
	}
	return strings.Join(texts, "; ")
}

// answerTo creates the item that answers a call from the tool's outcome. The items of
// the API's own tools have their own form of success and failure.
func answerTo(call item.Item, out *tool.Outcome) (item.Item, bool, error) {
	if out.Failed {
		return item.OutputFor(call, out.Content)
	}
	text := out.Content.Display()
	switch call.Type() {
	case item.TypeMCPApprovalRequest:
		it, err := item.New(&item.MCPApprovalResponse{ApprovalRequestID: call.CallID(), Approve: true})
		return it, err == nil, err
	case item.TypeComputerCall:
		return screenshotFor(call, out.Content)
	case item.TypeApplyPatchCall:
		it, err := item.New(&item.ApplyPatchCallOutput{CallID: call.CallID(), Status: item.StatusCompleted, Output: text})
		return it, err == nil, err
	case item.TypeToolSearchCall:
		it, err := item.New(&item.ToolSearchOutput{CallID: call.CallID(), Execution: item.ExecutionClient, Status: item.StatusCompleted, Tools: out.Found})
		return it, err == nil, err
	case item.TypeShellCall:
		c, err := item.As[item.ShellCall](call)
		if err != nil {
			return item.Item{}, false, err
		}
		o := &item.ShellCallOutput{CallID: call.CallID(), Output: out.Commands}
		if len(o.Output) == 0 { // an output limit or a hook replaced the output
			o.Output = []item.ShellOutput{{Stdout: text, Outcome: item.ShellExit(0)}}
		}
		if c.Action != nil {
			o.MaxOutputLength = c.Action.MaxOutputLength
		}
		it, err := item.New(o)
		return it, err == nil, err
	}
	return item.OutputFor(call, out.Content)
}

// screenshotFor answers a computer call with the first image of the content. It
// acknowledges the endpoint's warnings, because the call was approved with them. It
// reports false if there is no image.
func screenshotFor(call item.Item, content item.Content) (item.Item, bool, error) {
	for _, p := range content.Parts {
		image, ok := p.(*item.InputImage)
		if !ok {
			continue
		}
		it, err := item.New(&item.ComputerCallOutput{
			CallID: call.CallID(), AcknowledgedSafetyChecks: plan.Warnings(call),
			Output: &item.ComputerScreenshot{ImageURL: image.ImageURL, FileID: image.FileID},
		})
		return it, err == nil, err
	}
	return item.Item{}, false, nil
}

// withCaller adds the caller of a call to its output, if a program that the endpoint
// runs made the call: the output is for this program.
func withCaller(out, call item.Item) item.Item {
	caller, ok := call.Member("caller")
	var by struct {
		Type string `json:"type"`
	}
	if !ok || out.IsZero() || json.Unmarshal([]byte(caller), &by) != nil || by.Type != item.CallerProgram {
		return out
	}
	switch call.Type() {
	case item.TypeFunctionCall, item.TypeCustomToolCall, item.TypeShellCall, item.TypeApplyPatchCall:
		if with, err := out.With("caller", caller); err == nil {
			return with
		}
	}
	return out
}
