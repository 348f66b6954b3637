// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// documents returns the text of README.md and docs, by their names.
func documents(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal("no documents", err)
	}
	texts := map[string]string{}
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		texts[filepath.Base(file)] = read(t, file)
	}
	return texts
}

// foreign are flags in the documents that belong to other programs.
var foreign = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq("jinja port mmproj enable-auto-tool-choice tool-call-parser ctx-size prefill-assistant unix-socket rm") {
		foreign[name] = true
	}
}

// TestDocumentedFlags: every flag and command of the program is documented, and
// every flag that the documents give it exists. U8
func TestDocumentedFlags(t *testing.T) {
	var cli grammar
	parser, err := kong.New(&cli, kong.Name("antiphon"), kong.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	texts := documents(t)
	delete(texts, "rules.md") // it says also what is to come
	var all strings.Builder
	for _, text := range texts {
		all.WriteString(text + "\n")
	}
	known := map[string]bool{}
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		switch n := node.(type) {
		case *kong.Flag:
			known[n.Name] = true
			for _, alias := range n.Aliases {
				known[alias] = true
			}
			if !n.Hidden && n.Name != "help" && !regexp.MustCompile("--"+n.Name+`\b`).MatchString(all.String()) {
				t.Errorf("--%s is not documented", n.Name)
			}
		case *kong.Node:
			if n.Type == kong.CommandNode && !n.Hidden && !regexp.MustCompile("(antiphon |sessions |trust |work |keys |`)"+n.Name+"\\b").MatchString(all.String()) {
				t.Errorf("the command %s is not documented", n.Name)
			}
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile("(?:^|[\\s`(])--([a-z][a-z-]+)")
	for name, text := range texts {
		for line := range strings.Lines(text) {
			for _, m := range flag.FindAllStringSubmatch(line, -1) {
				if !known[m[1]] && !foreign[m[1]] && (strings.Contains(line, "antiphon") || strings.Contains(line, "`--"+m[1])) {
					t.Errorf("%s: --%s does not exist: %s", name, m[1], strings.TrimSpace(line))
				}
			}
		}
	}
}

// TestDocumentedCommands: every command that the documents give the program in
// code exists. U8
func TestDocumentedCommands(t *testing.T) {
	var cli grammar
	parser, err := kong.New(&cli, kong.Name("antiphon"), kong.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"help": true}
	var learn func(before string, n *kong.Node)
	learn = func(before string, n *kong.Node) {
		for _, c := range n.Children {
			known[before+c.Name] = true
			learn(c.Name+" ", c)
		}
	}
	learn("", parser.Model.Node)
	code := regexp.MustCompile("(?s)```.*?\n```|`[^`\n]+`")
	command := regexp.MustCompile(`(?:^|[\s` + "`" + `/])antiphon (?:(sessions) )?([a-z][a-z-]*)`)
	texts := documents(t)
	delete(texts, "rules.md") // it says also what is to come
	for name, text := range texts {
		for _, span := range code.FindAllString(text, -1) {
			for _, m := range command.FindAllStringSubmatch(span, -1) {
				if said := strings.TrimSpace(m[1] + " " + m[2]); !known[said] {
					t.Errorf("%s: there is no command antiphon %s: %.80s", name, said, span)
				}
			}
		}
	}
}

// section returns what a document has under a heading of the second level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n"+heading)
	if !found {
		t.Fatalf("no section %q", heading)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// TestCommandsPage: docs/commands.md says "every flag": each flag of run and
// doctor stands in the section of its command, and so does each command of sessions. U8
func TestCommandsPage(t *testing.T) {
	var cli grammar
	parser, err := kong.New(&cli, kong.Name("antiphon"), kong.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	texts := documents(t)
	page := texts["commands.md"]
	sessions := section(t, page, "## antiphon sessions")
	for _, command := range parser.Model.Children {
		switch command.Name {
		case "run", "doctor":
			text := section(t, page, "## antiphon "+command.Name)
			for _, group := range command.AllFlags(true) {
				for _, f := range group {
					if f.Name != "help" && !regexp.MustCompile("--"+f.Name+"([^a-z-]|$)").MatchString(text) {
						t.Errorf("docs/commands.md, antiphon %s: --%s is missing", command.Name, f.Name)
					}
				}
			}
		case "sessions":
			for _, sub := range command.Children {
				if !sub.Hidden && !strings.Contains(sessions, "`"+sub.Name+"`") {
					t.Errorf("docs/commands.md: `%s` of antiphon sessions is missing", sub.Name)
				}
			}
		}
	}
}

// TestREADMEFlags: a row of the table of commands in README.md has few flags, and a link to the
// page that has all. TestDocumentedFlags proves that they exist. U8
func TestREADMEFlags(t *testing.T) {
	rows := 0
	for line := range strings.Lines(section(t, documents(t)["README.md"], "## Commands")) {
		if !strings.HasPrefix(line, "| `antiphon") {
			continue
		}
		rows++
		if n := strings.Count(line, "`--"); n > 5 || n > 2 && !strings.Contains(line, "(docs/commands.md#") {
			t.Errorf("%d flags: %s", n, line)
		}
	}
	if rows < 20 {
		t.Errorf("the table has %d rows", rows)
	}
}
