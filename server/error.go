// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/antiphon-go/antiphon/item"
)

// Error is a request that is refused, or a response that failed, as the API words
// it. A [Backend] returns one to choose what the client is told.
type Error struct {
	Status  int    // of HTTP; 0 means 500
	Type    string // such as invalid_request_error; "" follows from Status
	Code    string // "" is null
	Param   string // the member of the request that is meant; "" is null
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

const (
	invalidRequest = "invalid_request_error"
	serverError    = "server_error"
)

// Invalid is the error for a request that is wrong, with status 400.
func Invalid(code, param, format string, args ...any) *Error {
	return &Error{http.StatusBadRequest, invalidRequest, code, param, fmt.Sprintf(format, args...)}
}

// notFound is the answer where an object is not there.
func notFound(kind, id string) *Error {
	return &Error{http.StatusNotFound, invalidRequest, "", "", fmt.Sprintf("%s with id '%s' not found.", kind, id)}
}

// unreadable is a body that is not a request.
func unreadable(err error) *Error {
	var shape *item.ShapeError
	if errors.As(err, &shape) {
		return Invalid("invalid_type", shape.Path, "Invalid type for '%s': %s.", shape.Path, shape.Problem)
	}
	return Invalid("", "", "We could not parse the JSON body of your request: %v.", err)
}

// failure is what a client is told of an error. What is not an [Error] goes to the
// log, for its text may not be meant for clients.
func (s *Server) failure(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		s.logf("antiphon server: %v", err)
		return &Error{http.StatusInternalServerError, serverError, serverError, "", "The server had an error while processing your request."}
	}
	known := *e
	known.Status = cmp.Or(known.Status, http.StatusInternalServerError)
	if known.Type == "" {
		known.Type = invalidRequest
		if known.Status >= http.StatusInternalServerError {
			known.Type = serverError
		}
	}
	return &known
}

// body returns the error as the body of a response.
func (e *Error) body() []byte { return fmt.Appendf(nil, "{\n  \"error\": %s\n}\n", e.object()) }

func (e *Error) object() []byte {
	orNull := func(s string) item.JSON {
		if s == "" {
			return "null"
		}
		return item.Quote(s)
	}
	return fmt.Appendf(nil, "{\n    \"message\": %s,\n    \"type\": %s,\n    \"param\": %s,\n    \"code\": %s\n  }",
		item.Quote(e.Message), item.Quote(e.Type), orNull(e.Param), orNull(e.Code))
}

// frame returns the error as an event of a WebSocket. Its code is a string by the
// Open Responses specification, where that of an HTTP error may be null.
func (e *Error) frame(streamID string) []byte {
	coded := *e
	coded.Code = cmp.Or(e.Code, e.Type)
	at := ""
	if streamID != "" {
		at = `,"stream_id":` + string(item.Quote(streamID))
	}
	return fmt.Appendf(nil, `{"type":"error","status":%d,"error":%s%s}`, e.Status, coded.object(), at)
}
