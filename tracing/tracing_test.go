// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tracing"
)

// everything is a run with parallel calls, one that fails, one of no tool, two
// that are refused, a retry, and a fork.
func everything(t *testing.T, o tracing.Options) *rig {
	r := newRig(t, o,
		agenttest.Completed(call("c1", "echo", "one"), call("c2", "broken", "two"), call("c3", "writer", "three"),
			call("c4", "nowhere", "four"), call("c5", "echo", "five"), call("c6", "echo", "no")),
		agenttest.Failure(503, "", "come back later"),
		agenttest.Completed(item.Call("f1", "fork", `{"command":"Look into it."}`)),
		agenttest.Completed(call("n1", "echo", "within"), call("n2", "writer", "within")),
		agenttest.Completed(item.Assistant("It is so.")),
		agenttest.Completed(item.Assistant("done")),
	)
	r.agent.Tools = append(r.agent.Tools, tool.Must("writer", "Writes.", func(context.Context, input) (string, error) { return "", nil }))
	r.agent.Prices = func(string) (agent.Price, bool) { return agent.Price{Input: 1000, Cached: 100, Output: 2000}, true }
	r.agent.Hooks = append(r.agent.Hooks, agent.Hooks{BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
		if strings.Contains(c.Call.Arguments, `"no"`) {
			return ctx, errors.New("not that")
		}
		return ctx, nil
	}})
	if res, err := r.run("go"); err != nil || res.Why != agent.StopEndTurn {
		t.Fatalf("%+v, %v", res, err)
	}
	return r
}

