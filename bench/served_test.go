// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	oai "github.com/openai/openai-go/v3/responses"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/trust"
)

// servedTo returns OpenAI's client for Go at a server of agents: doors has tools of its own, asks
// before it uses one, and calls a tool of the client; plain only speaks, json answers in JSON, and
// slow does not end.
func servedTo(t *testing.T) openai.Client {
	t.Helper()
	dir := t.TempDir()
	b := &agents.Backend{Log: func(err error) { t.Log("logged:", err) }}
	for name, text := range map[string][2]string{
		"plain": {"<config model=\"rehearsal\"/>\n", ""},
		"json":  {"<config model=\"rehearsal:json.script\"/>\n", "again\nturn\n  say {\"n\": 4}\n"},
		"slow":  {"<config model=\"rehearsal:slow.script\"/>\n", "again\nturn\n  say Wait.\n  pause 10m\n"},
		"doors": {"<config model=\"rehearsal:doors.script\"/>\n<tool name=\"read_file\"><read id=\"here\" path=\"${prompt_dir}\"/></tool>\n<tool name=\"append_to_file\" approval=\"ask\"/>\n",
			"turn\n  call read_file {\"path\": \"note.txt\"}\n  call look {\"at\": \"door\"}\n  call append_to_file {\"path\": \"gone.txt\", \"content\": \"\"}\nturn\n  say Looked: {{output \"look\" 1}}. It rains: {{output \"read_file\" 1}}\n"},
	} {
		for file, content := range map[string]string{name + ".md": text[0], name + ".script": text[1], "note.txt": "Rain."} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b.Agents = append(b.Agents, agents.Agent{Name: name, Config: host.Config{File: filepath.Join(dir, name+".md"), Trust: trust.Everything, Sandbox: "full"}})
	}
	base, stop, err := (&server.Server{Backend: b}).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return openai.NewClient(option.WithAPIKey("none"), option.WithBaseURL(base), option.WithMaxRetries(0))
}

