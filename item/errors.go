// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"errors"
	"fmt"
	"strings"
)

// A ShapeError reports JSON that is well formed but not of the shape the schema
// asks for, where no lenient reading is left: a call whose arguments are not
// string, an output that is a number. The item itself stays readable as JSON.
type ShapeError struct {
	// Type is the item's type, or that of the object the path starts from.
	Type Type
	// CallID is the item's call_id, where it has one.
	CallID string
	// Path leads to the value, such as "output[2].image_url".
	Path string
	// Problem says what was found and what was wanted.
	Problem string
}

// Error names the item, the path and the problem.
func (e *ShapeError) Error() string {
	var b strings.Builder
	if e.Type != "" {
		fmt.Fprintf(&b, "%s: ", e.Type)
	}
	if e.CallID != "" {
		fmt.Fprintf(&b, "call %s: ", e.CallID)
	}
	if e.Path != "" {
		fmt.Fprintf(&b, "%s: ", e.Path)
	}
	b.WriteString(e.Problem)
	return b.String()
}

// ErrType is what [As] returns, wrapped, for an item of another type.
var ErrType = errors.New("item is of another type")

// APIError is an error as the API words it: the error member of a failed
// response, the payload of an error event, the body of an HTTP error.
// Schemas: ResponseError, ResponseErrorEvent, Error, ErrorPayload.
type APIError struct {
	// Code is a word; of servers that have numbers it is the number's text, and
	// the number stands in Extra.
	Code    string
	Type    string
	Message string
	Param   string
	// Headers are those that an answer over HTTP would have had; WebSockets tell
	// them so.
	Headers map[string]string
	Extra   Extra
}

// Error returns the code and the message.
func (e *APIError) Error() string {
	msg := e.Message
	if msg == "" {
		msg = "no message"
	}
	if code := e.Code; code != "" {
		return code + ": " + msg
	}
	return msg
}

func (e *APIError) fields(c *codec) {
	c.code("code", &e.Code, &e.Extra)
	c.optString("type", &e.Type)
	c.optString("message", &e.Message)
	c.optString("param", &e.Param)
	c.stringMap("headers", &e.Headers)
	c.rest(&e.Extra)
}
