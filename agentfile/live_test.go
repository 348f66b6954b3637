// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/chatmd/transcript"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// author writes logs as runs write them, with models that break off, tools
// that start early and end before the reply does, and crashes.
type author struct {
	t      *rapid.T
	s      *session.Session // in the transcript
	kept   *session.Session // the same, in a store that keeps entries
	view   session.View
	turn   int
	marks  int
	broken bool // the last turn broke off
	left   int  // how many entries there are before the process dies
}

// died ends a life of the author.
type died struct{}

// live writes until the process dies or has written all.
func (a *author) live(write func()) {
	defer func() {
		if r := recover(); r != nil && r != (died{}) {
			panic(r)
		}
	}()
	write()
}

func (a *author) add(bodies ...session.Body) {
	if a.left -= len(bodies); a.left < 0 {
		panic(died{})
	}
	entries, err := a.s.Append(a.t.Context(), bodies...)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, e := range entries {
		a.view.Apply(e)
	}
	if _, err := a.kept.Append(a.t.Context(), bodies...); err != nil {
		a.t.Fatal(err)
	}
}

func (a *author) pick(name string, n int) int { return rapid.IntRange(0, n-1).Draw(a.t, name) }

func (a *author) spoken(partial bool) item.Item {
	a.marks++
	m := fmt.Sprintf("<%d>", a.marks)
	status := item.StatusCompleted
	kind := a.pick("kind", 8)
	if partial {
		status, kind = item.StatusIncomplete, a.pick("kind", 2)
	}
	switch kind {
	case 0:
		return item.Must(&item.Reasoning{ID: "rs" + m, Summary: []item.Part{}, EncryptedContent: "e", Status: status})
	case 1:
		text := []string{m, "", " "}[a.pick("text", 3)]
		return item.Must(&item.Message{ID: "msg" + m, Role: item.RoleAssistant, Status: status, Content: item.Parts(&item.OutputText{Text: text, Annotations: "[]"})})
	case 2:
		return item.Must(&item.Unknown{Raw: item.JSON(`{"type":"computer_call","id":"i","call_id":"u` + m + `","pending_safety_checks":[],"status":"completed"}`)})
	case 3:
		return item.Must(&item.CustomToolCall{CallID: a.callID(), Name: "f", Input: m})
	}
	return item.Must(&item.FunctionCall{CallID: a.callID(), Name: "f", Arguments: m, Status: status})
}

func (a *author) callID() string {
	return []string{"a", "b", strings.Repeat("long", 20)}[a.pick("id", 3)]
}

// answer gives an open call its output, as far as there is one. It reports
// whether there is.
func (a *author) answer(c session.OpenCall) bool {
	a.marks++
	out, ok, err := item.OutputFor(c.Item, item.Text(fmt.Sprintf("<%d>", a.marks)))
	switch {
	case err != nil:
		a.t.Fatal(err)
	case !ok:
		a.add(session.CallDropped{CallID: c.CallID})
		return false
	case !c.Started && a.pick("waits", 6) == 0:
		a.add(session.ApprovalAsked{CallID: c.CallID, Number: c.Number})
	}
	if !c.Started && a.pick("started", 2) == 0 {
		a.add(session.CallStarted{CallID: c.CallID, Repeatable: a.pick("repeatable", 3) == 0})
	}
	a.add(session.CallOutput{CallID: c.CallID, Item: out})
	return true
}

// answers does so with all.
func (a *author) answers() (outputs int) {
	for len(a.view.Open()) > 0 {
		if a.answer(a.view.Open()[0]) {
			outputs++
		}
	}
	return outputs
}

