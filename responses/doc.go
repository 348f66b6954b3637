// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package responses is a client of the Responses API.
//
// A [Client] sends a request, streamed or not, retries it when that is safe, and returns the
// model's answer. It also has the API's other endpoints: stored responses, background runs, token
// counts, compaction, conversations. A [Chain] is one conversation; it sends only the new items,
// over HTTP or over a WebSocket. Both adapt requests to the endpoint's profile. Package agent
// decides what to send next.
package responses
