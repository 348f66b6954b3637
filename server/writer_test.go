// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// written is what a writer writes of a response.
func written(t *testing.T, write func(w *server.Writer)) (events []api.Event, last *api.Response) {
	t.Helper()
	spec := apispec.Load(t)
	w := server.NewWriter(api.Response{
		ID: "resp_1", CreatedAt: new(1.0), Model: "m", Instructions: "null", Metadata: "{}", ParallelToolCalls: new(true), Temperature: new(1.0),
		ToolChoice: `"auto"`, Tools: "[]", TopP: new(1.0),
		Extra: item.Extra{{Name: "error", Value: "null"}, {Name: "incomplete_details", Value: "null"}},
	}, func(ev api.Event) error {
		spec.Check(t, "ResponseStreamEvent", []byte(ev.JSON()))
		if ev.SequenceNumber != int64(len(events)) {
			t.Errorf("event %d has the number %d", len(events), ev.SequenceNumber)
		}
		events = append(events, ev)
		return nil
	})
	write(w)
	return events, w.Response()
}

// What the deltas, the items and the response say is the same, whichever way it
// was written, and all of it is valid by the schema. S4 S5
func TestWriter(t *testing.T) {
	thought := &item.Reasoning{Summary: []item.Part{&item.SummaryText{Text: "Hm, well"}}, EncryptedContent: "gAAA"}
	call := &item.FunctionCall{CallID: "c1", Name: "f", Arguments: `{"a": 1}`}
	custom := &item.CustomToolCall{CallID: "c2", Name: "g", Input: "x, y"}
	run := &item.MCPCall{ServerLabel: "s", Name: "h", Arguments: `{"b": 2}`, Output: "done", Status: item.StatusCompleted}
	search := item.JSON(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`)
	whole := func(w *server.Writer) {
		for _, v := range []item.Value{thought, call, custom, run, &item.Unknown{Raw: search}} {
			_ = w.Item(item.Must(v))
		}
		_ = w.Item(item.Assistant("Hello, you"))
		_ = w.Complete()
	}
	piecewise := func(w *server.Writer) {
		_ = w.Open(&item.Reasoning{EncryptedContent: "gAAA"})
		_ = w.Delta("Hm, ")
		_ = w.Delta("well")
		_ = w.Open(&item.FunctionCall{CallID: "c1", Name: "f"})
		_ = w.Delta(call.Arguments)
		_ = w.Close()
		_ = w.Open(&item.CustomToolCall{CallID: "c2", Name: "g"})
		_ = w.Delta(custom.Input)
		_ = w.Open(&item.MCPCall{ServerLabel: "s", Name: "h", Output: "done"})
		_ = w.Delta(run.Arguments)
		_ = w.Item(item.Must(&item.Unknown{Raw: search}))
		_ = w.Text("Hello, ")
		_ = w.Text("you")
		_ = w.Complete()
	}
	relayed := func(w *server.Writer) { // of what a model said, whose deltas were cut short
		_ = w.Open(&item.Reasoning{})
		_ = w.Delta("Hm, ")
		_ = w.CloseAs(item.Must(thought))
		_ = w.Open(&item.FunctionCall{CallID: "c1", Name: "f"})
		_ = w.CloseAs(item.Must(call))
		_ = w.Open(custom)
		_ = w.Delta(custom.Input)
		_ = w.CloseAs(item.Must(custom))
		_ = w.Open(&item.MCPCall{ServerLabel: "s", Name: "h"})
		_ = w.Delta(`{"b"`)
		_ = w.CloseAs(item.Must(run))
		_ = w.Item(item.Must(&item.Unknown{Raw: search}))
		_ = w.Text("Hello, ")
		_ = w.CloseAs(item.Assistant("Hello, you"))
		_ = w.Complete()
	}
	_, want := written(t, whole)
	for name, write := range map[string]func(*server.Writer){"whole": whole, "piecewise": piecewise, "relayed": relayed} {
		events, got := written(t, write)
		if d := cmp.Diff(encoded(t, want), encoded(t, got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		var acc api.Accumulator
		for _, ev := range events {
			if _, err := acc.Add(ev); err != nil {
				t.Errorf("%s: %v: %s", name, err, ev.JSON())
			}
		}
		r, ended := acc.Response()
		if d := cmp.Diff(encoded(t, want), encoded(t, r)); d != "" || !ended {
			t.Errorf("%s: accumulated, ended %v (-want +got):\n%s", name, ended, d)
		}
	}
	var ids []string
	for _, it := range want.Output {
		ids = append(ids, it.ID())
	}
	if d := cmp.Diff("rs_resp_1_0 fc_resp_1_1 ctc_resp_1_2 mcp_resp_1_3 ws_1 msg_resp_1_5", strings.Join(ids, " ")); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
}

// A response can end in other ways, in the middle of an item too.
func TestWriterEnds(t *testing.T) {
	for _, test := range []struct {
		end  func(w *server.Writer) error
		want string
	}{
		{(*server.Writer).Complete, `completed: output 1, usage true, error <nil>, reason <nil>`},
		{func(w *server.Writer) error { return w.Incomplete("max_output_tokens") }, `incomplete: output 1, usage true, error <nil>, reason max_output_tokens`},
		{func(w *server.Writer) error { return w.Fail("server_error", "it broke") }, `failed: output 1, usage false, error server_error: it broke, reason <nil>`},
		{func(w *server.Writer) error { return w.Error("server_error", "it broke") }, `in_progress: output 1, usage false, error <nil>, reason <nil>`},
	} {
		events, r := written(t, func(w *server.Writer) {
			w.Usage(api.Usage{InputTokens: 1, InputDetails: &api.InputTokensDetails{CacheWriteTokens: new(int64(0))}, OutputDetails: &api.OutputTokensDetails{}})
			_ = w.Text("so far")
			if err := test.end(w); err != nil {
				t.Error(err)
			}
		})
		reason := "<nil>"
		if r.Incomplete != nil {
			reason = r.Incomplete.Reason
		}
		var failure error
		if r.Error != nil {
			failure = r.Error
		}
		got := fmt.Sprintf("%s: output %d, usage %v, error %v, reason %s", r.Status, len(r.Output), r.Usage != nil, failure, reason)
		if got != test.want || !events[len(events)-1].Terminal() {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// The first error stays, and nothing is written after it.
func TestWriterErrors(t *testing.T) {
	gone := errors.New("gone")
	n := 0
	w := server.NewWriter(api.Response{ID: "resp_1"}, func(api.Event) error {
		if n++; n == 5 {
			return gone
		}
		return nil
	})
	for _, err := range []error{w.Text("one"), w.Text("two"), w.Item(item.Assistant("x")), w.Open(&item.Reasoning{}), w.Delta("x"), w.Close(), w.Complete()}[1:] {
		if err != gone {
			t.Errorf("got %v", err)
		}
	}
	if n != 5 {
		t.Errorf("%d events", n)
	}
	for name, write := range map[string]func(w *server.Writer) error{
		"no text":      func(w *server.Writer) error { return w.Open(&item.FunctionCallOutput{}) },
		"nothing open": func(w *server.Writer) error { return w.Delta("x") },
		"other type":   func(w *server.Writer) error { _ = w.Open(&item.Reasoning{}); return w.CloseAs(item.Assistant("x")) },
		"closed":       func(w *server.Writer) error { return w.Close() },
		"not UTF-8":    func(w *server.Writer) error { return w.Text("\xff") },
	} {
		w := server.NewWriter(api.Response{ID: "resp_1"}, func(api.Event) error { return nil })
		if err := write(w); err == nil || w.Complete() != err {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is open when a response is interrupted was not complete: a message and reasoning have the text so far and say so,
// and a call is left out. V2
func TestInterruptOpen(t *testing.T) {
	for _, tt := range []struct {
		open item.Value
		text string
		want string // of the output, "" if it has nothing
	}{
		{&item.Message{}, "Half a sen", `"status":"incomplete"`},
		{&item.Reasoning{}, "Half a tho", `"status":"incomplete"`},
		{&item.Message{}, "", ""},
		{&item.FunctionCall{CallID: "c1", Name: "rm"}, `{"path":"/tm`, ""},
		{&item.CustomToolCall{CallID: "c1", Name: "sh"}, "rm /tm", ""},
		{&item.MCPCall{ServerLabel: "s", Name: "rm"}, `{"path":"/tm`, ""},
	} {
		_, r := written(t, func(w *server.Writer) {
			if err := errors.Join(w.Open(tt.open), w.Delta(tt.text), w.Interrupt("server_error", "Stopped.")); err != nil {
				t.Error(err)
			}
		})
		switch {
		case r.Status != item.StatusIncomplete:
			t.Errorf("%s: %s", tt.open.ItemType(), r.Status)
		case tt.want == "":
			if len(r.Output) != 0 {
				t.Errorf("%s: %v", tt.open.ItemType(), r.Output)
			}
		case len(r.Output) != 1 || !strings.Contains(r.Output[0].JSON(), tt.want) || !strings.Contains(r.Output[0].JSON(), tt.text):
			t.Errorf("%s: %v", tt.open.ItemType(), r.Output)
		}
	}
}

// A backend that does not look at errors ends no item with a part of its text.
func TestCloseAfterError(t *testing.T) {
	n := 0
	w := server.NewWriter(api.Response{ID: "resp_1"}, func(api.Event) error {
		if n++; n > 4 { // created, in progress, added, one delta
			return errors.New("the client left")
		}
		return nil
	})
	_ = w.Open(&item.FunctionCall{CallID: "c1", Name: "rm"})
	for _, part := range []string{`{"path":`, `"/tm`, `p/x"}`} {
		_ = w.Delta(part)
	}
	_ = w.Close()
	_ = w.Open(&item.Message{})
	if r := w.Response(); len(r.Output) != 0 {
		t.Errorf("%v", r.Output)
	}
}

// A message of somebody else than the model is no output. G8
func TestNoOutput(t *testing.T) {
	for _, it := range []item.Item{item.User("hi"), item.System("hi")} {
		_, last := written(t, func(w *server.Writer) {
			if err := w.Item(it); err == nil || !strings.Contains(err.Error(), "is no output") {
				t.Errorf("%s: %v", it, err)
			}
		})
		if len(last.Output) > 0 {
			t.Errorf("%s: %s", it, last.Output)
		}
	}
}
