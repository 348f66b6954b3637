// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// Conversation is a list of items that the endpoint stores. Schema:
// ConversationResource.
type Conversation struct {
	ID        string
	CreatedAt int64 // seconds since 1970
	// Metadata is written as {} when absent.
	Metadata JSON
	Extra    Extra
}

// CreateConversation is the body of POST /conversations. Schema:
// CreateConversationBody.
type CreateConversation struct {
	Items    *List
	Metadata JSON
	Extra    Extra
}

// UpdateConversation is the body of POST /conversations/{id}. Schema:
// UpdateConversationBody.
type UpdateConversation struct {
	// Metadata is written as null when absent.
	Metadata JSON
	Extra    Extra
}

// AddItems is the body of POST /conversations/{id}/items.
type AddItems struct {
	// Items is written as [] when nil.
	Items *List
	Extra Extra
}

// ItemPage is one page of a list of items: the input of a response, or a
// conversation. Schemas: ResponseItemList, ConversationItemList.
type ItemPage struct {
	// Data is written as [] when nil.
	Data    []Item
	FirstID string
	LastID  string
	HasMore bool
	Extra   Extra
}

// Deleted confirms a deletion. Schema: DeletedConversationResource; the answer
// for a response has no schema and the same members.
type Deleted struct {
	ID string
	// Object is "conversation.deleted" when empty.
	Object  string
	Deleted bool
	Extra   Extra
}

func (v *Conversation) fields(c *codec) {
	c.text("id", &v.ID, &v.Extra)
	c.member("object", "conversation", &v.Extra)
	c.number("created_at", &v.CreatedAt, &v.Extra)
	c.orEmpty("metadata", "{}", v.Metadata == "", &v.Extra)
	c.raw("metadata", &v.Metadata)
	c.end(&v.Extra)
}

func (v *CreateConversation) fields(c *codec) {
	c.list("items", &v.Items)
	c.raw("metadata", &v.Metadata)
	c.rest(&v.Extra)
}

func (v *UpdateConversation) fields(c *codec) {
	c.orEmpty("metadata", "null", v.Metadata == "", &v.Extra)
	c.raw("metadata", &v.Metadata)
	c.end(&v.Extra)
}

func (v *AddItems) fields(c *codec) {
	c.orEmpty("items", "[]", v.Items == nil, &v.Extra)
	c.list("items", &v.Items)
	c.end(&v.Extra)
}

func (v *ItemPage) fields(c *codec) {
	c.member("object", "list", &v.Extra)
	c.orEmpty("data", "[]", v.Data == nil, &v.Extra)
	c.items("data", &v.Data)
	c.text("first_id", &v.FirstID, &v.Extra)
	c.text("last_id", &v.LastID, &v.Extra)
	c.flag("has_more", &v.HasMore, &v.Extra)
	c.end(&v.Extra)
}

func (v *Deleted) fields(c *codec) {
	c.text("id", &v.ID, &v.Extra)
	if c.optString("object", &v.Object); v.Object == "" {
		c.orEmpty("object", `"conversation.deleted"`, true, &v.Extra)
	}
	c.flag("deleted", &v.Deleted, &v.Extra)
	c.end(&v.Extra)
}

// ParseConversation reads a conversation from a copy of data.
func ParseConversation(data []byte) (*Conversation, error) { return parseBody[Conversation](data) }

// ParseCreateConversation reads the body from a copy of data.
func ParseCreateConversation(data []byte) (*CreateConversation, error) {
	return parseBody[CreateConversation](data)
}

// ParseUpdateConversation reads the body from a copy of data.
func ParseUpdateConversation(data []byte) (*UpdateConversation, error) {
	return parseBody[UpdateConversation](data)
}

// ParseAddItems reads the body from a copy of data.
func ParseAddItems(data []byte) (*AddItems, error) { return parseBody[AddItems](data) }

// ParseItemPage reads a page from a copy of data. Its items share that copy.
func ParseItemPage(data []byte) (*ItemPage, error) { return parseBody[ItemPage](data) }

// ParseDeleted reads a confirmation from a copy of data.
func ParseDeleted(data []byte) (*Deleted, error) { return parseBody[Deleted](data) }

// AppendJSON appends the conversation.
func (v *Conversation) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, v) }

// AppendJSON appends the body.
func (v *CreateConversation) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, v) }

// AppendJSON appends the body.
func (v *UpdateConversation) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, v) }

// AppendJSON appends the body.
func (v *AddItems) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, v) }

// AppendJSON appends the page.
func (v *ItemPage) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, v) }

// AppendJSON appends the confirmation.
func (v *Deleted) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, v) }
