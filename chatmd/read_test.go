// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// user is the JSON of a user message of texts.
func userJSON(texts ...string) string { return inputJSON("user", texts...) }

func inputJSON(role string, texts ...string) string {
	var parts []item.Part
	for _, s := range texts {
		parts = append(parts, &item.InputText{Text: s})
	}
	return item.Must(&item.Message{Role: item.Role(role), Content: item.Parts(parts...)}).JSON()
}

// CHATMD, lexical rules: text, fences, comments, white space.
func TestReadText(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"one line", "<user>hello</user>", "hello"},
		{"white space around", "<user>\n\t hello\r\n</user>", "hello"},
		{"white space inside", "<user>\n a\n\n  b \n</user>", "a\n\n  b"},
		{"other spaces are text", "<user>\u00a0a\u2003</user>", "\u00a0a\u2003"},
		{"unknown tags are text", "<user><b>a</b> <br/> <foo bar='x'></user>", "<b>a</b> <br/> <foo bar='x'>"},
		{"tags with a meaning elsewhere are text", "<user>put it in <summary></summary>, <item>, <read id=\"x\"/>, <script>a</script></user>", "put it in <summary></summary>, <item>, <read id=\"x\"/>, <script>a</script>"},
		{"the prompt idiom <file>", "<user><file path=\"a.go\">x</file> <file src=\"b\">y</file></user>", "<file path=\"a.go\">x</file> <file src=\"b\">y</file>"},
		{"capitals are text", "<user><User>a</User></user>", "<User>a</User>"},
		{"no tag", "<user>a < b <c <<user@example.org> </ >x<=y</user>", "a < b <c <<user@example.org> </ >x<=y"},
		{"references are text", "<user>&lt;a&gt; &amp; &#65;</user>", "&lt;a&gt; &amp; &#65;"},
		{"comment", "<user>a<!-- b <user> RAW| -->c</user>", "ac"},
		{"comments at the edges", "<user>\n<!-- b -->\n a <!-- c -->\n</user>", "a"},
		{"fence", "<user>RAW|a|RAW</user>", "a"},
		{"fence lines", "<user>\n  RAW|\n a \n|RAW\n</user>", " a "},
		{"fence keeps all but one newline", "<user>RAW|\n\na\n\n|RAW</user>", "\na\n"},
		{"fence of CRLF lines", "<user>\r\nRAW|\r\na\r\n|RAW\r\n</user>", "a"},
		{"fence with a carriage return", "<user>RAW|\na\r\n|RAW</user>", "a\r"},
		{"fence on one line with CRLF", "<user>RAW|a\r\n|RAW</user>", "a"},
		{"fence holds tags and comments", "<user>RAW|</user><!-- a --><user>|RAW</user>", "</user><!-- a --><user>"},
		{"fence holds a fence", "<user>RAW:x|RAW|a|RAW|RAW:x</user>", "RAW|a|RAW"},
		{"labels differ", "<user>RAW:a_1-B|x|RAW:b|RAW:a_1-B</user>", "x|RAW:b"},
		{"text around a fence", "<user>\n see RAW| a |RAW now\n</user>", "see  a  now"},
		{"two fences", "<user>RAW|a|RAW\nRAW|b|RAW</user>", "a\nb"},
		{"no fence", "<user>DRAW|a RAW: b RAW:c d RAW:|x</user>", "DRAW|a RAW: b RAW:c d RAW:|x"},
		{"empty fence", "<user>RAW||RAW</user>", ""},
		{"fence of one newline", "<user>RAW|\n|RAW</user>", ""},
		{"fence of two newlines", "<user>RAW|\n\n|RAW</user>", ""},
		{"fence of three newlines", "<user>RAW|\n\n\n|RAW</user>", "\n"},
		{"closing tag with space", "<user>a</user\n >", "a"},
		{"byte order mark", "\ufeff<user>a</user>", "a"},
		{"mark of order inside", "<user>\ufeffa</user>", "\ufeffa"},
		{"import elsewhere is text", "<user content=\"parts\">a</user>", "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := readOne(t, tt.src).JSON(); got != userJSON(tt.want) {
				t.Errorf("got  %s\nwant %s", got, userJSON(tt.want))
			}
		})
	}
}

