// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/eventlog"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

type textInput struct {
	Text string `json:"text"`
}

func call(id, name, text string) item.Item {
	return item.Call(id, name, `{"text":`+string(item.Quote(text))+`}`)
}

func echo(name string, options ...tool.Option) tool.Tool {
	return tool.Must(name, "Returns the text.", func(_ context.Context, in textInput) (string, error) { return in.Text, nil }, options...)
}

// logged runs an agent with one log, as a consumer of events or as hooks, and returns
// its lines without what differs from run to run.
func logged(t *testing.T, level slog.Level, content, hooks bool) string {
	t.Helper()
	var b bytes.Buffer
	l := &eventlog.Log{Content: content, Logger: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == "took") {
			return slog.Attr{}
		}
		return a
	}}))}
	a := loggedAgent(t)
	if hooks {
		a.Hooks = append(a.Hooks, l.Hooks())
	}
	s, err := session.Open(t.Context(), new(session.Memory), "memory")
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range a.Stream(t.Context(), s, item.User("the user's words")) {
		if err != nil {
			t.Fatal(err)
		}
		if !hooks {
			l.Add(t.Context(), ev)
		}
	}
	return regexp.MustCompile(`(input|bytes)=\d+`).ReplaceAllString(b.String(), "$1=N")
}

func loggedAgent(t *testing.T) *agent.Agent {
	t.Helper()
	inner := &agent.Agent{Model: agenttest.Script(t, agenttest.Completed(item.Assistant("the inner words")))}
	inner.Request.Model = "small"
	ask, err := agent.AsTool("ask", "Asks.", inner)
	if err != nil {
		t.Fatal(err)
	}
	fails := tool.Must("fails", "Fails.", func(context.Context, textInput) (string, error) { return "", errors.New("the words of an error") }, tool.ReadOnly())
	a := &agent.Agent{
		Model: agenttest.Script(t,
			agenttest.Completed(call("c1", "echo", "words of arguments"), call("c2", "fails", ""), call("c3", "write", "words")),
			agenttest.Completed(item.Call("c4", "ask", `{"task":"words of a task"}`)),
			agenttest.Incomplete("max_output_tokens", item.Assistant("the last words"))),
		Tools: []tool.Tool{echo("echo", tool.ReadOnly()), fails, echo("write", tool.Approval(string(session.Deny))), ask}, Parallel: 1,
	}
	a.Request.Model = "large"
	return a
}

