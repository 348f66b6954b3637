// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// sealedFor returns reasoning that only one endpoint can read.
func sealedFor(who string) item.Item {
	it, err := item.ParseString(`{"type":"reasoning","id":"rs_` + who + `","summary":[],"encrypted_content":"sealed-` + who + `"}`)
	if err != nil {
		panic(err)
	}
	return it
}

// sent returns the bodies of a server's requests as one text.
func sent(s *agenttest.Server) string {
	var all strings.Builder
	for _, req := range s.Requests() {
		all.Write(req.Body)
	}
	return all.String()
}

// trusting sets SameTrust of the second candidate.
func (p *pair) trusting(same bool) {
	f, _ := p.agent.Model.(agent.Fallback)
	f[1].SameTrust = same
	p.agent.Request.Tools = []item.Tool{
		&item.MCPTool{ServerLabel: "notes", ServerURL: "https://mcp.example.com", Authorization: "token-of-first"},
		&item.MCPTool{ServerLabel: "mail", ServerURL: "https://mail.example.com", Headers: map[string]string{"X-Key": "header-of-first"}},
		&item.WebSearchTool{},
	}
}

// R4, B5: what belongs to the endpoint of one candidate is not sent to another, in
// either direction, unless both have the same trust. The log keeps it.
func TestFallbackTrust(t *testing.T) {
	for _, same := range []bool{false, true} {
		p := newPair(t,
			append([]agenttest.Reply{agenttest.Completed(sealedFor("first"), call("c1", "echo", "hi"))},
				append(agenttest.Storm(3, agenttest.Failure(503, "", "down")), saying("L"))...),
			[]agenttest.Reply{agenttest.Completed(sealedFor("second"), call("c2", "echo", "hi")), saying("S")})
		p.trusting(same)
		p.agent.Tools = []tool.Tool{echo()}
		for _, text := range []string{"go", "again"} {
			if res, err := p.agent.Run(t.Context(), p.session, item.User(text)); err != nil {
				t.Fatal(res.Why, err)
			}
		}
		first, second := sent(p.server), sent(p.second)
		for _, mine := range []string{"sealed-first", "token-of-first", "header-of-first"} {
			if !strings.Contains(first, mine) || strings.Contains(second, mine) != same {
				t.Errorf("same trust %v: %s was sent to the first: %v, to the second: %v", same, mine, strings.Contains(first, mine), strings.Contains(second, mine))
			}
		}
		if !strings.Contains(second, "web_search") || !strings.Contains(second, "sealed-second") || strings.Contains(first, "sealed-second") != same {
			t.Errorf("same trust %v: the second got\n%s\nthe first\n%s", same, second, first)
		}
		kept := 0
		for e := range p.session.Entries() {
			if b, ok := e.Body.(session.OutputItem); ok && strings.Contains(b.Item.JSON(), "sealed-") {
				kept++
			}
		}
		if kept != 2 {
			t.Errorf("the log keeps %d of 2", kept)
		}
	}
}

// R4, B5: an agent that gets the conversation by a handoff begins with its own first candidate,
// whichever answered before, and what that one sealed goes to no other.
func TestFallbackTrustAfterHandoff(t *testing.T) {
	p := newPair(t,
		slices.Concat(agenttest.Storm(3, agenttest.Failure(503, "", "down")),
			[]agenttest.Reply{agenttest.Completed(sealedFor("first"), call("c2", "echo", "hi"))},
			agenttest.Storm(3, agenttest.Failure(503, "", "down"))),
		[]agenttest.Reply{agenttest.Completed(item.Call("c1", "transfer", "{}")), saying("S")})
	p.trusting(false)
	p.agent.Request.Tools = nil
	other := *p.agent
	other.Tools = []tool.Tool{echo()}
	p.agent.Handoffs = []agent.Handoff{{Name: "transfer", Description: "hands over", Agent: &other}}
	if res, err := p.agent.Run(t.Context(), p.session, item.User("go")); err != nil {
		t.Fatal(res.Why, err)
	}
	if first, second := sent(p.server), sent(p.second); !strings.Contains(first, "sealed-first") || strings.Contains(second, "sealed-first") {
		t.Errorf("to the first:\n%s\nto the second:\n%s", first, second)
	}
}

