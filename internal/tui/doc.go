// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package tui is the terminal of antiphon chat: a transcript that goes to the
// terminal's own scrollback, and below it a live part with the unfinished end of the
// reply, the work in progress, the draft of the next prompt and a status line.
//
// The package knows nothing of agents and sessions. A program writes the model's text to
// [Terminal.Text] and everything else to [Terminal.Notes], and reads prompts with
// [Terminal.Next].
//
// # Drawing
//
// What is finished and the live part below it leave in one write, inside one
// synchronized update, so that no other output can come between them. The only
// sequences are line feeds, erasing and relative moves: there are no scroll regions, and
// no row of the screen is addressed by its number. The live part takes at most a third of
// the screen. The cursor in the draft is drawn, and the terminal's own one is hidden at the
// beginning of the live part, because terminals disagree about where a cursor is after the
// width has changed. Package bubbletea is not used, because it writes what it prints above its
// frame and the frame apart, and without its renderer it neither sets up the terminal nor
// reports its size. Its decoder of keys, package ultraviolet, is used.
//
// Lines are not broken by this package, so that the terminal wraps them again when its
// size changes, and text copies as it was written. That is also why the Markdown renderer
// is our own: others break lines, need the whole block, and highlight code with tables
// whose initialization takes longer than the first frame may.
package tui
