// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// ServerError tells what a server did instead of answering. Its text is what
// the model reads, and what a person needs to mend it.
type ServerError struct {
	// Server is the server's name.
	Server string
	// Problem says what happened, and what is known of what was done.
	Problem string
	// Err is the cause, where there is one.
	Err error
	// Stderr is the end of what the server's program wrote to its standard
	// error, without secrets.
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

// errNoAnswer is the cause where time ran out. It is not an error of a context:
// what is known of the server should be told beside that.
var errNoAnswer = errors.New("no answer in time")

// errClosed is what calls get after [Bridge.Close].
var errClosed = errors.New("the bridge is closed")

// StrayOutputError is a line on a server's standard output that is not a message.
type StrayOutputError struct {
	// Line is how it begins.
	Line string
}

func (e *StrayOutputError) Error() string {
	return "wrote to its standard output what is not a JSON-RPC message: " + strconv.Quote(e.Line)
}

// maxQuoted is how much of a server's text is repeated in an error.
const maxQuoted = 1000

// wireError returns the error that the server answered with. The SDK has errors
// of the same type for what it could not send.
func wireError(err error) (*jsonrpc.Error, bool) {
	var wire *jsonrpc.Error
	ok := errors.As(err, &wire) && wire.Message != notSent
	return wire, ok
}

// notSent is what the SDK says of a request that did not get through.
const notSent = "rejected by transport"

// sdkPrefixes are what the SDK puts before the cause of an error.
var sdkPrefixes = regexp.MustCompile(`^((calling|sending) "[^"]*": |` + notSent + `: |connection closed: |client is closing: )+`)

// plain is an error of the SDK in words for a person: without what repeats the
// method, and without the URL, which may hold a key.
func plain(err error) string {
	if wire, ok := wireError(err); ok {
		return fmt.Sprintf("%s (code %d)", short(wire.Message), wire.Code)
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
