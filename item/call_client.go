// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"github.com/antiphon-go/antiphon/internal/record"
)

// LocalShellCall asks the client to run a command. Current endpoints send
// [ShellCall] instead. Schema: LocalShellToolCall.
type LocalShellCall struct {
	ID     string
	CallID string
	Action *LocalShellAction
	Status string
	Extra  Extra
}

// LocalShellAction is the command of a [LocalShellCall], as a list of arguments.
// Schema: LocalShellExecAction.
type LocalShellAction struct {
	// Command is written as [] if nil.
	Command          []string
	Env              map[string]string
	TimeoutMS        *int64 // milliseconds
	User             string
	WorkingDirectory string
	Extra            Extra
}

// LocalShellCallOutput is the answer to a [LocalShellCall]. ID is the id of the
// call. Schema: LocalShellToolCallOutput.
type LocalShellCallOutput struct {
	ID     string
	Output string
	Status string
	Extra  Extra
}

// ShellCall asks for shell commands to be run. The client runs them, unless
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

// ShellAction holds the commands of a [ShellCall] and their limits. Schemas:
// FunctionShellAction, FunctionShellActionParam.
type ShellAction struct {
	// Commands is written as [] if nil.
	Commands        []string
	TimeoutMS       *int64 // milliseconds
	MaxOutputLength *int64 // in characters, of the output sent back
	Extra           Extra
}

// ShellCallOutput is the answer to a [ShellCall], with one output per command.
// Schemas: FunctionShellCallOutput, FunctionShellCallOutputItemParam.
type ShellCallOutput struct {
	ID     string
	CallID string
	Caller *Caller
	// Output is written as [] if nil.
	Output []ShellOutput
	// MaxOutputLength repeats the limit in the call's action.
	MaxOutputLength *int64
	Status          string
	CreatedBy       string
	Extra           Extra
}

// ShellOutput is the output of one command and how it ended. Schemas:
// FunctionShellCallOutputContent, FunctionShellCallOutputContentParam.
type ShellOutput struct {
	Stdout    string
	Stderr    string
	Outcome   *ShellOutcome
	CreatedBy string
	Extra     Extra
}

// ShellOutcome says how a command ended; see [ShellExit] and [ShellTimeout].
// Schemas: FunctionShellCallOutputExitOutcome,
// FunctionShellCallOutputTimeoutOutcome.
type ShellOutcome struct {
	// Type is "exit" or "timeout".
	Type     string
	ExitCode *int64
	Extra    Extra
}

// ShellExit returns the outcome of a command that ended by itself with an exit code.
func ShellExit(code int) *ShellOutcome {
	return &ShellOutcome{Type: "exit", ExitCode: new(int64(code))}
}

// ShellTimeout returns the outcome of a command that was stopped at its time limit.
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
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeLocalShellCall))
	c.OptString("status", &v.Status)
	record.Opt(c, "action", &v.Action, (*LocalShellAction).fields)
	c.NeedText("call_id", &v.CallID)
}

func (v *LocalShellAction) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Kind("exec")
	c.OrEmpty("command", "[]", v.Command == nil)
	c.OptStrings("command", &v.Command)
	c.OrEmpty("env", "{}", v.Env == nil)
	c.StringMap("env", &v.Env)
	c.OptInt("timeout_ms", &v.TimeoutMS)
	c.OptString("user", &v.User)
	c.OptString("working_directory", &v.WorkingDirectory)
}

func (v *LocalShellCallOutput) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeLocalShellCallOutput))
	c.OptString("status", &v.Status)
	c.Text("output", &v.Output)
}

func (v *ShellCall) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeShellCall))
	c.OptString("status", &v.Status)
	record.Opt(c, "action", &v.Action, (*ShellAction).fields)
	c.NeedText("call_id", &v.CallID)
	record.Opt(c, "caller", &v.Caller, (*Caller).fields)
	record.Opt(c, "environment", &v.Environment, (*Environment).fields)
	c.OptString("created_by", &v.CreatedBy)
}

