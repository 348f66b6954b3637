// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/chatmd"
)

// M4 M5: each feature of the language, as files of the original system write it, is
// read without a word, or is one error that has its place and names it.
func TestEveryFeatureOfOlderFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, "words", dir, "notes.txt")
	write(t, "<b>words</b>", dir, "page.html")
	write(t, "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"+
		"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82", dir, "dot.png")
	write(t, "<user>imported</user>", dir, "tags.md")
	write(t, "plain prose, with <angles>", dir, "prose.md")
	write(t, "<system>Inner.</system>", dir, "inner.md")
	const turn = "<tool_call tool_call_id=\"c\" function_name=\"f\">{}</tool_call>\n"
	for text, want := range map[string]string{
		// What is read.
		`<config model="gpt-x" max_tokens="1000" temperature="0.2" reasoning_effort="medium" id="x" show_tool_call/>`:                                                                          "",
		`<config base_url="http://127.0.0.1:1/v1" profile="openai" parallel_tool_calls="false" tool_output="envelope" max_turns="3" budget="1000" collapse_reads auto_compact store="false"/>`: "",
		`<system>a</system><developer id="d">b</developer><user id="u">c</user>`:                                                                                                               "",
		`<assistant id="msg_1" status="completed" phase="final_answer">a</assistant>`:                                                                                                          "",
		`<msg role="system">a</msg><msg role="user">b</msg><msg role="assistant">c</msg><msg role="developer">d</msg>`:                                                                         "",
		`<msg role="assistant" tool_call tool_call_id="c" function_name="f">{}</msg><msg role="tool" tool_call_id="c">out</msg>`:                                                               "",
		turn + `<tool_response tool_call_id="c">out</tool_response>`:                                                                                                                           "",
		turn + `<tool_response tool_call_id="c">look <img src="dot.png" local/></tool_response>`:                                                                                               "",
		turn + `<tool_response tool_call_id="c">[{"type":"input_text","text":"x"}]</tool_response>`:                                                                                            "",
		turn + `<tool_response tool_call_id="c"></tool_response>`:                                                                                                                              "",
		`<tool_call tool_call_id="c" function_name="apply_patch" type="custom_tool_call">p</tool_call><tool_response tool_call_id="c">x</tool_response>`:                                       "",
		`<reasoning id="rs" status="completed" encrypted="e"><summary>a</summary><summary>b</summary></reasoning><assistant>x</assistant>`:                                                     "",
		`<item type="web_search_call">RAW|{"type":"web_search_call","id":"ws","status":"completed"}|RAW</item>`:                                                                                "",
		`<user><doc src="notes.txt" local/><doc src="page.html" local strip/><doc src="page.html" local markdown/></user>`:                                                                     "",
		`<user><doc src="https://example.com/x"/></user>`:                                                                                                                                      "",
		`<user><img src="dot.png" local detail="low"/><img src="https://example.com/x.png"/><file src="notes.txt" local filename="n.txt"/></user>`:                                             "",
		`<user>ask <agent src="inner.md" local>the question</agent></user>`:                                                                                                                    "",
		`<import src="tags.md"/><import src="tags.md" namespace="n" local/>`:                                                                                                                   "",
		`<system>a <import src="prose.md" local/> b</system>`:                                                                                                                                  "",
		`<user>RAW|<context>|RAW x RAW:a|has |RAW inside|RAW:a</user>`:                                                                                                                         "",
		`<!-- a comment with <user> --><user>a &amp; b <!-- dropped --> c</user>`:                                                                                                              "",
		`<tool name="read_file"><read id="w" path="${prompt_dir}" description="here"/></tool>`:                                                                                                 "",
		`<tool name="get_contents"/><tool name="read_dir"/>`:                                                                                                                                   "",
		`<tool name="append_to_file"/><tool name="find_and_replace"/><tool name="apply_patch"/><tool name="import_image"/><tool name="webpage_to_markdown"/>`:                                  "",
		`<tool name="fork"/><tool name="markdown_search"/><tool name="index_markdown_docs"/><tool name="ask_user"/>`:                                                                           "",
		`<tool name="status" command="git status" description="what changed" local/>`:                                                                                                          "",
		`<tool name="inner" agent="inner.md" description="asks" local/>`:                                                                                                                       "",
		`<tool mcp_server="stdio:true" name="x" includes="a,b" strict client_id_env="ID" client_secret_env="SECRET"/>`:                                                                         "",
		`<tool mcp_server="https://example.com/mcp" include="a" optional approval="ask" timeout="3s" max_output="4000" parallel="false" server="s"/>`:                                          "",

		`<tool mcp_server="https://example.com/mcp" credentials="caller"/><tool mcp_server="stdio:true" credentials="operator"/>`: "",

		// What is an error.
		`<tool mcp_server="https://example.com/mcp" credentials="mine"/>`:                                                 "want operator or caller",
		`<tool mcp_server="stdio:true" credentials="caller"/>`:                                                            "is for a server with an address",
		`<tool mcp_server="http://example.com/mcp" credentials="caller"/>`:                                                "over https only",
		`<tool mcp_server="https://example.com/mcp" credentials="caller" client_id_env="ID" client_secret_env="SECRET"/>`: "contradict",
		`<tool name="read_file" credentials="caller"/>`:                                                                   "is for mcp_server",
		`<tool type="mcp" server_label="x" server_url="https://example.com/mcp" credentials="caller"/>`:                   "credentials",
		`<script language="chatml">x</script>`:                                                                            "is not built yet",
		`<shell_access>x</shell_access>`:                                                                                  "is not built yet",
		`<moderator_runtime>x</moderator_runtime>`:                                                                        "is not built yet",
		`<tool type="shell" name="x"/>`:                                                                                   "not built yet",
		`<tool type="web_search" name="x"/>`:                                                                              "has no name",
		`<!-- META_REFINE -->`:                                                                                            "is not built yet",
		`<tool name="odoc_search"/>`:                                                                                      "not built yet",
		`<tool name="nosuch"/>`:                                                                                           "unknown tool",
		`stray text`:                                                                                                      "outside of any element",
		`<usr>x</usr>`:                                                                                                    "did you mean <user>",
		`<system>x</user>`:                                                                                                "</user> does not match <system> of line 1",
		`<config temperature="warm"/>`:                                                                                    "warm",
		`<user><doc src="gone.txt" local/></user>`:                                                                        "no such file",
		`<user><doc src="${source_dir}/a" local/></user>`:                                                                 "not built yet",
		`<import src="https://example.com/x.md"/>`:                                                                        "not imported from the network",
		`<import src="talk.md"/>`:                                                                                         "imports itself",
		`<msg role="narrator">x</msg>`:                                                                                    "narrator",
		`<tool_response>x</tool_response>`:                                                                                "tool_call_id",
		`<item type="x">{</item>`:                                                                                         "<item>",
		`<user><img src="notes.txt" local/></user>`:                                                                       "not an image",
		"<user>caf\xe9</user>":                                                                                            "invalid UTF-8",
	} {
		path := write(t, text+"\n<user>go</user>\n", dir, "talk.md")
		f, err := agentfile.Load(t.Context(), path, agentfile.Options{Check: true})
		var problems chatmd.ErrorList
		switch {
		case want == "" && (err != nil || len(f.Warnings) > 0):
			t.Errorf("%s\n%v %v", text, err, f.Warnings)
		case want == "":
		case !errors.As(err, &problems) || len(problems) != 1 || problems[0].Line != 1 || problems[0].Column == 0 || !strings.Contains(err.Error(), want):
			t.Errorf("%s\n%v, want one error of line 1: %s", text, err, want)
		}
		if err == nil {
			f.Close()
		}
	}
}
