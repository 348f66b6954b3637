// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// runCommand is antiphon run.
type runCommand struct {
	from  *answers // those of ApproveFrom
	names []string // of all tools, those of nested agents included
	spill tool.Spill
	kept  *kept // that of Session

	models *endpoint.Table

	File   string `arg:"" help:"The agent: a ChatMarkdown file."`
	Prompt string `arg:"" optional:"" help:"What to say to it, - for standard input. Without it, standard input is read unless it is a terminal."`

	Out     string `placeholder:"FILE" xor:"out" help:"Append the transcript to FILE. If it is there, go on with the conversation in it."`
	InPlace bool   `xor:"out,place" help:"Append the transcript to the agent's file itself."`
	Session string `xor:"place" placeholder:"NAME" help:"Keep the conversation in the session NAME of this file, and go on with it if it is there. --out is an export of it then."`
	Force   bool   `help:"With --session: let --out overwrite a file that is no export of it."`
	storeFlag
	JSON bool `name:"json" help:"Print every event as a line of JSON on standard output."`

	endpointFlags

	Allow       []string `placeholder:"TOOL" sep:"," help:"Tools that may run without asking; * means all."`
	Ask         []string `placeholder:"TOOL" sep:"," help:"Tools that must be asked about. Wins over --allow."`
	Deny        []string `placeholder:"TOOL" sep:"," help:"Tools that may not run. Wins over all."`
	ApproveFrom string   `placeholder:"FILE" help:"Take answers about calls from FILE: JSON lines such as {\"tool\":\"apply_patch\",\"allow\":true}, each used once."`

	Pause bool `help:"Let calls that ask wait: the run stops with exit code 5, and goes on when it is run again with their answers. Needs --session, --out or --in-place."`

	MaxTurns  int           `placeholder:"N" help:"Ask the model at most N times."`
	MaxTime   time.Duration `placeholder:"TIME" help:"Stop after this time, such as 90s or 5m."`
	MaxTokens int64         `placeholder:"N" help:"Stop when the endpoint has counted N tokens."`
	MaxCost   float64       `placeholder:"COST" help:"Stop when the tokens cost this much, by --price."`
	Price     string        `placeholder:"IN,CACHED,OUT" help:"What a million input, cached and output tokens cost, such as 1.25,0.125,10."`
	Parallel  int           `placeholder:"N" help:"Run at most N calls at once."`

	MaxRepeats int `placeholder:"N" help:"Stop when the model makes the same call N times in a row."`

	CollapseReads bool   `help:"Send a marker in the place of what a tool read if it read the same again later."`
	Compact       string `placeholder:"auto|off|N" help:"Put a summary in the place of the older part of what is sent: near the end of the model's context (auto), never (off), or from N tokens on. Default: the file's, or off."`
	CompactBy     string `enum:"summary,endpoint,dropping" default:"summary" help:"How: by a summary that the model writes, by the endpoint's own compaction, or by dropping (summary, endpoint, dropping)."`

	MaxOutput     string `placeholder:"LIMIT" help:"Shorten each output of a tool, such as to 8000 (tokens), '8000 tail' or '65536 bytes sample'. The model gets the tool read_output for the rest."`
	MaxTurnOutput string `placeholder:"LIMIT" help:"The same for all outputs of one turn together."`
	Spill         string `placeholder:"FOLDER" help:"Keep what was left out of outputs in FOLDER, for later runs. Default: beside the transcript, or in memory."`
}

// Help is shown by antiphon run --help.
func (runCommand) Help() string {
	return `The model's text goes to standard output, everything else to standard error.

Examples:
  antiphon run examples/tour/tour.md
  antiphon run agent.md "What is in this folder?"
  git diff | antiphon run review.md --out review.log.md
  antiphon run agent.md --base-url http://localhost:11434/v1 --model qwen3
  antiphon run agent.md --allow append_to_file,find_and_replace
  antiphon run agent.md --max-cost 0.50 --price 1.25,0.125,10
  antiphon run agent.md --approve-from answers.jsonl
  antiphon run agent.md --session work "Where were we?"`
}

