// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ShellOutputDelta is what a command wrote since the last one. Schema:
// ShellCallOutputDelta.
type ShellOutputDelta struct {
	Stdout string
	Stderr string
	Extra  Extra
}

func (v *ShellOutputDelta) fields(c *codec) {
	c.optString("stdout", &v.Stdout)
	c.optString("stderr", &v.Stderr)
	c.rest(&v.Extra)
}

// ShellCommandAddedEvent brings a command of a shell call as it begins. The
// schema has no item id here. Schema:
// ResponseShellCallCommandAddedStreamingEvent.
type ShellCommandAddedEvent struct {
	ItemEvent
	CommandIndex int
	Command      string
}

// ShellCommandDeltaEvent adds to a command of a shell call. Schema:
// ResponseShellCallCommandDeltaStreamingEvent.
type ShellCommandDeltaEvent struct {
	ItemEvent
	CommandIndex int
	Delta        string
	// Obfuscation is padding of no meaning.
	Obfuscation string
}

// ShellCommandDoneEvent has a whole command of a shell call. Schema:
// ResponseShellCallCommandDoneStreamingEvent.
type ShellCommandDoneEvent struct {
	ItemEvent
	CommandIndex int
	Command      string
}

// ShellOutputDeltaEvent adds to the output of a command that the endpoint runs.
// Schema: ResponseShellCallOutputContentDeltaStreamingEvent.
type ShellOutputDeltaEvent struct {
	ItemEvent
	CommandIndex int
	Delta        *ShellOutputDelta
}

// ShellOutputDoneEvent has the whole output of a command that the endpoint ran.
// Schema: ResponseShellCallOutputContentDoneStreamingEvent.
type ShellOutputDoneEvent struct {
	ItemEvent
	CommandIndex int
	// Output is written as [] when nil.
	Output []ShellOutput
}

// EventType returns [EventShellCommandAdded].
func (*ShellCommandAddedEvent) EventType() EventType { return EventShellCommandAdded }

// EventType returns [EventShellCommandDelta].
func (*ShellCommandDeltaEvent) EventType() EventType { return EventShellCommandDelta }

// EventType returns [EventShellCommandDone].
func (*ShellCommandDoneEvent) EventType() EventType { return EventShellCommandDone }

// EventType returns [EventShellOutputDelta].
func (*ShellOutputDeltaEvent) EventType() EventType { return EventShellOutputDelta }

// EventType returns [EventShellOutputDone].
func (*ShellOutputDoneEvent) EventType() EventType { return EventShellOutputDone }

func (e *ShellCommandAddedEvent) fields(c *codec) {
	e.place(c, EventShellCommandAdded)
	c.index("command_index", &e.CommandIndex)
	c.text("command", &e.Command, &e.Extra)
	c.end(&e.Extra)
}

func (e *ShellCommandDeltaEvent) fields(c *codec) {
	e.place(c, EventShellCommandDelta)
	c.index("command_index", &e.CommandIndex)
	c.text("delta", &e.Delta, &e.Extra)
	c.optString("obfuscation", &e.Obfuscation)
	c.end(&e.Extra)
}

func (e *ShellCommandDoneEvent) fields(c *codec) {
	e.place(c, EventShellCommandDone)
	c.index("command_index", &e.CommandIndex)
	c.text("command", &e.Command, &e.Extra)
	c.end(&e.Extra)
}

func (e *ShellOutputDeltaEvent) fields(c *codec) {
	e.place(c, EventShellOutputDelta)
	c.index("command_index", &e.CommandIndex)
	optRecord(c, "delta", &e.Delta)
	c.end(&e.Extra)
}

func (e *ShellOutputDoneEvent) fields(c *codec) {
	e.place(c, EventShellOutputDone)
	c.index("command_index", &e.CommandIndex)
	c.orEmpty("output", "[]", e.Output == nil, &e.Extra)
	recordList(c, "output", &e.Output)
	c.end(&e.Extra)
}
