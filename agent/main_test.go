// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an agent on a server over loopback.
type rig struct {
	t       *testing.T
	server  *agenttest.Server
	agent   *agent.Agent
	store   *session.Memory
	session *session.Session
}

func newRig(t *testing.T, answers ...agenttest.Reply) *rig {
	t.Helper()
	r := &rig{t: t, server: agenttest.NewServer(t, answers...), store: new(session.Memory)}
	client := r.client()
	r.agent = &agent.Agent{Model: client, Retry: client.Retry, Policy: agent.Policy{Allow: []string{"*"}}}
	r.agent.Request.Model = "test-model"
	r.reopen()
	return r
}

// client returns a client of the server that sends what the loop gives it, as
// the API takes it, whatever is done for servers that nothing is known of.
func (r *rig) client() *responses.Client {
	c := r.server.Client()
	c.Profile = &endpoint.Profile{Name: "as it is"}
	return c
}

// reopen reads the session from its store, as another process would.
func (r *rig) reopen() {
	r.t.Helper()
	var err error
	if r.session, err = session.Open(r.t.Context(), r.store, "s"); err != nil {
		r.t.Fatal(err)
	}
}

// run runs to the end; an error fails the test.
func (r *rig) run(input ...item.Item) *agent.Result {
	r.t.Helper()
	res, err := r.agent.Run(r.t.Context(), r.session, input...)
	if err != nil {
		r.t.Fatalf("run: %v", err)
	}
	return res
}

// inputs returns the items of each request, all of which must pair up and fit
// the API's schema.
func (r *rig) inputs() [][]item.Item {
	r.t.Helper()
	var list [][]item.Item
	for i, req := range r.server.Requests() {
		var items []item.Item
		for _, it := range req.Parse(r.t).Input.All() {
			items = append(items, it)
		}
		if err := agenttest.CheckPairing(items...); err != nil {
			r.t.Errorf("request %d: %v\n%s", i, err, req.Body)
		}
		list = append(list, items)
	}
	r.t.Run("schema", func(t *testing.T) {
		spec := apispec.Load(t)
		for _, req := range r.server.Requests() {
			spec.Check(t, "CreateResponse", req.Body)
		}
	})
	return list
}

// last returns the items of the last request.
func (r *rig) last() []item.Item {
	r.t.Helper()
	all := r.inputs()
	if len(all) == 0 {
		r.t.Fatal("no request was made")
	}
	return all[len(all)-1]
}

// history is what the next request of the session would carry.
func history(s *session.Session) []item.Item {
	var v session.View
	seq := int64(0)
	for e := range s.Entries() {
		v.Apply(e)
		seq = e.Seq
	}
	v.Apply(session.Entry{Seq: seq + 1, Body: session.TurnStarted{}})
	var items []item.Item
	for _, it := range v.Items().All() {
		items = append(items, it)
	}
	return items
}

// brokenOff is how outline shows the note behind a reply that broke off.
const brokenOff = "(broke off)"

// outline shows items in short, without the ids that the server makes up.
func outline(items []item.Item) []string {
	var lines []string
	for _, it := range items {
		if session.IsBreakNote(it) {
			lines = append(lines, brokenOff)
			continue
		}
		switch it.Type() {
		case item.TypeMessage:
			m, err := item.As[item.Message](it)
			if err != nil {
				panic(err)
			}
			line := string(m.Role) + ": " + m.Content.Display()
			if m.Status == item.StatusIncomplete {
				line += " (incomplete)"
			}
			lines = append(lines, line)
		case item.TypeFunctionCall:
			c, err := item.As[item.FunctionCall](it)
			if err != nil {
				panic(err)
			}
			lines = append(lines, fmt.Sprintf("%s: %s(%s)", c.CallID, c.Name, c.Arguments))
		case item.TypeFunctionCallOutput:
			lines = append(lines, it.CallID()+" = "+outputText(it))
		default:
			lines = append(lines, string(it.Type()))
		}
	}
	return lines
}

// outputText is the text of a function call output; of a failure, its error.
func outputText(it item.Item) string {
	o, err := item.As[item.FunctionCallOutput](it)
	if err != nil {
		panic(err)
	}
	text := o.Output.Display()
	if _, rest, ok := strings.Cut(text, "\n\nerror:\n"); ok && strings.HasPrefix(text, "status:\nerror\n") {
		text, _, _ = strings.Cut(rest, "\n\noutput:\n")
		return "error: " + text
	}
	return text
}