// R4, B5: what an agent's endpoint sealed before a handoff goes to no other endpoint, whether the
// agents have one model, several, or some of the same.
func TestHandoffKeepsSealed(t *testing.T) {
	for name, models := range map[string]func(first, second agent.Model) (before, after agent.Model, storm bool){
		"one model each": func(first, second agent.Model) (agent.Model, agent.Model, bool) { return second, first, false },
		"the second candidate, then the first": func(first, second agent.Model) (agent.Model, agent.Model, bool) {
			f := agent.Fallback{{Model: first}, {Model: second}}
			return f, f, true
		},
		"candidates in another order": func(first, second agent.Model) (agent.Model, agent.Model, bool) {
			return agent.Fallback{{Model: second}, {Model: first}}, agent.Fallback{{Model: first}, {Model: second}}, false
		},
		"others": func(first, second agent.Model) (agent.Model, agent.Model, bool) {
			return agent.Fallback{{Model: second}}, agent.Fallback{{Model: first}}, false
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, nil, []agenttest.Reply{agenttest.Completed(sealedFor("second"), item.Call("c1", "transfer", "{}"))})
			f, _ := p.agent.Model.(agent.Fallback)
			before, after, storm := models(f[0].Model, f[1].Model)
			if storm {
				p.server.Add(agenttest.Storm(3, agenttest.Failure(503, "", "down"))...)
			}
			p.server.Add(saying("F"))
			p.agent.Model, p.agent.Request.Tools = before, nil
			other := *p.agent
			other.Model = after
			p.agent.Handoffs = []agent.Handoff{{Name: "transfer", Description: "hands over", Agent: &other}}
			if res, err := p.agent.Run(t.Context(), p.session, item.User("go")); err != nil || res.Text != "F" {
				t.Fatal(res, err)
			}
			if first := sent(p.server); strings.Contains(first, "sealed-second") {
				t.Errorf("to the first:\n%s", first)
			}
		})
	}
}

// R4, B5: the same for a Fallback that is used without a run.
func TestFallbackTrustWithoutRun(t *testing.T) {
	p := newPair(t, agenttest.Storm(3, agenttest.Failure(503, "", "down")), []agenttest.Reply{saying("S")})
	p.trusting(false)
	req := p.agent.Request
	req.Input = item.NewList(item.User("go"), sealedFor("first"), item.Assistant("well"), item.User("on"))
	for _, err := range p.agent.Model.Stream(t.Context(), &req) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if second := sent(p.second); strings.Contains(second, "-first") || !strings.Contains(second, "well") {
		t.Errorf("the second got %s", second)
	}
}

// B5, J6, A10: an endpoint's error that repeats the secrets of hosted tools is shown and
// stored without them, as a status and as an event of a stream.
func TestToolSecretsHidden(t *testing.T) {
	for name, reply := range map[string]agenttest.Reply{
		"status": agenttest.Failure(400, "bad_tool", "the server refused Bearer token-of-first and header-of-first"),
		"event":  agenttest.Failed("bad_tool", "the server refused token-of-first and header-of-first"),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, agenttest.Storm(3, reply), nil)
			p.trusting(false)
			p.agent.Model = p.client()
			_, err := p.agent.Run(t.Context(), p.session, item.User("go"))
			if err == nil || strings.Contains(err.Error(), "-of-first") || !strings.Contains(err.Error(), "the server refused") {
				t.Error(err)
			}
			for e := range p.session.Entries() {
				if text, err := session.AppendEntry(nil, e); err != nil || strings.Contains(string(text), "-of-first") {
					t.Errorf("%s %v", text, err)
				}
			}
		})
	}
}
