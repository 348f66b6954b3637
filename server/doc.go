// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package server writes what a server of the Responses API sends.
package server
