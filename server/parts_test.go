// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/server"
)

// V1: content that no model could be sent is refused by its place, and the backend does not see it: the
// forms of Chat Completions in an input, parts in a message of another role, files and images without content.
// What the schema of the API allows is taken.
func TestPartsOfInput(t *testing.T) {
	asked := 0
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		asked++
		return w.Text("x")
	})}
	defer s.Close()
	const image = `"data:image/png;base64,iVBORw0KGgo="`
	for _, test := range []struct{ item, code, param string }{
		{`{"role":"user","content":[{"type":"text","text":"a"}]}`, "invalid_value", "content[0].type"},
		{`{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"image_url","image_url":{"url":"https://e.com/a.png"}}]}`, "invalid_value", "content[1].type"},
		{`{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}`, "invalid_value", "content[0].type"},
		{`{"role":"user","content":[{"type":"output_text","text":"a"}]}`, "invalid_value", "content[0].type"},
		{`{"role":"system","content":[{"type":"refusal","refusal":"a"}]}`, "invalid_value", "content[0].type"},
		{`{"role":"user","content":[{"text":"a"}]}`, "missing_required_parameter", "content[0].type"},
		{`{"role":"user","content":[{"type":5}]}`, "missing_required_parameter", "content[0].type"},
		{`{"role":"assistant","content":[{"type":"text","text":"a"}]}`, "invalid_value", "content[0].type"},
		{`{"role":"user"}`, "missing_required_parameter", "content"},
		{`{"role":"user","content":null}`, "invalid_type", "content"},
		{`{"type":"function_call_output","call_id":"c","output":[{"type":"text","text":"a"}]}`, "invalid_value", "output[0].type"},
		{`{"role":"user","content":[{"type":"input_file"}]}`, "missing_required_parameter", "content[0]"},
		{`{"role":"user","content":[{"type":"input_file","file_id":""}]}`, "missing_required_parameter", "content[0]"},
		{`{"role":"user","content":[{"type":"input_file","file_id":5}]}`, "invalid_type", "content[0].file_id"},
		{`{"role":"user","content":[{"type":"input_file","filename":"a","file_data":"!!!"}]}`, "invalid_base64", "content[0].file_data"},
		{`{"role":"user","content":[{"type":"input_file","filename":"a","file_data":"data:text/plain;base64,!!!"}]}`, "invalid_base64", "content[0].file_data"},
		{`{"role":"user","content":[{"type":"input_file","filename":"a","file_data":"data:text/plain;base64,"}]}`, "invalid_base64", "content[0].file_data"},
		{`{"role":"user","content":[{"type":"input_file","filename":"a","file_data":"data:text/plain,hi"}]}`, "invalid_base64", "content[0].file_data"},
		{`{"role":"user","content":[{"type":"input_file","file_url":"a.pdf"}]}`, "invalid_value", "content[0].file_url"},
		{`{"role":"user","content":[{"type":"input_image"}]}`, "missing_required_parameter", "content[0]"},
		{`{"role":"user","content":[{"type":"input_image","image_url":"","file_id":null}]}`, "missing_required_parameter", "content[0]"},
		{`{"role":"user","content":[{"type":"input_image","image_url":"x.png"}]}`, "invalid_value", "content[0].image_url"},
		{`{"role":"user","content":[{"type":"input_image","image_url":"iVBORw0KGgo="}]}`, "invalid_value", "content[0].image_url"},
		{`{"role":"user","content":[{"type":"input_image","image_url":5}]}`, "invalid_type", "content[0].image_url"},
		{`{"type":"function_call_output","call_id":"c","output":[{"type":"input_image"}]}`, "missing_required_parameter", "output[0]"},

		{`{"role":"user","content":[{"type":"input_text","txt":"a"}]}`, "missing_required_parameter", "content[0].text"},
		{`{"role":"user","content":[{"type":"input_text","text":""},{"type":"input_text"}]}`, "missing_required_parameter", "content[1].text"},
		{`{"type":"function_call_output","call_id":"c","outptu":"a"}`, "missing_required_parameter", "output"},
		{`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","txt":"a"}]}`, "missing_required_parameter", "output[0].text"},
		{`{"Role":"user","Content":"a"}`, "missing_required_parameter", "type"},
		{`{}`, "missing_required_parameter", "type"},

		{`{"role":"user","content":""}`, "", ""},
		{`{"role":"user","content":[]}`, "", ""},
		{`{"role":"user","content":[{"type":"input_text","text":""}]}`, "", ""},
		{`{"role":"assistant","content":[{"type":"input_text","text":"a"},{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"a"}]}`, "", ""},
		{`{"role":"assistant","id":"msg_1","content":[{"type":"text","text":"as a server said it"}]}`, "", ""},
		{`{"role":"user","content":[{"type":"input_file","filename":"a","file_data":"data:text/plain;base64,aGk="},{"type":"input_file","filename":"a","file_data":"aGk="},{"type":"input_file","file_data":"aGk","file_id":null},{"type":"input_file","file_url":"https://e.com/a.pdf"},{"type":"input_file","file_id":"file_1"}]}`, "", ""},
		{`{"role":"user","content":[{"type":"input_image","image_url":` + image + `,"detail":"low"},{"type":"input_image","image_url":"https://e.com/a.png"},{"type":"input_image","file_id":"file_1"},{"type":"input_image","image_url":{"url":"https://e.com/a.png"}}]}`, "", ""},
		{`{"role":"user","content":[{"type":"input_video","video_url":"https://e.com/a.mp4"}]}`, "", ""}, // for an upstream to judge
	} {
		before := asked
		body, at := `{"model":"m","input":[`+test.item+`]}`, "input[0]."
		if strings.Contains(test.item, `"call_id"`) {
			body, at = `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},`+test.item+`]}`, "input[1]."
		}
		status, text := call(s, http.MethodPost, "responses", body)
		var got struct {
			Error struct{ Code, Param string }
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v: %s", test.item, err, text)
		}
		switch {
		case test.code == "" && (status != http.StatusOK || asked != before+1):
			t.Errorf("%s is refused: %d %s", test.item, status, text)
		case test.code != "" && (status != http.StatusBadRequest || got.Error.Code != test.code || got.Error.Param != at+test.param || asked != before):
			t.Errorf("%s: %d %s", test.item, status, text)
		}
	}
}

