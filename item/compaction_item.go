// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// Compaction stands for the part of a conversation that the endpoint put
// together. What it holds is for the endpoint alone. Schemas: CompactionBody,
// CompactionSummaryItemParam.
type Compaction struct {
	ID               string
	EncryptedContent string
	CreatedBy        string
	Extra            Extra
}

// CompactionTrigger asks the endpoint to compact what stands before it. Schema:
// CompactionTriggerItemParam.
type CompactionTrigger struct{ Extra Extra }

// ItemReference names an item that the endpoint has stored. Schema:
// ItemReferenceParam.
type ItemReference struct {
	ID    string
	Extra Extra
}

// ItemType returns [TypeCompaction].
func (*Compaction) ItemType() Type { return TypeCompaction }

// ItemType returns [TypeCompactionTrigger].
func (*CompactionTrigger) ItemType() Type { return TypeCompactionTrigger }

// ItemType returns [TypeItemReference].
func (*ItemReference) ItemType() Type { return TypeItemReference }

func (v *Compaction) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeCompaction))
	c.text("encrypted_content", &v.EncryptedContent, &v.Extra)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}

func (v *CompactionTrigger) fields(c *codec) {
	c.typ(string(TypeCompactionTrigger))
	c.rest(&v.Extra)
}

func (v *ItemReference) fields(c *codec) {
	c.kind(string(TypeItemReference), &v.Extra)
	c.text("id", &v.ID, &v.Extra)
	c.end(&v.Extra)
}
