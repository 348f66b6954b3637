// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package endpoint is what clients of model APIs share: keys that cannot leak,
// profiles of endpoints as data, the URL of a request, the table of errors, and
// the budget of retries. It speaks no API itself.
package endpoint
