// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// askCommand is antiphon ask, and antiphon with a question.
type askCommand struct {
	Question string `arg:"" optional:"" help:"The question. Piped input is sent after it; - requires standard input."`

	Agent  string `group:"say" short:"a" placeholder:"FILE" help:"The agent that answers, instead of the built-in assistant."`
	Forget bool   `group:"keep" xor:"place" help:"Keep nothing of the conversation."`

	runFlags
}

// Help is shown by antiphon ask --help.
func (askCommand) Help() string {
	return `Asks one question and prints the answer. The built-in assistant can read the files of
the current folder, and nothing else. The conversation is kept as a session, so that -c
can continue the last one of this folder, and -r one of a list; --forget keeps nothing.

Examples:
  antiphon "What does this folder hold?"
  antiphon -c "And which of the files is the oldest?"
  git diff | antiphon "Is anything wrong here?"
  antiphon -f plan.pdf -f photo.png "Do they agree?"
  antiphon -m qwen3 --base-url http://localhost:11434/v1 "Why is the sky blue?"
  antiphon -s "Answer in French." "Who wrote Candide?"`
}

// Run asks the question: it runs the assistant, or the named agent.
func (c *askCommand) Run(ctx context.Context, std stdio, env environment) error {
	run := &runCommand{File: c.Agent, Prompt: c.Question, runFlags: c.runFlags}
	if run.InPlace || run.KeepAgent {
		return usage(errors.New("--in-place and --keep-agent are flags of antiphon run FILE"))
	}
	if run.File == "" {
		file, err := assistant(env)
		if err != nil {
			return err
		}
		run.File, run.builtIn = file, true
	}
	folder, err := folderTag()
	if err != nil {
		return err
	}
	switch {
	case run.Last, run.Choose:
		run.among = []string{folder}
	case run.Session == "" && run.Out == "" && !c.Forget:
		run.Session, run.unnamed = newName(c.Question), true
	}
	if run.inSession() && !run.Choose {
		run.Tag = append(run.Tag, folder)
	}
	err = run.Run(ctx, std, env)
	var none *host.NoLastError
	if errors.As(err, &none) {
		return usage(errors.New(`no conversation began in this folder yet; antiphon "QUESTION" begins one`))
	}
	return err
}

// Validate refuses an empty question, for example from an unset variable.
func (c *askCommand) Validate(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Positional != nil && p.Positional.Name == "question" && strings.TrimSpace(c.Question) == "" {
			return errors.New("the question is empty: give it a text, or leave it out")
		}
	}
	return nil
}

// assistantText is the agent that answers without a file.
//
//go:embed assistant.md
var assistantText []byte

// assistant returns the path of the built-in assistant. It is a file in the user's data
// folder, so that its sessions belong to an agent that can be read and run like any other. The agent
// assistant of the person's settings takes its place; one of a project does not, because
// nobody has named it.
func assistant(env environment) (string, error) {
	if folder := settingsFolder(env); folder != "" {
		own := filepath.Join(folder, "agents", "assistant.md")
		if _, err := os.Stat(own); err == nil {
			return own, nil
		}
	}
	data, err := dataFile(env)
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(data), "assistant.md")
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, assistantText) {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("the built-in assistant needs a folder for its file: %w; set XDG_DATA_HOME to one that you can write to", err)
	}
	_, err = writeFile(path, true, func(w io.Writer) error {
		_, err := w.Write(assistantText)
		return err
	})
	return path, err
}

// folderTag returns the tag of conversations that began in the current folder: its name,
// and a part of the hash of its path, since a tag is one short word.
func folderTag() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(folder))
	return "folder=" + slug(filepath.Base(folder), 40) + "-" + hex.EncodeToString(hash[:4]), nil
}

// newName returns a name for the session of a question: its first words, and four digits so
// that a question that is asked again begins a new conversation.
func newName(question string) string {
	digits := make([]byte, 2)
	_, _ = rand.Read(digits) // never fails
	return cmp.Or(slug(question, 32), "question") + "-" + hex.EncodeToString(digits)
}

