// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"fmt"
	"strings"
)

// Role says who speaks in a message. Roles that this version does not know are
// kept. Schema: EasyInputMessage.role.
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

// Message is a message of any role, in the short form with a text or the long
// form with parts. A message received without its type member has it after
// [New]. Schemas: EasyInputMessage, InputMessage, OutputMessage.
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
	c.optString("id", &m.ID)
	c.typOrNull(string(TypeMessage), &m.Extra)
	c.optString("status", &m.Status)
	c.content("content", &m.Content, &m.Extra)
	c.optString("phase", &m.Phase)
	c.needText("role", (*string)(&m.Role), &m.Extra)
	c.end(&m.Extra)
}

// User returns a user message with one text part. As in the other short
// constructors, bytes that are not UTF-8 become U+FFFD; [New] refuses them.
func User(s string) Item { return message(RoleUser, Parts(&InputText{Text: clean(s)})) }

// UserParts returns a user message with the parts in their order. An image
// without a detail gets [DetailAuto], which messages require.
func UserParts(parts ...Part) (Item, error) {
	if len(parts) == 0 {
		return Item{}, &ShapeError{Type: TypeMessage, Problem: "no parts: a message says something"}
	}
	own := make([]Part, len(parts))
	for i, p := range parts {
		if img, ok := p.(*InputImage); ok && img != nil && img.ImageURL == "" && img.FileID == "" && len(img.Extra) == 0 {
			return Item{}, &ShapeError{Type: TypeMessage, Problem: fmt.Sprintf("part %d is an image without a URL, data or file id", i+1)}
		}
		own[i] = withDetail(p)
	}
	return New(&Message{Role: RoleUser, Content: Parts(own...)})
}

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

// Assistant returns an assistant message in the short form, with no id: what
// an imported conversation knows of a reply.
func Assistant(s string) Item { return message(RoleAssistant, Text(clean(s))) }

func message(r Role, c Content) Item { return Must(&Message{Role: r, Content: c}) }

// clean makes s valid UTF-8.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
