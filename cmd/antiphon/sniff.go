// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/host"
)

// sniffed is the size of the part of a file that is used to detect its type. A
// longer conversation on a single line of JSON is not read completely only for this
// purpose.
const sniffed = 1 << 20

// beginsSession is the beginning of the first line of sessions export in JSON lines.
const beginsSession = `{"format":"` + export.Format + `"`

// onlyExports lists what sessions import can read.
const onlyExports = "sessions import reads what sessions export --to jsonl and --to chatmd write"

// kindOfFile returns the type of a file according to its beginning, or "" for
// ordinary text.
func kindOfFile(head []byte) string {
	text := bytes.TrimLeft(head, " \t\r\n")
	switch lower := strings.ToLower(string(text[:min(len(text), 20)])); {
	case strings.HasPrefix(lower, "<!doctype html") || strings.HasPrefix(lower, "<html"):
		return htmlPage
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return database
	case bytes.HasPrefix(head, []byte("\x1f\x8b")), bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return "a compressed file"
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return wideText
	case bytes.IndexByte(head, 0) >= 0:
		return "a binary file"
	}
	return ""
}

// File types with a hint of their own.
const (
	htmlPage = "an HTML page"
	database = "a database of SQLite's"
	wideText = "text in UTF-16"
)

// notImportable returns an error with a hint for a file that is neither an exported
// session nor ChatMarkdown, or nil if it may be one. head is the beginning of the
// file, or the complete file if whole is set.
func notImportable(name string, head []byte, whole bool) error {
	kind, hint := kindOfFile(head), onlyExports
	text := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(head) == 0:
		kind, hint = "an empty file", "the export or the copy may have failed; make it again"
	case len(text) == 0:
		kind = "a file of blanks only"
	case bytes.HasPrefix(head, []byte("\ufeff"+beginsSession)):
		kind, hint = "an exported session behind a byte order mark", "save it as UTF-8 without that mark"
	case kind == "" && (text[0] == '{' || text[0] == '['):
		return otherJSON(name, head, whole)
	case kind == "":
		return nil
	case kind == htmlPage:
		hint = "the page of sessions export is for reading; export the session with --to jsonl, and import that"
	case kind == database:
		hint = "if it is a store of sessions, " + antiphonWith(name)
	case kind == wideText:
		hint = "export it with -o FILE, which writes UTF-8; the > of some shells does not"
	case kind == "a compressed file":
		hint = "unpack it first"
	}
	return fmt.Errorf("%s: %s, not a session\n  hint: %s", name, kind, hint)
}

// notAgent returns an error with a hint for a file that cannot be an agent's file
// according to its beginning. It returns nil for other files, and for unreadable
// ones. Without it an HTML page would give an error for every line.
func notAgent(path string) error {
	head := headOf(path, sniffed)
	text := bytes.TrimLeft(head, " \t\r\n")
	kind, hint := kindOfFile(head), "an agent's file is text: see docs/chatmarkdown.md"
	switch {
	case kind == wideText:
		hint = "save it as UTF-8"
	case kind == "" && isSession(text):
		kind, hint = "an exported session", fmt.Sprintf("antiphon sessions import %s --for AGENT makes a session of it to go on with", quoted(path))
	case kind == "" && len(text) > 0 && (text[0] == '{' || text[0] == '['):
		kind = "JSON"
		if form := sniffForm(head); forms[form] != "" && (form != formLines || hasType(head)) {
			kind, hint = forms[form], fmt.Sprintf("antiphon convert %s --to chatmd --out NEW.md makes an agent's file of it", quoted(path))
		}
	}
	if kind == "" {
		return nil
	}
	return &chatmd.Error{File: path, Line: 1, Column: 1, Message: kind + ", not an agent's file", Hint: hint}
}

