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
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// runCommand is antiphon run.
type runCommand struct {
	from   *host.Answers // those of ApproveFrom
	names  []string      // of all tools, those of nested agents included
	unsure *atomic.Bool  // an MCP server is missing, so that names may be too
	spill  tool.Spill
	kept   *kept // that of Session
	screen *screen
	asked  agent.Spent // by agents in messages, before the run
	until  time.Time   // when MaxTime has passed

	models *endpoint.Table

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
	// Agents in messages and the run itself share what the limits leave.
	ctx = agent.WithBudget(ctx, &agent.Budget{Tokens: c.MaxTokens, Cost: c.MaxCost})
	table, err := c.prepare(ctx, env)
	if err != nil {
		return err
	}
	std, who := c.watch(std, env)
	defer c.screen.close()
	runner, stop := c.inside(ctx, std, env, table, who)
	defer stop()
	file, sess, err := c.open(ctx, std, env, table, who, runner)
	defer func() { err = errors.Join(err, c.kept.close()) }()
	if err != nil {
		return c.late(err)
	}
	defer file.Close()
	return c.converse(ctx, std, env, table, who, file, sess)
}

// prepare looks at all that can be wrong before a file is opened.
func (c *runCommand) prepare(ctx context.Context, env environment) (*endpoint.Table, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.until = time.Now().Add(c.MaxTime)
	table, err := c.table(env)
	if err != nil {
		return nil, err
	}
	if c.Profile != "" { // a slip is one on the rehearsal too
		if _, err := table.ByName(c.Profile); err != nil {
			return nil, usage(fmt.Errorf("--profile: %w", err))
		}
	}
	c.models, c.unsure = table, new(atomic.Bool)
	for _, path := range []string{c.File, c.Out} {
		if isExport(path) && !(c.inSession() && path == c.Out) {
			return nil, usage(fmt.Errorf("%s is an exported session, not an agent; antiphon sessions import %s --for AGENT makes a session of it to go on with", path, path))
		}
	}
	if c.File == "-" {
		return nil, usage(errors.New("give the agent's file: what is piped in is the prompt, antiphon run FILE -"))
	}
	if info, err := os.Stat(c.File); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return nil, usage(fmt.Errorf("%s is a pipe, and the agent's file is read more than once\n  hint: write it to a file first", c.File))
	}
	if err := notAgent(c.File); err != nil {
		return nil, usage(err)
	}
	return table, c.reachable(ctx, env, table)
}

// reachable refuses a model that nobody can answer for, before anything is made,
// started or asked for the run.
func (c *runCommand) reachable(ctx context.Context, env environment, table *endpoint.Table) error {
	options, err := fileOptions()
	if err != nil {
		return err
	}
	path := c.File
	if _, err := os.Stat(c.Out); err == nil && c.Out != "" && !c.inSession() {
		path = c.Out
	}
	return c.endpoint(table).Reachable(ctx, path, options, front(stdio{}, env, true))
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

// converse runs the agent of the file that was opened, unless the session needs no
// run.
func (c *runCommand) converse(ctx context.Context, std stdio, env environment, table *endpoint.Table, who *person, file *agentfile.File, sess *session.Session) error {
	prompt, err := c.prompt(ctx, std)
	if err != nil {
		return err
	}
	if done, err := c.settled(std, env, sess, prompt); done {
		return c.exported(ctx, std, env, err)
	}
	c.screen.wait("servers", "the MCP servers to start")
	err = c.connect(ctx, std, env, file)
	c.screen.done("servers")
	if err != nil {
		return c.late(err)
	}
	providers := host.NewProviders(c.endpoint(table), front(std, env, c.Quiet))
	defer providers.Close()
	a, err := c.agent(ctx, env, file, providers.Of, who)
	if err != nil {
		return err
	}
	if err := c.unmatched(std, file.Partial); err != nil {
		return err
	}
	if c.from != nil {
		if err := c.from.Decide(ctx, sess); err != nil {
			return err
		}
	}
	providers.Tell(sess)
	providers.TellRehearsed(sess)
	c.kept.stays()
	err = c.play(ctx, std, env, a, sess, input(prompt.text, sess))
	if c.from != nil {
		f := front(std, env, c.Quiet)
		c.from.TellUnused(&f, sess)
	}
	return c.exported(ctx, std, env, c.rescued(std, env, sess, err))
}

// connect starts the MCP servers of a file, in the time that the run has left.
func (c *runCommand) connect(ctx context.Context, std stdio, env environment, file *agentfile.File) error {
	ctx, stop := c.bounded(ctx)
	defer stop()
	return file.Connect(ctx, env.Lookup, c.sayServer(std, env))
}

// bounded is a context for what happens before the run itself, in its time.
func (c *runCommand) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.MaxTime == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, c.until)
}

// late is the error of what was not ready when the run's time was up.
func (c *runCommand) late(err error) error {
	if c.MaxTime == 0 || time.Now().Before(c.until) {
		return err
	}
	return &exitError{exitLimit, fmt.Errorf("stopped at the limit %s: %s have passed: %w", agent.MaxTime, c.MaxTime, err)}
}

// exported writes the export that --out is beside --session, whatever came of
// the run. A session that is about to be deleted has none.
func (c *runCommand) exported(ctx context.Context, std stdio, env environment, err error) error {
	if c.kept == nil || c.kept.fresh || c.Out == "" {
		return err
	}
	return errors.Join(err, c.writeOut(ctx, std, env))
}

