// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server/sessions"
	"github.com/antiphon-go/antiphon/session"
)

// A front end reads a message while the model writes it: pieces come before the entry of the
// message and after the entries before it, none twice and none missing, also when the connection
// breaks, and one that comes later gets what there is. V2
func TestLiveText(t *testing.T) {
	live := new(sessions.Live)
	w := serving(t, func(h *sessions.Handler) { h.Live = live })
	id := "work-1"
	if err := w.in.Create(t.Context(), session.Info{ID: id, Owner: shop}); err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), w.in, id)
	if err != nil {
		t.Fatal(err)
	}
	add := func(b session.Body) {
		t.Helper()
		added, err := s.Append(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		live.Event(id, agent.Recorded{Entry: added[0]})
	}
	say := func(text string) { live.Event(id, agent.Delta{Kind: agent.DeltaText, Text: text}) }
	add(session.RunStarted{})
	add(session.TurnStarted{Turn: 1})
	say("one ")
	live.Event("another", agent.Delta{Kind: agent.DeltaText, Text: "not yours"})
	live.Event(id, agent.Delta{Kind: agent.DeltaReasoning, Text: "not shown"})

	c := w.as("lead")
	c.URL = "http://" + cutting(t, strings.TrimPrefix(w.base, "http://"), []int64{1000, 1200})
	heard, want, said := "", "one ", ""
	grown := 0
	late := func() string {
		for ev, err := range w.as("reader").Watch(t.Context(), id, id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Text != nil {
				return ev.Text.Text
			}
		}
		return ""
	}
	entries, done := int64(0), false
	for ev, err := range c.Watch(t.Context(), id, id, 0) {
		switch {
		case err != nil:
			t.Fatal(err)
		case ev.Entry != nil:
			entries = ev.Entry.Seq
			if _, ok := ev.Entry.Body.(session.OutputItem); ok && entries == 3 && heard != said {
				t.Fatalf("the entry came after %q", heard)
			}
			done = entries == 4
		case ev.Text != nil:
			if ev.Text.After > entries {
				t.Fatalf("a text after entry %d came before it", ev.Text.After)
			}
			heard += ev.Text.Text
			if heard != want {
				continue // more of it follows
			}
			if grown++; grown < 10 {
				piece := fmt.Sprintf("piece %d ä ", grown)
				want += piece
				say(piece)
			} else if grown == 10 {
				if got := late(); got != want {
					t.Errorf("a late reader gets %q", got)
				}
				// The run is ahead of this reader: the second message begins before the
				// entry of the first one has come.
				said = want
				first := session.OutputItem{Turn: 1, Item: item.Assistant(want)}
				live.Event(id, agent.Recorded{Entry: session.Entry{Seq: 3, Body: first}})
				say("two")
				if _, err := s.Append(t.Context(), first); err != nil {
					t.Fatal(err)
				}
				want += "two"
			} else {
				add(session.OutputItem{Turn: 1, Item: item.Assistant("two")})
			}
		}
		if done {
			break
		}
	}
	if heard != want || entries != 4 {
		t.Errorf("got %q and %d entries", heard, entries)
	}
	add(session.Stopped{Why: "end_turn"})
	live.Event(id, nil)
}
