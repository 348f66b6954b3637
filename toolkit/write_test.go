// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"os"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

func TestAppendToFile(t *testing.T) {
	k := newKit(t)
	for _, c := range []struct{ content, says, file string }{
		{"one\n", "Created a.txt with 4 bytes.", "one\n"},
		{"two", "Appended 3 bytes to a.txt, which has 7 bytes now.", "one\ntwo"},
		{"three\r\n", "Appended 7 bytes to a.txt, which has 14 bytes now. Its last line had no line end, so the text went on in that line.", "one\ntwothree\r\n"},
	} {
		if got := k.OK("append_to_file", args{"path": "a.txt", "content": c.content}); got != c.says {
			t.Errorf("%q", got)
		}
		if got := k.Content("a.txt"); got != c.file {
			t.Errorf("%q, want %q", got, c.file)
		}
	}
	k.Write("empty", "")
	if got := k.OK("append_to_file", args{"path": "empty", "content": "x"}); got != "Appended 1 bytes to empty, which has 1 bytes now." {
		t.Errorf("%q", got)
	}
	k.Fails("append_to_file", args{"path": "a.txt", "content": ""}, "content is empty")
	k.NoLeftovers()
}

func TestFindAndReplace(t *testing.T) {
	k := newKit(t)
	for name, c := range map[string]struct {
		before  string
		a       args
		says    string
		after   string
		failure bool
	}{
		"once":          {"a\nb\nc\n", args{"find": "b\n", "replace": "x\ny\n"}, "Replaced 1 occurrence in f, at line 2.", "a\nx\ny\nc\n", false},
		"delete":        {"abc", args{"find": "b", "replace": ""}, "Replaced 1 occurrence", "ac", false},
		"all":           {"a b a", args{"find": "a", "replace": "aa", "all": true}, "Replaced 2 occurrences in f.", "aa b aa", false},
		"all of one":    {"a b", args{"find": "a", "replace": "c", "all": true}, "Replaced 1 occurrence", "c b", false},
		"twice":         {"a\nb\na\n", args{"find": "a", "replace": "x"}, "the text was found 2 times in f (at line 1, 3)", "", true},
		"many":          {strings.Repeat("a\n", 12), args{"find": "a", "replace": "x"}, "found 12 times in f (at line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)", "", true},
		"overlapping":   {"aaa", args{"find": "aa", "replace": "x"}, "the text was found 2 times in f (at line 1)", "", true},
		"never":         {"abc", args{"find": "xyz", "replace": ""}, "the text was found 0 times in f; nothing was changed", "", true},
		"never, all":    {"abc", args{"find": "xyz", "replace": "", "all": true}, "the text was found 0 times", "", true},
		"white space":   {"  if x {\n\ty\n", args{"find": "if x {\n  y", "replace": ""}, "its first line, white space aside, is at line 1", "", true},
		"case":          {"\nHello\n", args{"find": "hello", "replace": ""}, "other upper and lower case, near line 2", "", true},
		"replacement":   {"caf\xe9", args{"find": "caf\uFFFD", "replace": "x"}, "not UTF-8; they are shown as U+FFFD", "", true},
		"empty":         {"a", args{"find": "", "replace": "x"}, "find is empty", "", true},
		"equal":         {"a", args{"find": "a", "replace": "a"}, "nothing to change", "", true},
		"binary":        {"a\x00b", args{"find": "a", "replace": "x"}, "is a binary file", "", true},
		"crlf":          {"a\r\nb\r\nc\r\n", args{"find": "a\nb\n", "replace": "x\ny\nz\n"}, "Replaced 1", "x\r\ny\r\nz\r\nc\r\n", false},
		"crlf given":    {"a\r\nb\r\n", args{"find": "a\r\nb", "replace": "x\r\ny"}, "Replaced 1", "x\r\ny\r\n", false},
		"crlf in a new": {"a\r\nb\r\n", args{"find": "a", "replace": "x\ny"}, "Replaced 1", "x\r\ny\r\nb\r\n", false},
		"mixed":         {"a\r\nb\nc\n", args{"find": "b\nc", "replace": "x\ny"}, "Replaced 1", "a\r\nx\ny\n", false},
		"too large":     {strings.Repeat("a", 1<<20), args{"find": "a", "replace": strings.Repeat("b", 1<<20), "all": true}, "f would grow to 1099511627776 bytes; the limit is 16777216", "", true},
		"repetitive":    {strings.Repeat("a", 1<<24), args{"find": strings.Repeat("a", 1<<20), "replace": "b"}, "the text was found 25 times in f (at line 1, …)", "", true},
		"other bytes":   {"\xe9 a \xff", args{"find": "a", "replace": "é"}, "Replaced 1", "\xe9 é \xff", false},
	} {
		k.Write("f", c.before)
		c.a["path"] = "f"
		if c.failure {
			c.after = c.before
			k.Fails("find_and_replace", c.a, c.says)
		} else if got := k.OK("find_and_replace", c.a); !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
		if got := k.Content("f"); got != c.after {
			t.Errorf("%s: the file is %.200q, want %.200q", name, got, c.after)
		}
	}
	k.Fails("find_and_replace", args{"path": "g", "find": "a", "replace": "b"}, "no such file or directory: g")
	k.NoLeftovers()
}

