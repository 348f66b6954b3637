// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// J12 U5: the head of a page tells the model, the settings, the program, all
// tokens and the cost with subagents, and how long it took, with times that a
// reader's clock can show. Line ends of a reply are line ends.
func TestHeadline(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	var entries []session.Entry
	for i, b := range []session.Body{
		session.RunStarted{Setup: &session.Setup{Model: "m", Endpoint: "https://host/v1", Settings: `{"temperature":0.5}`, Program: "antiphon v9",
			Tools: []session.Hashed{{Name: "look<b>", Hash: "00ff"}}}},
		session.InputItem{Item: item.User("go")},
		session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: item.Assistant("one\ntwo\nthree")},
		session.TurnEnded{Turn: 1, Status: "completed", Model: "m-2026", ServiceTier: "flex", Cost: 0.25, Usage: &api.Usage{InputTokens: 90, OutputTokens: 10, TotalTokens: 100}},
		session.SubagentUsage{Turns: 2, Tokens: 1000, Cost: 0.5},
	} {
		entries = append(entries, session.Entry{Seq: int64(i + 1), Time: at.Add(time.Duration(i) * time.Minute), Body: b})
	}
	got := string(page(t, export.Log{Entries: entries}))
	checkPage([]byte(got), t.Errorf)
	for _, want := range []string{
		"m at https://host/v1", "{&#34;temperature&#34;:0.5}", "antiphon v9", "by m-2026 · service tier flex", "look&lt;b&gt;", "00ff",
		"<b>1,100</b> tokens <small>1,000 in subagents", "<b>0.75</b> cost", "<dt>Took</dt><dd>5m0s</dd>",
		`<time datetime="2026-11-21T09:00:00Z">`, "one<br>\ntwo<br>\nthree", "<b>1</b> turn ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		_, head, _ := strings.Cut(got, "<h1>")
		t.Logf("%.6000s", head)
	}
}
