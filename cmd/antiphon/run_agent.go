// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/picture"
)

// agent is the file's agent as the flags change it. Rules, answers, prices and
// the shape of outputs hold for the agents that it has as tools too; the limits
// are shared by them.
func (c *runCommand) agent(ctx context.Context, env environment, file *agentfile.File, models agentfile.Models, who *person) (a *agent.Agent, err error) {
	if c.ApproveFrom != "" {
		if c.from, err = host.ReadAnswers(c.ApproveFrom, "--approve-from"); err != nil {
			return nil, usage(err)
		}
	}
	if a, err = file.AgentBy(models, func(a *agent.Agent) error { return c.adjust(ctx, env, a, who) }); err != nil {
		return nil, err
	}
	c.limit(a)
	return a, nil
}

// limit gives an agent the limits of the flags.
func (c *runCommand) limit(a *agent.Agent) {
	if c.MaxTurns > 0 {
		a.Limits.MaxTurns = c.MaxTurns
	}
	if c.MaxTime > 0 { // what is left of it: agents in messages and servers have had their part
		a.Limits.MaxTime = max(1, time.Until(c.until))
	}
	if c.MaxTokens > 0 {
		a.Limits.MaxTokens = c.MaxTokens
	}
	a.Limits.MaxCost = c.MaxCost
}

// adjust changes one agent.
func (c *runCommand) adjust(ctx context.Context, env environment, a *agent.Agent, who *person) error {
	set, err := a.ToolSet(ctx)
	if err != nil {
		return usage(err)
	}
	if kinds := set.Kinds(); len(kinds) > 0 && c.API == "chat" {
		return usage(fmt.Errorf("the tool %s is one of the Responses API's own, which Chat Completions does not have", kinds[0].Tool()))
	}
	c.names = append(append(c.names, set.Names()...), tool.ReadOutputName)
	for _, flag := range []struct {
		verdict, name string
		patterns      []string
	}{{session.Deny, "--deny", c.Deny}, {session.Ask, "--ask", c.Ask}, {session.Allow, "--allow", c.Allow}} {
		for _, pattern := range flag.patterns {
			a.Policy.Rules = append(a.Policy.Rules, session.Rule{Verdict: flag.verdict, Tool: pattern, From: flag.name})
		}
	}
	a.Policy.Hint = "Who runs the agent can allow it with --allow %s."
	if c.Pause { // then it is said of nested runs alone, whose sessions a transcript does not keep
		a.Policy.Hint = "Who runs the agent can allow it with --allow %s, or let it wait in a session that keeps nested runs, with --session NAME."
	}
	if a.Policy.Pause = c.Pause; who != nil && !c.Pause {
		a.Policy.Approver = who.approve
	}
	if c.from != nil {
		a.Policy.Approver = c.from.Approve(a.Policy.Approver)
	}
	if price, err := c.price(); err == nil && c.Price != "" {
		a.Prices = func(string) (agent.Price, bool) { return price, true }
	}
	a.Limits.MaxRepeats = c.MaxRepeats
	a.CollapseReads = a.CollapseReads || c.CollapseReads
	if a.Compaction, err = c.compaction(a.Compaction); err != nil {
		return err
	}
	if model, known := c.models.Model(a.Request.Model); known {
		a.Compaction.Window = int64(model.ContextWindow)
	}
	if c.Parallel > 0 {
		a.Parallel = c.Parallel
	}
	a.Shape.Secrets = env.Secrets()
	a.Setup.Program = "antiphon " + programVersion()
	return c.shape(a, set)
}

// compaction is what --compact makes of a file's own.
func (c *runCommand) compaction(own agent.Compaction) (agent.Compaction, error) {
	own.By = c.CompactBy
	switch c.Compact {
	case "":
	case "auto":
		own.Auto = true
	case "off":
		own = agent.Compaction{}
	default:
		n, err := strconv.ParseInt(c.Compact, 10, 64)
		if err != nil || n <= 0 {
			return own, usage(fmt.Errorf("--compact is %q, want auto, off or a number of tokens", c.Compact))
		}
		own.At = n
	}
	return own, nil
}

