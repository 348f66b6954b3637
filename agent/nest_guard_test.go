// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// G2: where an agent holds its output back, nobody sees the words of its subagents, at
// any depth, before its output guards have agreed to them; words that they object to are
// never shown, and the call fails.
func TestSubagentsUnderHeldOutput(t *testing.T) {
	for _, c := range []struct {
		name       string
		hold, last bool // the guard holds; the agent does
		says       string
		shown      bool
	}{
		{"not held", false, false, "a bomb", true},
		{"held by the guard", true, false, "a bomb", false},
		{"held by the agent", false, true, "a bomb", false},
		{"held, and agreed to", true, false, "a boat", true},
	} {
		for _, deep := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, ", deep ", deep), func(t *testing.T) {
				inner := &agent.Agent{Model: agenttest.Script(t, saying(c.says))}
				if deep {
					inner = &agent.Agent{Model: agenttest.Script(t, agenttest.Completed(item.Call("d1", "deeper", `{"task":"x"}`)), saying("done")), Tools: []tool.Tool{asTool(t, "deeper", inner)}}
				}
				asked := map[string]bool{}
				a := &agent.Agent{
					Model: agenttest.Script(t, agenttest.Completed(item.Call("c1", "expert", `{"task":"look"}`)), saying("over")),
					Tools: []tool.Tool{asTool(t, "expert", inner)}, HoldOutput: c.last, Limits: agent.Limits{MaxDepth: 2},
					Guards: []agent.Guard{{Name: "police", Hold: c.hold, Output: func(ctx context.Context, g *agent.GuardCall) (*agent.Tripwire, error) {
						asked[g.Text()] = true
						return judge(ctx, g)
					}}},
				}
				shown, outputs := "", 0
				for ev, err := range a.Stream(t.Context(), session.New(), item.User("go")) {
					if err != nil {
						t.Fatal(err)
					}
					sub, ok := ev.(agent.SubagentEvent)
					if !ok {
						continue
					}
					text := ""
					switch ev := sub.Event.(type) {
					case agent.Delta:
						if ev.Kind == agent.DeltaText {
							text = ev.Text
							shown += text
						}
					case agent.Recorded:
						if b, ok := ev.Body.(session.OutputItem); ok && strings.Contains(b.Item.JSON(), c.says) {
							text = b.Item.JSON()
							outputs++
						}
					}
					if text != "" && !asked[c.says] && (c.hold || c.last) {
						t.Errorf("shown before the guard was asked: %s", text)
					}
				}
				if strings.Contains(shown, c.says) != c.shown || (outputs > 0) != c.shown {
					t.Errorf("shown: %q, %d events", shown, outputs)
				}
			})
		}
	}
}

// asTool makes a tool of an agent.
func asTool(t *testing.T, name string, a *agent.Agent) tool.Tool {
	t.Helper()
	made, err := agent.AsTool(name, "", a)
	if err != nil {
		t.Fatal(err)
	}
	return made
}
