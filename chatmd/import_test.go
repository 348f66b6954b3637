// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
)

// library is an importer and resolver over texts; names are relative to the
// file that names them.
type library map[string]string

func (l library) Import(_ context.Context, ref Ref) (Source, error) {
	name := path.Join(path.Dir(ref.File), ref.Src)
	text, ok := l[name]
	if !ok {
		return Source{}, fs.ErrNotExist
	}
	return Source{Name: name, Base: "/" + name, Text: []byte(text)}, nil
}

func (l library) Resolve(_ context.Context, ref Ref) ([]byte, string, error) {
	if ref.Tag == "agent" {
		return fmt.Appendf(nil, "(%s on %d parts)", ref.Src, len(ref.Input)), "", nil
	}
	name := path.Join(path.Dir(strings.TrimPrefix(ref.Base, "/")), ref.Src)
	text, ok := l[name]
	if !ok {
		return nil, "", fs.ErrNotExist
	}
	return []byte(text), "", nil
}

func (l library) load(t testing.TB, src string) (*File, error) {
	t.Helper()
	return Load(t.Context(), Source{Name: "main.md", Base: "/main.md", Text: []byte(src)}, l)
}

// M6: an import brings elements at the top level and text inside a message;
// imports nest, and paths are relative to the file that names them.
func TestImport(t *testing.T) {
	l := library{
		"tools.md":        "<!-- tools --><tool name=\"a\"/>\n<import src=\"lib/more.md\"/>\n<config model=\"m\"/>",
		"lib/more.md":     "<tool name=\"b\"/><user>see <doc src=\"note.txt\" local/></user>",
		"lib/note.txt":    "the note",
		"prose.txt":       "Be kind.\nSee <b>x</b> & <tool-x/> </summary>.",
		"tagged.md":       "A <!-- dropped -->RAW|<user>|RAW <doc src=\"lib/note.txt\" local/> <import src=\"lib/deep.txt\"/>.",
		"lib/deep.txt":    "deep <import src=\"../prose.txt\"/>",
		"mark.txt":        "\ufeffmarked",
		"empty.txt":       "",
		"crlf.md":         "<user>a\r\nb</user>\r\n",
		"lib/picture.txt": "look <img src=\"https://x/y.png\"/>",
	}
	tests := []struct {
		name, src string
		want      []string
	}{
		{"elements", "<import src=\"tools.md\" local/>\n<user>hi</user>", []string{userJSON("see the note"), userJSON("hi")}},
		{"prose in a message", "<system>\nRules:\n<import src=\"prose.txt\"/>\nEnd.\n</system>", []string{inputJSON("system", "Rules:\nBe kind.\nSee <b>x</b> & <tool-x/> </summary>.\nEnd.")}},
		{"prose alone", "<developer><import src='prose.txt'/></developer>", []string{inputJSON("developer", "Be kind.\nSee <b>x</b> & <tool-x/> </summary>.")}},
		{"tags in a message", "<user><import src=\"tagged.md\"/></user>", []string{userJSON("A <user> the note deep Be kind.\nSee <b>x</b> & <tool-x/> </summary>..")}},
		{"images come along", "<user>a <import src=\"lib/picture.txt\"/></user>", []string{`{"type":"message","content":[{"type":"input_text","text":"a look"},{"type":"input_image","image_url":"https://x/y.png","detail":"auto"}],"role":"user"}`}},
		{"long form", "<msg role=\"user\"><import src=\"mark.txt\"/></msg>", []string{userJSON("marked")}},
		{"long form of a reply", "<msg role=\"assistant\"><import src=\"mark.txt\"/></msg>", []string{`{"type":"message","content":"<import src=\"mark.txt\"/>","role":"assistant"}`}},
		{"nothing", "<user><import src=\"empty.txt\"/></user><import src=\"empty.txt\"/>", nil},
		{"twice", "<user><import src=\"mark.txt\"/><import src=\"mark.txt\"/></user>", []string{userJSON("markedmarked")}},
		{"line ends", "<import src=\"crlf.md\"/>", []string{userJSON("a\r\nb")}},
		{"literal elsewhere", "<tool_response tool_call_id=\"c\"><import src=\"prose.txt\"/></tool_response>", []string{`{"type":"function_call_output","call_id":"c","output":"<import src=\"prose.txt\"/>"}`}},
		{"inside an agent", "<user><agent src=\"x.md\" local>do <import src=\"mark.txt\"/></agent></user>", []string{userJSON("(x.md on 1 parts)")}},
		{"namespace", "<import src=\"tools.md\" namespace=\"a.b-c\"/>", []string{userJSON("see the note")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := l.load(t, tt.src)
			if err != nil {
				t.Fatal(err)
			}
			items, err := f.Items(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, it := range items {
				got = append(got, it.Item.JSON())
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if same := f.Rewrite(func(Element, Attr) (string, bool) { return "", false }); same != tt.src {
				t.Errorf("the file's own text is %q", same)
			}
		})
	}
	f, err := l.load(t, "<import src=\"tools.md\"/><config model=\"n\"/><tool name=\"c\"/>")
	if err != nil || len(f.Tools) != 3 || f.Config.Model != "m" || len(f.Elements) != 3 || len(f.Imports) != 2 {
		t.Fatalf("%v: %d tools, %d elements, %d imports, %+v", err, len(f.Tools), len(f.Elements), len(f.Imports), f.Config)
	}
	if b := f.Tools[1]; b.File != "lib/more.md" || b.Base != "/lib/more.md" || b.Line != 1 || f.Tools[2].Base != "" {
		t.Errorf("%+v", b.Element)
	}
}

// M4 M5 M6: mistakes are told with the file they stand in; a circle with its
// way; too much is refused.
func TestImportErrors(t *testing.T) {
	l := library{
		"a.md": "<user>a</user>\n<import src=\"b.md\"/>", "b.md": "\n <import src=\"a.md\"/>", "self.txt": "x <import src=\"self.txt\"/>",
		"bad.md": "<user>x</user>\nstray\n<config temperature=\"hot\"/>", "chat.md": "<assistant>x</assistant>", "loose.txt": "a </user> b <user>",
		"list.md": strings.Repeat("<import src=\"leaf.md\"/>", 600), "leaf.md": "<user>x</user>",
		"main.md": "", "prose.txt": "just text", "doc.md": "<doc src=\"gone.txt\" local/>",
	}
	for i := range 40 {
		l[fmt.Sprintf("d%d.md", i)] = fmt.Sprintf("<import src=\"d%d.md\"/>", i+1)
	}
	tests := []struct{ name, src, want string }{
		{"not there", "<import src=\"gone.md\"/>", "main.md:1:1: <import> cannot be read: file does not exist: <import src=\"gone.md\"/>"},
		{"circle", "<import src=\"a.md\"/>", "b.md:2:2: <import> is not followed: the file imports itself: a.md → b.md → a.md: <import src=\"a.md\"/>"},
		{"itself", "<user><import src=\"self.txt\"/></user>", "self.txt:1:3: <import> is not followed: the file imports itself: self.txt → self.txt: <import src=\"self.txt\"/>"},
		{"the file itself", "<import src=\"main.md\"/>", "main.md:1:1: <import> is not followed: the file imports itself: main.md → main.md: <import src=\"main.md\"/>"},
		{"mistakes inside", "<config max_tokens=\"x\"/>\n<import src=\"bad.md\"/>\nend", "main.md:1:9: <config>: max_tokens is not a whole number above zero: \"x\": max_tokens=\"x\" (such as max_tokens=\"1000\")\nbad.md:2:1: text outside of any element: stray (put it inside <user> … </user>)\nbad.md:3:9: <config>: temperature is not a number: \"hot\": temperature=\"hot\" (such as temperature=\"0.7\")\nmain.md:3:1: text outside of any element: end (put it inside <user> … </user>)"},
		{"prose at the top", "<import src=\"prose.txt\"/>", "prose.txt:1:1: text outside of any element: just text (put it inside <user> … </user>)"},
		{"messages in a message", "<user>\n<import src=\"chat.md\"/></user>", "chat.md:1:1: <assistant> belongs at the top level, not in a file that is imported inside <user> (write text that is not a tag in RAW| … |RAW)\nchat.md:1:13: </assistant> closes nothing"},
		{"ends the message", "<user><import src=\"loose.txt\"/></user>", "loose.txt:1:3: </user> closes nothing\nloose.txt:1:13: <user> belongs at the top level, not in a file that is imported inside <user> (write text that is not a tag in RAW| … |RAW)"},
		{"too deep", "<import src=\"d0.md\"/>", "d31.md:1:1: <import> is not followed: imports are nested more than 32 deep: main.md → d0.md → "},
		{"too many", "<import src=\"list.md\"/><import src=\"list.md\"/>", "list.md:1:9155: <import> is not followed: there are more than 1000 imports: <import src=\"leaf.md\"/>"},
		{"namespace twice", "<import src=\"leaf.md\" namespace=\"a\"/><import src=\"leaf.md\" namespace=\"a\"/>", "main.md:1:38: a second <import> has the namespace a: <import src=\"leaf.md\" namespace=\"a\"/>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := l.load(t, tt.src)
			var list ErrorList
			if !errors.As(err, &list) || !strings.HasPrefix(err.Error(), tt.want) || tt.name == "too many" && len(list) > 1 {
				t.Errorf("got\n%v\nwant\n%s", err, tt.want)
			}
			if _, again := f.Items(t.Context(), l); again == nil {
				t.Error("Items forgets the error")
			}
		})
	}
	f, err := l.load(t, "<user>a</user>\n<user><import src=\"doc.md\"/></user>")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Items(t.Context(), l); err == nil || err.Error() != `doc.md:1:1: <doc> cannot be read: file does not exist: <doc src="gone.txt" local/>` {
		t.Error(err)
	}
}

// What Parse reads has imports that are not followed: nothing is left out
// without a word.
func TestImportNotFollowed(t *testing.T) {
	for _, src := range []string{"<import src=\"a.md\"/>", "<user>x <import src=\"a.md\"/></user>"} {
		f, err := Parse("t.md", []byte(src))
		if err != nil {
			t.Error(err)
		}
		if _, err := f.Items(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "<import> is not followed here: a.md") {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestImportCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Load(ctx, Source{Text: []byte("<import src=\"a.md\"/>")}, library{})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// CHATMD, <agent>: its answer stands in its place, as exact text.
func TestAgentInMessage(t *testing.T) {
	var asked []Ref
	answer := ResolverFunc(func(_ context.Context, ref Ref) ([]byte, string, error) {
		asked = append(asked, ref)
		if ref.Tag == "agent" {
			return []byte(" the <answer> "), "", nil
		}
		return []byte("text of " + ref.Src), "", nil
	})
	f, err := Parse("t.md", []byte("<user>Before <agent src=\"a.md\" local>\n sum up <doc src=\"b.txt\" local strip/> <img src=\"https://x\"/> </agent> after <agent src=\"c.md\" local/></user>"))
	if err != nil {
		t.Fatal(err)
	}
	items, err := f.Items(t.Context(), answer)
	if err != nil || items[0].Item.JSON() != userJSON("Before  the <answer>  after  the <answer> ") {
		t.Errorf("%v, %v", items, err)
	}
	if len(asked) != 3 || !asked[0].Strip || asked[1].Src != "a.md" || len(asked[1].Input) != 2 || len(asked[2].Input) != 0 {
		t.Errorf("%+v", asked)
	}
}

// M4: what is wrong with an element's source is told once, by Items too.
func TestRefusedOnce(t *testing.T) {
	for src, want := range map[string]string{
		"<import src=\"https://x\"/>":                           "t.md:1:9: <import>: files are not imported from the network: src=\"https://x\" (download it)",
		"<user><import/></user>":                                "t.md:1:7: <import> needs a src: <import/> (write <import src=\"…\"/>)",
		"<user><agent src=\"a.md\">q</agent></user>":            "t.md:1:14: <agent>: src is neither a URL nor marked as a file: a.md: src=\"a.md\" (add the attribute local to read a file)",
		"<user><doc src=\"a.txt\"/><img src=\"\"/></user>\n<b>": "t.md:1:12: <doc>: src is neither a URL nor marked as a file: a.txt: src=\"a.txt\" (add the attribute local to read a file)\nt.md:1:25: <img> needs a src: <img src=\"\"/> (write <img src=\"…\" local/>)\nt.md:2:1: unknown tag <b> at the top level (tags at the top level are: config, tool, system, developer, user, assistant, msg, tool_call, tool_response, reasoning, item, import, script, shell_access, moderator_runtime)",
	} {
		f, err := Parse("t.md", []byte(src))
		_, again := f.Items(t.Context(), nil)
		if err == nil || err.Error() != want || again == nil || again.Error() != want {
			t.Errorf("%s: got\n%v\n%v\nwant\n%s", src, err, again, want)
		}
	}
}
