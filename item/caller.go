// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// The types of a [Caller]. Schema: CallableToolAllowedCaller has the same two
// as direct and programmatic.
const (
	CallerDirect  = "direct"
	CallerProgram = "program"
)

// Caller says who made a call: the model itself, or a program that it wrote,
// see [Program]. It goes back with the call and its output. Schemas:
// ToolCallCaller, ToolCallCallerParam.
type Caller struct {
	// Type is [CallerDirect] or [CallerProgram].
	Type string
	// CallerID is the call id of the program.
	CallerID string
	Extra    Extra
}

func (v *Caller) fields(c *codec) {
	c.text("type", &v.Type, &v.Extra)
	c.optString("caller_id", &v.CallerID)
	c.end(&v.Extra)
}
