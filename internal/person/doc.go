// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package person asks the person at the terminal: whether a call may run, for an answer to
// a question of the model, for a yes or a no. It shows all of what is asked about before
// anybody can allow it, takes no line as an answer that was typed before its question, and
// asks one question at a time.
package person
