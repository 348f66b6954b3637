// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"slices"

	"github.com/antiphon-go/antiphon/internal/nils"
)

// CallKind describes a kind of call that a client answers: the types of call and
// output, the ids that pair them, and who runs the call. All code that reads, pairs,
// renames, runs or shows calls uses the list of kinds; nothing else knows them.
type CallKind struct {
	// Call and Output are the types of the call and of the item that answers it.
	Call, Output Type
	// Tool is the type of the definition of the API's own tool that a client runs
	// for such calls. Policies and people know the tool by this name too. It is ""
	// if the call contains the name of its tool, or if a client's tool cannot run
	// it.
	Tool string
	// Input is the name of the member with the tool's input.
	Input string
	// ByEndpoint is true if the endpoint runs the call. The output then only says
	// whether it may.
	ByEndpoint bool
	// Renames is true if call and output accept a call id other than the one that
	// the endpoint assigned.
	Renames bool

	callID, outputID string // names of the members whose values pair call and output
	executed         bool   // a client's call only if its member "execution" says so
	newCall          func() Value
	newOutput        func() Value
	// answer makes an output that says why the call has no result. It is nil if that
	// is impossible.
	answer func(id string, out Content) Value
}

// callKinds lists all kinds. To add one, add an element here, and a constant and a
// struct for each of its two types.
var callKinds = []CallKind{
	{
		Call: TypeFunctionCall, Output: TypeFunctionCallOutput, Input: "arguments", Renames: true, callID: "call_id", outputID: "call_id",
		newCall: func() Value { return new(FunctionCall) }, newOutput: func() Value { return new(FunctionCallOutput) },
		answer: func(id string, out Content) Value { return &FunctionCallOutput{CallID: id, Output: out} },
	},
	{
		Call: TypeCustomToolCall, Output: TypeCustomToolCallOutput, Input: "input", Renames: true, callID: "call_id", outputID: "call_id",
		newCall: func() Value { return new(CustomToolCall) }, newOutput: func() Value { return new(CustomToolCallOutput) },
		answer: func(id string, out Content) Value { return &CustomToolCallOutput{CallID: id, Output: out} },
	},
	{
		Call: TypeLocalShellCall, Output: TypeLocalShellCallOutput, Tool: ToolLocalShell, Input: "action", callID: "call_id", outputID: "id",
		newCall: func() Value { return new(LocalShellCall) }, newOutput: func() Value { return new(LocalShellCallOutput) },
		answer: func(id string, out Content) Value { return &LocalShellCallOutput{ID: id, Output: clean(out.Display())} },
	},
	{
		Call: TypeShellCall, Output: TypeShellCallOutput, Tool: ToolShell, Input: "action", callID: "call_id", outputID: "call_id",
		newCall: func() Value { return new(ShellCall) }, newOutput: func() Value { return new(ShellCallOutput) },
		answer: func(id string, out Content) Value {
			return &ShellCallOutput{CallID: id, Output: []ShellOutput{{Stderr: clean(out.Display()), Outcome: ShellExit(1)}}}
		},
	},
	{
		Call: TypeApplyPatchCall, Output: TypeApplyPatchCallOutput, Tool: ToolApplyPatch, Input: "operation", callID: "call_id", outputID: "call_id",
		newCall: func() Value { return new(ApplyPatchCall) }, newOutput: func() Value { return new(ApplyPatchCallOutput) },
		answer: func(id string, out Content) Value {
			return &ApplyPatchCallOutput{CallID: id, Status: StatusFailed, Output: clean(out.Display())}
		},
	},
	{
		// The output is a screenshot, which cannot be made up.
		Call: TypeComputerCall, Output: TypeComputerCallOutput, Tool: ToolComputer, Input: "action", callID: "call_id", outputID: "call_id",
		newCall: func() Value { return new(ComputerCall) }, newOutput: func() Value { return new(ComputerCallOutput) },
	},
	{
		Call: TypeToolSearchCall, Output: TypeToolSearchOutput, Tool: ToolToolSearch, Input: "arguments", callID: "call_id", outputID: "call_id", executed: true,
		newCall: func() Value { return new(ToolSearchCall) }, newOutput: func() Value { return new(ToolSearchOutput) },
		answer: func(id string, _ Content) Value { return &ToolSearchOutput{CallID: id, Execution: ExecutionClient} },
	},
	{
		Call: TypeMCPApprovalRequest, Output: TypeMCPApprovalResponse, Input: "arguments", ByEndpoint: true, callID: "id", outputID: "approval_request_id",
		newCall: func() Value { return new(MCPApprovalRequest) }, newOutput: func() Value { return new(MCPApprovalResponse) },
		answer: func(id string, out Content) Value {
			return &MCPApprovalResponse{ApprovalRequestID: id, Reason: clean(out.Display())}
		},
	},
}

