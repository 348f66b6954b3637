// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"context"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

func itoa(n int) string { return strconv.Itoa(n) }

// T1: exactly the file, or exactly its lines.
func TestReadFile(t *testing.T) {
	k := newKit(t)
	k.Write("a.txt", "one\r\ntwo\n\tthree\n\nfive")
	k.Write("empty", "")
	k.Write("bom", "\ufeffx")
	for _, c := range []struct {
		a    args
		want string
	}{
		{args{"path": "a.txt"}, "one\r\ntwo\n\tthree\n\nfive"},
		{args{"path": "a.txt", "offset": 0, "limit": nil}, "one\r\ntwo\n\tthree\n\nfive"},
		{args{"path": "a.txt", "limit": 1}, "one\r\n"},
		{args{"path": "a.txt", "offset": 2, "limit": 2}, "two\n\tthree\n"},
		{args{"path": "a.txt", "offset": 4}, "\nfive"},
		{args{"path": "a.txt", "offset": 5, "limit": 100}, "five"},
		{args{"path": "a.txt", "offset": 1, "skip": 2, "limit": 1}, "e\r\n"},
		{args{"path": "empty"}, "empty is empty (0 bytes)."},
		{args{"path": "bom"}, "\ufeffx"},
	} {
		if got := k.OK("read_file", c.a); got != c.want {
			t.Errorf("%v: %q, want %q", c.a, got, c.want)
		}
	}
	k.Fails("read_file", args{"path": "a.txt", "offset": 6}, "a.txt has 5 lines; offset 6 is past its end")
	k.Fails("read_file", args{"path": "a.txt", "offset": 99}, "a.txt has 5 lines; offset 99 is past its end")
	k.Write("two", "a\nb\n")
	k.Fails("read_file", args{"path": "two", "offset": 3}, "two has 2 lines; there is nothing at line 3")
	k.Fails("read_file", args{"path": "two", "offset": 4}, "two has 2 lines; offset 4 is past its end")
	k.Fails("read_file", args{"path": "two", "skip": 2}, "line 1 of two has no more than 2 bytes")
	k.Fails("read_file", args{"path": "a.txt", "offset": 5, "skip": 4}, "line 5 of a.txt has no more than 4 bytes")
	k.Fails("read_file", args{"path": "two", "offset": -1}, "cannot be negative")
	k.Fails("read_file", args{"path": "two", "ofset": 1}, `unknown member "ofset"`)
}

func TestReadFileRefusesBinary(t *testing.T) {
	k := newKit(t)
	for content, want := range map[string]string{
		string(encoded(t, "png")): "f is an image (image/png, " + itoa(len(encoded(t, "png"))) + " bytes), not text; use import_image to look at it",
		"%PDF-1.7\n":              "is a PDF document",
		"\xff\xfea\x00":           "looks like UTF-16",
		"MZ\x00\x01":              "is a binary file (4 bytes, begins with 4d 5a 00 01), not text",
	} {
		k.Write("f", content)
		k.Fails("read_file", args{"path": "f"}, want)
	}
}

// T9: an older encoding and escapes come through as valid text.
func TestReadFileSanitised(t *testing.T) {
	k := newKit(t)
	k.Write("latin1", "caf\xe9\n\x1b[1mbold\x1b[0m\n")
	o := k.Call("read_file", args{"path": "latin1"})
	if o.Failed || o.Content.Text != "caf\uFFFD\nbold\n" || o.Repairs != 3 {
		t.Errorf("%+v", o)
	}
}

var readOnMark = regexp.MustCompile(`\[read_file stopped here after (\d+) bytes, its limit for one call; \S+ goes on\. Read the rest with offset=(\d+)(?: and skip=(\d+))?(?: and limit=(\d+))?\]$`)

// readAll follows the marks as a model would.
func readAll(t *testing.T, k *kit, a args) (pieces []string) {
	t.Helper()
	for len(pieces) < 100 {
		text := k.OK("read_file", a)
		if !utf8.ValidString(text) {
			t.Fatal("a rune was cut")
		}
		m := readOnMark.FindStringSubmatchIndex(text)
		if m == nil {
			return append(pieces, text)
		}
		group := func(i int) int {
			if m[2*i] < 0 {
				return 0
			}
			n, _ := strconv.Atoi(text[m[2*i]:m[2*i+1]])
			return n
		}
		piece := text[:group(1)]
		if len(piece) == 0 || len(piece) > MaxReadBytes {
			t.Fatalf("a piece of %d bytes", len(piece))
		}
		if rest := text[group(1):m[0]]; strings.TrimLeft(rest, "\n") != "" {
			t.Fatalf("%q stands between the text and the mark", rest)
		}
		pieces = append(pieces, piece)
		a = args{"path": a["path"], "offset": group(2), "skip": group(3), "limit": group(4)}
	}
	t.Fatal("reading does not end")
	return nil
}

