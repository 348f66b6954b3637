// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// toolName is what the tool is called that a call is for: calls of the API's own
// tools name none. A call that the endpoint makes on an MCP server is called
// LABEL.TOOL, which no tool of ours can be: their names have no dots.
func toolName(it item.Item) string {
	if hosted(it) {
		label, _ := it.Member("server_label")
		text, _ := label.Unquote()
		return plainName(text) + "." + plainName(it.Name())
	}
	if name := tool.NameOfKind(it.Type()); name != "" {
		return name
	}
	return it.Name()
}

// hosted reports whether an item asks whether the endpoint may make a call.
func hosted(it item.Item) bool { return it.Type() == item.TypeMCPApprovalRequest }

// plainName returns a name as patterns can match it: a slash would stand between
// a pattern such as * and the name.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '_'
	}, name)
}

// calledBy is the name that a call is made by and the text of what it is made
// with.
func calledBy(it item.Item) (name string, with item.JSON) {
	for _, member := range [...]string{"arguments", "input", "operation", "action"} {
		if v, ok := it.Member(member); ok {
			return toolName(it), v
		}
	}
	return toolName(it), ""
}

// readCall is the call that was read last: most are read for their verdict, and
// at once again to be started.
type readCall struct {
	of   int64 // its entry
	call tool.Call
	err  error
}

func (r *Run) callOf(c *session.OpenCall) (tool.Call, error) {
	if r.read.of != c.Seq {
		call, err := CallOf(c.Item)
		r.read = readCall{c.Seq, call, err}
	}
	return r.read.call, r.read.err
}

// CallOf reads a call item as its tool sees it. It reads function calls, custom
// calls, and those of the API's own tools that are run here, whose arguments are
// the JSON of their operation or action. It also reads the question whether the
// endpoint may call a tool of an MCP server, as a call of LABEL.TOOL with those
// arguments.
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
		return tool.Call{ID: m.ID, Kind: it.Type(), Name: toolName(it), Arguments: m.Arguments}, nil
	case item.TypeShellCall:
		s, err := item.As[item.ShellCall](it)
		if err != nil {
			return tool.Call{}, err
		}
		if s.Environment != nil && s.Environment.Type != item.EnvironmentLocal {
			return tool.Call{}, fmt.Errorf("it is for the environment %q, which is not here", s.Environment.Type)
		}
		fallthrough
	case item.TypeApplyPatchCall, item.TypeLocalShellCall:
		name, with := calledBy(it)
		return tool.Call{ID: it.CallID(), Kind: it.Type(), Name: name, Arguments: string(with)}, nil
	}
	return tool.Call{}, fmt.Errorf("no tool runs for an item of type %s", it.Type())
}

// answerTo puts what a tool returned into the item that answers its call. Those
// of the API's own tools say whether it went well in a form of their own.
func answerTo(call item.Item, out *tool.Outcome) (item.Item, bool, error) {
	if out.Failed {
		return item.OutputFor(call, out.Content)
	}
	text := out.Content.Display()
	switch call.Type() {
	case item.TypeMCPApprovalRequest:
		it, err := item.New(&item.MCPApprovalResponse{ApprovalRequestID: call.CallID(), Approve: true})
		return it, err == nil, err
	case item.TypeApplyPatchCall:
		it, err := item.New(&item.ApplyPatchCallOutput{CallID: call.CallID(), Status: item.StatusCompleted, Output: text})
		return it, err == nil, err
	case item.TypeShellCall:
		c, err := item.As[item.ShellCall](call)
		if err != nil {
			return item.Item{}, false, err
		}
		o := &item.ShellCallOutput{CallID: call.CallID(), Output: out.Commands}
		if len(o.Output) == 0 { // a limit or a hook made another text of it
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
