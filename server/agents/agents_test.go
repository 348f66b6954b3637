// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

const reader = `<tool name="read_file"><read id="here" path="${prompt_dir}"/></tool>` + "\n"

// The tools of an agent run here, and clients see them as MCP calls, streamed or not. A
// response is the same when it is read later. V1
func TestTools(t *testing.T) {
	w := serving(t, reader, `
turn
  reason Look first.
  say I look.
  call read_file {"path": "note.txt"}
  call read_file {"path": "missing.txt"}
turn
  say It says: {{output "read_file" 1}}
`, nil)
	write(t, w.dir, "note.txt", "Rain.")
	const want = "reasoning: | message:I look. | mcp_call:read_file | mcp_call:read_file | message:It says: Rain."
	made := w.create(`{"model":"it","input":"What does it say?","metadata":{"a":"b"}}`)
	if got := kinds(made); got != want || made.Status != item.StatusCompleted || made.Usage == nil || made.Usage.TotalTokens == 0 {
		t.Errorf("%s: %s, %+v", made.Status, got, made.Usage)
	}
	call, err := item.As[item.MCPCall](made.Output[2])
	if err != nil || call.ServerLabel != "it" || call.Output != "Rain." || call.Arguments != `{"path": "note.txt"}` || call.Error != nil {
		t.Errorf("%+v, %v", call, err)
	}
	if failed, err := item.As[item.MCPCall](made.Output[3]); err != nil || failed.Error == nil || failed.Status != item.StatusFailed {
		t.Errorf("%+v, %v", failed, err)
	}
	w.same(made)
	events, streamed := w.stream(`{"model":"it","input":"What does it say?","stream":true}`)
	if got := kinds(streamed); got != want {
		t.Error(got)
	}
	w.same(streamed)
	seen := map[api.EventType]int{}
	for _, ev := range events {
		seen[ev.Type]++
	}
	for _, typ := range []api.EventType{api.EventTextDelta, api.EventMCPInProgress, api.EventMCPArgumentsDelta, api.EventMCPArgumentsDone, api.EventMCPCompleted, api.EventMCPFailed} {
		if seen[typ] == 0 {
			t.Errorf("no %s", typ)
		}
	}
	if status, body := w.send(http.MethodGet, "responses/"+made.ID+"/input_items", ""); status != http.StatusOK || !strings.Contains(body, "What does it say?") || strings.Contains(body, "Be brief") {
		t.Errorf("%d %s", status, body)
	}
}

// A response can be continued any number of times: the first time in its session, then in
// forks. The item of a response can be named. F3
func TestContinue(t *testing.T) {
	w := serving(t, "", "turn\n  say A: {{question}}\nround\nturn\n  say B: {{question}}\nround\nturn\n  say C: {{question}}\n", nil)
	first := w.create(`{"model":"it","input":"one"}`)
	second := w.create(`{"model":"it","input":"two","previous_response_id":"` + first.ID + `"}`)
	third := w.create(`{"model":"it","input":"three","previous_response_id":"` + second.ID + `"}`)
	fork := w.create(`{"model":"it","input":"other","previous_response_id":"` + first.ID + `"}`)
	for r, want := range map[*api.Response]string{first: "message:A: one", second: "message:B: two", third: "message:C: three", fork: "message:B: other"} {
		if got := kinds(r); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		w.same(r)
	}
	inOne := func(a, b *api.Response) bool { return strings.Split(a.ID, "_")[1] == strings.Split(b.ID, "_")[1] }
	if !inOne(first, second) || !inOne(first, third) || inOne(first, fork) {
		t.Errorf("%s, %s, %s, %s", first.ID, second.ID, third.ID, fork.ID)
	}
	if _, body := w.send(http.MethodGet, "responses/"+third.ID+"/input_items?order=asc", ""); strings.Count(body, `"role"`) != 5 {
		t.Error(body)
	}
	named := w.create(`{"model":"it","input":[{"role":"user","content":"before"},{"type":"item_reference","id":"` + first.Output[0].ID() + `"},{"role":"user","content":"after"}]}`)
	if _, body := w.send(http.MethodGet, "responses/"+named.ID+"/input_items", ""); !strings.Contains(body, "A: one") {
		t.Error(body)
	}
	w.refused(http.MethodPost, "responses", `{"model":"it","input":"x","previous_response_id":"resp_unknown"}`, "not found")
	w.refused(http.MethodPost, "responses", `{"model":"other","input":"x"}`, "does not exist")
	for _, r := range []*api.Response{second, first, third} {
		if status, body := w.send(http.MethodDelete, "responses/"+r.ID, ""); status != http.StatusOK {
			t.Errorf("%d %s", status, body)
		}
		w.refused(http.MethodGet, "responses/"+r.ID, "", "not found")
	}
	left := 0
	for _, err := range w.b.Store.List(t.Context(), session.Query{}) {
		if left++; err != nil {
			t.Fatal(err)
		}
	}
	if left != 2 { // the fork, and the one with the named item
		t.Errorf("%d sessions are left", left)
	}
	w.same(fork)
}

