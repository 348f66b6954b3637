// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// CHATMD, antiphon fmt: one layout.
func TestFormat(t *testing.T) {
	long := strings.Repeat("x", 90)
	tests := []struct{ name, src, want string }{
		{"nothing", "", ""},
		{"white space", " \n\n", ""},
		{"lines", "<user>a</user><user>b</user>", "<user>a</user>\n<user>b</user>\n"},
		{"empty lines", "\n\n<user>a</user>\n\n\n\n<user>b</user>\n<user>c</user>\n\n", "<user>a</user>\n\n<user>b</user>\n<user>c</user>\n"},
		{"attributes", "<config  model=m max_tokens = '5'\n temperature=\"0.2\" show_tool_call=\"true\"/>", "<config model=\"m\" max_tokens='5' temperature=\"0.2\" show_tool_call/>\n"},
		{"flags that are off", "<user><doc src='https://a' local=\"false\" strip=''></doc></user>", "<user><doc src='https://a' local=\"false\" strip/></user>\n"},
		{"values keep their spelling", "<tool name='a \"b\"' description=\"x &amp; y\nz\"/>", "<tool name='a \"b\"' description=\"x &amp; y\nz\"/>\n"},
		{"unknown attributes stay", "<user x-a=1 b>c</user>", "<user x-a=\"1\" b>c</user>\n"},
		{"long tags keep their lines", "<tool name=\"a\"\n     command=\"b\" description=\"" + long + "\"></tool>", "<tool name=\"a\"\n  command=\"b\" description=\"" + long + "\"/>\n"},
		{"short tags do not", "<tool\n name=\"a\"\n/>", "<tool name=\"a\"/>\n"},
		{"closing tags", "<user >a</user\n>", "<user>a</user>\n"},
		{"edges of a message", "<user>\n\n  a\n b \n\n</user>", "<user>\na\n b\n</user>\n"},
		{"one line stays one", "<user> a </user><user>\n b </user>", "<user>a</user>\n<user>\nb\n</user>\n"},
		{"two lines", "<user>a\nb</user>", "<user>\na\nb\n</user>\n"},
		{"empty messages", "<user></user><user>\n\n\n</user><user/>", "<user></user>\n<user>\n</user>\n<user/>\n"},
		{"fences", "<user>see RAW|\n a\n\n|RAW\n  </user>", "<user>\nsee RAW|\n a\n\n|RAW\n</user>\n"},
		{"tags in a message", "<user>a <img src=x.png local> <b>c</b></user>", "<user>a <img src=\"x.png\" local/> <b>c</b></user>\n"},
		{"agents", "<user>\n<agent src=a local >\n x <doc src=b local></agent></user>", "<user>\n<agent src=\"a\" local>\n x <doc src=\"b\" local/></agent>\n</user>\n"},
		{"imports", "<import src=a></import><user><import src='b'/></user>", "<import src=\"a\"/>\n<user><import src='b'/></user>\n"},
		{"a short root", "<tool name=\"read_file\" ><read id='a' path=\"b\"/> <read id='c' path=\"d\"/></tool >", "<tool name=\"read_file\"><read id='a' path=\"b\"/><read id='c' path=\"d\"/></tool>\n"},
		{"roots", "<tool name=\"read_file\"><read id=a path=b/><!-- c -->\n\n\n<read id=d path=e></read></tool>", "<tool name=\"read_file\">\n  <read id=\"a\" path=\"b\"/> <!-- c -->\n\n  <read id=\"d\" path=\"e\"/>\n</tool>\n"},
		{"comments stay", "<!-- a -->\n<config/> <!-- b\n c -->\n\n\n\n<!-- d --><user>x <!-- e --> y</user><!-- f -->", "<!-- a -->\n<config/> <!-- b\n c -->\n\n<!-- d -->\n<user>x <!-- e --> y</user> <!-- f -->\n"},
		{"what is kept as it is", "<script  id=a>\n  let x = 1 </script><shell_access  id='b'/>", "<script  id=a>\n  let x = 1 </script>\n<shell_access id='b'/>\n"},
		{"byte order mark", "\ufeff<user>a</user>", "<user>a</user>\n"},
		{"line ends of Windows", "<config/>\r\n\r\n\r\n<user>\r\na\r\nb\r\n</user>", "<config/>\r\n\r\n<user>\r\na\r\nb\r\n</user>\r\n"},
		{"a transcript is left alone", "<config model=\"m\"/>\n<user>\nhi\n</user>\n<reasoning id=\"r\">\n<summary>\na\n</summary>\n</reasoning>\n<assistant id=\"m\" status=\"completed\">\nRAW|\n<b>\n|RAW\n</assistant>\n<tool_call tool_call_id=\"c\" function_name=\"f\">\nRAW||RAW\n</tool_call>\n<!-- the reply broke off here -->\n", "="},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, _ := Parse("t.md", []byte(tt.src))
			got, err := f.Format()
			if tt.want == "=" {
				tt.want = tt.src
			}
			if err != nil || got != tt.want {
				t.Fatalf("%v\ngot\n%q\nwant\n%q", err, got, tt.want)
			}
			formatted(t, tt.src)
		})
	}
	for _, src := range []string{"text", "<user>a", "<usr/>", "<config max_tokens=\"x\"/>"} {
		f, err := Parse("t.md", []byte(src))
		if _, got := f.Format(); got == nil || got.Error() != err.Error() {
			t.Errorf("%s: %v", src, got)
		}
	}
}

