// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package agents serves agents' files over the Responses API: a [Backend] of package
// server in which each file is a model. Its tools run here, and its sessions are the
// state: a conversation is a session, and a response is a part of a session's log.
//
// The example serves a file. This package serves files alone: for an agent that is written in Go, write a
// [server.BackendFunc] that runs it.
//
// # What clients see
//
// The agent's own calls are items of type mcp_call, whose server_label is the name of the
// agent. A call that needs an approval is an mcp_approval_request, and ends the response.
// An mcp_approval_response in a request that continues the response answers it. Nothing
// else in this package does. Functions that a request declares are offered to the model
// beside the agent's tools; their calls go to the client as function_call.
//
// # Where the state is
//
// The id of a response names its session and the entry of the log at which it begins. A
// request that continues the last response of a session goes on in the same session;
// otherwise it begins a fork, which shares the log up to that response. What the log does
// not have, such as the members of the request that a response repeats, is in two notes,
// at the beginning and at the end of the response. A response without the second one, in
// a session that no process writes to, was interrupted: it is incomplete, and has the
// items that were complete.
//
// The files of clients, the responses of Idempotency-Keys and what is still to be sent to a
// [server.Webhook] are sessions of their own, which lists leave out.
//
// Responses that are not stored are sessions in memory.
package agents
