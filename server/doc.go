// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package server serves the Responses API over a [Backend], which may be one
// function: it gets a request with all that the request goes on from, and writes
// its answer with a [Writer]. The server does the rest: checks, event streams,
// stored responses, runs in the background, conversations, WebSockets.
//
// A [Server] is an [net/http.Handler]. It has no accounts and asks for no key: put
// a handler around it that does, or serve on loopback only ([Server.Start]).
//
// Use it for a model, an agent or a test of your own. The scripted mock model
// (package rehearsal) is a backend; package agenttest has middleware that spoils
// the answers of a server on purpose.
//
// # What is served
//
//   - POST /v1/responses, whole, streamed, and in the background; with
//     previous_response_id, conversation and item references.
//   - A WebSocket at /v1/responses: one response after the other, each of which
//     can go on from the last one without its being stored, and warm-ups with
//     generate set to false.
//   - GET and DELETE /v1/responses/{id}, POST …/cancel, GET …/input_items. A
//     response is stored unless the request has store set to false. The stream
//     of one that was made in the background can be had again, from any event.
//   - /v1/conversations with their items. A response that was not completed
//     leaves nothing in its conversation.
//   - POST /v1/chat/completions, whole and streamed: the same backend in other
//     words, but for reasoning, which Chat Completions does not have. Nothing of
//     it is stored.
//   - POST /v1/responses/input_tokens, if the backend is a [TokenCounter].
//   - POST /v1/responses/compact, if the backend is a [Compactor].
//   - GET /v1/models and /v1/models/{id}, if the backend is a [ModelLister].
//
// The server is as strict as the real one about what it receives: every call
// has its one output, after it, and every output has its call; names, ids and
// inline images are well formed.
//
// What is kept is in a [Store]; without one it is in memory, and bounded.
package server
