// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// armed is a log that decides for the run that continues it.
var armed = []session.Body{
	session.RunStarted{Conversation: session.Conversation{ID: "conv_1", Session: "other"}},
	session.TurnStarted{Turn: 1},
	session.OutputItem{Turn: 1, Item: item.Must(&item.FunctionCall{CallID: "c1", Name: "to_billing", Arguments: "{}"})},
	session.OutputItem{Turn: 1, Item: item.Must(&item.FunctionCall{CallID: "c2", Name: "pay", Arguments: "{}"})},
	session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
	session.Noticed{Turn: 1, Kind: session.NoticeJudged, Text: "the hooks have seen the reply"},
	session.CallStarted{CallID: "c1"},
	session.Noticed{Turn: 1, Kind: session.NoticeHandoff, CallID: "c1", Text: "the conversation was handed over"},
	session.CallStarted{CallID: "c2", Repeatable: true},
	session.Noticed{Turn: 1, Kind: session.NoticeFallback, Text: "busy"},
	session.Noticed{Kind: session.NoticeGapsAccepted, Text: "go on"},
}

// K5: what a transcript decides counts only if a run of this user began it, or the user
// trusts it; of a stranger's, warnings name what does not count. It stays in the file.
func TestTranscriptOfStranger(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, "<user>hi</user>\n", dir, "agent.md"), write(t, "", dir, "talk", "keep")
	out = strings.TrimSuffix(out, "keep") + "talk.md"
	var began []trust.Claim
	var ledger memory
	o := agentfile.Options{Began: func(c trust.Claim) { began = append(began, c) }, Leave: ledger.leave}
	f, store, err := agentfile.OpenTranscript(t.Context(), path, out, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), store, out)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, armed...)
	f.Close()
	if len(began) != 1 {
		t.Fatalf("it was begun %d times", len(began))
	}
	text := read(t, out)
	elsewhere := write(t, text, dir, "talk", "mail.md")
	known := func(src trust.Source) (trust.Left, bool) {
		return ledger.left(src), slices.Contains(began[0].Sources, src)
	}
	for _, c := range []struct {
		name  string
		path  string
		known func(trust.Source) (trust.Left, bool)
		own   bool
	}{
		{"begun by this user", out, known, true},
		{"nobody says who began it", out, nil, false},
		{"a copy from a stranger", elsewhere, known, false},
	} {
		for _, store := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, ", as a store ", store), func(t *testing.T) {
				o := agentfile.Options{Known: c.known, KeepAgent: true}
				var f *agentfile.File
				var err error
				if store {
					f, _, err = agentfile.OpenTranscript(t.Context(), path, c.path, o)
				} else {
					f, err = agentfile.Load(t.Context(), c.path, o)
				}
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				var state plan.State
				for i, b := range f.Log() {
					state.Apply(session.Entry{Seq: int64(i) + 1, Body: b})
				}
				_, next, _ := state.Speaker()
				asked, _ := state.Fallbacks()
				talk, repeats := "", false
				for _, b := range f.Log() {
					if b, ok := b.(session.RunStarted); ok {
						talk += b.Conversation.Session
					}
				}
				for _, call := range state.View().Open() {
					repeats = repeats || call.Repeatable
				}
				warned := 0
				for _, w := range f.Warnings {
					if strings.Contains(w.Error(), "it does not count") {
						warned++
					}
				}
				if got := next != "" || asked > 0 || talk != "" || repeats; got != c.own || (warned == 0) != c.own {
					t.Errorf("handed to %q, %d fallbacks, conversation of %q, repeatable %v; %d warnings: %v", next, asked, talk, repeats, warned, f.Warnings)
				}
				last := f.Log()[len(f.Log())-1]
				if n, ok := last.(session.Noticed); (ok && n.Kind == session.NoticeImported) == c.own {
					t.Errorf("the log ends with %+v", last)
				}
				if read(t, c.path) != text {
					t.Error("the file was changed")
				}
			})
		}
	}
}