// fataler is what tests and properties have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// formatted checks that formatting a good file keeps its items, and that doing it
// again changes nothing. It reports false for a file with mistakes.
func formatted(t fataler, src string) bool {
	t.Helper()
	f, _ := Parse("t.md", []byte(src))
	out, err := f.Format()
	if err != nil {
		if f.err == nil {
			t.Fatalf("%v\nof %q", err, src)
		}
		return false
	}
	g, err := Parse("t.md", []byte(out))
	if fmt.Sprint(kinds(f.err)) != fmt.Sprint(kinds(err)) {
		t.Fatalf("%v became %v\nby formatting %q\nto %q", f.err, err, src, out)
	}
	again, err := g.Format()
	if err != nil || again != out {
		t.Fatalf("%v\nformatted again\n%q\nfirst\n%q\nof %q", err, again, out, src)
	}
	if a, b := meaning(t, f), meaning(t, g); a != b {
		t.Fatalf("%q means\n%s\nformatted, %q means\n%s", src, a, out, b)
	}
	return true
}

// kinds are the messages of what is not built yet.
func kinds(err error) (list []string) {
	all, _ := err.(ErrorList)
	for _, e := range all {
		list = append(list, e.Message)
	}
	return list
}

// meaning is what a file says, its sources standing for themselves.
func meaning(t fataler, f *File) string {
	t.Helper()
	var b strings.Builder
	items, err := f.Items(context.Background(), ResolverFunc(func(_ context.Context, ref Ref) ([]byte, string, error) {
		if ref.Tag == "img" {
			return []byte(pngBytes + ref.Src), "", nil
		}
		return fmt.Appendf(nil, "[%s %q %v %v %v %d]", ref.Tag, ref.Src, ref.Local, ref.Strip, ref.Markdown, len(ref.Input)), "", nil
	}))
	for _, it := range items {
		b.WriteString(it.Item.JSON() + "\n")
	}
	for _, e := range kinds(err) {
		b.WriteString(e + "\n")
	}
	for _, tool := range f.Tools {
		fmt.Fprintf(&b, "%q %q %d\n", tool.Name, tool.Description, len(tool.Roots))
	}
	if f.Config != nil {
		fmt.Fprintf(&b, "%q %v\n", f.Config.Model, f.Config.ShowToolCall)
	}
	return b.String()
}

// Format(Parse(x)) is a fixpoint, and the items stay.
func TestFormatProperty(t *testing.T) {
	pieces := []string{
		"<user>", "</user>", "<system >", "</system>", "<assistant id=a>", "</assistant>", "text", " ", "\n", "\n\n\n", "\r\n", "\t", "<!-- c -->", "<!-- d\n -->",
		"RAW|", "|RAW", "RAW:x|", "|RAW:x", "<doc src=a local>", "<doc src='b' local strip=\"true\"/>", "<img src=\"https://x\" detail=low/>", "<config model=m/>",
		"<tool name=a></tool>", "<tool name=\"read_file\">", "</tool>", "<read id=a path=b/>", "<reasoning id=r>", "<summary>", "</summary>", "</reasoning>",
		"<agent src=a local>", "</agent>", "<import src=a/>", "<import\n src='b'></import>", "<script>", "</script>", "<b>", "</b>", "é", "|", "R", "<", "&lt;",
		"<tool_call tool_call_id=c function_name=f>", "</tool_call>", "<tool_response tool_call_id=c>", "</tool_response>", "<user/>", "<item type=\"x\">{\"type\":\"x\"}</item>",
	}
	good := 0
	rapid.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 8).Draw(rt, "elements") {
			inside := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 5)
			switch rapid.IntRange(0, 4).Draw(rt, "kind") {
			case 0, 1:
				b.WriteString("<user>" + strings.Join(inside.Draw(rt, "in"), "") + "</user>")
			case 2:
				b.WriteString("<msg  role='developer' id=x >" + strings.Join(inside.Draw(rt, "in"), "") + "</msg>")
			case 3:
				b.WriteString(rapid.SampledFrom([]string{" ", "\n", "\n\n\n", "<!-- x -->", "\r\n", "<tool name=t\n\n description='" + strings.Repeat("y", 99) + "'/>"}).Draw(rt, "top"))
			default:
				b.WriteString(strings.Join(inside.Draw(rt, "any"), ""))
			}
		}
		if formatted(rt, b.String()) {
			good++
		}
	})
	if good == 0 {
		t.Error("no file was good")
	}
}

func FuzzFormat(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src string) { formatted(t, src) })
}
