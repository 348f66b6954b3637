// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// A5 A2: a rule about arguments looks at what they are, and covers nothing that
// can be read in two ways.
func TestRuleCovers(t *testing.T) {
	argv := session.Rule{Verdict: session.Allow, Tool: "run_*", Member: "argv", Prefix: []string{"git", "status"}}
	docs := session.Rule{Verdict: session.Allow, Tool: "run_command", Member: "path", Under: "docs"}
	here := docs
	here.Under = "."
	for _, c := range []struct {
		rule      session.Rule
		arguments string
		want      bool
	}{
		{argv, `{"argv":["git","status"]}`, true},
		{argv, `{"argv":["git","status","-s"],"x":1}`, true},
		{argv, `{"argv":["git"]}`, false},
		{argv, `{"argv":["git status"]}`, false},
		{argv, `{"argv":["env","git","status"]}`, false},
		{argv, `{"argv":"git status"}`, false},
		{argv, `{"argv":["git","status"],"Argv":["rm"]}`, false},
		{argv, `{"argv":["git","status",5]}`, false},
		{argv, `{"argv":["git","status"]`, false},
		{argv, ``, false},
		{docs, `{"path":"docs"}`, true},
		{docs, `{"path":"docs/a/../b"}`, true},
		{docs, `{"path":"./docs/a"}`, true},
		{docs, `{"path":"docs/../src"}`, false},
		{docs, `{"path":"docs\\..\\src"}`, false},
		{docs, `{"path":"../docs/a"}`, false},
		{docs, `{"path":"/docs/a"}`, false},
		{docs, `{"path":"docsx"}`, false},
		{docs, `{"path":["docs"]}`, false},
		{here, `{"path":"a"}`, true},
		{here, `{"path":"/a"}`, false},
		{here, `{"path":"a/../../b"}`, false},
	} {
		r := newRig(t, agenttest.Completed(item.Call("c", "run_command", c.arguments)), agenttest.Completed(item.Assistant("done")))
		ran := false
		def := &item.FunctionTool{Name: "run_command"}
		raw, err := tool.Raw(def, func(context.Context, tool.Call) (tool.Result, error) { ran = true; return tool.Result{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		r.agent.Tools = []tool.Tool{raw}
		r.agent.Policy = agent.Policy{Rules: []session.Rule{c.rule}}
		r.run(item.User("go"))
		if ran != c.want {
			t.Errorf("%s by %+v: ran is %v", c.arguments, c.rule, ran)
		}
	}
}

// A5 G1: a rule that denies or asks holds for arguments that can be read in several
// ways, also of a call that the endpoint would make. One that allows does not.
func TestRuleCannotTell(t *testing.T) {
	secrets := session.Rule{Tool: "*", Member: "path", Under: "secrets"}
	remove := session.Rule{Tool: "*", Member: "command", Prefix: []string{"rm"}}
	here := session.Rule{Tool: "*", Member: "path", Under: "."}
	for _, c := range []struct {
		rule      session.Rule
		arguments string
		holds     bool
	}{
		{secrets, `{"path":"secrets/a"}`, true},
		{secrets, `{"path":"x","path":"secrets/a"}`, true},
		{secrets, `{"path":"secrets/a","x":"\ud800"}`, true},
		{secrets, `{"path":"secrets/a","PATH":"x"}`, true},
		{secrets, `{"PATH":"secrets/a"}`, true},
		{secrets, `{"path":["secrets/a"]}`, true},
		{secrets, `{"path":5}`, true},
		{secrets, `["secrets/a"]`, true},
		{secrets, `null`, true},
		{secrets, `{"path":"secrets/a"`, true},
		{secrets, `{"path":"/home/me/secrets/a"}`, true},
		{secrets, `{"path":"../project/secrets"}`, true},
		{secrets, `{"path":"x\\secrets\\a"}`, true},
		{secrets, `{"path":"Secrets/a"}`, true},
		{secrets, `{"path":"docs/a"}`, false},
		{secrets, `{"path":"/home/me/docs/a"}`, false},
		{secrets, `{"path":"secretsx/a"}`, false},
		{secrets, `{"file":"secrets/a"}`, false},
		{secrets, `{}`, false},
		{secrets, ``, false},
		{here, `{"path":"a"}`, true},
		{here, `{"path":"/home/me/a"}`, true},
		{here, `{"path":"../project/a"}`, true},
		{remove, `{"command":["rm","x"]}`, true},
		{remove, `{"command":"rm x"}`, true},
		{remove, `{"command":["rm",5]}`, true},
		{remove, `{"command":["ls"]}`, false},
	} {
		for _, verdict := range []session.Verdict{session.Deny, session.Ask} {
			rule := c.rule
			rule.Verdict = verdict
			want := session.Allow
			if c.holds {
				want = verdict
			}
			p := plan.Policy{Allow: []string{"*"}, Rules: []session.Rule{rule}}
			if j := p.Judge(plan.Question{Tool: "srv.read", Arguments: c.arguments}, nil); j.Verdict != want {
				t.Errorf("%s by %q: %s, want %s", c.arguments, rule, j.Verdict, want)
			}
		}
	}
	r := newRig(t,
		agenttest.Completed(item.Must(&item.MCPApprovalRequest{ID: "m", ServerLabel: "srv", Name: "read", Arguments: `{"path":"x","path":"secrets/a"}`})),
		agenttest.Completed(item.Assistant("done")))
	secrets.Verdict = session.Deny
	r.agent.Policy = agent.Policy{Allow: []string{"*"}, Rules: []session.Rule{secrets}}
	r.run(item.User("go"))
	answered := false
	for e := range r.session.Entries() {
		if b, ok := e.Body.(session.CallOutput); ok {
			answered = true
			if m, err := item.As[item.MCPApprovalResponse](b.Item); err != nil || m.Approve {
				t.Errorf("the endpoint reads %s: %v", b.Item.JSON(), err)
			}
		}
	}
	if !answered {
		t.Error("the endpoint's question has no answer")
	}
}

// L7: what an answer could leave behind covers the call itself.
func TestSuggest(t *testing.T) {
	rule := func(arguments string) session.Rule {
		return session.Rule{Verdict: session.Allow, Tool: "t", Arguments: arguments, Definition: "d"}
	}
	for _, c := range []struct {
		call tool.Call
		want []session.Rule
	}{
		{tool.Call{Name: "t", Arguments: `{"argv":["git","status","-s"]}`}, []session.Rule{rule(`{"argv":["git","status","-s"]}`), rule("")}},
		{tool.Call{Name: "t", Arguments: "{ \"b\": 1.0,\n\"a\": 9007199254740993 }"}, []session.Rule{rule(`{"a":9007199254740993,"b":1.0}`), rule("")}},
		{tool.Call{Name: "t", Arguments: `{}`}, []session.Rule{rule("")}},
		{tool.Call{Name: "t"}, []session.Rule{rule("")}},
		{tool.Call{Name: "t", Arguments: `{`}, []session.Rule{rule("")}},
		{tool.Call{Name: "t", Arguments: `{"a":1,"a":2}`}, []session.Rule{rule("")}},
		{tool.Call{Name: "t", Arguments: `{"a":"` + strings.Repeat("x", 2000) + `"}`}, []session.Rule{rule("")}},
		{tool.Call{Name: "t", Arguments: "{ }", Custom: true}, []session.Rule{rule("{ }"), rule("")}},
	} {
		got := plan.Suggest(plan.Question{Tool: c.call.Name, Arguments: c.call.Arguments, Custom: c.call.Custom, Definition: func() string { return "d" }})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.call.Arguments, diff)
		}
		if err := plan.CheckRules(got...); err != nil {
			t.Error(err)
		}
	}
}

// A6: an answer that is remembered covers the call that was shown, with all of its
// arguments, and none of a tool of the same name. What denies or asks covers all.
func TestRuleRemembered(t *testing.T) {
	question := func(arguments string) plan.Question {
		return plan.Question{Tool: "run", Arguments: arguments, Definition: func() string { return "one" }}
	}
	shown := question(`{"argv":["rm","-rf","build"]}`)
	rules := plan.Suggest(shown)[:1]
	other := shown
	other.Definition = func() string { return "two" }
	deny := []session.Rule{{Verdict: session.Deny, Tool: "run", Member: "argv", Prefix: []string{"rm"}}}
	words := []session.Rule{{Verdict: session.Allow, Tool: "run", Member: "argv", Prefix: []string{"rm", "-rf", "build"}, Definition: "one"}}
	all := plan.Suggest(shown)[1:]
	unbound, pattern := []session.Rule{{Verdict: session.Allow, Tool: "run"}}, []session.Rule{{Verdict: session.Allow, Tool: "r*"}}
	var p plan.Policy
	for _, c := range []struct {
		q     plan.Question
		rules []session.Rule
		want  session.Verdict
	}{
		{shown, rules, session.Allow},
		{question(` { "argv" : [ "rm", "-rf", "build" ] }`), rules, session.Allow},
		{question(`{"argv":["rm","-rf","build","/home"]}`), rules, session.Ask},
		{question(`{"argv":["rm","-rf","build"],"env":{"LD_PRELOAD":"./evil.so"}}`), rules, session.Ask},
		{question(`{"argv":["rm","-rf","build"],"argv":["rm","-rf","build"]}`), rules, session.Ask},
		{question(`{"argv":["rm","-rf"]}`), rules, session.Ask},
		{shown, append(rules, deny...), session.Deny},
		{question(`{"argv":["rm","x"]}`), deny, session.Deny},
		{other, deny, session.Deny},
		{other, rules, session.Ask},
		{shown, words, session.Allow},
		{question(`{"argv":["rm","-rf","build","/home"]}`), words, session.Ask},
		{shown, all, session.Allow},
		{other, all, session.Ask},
		{shown, unbound, session.Ask},
		{shown, pattern, session.Allow},
		{other, pattern, session.Allow},
	} {
		if got := p.Judge(c.q, c.rules).Verdict; got != c.want {
			t.Errorf("%s of %s by %v: %s, want %s", c.q.Arguments, c.q.Definition(), c.rules, got, c.want)
		}
	}
	unasked := shown
	unasked.Definition = func() string {
		t.Error("the fingerprint was computed, and no rule is bound to a tool")
		return ""
	}
	p.Judge(unasked, append(deny, pattern...))
	set := plan.Policy{Rules: all}
	if set.Judge(shown, nil).Verdict != session.Allow || set.Judge(other, nil).Verdict != session.Ask {
		t.Error("a rule of the policy that is bound to a tool")
	}
	if text := rules[0].String(); text != `allow run where the arguments are {"argv":["rm","-rf","build"]}` {
		t.Error(text)
	}
}

// A6: an answer is about the tool that was asked about. If another tool has its name later,
// the answer says nothing of its calls, and an allowed call that waits does not start.
func TestAnswerIsAboutATool(t *testing.T) {
	ran := map[string]int{}
	named := func(identity string) tool.Tool {
		return tool.Must("deploy", "Deploys.", func(context.Context, struct{}) (string, error) {
			ran[identity]++
			return "done", nil
		}, tool.From(tool.Origin{Identity: identity}))
	}
	r := newRig(t, agenttest.Completed(item.Call("a", "deploy", "{}")), agenttest.Completed(item.Assistant("done")),
		agenttest.Completed(item.Call("b", "deploy", "{}")), agenttest.Completed(item.Assistant("done")),
		agenttest.Completed(item.Call("c", "deploy", "{}")), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{named("one")}
	r.agent.Policy = agent.Policy{Pause: true}
	r.run(item.User("go"))
	if err := agent.Decide(t.Context(), r.session, agent.Decision{CallID: "a", Allow: true, Remember: &session.Rule{Verdict: session.Allow, Tool: "deploy"}}); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	if res := r.run(); ran["one"] != 1 || len(res.Pending) != 0 {
		t.Errorf("%v %+v", ran, res)
	}
	if res := r.run(item.User("again")); ran["one"] != 2 || len(res.Pending) != 0 {
		t.Errorf("the same tool: %v %+v", ran, res)
	}
	r.agent.Tools = []tool.Tool{named("two")}
	if res := r.run(item.User("again")); ran["two"] != 0 || len(res.Pending) != 1 {
		t.Errorf("another tool: %v %+v", ran, res)
	}
	if err := agent.Decide(t.Context(), r.session, agent.Decision{CallID: "c", Allow: true}); err != nil {
		t.Fatal(err)
	}
	r.agent.Tools = []tool.Tool{named("three")}
	r.run()
	if ran["three"] != 0 {
		t.Error("a call that was allowed started another tool")
	}
}

// The error of a rule says what is wrong with it, and no run starts with one.
func TestCheckRules(t *testing.T) {
	for want, r := range map[string]session.Rule{
		"verdict":      {Tool: "t"},
		"no tool":      {Verdict: session.Allow},
		"syntax error": {Verdict: session.Allow, Tool: "[a"},
		"member":       {Verdict: session.Allow, Tool: "t", Under: "x"},
		"neither":      {Verdict: session.Allow, Tool: "t", Member: "m"},
		"both":         {Verdict: session.Allow, Tool: "t", Member: "m", Under: "x", Prefix: []string{"y"}},
	} {
		if err := plan.CheckRules(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
		rig := newRig(t)
		rig.agent.Policy.Rules = []session.Rule{r}
		if _, err := rig.agent.Run(t.Context(), rig.session, item.User("go")); err == nil || len(rig.server.Requests()) > 0 {
			t.Errorf("%s: a run starts: %v", want, err)
		}
	}
}

// judging is a tool with an opinion of its own, inside of a wrapper.
type judging struct {
	tool.Tool
	got []session.Rule
}

func (j *judging) Approval(call tool.Call, rules []session.Rule) (verdict session.Verdict, reason string) {
	j.got = rules
	switch {
	case strings.Contains(call.Arguments, "rm"):
		return session.Deny, "rm is not for you"
	case strings.Contains(call.Arguments, "ls"):
		return session.Allow, `allowed by "ls"`
	case strings.Contains(call.Arguments, "mv"):
		return session.Ask, "mv moves things"
	}
	return "", "no rule is about it"
}

func (j *judging) Suggest(tool.Call) []session.Rule {
	return []session.Rule{{Verdict: session.Allow, Tool: "run", Member: "text", Prefix: []string{"mine"}}}
}

// scripted is a tool that asks once what it runs has changed, which each of its calls does.
type scripted struct {
	tool.Tool
	changes int
}

func (s *scripted) Annotations() tool.Annotations { return tool.AnnotationsOf(s.Tool) }

func (s *scripted) Approval(tool.Call, []session.Rule) (verdict session.Verdict, reason string) {
	if s.changes > 0 {
		return session.Ask, fmt.Sprintf("change %d", s.changes)
	}
	return "", ""
}

// K6: all calls of a reply are approved before the first one starts. If a call then does what
// the tool asks about for another reason than the approval was given for, it does not start.
func TestApprovalIsForWhatStarts(t *testing.T) {
	yes := func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
		return agent.Decision{Allow: true}, nil
	}
	rewrite := agent.Hooks{BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
		c.Call.Arguments = `{"text":"other"}`
		return ctx, nil
	}}
	for name, c := range map[string]struct {
		policy  agent.Policy
		hooks   []agent.Hooks
		changes int // before the run
		ran     int // a person who is asked about the change can agree to it
	}{
		"a rule allowed it":                  {agent.Policy{Allow: []string{"run"}}, nil, 0, 1},
		"a rule allowed it, a hook edits it": {agent.Policy{Allow: []string{"run"}}, []agent.Hooks{rewrite}, 0, 1},
		"a person allowed it":                {agent.Policy{Approver: yes}, nil, 0, 2},
		"a person allowed another change":    {agent.Policy{Approver: yes}, nil, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, agenttest.Completed(call("c1", "run", "x"), call("c2", "run", "x")), agenttest.Completed(call("c3", "run", "x")), agenttest.Completed(item.Assistant("done")))
			ran := 0
			s := &scripted{changes: c.changes}
			s.Tool = textTool("run", func(context.Context, string) (string, error) { ran++; s.changes++; return "ran", nil }, tool.Exclusive())
			r.agent.Tools, r.agent.Policy, r.agent.Hooks = []tool.Tool{s}, c.policy, c.hooks
			r.run(item.User("go"))
			if ran != c.ran {
				t.Errorf("%d calls ran", ran)
			}
			out := outputs(r.last())
			contains(t, out["c2"], fmt.Sprintf("change %d", c.changes+1))
			contains(t, out["c2"], "Nothing was done.")
		})
	}
}

