// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/chat"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
)

// asked is the prompt for the agent.
type asked struct {
	text string
	// said is what is sent: instructions, and the text with the files that go with it.
	said []item.Item
	// empty means that standard input was given for the prompt but was empty.
	empty bool
}

// says reports whether there is a prompt: instructions alone ask nothing.
func (a asked) says() bool {
	return slices.ContainsFunc(a.said, func(it item.Item) bool { return !it.Instructs() })
}

// prompt returns the prompt with the instructions and the files that go with it.
func (c *runCommand) prompt(ctx context.Context, std stdio) (asked, error) {
	prompt, err := c.words(ctx, std)
	if err != nil {
		return asked{}, err
	}
	if chat.IsFile(c.Prompt) && !c.Quiet {
		name := quoted(c.Prompt)
		fmt.Fprintf(std.err, "antiphon: %s is a file, and is sent as the prompt's words; -f %[1]s attaches it\n", name)
	}
	if c.System != "" {
		prompt.said = append(prompt.said, item.System(c.System))
	}
	switch {
	case len(c.parts) > 0:
		parts := slices.Clone(c.parts)
		if prompt.text != "" {
			parts = append(parts, &item.InputText{Text: prompt.text})
		}
		message, err := item.New(&item.Message{Role: item.RoleUser, Content: item.Parts(parts...)})
		if err != nil {
			return asked{}, err
		}
		prompt.said, prompt.empty = append(prompt.said, message), false
	case prompt.text != "":
		prompt.said = append(prompt.said, item.User(prompt.text))
	}
	return prompt, nil
}

// words returns the text of the prompt: the argument, then a blank line and the piped input, if
// any. No input is dropped, except if it is white space only. U2
func (c *runCommand) words(ctx context.Context, std stdio) (asked, error) {
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
		return asked{}, usage(errors.New("standard input is not UTF-8 text; convert it, or attach a file with -f FILE"))
	case spoken(piped) == "":
		return asked{text: spoken(argument), empty: spoken(argument) == ""}, nil
	case spoken(argument) == "":
		return asked{text: show.WithoutLineEnd(piped)}, nil
	}
	return asked{text: argument + "\n\n" + show.WithoutLineEnd(piped)}, nil
}

// spoken returns the text, or "" if it is white space only.
func spoken(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// awaited returns the message about a run that waits for standard input: a pipe that
// is never closed must not look like a model that does not answer.
func awaited(argument string) string {
	if spoken(argument) != "" {
		return "standard input is a pipe and has not ended; its content is sent after the prompt. Use </dev/null to send only the prompt"
	}
	return "reading the prompt from standard input; end it with Ctrl-D, or give </dev/null for none"
}

// hasInput reports whether standard input may contain a prompt: true for a pipe, a
// socket (which some programs use) or a file, false for a terminal or the null
// device.
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

// patience is the time after which a message says what is waited for, such as standard input.
const patience = time.Second

// maxInput limits standard input, in bytes. It is more than any model accepts, and
// small enough for memory.
const maxInput = 32 << 20

// readInput reads all of standard input. It returns early if ctx is cancelled.
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

// readingInput is the message for a command that reads a file from standard input.
const readingInput = "reading standard input; end it with Ctrl-D"

// await reads standard input, and prints a message if that takes long. It returns
// early if ctx is cancelled.
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
