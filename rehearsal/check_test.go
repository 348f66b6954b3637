// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
)

// P1: a history in which a call and its output do not belong together is
// refused, and the message names the call.
func TestPairing(t *testing.T) {
	call, custom := item.Call("c1", "f", ""), item.Must(&item.CustomToolCall{CallID: "c2", Name: "g", Input: "x"})
	customOut := item.Must(&item.CustomToolCallOutput{CallID: "c2", Output: item.Text("ok")})
	user := item.User("x")
	list := func(items ...item.Item) []item.Item { return items }
	tests := []struct {
		name  string
		items []item.Item
		want  string // "": accepted
	}{
		{"paired", list(user, call, custom, customOut, textOutput("c1", "ok")), ""},
		{"no output", list(user, call), "No tool output found for function call c1."},
		{"no output for a custom call", list(user, custom, user), "No tool output found for custom tool call c2."},
		{"no call", list(user, textOutput("c9", "ok")), "No tool call found for function call output with call_id c9."},
		{"output first", list(user, textOutput("c1", "ok"), call), "No tool call found for function call output with call_id c1."},
		{"wrong kind", list(user, custom, textOutput("c2", "ok")), "No tool call found for function call output with call_id c2."},
		{"two outputs", list(user, call, textOutput("c1", "ok"), textOutput("c1", "ok")), "Invalid 'input[3].call_id': a second output for the call c1."},
		{"two calls", list(user, call, textOutput("c1", "ok"), call), "Invalid 'input[3].call_id': a second call has the call_id c1."},
		{"no id", list(user, item.Call("", "f", "")), "Missing required parameter: 'input[1].call_id'."},
		{"approval", list(user, raw(t, `{"type":"mcp_approval_request","id":"m1","name":"x","server_label":"s","arguments":"{}"}`)),
			"No tool output found for mcp approval request m1."},
		{"unknown types are fine", list(user, raw(t, `{"type":"tomorrow","call_id":"c7"}`), raw(t, `{"type":"web_search_call","id":"w1"}`)), ""},
	}
	url := start(t, &Server{})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req := request(nil, test.items...)
			if test.want == "" {
				create(t, url, req)
				return
			}
			for _, stream := range []bool{false, true} {
				e := refused(t, url, encode(t, req, stream))
				if e.Message != test.want || e.Type != "invalid_request_error" {
					t.Errorf("stream %v: %s %q, want %q", stream, e.Type, e.Message, test.want)
				}
			}
		})
	}
}

func raw(t *testing.T, s string) item.Item {
	t.Helper()
	it, err := item.ParseString(s)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// Requests that the real endpoint refuses too. I10 B4 T11 E6.
func TestRefusals(t *testing.T) {
	const user = `{"role":"user","content":"x"}`
	tests := []struct{ name, body, code, param, want string }{
		{"no JSON", `{"model":`, "", "", "invalid JSON at byte 9: unexpected end"},
		{"no object", `[]`, "invalid_type", "", "found a list, want an object"},
		{"no model", `{"input":"x"}`, "missing_required_parameter", "model", "'model'"},
		{"no input", `{"model":"m"}`, "missing_required_parameter", "input", "'input'"},
		{"empty input", `{"model":"m","input":[]}`, "missing_required_parameter", "input", "'input'"},
		{"input of texts", `{"model":"m","input":["x"]}`, "invalid_type", "input[0]", "found a string"},
		{"output of a number", `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":""},{"type":"function_call_output","call_id":"c","output":5}]}`,
			"invalid_type", "input[1].output", "found the number 5"},
		{"role", `{"model":"m","input":[{"role":"tool","content":"x"}]}`, "invalid_value", "input[0].role", "'tool'"},
		{"call name", `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"a b","arguments":""}]}`, "invalid_value", "input[0].name", `"a b"`},
		{"call id", `{"model":"m","input":[{"type":"function_call","call_id":"` + strings.Repeat("c", 65) + `","name":"f","arguments":""}]}`,
			"string_above_max_length", "input[0].call_id", "length 65"},
		{"reference", `{"model":"m","input":[{"id":"msg_1"}]}`, "", "input[0].id", "'msg_1'"},
		{"continuation", `{"model":"m","input":"x","previous_response_id":"resp_1"}`, "previous_response_not_found", "previous_response_id", "'resp_1'"},
		{"few tokens", `{"model":"m","input":"x","max_output_tokens":15}`, "integer_below_min_value", "max_output_tokens", "got 15"},
		{"choice without tools", `{"model":"m","input":"x","tool_choice":"required"}`, "", "tool_choice", "'tools'"},
		{"tool name", `{"model":"m","input":"x","tools":[{"type":"function","name":"a.b"}]}`, "invalid_value", "tools[0].name", `"a.b"`},
		{"two tools", `{"model":"m","input":"x","tools":[{"type":"function","name":"a"},{"type":"custom","name":"a"}]}`, "invalid_value", "tools[1].name", `"a"`},
		{"schema", `{"model":"m","input":"x","tools":[{"type":"function","name":"a","parameters":{"type":"string"}}]}`, "invalid_function_parameters", "tools[0].parameters", "'a'"},
		{"base64", `{"model":"m","input":[` + image("data:image/png;base64,iVBOR==x") + `]}`, "invalid_base64", "input[0].content[0].image_url", "base64"},
		{"media type", `{"model":"m","input":[` + user + `,` + image("data:image/jpeg;base64,iVBORw0KGgo=") + `]}`,
			"invalid_image_format", "input[1].content[0].image_url", "declared as image/jpeg, found image/png"},
		{"no image", `{"model":"m","input":[` + image("data:image/png;base64,aGVsbG8=") + `]}`, "invalid_image_format", "input[0].content[0].image_url", "text/plain"},
	}
	url := start(t, &Server{})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := refused(t, url, []byte(test.body))
			if e.Code != test.code || e.Param != test.param || !strings.Contains(e.Message, test.want) {
				t.Errorf("got %q %q %q, want %q %q %q", e.Code, e.Param, e.Message, test.code, test.param, test.want)
			}
		})
	}
}

