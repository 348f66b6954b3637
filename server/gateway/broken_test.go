// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// What a client has read of a message is kept when the upstream breaks off: the failed response has it, it is
// there after a restart, and it can be continued. V1 V2
func TestBrokenKept(t *testing.T) {
	good := agenttest.Completed(item.Assistant("one two three"))
	chunk := func(text string) string {
		return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"` + text + `"},"finish_reason":null}]}`
	}
	for name, test := range map[string]struct {
		reply agenttest.Reply
		chat  bool
	}{
		"cut":            {good.CutAfter(1500), false},
		"reset":          {good.CutAfter(1500).ByReset(), false},
		"garbage":        {good.WithEvent(6, `{"type":"response.output_text.delta",`), false},
		"chat":           {agenttest.Events(chunk("one "), chunk("two ")), true},
		"no item begins": {agenttest.Events(`{"type":"response.output_text.delta","sequence_number":0,"item_id":"m1","output_index":0,"content_index":0,"delta":"one "}`), false},
	} {
		for _, mode := range []string{`,"stream":true`, `,"background":true,"stream":true`} {
			t.Run(name+mode, func(t *testing.T) {
				up := agenttest.NewServer(t, test.reply, agenttest.Completed(item.Assistant("four")))
				place := filepath.Join(t.TempDir(), "store")
				w, end := onDiskAt(t, place, open(t, up.URL, test.chat))
				events := w.events(`{"model":"m","input":"count"` + mode + `}`)
				var read strings.Builder
				for _, ev := range events {
					if ev.Type == api.EventTextDelta {
						read.WriteString(ev.Delta)
					}
				}
				last, err := events[len(events)-1].Response()
				if err != nil || last.Status != item.StatusFailed || read.Len() == 0 || last.Text() != read.String() || last.Output[0].Status() != item.StatusIncomplete {
					t.Fatalf("%v: read %q, the end is %+v", err, read.String(), last)
				}
				end()
				w, end = onDiskAt(t, place, open(t, up.URL, test.chat))
				defer end()
				_, _, text := w.ask(http.MethodGet, "/responses/"+last.ID, "")
				w.spec.Check(t, "Response", []byte(text))
				if kept, err := api.ParseResponse([]byte(text)); err != nil || kept.Status != item.StatusFailed || kept.Text() != read.String() {
					t.Errorf("%v: kept: %s", err, text)
				}
				asked := len(up.Requests())
				_, _, _ = w.ask(http.MethodPost, "/responses", `{"model":"m","input":"go on","previous_response_id":"`+last.ID+`"}`)
				if list := up.Requests(); len(list) == asked || !strings.Contains(string(list[asked].Body), "count") || !strings.Contains(string(list[asked].Body), strings.TrimSpace(read.String())) {
					t.Errorf("continued: %d requests", len(list)-asked)
				}
			})
		}
	}
}

// A call that broke off is not in a failed response: nobody can answer it.
func TestBrokenCall(t *testing.T) {
	up := agenttest.NewServer(t, agenttest.Events(
		`{"type":"response.output_item.done","sequence_number":0,"output_index":0,"item":{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look.","annotations":[]}]}}`,
		`{"type":"response.output_item.added","sequence_number":1,"output_index":1,"item":{"type":"function_call","id":"f1","call_id":"c1","name":"look","arguments":"","status":"in_progress"}}`,
		`{"type":"response.function_call_arguments.delta","sequence_number":2,"item_id":"f1","output_index":1,"delta":"{\"at\":"}`), agenttest.Completed(item.Assistant("Well.")))
	w, end := onDisk(t, filepath.Join(t.TempDir(), "store"), up)
	defer end()
	r := w.create(`{"model":"m","input":"look"}`)
	if r.Status != item.StatusFailed || len(r.Output) != 1 || r.Text() != "I look." || r.Output[0].Status() != item.StatusCompleted {
		t.Errorf("%s %v", r.Status, r.Output)
	}
	if next := w.create(`{"model":"m","input":"go on","previous_response_id":"` + r.ID + `"}`); next.Text() != "Well." {
		t.Errorf("%q", next.Text())
	}
}

// Reasoning that broke off is kept, too, and is no part of what is continued; neither does it hinder that
// the next response is stored.
func TestBrokenReasoning(t *testing.T) {
	up := agenttest.NewServer(t, agenttest.Events(
		`{"type":"response.output_item.added","sequence_number":0,"output_index":0,"item":{"type":"reasoning","id":"r1","summary":[]}}`,
		`{"type":"response.reasoning_summary_part.added","sequence_number":1,"item_id":"r1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
		`{"type":"response.reasoning_summary_text.delta","sequence_number":2,"item_id":"r1","output_index":0,"summary_index":0,"delta":"Let me see"}`),
		agenttest.Completed(item.Assistant("Well.")), agenttest.Completed(item.Assistant("So.")))
	w, end := onDisk(t, filepath.Join(t.TempDir(), "store"), up)
	defer end()
	r := w.create(`{"model":"m","input":"look"}`)
	if r.Status != item.StatusFailed || len(r.Output) != 1 || !strings.Contains(r.Output[0].JSON(), "Let me see") {
		t.Errorf("%s %v", r.Status, r.Output)
	}
	next := w.create(`{"model":"m","input":"go on","previous_response_id":"` + r.ID + `"}`)
	if next = w.create(`{"model":"m","input":"and on","previous_response_id":"` + next.ID + `"}`); next.Text() != "So." {
		t.Errorf("%q", next.Text())
	}
	list := up.Requests()
	if last := string(list[len(list)-1].Body); !strings.Contains(last, "look") || !strings.Contains(last, "go on") || strings.Contains(last, "Let me see") {
		t.Errorf("sent: %s", last)
	}
}
