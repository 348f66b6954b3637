// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package session records a conversation as a log of append-only entries with
// sequence numbers, and derives from it the view that the next request sends.
//
// The log is the only source. An item is recorded as soon as it is complete, a call
// is marked before its tool starts, and nothing is ever rewritten or removed. The
// content of a request is derived: [View] folds the entries one by one, keeps every
// call together with its output and holds back items that must wait. A decision to
// send something else than before, such as a marker for an item that the endpoint
// refuses, or a summary instead of older items, is an entry too. [Explain] reports
// what became of each item.
package session
