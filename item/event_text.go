// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// PartAddedEvent brings a part of a message or of reasoning as it begins.
// Schema: ResponseContentPartAddedEvent.
type PartAddedEvent struct {
	PartEvent
	Part Part
}

// PartDoneEvent brings a part that is whole. Schema:
// ResponseContentPartDoneEvent.
type PartDoneEvent struct {
	PartEvent
	Part Part
}

// TextDeltaEvent adds to the text of a part. Schema: ResponseTextDeltaEvent.
type TextDeltaEvent struct {
	PartEvent
	Delta string
	// Logprobs come when [IncludeLogprobs] asks for them. It is written as [] when
	// nil.
	Logprobs []TokenLogprob
	// Obfuscation is padding of no meaning.
	Obfuscation string
}

// TextDoneEvent has the whole text of a part. Schema: ResponseTextDoneEvent.
type TextDoneEvent struct {
	PartEvent
	Text string
	// Logprobs come when [IncludeLogprobs] asks for them. It is written as [] when
	// nil.
	Logprobs []TokenLogprob
}

// AnnotationAddedEvent adds an annotation to the text of a part. An
// AnnotationIndex of -1 is not written. Schema:
// ResponseOutputTextAnnotationAddedEvent.
type AnnotationAddedEvent struct {
	PartEvent
	AnnotationIndex int
	Annotation      Annotation
}

// RefusalDeltaEvent adds to a refusal. Schema: ResponseRefusalDeltaEvent.
type RefusalDeltaEvent struct {
	PartEvent
	Delta string
	// Obfuscation is padding of no meaning.
	Obfuscation string
}

// RefusalDoneEvent has the whole refusal. Schema: ResponseRefusalDoneEvent.
type RefusalDoneEvent struct {
	PartEvent
	Refusal string
}

// EventType returns [EventPartAdded].
func (*PartAddedEvent) EventType() EventType { return EventPartAdded }

// EventType returns [EventPartDone].
func (*PartDoneEvent) EventType() EventType { return EventPartDone }

// EventType returns [EventTextDelta].
func (*TextDeltaEvent) EventType() EventType { return EventTextDelta }

// EventType returns [EventTextDone].
func (*TextDoneEvent) EventType() EventType { return EventTextDone }

// EventType returns [EventAnnotationAdded].
func (*AnnotationAddedEvent) EventType() EventType { return EventAnnotationAdded }

// EventType returns [EventRefusalDelta].
func (*RefusalDeltaEvent) EventType() EventType { return EventRefusalDelta }

// EventType returns [EventRefusalDone].
func (*RefusalDoneEvent) EventType() EventType { return EventRefusalDone }

func (e *PartAddedEvent) fields(c *codec) {
	e.place(c, EventPartAdded)
	c.part("part", &e.Part)
	c.end(&e.Extra)
}

func (e *PartDoneEvent) fields(c *codec) {
	e.place(c, EventPartDone)
	c.part("part", &e.Part)
	c.end(&e.Extra)
}

func (e *TextDeltaEvent) fields(c *codec) {
	e.place(c, EventTextDelta)
	c.text("delta", &e.Delta, &e.Extra)
	c.orEmpty("logprobs", "[]", e.Logprobs == nil, &e.Extra)
	recordList(c, "logprobs", &e.Logprobs)
	c.optString("obfuscation", &e.Obfuscation)
	c.end(&e.Extra)
}

func (e *TextDoneEvent) fields(c *codec) {
	e.place(c, EventTextDone)
	c.text("text", &e.Text, &e.Extra)
	c.orEmpty("logprobs", "[]", e.Logprobs == nil, &e.Extra)
	recordList(c, "logprobs", &e.Logprobs)
	c.end(&e.Extra)
}

func (e *AnnotationAddedEvent) fields(c *codec) {
	e.place(c, EventAnnotationAdded)
	c.index("annotation_index", &e.AnnotationIndex)
	c.orEmpty("annotation", "null", e.Annotation == nil, &e.Extra)
	optUnion(c, "annotation", &e.Annotation, parseAnnotation)
	c.end(&e.Extra)
}

func (e *RefusalDeltaEvent) fields(c *codec) {
	e.place(c, EventRefusalDelta)
	c.text("delta", &e.Delta, &e.Extra)
	c.optString("obfuscation", &e.Obfuscation)
	c.end(&e.Extra)
}

func (e *RefusalDoneEvent) fields(c *codec) {
	e.place(c, EventRefusalDone)
	c.text("refusal", &e.Refusal, &e.Extra)
	c.end(&e.Extra)
}
