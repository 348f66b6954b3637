// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package kept has what the backends of package server that store responses keep in sessions
// beside them: which response was made for an Idempotency-Key, the files of clients, and what
// is to be sent to a webhook. It also compares histories that clients send back with stored ones.
package kept
