// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// scribble writes a random log, and says for each message in it what the rules say about
// it: a plain version of what a run reads from the log.
type scribble struct {
	log  []session.Body
	said []scribbled
	turn int
	run  bool // entries are written by a run
}

// scribbled is a message at a place in the log.
type scribbled struct {
	text               string
	at                 int
	inRun, instruction bool
}

func (s *scribble) say(text string, instruction bool) {
	s.said = append(s.said, scribbled{text, len(s.log), s.run, instruction})
	it := item.User(text)
	if instruction {
		it = item.Developer(text)
	}
	s.log = append(s.log, session.InputItem{Item: it})
}

// step adds a few entries.
func (s *scribble) step(what string) {
	add := func(b ...session.Body) { s.log = append(s.log, b...) }
	text := fmt.Sprint("m", len(s.log))
	switch what {
	case "user":
		s.say(text, false)
	case "developer":
		s.say(text, true)
	case "reply of a program":
		add(session.InputItem{Item: item.Assistant(text)})
	case "start":
		add(session.RunStarted{})
		s.run = true
	case "stop":
		add(session.Stopped{Why: "answered"})
		s.run = false
	case "answered", "broken", "crashed":
		if !s.run {
			s.step("start")
		}
		s.turn++
		add(session.TurnStarted{Turn: s.turn}, session.OutputItem{Turn: s.turn, Item: item.Assistant(text)})
		switch what {
		case "answered":
			add(session.TurnEnded{Turn: s.turn, Status: item.StatusCompleted})
		case "broken":
			add(session.TurnEnded{Turn: s.turn, Status: item.StatusCancelled, Reason: "it broke off"})
		}
	case "withdrawn":
		if len(s.said) > 0 {
			add(session.ItemsWithdrawn{Seqs: []int64{int64(s.said[len(s.said)-1].at + 1)}, By: "police"})
		}
	case "imported":
		add(session.Noticed{Kind: session.NoticeImported, Text: "imported"})
	case "import begins":
		add(session.Noticed{Kind: session.NoticeImportBegins, Text: "imported from here on"})
	}
}

// after reports whether an entry that matches, and that was not imported, stands behind a
// place.
func (s *scribble) after(at int, is func(i int, b session.Body) bool) bool {
	for i := at + 1; i < len(s.log); i++ {
		if s.ours(i) && is(i, s.log[i]) {
			return true
		}
	}
	return false
}

// ours reports whether an entry is in no part that was imported.
func (s *scribble) ours(at int) bool {
	begins := 0
	for i, b := range s.log {
		switch n, _ := b.(session.Noticed); n.Kind {
		case session.NoticeImportBegins:
			begins = i
		case session.NoticeImported:
			if begins <= at && at < i {
				return false
			}
			begins = 0
		}
	}
	return true
}

// unread reports whether no model has answered a message, and carried whether a request
// has carried it.
func (s *scribble) unread(m scribbled) (unread, carried bool) {
	withdrawn := slices.ContainsFunc(s.log, func(b session.Body) bool {
		w, ok := b.(session.ItemsWithdrawn)
		return ok && slices.Contains(w.Seqs, int64(m.at+1))
	})
	history := !m.inRun && s.ours(m.at) && s.outside(m.at)
	answered := s.after(m.at, func(i int, b session.Body) bool {
		_, begun := b.(session.TurnStarted)
		if !begun || i+2 >= len(s.log) {
			return false
		}
		end, ended := s.log[i+2].(session.TurnEnded)
		return ended && !end.BrokeOff()
	})
	carried = s.after(m.at, func(_ int, b session.Body) bool { _, begun := b.(session.TurnStarted); return begun })
	return !withdrawn && !history && !answered, carried
}

// outside reports whether a program appended a reply behind a place, outside of a run.
func (s *scribble) outside(at int) bool {
	run := false
	for i, b := range s.log {
		switch b := b.(type) {
		case session.RunStarted:
			run = true
		case session.Stopped:
			run = false
		case session.InputItem:
			if i > at && s.ours(i) && !run && b.Item.Role() == item.RoleAssistant {
				return true
			}
		}
	}
	return false
}

// Whatever stands in a log, hooks are asked about the input that no request has carried
// yet, and guards about the input that no model has answered, each message once. G2
func TestUnreadInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s scribble
		for range rapid.IntRange(0, 14).Draw(t, "steps") {
			s.step(rapid.SampledFrom([]string{"user", "user", "developer", "reply of a program", "start", "stop", "answered", "broken", "crashed", "withdrawn", "imported", "import begins"}).Draw(t, "step"))
		}
		s.step("user")
		var hooks, guards []string
		for _, m := range s.said {
			unread, carried := s.unread(m)
			if unread && !carried {
				hooks = append(hooks, m.text)
			}
			if unread && !m.instruction {
				guards = append(guards, m.text)
			}
		}
		log := session.New()
		if _, err := log.Append(context.Background(), s.log...); err != nil {
			t.Fatal(err)
		}
		var shown, read []string
		a := &agent.Agent{
			Model: agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply { return saying("fine") }),
			Hooks: []agent.Hooks{{BeforeInput: func(_ context.Context, c *agent.InputCall) error {
				shown = append(shown, textsOf(c.Input)...)
				return nil
			}}},
			Guards: []agent.Guard{{First: true, Input: func(_ context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
				read = append(read, textsOf(c.Items)...)
				return nil, nil
			}}},
		}
		if _, err := a.Run(context.Background(), log); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(hooks, shown); diff != "" {
			t.Errorf("hooks saw (-want +got)\n%s\n%v", diff, s.log)
		}
		if diff := cmp.Diff(guards, read); diff != "" {
			t.Errorf("guards read (-want +got)\n%s\n%v", diff, s.log)
		}
	})
}

func textsOf(list []item.Item) (texts []string) {
	for _, it := range list {
		m, _ := item.As[item.Message](it)
		texts = append(texts, m.Content.Display())
	}
	return texts
}
