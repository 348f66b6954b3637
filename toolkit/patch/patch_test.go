// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPatchKit(t *testing.T) *kittest.Kit {
	t.Helper()
	k := kittest.New(t)
	k.Add(Tool("apply_patch", k.Files, Function))
	return k
}

// envelope makes a patch of lines.
func envelope(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"
}

// One file, one update.
func TestPatchUpdate(t *testing.T) {
	const abc = "a\nb\nc\n"
	for name, c := range map[string]struct{ before, hunks, after string }{
		"replace":                {abc, "@@\n a\n-b\n+x\n c", "a\nx\nc\n"},
		"no @@ at first":         {abc, " a\n-b\n+x", "a\nx\nc\n"},
		"remove":                 {abc, "@@\n-b", "a\nc\n"},
		"remove all":             {abc, "@@\n-a\n-b\n-c", ""},
		"add behind":             {abc, "@@\n b\n+x", "a\nb\nx\nc\n"},
		"add at the end":         {abc, "@@\n+x\n+y", "a\nb\nc\nx\ny\n"},
		"add to nothing":         {"", "@@\n+x", "x\n"},
		"add behind an anchor":   {abc, "@@ a\n+x", "a\nx\nb\nc\n"},
		"two behind an anchor":   {abc, "@@ a\n+x\n@@ a\n+y", "a\nx\ny\nb\nc\n"},
		"added before a change":  {abc, "@@\n-b\n+x\n@@ a\n+y", "a\ny\nx\nc\n"},
		"two hunks":              {"a\nb\nc\nd\ne\n", "@@\n-b\n+x\n@@\n-d\n+y", "a\nx\nc\ny\ne\n"},
		"hunks out of order":     {"a\nb\nc\nd\ne\n", "@@\n-d\n+y\n@@\n-b\n+x", "a\nx\nc\ny\ne\n"},
		"after the first hunk":   {"k\na\nk\n", "@@\n-a\n@@\n-k\n+x", "k\nx\n"},
		"anchor":                 {"f\nk\ng\nk\n", "@@ g\n-k\n+x", "f\nk\ng\nx\n"},
		"anchors":                {"A\nf\nk\nB\nf\nk\n", "@@ B\n@@ f\n-k\n+x", "A\nf\nk\nB\nf\nx\n"},
		"anchor is context too":  {"f\nk\ng\nk\n", "@@ g\n g\n-k\n+x", "f\nk\ng\nx\n"},
		"anchor is a beginning":  {"  def f(a):\nk\n  def g(b):\nk\n", "@@ def g\n-k\n+x", "  def f(a):\nk\n  def g(b):\nx\n"},
		"two hunks, one anchor":  {"f\na\nb\n", "@@ f\n-a\n+x\n@@ f\n-b\n+y", "f\nx\ny\n"},
		"end of file":            {"k\na\nk\n", "@@\n-k\n+x\n*** End of File", "k\na\nx\n"},
		"end of file, not there": {"k\na\n", "@@\n-k\n+x\n*** End of File", "x\na\n"},
		"unified header":         {"k\na\nk\n", "@@ -3,1 +3,1 @@ f()\n-k\n+x", "k\na\nx\n"},
		"numbers, at the end":    {abc, "@@ -3,0 +4,1 @@\n+x", "a\nb\nc\nx\n"},
		"numbers, empty file":    {"", "@@ -0,0 +1 @@\n+x", "x\n"},
		"numbers, end of file":   {abc, "@@ -9,0 +9 @@\n+x\n*** End of File", "a\nb\nc\nx\n"},
		"numbers and an anchor":  {abc, "@@ -9,0 +9 @@\n@@ a\n+x", "a\nx\nb\nc\n"},
		"closing @@":             {"f\nk\ng\nk\n", "@@ g @@\n-k\n+x", "f\nk\ng\nx\n"},
		"empty context":          {"a\n\nb\n", "@@\n a\n\n-b\n+x", "a\n\nx\n"},
		"blank line for the eye": {"a\nb\n", "@@\n-b\n+x\n\n", "a\nx\n"},
		"blank behind additions": {"a\n\nb\n", "@@\n+x\n\n", "a\n\nb\nx\n"},
		"space at line ends":     {"a  \nb\t\n", "@@\n a\n-b\n+x", "a  \nx\n"},
		"other indent":           {"\ta\n\tb\n", "@@\n   a\n-  b\n+\tx", "\ta\n\tx\n"},
		"typographic":            {"say “hi” – it’s\nb\n", "@@\n say \"hi\" - it's\n-b\n+x", "say “hi” – it’s\nx\n"},
		"exact before rough":     {"  k\nk\n", "@@\n-k\n+x", "  k\nx\n"},
		"crlf":                   {"a\r\nb\r\nc\r\n", "@@\n a\n-b\n+x\n+y", "a\r\nx\r\ny\r\nc\r\n"},
		"crlf at the end":        {"a\r\n", "@@\n+x", "a\r\nx\r\n"},
		"mixed line ends":        {"a\r\nb\nc\n", "@@\n b\n+x", "a\r\nb\nx\nc\n"},
		"no final newline":       {"a\nb", "@@\n-a\n+x", "x\nb"},
		"last without newline":   {"a\nb", "@@\n-b\n+x", "a\nx"},
		"append without newline": {"a\nb", "@@\n+x", "a\nb\nx"},
		"remove last":            {"a\nb", "@@\n-b", "a\n"},
		"newline taken away":     {"a\nb\n", "@@\n-b\n+x\n\\ No newline at end of file", "a\nx"},
		"newline given":          {"a\nb", "@@\n-b\n\\ No newline at end of file\n+x", "a\nx\n"},
		"byte order mark":        {"\ufeffa\nb\n", "@@\n-a\n+x", "\ufeffx\nb\n"},
		"mark in the patch":      {"\ufeffa\nb\n", "@@\n-a\n+\ufeffx", "\ufeffx\nb\n"},
		"latin-1":                {"caf\xe9\nb\n", "@@\n caf\ufffd\n-b\n+x", ""}, // refused below: it would be written
		"latin-1, elsewhere":     {"caf\xe9\nb\n", "@@\n-b\n+x", "caf\xe9\nx\n"},
		"stars":                  {"*** a\nb\n", "@@\n *** a\n-b\n+x", "*** a\nx\n"},
		"kept bytes":             {"a\vb\n\x01\nz\n", "@@\n-z\n+y", "a\vb\n\x01\ny\n"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newPatchKit(t)
			k.Write("f", c.before)
			k.Write("other", "same")
			patch := envelope("*** Update File: f", c.hunks)
			if name == "latin-1" {
				k.Fails("apply_patch", kittest.Args{"input": patch}, "not UTF-8")
				return
			}
			if got := k.OK("apply_patch", kittest.Args{"input": patch}); !strings.HasPrefix(got, "The patch was applied:\nM f") {
				t.Errorf("%q", got)
			}
			if diff := cmp.Diff(map[string]string{"f": c.after, "other": "same"}, k.Tree()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Many files, in one patch.
func TestPatchFiles(t *testing.T) {
	before := map[string]string{"a": "a\n", "b": "b\n", "d/c": "c\n"}
	for name, c := range map[string]struct {
		patch, says string
		after       map[string]string
	}{
		"all kinds": {envelope("*** Add File: n/e/w", "+1", "+", "+2", "", "*** Update File: a", "@@", "-a", "+x", "*** Delete File: b", "*** Update File: d/c", "*** Move to: e/c", "@@", "+y"),
			"A n/e/w\nM a\nD b\nM e/c (moved from d/c)",
			map[string]string{"n/": "", "n/e/": "", "n/e/w": "1\n\n2\n", "a": "x\n", "d/": "", "e/": "", "e/c": "c\ny\n"}},
		"move only":     {envelope("*** Update File: a", "*** Move to: z"), "M z (moved from a)", map[string]string{"z": "a\n", "b": "b\n", "d/": "", "d/c": "c\n"}},
		"update twice":  {envelope("*** Update File: a", "@@", "-a", "+x", "*** Update File: ./a", "@@", "-x", "+y"), "M a", map[string]string{"a": "y\n", "b": "b\n", "d/": "", "d/c": "c\n"}},
		"replace whole": {envelope("*** Delete File: a", "*** Add File: a", "+n"), "M a", map[string]string{"a": "n\n", "b": "b\n", "d/": "", "d/c": "c\n"}},
		"make room":     {envelope("*** Delete File: b", "*** Update File: a", "*** Move to: b"), "M b (moved from a)", map[string]string{"b": "a\n", "d/": "", "d/c": "c\n"}},
		"add, update":   {envelope("*** Add File: n", "+1", "*** Update File: n", "@@", "-1", "+2"), "A n", map[string]string{"a": "a\n", "b": "b\n", "d/": "", "d/c": "c\n", "n": "2\n"}},
		"not ended":     {envelope("*** Add File: n", "+1", `\ No newline at end of file`), "A n", map[string]string{"a": "a\n", "b": "b\n", "d/": "", "d/c": "c\n", "n": "1"}},
		"empty file":    {envelope("*** Add File: n"), "A n", map[string]string{"a": "a\n", "b": "b\n", "d/": "", "d/c": "c\n", "n": ""}},
		"heredoc":       {"<<'EOF'\n" + envelope("*** Delete File: a") + "EOF\n", "D a", map[string]string{"b": "b\n", "d/": "", "d/c": "c\n"}},
		"a command":     {"apply_patch <<\"PATCH\"\n" + envelope("*** Delete File: a") + "PATCH", "D a", map[string]string{"b": "b\n", "d/": "", "d/c": "c\n"}},
		"a fence":       {"```diff\n" + envelope("*** Delete File: a") + "```\n\n", "D a", map[string]string{"b": "b\n", "d/": "", "d/c": "c\n"}},
		"padded":        {"\n  *** Begin Patch  \n *** Delete File: a \n*** End Patch ", "D a", map[string]string{"b": "b\n", "d/": "", "d/c": "c\n"}},
		"crlf patch":    {strings.ReplaceAll(envelope("*** Add File: n", "+1", "*** Delete File: b", "*** Update File: a", "@@", "-a", "+x"), "\n", "\r\n"), "A n\nD b\nM a", map[string]string{"a": "x\n", "d/": "", "d/c": "c\n", "n": "1\n"}},
		"added crlf":    {envelope("*** Add File: n", "+1\r", "+2\r"), "A n", map[string]string{"a": "a\n", "b": "b\n", "d/": "", "d/c": "c\n", "n": "1\r\n2\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newPatchKit(t)
			for path, content := range before {
				k.Write(path, content)
			}
			if got := k.OK("apply_patch", kittest.Args{"input": c.patch}); got != "The patch was applied:\n"+c.says {
				t.Errorf("%s", got)
			}
			if diff := cmp.Diff(c.after, k.Tree()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A1: what cannot be applied changes nothing, and the error helps to mend it.
func TestPatchRefused(t *testing.T) {
	long := strings.Repeat("x", 300)
	before := map[string]string{
		"a": "one\ntwo\nthree\nfour\n", "twice": "f\nk\ng\nk\n", "d/c": "c\n", "empty": "",
		"long.go": "package p\n\nfunc first() {\n\treturn one\n}\n\nfunc second() {\n\tx := read()\n\treturn two\n}\n",
		"many":    strings.Repeat("k\n", 30), "numbers": "x\n" + strings.Repeat("1\n2\n", 20),
		"img": "\x89PNG\r\n\x1a\n\x00\x00", "bin": "a\x00b",
	}
	ok := "*** Update File: d/c\n@@\n+more" // goes in front, and must not be done
	for name, c := range map[string]struct {
		patch string
		says  []string
	}{
		"not found": {envelope(ok, "*** Update File: long.go", "@@ func second() {", " \tx := read()", "-\treturn 2", "+\treturn 3", " }"), []string{
			"nothing was changed, in no file: long.go, hunk 1 (line 6 of the patch): these lines were not found in the file:",
			"    | \tx := read()\n    | \treturn 2\n    | }\n", "The place most like them is line 8 to 10 of the file:\n     8 | \tx := read()\n     9 | \treturn two\n    10 | }\n",
			`What differs: line 9 is "\treturn two", the patch has "\treturn 2"`}},
		"line missing":      {envelope(ok, "*** Update File: a", "@@", " one", "-three", "+x"), []string{`line 2, "two", is not in the patch`}},
		"line too many":     {envelope(ok, "*** Update File: a", "@@", " one", " and", " two", "-three", "+x"), []string{`the patch has "and", which is not at line 2`}},
		"case":              {envelope(ok, "*** Update File: a", "@@", " one", "-Two", "+x"), []string{`line 2 is "two", the patch has "Two" (upper and lower case)`}},
		"words":             {envelope(ok, "*** Update File: long.go", "@@", "-func the_second()", "+x"), []string{"The place most like them is line 7 of the file"}},
		"nothing alike":     {envelope(ok, "*** Update File: a", "@@", "-zzz", "+x"), []string{"Nothing in the file is like them"}},
		"done before":       {envelope(ok, "*** Update File: a", "@@", " one", "-2", "+two"), []string{"at line 1 already: was this change made before?"}},
		"empty":             {envelope(ok, "*** Update File: empty", "@@", "-x"), []string{"these lines were not found in the file, which is empty"}},
		"twice":             {envelope(ok, "*** Update File: twice", "@@", "-k", "+x"), []string{"twice, hunk 1 (line 6 of the patch): its lines were found 2 times in the file, at line 2, 4", `a line "@@ "`}},
		"twice, roughly":    {envelope(ok, "*** Update File: twice", "@@", "-k ", "+x"), []string{"found 2 times"}},
		"anchor twice":      {envelope(ok, "*** Update File: twice", "@@ k", "+x"), []string{`its line "@@ k" was found 2 times in the file, at line 2, 4`}},
		"no anchor":         {envelope(ok, "*** Update File: long.go", "@@ func third() {", "-x"), []string{`the line "func third() {", given after @@, is not in the file. The line most like it is 3: "func first() {"`}},
		"no anchor, adding": {envelope(ok, "*** Update File: empty", "@@ f", "+x"), []string{`is not in the file, which is empty`}},
		"only a number":     {envelope(ok, "*** Update File: a", "@@ -2,0 +3,1 @@", "+x"), []string{"a, hunk 1 (line 6 of the patch): it only adds lines, and a line number alone does not say where"}},
		"number at the top": {envelope(ok, "*** Update File: a", "@@ -0,0 +1 @@ f()", "+x", ""), []string{"a line number alone does not say where"}},
		"number too large":  {envelope(ok, "*** Update File: a", "@@ -5,0 +6 @@", "+x"), []string{"a line number alone does not say where"}},
		"overlap":           {envelope(ok, "*** Update File: a", "@@", " one", "-two", "+x", "@@", " two", "-three", "+y"), []string{"hunk 2", "it overlaps hunk 1: that one covers the lines 1 to 2 of the file, this one 2 to 3"}},
		"overlap, adding":   {envelope(ok, "*** Update File: a", "@@", " one", "-two", "-three", "@@ one", "+y"), []string{"it overlaps hunk 1"}},
		"all problems":      {envelope(ok, "*** Update File: a", "@@", "-zzz", "@@", "-yyy", "*** Delete File: no"), []string{"a, hunk 1", "a, hunk 2", "no (line 10 of the patch): no such file or directory: no"}},
		"no such file":      {envelope(ok, "*** Update File: d/cc", "@@", "-x"), []string{"no such file or directory: d/cc. Similar names there: d/c"}},
		"exists":            {envelope(ok, "*** Add File: a", "+x"), []string{`a exists already; change it with "*** Update File:"`}},
		"move onto":         {envelope(ok, "*** Update File: a", "*** Move to: twice"), []string{"it cannot be moved to twice, which exists already"}},
		"deleted before":    {envelope(ok, "*** Delete File: a", "*** Update File: a", "@@", "-one"), []string{"a was deleted or moved by an earlier section of this patch"}},
		"below no root":     {envelope(ok, "*** Update File: a", "*** Move to: /x"), []string{"/x is outside of what this tool may use"}},
		"many problems":     {envelope("*** Update File: a", strings.Repeat("@@\n-zzz\n", 12)), []string{"and 4 more problems"}},
		"many places":       {envelope("*** Update File: many", "@@", "-k", "+x"), []string{"found 30 times in the file, at line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"}},
		"many lines":        {envelope("*** Update File: numbers", "@@", strings.Repeat(" x\n 1\n", 20)), []string{"    and 28 more\n", "What differs", "; and "}},
		"no anchor, alone":  {envelope("*** Update File: many", "@@ qqq", "-k"), []string{`the line "qqq", given after @@, is not in the file`}},
		"directory":         {envelope(ok, "*** Delete File: d"), []string{"d is a directory"}},
		"below a file":      {envelope(ok, "*** Add File: a/b/c", "+x"), []string{"a is a file, not a directory"}},
		"below a new file":  {envelope(ok, "*** Add File: n", "+x", "*** Add File: n/m", "+x"), []string{"n is a file, not a directory"}},
		"above a new file":  {envelope(ok, "*** Add File: n/m", "+x", "*** Add File: n", "+x"), []string{"n cannot be a file: an earlier section of this patch puts n/m into a directory of that name"}},
		"above a moved one": {envelope("*** Update File: a", "*** Move to: n/m", "@@", "-one", "+x", "*** Add File: n", "+x"), []string{"n cannot be a file: an earlier section of this patch puts n/m into"}},
		"root":              {envelope(ok, "*** Add File: .", "+x"), []string{"is a directory"}},
		"image":             {envelope(ok, "*** Update File: img", "@@", "+x"), []string{"img is an image (image/png, 10 bytes), not text"}},
		"binary":            {envelope(ok, "*** Update File: bin", "@@", "-a"), []string{"bin is a binary file"}},
		"dot-dot":           {envelope(ok, "*** Add File: ../x", "+x"), []string{"../x is outside of what this tool may use"}},
		"dot-dot, move":     {envelope(ok, "*** Update File: a", "*** Move to: d/../../x"), []string{"is outside of what this tool may use"}},
		"absolute":          {envelope(ok, "*** Delete File: /etc/passwd"), []string{"is outside of what this tool may use"}},
		"no change":         {envelope("*** Update File: a", "@@", "-one", "+one"), []string{"nothing was changed: the files are as the patch wants them already"}},
		"nothing":           {"  \n", []string{"the patch is empty"}},
		"no begin":          {"*** Delete File: a\n*** End Patch", []string{`line 1 of the patch: a patch begins with the line "*** Begin Patch"`, `begins with "*** Delete File: a"`}},
		"no end":            {"*** Begin Patch\n*** Delete File: a\n", []string{"so its end may be missing"}},
		"behind the end":    {envelope("*** Delete File: a") + "so\n", []string{`line 4 of the patch: there is text after "*** End Patch": "so"`}},
		"no files":          {envelope(""), []string{"the patch has no files"}},
		"no file":           {envelope("*** Delete File: "), []string{"line 2 of the patch: the line names no file"}},
		"no target":         {envelope("*** Update File: a", "*** Move to: "), []string{"the line names no file to move to"}},
		"no hunks":          {envelope("*** Update File: a"), []string{"a (line 2 of the patch): the update has no hunks"}},
		"empty hunk":        {envelope("*** Update File: a", "@@", "*** End of File"), []string{"a, hunk 1 (line 3 of the patch): the hunk has no lines"}},
		"bad line":          {envelope("*** Update File: a", "@@", "-one", "two"), []string{`a, hunk 1 (line 5 of the patch): every line of a hunk begins with " "`, `this one is "two"`}},
		"bad addition":      {envelope("*** Add File: n", "+1", long), []string{`every line of a new file begins with "+"`, `xxx…"`}},
		"bad header":        {envelope("*** Rename File: a"), []string{`"*** Rename File: a" is not the beginning of a file; want "*** Add File: PATH"`}},
		"too long":          {strings.Repeat("x", MaxPatchBytes+1), []string{"the limit is 4194304"}},
		"too many files":    {envelope(slices.Repeat([]string{"*** Delete File: a"}, maxPatchFiles+1)...), []string{"more than 500 files"}},
		"too many hunks":    {envelope("*** Update File: a", strings.Repeat("@@\n+x\n", maxPatchHunks+1)), []string{"more than 5000 hunks"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newPatchKit(t)
			for path, content := range before {
				k.Write(path, content)
			}
			was := k.Tree()
			for _, want := range c.says {
				k.Fails("apply_patch", kittest.Args{"input": c.patch}, want)
			}
			if diff := cmp.Diff(was, k.Tree()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A rough fit is said.
func TestPatchRemarks(t *testing.T) {
	k := newPatchKit(t)
	k.Write("f", "\ta\nb\n")
	got := k.OK("apply_patch", kittest.Args{"input": envelope("*** Update File: f", "@@", "     a", "-b", "+c")})
	if want := "The patch was applied:\nM f (hunk 1 is at line 1, which has other white space than the patch)"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A1: sizes are bounded.
func TestPatchOversize(t *testing.T) {
	k := newPatchKit(t)
	big := k.Write("big", "a\n")
	if err := os.Truncate(big, files.MaxEditBytes+1); err != nil {
		t.Fatal(err)
	}
	k.Fails("apply_patch", kittest.Args{"input": envelope("*** Update File: big", "@@", "-a")}, "the limit for editing is 16777216")
	k.OK("apply_patch", kittest.Args{"input": envelope("*** Delete File: big")})
	full := k.Write("full", strings.Repeat(strings.Repeat("a", 63)+"\n", files.MaxEditBytes/64))
	k.Fails("apply_patch", kittest.Args{"input": envelope("*** Update File: full", "@@", "+b")}, "would grow to 16777218 bytes")
	var many []string
	for i := range 5 {
		name := fmt.Sprintf("f%d", i)
		if err := os.Link(full, filepath.Join(k.Dir, name)); err != nil {
			t.Skip(err)
		}
		many = append(many, "*** Update File: "+name, "@@", "+x")
	}
	k.Fails("apply_patch", kittest.Args{"input": envelope(many...)}, "together; send it in parts")
}

// A1: the mode of a file is kept, also where it moves.
func TestPatchMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of Unix")
	}
	k := newPatchKit(t)
	for _, name := range []string{"run.sh", "move.sh", "whole.sh"} {
		if err := os.Chmod(k.Write(name, "a\n"), 0o757); err != nil {
			t.Fatal(err)
		}
	}
	k.OK("apply_patch", kittest.Args{"input": envelope("*** Update File: run.sh", "@@", "-a", "+b", "*** Update File: move.sh", "*** Move to: d/moved.sh", "*** Delete File: whole.sh", "*** Add File: whole.sh", "+n")})
	for _, name := range []string{"run.sh", "d/moved.sh", "whole.sh"} {
		if info, err := os.Stat(filepath.Join(k.Dir, name)); err != nil || info.Mode().Perm() != 0o757 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

// A1: links lead nowhere.
func TestPatchLinks(t *testing.T) {
	k := newPatchKit(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.Write("d/real", "r\n")
	k.Symlink(outside, "out")
	k.Symlink(filepath.Join(outside, "secret"), "file")
	k.Symlink("d/real", "link")
	k.Symlink("d", "dir")
	k.Symlink("nowhere", "dangling")
	was := k.Tree()
	for patch, want := range map[string]string{
		envelope("*** Update File: out/secret", "@@", "-s", "+x"):                                         "leads out of the root",
		envelope("*** Add File: out/new", "+x"):                                                           "",
		envelope("*** Delete File: out/secret"):                                                           "",
		envelope("*** Update File: file", "@@", "-s", "+x"):                                               "file is a symbolic link",
		envelope("*** Delete File: file"):                                                                 "file is a symbolic link",
		envelope("*** Update File: link", "@@", "-r", "+x"):                                               "write to the file itself: d/real",
		envelope("*** Add File: dangling", "+x"):                                                          "is a symbolic link",
		envelope("*** Add File: dangling/x", "+x"):                                                        "dangling is a symbolic link",
		envelope("*** Update File: d/real", "*** Move to: out/x"):                                         "",
		envelope("*** Update File: d/real", "*** Move to: link"):                                          "is a symbolic link",
		envelope("*** Update File: d/real", "@@", "-r", "+x", "*** Update File: dir/real", "@@", "+y"):    "d/real and dir/real are the same file",
		envelope("*** Update File: d/real", "@@", "-r", "+x", "*** Add File: d/n", "*** Add File: dir/n"): "dir/n",
	} {
		k.Fails("apply_patch", kittest.Args{"input": patch}, want)
	}
	if diff := cmp.Diff(was, k.Tree()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"secret": "s\n"}, kittest.Tree(t, outside)); diff != "" {
		t.Error(diff)
	}
	k.OK("apply_patch", kittest.Args{"input": envelope("*** Update File: dir/real", "@@", "-r", "+x")})
	if got := k.Content("d/real"); got != "x\n" {
		t.Errorf("%q", got)
	}
}

// faultPatch has all kinds of steps.
var faultPatch = envelope("*** Update File: a", "@@", "-a", "+x", "*** Add File: n/e/w", "+1", "*** Delete File: b", "*** Update File: d/c", "*** Move to: e/c", "@@", "+y", "*** Update File: z", "@@", "-z", "+w")

func applyWith(k *kittest.Kit, disk patchDisk) (string, error) {
	sections, err := parsePatch(faultPatch)
	if err != nil {
		k.T.Fatal(err)
	}
	return applySections(k.T.Context(), k.Files, sections, disk)
}

func newFaultKit(t *testing.T) *kittest.Kit {
	k := newPatchKit(t)
	for name, content := range map[string]string{"a": "a\n", "b": "b\n", "d/c": "c\n", "z": "z\n"} {
		k.Write(name, content)
	}
	return k
}

var errFault = errors.New("injected")

// A1: whichever step fails, all files are as they were and nothing is left
// behind.
func TestPatchFaults(t *testing.T) {
	for step := 0; ; step++ {
		k := newFaultKit(t)
		was := k.Tree()
		count, failed := 0, ""
		_, err := applyWith(k, patchDisk{before: func(op, name string) error {
			if count++; count-1 == step {
				failed = op + " " + name
				return errFault
			}
			return nil
		}})
		if failed == "" {
			if step < 15 || err != nil {
				t.Fatalf("%d steps, %v", step, err)
			}
			return
		}
		// The link that keeps an old file may fail: a copy does as well. So may
		// the link that gives a new file its name, and the removal of temporary
		// files when all is done.
		if err == nil {
			if !strings.HasPrefix(failed, "link") && !strings.HasPrefix(failed, "remove") {
				t.Errorf("step %d, %s: no error", step, failed)
			}
			continue
		}
		if !errors.Is(err, errFault) || !strings.Contains(err.Error(), "nothing was changed, in no file") {
			t.Errorf("step %d, %s: %v", step, failed, err)
		}
		if diff := cmp.Diff(was, k.Tree()); diff != "" {
			t.Errorf("step %d, %s:\n%s", step, failed, diff)
		}
	}
}

// A1: so they are in a folder without links, where the old files are copied: also one that was replaced and never read,
// by a new file or by one that was moved there.
func TestPatchFaultsWithoutLinks(t *testing.T) {
	sections, err := parsePatch(envelope("*** Delete File: a", "*** Add File: a", "+x", "*** Delete File: b", "*** Update File: d/c", "*** Move to: b", "@@", "+y", "*** Update File: z", "@@", "-z", "+w"))
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("b\n", 1<<17)
	for step := 0; ; step++ {
		k := newFaultKit(t)
		k.Write("b", big)
		if err := os.Chmod(filepath.Join(k.Dir, "b"), 0o640); err != nil {
			t.Fatal(err)
		}
		was := k.Tree()
		count, failed := 0, ""
		_, err := applySections(t.Context(), k.Files, sections, patchDisk{before: func(op, name string) error {
			if op == "link" {
				return errFault
			}
			if count++; count-1 == step {
				failed = op + " " + name
				return errFault
			}
			return nil
		}})
		if failed == "" {
			if want := map[string]string{"a": "x\n", "b": "c\ny\n", "d/": "", "z": "w\n"}; step < 12 || err != nil || !cmp.Equal(want, k.Tree()) {
				t.Fatalf("%d steps, %v: %v", step, err, k.Tree())
			}
			return
		}
		if err == nil {
			if !strings.HasPrefix(failed, "remove") {
				t.Errorf("step %d, %s: no error", step, failed)
			}
			continue
		}
		if !strings.Contains(err.Error(), "nothing was changed, in no file") {
			t.Errorf("step %d, %s: %v", step, failed, err)
		}
		if diff := cmp.Diff(was, k.Tree()); diff != "" {
			t.Errorf("step %d, %s:\n%.300s", step, failed, diff)
		}
		if info, err := os.Stat(filepath.Join(k.Dir, "b")); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != 0o640) {
			t.Errorf("step %d, %s: %v %v", step, failed, info.Mode(), err)
		}
	}
}

// A1: a crash at any step leaves each file whole, old or new, and loses none.
func TestPatchCrash(t *testing.T) {
	olds := map[string]string{"a": "a\n", "b": "b\n", "d/c": "c\n", "z": "z\n"}
	news := map[string]string{"a": "x\n", "n/e/w": "1\n", "e/c": "c\ny\n", "z": "w\n"}
	for step := 0; ; step++ {
		k := newFaultKit(t)
		count := 0
		applyWith(k, patchDisk{before: func(string, string) error {
			if count++; count > step {
				return errFault // and so does everything from here on
			}
			return nil
		}})
		kept := map[string]bool{}
		for name, content := range k.Tree() {
			kept[content] = true
			if strings.Contains(name, ".antiphon-") || strings.HasSuffix(name, "/") {
				continue
			}
			old, was := olds[name]
			fresh, is := news[name]
			if !(was && content == old) && !(is && content == fresh) {
				t.Errorf("step %d: %s holds %q", step, name, content)
			}
		}
		tree := withoutTemps(k.Tree())
		_, stays := tree["d/c"]
		if done := tree["a"] == "x\n" && tree["z"] == "w\n" && tree["n/e/w"] == "1\n" && !stays; !done && !kept["b\n"] {
			t.Errorf("step %d: b is lost", step)
		}
		if !kept["c\n"] && !kept["c\ny\n"] {
			t.Errorf("step %d: c is lost", step)
		}
		if count <= step {
			return
		}
	}
}

// A failure that cannot be taken back is told with what is kept where.
func TestPatchUndoFails(t *testing.T) {
	k := newFaultKit(t)
	renames := 0
	_, err := applyWith(k, patchDisk{before: func(op, name string) error {
		if op == "rename" {
			if renames++; renames > 2 {
				return errFault
			}
		}
		return nil
	}})
	if err == nil || !strings.Contains(err.Error(), "failed half-way") || !strings.Contains(err.Error(), ".antiphon-") {
		t.Errorf("%v", err)
	}
}

// A1: what another program writes meanwhile is not overwritten.
func TestPatchRace(t *testing.T) {
	for name, meddle := range map[string]func(k *kittest.Kit){
		"changed":  func(k *kittest.Kit) { k.Write("z", "other content\n") },
		"replaced": func(k *kittest.Kit) { os.Rename(k.Write("tmp", "z\n"), filepath.Join(k.Dir, "z")) },
		"removed":  func(k *kittest.Kit) { os.Remove(filepath.Join(k.Dir, "z")) },
		"created":  func(k *kittest.Kit) { k.Write("e/c", "mine\n") },
	} {
		t.Run(name, func(t *testing.T) {
			k := newFaultKit(t)
			var was map[string]string
			_, err := applyWith(k, patchDisk{before: func(op, name string) error {
				if op == "rename" && was == nil { // the first step that can be seen
					meddle(k)
					was = withoutTemps(k.Tree())
				}
				return nil
			}})
			if err == nil || !strings.Contains(err.Error(), "changed by another program at the same time") {
				t.Errorf("%v", err)
			}
			now := k.Tree()
			delete(was, "n/")
			delete(was, "n/e/")
			if name != "created" {
				delete(was, "e/")
			}
			if diff := cmp.Diff(was, now); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A1: a file that comes up in the last moment is not overwritten.
func TestPatchLateRace(t *testing.T) {
	k := newFaultKit(t)
	_, err := applyWith(k, patchDisk{before: func(op, name string) error {
		if op == "link" && name == "e/c" {
			k.Write("e/c", "mine\n")
		}
		return nil
	}})
	if err == nil || !strings.Contains(err.Error(), "changed by another program at the same time") || k.Content("e/c") != "mine\n" || k.Content("a") != "a\n" {
		t.Errorf("%v %v", err, k.Tree())
	}
}

func withoutTemps(tree map[string]string) map[string]string {
	for name := range tree {
		if strings.Contains(name, ".antiphon-") {
			delete(tree, name)
		}
	}
	return tree
}

// A1: a directory that becomes a link to the outside, at any step, leads
// nowhere.
func TestPatchLinkRace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a directory in use cannot be renamed there")
	}
	for step := 0; ; step++ {
		k := newFaultKit(t)
		outside := t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "c"), []byte("c\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		count := 0
		applyWith(k, patchDisk{before: func(op, name string) error {
			if count++; count-1 == step {
				os.Rename(filepath.Join(k.Dir, "d"), filepath.Join(k.Dir, "was"))
				k.Symlink(outside, "d")
				os.Rename(filepath.Join(k.Dir, "e"), filepath.Join(k.Dir, "wase"))
				os.Symlink(outside, filepath.Join(k.Dir, "e"))
			}
			return nil
		}})
		if diff := cmp.Diff(map[string]string{"c": "c\n"}, kittest.Tree(t, outside)); diff != "" {
			t.Errorf("step %d:\n%s", step, diff)
		}
		if count <= step {
			return
		}
	}
}

// Patches of one Files wait for each other: of many that count, none is lost.
func TestPatchesAtOnce(t *testing.T) {
	k := newPatchKit(t)
	k.Write("f", "head\n")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := Apply(t.Context(), k.Files, envelope("*** Update File: f", "@@ head", fmt.Sprintf("+line %d", i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(k.Content("f"), "\n"); n != 21 {
		t.Errorf("%d lines", n)
	}
	k.NoLeftovers()
}

// A cancelled call writes nothing.
func TestPatchCancelled(t *testing.T) {
	k := newFaultKit(t)
	was := k.Tree()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Apply(ctx, k.Files, faultPatch); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(was, k.Tree()); diff != "" {
		t.Error(diff)
	}
}

// The tool is the same as a custom tool with a grammar.
func TestPatchCustom(t *testing.T) {
	k := newPatchKit(t)
	apply, err := Tool("apply_patch", k.Files, Custom)
	if err != nil {
		t.Fatal(err)
	}
	def, ok := apply.Definition().(*item.CustomTool)
	if !ok || !strings.HasPrefix(string(def.Format), `{"type":"grammar","syntax":"lark","definition":"start: begin`) {
		t.Fatalf("%#v", apply.Definition())
	}
	if annotations := tool.AnnotationsOf(apply); annotations.ReadOnly || !annotations.Exclusive {
		t.Errorf("%+v", annotations)
	}
	set, err := tool.NewSet(apply)
	if err != nil {
		t.Fatal(err)
	}
	o := set.Invoke(t.Context(), tool.Call{Name: "apply_patch", Custom: true, Arguments: envelope("*** Add File: n", "+1")}, output.Policy{})
	if o.Failed || o.Content.Display() != "The patch was applied:\nA n" || k.Content("n") != "1\n" {
		t.Errorf("%+v", o)
	}
}

// The API's own items: an operation of one file, answered with its status.
func TestAnswerPatchCall(t *testing.T) {
	k := newPatchKit(t)
	k.Write("f", "a\nb\n")
	for _, c := range []struct {
		op           item.PatchOperation
		status, says string
	}{
		{item.PatchOperation{Type: item.PatchCreate, Path: "n", Diff: "+1\n+2\n"}, "completed", "A n"},
		{item.PatchOperation{Type: item.PatchUpdate, Path: "f", Diff: "@@\n a\n-b\n+x\n"}, "completed", "M f"},
		{item.PatchOperation{Type: item.PatchUpdate, Path: "f", Diff: envelope("*** Update File: f", "@@", "-x", "+y")}, "completed", "M f"},
		{item.PatchOperation{Type: item.PatchUpdate, Path: "f", Diff: envelope("*** Delete File: f")}, "failed", "does something else"},
		{item.PatchOperation{Type: item.PatchUpdate, Path: "f", Diff: "@@\n-x\n+z\n*** Delete File: f"}, "failed", "a diff of one file cannot have the line"},
		{item.PatchOperation{Type: item.PatchUpdate, Path: "f", Diff: "@@\n-nope\n"}, "failed", "f, hunk 1 (line 1 of the patch): these lines were not found"},
		{item.PatchOperation{Type: item.PatchCreate, Path: "f", Diff: "+1"}, "failed", "f exists already"},
		{item.PatchOperation{Type: item.PatchDelete, Path: "n"}, "completed", "D n"},
		{item.PatchOperation{Type: item.PatchDelete, Path: "../n"}, "failed", "is outside of"},
		{item.PatchOperation{Type: "rename_file", Path: "n"}, "failed", `type "rename_file" is not known`},
	} {
		call := item.Must(&item.ApplyPatchCall{CallID: "call_1", Operation: &c.op, Status: item.StatusCompleted})
		answer, err := AnswerCall(t.Context(), k.Files, call)
		if err != nil {
			t.Fatal(err)
		}
		out, err := item.As[item.ApplyPatchCallOutput](answer)
		if err != nil || out.CallID != "call_1" || out.Status != c.status || !strings.Contains(out.Output, c.says) {
			t.Errorf("%+v: %+v, %v", c.op, out, err)
		}
	}
	if diff := cmp.Diff(map[string]string{"f": "a\ny\n"}, k.Tree()); diff != "" {
		t.Error(diff)
	}
	if _, err := AnswerCall(t.Context(), k.Files, item.Must(&item.FunctionCall{CallID: "c", Name: "n", Arguments: "{}"})); err == nil {
		t.Error("a function call was taken")
	}
}

// A1, as a property: the patch that a random edit of a random file makes gives
// the edited file, with any line ends, and touches no other file.
func TestPatchProperty(t *testing.T) {
	k := newPatchKit(t)
	line := rapid.SampledFrom([]string{"", "a", "b", "  a", "\tb ", "}", "func f() {", "// é", "+x", "-y", "@@ z", "*** End Patch"})
	rapid.Check(t, func(rt *rapid.T) {
		old := rapid.SliceOfN(line, 0, 30).Draw(rt, "old")
		for i := range old { // so that context tells a place
			if i%3 == 0 {
				old[i] += fmt.Sprintf(" line %d", i)
			}
		}
		eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "eol")
		ended := rapid.Bool().Draw(rt, "ended")
		bom := rapid.SampledFrom([]string{"", "\ufeff"}).Draw(rt, "bom")
		body, fresh, lastGone := randomHunks(rt, old, line)
		if len(body) == 0 {
			return
		}
		before, after := joinLines(old, eol), joinLines(fresh, cmpEnd(old, eol))
		if !ended && len(old) > 0 && old[len(old)-1] != "" {
			before = strings.TrimSuffix(before, eol)
			if len(old) == 1 {
				after = joinLines(fresh, "\n") // of the line end that it never had
			}
			if !lastGone {
				after = strings.TrimSuffix(strings.TrimSuffix(after, "\n"), "\r")
			}
		}
		k.Write("f", bom+before)
		k.Write("other", "same")
		patch := envelope(append([]string{"*** Update File: f"}, body...)...)
		if _, err := Apply(t.Context(), k.Files, patch); err != nil {
			if strings.Contains(err.Error(), "the files are as the patch wants them already") && slices.Equal(old, fresh) {
				return
			}
			rt.Fatalf("%v\n%s\nfile: %q", err, patch, old)
		}
		want := map[string]string{"f": bom + after, "other": "same"}
		if diff := cmp.Diff(want, k.Tree()); diff != "" {
			rt.Fatalf("%s\n%s", diff, patch)
		}
	})
}

// cmpEnd is the line end of a file that had none before.
func cmpEnd(old []string, eol string) string {
	if len(old) == 0 {
		return "\n"
	}
	return eol
}

func joinLines(lines []string, eol string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l + eol)
	}
	return b.String()
}

// randomHunks edits a file and returns the hunks that say so, each with so much
// context that it is the only place. lastGone says that the last line was
// removed, and another of the old file is the last now.
func randomHunks(rt *rapid.T, old []string, line *rapid.Generator[string]) (body, fresh []string, lastGone bool) {
	next := 0
	for next < len(old) && rapid.Bool().Draw(rt, "hunk") {
		start := rapid.IntRange(next, len(old)-1).Draw(rt, "start")
		n := rapid.IntRange(0, min(4, len(old)-start)).Draw(rt, "removed")
		add := rapid.SliceOfN(line, 0, 3).Draw(rt, "added")
		before := max(next, start-4)
		after := min(len(old), start+n+4)
		fresh = append(fresh, old[next:start]...)
		fresh = append(fresh, add...)
		fresh = append(fresh, old[start+n:after]...)
		body = append(body, "@@")
		for _, l := range old[before:start] {
			body = append(body, " "+l)
		}
		for _, l := range old[start : start+n] {
			body = append(body, "-"+l)
		}
		for _, l := range add {
			body = append(body, "+"+l)
		}
		for _, l := range old[start+n : after] {
			body = append(body, " "+l)
		}
		lastGone = start+n == len(old) && len(add) == 0
		if after == len(old) {
			body = append(body, "*** End of File")
		}
		next = after
	}
	fresh = append(fresh, old[next:]...)
	if len(old) == 0 {
		add := rapid.SliceOfN(line, 1, 3).Draw(rt, "added")
		body = append(body, "@@")
		for _, l := range add {
			body = append(body, "+"+l)
		}
		fresh = add
	}
	return body, fresh, lastGone
}

// The quick search finds what the plain one finds.
func TestPatchFindProperty(t *testing.T) {
	line := rapid.SampledFrom([]string{"a", " a", "a ", "b", "", "–", "-", "“q”", `"q"`})
	rapid.Check(t, func(rt *rapid.T) {
		x := &lineIndex{lines: rapid.SliceOfN(line, 0, 20).Draw(rt, "lines")}
		run := rapid.SliceOfN(line, 1, 4).Draw(rt, "run")
		from := rapid.IntRange(0, len(x.lines)).Draw(rt, "from")
		l := likeness(rapid.IntRange(0, int(likenesses)-1).Draw(rt, "level"))
		var want []int
		for i := from; i+len(run) <= len(x.lines); i++ {
			if slices.EqualFunc(x.lines[i:i+len(run)], run, func(a, b string) bool { return l.reduce(a) == l.reduce(b) }) {
				want = append(want, i)
			}
		}
		if got := x.find(l, run, from); !slices.Equal(got, want) {
			rt.Fatalf("got %v, want %v", got, want)
		}
	})
}

// Hard input does not take hard time: half a million equal lines, and a hunk of
// tens of thousands, that differs in the last.
func TestPatchBounded(t *testing.T) {
	text := splitText(strings.Repeat("same\n", 500_000))
	h := hunk{number: 1}
	for range 50_000 {
		h.edits = append(h.edits, edit{kind: ' ', text: "same"})
	}
	h.edits = append(h.edits, edit{kind: '-', text: "other"})
	if _, _, err := text.apply(t.Context(), "f", []hunk{h}); err == nil {
		t.Error("it was found")
	}
}

// No text makes the parser or the tool panic; what is refused changes nothing.
func FuzzPatch(f *testing.F) {
	f.Add(faultPatch, "a\nb\n")
	f.Add(envelope("*** Update File: f", "@@ -1,2 +1,2 @@", "-a", "+x", `\ No newline at end of file`, "*** End of File"), "a")
	f.Add("<<EOF\n"+envelope("*** Add File: n", "+\xff", "*** Update File: f", "*** Move to: g", "@@ a", "@@ b", " a", "", "+c")+"EOF", "a\r\n\r\nb")
	f.Fuzz(func(t *testing.T, patch, content string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		files, err := files.Open(files.Root{Path: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		was := kittest.Tree(t, dir)
		_, err = Apply(t.Context(), files, patch)
		now := kittest.Tree(t, dir)
		if err != nil && !cmp.Equal(was, now) {
			t.Errorf("%v, and yet %s", err, cmp.Diff(was, now))
		}
		for name := range now {
			if strings.Contains(name, ".antiphon-") {
				t.Errorf("%s was left behind", name)
			}
		}
		for _, op := range []patchOp{patchAdd, patchUpdate, patchDelete} {
			parseDiff(op, "f", patch)
		}
	})
}

// A1: the API's own patch tool changes files in the roots and nowhere else.
func TestPatchTool(t *testing.T) {
	k := kittest.New(t)
	k.Add(Tool("", k.Files, API))
	k.Write("f", "a\nb\n")
	for _, c := range []struct {
		arguments, says string
		failed          bool
	}{
		{`{"type":"update_file","path":"f","diff":"@@\n a\n-b\n+x\n"}`, "M f", false},
		{`{"type":"create_file","path":"d/n","diff":"+1\n"}`, "A d/n", false},
		{`{"type":"create_file","path":"../n","diff":"+1\n"}`, "is outside of", true},
		{`{"type":"delete_file","path":"f","path":"d/n"}`, `duplicate object member name "path"`, true},
		{`{"type":"delete_file","Path":"f","path":"d/n"}`, `duplicate object member name "path"`, true},
		{`{"type":"delete_file","p_ath":"f"}`, "in two ways", true},
		{`{"type":"delete_file","Path":"f"}`, "in two ways", true},
		{`{"type":`, "cannot be read", true},
		{``, "cannot be read", true},
		{`{}`, "is not known", true},
	} {
		o := k.Set.Invoke(t.Context(), tool.Call{Kind: item.TypeApplyPatchCall, Name: "apply_patch", Arguments: c.arguments}, output.Policy{})
		if o.Failed != c.failed || !strings.Contains(o.Content.Display(), c.says) {
			t.Errorf("%s: %q", c.arguments, o.Content.Display())
		}
	}
	if diff := cmp.Diff(map[string]string{"f": "a\nx\n", "d/": "", "d/n": "1\n"}, k.Tree()); diff != "" {
		t.Error(diff)
	}
}

// A directory that a link takes the place of between two steps of a patch leads none of them to files
// that other programs obey, and neither does one that was a link before. A1
func TestPatchThroughLink(t *testing.T) {
	sections := map[string]string{
		"added":   envelope("*** Add File: a/folder/pre-commit", "+evil"),
		"second":  envelope("*** Update File: a/folder/y", "@@", "-mine", "+evil", "*** Add File: a/folder/.envrc", "+evil"),
		"changed": envelope("*** Update File: a/folder/x", "@@", "-mine", "+evil"),
		"deleted": envelope("*** Delete File: a/folder/x"),
	}
	for name, text := range sections {
		steps := 0
		for at := 0; at <= steps; at++ { // 0 is before the patch is read
			k := kittest.New(t)
			folder, hooks := filepath.Join(k.Dir, "a", "folder"), filepath.Join(k.Dir, ".git", "hooks")
			for _, file := range []string{"x", "y"} {
				k.Write(".git/hooks/"+file, "mine\n")
				k.Write("a/folder/"+file, "mine\n")
			}
			swap := func() {
				if err := errors.Join(os.Rename(folder, folder+".away"), os.Symlink("../.git/hooks", folder)); err != nil {
					t.Fatal(err)
				}
			}
			if at == 0 {
				swap()
			}
			parsed, err := parsePatch(text)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			_, err = applySections(t.Context(), k.Files, parsed, patchDisk{before: func(string, string) error {
				if n++; n == at {
					swap()
				}
				return nil
			}})
			steps = max(steps, n)
			if at == 0 && err == nil {
				t.Errorf("%s: no error", name)
			}
			entries, _ := os.ReadDir(hooks)
			for _, e := range entries {
				if got, _ := os.ReadFile(filepath.Join(hooks, e.Name())); string(got) != "mine\n" {
					t.Errorf("%s, step %d: %s has %q (%v)", name, at, e.Name(), got, err)
				}
			}
			if len(entries) != 2 {
				t.Errorf("%s, step %d: %v (%v)", name, at, entries, err)
			}
		}
	}
}