// says is a request with a text as its input.
func says(model, text string) oai.ResponseNewParams {
	return oai.ResponseNewParams{Model: model, Input: oai.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

// gives is a request with items as its input.
func gives(model string, items ...oai.ResponseInputItemUnionParam) oai.ResponseNewParams {
	return oai.ResponseNewParams{Model: model, Input: oai.ResponseNewParamsInputUnion{OfInputItemList: items}}
}

// OpenAI's client for Go, which is not changed for this server, uses agents: text, streams,
// tools of its own beside those of the server, approvals, images and files, structured output,
// responses that are continued by id and in a conversation, the background, cancel, and errors.
func TestAgentsServeOfficialClient(t *testing.T) {
	ctx, client := t.Context(), servedTo(t)
	created := func(t *testing.T, p oai.ResponseNewParams) *oai.Response {
		t.Helper()
		r, err := client.Responses.New(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	status := func(t *testing.T, err error, want int, param string) {
		t.Helper()
		var wrong *openai.Error
		if !errors.As(err, &wrong) || wrong.StatusCode != want || wrong.Param != param {
			t.Errorf("%v, want status %d about %q", err, want, param)
		}
	}
	t.Run("models", func(t *testing.T) {
		list, err := client.Models.List(ctx)
		if err != nil || len(list.Data) != 4 {
			t.Errorf("%v, %v", list, err)
		}
	})
	t.Run("text and a stream", func(t *testing.T) {
		whole := created(t, says("plain", "Hello."))
		stream := client.Responses.NewStreaming(ctx, says("plain", "Hello."))
		var text strings.Builder
		var n int64
		last := ""
		for ; stream.Next(); n++ {
			ev := stream.Current()
			if last = ev.Type; ev.SequenceNumber != n {
				t.Errorf("event %d has the number %d", n, ev.SequenceNumber)
			}
			if ev.Type == "response.output_text.delta" {
				text.WriteString(ev.Delta)
			}
		}
		if err := stream.Err(); err != nil || last != "response.completed" || text.String() != whole.OutputText() || !strings.Contains(text.String(), "Hello.") {
			t.Errorf("%v %s %q, %q", err, last, text.String(), whole.OutputText())
		}
		if read, err := client.Responses.Get(ctx, whole.ID, oai.ResponseGetParams{}); err != nil || read.OutputText() != whole.OutputText() || read.Usage.TotalTokens == 0 {
			t.Errorf("%v, %v", read, err)
		}
	})
	t.Run("tools and approvals", func(t *testing.T) {
		for _, approve := range []bool{true, false} {
			p := says("doors", "Go.")
			p.Tools = []oai.ToolUnionParam{oai.ToolParamOfFunction("look", map[string]any{"type": "object", "properties": map[string]any{"at": map[string]any{"type": "string"}}}, false)}
			first := created(t, p)
			if len(first.Output) != 3 || first.Output[0].Type != "mcp_call" || first.Output[1].Type != "function_call" || first.Output[2].Type != "mcp_approval_request" {
				t.Fatalf("%s", first.RawJSON())
			}
			output := oai.ResponseInputItemParamOfFunctionCallOutput("red")
			output.OfFunctionCallOutput.CallID = openai.String(first.Output[1].CallID)
			next := gives("doors", oai.ResponseInputItemParamOfMcpApprovalResponse(first.Output[2].ID, approve), output)
			next.Tools, next.PreviousResponseID = p.Tools, openai.String(first.ID)
			second := created(t, next)
			if call := second.Output[0]; call.Type != "mcp_call" || call.ApprovalRequestID != first.Output[2].ID || !strings.HasPrefix(second.OutputText(), "Looked: red. It rains: ") {
				t.Errorf("%s", second.RawJSON())
			}
		}
	})
	t.Run("an image and a file", func(t *testing.T) {
		const png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
		r := created(t, gives("plain", oai.ResponseInputItemParamOfInputMessage(oai.ResponseInputMessageContentListParam{
			oai.ResponseInputContentParamOfInputText("What is it?"),
			{OfInputImage: &oai.ResponseInputImageParam{Detail: "auto", ImageURL: openai.String(png)}},
			{OfInputFile: &oai.ResponseInputFileParam{Filename: openai.String("a.txt"), FileData: openai.String("data:text/plain;base64,SGVsbG8=")}},
		}, "user")))
		if !strings.Contains(r.OutputText(), "image/png") {
			t.Errorf("%s", r.OutputText())
		}
		items, err := client.Responses.InputItems.List(ctx, r.ID, oai.InputItemListParams{})
		if err != nil || len(items.Data) != 1 || !strings.Contains(items.Data[0].RawJSON(), png) {
			t.Errorf("%v, %v", items, err)
		}
	})
	t.Run("structured output", func(t *testing.T) {
		p := says("json", "Answer.")
		p.Text.Format.OfJSONSchema = &oai.ResponseFormatTextJSONSchemaConfigParam{Name: "answer", Strict: openai.Bool(true), Schema: map[string]any{
			"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}, "required": []string{"n"}, "additionalProperties": false,
		}}
		if r := created(t, p); r.OutputText() != `{"n": 4}` || r.Text.Format.Name != "answer" {
			t.Errorf("%s", r.RawJSON())
		}
	})
	t.Run("on by id and in a conversation", func(t *testing.T) {
		first := created(t, says("plain", "One."))
		p := says("plain", "Two.")
		p.PreviousResponseID = openai.String(first.ID)
		if r := created(t, p); r.PreviousResponseID != first.ID {
			t.Errorf("%s", r.RawJSON())
		}
		talk, err := client.Conversations.New(ctx, conversations.ConversationNewParams{})
		if err != nil {
			t.Fatal(err)
		}
		p = says("plain", "And now.")
		p.Conversation.OfConversationObject = &oai.ResponseConversationParam{ID: talk.ID}
		if r := created(t, p); r.Conversation.ID != talk.ID {
			t.Errorf("%s", r.RawJSON())
		}
		items, err := client.Conversations.Items.List(ctx, talk.ID, conversations.ItemListParams{})
		if err != nil || len(items.Data) != 2 {
			t.Errorf("%v, %v", items, err)
		}
		if err := client.Responses.Delete(ctx, first.ID); err != nil {
			t.Error(err)
		}
		_, err = client.Responses.Get(ctx, first.ID, oai.ResponseGetParams{})
		status(t, err, 404, "")
	})
	t.Run("background, taken up again", func(t *testing.T) {
		p := says("plain", "Later.")
		p.Background = openai.Bool(true)
		stream := client.Responses.NewStreaming(ctx, p)
		id, n := "", int64(0)
		for n < 3 && stream.Next() {
			ev := stream.Current()
			if n = ev.SequenceNumber; ev.Response.ID != "" {
				id = ev.Response.ID
			}
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
		stream = client.Responses.GetStreaming(ctx, id, oai.ResponseGetParams{StartingAfter: openai.Int(n)})
		last := ""
		for stream.Next() {
			ev := stream.Current()
			if n++; ev.SequenceNumber != n {
				t.Errorf("event %d has the number %d", n, ev.SequenceNumber)
			}
			last = ev.Type
		}
		if err := stream.Err(); err != nil || last != "response.completed" {
			t.Errorf("%v %s", err, last)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		p := says("slow", "Go.")
		p.Background = openai.Bool(true)
		r, err := client.Responses.Cancel(ctx, created(t, p).ID)
		if err != nil || r.Status != "cancelled" {
			t.Errorf("%v, %v", r, err)
		}
	})
	t.Run("errors", func(t *testing.T) {
		_, err := client.Responses.New(ctx, says("nobody", "x"))
		status(t, err, 404, "model")
		p := says("plain", "x")
		p.Prompt.ID = "pmpt_1"
		_, err = client.Responses.New(ctx, p)
		status(t, err, 400, "prompt")
		p = says("plain", "x")
		p.PreviousResponseID = openai.String("resp_none")
		_, err = client.Responses.New(ctx, p)
		status(t, err, 400, "previous_response_id")
	})
}
