// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// moody is a model that refuses, breaks off or answers as chance has it, and
// keeps count of what the loop may do about it.
type moody struct {
	t       *rapid.T
	ids     int
	decided int  // requests in a row that followed a refusal
	over    bool // output was shown and then it broke off, or it was refused for good
}

func (m *moody) pick(name string, n int) int { return rapid.IntRange(0, n-1).Draw(m.t, name) }

// say yields up to three items of a reply.
func (m *moody) say(yield func(api.Event, error) bool) (said int) {
	for range m.pick("items", 4) {
		m.ids++
		it := []item.Item{
			thought(fmt.Sprintf("rs_%d", m.ids)),
			item.Must(&item.Message{ID: fmt.Sprintf("msg_%d", m.ids), Role: item.RoleAssistant, Content: item.Parts(&item.OutputText{Text: "words", Annotations: "[]"})}),
			item.Must(&item.FunctionCall{ID: fmt.Sprintf("fc_%d", m.ids), CallID: fmt.Sprintf("call_%d", m.ids%3), Name: "camera", Arguments: "{}"}),
		}[m.pick("item", 3)]
		said++
		if !yield(event(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, said-1, it.JSON()), nil) {
			return said
		}
	}
	return said
}

func (m *moody) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if m.over {
			m.t.Fatal("it is asked again after output, or after a failure for good")
		}
		if budget := endpoint.BudgetFrom(ctx); m.decided > 2 || budget == nil || budget.Used() != m.decided {
			m.t.Fatalf("asked after %d refusals in a row, %v", m.decided, budget)
		}
		m.paired(req)
		failure := &endpoint.Error{Status: 400, Message: "no"}
		switch m.pick("mood", 6) {
		case 0:
			failure.Class, failure.Code = endpoint.EncryptedContent, "invalid_encrypted_content"
		case 1:
			failure.Class, failure.Param = endpoint.BadRequest, fmt.Sprintf("input[%d]", m.pick("place", req.Input.Len()+1))
		case 2:
			failure.Class, failure.Code = endpoint.BadRequest, "invalid_image"
		case 3:
			failure.Class = []endpoint.Class{endpoint.BadRequest, endpoint.Server, endpoint.ContextOverflow, endpoint.Policy}[m.pick("class", 4)]
			// T12: without its images such a request is asked once more, whatever the
			// budget.
			m.over = failure.Class == endpoint.ContextOverflow || failure.Class == endpoint.Policy || !strings.Contains(req.Input.JSON(), `"input_image"`)
			m.decided--
		default:
			m.say(yield)
			m.decided = 0
			yield(event(`{"type":"response.completed","response":{"id":"r","status":"completed"}}`), nil)
			return
		}
		if m.pick("late", 3) == 0 {
			m.over = m.say(yield) > 0 || m.over
		}
		m.decided++
		yield(api.Event{}, failure)
	}
}

func (m *moody) paired(req *api.Request) {
	var items []item.Item
	for _, it := range req.Input.All() {
		items = append(items, it)
	}
	if err := agenttest.CheckPairing(items...); err != nil {
		m.t.Fatal(err)
	}
}

// E4 P1 R4 T12: whatever an endpoint refuses and wherever it breaks off, every
// request is well paired, nothing is asked again once output was shown, the
// decisions stay within the budget, and each run ends.
func TestAnyRefusal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := session.New()
		m := &moody{t: t}
		a := &agent.Agent{Model: m, Tools: []tool.Tool{camera()}, Policy: agent.Policy{Allow: []string{"*"}}, Limits: agent.Limits{MaxTurns: 8}}
		for range 3 {
			m.over, m.decided = false, 0
			res, err := a.Run(t.Context(), s, picture("look"))
			var e *endpoint.Error
			if err != nil && !errors.As(err, &e) || (err != nil) != (res.Why == agent.StopProviderError || res.Why == agent.StopContextFull || res.Why == agent.StopBadItem) {
				t.Fatalf("%+v, %v", res, err)
			}
			if m.over && err == nil {
				t.Fatalf("%+v after a failure for good", res)
			}
			for _, e := range m.quarantines(s) {
				if e > 1 {
					t.Fatal("an item is in quarantine twice")
				}
			}
		}
	})
}

// quarantines counts the decisions on each entry.
func (m *moody) quarantines(s *session.Session) map[int64]int {
	n := map[int64]int{}
	for e := range s.Entries() {
		if q, ok := e.Body.(session.Quarantined); ok {
			n[q.Seq]++
		}
	}
	return n
}
