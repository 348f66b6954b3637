// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
)

// Error is a refused request or a failed response, in the terms of the API. A
// [Backend] returns an Error to choose the message for the client.
type Error struct {
	Status  int    // HTTP status; 0 means 500
	Type    string // such as invalid_request_error; "" means a type derived from Status
	Code    string // "" means null
	Param   string // the member of the request that is wrong; "" means null
	Message string
	// Header is sent with the error over HTTP, such as Retry-After. It may be nil.
	Header http.Header
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

const (
	invalidRequest = "invalid_request_error"
	serverError    = "server_error"
)

// Invalid returns the error for an invalid request, with status 400.
func Invalid(code, param, format string, args ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Type: invalidRequest, Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
}

// notFound returns the error for an object that does not exist.
func notFound(kind, id string) *Error {
	return &Error{Status: http.StatusNotFound, Type: invalidRequest, Message: fmt.Sprintf("%s with id '%s' not found.", kind, id)}
}

// unreadable returns the error for a body that is not a request.
func unreadable(err error) *Error {
	var shape *item.ShapeError
	if errors.As(err, &shape) {
		what := "'" + shape.Path + "'"
		if shape.Path == "" {
			what = "the body of your request"
		}
		return Invalid("invalid_type", shape.Path, "Invalid type for %s: %s.", what, shape.Problem)
	}
	return Invalid("", "", "We could not parse the JSON body of your request: %v.", err)
}

// failure returns the error for the client. An error that is not an [Error] is only
// logged, because its text may not be meant for clients.
func (s *Server) failure(err error) *Error {
	err = nils.Err(err) // of a TokenCounter, for example
	var e *Error
	if !errors.As(err, &e) {
		s.logf("antiphon server: %v", err)
		return &Error{Status: http.StatusInternalServerError, Type: serverError, Code: serverError, Message: "The server had an error while processing your request."}
	}
	return e.complete()
}

// complete returns the error with its defaults.
func (e *Error) complete() *Error {
	known := *e
	if known.Status < http.StatusOK || known.Status > 999 { // others are no answer
		known.Status = http.StatusInternalServerError
	}
	if known.Type == "" {
		known.Type = invalidRequest
		if known.Status >= http.StatusInternalServerError {
			known.Type = serverError
		}
	}
	return &known
}

// Send sends the error as the response to a request, as a [Server] does. It is for a
// handler around a server.
func (e *Error) Send(w http.ResponseWriter) { e.complete().answer(w) }

// answer sends the error as the response to a request.
func (e *Error) answer(w http.ResponseWriter) {
	maps.Copy(w.Header(), e.Header)
	if again := e.again(); again != "" && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", again)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(e.body()) // a client that is gone is not an error
}

// again returns after how many seconds a client may try again, or "" if that is of no use. An
// error that knows better says it in its Header.
func (e *Error) again() string {
	switch {
	case e.Code == "conversation_locked":
		return "1"
	case e.Status == http.StatusServiceUnavailable:
		return "5"
	}
	return ""
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

// line returns the object in one line.
func (e *Error) line() string {
	return strings.NewReplacer("{\n    ", "{", ",\n    ", ", ", "\n  }", "}").Replace(string(e.object()))
}

// event returns the error as the only event of a stream.
func (e *Error) event() string {
	ev, err := api.NewEvent(&api.ErrorEvent{Code: cmp.Or(e.Code, e.Type), Message: e.Message, Param: e.Param})
	if err != nil {
		return `{"type":"error"}`
	}
	return ev.JSON()
}

// frame returns the error as an event of a WebSocket. According to the Open
// Responses specification its code is a string, where the code of an HTTP error may
// be null.
func (e *Error) frame(streamID string) []byte {
	coded := *e
	coded.Code = cmp.Or(e.Code, e.Type)
	at := ""
	if streamID != "" {
		at = `,"stream_id":` + string(item.Quote(streamID))
	}
	return fmt.Appendf(nil, `{"type":"error","status":%d,"error":%s%s}`, e.Status, coded.object(), at)
}
