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

// shared is a run whose approver is asked about one call, and that others may answer.
func shared(t *testing.T, approver func(r *rig, ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error)) (r *rig, ran *int) {
	r = newRig(t, agenttest.Completed(call("c1", "write", "one")), agenttest.Completed(item.Assistant("done")))
	ran = new(int)
	r.agent.Tools = []tool.Tool{textTool("write", func(_ context.Context, text string) (string, error) {
		*ran++
		return text, nil
	})}
	r.agent.Policy = agent.Policy{Ask: []string{"write"}, Shared: true, Approver: func(ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
		return approver(r, ctx, q)
	}}
	return r, ran
}

// beside opens the session of a question as another process would, and returns the only
// call that waits in it.
func (r *rig) beside() (*session.Session, agent.PendingApproval) {
	r.t.Helper()
	s, err := session.Open(r.t.Context(), r.store, "s")
	if err != nil {
		r.t.Fatal(err)
	}
	pending, err := agent.PendingApprovals(r.t.Context(), s)
	if err != nil || len(pending) != 1 {
		r.t.Fatalf("%v wait: %v", pending, err)
	}
	return s, pending[0]
}

// D1: while the approver is asked, the question is in the log, and somebody else's answer
// ends it at once; the approver is told who answered what.
func TestQuestionAnsweredByOthers(t *testing.T) {
	for _, allow := range []bool{true, false} {
		var told *agent.AnsweredError
		r, ran := shared(t, func(r *rig, ctx context.Context, _ agent.ApprovalRequest) (agent.Decision, error) {
			s, p := r.beside()
			if err := agent.Decide(ctx, s, agent.Decision{CallID: p.CallID, Number: p.Number, Allow: allow, By: "anna", From: "phone"}); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			if !errors.As(context.Cause(ctx), &told) {
				t.Errorf("ended by %v", context.Cause(ctx))
			}
			return agent.Decision{}, ctx.Err()
		})
		res := r.run(item.User("go"))
		if res.Text != "done" || *ran == 1 != allow || res.Totals.RefusedCalls == 0 != allow {
			t.Errorf("%v: %+v, ran %d times", allow, res, *ran)
		}
		if told == nil || told.Answer.Allowed != allow || told.Error() != "the call was answered by anna (phone)" {
			t.Errorf("%v: told %+v", allow, told)
		}
		if a := bodies[session.Approval](r.session); len(a) != 1 || a[0].By != "anna" || a[0].Allowed != allow {
			t.Errorf("%v: recorded %+v", allow, a)
		}
	}
}

// D1: if the session goes on elsewhere, the question ends, and the call waits there.
func TestQuestionMoves(t *testing.T) {
	r, ran := shared(t, func(r *rig, ctx context.Context, _ agent.ApprovalRequest) (agent.Decision, error) {
		r.deliver("s", delivery("stop", session.StopAsked{Run: runs(r.session)[0], AfterTurn: true}))
		<-ctx.Done()
		return agent.Decision{}, ctx.Err()
	})
	if res := r.run(item.User("go")); res.Why != agent.StopApprovalPending || len(res.Pending) != 1 || len(bodies[session.Approval](r.session)) > 0 {
		t.Fatalf("%+v", res)
	}
	_, p := r.beside()
	if err := agent.Decide(t.Context(), r.session, agent.Decision{CallID: p.CallID, Allow: true, By: "anna"}); err != nil {
		t.Fatal(err)
	}
	if res := r.run(); res.Text != "done" || *ran != 1 {
		t.Errorf("%+v, ran %d times", res, *ran)
	}
}

// D1: an answer that is of no use asks the approver again.
func TestQuestionAnsweredBadly(t *testing.T) {
	asked := 0
	r, ran := shared(t, func(r *rig, ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
		if asked++; asked > 1 {
			return agent.Decision{Allow: true, By: "ben"}, nil
		}
		_, p := r.beside()
		r.deliver("s", delivery("bad", session.Approval{CallID: p.CallID, Number: p.Number, Allowed: true, Edited: "no object"}))
		<-ctx.Done()
		return agent.Decision{}, ctx.Err()
	})
	if res := r.run(item.User("go")); res.Text != "done" || *ran != 1 || asked != 2 {
		t.Errorf("%+v, ran %d times, asked %d times", res, *ran, asked)
	}
	if a := bodies[session.Approval](r.session); len(a) != 1 || a[0].By != "ben" {
		t.Errorf("recorded %+v", a)
	}
}

