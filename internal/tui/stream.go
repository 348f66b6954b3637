// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

// Stream renders a model's text as a [Terminal] does while it arrives, without a terminal: for
// comparisons with other renderers. It is not safe for concurrent use.
type Stream struct {
	mark        markdown
	width, rows int
}

// NewStream returns a stream whose unfinished end takes at most so many rows of a width in
// columns.
func NewStream(width, rows int, colour bool) *Stream {
	return &Stream{mark: markdown{colour: colour}, width: width, rows: rows}
}

// Write adds text, which may end anywhere, and returns the lines that leave for the transcript
// with it, and the rows of the unfinished end, which replace those of the call before.
func (s *Stream) Write(text string) (finished, end []string) {
	finished = s.mark.write(Shown(text))
	more, end := s.mark.shown(s.width, s.rows)
	return append(finished, more...), end
}

// End returns the lines of the unfinished end.
func (s *Stream) End() (finished []string) { return s.mark.reset() }