func (v *ShellAction) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OrEmpty("commands", "[]", v.Commands == nil)
	c.OptStrings("commands", &v.Commands)
	c.OptInt("max_output_length", &v.MaxOutputLength)
	c.OptInt("timeout_ms", &v.TimeoutMS)
}

func (v *ShellCallOutput) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeShellCallOutput))
	c.OptString("status", &v.Status)
	c.NeedText("call_id", &v.CallID)
	record.Opt(c, "caller", &v.Caller, (*Caller).fields)
	c.OptInt("max_output_length", &v.MaxOutputLength)
	c.OrEmpty("output", "[]", v.Output == nil)
	record.List(c, "output", &v.Output, (*ShellOutput).fields)
	c.OptString("created_by", &v.CreatedBy)
}

func (v *ShellOutput) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("stdout", &v.Stdout)
	c.Text("stderr", &v.Stderr)
	record.Opt(c, "outcome", &v.Outcome, (*ShellOutcome).fields)
	c.OptString("created_by", &v.CreatedBy)
}

func (v *ShellOutcome) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptInt("exit_code", &v.ExitCode)
}

// ApplyPatchCall asks the client to change one file. Schemas: ApplyPatchToolCall,
// ApplyPatchToolCallItemParam.
type ApplyPatchCall struct {
	ID        string
	CallID    string
	Caller    *Caller
	Operation *PatchOperation
	Status    string
	CreatedBy string
	Extra     Extra
}

// The types of a [PatchOperation].
const (
	PatchCreate = "create_file"
	PatchUpdate = "update_file"
	PatchDelete = "delete_file"
)

// PatchOperation is a change to a file: created or updated with a Diff, or deleted.
// Schemas: ApplyPatchCreateFileOperation, ApplyPatchUpdateFileOperation,
// ApplyPatchDeleteFileOperation, and the same names with Param.
type PatchOperation struct {
	// Type is [PatchCreate], [PatchUpdate] or [PatchDelete].
	Type  string
	Path  string
	Diff  string
	Extra Extra
}

// ApplyPatchCallOutput is the answer to an [ApplyPatchCall]. Status is completed or
// failed. Output is text for the model, such as the reason for a failure. Schemas:
// ApplyPatchToolCallOutput, ApplyPatchToolCallOutputItemParam.
type ApplyPatchCallOutput struct {
	ID        string
	CallID    string
	Caller    *Caller
	Output    string
	Status    string
	CreatedBy string
	Extra     Extra
}

// ItemType returns [TypeApplyPatchCall].
func (*ApplyPatchCall) ItemType() Type { return TypeApplyPatchCall }

// ItemType returns [TypeApplyPatchCallOutput].
func (*ApplyPatchCallOutput) ItemType() Type { return TypeApplyPatchCallOutput }

func (v *ApplyPatchCall) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeApplyPatchCall))
	c.OptString("status", &v.Status)
	c.NeedText("call_id", &v.CallID)
	record.Opt(c, "caller", &v.Caller, (*Caller).fields)
	record.Opt(c, "operation", &v.Operation, (*PatchOperation).fields)
	c.OptString("created_by", &v.CreatedBy)
}

func (v *PatchOperation) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.StrictText("type", &v.Type)
	c.StrictText("diff", &v.Diff)
	c.NeedText("path", &v.Path)
	// The schema requires a diff for creating and updating, even an empty one.
	if v.Diff == "" && v.Type != PatchDelete {
		c.OrEmpty("diff", `""`, true)
	}
}

func (v *ApplyPatchCallOutput) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeApplyPatchCallOutput))
	c.OptString("status", &v.Status)
	c.NeedText("call_id", &v.CallID)
	record.Opt(c, "caller", &v.Caller, (*Caller).fields)
	c.OptString("output", &v.Output)
	c.OptString("created_by", &v.CreatedBy)
}

// ComputerCall asks the client to operate a computer. It has one Action, or several
// Actions to perform in order. Schema: ComputerToolCall.
type ComputerCall struct {
	ID      string
	CallID  string
	Action  ComputerAction
	Actions []ComputerAction
	// PendingSafetyChecks must be acknowledged in the output. It is written as [] if
	// nil.
	PendingSafetyChecks []SafetyCheck
	Status              string
	Extra               Extra
}