// CHATMD, lexical rules: attributes.
func TestReadAttributes(t *testing.T) {
	tests := []struct{ src, name, value string }{
		{`<tool name="a"/>`, "name", "a"},
		{`<tool name='a'/>`, "name", "a"},
		{`<tool name=a/>`, "name", "a"},
		{`<tool name=a/b />`, "name", "a/b"},
		{`<tool name=a></tool>`, "name", "a"},
		{"<tool\n\tname\n=\n\"a\"\n/>", "name", "a"},
		{`<tool name="a > b"/>`, "name", "a > b"},
		{`<tool name="a /> <user>"/>`, "name", "a /> <user>"},
		{`<tool name="it's"/>`, "name", "it's"},
		{`<tool name='"'/>`, "name", `"`},
		{`<tool name="&amp;&lt;&gt;&quot;&apos;"/>`, "name", `&<>"'`},
		{`<tool name="&#65;&#x42;&#X1F600;&#10;"/>`, "name", "AB\U0001F600\n"},
		{`<tool name="&nbsp; & &; &#; &#x; &#xD800; &#x110000; &amp"/>`, "name", "&nbsp; & &; &#; &#x; &#xD800; &#x110000; &amp"},
		{`<tool name="&amp;lt;"/>`, "name", "&lt;"},
		{`<tool name="a \"b\" c"/>`, "name", `a "b" c`},
		{`<tool name="a\b&#92;"/>`, "name", `a\b\`},
		{`<tool name="a"description="b"/>`, "description", "b"},
		{`<tool name="a" name="b"/>`, "name", "b"},
		{`<tool name="a" x-1.y:z="kept"/>`, "x-1.y:z", "kept"},
		{`<tool name="RAW|a|RAW"/>`, "name", "RAW|a|RAW"},
		{"<tool name=\"a\nb\"/>", "name", "a\nb"},
	}
	for _, tt := range tests {
		f, err := Parse("test.md", []byte(tt.src))
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		if got := f.Elements[0].Value(tt.name); got != tt.value {
			t.Errorf("%s: %s is %q, want %q", tt.src, tt.name, got, tt.value)
		}
	}
}

// CHATMD: a flag is true by presence, false by ="false".
func TestReadFlags(t *testing.T) {
	for src, want := range map[string]bool{
		`<config/>`: false, `<config show_tool_call/>`: true, `<config show_tool_call="true"/>`: true,
		`<config show_tool_call=""/>`: true, `<config show_tool_call="false"/>`: false, `<config show_tool_call=false/>`: false,
	} {
		f, err := Parse("test.md", []byte(src))
		if err != nil || f.Config.ShowToolCall != want || len(f.Warnings) > 0 {
			t.Errorf("%s: %v, %v, %v", src, f.Config.ShowToolCall, err, f.Warnings)
		}
	}
}

// CHATMD, elements: what each one gives.
func TestReadElements(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"system", `<system id="s">a</system>`, `{"id":"s","type":"message","content":[{"type":"input_text","text":"a"}],"role":"system"}`},
		{"developer", `<developer>a</developer>`, inputJSON("developer", "a")},
		{"msg user", `<msg role="user">a</msg>`, userJSON("a")},
		{"msg system", `<msg role='system' name="x">a</msg>`, inputJSON("system", "a")},
		{"msg assistant", `<msg role="assistant" id="m" status="completed">a</msg>`, `{"id":"m","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"a"}],"role":"assistant"}`},
		{"msg tool", `<msg role="tool" tool_call_id="c">a</msg>`, `{"type":"function_call_output","call_id":"c","output":"a"}`},
		{"msg tool call", `<msg role="assistant" tool_call tool_call_id="c" function_name="f">{"a":1}</msg>`, `{"type":"function_call","arguments":"{\"a\":1}","call_id":"c","name":"f"}`},
		{"assistant", `<assistant>a</assistant>`, `{"type":"message","content":"a","role":"assistant"}`},
		{"assistant with id", `<assistant id="m" phase="commentary">a</assistant>`, `{"id":"m","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"a"}],"phase":"commentary","role":"assistant"}`},
		{"assistant with an id and no status", `<assistant id="m" status="none">a</assistant>`, `{"id":"m","type":"message","content":[{"type":"output_text","annotations":[],"text":"a"}],"role":"assistant"}`},
		{"msg, capital role", `<msg role="Developer">a</msg>`, inputJSON("developer", "a")},
		{"msg tool with a call", `<msg role="tool" tool_call tool_call_id="c" function_name="f">{}</msg>`, `{"type":"function_call","arguments":"{}","call_id":"c","name":"f"}`},
		{"msg with an older function call", `<msg role="assistant" function_call function_name="f">{"a":1}</msg>`, `{"type":"message","content":"{\"a\":1}","role":"assistant"}`},
		{"response numbered by an older program", `<tool_response tool_call_id="c" id="12">a</tool_response>`, `{"type":"function_call_output","call_id":"c","output":"a"}`},
		{"tool in a message", `<user>put <tool name="a"/> there</user>`, userJSON(`put <tool name="a"/> there`)},
		{"image in a reply", `<assistant>see <img src="a.png" local/></assistant>`, `{"type":"message","content":"see <img src=\"a.png\" local/>","role":"assistant"}`},
		{"assistant with import", `<assistant><import src="x"/></assistant>`, `{"type":"message","content":"<import src=\"x\"/>","role":"assistant"}`},
		{"long reply with import", `<msg role="assistant"><import src="x"/></msg>`, `{"type":"message","content":"<import src=\"x\"/>","role":"assistant"}`},
		{"assistant with id, plain", `<assistant id="m" content="text">a</assistant>`, `{"id":"m","type":"message","content":"a","role":"assistant"}`},
		{"assistant, parts", `<assistant content="parts">a</assistant>`, `{"type":"message","content":[{"type":"output_text","annotations":[],"text":"a"}],"role":"assistant"}`},
		{"call", `<tool_call tool_call_id="c" function_name="f" id="i" status="completed">RAW|{"a":"b"}|RAW</tool_call>`, `{"id":"i","type":"function_call","status":"completed","arguments":"{\"a\":\"b\"}","call_id":"c","name":"f"}`},
		{"call without arguments (I6)", `<tool_call tool_call_id="c" function_name="f"/>`, `{"type":"function_call","arguments":"{}","call_id":"c","name":"f"}`},
		{"custom call", `<tool_call tool_call_id="c" function_name="f" type="custom_tool_call">a b</tool_call>`, `{"type":"custom_tool_call","call_id":"c","input":"a b","name":"f"}`},
		{"custom call without input", `<tool_call tool_call_id="c" function_name="f" type="custom_tool_call"></tool_call>`, `{"type":"custom_tool_call","call_id":"c","input":"","name":"f"}`},
		{"call with tags", `<tool_call tool_call_id="c" function_name="f">{"x":"<summary>"}</tool_call>`, `{"type":"function_call","arguments":"{\"x\":\"<summary>\"}","call_id":"c","name":"f"}`},
		{"reasoning", "<reasoning id=\"r\" status=\"completed\" encrypted=\"e\">\n<summary>\n a \n</summary>\n<!-- x -->\n<summary>RAW| b |RAW</summary>\n</reasoning>", `{"id":"r","type":"reasoning","status":"completed","encrypted_content":"e","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":" b "}]}`},
		{"reasoning, older", "<reasoning id=\"r\">\n a\n</reasoning>", `{"id":"r","type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}`},
		{"reasoning, empty", `<reasoning id="r"/>`, `{"id":"r","type":"reasoning","summary":[]}`},
		{"item", "<item type=\"x\">\n {\"type\":\"x\", \"n\":1e3}\n</item>", `{"type":"x", "n":1e3}`},
		{"item in a fence", `<item type="x">RAW|{"type":"x","s":"</item>"}|RAW</item>`, `{"type":"x","s":"</item>"}`},
		{"url image", `<user><img src="https://a/b.png"/></user>`, `{"type":"message","content":[{"type":"input_image","image_url":"https://a/b.png","detail":"auto"}],"role":"user"}`},
		{"url image, older form", `<user>a <img src="https://a/b.png"> b</user>`, `{"type":"message","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://a/b.png","detail":"auto"},{"type":"input_text","text":"b"}],"role":"user"}`},
		{"order of parts (I2)", "<user>\n a \n<img src=\"data:image/png;base64,iVBORw0KGgpyZXN0\" detail=\"low\"/>\n b\n<file src=\"https://a/b.pdf\"/>\n</user>", `{"type":"message","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgpyZXN0","detail":"low"},{"type":"input_text","text":"b"},{"type":"input_file","file_url":"https://a/b.pdf"}],"role":"user"}`},
		{"file data (I3)", `<user><file src="data:text/plain;base64,YQ==" filename="a.txt"/></user>`, `{"type":"message","content":[{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,YQ=="}],"role":"user"}`},
		{"file id", `<user><file file_id="f1"/></user>`, `{"type":"message","content":[{"type":"input_file","file_id":"f1"}],"role":"user"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := readOne(t, tt.src).JSON(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// M7 W14: which branch of the union a tool response is.
func TestReadToolResponse(t *testing.T) {
	list := `[{"type":"input_text","text":"a"}]`
	tests := []struct{ name, attrs, body, want string }{
		{"empty", ``, ``, `""`},
		{"white space", ``, "\n\n", `""`},
		{"text", ``, "\na\n", `"a"`},
		{"exact text", ``, "\nRAW| a |RAW\n", `" a "`},
		{"image", ``, "\n<img src=\"https://a/b\"/>\n", `[{"type":"input_image","image_url":"https://a/b"}]`},
		{"text and image", ``, "a\n<img src=\"https://a/b\" detail=\"high\"/>\n", `[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://a/b","detail":"high"}]`},
		{"file", ``, `<file file_id="f"/>`, `[{"type":"input_file","file_id":"f"}]`},
		{"older list", ``, "RAW|" + list + "|RAW", list},
		{"hand-written list", ``, "\n" + list + "\n", list},
		{"list we wrote as text", `output="text"`, "RAW|" + list + "|RAW", string(item.Quote(list))},
		{"list we wrote as content", `output="content"`, "RAW|" + list + "|RAW", list},
		{"empty list we wrote", `output="content"`, "RAW|[]|RAW", `[]`},
		{"empty text we wrote", `output="text"`, "", `""`},
		{"[] is a text", ``, "RAW|[]|RAW", `"[]"`},
		{"list of other things", ``, `[{"type":"x"},1]`, `"[{\"type\":\"x\"},1]"`},
		{"list of numbers", ``, `[1]`, `"[1]"`},
		{"list of output parts is a text", ``, `[{"type":"output_text","text":"a"}]`, `"[{\"type\":\"output_text\",\"text\":\"a\"}]"`},
		{"custom", `type="custom_tool_call"`, "a", `"a"`},
		{"custom, long form", `type="custom_tool_call_output"`, "a", `"a"`},
		{"function", `type="function_call"`, "a", `"a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			it := readOne(t, `<tool_response tool_call_id="c" `+tt.attrs+`>`+tt.body+`</tool_response>`)
			if got, _ := it.Member("output"); string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			want := item.TypeFunctionCallOutput
			if strings.Contains(tt.attrs, "custom") {
				want = item.TypeCustomToolCallOutput
			}
			if it.Type() != want {
				t.Errorf("type %s, want %s", it.Type(), want)
			}
		})
	}
}

// I13: blank messages add no item.
func TestReadBlankMessages(t *testing.T) {
	src := "<user>\n\n</user><system/><assistant id=\"m\"><!-- a --></assistant>\n<user>a</user>\n<msg role=\"user\"></msg>"
	if list := read(t, src); len(list) != 1 || list[0].JSON() != userJSON("a") {
		t.Errorf("got %v", list)
	}
}

// CHATMD, <config/>: typed, absent stays absent, the first one wins.
func TestConfig(t *testing.T) {
	f, err := Parse("test.md", []byte(`<config model="m" max_tokens="1_000" temperature="0.0" reasoning_effort="low" id="i" show_tool_call
		base_url="http://x/v1" profile="p" tool_choice="required" parallel_tool_calls="false" tool_output="envelope" max_turns="3" budget="9" collapse_reads auto_compact store="false" description="Does it."/>
		<config model="other"/>`))
	if err != nil {
		t.Fatal(err)
	}
	c := f.Config
	if c.Model != "m" || *c.MaxTokens != 1000 || *c.Temperature != 0 || c.ReasoningEffort != "low" || c.ID != "i" || !c.ShowToolCall ||
		c.BaseURL != "http://x/v1" || c.Profile != "p" || c.ToolChoice != "required" || *c.ParallelToolCalls || c.ToolOutput != "envelope" || *c.MaxTurns != 3 ||
		*c.Budget != 9 || !c.CollapseReads || !c.AutoCompact || *c.Store || c.Description != "Does it." || c.Line != 1 {
		t.Errorf("got %+v", c)
	}
	if len(f.Warnings) != 1 || f.Warnings[0].Error() != "test.md:3:3: a second <config> is ignored: <config model=\"other\"/> (the <config> in line 1 is used)" {
		t.Errorf("warnings: %v", f.Warnings)
	}
	f, _ = Parse("", []byte(`<config/>`))
	c = f.Config
	if c.MaxTokens != nil || c.Temperature != nil || c.ParallelToolCalls != nil || c.MaxTurns != nil || c.Budget != nil || c.Store != nil || c.Model != "" {
		t.Errorf("got %+v", c)
	}
	if f, _ = Parse("", []byte(`<user>a</user>`)); f.Config != nil {
		t.Error("a config out of nothing")
	}
}

// CHATMD, <tool polling/>.
func TestPolling(t *testing.T) {
	for _, c := range []struct {
		attrs   string
		polling bool
		again   time.Duration
		problem string
	}{
		{`command="x" polling`, true, 0, ""},
		{`command="x" polling="5m"`, true, 5 * time.Minute, ""},
		{`command="x" polling="false"`, false, 0, ""},
		{`mcp_server="stdio:x" polling`, true, 0, ""},
		{`command="x" polling="5 eggs"`, true, 0, "not a duration"},
		{`mcp_server="stdio:x" polling="5m"`, true, 5 * time.Minute, "only a command"},
		{`agent="x.md" local polling`, false, 0, "not for an agent"},
	} {
		f, err := Parse("test.md", []byte(`<tool name="n" description="d" `+c.attrs+`/>`))
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: %v", c.attrs, err)
			}
			continue
		}
		if err != nil || f.Tools[0].Polling != c.polling || f.Tools[0].AskAgain != c.again {
			t.Errorf("%s: %+v, %v", c.attrs, f.Tools, err)
		}
	}
}

// CHATMD, <tool/> and <read/>.
func TestTools(t *testing.T) {
	f, err := Parse("test.md", []byte(`<tool name="apply_patch"/>
<tool name="read_file" description=" Reads. " approval="ask" timeout="90" max_output="5" parallel="false" other="kept">
  <!-- roots -->
  <read id="docs" path="${workspace}/docs" description="The manual"/>
  <read id="src" path="src"></read>
</tool>`))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tools) != 2 || f.Tools[0].Name != "apply_patch" {
		t.Fatalf("got %+v", f.Tools)
	}
	tool := f.Tools[1]
	if tool.Description != "Reads." || tool.Approval != "ask" || tool.Timeout.Seconds() != 90 || *tool.MaxOutput != 5 || *tool.Parallel || tool.Value("other") != "kept" || tool.Line != 2 {
		t.Errorf("got %+v", tool)
	}
	if len(tool.Roots) != 2 || tool.Roots[0].ID != "docs" || tool.Roots[0].Path != "${workspace}/docs" || tool.Roots[0].Description != "The manual" || tool.Roots[1].Line != 5 {
		t.Errorf("roots %+v", tool.Roots)
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Message, "no attribute other") {
		t.Errorf("warnings: %v", f.Warnings)
	}
}

// CHATMD: sources are rebased and nothing else changes.
func TestRewrite(t *testing.T) {
	src := "\ufeff<!-- <img src=\"a\"/> -->\n<config model=\"m\"/>\n<user>see <img src='a.png' local/> and\n<doc local src=b.md/> RAW|<img src=\"a.png\"/>|RAW</user>\n"
	f, err := Parse("test.md", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	got := f.Rewrite(func(e Element, a Attr) (string, bool) {
		return "../" + a.Value, a.Name == "src" && e.Flag("local")
	})
	want := strings.NewReplacer(`'a.png'`, `"../a.png"`, `b.md`, `"../b.md"`).Replace(src)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if same := f.Rewrite(func(Element, Attr) (string, bool) { return "", false }); same != src || f.Source() != src {
		t.Errorf("got\n%s\nwant\n%s", same, src)
	}
	flag := f.Rewrite(func(_ Element, a Attr) (string, bool) { return "false", a.Bare })
	if !strings.Contains(flag, `local="false"/>`) || !strings.Contains(flag, `<doc local="false" src=b.md/>`) {
		t.Errorf("got\n%s", flag)
	}
}

// The elements of a file, with their places.
func TestElements(t *testing.T) {
	src := "<config/>\n<!-- a -->  <user>ü</user><assistant\n id=\"m\">b</assistant>"
	f, err := Parse("test.md", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		tag       string
		line, col int
	}{{"config", 1, 1}, {"user", 2, 13}, {"assistant", 2, 27}}
	for i, e := range f.Elements {
		if e.Tag != want[i].tag || e.Line != want[i].line || e.Column != want[i].col || !strings.HasPrefix(src[e.Offset:e.End], "<"+e.Tag) || src[e.End-1] != '>' {
			t.Errorf("element %d: %+v, want %v", i, e, want[i])
		}
	}
	list, err := f.Items(t.Context(), nil)
	if err != nil || len(list) != 2 || list[1].Line != 2 || list[1].Column != 27 {
		t.Errorf("items %v, %v", list, err)
	}
}
