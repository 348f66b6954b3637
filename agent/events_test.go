// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// eventSchema is docs/events.schema.json.
func eventSchema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	c := jsonschema.NewCompiler()
	var events map[string]any
	for name, file := range map[string]string{"events.schema.json": "../docs/events.schema.json", "format/entry.schema.json": "../docs/format/entry.schema.json"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		of := doc.(map[string]any)
		delete(of, "$id") // they are found by the names here
		if err := c.AddResource("test:///"+name, of); err != nil {
			t.Fatal(err)
		}
		if name == "events.schema.json" {
			events = of
		}
	}
	s, err := c.Compile("test:///events.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s, events
}

// checkEvents wants of each event that its JSON is a line by the published schema,
// and that what is read from it is the event.
func checkEvents(t *testing.T, schema *jsonschema.Schema, events []agent.Event, seen map[string]bool) {
	t.Helper()
	for _, ev := range events {
		line, err := agent.AppendEvent([]byte("x"), ev)
		if err != nil {
			t.Fatal(err)
		}
		line = line[1:]
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil || bytes.ContainsAny(line, "\n\r") {
			t.Errorf("%v\n%s", err, line)
		}
		back, err := agent.ParseEvent(line)
		if err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		again, err := agent.AppendEvent(nil, back)
		if err != nil || string(again) != string(line) {
			t.Errorf("%v\nwritten %s\nread    %s", err, line, again)
		}
		if nameOf(back) != nameOf(ev) {
			t.Errorf("%s became %s", nameOf(ev), nameOf(back))
		}
		if s, ok := ev.(agent.SubagentEvent); ok {
			seen["subagent"] = true
			ev = s.Event
		}
		seen[nameOf(ev)] = true
	}
}

// Each event of real runs, with subagents, failures, refusals and calls that wait,
// has the JSON that docs/events.schema.json describes, and is read back as it was.
func TestEventsJSON(t *testing.T) {
	schema, _ := eventSchema(t)
	seen := map[string]bool{}
	run := func(r *rig, input ...item.Item) {
		t.Helper()
		events, _ := drain(r.agent.Stream(t.Context(), r.session, input...))
		checkEvents(t, schema, events, seen)
	}

	helper := &agent.Agent{Model: &memory{replies: []any{[]item.Item{call("i", "fails", "x")}, []item.Item{item.Assistant("It is so.")}}}}
	fails := textTool("fails", func(context.Context, string) (string, error) { return "half", errors.New("broken\nin two") }, tool.ReadOnly())
	helper.Tools = []tool.Tool{fails}
	asTool, err := agent.AsTool("helper", "Helps.", helper)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, agenttest.Completed(item.Must(&item.Reasoning{ID: "rs", Summary: []item.Part{&item.SummaryText{Text: "hm"}}}), task("h", "a"), call("f", "fails", "x"), call("n", "unknown", ""), call("w", "write", "x")),
		agenttest.Completed(item.Assistant("done")), agenttest.Failed("server_error", "No."), agenttest.Failed("server_error", "No."), agenttest.Failed("server_error", "No."))
	r.agent.Tools = []tool.Tool{asTool, fails, textTool("write", func(context.Context, string) (string, error) { return "", nil })}
	r.agent.Policy = agent.Policy{}
	run(r, item.User("go"))
	run(r, item.User("fail"))

	p, _ := pausing(t)
	run(p, item.User("go"))

	run(newDesk(t).rig, item.User("Pay my bill."))
	synctest.Test(t, func(t *testing.T) {
		shaky := &agent.Agent{Model: agenttest.Script(t, agenttest.Completed(call("s", "shaky", "x")), saying("done"))}
		shaky.Tools = []tool.Tool{textTool("shaky", func(context.Context, string) (string, error) { return "", errors.New("busy") }, tool.ReadOnly(), tool.Retries(tool.Retry{Max: 1}))}
		events, _ := drain(shaky.Stream(t.Context(), session.New(), item.User("go")))
		checkEvents(t, schema, events, seen)
	})

	m := &small{reply: reading(4, 3000)}
	a := compacting(m)
	events, err := drain(a.Stream(t.Context(), session.New(), item.User("q")))
	if err != nil {
		t.Fatal(err)
	}
	checkEvents(t, schema, events, seen)

	for _, want := range []string{
		"subagent", "delta text", "delta summary", "delta arguments", "progress model", "progress returned", "progress waiting", "progress unapproved",
		"progress cache", "progress compacting", "progress delayed", "progress speaker", "progress totals", "given", "run_started", "turn_started", "received", "turn_ended", "approval",
		"approval_asked", "call_started", "nested", "answered", "compacted", "stopped",
	} {
		if !seen[want] {
			t.Errorf("no run told %s", want)
		}
	}
}