// SafetyCheck is a warning that the client must acknowledge before it acts. Schema:
// ComputerCallSafetyCheckParam.
type SafetyCheck struct {
	ID      string
	Code    string
	Message string
	Extra   Extra
}

// ComputerCallOutput is the answer to a [ComputerCall]: a screenshot. Schemas:
// ComputerCallOutputItemParam, ComputerToolCallOutputResource.
type ComputerCallOutput struct {
	ID                       string
	CallID                   string
	Output                   *ComputerScreenshot
	AcknowledgedSafetyChecks []SafetyCheck
	Status                   string
	CreatedBy                string
	Extra                    Extra
}

// ItemType returns [TypeComputerCall].
func (*ComputerCall) ItemType() Type { return TypeComputerCall }

// ItemType returns [TypeComputerCallOutput].
func (*ComputerCallOutput) ItemType() Type { return TypeComputerCallOutput }

func (v *ComputerCall) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeComputerCall))
	c.OptString("status", &v.Status)
	actionValues.One(c, "action", &v.Action, v.Action != nil)
	actionValues.Objects(c, "actions", &v.Actions)
	c.NeedText("call_id", &v.CallID)
	c.OrEmpty("pending_safety_checks", "[]", v.PendingSafetyChecks == nil)
	record.List(c, "pending_safety_checks", &v.PendingSafetyChecks, (*SafetyCheck).fields)
}

func (v *SafetyCheck) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
	c.OptString("code", &v.Code)
	c.OptString("message", &v.Message)
}

func (v *ComputerCallOutput) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeComputerCallOutput))
	c.OptString("status", &v.Status)
	c.NeedText("call_id", &v.CallID)
	record.Opt(c, "output", &v.Output, (*ComputerScreenshot).fields)
	record.List(c, "acknowledged_safety_checks", &v.AcknowledgedSafetyChecks, (*SafetyCheck).fields)
	c.OptString("created_by", &v.CreatedBy)
}

// ComputerAction is one action on a computer: [*ClickAction], [*DoubleClickAction],
// [*DragAction], [*KeyPressAction], [*MoveAction], [*ScreenshotAction],
// [*ScrollAction], [*TypeAction], [*WaitAction] or [*UnknownAction]. Coordinates are
// in pixels from the upper left corner. Keys are held down during the action.
// Schema: ComputerAction.
type ComputerAction interface {
	// ActionType returns the type member.
	ActionType() string
	fielder
}

// ClickAction clicks a button. Button is left, right, wheel, back or forward.
// Schema: ClickParam.
type ClickAction struct {
	Button string
	X, Y   int64
	Keys   []string
	Extra  Extra
}

// DoubleClickAction double-clicks the left button. Schema: DoubleClickAction.
type DoubleClickAction struct {
	X, Y  int64
	Keys  []string
	Extra Extra
}

// DragAction moves along Path while holding the left button. Schema: DragParam.
type DragAction struct {
	Path  []Coordinate
	Keys  []string
	Extra Extra
}

// Coordinate is a position on the screen. Schema: CoordParam.
type Coordinate struct {
	X, Y  int64
	Extra Extra
}

// KeyPressAction presses Keys at the same time. Schema: KeyPressAction.
type KeyPressAction struct {
	Keys  []string
	Extra Extra
}

// MoveAction moves the pointer. Schema: MoveParam.
type MoveAction struct {
	X, Y  int64
	Keys  []string
	Extra Extra
}

// ScreenshotAction only asks for a screenshot. Schema: ScreenshotParam.
type ScreenshotAction struct{ Extra Extra }

// ScrollAction scrolls by ScrollX and ScrollY at position X, Y. Schema: ScrollParam.
type ScrollAction struct {
	X, Y             int64
	ScrollX, ScrollY int64
	Keys             []string
	Extra            Extra
}

// TypeAction types Text. Schema: TypeParam.
type TypeAction struct {
	Text  string
	Extra Extra
}

// WaitAction waits for the screen to change. Schema: WaitParam.
type WaitAction struct{ Extra Extra }