// D1: of two answers the first in the log counts, and the other one is told who was first.
func TestQuestionAnsweredTwice(t *testing.T) {
	var other *session.Session
	var p agent.PendingApproval
	r, ran := shared(t, func(r *rig, ctx context.Context, _ agent.ApprovalRequest) (agent.Decision, error) {
		other, p = r.beside()
		r.deliver("s", delivery("late", session.Approval{CallID: p.CallID, Number: p.Number, Allowed: false}))
		<-ctx.Done()
		return agent.Decision{Allow: true, By: "ben", From: "terminal"}, nil // it was typed already
	})
	if res := r.run(item.User("go")); res.Text != "done" || *ran != 1 {
		t.Errorf("%+v, ran %d times", res, *ran)
	}
	if d := bodies[session.Delivered](r.session); len(d) != 1 || !strings.Contains(d[0].Problem, "already decided by ben (terminal)") {
		t.Errorf("recorded %+v", d)
	}
	if err := other.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := agent.Decide(t.Context(), other, agent.Decision{CallID: p.CallID, Number: p.Number, Allow: false, By: "anna"})
	if !errors.Is(err, agent.ErrDecided) || !strings.Contains(err.Error(), "by ben (terminal)") {
		t.Errorf("the second one is told: %v", err)
	}
}

// D1: an answer that was delivered between two effects is found before anybody is asked.
func TestQuestionAnsweredBefore(t *testing.T) {
	r, ran := shared(t, func(_ *rig, ctx context.Context, _ agent.ApprovalRequest) (agent.Decision, error) {
		return agent.Decision{}, errors.New("the process ends here")
	})
	approver := r.agent.Policy.Approver
	r.agent.Policy.Pause, r.agent.Policy.Approver = true, nil
	r.run(item.User("go"))
	_, p := r.beside()
	r.agent.Policy.Approver = approver
	r.agent.Hooks = []agent.Hooks{{BeforeRun: func(ctx context.Context, _ *agent.RunCall) (context.Context, error) {
		r.deliver("s", delivery("1", session.Approval{CallID: p.CallID, Number: p.Number, Allowed: true}))
		return ctx, nil
	}}}
	if res := r.run(); res.Text != "done" || *ran != 1 {
		t.Errorf("%+v, ran %d times", res, *ran)
	}
}

// D1: a subagent's question can be answered while it is asked, too, and is found from the
// outermost session.
func TestQuestionOfSubagentAnswered(t *testing.T) {
	r, ran := shared(t, func(r *rig, ctx context.Context, _ agent.ApprovalRequest) (agent.Decision, error) {
		s, p := r.beside()
		if p.Session == "s" {
			t.Errorf("it waits in %s", p.Session)
		}
		if err := agent.Decide(ctx, s, agent.Decision{Session: p.Session, CallID: p.CallID, Number: p.Number, Allow: true, By: "anna"}); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return agent.Decision{}, ctx.Err()
	})
	r.server = agenttest.NewServer(t)
	r.agent.Model = r.client()
	inner := *r.agent
	ask, err := agent.AsTool("ask", "Asks another.", &inner)
	if err != nil {
		t.Fatal(err)
	}
	r.agent.Tools = []tool.Tool{ask}
	r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
		switch body := string(req.Body); {
		case strings.Contains(body, `"a1"`), strings.Contains(body, `"c1"`):
			return agenttest.Completed(item.Assistant("done"))
		case strings.Contains(body, "outer"):
			return agenttest.Completed(item.Call("a1", "ask", `{"task":"go"}`))
		}
		return agenttest.Completed(call("c1", "write", "one"))
	})
	if res := r.run(item.User("outer")); res.Text != "done" || *ran != 1 {
		t.Errorf("%+v, ran %d times", res, *ran)
	}
}
