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
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/tool"
)

// runCommand is antiphon run.
type runCommand struct {
	screen *screen // nil if there is no status line

	File   string `arg:"" help:"The agent: a ChatMarkdown file."`
	Prompt string `arg:"" optional:"" help:"What to say to it. What is piped in is sent after it; - insists on standard input."`

	Out        string   `group:"keep" placeholder:"FILE" xor:"out" help:"Append what is said to FILE, a transcript. If it is there, go on with the conversation in it."`
	KeepAgent  bool     `group:"keep" help:"With --out: go on with FILE although another agent's file began it. FILE's own model and tools are used."`
	InPlace    bool     `group:"keep" xor:"out,place" help:"Append what is said to the agent's file itself, which becomes a transcript."`
	Session    string   `group:"keep" xor:"place" placeholder:"NAME" help:"Keep the conversation in the session NAME of this file, and go on with it if it is there. --out is an export of it then."`
	Owner      string   `group:"keep" placeholder:"OWNER" help:"Whose session it is: a new one gets this owner, and no other owner's is taken."`
	Tag        []string `group:"keep" sep:"none" placeholder:"TAG" help:"A tag that the session gets; several times for several."`
	Last       bool     `group:"keep" xor:"place" aliases:"continue" help:"Go on with the session of this file that was written to last."`
	Force      bool     `group:"keep" help:"With --session: let --out overwrite a file that is not an export of it."`
	storeFlag  `group:"keep"`
	ShowOutput bool `group:"show" short:"v" help:"Show the outputs of tools whole, not their last lines."`
	Quiet      bool `group:"show" short:"q" help:"Print only warnings and errors: no calls, no outputs, no totals."`
	Plain      bool `group:"show" help:"No colours and no line that changes, for screen readers: a new line every 10 seconds while something is waited for. Also $$ANTIPHON_PLAIN."`
	JSON       bool `group:"show" name:"json" help:"Print every event as a line of JSON on standard output."`

	endpointFlags `group:"who"`

	Allow       []string `group:"may" placeholder:"TOOL" sep:"," help:"Tools that may run without asking; * means all."`
	Ask         []string `group:"may" placeholder:"TOOL" sep:"," help:"Tools that must be asked about. Wins over --allow."`
	Deny        []string `group:"may" placeholder:"TOOL" sep:"," help:"Tools that may not run. Wins over all."`
	ApproveFrom string   `group:"may" placeholder:"FILE" help:"Take answers about calls from FILE: JSON lines such as {\"tool\":\"apply_patch\",\"allow\":true}, each used once."`

	Pause bool `group:"may" help:"Let calls that ask wait: the run stops with exit code 5, and goes on when it is run again with their answers. Needs --session, --out or --in-place."`

	MaxTurns  int           `group:"limits" placeholder:"N" help:"Ask the model at most N times."`
	MaxTime   time.Duration `group:"limits" placeholder:"TIME" help:"Stop after this time, such as 90s or 5m."`
	MaxTokens int64         `group:"limits" placeholder:"N" help:"Stop when the endpoint has counted N tokens."`
	MaxCost   float64       `group:"limits" placeholder:"COST" help:"Stop when the tokens cost this much, by --price. It is checked between turns, so the last turn may go beyond it."`
	Price     string        `group:"limits" placeholder:"IN,CACHED,OUT" help:"What a million input, cached and output tokens cost, such as 1.25,0.125,10."`
	Parallel  int           `group:"limits" placeholder:"N" help:"Run at most N calls at once."`

	MaxRepeats int `group:"limits" placeholder:"N" help:"Stop when the model makes the same call N times in a row."`

	CollapseReads bool   `group:"long" help:"Send a marker instead of what a tool read if it read the same again later."`
	Compact       string `group:"long" placeholder:"auto|off|N" help:"Send a summary instead of the older part of the conversation: near the end of the model's context (auto), never (off), or from N tokens on. Default: the file's, or off."`
	CompactBy     string `group:"long" enum:"summary,endpoint,dropping" default:"summary" help:"How: by a summary that the model writes, by the endpoint's own compaction, or by dropping (summary, endpoint, dropping)."`

	MaxOutput     string `group:"long" placeholder:"LIMIT" help:"Shorten each output of a tool, such as to 8000 (tokens), '8000 tail' or '65536 bytes sample'. The model gets the tool read_output for the rest."`
	MaxTurnOutput string `group:"long" placeholder:"LIMIT" help:"The same for all outputs of one turn together."`
	Spill         string `group:"long" placeholder:"FOLDER" help:"Keep what was left out of outputs in FOLDER, for later runs. Default: beside the transcript, or in memory."`
}