// absentAgent returns an error for an agent's file that does not exist, with what may have been meant:
// a file beside it, one of the names of agents, or a new one.
func absentAgent(path string, names []string) error {
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return nil // reading the file reports other errors
	}
	var why *fs.PathError
	if errors.As(err, &why) {
		err = why.Err
	}
	if strings.Contains(path, "://") {
		return fmt.Errorf("%s: %w; an agent is a file on this machine: save it first", path, err)
	}
	if strings.ContainsAny(path, " \t\n?？") && !strings.HasSuffix(path, ".md") {
		return fmt.Errorf("%s: %w; antiphon ask %s asks it as a question", path, err, quoted(path))
	}
	for _, other := range append(filesLike(path), names...) {
		if other == path+".md" || host.Nearly(bareName(other), bareName(path)) {
			return fmt.Errorf("%s: %w; did you mean %s?", path, err, quoted(other))
		}
	}
	return fmt.Errorf("%s: %w; antiphon init %s writes a first agent there", path, err, quoted(path))
}

// bareName returns the name of an agent's file without folder and ending.
func bareName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".md") }

// filesLike returns the paths of the files in the folder of a path that may be agents.
func filesLike(path string) (list []string) {
	folder, _ := filepath.Split(path)
	files, _ := os.ReadDir(cmp.Or(folder, "."))
	for _, f := range files {
		if filepath.Ext(f.Name()) == ".md" && f.Type().IsRegular() {
			list = append(list, folder+f.Name())
		}
	}
	return list
}

// headOf returns the beginning of a file, or nil if it does not exist or is a pipe,
// which can be read only once.
func headOf(path string, most int64) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	return head
}

// antiphonWith returns the command that lists a store.
func antiphonWith(file string) string {
	return fmt.Sprintf("antiphon sessions list --store %s shows what is in it", quoted(file))
}

// forms describes the types of JSON files.
var forms = map[string]string{
	formMessages: "a list of messages",
	formChat:     "a request to Chat Completions, or its answer",
	formItems:    "a list of items",
	formRequest:  "a request to the Responses API, or its answer",
	formLines:    "items, one a line",
}

// otherJSON is notImportable for JSON.
func otherJSON(name string, head []byte, whole bool) error {
	if isSession(head) || bytes.HasPrefix(head, []byte(beginsSession)) {
		return nil
	}
	if at, err := badJSON(head); err != nil && (whole || !errors.Is(err, io.ErrUnexpectedEOF)) {
		problem, hint := "not valid JSON", "mend it, or export the session again"
		if errors.Is(err, io.ErrUnexpectedEOF) {
			problem, hint = "JSON that was cut short: it ends here", "make the file again, or copy all of it"
		}
		line, column := placeOf(head, at)
		return fmt.Errorf("%s:%d:%d: %s\n  hint: %s", name, line, column, problem, hint)
	}
	form := sniffForm(head)
	if what, ok := forms[form]; ok && (form != formLines || hasType(head)) {
		file := quoted(name)
		if name == standardInput {
			file = "FILE"
		}
		return fmt.Errorf("%s is not an exported session; it seems to be %s\n  hint: make a transcript of it, and import that: antiphon convert %s --to chatmd --out NEW.md", name, what, file)
	}
	return fmt.Errorf("%s is not an exported session, whose first line begins %s; it is JSON of another kind\n  hint: %s", name, beginsSession, onlyExports)
}

// badJSON returns where JSON values stop being valid.
func badJSON(data []byte) (at int, err error) {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for err == nil {
		err = d.SkipValue()
	}
	var syntax *jsontext.SyntacticError
	switch {
	case err == io.EOF:
		return 0, nil
	case errors.As(err, &syntax):
		return int(syntax.ByteOffset), err
	}
	return int(d.InputOffset()), err
}

// placeOf returns the line and the column of an offset, from 1.
func placeOf(text []byte, at int) (line, column int) {
	before := text[:min(max(at, 0), len(text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, len([]rune(string(before[start:]))) + 1
}
