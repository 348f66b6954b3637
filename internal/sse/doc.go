// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package sse reads and writes event streams as the HTML standard defines them
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). It does not
// interpret the events.
package sse
