// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

// prose is a text of n words.
func prose(n int) string { return strings.TrimSpace(strings.Repeat("wordless ", n)) }

// ollama is a client of a server that drops what does not fit.
func ollama(t *testing.T, l *agenttest.Local) *agent.Agent {
	l.Ollama, l.Text = true, numbers
	agenttest.StartLocal(t, l)
	profile, err := endpoint.ByName("ollama")
	if err != nil {
		t.Fatal(err)
	}
	a := &agent.Agent{Model: &responses.Client{BaseURL: l.URL, Profile: &profile, Retry: endpoint.Retry{Max: -1}}}
	a.Request.Model = "m"
	return a
}

// E8: whenever a server that cuts histories reports no more tokens than for the
// shorter request before, this is noticed, and the run does not end as if
// nothing had happened; where nothing was cut, nothing is said.
func TestAnyCutIsNoticed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := &agenttest.Local{Window: 4096}
		a := ollama(t, l)
		s := session.New()
		before, noticed := 0, 0
		for i := range rapid.IntRange(3, 14).Draw(rt, "asks") {
			input := []item.Item{item.User(fmt.Sprint("ask ", i, " ", prose(rapid.IntRange(60, 1000).Draw(rt, "words"))))}
			res, err := a.Run(t.Context(), s, input...)
			requests := l.Requests()
			last := requests[len(requests)-1]
			seen := 0
			for e := range s.Entries() {
				if n, ok := e.Body.(session.Noticed); ok && n.Kind == session.NoticeHistoryCut {
					seen++
				}
			}
			switch cut := last.Dropped > 0; {
			case !cut && (seen > noticed || err != nil || res.Why != agent.StopEndTurn):
				rt.Fatalf("ask %d: nothing was cut: %v, %v", i, res, err)
			case cut && last.Input <= before && (seen == noticed || res.Why != agent.StopContextFull):
				rt.Fatalf("ask %d: %d messages were dropped, %d tokens after %d: %+v, %v", i, last.Dropped, last.Input, before, res, err)
			}
			before, noticed = last.Input, seen
		}
	})
}

// E8 C4: with a compaction asked for, a cut history is made shorter before the
// model is asked again, also by the next process.
func TestCutHistoryIsCompacted(t *testing.T) {
	l := &agenttest.Local{Window: 4096}
	a := ollama(t, l)
	a.Compaction = agent.Compaction{Auto: true, By: session.ByDropping}
	s := session.New()
	for i := range 12 {
		if _, err := a.Run(t.Context(), s, item.User(fmt.Sprint("ask ", i, " ", prose(900)))); err != nil {
			t.Fatal(err)
		}
	}
	cuts := 0
	for _, r := range l.Requests() {
		if r.Dropped > 0 {
			cuts++
		}
	}
	compacted := 0
	for e := range s.Entries() {
		if c, ok := e.Body.(session.Compacted); ok && c.Failure == "" {
			compacted++
		}
	}
	if cuts == 0 || cuts > 2 || compacted < 2 {
		t.Errorf("%d requests were cut, %d compactions", cuts, compacted)
	}
}

// E8: a window that the server tells is asked for once, after a reply, and kept
// in the log: what certainly exceeds it is not sent, or compacted before.
func TestWindowIsLearned(t *testing.T) {
	for _, auto := range []bool{false, true} {
		l := &agenttest.Local{Window: 4096, Offered: true}
		a := ollama(t, l)
		a.Compaction = agent.Compaction{Auto: auto, By: session.ByDropping}
		s := session.New()
		var why agent.StopReason
		for i := range 8 {
			res, err := a.Run(t.Context(), s, item.User(fmt.Sprint("ask ", i, " ", prose(900))))
			if why = res.Why; err != nil {
				if !strings.Contains(err.Error(), "OLLAMA_CONTEXT_LENGTH") {
					t.Fatal(err)
				}
				break
			}
		}
		for i, r := range l.Requests() {
			if r.Dropped > 0 {
				t.Errorf("compacting %v: request %d was cut", auto, i)
			}
		}
		if got := l.Asked(); len(got) != 1 || got[0] != "/api/ps" {
			t.Errorf("asked for %v", got)
		}
		if want := map[bool]agent.StopReason{false: agent.StopContextFull, true: agent.StopEndTurn}[auto]; why != want {
			t.Errorf("compacting %v: the last run ended as %s", auto, why)
		}
		windows := 0
		for e := range s.Entries() {
			if end, ok := e.Body.(session.TurnEnded); ok && end.Window != 0 {
				windows++
			}
		}
		if windows != 1 {
			t.Errorf("the log tells the window %d times", windows)
		}
	}
}
