// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool/output"
)

// reader is a model that reads notes.txt over and over, and sums up when asked.
type reader struct {
	t    *testing.T
	left int
	sent []*api.Request
	sums int
}

func (m *reader) Stream(_ context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	reply := item.Assistant("done")
	switch {
	case len(req.Tools) == 0:
		m.sums++
		reply = item.Assistant("in short")
	case m.left > 0:
		reply = item.Call(fmt.Sprintf("c%d", m.left), "read_file", `{"path":"notes.txt"}`)
		fallthrough
	default:
		m.left--
		m.sent = append(m.sent, req)
		var items []item.Item
		for _, it := range req.Input.All() {
			items = append(items, it)
		}
		if err := agenttest.CheckPairing(items...); err != nil {
			m.t.Error(err)
		}
	}
	return func(yield func(api.Event, error) bool) {
		for _, raw := range []string{
			`{"type":"response.output_item.done","output_index":0,"item":` + reply.JSON() + `}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + reply.JSON() + `]}}`,
		} {
			ev, err := api.ParseEvent([]byte(raw))
			if !yield(ev, err) {
				return
			}
		}
	}
}

var decisions = regexp.MustCompile(`<(decision|run) [^>]*>\n`)

// C1 C2 C4: a transcript holds decisions as marks. Without those the text of the
// file is as it would be if nothing had been decided.
func TestTranscriptHoldsDecisions(t *testing.T) {
	dir := t.TempDir()
	write(t, strings.Repeat("a line of the notes\n", 100), dir, "notes.txt")
	path := write(t, "<tool name=\"read_file\" approval=\"allow\"/>\n"+prompt, dir, "agent.md")
	talks := map[string]string{}
	for _, kind := range []string{"plain", "compacted", "collapsed"} {
		out := filepath.Join(dir, kind+".md")
		for range 3 {
			m := &reader{t: t, left: 5}
			f, s := open(t, path, out)
			a := f.Agent(m)
			a.Policy.Allow = []string{"*"}
			switch kind {
			case "compacted":
				a.Compaction = agent.Compaction{At: 1500, Keep: 200}
			case "collapsed":
				a.CollapseReads = true
			}
			events := map[string]int{}
			for ev, err := range a.Stream(t.Context(), s, item.User("read on")) {
				if err != nil {
					t.Fatal(kind, err)
				}
				if e, ok := ev.(agent.Recorded); ok {
					events[session.Kind(e.Body)]++
				}
			}
			if kind == "compacted" && (m.sums == 0 || events["compacted"] == 0) {
				t.Errorf("nothing was compacted: %v", events)
			}
			last := must(t, `{"type":"x","input":`+inputOf(t, m.sent[len(m.sent)-1])+`}`).JSON()
			whole := strings.Count(last, strings.Repeat("a line of the notes\\n", 100))
			if kind == "collapsed" && whole != 1 || kind != "plain" && whole > 2 {
				t.Errorf("%s: the last request has the notes %d times", kind, whole)
			}
			session.Explain(s.Entries())
			here := sentBy(s)
			f.Close()
			f, s = open(t, path, out) // C2: another process sends what this one would
			if diff := cmp.Diff(here, sentBy(s)); diff != "" {
				t.Errorf("%s: after reopening (-before +after):\n%s", kind, diff)
			}
			f.Close()
		}
		talks[kind] = decisions.ReplaceAllString(read(t, out), "")
	}
	if talks["compacted"] != talks["plain"] || talks["collapsed"] != talks["plain"] {
		t.Error("the transcripts are not alike")
	}
}

// C1: a transcript holds which calls failed, so that a failed read stands for no other.
func TestTranscriptHoldsFailures(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, "<tool name=\"read_file\" approval=\"allow\"/>\n"+prompt, dir, "agent.md"), filepath.Join(dir, "out.md")
	f, s := open(t, path, out)
	answer := func(id, text string) item.Item {
		it, err := item.Output(id, item.Text(text))
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	_, err := s.Append(t.Context(), session.RunStarted{}, session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: item.Call("a", "read_file", `{"path":"x.txt"}`)}, session.OutputItem{Turn: 1, Item: item.Call("b", "read_file", `{"path":"x.txt"}`)},
		session.TurnEnded{Turn: 1, Status: item.StatusCompleted}, session.CallStarted{CallID: "a"}, session.CallOutput{CallID: "a", Item: answer("a", "status: error, says the file")},
		session.CallStarted{CallID: "b"}, session.CallOutput{CallID: "b", Failed: true, Item: answer("b", output.Envelope(true, "read_file", "no such file", ""))})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	f, s = open(t, path, out)
	defer f.Close()
	failed := map[string]bool{}
	for e := range s.Entries() {
		if b, ok := e.Body.(session.CallOutput); ok {
			failed[b.CallID] = b.Failed
		}
	}
	if len(failed) != 2 || failed["a"] || !failed["b"] {
		t.Errorf("failed: %v", failed)
	}
}

// sentBy is what the next request of a session carries.
func sentBy(s *session.Session) (list []string) {
	var v session.View
	for e := range s.Entries() {
		v.Apply(e)
	}
	v.Apply(session.Entry{Body: session.TurnStarted{}})
	for _, it := range v.Items().All() {
		list = append(list, it.JSON())
	}
	return list
}

func inputOf(t *testing.T, req *api.Request) string {
	t.Helper()
	b, err := req.Input.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
