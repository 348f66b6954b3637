// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"fmt"

	"github.com/antiphon-go/antiphon/internal/nils"

	"github.com/antiphon-go/antiphon/internal/record"
)

// Role is the author of a message. Unknown roles are kept. Schema:
// EasyInputMessage.role.
type Role string

// The roles of the schema.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
)

// The phases of a [Message]. Schema: MessagePhase.
const (
	PhaseCommentary  = "commentary"
	PhaseFinalAnswer = "final_answer"
)

// Message is a message of any role, in the short form with a string or the long form
// with parts; [Content.Display] is its text. A message that was received without its
// type member gets one from [New]. Schemas: EasyInputMessage, InputMessage,
// OutputMessage.
type Message struct {
	ID      string
	Role    Role
	Content Content
	// Status is in_progress, completed, incomplete or "".
	Status string
	// Phase is [PhaseCommentary], [PhaseFinalAnswer] or "".
	Phase string
	Extra Extra
}

// ItemType returns [TypeMessage].
func (*Message) ItemType() Type { return TypeMessage }

func (m *Message) fields(c *codec) {
	record.Keep(c, &m.Extra)
	c.OptString("id", &m.ID)
	c.TypeOrNull(string(TypeMessage))
	c.OptString("status", &m.Status)
	contentMember(c, "content", &m.Content)
	c.OptString("phase", &m.Phase)
	c.NeedText("role", (*string)(&m.Role))
}

// User returns a user message with one text part. Like the other short constructors
// it replaces invalid UTF-8 with U+FFFD, where [New] would return an error.
func User(s string) Item { return message(RoleUser, Parts(&InputText{Text: clean(s)})) }

// UserParts returns a user message with the given parts: texts, images, files, or parts of
// types that this package does not know. An image without a detail
// gets [DetailAuto], because the detail is required in messages.
func UserParts(parts ...Part) (Item, error) {
	if len(parts) == 0 {
		return Item{}, &ShapeError{Type: TypeMessage, Problem: "no parts: a message says something"}
	}
	// The caller's parts must not change, so details are added to copies.
	own := make([]Part, len(parts))
	for i, p := range parts {
		if problem := unfitPart(p); problem != "" {
			return Item{}, &ShapeError{Type: TypeMessage, Problem: fmt.Sprintf("part %d is %s", i+1, problem)}
		}
		own[i] = withDetail(p)
	}
	return New(&Message{Role: RoleUser, Content: Parts(own...)})
}

// unfitPart says what a part is that endpoints refuse in a user message, or returns "".
func unfitPart(p Part) string {
	if nils.Is(p) {
		return "" // [New] says so
	}
	switch p := p.(type) {
	case *InputImage:
		if p.ImageURL == "" && p.FileID == "" && len(p.Extra) == 0 {
			return "an image without a URL, data or file id"
		}
	case *InputFile:
		if p.FileData == "" && p.FileURL == "" && p.FileID == "" && len(p.Extra) == 0 {
			return "a file without data, a URL or a file id"
		}
	case *OutputText, *Refusal, *ReasoningText, *SummaryText:
		return fmt.Sprintf("a %T, which only a model says: a user's text is an *item.InputText", p)
	}
	return ""
}

// withDetail returns the part, or a copy with a detail if it is an image without
// one.
func withDetail(p Part) Part {
	img, ok := p.(*InputImage)
	if !ok || img == nil || img.Detail != "" {
		return p
	}
	if _, given := img.Extra.Get("detail"); given {
		return p
	}
	cp := *img
	cp.Detail = DetailAuto
	return &cp
}

// System returns a system message.
func System(s string) Item { return message(RoleSystem, Parts(&InputText{Text: clean(s)})) }

// Developer returns a developer message.
func Developer(s string) Item { return message(RoleDeveloper, Parts(&InputText{Text: clean(s)})) }

// Assistant returns an assistant message in the short form without an id. Use it to
// import a conversation, where only the text of a reply is known.
func Assistant(s string) Item { return message(RoleAssistant, Text(clean(s))) }

// message returns a message with valid content, which cannot fail to encode.
func message(r Role, c Content) Item { return Must(&Message{Role: r, Content: c}) }

// Reasoning is a reasoning item: summaries, the content if the endpoint shows it,
// and the encrypted form, which a client without stored responses sends back.
// Schema: ReasoningItem.
type Reasoning struct {
	ID               string
	Summary          []Part
	Content          []Part
	EncryptedContent string
	Status           string
	Extra            Extra
}

// ItemType returns [TypeReasoning].
func (*Reasoning) ItemType() Type { return TypeReasoning }

func (v *Reasoning) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeReasoning))
	c.OptString("status", &v.Status)
	partValues.List(c, "content", &v.Content)
	c.OptString("encrypted_content", &v.EncryptedContent)
	c.OrEmpty("summary", "[]", v.Summary == nil)
	partValues.List(c, "summary", &v.Summary)
}

// Unknown is an item of a type that this package has no struct for. Raw is its JSON.
// To change the item, change the text.
type Unknown struct {
	Raw JSON
}

// ItemType returns the type member, or "".
func (u *Unknown) ItemType() Type {
	it, err := ParseString(string(u.Raw))
	if err != nil {
		return ""
	}
	return it.Type()
}

// fields is never called: an unknown item is written as its raw text.
func (u *Unknown) fields(*codec) {}

// Compaction replaces a part of a conversation that the endpoint compacted. Only the
// endpoint can read its contents. Schemas: CompactionBody,
// CompactionSummaryItemParam.
type Compaction struct {
	ID               string
	EncryptedContent string
	CreatedBy        string
	Extra            Extra
}

// CompactionTrigger asks the endpoint to compact the items before it. Schema:
// CompactionTriggerItemParam.
type CompactionTrigger struct{ Extra Extra }

// ItemReference refers to an item stored by the endpoint. Schema:
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
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeCompaction))
	c.Text("encrypted_content", &v.EncryptedContent)
	c.OptString("created_by", &v.CreatedBy)
}

func (v *CompactionTrigger) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Type(string(TypeCompactionTrigger))
}

func (v *ItemReference) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Kind(string(TypeItemReference))
	c.Text("id", &v.ID)
}
