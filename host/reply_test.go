// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// TestLastReply finds the reply that a log ends with.
func TestLastReply(t *testing.T) {
	ask, say := item.User("q"), item.Assistant("a")
	for name, c := range map[string]struct {
		log  []session.Body
		want int
	}{
		"nothing":         {[]session.Body{session.InputItem{Item: ask}}, 0},
		"a turn":          {[]session.Body{session.InputItem{Item: ask}, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: say}, session.TurnEnded{Turn: 1}}, 1},
		"asked again":     {[]session.Body{session.InputItem{Item: ask}, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: say}, session.InputItem{Item: ask}}, 0},
		"a transcript":    {[]session.Body{session.InputItem{Item: ask}, session.InputItem{Item: say}, session.InputItem{Item: say}}, 2},
		"after its end":   {[]session.Body{session.InputItem{Item: say}, session.TurnEnded{}, session.InputItem{Item: say}}, 1},
		"turn after turn": {[]session.Body{session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: say}, session.TurnStarted{Turn: 2}, session.OutputItem{Turn: 2, Item: say}}, 1},
	} {
		s := session.New()
		if _, err := s.Append(t.Context(), c.log...); err != nil {
			t.Fatal(err)
		}
		if got := LastReply(s); len(got.Items) != c.want {
			t.Errorf("%s: %d items, want %d", name, len(got.Items), c.want)
		}
	}
}
