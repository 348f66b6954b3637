// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// Reasoning is a reasoning item: summaries, content where the endpoint shows
// it, and the encrypted form that a stateless caller sends back. Schema:
// ReasoningItem.
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
	c.optString("id", &v.ID)
	c.typ(string(TypeReasoning))
	c.optString("status", &v.Status)
	c.optParts("content", &v.Content)
	c.optString("encrypted_content", &v.EncryptedContent)
	c.orEmpty("summary", "[]", v.Summary == nil, &v.Extra)
	c.optParts("summary", &v.Summary)
	c.end(&v.Extra)
}

// Unknown is an item of a type that this version has no struct for. Raw is its
// JSON; to change one, change the text.
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

// fields is never reached: an unknown item is its raw text.
func (u *Unknown) fields(*codec) {}
