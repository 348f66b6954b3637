// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// M4 M5: every mistake has its place, the text and mostly a hint, and one pass
// finds them all.
func TestParseErrors(t *testing.T) {
	raw := " (end it with </user>; write text that is not a tag in RAW| … |RAW)"
	tests := []struct{ name, src, want string }{
		{"stray text", "<config/>\n  Hello\n<user>a</user>", "2:3: text outside of any element: Hello (put it inside <user> … </user>)"},
		{"stray text with markup", "Hello <b>you</b>\n<user>a</user>", "1:1: text outside of any element: Hello <b>you</b> (put it inside <user> … </user>)"},
		{"stray fence", "RAW|<user>|RAW", "1:1: text outside of any element: RAW|<user>|RAW (put it inside <user> … </user>)"},
		{"unknown tag", "<usr>a <img src=\"x\"/></usr>\n<user>a</user>", "1:1: unknown tag <usr> at the top level (did you mean <user>?)"},
		{"capital", "<User>a</User>", "1:1: unknown tag <User> at the top level (did you mean <user>?)"},
		{"unknown tag, no idea", "<blockquote/>", "1:1: unknown tag <blockquote> at the top level (tags at the top level are: config, tool, system, developer, user, assistant, msg, tool_call, tool_response, reasoning, item, import, script, shell_access, moderator_runtime)"},
		{"type and name", "<tool name=\"s\" type=\"custom\"/>", "1:16: <tool>: a tool has a type or a name: type=\"custom\" (one with a type is run by the endpoint and has no name; one with a name is run here and has no type)"},
		{"two unknown tags", "<usr>a</usr><sytem>b</sytem>", "1:1: unknown tag <usr> at the top level (did you mean <user>?)\n1:13: unknown tag <sytem> at the top level (did you mean <system>?)"},
		{"image at the top", "<img src=\"x\"/>", "1:1: <img/> belongs inside a message or a tool response, not at the top level (put it inside <user> … </user>)"},
		{"mismatch", "<user>a</assistant>\n<user>b</user>", "1:8: </assistant> does not match <user> of line 1 (end it with </user>; write text that is not a tag in RAW| … |RAW)"},
		{"closes nothing", "<user>a</user></user>", "1:15: </user> closes nothing"},
		{"closes nothing inside", "<user>a</img></user>", "1:8: </img> closes nothing"},
		{"unclosed before the next", "<user>a\n<assistant>b</assistant>", "1:1: <user> is not closed before <assistant>: <user>a" + raw},
		{"unclosed at the end", "<user>a\n", "1:1: <user> is never closed: <user>a" + raw},
		{"two unclosed", "<user>a\n<user>b\n", "1:1: <user> is not closed before <user>: <user>a" + raw + "\n2:1: <user> is never closed: <user>b" + raw},
		{"unclosed fence", "<user>\n RAW|\na</user>", "2:2: RAW| is never closed by |RAW"},
		{"unclosed labelled fence", "<user>RAW:x|a|RAW</user>", "1:7: RAW:x| is never closed by |RAW:x"},
		{"unclosed comment", "<user>a</user>\n<!-- b", "2:1: the comment is never closed: <!-- b (end it with -->)"},
		{"unclosed tag", "<user id=\"a\"\n<assistant>b</assistant>", "1:1: <user is not ended by >: <user id=\"a\"\n1:1: <user> is not closed before <assistant>: <user id=\"a\"" + raw},
		{"unclosed quote", "<config model=\"a/>\n<user>a</user>", "1:15: the value of model in <config> has no closing \": \"a/> (a quote inside a value is written &quot;, and \\ before a closing quote &#92;)"},
		{"unclosed config", "<config model=\"a\">\n<user>a</user>", "1:1: <config> is not closed: <config model=\"a\"> (write <config …/>)"},
		{"bad attribute", "<user \"a\">b</user>", "1:7: bad attribute in <user>: \"a\" (write name=\"value\"; a quote may be missing before it)"},
		{"no value", "<user id=>b</user>", "1:7: attribute id in <user> has no value: id= (write id=\"…\")"},
		{"image in a long reply", "<msg role=\"assistant\"><img src=\"https://x\"/></msg>", "1:23: <img> cannot stand in this <msg>: <img src=\"https://x\"/> (it holds text only; write text that is not a tag in RAW| … |RAW)"},
		{"invalid UTF-8", "<user>ü\xff\xfe</user>", "1:8: invalid UTF-8: byte 0xff and 1 more in this file (save the file as UTF-8)"},
		{"one error for one byte", "<config/>\n\xe9t\xe9\n<user>a</user>", "2:1: invalid UTF-8: byte 0xe9 and 1 more in this file (save the file as UTF-8)"},
		{"typographic quotes", "<config model=“gpt-5”/>", "1:9: the value of model in <config> begins with the typographic quote “: model=“gpt-5” (write model=\"…\" with straight quotes)"},
		{"no-break space", "<config/>\n\u00a0\n<user>a</user>", "2:1: text outside of any element: the invisible character U+00A0 (delete it; white space between elements is spaces, tabs and line ends)"},
		{"no-break space in a tag", "<user\u00a0name=x>a</user>", "1:1: text outside of any element: the invisible character U+00A0 ends the name of the tag in <user\u00a0name=x>a</user> (write a space in its place, or delete it)"},
		{"zero-width space", "<config/>\u200b<user>a</user>", "1:10: text outside of any element: the invisible character U+200B (delete it; white space between elements is spaces, tabs and line ends)"},
		{"numbers", "<config max_tokens=\"1e3\" temperature=\"warm\"\n max_turns=\"0\" budget=\"-1\"/>",
			"1:9: <config>: max_tokens is not a whole number above zero: \"1e3\": max_tokens=\"1e3\" (such as max_tokens=\"1000\")\n" +
				"1:26: <config>: temperature is not a number: \"warm\": temperature=\"warm\" (such as temperature=\"0.7\")\n" +
				"2:2: <config>: max_turns is not a whole number above zero: \"0\": max_turns=\"0\" (such as max_turns=\"1000\")\n" +
				"2:16: <config>: budget is not a whole number above zero: \"-1\": budget=\"-1\" (such as budget=\"1000\")"},
		{"not a number", "<config temperature=\"NaN\"/>", "1:9: <config>: temperature is not a number: \"NaN\": temperature=\"NaN\" (such as temperature=\"0.7\")"},
		{"above the most", "<config temperature=\"9\"/>", "1:9: <config>: temperature is above 2: \"9\": temperature=\"9\" (such as temperature=\"0.7\")"},
		{"below zero", "<config temperature=\"-0.5\"/>", "1:9: <config>: temperature is below zero: \"-0.5\": temperature=\"-0.5\" (such as temperature=\"0.7\")"},
		{"summary at the top", "<summary>a</summary>", "1:1: <summary> belongs inside <reasoning>, not at the top level"},
		{"tool output", "<config tool_output=\"x\"/>", "1:9: <config>: tool_output cannot be \"x\": tool_output=\"x\" (one of: envelope, plain)"},
		{"no tool name", "<tool/>", "1:1: <tool> needs a name: <tool/> (write <tool name=\"…\"/>)"},
		{"tool timeout", "<tool name=\"a\" timeout=\"soon\"/>", "1:16: <tool>: timeout is not a duration: \"soon\": timeout=\"soon\" (such as timeout=\"30s\")"},
		{"root without path", "<tool name=\"read_file\"><read id=\"a\"/></tool>", "1:24: <read> needs the attribute path: <read id=\"a\"/>"},
		{"equal roots", "<tool name=\"read_file\"><read id=\"a\" path=\"b\"/>\n<read id=\"a\" path=\"c\"/></tool>", "2:1: two roots have the id \"a\": <read id=\"a\" path=\"c\"/> (the other is in line 1)"},
		{"root elsewhere", "<tool name=\"a\"><read id=\"a\" path=\"b\"/></tool>", "1:16: <read/> belongs inside <tool name=\"read_file\">, not inside \"a\": <read id=\"a\" path=\"b\"/>"},
		{"text in a tool", "<tool name=\"a\">text</tool>", "1:1: <tool> holds text: <tool name=\"a\">text</tool> (only <read/> elements belong inside)"},
		{"no role", "<msg>a</msg>", "1:1: <msg> needs the attribute role: <msg>a</msg>"},
		{"unknown role (I8)", "<msg role=\"robot\">a</msg>", "1:6: <msg>: role cannot be \"robot\": role=\"robot\" (one of: user, assistant, system, developer, tool)"},
		{"no call id", "<tool_call function_name=\"f\">{}</tool_call>", "1:1: <tool_call> needs the attribute tool_call_id: <tool_call function_name=\"f\">{}</tool_call>"},
		{"no response id", "<tool_response>a</tool_response>", "1:1: <tool_response> needs the attribute tool_call_id: <tool_response>a</tool_response>"},
		{"call type", "<tool_call tool_call_id=\"a\" function_name=\"b\" type=\"x\"/>", "1:47: <tool_call>: type cannot be \"x\": type=\"x\" (one of: function_call, custom_tool_call)"},
		{"content that is none", "<tool_response tool_call_id=\"a\" output=\"content\">x</tool_response>", "1:1: output=\"content\" needs images, files or a JSON list of parts: "},
		{"text that is none", "<tool_response tool_call_id=\"a\" output=\"text\"><img src=\"https://x\"/></tool_response>", "1:47: <img> cannot stand in this <tool_response>: "},
		{"item without JSON", "<item type=\"x\">{\"type\":</item>", "1:1: <item> does not hold the JSON of an item: "},
		{"item of another type", "<item type=\"x\">{\"type\":\"y\"}</item>", "1:1: <item> says type x, its JSON y: <item type=\"x\">{\"type\":\"y\"}</item>"},
		{"logprobs", "<assistant id=\"a\" logprobs=\"[\">b</assistant>", "1:19: <assistant>: logprobs is not JSON: "},
		{"no source", "<user><img/> <doc src=\"\"/></user>", "1:7: <img> needs a src: <img/> (write <img src=\"…\" local/>)\n1:14: <doc> needs a src: <doc src=\"\"/> (write <doc src=\"…\" local/>)"},
		{"a path that is not local", "<user><img src=\"a.png\"/></user>", "1:12: <img>: src is neither a URL nor marked as a file: a.png: src=\"a.png\" (add the attribute local to read a file)"},
		{"import without a source", "<import/>", "1:1: <import> needs a src: <import/> (write <import src=\"…\"/>)"},
		{"import from the network", "<import src=\"https://x/a.md\"/>", "1:9: <import>: files are not imported from the network: src=\"https://x/a.md\" (download it)"},
		{"import with a bad namespace", "<import src=\"a\" namespace=\"a b\"/>", "1:17: <import>: namespace cannot be \"a b\": namespace=\"a b\" (a letter or _, then letters, digits, _ . -)"},
		{"agent without a source", "<user><agent>a</agent></user>", "1:7: <agent> needs a src: <agent>a</agent> (write <agent src=\"…\" local/>)"},
		{"refusal of a plain text", "<assistant refusal content=\"text\">a</assistant>", "1:1: annotations, logprobs and refusal go with content=\"parts\": "},
		{"CRLF counts as one", "<config/>\r\n\r\nx\r\n", "3:1: text outside of any element: x (put it inside <user> … </user>)"},
		{"column behind a byte order mark", "\ufeffx", "1:1: text outside of any element: x (put it inside <user> … </user>)"},
		{"empty names", "<config model=\"\" base_url=\" \" profile/>\n<user>a</user>",
			"1:9: <config>: model is empty: model=\"\" (give it a value, or leave it out)\n" +
				"1:18: <config>: base_url is empty: base_url=\" \" (give it a value, or leave it out)\n" +
				"1:31: <config>: profile is empty (give it a value, or leave it out)"},
		{"all of them", "x\n<usr/>\n<user>a</system>\n<config max_tokens=\"a\"/>\n<user>RAW|", "1:1: text outside of any element: x (put it inside <user> … </user>)\n2:1: unknown tag <usr> at the top level (did you mean <user>?)\n3:8: </system> does not match <user> of line 3 (end it with </user>; write text that is not a tag in RAW| … |RAW)\n4:9: <config>: max_tokens is not a whole number above zero: \"a\": max_tokens=\"a\" (such as max_tokens=\"1000\")\n5:7: RAW| is never closed by |RAW"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Parse("", []byte(tt.src))
			if err == nil {
				t.Fatal("no error")
			}
			got := err.Error()
			if strings.HasSuffix(tt.want, ": ") { // what follows is another package's
				got = got[:min(len(got), len(tt.want))]
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			var one *Error
			if f == nil || !errors.As(err, &one) || one.Line == 0 {
				t.Errorf("no located error in %T", err)
			}
			if _, again := f.Items(t.Context(), nil); again == nil {
				t.Error("Items forgets the error")
			}
		})
	}
}

