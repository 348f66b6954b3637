// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package host runs agents that are kept as files. It chooses who answers an
// agent's file: which model, at which endpoint, with which key.
//
// Use it to run the files that the command antiphon runs, in a program of your
// own. To build an agent in Go, use package agent.
package host
