// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ErrorEvent ends a stream that went wrong. Its members stand in the event
// itself, or on a WebSocket in Error; [Event.Err] reads both. Without an Error,
// an empty Code or Param is written as null. Schemas: ResponseErrorEvent,
// ResponseWsError.
type ErrorEvent struct {
	EventHead
	Code    string
	Message string
	Param   string
	// Status is the HTTP status that the error would have had.
	Status *int64
	Error  *APIError
}

// EventType returns [EventError].
func (*ErrorEvent) EventType() EventType { return EventError }

func (e *ErrorEvent) fields(c *codec) {
	e.head(c, EventError)
	c.optInt("status", &e.Status)
	optRecord(c, "error", &e.Error)
	if e.Error != nil {
		c.optString("code", &e.Code)
		c.optString("message", &e.Message)
		c.optString("param", &e.Param)
	} else {
		c.nullText("code", &e.Code, &e.Extra)
		c.text("message", &e.Message, &e.Extra)
		c.nullText("param", &e.Param, &e.Extra)
	}
	c.end(&e.Extra)
}
