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

// asked is what a person says to the agent beside its file.
type asked struct {
	text string
	// empty says that standard input was attached for it and held nothing.
	empty bool
}

// prompt returns what is said to the agent beside its file: the argument, then
// a blank line and what is piped in, where there is such input. Nothing that a
// person gives is dropped, but for white space alone, which says nothing. U2
func (c *runCommand) prompt(ctx context.Context, std stdio) (asked, error) {
	argument := c.Prompt
	if argument == "-" {
		argument = ""
	} else if !hasInput(std.in) {
		return asked{text: spoken(argument)}, nil
	}
	piped, err := readInput(ctx, std, awaited(argument))
	switch {
	case err != nil:
		return asked{}, err
	case !utf8.ValidString(piped):
		return asked{}, usage(errors.New("standard input is not UTF-8 text; convert it, or attach it with <file> in the agent's file"))
	case spoken(piped) == "":
		return asked{text: spoken(argument), empty: spoken(argument) == ""}, nil
	case spoken(argument) == "":
		return asked{text: withoutLineEnd(piped)}, nil
	}
	return asked{text: argument + "\n\n" + withoutLineEnd(piped)}, nil
}

// withoutLineEnd returns the text without the end of its last line, whole.
func withoutLineEnd(text string) string {
	if line, ok := strings.CutSuffix(text, "\r\n"); ok {
		return line
	}
	return strings.TrimSuffix(text, "\n")
}

// spoken returns the text, or "" where it is white space alone.
func spoken(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// awaited says what a run waits for that reads standard input: a pipe that a
// supervisor never closes must not look like a model that never answers.
func awaited(argument string) string {
	if spoken(argument) != "" {
		return "standard input is a pipe and has not ended; what it holds is sent after the prompt. Give </dev/null to send the prompt alone"
	}
	return "reading the prompt from standard input; end it with Ctrl-D, or give </dev/null for none"
}

// hasInput reports whether standard input may hold something to send: a pipe, a
// socket (some programs start others so) or a file does, a terminal or the null
// device does not.
func hasInput(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return in != nil
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	return info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// patience is how long standard input may stay open before a line says that
// it is being read.
const patience = time.Second

// maxInput bounds what is read from standard input, in bytes. It is more than
// any model takes, and less than what makes a machine slow.
const maxInput = 32 << 20

// readInput reads all of standard input. A cancel does not wait for it.
func readInput(ctx context.Context, std stdio, awaited string) (string, error) {
	text := make(chan []byte, 1)
	err := await(ctx, std, awaited, func() error {
		all, err := io.ReadAll(io.LimitReader(std.in, maxInput+1))
		text <- all
		return err
	})
	if err != nil {
		return "", err
	}
	all := <-text
	if len(all) > maxInput {
		return "", usage(fmt.Errorf("standard input is longer than %d bytes, more than a model can take; send less, or let a tool read the file", maxInput))
	}
	return string(all), nil
}

// readingInput is what is told of a command that reads a file from standard input.
const readingInput = "reading standard input; end it with Ctrl-D"

// await reads standard input, and says what it waits for if that takes long. A
// cancel does not wait for it.
func await(ctx context.Context, std stdio, awaited string, read func() error) error {
	done := make(chan error, 1)
	go func() { done <- read() }()
	slow := time.NewTimer(patience)
	defer slow.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("standard input: %w", err)
			}
			return nil
		case <-slow.C:
			fmt.Fprintln(std.err, "antiphon: "+awaited)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
