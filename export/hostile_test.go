// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// elements are those of a page, each with the attributes that it may have.
var elements = map[string]string{
	"html": "lang", "head": "", "meta": "charset http-equiv content name", "title": "", "style": "", "script": "", "body": "",
	"header": "class", "footer": "", "main": "id", "nav": "class aria-label", "section": "class id aria-label", "article": "class id data-kind data-problem data-source",
	"div": "class role dir", "p": "class id role hidden", "span": "class role aria-level title", "h1": "", "h3": "", "h4": "", "h5": "", "h6": "",
	"a": "class href rel download aria-label", "b": "", "small": "", "em": "", "strong": "", "s": "", "code": "", "pre": "class tabindex", "ins": "", "del": "", "br": "", "hr": "", "kbd": "aria-hidden",
	"ul": "class aria-label", "ol": "class start aria-label", "li": "", "dl": "class", "dt": "", "dd": "", "blockquote": "",
	"table": "", "thead": "", "tbody": "", "tr": "", "th": "class", "td": "class",
	"details": "class open", "summary": "", "figure": "class id", "figcaption": "class", "img": "alt decoding src", "time": "datetime title",
	"label": "class", "input": "id type placeholder autocomplete spellcheck aria-describedby", "select": "id", "option": "value", "output": "id for", "button": "type id class aria-label aria-pressed title",
}

// checkPage reports what a page holds that is not ours.
func checkPage(data []byte, fail func(format string, args ...any)) {
	doc, err := html.Parse(bytes.NewReader(data))
	if err != nil {
		fail("%v", err)
		return
	}
	ids := map[string]bool{}
	scripts, styles, mains := 0, 0, 0
	for n := range doc.Descendants() {
		switch n.Type {
		case html.CommentNode:
			fail("a comment: %q", n.Data)
		case html.TextNode:
			checkText(n.Data, fail)
		case html.ElementNode:
			allowed, known := elements[n.Data]
			if !known {
				fail("an element <%s>", n.Data)
				continue
			}
			switch n.Data {
			case "script":
				scripts++
				checkOwn(n, "page.js", fail)
			case "style":
				styles++
				checkOwn(n, "page.css", fail)
			case "main":
				mains++
			case "footer":
				if n.Parent.Data != "body" {
					fail("the footer is in a <%s>", n.Parent.Data)
				}
			case "article":
				if !within(n, "main") {
					fail("an entry outside of the conversation")
				}
			}
			for _, a := range n.Attr {
				if !slices.Contains(strings.Fields(allowed), a.Key) {
					fail("<%s %s=%q>", n.Data, a.Key, a.Val)
				}
				checkAttr(n.Data, a, ids, fail)
			}
		}
	}
	if scripts != 1 || styles != 1 || mains != 1 {
		fail("%d scripts, %d styles, %d conversations", scripts, styles, mains)
	}
}

func within(n *html.Node, tag string) bool {
	for n = n.Parent; n != nil; n = n.Parent {
		if n.Data == tag {
			return true
		}
	}
	return false
}

// checkOwn proves that an element holds a file of ours and nothing else.
func checkOwn(n *html.Node, name string, fail func(format string, args ...any)) {
	own, err := os.ReadFile(name)
	if err != nil || n.FirstChild == nil || n.FirstChild.NextSibling != nil || n.FirstChild.Data != string(own) {
		fail("<%s> is not %s: %v", n.Data, name, err)
	}
}

// checkText proves that all of a text can be seen, and in its place.
func checkText(s string, fail func(format string, args ...any)) {
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\u200c' || r == '\u200d':
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r):
			fail("the text %q holds %U", s, r)
			return
		}
	}
}

func checkAttr(tag string, a html.Attribute, ids map[string]bool, fail func(format string, args ...any)) {
	checkText(a.Val, fail)
	begins := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(a.Val, p) })
	}
	switch a.Key {
	case "id":
		if ids[a.Val] {
			fail("two elements have the id %q", a.Val)
		}
		ids[a.Val] = true
	case "href":
		if !begins("#e", "#i", "#log", "http://", "https://", "mailto:", "data:application/octet-stream;base64,") {
			fail("a link to %q", a.Val)
		}
	case "src":
		if !begins("data:image/") {
			fail("<%s src=%q>", tag, a.Val)
		}
	}
}

