// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

// About says where and how a client sends its requests, for logs and people. It holds no secrets. A
// field that is not known is empty.
type About struct {
	// URL is the base URL: scheme, host and path.
	URL string
	// API is [APIResponses] or [APIChat].
	API string
	// Transport is "http", "continue" or "websocket".
	Transport string
	// Profile is the name of the endpoint's profile, if known yet.
	Profile string
	// Rehearsal is set for a mock model: no real model answers.
	Rehearsal bool
}
