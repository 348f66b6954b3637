// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
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

// A prompt that waits for its answer is not said twice, also if the run has told the model
// something since. J1
func TestNotSaidTwice(t *testing.T) {
	call := item.Must(&item.FunctionCall{CallID: "c", Name: "find", Arguments: "{}"})
	output := item.Must(&item.FunctionCallOutput{CallID: "c", Output: item.Content{Text: "No."}})
	turn := []session.Body{session.InputItem{Item: item.User("go")}, session.RunStarted{}, session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: call}, session.TurnEnded{Turn: 1}, session.CallOutput{CallID: "c", Item: output}}
	for name, c := range map[string]struct {
		last session.InputItem
		say  string
		want int
	}{
		"a note of the run":       {session.InputItem{Item: item.User("note"), Own: true}, "go", 0},
		"something else":          {session.InputItem{Item: item.User("note"), Own: true}, "stop", 1},
		"the words of the note":   {session.InputItem{Item: item.User("note"), Own: true}, "note", 1},
		"a message of the person": {session.InputItem{Item: item.User("more")}, "go", 1},
	} {
		s := session.New()
		if _, err := s.Append(t.Context(), append(slices.Clone(turn), c.last)...); err != nil {
			t.Fatal(err)
		}
		if got := input([]item.Item{item.User(c.say)}, s); len(got) != c.want {
			t.Errorf("%s: says %d messages, want %d", name, len(got), c.want)
		}
	}
}
