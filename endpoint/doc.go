// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package endpoint holds the parts that clients of model APIs share: keys that cannot leak,
// profiles of endpoints and models as data, the URL of a request, the classes of errors, the status
// and headers of answers, and the budget of retries. It does not implement an API.
//
// [Detect] finds the [Profile] for a base URL, and [LookupModel] finds the features of a model.
// [LoadProfiles] reads a file that adds to both or changes them. An [Error] has the same form for
// HTTP, event streams and WebSockets: [FromResponse], [FromEvent] and [FromTransport] make it, its
// [Class] depends only on status and code, and [Error.SafeToRetry] reports whether a retry may
// help. [WithMeta] gives the caller the rate limits and request ids of every answer.
package endpoint