// hostile are fragments of texts that want to be more than text.
var hostile = []string{
	"</script>", "<script>alert(1)</script>", "<!--", "-->", "<![CDATA[", "]]>", "</style>", "</pre>", "</details></div></article></main>", "<plaintext>", "<noscript>", "<template>", "<table><td>", "<svg onload=alert(1)>",
	`"onload="alert(1)`, `' onmouseover='x`, "`", `"><img src=x onerror=alert(1)>`, "<a href='javascript:alert(1)'>x</a>", "<base href=//evil>", `<meta http-equiv=refresh content="0;url=//evil">`, "<iframe srcdoc=x>", "<form action=//evil>", "<style>*{display:none}</style>",
	"[x](javascript:alert(1))", "[x](<javascript:alert(1)>)", "[x](java\nscript:alert(1))", "[x](JaVaScRiPt&colon;alert(1))", "![i](http://evil.example/i.png)", "![i](data:image/svg+xml,<svg/onload=alert(1)>)", "<javascript:alert(1)>", "<http://a.example/\"onclick=x>", "[x]: javascript:alert(1)\n\n[x]", "http://a.example/\"><script>", "<a@b.example>", `[x](https://a.example/"onload=x "t")`,
	"```html\n</pre><script>\n```", "| a | b |\n|---|:-:|\n| </td></table> | `|` |", "# <b>h</b>\n", "- [x] done\n", "~~<i>~~", "**<b>**", "> <q>\n", "1. <li>\n", "    </code></pre>\n", "***\n",
	"&#x202e;&lt;script&gt;", "&NewLine;&Tab;", "&#0;&#x1b;[31m", "&#xd;", "\u202e", "\u2066\u2069", "\x1b[31mred\x1b]8;;http://evil\x07", "\x00", "\xff\xfe", "\u2028", "\u00ad\u200b\ufeff", "\U000e0041", "\r\n", "\r", "\t", "\u0085", "{{.}}", "\\", "\\u003c", "e\u0301", "𝒳", "\ufffe",
	"*** Begin Patch\n*** Update File: <x>\n@@\n-<a>\n+</ins>\n*** End Patch\n", "--- a\n+++ b\n@@ -1,2 +1 @@\n-</del>\n+<b>\n \n", "@@ -1,99999999999999999999 +1 @@\n", `{"a":"</pre>","b":[1,{"<c>":null}]}`, `{"a":`, "data:text/html;base64,PHNjcmlwdD4=", "data:image/png;base64,iVBORw0KGgo=", `data:image/png;base64,"onerror="x`, "data:image/png\" onerror=\"x;base64,AAAA", "data:image/svg+xml;base64,PHN2Zy8+", "../../etc/passwd", "C:\\con", "",
}

// hostileText draws a text of such fragments.
func hostileText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(hostile), rapid.SampledFrom(hostile), rapid.StringN(0, 5, -1)), 0, 4).Draw(t, "parts")
		return strings.Join(parts, rapid.SampledFrom([]string{"", " ", "\n", "\n\n"}).Draw(t, "between"))
	})
}

