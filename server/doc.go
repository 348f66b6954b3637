// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package server serves the Responses API over a [Backend], which may be a single
// function: it receives a request with its complete history, and writes its output
// with a [Writer]. The server does the rest: checks, event streams, stored
// responses, background responses, conversations, WebSockets.
//
// A [Server] is an [net/http.Handler]. It has no accounts and does not check keys:
// wrap it in a handler that does, such as that of package server/access, or serve on
// loopback only ([Server.Start]).
//
// Pages of other sites, which any browser may show, cannot use it: a request with a
// foreign Origin or Sec-Fetch-Site is refused unless it only reads, and so is a body
// with a Content-Type other than JSON. A handler that trusts another origin removes
// these two headers. Start also refuses a Host that is not loopback; a handler that
// serves elsewhere must check the Host itself.
//
// Use it for your own model, agent or test. The scripted mock model (package
// rehearsal) is a backend; package agenttest has middleware that injects faults into
// the responses of a server.
//
// # Routes
//
//   - POST /v1/responses, complete, streamed, and in the background; with previous_response_id, conversation and item references. Requests with the same Idempotency-Key and body get one response; see [Rememberer].
//   - A WebSocket at /v1/responses: one response after the other. Each can continue the last one although it was not stored. Warm-ups have generate set to false.
//   - GET and DELETE /v1/responses/{id}, POST …/cancel, GET …/input_items. A response is stored unless the request has store set to false. The stream of a background response can be read again from any event.
//   - /v1/conversations with their items. A response that was not completed leaves nothing in its conversation.
//   - POST /v1/chat/completions, complete and streamed: the same backend in another format, except for reasoning, which Chat Completions does not have. Nothing is stored.
//   - POST /v1/responses/input_tokens, if the backend is a [TokenCounter].
//   - POST /v1/responses/compact, if the backend is a [Compactor].
//   - /v1/files with their contents, if the backend is a [Filer].
//   - GET /v1/models and /v1/models/{id}, if the backend is a [ModelLister].
//
// The server is as strict about its input as the real one: every call has exactly
// one output after it, and every output has its call; names, ids and inline images
// must be well formed.
//
// Data is kept in a [Store]; the default is a bounded store in memory. If the store
// refuses the end of a response, the response fails for its client and for all who
// read it later. A response that an earlier server left unfinished has failed too.
//
// Two backends that keep what they make in different ways can be one server: see
// [Server].Beside.
package server
