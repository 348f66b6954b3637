// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// vector is a small log that shows one idea.
type vector struct {
	name   string
	bodies []session.Body
}

// vectors are the logs of docs/format/vectors.
func vectors() []vector {
	hi := session.InputItem{Item: item.User("Hi")}
	said := func(turn int, raw string) session.Body {
		return session.OutputItem{Turn: turn, Item: parse(raw)}
	}
	words := func(turn int, id, text string) session.Body {
		return said(turn, `{"type":"message","id":"`+id+`","role":"assistant","status":"completed","content":[{"type":"output_text","text":"`+text+`","annotations":[]}]}`)
	}
	thought := func(turn int, id string) session.Body {
		return said(turn, `{"type":"reasoning","id":"`+id+`","summary":[],"encrypted_content":"gAAA"}`)
	}
	call := func(turn int, id string) session.Body {
		return said(turn, `{"type":"function_call","id":"fc_`+id+`","call_id":"`+id+`","name":"read","arguments":"{\"path\":\"a.txt\"}","status":"completed"}`)
	}
	output := func(id, text string) session.Body {
		return session.CallOutput{CallID: id, Item: item.Must(&item.FunctionCallOutput{CallID: id, Output: item.Text(text)})}
	}
	run, end := session.RunStarted{}, func(turn int) session.Body { return session.TurnEnded{Turn: turn, Status: item.StatusCompleted} }
	began := func(turn int) session.Body { return session.TurnStarted{Turn: turn} }
	broke := func(turn int) session.Body {
		return session.TurnEnded{Turn: turn, Status: item.StatusFailed, Reason: "the connection was cut"}
	}
	stopped := session.Stopped{Why: "answered"}
	long := strings.Repeat("All work and no play. ", 8)
	return []vector{
		{"plain", []session.Body{run, hi, began(1), words(1, "msg_1", "Hello."), end(1), stopped}},
		{"tool_call", []session.Body{run, hi, began(1), thought(1, "rs_1"), call(1, "call_1"), call(1, "call_2"), end(1),
			session.CallStarted{CallID: "call_1"}, session.CallStarted{CallID: "call_2"}, output("call_2", "two"), hi, output("call_1", "one")}},
		{"open_call", []session.Body{run, hi, began(1), call(1, "call_1"), call(1, "call_2"), end(1), session.CallStarted{CallID: "call_1"}, output("call_2", "two")}},
		{"repeatable_call", []session.Body{run, hi, began(1), call(1, "call_1"), end(1), session.CallStarted{CallID: "call_1", Repeatable: true}}},
		{"broken_reply", []session.Body{run, hi, began(1), words(1, "msg_1", "Hello, I"), call(1, "call_1"), broke(1), hi}},
		{"crash_in_turn", []session.Body{run, hi, began(1), thought(1, "rs_1"), call(1, "call_1"), call(1, "call_2"), session.CallStarted{CallID: "call_1"}, run}},
		{"same_ids", []session.Body{run, hi, began(1), call(1, ""), end(1), output("", "one"), began(2), call(2, ""), call(2, strings.Repeat("long", 20)), end(2), output("", "two"), output(strings.Repeat("long", 20), "three")}},
		{"approvals", []session.Body{run, hi, began(1), call(1, "call_1"), call(1, "call_2"), end(1),
			session.ApprovalAsked{CallID: "call_1", Number: 1, Tool: "read", Arguments: `{"path":"a.txt"}`}, session.ApprovalAsked{CallID: "call_2", Number: 2, Tool: "read"},
			session.Stopped{Why: "approval_wanted"}, session.Approval{CallID: "call_1", Number: 1, Reason: "Not this file.", By: "ann"}, session.Approval{CallID: "call_2", Number: 2, Allowed: true, By: "ann"}}},
		{"nested", []session.Body{run, hi, began(1), call(1, "call_1"), end(1), session.CallStarted{CallID: "call_1", Session: "s/1-call_1"},
			session.SubagentUsage{CallID: "call_1", Session: "s/1-call_1", Turns: 2, Tokens: 40}, session.Paused{CallID: "call_1", Session: "s/1-call_1"}}},
		{"imported", []session.Body{session.InputItem{Item: item.System("Be brief.")}, hi, session.InputItem{Item: parse(`{"type":"reasoning","id":"rs_1","summary":[]}`)}, session.InputItem{Item: item.Assistant("Hello.")},
			session.InputItem{Item: item.Call("call_1", "read", "")}, session.InputItem{Item: item.User(" ")}, hi, session.InputItem{Item: item.Must(&item.FunctionCallOutput{CallID: "call_9", Output: item.Text("whose?")})}}},
		{"items_withdrawn", []session.Body{run, hi, began(1), thought(1, "rs_1"), call(1, "call_1"), end(1), output("call_1", "a secret"), began(2), words(2, "msg_1", "Hello."), end(2),
			session.ItemsWithdrawn{Seqs: []int64{7, 9}, Reason: "It holds a key.", By: "keys"}}},
		{"reasoning_dropped", []session.Body{run, hi, began(1), thought(1, "rs_1"), call(1, "call_1"), end(1), output("call_1", "one"), began(2), thought(2, "rs_2"), words(2, "msg_1", "Hello."), end(2),
			session.ReasoningDropped{Reason: "it was encrypted for another model"}}},
		{"quarantined", []session.Body{run, session.InputItem{Item: parse(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AAAA"}]}`)},
			began(1), call(1, "call_1"), end(1), output("call_1", "\x00"), session.Quarantined{Seq: 2, Reason: "Invalid image."}, session.Quarantined{Seq: 6, Reason: "Invalid text."}, session.Quarantined{Seq: 4, Member: "status", Reason: "Unknown member."}}},
		{"compacted", []session.Body{session.InputItem{Item: item.System("Be brief.")}, hi, began(1), call(1, "call_1"), end(1), output("call_1", "one"), began(2), words(2, "msg_1", "Hello."), end(2),
			session.InputItem{Item: item.User("And now?")}, session.Compacted{Through: 6, Kept: []int64{2}, By: session.BySummary, Items: []item.Item{item.User("[Summary: a file was read.]")}, Before: 80, After: 40}}},
		{"restored", []session.Body{hi, began(1), words(1, "msg_1", "Hello."), end(1), session.Compacted{Through: 3, By: session.ByDropping, Items: []item.Item{item.User("[Left out.]")}}, session.Restored{Seq: 5}}},
		{"collapsed", []session.Body{run, hi, began(1), call(1, "call_1"), end(1), output("call_1", long), began(2), call(2, "call_2"), end(2), output("call_2", long), session.Collapsed{Seqs: []int64{6}, By: 10}}},
		{"superseded", []session.Body{run, hi, began(1), words(1, "msg_1", "Hello, I"), broke(1), session.TurnStarted{Turn: 2, Continues: 4}, words(2, "msg_2", "Hello, I am here."), end(2), session.Superseded{Seqs: []int64{4}, By: 7}}},
		{"not_sent", []session.Body{session.Note{Item: item.User("a remark for people")}, hi, session.Noticed{Kind: session.NoticeUsageWrong, Text: "the numbers cannot be true"}, session.StopAsked{Why: "cancelled"}, session.Stopped{Why: "cancelled"}}},
		{"line_ends", []session.Body{session.InputItem{Item: parse("{\n  \"type\": \"message\",\n  \"role\": \"user\",\n  \"content\": \"caf\\u00e9\"\n}")}, session.StopAsked{Why: "cancelled", Detail: "\xff"}}},
	}
}

// entriesOf numbers bodies as a log.
func entriesOf(bodies []session.Body) (entries []session.Entry) {
	for i, b := range bodies {
		entries = append(entries, session.Entry{Seq: int64(i + 1), Time: time.Date(2026, 11, 23, 18, 0, i, 0, time.UTC), Body: b})
	}
	return entries
}

// exported is a session as it is exported, with the session of a subagent.
func exported(t *testing.T) string {
	t.Helper()
	var outer []session.Body
	for _, v := range vectors() {
		if v.name == "nested" {
			outer = v.bodies
		}
	}
	inner := []session.Body{session.RunStarted{}, session.InputItem{Item: item.User("Read it.")}}
	var out bytes.Buffer
	err := export.JSONLines(&out, export.Log{
		Info: session.Info{ID: "s", Name: "s"}, Entries: entriesOf(outer),
		Nested: func(string) ([]session.Entry, error) { return entriesOf(inner), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// pinned compares a file with what it should hold, or writes it.
func pinned(t *testing.T, file, want string) {
	t.Helper()
	file = filepath.Join(published, "vectors", file)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("%s: older logs must give the same: (-file +now):\n%s", file, diff)
	}
}

// The vectors of docs/format say what a log comes to, here and in the published
// reader. What they say never changes.
func TestFormatVectors(t *testing.T) {
	page := pageOf(t)
	var logs []string
	for _, v := range vectors() {
		entries := entriesOf(v.bodies)
		log := linesOf(t, entries)
		logs = append(logs, log)
		view, request := strings.Join(viewed(entries), "\n")+"\n", `{"input":[`+strings.Join(requested(t, entries), ",")+"]}\n"
		if view == "\n" {
			view = ""
		}
		pinned(t, v.name+".jsonl", log)
		pinned(t, v.name+".view.jsonl", view)
		pinned(t, v.name+".request.json", request)
		if !strings.Contains(page, "| `"+v.name+"` |") {
			t.Errorf("docs/format.md does not tell of the vector %s", v.name)
		}
	}
	whole := exported(t)
	pinned(t, "export.jsonl", whole)

	seen, asked := views(t, logs), requests(t, logs)
	for i, v := range vectors() {
		hold(t, i, v.name, "view", viewed(entriesOf(v.bodies)), seen[i])
		hold(t, i, v.name, "request", requested(t, entriesOf(v.bodies)), asked[i])
	}
	nested := strings.Count(reader(t, []string{strings.TrimSuffix(whole, "\n")}), "\n\n")
	if nested != 2 {
		t.Errorf("the reader finds %d sessions in the export, want 2", nested)
	}
}