// Run runs the agent.
func (c *runCommand) Run(ctx context.Context, std stdio, env environment) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	table, err := c.table(env)
	if err != nil {
		return err
	}
	c.models = table
	var who *person
	if terminal(std.in) && terminal(std.err) && !c.JSON {
		who = newPerson(std)
	}
	runner, stop := c.inside(ctx, std, env, table, who)
	defer stop()
	file, sess, err := c.open(ctx, std, env, table, who, runner)
	defer func() { err = errors.Join(err, c.kept.close()) }()
	if err != nil {
		return err
	}
	defer file.Close()
	prompt, err := c.prompt(ctx, std)
	if err != nil {
		return err
	}
	if err := file.Connect(ctx, env.lookup, sayServer(std)); err != nil {
		return err
	}
	providers := &providers{flags: &c.endpointFlags, table: table, env: env, std: std}
	defer providers.stop()
	a, err := c.agent(ctx, env, file, providers.of, who)
	if err != nil {
		return err
	}
	if err := c.answer(ctx, sess); err != nil {
		return err
	}
	c.sayUnmatched(std)
	for _, note := range providers.notes {
		fmt.Fprintln(std.err, note)
	}
	c.kept.stays()
	err = c.play(ctx, std, env, a, sess, input(prompt, sess))
	if c.kept != nil && c.Out != "" {
		err = errors.Join(err, c.writeOut(ctx, std, env))
	}
	return err
}

// check looks at the flags by themselves.
func (c *runCommand) check() error {
	if c.MaxTurns < 0 || c.MaxTime < 0 || c.MaxTokens < 0 || c.MaxCost < 0 || c.Parallel < 0 || c.MaxRepeats < 0 {
		return usage(errors.New("--max-turns, --max-time, --max-tokens, --max-cost, --max-repeats and --parallel cannot be negative"))
	}
	if math.IsNaN(c.MaxCost) || math.IsInf(c.MaxCost, 0) {
		return usage(errors.New("--max-cost is no number"))
	}
	if (c.MaxCost > 0) != (c.Price != "") {
		return usage(errors.New("--max-cost and --price go together: what a model costs is not built in"))
	}
	if c.Pause && c.Out == "" && !c.InPlace && c.Session == "" {
		return usage(errors.New("--pause needs --session NAME, --out FILE or --in-place, where the calls wait"))
	}
	if c.Session == "" && (c.Store != "" || c.Force) {
		return usage(errors.New("--store and --force go with --session NAME"))
	}
	if _, err := c.price(); err != nil {
		return err
	}
	if _, _, err := c.limits(); err != nil {
		return err
	}
	if _, err := c.compaction(agent.Compaction{}); err != nil {
		return err
	}
	if err := agent.CheckPatterns(slices.Concat(c.Allow, c.Ask, c.Deny)...); err != nil {
		return usage(fmt.Errorf("--allow, --ask, --deny: %w", err))
	}
	return nil
}

// sayServer tells of what happens to MCP servers.
func sayServer(std stdio) func(mcpbridge.Event) {
	return func(ev mcpbridge.Event) {
		said := ""
		switch ev.Kind {
		case mcpbridge.Starting:
			said = "is still being started"
		case mcpbridge.Ended:
			said = "has ended"
		case mcpbridge.Changed:
			said = "has other tools now"
		default:
			return
		}
		fmt.Fprintf(std.err, "antiphon: the MCP server %s %s: %s\n", printable(ev.Server), said, printable(ev.Text))
	}
}

// input is the prompt as an item, unless the very same message waits for its
// answer: then an earlier run asked it, did not get to the end, and is repeated.
func input(prompt string, s *session.Session) []item.Item {
	if prompt == "" {
		return nil
	}
	said := item.User(prompt)
	if lastSaid(s) == said && unanswered(s) {
		return nil
	}
	return []item.Item{said}
}

