// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// LocalShellCall asks the client to run a command. Endpoints of today send
// [ShellCall]. Schema: LocalShellToolCall.
type LocalShellCall struct {
	ID     string
	CallID string
	Action *LocalShellAction
	Status string
	Extra  Extra
}

// LocalShellAction is the command of a [LocalShellCall], as an argument list.
// Schema: LocalShellExecAction.
type LocalShellAction struct {
	// Command is written as [] when nil.
	Command          []string
	Env              map[string]string
	TimeoutMS        *int64 // milliseconds
	User             string
	WorkingDirectory string
	Extra            Extra
}

// LocalShellCallOutput answers a [LocalShellCall]. ID is the id of the call.
// Schema: LocalShellToolCallOutput.
type LocalShellCallOutput struct {
	ID     string
	Output string
	Status string
	Extra  Extra
}

// ShellCall asks for shell commands to be run: by the client, unless its
// Environment is a container of the endpoint. Schemas: FunctionShellCall,
// FunctionShellCallItemParam.
type ShellCall struct {
	ID          string
	CallID      string
	Caller      *Caller
	Action      *ShellAction
	Environment *Environment
	Status      string
	CreatedBy   string
	Extra       Extra
}

// ShellAction is what a [ShellCall] wants run, and within which limits.
// Schemas: FunctionShellAction, FunctionShellActionParam.
type ShellAction struct {
	// Commands is written as [] when nil.
	Commands        []string
	TimeoutMS       *int64 // milliseconds
	MaxOutputLength *int64 // of the output sent back, in characters
	Extra           Extra
}

// ShellCallOutput answers a [ShellCall], one output for each command. Schemas:
// FunctionShellCallOutput, FunctionShellCallOutputItemParam.
type ShellCallOutput struct {
	ID     string
	CallID string
	Caller *Caller
	// Output is written as [] when nil.
	Output []ShellOutput
	// MaxOutputLength repeats the limit of the call's action.
	MaxOutputLength *int64
	Status          string
	CreatedBy       string
	Extra           Extra
}

// ShellOutput is what one command wrote and how it ended. Schemas:
// FunctionShellCallOutputContent, FunctionShellCallOutputContentParam.
type ShellOutput struct {
	Stdout    string
	Stderr    string
	Outcome   *ShellOutcome
	CreatedBy string
	Extra     Extra
}

// ShellOutcome is how a command ended, see [ShellExit] and [ShellTimeout].
// Schemas: FunctionShellCallOutputExitOutcome,
// FunctionShellCallOutputTimeoutOutcome.
type ShellOutcome struct {
	// Type is "exit" or "timeout".
	Type     string
	ExitCode *int64
	Extra    Extra
}

// ShellExit is the outcome of a command that was not stopped.
func ShellExit(code int) *ShellOutcome {
	return &ShellOutcome{Type: "exit", ExitCode: new(int64(code))}
}

// ShellTimeout is the outcome of a command that was ended at its time limit.
func ShellTimeout() *ShellOutcome { return &ShellOutcome{Type: "timeout"} }

// ItemType returns [TypeLocalShellCall].
func (*LocalShellCall) ItemType() Type { return TypeLocalShellCall }

// ItemType returns [TypeLocalShellCallOutput].
func (*LocalShellCallOutput) ItemType() Type { return TypeLocalShellCallOutput }

// ItemType returns [TypeShellCall].
func (*ShellCall) ItemType() Type { return TypeShellCall }

// ItemType returns [TypeShellCallOutput].
func (*ShellCallOutput) ItemType() Type { return TypeShellCallOutput }

func (v *LocalShellCall) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeLocalShellCall))
	c.optString("status", &v.Status)
	optRecord(c, "action", &v.Action)
	c.needText("call_id", &v.CallID, &v.Extra)
	c.end(&v.Extra)
}

func (v *LocalShellAction) fields(c *codec) {
	c.kind("exec", &v.Extra)
	c.orEmpty("command", "[]", v.Command == nil, &v.Extra)
	c.optStrings("command", &v.Command)
	c.orEmpty("env", "{}", v.Env == nil, &v.Extra)
	c.stringMap("env", &v.Env)
	c.optInt("timeout_ms", &v.TimeoutMS)
	c.optString("user", &v.User)
	c.optString("working_directory", &v.WorkingDirectory)
	c.end(&v.Extra)
}

func (v *LocalShellCallOutput) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeLocalShellCallOutput))
	c.optString("status", &v.Status)
	c.text("output", &v.Output, &v.Extra)
	c.end(&v.Extra)
}

func (v *ShellCall) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeShellCall))
	c.optString("status", &v.Status)
	optRecord(c, "action", &v.Action)
	c.needText("call_id", &v.CallID, &v.Extra)
	optRecord(c, "caller", &v.Caller)
	optRecord(c, "environment", &v.Environment)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}

func (v *ShellAction) fields(c *codec) {
	c.orEmpty("commands", "[]", v.Commands == nil, &v.Extra)
	c.optStrings("commands", &v.Commands)
	c.optInt("max_output_length", &v.MaxOutputLength)
	c.optInt("timeout_ms", &v.TimeoutMS)
	c.end(&v.Extra)
}

func (v *ShellCallOutput) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeShellCallOutput))
	c.optString("status", &v.Status)
	c.needText("call_id", &v.CallID, &v.Extra)
	optRecord(c, "caller", &v.Caller)
	c.optInt("max_output_length", &v.MaxOutputLength)
	c.orEmpty("output", "[]", v.Output == nil, &v.Extra)
	recordList(c, "output", &v.Output)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}

func (v *ShellOutput) fields(c *codec) {
	c.text("stdout", &v.Stdout, &v.Extra)
	c.text("stderr", &v.Stderr, &v.Extra)
	optRecord(c, "outcome", &v.Outcome)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}

func (v *ShellOutcome) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optInt("exit_code", &v.ExitCode)
	c.rest(&v.Extra)
}