// check looks at the flags by themselves.
func (c *runCommand) check() error {
	if c.MaxTurns < 0 || c.MaxTime < 0 || c.MaxTokens < 0 || c.MaxCost < 0 || c.Parallel < 0 || c.MaxRepeats < 0 {
		return usage(errors.New("--max-turns, --max-time, --max-tokens, --max-cost, --max-repeats and --parallel cannot be negative"))
	}
	if math.IsNaN(c.MaxCost) || math.IsInf(c.MaxCost, 0) {
		return usage(errors.New("--max-cost is not a number"))
	}
	if c.MaxCost > 0 && c.Price == "" {
		return usage(errors.New("--max-cost needs --price: what a model costs is not built in"))
	}
	if c.Pause && c.Out == "" && !c.InPlace && !c.inSession() {
		return usage(errors.New("--pause needs --session NAME, --out FILE or --in-place, where the calls wait"))
	}
	if err := c.checkKept(); err != nil {
		return err
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

// checkKept refuses flags that would do nothing, because the conversation is not
// kept where they say something about it.
func (c *runCommand) checkKept() error {
	if c.KeepAgent && (c.Out == "" || c.inSession()) {
		return usage(errors.New("--keep-agent goes with --out FILE, where FILE is the transcript that the run goes on with"))
	}
	if c.inSession() {
		return nil
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"--store", c.Store != ""}, {"--force", c.Force}, {"--owner", c.Owner != ""}, {"--tag", len(c.Tag) > 0}} {
		if flag.given {
			return usage(fmt.Errorf("%s goes with --session NAME or --last", flag.name))
		}
	}
	return nil
}

// inSession reports whether the run is kept in a session of a store.
func (c *runCommand) inSession() bool { return c.Session != "" || c.Last }

// sayServer tells of what happens to MCP servers.
func (c *runCommand) sayServer(std stdio, env environment) func(mcpbridge.Event) {
	return func(ev mcpbridge.Event) {
		said := ""
		switch ev.Kind {
		case mcpbridge.Progress:
			text := env.Hide(ev.Text)
			if ev.Total > 0 {
				text = fmt.Sprintf("%g of %g %s", ev.Done, ev.Total, text)
			}
			c.screen.last(callKey(ev.Call.ID), text)
			return
		case mcpbridge.Ended, mcpbridge.Changed, mcpbridge.Missing:
			c.unsure.Store(true)
		}
		switch ev.Kind {
		case mcpbridge.Starting:
			said = "is still being started"
		case mcpbridge.Ended:
			said = "has ended"
		case mcpbridge.Changed:
			said = "has other tools now"
		case mcpbridge.Stray:
			said = "printed a line that is not a message and is skipped"
		case mcpbridge.Missing:
			said = "is optional and missing, with its tools"
		default:
			return
		}
		fmt.Fprintf(std.err, "antiphon: the MCP server %s %s: %s\n", unbroken(ev.Server), said, unbroken(env.Hide(ev.Text)))
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
	options.Profiles, options.Allow, options.Runner, options.KeepAgent = table, c.Allow, runner, c.KeepAgent
	options.Answers = answersFolder(env)
	if who != nil {
		options.Asker = who
	}
	if c.screen != nil {
		options.Live = func(call tool.Call, _ bool, text []byte) { c.screen.last(callKey(call.ID), env.Hide(string(text))) }
	}
	out := c.Out
	switch {
	case c.InPlace:
		out = c.File
	case sameFile(c.File, out):
		return nil, nil, usage(fmt.Errorf("--out %s is the agent's file itself; give --in-place to append to it", out))
	}
	if c.inSession() {
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
	var other *agentfile.OtherAgentError
	if errors.As(err, &other) {
		return nil, nil, usage(fmt.Errorf("%w, or add --keep-agent", err))
	}
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

// unmatched looks for rules that fit no tool of the file. A name in --deny or --ask
// is refused then: a slip would let a call run. Patterns are warned of, and so are
// names as long as not all tools are known: those of an agent in a message that is
// not asked again, or of an MCP server that did not start.
func (c *runCommand) unmatched(std stdio, partial bool) error {
	for _, flag := range []struct {
		name     string
		patterns []string
	}{{"--deny", c.Deny}, {"--ask", c.Ask}, {"--allow", c.Allow}} {
		for _, pattern := range flag.patterns {
			if slices.ContainsFunc(c.names, func(name string) bool { return matches([]string{pattern}, name) }) {
				continue
			}
			err := fmt.Errorf("%s: no tool of %s is called %q", flag.name, c.File, pattern)
			if i := slices.IndexFunc(c.names, func(name string) bool { return nearly(name, pattern) }); i >= 0 {
				err = fmt.Errorf("%w; did you mean %s?", err, c.names[i])
			}
			if flag.name != "--allow" && !strings.ContainsAny(pattern, `*?[\`) && !partial && !c.unsure.Load() {
				return usage(err)
			}
			fmt.Fprintln(std.err, printable("antiphon: "+err.Error()))
		}
	}
	return nil
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// play runs the agent and shows what happens.
func (c *runCommand) play(ctx context.Context, std stdio, env environment, a *agent.Agent, sess *session.Session, input []item.Item) error {
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
			end.Totals.Nested.Add(c.asked)
			end.All = end.Totals.All()
			stopped, ev = end, end
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
