// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// A text that a server sends while it is written is shown once: with the rest that its entry
// has, and again as a whole only if the entry says something else.
func TestLiveTextIsShownOnce(t *testing.T) {
	t.Parallel()
	says := func(text string) agent.Event {
		return agent.Recorded{Entry: session.Entry{Body: session.OutputItem{Item: item.Assistant(text)}}}
	}
	piece := func(text string) agent.Event { return agent.Delta{Kind: agent.DeltaText, Text: text} }
	turn := agent.Recorded{Entry: session.Entry{Body: session.TurnStarted{Turn: 2}}}
	for want, events := range map[string][]agent.Event{
		"one two\n":       {piece("one "), piece("two"), says("one two")},
		"one two three\n": {piece("one "), says("one two three")},
		"one\nother\n":    {piece("one"), says("other")},
		"lost\nnew\n":     {piece("lost"), turn, says("new")},
		"whole\nnext\n":   {says("whole"), piece("ne"), piece("xt"), says("next")},
	} {
		var out bytes.Buffer
		a := &attached{show: newPrinter(stdio{out: &out, err: io.Discard}, environment{})}
		for _, ev := range events {
			if err := a.take(ev); err != nil {
				t.Error(err)
			}
		}
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}