// K6: the log knows for which reason a call was allowed, also when another process starts it:
// after a pause, after a delivery, or as the next step.
func TestApprovalIsForWhatStartsLater(t *testing.T) {
	yes := func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
		return agent.Decision{Allow: true}, nil
	}
	paused := func(t *testing.T, r *rig) {
		if res := r.run(item.User("go")); len(res.Pending) != 1 {
			t.Fatalf("%+v", res)
		}
	}
	yesToIt := agent.Decision{CallID: "c1", Allow: true, By: "anna"}
	for name, allow := range map[string]func(t *testing.T, r *rig){
		"after a pause": func(t *testing.T, r *rig) {
			r.agent.Policy = agent.Policy{Pause: true}
			paused(t, r)
			if err := agent.Decide(t.Context(), r.session, yesToIt); err != nil {
				t.Fatal(err)
			}
		},
		"delivered": func(t *testing.T, r *rig) {
			r.agent.Policy = agent.Policy{Pause: true}
			paused(t, r)
			release, err := r.session.Hold(t.Context()) // as a run would
			if err != nil {
				t.Fatal(err)
			}
			if err := agent.Decide(t.Context(), r.session, yesToIt); err != nil {
				t.Fatal(err)
			}
			if err := release(); err != nil {
				t.Fatal(err)
			}
		},
		"as a step": func(t *testing.T, r *rig) {
			r.agent.Policy = agent.Policy{Approver: yes}
			if _, err := r.session.Append(t.Context(), session.InputItem{Item: item.User("go")}); err != nil {
				t.Fatal(err)
			}
			for {
				e, err := r.agent.Step(t.Context(), r.session)
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := e.(plan.Approve); ok {
					return
				}
			}
		},
	} {
		for _, c := range []struct {
			name        string
			asked, then int // how often what it runs has changed, when it is asked about and when it starts
			ran         int
		}{
			{"nothing has changed", 0, 0, 1},
			{"the change that was agreed to", 1, 1, 1},
			{"a change since", 0, 1, 0},
			{"another change", 1, 2, 0},
		} {
			t.Run(name+", "+c.name, func(t *testing.T) {
				r := newRig(t, agenttest.Completed(call("c1", "run", "x")), agenttest.Completed(item.Assistant("done")))
				ran := 0
				s := &scripted{changes: c.asked}
				s.Tool = textTool("run", func(context.Context, string) (string, error) { ran++; return "ran", nil })
				r.agent.Tools = []tool.Tool{s}
				allow(t, r)
				s.changes = c.then
				r.reopen()
				r.run()
				if out := outputs(r.last())["c1"]; ran != c.ran || c.ran == 0 && !strings.Contains(out, fmt.Sprintf("change %d. Nothing was done.", c.then)) {
					t.Errorf("it ran %d times: %q", ran, out)
				}
			})
		}
	}
}

