// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package responses is a client of the Responses API.
//
// A [Client] sends a request, streamed or not, repeats it where that is safe,
// and gives back what the model said. It also has the API's other endpoints:
// stored responses, background runs, token counts, compaction, conversations. A
// [Thread] is one conversation; it sends only what is new, over HTTP or over a
// WebSocket. Both fit what they send to the endpoint's profile. Deciding what to
// send next is for package agent.
package responses