// outputs returns the outputs among the items, by call id.
func outputs(items []item.Item) map[string]string {
	m := map[string]string{}
	for _, it := range items {
		if it.Type() == item.TypeFunctionCallOutput {
			m[it.CallID()] = outputText(it)
		}
	}
	return m
}

type textInput struct {
	Text string `json:"text"`
}

// textTool is a tool that takes a text.
func textTool(name string, f func(ctx context.Context, text string) (string, error), opts ...tool.Option) tool.Tool {
	return tool.Must(name, "Handles a text.", func(ctx context.Context, in textInput) (string, error) { return f(ctx, in.Text) }, opts...)
}

func echo(opts ...tool.Option) tool.Tool {
	return textTool("echo", func(_ context.Context, s string) (string, error) { return s, nil }, opts...)
}

// call is a call of a text tool.
func call(id, name, text string) item.Item {
	return item.Call(id, name, `{"text":`+string(item.Quote(text))+`}`)
}

// drain collects a run's events, texts of deltas included as they were.
func drain(events iter.Seq2[agent.Event, error]) (list []agent.Event, err error) {
	for ev, failed := range events {
		if failed != nil {
			return list, failed
		}
		list = append(list, ev)
	}
	return list, nil
}

// told returns the bodies of a type among the entries that were told.
func told[T session.Body](events []agent.Event) (list []T) {
	for _, ev := range events {
		if ev, ok := ev.(agent.Recorded); ok {
			if b, ok := ev.Body.(T); ok {
				list = append(list, b)
			}
		}
	}
	return list
}

// texts returns the deltas of texts.
func texts(events []agent.Event) (list []agent.Delta) {
	for _, ev := range events {
		if d, ok := ev.(agent.Delta); ok && (d.Kind == agent.DeltaText || d.Kind == agent.DeltaRefusal) {
			list = append(list, d)
		}
	}
	return list
}

func progressOf(events []agent.Event, kind agent.ProgressKind) (list []agent.Progress) {
	for _, ev := range events {
		if p, ok := ev.(agent.Progress); ok && p.Kind == kind {
			list = append(list, p)
		}
	}
	return list
}

// stopOf returns how a run ended whose events these are.
func stopOf(t *testing.T, events []agent.Event) session.Stopped {
	t.Helper()
	list := told[session.Stopped](events)
	if len(list) != 1 || nameOf(events[len(events)-1]) != "stopped" {
		t.Fatalf("%d stops, the last event is %v", len(list), events[len(events)-1])
	}
	return list[0]
}

// nameOf names an event: the kind of its entry, or what else it is.
func nameOf(ev agent.Event) string {
	switch ev := ev.(type) {
	case agent.Recorded:
		return session.Kind(ev.Body)
	case agent.Delta:
		return "delta " + string(ev.Kind)
	case agent.Progress:
		return "progress " + string(ev.Kind)
	case agent.SubagentEvent:
		return "subagent"
	}
	return "nothing"
}

// memory is a model without a wire, for tests in a bubble of fake time. Each
// reply is a list of items, or a function that stands for one. Subagents of one
// turn may ask it at the same time.
type memory struct {
	mu      sync.Mutex
	replies []any
	asked   []*api.Request
}

type listen func(ctx context.Context, yield func(api.Event, error) bool)

func (m *memory) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		m.mu.Lock()
		n := len(m.asked)
		m.asked = append(m.asked, req)
		m.mu.Unlock()
		switch reply := m.replies[min(n, len(m.replies)-1)].(type) {
		case listen:
			reply(ctx, yield)
		case []item.Item:
			speak(yield, fmt.Sprintf("resp_%d", n), reply...)
		}
	}
}

// speak yields the events of a whole response.
func speak(yield func(api.Event, error) bool, id string, items ...item.Item) {
	var output []string
	for i, it := range items {
		output = append(output, it.JSON())
		if !yield(event(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, it.JSON()), nil) {
			return
		}
	}
	yield(event(`{"type":"response.completed","response":{"id":%q,"status":"completed","output":[%s],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}`,
		id, strings.Join(output, ",")), nil)
}

func event(format string, args ...any) api.Event {
	ev, err := api.ParseEvent(fmt.Appendf(nil, format, args...))
	if err != nil {
		panic(err)
	}
	return ev
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q does not hold %q", text, p)
		}
	}
}
