// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ComputerCall asks the client to act on a computer: one Action, or a list of
// Actions to do in order. Schema: ComputerToolCall.
type ComputerCall struct {
	ID      string
	CallID  string
	Action  ComputerAction
	Actions []ComputerAction
	// PendingSafetyChecks are to be acknowledged in the output. It is written
	// as [] when nil.
	PendingSafetyChecks []SafetyCheck
	Status              string
	Extra               Extra
}

// SafetyCheck is a warning that the client acknowledges before it acts. Schema:
// ComputerCallSafetyCheckParam.
type SafetyCheck struct {
	ID      string
	Code    string
	Message string
	Extra   Extra
}

// ComputerCallOutput answers a [ComputerCall] with a picture of the screen.
// Schemas: ComputerCallOutputItemParam, ComputerToolCallOutputResource.
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
	c.optString("id", &v.ID)
	c.typ(string(TypeComputerCall))
	c.optString("status", &v.Status)
	optUnion(c, "action", &v.Action, parseAction)
	unionList(c, "actions", &v.Actions, parseAction)
	c.needText("call_id", &v.CallID, &v.Extra)
	c.orEmpty("pending_safety_checks", "[]", v.PendingSafetyChecks == nil, &v.Extra)
	recordList(c, "pending_safety_checks", &v.PendingSafetyChecks)
	c.end(&v.Extra)
}

func (v *SafetyCheck) fields(c *codec) {
	c.text("id", &v.ID, &v.Extra)
	c.optString("code", &v.Code)
	c.optString("message", &v.Message)
	c.end(&v.Extra)
}

func (v *ComputerCallOutput) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeComputerCallOutput))
	c.optString("status", &v.Status)
	c.needText("call_id", &v.CallID, &v.Extra)
	optRecord(c, "output", &v.Output)
	recordList(c, "acknowledged_safety_checks", &v.AcknowledgedSafetyChecks)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}