// price reads --price.
func (c *runCommand) price() (p agent.Price, err error) {
	if c.Price == "" {
		return p, nil
	}
	for i, part := range strings.Split(c.Price, ",") {
		n, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(n >= 0) || math.IsInf(n, 0) || i > 2 {
			return p, usage(fmt.Errorf("--price is %q, want three numbers such as 1.25,0.125,10", c.Price))
		}
		*[]*float64{&p.Input, &p.Cached, &p.Output}[i] = n
	}
	if strings.Count(c.Price, ",") != 2 {
		return p, usage(fmt.Errorf("--price is %q, want three numbers such as 1.25,0.125,10", c.Price))
	}
	return p, nil
}

// limits reads the limits of outputs; nil means none.
func (c *runCommand) limits() (output, turn tool.Limiter, err error) {
	read := func(flag, text string) tool.Limiter {
		if text == "" || err != nil {
			return nil
		}
		if text == "none" {
			return tool.Limit{}
		}
		limit, problem := tool.ParseLimit(text)
		if problem != nil {
			err = usage(fmt.Errorf("%s: %w", flag, problem))
			return nil
		}
		return limit
	}
	return read("--max-output", c.MaxOutput), read("--max-turn-output", c.MaxTurnOutput), err
}

// shape says how outputs are written: images fit for a model, long texts
// shortened, with a tool to read the rest.
func (c *runCommand) shape(a *agent.Agent, set *tool.Set) (err error) {
	a.Shape.Images = picture.Limits{}
	if a.Shape.Limit, a.Shape.Turn, err = c.limits(); err != nil || set.Len() == 0 {
		return err
	}
	folder := c.spillFolder()
	if c.spill == nil {
		c.spill = new(tool.MemorySpill)
		if folder != "" {
			c.spill = &tool.DirSpill{Dir: folder}
		}
		if folder != "" && c.Spill == "" {
			if err := besideOnly(folder); err != nil {
				return err
			}
		}
	}
	a.Spill = c.spill
	asked := a.Shape.Limit != nil || a.Shape.Turn != nil || c.Spill != ""
	if !asked && !shortens(set) && !isFolder(folder) && !c.kept.shortened() {
		return nil
	}
	if _, taken := set.Lookup(tool.ReadOutputName); taken && !asked {
		return nil // what the tools shorten by themselves is then gone, as the marks say
	} else if taken {
		return usage(fmt.Errorf("the file declares a tool called %s, which is the name of the one that reads the rest of shortened outputs; call it something else", tool.ReadOutputName))
	}
	a.Tools = append(a.Tools, tool.ReadOutput(c.spill))
	return nil
}

// shortens reports whether a tool has a limit of its own.
func shortens(set *tool.Set) bool {
	for _, t := range set.All() {
		if traits := tool.TraitsOf(t); traits.MaxOutput != nil || traits.UsualOutput != nil {
			return true
		}
	}
	return false
}

// spillFolder is where the rest of outputs is kept: what --spill says, or else
// beside the transcript, for the runs that go on with it; "" is in memory.
func (c *runCommand) spillFolder() string {
	out := c.Out
	if c.InPlace {
		out = c.File
	}
	switch {
	case c.Spill != "":
		return c.Spill
	case out != "":
		return outputsOf(out)
	}
	return ""
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// besideOnly reports a link in the way to the outputs beside a transcript: it would
// lead out of the folder that the transcript is in.
func besideOnly(folder string) error {
	for range 3 { // outputs, the transcript's name, .chatmd
		info, err := os.Lstat(folder)
		if err == nil && !info.IsDir() {
			return usage(fmt.Errorf("%s is not a folder of its own, so outputs are not kept or read there; remove it, or give --spill FOLDER", folder))
		}
		folder = filepath.Dir(folder)
	}
	return nil
}
