// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/rehearsal"
)

// inside says how agents are run that stand in messages: by the same flags as
// those that are tools, each within limits of its own. What it returns ends what
// they were given.
func (c *runCommand) inside(ctx context.Context, std stdio, env environment, table *endpoint.Table, who *person) (*agentfile.Runner, func()) {
	p := &providers{flags: &c.endpointFlags, table: table, env: env, std: std}
	r := &agentfile.Runner{
		Models:   p.of,
		Settings: c.settings(env),
		Notify: func(file *agentfile.File) {
			fmt.Fprintf(std.err, "antiphon: asking the agent %s\n", printable(file.Path))
		},
		Connect: func(ctx context.Context, file *agentfile.File) error {
			return file.Connect(ctx, env.lookup, sayServer(std))
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
	return r, p.stop
}

// settings are what besides a file and the model's name says who answers.
func (c *runCommand) settings(env environment) string {
	script, _ := rehearsal.ParseModel(c.Model)
	text, err := os.ReadFile(script)
	if err != nil {
		text = nil // none, or the run says what is wrong with it
	}
	return strings.Join([]string{c.Model, c.BaseURL, c.Profile, c.API, env["OPENAI_BASE_URL"], string(text)}, "\x00")
}

// unread is the error of a file that was not loaded: one of its author, unless
// an agent in it failed, which is like the failure of a run.
func unread(err error) error {
	var inner *agentfile.AgentError
	if errors.As(err, &inner) {
		return err
	}
	return usage(err)
}
