// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "slices"

// CallKind is a kind of calls that a client answers: which items belong
// together, by which id, and who runs the call. The list of kinds is the one
// place that knows: what reads, pairs, renames, runs or shows calls asks it.
type CallKind struct {
	// Call and Output are the types of the call and of the item that answers it.
	Call, Output Type
	// Tool is the name by which policies and people know the API's own tool that a
	// client runs for such calls, and the type of its definition. It is "" where the
	// call names its tool, or where no tool of a client can run it.
	Tool string
	// Input is the member that the tool is called with.
	Input string
	// ByEndpoint is set where the endpoint runs the call: the output only says
	// whether it may.
	ByEndpoint bool
	// Renames is set where call and output take another call id than the one that
	// the endpoint gave.
	Renames bool

	callID, outputID string // the members that pair both
	executed         bool   // only if the member "execution" says that the client runs it
	newCall          func() Value
	newOutput        func() Value
	// answer makes an output that says why there is none; nil where none can.
	answer func(id string, out Content) Value
}

// callKinds are all kinds. A new one needs a constant and a struct for each of
// its two types besides, and nothing else.
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
		// Its output is a picture of the screen, which nobody can make up.
		Call: TypeComputerCall, Output: TypeComputerCallOutput, Input: "action", callID: "call_id", outputID: "call_id",
		newCall: func() Value { return new(ComputerCall) }, newOutput: func() Value { return new(ComputerCallOutput) },
	},
	{
		Call: TypeToolSearchCall, Output: TypeToolSearchOutput, Input: "arguments", callID: "call_id", outputID: "call_id", executed: true,
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

// CallKind returns the kind that items of type t are calls or outputs of, and
// whether there is one.
func (t Type) CallKind() (CallKind, bool) {
	if k := kindOf(t); k != nil {
		return *k, true
	}
	return CallKind{}, false
}

// CallKindOf returns the kind of the calls of one of the API's own tools that a
// client runs, and whether def is one.
func CallKindOf(def Tool) (CallKind, bool) {
	if _, unknown := def.(*UnknownTool); unknown || isNil(def) {
		return CallKind{}, false // one that only calls itself so
	}
	for _, k := range callKinds {
		if k.Tool != "" && k.Tool == def.ToolType() {
			return k, true
		}
	}
	return CallKind{}, false
}

func kindOf(t Type) *CallKind {
	for i := range callKinds {
		if k := &callKinds[i]; k.Call == t || k.Output == t {
			return k
		}
	}
	return nil
}

// Answers returns the type of calls that items of type t answer. It is "" for a
// type that is not an output's.
func (t Type) Answers() Type {
	if k := kindOf(t); k != nil && k.Output == t {
		return k.Call
	}
	return ""
}

// Output returns the type of the items that answer calls of type t. It is "" for
// a type that is not a call's.
func (t Type) Output() Type {
	if k := kindOf(t); k != nil && k.Call == t {
		return k.Output
	}
	return ""
}

// Tool returns the name by which policies and people know the API's own tool that
// calls of type t are for, if such calls can be run by a client, or "": an
// [*ApplyPatchTool] is apply_patch, a [*ShellTool] shell, a [*LocalShellTool]
// local_shell.
func (t Type) Tool() string {
	if k := kindOf(t); k != nil && k.Call == t {
		return k.Tool
	}
	return ""
}

// CallID returns the call_id member, or "". For an MCP approval it is the id
// of the request, which is what pairs the two; for the deprecated local shell
// it is the id of the call. See rule P5: never the id of a function call.
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

// IsOutput reports whether the item answers a call of the kind that [Item.IsCall]
// names.
func (it Item) IsOutput() bool {
	k := kindOf(it.typ)
	return k != nil && k.Output == it.typ && k.byClient(it)
}

// newValue returns an empty call or output.
func (k *CallKind) newValue(t Type) Value {
	if t == k.Call {
		return k.newCall()
	}
	return k.newOutput()
}

func (k *CallKind) byClient(it Item) bool {
	return !k.executed || it.text("execution") == ExecutionClient
}

// Answers reports whether the item is an output for call: of its kind, and with
// its call id.
func (it Item) Answers(call Item) bool {
	wanted := it.Type().Answers()
	return wanted != "" && wanted == call.Type() && it.CallID() == call.CallID()
}

// OutputFor returns the output item that answers call, of the kind that the
// call's type wants. It reports false for kinds that take no text: a computer
// call, and an item the client need not answer. An MCP approval request is
// answered with a refusal that gives the text as its reason.
func OutputFor(call Item, out Content) (Item, bool, error) {
	k := kindOf(call.typ)
	if !call.IsCall() || k.answer == nil {
		return Item{}, false, nil
	}
	it, err := New(k.answer(call.CallID(), out))
	return it, err == nil, err
}