// T6: the limit never cuts a rune, and the marks lead through the whole file.
func TestReadFileInPieces(t *testing.T) {
	k := newKit(t)
	line := strings.Repeat("wörter ", 20) + "\n"
	for name, c := range map[string]struct {
		content string
		limit   int
		want    string
		pieces  int
	}{
		"lines":       {strings.Repeat(line, MaxReadBytes*5/2/len(line)), 0, "", 3},
		"one line":    {"x" + strings.Repeat("é", MaxReadBytes), 0, "", 3},
		"exact":       {strings.Repeat("a", MaxReadBytes), 0, "", 1},
		"one more":    {strings.Repeat("a", MaxReadBytes+1), 0, "", 2},
		"exact lines": {strings.Repeat("a\n", MaxReadBytes/2), 0, "", 1},
		"long second": {"short\n" + strings.Repeat("€", MaxReadBytes/2) + "\nend\n", 0, "", 3},
		"limited":     {strings.Repeat(line, MaxReadBytes*2/len(line)), MaxReadBytes * 3 / 2 / len(line), strings.Repeat(line, MaxReadBytes*3/2/len(line)), 2},
		"latin-1":     {strings.Repeat("\xe9", MaxReadBytes-1) + "\xe9\xe9\n", 0, "", 0},
	} {
		if c.want == "" {
			c.want = c.content
		}
		k.Write("big.txt", c.content)
		if name == "latin-1" {
			if o := k.Call("read_file", args{"path": "big.txt"}); o.Failed || !readOnMark.MatchString(o.Content.Text) {
				t.Errorf("%s: %.200s", name, o.Content.Text)
			}
			continue
		}
		pieces := readAll(t, k, args{"path": "big.txt", "limit": c.limit})
		if got := strings.Join(pieces, ""); got != c.want || len(pieces) != c.pieces {
			t.Errorf("%s: %d bytes in %d pieces, want %d in %d", name, len(got), len(pieces), len(c.want), c.pieces)
		}
	}
}

// T1 as a property: ranges of lines that follow each other are the file.
func TestReadFileRanges(t *testing.T) {
	k := newKit(t)
	piece := rapid.SampledFrom([]string{"a", "é", "\n", "\r\n", "\n\n", "   ", "longer text"})
	rapid.Check(t, func(rt *rapid.T) {
		content := "x" + strings.Join(rapid.SliceOf(piece).Draw(rt, "content"), "")
		step := rapid.IntRange(1, 4).Draw(rt, "step")
		k.Write("f", content)
		lines := strings.Count(strings.TrimSuffix(content, "\n"), "\n") + 1
		var got strings.Builder
		for from := 1; from <= lines; from += step {
			got.WriteString(k.OK("read_file", args{"path": "f", "offset": from, "limit": step}))
		}
		if got.String() != content {
			rt.Fatalf("%q, want %q", got.String(), content)
		}
	})
	k.Write("f", "a\nb\n")
	if got := k.OK("read_file", args{"path": "f", "offset": 2, "limit": math.MaxInt}); got != "b\n" {
		t.Errorf("with the largest limit: %q", got)
	}
}

// T15: a cancelled read is told as such.
func TestReadFileCancelled(t *testing.T) {
	k := newKit(t)
	k.Write("a", "x")
	tl, _ := k.Set.Lookup("read_file")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tl.Run(ctx, tool.Call{Arguments: `{"path":"a"}`})
	if err == nil || ctx.Err() == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("%v", err)
	}
}

// C1: all spellings of a path are one region; other ranges, other roots and
// what is not a read are others, or none.
func TestReadFileRegion(t *testing.T) {
	docs := t.TempDir()
	k := newKit(t, files.Root{Name: "docs", Path: docs})
	k.Write("a/b.txt", "x")
	read, _ := k.Set.Lookup("read_file")
	region := func(arguments string) string {
		t.Helper()
		r, ok := tool.AnnotationsOf(read).ReadKey.ReadKey(arguments)
		if !ok {
			return ""
		}
		return r
	}
	first := region(`{"path":"a/b.txt"}`)
	if first == "" {
		t.Fatal("a read has no region")
	}
	for _, path := range []string{"./a/b.txt", "a//b.txt", "a/../a/b.txt", "workspace:a/b.txt", "workspace/a/b.txt", filepath.ToSlash(filepath.Join(k.Dir, "a", "b.txt"))} {
		for _, more := range []string{``, `,"offset":1`, `,"offset":0,"skip":0`, `,"limit":0`} {
			if got := region(`{"path":"` + path + `"` + more + `}`); got != first {
				t.Errorf("%s%s: %q, want %q", path, more, got, first)
			}
		}
	}
	seen := map[string]string{}
	for _, arguments := range []string{
		`{"path":"a/b.txt"}`, `{"path":"a/b.txt","offset":2}`, `{"path":"a/b.txt","limit":2}`, `{"path":"a/b.txt","skip":2}`,
		`{"path":"docs:a/b.txt"}`, `{"path":"a/B.txt"}`, `{"path":"b.txt"}`,
	} {
		r := region(arguments)
		if other := seen[r]; r == "" || other != "" {
			t.Errorf("%s has the region of %q: %q", arguments, other, r)
		}
		seen[r] = arguments
	}
	for _, arguments := range []string{``, `[]`, `{"path":7}`, `{"path":""}`, `{"path":"../../x"}`} {
		if r := region(arguments); r != "" {
			t.Errorf("%s: %q, want none", arguments, r)
		}
	}
}
