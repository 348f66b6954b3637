// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// prompt returns what is said to the agent beside its file: the argument, or
// what comes on standard input when that is no terminal. White space alone says
// nothing.
func (c *runCommand) prompt(ctx context.Context, std stdio) (string, error) {
	text, err := c.given(ctx, std)
	switch {
	case err != nil:
		return "", err
	case !utf8.ValidString(text):
		return "", usage(errors.New("the prompt is no UTF-8 text; convert it, or attach it with <file> in the agent's file"))
	case strings.TrimSpace(text) == "":
		return "", nil
	}
	return text, nil
}

func (c *runCommand) given(ctx context.Context, std stdio) (string, error) {
	if c.Prompt != "" && c.Prompt != "-" {
		return c.Prompt, nil
	}
	if c.Prompt == "" && !hasInput(std.in) {
		return "", nil
	}
	text, err := readInput(ctx, std)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(text, "\n"), nil
}

// hasInput reports whether standard input may hold a prompt: a pipe or a file
// does, a terminal or the null device does not.
func hasInput(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return in != nil
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	return info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0
}

// patience is how long standard input may stay silent before a line says that
// it is being read.
const patience = 2 * time.Second

// readInput reads all of standard input. A cancel does not wait for it.
func readInput(ctx context.Context, std stdio) (string, error) {
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := io.ReadAll(std.in)
		done <- read{text, err}
	}()
	slow := time.NewTimer(patience)
	defer slow.Stop()
	for {
		select {
		case r := <-done:
			if r.err != nil {
				return "", fmt.Errorf("standard input: %w", r.err)
			}
			return string(r.text), nil
		case <-slow.C:
			fmt.Fprintln(std.err, "antiphon: reading the prompt from standard input; end it with Ctrl-D, or give </dev/null for none")
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
