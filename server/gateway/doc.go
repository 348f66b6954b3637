// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway serves the whole Responses API in front of endpoints that have less of
// it: a [server.Backend] that asks one of several upstreams for each response. The server
// around it has stored responses, conversations, background responses and WebSockets,
// and an upstream receives the whole history each time.
//
//	b := &gateway.Backend{Upstreams: []gateway.Upstream{
//		{Dialect: completions.Dialect{}, Config: &dialect.Config{BaseURL: "http://localhost:8000/v1"}},
//	}}
//	http.ListenAndServe("127.0.0.1:8787", &server.Server{Backend: b})
//
// # What is passed on
//
// Items and events keep their bytes; see [server.Writer.Relay]. What a request asks for and
// the upstream cannot do is refused by name. Items of the past that an upstream does not
// know, such as the mcp_call of another server, become text, or are left out if they say
// nothing to a model. Encrypted reasoning and compactions go only to the upstream that
// made them. Errors have the form of the API: with the upstream's code, parameter, rate
// limits and Retry-After, and without its address and keys.
//
// # Several upstreams
//
// The model of a request selects the upstreams whose pattern fits best: a name, a
// beginning, or everything. If there are several, the next one is asked if one cannot answer
// and nothing of its answer has been sent. An upstream that fails again and again is left
// out for a while.
//
// Nothing is repeated for a client that waits, because its own retries would multiply
// with the gateway's: it receives the error and the time to wait. Background responses
// are repeated as the upstream's [endpoint.Retry] says.
package gateway