const asking = `<tool name="open_door" command="echo opened" description="Opens the door." approval="ask"/>` + "\n"

const doors = `
turn
  call read_file {"path": "note.txt"}
  call look {"at": "door"}
  call open_door {}
turn
  say Looked: {{output "look" 1}}. Door: {{output "open_door" 1}}
`

const look = `"tools":[{"type":"function","name":"look","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}]`

// Requests that continue one response at the same time all go on from it, and none from
// another: one in its session and the others in forks. So does one for a session that another
// process writes to. F3
func TestContinueAtOnce(t *testing.T) {
	w := serving(t, "", "turn\n  say A\nround\nturn\n  say B: {{question}}\nround\nturn\n  say too late\n", nil)
	first := w.create(`{"model":"it","input":"one"}`)
	session := "api-" + strings.Split(first.ID, "_")[1]
	unlock, err := w.b.Store.Lock(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(question string) {
		r := w.create(fmt.Sprintf(`{"model":"it","input":%q,"previous_response_id":%q}`, question, first.ID))
		if got := kinds(r); got != "message:B: "+question {
			t.Error(got)
		}
		w.same(r)
	}
	ask("other")
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() { ask(fmt.Sprint("two ", i)) })
	}
	all.Wait()
}

// While another has the session, the answer to an approval is not taken into a fork, where the
// approved call would run once more.
func TestApproveAtOnce(t *testing.T) {
	w := serving(t, asking, "turn\n  call open_door {}\nturn\n  say Door: {{output \"open_door\" 1}}\n", nil)
	first := w.create(`{"model":"it","input":"Go."}`)
	unlock, err := w.b.Store.Lock(t.Context(), "api-"+strings.Split(first.ID, "_")[1])
	if err != nil {
		t.Fatal(err)
	}
	answer := fmt.Sprintf(`{"model":"it","previous_response_id":%q,"input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, first.ID, first.Output[0].ID())
	w.refused(http.MethodPost, "responses", answer, "Another process")
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if got := kinds(w.create(answer)); !strings.HasPrefix(got, "mcp_call:open_door | message:Door: ") {
		t.Error(got)
	}
}

// A call that waits is answered once, where it waits: the same answer again, another one, and one in a copy
// make no call. Requests without an answer still fork. J1
func TestApproveTwice(t *testing.T) {
	const door = "<tool name=\"append_to_file\"/>\n"
	const script = "turn\n  call append_to_file {\"path\":\"done.txt\",\"content\":\"once\\n\"}\nturn\n  say Done.\nagain\nturn\n  say Well.\n"
	for _, allow := range []bool{true, false} {
		w := serving(t, door, script, nil)
		first := w.create(`{"model":"it","input":"Go."}`)
		answer := func(to *api.Response, allow bool, more string) string {
			return fmt.Sprintf(`{"model":"it",%s"previous_response_id":%q,"input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":%v}]}`, more, to.ID, to.Output[0].ID(), allow)
		}
		if status, text := w.send(http.MethodPost, "responses", answer(first, true, `"store":false,`)); status != http.StatusBadRequest || !strings.Contains(text, `"param": "store"`) {
			t.Errorf("%d %s", status, text)
		}
		second := w.create(`{"model":"it","input":"Well?","previous_response_id":"` + first.ID + `"}`)
		if status, text := w.send(http.MethodPost, "responses", answer(first, true, "")); status != http.StatusConflict || !strings.Contains(text, "asked_again") || !strings.Contains(text, second.ID) {
			t.Errorf("%d %s", status, text)
		}
		third := w.create(answer(second, allow, ""))
		for _, again := range []bool{true, false} {
			status, text := w.send(http.MethodPost, "responses", answer(second, again, ""))
			if status != http.StatusConflict || !strings.Contains(text, "already_answered") || !strings.Contains(text, third.ID) || !strings.Contains(text, `"param": "input[0].approval_request_id"`) {
				t.Errorf("%d %s", status, text)
			}
		}
		w.refused(http.MethodPost, "responses", answer(second, true, `"store":false,`), "already_answered")
		content, err := os.ReadFile(filepath.Join(w.dir, "done.txt"))
		if (err == nil) != allow || allow && string(content) != "once\n" {
			t.Errorf("allowed %v: %q, %v", allow, content, err)
		}
		if fork := w.create(`{"model":"it","input":"Or so?","previous_response_id":"` + third.ID + `"}`); fork.Status != item.StatusCompleted {
			t.Errorf("%s", kinds(fork))
		}
		if fork := w.create(`{"model":"it","input":"Or else?","previous_response_id":"` + second.ID + `"}`); kinds(fork) != "mcp_approval_request:append_to_file" {
			t.Errorf("%s", kinds(fork))
		}
	}
}

// Tools of the client, of the agent, and a call that waits for an approval work in one
// turn, in the order of the calls. Only the client's answer lets the call run.
func TestBothKinds(t *testing.T) {
	for _, approve := range []bool{true, false} {
		w := serving(t, reader+asking, doors, nil)
		write(t, w.dir, "note.txt", "Rain.")
		first := w.create(`{"model":"it","input":"Go.",` + look + `}`)
		if got := kinds(first); got != "mcp_call:read_file | function_call:look | mcp_approval_request:open_door" {
			t.Fatal(got)
		}
		w.same(first)
		call, request := first.Output[1], first.Output[2]
		next := `{"model":"it",` + look + `,"previous_response_id":"` + first.ID + `","input":[`
		w.refused(http.MethodPost, "responses", next+`{"role":"user","content":"x"}]}`, "No tool output found for function call")
		answer := fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":%q,"approve":%v,"reason":"not now"}`, request.ID(), approve)
		output := fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"a red door"}`, call.CallID())
		second := w.create(next + answer + "," + output + "]}")
		got := kinds(second)
		if !strings.HasPrefix(got, "mcp_call:open_door | message:Looked: a red door. Door: ") || strings.Contains(got, "Door: opened") != approve || strings.Contains(got, "not now") == approve {
			t.Errorf("approve %v: %s", approve, got)
		}
		ran, err := item.As[item.MCPCall](second.Output[0])
		if err != nil || ran.ApprovalRequestID != request.ID() || (ran.Error == nil) != approve {
			t.Errorf("%+v, %v", ran, err)
		}
		w.same(second)
		if _, body := w.send(http.MethodGet, "responses/"+second.ID+"/input_items", ""); !strings.Contains(body, `"mcp_approval_response"`) || !strings.Contains(body, "a red door") {
			t.Error(body)
		}
		w.refused(http.MethodPost, "responses", `{"model":"it","previous_response_id":"`+second.ID+`","input":[`+answer+`]}`, request.ID())
	}
}

// A call that waits is asked about again until it is answered, also if the answer comes
// from elsewhere. An answer must come with what it continues.
func TestApprovalElsewhere(t *testing.T) {
	w := serving(t, asking, "turn\n  call open_door {}\nturn\n  say Door: {{output \"open_door\" 1}}\n", nil)
	first := w.create(`{"model":"it","input":"Go."}`)
	request := first.Output[0]
	again := w.create(`{"model":"it","input":"Well?","previous_response_id":"` + first.ID + `"}`)
	if got := kinds(again); got != "mcp_approval_request:open_door" {
		t.Fatal(got)
	}
	w.same(again)
	made := strings.Replace(request.JSON(), request.ID(), "mcpr_none", 1)
	stateless := fmt.Sprintf(`{"model":"it","input":[{"role":"user","content":"Go."},%s,{"type":"mcp_approval_response","approval_request_id":"mcpr_none","approve":true}]}`, made)
	w.refused(http.MethodPost, "responses", stateless, "no call waits")
	alone := fmt.Sprintf(`{"model":"it","input":[{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, request.ID())
	w.refused(http.MethodPost, "responses", alone, "Send previous_response_id with the response that asked.")
	s, err := session.Open(t.Context(), w.b.Store, "api-"+strings.Split(first.ID, "_")[1])
	if err != nil {
		t.Fatal(err)
	}
	pending, err := agent.PendingApprovals(t.Context(), s)
	if err != nil || len(pending) != 1 {
		t.Fatal(pending, err)
	}
	if err := agent.Decide(t.Context(), s, agent.Decision{CallID: pending[0].CallID, Allow: true, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	last := w.create(`{"model":"it","input":"Now?","previous_response_id":"` + again.ID + `"}`)
	if got := kinds(last); !strings.HasPrefix(got, "mcp_call:open_door | message:") {
		t.Error(got)
	}
	if ran, err := item.As[item.MCPCall](last.Output[0]); err != nil || ran.ApprovalRequestID != again.Output[0].ID() {
		t.Errorf("%+v, %v", ran, err)
	}
	w.same(last)
}

// The call of a subagent names the request that the client has seen last, also if somebody else answers it.
func TestSubagentApprovalElsewhere(t *testing.T) {
	w := serving(t, `<tool name="helper" agent="helper.md" local description="Helps."/>`+"\n", "turn\n  call helper {\"task\": \"Open.\"}\nturn\n  say It says: {{output \"helper\" 1}}\n", nil)
	write(t, w.dir, "helper.md", "<config model=\"rehearsal:helper.script\"/>\n"+asking)
	write(t, w.dir, "helper.script", "turn\n  call open_door {}\nturn\n  call open_door {\"again\": true}\nturn\n  say Opened.\n")
	last := w.create(`{"model":"it","input":"Go."}`)
	var want []string
	for range 2 {
		last = w.create(`{"model":"it","input":"Well?","previous_response_id":"` + last.ID + `"}`) // which asks again
		if got := kinds(last); !strings.HasSuffix(got, "mcp_approval_request:open_door") {
			t.Fatal(got)
		}
		want = append(want, last.Output[len(last.Output)-1].ID())
		s, err := session.Open(t.Context(), w.b.Store, "api-"+strings.Split(last.ID, "_")[1])
		if err != nil {
			t.Fatal(err)
		}
		pending, err := agent.PendingApprovals(t.Context(), s)
		if err != nil || len(pending) != 1 || pending[0].Session == s.ID() {
			t.Fatal(pending, err)
		}
		if err := agent.Decide(t.Context(), s, agent.Decision{Session: pending[0].Session, CallID: pending[0].CallID, Allow: true, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		last = w.create(`{"model":"it","input":"Now?","previous_response_id":"` + last.ID + `"}`)
	}
	var got []string
	for _, it := range last.Output {
		if c, err := item.As[item.MCPCall](it); err == nil && it.Type() == item.TypeMCPCall && c.Name == "open_door" {
			got = append(got, c.ApprovalRequestID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", kinds(last), got, want)
	}
	w.same(last)
}

// What somebody else said between two responses comes before what the client says with the second one.
func TestSaidBetween(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", nil)
	first := w.create(`{"model":"it","input":"Go."}`)
	for i, text := range []string{"more", "and more"} {
		d := session.Delivery{Delivered: session.Delivered{Key: fmt.Sprint(i), By: "ann", From: "a test"}, Bodies: []session.Body{session.InputItem{Item: item.User(text)}}}
		if _, err := w.b.Store.(session.Inbox).Deliver(t.Context(), "api-"+strings.Split(first.ID, "_")[1], d); err != nil {
			t.Fatal(err)
		}
	}
	second := w.create(`{"model":"it","input":"go on","instructions":"Be kind.","previous_response_id":"` + first.ID + `"}`)
	w.same(second)
	s, err := session.Open(t.Context(), w.b.Store, "api-"+strings.Split(second.ID, "_")[1])
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range s.Log() {
		if in, ok := e.Body.(session.InputItem); ok && in.Item.Role() == item.RoleUser {
			m, err := item.As[item.Message](in.Item)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, m.Content.Display())
		}
	}
	if got := strings.Join(said, ", "); got != "Go., more, and more, go on" {
		t.Error(got)
	}
	for _, err := range s.Deliveries(t.Context()) {
		t.Error("a delivery is left", err)
	}
}

// A conversation is a session of an agent.
func TestConversation(t *testing.T) {
	w := serving(t, "", "turn\n  say A: {{question}}\nround\nturn\n  say B: {{question}}\n", nil)
	_, body := w.send(http.MethodPost, "conversations", `{"metadata":{"x":"y"},"items":[{"type":"message","role":"user","content":"earlier"}]}`)
	w.spec.Check(t, "ConversationResource", []byte(body))
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	list := func() string {
		_, body := w.send(http.MethodGet, "conversations/"+talk.ID+"/items?order=asc", "")
		w.spec.Check(t, "ConversationItemList", []byte(body))
		return body
	}
	if got := list(); strings.Count(got, `"role"`) != 1 {
		t.Error(got)
	}
	for i, want := range []string{"message:A: one", "message:B: two"} {
		r := w.create(fmt.Sprintf(`{"model":"it","conversation":%q,"input":%q}`, talk.ID, []string{"one", "two"}[i]))
		if got := kinds(r); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		w.same(r)
	}
	if status, body := w.send(http.MethodPost, "conversations/"+talk.ID+"/items", `{"items":[{"type":"message","role":"user","content":"later"}]}`); status != http.StatusOK {
		t.Error(body)
	}
	if got := list(); strings.Count(got, `"role"`) != 6 || strings.Index(got, "earlier") > strings.Index(got, "A: one") || !strings.Contains(got, "later") {
		t.Error(got)
	}
	w.refused(http.MethodPost, "conversations/"+talk.ID+"/items", `{"items":[{"type":"function_call_output","call_id":"c","output":"x"}]}`, "only messages")
	if status, body := w.send(http.MethodPost, "conversations/"+talk.ID, `{"metadata":{"x":"z"}}`); status != http.StatusOK || !strings.Contains(body, `"z"`) {
		t.Error(body)
	}
	if status, body := w.send(http.MethodDelete, "conversations/"+talk.ID, ""); status != http.StatusOK {
		t.Error(body)
	}
	w.refused(http.MethodGet, "conversations/"+talk.ID, "", "not found")
	for info, err := range w.b.Store.List(t.Context(), session.Query{Archived: true}) {
		t.Errorf("left: %+v, %v", info, err)
	}
}

// The client's instructions follow the agent's, and hold for their request alone.
func TestInstructions(t *testing.T) {
	w := serving(t, "", "turn\n  say A\nround\nturn\n  say B\nround\nturn\n  say C\n", nil)
	first := w.create(`{"model":"it","input":"one","instructions":"Speak like a pirate."}`)
	second := w.create(`{"model":"it","input":"two","instructions":"Speak like a pirate.","previous_response_id":"` + first.ID + `"}`)
	third := w.create(`{"model":"it","input":"three","previous_response_id":"` + second.ID + `"}`)
	s, err := session.Open(t.Context(), w.b.Store, "api-"+strings.Split(third.ID, "_")[1])
	if err != nil {
		t.Fatal(err)
	}
	at := func(seq int64) string {
		var v session.View
		for e := range s.Entries() {
			if e.Seq > seq {
				break
			}
			v.Apply(e)
		}
		var all strings.Builder
		for _, it := range v.Items().All() {
			all.WriteString(it.JSON())
		}
		return all.String()
	}
	var ends []int64
	for e := range s.Entries() {
		if _, ok := e.Body.(session.TurnStarted); ok {
			ends = append(ends, e.Seq)
		}
	}
	if len(ends) != 3 {
		t.Fatal(ends)
	}
	for i, want := range []int{1, 1, 0} {
		got := at(ends[i])
		if strings.Count(got, "pirate") != want || want > 0 && strings.Index(got, "Be brief") > strings.Index(got, "pirate") {
			t.Errorf("turn %d: %s", i, got)
		}
	}
	if _, body := w.send(http.MethodGet, "responses/"+third.ID+"/input_items", ""); strings.Contains(body, "pirate") {
		t.Error(body)
	}
}

// What a request says about the answers of the model goes to the model. V1
func TestPassedOn(t *testing.T) {
	upstream := agenttest.NewServer(t)
	upstream.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("Yes.")) })
	w := serving(t, "", "", func(b *agents.Backend) {
		b.Agents[0].Config.Endpoint.BaseURL, b.Agents[0].Config.Endpoint.Model = upstream.URL, "m"
	})
	write(t, w.dir, "it.md", reader+"<system>Be brief.</system>\n")
	const own = `"tools":[{"type":"mcp","server_label":"it","require_approval":"never"}],`
	for i, test := range []struct{ sent, want string }{
		{own + `"tool_choice":"none"`, `"tool_choice":"none"`},
		{own + `"tool_choice":"required"`, `"tool_choice":"required"`},
		{own + `"tool_choice":{"type":"mcp","server_label":"it"}`, `"tool_choice":"required"`},
		{own + `"tool_choice":{"type":"mcp","server_label":"it","name":"read_file"}`, `"tool_choice":{"type":"function","name":"read_file"}`},
		{own + `"tool_choice":{"type":"function","name":"read_file"}`, `"tool_choice":{"type":"function","name":"read_file"}`},
		{`"tools":[],"tool_choice":"none"`, `"tool_choice":"auto"`}, // the client speaks of its own tools
		{`"prompt_cache_options":{"mode":"explicit","ttl":"30m"}`, `"prompt_cache_options":{"mode":"explicit","ttl":"30m"}`},
		{`"presence_penalty":0,"frequency_penalty":0.0,"stream_options":{"include_obfuscation":false},"prompt":null,"unknown":null`, `"model":"m"`},
	} {
		w.create(`{"model":"it","input":"x",` + test.sent + `}`)
		if got := upstream.Requests(); len(got) != i+1 || !strings.Contains(string(got[i].Body), test.want) {
			t.Errorf("%s: %s", test.sent, got[len(got)-1].Body)
		}
	}
}

// What an agent does not do is refused by name. V1
func TestRefused(t *testing.T) {
	w := serving(t, reader, "turn\n  say A\n", nil)
	for member, message := range map[string]string{
		`"max_tool_calls":0`:                                                   "max_tool_calls",
		`"truncation":"some"`:                                                  "truncation",
		`"prompt":{"id":"pmpt_1"}`:                                             "prompt",
		`"tools":[{"type":"web_search"}]`:                                      "web_search",
		`"tools":[{"type":"mcp","server_label":"other"}]`:                      "server_label 'it'",
		`"tools":[{"type":"mcp","server_label":"it","server_url":"http://x"}]`: "no server_url",
		`"tools":[{"type":"function","name":"read_file"}]`:                     "the agent has a tool called 'read_file' itself",
		`"presence_penalty":0.5`:                                               "'presence_penalty' is not supported by agents",
		`"frequency_penalty":0.5`:                                              "'frequency_penalty' is not supported by agents",
		`"stream_options":{"include_obfuscation":true}`:                        "'stream_options.include_obfuscation' is not supported by agents",
		`"stream_options":{"include_usage":true}`:                              "Unknown parameter: 'stream_options.include_usage'",
		`"unknown":5`: "Unknown parameter: 'unknown'",
		`"tools":[{"type":"mcp","server_label":"it"}],"tool_choice":"always"`:                          "'tool_choice'",
		`"tools":[{"type":"mcp","server_label":"it"}],"tool_choice":{"type":"image_generation"}`:       "and not 'image_generation'",
		`"tools":[{"type":"mcp","server_label":"it"}],"tool_choice":{"type":"function","name":"f"}`:    "'tool_choice.name'",
		`"tools":[{"type":"mcp","server_label":"it"}],"tool_choice":{"type":"mcp","server_label":"x"}`: "'tool_choice.server_label'",
		`"previous_response_id":"resp_1","conversation":"c"`:                                           "only providing one of",
		`"conversation":"conv_1"`:                                              "not found",
		`"tools":[{"type":"function","name":"bad name"}]`:                      "bad name",
		`"input":[{"type":"function_call_output","call_id":"c","output":"x"}]`: "No tool call found",
		`"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"mcp","server_label":"x","server_url":"https://mcp.example"}]}]`:                                                        "not tools that the endpoint",
		`"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"web_search"}],"tools":[]}]`:                                                                                            "tools",
		`"input":[{"type":"tool_search_call","call_id":"c","execution":"client","arguments":{}},{"type":"tool_search_output","call_id":"c","execution":"client","tools":[{"type":"code_interpreter"}]}]`: "not tools that the endpoint",
	} {
		input := `"input":"x",`
		if strings.HasPrefix(member, `"input"`) {
			input = ""
		}
		w.refused(http.MethodPost, "responses", `{"model":"it",`+input+member+`}`, message)
	}
	for _, err := range w.b.Store.List(t.Context(), session.Query{}) {
		t.Error("a refused request left a session", err)
	}
}

// A response that is not stored is nowhere when it has ended, and Chat Completions work.
func TestNotStored(t *testing.T) {
	w := serving(t, reader, "turn\n  call read_file {\"path\": \"note.txt\"}\nturn\n  say It says: {{output \"read_file\" 1}}\n", nil)
	write(t, w.dir, "note.txt", "Rain.")
	r := w.create(`{"model":"it","input":"x","store":false}`)
	if got := kinds(r); got != "mcp_call:read_file | message:It says: Rain." {
		t.Error(got)
	}
	w.refused(http.MethodGet, "responses/"+r.ID, "", "not found")
	w.refused(http.MethodPost, "responses", `{"model":"it","input":"x","previous_response_id":"`+r.ID+`"}`, "not found")
	// A client that keeps the history itself sends the agent's calls back.
	again := w.create(`{"model":"it","store":false,"input":[{"role":"user","content":"x"},` + r.Output[0].JSON() + "," + r.Output[1].JSON() + `,{"role":"user","content":"y"}]}`)
	if again.Status != item.StatusCompleted {
		t.Error(kinds(again))
	}
	status, body := w.send(http.MethodPost, "chat/completions", `{"model":"it","messages":[{"role":"user","content":"x"}]}`)
	if status != http.StatusOK || !strings.Contains(body, "It says: Rain.") {
		t.Errorf("%d %s", status, body)
	}
	w.spec.Check(t, "CreateChatCompletionResponse", []byte(body))
	for _, err := range w.b.Store.List(t.Context(), session.Query{}) {
		t.Error("a session is stored", err)
	}
}

// The file of an agent that changes is not run before somebody agrees to the change. K6
func TestChanged(t *testing.T) {
	w := serving(t, "", "turn\n  say A\n", func(b *agents.Backend) { b.Agents[0].Config.Trust = nil })
	if r := w.create(`{"model":"it","input":"x"}`); kinds(r) != "message:A" {
		t.Error(kinds(r))
	}
	write(t, w.dir, "it.md", "<config model=\"rehearsal:it.script\"/>\n<tool name=\"wipe\" command=\"true\" approval=\"allow\" description=\"x\"/>\n")
	w.refused(http.MethodPost, "responses", `{"model":"it","input":"x"}`, "server_error")
	for info, err := range w.b.Store.List(t.Context(), session.Query{}) {
		if err != nil || info.Entries == 0 {
			t.Errorf("the refused request left %+v, %v", info, err)
		}
	}
}

// The calls that a subagent made are shown behind the call that began it, with the names of
// both, and a response that is read again is the same.
func TestSubagentIsVisible(t *testing.T) {
	w := serving(t, reader+`<tool name="helper" agent="helper.md" local description="Helps."/>`+"\n",
		"turn\n  call read_file {\"path\": \"note.txt\"}\nturn\n  call helper {\"task\": \"Look.\"}\nturn\n  say It says: {{output \"helper\" 1 | lines}}\n", nil)
	write(t, w.dir, "note.txt", "Rain.")
	write(t, w.dir, "helper.md", "<config model=\"rehearsal:helper.script\"/>\n"+reader)
	write(t, w.dir, "helper.script", "turn\n  say I look.\n  call read_file {\"path\": \"note.txt\"}\n  call read_file {\"path\": \"none.txt\"}\nturn\n  say Seen.\n")
	for _, stream := range []bool{false, true} {
		var r *api.Response
		if stream {
			_, r = w.stream(`{"model":"it","input":"Go.","stream":true}`)
		} else {
			r = w.create(`{"model":"it","input":"Go."}`)
		}
		var list []string
		for _, it := range r.Output {
			if call, err := item.As[item.MCPCall](it); err == nil && it.Type() == item.TypeMCPCall {
				list = append(list, call.ServerLabel+" "+call.Name+" "+call.Status)
			}
		}
		if got := strings.Join(list, ", "); got != "it read_file completed, it helper completed, it/helper read_file completed, it/helper read_file failed" {
			t.Errorf("%s: %s", got, kinds(r))
		}
		w.same(r)
	}
}

// addingStore adds a message to a conversation when the session of its first response was made.
type addingStore struct {
	store.Store
	add func(talk string)
}

func (s *addingStore) Create(ctx context.Context, info session.Info, first ...session.Entry) error {
	err := s.Store.Create(ctx, info, first...)
	if name, ok := strings.CutPrefix(info.ID, "api-"); ok && !strings.HasPrefix(name, "conv-") {
		s.add(name)
	}
	return err
}

// What is added to a conversation while its first response begins is refused, or is in the
// conversation and sent to the model at the next request. The agent keeps its instructions, and no
// question leaves the list.
func TestAddToBeginningConversation(t *testing.T) {
	upstream := agenttest.NewServer(t)
	upstream.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("Yes.")) })
	adding := &addingStore{}
	w := serving(t, "", "", func(b *agents.Backend) {
		b.Agents[0].Config.Endpoint.BaseURL, b.Agents[0].Config.Endpoint.Model = upstream.URL, "m"
		adding.Store, b.Store = b.Store, adding
	})
	_, body := w.send(http.MethodPost, "conversations", `{"items":[{"type":"message","role":"user","content":"early"}]}`)
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	added := make(chan int, 1)
	add := func() int {
		status, _ := w.send(http.MethodPost, "conversations/"+talk.ID+"/items", `{"items":[{"type":"message","role":"user","content":"ADDED"}]}`)
		return status
	}
	adding.add = func(string) {
		began := make(chan bool)
		go func() { close(began); added <- add() }()
		<-began
		select { // it waits, or has been added too early
		case status := <-added:
			added <- status
		case <-time.After(200 * time.Millisecond):
		}
	}
	for _, question := range []string{"first", "second"} {
		w.create(fmt.Sprintf(`{"model":"it","conversation":%q,"input":%q}`, talk.ID, question))
		if question == "first" {
			if status := <-added; status != http.StatusOK {
				t.Errorf("status %d", status)
			}
		}
	}
	sent := upstream.Requests()
	last := string(sent[len(sent)-1].Body)
	_, list := w.send(http.MethodGet, "conversations/"+talk.ID+"/items?order=asc", "")
	for _, text := range []string{"early", "first", "ADDED", "second"} {
		if !strings.Contains(last, text) || !strings.Contains(list, text) {
			t.Errorf("%s is missing: the model read %s, and the list is %s", text, last, list)
		}
	}
	if !strings.Contains(last, "Be brief.") {
		t.Errorf("no instructions: %s", last)
	}
}

