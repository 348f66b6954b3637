// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// J1, K5: where entries of a log were lost, no call that was open then runs, no
// approval from before holds, and nothing is sent until somebody accepts it.
func TestLogWithGaps(t *testing.T) {
	lost := func(kind string) session.Noticed { return session.Noticed{Kind: kind, Text: "lost"} }
	allowed := session.Approval{CallID: "c", Allowed: true}
	output, err := item.Output("c", item.Text("done"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		behind  []session.Body // the call
		refused bool
		asked   bool   // about the call
		output  string // what the model reads of it
	}{
		{"whole", []session.Body{allowed}, false, false, "x"},
		{"a copy", []session.Body{allowed, lost(session.NoticeSalvaged)}, false, true, "x"},
		{"the start and the output are lost", []session.Body{allowed, lost(session.NoticeEntryLost), lost(session.NoticeEntryLost), lost(session.NoticeSalvaged)}, true, false, "not known"},
		{"the approval and all behind it are lost", []session.Body{lost(session.NoticeEntryLost), lost(session.NoticeSalvaged)}, true, false, "not known"},
		{"an approval behind the gap", []session.Body{lost(session.NoticeEntryLost), allowed, lost(session.NoticeSalvaged)}, true, false, "not known"},
		{"the output's payload is lost", []session.Body{allowed, session.CallStarted{CallID: "c", Repeatable: true}, lost(session.NoticePayloadLost), lost(session.NoticeSalvaged)}, false, false, "not known"},
		{"a subagent, whose end is lost", []session.Body{allowed, session.CallStarted{CallID: "c", Session: "s/1-c"}, lost(session.NoticeEntryLost), lost(session.NoticeSalvaged)}, true, false, "not known"},
		{"a pause is lost", []session.Body{session.Paused{CallID: "c", Session: "s/1-c"}, lost(session.NoticeEntryLost)}, true, false, "not known"},
		{"the output is there", []session.Body{allowed, lost(session.NoticeEntryLost), session.CallOutput{CallID: "c", Item: output}, lost(session.NoticeSalvaged)}, true, false, "done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, agenttest.Completed(item.Assistant("good")))
			ran, asked := 0, 0
			r.agent.Tools = []tool.Tool{textTool("echo", func(_ context.Context, s string) (string, error) { ran++; return s, nil })}
			r.agent.Policy = agent.Policy{Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
				asked++
				return agent.Decision{Allow: true}, nil
			}}
			log := append([]session.Body{session.InputItem{Item: item.User("go")}, session.RunStarted{}, session.TurnStarted{Turn: 1},
				session.OutputItem{Turn: 1, Item: call("c", "echo", "x")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted}}, test.behind...)
			if _, err := r.session.Append(t.Context(), log...); err != nil {
				t.Fatal(err)
			}
			_, err := drain(r.agent.Stream(t.Context(), r.session))
			if errors.Is(err, agent.ErrEntriesLost) != test.refused {
				t.Fatalf("got %v", err)
			}
			if test.refused {
				if _, err := r.agent.Compact(t.Context(), r.session); !errors.Is(err, agent.ErrEntriesLost) {
					t.Errorf("compacting: %v", err)
				}
				if n := len(r.server.Requests()); n+ran+asked > 0 {
					t.Errorf("%d requests, the tool ran %d times, asked %d times", n, ran, asked)
				}
				if _, err := r.session.Append(t.Context(), lost(session.NoticeGapsAccepted)); err != nil {
					t.Fatal(err)
				}
				_, err = drain(r.agent.Stream(t.Context(), r.session))
			}
			if err != nil {
				t.Fatal(err)
			}
			if (test.output == "x") != (ran == 1) || (asked == 1) != test.asked {
				t.Errorf("the tool ran %d times, asked %d times", ran, asked)
			}
			if sent := string(r.server.Requests()[0].Body); !strings.Contains(sent, test.output) {
				t.Errorf("the model reads nothing of %q: %s", test.output, sent)
			}
		})
	}
}