// Issue 2: what is not built yet is an error that names it, before any request.
func TestNotBuilt(t *testing.T) {
	tests := []struct{ src, want string }{
		{"<script language=\"chatml\" id=\"m\">\nlet x = \"<user>\" </scripted\n</script>", "1:1: <script> is not built yet: <script language=\"chatml\" id=\"m\">"},
		{"<shell_access id=\"a\"><capability x/></shell_access>", "1:1: <shell_access> is not built yet: <shell_access id=\"a\"><capability x/></shell_access>"},
		{"<moderator_runtime shell_runtime=\"a\"/>", "1:1: <moderator_runtime> is not built yet: <moderator_runtime shell_runtime=\"a\"/>"},
		{"<user>a <!-- other --></user>\n<!--META_REFINE -->", "2:1: <!-- META_REFINE --> is not built yet: <!--META_REFINE -->"},
		{"<user>\n<!-- META_REFINE -->\na</user>", "2:1: <!-- META_REFINE --> is not built yet"},
		{"<tool name=\"s\" type=\"shell\"><policy>allow</policy></tool>", "1:1: <tool type=\"shell\"> is not built yet: <tool name=\"s\" type=\"shell\"><policy>allow</policy></tool>"},
	}
	for _, tt := range tests {
		_, err := Parse("", []byte(tt.src))
		if err == nil || err.Error() != tt.want || !errors.Is(err, ErrNotBuilt) {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.src, err, tt.want)
		}
	}
}