// A5 A2: a tool that knows its commands gets the rules about them, and its
// opinion is one of them.
func TestJudge(t *testing.T) {
	prefix := session.Rule{Verdict: session.Allow, Tool: "run", Member: "text", Prefix: []string{"x"}}
	for _, c := range []struct {
		text   string
		policy agent.Policy
		ran    bool
		out    string
	}{
		{"ls", agent.Policy{}, true, "ls"},
		{"ls", agent.Policy{Ask: []string{"run"}}, false, "needs an approval"},
		{"rm", agent.Policy{Allow: []string{"run"}}, false, "The call was refused: rm is not for you. Nothing was done."},
		{"mv", agent.Policy{Allow: []string{"run"}, Pause: true}, false, ""},
		{"other", agent.Policy{Rules: []session.Rule{prefix, {Verdict: session.Ask, Tool: "else"}}}, false, "needs an approval"},
	} {
		r := newRig(t, agenttest.Completed(call("c", "run", c.text)), agenttest.Completed(item.Assistant("done")))
		l := new(ledger)
		j := &judging{Tool: l.tool("run")}
		r.agent.Tools = []tool.Tool{j}
		r.agent.Policy = c.policy
		res := r.run(item.User("go"))
		if (l.ran[c.text] == 1) != c.ran {
			t.Errorf("%s: ran %v", c.text, l.ran)
		}
		if c.out == "" {
			if p := res.Pending[0]; p.Reason != "mv moves things" || len(p.Rules) != 2 || p.Rules[0].Prefix[0] != "mine" {
				t.Errorf("%s: %+v", c.text, p)
			}
			continue
		}
		contains(t, outputs(r.last())["c"], c.out)
		if c.text == "other" && (len(j.got) != 1 || j.got[0].Prefix[0] != "x") {
			t.Errorf("it got %v", j.got)
		}
	}
}

