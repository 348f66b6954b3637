// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "math"

// speaker says which agent the conversation was handed to.
type speaker struct {
	path []string // names of the handoffs, in order, before the last request
	next string   // the handoff since then, or ""
	cut  bool     // the history was shortened for it
}

// Speaker returns the names of the handoffs that lead from the session's first agent to
// the one that made the last request, in order. Next is a handoff since then, which the
// next request follows, or "". Cut reports whether the history was shortened for it. See
// [session.NoticeHandoff]. The caller must not change path.
func (s *State) Speaker() (path []string, next string, cut bool) {
	return s.speaker.path, s.speaker.next, s.speaker.cut
}

// Handoffs returns the number of handoffs in the last run.
func (s *State) Handoffs() int { return s.run.handoffs }

// handedOver folds a handoff by an open call. Of several since the last request the first
// counts.
func (s *State) handedOver(callID string) {
	c, ok := s.view.Call(callID, 0)
	if !ok || s.speaker.next != "" {
		return
	}
	s.speaker.next, s.speaker.cut = ToolName(c.Item), false
	s.run.handoffs++
	s.run.fallbacks, s.run.failed = 0, nil // the other agent has its own models
}

// Cut returns the compaction that leaves only what people and programs said. It reports
// false if there is nothing else.
func (s *State) Cut(by string) (Compact, bool) {
	through, _ := s.view.Boundary(s.view.Items().Len())
	if through == 0 {
		return Compact{}, false
	}
	c := Compact{Through: through, By: by, Before: s.Tokens()}
	c.Kept, c.Replaced = s.replaced(through, math.MaxInt64)
	return c, true
}