// What is read all the same, with a remark.
func TestWarnings(t *testing.T) {
	tests := []struct{ src, want string }{
		{"<config modle=\"x\"/>", "1:9: <config> has no attribute modle (did you mean model?)"},
		{"<user id=\"a\" id=\"b\">x</user>", "1:7: <user>: id is given twice (the last one counts)"},
		{"<config store=\"no\"/>", "1:9: <config>: the flag store is on: its value is neither true nor false: store=\"no\" (off is store=\"false\")"},
		{"<user><doc src=\"a\" local></user>", "1:7: <doc> is not closed: <doc src=\"a\" local> (write <doc …/>)"},
		{"<user><doc src=\"a\" local></doc></user>", ""},
		{"<user>put <tool name=\"a\"/> or <tool name=\"b\"></tool> there</user>", "1:11: <tool> belongs at the top level; inside <user> it is text (write text in RAW| … |RAW)\n1:31: <tool> belongs at the top level; inside <user> it is text (write text in RAW| … |RAW)"},
		{"<user>RAW|a |RAW b|RAW</user>", "1:19: |RAW closes nothing: the fence before it ended at the first |RAW (write text that contains |RAW in a labelled fence, RAW:x| … |RAW:x)"},
		{"<user>RAW|a|RAW b RAW|c|RAW and <b>RAW</b></user><user>b|RAW</user>", ""},
		{"<assistant><img src=\"https://x\"/></assistant>", "1:12: <img/> belongs inside a message or a tool response; inside <assistant> it is text (write text in RAW| … |RAW)"},
		{"<msg role=\"assistant\" function_call function_name=\"f\">{}</msg>", "1:1: the older form function_call has no id for a response to name: it is read as text: <msg role=\"assistant\" function_call function_name=\"f\">{}</ms… (write <tool_call tool_call_id=\"…\" function_name=\"…\">)"},
	}
	for _, tt := range tests {
		f, err := Parse("", []byte(tt.src))
		if err != nil || f.Warnings.Error() != tt.want {
			t.Errorf("%s: %v\ngot  %v\nwant %s", tt.src, err, f.Warnings, tt.want)
		}
	}
}

