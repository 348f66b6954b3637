// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func convertPage(t testing.TB, source string) *webPage {
	t.Helper()
	p := &webPage{url: "https://example.org/dir/page"}
	if err := p.convertHTML(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPageMarkdown(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"heading", `<h1>A <b>b</b></h1>x<h3> </h3><h2>C#</h2>`, "# A **b**\n\nx\n\n## C#"},
		{"white space", "<p> a\n b\t<i> c </i>d</p>  <p>e&nbsp;f", "a b *c* d\n\ne f"},
		{"unclosed", "<p>a <b>b<p>c</b> d", "a **b**\n\n**c** d"},
		{"break", "a<br>b<br><br>c", "a\nb\n\nc"},
		{"list", "<ul><li>a<li>b<ol start=9><li>c<li>d</ol><li><p>e<p>f</ul>g", "- a\n- b\n  9. c\n  10. d\n- e\n\n  f\n\ng"},
		{"list of nothing", "a<ul><li></li><li> </li></ul>b", "a\n\nb"},
		{"quote", "<blockquote><p>a<p>b<ul><li>c</ul></blockquote>", "> a\n>\n> b\n>\n> - c"},
		{"code", "<p>a <code>x  y</code>, <code>`</code>, <kbd></kbd>z", "a `x y`, `` ` ``, z"},
		{"block of code", "<pre><code class=\"x language-go\">a\n\n  b\n</code></pre>", "```go\na\n\n  b\n```"},
		{"block of code with fences", "<ul><li><pre>```\nx</pre></ul>", "- ````\n  ```\n  x\n  ````"},
		{"lines by br in code", "<pre>a<br>b</pre>", "```\na\nb\n```"},
		{"links", `<a href="x(1).html#f">a</a> <a href="/b">b</a> <a href="?q">c</a> <a href="//h/d">d</a> <a href="https://e.org">e</a>`,
			"[a](https://example.org/dir/x%281%29.html#f) [b](https://example.org/b) [c](https://example.org/dir/page?q) [d](https://h/d) [e](https://e.org)"},
		{"links to nowhere", `<a>a</a> <a href="javascript:x()">b</a> <a href="#c">c</a> <a href="http://[">d</a> <a href="/e"><svg></svg></a>`, "a b c d"},
		{"link to its own heading", `<h2>T<a href="#t">¶</a></h2>`, "## T"},
		{"base", `<base href="https://other.org/x/"><a href="y">a</a>`, "[a](https://other.org/x/y)"},
		{"card", `a<a href="/c"><h3>T</h3><p>text</p></a>b`, "a\n\n### [T text](https://example.org/c)\nb"},
		{"images", `<img src="i.png" alt="a
b"> <img alt=c> <img src="data:image/png;base64,AAAA" alt=d> <img>`, "![a b](https://example.org/dir/i.png) c d"},
		{"table", "<table><caption>T</caption><thead><tr><th>a<th>b<tbody><tr><td>1|2<td>x<br>y<tr><td colspan=2>z</table>w",
			"T\n\n| a | b |\n| --- | --- |\n| 1\\|2 | x y |\n| z | |\n\nw"},
		{"table that places things", "<table><tr><td><table><tr><td>a</table><td><ul><li>b</ul></table>", "a\n\n- b"},
		{"table of one column", "<table><tr><td>a<tr><td>b</table>", "a\nb"},
		{"terms", "<dl><dt>a<dd>b<dd>c</dl>", "a\n: b\n: c"},
		{"left out", `<nav>n</nav><div role=navigation>n</div><script>s</script><style>s</style><noscript>n</noscript><!-- c --><template>t</template>
<form><input value=i><select><option>o</select><textarea>t</textarea><button>b</button></form>
<p hidden>h<p style="color:red; DISPLAY : none">h<p aria-hidden=true>h<p>kept</p><footer>f</footer>`, "kept"},
		{"main", "<header>h</header><div>side</div><main><p>" + strings.Repeat("word ", 20) + "<footer>f</footer></main>", strings.TrimSpace(strings.Repeat("word ", 20)) + "\n\nf"},
		{"a small main is not all", "<main>m</main><div>" + strings.Repeat("word ", 20) + "</div>", "m\n" + strings.TrimSpace(strings.Repeat("word ", 20))},
		{"article", "<div>menu</div><article><h1>A</h1>" + strings.Repeat("w", 100) + "</article>", "# A\n\n" + strings.Repeat("w", 100)},
		{"formula", `<math alttext="x^2"><mi>x</mi></math>`, "$x^2$"},
		{"what nobody sees", "a\u200bb\u00ad\u202ec&#0;&#7;d", "abc\ufffdd"},
	} {
		if diff := cmp.Diff(c.want, convertPage(t, c.source).text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestPageNotes(t *testing.T) {
	for _, c := range []struct{ source, title, note string }{
		{"<title> a\n<b> </title>", "a <b>", "no text was found"},
		{"<svg><title>s</title></svg><title>t</title>x", "", ""},
		{`<meta http-equiv=Refresh content="0; URL='/next'">`, "", "leads on to https://example.org/next"},
		{strings.Repeat("<p>x", maxPageTags+5), "", "its end is missing"},
	} {
		p := convertPage(t, c.source)
		if c.title != "" && p.title != c.title || !strings.Contains(p.note, c.note) {
			t.Errorf("%.60s: title %q, note %q", c.source, p.title, p.note)
		}
	}
}

// A3: what a page costs is bounded by its size, whatever it is made of. Each of
// these took a plain converter hours or all memory.
func TestPageBombs(t *testing.T) {
	rep := strings.Repeat
	var bold strings.Builder
	for i := range 400 {
		fmt.Fprintf(&bold, "<b x=%d>", i)
	}
	for name, source := range map[string]string{
		"brackets":          rep("[", 1<<18),
		"backticks":         rep("` ", 1<<17),
		"code":              "<code>" + rep("`", 1<<18) + "</code>",
		"formatting":        "<p>" + bold.String() + rep("<p>x", 40_000),
		"kinds":             "<p><b><i><code><u><s><font><tt><a href=x>" + rep("<p>x", 40_000),
		"quotes":            rep("<blockquote>", 300) + rep("x<br>", 40_000),
		"lists":             rep("<ul><li>", 200) + rep("<pre>\n\n\n", 20_000),
		"code in lists":     rep("<ol start=999999><li>", 100) + "<pre>" + rep("x\n", 1<<18),
		"tables":            rep("<table><tr><td>", 120) + rep("x", 1<<18),
		"columns":           "<table>" + rep("<tr><td colspan=100000>x<td>y", 20_000),
		"cells":             "<table><tr>" + rep("<td>x", 40_000),
		"links":             rep("<a href=a>x</a>", 30_000),
		"links from afar":   "<base href='https://example.org/" + rep("y", 2000) + "/'>" + rep("<a href=a>x</a>", 30_000),
		"links in tables":   rep("<a href=x><table><tr><td>", 100) + "x",
		"attributes":        "<p " + rep("a=b ", 100_000) + ">x",
		"spaces":            rep("<b> </b>\n", 30_000) + "x",
		"end tags":          rep("</p>", 40_000),
		"selects":           rep("<select><option>x", 30_000),
		"frames":            rep("<frameset><frame>", 30_000),
		"drawings":          rep("<svg><g>", 200) + rep("<path/>", 40_000),
		"entities":          rep("&lt;&#x0;&notin;", 40_000),
		"headings in links": rep("<a href=x><h1>", 200) + rep("<h2>x", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			p := &webPage{url: "https://example.org/"}
			if err := p.convertHTML(t.Context(), source); err != nil && !strings.Contains(err.Error(), "nested too deeply") {
				t.Error(err)
			}
			if len(p.text) > maxMarkdown {
				t.Errorf("%d bytes of text", len(p.text))
			}
		})
	}
	t.Run("depth", func(t *testing.T) {
		err := (&webPage{url: "https://example.org/"}).convertHTML(t.Context(), rep("<div>", 600)+"x")
		if err == nil || !strings.Contains(err.Error(), "nested too deeply") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := (&webPage{url: "https://example.org/"}).convertHTML(ctx, rep("<p>x", 10_000)); err == nil {
			t.Error("the conversion went on")
		}
	})
}

// FuzzPage: no panic, valid text, bounded, and the same each time.
func FuzzPage(f *testing.F) {
	for _, s := range []string{
		"<title>t</title><p>a <b>b</b> <a href=x>c</a>",
		"<table><tr><td>a<td colspan=3>b<tr><td><pre>x\n</pre></table>",
		"<ul><li>a<ol start=-1><li><blockquote>b</ul><h1><a href=/><h2>x",
		"<base href=http://[><meta http-equiv=refresh content='0;url=x'><math alttext=`>",
		"<a href=x><table><tr><td><a href=y><b><svg><title><p>z",
		"\xff<code>`\x00</code><pre>\r\n&nbsp;</pre>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		source = strings.ToValidUTF8(source, "\ufffd")
		p := &webPage{url: "https://example.org/"}
		if err := p.convertHTML(t.Context(), source); err != nil {
			return
		}
		if !utf8.ValidString(p.text) || !utf8.ValidString(p.title) || strings.ContainsAny(p.title, "\n\r") {
			t.Errorf("title %q, text %q", p.title, p.text)
		}
		if len(p.text) > 100*len(source)+1000 {
			t.Errorf("%d bytes became %d", len(source), len(p.text))
		}
		again := &webPage{url: p.url}
		again.convertHTML(t.Context(), source)
		if again.text != p.text {
			t.Error("the second time it is another")
		}
	})
}

// FuzzPageURL: a URL that passes the check has a scheme, a host and no user,
// and its host is not an address that is refused.
func FuzzPageURL(f *testing.F) {
	for _, s := range []string{"http://example.com/a?b#c", "http://127.1/", "http://[::ffff:127.0.0.1]:80/", "HTTPS://u@h", "http://0x7f.1", "http://a%00b/"} {
		f.Add(s)
	}
	w := &webPages{}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := w.checkURL(raw)
		if err != nil {
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Hostname() == "" {
			t.Errorf("%q passes as %v", raw, u)
		}
		if v, err := url.Parse(u.String()); err != nil || v.Host != u.Host {
			t.Errorf("%q is read as %q and then as %v, %v", raw, u.Host, v, err)
		}
	})
}
