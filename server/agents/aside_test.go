// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/compliance"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/session"
)

// improvising serves an agent without a script.
func improvising(t *testing.T, change func(*agents.Backend)) *world {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "it.md", "<config model=\"rehearsal\"/>\n<system>Be brief.</system>\n")
	return reopened(t, dir, change)
}

// An agent passes what the Open Responses compliance suite checks, against that
// specification and the published schema. V1
func TestOpenResponses(t *testing.T) {
	compliance.Run(t, improvising(t, nil).base, "it")
}

// A model was created when its file was written.
func TestModelCreated(t *testing.T) {
	w := improvising(t, nil)
	list, err := w.b.Models(t.Context(), "it")
	file, failed := os.Stat(w.b.Agents[0].Config.File)
	if err != nil || failed != nil || len(list) != 1 || list[0].Created != file.ModTime().Unix() {
		t.Errorf("%+v, %v, %v", list, err, failed)
	}
}

// The tokens of a request are counted with the agent's instructions and what it continues,
// and nothing is left of the counting.
func TestCountTokens(t *testing.T) {
	w := improvising(t, nil)
	count := func(members string) int64 {
		t.Helper()
		status, body := w.send(http.MethodPost, "responses/input_tokens", `{"model":"it"`+members+`}`)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		w.spec.Check(t, "TokenCountsResource", []byte(body))
		n, err := api.ParseTokenCount([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return n.InputTokens
	}
	first := w.create(`{"model":"it","input":"Hello there."}`)
	alone := count(`,"input":"Hello there."`)
	if alone != first.Usage.InputTokens {
		t.Errorf("counted %d, and the response used %d", alone, first.Usage.InputTokens)
	}
	more := count(`,"input":"And now?","previous_response_id":"` + first.ID + `"`)
	if more <= alone || count(`,"previous_response_id":"`+first.ID+`"`) >= more {
		t.Errorf("%d tokens with the history, %d without", more, alone)
	}
	_, body := w.send(http.MethodPost, "conversations", `{"items":[{"type":"message","role":"user","content":"earlier"}]}`)
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n := count(fmt.Sprintf(`,"input":"Hello there.","conversation":%q`, talk.ID)); n <= alone {
			t.Errorf("%d tokens in a conversation, %d without", n, alone)
		}
		w.create(fmt.Sprintf(`{"model":"it","input":"x","conversation":%q}`, talk.ID))
	}
	w.refused(http.MethodPost, "responses/input_tokens", `{"model":"other","input":"x"}`, "does not exist")
	n := 0
	for _, err := range w.b.Store.List(t.Context(), session.Query{}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 2 {
		t.Errorf("%d sessions are left, want those of the response and the conversation", n)
	}
}

// A compaction holds the history with the calls of the agent, and a request can begin with it.
func TestCompact(t *testing.T) {
	w := serving(t, reader, "turn\n  call read_file {\"path\": \"note.txt\"}\nturn\n  say Read.\nround\nturn\n  say Again: {{output \"read_file\" 1}}, {{instructions}}\n", nil)
	write(t, w.dir, "note.txt", "Rain.")
	first := w.create(`{"model":"it","input":"What does it say?","instructions":"Hurry."}`)
	status, body := w.send(http.MethodPost, "responses/compact", `{"model":"it","previous_response_id":"`+first.ID+`"}`)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	w.spec.Check(t, "CompactResource", []byte(body))
	packed, err := api.ParseCompacted([]byte(body))
	if err != nil || len(packed.Output) != 1 || packed.Output[0].Type() != item.TypeCompaction {
		t.Fatalf("%v: %s", err, body)
	}
	r := w.create(`{"model":"it","input":[` + packed.Output[0].JSON() + `,{"role":"user","content":"Again."}]}`)
	if got := kinds(r); got != "message:Again: Rain., Be brief." {
		t.Error(got)
	}
	w.same(r)
	broken := strings.Replace(packed.Output[0].JSON(), `"antiphon:`, `"antiphon:A`, 1)
	w.refused(http.MethodPost, "responses", `{"model":"it","input":[`+broken+`,{"role":"user","content":"x"}]}`, "could not be verified")
	w.refused(http.MethodPost, "responses/compact", `{"model":"it"}`, "input")
	w.refused(http.MethodPost, "responses/compact", `{"model":"it","previous_response_id":"resp_none"}`, "not found")
}

// A client can limit the calls of the agent's tools in a response: further ones are not made.
func TestMaxToolCalls(t *testing.T) {
	w := serving(t, reader, "turn\n  call read_file {\"path\": \"note.txt\"}\nturn\n  call read_file {\"path\": \"note.txt\", \"line\": 1}\nturn\n  say Done.\n", nil)
	write(t, w.dir, "note.txt", "Rain.")
	r := w.create(`{"model":"it","input":"x","max_tool_calls":1}`)
	if got := kinds(r); got != "mcp_call:read_file | mcp_call:read_file | message:Done." {
		t.Fatal(got)
	}
	made, errA := item.As[item.MCPCall](r.Output[0])
	refused, errB := item.As[item.MCPCall](r.Output[1])
	if errA != nil || errB != nil || made.Output != "Rain." || refused.Error == nil || !strings.Contains(string(refused.Error.Content), "at most 1 tool call") {
		t.Errorf("%+v, %+v", made, refused)
	}
	if n := r.MaxToolCalls; n == nil || *n != 1 {
		t.Errorf("repeated as %v", n)
	}
	w.same(r)
}

// With truncation, a history that is too long is shortened, and without it the response fails.
func TestTruncation(t *testing.T) {
	long := strings.Repeat("word ", 400)
	for truncation, want := range map[string]string{"auto": item.StatusCompleted, "disabled": item.StatusFailed} {
		w := serving(t, "", "window 700\nagain\nturn\n  say "+strings.Repeat("long ", 60)+"\n", nil)
		first := w.create(`{"model":"it","input":"` + long + `"}`)
		if first.Status != item.StatusCompleted {
			t.Fatal(first.Error)
		}
		r := w.create(`{"model":"it","input":"` + long + `","previous_response_id":"` + first.ID + `","truncation":"` + truncation + `"}`)
		if r.Status != want || r.Truncation != truncation {
			t.Errorf("%s: %s, %+v, repeated as %s", truncation, r.Status, r.Error, r.Truncation)
		}
	}
}