// hostileItem draws an item that says such texts wherever one can be said.
func hostileItem(t *rapid.T, s func() string, callID string) item.Item {
	call, caller := string(item.Quote(callID)), s
	q := func() string { return string(item.Quote(caller())) }
	parts := func() string {
		return `[{"type":"input_text","text":` + q() + `},{"type":"input_image","image_url":` + q() + `,"detail":` + q() + `},{"type":"input_image","file_id":` + q() + `},{"type":"input_file","filename":` + q() + `,"file_data":` + q() + `},{"type":"input_file","file_url":` + q() +
			`},{"type":"output_text","text":` + q() + `,"annotations":[{"type":"url_citation","url":` + q() + `,"title":` + q() + `,"start_index":0,"end_index":1}]},{"type":"refusal","refusal":` + q() + `},{"type":` + q() + `,` + q() + `:` + q() + `}]`
	}
	text := rapid.SampledFrom([]func() string{
		func() string {
			role := rapid.SampledFrom([]string{"user", "assistant", "system", "developer", "critic<b>"}).Draw(t, "role")
			return `{"type":"message","role":"` + role + `","id":` + q() + `,"status":` + q() + `,"phase":"commentary","content":` + q() + `}`
		},
		func() string { return `{"type":"message","role":"assistant","content":` + parts() + `}` },
		func() string { return `{"type":"message","role":"user","content":` + parts() + `}` },
		func() string { return `{"type":"message","role":` + q() + `,"content":7}` },
		func() string {
			return `{"type":"reasoning","id":` + q() + `,"summary":[{"type":"summary_text","text":` + q() + `}],"content":[{"type":"reasoning_text","text":` + q() + `}],"encrypted_content":` + q() + `}`
		},
		func() string {
			return `{"type":"function_call","call_id":` + call + `,"name":` + q() + `,"namespace":` + q() + `,"arguments":` + q() + `}`
		},
		func() string {
			return `{"type":"function_call","call_id":` + call + `,"name":"f","arguments":` + string(item.Quote(`{`+q()+`:`+q()+`,"n":[`+q()+`,{"m":`+q()+`}]}`)) + `}`
		},
		func() string {
			return `{"type":"custom_tool_call","call_id":` + call + `,"name":` + q() + `,"input":` + q() + `}`
		},
		func() string { return `{"type":"function_call_output","call_id":` + call + `,"output":` + q() + `}` },
		func() string {
			return `{"type":"function_call_output","call_id":` + call + `,"output":` + parts() + `}`
		},
		func() string {
			return `{"type":"shell_call","call_id":` + call + `,"action":{"commands":[` + q() + `]}}`
		},
		func() string {
			return `{"type":"shell_call_output","call_id":` + call + `,"output":[{"stdout":` + q() + `,"stderr":` + q() + `,"outcome":{"type":` + q() + `}}]}`
		},
		func() string {
			return `{"type":"apply_patch_call","call_id":` + call + `,"operation":{"type":` + q() + `,"path":` + q() + `,"diff":` + q() + `}}`
		},
		func() string {
			return `{"type":"computer_call_output","call_id":` + call + `,"output":{"type":"computer_screenshot","image_url":` + q() + `}}`
		},
		func() string {
			return `{"type":"image_generation_call","id":"i","status":` + q() + `,"result":` + q() + `}`
		},
		func() string {
			return `{"type":"code_interpreter_call","id":"i","status":"failed","code":` + q() + `,"outputs":[{"type":"logs","logs":` + q() + `},{"type":"image","url":` + q() + `}]}`
		},
		func() string {
			return `{"type":"mcp_call","id":"i","server_label":` + q() + `,"name":` + q() + `,"arguments":` + q() + `,"output":` + q() + `}`
		},
		func() string { return `{"type":` + q() + `,"id":` + q() + `,"x":{` + q() + `:[` + q() + `]}}` },
		func() string { return `{"type":"web_search_call","status":` + q() + `,"action":` + q() + `}` },
	}).Draw(t, "item")()
	it, err := item.ParseString(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return it
}

// hostileBody draws any body with such texts.
func hostileBody(t *rapid.T, s func() string) session.Body {
	id := func() string { return rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "call") }
	it := func() item.Item { return hostileItem(t, s, id()) }
	n := func() int64 { return rapid.Int64Range(-2, 9).Draw(t, "number") }
	rule := func() *session.Rule {
		return &session.Rule{Verdict: session.Verdict(s()), Tool: s(), Member: s(), Prefix: []string{s()}, Under: s()}
	}
	inner := func() string { return rapid.SampledFrom([]string{"inner", "top", "gone<b>", ""}).Draw(t, "session") }
	return rapid.SampledFrom([]func() session.Body{
		func() session.Body { return session.InputItem{Item: it()} },
		func() session.Body { return session.InputItem{Item: it()} },
		func() session.Body { return session.RunStarted{} },
		func() session.Body { return session.TurnStarted{Turn: int(n())} },
		func() session.Body { return session.OutputItem{Item: it(), Partial: n() > 5} },
		func() session.Body { return session.OutputItem{Item: it()} },
		func() session.Body {
			return session.TurnEnded{Turn: int(n()), Status: rapid.SampledFrom([]string{"completed", "failed", "cancelled", "<b>"}).Draw(t, "status"), Reason: s(), Usage: &api.Usage{InputTokens: n() * 1000}, Cost: float64(n())}
		},
		func() session.Body {
			return session.ApprovalAsked{CallID: id(), Tool: s(), Arguments: s(), Reason: s()}
		},
		func() session.Body {
			return session.Approval{CallID: id(), Allowed: n() > 3, Reason: s(), By: s(), Edited: s(), Remember: rule()}
		},
		func() session.Body { return session.CallStarted{CallID: id(), Arguments: s(), Session: inner()} },
		func() session.Body {
			return session.SubagentUsage{CallID: id(), Session: inner(), Turns: int(n()), Tokens: n()}
		},
		func() session.Body { return session.Paused{CallID: id(), Session: inner()} },
		func() session.Body {
			return session.CallOutput{CallID: id(), Item: it(), Failed: n() > 3, Edited: n() > 3}
		},
		func() session.Body { return session.CallDropped{CallID: id(), Reason: s()} },
		func() session.Body {
			return session.Noticed{Turn: int(n()), Kind: s(), ItemID: s(), CallID: s(), Text: s()}
		},
		func() session.Body { return session.ReasoningDropped{Reason: s()} },
		func() session.Body { return session.Quarantined{Seq: n(), Reason: s()} },
		func() session.Body { return session.ItemsWithdrawn{Seqs: []int64{n()}, Reason: s(), By: s()} },
		func() session.Body {
			return session.Compacted{Through: n(), By: s(), Items: []item.Item{it()}, Before: n(), After: n()}
		},
		func() session.Body { return session.Restored{Seq: n()} },
		func() session.Body { return session.Collapsed{Seqs: []int64{n(), n()}, By: n()} },
		func() session.Body { return session.StopAsked{Why: s(), Detail: s()} },
		func() session.Body { return session.Stopped{Why: s(), Detail: s()} },
		func() session.Body { return session.Note{Item: it()} },
	}).Draw(t, "body")()
}

