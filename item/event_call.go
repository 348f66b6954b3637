// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ArgumentsDeltaEvent adds to the arguments of a function call. Schema:
// ResponseFunctionCallArgumentsDeltaEvent.
type ArgumentsDeltaEvent struct {
	ItemEvent
	Delta string
	// Obfuscation is padding of no meaning.
	Obfuscation string
}

// ArgumentsDoneEvent has the whole arguments of a function call. Schema:
// ResponseFunctionCallArgumentsDoneEvent.
type ArgumentsDoneEvent struct {
	ItemEvent
	Name      string
	Arguments string
}

// CustomInputDeltaEvent adds to the input of a custom tool call. Schema:
// ResponseCustomToolCallInputDeltaEvent.
type CustomInputDeltaEvent struct {
	ItemEvent
	Delta string
	// Obfuscation is padding of no meaning.
	Obfuscation string
}

// CustomInputDoneEvent has the whole input of a custom tool call. Schema:
// ResponseCustomToolCallInputDoneEvent.
type CustomInputDoneEvent struct {
	ItemEvent
	Input string
}

// MCPArgumentsDeltaEvent adds to the arguments of an MCP call. Schema:
// ResponseMCPCallArgumentsDeltaEvent.
type MCPArgumentsDeltaEvent struct {
	ItemEvent
	Delta string
	// Obfuscation is padding of no meaning.
	Obfuscation string
}

// MCPArgumentsDoneEvent has the whole arguments of an MCP call. Schema:
// ResponseMCPCallArgumentsDoneEvent.
type MCPArgumentsDoneEvent struct {
	ItemEvent
	Arguments string
}

// CodeDeltaEvent adds to the code of a code interpreter call. Schema:
// ResponseCodeInterpreterCallCodeDeltaEvent.
type CodeDeltaEvent struct {
	ItemEvent
	Delta string
	// Obfuscation is padding of no meaning.
	Obfuscation string
}

// CodeDoneEvent has the whole code of a code interpreter call. Schema:
// ResponseCodeInterpreterCallCodeDoneEvent.
type CodeDoneEvent struct {
	ItemEvent
	Code string
}

// EventType returns [EventArgumentsDelta].
func (*ArgumentsDeltaEvent) EventType() EventType { return EventArgumentsDelta }

// EventType returns [EventArgumentsDone].
func (*ArgumentsDoneEvent) EventType() EventType { return EventArgumentsDone }

// EventType returns [EventCustomInputDelta].
func (*CustomInputDeltaEvent) EventType() EventType { return EventCustomInputDelta }

// EventType returns [EventCustomInputDone].
func (*CustomInputDoneEvent) EventType() EventType { return EventCustomInputDone }

// EventType returns [EventMCPArgumentsDelta].
func (*MCPArgumentsDeltaEvent) EventType() EventType { return EventMCPArgumentsDelta }

// EventType returns [EventMCPArgumentsDone].
func (*MCPArgumentsDoneEvent) EventType() EventType { return EventMCPArgumentsDone }

// EventType returns [EventCodeDelta].
func (*CodeDeltaEvent) EventType() EventType { return EventCodeDelta }

// EventType returns [EventCodeDone].
func (*CodeDoneEvent) EventType() EventType { return EventCodeDone }

func (e *ArgumentsDeltaEvent) fields(c *codec) {
	e.place(c, EventArgumentsDelta)
	c.text("delta", &e.Delta, &e.Extra)
	c.optString("obfuscation", &e.Obfuscation)
	c.end(&e.Extra)
}

func (e *ArgumentsDoneEvent) fields(c *codec) {
	e.place(c, EventArgumentsDone)
	c.text("name", &e.Name, &e.Extra)
	c.text("arguments", &e.Arguments, &e.Extra)
	c.end(&e.Extra)
}

func (e *CustomInputDeltaEvent) fields(c *codec) {
	e.place(c, EventCustomInputDelta)
	c.text("delta", &e.Delta, &e.Extra)
	c.optString("obfuscation", &e.Obfuscation)
	c.end(&e.Extra)
}

func (e *CustomInputDoneEvent) fields(c *codec) {
	e.place(c, EventCustomInputDone)
	c.text("input", &e.Input, &e.Extra)
	c.end(&e.Extra)
}

func (e *MCPArgumentsDeltaEvent) fields(c *codec) {
	e.place(c, EventMCPArgumentsDelta)
	c.text("delta", &e.Delta, &e.Extra)
	c.optString("obfuscation", &e.Obfuscation)
	c.end(&e.Extra)
}

func (e *MCPArgumentsDoneEvent) fields(c *codec) {
	e.place(c, EventMCPArgumentsDone)
	c.text("arguments", &e.Arguments, &e.Extra)
	c.end(&e.Extra)
}

func (e *CodeDeltaEvent) fields(c *codec) {
	e.place(c, EventCodeDelta)
	c.text("delta", &e.Delta, &e.Extra)
	c.optString("obfuscation", &e.Obfuscation)
	c.end(&e.Extra)
}

func (e *CodeDoneEvent) fields(c *codec) {
	e.place(c, EventCodeDone)
	c.text("code", &e.Code, &e.Extra)
	c.end(&e.Extra)
}