// What AppendEvent cannot write and ParseEvent cannot read are errors.
func TestEventsThatAreNone(t *testing.T) {
	for _, ev := range []agent.Event{nil, agent.SubagentEvent{}, agent.Recorded{}, agent.SubagentEvent{Event: agent.SubagentEvent{}}} {
		if out, err := agent.AppendEvent([]byte("x"), ev); err == nil || string(out) != "x" {
			t.Errorf("%T: %q, %v", ev, out, err)
		}
	}
	for _, line := range []string{"", "{}", "[]", `{"type":"x"}`, `{"type":"recorded"}`, `{"type":"recorded","entry":{"seq":1}}`, `{"type":"progress","event":5}`} {
		if ev, err := agent.ParseEvent([]byte(line)); err == nil {
			t.Errorf("%s: %v", line, ev)
		}
	}
	if _, err := agent.ParseEvent([]byte(`{"type":"recorded","entry":{"seq":1,"kind":"of tomorrow"}}`)); !errors.Is(err, session.ErrNewer) {
		t.Errorf("an entry of a newer program: %v", err)
	}
	for _, line := range []string{`{"type":"delta","kind":"smell","text":"x","new":1}`, `{"type":"progress","kind":"of tomorrow","new":[]}`} {
		if _, err := agent.ParseEvent([]byte(line)); err != nil {
			t.Errorf("what is new is left alone: %v", err)
		}
	}
	bad := agent.Delta{Kind: agent.DeltaText, Text: "a\xffb", ItemID: "\xff"}
	if line, err := agent.AppendEvent(nil, bad); err != nil || !strings.Contains(string(line), "a\uFFFDb") {
		t.Errorf("%s, %v", line, err)
	}
}

// Every kind of delta and of progress stands in docs/events.md and in the schema.
func TestEventsAreDocumented(t *testing.T) {
	_, text := eventSchema(t)
	page, err := os.ReadFile("../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("events.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string][]string{}
	for line := range strings.Lines(string(source)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ` = "`)
		if fields := strings.Fields(name); ok && len(fields) == 2 {
			value, _, _ = strings.Cut(value, `"`)
			kinds[fields[1]] = append(kinds[fields[1]], value)
		}
	}
	for typ, name := range map[string]string{"DeltaKind": "delta", "ProgressKind": "progress"} {
		var listed []string
		for _, v := range text["$defs"].(map[string]any)[name].(map[string]any)["properties"].(map[string]any)["kind"].(map[string]any)["enum"].([]any) {
			listed = append(listed, v.(string))
		}
		if !slices.Equal(kinds[typ], listed) {
			t.Errorf("%s: the source has %q, the schema %q", name, kinds[typ], listed)
		}
		for _, kind := range kinds[typ] {
			if !strings.Contains(string(page), "`"+kind+"`") {
				t.Errorf("docs/events.md lacks the %s %s", name, kind)
			}
		}
	}
	for name := range text["$defs"].(map[string]any)["progress"].(map[string]any)["properties"].(map[string]any) {
		if name != "type" && name != "kind" && !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/events.md lacks the member %s of progress", name)
		}
	}
}

// entriesOf are the entries that were told, without their times.
func entriesOf(events []agent.Event) (list []session.Entry) {
	for _, ev := range events {
		if e, ok := ev.(agent.Recorded); ok {
			e.Time = time.Time{}
			list = append(list, e.Entry)
		}
	}
	return list
}

// A run tells every entry of its log, in order, and Watch tells the same ones: from any
// cursor, of a session that another process runs, and after a crash of the reader.
func TestWatch(t *testing.T) {
	store := new(session.Memory) // which two processes have in common
	open := func() *session.Session {
		t.Helper()
		s, err := session.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	watched := open()
	watch := func(after int64, most int) (list []agent.Event) {
		t.Helper()
		for ev, err := range agent.Watch(t.Context(), watched, after) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, ev)
			if nameOf(ev) == "stopped" || len(list) == most {
				break
			}
		}
		return list
	}

	s := open()
	a := &agent.Agent{Model: &memory{replies: []any{[]item.Item{call("c", "echo", "x")}, []item.Item{item.Assistant("done")}}}, Tools: []tool.Tool{echo(tool.ReadOnly())}}
	began := make(chan []agent.Event)
	go func() {
		events, err := drain(a.Stream(t.Context(), s, item.User("go")))
		if err != nil {
			t.Error(err)
		}
		began <- events
	}()
	some := watch(0, 3) // and then the reader crashes
	rest := watch(3, -1)
	events := <-began

	log := entriesOf(events)
	if diff := cmp.Diff(s.Log(), log, cmp.Comparer(func(a, b item.Item) bool { return a.JSON() == b.JSON() })); diff != "" {
		t.Errorf("the log and what the run told:\n%s", diff)
	}
	if diff := cmp.Diff(log, entriesOf(append(some, rest...)), cmp.Comparer(func(a, b item.Item) bool { return a.JSON() == b.JSON() })); diff != "" {
		t.Errorf("what the run and what Watch told:\n%s", diff)
	}
	for _, ev := range events {
		if e, ok := ev.(agent.Recorded); ok && e.Time.IsZero() {
			t.Errorf("entry %d has no time", e.Seq)
		}
	}
	blind, err := session.Open(t.Context(), single{new(session.Memory)}, "s")
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range agent.Watch(t.Context(), blind, 0) {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v, %v", ev, err)
		}
	}
}
