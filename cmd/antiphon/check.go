// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/rehearsal"
)

// checkCommand is antiphon check.
type checkCommand struct {
	Files []string `arg:"" name:"file" help:"Agent files or transcripts; - is standard input."`
	profilesFlag
}

// Help is shown by antiphon check --help.
func (checkCommand) Help() string {
	return `Every problem is a line FILE:LINE:COLUMN: MESSAGE on standard output. Nothing
is sent, and nothing is run. The exit code is 0 when no file has an error; lines
that end with [warning], such as that of an empty file, are not errors. Lines
that end with [note] say which tools run at the endpoint, and lines that end
with [power] what the file needs your trust for: see antiphon trust. Nothing
outside its folder and the workspace is read.

Examples:
  antiphon check agents/*.md
  antiphon check - < draft.md`
}

// Run checks the files.
func (c *checkCommand) Run(ctx context.Context, std stdio, env environment) error {
	options, err := fileOptions()
	if err != nil {
		return err
	}
	if options.Profiles, err = c.table(ctx, env); err != nil {
		return err
	}
	options.Check, options.Configured = true, host.Endpoint{}.Configured(env)
	if t, err := newTruster("", &trustFlags{}, std, env, nil); err == nil { // without a folder for them, no transcript is known
		options.Known, options.Made = t.knows, t.made
	}
	bad := 0
	for _, path := range c.Files {
		file, err := loadGiven(ctx, std, path, options)
		if file != nil { // all problems at once
			err = errors.Join(err, checkScript(file))
		}
		if err != nil {
			bad++
			fmt.Fprintln(std.out, unforged(err.Error(), path))
		}
		if file == nil {
			continue
		}
		for _, p := range file.Claim().Powers {
			fmt.Fprintf(std.out, "%s: the file %s [power]\n", show.Visible(file.PowerPlace(p)), show.Visible(p.String()))
		}
		for _, w := range slices.Concat(file.Warnings, file.Lint(), file.Notes()) {
			fmt.Fprintln(std.out, unforged(w.Error(), path))
		}
		_ = file.Close()
	}
	if bad > 0 {
		return usage(fmt.Errorf("%s of %d with errors", show.Plural(bad, "file"), len(c.Files)))
	}
	fmt.Fprintf(std.err, "antiphon: %s checked, no errors\n", show.Plural(len(c.Files), "file"))
	return nil
}

// unforged returns a message, which may have several lines, as it is printed. What the names
// of files that a person gave contain begins none of these lines, and hides nothing.
func unforged(message string, names ...string) string {
	for _, name := range names {
		if flag, value, ok := strings.Cut(name, "="); ok && strings.HasPrefix(flag, "-") {
			name = value
		}
		for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == filepath.Separator }) {
			if shown := show.Visible(part); shown != part && strings.TrimSpace(part) != "" {
				message = strings.ReplaceAll(message, part, shown)
			}
		}
	}
	return show.Printable(message)
}

// standardInput is what messages call the file that - names.
const standardInput = "standard input"

// loadGiven loads the file that an argument names; - is standard input.
func loadGiven(ctx context.Context, std stdio, path string, options agentfile.Options) (*agentfile.File, error) {
	if path != "-" {
		if err := cmp.Or(absentAgent(path, nil), notAgent(path)); err != nil {
			return nil, err
		}
		return agentfile.Load(ctx, path, options)
	}
	text, err := readInput(ctx, std, readingInput)
	if err != nil {
		return nil, err
	}
	return agentfile.Parse(ctx, standardInput, []byte(text), options)
}

// checkScript reports problems of the rehearsal script that the file names.
func checkScript(file *agentfile.File) error {
	path, ok := rehearsal.ParseModel(file.Model())
	if !ok || path == "" {
		return nil
	}
	_, err := file.Script(path)
	if errors.Is(err, agentfile.ErrWithheld) {
		return nil // a power, which is listed
	}
	if syntax := (*rehearsal.SyntaxError)(nil); err == nil || errors.As(err, &syntax) {
		return err // the error has a place
	}
	at := file.Doc.Config
	return fmt.Errorf("%s:%d:%d: <config>: %w", file.Path, at.Line, at.Column, err)
}
