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
)

// Class says what kind of failure an [Error] is, and with that what can be done
// about it.
type Class string

// The classes.
const (
	RateLimit        Class = "rate_limit"        // too many requests just now
	Overloaded       Class = "overloaded"        // the server has no room just now
	Server           Class = "server"            // the server failed
	Network          Class = "network"           // no connection, or it broke before an answer
	Auth             Class = "auth"              // no key, or a wrong one
	Forbidden        Class = "forbidden"         // the key may not do this
	NotFound         Class = "not_found"         // no such path, model or object
	BadRequest       Class = "bad_request"       // the request is at fault
	Quota            Class = "quota"             // nothing left to spend
	ContextOverflow  Class = "context_overflow"  // more input than the model takes
	PreviousResponse Class = "previous_response" // the response to go on from is gone
	EncryptedContent Class = "encrypted_content" // reasoning that the server cannot decrypt
	Policy           Class = "policy"            // refused for what it says
	Truncated        Class = "truncated"         // the answer stopped before its end
	Idle             Class = "idle"              // no byte came for the idle limit
	Protocol         Class = "protocol"          // what came is not this API
	TooLarge         Class = "too_large"         // request or answer above a size limit
	Canceled         Class = "canceled"          // the caller's context ended
	Reconnect        Class = "reconnect"         // this connection is used up; a new one does
)

// Error is a request that failed, wherever it failed: on the way, at the
// server, or in the middle of the answer. Its message is for a person at a
// terminal and holds no secret.
type Error struct {
	Op     string // what was done, such as "create response"
	Method string
	URL    string // without userinfo and query
	Status int    // of HTTP; 0 when none was received
	Class  Class

	// What the server said, each empty when it did not.
	Code, Type, Message, Param string
	RequestID                  string

	// RetryAfter is how long the server asks to wait, 0 when it does not.
	RetryAfter time.Duration
	// Limits is what the server said of its rate limits.
	Limits RateLimits
	// Attempts is how often the request was sent, where the client counts.
	Attempts int
	// Body is the beginning of an answer that could not be understood.
	Body string
	// Sent is set when output was delivered before the failure, so that doing
	// it again would double what was shown.
	Sent bool
	// Hint is what the reader of the message could do.
	Hint string
	// Err is the cause, where there is one.
	Err error

	final bool   // doing it again is known to be no use
	again bool   // the server says that doing it again may be of use
	kind  string // a finer code beside Code and Type
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// SafeToRetry reports whether the same request may succeed later and nothing
// was delivered that a second answer would double. The server's own header
// X-Should-Retry counts more than the class.
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

// Error returns one line: what failed, where, the status, the server's own
// words, and the hint.
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
		if s = oneLine(s, maxMessage); s != "" { // what is all control characters says nothing
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
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// details are the short facts that help to look the failure up.
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

// meaning is what a class says where nobody else said anything.
var meaning = map[Class]string{
	RateLimit:        "too many requests",
	Overloaded:       "the server is overloaded",
	Server:           "the server failed",
	Network:          "no connection",
	Auth:             "the key is missing or wrong",
	Forbidden:        "the key may not do this",
	NotFound:         "nothing is there",
	BadRequest:       "the request was refused",
	Quota:            "nothing is left to spend",
	ContextOverflow:  "the input is too long for the model",
	PreviousResponse: "the previous response is gone",
	EncryptedContent: "the encrypted reasoning cannot be read",
	Policy:           "refused by a policy",
	Truncated:        "the answer stopped before its end",
	Idle:             "nothing came for too long",
	Protocol:         "the answer is not of this API",
	TooLarge:         "too large",
	Canceled:         "cancelled",
	Reconnect:        "the connection is used up",
}

const (
	maxMessage = 1000 // characters of a server's message that are shown
	maxExcerpt = 300  // characters of a body that was not understood
)

// oneLine makes foreign text fit for a terminal: control characters become
// spaces, white space is folded, and at most limit characters stay.
func oneLine(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit] + "…" // enough for limit characters; cut again below
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > limit {
		s = string(runes[:limit]) + "…"
	}
	return s
}