// UnknownAction is an action of a type that this package does not know, kept byte
// for byte.
type UnknownAction struct{ Raw JSON }

// ActionType returns "click".
func (*ClickAction) ActionType() string { return "click" }

// ActionType returns "double_click".
func (*DoubleClickAction) ActionType() string { return "double_click" }

// ActionType returns "drag".
func (*DragAction) ActionType() string { return "drag" }

// ActionType returns "keypress".
func (*KeyPressAction) ActionType() string { return "keypress" }

// ActionType returns "move".
func (*MoveAction) ActionType() string { return "move" }

// ActionType returns "screenshot".
func (*ScreenshotAction) ActionType() string { return "screenshot" }

// ActionType returns "scroll".
func (*ScrollAction) ActionType() string { return "scroll" }

// ActionType returns "type".
func (*TypeAction) ActionType() string { return "type" }

// ActionType returns "wait".
func (*WaitAction) ActionType() string { return "wait" }

// ActionType returns the type member, or "".
func (a *UnknownAction) ActionType() string { return typeOfRaw(a.Raw) }

// newAction returns an empty struct for an action of the type, and whether there is
// one.
func newAction(typ string) (ComputerAction, bool) {
	switch typ {
	case "click":
		return new(ClickAction), true
	case "double_click":
		return new(DoubleClickAction), true
	case "drag":
		return new(DragAction), true
	case "keypress":
		return new(KeyPressAction), true
	case "move":
		return new(MoveAction), true
	case "screenshot":
		return new(ScreenshotAction), true
	case "scroll":
		return new(ScrollAction), true
	case "type":
		return new(TypeAction), true
	case "wait":
		return new(WaitAction), true
	}
	return nil, false
}

// parseAction reads an action from validated text.
func parseAction(s string) (ComputerAction, error) {
	return parseUnion(s, "an action", newAction, func(raw JSON) ComputerAction { return &UnknownAction{Raw: raw} })
}

// actionValues reads and writes actions in a member of a record.
var actionValues = record.Values[ComputerAction]{Read: parseAction, Append: appendUnion[ComputerAction]}

func (a *ClickAction) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("click")
	c.NeedText("button", &a.Button)
	place(c, &a.X, &a.Y)
	c.OptStrings("keys", &a.Keys)
}

func (a *DoubleClickAction) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("double_click")
	place(c, &a.X, &a.Y)
	c.OrEmpty("keys", "null", a.Keys == nil)
	c.OptStrings("keys", &a.Keys)
}

func (a *DragAction) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("drag")
	c.OrEmpty("path", "[]", a.Path == nil)
	record.List(c, "path", &a.Path, (*Coordinate).fields)
	c.OptStrings("keys", &a.Keys)
}

func (p *Coordinate) fields(c *codec) {
	record.Keep(c, &p.Extra)
	place(c, &p.X, &p.Y)
}

func (a *KeyPressAction) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("keypress")
	c.OrEmpty("keys", "[]", a.Keys == nil)
	c.OptStrings("keys", &a.Keys)
}

func (a *MoveAction) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("move")
	place(c, &a.X, &a.Y)
	c.OptStrings("keys", &a.Keys)
}

func (a *ScreenshotAction) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("screenshot")
}

func (a *ScrollAction) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("scroll")
	place(c, &a.X, &a.Y)
	c.NeedNumber("scroll_x", &a.ScrollX)
	c.NeedNumber("scroll_y", &a.ScrollY)
	c.OptStrings("keys", &a.Keys)
}

func (a *TypeAction) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("type")
	c.NeedText("text", &a.Text)
}

func (a *WaitAction) fields(c *codec) {
	record.Keep(c, &a.Extra)
	c.Kind("wait")
}

// fields is never called: an unknown action is written as its raw text.
func (a *UnknownAction) fields(*codec) {}

func (a *UnknownAction) rawJSON() JSON { return a.Raw }

// place is a pair of coordinates.
func place(c *codec, x, y *int64) {
	c.NeedNumber("x", x)
	c.NeedNumber("y", y)
}
