// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/alecthomas/kong"
)

// The command line that is made for one command has this command as the whole has it, and
// the names of all are known without it.
func TestGrammarOfOneCommand(t *testing.T) {
	whole := grammarModel(t)
	var names []string
	for _, command := range whole.Model.Children {
		names = append(names, command.Name)
		if command.Name == "sessions" {
			for _, verb := range command.Children {
				names = append(names, verb.Name)
			}
		}
		alone := grammarModel(t, command.Name, "x").Model
		if command.Name == "man" {
			if len(alone.Children) != len(whole.Model.Children) {
				t.Error("antiphon man does not know all commands")
			}
			continue
		}
		if len(alone.Children) != 1 {
			t.Fatalf("%s: %d commands are made", command.Name, len(alone.Children))
		}
		if got, want := page(alone.Children[0]), page(command); got != want {
			t.Errorf("%s alone is\n%s\nand of all\n%s", command.Name, got, want)
		}
	}
	if got := commandNames(); !slices.Equal(got, names) {
		t.Errorf("the commands are %v, want %v", got, names)
	}
}

// grammarModel returns the parser for arguments.
func grammarModel(t *testing.T, args ...string) *kong.Kong {
	t.Helper()
	parser, err := kong.New(grammarFor(args), kong.Name("antiphon"), kong.ExplicitGroups(flagGroups))
	if err != nil {
		t.Fatal(err)
	}
	return parser
}
