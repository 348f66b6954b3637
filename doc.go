// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package antiphon is the root of a library and program for tool-calling
// conversations with language models over the Responses API. It holds no code;
// start with the packages below it:
//
//   - agent: the loop, with item (the vocabulary), tool (what a model may call)
//     and session (the log) beside it
//   - responses: the client, server: the other side, and platform: the client of the
//     API's other parts, such as files and embeddings
//   - dialect and completions: other wire APIs behind the same client
//   - toolkit and mcpbridge: tools that are ready, and those of MCP servers
//   - session/sqlstore and export: sessions in databases, and as files and pages
//   - tracing and eventlog: what runs do, for OpenTelemetry and for log/slog
//   - chatmd, agentfile and host: agents kept as text files, and running them
//   - agenttest and rehearsal: for tests, yours included
//
// The program is cmd/antiphon. See docs/architecture.md for how the parts fit.
package antiphon
