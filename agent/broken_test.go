// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

// numbers is what the model of these tests says.
const numbers = "one two three four five six seven eight nine ten eleven twelve"

// localModel is a client of a local server over either API.
func localModel(l *agenttest.Local, chat bool) agent.Model {
	retry := endpoint.Retry{Max: -1}
	if chat {
		return &completions.Client{BaseURL: l.URL, Retry: retry, IdleTimeout: time.Minute}
	}
	return &responses.Client{BaseURL: l.URL, Retry: retry, IdleTimeout: time.Minute}
}

// P6 S2: whatever breaks a reply off, and however often, a server that goes on
// with an assistant message never gets one at the end. The parts are one text in
// the end, none of it twice, and no request grows by more than what was said.
func TestAnyBreakIsGoneOnWith(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		chat := rapid.Bool().Draw(rt, "chat")
		l := &agenttest.Local{Ollama: rapid.Bool().Draw(rt, "ollama"), Text: numbers, Restarts: rapid.Bool().Draw(rt, "restarts")}
		if !l.Ollama && rapid.Bool().Draw(rt, "told") {
			l.Server = "llama.cpp"
		}
		breaks := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 5).Draw(rt, "breaks")
		l.Break = func(n int) int {
			if n < len(breaks) {
				return breaks[n]
			}
			return -1
		}
		agenttest.StartLocal(t, l)
		a := &agent.Agent{Model: localModel(l, chat)}
		a.Request.Model = "m"
		s := session.New()
		input := []item.Item{item.User("count")}
		for range len(breaks) + 1 {
			res, err := a.Run(t.Context(), s, input...)
			input = nil
			if err == nil && res.Why == agent.StopEndTurn {
				break
			}
		}
		requests := l.Requests()
		for i, r := range requests {
			n := len(r.Messages)
			if r.Status != 200 || r.Messages[n-1].Role != "user" {
				rt.Fatalf("request %d: status %d, %+v", i, r.Status, r.Messages)
			}
			if text := allWords(r.Messages); len(text) > 200*(i+1) {
				rt.Fatalf("request %d has %d bytes of text", i, len(text))
			}
		}
		var said []string
		for _, it := range history(s) {
			if m, err := item.As[item.Message](it); err == nil && m.Role == item.RoleAssistant {
				said = append(said, m.Content.Display())
			}
		}
		if got := strings.Join(strings.Fields(strings.Join(said, " ")), " "); got != numbers {
			rt.Fatalf("the parts are %q", said)
		}
	})
}

func allWords(list []agenttest.LocalMessage) string {
	var b strings.Builder
	for _, m := range list {
		b.WriteString(m.Text)
	}
	return b.String()
}
