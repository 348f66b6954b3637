// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/session"
)

// U8: what is not a session is refused with one error, which says what the file
// seems to be, where it ends if it was cut, and what to do; nothing is made of it.
func TestImportOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	whole := read(t, forged(t, filepath.Join(dir, "agent.md"), session.RunStarted{}, session.Stopped{Why: "answered"}))
	lines := strings.SplitAfter(whole, "\n")
	store := filepath.Join(dir, "s.db")
	if o := program(t, "sessions", "--store", store, "import", filepath.Join(dir, "forged.jsonl")); o.code != 0 {
		t.Fatal(o.err)
	}
	// Lines that another program wrote anew are lines all the same.
	spaced := strings.Replace(regexp.MustCompile(`,"sum":"[^"]*"|,"sha256":"[^"]*"`).ReplaceAllString(whole, ""), `{"format":`, `{ "format" : `, 1)
	if o := program(t, "sessions", "--store", store, "import", write(t, filepath.Join(dir, "spaced.jsonl"), spaced), "--name", "spaced"); o.code != 0 {
		t.Error(o.err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"page.html":  {"\n<!DOCTYPE html>\n<html>", ": an HTML page, not a session\n  hint: the page of sessions export is for reading; export the session with --to jsonl, "},
		"empty":      {"", ": an empty file, not a session\n  hint: "},
		"blank":      {" \r\n\t\n", ": a file of blanks only, not a session\n  hint: "},
		"marked":     {"\ufeff" + beginsSession + "}\n", ": an exported session behind a byte order mark, not a session\n  hint: save it as UTF-8 without that mark"},
		"a.gz":       {"\x1f\x8b\x08\x00", ": a compressed file, not a session\n  hint: unpack it"},
		"a.db":       {"SQLite format 3\x00abc", " shows what is in it"},
		"wide.jsonl": {"\xff\xfe{\x00", ": text in UTF-16, not a session\n  hint: export it with -o FILE"},
		"picture":    {"\x89PNG\x00", ": a binary file, not a session\n  hint: "},
		"other.json": {"{\"a\":1}", " is not an exported session, whose first line begins {\"format\":\"antiphon session\"; it is JSON of another kind\n  hint: "},
		"chat.json":  {"\n[{\"role\":\"user\",\"content\":\"hi\"}]", "it seems to be a list of messages\n  hint: make a transcript of it"},
		"torn.json":  {"{\"messages\":\n[{\"ro", "torn.json:2:6: JSON that was cut short: it ends here\n  hint: "},
		"wrong.json": {"{\"a\": nope}", "wrong.json:1:8: not valid JSON\n  hint: "},
		"anew.jsonl": {regexp.MustCompile(`(?m)^\{(.*),("sum":"[^"]*")\}$`).ReplaceAllString(whole, "{$2,$1}"), "anew.jsonl: line 2: another program rewrote this line, so its checksum"},
		"cut1.jsonl": {whole[:len(lines[0])+20], "cut1.jsonl: line 2: the file ends in the middle of this line: it was cut short\n  hint: nothing was imported"},
		"cut2.jsonl": {lines[0] + lines[1], "cut2.jsonl: line 3: the file ends before its last line: it was cut short\n  hint: nothing was imported"},
		"talk.md":    {"hello\n<user>hi</user>\n<nope/>", "2 problems in the file; nothing was imported\n"},
	} {
		file := write(t, filepath.Join(dir, name), c.text)
		o := program(t, "sessions", "--store", store, "import", file)
		if o.code != exitUsage || len(o.messages()) != 1 || !strings.Contains(o.err, c.want) {
			t.Errorf("%s: exit code %d\n%s\nwant %s", name, o.code, o.err, c.want)
		}
	}
	if o := program(t, "sessions", "--store", store, "list"); strings.Count(o.out, "\n") != 3 {
		t.Errorf("something was made:\n%s", o.out)
	}
}

// U8: sessions import - reads standard input, lines as well as a transcript.
func TestImportOfStandardInput(t *testing.T) {
	dir := t.TempDir()
	lines := read(t, forged(t, filepath.Join(dir, "agent.md"), session.RunStarted{}, session.Stopped{Why: "answered"}))
	for _, c := range []struct {
		text, name string
		code       int
		says       string
	}{
		{lines, "work", 0, "is imported, with 2 entries"},
		{"<user>hello</user>\n", "imported", 0, "is imported, with 1 entry"},
		{lines[:len(lines)-30], "", exitUsage, "antiphon: standard input: line 4: the file ends in the middle of this line"},
		{"", "", exitUsage, "antiphon: standard input: an empty file, not a session"},
		{"[]", "", exitUsage, "antiphon convert FILE --to chatmd"},
	} {
		var out, err bytes.Buffer
		code := run(t.Context(), []string{"sessions", "--store", filepath.Join(dir, "s.db"), "import", "-"}, nil, stdio{strings.NewReader(c.text), &out, &err})
		if said := out.String() + err.String(); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%q: exit code %d\n%s", c.text, code, said)
		}
		if o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "info", c.name); c.name != "" && o.code != 0 {
			t.Errorf("%s is not there: %s", c.name, o.err)
		}
	}
}