func TestRecords(t *testing.T) {
	got := logged(t, slog.LevelInfo, false, false)
	for _, line := range []string{
		`level=INFO msg="turn ended" seq=7 turn=1 status=completed model=large response_id=resp_0 request_id=req_0 tokens.input=N`,
		`level=WARN msg="call judged" seq=`, `tool=write call_id=c3 verdict=refused`,
		`level=INFO msg="call ended" seq=`, `tool=echo call_id=c1 bytes=N`,
		`level=WARN msg="call ended" seq=`, `tool=fails call_id=c2 failed=true bytes=N`,
		`level=INFO msg="turn ended" subagent.depth=1 subagent.session=memory/4-c4 subagent.tool=ask subagent.call_id=c4 seq=`,
		`level=INFO msg="subagent used" seq=`, `tool=ask call_id=c4 session=memory/4-c4 turns=1 tokens=`,
		`level=WARN msg="turn ended" seq=`, `status=incomplete`,
		`level=INFO msg="run used" turns=3 calls=3 failed_calls=1 refused_calls=1 tokens.input=N`,
		`level=WARN msg="run stopped" seq=`, `why=incomplete`,
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
}

// The hooks tell of the same turns, calls and runs.
func TestHooks(t *testing.T) {
	got := logged(t, slog.LevelInfo, false, true)
	count := func(text, message string) int { return strings.Count(text, `msg="`+message+`"`) }
	events := logged(t, slog.LevelInfo, false, false)
	for _, message := range []string{"turn ended", "run stopped"} {
		if message == "turn ended" && count(got, message)+1 != count(events, message) || count(got, message) == 0 { // the subagent has no hooks
			t.Errorf("%s: %d by hooks, %d by events", message, count(got, message), count(events, message))
		}
	}
	want := `level=INFO msg="turn ended" session=memory turn=1 status=completed model=large response_id=resp_0 tokens.input=N tokens.cached=0 tokens.output=`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, line := range []string{`level=INFO msg="call ended" session=memory turn=1 tool=echo call_id=c1`, `level=WARN msg="call ended" session=memory turn=1 tool=fails call_id=c2 failure=tool_error`,
		`level=WARN msg="call refused" session=memory turn=1 tool=write call_id=c3`, `level=WARN msg="run stopped" session=memory why=incomplete turns=3`} {
		if !strings.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
}

// Texts are in the records only with Content.
func TestContent(t *testing.T) {
	words := []string{"the user's words", "the inner words", "the words of an error", "words of arguments", "words of a task", "the last words"}
	for _, hooks := range []bool{false, true} {
		for _, content := range []bool{false, true} {
			got := logged(t, slog.LevelDebug, content, hooks)
			for _, text := range words {
				if hooks && (text == words[0] || text == words[1]) {
					continue // hooks have no records of input, and the subagent has no hooks
				}
				if strings.Contains(got, text) != content {
					t.Errorf("hooks %v, content %v: %q is there: %v\n%s", hooks, content, text, !content, got)
				}
			}
			if !content && strings.Contains(got, "words") {
				t.Errorf("words without Content:\n%s", got)
			}
		}
	}
}

// W13, G13: no text in a record holds base64 of an image, wherever that stands: in arguments,
// outputs, messages, errors and notices.
func TestNoBase64(t *testing.T) {
	blob := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("PICTURE!", 4000)))
	uri := "data:image/png;base64," + blob
	for _, hooks := range []bool{false, true} {
		var b bytes.Buffer
		l := &eventlog.Log{Content: true, Logger: slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		a := &agent.Agent{
			Model: agenttest.Script(t,
				agenttest.Completed(call("c1", "echo", "arguments "+uri), call("c2", "fails", blob), item.Call("c3", "echo", `{"text":"`+blob+`"}`)),
				agenttest.Completed(item.Assistant("an answer "+uri+" ends"))),
			Tools: []tool.Tool{echo("echo", tool.ReadOnly()),
				tool.Must("fails", "Fails.", func(_ context.Context, in textInput) (string, error) { return "", errors.New("an error of " + in.Text) }, tool.ReadOnly())},
		}
		if hooks {
			a.Hooks = append(a.Hooks, l.Hooks())
		}
		for ev, err := range a.Stream(t.Context(), session.New(), item.User("a question "+uri)) {
			if err != nil {
				t.Fatal(err)
			}
			if !hooks {
				l.Add(t.Context(), ev)
			}
		}
		l.Add(t.Context(), agent.Recorded{Entry: session.Entry{Seq: 99, Body: session.Noticed{Kind: "k", Text: "a notice " + uri}}})
		if strings.Contains(b.String(), blob[:20]) {
			t.Errorf("hooks %v: base64 in %.2000s", hooks, b.String())
		}
		for _, want := range []string{"arguments (data:image/png;base64, 42690 characters)", "an answer (data:image/png;base64, 42690 characters) ends", "an error of (base64, ", "a notice (data:"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("hooks %v: no %s in %.3000s", hooks, want, b.String())
			}
		}
	}
}

// Keys are in no record: those of the endpoint never, others by Hide.
func TestKeys(t *testing.T) {
	key := endpoint.NewKey("sk-very-secret-key")
	var b bytes.Buffer
	l := &eventlog.Log{Content: true, Hide: key.Hide, Logger: slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("it is sk-very-secret-key")), agenttest.Failure(401, "invalid_api_key", "Incorrect API key provided: sk-very-secret-key."))
	client := srv.Client()
	client.Key = key
	a := &agent.Agent{Model: client, Hooks: []agent.Hooks{l.Hooks()}}
	a.Request.Model = "test-model"
	s := session.New()
	for range 2 {
		for ev := range a.Stream(t.Context(), s, item.User("my key is sk-very-secret-key")) {
			l.Add(t.Context(), ev)
		}
	}
	if strings.Contains(b.String(), "very-secret") || !strings.Contains(b.String(), "my key is") {
		t.Errorf("%s", b.String())
	}
	if !strings.Contains(b.String(), `"level":"ERROR","msg":"run stopped"`) {
		t.Errorf("no error in %s", b.String())
	}
}

