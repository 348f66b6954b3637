// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/antiphon-go/antiphon/internal/nils"
)

// Class is the kind of failure that an [Error] reports. It decides how to react.
type Class string

// The classes.
const (
	RateLimit        Class = "rate_limit"        // too many requests at the moment
	Overloaded       Class = "overloaded"        // the server has no capacity at the moment
	Server           Class = "server"            // the server failed
	Network          Class = "network"           // no connection, or the connection broke before an answer
	Auth             Class = "auth"              // no key, or a wrong one
	Forbidden        Class = "forbidden"         // the key is not allowed to do this
	NotFound         Class = "not_found"         // no such path, model or object
	BadRequest       Class = "bad_request"       // the request is not valid
	Quota            Class = "quota"             // the account's credit or quota is used up
	ContextOverflow  Class = "context_overflow"  // the input is longer than the model accepts
	PreviousResponse Class = "previous_response" // the response to continue from does not exist
	EncryptedContent Class = "encrypted_content" // reasoning that the server cannot decrypt
	Policy           Class = "policy"            // the content was refused
	Truncated        Class = "truncated"         // the answer stopped before its end
	Idle             Class = "idle"              // no data arrived within the idle limit
	Protocol         Class = "protocol"          // the answer does not belong to this API
	TooLarge         Class = "too_large"         // request or answer above a size limit
	Canceled         Class = "canceled"          // the caller's context ended
	Reconnect        Class = "reconnect"         // the connection has reached its limit; open a new one
)

// Error is a failed request. The failure can be in the network, at the server, or in the middle of
// the answer. The message is for a person at a terminal and does not hold secrets.
type Error struct {
	Op     string // the operation, such as "create response"
	Method string
	URL    string // without userinfo and query
	Status int    // HTTP status; 0 if no status was received
	Class  Class

	// The server's description of the error. A field is empty if the server did not send it.
	Code, Type, Message, Param string
	RequestID                  string

	// RetryAfter is the wait that the server asks for, or 0.
	RetryAfter time.Duration
	// Limits is the server's report of its rate limits.
	Limits RateLimits
	// Attempts is the number of times the request was sent, if the client counts them.
	Attempts int
	// Body is the beginning of an answer that was not understood.
	Body string
	// Sent is set if output was delivered before the failure. A retry would
	// show it twice.
	Sent bool
	// Hint is what the user can do next.
	Hint string
	// Err is the cause, or nil.
	Err error

	final bool   // a retry is known to be useless
	again bool   // the server says that a retry may help
	kind  string // a more exact code beside Code and Type
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// SafeToRetry reports whether the same request may succeed later and the caller has not yet
// received output that a second answer would repeat. The server's header X-Should-Retry takes
// precedence over the class.
func (e *Error) SafeToRetry() bool {
	if e.Sent || e.final {
		return false
	}
	if e.again {
		return true
	}
	switch e.Class {
	case RateLimit, Overloaded, Server, Network, Truncated, Reconnect:
		return true
	}
	return false
}

// Error returns one line: the operation, the URL, the status, the server's message, and the hint.
func (e *Error) Error() string {
	var b strings.Builder
	if where := strings.TrimSpace(e.Method + " " + e.URL); where != "" {
		b.WriteString(where + ": ")
	} else if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, "%s: ", strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))))
	}
	for _, s := range []string{e.Message, e.cause(), e.Body, meaning[e.Class], string(e.Class)} {
		if s = oneLine(s, maxMessage); s != "" { // a message of control characters only is useless
			b.WriteString(s)
			break
		}
	}
	if d := e.details(); d != "" {
		b.WriteString(" (" + d + ")")
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

func (e *Error) cause() string {
	if nils.Is(e.Err) {
		return ""
	}
	return e.Err.Error()
}

// details returns the short facts that help to look up the failure.
func (e *Error) details() string {
	var list []string
	add := func(name, value string) {
		if value != "" {
			list = append(list, name+" "+oneLine(value, 100))
		}
	}
	add("code", cmp.Or(e.Code, e.Type))
	add("param", e.Param)
	add("request", e.RequestID)
	if e.RetryAfter > 0 {
		add("retry after", e.RetryAfter.String())
	}
	return strings.Join(list, ", ")
}

// meaning is the message for a class when the server sent none.
//
//exhaustive:enforce
var meaning = map[Class]string{
	RateLimit:        "too many requests",
	Overloaded:       "the server is overloaded",
	Server:           "the server failed",
	Network:          "no connection",
	Auth:             "the key is missing or wrong",
	Forbidden:        "the key is not allowed to do this",
	NotFound:         "not found",
	BadRequest:       "the request was refused",
	Quota:            "the account's credit or quota is used up",
	ContextOverflow:  "the input is too long for the model",
	PreviousResponse: "the previous response does not exist",
	EncryptedContent: "the encrypted reasoning cannot be read",
	Policy:           "refused by a policy",
	Truncated:        "the answer stopped before its end",
	Idle:             "no data arrived within the idle limit",
	Protocol:         "the answer does not belong to this API",
	TooLarge:         "too large",
	Canceled:         "cancelled",
	Reconnect:        "the connection has reached its limit",
}

const (
	maxMessage = 1000 // length of a shown message of the server, in characters
	maxExcerpt = 300  // length of a shown body that was not understood, in characters
)

// oneLine makes text from elsewhere safe for a terminal: it shows characters that steer it as numbers,
// such as <U+001B>, folds white space, and keeps at most limit characters.
func oneLine(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit] + "…" // enough for limit characters; cut again below
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsSpace(r) || r == unicode.ReplacementChar:
			b.WriteByte(' ')
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	s = strings.Join(strings.Fields(b.String()), " ")
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit]) + "…"
	}
	return s
}
