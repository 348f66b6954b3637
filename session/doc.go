// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package session is the log of a conversation: append-only entries with
// sequence numbers, and the view over them that the next request carries.
//
// The log is the truth. An item is recorded the moment it is complete, a call
// is marked before its tool starts, and nothing is ever rewritten or removed.
// What a request sends is derived: [View] folds entries one by one, keeps every
// call together with its output and holds back what must wait. A decision to
// send something else than before, such as a marker for an item that the
// endpoint refuses, or a summary instead of older items, is an entry too;
// [Explain] says what became of each item.
package session
