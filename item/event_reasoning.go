// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ReasoningTextDeltaEvent adds to the text of reasoning. Schema:
// ResponseReasoningTextDeltaEvent.
type ReasoningTextDeltaEvent struct {
	PartEvent
	Delta string
	// Obfuscation is padding of no meaning.
	Obfuscation string
}

// ReasoningTextDoneEvent has the whole text of a part of reasoning. Schema:
// ResponseReasoningTextDoneEvent.
type ReasoningTextDoneEvent struct {
	PartEvent
	Text string
}

// SummaryPartAddedEvent brings a part of a summary as it begins. Schema:
// ResponseReasoningSummaryPartAddedEvent.
type SummaryPartAddedEvent struct {
	SummaryEvent
	Part Part
}

// SummaryPartDoneEvent brings a part of a summary that is whole. Schema:
// ResponseReasoningSummaryPartDoneEvent.
type SummaryPartDoneEvent struct {
	SummaryEvent
	Part Part
	// Status is incomplete for a part that was broken off.
	Status string
}

// SummaryTextDeltaEvent adds to the text of a summary. Schema:
// ResponseReasoningSummaryTextDeltaEvent.
type SummaryTextDeltaEvent struct {
	SummaryEvent
	Delta string
	// Obfuscation is padding of no meaning.
	Obfuscation string
}

// SummaryTextDoneEvent has the whole text of a part of a summary. Schema:
// ResponseReasoningSummaryTextDoneEvent.
type SummaryTextDoneEvent struct {
	SummaryEvent
	Text string
}

// EventType returns [EventReasoningTextDelta].
func (*ReasoningTextDeltaEvent) EventType() EventType { return EventReasoningTextDelta }

// EventType returns [EventReasoningTextDone].
func (*ReasoningTextDoneEvent) EventType() EventType { return EventReasoningTextDone }

// EventType returns [EventSummaryPartAdded].
func (*SummaryPartAddedEvent) EventType() EventType { return EventSummaryPartAdded }

// EventType returns [EventSummaryPartDone].
func (*SummaryPartDoneEvent) EventType() EventType { return EventSummaryPartDone }

// EventType returns [EventSummaryTextDelta].
func (*SummaryTextDeltaEvent) EventType() EventType { return EventSummaryTextDelta }

// EventType returns [EventSummaryTextDone].
func (*SummaryTextDoneEvent) EventType() EventType { return EventSummaryTextDone }

func (e *ReasoningTextDeltaEvent) fields(c *codec) {
	e.place(c, EventReasoningTextDelta)
	c.text("delta", &e.Delta, &e.Extra)
	c.optString("obfuscation", &e.Obfuscation)
	c.end(&e.Extra)
}

func (e *ReasoningTextDoneEvent) fields(c *codec) {
	e.place(c, EventReasoningTextDone)
	c.text("text", &e.Text, &e.Extra)
	c.end(&e.Extra)
}

func (e *SummaryPartAddedEvent) fields(c *codec) {
	e.place(c, EventSummaryPartAdded)
	c.part("part", &e.Part)
	c.end(&e.Extra)
}

func (e *SummaryPartDoneEvent) fields(c *codec) {
	e.place(c, EventSummaryPartDone)
	c.part("part", &e.Part)
	c.optString("status", &e.Status)
	c.end(&e.Extra)
}

func (e *SummaryTextDeltaEvent) fields(c *codec) {
	e.place(c, EventSummaryTextDelta)
	c.text("delta", &e.Delta, &e.Extra)
	c.optString("obfuscation", &e.Obfuscation)
	c.end(&e.Extra)
}

func (e *SummaryTextDoneEvent) fields(c *codec) {
	e.place(c, EventSummaryTextDone)
	c.text("text", &e.Text, &e.Extra)
	c.end(&e.Extra)
}