func TestTree(t *testing.T) {
	r := everything(t, tracing.Options{Provider: "openai", Agent: "tester"})
	want := `caller
  invoke_agent tester why=answered
    ! antiphon.call_refused c3
    ! antiphon.call_refused c6
    chat test-model finish_reasons=["tool_call"] attempts=1
    execute_tool echo id=c1
    execute_tool broken id=c2 type=tool_error
    execute_tool nowhere id=c4 type=unknown_tool
    execute_tool echo id=c5
    execute_tool echo id=c6 type=not_run
    chat test-model finish_reasons=["tool_call"] attempts=2
    execute_tool fork id=f1
      invoke_agent tester why=answered
        ! antiphon.call_refused n2
        chat test-model finish_reasons=["tool_call"] attempts=1
        execute_tool echo id=n1
        chat test-model finish_reasons=["stop"] attempts=1
    chat test-model finish_reasons=["stop"] attempts=1
`
	if diff := cmp.Diff(want, r.tree()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, s := range r.spans.GetSpans() {
		if s.EndTime.Before(s.StartTime) {
			t.Errorf("%s ends before it starts", s.Name)
		}
		if got, failed := s.Status.Code == codes.Error, attrs(s.Attributes)["error.type"]; got != (failed != "") || s.Status.Description != failed {
			t.Errorf("%s: status %+v, error.type %q", s.Name, s.Status, failed)
		}
	}
}

func TestMetrics(t *testing.T) {
	r := everything(t, tracing.Options{Provider: "openai"})
	want := `antiphon.calls operation.name=chat provider.name=openai request.model=test-model: 5
antiphon.calls operation.name=execute_tool provider.name=openai tool.name=_OTHER: 1
antiphon.calls operation.name=execute_tool provider.name=openai tool.name=broken: 1
antiphon.calls operation.name=execute_tool provider.name=openai tool.name=echo: 3
antiphon.calls operation.name=execute_tool provider.name=openai tool.name=fork: 1
antiphon.calls operation.name=invoke_agent provider.name=openai request.model=test-model: 2
antiphon.failures error.type=tool_error operation.name=execute_tool provider.name=openai tool.name=broken: 1
antiphon.failures error.type=unknown_tool operation.name=execute_tool provider.name=openai tool.name=_OTHER: 1
antiphon.refused operation.name=execute_tool provider.name=openai tool.name=echo: 1
antiphon.refused operation.name=execute_tool provider.name=openai tool.name=writer: 2
client.inference.duration operation.name=chat provider.name=openai request.model=test-model: 5
client.inference.operation.input_tokens operation.name=chat provider.name=openai request.model=test-model: 5
client.inference.operation.output_tokens operation.name=chat provider.name=openai request.model=test-model: 5
client.inference.time_to_first_chunk operation.name=chat provider.name=openai request.model=test-model: 5
execute_tool.duration error.type=tool_error operation.name=execute_tool provider.name=openai tool.name=broken: 1
execute_tool.duration error.type=unknown_tool operation.name=execute_tool provider.name=openai tool.name=_OTHER: 1
execute_tool.duration operation.name=execute_tool provider.name=openai tool.name=echo: 3
execute_tool.duration operation.name=execute_tool provider.name=openai tool.name=fork: 1
invoke_agent.duration operation.name=invoke_agent provider.name=openai request.model=test-model: 2
invoke_agent.inference_calls operation.name=invoke_agent provider.name=openai request.model=test-model: 2
invoke_agent.tool_calls operation.name=invoke_agent provider.name=openai request.model=test-model: 2
`
	got, sums := r.metrics()
	if diff := cmp.Diff(want, strings.ReplaceAll(got, "gen_ai.", "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	n := r.totals
	if all := sums["gen_ai.client.inference.usage.input_tokens"] + sums["gen_ai.client.inference.usage.output_tokens"]; int64(all) != n.TotalTokens+n.Nested.Tokens || all == 0 {
		t.Errorf("%v tokens, but the run counts %+v", all, n)
	}
	if math.Abs(sums["antiphon.cost"]-n.Cost-n.Nested.Cost) > 1e-9 || n.Cost == 0 {
		t.Errorf("cost %v, but the run counts %+v", sums["antiphon.cost"], n)
	}
	if counted := sums["gen_ai.client.inference.operation.input_tokens"] + sums["gen_ai.client.inference.operation.output_tokens"]; int64(counted) != n.TotalTokens+n.Nested.Tokens {
		t.Errorf("%v tokens in single calls, but the run counts %+v", counted, n)
	}
	if sums["gen_ai.invoke_agent.inference_calls"] != 5 || sums["gen_ai.invoke_agent.tool_calls"] != float64(n.Calls)+1 {
		t.Errorf("the runs made %v and %v calls", sums["gen_ai.invoke_agent.inference_calls"], sums["gen_ai.invoke_agent.tool_calls"])
	}
	if sums["antiphon.cache.expected"] == 0 {
		t.Error("no tokens are expected out of the cache")
	}
}

// The server's address and port are those of the endpoint that is asked, also in metrics.
func TestServer(t *testing.T) {
	r := everything(t, tracing.Options{})
	u, err := url.Parse(r.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	chats := r.named("chat test-model")
	for _, s := range chats {
		if got := attrs(s.Attributes); got["server.address"] != u.Hostname() || got["server.port"] != u.Port() {
			t.Errorf("%s: %s:%s, want %s", s.Name, got["server.address"], got["server.port"], u.Host)
		}
	}
	var data metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &data); err != nil || len(chats) == 0 {
		t.Fatal(err, len(chats))
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		if m.Name != "gen_ai.client.inference.duration" {
			continue
		}
		for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
			if port, ok := p.Attributes.Value("server.port"); !ok || port.String() != u.Port() {
				t.Errorf("%s: port %s", m.Name, port.String())
			}
		}
	}
}

func TestAttributes(t *testing.T) {
	r := everything(t, tracing.Options{Provider: "openai", Agent: "tester"})
	want := map[string]map[string]string{
		"chat test-model": {
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.agent.name": "tester", "gen_ai.conversation.id": "memory",
			"gen_ai.request.model": "test-model", "gen_ai.response.model": "test-model", "gen_ai.response.id": "resp_2",
			"gen_ai.response.finish_reasons": `["tool_call"]`, "gen_ai.usage.cache_read.input_tokens": "0", "gen_ai.usage.cache_write.input_tokens": "0",
			"gen_ai.usage.reasoning.output_tokens": "0", "antiphon.turn": "2", "antiphon.depth": "0", "antiphon.response.status": "completed",
			"antiphon.attempts": "2", "antiphon.request_id": "req_2", "antiphon.cache.hit": "false", "http.response.status_code": "200",
			"gen_ai.usage.input_tokens": "*", "gen_ai.usage.output_tokens": "*", "antiphon.cache.expected_tokens": "*", "antiphon.cost": "*",
			"gen_ai.response.time_to_first_chunk": "*", "gen_ai.request.stream": "true", "server.address": "127.0.0.1", "server.port": "*",
		},
		"execute_tool fork": {
			"gen_ai.operation.name": "execute_tool", "gen_ai.provider.name": "openai", "gen_ai.agent.name": "tester", "gen_ai.conversation.id": "memory",
			"gen_ai.tool.name": "fork", "gen_ai.tool.type": "function", "gen_ai.tool.call.id": "f1", "antiphon.turn": "2", "antiphon.depth": "0",
		},
		"invoke_agent tester": {
			"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "openai", "gen_ai.agent.name": "tester", "gen_ai.conversation.id": "memory",
			"gen_ai.request.model": "test-model", "antiphon.depth": "0", "antiphon.run.why": "answered", "antiphon.run.turns": "3", "antiphon.run.calls": "5",
			"antiphon.run.failed_calls": "2", "antiphon.run.refused_calls": "2", "antiphon.run.tokens": "*", "antiphon.run.nested_tokens": "*", "antiphon.cost": "*",
			"antiphon.run.compactions": "0", "gen_ai.usage.input_tokens": "*", "gen_ai.usage.output_tokens": "*",
			"gen_ai.usage.cache_read.input_tokens": "0", "gen_ai.usage.reasoning.output_tokens": "0",
		},
	}
	for name, want := range want {
		for _, s := range r.named(name) {
			got := attrs(s.Attributes)
			if got["antiphon.depth"] != "0" || got["gen_ai.response.id"] != want["gen_ai.response.id"] {
				continue
			}
			for key := range want {
				if want[key] == "*" && got[key] != "" && got[key] != "0" {
					got[key] = "*"
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// all writes out everything that is exported.
func (r *rig) all() string {
	text, _ := r.metrics()
	for _, s := range r.spans.GetSpans() {
		text += fmt.Sprintln(s.Name, s.Status, attrs(s.Attributes))
		for _, ev := range s.Events {
			text += fmt.Sprintln(ev.Name, attrs(ev.Attributes))
		}
	}
	return text
}

func TestContent(t *testing.T) {
	words := []string{"one", "two", "three", "four", "five", "within", "Look into", "It is so", "not that", "Be brief"}
	for _, content := range []bool{false, true} {
		r := everything(t, tracing.Options{Content: content})
		text, _ := r.metrics()
		for _, word := range words {
			if strings.Contains(text, word) {
				t.Errorf("%q is in the metrics", word)
			}
		}
		r.agent.Request.Instructions = "Be brief."
		r.server.Add(agenttest.Completed(item.Assistant("again")))
		if _, err := r.run("on"); err != nil {
			t.Fatal(err)
		}
		text = r.all()
		for _, word := range words {
			if strings.Contains(text, word) != content {
				t.Errorf("Content %v: %q in spans: %v", content, word, !content)
			}
		}
		if strings.Contains(text, secret) {
			t.Error("the key is told")
		}
	}
}

// What is shown is bounded and holds no base64, wherever that stands.
func TestContentIsBounded(t *testing.T) {
	blob := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("PICTURE!", 4000)))
	lines := ""
	for i := 0; i+76 <= len(blob); i += 76 {
		lines += blob[i:i+76] + "\r\n"
	}
	image := tool.Must("image", "Shows.", func(_ context.Context, in input) (string, error) {
		switch in.Text {
		case "uri":
			return "<img src='data:image/png;base64," + blob + "'>", nil
		case "lines":
			return "-----BEGIN-----\n" + lines, nil
		}
		return strings.Repeat("many words ", 1<<20), nil
	}, tool.ReadOnly())
	r := newRig(t, tracing.Options{Content: true},
		agenttest.Completed(call("c1", "image", "uri"), call("c2", "image", "lines"), call("c3", "image", "words"), call("c4", "echo", blob)),
		agenttest.Completed(item.Assistant("ok")))
	r.agent.Tools = append(r.agent.Tools, image)
	r.agent.Output.Limit = nil
	if _, err := r.run("go"); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.spans.GetSpans() {
		for key, v := range attrs(s.Attributes) {
			if len(v) > 48<<10 {
				t.Errorf("%s: %s has %d bytes", s.Name, key, len(v))
			}
			if strings.Contains(v, blob[100:160]) {
				t.Errorf("%s: %s holds base64: %.300s", s.Name, key, v)
			}
		}
	}
}

// E1 and the like: errors by their class, and no key in any word of theirs.
func TestErrors(t *testing.T) {
	for _, content := range []bool{false, true} {
		r := newRig(t, tracing.Options{Content: content}, agenttest.Failure(401, "invalid_api_key", "Incorrect API key provided: "+secret+"."))
		_, err := r.run("go")
		if e, ok := errors.AsType[*endpoint.Error](err); !ok || e.Class != endpoint.Auth {
			t.Fatal(err)
		}
		want := "caller\n  invoke_agent why=provider_error type=auth\n    chat test-model attempts=1 type=auth\n"
		if diff := cmp.Diff(want, r.tree()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		text := r.all()
		if strings.Contains(text, secret) {
			t.Errorf("the key is told:\n%s", text)
		}
		if strings.Contains(text, "Incorrect API key") != content {
			t.Errorf("Content %v:\n%s", content, text)
		}
		if s := r.named("chat test-model")[0]; s.Status.Code != codes.Error || attrs(s.Attributes)["http.response.status_code"] != "401" {
			t.Errorf("%+v", s)
		}
	}
}

// However a run ends, its spans do.
func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	wait := tool.Must("wait", "Waits.", func(ctx context.Context, _ input) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}, tool.ReadOnly())
	for _, c := range []struct {
		name, want string
		answers    []agenttest.Reply
		change     func(r *rig)
	}{
		{"cut", "invoke_agent why=provider_error type=truncated\n  chat test-model attempts=1 type=truncated\n",
			[]agenttest.Reply{agenttest.Completed(item.Assistant(strings.Repeat("word ", 100))).CutAfter(2500)}, nil},
		{"too long", "invoke_agent why=incomplete\n  chat test-model finish_reasons=[\"length\"] attempts=1\n",
			[]agenttest.Reply{agenttest.Incomplete("max_output_tokens", item.Assistant("It"))}, nil},
		{"cancelled in a tool", "invoke_agent why=cancelled type=canceled\n  chat test-model finish_reasons=[\"tool_call\"] attempts=1\n  execute_tool wait id=c type=cancelled\n",
			[]agenttest.Reply{agenttest.Completed(call("c", "wait", ""))}, nil},
		{"vetoed", "invoke_agent why=vetoed type=vetoed\n  chat test-model type=vetoed\n", nil, func(r *rig) {
			r.agent.Hooks = append(r.agent.Hooks, agent.Hooks{BeforeModel: func(ctx context.Context, _ *agent.ModelCall) (context.Context, error) {
				return ctx, errors.New("no")
			}})
		}},
		{"store fails", "invoke_agent type=_OTHER\n  chat test-model finish_reasons=[\"tool_call\"] attempts=1\n  execute_tool echo id=c type=not_run\n",
			[]agenttest.Reply{agenttest.Completed(call("c", "echo", ""))}, func(r *rig) {
				r.session = opened(r.t, &failing{Store: new(session.Memory), at: "session.CallStarted"})
			}},
		{"store fails at the reply", "invoke_agent type=_OTHER\n  chat test-model attempts=1 type=_OTHER\n",
			[]agenttest.Reply{agenttest.Completed(item.Assistant("ok"))}, func(r *rig) {
				r.session = opened(r.t, &failing{Store: new(session.Memory), at: "session.OutputItem"})
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, tracing.Options{}, c.answers...)
			r.agent.Tools = append(r.agent.Tools, wait)
			if c.change != nil {
				c.change(r)
			}
			_, _ = r.agent.Run(ctx, r.session, item.User("go"))
			if diff := cmp.Diff(c.want, r.tree()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
		if c.name == "cancelled in a tool" {
			ctx = t.Context()
		}
	}
}

// The caller's own Meta is told as well.
func TestMetaOfCaller(t *testing.T) {
	r := newRig(t, tracing.Options{}, agenttest.Completed(item.Assistant("ok")))
	ctx, meta := endpoint.WithMeta(t.Context())
	if _, err := r.agent.Run(ctx, r.session, item.User("go")); err != nil {
		t.Fatal(err)
	}
	if meta.Latest().Status != 200 {
		t.Errorf("%+v", meta.Latest())
	}
}

// An agent that is a tool has spans of its own name, below those of the call.
// Runs of it side by side do not mix.
func TestAgentAsTool(t *testing.T) {
	r := newRig(t, tracing.Options{Agent: "outer"}, agenttest.Completed(
		item.Call("a1", "ask", `{"task":"one"}`), item.Call("a2", "ask", `{"task":"two"}`)))
	r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("ok")) })
	inner := &agent.Agent{Model: r.agent.Model, Hooks: []agent.Hooks{tracing.New(tracing.Options{Agent: "inner", TracerProvider: r.traces, MeterProvider: r.meters})}}
	inner.Request.Model = "small-model"
	ask, err := agent.AsTool("ask", "Asks another.", inner)
	if err != nil {
		t.Fatal(err)
	}
	r.agent.Tools = []tool.Tool{ask}
	if _, err := r.run("go"); err != nil {
		t.Fatal(err)
	}
	want := `caller
  invoke_agent outer why=answered
    chat test-model finish_reasons=["tool_call"] attempts=1
    execute_tool ask id=a1
      invoke_agent inner why=answered
        chat small-model finish_reasons=["stop"] attempts=1
    execute_tool ask id=a2
      invoke_agent inner why=answered
        chat small-model finish_reasons=["stop"] attempts=1
    chat test-model finish_reasons=["stop"] attempts=1
`
	if diff := cmp.Diff(want, r.tree()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What an agent does to which the conversation was handed carries the name of the handoff, in
// spans and in measurements, and is traced once although both agents have hooks.
func TestHandoffIsNamed(t *testing.T) {
	r := newRig(t, tracing.Options{Agent: "desk"}, agenttest.Completed(call("c1", "echo", "one"), item.Call("h1", "to_bills", `{"reason":"a bill"}`)),
		agenttest.Completed(call("c2", "echo", "two")), agenttest.Completed(item.Assistant("Paid.")))
	bills := &agent.Agent{Model: r.agent.Model, Tools: []tool.Tool{echo()}, Hooks: []agent.Hooks{tracing.New(tracing.Options{Agent: "other", TracerProvider: r.traces, MeterProvider: r.meters})}}
	bills.Request.Model = "small-model"
	r.agent.Handoffs = []agent.Handoff{{Name: "to_bills", Description: "For bills.", Agent: bills}}
	if res, err := r.run("go"); err != nil || res.Speaker != "to_bills" {
		t.Fatalf("%+v, %v", res, err)
	}
	var got []string
	for _, s := range r.spans.GetSpans() {
		if a := attrs(s.Attributes); a["gen_ai.agent.name"] != "" {
			got = append(got, strings.TrimSpace(s.Name+" "+a["gen_ai.tool.call.id"])+": "+a["gen_ai.agent.name"])
		}
	}
	want := []string{"chat test-model: desk", "execute_tool echo c1: desk", "execute_tool to_bills h1: desk",
		"chat small-model: to_bills", "execute_tool echo c2: to_bills", "chat small-model: to_bills", "invoke_agent desk: desk"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	metrics, sums := r.metrics()
	for _, line := range []string{"antiphon.calls agent.name=desk operation.name=chat provider.name=openai request.model=test-model: 1",
		"antiphon.calls agent.name=to_bills operation.name=chat provider.name=openai request.model=small-model: 2"} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %q in\n%s", line, metrics)
		}
	}
	if all := sums["gen_ai.client.inference.usage.input_tokens"] + sums["gen_ai.client.inference.usage.output_tokens"]; int64(all) != r.totals.TotalTokens {
		t.Errorf("%v tokens are measured, %d were used", all, r.totals.TotalTokens)
	}
}

// Metrics have few values, whatever names a model makes up.
func TestFewNames(t *testing.T) {
	r := newRig(t, tracing.Options{})
	hooks := r.agent.Hooks[0]
	for i := range 1000 {
		c := &agent.ToolCall{Call: tool.Call{Name: fmt.Sprint("tool", i)}}
		ctx, _ := hooks.BeforeTool(t.Context(), c)
		if err := hooks.AfterTool(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := r.metrics()
	if n := strings.Count(text, "antiphon.calls"); n != 201 {
		t.Errorf("%d series", n)
	}
}

// dropping samples all spans but those of one name.
type dropping string

func (d dropping) Description() string { return string(d) }
func (d dropping) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.Name == string(d) {
		return sdktrace.SamplingResult{Decision: sdktrace.Drop}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}

// A span that is not sampled is not taken for the one around it.
func TestSampling(t *testing.T) {
	for name, want := range map[string]int{"execute_tool echo": 8, "invoke_agent": 7, "chat test-model": 5} {
		r := newRig(t, tracing.Options{},
			agenttest.Completed(item.Call("f1", "fork", `{"command":"Look."}`)),
			agenttest.Completed(call("n1", "echo", "a"), call("n2", "writer", "b")),
			agenttest.Completed(item.Assistant("ok")), agenttest.Completed(item.Assistant("done")))
		traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans), sdktrace.WithSampler(dropping(name)))
		r.agent.Hooks = []agent.Hooks{tracing.New(tracing.Options{TracerProvider: traces})}
		if _, err := r.agent.Run(t.Context(), r.session, item.User("go")); err != nil {
			t.Fatal(err)
		}
		spans := r.spans.GetSpans()
		fork := r.named("execute_tool fork")[0]
		for _, s := range spans {
			if attrs(s.Attributes)["antiphon.depth"] == "1" && s.EndTime.After(fork.EndTime) {
				t.Errorf("without %s: %s ends after the call around it", name, s.Name)
			}
		}
		if len(spans) != want {
			t.Errorf("without %s: %d spans, want %d", name, len(spans), want)
		}
	}
}

// What the conventions say of messages: arguments as JSON, a response, parts of
// instructions, and the type of output.
func TestFormsOfContent(t *testing.T) {
	r := newRig(t, tracing.Options{Content: true},
		agenttest.Completed(call("c1", "echo", "one"), item.Call("c2", "echo", `{"text":`)),
		agenttest.Completed(item.Assistant(`{"a":1}`)))
	r.agent.Request.Instructions = "Be brief."
	var err error
	if r.agent.Request.Text, err = api.TextAsSchema("answer", `{"type":"object"}`, true); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run("go"); err != nil {
		t.Fatal(err)
	}
	spans := r.named("chat test-model")
	first, second := attrs(spans[0].Attributes), attrs(spans[1].Attributes)
	for _, c := range []struct{ name, got, want string }{
		{"instructions", first["gen_ai.system_instructions"], `[{"type":"text","content":"Be brief."}]`},
		{"output type", first["gen_ai.output.type"], "json"},
		{"input", first["gen_ai.input.messages"], `[{"role":"user","parts":[{"type":"text","content":"go"}]}]`},
		{"output", first["gen_ai.output.messages"], `[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"echo","arguments":{"text":"one"}},` +
			`{"type":"tool_call","id":"c2","name":"echo","arguments":"{\"text\":"}],"finish_reason":"tool_call"}]`},
		{"last output", second["gen_ai.output.messages"], `[{"role":"assistant","parts":[{"type":"text","content":"{\"a\":1}"}],"finish_reason":"stop"}]`},
		{"provider", first["gen_ai.provider.name"], "openai"},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if got := second["gen_ai.input.messages"]; !strings.HasPrefix(got, `[{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"`) {
		t.Errorf("got %s", got)
	}
}
