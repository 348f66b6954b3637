// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ApplyPatchCall asks the client to change one file. Schemas:
// ApplyPatchToolCall, ApplyPatchToolCallItemParam.
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

// PatchOperation is the change: a file created or updated by a Diff, or
// deleted. Schemas: ApplyPatchCreateFileOperation,
// ApplyPatchUpdateFileOperation, ApplyPatchDeleteFileOperation, and the same
// with Param.
type PatchOperation struct {
	// Type is [PatchCreate], [PatchUpdate] or [PatchDelete].
	Type  string
	Path  string
	Diff  string
	Extra Extra
}

// ApplyPatchCallOutput answers an [ApplyPatchCall]. Status is completed or
// failed, Output a text for the model, such as why it failed. Schemas:
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
	c.optString("id", &v.ID)
	c.typ(string(TypeApplyPatchCall))
	c.optString("status", &v.Status)
	c.needText("call_id", &v.CallID, &v.Extra)
	optRecord(c, "caller", &v.Caller)
	optRecord(c, "operation", &v.Operation)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}

func (v *PatchOperation) fields(c *codec) {
	c.strictText("type", &v.Type)
	c.strictText("diff", &v.Diff)
	c.needText("path", &v.Path, &v.Extra)
	if v.Diff == "" && v.Type != PatchDelete {
		c.orEmpty("diff", `""`, true, &v.Extra)
	}
	c.end(&v.Extra)
}

func (v *ApplyPatchCallOutput) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeApplyPatchCallOutput))
	c.optString("status", &v.Status)
	c.needText("call_id", &v.CallID, &v.Extra)
	optRecord(c, "caller", &v.Caller)
	c.optString("output", &v.Output)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}
