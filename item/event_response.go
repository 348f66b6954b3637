// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ResponseEvent is an event that carries the response as it stands.
type ResponseEvent struct {
	EventHead
	Response *Response
}

func (e *ResponseEvent) whole(c *codec, t EventType) {
	e.head(c, t)
	optRecord(c, "response", &e.Response)
	c.end(&e.Extra)
}

// CreatedEvent says that the response began. Schema: ResponseCreatedEvent.
type CreatedEvent struct{ ResponseEvent }

// QueuedEvent says that the response waits to begin. Schema:
// ResponseQueuedEvent.
type QueuedEvent struct{ ResponseEvent }

// InProgressEvent says that the model is at work. Schema:
// ResponseInProgressEvent.
type InProgressEvent struct{ ResponseEvent }

// CompletedEvent is the last event of a response that came to its end. Schema:
// ResponseCompletedEvent.
type CompletedEvent struct{ ResponseEvent }

// FailedEvent is the last event of a response with an error. Schema:
// ResponseFailedEvent.
type FailedEvent struct{ ResponseEvent }

// IncompleteEvent is the last event of a response that stopped early. Schema:
// ResponseIncompleteEvent.
type IncompleteEvent struct{ ResponseEvent }

// ItemAddedEvent brings an output item as it begins. Schema:
// ResponseOutputItemAddedEvent.
type ItemAddedEvent struct {
	EventHead
	OutputIndex int
	Item        Item
}

// ItemDoneEvent brings an output item that is whole. Schema:
// ResponseOutputItemDoneEvent.
type ItemDoneEvent struct {
	EventHead
	OutputIndex int
	Item        Item
}

// EventType returns [EventCreated].
func (*CreatedEvent) EventType() EventType { return EventCreated }

// EventType returns [EventQueued].
func (*QueuedEvent) EventType() EventType { return EventQueued }

// EventType returns [EventInProgress].
func (*InProgressEvent) EventType() EventType { return EventInProgress }

// EventType returns [EventCompleted].
func (*CompletedEvent) EventType() EventType { return EventCompleted }

// EventType returns [EventFailed].
func (*FailedEvent) EventType() EventType { return EventFailed }

// EventType returns [EventIncomplete].
func (*IncompleteEvent) EventType() EventType { return EventIncomplete }

// EventType returns [EventItemAdded].
func (*ItemAddedEvent) EventType() EventType { return EventItemAdded }

// EventType returns [EventItemDone].
func (*ItemDoneEvent) EventType() EventType { return EventItemDone }

func (e *CreatedEvent) fields(c *codec) { e.whole(c, EventCreated) }

func (e *QueuedEvent) fields(c *codec) { e.whole(c, EventQueued) }

func (e *InProgressEvent) fields(c *codec) { e.whole(c, EventInProgress) }

func (e *CompletedEvent) fields(c *codec) { e.whole(c, EventCompleted) }

func (e *FailedEvent) fields(c *codec) { e.whole(c, EventFailed) }

func (e *IncompleteEvent) fields(c *codec) { e.whole(c, EventIncomplete) }

func (e *ItemAddedEvent) fields(c *codec) {
	e.head(c, EventItemAdded)
	c.index("output_index", &e.OutputIndex)
	c.item("item", &e.Item)
	c.end(&e.Extra)
}

func (e *ItemDoneEvent) fields(c *codec) {
	e.head(c, EventItemDone)
	c.index("output_index", &e.OutputIndex)
	c.item("item", &e.Item)
	c.end(&e.Extra)
}
