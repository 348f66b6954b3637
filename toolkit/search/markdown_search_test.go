// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

// manual is a small set of documents on which searches are tried.
var manual = map[string]string{
	"docs/harbour/mooring.md": `# Mooring

How a boat is made fast in the harbour.

## Lines and knots

Take the bowline for a loop that must not slip. A cleat hitch holds a line that has to be let go quickly.
Check the lines again when the tide turns.

## Fenders

Hang three fenders over the side, at the height of the quay. Round ones go to the stern.
`,
	"docs/harbour/fees.md": `---
title: Fees and opening times
tags: [money, office]
---
The harbour office opens at eight. Pay in cash or by card.

| length | a night |
|---|---|
| up to 8 m | 14 |
| up to 12 m | 21 |

# Discounts

Members of the sailing club pay half. Children are free.
`,
	"docs/engine.md": `# Engine

## Starting in the cold

Preheat for twenty seconds, then turn the key. When the diesel has gelled, nothing helps but warmth.

## Maintenance

### Changing the oil

Every hundred hours. Warm the engine first, so that the oil runs.

` + "```sh\n# reset the counter of hours\nenginectl resetServiceCounter --hours 0\n```" + `

### Configuring the alarm

The alarm of the cooling water is configured in ` + "`alarm.toml`" + `: set ` + "`max_coolant_temp`" + ` to 95.

### Troubleshooting

Black smoke tells of too much fuel, white smoke of water, blue smoke of oil that is burnt.
`,
	"docs/weather.md": `# Weather

Forecasts come over the radio at six. A falling barometer and a ring around the moon announce wind.

# Fog

In fog sound the horn every two minutes and keep a lookout. Radar reflectors must hang high.
`,
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newKit has both tools over roots.
func newKit(t *testing.T, more ...files.Root) *kittest.Kit {
	t.Helper()
	k := kittest.New(t, more...)
	k.Add(IndexTool("index_markdown_docs", k.Files))
	k.Add(Tool("markdown_search", k.Files))
	return k
}

func newManual(t *testing.T) *kittest.Kit {
	k := newKit(t)
	for name, text := range manual {
		k.Write(name, text)
	}
	return k
}

// What people ask finds the right snippet first: exact words, other forms of them,
// typing errors, headings, parts of identifiers, questions.
func TestSearchQuality(t *testing.T) {
	k := newManual(t)
	k.OK("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "manual", "description": "the boat"})
	for query, want := range map[string]string{
		"bowline":                 "Mooring > Lines and knots",
		"cleat hitch":             "Mooring > Lines and knots",
		"barometer":               "\nWeather\n",
		"fender":                  "Mooring > Fenders",
		"preheating":              "Engine > Starting in the cold",
		"how do I change oil":     "Engine > Maintenance > Changing the oil",
		"oil changes":             "Engine > Maintenance > Changing the oil",
		"configuration of alarms": "Engine > Maintenance > Configuring the alarm",
		"discount for a member":   "Fees and opening times > Discounts",
		"baromter":                "\nWeather\n",
		"bowlien":                 "Mooring > Lines and knots",
		"confgiure the alram":     "Engine > Maintenance > Configuring the alarm",
		"radar refelctor":         "\nFog\n",

		"starting cold engine":                   "Engine > Starting in the cold",
		"service counter":                        "Engine > Maintenance > Changing the oil",
		"resetServiceCounter":                    "Engine > Maintenance > Changing the oil",
		"max_coolant_temp":                       "Engine > Maintenance > Configuring the alarm",
		"maxCoolantTemp":                         "Engine > Maintenance > Configuring the alarm",
		"coolant":                                "Engine > Maintenance > Configuring the alarm",
		"what does blue smoke mean?":             "Engine > Maintenance > Troubleshooting",
		"when does the office open":              "fees.md, lines 1 to 10",
		"money":                                  "fees.md, lines 1 to 10",
		"what must I do in fog":                  "\nFog\n",
		"FENDERS":                                "Mooring > Fenders",
		"price for 12 m":                         "fees.md, lines 1 to 10",
		"the harbor fees":                        "Fees and opening times",
		"sound signals of the horn in the foggy": "\nFog\n",
	} {
		got := k.OK("markdown_search", kittest.Args{"query": query, "k": 3})
		first, _, _ := strings.Cut(got, "[2]")
		if !strings.Contains(first, want) {
			t.Errorf("%q: want %q first in\n%s", query, want, got)
		}
	}
}

func TestSearchResults(t *testing.T) {
	k := newManual(t)
	k.Fails("markdown_search", kittest.Args{"query": "x"}, "there is no index; make one with index_markdown_docs")
	k.OK("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "manual", "description": "the boat"})
	want := "[1] docs/harbour/mooring.md, lines 10 to 12, score 1.00\nMooring > Fenders\n```markdown\n## Fenders\n\nHang three fenders over the side, at the height of the quay. Round ones go to the stern.\n```"
	if got := k.OK("markdown_search", kittest.Args{"query": "fenders", "k": 1, "index_name": "manual"}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := k.OK("markdown_search", kittest.Args{"query": "resetServiceCounter", "k": 1}); !strings.Contains(got, "\n````markdown\n") || !strings.HasSuffix(got, "\n````") {
		t.Errorf("the fence can be closed from inside:\n%s", got)
	}
	if got := k.OK("markdown_search", kittest.Args{"query": "zzyzx"}); got != "Nothing found in 11 snippets (indexes: manual). Try other words." {
		t.Error(got)
	}
	k.Fails("markdown_search", kittest.Args{"query": "x", "index_name": "other"}, `there is no index "other"; there are: manual (the boat)`)
	k.Fails("markdown_search", kittest.Args{"query": "x", "vector_db_root": "docs"}, `there is no index in docs; make one`)
	k.Fails("markdown_search", kittest.Args{"query": "x", "index_name": "../manual"}, "a name is 1 to 64 letters")
	k.Fails("markdown_search", kittest.Args{"query": "!?"}, "the query has no words")
	k.Fails("markdown_search", kittest.Args{"query": strings.Repeat("x ", 3000)}, "the limit is 4000")
	k.Fails("markdown_search", kittest.Args{"query": "x", "k": -1}, "k cannot be negative")
}

// Outputs are bounded, whatever is asked for.
func TestSearchBounded(t *testing.T) {
	k := newKit(t)
	for i := range 60 {
		k.Write(fmt.Sprintf("d/%d.md", i), "```\n"+strings.Repeat("needle in the fence\n", 300)+"```\n")
	}
	k.OK("index_markdown_docs", kittest.Args{"root": "d", "index_name": "d"})
	got := k.OK("markdown_search", kittest.Args{"query": "needle", "k": 1000})
	if n := strings.Count(got, "\n(the text is left out"); len(got) > maxResultsBytes+50*200 || n == 0 || !strings.Contains(got, "[50] ") || strings.Contains(got, "[51] ") {
		t.Errorf("%d bytes, %d without text", len(got), n)
	}
}

func TestSearchAll(t *testing.T) {
	k := newManual(t)
	k.OK("index_markdown_docs", kittest.Args{"root": "docs/harbour", "index_name": "harbour"})
	k.OK("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "whole"})
	for _, name := range []string{"", "all"} {
		a := kittest.Args{"query": "fenders", "k": 10}
		if name != "" {
			a["index_name"] = name
		}
		got := k.OK("markdown_search", a)
		if strings.Count(got, "> Fenders\n") != 1 || !strings.Contains(got, ", index harbour\n") {
			t.Errorf("want one Fenders of the first index:\n%s", got)
		}
	}
	k.Write(".chatmd/index/broken.idx", "antiphon markdown index 1\nrubbish")
	k.Write(".chatmd/index/newer.idx", "antiphon markdown index 9\n")
	got := k.OK("markdown_search", kittest.Args{"query": "fenders"})
	for _, want := range []string{"[1] docs/harbour/mooring.md", "the index .chatmd/index/broken.idx cannot be used: it is damaged. Make it again with index_markdown_docs", "made by another version"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	k.Fails("markdown_search", kittest.Args{"query": "x", "index_name": "broken"}, `it is damaged. Make it again with index_markdown_docs and index_name "broken"`)
	k.Fails("markdown_search", kittest.Args{"query": "x", "index_name": "newer"}, "it was made by another version of this program. Make it again")
	k.OK("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "broken"})
	k.OK("markdown_search", kittest.Args{"query": "fenders", "index_name": "broken"})
}

// What a search shows stands in the file now.
func TestSearchChangedFiles(t *testing.T) {
	k := newManual(t)
	k.OK("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "manual"})
	k.Write("docs/weather.md", "A new beginning.\n\n"+manual["docs/weather.md"])
	if got := k.OK("markdown_search", kittest.Args{"query": "barometer", "k": 1}); !strings.Contains(got, "docs/weather.md, lines 3 to 5") {
		t.Errorf("a snippet that has moved:\n%s", got)
	}
	k.Write("docs/weather.md", "# Weather\n\nOther words.\n")
	if got := k.OK("markdown_search", kittest.Args{"query": "barometer", "k": 1}); strings.Contains(got, "Other words") || !strings.Contains(got, "since they were indexed: 1.") {
		t.Errorf("a snippet that has changed:\n%s", got)
	}
	if err := os.RemoveAll(filepath.Join(k.Dir, "docs")); err != nil {
		t.Fatal(err)
	}
	if got := k.OK("markdown_search", kittest.Args{"query": "fenders"}); !strings.Contains(got, "Nothing found") || !strings.Contains(got, "gone since they were indexed") {
		t.Error(got)
	}
}

func TestIndexMarkdownDocs(t *testing.T) {
	k := newManual(t)
	k.Write("docs/.hidden/a.md", "secret")
	k.Write("docs/.b.md", "secret")
	k.Write("docs/node_modules/c.md", "secret")
	k.Write("docs/text.txt", "secret")
	k.Write("docs/binary.md", "a\x00b")
	k.Write("docs/large.MD", strings.Repeat("x", MaxDocBytes+1))
	k.Write("docs/bad.md", "words \xff\xfe that are not text")
	k.Write(".gitignore", "# generated\n/docs/out/\n*.gen.md\n!keep.gen.md\n")
	k.Write("docs/.gitignore", "draft?.md\n**/deep/x.md\n")
	for _, name := range []string{"out/a.md", "sub/a.gen.md", "draft1.md", "a/deep/x.md"} {
		k.Write("docs/"+name, "secret")
	}
	k.Write("docs/keep.gen.md", "kept")
	got := k.OK("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "manual", "description": "two\nlines"})
	for _, want := range []string{"Indexed docs: 6 files (6 new, 0 changed, 0 unchanged, 0 removed), 13 snippets", "The index is .chatmd/index/manual.idx (",
		"Left out (2):", "docs/binary.md is a binary file", "docs/large.MD has 4194305 bytes; the limit is 4194304"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if got := k.OK("markdown_search", kittest.Args{"query": "secret"}); !strings.HasPrefix(got, "Nothing found") {
		t.Error(got)
	}
	if got := k.OK("markdown_search", kittest.Args{"query": "words that are not text", "k": 1}); !strings.Contains(got, "words \uFFFD") {
		t.Error(got)
	}
	before := k.Content(".chatmd/index/manual.idx")
	k.OK("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "manual", "description": "two lines"})
	if k.Content(".chatmd/index/manual.idx") != before {
		t.Error("the same files gave another index")
	}
	k.Write("docs/engine.md", "# Engine\n\nIt is electric now.\n")
	k.Write("docs/new.md", "new")
	if err := os.Remove(filepath.Join(k.Dir, "docs", "weather.md")); err != nil {
		t.Fatal(err)
	}
	if got := k.OK("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "manual"}); !strings.Contains(got, "6 files (1 new, 1 changed, 4 unchanged, 1 removed)") {
		t.Error(got)
	}
	if got := k.OK("markdown_search", kittest.Args{"query": "electric"}); !strings.Contains(got, "[1] docs/engine.md") {
		t.Error(got)
	}
	k.NoLeftovers()
}

func TestIndexMarkdownDocsRefuses(t *testing.T) {
	k := newManual(t)
	for want, a := range map[string]kittest.Args{
		"index_name is missing":                       {"root": "docs", "index_name": ""},
		`"all" means all indexes`:                     {"root": "docs", "index_name": "all"},
		"a name is 1 to 64 letters":                   {"root": "docs", "index_name": "a/b"},
		"does not begin with '.'":                     {"root": "docs", "index_name": "..", "description": "x"},
		"no such file or directory: doc. Similar":     {"root": "doc", "index_name": "a"},
		"is a file, not a directory":                  {"root": "docs/engine.md", "index_name": "a"},
		"../x is outside of what this tool may use":   {"root": "../x", "index_name": "a"},
		"../out is outside of what this tool may use": {"root": "docs", "index_name": "a", "vector_db_root": "../out"},
	} {
		k.Fails("index_markdown_docs", a, want)
	}
	k.Fails("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "a", "vector_db_root": "docs/engine.md"}, "docs/engine.md")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (library{Files: k.Files}).indexMarkdownDocs(ctx, indexMarkdownDocsInput{Root: "docs", IndexName: "a"}); err == nil {
		t.Error("it went on")
	}
	if _, err := os.Stat(filepath.Join(k.Dir, ".chatmd")); err == nil {
		t.Error("something was written")
	}
}

// A1: links out of the roots are neither read nor written through.
func TestIndexLinks(t *testing.T) {
	k := newManual(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "o.md"), []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	k.Symlink(outside, "docs/folder")
	k.Symlink(filepath.Join(outside, "o.md"), "docs/file.md")
	k.Symlink(outside, "way")
	k.OK("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "manual"})
	if got := k.OK("markdown_search", kittest.Args{"query": "outside"}); !strings.HasPrefix(got, "Nothing found") {
		t.Error(got)
	}
	k.Fails("index_markdown_docs", kittest.Args{"root": "way", "index_name": "a"}, "leads out of the root")
	k.Fails("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "a", "vector_db_root": "way"}, "leads out of the root")
	k.Fails("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "a", "vector_db_root": "way/deeper"}, "")
	k.Symlink("../../docs/engine.md", ".chatmd/index/link.idx")
	k.Fails("index_markdown_docs", kittest.Args{"root": "docs", "index_name": "link"}, "is a symbolic link")
	// A file that has become a link since it was indexed is not shown.
	if err := os.Remove(filepath.Join(k.Dir, "docs", "weather.md")); err != nil {
		t.Fatal(err)
	}
	k.Symlink(filepath.Join(outside, "o.md"), "docs/weather.md")
	if got := k.OK("markdown_search", kittest.Args{"query": "barometer"}); strings.Contains(got, "outside") {
		t.Error(got)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("written outside: %v %v", entries, err)
	}
}

// Indexes may be of any root, and be kept in any.
func TestIndexRoots(t *testing.T) {
	other := t.TempDir()
	k := newKit(t, files.Root{Name: "book", Path: other})
	if err := os.WriteFile(filepath.Join(other, "chapter.md"), []byte("# Chapter\n\nwhales"), 0o644); err != nil {
		t.Fatal(err)
	}
	k.Write("keep/x.md", "here")
	k.OK("index_markdown_docs", kittest.Args{"root": "book:.", "index_name": "book", "vector_db_root": "keep"})
	if got := k.OK("markdown_search", kittest.Args{"query": "whale", "vector_db_root": "keep"}); !strings.HasPrefix(got, "[1] book:chapter.md, lines 1 to 3, ") {
		t.Error(got)
	}
	k.OK("index_markdown_docs", kittest.Args{"root": filepath.Join(other), "index_name": "book", "vector_db_root": other})
	if got := k.OK("markdown_search", kittest.Args{"query": "whale", "vector_db_root": "book:"}); !strings.Contains(got, "book:chapter.md") {
		t.Error(got)
	}
}

func TestIgnoreRules(t *testing.T) {
	rules := func(lines string) (list []ignoreRule) {
		for line := range strings.Lines(lines) {
			if r, ok := parseIgnore(".", line); ok {
				list = append(list, r)
			}
		}
		return list
	}
	f, err := files.Open(files.Root{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		rules, path string
		folder, out bool
	}{
		{"a.md", "a.md", false, true}, {"a.md", "x/y/a.md", false, true}, {"/a.md", "x/a.md", false, false},
		{"x/a.md", "x/a.md", false, true}, {"x/a.md", "y/x/a.md", false, false}, {"x/", "x", true, true}, {"x/", "x", false, false},
		{"*.md\n!b.md", "b.md", false, false}, {"*.md\n!b.md", "a.md", false, true}, {"a*c", "a/c", false, false},
		{"**/c", "a/b/c", false, true}, {"a/**", "a/b/c", false, true}, {"a/**/c", "a/c", false, true}, {"a/**/c", "a/x/y/c", false, true},
		{"[ab].md", "b.md", false, true}, {"[!ab].md", "b.md", false, false}, {"[", "[", false, true}, {`\#x`, "#x", false, true}, {"# x", "# x", false, false},
		{"a.md  ", "a.md", false, true}, {"a?c", "abc", false, true}, {"a.c", "abc", false, false}, {"/", "x", true, false}, {"\r", "x", false, false},
	} {
		p, _ := f.In("", c.path)
		if got := ignored(rules(c.rules), p, c.folder); got != c.out {
			t.Errorf("%q of %q: %v", c.path, c.rules, got)
		}
	}
}

// An index stays in memory while its file is unchanged, and no longer.
func TestIndexStaysInMemory(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := files.Open(files.Root{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := library{f, new(readIndexes), new(judgedCalls)}
	load := func() *docIndex {
		t.Helper()
		at, err := l.indexPlace("", "docs")
		if err != nil {
			t.Fatal(err)
		}
		ix, err := l.loadIndex(t.Context(), "", at)
		if err != nil {
			t.Fatal(err)
		}
		return ix
	}
	index := func() {
		t.Helper()
		if _, err := l.indexMarkdownDocs(t.Context(), indexMarkdownDocsInput{Root: ".", IndexName: "docs"}); err != nil {
			t.Fatal(err)
		}
	}
	write("# Apples\n\nred")
	index()
	first := load()
	if load() != first {
		t.Error("an unchanged index was read again")
	}
	write("# Pears\n\ngreen")
	index()
	if second := load(); second == first || !strings.Contains(second.dictionary, "pear") {
		t.Error("an index that was made again is the old one")
	}
	kept := new(readIndexes)
	info, err := os.Stat(filepath.Join(dir, "a.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		kept.put(fmt.Sprint(i), first, sized{info, maxReadBytes / 2})
	}
	if len(kept.all) != 1 || kept.bytes != maxReadBytes/2 {
		t.Errorf("%d indexes of %d bytes are kept", len(kept.all), kept.bytes)
	}
}

// sized is a file of another size.
type sized struct {
	fs.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }

func BenchmarkIndexMarkdownDocs(b *testing.B) {
	dir := b.TempDir()
	size := 0
	for name, text := range corpus(2000, 10<<20) {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
		size += len(text)
	}
	f, err := files.Open(files.Root{Path: dir})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	sets := map[string]*tool.Set{} // a program makes its tools once
	call := func(b *testing.B, name, arguments string) {
		make := map[string]func(string, *files.Files) (tool.Tool, error){"index_markdown_docs": IndexTool, "markdown_search": Tool}
		if sets[name] == nil {
			t, err := make[name](name, f)
			if err != nil {
				b.Fatal(err)
			}
			if sets[name], err = tool.NewSet(t); err != nil {
				b.Fatal(err)
			}
		}
		if o := sets[name].Invoke(b.Context(), tool.Call{Name: name, Arguments: arguments}, output.Policy{}); o.Failed {
			b.Fatal(o.Error)
		}
	}
	index := func(b *testing.B) { call(b, "index_markdown_docs", `{"root":".","index_name":"all-of-it"}`) }
	b.Run("anew", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			if err := os.RemoveAll(filepath.Join(dir, ".chatmd")); err != nil {
				b.Fatal(err)
			}
			index(b)
		}
	})
	b.Run("again", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			index(b)
		}
	})
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			call(b, "markdown_search", `{"query":"bano korena stinoba wufu how do the gadorast"}`)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapSys)/(1<<20), "heap-MB")
	})
}

// K2: an index that somebody else wrote, such as one in a folder that was downloaded, shows nothing
// that nobody was asked about, whichever files it names.
func TestSearchOfForeignIndex(t *testing.T) {
	k := kittest.New(t)
	k.Write(".keys/a.md", "# word\n\nsecret\n")
	k.Files.Home(k.Dir)
	foreign := func(name, folder, path string) {
		x := newIndexer(&docIndex{folder: folder})
		text := k.Content(".keys/a.md") // as if it had been guessed, byte by byte
		x.read(path, hashOf([]byte(text)), text)
		k.Write("download/"+name+".idx", string(x.finish().encode()))
	}
	foreign("above", ".", ".keys/a.md")
	foreign("inside", ".keys", "a.md")
	search, err := Tool("markdown_search", k.Files)
	if err != nil {
		t.Fatal(err)
	}
	for index, asks := range map[string]bool{
		`,"index_name":"above"`: false, `,"index_name":"inside"`: true, `,"index_name":"all"`: true,
		``: true, `,"index_name":""`: true, `,"index_name":null`: true,
		`,"index_name":"above","index_name":"inside"`: true, `,"index_name":"above","index_name":""`: true,
	} {
		call := tool.Call{Name: "markdown_search", Arguments: `{"query":"word","vector_db_root":"download"` + index + `}`}
		verdict, reason := search.(interface {
			Approval(call tool.Call, rules []session.Rule) (session.Verdict, string)
		}).Approval(call, nil)
		if (verdict == session.Ask && reason != "") != asks {
			t.Errorf("%s: %q %q", index, verdict, reason)
		}
		res, err := search.Run(t.Context(), call) // after a yes, if it asks
		if once := strings.Count(index, "_name") < 2; err == nil && strings.Contains(res.Text, "secret") != asks || (err == nil) != once {
			t.Errorf("%s: %q, %v", index, res.Text, err)
		}
	}
}

// K2: a person was asked about the index that was there then. Another one that takes its place before the call runs shows
// nothing private, and such hits do not hide others.
func TestSearchOfExchangedIndex(t *testing.T) {
	k := kittest.New(t)
	k.Write(".keys/a.md", "# word\n\nsecret\n")
	k.Write(".other/a.md", "# word\n\nother\n")
	k.Write("plain.md", strings.Repeat("long text ", 200)+"word\n")
	k.Files.Home(k.Dir)
	foreign := func(folder string, times int) {
		x := newIndexer(&docIndex{folder: folder})
		for i := range times {
			text := k.Content(".keys/a.md")
			x.read(fmt.Sprintf(".keys/a%03d.md", i), hashOf([]byte(text)), text)
		}
		for _, name := range []string{"a.md", "plain.md"} {
			if _, err := os.Stat(filepath.Join(k.Dir, folder, name)); err == nil {
				text := k.Content(filepath.Join(folder, name))
				x.read(name, hashOf([]byte(text)), text)
			}
		}
		k.Write("download/x.idx", string(x.finish().encode()))
	}
	search, err := Tool("markdown_search", k.Files)
	if err != nil {
		t.Fatal(err)
	}
	call := tool.Call{ID: "c", Name: "markdown_search", Arguments: `{"query":"word","vector_db_root":"download"}`}
	opinion := search.(interface {
		Approval(call tool.Call, rules []session.Rule) (session.Verdict, string)
	})
	judge := func() session.Verdict { verdict, _ := opinion.Approval(call, nil); return verdict }
	reason := func() string { _, reason := opinion.Approval(call, nil); return reason }
	run := func() string {
		res, err := search.Run(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return res.Text
	}
	foreign(".other", 0)
	if v, text := judge(), run(); v != session.Ask || !strings.Contains(text, "other") {
		t.Errorf("%q: %s", v, text)
	}
	foreign(".keys", 0)
	if text := run(); strings.Contains(text, "secret") || !strings.Contains(text, "nobody was asked about their hidden files: 1.") {
		t.Errorf("the index was exchanged: %s", text)
	}
	foreign(".other", 0)
	asked := reason()
	foreign(".keys", 0)
	if again, text := reason(), run(); again == asked || strings.Contains(text, "secret") || !strings.Contains(text, "hidden files: 1.") {
		t.Errorf("judged again when it begins, it asks because %s, and then %s: %s", asked, again, text)
	}
	foreign(".", 300)
	if v, text := judge(), run(); v == session.Ask || strings.Contains(text, "secret") || !strings.Contains(text, "plain.md") || !strings.Contains(text, "hidden files: 300.") || strings.Contains(text, "Index again") {
		t.Errorf("%q: %s", v, text)
	}
}