// A notice that a hook hears of names its session, so that those of two runs can be
// told apart.
func TestNoticesNameTheirSession(t *testing.T) {
	var b bytes.Buffer
	l := &eventlog.Log{Logger: slog.New(slog.NewTextHandler(&b, nil))}
	h := l.Hooks()
	ctx, err := h.BeforeRun(t.Context(), &agent.RunCall{Session: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	other, _ := h.BeforeModel(t.Context(), &agent.ModelCall{Session: "s2", Depth: 1}) // as after a handoff
	_ = h.Noticed(ctx, &session.Noticed{Kind: "k"})
	_ = h.Noticed(other, &session.Noticed{Kind: "k"})
	for _, line := range []string{"msg=noticed session=s1 kind=k", "msg=noticed session=s2 depth=1 kind=k"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no %s in\n%s", line, b.String())
		}
	}
}

// What an agent does to which the conversation was handed has the name of the handoff.
func TestHandoffIsNamed(t *testing.T) {
	var b bytes.Buffer
	l := &eventlog.Log{Logger: slog.New(slog.NewTextHandler(&b, nil))}
	h := l.Hooks()
	_ = h.AfterModel(t.Context(), &agent.ModelCall{Session: "s1", Turn: 1, Status: item.StatusCompleted})
	_ = h.AfterModel(t.Context(), &agent.ModelCall{Session: "s1", Turn: 2, Status: item.StatusCompleted, Speaker: "to_bills"})
	_ = h.AfterTool(t.Context(), &agent.ToolCall{Session: "s1", Turn: 2, Speaker: "to_bills", Call: tool.Call{Name: "pay", ID: "c1"}})
	_ = h.AfterCompact(t.Context(), &agent.CompactionCall{Session: "s1", Speaker: "to_bills", By: "summary"})
	for _, line := range []string{`msg="turn ended" session=s1 turn=1 `, `msg="turn ended" session=s1 handoff=to_bills turn=2 `,
		`msg="call ended" session=s1 handoff=to_bills turn=2 tool=pay `, `msg=compacted session=s1 handoff=to_bills by=summary`} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no %s in\n%s", line, b.String())
		}
	}
}

// Every kind of progress that a person may want to look at has a record, without the
// guard's reason unless Content is set.
func TestProgressRecords(t *testing.T) {
	for _, content := range []bool{false, true} {
		var b bytes.Buffer
		l := &eventlog.Log{Content: content, Logger: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		for _, p := range []agent.Progress{
			{Kind: agent.ProgressDelayed, Turn: 1, CallID: "c1", Tool: "echo", Wait: 5, Retry: true, Reason: "secret words"},
			{Kind: agent.ProgressTripped, Turn: 1, Tripwire: &agent.Tripwire{Guard: "g", Stage: "output", Reason: "secret words"}},
			{Kind: agent.ProgressTripped, Turn: 1},
			{Kind: agent.ProgressSpeaker, Turn: 2, Handoff: "billing"},
			{Kind: agent.ProgressUnapproved, CallID: "c2", Tool: "write"},
		} {
			l.Add(t.Context(), p)
		}
		for _, line := range []string{`level=DEBUG msg="call delayed" turn=1 tool=echo call_id=c1 wait=5ns retry=true`, `level=WARN msg="guard objected" turn=1 guard=g stage=output`,
			`level=DEBUG msg="agent speaks" turn=2 handoff=billing`, `level=WARN msg="call needs an approval" tool=write call_id=c2`} {
			if !strings.Contains(b.String(), line) {
				t.Errorf("no %s in\n%s", line, b.String())
			}
		}
		if strings.Contains(b.String(), "secret words") != content {
			t.Errorf("content %v:\n%s", content, b.String())
		}
	}
}

// G8: a nil Log writes nothing.
func TestNilLog(t *testing.T) {
	var l *eventlog.Log
	l.Add(t.Context(), agent.Progress{Kind: agent.ProgressTotals})
	l.Add(t.Context(), agent.SubagentEvent{Event: agent.Recorded{}})
	h := l.Hooks()
	if h.BeforeRun != nil || h.Noticed != nil {
		t.Error("hooks of nothing")
	}
}

// Nothing is made for a handler that wants nothing, and a nil event is taken.
func TestDisabled(t *testing.T) {
	l := &eventlog.Log{Logger: slog.New(slog.DiscardHandler)}
	l.Add(t.Context(), nil)
	l.Add(t.Context(), agent.SubagentEvent{})
	if n := testing.AllocsPerRun(100, func() { l.Add(t.Context(), agent.Delta{Kind: agent.DeltaText, Text: "x"}) }); n > 1 {
		t.Errorf("%v allocations for a delta", n)
	}
}
