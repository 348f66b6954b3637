// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/antiphon-go/antiphon/internal/show"
)

// initCommand is antiphon init.
type initCommand struct {
	File string `arg:"" optional:"" default:"agent.md" help:"The file to write."`
}

// Help is shown by antiphon init --help.
func (initCommand) Help() string {
	return `Writes a first agent into a new file, agent.md by default: instructions, two tools that
read the current folder, and a question. A file that exists is never overwritten.`
}

// firstAgent is the file that antiphon init writes.
//
//go:embed first.md
var firstAgent []byte

// Run writes the file.
func (c *initCommand) Run(std stdio) error {
	if info, err := os.Lstat(c.File); err == nil && !info.IsDir() {
		return usage(fmt.Errorf("%s exists already; name a new file, as in antiphon init second.md", show.Visible(c.File)))
	}
	if _, err := writeFile(c.File, false, func(w io.Writer) error {
		_, err := w.Write(firstAgent)
		return err
	}); err != nil {
		return err
	}
	name := quoted(c.File)
	fmt.Fprintf(std.out, "%s is there. Run it, and change it with an editor:\n  antiphon run %[1]s\n  antiphon run %[1]s \"Which of them is the largest?\" --session first\n", name)
	return nil
}