// Help is shown by antiphon run --help.
func (runCommand) Help() string {
	return `The model's text goes to standard output, everything else to standard error.

The conversation is not kept unless you say where. --out keeps a transcript: a
text file with the agent and all that was said, which can be read, edited and run
again. --session keeps a session in a database: see antiphon sessions --help.

Examples:
  antiphon run examples/tour/tour.md
  antiphon run agent.md "What is in this folder?"
  git diff | antiphon run review.md "Only security, please" --out review.log.md
  antiphon run agent.md --base-url http://localhost:11434/v1 --model qwen3
  antiphon run agent.md --allow append_to_file,find_and_replace
  antiphon run agent.md --max-cost 0.50 --price 1.25,0.125,10
  antiphon run agent.md --approve-from answers.jsonl
  antiphon run agent.md --session work "Where were we?"`
}

// Run runs the agent.
func (c *runCommand) Run(ctx context.Context, std stdio, env environment) (err error) {
	cfg, err := c.config(env)
	if err != nil {
		return err
	}
	std, who := c.watch(std, env)
	defer c.screen.close()
	cfg.Front = front(std, env, c.Quiet)
	cfg.Notify = c.notify(std)
	if who != nil {
		cfg.Asker, cfg.Approver = who, who.approve
	}
	if c.screen != nil {
		cfg.Live = func(call tool.Call, _ bool, text []byte) { c.screen.last(callKey(call.ID), env.Hide(string(text))) }
	}
	h, err := host.Open(ctx, cfg)
	if err != nil {
		return c.unopened(err)
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return c.converse(ctx, std, env, h)
}

// unopened adds to an error what to do about it on the command line.
func (c *runCommand) unopened(err error) error {
	var other *agentfile.OtherAgentError
	var unbound *host.UnboundError
	switch {
	case errors.As(err, &other):
		return usage(fmt.Errorf("%w, or add --keep-agent", err))
	case errors.As(err, &unbound):
		return usage(fmt.Errorf("%w; antiphon sessions import FILE --for %s makes one that does (sessions export %s --to jsonl writes such a FILE)", err, c.File, unbound.Session))
	}
	return err
}

// notify prints what a person should know, and keeps the status line.
func (c *runCommand) notify(std stdio) func(host.Notice) {
	const inside = "agent in a message"
	return func(n host.Notice) {
		switch n.Kind {
		case host.NoticeWaiting:
			c.screen.wait(n.Text, n.Text)
			return
		case host.NoticeReady:
			c.screen.done(n.Text)
			return
		case host.NoticeAsked:
			c.screen.done(inside)
			return
		case host.NoticeServer:
			if n.Server.Kind == mcpbridge.Progress {
				c.screen.last(callKey(n.Server.Call.ID), n.Text)
				return
			}
		}
		if !c.Quiet || !goesWell(n.Kind) {
			fmt.Fprintln(std.err, noticeText(n)+printable(c.whatNext(n)))
		}
		if n.Kind == host.NoticeAsking {
			c.screen.wait(inside, "the agent "+filepath.Base(n.File))
		}
	}
}

// whatNext says what a notice lacks for who uses this program: commands and flags.
func (c *runCommand) whatNext(n host.Notice) string {
	switch n.Kind {
	case host.NoticeContinues:
		return ", last " + when(n.Session.Updated)
	case host.NoticeArchived:
		return "; antiphon sessions archive --undo takes it back"
	case host.NoticeSameName:
		return fmt.Sprintf("; antiphon sessions rename %s OTHER-NAME --for %s makes it this file's", n.Session.ID, quoted(c.File))
	case host.NoticeNearName:
		return fmt.Sprintf("; --session %s goes on with it", quoted(n.Session.Name))
	case host.NoticeSaved:
		if filepath.Ext(n.File) == ".db" {
			return fmt.Sprintf("; antiphon sessions export %s --store %s writes it out", n.Session.ID, quoted(n.File))
		}
		return "; antiphon sessions import reads it back"
	}
	return ""
}

// watch returns the streams to write to beside the status line, if there is one,
// and the person at the terminal, or nil.
func (c *runCommand) watch(std stdio, env environment) (stdio, *person) {
	c.Plain = c.Plain || env["ANTIPHON_PLAIN"] != ""
	if !c.JSON && !c.Quiet {
		c.screen, std = newScreen(std, env, c.Plain)
	}
	if !terminal(std.in) || !terminal(std.err) || c.JSON {
		return std, nil
	}
	who := newPerson(std)
	if c.screen != nil {
		who.colour, who.columns = c.screen.colour, c.screen.size
	}
	return std, who
}

// converse runs the agent, unless the session needs no run.
func (c *runCommand) converse(ctx context.Context, std stdio, env environment, h *host.Host) error {
	prompt, err := c.prompt(ctx, std)
	if err != nil {
		return err
	}
	done, err := c.settled(std, env, h.Session, prompt)
	if !done {
		var a *agent.Agent
		if a, err = h.Agent(ctx); err != nil {
			return err
		}
		err = c.play(ctx, std, env, h, a, prompt.text)
	}
	// The export that --out is beside --session is written whatever came of the run. A
	// session that is about to be deleted has none.
	if h.Store != nil && !h.Fresh() && c.Out != "" {
		err = errors.Join(err, c.writeOut(ctx, std, env, h))
	}
	return err
}

// play runs the agent and shows what happens.
func (c *runCommand) play(ctx context.Context, std stdio, env environment, h *host.Host, a *agent.Agent, text string) error {
	p := newPrinter(std, env)
	p.screen, p.quiet, p.whole = c.screen, c.Quiet, c.ShowOutput
	p.colour = p.colour && !c.Plain
	show := p.show
	if c.JSON {
		show = (&jsonLines{out: std.out}).show
	}
	var refused []string
	var stopped agent.Stopped
	var failure, showErr error
	for ev, err := range h.Stream(ctx, text) {
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
		return c.roomHint(err, a.Compaction)
	}
	if stopped.Why == agent.ApprovalWanted {
		return waiting(std, stopped.Wanted)
	}
	return c.verdict(stopped, refused)
}

// roomHint adds to the error of a full context the flags that make room, unless
// the history is made shorter already.
func (c *runCommand) roomHint(err error, by agent.Compaction) error {
	var provider *endpoint.Error
	full := errors.Is(err, agent.ErrContextFull) || errors.As(err, &provider) && provider.Class == endpoint.ContextOverflow
	if !full || by.Auto || by.At > 0 {
		return err
	}
	switch named := strings.Contains(err.Error(), "--compact auto"); {
	case named && c.keeps():
		return err
	case named:
		return fmt.Errorf("%w; --session NAME keeps the conversation to go on with", err)
	case c.keeps():
		return fmt.Errorf("%w; run it again with --compact auto to go on with a shorter history", err)
	}
	return fmt.Errorf("%w; --compact auto makes the history shorter, and --session NAME keeps the conversation to go on with", err)
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
	case agent.EmptyReply:
		return &exitError{exitProvider, fmt.Errorf("the reply is empty: %s; give a prompt to go on, or look at the endpoint with antiphon doctor", s.Detail)}
	case agent.Incomplete:
		return &exitError{exitProvider, fmt.Errorf("the reply is incomplete: the endpoint ended it (%s)", cmp.Or(s.Detail, "it did not say why"))}
	}
	detail := s.Detail
	if s.Why == agent.MaxTime {
		detail = fmt.Sprintf("%s have passed", c.MaxTime)
	}
	again := "; --session NAME or --out FILE would have kept the conversation to go on with"
	if c.keeps() {
		again = "; run it again to go on"
	}
	return &exitError{exitLimit, fmt.Errorf("stopped at the limit %s: %s%s", s.Why, detail, again)}
}
