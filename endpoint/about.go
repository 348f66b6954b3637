// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

// About says where a client sends its requests and how, for logs and people. It
// holds no secrets. What is not known is empty.
type About struct {
	// URL is the base URL: scheme, host and path.
	URL string
	// API is [APIResponses] or [APIChat].
	API string
	// Transport is "http", "continue" or "websocket".
	Transport string
	// Profile is the name of the endpoint's profile, as far as it is known by now.
	Profile string
	// Rehearsal says that no model answers.
	Rehearsal bool
}