// Replacing and replacing back gives the same file.
func TestReplaceBack(t *testing.T) {
	k := newKit(t)
	piece := rapid.SampledFrom([]string{"a", "b", "\n", "\r\n", " "})
	rapid.Check(t, func(rt *rapid.T) {
		before := strings.Join(rapid.SliceOf(piece).Draw(rt, "before"), "")
		after := strings.Join(rapid.SliceOf(piece).Draw(rt, "after"), "")
		content := before + "NEEDLE" + after
		k.Write("f", content)
		k.OK("find_and_replace", args{"path": "f", "find": "NEEDLE", "replace": "THREAD"})
		k.OK("find_and_replace", args{"path": "f", "find": "THREAD", "replace": "NEEDLE"})
		if got := k.Content("f"); got != content {
			rt.Fatalf("%q, want %q", got, content)
		}
	})
}

// A1: the mode is kept, a link is not replaced, the size is bounded.
func TestWriting(t *testing.T) {
	k := newKit(t)
	p := k.Write("run.sh", "a")
	if err := os.Chmod(p, 0o757); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(p)
	k.OK("append_to_file", args{"path": "run.sh", "content": "b"})
	k.OK("find_and_replace", args{"path": "run.sh", "find": "b", "replace": "c"})
	if after, err := os.Stat(p); err != nil || after.Mode() != before.Mode() {
		t.Errorf("mode %v, want %v, %v", after.Mode(), before.Mode(), err)
	}
	big := k.Write("big", "")
	if err := os.Truncate(big, files.MaxEditBytes+1); err != nil {
		t.Fatal(err)
	}
	k.Fails("append_to_file", args{"path": "big", "content": "x"}, "the limit for editing is 16777216")
	if err := os.Truncate(big, files.MaxEditBytes); err != nil {
		t.Fatal(err)
	}
	k.Fails("append_to_file", args{"path": "big", "content": "x"}, "would grow to 16777217 bytes")
	k.NoLeftovers()

	k.Write("d/real.txt", "x")
	k.Symlink("d/real.txt", "link.txt")
	k.Fails("append_to_file", args{"path": "link.txt", "content": "y"}, "link.txt is a symbolic link; write to the file itself: d/real.txt")
	k.Fails("find_and_replace", args{"path": "link.txt", "find": "x", "replace": "y"}, "write to the file itself: d/real.txt")
	k.Symlink("nowhere", "dangling")
	k.Fails("append_to_file", args{"path": "dangling", "content": "y"}, "is a symbolic link")
	if k.Content("d/real.txt") != "x" {
		t.Error("the target was changed")
	}
}

// A1: appends at the same time are all there, each whole.
func TestAppendAtOnce(t *testing.T) {
	k := newKit(t)
	tl, _ := k.Set.Lookup("append_to_file")
	var wg sync.WaitGroup
	const n = 20
	for i := range n {
		wg.Go(func() {
			_, err := tl.Run(t.Context(), tool.Call{Arguments: `{"path":"log","content":"line ` + itoa(i) + `\n"}`})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSuffix(k.Content("log"), "\n"), "\n")
	seen := map[string]bool{}
	for _, l := range lines {
		seen[l] = true
	}
	if len(lines) != n || len(seen) != n {
		t.Errorf("%d lines, %d of them different", len(lines), len(seen))
	}
}