// CallKinds returns all kinds of calls that a client answers.
func CallKinds() []CallKind { return slices.Clone(callKinds) }

// CallKind returns the kind with calls or outputs of type t, and whether there is
// one.
func (t Type) CallKind() (CallKind, bool) {
	if k := kindOf(t); k != nil {
		return *k, true
	}
	return CallKind{}, false
}

// Needs reports whether an item of the kind loses its meaning or its partner without a
// member: the input of a call, the ids that pair call and output, and the member that
// says which side answers.
func (k CallKind) Needs(t Type, member string) bool {
	switch {
	case k.executed && member == "execution":
		return true
	case t == k.Call:
		return member == k.Input || member == k.callID
	}
	return t == k.Output && member == k.outputID
}

// CallKindOf returns the kind of call for def, if def is one of the API's own tools
// that a client runs, and whether it is.
func CallKindOf(def Tool) (CallKind, bool) {
	if _, unknown := def.(*UnknownTool); unknown || nils.Is(def) {
		return CallKind{}, false // it has the type name of a known tool, but is not one
	}
	if search, ok := def.(*ToolSearchTool); ok && search.Execution != ExecutionClient {
		return CallKind{}, false // the endpoint runs it
	}
	typ := def.ToolType()
	if typ == ToolComputerPreview {
		typ = ToolComputer // both make the same calls
	}
	for _, k := range callKinds {
		if k.Tool != "" && k.Tool == typ {
			return k, true
		}
	}
	return CallKind{}, false
}

// kindOf returns the kind with calls or outputs of type t, or nil.
func kindOf(t Type) *CallKind {
	for i := range callKinds {
		if k := &callKinds[i]; k.Call == t || k.Output == t {
			return k
		}
	}
	return nil
}

// Answers returns the type of the calls that items of type t answer, or "" if t is
// not the type of an output.
func (t Type) Answers() Type {
	if k := kindOf(t); k != nil && k.Output == t {
		return k.Call
	}
	return ""
}

// Output returns the type of the items that answer calls of type t, or "" if t is
// not the type of a call.
func (t Type) Output() Type {
	if k := kindOf(t); k != nil && k.Call == t {
		return k.Output
	}
	return ""
}

// Tool returns the name of the API's own tool for calls of type t, or "" if a client
// cannot run such calls. It is the name that policies and people use: apply_patch
// for an [*ApplyPatchTool], shell for a [*ShellTool], local_shell for a
// [*LocalShellTool], computer for a [*ComputerTool], tool_search for a
// [*ToolSearchTool] whose searches the client performs.
func (t Type) Tool() string {
	if k := kindOf(t); k != nil && k.Call == t {
		return k.Tool
	}
	return ""
}

// CallID returns the id that pairs a call with its output, or "". That is the
// call_id member, except for an MCP approval, where it is the id of the request, and
// in the output of the deprecated local shell, where it is the id member. It is
// never the id member of a function call.
func (it Item) CallID() string {
	k := kindOf(it.typ)
	switch {
	case k == nil:
		return it.text("call_id")
	case k.Output == it.typ:
		return it.text(k.outputID)
	}
	return it.text(k.callID)
}

// IsCall reports whether the item is a call that the client must answer.
func (it Item) IsCall() bool {
	k := kindOf(it.typ)
	return k != nil && k.Call == it.typ && k.byClient(it)
}

// IsOutput reports whether the item answers a call for which [Item.IsCall] is true.
func (it Item) IsOutput() bool {
	k := kindOf(it.typ)
	return k != nil && k.Output == it.typ && k.byClient(it)
}

// newValue returns an empty call if t is the type of the call, and otherwise an
// empty output.
func (k *CallKind) newValue(t Type) Value {
	if t == k.Call {
		return k.newCall()
	}
	return k.newOutput()
}

// byClient reports whether the client answers this call. Only tool searches can be
// answered by either side.
func (k *CallKind) byClient(it Item) bool {
	return !k.executed || it.text("execution") == ExecutionClient
}

// Answers reports whether the item is an output for call: it has the output type for
// the call and the same call id.
func (it Item) Answers(call Item) bool {
	wanted := it.Type().Answers()
	return wanted != "" && wanted == call.Type() && it.CallID() == call.CallID()
}

// OutputFor returns an output item that answers call with the given content. The second
// result is false if such a call cannot be answered with text: a computer call, or an
// item that the client need not answer. An MCP approval request is answered with a
// refusal whose reason is the text.
func OutputFor(call Item, out Content) (Item, bool, error) {
	k := kindOf(call.typ)
	if !call.IsCall() || k.answer == nil {
		return Item{}, false, nil
	}
	it, err := New(k.answer(call.CallID(), out))
	return it, err == nil, err
}
