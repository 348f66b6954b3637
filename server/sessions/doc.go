// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package sessions serves sessions to front ends on other computers: a [Handler] lists the
// sessions of a store, streams their logs, and delivers what a person says, their answers
// about calls, and their requests to stop. A [Client] uses it. The routes are documented in
// docs/server-api.md; they stand beside the Responses API, which shows responses and not
// sessions.
//
//	s := &server.Server{Backend: b, Sessions: &sessions.Handler{Store: store, Owner: "shop"}}
//
// The Handler runs nothing. The process that runs a session, such as a chat, a worker or a
// server, takes deliveries from the session's inbox: see [session.Inbox].
package sessions
