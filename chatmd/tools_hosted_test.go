// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// A tool that the endpoint runs is declared by its type, with its options as attributes
// and as JSON; a type that nobody knows passes. G1 M4
func TestHostedTools(t *testing.T) {
	for src, want := range map[string]string{
		`<tool type="web_search"/>`: `{"type":"web_search"}`,
		`<tool type="web_search" search_context_size="low" external_web_access="false">{"filters": {"allowed_domains": ["go.dev"]}}</tool>`: `{"type":"web_search","external_web_access":false,"filters":{"allowed_domains":["go.dev"]},"search_context_size":"low"}`,
		`<tool type="web_search_2025_08_26" search_context_size="high"/>`:                                                                   `{"type":"web_search_2025_08_26","search_context_size":"high"}`,
		`<tool type="file_search" vector_store_ids="vs_1, vs_2" max_num_results="5"/>`:                                                      `{"type":"file_search","vector_store_ids":["vs_1","vs_2"],"max_num_results":5}`,
		`<tool type="code_interpreter"/>`:                                                                     `{"type":"code_interpreter","container":{"type":"auto"}}`,
		`<tool type="code_interpreter" container="cntr_1"/>`:                                                  `{"type":"code_interpreter","container":"cntr_1"}`,
		`<tool type="image_generation" size="1024x1024"></tool>`:                                              `{"type":"image_generation","size":"1024x1024"}`,
		`<tool type="tool_search">{"execution":"server"}</tool>`:                                              `{"type":"tool_search","execution":"server"}`,
		`<tool type="programmatic_tool_calling"/>`:                                                            `{"type":"programmatic_tool_calling"}`,
		`<tool type="mind_reading">{"depth": [1, {"a": 2}]}</tool>`:                                           `{"type":"mind_reading","depth": [1, {"a": 2}]}`,
		`<tool type="mcp" server_label="maps" server_url="https://maps.example/mcp" allowed_tools="search"/>`: `{"type":"mcp","allowed_tools":["search"],"server_label":"maps","server_url":"https://maps.example/mcp"}`,
		`<tool type="mcp" server_label="m" server_url="https://x" server_description="[beta] the docs"/>`:     `{"type":"mcp","server_label":"m","server_url":"https://x","server_description":"[beta] the docs"}`,
		`<tool type="mcp" server_label="m" server_url="https://x" server_description='["a"]'/>`:               `{"type":"mcp","server_label":"m","server_url":"https://x","server_description":"[\"a\"]"}`,
		`<tool type="image_generation" model="{next}" quality="[high"/>`:                                      `{"type":"image_generation","model":"{next}","quality":"[high"}`,
		`<tool type="file_search" vector_store_ids="[vs_1], {vs_2}"/>`:                                        `{"type":"file_search","vector_store_ids":["[vs_1]","{vs_2}"]}`,
	} {
		f, err := Parse("a.md", []byte(src))
		if err != nil || len(f.Tools) != 1 || f.Tools[0].Hosted == nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		got, err := (&api.Request{Tools: []item.Tool{f.Tools[0].Hosted}}).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(canonical(t, `{"tools":[`+want+`]}`), canonical(t, string(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
		again, err := f.Format()
		if err != nil {
			t.Errorf("%s: %v", src, err)
		}
		if g, err := Parse("a.md", []byte(again)); err != nil || !reflect.DeepEqual(f.Tools[0].Hosted, g.Tools[0].Hosted) {
			t.Errorf("%s became %s: %v", src, again, err)
		}
	}
	for src, want := range map[string]string{
		`<tool type="web_search" search_context_sice="low"/>`:                                          `1:25: <tool>: a tool of type web_search has no attribute search_context_sice: search_context_sice="low" (did you mean search_context_size?)`,
		`<tool type="web_search" search_context_size="low">{"search_context_size":"low"}</tool>`:       `1:25: <tool>: search_context_size is given twice: search_context_size="low" (as an attribute, or in the JSON)`,
		`<tool type="web_search">{"a":</tool>`:                                                         `does not hold a JSON object`,
		`<tool type="web_search">[]</tool>`:                                                            `does not hold a JSON object`,
		`<tool type="web_search">{"type":"mcp"}</tool>`:                                                `the JSON has a type, too`,
		`<tool type="web_search" approval="ask"/>`:                                                     `the endpoint runs this tool without asking`,
		`<tool type="file_search"/>`:                                                                   `it has no vector_store_ids: <tool type="file_search"/> (such as vector_store_ids="vs_123")`,
		`<tool type="file_search" vector_store_ids="v" max_num_results="x"/>`:                          `max_num_results is not a number: "x"`,
		`<tool type="mcp" server_label="m"/>`:                                                          `it has no server_url, connector_id or tunnel_id: <tool type="mcp" server_label="m"/> (such as server_url="https://maps.example/mcp"; to run a server yourself, write mcp_server)`,
		`<tool type="mcp" server_url="https://x"/>`:                                                    `it has no server_label`,
		`<tool type="mcp" server_label="m" server_url="https://x">{"authorization":"hunter2"}</tool>`:  `authorization must not be in a file`,
		`<tool type="mcp" server_label="m" server_url="https://x">{"require_approval":"never"}</tool>`: `would then call the server without asking you`,
		`<tool type="mcp" authorization="hunter2"/>`:                                                   `authorization must not be in a file`,
		`<tool type="mcp" server_label="maps.evil" server_url="https://x"/>`:                           `its server_label may have only letters`,
		`<tool type="mcp" server_label="*" server_url="https://x"/>`:                                   `its server_label may have only letters`,
		`<tool type="mcp" Authorization="hunter2"/>`:                                                   `authorization must not be in a file`,
		`<tool type="future">{"tools":[{"AUTHORIZATION":"hunter2"}]}</tool>`:                           `authorization must not be in a file`,
		`<tool type="web_search">{"a":1,"a":2}</tool>`:                                                 `each member once`,
		`<tool type="shell"/>`:                                                                         `<tool type="shell"> is not run by the endpoint: <tool type="shell"/> (write <tool name="shell"/>)`,
		`<tool type="computer"/>`:                                                                      `a Go program can operate a computer`,
		`<tool type=""/>`:                                                                              `1:7: <tool>: type is empty: type="" (such as type="web_search"; the types are code_interpreter, file_search, image_generation, mcp, programmatic_tool_calling, tool_search, web_search, web_search_preview)`,
		`<tool type/>`:                                                                                 `<tool>: type is empty`,
		`<tool type=" "/>`:                                                                             `<tool>: type is empty`,
		`<tool type="websearch"/>`:                                                                     `1:7: <tool>: there is no type websearch: type="websearch" (did you mean web_search?)`,
		`<tool type="Web-Search"/>`:                                                                    `(did you mean web_search?)`,
		`<tool type="MCP" server_label="m"/>`:                                                          `(did you mean mcp?)`,
		`<tool type="web-search-2025-08-26"/>`:                                                         `(did you mean web_search_2025_08_26?)`,
		`<tool type="localshell"/>`:                                                                    `there is no type localshell: type="localshell" (write <tool name="local_shell"/>)`,
		`<tool type="web_search" vector_store_ids="v"/>`:                                               `a tool of type web_search has no attribute vector_store_ids: vector_store_ids="v" (its attributes are external_web_access, search_context_size; all other options are members of the JSON inside the element)`,
		`<tool type="tool_search" size="1"/>`:                                                          `a tool of type tool_search has no attribute size: size="1" (it has no attributes; its options are members of the JSON inside the element)`,
		`<tool type="file_search" vector_store_ids=" , "/>`:                                            `it has no vector_store_ids`,
		`<tool type="code_interpreter" container=""/>`:                                                 `1:31: <tool>: container is empty: container=""`,
		`<tool type="code_interpreter" container='{"type":"auto"}'/>`:                                  `container is JSON, which stands inside the element: container='{"type":"auto"}' (such as <tool type="code_interpreter">{"container": {…}}</tool>)`,
		`<tool type="file_search" vector_store_ids='["vs_1"]'/>`:                                       `vector_store_ids is JSON, which stands inside the element: vector_store_ids='["vs_1"]' (such as <tool type="file_search">{"vector_store_ids": […]}</tool>)`,
		`<tool type="code_interpreter" container=' {"type":"a","type":"b"} '/>`:                        `container is JSON, which stands inside the element`,
		`<tool type="code_interpreter">{"container":{}}</tool>`:                                        `it has no container: <tool type="code_interpreter">{"container":{}}</tool> (such as container="cntr_123"; without a container it gets a new one)`,
		`<tool type="web_search" search_context_size=""/>`:                                             `search_context_size is empty`,
		`<tool type="mcp" server_label="" server_url="https://x"/>`:                                    `1:18: <tool>: server_label is empty`,
		`<tool type="web_search" command="ls"/>`:                                                       `<tool> has type and command`,
		`<tool type="unheard_of" size="1"/>`:                                                           `has no attribute size: size="1" (it has no attributes; its options are members of the JSON inside the element)`,
	} {
		_, err := Parse("", []byte(src))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", src, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the secret: %v", src, err)
		}
	}
}

// canonical returns the value of a JSON text.
func canonical(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
