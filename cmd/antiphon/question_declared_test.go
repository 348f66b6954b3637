// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// commanding is a tool whose calls run a command that the model completes.
type commanding struct{ tool.Tool }

func (commanding) Command(call tool.Call) []string {
	var in struct {
		Arguments []string `json:"arguments"`
	}
	if json.Unmarshal([]byte(call.Arguments), &in) != nil {
		return nil
	}
	return append([]string{"git", "log"}, in.Arguments...)
}

// A2: a person who is asked about a command that a file declares sees it as it
// would run, each argument by itself, at once and where the call waits.
func TestAskAboutDeclaredCommand(t *testing.T) {
	for args, want := range map[string][]string{
		`{"arguments":["-3","a b",""]}`:            {`?? log {"arguments":["-3","a b",""]}` + "\n", "   runs: git log -3 'a b' ''\n"},
		`{"arguments":["x\u001b[2J\u202e"]}`:       {"?? log\n", "   runs: git log 'x<U+001B>[2J<U+202E>'\n"},
		`{}`:                                       {"?? log {}\n", "   runs: git log\n"},
		`{"arguments":["one\\ntwo"]}`:              {"   runs: git log 'one\\ntwo'\n"},
		`{"arguments":["one\ntwo"]}`:               {"?? log\n", "   runs:\n   - git\n   - log\n   -\n   | one\n   | two\n"},
		`{"x":"` + strings.Repeat("y", 120) + `"}`: {"?? log\n", "   runs: git log\n"},
		`{"arguments":5}`:                          {`?? log {"arguments":5}` + "\n   its arguments do not fit, so that nothing will run: ", "\n   asked because a rule asks about log\n   y: run it, once\n"},
	} {
		log := commanding{tool.Must("log", "Logs.", func(context.Context, struct {
			Arguments []string `json:"arguments,omitzero"`
		}) (string, error) {
			return "", nil
		})}
		a := &agent.Agent{Tools: []tool.Tool{log}}
		a.Request.Model = "m"
		ask := func(approver agent.Approver) *agent.Result {
			srv := agenttest.NewServer(t, agenttest.Completed(item.Call("c1", "log", args)), agenttest.Completed(item.Assistant("done")))
			a.Model, a.Policy = srv.Client(), agent.Policy{Ask: []string{"log"}, Approver: approver, Pause: approver == nil}
			res, err := a.Run(t.Context(), session.New(), item.User("go"))
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		var screen bytes.Buffer
		who := person.New(strings.NewReader("n\n"), &screen)
		ask(who.Approve)
		wantAll(t, args, screen.String(), want...)
		screen.Reset()
		_ = waiting(stdio{err: &screen}, ask(nil).Pending)
		if command := strings.Contains(args, "-3"); command && !strings.Contains(screen.String(), "   runs: git log -3 'a b' ''\n") {
			t.Errorf("where it waits:\n%s", screen.String())
		}
	}
}