// reply is one turn with all that follows from it.
func (a *author) reply() {
	a.turn++
	a.add(session.TurnStarted{Turn: a.turn})
	a.broken = false
	for range a.pick("items", 6) {
		it := a.spoken(false)
		a.add(session.OutputItem{Turn: a.turn, Item: it})
		if it.IsCall() && a.pick("early", 3) == 0 {
			a.add(session.CallStarted{CallID: it.CallID()})
		}
		if open := a.view.Open(); len(open) > 0 && open[0].Started && a.pick("done early", 3) == 0 {
			a.answer(open[0])
		}
	}
	switch a.pick("end", 5) {
	case 0, 1:
		end := session.TurnEnded{Turn: a.turn, Status: item.StatusCompleted, ResponseID: "r", Cost: float64(a.pick("cost", 3)) / 3, Window: int64(a.pick("window", 2)) * 1000}
		if a.pick("usage", 2) == 0 {
			end.Usage = &api.Usage{InputTokens: 3, OutputTokens: 4, TotalTokens: 7}
		}
		a.add(end)
	case 2:
		a.add(session.RunStarted{})
		a.broken = true
	default:
		for range a.pick("partial items", 3) {
			a.add(session.OutputItem{Turn: a.turn, Item: a.spoken(true), Partial: true})
		}
		a.add(session.TurnEnded{Turn: a.turn, Status: item.StatusFailed})
		a.broken = true
	}
	if a.answers() == 0 && !a.broken {
		a.add(session.InputItem{Item: item.User("more")})
	}
	a.decide()
}

// numbers returns the entries of a log that are items, and those that are
// compactions. A transcript has fewer entries than a store, but not of these.
func numbers(s *session.Session) (items, compactions []int64) {
	for e := range s.Entries() {
		if transcript.HoldsItem(e.Body) {
			items = append(items, e.Seq)
		}
		if _, ok := e.Body.(session.Compacted); ok {
			compactions = append(compactions, e.Seq)
		}
	}
	return items, compactions
}

// decide is what runs decide between replies, and what they tell people.
func (a *author) decide() {
	if a.left <= 0 {
		return
	}
	items, compactions := numbers(a.s)
	var b func(items, compactions []int64) session.Body
	switch a.pick("decision", 8) {
	case 0:
		through, kept := a.pick("through", len(items)), []int{a.pick("kept", len(items)), a.pick("kept", len(items))}
		b = func(items, _ []int64) session.Body {
			return session.Compacted{
				Through: items[through], Kept: []int64{items[kept[0]], items[kept[1]]}, By: session.BySummary, Before: 100, After: 10, Cost: 0.1,
				Items: []item.Item{item.User("in \"short\" <user>\n&amp; |RAW"), item.User("<2>")}, Usage: &api.Usage{TotalTokens: 9},
			}
		}
	case 1:
		b = func(_, _ []int64) session.Body {
			return session.Compacted{By: session.ByEndpoint, Failure: "it <failed>", Usage: &api.Usage{TotalTokens: 9}}
		}
	case 2:
		if len(compactions) == 0 {
			return
		}
		n := a.pick("restored", len(compactions))
		b = func(_, compactions []int64) session.Body { return session.Restored{Seq: compactions[n]} }
	case 3:
		b = func(_, _ []int64) session.Body {
			return session.Noticed{Turn: a.turn, Kind: session.NoticeTextDiffers, ItemID: "msg", Text: "a \"text\"\nof two <lines>"}
		}
	case 4:
		b = func(_, _ []int64) session.Body {
			return session.SubagentUsage{CallID: "a", Turns: 2, Tokens: 30, Cost: 0.5}
		}
	default:
		return
	}
	a.left--
	for _, s := range []*session.Session{a.s, a.kept} {
		entries, err := s.Append(a.t.Context(), b(numbers(s)))
		if err != nil {
			a.t.Fatal(err)
		}
		if s == a.s {
			a.view.Apply(entries[0])
		}
	}
}

// told is what a log says besides the conversation: what people were told, what
// was used, and how often something was decided.
func told(s *session.Session) (list []string) {
	var usage api.Usage
	cost := 0.0
	use := func(u *api.Usage, c float64) {
		if cost += c; u != nil {
			usage.InputTokens, usage.OutputTokens, usage.TotalTokens = usage.InputTokens+u.InputTokens, usage.OutputTokens+u.OutputTokens, usage.TotalTokens+u.TotalTokens
		}
	}
	for e := range s.Entries() {
		switch b := e.Body.(type) {
		case session.Noticed:
			list = append(list, fmt.Sprintf("%+v", b))
		case session.SubagentUsage:
			list = append(list, fmt.Sprintf("%+v", b))
		case session.Compacted:
			list = append(list, fmt.Sprintf("%s %q %d %d", b.By, b.Failure, b.Before, b.After))
			use(b.Usage, b.Cost)
		case session.Restored:
			list = append(list, "restored")
		case session.TurnEnded:
			if b.Window > 0 {
				list = append(list, fmt.Sprintf("window %d", b.Window))
			}
			use(b.Usage, b.Cost)
		}
	}
	return append(list, fmt.Sprintf("%d %d %d tokens, %.3f", usage.InputTokens, usage.OutputTokens, usage.TotalTokens, cost))
}