// open loads the agent and the session: that of --session, the transcript's, or
// one in memory.
func (c *runCommand) open(ctx context.Context, std stdio, env environment, table *endpoint.Table, who *person, runner *agentfile.Runner) (*agentfile.File, *session.Session, error) {
	options, err := fileOptions()
	if err != nil {
		return nil, nil, err
	}
	options.Profiles, options.Allow, options.Runner = table, c.Allow, runner
	if who != nil {
		options.Asker = who
	}
	out := c.Out
	switch {
	case c.InPlace:
		out = c.File
	case sameFile(c.File, out):
		return nil, nil, usage(fmt.Errorf("--out %s is the agent's file itself; give --in-place to append to it", out))
	}
	if c.Session != "" {
		return c.keep(ctx, std, env, options)
	}
	if out == "" {
		file, err := agentfile.Load(ctx, c.File, options)
		if err != nil {
			return nil, nil, unread(err)
		}
		warn(std, file)
		sess, err := file.Session(ctx)
		return file, sess, err
	}
	file, transcript, err := agentfile.OpenTranscript(ctx, c.File, out, options)
	if err != nil {
		return nil, nil, unread(err)
	}
	warn(std, file)
	sess, err := session.Open(ctx, transcript, out)
	return file, sess, err
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

func warn(std stdio, file *agentfile.File) {
	for _, w := range file.Warnings {
		fmt.Fprintln(std.err, printable(w.Error()))
	}
}

// fileOptions are the places that ChatMarkdown files can name.
func fileOptions() (agentfile.Options, error) {
	workspace, err := os.Getwd()
	if err != nil {
		return agentfile.Options{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // only files that say ${home} need one
	}
	return agentfile.Options{Workspace: filepath.Clean(workspace), Home: home}, nil
}

// sayUnmatched tells of rules that fit no tool of the file: a slip in --deny
// would let a call run.
func (c *runCommand) sayUnmatched(std stdio) {
	for _, pattern := range slices.Concat(c.Allow, c.Ask, c.Deny) {
		if !slices.ContainsFunc(c.names, func(name string) bool { return matches([]string{pattern}, name) }) {
			fmt.Fprintf(std.err, "antiphon: no tool of %s is called %q\n", printable(c.File), printable(pattern))
		}
	}
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// play runs the agent and shows what happens.
func (c *runCommand) play(ctx context.Context, std stdio, env environment, a *agent.Agent, sess *session.Session, input []item.Item) error {
	show := newPrinter(std, env).show
	if c.JSON {
		show = (&jsonLines{out: std.out}).show
	}
	var refused []string
	var stopped agent.Stopped
	var failure, showErr error
	for ev, err := range a.Stream(ctx, sess, input...) {
		if err != nil {
			failure = err
			break
		}
		switch ev := innermost(ev).(type) {
		case agent.CallRefused:
			if ev.NoApprover && !slices.Contains(refused, ev.Tool) {
				refused = append(refused, ev.Tool)
			}
		}
		if end, ok := ev.(agent.Stopped); ok {
			stopped = end
		}
		if showErr = show(ev); showErr != nil {
			break // nobody reads: the run is cancelled and put in order
		}
	}
	if err := errors.Join(failure, showErr); err != nil {
		return err
	}
	if stopped.Why == agent.ApprovalWanted {
		return waiting(std, stopped.Wanted)
	}
	return c.verdict(stopped, refused)
}

// innermost is what a nested run's event says.
func innermost(ev agent.Event) agent.Event {
	if n, ok := ev.(agent.Nested); ok {
		return n.Innermost()
	}
	return ev
}

// verdict turns the end of a run that did not fail into an exit code.
func (c *runCommand) verdict(s agent.Stopped, refused []string) error {
	switch s.Why {
	case agent.Answered, agent.Refused:
		if len(refused) == 0 {
			return nil
		}
		names := strings.Join(refused, ",")
		return &exitError{exitNeedsAllow, fmt.Errorf("nobody could approve calls of %s, so they were refused; --allow %s lets them run", strings.Join(refused, ", "), names)}
	case agent.Incomplete:
		return &exitError{exitProvider, fmt.Errorf("the reply is incomplete: the endpoint cut it off (%s)", cmp.Or(s.Detail, "it did not say why"))}
	}
	detail := s.Detail
	if s.Why == agent.MaxTime {
		detail = fmt.Sprintf("%s have passed", c.MaxTime)
	}
	again := "; --session NAME or --out FILE would have kept the conversation to go on with"
	if c.Out != "" || c.InPlace || c.Session != "" {
		again = "; run it again to go on"
	}
	return &exitError{exitLimit, fmt.Errorf("stopped at the limit %s: %s%s", s.Why, detail, again)}
}