// A5 A2: a tool's reason is told where what it says is what counts, and not
// with the verdict of another rule.
func TestJudgeReason(t *testing.T) {
	denied, asks := "The call was refused: a rule denies run. Nothing was done.", "a rule asks about run"
	always := session.Rule{Verdict: session.Deny, Tool: "run"}
	for _, c := range []struct {
		name, text string
		policy     agent.Policy
		want       string // the output's error, or why it is asked about
	}{
		{"deny, it has no opinion", "other", agent.Policy{Deny: []string{"run"}}, denied},
		{"deny, it allows", "ls", agent.Policy{Deny: []string{"run"}}, denied},
		{"a rule denies, it allows", "ls", agent.Policy{Rules: []session.Rule{always}}, denied},
		{"deny, it asks", "mv", agent.Policy{Deny: []string{"run"}}, denied},
		{"deny, it denies", "rm", agent.Policy{Deny: []string{"run"}}, "The call was refused: rm is not for you. Nothing was done."},
		{"ask, it allows", "ls", agent.Policy{Ask: []string{"run"}, Pause: true}, asks},
		{"ask, it has no opinion", "other", agent.Policy{Ask: []string{"run"}, Pause: true}, asks},
		{"ask, it asks", "mv", agent.Policy{Ask: []string{"run"}, Pause: true}, "mv moves things"},
		{"no rule, no opinion", "other", agent.Policy{Pause: true}, "run does more than read, and no rule allows it"},
	} {
		r := newRig(t, agenttest.Completed(call("c", "run", c.text)), agenttest.Completed(item.Assistant("done")))
		r.agent.Tools = []tool.Tool{&judging{Tool: new(ledger).tool("run")}}
		r.agent.Policy = c.policy
		res := r.run(item.User("go"))
		got := ""
		if len(res.Pending) > 0 {
			got = res.Pending[0].Reason
		} else {
			got = strings.TrimPrefix(outputs(r.last())["c"], "error: ")
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// byText is a [tool.Folders] that knows only texts.
type byText struct{}

func (byText) Within(folder, path string) (within, known bool) {
	return strings.HasPrefix(path, folder+"/"), true
}

// TestPlaceOfOnePath proves that the rules about one argument of a call are held against the place of
// this argument, and not against those of others. A1 A6
func TestPlaceOfOnePath(t *testing.T) {
	for led, runs := range map[string]bool{"out/b": true, "in/b": false, "secret/b": false} {
		copies := tool.Must("copies", "Copies.", func(ctx context.Context, in struct {
			From string `json:"from"`
			To   string `json:"to"`
		}) (string, error) {
			for path, at := range map[string]string{in.From: in.From, in.To: led} {
				if err := tool.CheckPlace(ctx, path, func(folder string) bool { return strings.HasPrefix(at, folder+"/") }); err != nil {
					return "", err
				}
			}
			return "copied", nil
		}, tool.InFolders(byText{}, tool.Origin{}))
		a := &agent.Agent{
			Model: agenttest.Script(t, agenttest.Completed(item.Call("c", "copies", `{"from":"in/a","to":"out/b"}`)), agenttest.Completed(item.Assistant("done"))), Tools: []tool.Tool{copies},
			Policy: agent.Policy{Rules: []session.Rule{{Verdict: session.Allow, Tool: "copies", Member: "to", Under: "out"}, {Verdict: session.Deny, Tool: "copies", Member: "to", Under: "secret"}}},
		}
		s := session.New()
		if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
			t.Fatal(err)
		}
		ran := false
		for _, e := range s.Log() {
			if out, ok := e.Body.(session.CallOutput); ok {
				ran = !out.Failed
			}
		}
		if ran != runs {
			t.Errorf("to leads to %s: it ran: %v", led, ran)
		}
	}
}

// TestRulesHoldForUnnamedPlaces proves that rules about a folder hold for a place in it that no path of
// the call names, although the model writes the same text into an argument: one that the tool does not
// have, or any, if the tool says that no argument names the place. A1 A5
func TestRulesHoldForUnnamedPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		arguments string
		unnamed   bool // as the tool says
		verdict   session.Verdict
		runs      bool
	}{
		"no other argument":               {`{"patch":"p"}`, false, session.Deny, false},
		"an argument that it has not":     {`{"patch":"p","x":"secret/f"}`, false, session.Deny, false},
		"one that it has not, asked":      {`{"patch":"p","x":"secret/f"}`, false, session.Ask, false},
		"another of its arguments":        {`{"patch":"p","from":"secret/f"}`, false, session.Deny, true},
		"another one, and the tool knows": {`{"patch":"p","from":"secret/f"}`, true, session.Deny, false},
		"an empty one":                    {`{"patch":"p","from":""}`, true, session.Deny, false},
		"the path, elsewhere":             {`{"patch":"p","path":"pub/f"}`, true, session.Deny, false},
	} {
		t.Run(name, func(t *testing.T) {
			def := &item.FunctionTool{Name: "patches", Parameters: `{"type":"object","properties":{"patch":{"type":"string"},"from":{"type":"string"},"path":{"type":"string"}}}`}
			patches, err := tool.Raw(def, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				path := "secret/f"
				if c.unnamed {
					path = ""
				}
				return tool.Result{Text: "done"}, tool.CheckPlace(ctx, path, func(folder string) bool { return folder == "secret" })
			}, tool.InFolders(byText{}, tool.Origin{}))
			if err != nil {
				t.Fatal(err)
			}
			a := &agent.Agent{
				Model:  agenttest.Script(t, agenttest.Completed(item.Call("c", "patches", c.arguments)), agenttest.Completed(item.Assistant("done"))),
				Tools:  []tool.Tool{patches},
				Policy: agent.Policy{Allow: []string{"patches"}, Rules: []session.Rule{{Verdict: c.verdict, Tool: "*", Member: "path", Under: "secret"}}},
			}
			s := session.New()
			if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
				t.Fatal(err)
			}
			for _, e := range s.Log() {
				if out, ok := e.Body.(session.CallOutput); ok && out.Failed == c.runs {
					t.Errorf("it ran: %v: %s", !out.Failed, out.Item.JSON())
				}
			}
		})
	}
}