func image(url string) string {
	return `{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"` + url + `"}]}`
}

func TestAccepted(t *testing.T) {
	tests := []struct{ name, body string }{
		{"text input", `{"model":"m","input":"x"}`},
		{"unknown members", `{"model":"m","input":"x","tomorrow":{"a":1,"a":2}}`},
		{"hosted tools", `{"model":"m","input":"x","tools":[{"type":"web_search"},{"type":"function","name":"a"},{"type":"function","name":"b","parameters":null}]}`},
		{"image by address", `{"model":"m","input":[` + image("https://example.com/a.png") + `]}`},
	}
	url := start(t, &Server{ReadOnly: func(string) bool { return true }})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if resp, body := post(t, url, []byte(test.body)); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", resp.Status, body)
			}
		})
	}
}

func TestWrongPlace(t *testing.T) {
	url := start(t, &Server{MaxBody: 100})
	tests := []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/embeddings", "{}", 404, "unknown_url"},
		{"GET", "/responses/resp_1/items", "", 404, "unknown_url"},
		{"GET", "/responses//input_items", "", 404, "unknown_url"},
		{"PUT", "/responses/resp_1", "", 405, "method_not_supported"},
		{"GET", "/chat/completions", "", 405, "method_not_supported"},
		{"GET", "/responses", "", 405, "method_not_supported"},
		{"POST", "/responses", strings.Repeat(" ", 101), 413, "request_too_large"},
	}
	for _, test := range tests {
		req, err := http.NewRequestWithContext(t.Context(), test.method, url+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		if err := resp.Write(&body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != test.status || !strings.Contains(body.String(), `"code": "`+test.code+`"`) {
			t.Errorf("%s %s: %s", test.method, test.path, body.String())
		}
	}
}

// The script's mistakes are refusals that nobody retries, with its line.
func TestScriptMistakes(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"no such call", "turn\n  say a\n    b {{output \"read_file\" 2}}\n", `s:3:9: say: no call 2 of read_file with an output was received; the request has 1`},
		{"no call at all", "turn\n  say {{output 4}}\n", `s:2:9: say: no call 4 with an output was received; the request has 3`},
		{"number 0", "turn\n  say {{output 0}}\n", `s:2:9: say: no call 0 with an output was received; the request has 3`},
		{"too far back", "turn\n  say {{output -4}}\n", `s:2:9: say: no call -4 with an output was received; the request has 3`},
		{"bad call", "turn\n  say {{output 1.5}}\n", `s:2:9: say: name a call by its tool and a number, such as "read_file" 1`},
		{"no failure", "turn\n  say {{error \"read_file\"}}\n", `s:2:9: say: the call of read_file did not fail; its output is "one two"`},
		{"no image", "turn\n  say {{(image 1).Size}}\n", `s:2:10: say: the output of read_file holds no image; it is "one two"`},
		{"no user image", "turn\n  say {{(user_image 1).Size}}\n", `s:2:10: say: no image 1 was received in a user message; the request has 0`},
		{"remote image", "turn\n  say {{(image 3).Size}}\n", `s:2:10: say: the image was not sent inline: "https://example.com/a.png" is not a base64 data URI`},
		{"no line", "turn\n  say {{output 1 | line 3}}\n", `s:2:20: say: the text has 2 lines, not line 3`},
		{"no part", "turn\n  say {{output 1 | line_with \"zz\"}}\n", `s:2:20: say: no line of the text holds "zz"`},
		{"no field", "turn\n  say {{(image 2).Width}}\n", `s:2:16: say: at <2>: can't evaluate field Width in type rehearsal.Image`},
		{"arguments", "turn\n  call f {\"a\": {{output 1}}}\n", `s:2:10: call f: unexpected character 'o', at byte 6 of "{\"a\": one two}"`},
		{"arguments list", "turn\n  call f {{json tools}}\n", `s:2:10: call f: the arguments are JSON but not an object, at byte 0 of "[\"read_file\",\"look\"]"`},
		{"a number to range over", "turn\n  say {{range 1000000000}}x{{end}}\n", "s:2:15: say: range needs a list, such as tools"},
		{"ranges in ranges", "turn\n  say " + strings.Repeat("{{range tools}}", 40) + strings.Repeat("{{end}}", 40) + "\n", "s:2:585: say: " + tooLong},
		{"a text that doubles", "turn\n  say {{$x := \"xxxxxxxx\"}}" + strings.Repeat("{{$x = print $x $x}}", 40) + "{{$x}}\n", "s:2:474: say: " + tooLong},
		{"a text that is quoted again", "turn\n  say {{$x := json 1.5}}" + strings.Repeat("{{$x = json (print $x `\"`)}}", 40) + "{{$x}}\n", "s:2:676: say: " + tooLong},
		{"a long text again and again", "turn\n  say {{$x := printf \"%900000d\" 1}}{{printf \"" + strings.Repeat("%[1]s", 99) + "\" $x}}\n", "s:2:38: say: " + tooLong},
		{"a width", "turn\n  say {{printf \"" + strings.Repeat("%999999d", 99) + "\" 1}}\n", "s:2:9: say: " + tooLong},
		{"a width of an argument", "turn\n  say {{printf \"%*d%*d\" 999999 1 999999 1}}\n", "s:2:9: say: " + tooLong},
		{"texts after each other", "turn\n  say {{$x := printf \"%900000d\" 1}}" + strings.Repeat("{{$x}}", 20) + "\n", "s:2:7: say: " + tooLong},
		{"nothing", "turn quiet\n  say {{if false}}x{{end}}\n  pause 1ms\n", `s:1:1: turn quiet: all its statements are empty`},
	}
	req := request([]string{"read_file", "look"}, item.User("x"),
		item.Call("c1", "read_file", ""), item.Call("c2", "look", ""), item.Call("c3", "look", ""),
		textOutput("c1", "one\ntwo"), outputOf(t, "c2", &item.InputImage{ImageURL: png("x")}),
		outputOf(t, "c3", &item.InputImage{ImageURL: "https://example.com/a.png"}), item.Assistant("so far"), item.User("y"))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			script, err := Parse("s", []byte("again\n"+test.script))
			if err != nil {
				t.Fatal(err)
			}
			e := refused(t, start(t, &Server{Script: script}), encode(t, req, true))
			if d := cmp.Diff(shift(test.want), e.Message); d != "" || e.Code != codeScript || e.Type != "invalid_request_error" {
				t.Errorf("%s %s (-want +got):\n%s", e.Type, e.Code, d)
			}
		})
	}
}

const tooLong = "the text is longer than 16 MiB, or takes too long to make"

// shift adds one to a line number: the scripts stand below a line of their own.
func shift(s string) string {
	for line, next := range map[string]string{"s:1:": "s:2:", "s:2:": "s:3:", "s:3:": "s:4:"} {
		if rest, ok := strings.CutPrefix(s, line); ok {
			return next + rest
		}
	}
	return s
}