// A client that has the last event of a stored stream, and asks for what follows, gets an empty stream; a number that no
// event has is an error. J8
func TestNothingFollows(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", nil)
	events, r := w.stream(`{"model":"it","input":"x","background":true,"stream":true}`)
	last := events[len(events)-1].SequenceNumber
	after := func(n int64) (int, string) {
		return w.send(http.MethodGet, fmt.Sprintf("responses/%s?stream=true&starting_after=%d", r.ID, n), "")
	}
	if status, body := after(last); status != http.StatusOK || body != "" {
		t.Errorf("%d %q", status, body)
	}
	if status, body := after(last - 1); status != http.StatusOK || strings.Count(body, "event: ") != 1 {
		t.Errorf("%d %q", status, body)
	}
	if status, body := after(last + 1); status != http.StatusBadRequest || !strings.Contains(body, fmt.Sprint("no event ", last+1)) {
		t.Errorf("%d %q", status, body)
	}
}

// An item of a conversation is found by its id, however it came into it: given at its creation, added, or said to an
// agent; what an agent said is found everywhere.
func TestReferencesInConversation(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", nil)
	_, body := w.send(http.MethodPost, "conversations", `{"items":[{"role":"user","content":"at first"}]}`)
	talk, err := api.ParseConversation([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	w.create(`{"model":"it","input":"in a request","conversation":"` + talk.ID + `"}`)
	if status, body := w.send(http.MethodPost, "conversations/"+talk.ID+"/items", `{"items":[{"role":"user","content":"added"}]}`); status != http.StatusOK {
		t.Fatal(body)
	}
	_, body = w.send(http.MethodGet, "conversations/"+talk.ID+"/items?order=asc", "")
	items, _, _ := strings.Cut(body, `"first_id"`)
	ids := regexp.MustCompile(`"id":"(msg_[^"]+)"`).FindAllStringSubmatch(items, -1)
	if len(ids) != 4 {
		t.Fatal(body)
	}
	for _, id := range ids {
		r := w.create(`{"model":"it","conversation":"` + talk.ID + `","input":[{"type":"item_reference","id":"` + id[1] + `"},{"role":"user","content":"again"}]}`)
		if r.Status != item.StatusCompleted {
			t.Errorf("%s: %s", id[1], r.Status)
		}
	}
	w.refused(http.MethodPost, "responses", `{"model":"it","conversation":"`+talk.ID+`","input":[{"type":"item_reference","id":"msg_none"}]}`, "not found")
}

// An item of a type that the API does not have would be lost, such as a message whose type is misspelled.
func TestStrangeItem(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", nil)
	w.refused(http.MethodPost, "responses", `{"model":"it","input":[{"role":"user","content":"a"},{"type":"massage","role":"user","content":"b"}]}`, "input[1].type")
}

// Instructions that are empty are none.
func TestEmptyInstructions(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Yes.\n", nil)
	if r := w.create(`{"model":"it","input":"x","instructions":""}`); r.Text() != "Yes." {
		t.Errorf("%s %q", r.Status, r.Text())
	}
}