// A text without anything in it is no input, unless it continues something.
func TestEmptyInput(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("x") })}
	defer s.Close()
	for _, body := range []string{`"input":""`, `"input":[]`, `"input":null`, `"instructions":"a"`} {
		status, text := call(s, http.MethodPost, "responses", `{"model":"m",`+body+`}`)
		if status != http.StatusBadRequest || !strings.Contains(text, `"param": "input"`) {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
}

// The same mistakes in Chat Completions are the client's, and are told as what they are.
func TestPartsOfMessages(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("x") })}
	defer s.Close()
	for messages, want := range map[string]string{
		`[]`:                             "'messages' with at least one message",
		`[{"role":"user","content":""}]`: "none of them says anything",
		`[{"role":"user"},{"role":"user","content":"a"}]`:                                                                         "Missing required parameter: 'messages[0].content'",
		`[{"role":"system","content":null},{"role":"user","content":"a"}]`:                                                        "Missing required parameter: 'messages[0].content'",
		`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x.png"}}]}]`:                                          "expected a URL with its scheme",
		`[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]`:                                                       "one of",
		`[{"role":"user","content":[{"type":"file","file":{}}]}]`:                                                                 "one of",
		`[{"role":"user","content":[{"type":"file","file":{"filename":"a","file_data":"!!!"}}]}]`:                                 "file_data",
		`[{"role":"user","content":"a"},{"role":"assistant","content":null,"refusal":"no"},{"role":"user","content":"b"}]`:        "",
		`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://e.com/a.png"}}]}]`: "",
	} {
		status, text := call(s, http.MethodPost, "chat/completions", `{"model":"m","messages":`+messages+`}`)
		if want == "" && status != http.StatusOK || want != "" && (status != http.StatusBadRequest || !strings.Contains(text, want) || !strings.Contains(text, `"param": "messages`)) {
			t.Errorf("%s: %d %s", messages, status, text)
		}
	}
}