// Elements nest to a depth, then it is an error and not a crash.
func TestDepth(t *testing.T) {
	src := "<user>" + strings.Repeat("<agent src=\"a\" local>", 100_000)
	_, err := Parse("", []byte(src))
	if err == nil || !strings.Contains(err.Error(), "elements are nested more than 64 deep") {
		t.Errorf("got %.200v", err)
	}
}

// M4: attributes are compared in steps that grow with their number, and elements
// that are not closed with one error each.
func TestManyAttributes(t *testing.T) {
	for _, count := range []int{1, 10, 16_000} {
		var b strings.Builder
		b.WriteString("<user")
		for i := range count {
			fmt.Fprintf(&b, " a%d=x", i)
		}
		b.WriteString(" a0=y>x</user>")
		f, p := parseFile("", []byte(b.String()))
		c := &compiler{file: f, errs: p.errs}
		c.run()
		if c.compared > manyAttrs*(count+1) {
			t.Errorf("%d attributes: %d names are compared", count, c.compared)
		}
		if len(c.warnings) != count+2 { // each is unknown, and a0 is given twice
			t.Errorf("%d attributes: %d warnings", count, len(c.warnings))
		}
	}
	const count = 20_000
	_, err := Parse("", []byte(strings.Repeat("<user>", count)))
	var list ErrorList
	if !errors.As(err, &list) || len(list) != count {
		t.Errorf("%d errors", len(list))
	}
}
