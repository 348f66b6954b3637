// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench measures Antiphon beside the libraries a user would pick
// instead. It is a module of its own, so that their dependencies stay out of
// Antiphon's.
//
//	cd bench && go test -bench . -count 7
package bench
