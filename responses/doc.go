// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package responses is a client of the Responses API over HTTP: it sends one
// request, streamed or not, repeats it where that is safe, and gives back what
// the model said. Deciding what to send next is for package agent.
package responses
