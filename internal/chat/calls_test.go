// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// logOf numbers entries, a second after each other.
func logOf(bodies ...session.Body) (list []session.Entry) {
	for i, b := range bodies {
		list = append(list, session.Entry{Seq: int64(i + 1), Time: time.Unix(int64(i), 0), Body: b})
	}
	return list
}

// An imported session may say that subagents began each other, and many times. Each is listed once.
func TestOutlineInCircles(t *testing.T) {
	o := newOutline(func(text string) string { return text }, func(string) ([]session.Entry, error) { return nil, nil })
	for _, of := range []string{"", "a", "b"} {
		for n := range 20 {
			id := fmt.Sprintf("%s%d", of, n)
			for _, e := range logOf(session.OutputItem{Item: item.Call(id, "tidy", "{}")}, session.CallStarted{CallID: id, Session: []string{"a", "b"}[n%2]}) {
				o.add(of, e)
			}
		}
	}
	if n := len(o.nodes()); n != 60 {
		t.Errorf("%d rows", n)
	}
}

// TestOutline proves that the calls of a conversation are listed with what they work on, those of
// subagents below theirs, live and from the log alike, and that a call's text has its arguments, why it
// ran, and its output.
func TestOutline(t *testing.T) {
	output, err := item.Output("c1", item.Text("the content\nof secret123"))
	if err != nil {
		t.Fatal(err)
	}
	whole := logOf(
		session.OutputItem{Item: item.Call("c1", "read_file", `{"path":"a.txt"}`)},
		session.OutputItem{Item: item.Call("c2", "tidy", `{"task":"tidy up"}`)},
		session.Approval{CallID: "c1", Allowed: true, By: person.Name, Decided: session.DeciderPerson},
		session.CallStarted{CallID: "c1"},
		session.CallStarted{CallID: "c2", Session: "child"},
		session.CallOutput{CallID: "c1", Item: output},
	)
	child := logOf(
		session.InputItem{Item: item.User("tidy up")},
		session.OutputItem{Item: item.Call("k1", "run_command", `{"command":["go","test","./..."]}`)},
		session.CallStarted{CallID: "k1"},
		session.OutputItem{Item: item.Assistant("it is tidy")},
	)
	read := 0
	inner := func(id string) ([]session.Entry, error) {
		if read++; id != "child" {
			return nil, errors.New("no such session")
		}
		return child, nil
	}
	hide := func(text string) string { return strings.ReplaceAll(text, "secret123", "…") }
	for _, live := range []bool{true, false} {
		o := newOutline(hide, inner)
		for _, e := range whole {
			o.add("", e)
		}
		if live {
			for _, e := range child {
				o.nested(agent.SubagentEvent{Subagent: agent.Subagent{Session: "child"}, Event: agent.Recorded{Entry: e}})
			}
		}
		list := o.nodes()
		text := o.text(list[1].Key)
		if !live && !strings.Contains(text, "its log is being read") {
			t.Errorf("the subagent at first:\n%s", text)
		}
		o.reads.Wait()
		text = o.text(list[1].Key)
		if !strings.Contains(text, "> tidy up") || !strings.Contains(text, "it is tidy") || !strings.Contains(text, "-> run_command") {
			t.Errorf("live %v: the subagent:\n%s", live, text)
		}
		list = o.nodes()
		var rows []string
		for _, n := range list {
			rows = append(rows, strings.Repeat("  ", n.Depth)+n.Label)
		}
		want := "read_file a.txt, done, 2s|tidy tidy up, runs|  run_command go test ./..., runs"
		if got := strings.Join(rows, "|"); got != want || !list[1].Agent || list[0].Agent {
			t.Errorf("live %v: %s", live, got)
		}
		for n := range 5 {
			end := o.last(n)
			if from := len(list) - len(end); from < 0 || len(end) < min(n, len(list)) || !slices.Equal(end, list[from:]) {
				t.Errorf("live %v: the last %d are %v", live, n, end)
			}
		}
		text = o.text(list[0].Key)
		for _, want := range []string{"read_file", "a.txt", "allowed by the person at the terminal", "done after 2s", "the content\nof …"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		before := list[1].Version
		o.printed("c2", "a line\n")
		if list := o.nodes(); list[1].Version == before || !strings.Contains(o.text(list[1].Key), "a line") {
			t.Error("what it prints is not shown")
		}
	}
	if read != 1 {
		t.Errorf("the log was read %d times", read)
	}
}

// TestOutlineWaitsForNoStore proves that a store that is slow to give the log of a subagent holds
// nothing up, that the row changes when the log is there, and that what happens meanwhile follows it,
// once.
func TestOutlineWaitsForNoStore(t *testing.T) {
	child := logOf(session.InputItem{Item: item.User("tidy up")}, session.OutputItem{Item: item.Assistant("first")}, session.OutputItem{Item: item.Assistant("second")})
	come := make(chan struct{})
	o := newOutline(strings.TrimSpace, func(string) ([]session.Entry, error) {
		<-come
		return child[:2], nil
	})
	for _, e := range logOf(session.OutputItem{Item: item.Call("c", "tidy", "{}")}, session.CallStarted{CallID: "c", Session: "child"}) {
		o.add("", e)
	}
	key := o.nodes()[0].Key
	if text := o.text(key); !strings.Contains(text, "its log is being read") {
		t.Errorf("while the store is asked:\n%s", text)
	}
	for _, e := range child[1:] {
		o.nested(agent.SubagentEvent{Subagent: agent.Subagent{Session: "child"}, Event: agent.Recorded{Entry: e}})
	}
	before := o.nodes()[0].Version
	close(come)
	o.reads.Wait()
	if text := o.text(key); strings.Contains(text, "is being read") || strings.Count(text, "first") != 1 || strings.Index(text, "first") > strings.Index(text, "second") || o.nodes()[0].Version == before {
		t.Errorf("afterwards:\n%s", text)
	}
}