func hostileLog(t *rapid.T, most int) []session.Entry {
	s := func() string { return hostileText().Draw(t, "text") }
	list := make([]session.Entry, rapid.IntRange(0, most).Draw(t, "entries"))
	for i := range list {
		list[i] = session.Entry{Seq: int64(i) + 1, Body: hostileBody(t, s)}
	}
	return list
}

// J3: whatever was said, a page holds our elements, attributes and script and
// nothing else, all of its text can be seen, and it is the same page each time.
func TestNothingBecomesMarkup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := hostileText()
		log := export.Log{
			Info:    session.Info{ID: "top", Name: s.Draw(t, "name"), Title: s.Draw(t, "title"), Path: s.Draw(t, "path"), Parent: s.Draw(t, "parent"), At: 2},
			Entries: hostileLog(t, 8),
		}
		inner := hostileLog(t, 4)
		log.Nested = func(id string) ([]session.Entry, error) {
			if id != "inner" {
				return nil, session.ErrNotFound
			}
			return inner, nil
		}
		var out, again bytes.Buffer
		if err := export.HTML(&out, log); err != nil {
			t.Fatal(err)
		}
		if err := export.HTML(&again, log); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Errorf("the second page is another one: %v", err)
		}
		checkPage(out.Bytes(), func(format string, args ...any) { t.Errorf(format, args...) })
	})
}

// FuzzPage: no text becomes markup, in a message, a call or an output.
func FuzzPage(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		out, err := item.Output("a", item.Text(strings.ToValidUTF8(two, "?")))
		if err != nil {
			t.Fatal(err)
		}
		log := export.Log{Entries: []session.Entry{
			{Seq: 1, Body: session.InputItem{Item: item.User(one)}},
			{Seq: 2, Body: session.OutputItem{Item: item.Assistant(one + two)}},
			{Seq: 3, Body: session.OutputItem{Item: item.Call("a", two, one)}},
			{Seq: 4, Body: session.CallOutput{CallID: "a", Item: out}},
			{Seq: 5, Body: session.Stopped{Why: one, Detail: two}},
		}}
		checkPage(page(t, log), t.Errorf)
	})
}
