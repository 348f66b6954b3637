// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package mcpbridge makes the tools of MCP servers available to agents.
//
// A [Server] describes how to reach one server: as a program over its standard input
// and output, or by streamable HTTP. [Connect] starts all of them and returns a
// [Bridge], whose [Bridge.Tools] are ordinary tools: definitions as the servers
// wrote them, results as text, images and files.
//
// A server is another program and may do anything. Whatever it does, a call ends
// within its time limit with an output that the model can read and that names the
// server: the server died, hangs, or sends invalid data. A server that has ended is
// started again by the next call, a limited number of times.
//
// The official SDK implements the protocol; versions from 2024-11-05 to 2026-07-28
// are negotiated. Data that the SDK would lose (the order of a schema's members,
// large numbers, unknown kinds of content) is preserved.
package mcpbridge
