// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package tracing reports runs as OpenTelemetry spans and metrics. [New] makes the
// hooks for an agent; docs/tracing.md lists the spans and attributes.
//
// Without Options.Content, spans contain no text of a person, a model or a tool.
// Metrics never contain any, and no ids either.
package tracing
