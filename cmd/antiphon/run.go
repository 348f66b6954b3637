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
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// runCommand is antiphon run.
type runCommand struct {
	screen  *show.Screen // nil if there is no status line
	builtIn bool         // the agent is the built-in assistant, whose file nobody edits
	among   []string     // tags of the sessions that --last and --choose are about

	refused unapproved   // tools of agents in messages, which ran before the run
	unheld  *atomic.Bool // the audit log cannot be written, so calls are refused; nil before notify
	parts   []item.Part  // of --file
	unnamed bool         // the session's name was made here, so no other was meant
	// locked is called when the session is locked, before anything else; it may be nil.
	locked func(context.Context, session.Info) error

	File   string `arg:"" help:"The agent: a ChatMarkdown file."`
	Prompt string `arg:"" optional:"" help:"The prompt. Piped input is sent after it; - requires standard input."`

	runFlags
}

// runFlags are the flags of antiphon run and antiphon ask.
type runFlags struct {
	System string   `group:"say" short:"s" placeholder:"TEXT" help:"Instructions for the model, sent as a system message before the prompt."`
	Attach []string `group:"say" name:"file" short:"f" sep:"none" placeholder:"FILE" help:"Send FILE with the prompt: text, an image, a PDF, or a URL. May be repeated."`

	Out        string   `group:"keep" short:"o" placeholder:"FILE" xor:"out" help:"Append the conversation to FILE, a transcript. If FILE exists, continue its conversation."`
	KeepAgent  bool     `group:"keep" help:"With --out: continue FILE even if another agent's file began it. FILE's own model and tools are used."`
	InPlace    bool     `group:"keep" xor:"out,place" help:"Append the conversation to the agent's file itself, which becomes a transcript."`
	Session    string   `group:"keep" xor:"place" placeholder:"NAME" help:"Keep the conversation in the session NAME of this file, and continue the session if it exists. --out is then an export of it."`
	Owner      string   `group:"keep" placeholder:"OWNER" help:"The owner of the session: a new session gets this owner, and sessions of other owners are refused."`
	Tag        []string `group:"keep" sep:"none" placeholder:"TAG" help:"Add a tag to the session; may be repeated."`
	Last       bool     `group:"keep" short:"c" xor:"place" aliases:"continue" help:"Continue the most recently written session of this file."`
	Choose     bool     `group:"keep" short:"r" xor:"place" help:"Choose the session to continue from a list."`
	NoAttach   bool     `group:"keep" help:"If another process runs the session: fail, instead of showing it at the terminal."`
	Force      bool     `group:"keep" help:"With --session: let --out overwrite a file that is not an export of it."`
	storeFlag  `group:"keep"`
	ShowOutput bool `group:"show" short:"v" help:"Show the complete outputs of tools, not only their last lines."`
	Quiet      bool `group:"show" short:"q" help:"Print only warnings and errors: no calls, no outputs, no totals."`
	Plain      bool `group:"show" help:"No colours and no changing lines, for screen readers: print a new line every 10 seconds while waiting. Also $$ANTIPHON_PLAIN."`
	JSON       bool `group:"show" name:"json" help:"Print every event as a line of JSON on standard output."`

	Schema     string `group:"show" placeholder:"FILE" help:"The answer must be JSON that fits the JSON Schema in FILE, and is all that is printed on standard output. An answer that does not fit goes back to the model, up to two times; then the exit code is 3."`
	SchemaText bool   `group:"show" help:"With --schema: tell the model the schema in the instructions, for endpoints that have no structured outputs."`

	endpointFlags `group:"who"`
	replyFlags    `group:"who"`

	ruleFlags   `group:"may"`
	ApproveFrom string `group:"may" placeholder:"FILE" help:"Read approvals of calls from FILE: JSON lines such as {\"tool\":\"apply_patch\",\"allow\":true}, each used once."`

	trustFlags `group:"may"`

	Sandbox string   `group:"may" placeholder:"PROFILE" help:"What programs may do, whatever the file says: read-only (no changes), workspace (write there, no network), hosts (also the network to --hosts), network (also all of the network), full (all that you may). Default: the file's, or workspace for commands and network for MCP servers."`
	Hosts   []string `group:"may" placeholder:"HOST" sep:"," help:"With the profile hosts, which may be left out: the hosts that programs may reach, such as proxy.golang.org,*.npmjs.org."`

	Pause bool `group:"may" help:"Let calls that need approval wait: the run stops with exit code 5, and continues when it is run again with approvals. Needs --session, --out or --in-place."`

	approvalFlags `group:"may"`

	MaxTurns  int           `group:"limits" placeholder:"N" help:"Ask the model at most N times."`
	MaxTime   time.Duration `group:"limits" placeholder:"TIME" help:"Stop after this time, such as 90s or 5m."`
	MaxTokens int64         `group:"limits" placeholder:"N" help:"Stop when the endpoint has counted N tokens."`
	MaxCost   float64       `group:"limits" placeholder:"COST" help:"Stop when the tokens cost this much, by their prices. This is checked between turns, so the last turn may exceed it."`
	Price     string        `group:"limits" placeholder:"IN,CACHED,OUT" help:"Prices of a million input, cached and output tokens, such as 1.25,0.125,10. Default: those of the settings, or the built-in ones of OpenAI."`
	Parallel  int           `group:"limits" placeholder:"N" help:"Run at most N calls at once."`

	MaxRepeats int `group:"limits" placeholder:"N" help:"Stop when the model makes the same call N times in a row."`

	CollapseReads bool   `group:"long" help:"Send a marker instead of a tool's output if a later call read the same again."`
	Compact       string `group:"long" placeholder:"auto|off|N" help:"Send a summary instead of the older part of the conversation: near the end of the model's context (auto), never (off), or from N tokens on. Default: the file's, or off."`
	CompactBy     string `group:"long" enum:"summary,endpoint,dropping" default:"summary" help:"How: by a summary that the model writes, by the endpoint's own compaction, or by dropping (summary, endpoint, dropping)."`

	MaxOutput     string `group:"long" placeholder:"LIMIT" help:"Shorten each output of a tool, such as to 8000 (tokens), '8000 tail' or '65536 bytes sample'. The model gets the tool read_output for the rest."`
	MaxTurnOutput string `group:"long" placeholder:"LIMIT" help:"The same limit for all outputs of one turn together."`
	Spill         string `group:"long" placeholder:"FOLDER" help:"Keep the removed parts of outputs in FOLDER, for later runs. Default: beside the transcript, or in memory."`
}

