// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/agentfile"
)

// checkCommand is antiphon check.
type checkCommand struct {
	Files []string `arg:"" name:"file" help:"Agent files or transcripts."`
}

// Help is shown by antiphon check --help.
func (checkCommand) Help() string {
	return `Every problem is a line FILE:LINE:COLUMN: MESSAGE on standard output. Nothing
is sent, and nothing is run. The exit code is 0 when no file has an error.

Example:
  antiphon check agents/*.md`
}

// Run checks the files.
func (c *checkCommand) Run(ctx context.Context, std stdio) error {
	options, err := fileOptions()
	if err != nil {
		return err
	}
	bad := 0
	for _, path := range c.Files {
		file, err := agentfile.Load(ctx, path, options)
		if err != nil {
			bad++
			fmt.Fprintln(std.out, err)
		}
		if file == nil {
			continue
		}
		for _, w := range file.Warnings {
			fmt.Fprintln(std.out, w)
		}
		file.Close()
	}
	if bad > 0 {
		return usage(fmt.Errorf("%s of %d with errors", plural(bad, "file"), len(c.Files)))
	}
	fmt.Fprintf(std.err, "antiphon: %s checked, no errors\n", plural(len(c.Files), "file"))
	return nil
}
