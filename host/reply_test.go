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
		if got := unsaid([]item.Item{item.User(c.say)}, nil, s); len(got) != c.want {
			t.Errorf("%s: says %d messages, want %d", name, len(got), c.want)
		}
	}
}

// What is new beside a prompt that waits for its answer is said, and the prompt is not said
// twice. J1, U2
func TestSaidBeside(t *testing.T) {
	given := func(list ...item.Item) (log []session.Body) {
		for _, it := range list {
			log = append(log, session.InputItem{Item: it})
		}
		return append(log, session.RunStarted{}, session.TurnStarted{Turn: 1}, session.TurnEnded{Turn: 1, Status: item.StatusFailed, Reason: "no server"}, session.Stopped{Why: "provider_error"})
	}
	answered := func(list ...item.Item) []session.Body {
		log := given(list...)[:len(list)]
		return append(log, session.RunStarted{}, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Assistant("yes")},
			session.TurnEnded{Turn: 1, Status: item.StatusCompleted}, session.Stopped{Why: "end_turn"})
	}
	hi, more := item.User("hi"), item.User("more")
	french, german := item.System("Answer in French."), item.System("Answer in German.")
	for name, c := range map[string]struct {
		log               [][]session.Body
		beside, say, want []item.Item
	}{
		"an instruction":             {[][]session.Body{given(hi)}, nil, []item.Item{french, hi}, []item.Item{french}},
		"an output":                  {[][]session.Body{given(hi)}, nil, []item.Item{more, hi}, []item.Item{more}},
		"both again":                 {[][]session.Body{given(french, hi)}, nil, []item.Item{french, hi}, nil},
		"both again, in parts":       {[][]session.Body{given(hi), given(french)}, nil, []item.Item{french, hi}, nil},
		"another instruction":        {[][]session.Body{given(hi), given(french)}, nil, []item.Item{german, hi}, []item.Item{german}},
		"without the instruction":    {[][]session.Body{given(hi), given(french)}, nil, []item.Item{hi}, nil},
		"without the output":         {[][]session.Body{given(hi), given(more)}, []item.Item{more}, []item.Item{hi}, nil},
		"one of two":                 {[][]session.Body{given(hi)}, nil, []item.Item{hi, hi}, []item.Item{hi}},
		"another prompt":             {[][]session.Body{given(french, hi)}, nil, []item.Item{french, more}, []item.Item{french, more}},
		"an answered prompt":         {[][]session.Body{answered(hi)}, nil, []item.Item{french, hi}, []item.Item{french, hi}},
		"answered, then instructed":  {[][]session.Body{answered(hi), given(french)}, nil, []item.Item{hi}, []item.Item{hi}},
		"answered, and asked again":  {[][]session.Body{answered(hi), given(hi)}, nil, []item.Item{hi}, nil},
		"withdrawn by a guard":       {[][]session.Body{given(hi), {session.InputItem{Item: more}, session.ItemsWithdrawn{Seqs: []int64{6}}}}, nil, []item.Item{more}, []item.Item{more}},
		"before something withdrawn": {[][]session.Body{given(hi), {session.InputItem{Item: more}, session.ItemsWithdrawn{Seqs: []int64{6}}}}, nil, []item.Item{hi}, nil},
	} {
		s := session.New()
		if _, err := s.Append(t.Context(), slices.Concat(c.log...)...); err != nil {
			t.Fatal(err)
		}
		if got := unsaid(c.say, c.beside, s); !slices.Equal(got, c.want) {
			t.Errorf("%s: says %v, want %v", name, got, c.want)
		}
	}
}