// sent is what the next run sends with its first request, or what it does
// instead. Calls that it may start come to one output.
func sent(t *rapid.T, s *session.Session) (list []string, next plan.Effect) {
	var state plan.State
	seq := int64(0)
	apply := func(b session.Body) {
		seq++
		state.Apply(session.Entry{Seq: seq, Body: b})
	}
	answer := func(ref plan.CallRef, text string) {
		c, _ := state.View().Call(ref.CallID, ref.Number)
		if out, ok, _ := item.OutputFor(c.Item, item.Text(text)); ok {
			apply(session.CallOutput{CallID: c.CallID, Item: out})
		} else {
			apply(session.CallDropped{CallID: c.CallID, Reason: text})
		}
	}
	for e := range s.Entries() {
		apply(e.Body)
	}
	apply(session.RunStarted{})
	for {
		next = state.Next()
		switch e := next.(type) {
		case plan.Skip:
			answer(e.Calls[0].CallRef, e.Calls[0].Reason)
			continue
		case plan.Approve:
			apply(session.Approval{CallID: e.Calls[0].CallID, Allowed: true})
			continue
		case plan.Call:
			apply(session.CallStarted{CallID: e.Calls[0].CallID})
			answer(e.Calls[0], "ran")
			continue
		}
		break
	}
	apply(session.TurnStarted{})
	var items []item.Item
	for _, it := range state.View().Items().All() {
		items = append(items, it)
		list = append(list, it.JSON())
	}
	if err := agenttest.CheckPairing(items...); err != nil {
		t.Fatal(err)
	}
	return list, next
}

// TestTranscriptTellsAll proves that a crash leaves a transcript that sends what
// a session with the same entries would: replies that broke off, calls that were
// started, at any time, and calls that were not. M9 P1 R6 E4 I12 J1
func TestTranscriptTellsAll(t *testing.T) {
	dir := t.TempDir()
	path := write(t, prompt, dir, "agent.md")
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		out := filepath.Join(dir, fmt.Sprintf("talk%d.md", n))
		var opened *agentfile.File
		defer func() { opened.Close() }()
		reopen := func() *session.Session {
			if opened != nil {
				opened.Close()
			}
			f, store, err := agentfile.OpenTranscript(t.Context(), path, out, agentfile.Options{Consent: trust.Everything, Known: yours})
			if err != nil {
				t.Fatal(err)
			}
			opened = f
			s, err := session.Open(t.Context(), store, out)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		a := &author{t: t, s: reopen(), kept: session.New()}
		for e := range a.s.Entries() {
			if _, err := a.kept.Append(t.Context(), e.Body); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "lives") {
			a.view = session.View{}
			for e := range a.s.Entries() {
				a.view.Apply(e)
			}
			a.left = rapid.IntRange(1, 40).Draw(t, "entries")
			a.live(func() {
				a.add(session.RunStarted{})
				a.answers()
				a.add(session.InputItem{Item: item.User("go on")})
				for a.left > 0 {
					a.reply()
				}
			})
			want, next := sent(t, a.kept)
			a.s = reopen()
			got, nextRead := sent(t, a.s)
			text, err := os.ReadFile(out)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-session +transcript):\n%s\n%s", diff, text)
			}
			if diff := cmp.Diff(told(a.kept), told(a.s)); diff != "" { // U5 J12
				t.Fatalf("(-session +transcript):\n%s\n%s", diff, text)
			}
			if reflect.TypeOf(next) != reflect.TypeOf(nextRead) {
				t.Fatalf("the session: %#v, the transcript: %#v\n%s", next, nextRead, text)
			}
		}
	})
}
