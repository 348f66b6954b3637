// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ImagePartialEvent brings a picture that is not ready, in base64. Schema:
// ResponseImageGenCallPartialImageEvent.
type ImagePartialEvent struct {
	ItemEvent
	// Index counts the pictures from 0; -1 is not written.
	Index        int
	Image        string
	Background   string
	OutputFormat string
	Quality      string
	Size         string
}

// AudioDeltaEvent brings audio in base64. Schema: ResponseAudioDeltaEvent.
type AudioDeltaEvent struct {
	EventHead
	ResponseID string
	Delta      string
}

// AudioDoneEvent ends the audio. Schema: ResponseAudioDoneEvent.
type AudioDoneEvent struct {
	EventHead
	// ResponseID is wanted by the schema, which does not declare it.
	ResponseID string
}

// TranscriptDeltaEvent adds to what is said in the audio. Schema:
// ResponseAudioTranscriptDeltaEvent.
type TranscriptDeltaEvent struct {
	EventHead
	ResponseID string
	Delta      string
}

// TranscriptDoneEvent ends what is said in the audio. Schema:
// ResponseAudioTranscriptDoneEvent.
type TranscriptDoneEvent struct {
	EventHead
	ResponseID string
}

// EventType returns [EventImagePartial].
func (*ImagePartialEvent) EventType() EventType { return EventImagePartial }

// EventType returns [EventAudioDelta].
func (*AudioDeltaEvent) EventType() EventType { return EventAudioDelta }

// EventType returns [EventAudioDone].
func (*AudioDoneEvent) EventType() EventType { return EventAudioDone }

// EventType returns [EventTranscriptDelta].
func (*TranscriptDeltaEvent) EventType() EventType { return EventTranscriptDelta }

// EventType returns [EventTranscriptDone].
func (*TranscriptDoneEvent) EventType() EventType { return EventTranscriptDone }

func (e *ImagePartialEvent) fields(c *codec) {
	e.place(c, EventImagePartial)
	c.index("partial_image_index", &e.Index)
	c.text("partial_image_b64", &e.Image, &e.Extra)
	c.optString("background", &e.Background)
	c.optString("output_format", &e.OutputFormat)
	c.optString("quality", &e.Quality)
	c.optString("size", &e.Size)
	c.end(&e.Extra)
}

func (e *AudioDeltaEvent) fields(c *codec) {
	e.head(c, EventAudioDelta)
	c.optString("response_id", &e.ResponseID)
	c.text("delta", &e.Delta, &e.Extra)
	c.end(&e.Extra)
}

func (e *AudioDoneEvent) fields(c *codec) {
	e.head(c, EventAudioDone)
	c.optString("response_id", &e.ResponseID)
	c.end(&e.Extra)
}

func (e *TranscriptDeltaEvent) fields(c *codec) {
	e.head(c, EventTranscriptDelta)
	c.optString("response_id", &e.ResponseID)
	c.text("delta", &e.Delta, &e.Extra)
	c.end(&e.Extra)
}

func (e *TranscriptDoneEvent) fields(c *codec) {
	e.head(c, EventTranscriptDone)
	c.optString("response_id", &e.ResponseID)
	c.end(&e.Extra)
}