// Help is shown by antiphon run --help.
func (runCommand) Help() string {
	return `The model's text goes to standard output, everything else to standard error.

The conversation is not kept unless you say where. --out keeps a transcript: a
text file with the agent and the whole conversation, which can be read, edited and run
again. --session keeps a session in a database: see antiphon sessions --help.

Examples:
  antiphon run examples/tour/tour.md
  antiphon run agent.md "What is in this folder?"
  antiphon run agent.md -f plan.pdf -f https://example.com/plan.png "Do they agree?"
  git diff | antiphon run review.md "Only security, please" --out review.log.md
  antiphon run agent.md --base-url http://localhost:11434/v1 --model qwen3
  antiphon run agent.md --allow append_to_file,find_and_replace
  antiphon run agent.md --max-cost 0.50 --price 1.25,0.125,10
  antiphon run agent.md --approve-from answers.jsonl
  antiphon run agent.md --schema invoice.schema.json < invoice.txt | jq .total
  antiphon run agent.md --session work "Where were we?"`
}

// Run runs the agent.
func (c *runCommand) Run(ctx context.Context, std stdio, env environment) (err error) {
	c.File = agentFile(std.err, env, c.File)
	if c.Choose {
		if err := c.choose(ctx, std, env); err != nil {
			return err
		}
	}
	if _, err := show.PictureWay(env); err != nil {
		return usage(err)
	}
	cfg, err := c.config(ctx, env)
	if err != nil {
		return err
	}
	if c.parts, err = c.attached(ctx); err != nil {
		return err
	}
	std, who := c.watch(std, env)
	defer c.screen.Close()
	cfg.FrontEnd = front(std, env, c.Quiet)
	cfg.Notify, cfg.Locked = c.notify(std, c.screen), c.locked
	if who != nil {
		cfg.Asker, cfg.Approver = who, who.Approve
	} else if c.ApprovalTime > 0 {
		return usage(errors.New("--approval-time needs a terminal: without one, nobody is asked, and a call that needs an approval is refused at once. Workers have the flag too"))
	}
	if c.screen != nil {
		hide := env.Hider()
		cfg.Live = func(call tool.Call, _ bool, text []byte) { c.screen.Last(show.CallKey(call.ID), hide(string(text))) }
	}
	if err := c.trusted(std, env, who, &cfg); err != nil {
		return err
	}
	var found session.Info
	if permit := cfg.Permit; permit != nil {
		cfg.Permit = func(info session.Info) error {
			found = info
			return permit(info)
		}
	}
	h, err := host.Open(ctx, cfg)
	if c.attaches(err, who, found) {
		return c.attach(ctx, std, env, who, found, err)
	}
	if err != nil {
		return c.unopened(err)
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return c.converse(ctx, std, env, h)
}

// trusted sets who decides about what the file may do.
func (c *runCommand) trusted(std stdio, env environment, who *person.Person, cfg *host.Config) (err error) {
	if cfg.Variables, err = c.variables(); err != nil {
		return err
	}
	t, err := newTruster(c.File, &c.trustFlags, std, env, who)
	if err != nil {
		return err
	}
	t.quiet, t.sandbox = c.Quiet, profileFlag(c.Sandbox, c.Hosts)
	cfg.Trust, cfg.Began, cfg.Known, cfg.Leave, cfg.Made, cfg.Audit, cfg.Opened = t.ask, t.began, t.knows, t.leave, t.made, t.record, t.vouch
	if cfg.Protected = t.protected(); store.IsPath(env["ANTIPHON_STORE"]) { // also if this run keeps no session
		cfg.Protected = append(cfg.Protected, env["ANTIPHON_STORE"])
	}
	return nil
}

// unopened adds hints about the command line to an error.
func (c *runCommand) unopened(err error) error {
	var other *agentfile.OtherAgentError
	var unbound *host.UnboundError
	var problems chatmd.ErrorList
	switch {
	case c.Out != "" && c.Out != c.File && errors.As(err, &problems) && len(problems) > 0 && problems[0].File == c.Out && problems[0].Line == 1 && problems[0].Column == 1: // it does not even begin as one
		return usage(fmt.Errorf("%s is not a transcript and was not changed: name a new file, or one that --out has written (%w)", show.Visible(c.Out), problems[0]))
	case errors.As(err, &other):
		return usage(fmt.Errorf("%w, or add --keep-agent", err))
	case errors.As(err, &unbound):
		return usage(fmt.Errorf("%w; antiphon sessions import FILE --for %s makes one that does (sessions export %s --to jsonl writes such a FILE)", err, c.File, unbound.Session))
	}
	return err
}

// notify prints notices, and shows what is waited for.
func (c *runCommand) notify(std stdio, below show.Waits) func(host.Notice) {
	const inside = "agent in a message"
	c.unheld = cmp.Or(c.unheld, new(atomic.Bool))
	return func(n host.Notice) {
		switch n.Kind {
		case host.NoticeWaiting:
			below.Wait(n.Text, n.Text)
			return
		case host.NoticeReady:
			below.Done(n.Text)
			return
		case host.NoticeAsked:
			below.Done(inside)
			return
		case host.NoticeNearName, host.NoticeKept:
			if c.unnamed {
				return
			}
		case host.NoticeAudit:
			c.unheld.Store(true)
		case host.NoticeUnapproved:
			c.refused.name(n.Tool, true, "")
		case host.NoticeServer:
			if n.Server.Kind == mcpbridge.Progress {
				below.Last(show.CallKey(n.Server.Call.ID), n.Text)
				return
			}
		}
		if !c.Quiet || !goesWell(n.Kind) {
			fmt.Fprintln(std.err, noticeText(n)+show.Printable(c.whatNext(n)))
		}
		if n.Kind == host.NoticeAsking {
			below.Wait(inside, "the agent "+filepath.Base(n.File))
		}
	}
}

// whatNext adds commands and flags to a notice.
func (c *runCommand) whatNext(n host.Notice) string {
	switch n.Kind {
	case host.NoticeContinues:
		return ", last " + when(n.Session.Updated)
	case host.NoticeArchived:
		return "; antiphon sessions archive --undo unarchives it"
	case host.NoticeSameName:
		return fmt.Sprintf("; antiphon sessions rename %s OTHER-NAME --for %s makes it this file's", n.Session.ID, quoted(c.File))
	case host.NoticeNearName:
		return fmt.Sprintf("; --session %s continues it", quoted(cmp.Or(n.Session.Name, n.Session.ID)))
	case host.NoticeSaved:
		if filepath.Ext(n.File) == ".db" {
			return fmt.Sprintf("; antiphon sessions export %s --store %s writes it out", n.Session.ID, quoted(n.File))
		}
		return "; antiphon sessions import reads it back"
	case host.NoticeAudit:
		return "; ANTIPHON_AUDIT=/FOLDER/FILE writes it elsewhere, and ANTIPHON_AUDIT=off writes none"
	}
	return ""
}

// watch returns the streams to use beside the status line, if there is one, and the
// person at the terminal, or nil.
func (c *runCommand) watch(std stdio, env environment) (stdio, *person.Person) {
	c.Plain = c.Plain || env["ANTIPHON_PLAIN"] != ""
	if !c.JSON && !c.Quiet {
		c.screen, std = onScreen(std, env, c.Plain)
	}
	if !show.IsTerminal(std.in) || !show.IsTerminal(std.err) || c.JSON {
		return std, nil
	}
	who := person.New(std.in, std.err)
	if c.screen != nil {
		who.Look, who.Columns = c.screen.Look(), c.screen.Columns
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
		c.tune(a)
		err = c.play(ctx, std, env, h, a, prompt)
	}
	// With --session, --out is an export that is written whatever the outcome of the
	// run. A session that will be deleted is not exported.
	if h.Store != nil && !h.Fresh() && c.Out != "" {
		err = errors.Join(err, c.writeOut(ctx, std, env, h))
	}
	return err
}

// play runs the agent and shows its events.
func (c *runCommand) play(ctx context.Context, std stdio, env environment, h *host.Host, a *agent.Agent, prompt asked) error {
	p := show.NewPrinter(std.out, std.err, env)
	p.Waits, p.Quiet, p.Whole, p.Mute, p.Hears = c.screen, c.Quiet, c.ShowOutput, c.Schema != "", true
	p.Colour = p.Colour && !c.Plain
	p.Look = show.LookOf(p.Colour, c.Plain || env["TERM"] == "dumb")
	c.depicts(ctx, std, env, p)
	p.Recall(h.Session)
	show := p.Show
	if c.JSON {
		show = (&jsonLines{out: toJSON(std.out)}).show
	}
	refused := c.refused
	var waits []agent.PendingApproval // calls that wait for an approval
	var stopped session.Stopped
	var moved string // why the session goes on elsewhere
	var failure, showErr error
	for ev, err := range h.Say(ctx, prompt.said...) {
		if err != nil {
			failure = err
			break
		}
		if e, ok := ev.(agent.Recorded); ok {
			stopped, _ = e.Body.(session.Stopped)
			if b, ok := e.Body.(session.StopAsked); ok && b.Run != 0 {
				moved = b.Detail
			}
		}
		switch p := progressOf(ev); p.Kind {
		case agent.ProgressUnapproved:
			refused.add(p, ev)
		case agent.ProgressWaiting:
			waits = append(waits, *p.Pending)
		}
		if showErr = show(ev); showErr != nil {
			break // standard output failed: cancel the run, which then ends in order
		}
	}
	if err := errors.Join(failure, showErr); err != nil {
		return c.cutHint(c.roomHint(err, a.Compaction))
	}
	pending := stopped.Why == string(agent.StopApprovalPending)
	switch {
	case moved != "" && (pending || stopped.Why == string(agent.StopRequested)):
		return movedAway(moved)
	case pending:
		return waiting(std, waits)
	}
	if c.Schema != "" && !c.JSON && stopped.Why == string(agent.StopEndTurn) {
		p.Mute = false
		p.Text(strings.TrimSpace(h.Result().Answer))
		p.EndLine()
		if err := p.Failure(); err != nil {
			return err
		}
	}
	refused.unrecorded = c.unheld.Load()
	return c.verdict(stopped, refused)
}

// cutHint adds to the error about a reply that was cut how to go on.
func (c *runCommand) cutHint(err error) error {
	var provider *endpoint.Error
	switch {
	case !errors.As(err, &provider) || provider.Class != endpoint.Truncated || provider.Hint != "":
		return err
	case c.keeps():
		return fmt.Errorf("%w; run it again to continue", err)
	}
	return fmt.Errorf("%w; nothing of it was kept: run it again, with --session NAME to keep the conversation", err)
}

// roomHint adds flags that shorten the history to the error about a full context,
// unless the history is compacted already.
func (c *runCommand) roomHint(err error, by agent.Compaction) error {
	var provider *endpoint.Error
	full := errors.Is(err, agent.ErrContextFull) || errors.As(err, &provider) && provider.Class == endpoint.ContextOverflow
	if !full || by.Auto || by.At > 0 {
		return err
	}
	if c.keeps() {
		return fmt.Errorf("%w; run it again with --compact auto to continue with a shorter history", err)
	}
	return fmt.Errorf("%w; --compact auto shortens the history, and --session NAME keeps the conversation for later runs", err)
}

// progressOf returns the progress of a run or of a subagent, or the zero value for
// another event.
func progressOf(ev agent.Event) agent.Progress {
	if n, ok := ev.(agent.SubagentEvent); ok {
		ev = n.Event
	}
	p, _ := ev.(agent.Progress)
	return p
}

// unapproved are the tools whose calls nobody could approve.
type unapproved struct {
	allowable []string // --allow would let the calls run
	elsewhere []string // they belong to other files
	others    []string // no rule would

	unrecorded bool // calls were refused because they could not be recorded
}

func (u *unapproved) add(p agent.Progress, ev agent.Event) {
	_, nested := ev.(agent.SubagentEvent)
	u.name(p.Tool, nested, p.Reason)
}

// name adds a tool of the file or, if nested is set, of another file. Why is the reason if no
// rule that allows the tool would cover the call.
func (u *unapproved) name(tool string, nested bool, why string) {
	list := &u.allowable
	switch _, builtin := toolkit.Lookup(tool); {
	case why != "":
		list = &u.others
	case nested && !builtin:
		list = &u.elsewhere
	}
	if !slices.Contains(*list, tool) {
		*list = append(*list, tool)
	}
}

// err says what was refused and what helps, or returns nil.
func (u *unapproved) err() error {
	var parts []string
	if tools := u.allowable; len(tools) > 0 {
		parts = append(parts, fmt.Sprintf("nobody could approve calls of %s, so they were refused; --allow %s lets them run", strings.Join(tools, ", "), strings.Join(tools, ",")))
	}
	if tools := u.elsewhere; len(tools) > 0 {
		parts = append(parts, fmt.Sprintf("nobody could approve calls of %s, which are tools of other files, so they were refused; approval=\"allow\" there and your trust let them run", strings.Join(tools, ", ")))
	}
	if tools := u.others; len(tools) > 0 {
		parts = append(parts, fmt.Sprintf("nobody could approve calls of %s that no rule covers, so they were refused; run it at a terminal, or with --pause", strings.Join(tools, ", ")))
	}
	if u.unrecorded {
		parts = append(parts, "calls were refused, because the audit log cannot be written")
	}
	if parts == nil {
		return nil
	}
	return &exitError{exitNeedsAllow, errors.New(strings.Join(parts, "; "))}
}

// verdict returns the exit code of a run that did not fail.
func (c *runCommand) verdict(s session.Stopped, refused unapproved) error {
	why := agent.StopReason(s.Why)
	if why == agent.StopRefused && c.Schema != "" {
		return &exitError{exitProvider, errors.New("the model refused to answer, so there is no answer that fits --schema")}
	}
	switch why {
	case agent.StopEndTurn, agent.StopRefused:
		return refused.err()
	case agent.StopEmptyReply:
		return &exitError{exitProvider, fmt.Errorf("the reply is empty: %s; give a prompt to continue, or check the endpoint with antiphon doctor", s.Detail)}
	case agent.StopIncomplete:
		return &exitError{exitProvider, fmt.Errorf("the reply is incomplete: the endpoint ended it (%s)", cmp.Or(s.Detail, "it did not say why"))}
	}
	detail := s.Detail
	if why == agent.StopMaxTime {
		detail = fmt.Sprintf("%s have passed", c.MaxTime)
	}
	again := "; use --session NAME or --out FILE to be able to continue a conversation"
	if c.keeps() {
		again = "; run it again to continue"
	}
	if s.Why == string(agent.StopRequested) {
		return &exitError{exitLimit, fmt.Errorf("stopped on request%s%s", show.Colon(s.Detail), again)}
	}
	return &exitError{exitLimit, fmt.Errorf("stopped at the limit %s: %s%s", s.Why, detail, again)}
}

// depicts has the images of tools and of the model drawn below their rows, if these go to a terminal, and the answer too.
func (c *runCommand) depicts(ctx context.Context, std stdio, env environment, p *show.Printer) {
	if show.IsTerminal(std.out) {
		p.DepictOn(ctx, c.screen, env)
	}
}
