// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/session"
)

// inside says how agents are run that stand in messages: by the same flags as
// those that are tools, each within limits of its own, and all in the time of the
// run. What it returns ends what they were given.
func (c *runCommand) inside(ctx context.Context, std stdio, env environment, table *endpoint.Table, who *person) (*agentfile.Runner, func()) {
	p := host.NewProviders(c.endpoint(table), front(std, env, c.Quiet))
	r := &agentfile.Runner{
		Models:   p.Of,
		Settings: c.settings(env),
		Notify: func(file *agentfile.File) {
			if !c.Quiet {
				fmt.Fprintf(std.err, "antiphon: asking the agent %s\n", printable(file.Path))
			}
			c.screen.wait("agent in a message", "the agent "+filepath.Base(file.Path))
		},
		Used: func(_ *agentfile.File, used agent.Spent) {
			c.screen.done("agent in a message")
			c.asked.Add(used)
		},
		Connect: func(ctx context.Context, file *agentfile.File) error {
			return c.connect(ctx, std, env, file)
		},
	}
	r.Adjust = func(a *agent.Agent) error {
		if err := c.adjust(ctx, env, a, who); err != nil {
			return err
		}
		c.limit(a)
		a.Policy.Pause = false // there is nowhere to wait
		return nil
	}
	return r, p.Close
}

// settings are what besides a file and the model's name says who answers.
func (c *runCommand) settings(env environment) string {
	script, _ := rehearsal.ParseModel(c.Model)
	text, err := os.ReadFile(script)
	if err != nil {
		text = nil // none, or the run says what is wrong with it
	}
	said := []string{c.Model, c.BaseURL, c.Profile, c.API, env["OPENAI_BASE_URL"], string(text), c.MaxOutput, c.MaxTurnOutput}
	for _, rules := range [][]string{c.Allow, c.Ask, c.Deny} { // what a call was denied is missing from the answer
		said = append(said, strings.Join(rules, "\x01"))
	}
	return strings.Join(said, "\x00")
}

// answersFolder is where answers of agents in messages are kept: in the user's
// folder for what can be made again, and never beside a file, which may have come
// from somebody else. It is "", which keeps none, if the user has no such folder.
func answersFolder(env environment) string {
	dir := env["XDG_CACHE_HOME"]
	if !filepath.IsAbs(dir) {
		switch runtime.GOOS {
		case "windows":
			dir = env["LOCALAPPDATA"]
		case "darwin", "ios":
			dir = filepath.Join(env["HOME"], "Library", "Caches")
		default:
			dir = filepath.Join(env["HOME"], ".cache")
		}
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "antiphon", "answers")
}

// unread is the error of a file that was not loaded: one of its author, unless
// an agent in it failed, which is like the failure of a run, another run writes to
// it, or the disk is full.
func unread(err error) error {
	var inner *agentfile.AgentError
	switch {
	case errors.As(err, &inner), errors.Is(err, session.ErrBusy),
		errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return err
	}
	return usage(err)
}
