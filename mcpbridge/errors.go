// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// ServerError describes a failure of a server. The model reads its text, and a
// person needs it to fix the problem.
type ServerError struct {
	// Server is the server's name.
	Server string
	// Problem says what happened, and what is known about the effect of the call.
	Problem string
	// Err is the cause, or nil.
	Err error
	// Status is that of the server's last answer over HTTP, or 0.
	Status int
	// Stderr is the end of the program's standard error, without secrets.
	Stderr string
}

func (e *ServerError) Error() string {
	text := fmt.Sprintf("MCP server %s %s", e.Server, e.Problem)
	if e.Stderr != "" {
		text += "\nThe end of its standard error:\n" + e.Stderr
	}
	return text
}

// Unwrap returns the cause.
func (e *ServerError) Unwrap() error { return e.Err }

// errNoAnswer is the cause of a timeout. It is not a context error, so that
// information about the server is added.
var errNoAnswer = errors.New("no answer in time")

// errClosed is the error of calls after [Bridge.Close].
var errClosed = errors.New("the bridge is closed")

// StrayOutputError is a line on a server's standard output that is not a message.
type StrayOutputError struct {
	// Line is the beginning of the line.
	Line string
}

func (e *StrayOutputError) Error() string {
	return "wrote to its standard output what is " + notMessage + ": " + strconv.Quote(e.Line)
}

const notMessage = "not a JSON-RPC message"

// maxQuoted limits the text of a server that an error repeats.
const maxQuoted = 1000

// wireError returns the error that the server sent. The SDK uses the same type for
// messages that it could not send.
func wireError(err error) (*jsonrpc.Error, bool) {
	var wire *jsonrpc.Error
	ok := errors.As(err, &wire) && wire.Message != notSent
	return wire, ok
}

// notSent is the SDK's message for a request that was not sent.
const notSent = "rejected by transport"

// sdkPrefixes match the SDK's text before the cause of an error.
var sdkPrefixes = lazyregexp.New(`^((calling|sending) "[^"]*": |` + notSent + `: |connection closed: |client is closing: )+`)

// plain returns the text of an SDK error for people: without the repeated method,
// and without the URL, which may contain a key.
func plain(err error) string {
	if wire, ok := wireError(err); ok {
		return fmt.Sprintf("%s (code %d)", short(wire.Message), codeOf(wire))
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return short(u.Err.Error())
	}
	return short(sdkPrefixes.ReplaceAllString(err.Error(), ""))
}

func short(s string) string {
	if len(s) > maxQuoted {
		s = strings.ToValidUTF8(s[:maxQuoted], "") + "…"
	}
	return strings.TrimSpace(s)
}