// slug returns the words of a text in small letters, joined by hyphens, as far as whole
// words of at most limit letters go.
func slug(text string, limit int) string {
	var kept []rune
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(kept) > 0 && len(kept)+1+len([]rune(word)) > limit {
			break
		}
		if len(kept) > 0 {
			kept = append(kept, '-')
		}
		kept = append(kept, []rune(word)...)
	}
	return string(kept[:min(len(kept), limit)])
}

// maxChoices is how many sessions --choose lists.
const maxChoices = 20

// choices shows the newest sessions of the file that have the tags among, and returns them.
func (c *runCommand) choices(ctx context.Context, std stdio, env environment, columns int) (list []session.Info, err error) {
	path, err := host.ResolvePath(c.File)
	if err != nil {
		return nil, usage(err)
	}
	k, err := c.open(ctx, env, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	var unread error
	for info, err := range k.List(ctx, session.Query{Path: path, Owner: c.Owner, Tags: c.among, Limit: maxChoices}) {
		if errors.Is(err, session.ErrDamaged) && len(list) > 0 { // a row behind all others
			unread = err
			break
		}
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	for i, info := range list {
		begin, end := fmt.Sprintf("%3d. %s  %s  ", i+1, when(info.Updated), show.Visible(cmp.Or(info.Name, info.ID))), attach.Busy(ctx, k, info)
		room := min(60, max(10, columns-1-show.ColumnsOf(begin+end)))
		fmt.Fprintln(std.err, begin+fitted(show.Visible(env.Hide(info.Title)), room)+end)
	}
	if unread != nil {
		fmt.Fprintf(std.err, "!! a session is not in this list: %s\n", show.Unbroken(env.Hide(unread.Error())))
	}
	return list, nil
}

// fitted returns a text that has at most so many columns.
func fitted(text string, columns int) string {
	for n := columns; ; n-- {
		if short := show.Shorten(text, n); n <= 1 || show.ColumnsOf(short) <= columns {
			return short
		}
	}
}

// choose asks the person which session of the file to continue.
func (c *runCommand) choose(ctx context.Context, std stdio, env environment) (err error) {
	if !show.IsTerminal(std.in) || !show.IsTerminal(std.err) {
		return usage(errors.New("-r asks at a terminal; antiphon sessions list lists the sessions, and --session NAME continues one"))
	}
	list, err := c.choices(ctx, std, env, show.WidthOf(std.err))
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return &host.ConfigError{Err: &host.NoLastError{Among: c.among}}
	}
	for question, usual := "Which one? (1) ", "1"; ; question, usual = "Which one? ", "" { // an empty line may be the end of the input
		fmt.Fprint(std.err, question)
		line, err := typed(ctx, std.in)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(cmp.Or(strings.TrimSpace(line), usual))
		if err == nil && n >= 1 && n <= len(list) {
			c.Session, c.Choose = list[n-1].ID, false
			return nil
		}
		if strings.TrimSpace(line) == "" {
			return usage(errors.New("no session was chosen"))
		}
		fmt.Fprintf(std.err, "%q is not a number from 1 to %d\n", show.Visible(strings.TrimSpace(line)), len(list))
	}
}

// typed reads a line and not a byte more: what follows is for others.
func typed(ctx context.Context, in io.Reader) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		var line []byte
		for b := make([]byte, 1); ; {
			n, err := in.Read(b)
			if n == 1 && b[0] == '\n' {
				err = io.EOF
			} else if n == 1 {
				line = append(line, b[0])
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				done <- read{string(line), err}
				return
			}
		}
	}()
	select {
	case got := <-done:
		return got.line, got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// tune sets what the flags say about the request.
func (c *runCommand) tune(a *agent.Agent) {
	if c.Temperature != nil {
		a.Request.Temperature = c.Temperature
	}
	if c.Effort != "" {
		reasoning := api.ReasoningConfig{}
		if a.Request.Reasoning != nil {
			reasoning = *a.Request.Reasoning
		}
		reasoning.Effort = c.Effort
		a.Request.Reasoning = &reasoning
	}
}
