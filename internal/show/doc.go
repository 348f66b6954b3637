// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package show writes what happens in runs for a person at a terminal. A front end that
// does not redraw a screen of its own needs nothing else.
//
// A [Printer] shows the events of a run, or a log with one row per entry. A [Screen] puts
// status lines below that, which say what is waited for. [Asked] formats a call in full
// for a question about it, with changes of files as diffs. The other functions turn items,
// verdicts, sizes and times into words, and foreign text into text that a terminal does
// not obey.
package show
