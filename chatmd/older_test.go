// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// olderPrompt is written as older programs and their users write: attributes
// that are not known, tags of the author's own, an import with a flag, an empty
// message at the end.
const olderPrompt = `<config model="gpt-x"  max_tokens="100000" reasoning_effort="medium" show/>

<tool name="fetch" />
<tool mcp_server="stdio:run -y some-server" name="search" />
<tool name="status" command="git status" description="shows what changed
and what did not" local />
<import src="./more-tools.md" local />


<developer>
# Role
Write to <` + "`results.md`" + ` | a file of the user>. Follow <system-reminder> tags.
<rules active="true">
- a < b && c > d, O(n), x<<2, <->, ('a, 'b) t
</rules>
Example: fetch({"url":"https://example.com"}) and (** {b doc} *)
</developer>

<!-- <user><doc src="old.md" local /></user> -->
<msg role="user">
RAW|<context>|RAW
What is here?
RAW|</context>|RAW
</msg>
`

// olderTurn is one turn of a transcript that an older program wrote.
func olderTurn(n int, output string) string {
	return fmt.Sprintf(`
<reasoning id="rs_%[1]d">
<summary>
**Looking**

I read it first.
</summary>

<summary>
**Deciding**

Then I tell.
</summary>

</reasoning>

<assistant id="msg_%[1]d">
RAW|
Purpose: read the file.
|RAW
</assistant>


<tool_call tool_call_id="call_%[1]d" function_name="read_file" id="fc_%[1]d">
RAW|
{"file":"a.ml"}
|RAW
</tool_call>


<tool_call type="custom_tool_call" tool_call_id="call_p%[1]d" function_name="apply_patch" id="ctc_%[1]d">
RAW|
*** Begin Patch
*** End Patch
|RAW
</tool_call>

<tool_response tool_call_id="call_%[1]d">
RAW|
%[2]s
|RAW
</tool_response>
<tool_response type="custom_tool_call" tool_call_id="call_p%[1]d">
RAW|
✅ done

|RAW
</tool_response>

<reasoning id="rs_e%[1]d">
</reasoning>

<tool_call tool_call_id="call_d%[1]d" function_name="read_file" id="fc_d%[1]d">
	<doc src="./.chatmd/%[1]d.tool-call.call_d%[1]d.json" local>
</tool_call>

<tool_response tool_call_id="call_d%[1]d" id="%[1]d">
	<doc src="./.chatmd/%[1]d.tool-call-result.call_d%[1]d.json" local>
</tool_response>
`, n, output)
}

// CHATMD: files of older programs load unchanged, a long session too, and all of
// it is written and read again.
func TestOlderSession(t *testing.T) {
	source := strings.Repeat("let f x = match x with | Some \"<tool name=\\\"a\\\"/>\" -> `<user>` | None -> <doc/> </user> <!-- {b x} RAW| *)\n", 70)
	var b strings.Builder
	b.WriteString(olderPrompt)
	const turns = 70
	for n := range turns {
		b.WriteString(olderTurn(n, source))
	}
	b.WriteString("\n<user>\n\n</user>")
	if b.Len() < 500_000 {
		t.Fatalf("%d bytes are not a long session", b.Len())
	}
	l := library{"more-tools.md": "<tool name=\"log\" command=\"git log\"/>\n"}
	for n := range turns {
		l[fmt.Sprintf(".chatmd/%d.tool-call.call_d%d.json", n, n)] = `{"file":"b.ml"}`
		l[fmt.Sprintf(".chatmd/%d.tool-call-result.call_d%d.json", n, n)] = "%PDF-1.4 is how it begins\n"
	}
	f, err := l.load(t, b.String())
	if err != nil {
		t.Fatal(err)
	}
	located, err := f.Items(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 + 9*turns; len(located) != want || len(f.Tools) != 4 || f.Config.Model != "gpt-x" {
		t.Fatalf("%d items, want %d; %d tools", len(located), want, len(f.Tools))
	}
	if got := located[1].Item.JSON(); got != userJSON("<context>\nWhat is here?\n</context>") {
		t.Error(got)
	}
	turn := located[2:11]
	want := []string{
		`{"id":"rs_0","type":"reasoning","summary":[{"type":"summary_text","text":"**Looking**\n\nI read it first."},{"type":"summary_text","text":"**Deciding**\n\nThen I tell."}]}`,
		`{"id":"msg_0","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"Purpose: read the file."}],"role":"assistant"}`,
		`{"id":"fc_0","type":"function_call","arguments":"{\"file\":\"a.ml\"}","call_id":"call_0","name":"read_file"}`,
		`{"id":"ctc_0","type":"custom_tool_call","call_id":"call_p0","input":"*** Begin Patch\n*** End Patch","name":"apply_patch"}`,
		item.Must(&item.FunctionCallOutput{CallID: "call_0", Output: item.Text(source)}).JSON(),
		`{"type":"custom_tool_call_output","call_id":"call_p0","output":"✅ done\n"}`,
		`{"id":"rs_e0","type":"reasoning","summary":[]}`,
		`{"id":"fc_d0","type":"function_call","arguments":"{\"file\":\"b.ml\"}","call_id":"call_d0","name":"read_file"}`,
		`{"type":"function_call_output","call_id":"call_d0","output":"%PDF-1.4 is how it begins\n"}`,
	}
	for i, w := range want {
		if got := turn[i].Item.JSON(); !sameJSON(got, w) {
			t.Errorf("got  %.300s\nwant %.300s", got, w)
		}
	}
	var items []item.Item
	for _, it := range located {
		items = append(items, it.Item)
	}
	text, kept := writeAll(t, items, true)
	if back := readFrom(t, kept, text); len(back) != len(items) {
		t.Errorf("%d items read back", len(back))
	}
	for _, w := range f.Warnings {
		if !strings.Contains(w.Message, "is not closed") && !strings.Contains(w.Message, "has no attribute show") {
			t.Errorf("a warning of an older file: %v", w)
		}
	}
	formatted(t, b.String())
}
