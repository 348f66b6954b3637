// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/chat"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// chatCommand is antiphon chat.
type chatCommand struct {
	File string `arg:"" optional:"" help:"The agent: a ChatMarkdown file, or the name of an agent of the settings. Default: the built-in assistant."`

	System string   `group:"say" short:"s" placeholder:"TEXT" help:"Instructions for the model, sent as a system message before the first prompt."`
	Files  []string `group:"say" name:"file" short:"f" sep:"none" placeholder:"FILE" help:"Send FILE with the first prompt: text, an image, a PDF, or a URL. May be repeated."`

	Session   string   `group:"keep" placeholder:"NAME" xor:"which" help:"Continue the session NAME of this file, or begin it. Default: a new session with a name of its own."`
	Last      bool     `group:"keep" short:"c" xor:"which" aliases:"continue" help:"Continue the most recently written session of this file; without FILE, of this folder."`
	Choose    bool     `group:"keep" short:"r" xor:"which" help:"Choose the session to continue from a list, which tells what runs and what waits for you."`
	Attach    string   `group:"keep" placeholder:"NAME" xor:"which" help:"Show the session NAME while another process runs it: say something to it, answer about its calls, stop it. It needs no FILE. https://HOST/NAME: a session at a server, with the key of $$ANTIPHON_SERVER_KEY."`
	Owner     string   `group:"keep" placeholder:"OWNER" help:"The owner of the session: a new session gets this owner, and sessions of other owners are refused."`
	Tag       []string `group:"keep" sep:"none" placeholder:"TAG" help:"Add a tag to the session; may be repeated."`
	storeFlag `group:"keep"`

	ShowOutput bool `group:"show" short:"v" help:"Show the complete outputs of tools, not only their last lines."`
	Plain      bool `group:"show" help:"No colours and no changing lines, for screen readers. Also $$ANTIPHON_PLAIN."`

	endpointFlags `group:"who"`
	replyFlags    `group:"who"`

	ruleFlags `group:"may"`
	Sandbox   string   `group:"may" placeholder:"PROFILE" help:"What programs may do, whatever the file says, as for antiphon run."`
	Hosts     []string `group:"may" placeholder:"HOST" sep:"," help:"With the profile hosts: the hosts that programs may reach."`

	trustFlags    `group:"may"`
	approvalFlags `group:"may"`

	Price     string `group:"limits" placeholder:"IN,CACHED,OUT" help:"Prices of a million input, cached and output tokens, such as 1.25,0.125,10."`
	Compact   string `group:"long" placeholder:"auto|off|N" help:"Send a summary instead of the older part of the conversation: near the end of the model's context (auto), never (off), or from N tokens on. Default: the file's, or off."`
	CompactBy string `group:"long" enum:"summary,endpoint,dropping" default:"summary" help:"How: by a summary that the model writes, by the endpoint's own compaction, or by dropping (summary, endpoint, dropping)."`
}

// Help is shown by antiphon chat --help.
func (chatCommand) Help() string {
	return `A conversation at the terminal. Finished output goes into the terminal's own
scrollback. Below it are the end of the current reply, the work in progress and your
draft. The conversation is kept in a session, and leaving says how to come back.

Enter sends, Ctrl-J begins a new line, Esc stops the work, Ctrl-D leaves, /help
lists the commands.

Examples:
  antiphon chat
  antiphon chat examples/tour/tour.md
  antiphon chat agent.md --model qwen3 --base-url http://localhost:11434/v1
  antiphon chat agent.md -c
  antiphon chat agent.md --session work
  antiphon chat --attach work
  antiphon chat --attach https://agents.example.com/work`
}

// Run holds the conversation.
func (c *chatCommand) Run(ctx context.Context, std stdio, env environment, own settings) error {
	return c.meant(ctx, env, c.talk(ctx, std, env, own))
}

func (c *chatCommand) talk(ctx context.Context, std stdio, env environment, own settings) error {
	out, isFile := std.out.(*os.File)
	in, alsoFile := std.in.(*os.File)
	if !isFile || !alsoFile || !show.IsTerminal(out) || !show.IsTerminal(in) {
		return usage(errors.New("antiphon chat needs a terminal; in scripts, antiphon run FILE --session NAME PROMPT continues a conversation, one prompt at a time"))
	}
	if c.Attach != "" && (c.System != "" || len(c.Files) > 0 || c.Effort != "" || c.Temperature != nil) {
		return usage(errors.New("--attach shows a session of another process: -s, -f, --effort and --temperature cannot be used with it"))
	}
	if c.Attach != "" && c.File != "" {
		return usage(errors.New("--attach needs no FILE: the session names its own"))
	}
	c.Plain = c.Plain || env["ANTIPHON_PLAIN"] != "" || env["TERM"] == "dumb"
	if attach.IsAddress(c.Attach) {
		cfg := c.about(env, &chatProgram{})
		cfg.In, cfg.Out, cfg.Err = in, out, std.err
		return chat.Attach(ctx, cfg, c.Attach)
	}
	cfg, err := c.config(ctx, std, env, own)
	if err != nil {
		return err
	}
	cfg.In, cfg.Out, cfg.Err = in, out, std.err
	return chat.Hold(ctx, cfg)
}

// config returns the conversation that the flags describe.
func (c *chatCommand) config(ctx context.Context, std stdio, env environment, own settings) (cfg chat.Config, err error) {
	var found session.Info
	if c.Attach != "" {
		if found, err = c.attached(ctx, env); err != nil {
			return cfg, err
		}
	}
	run, err := c.asRun(std.err, env)
	if err != nil {
		return cfg, err
	}
	kept, err := run.config(ctx, env)
	if err != nil {
		return cfg, err
	}
	if c.Last {
		kept.Session, kept.Last = "", true
	}
	cfg = c.about(env, &chatProgram{chat: c, run: run, env: env, own: own})
	cfg.Host, cfg.Found, cfg.Choose = kept, found, c.Choose
	cfg.System, cfg.Effort, cfg.Temperature = c.System, c.Effort, c.Temperature
	cfg.Models = slices.Sorted(maps.Keys(own.models))
	cfg.Parts, err = run.attached(ctx)
	return cfg, err
}

// about returns what is the same of sessions in a store and at a server.
func (c *chatCommand) about(env environment, p chat.Program) chat.Config {
	cfg := chat.Config{Program: p, Env: env, File: c.File, StoreFlags: c.again(), Plain: c.Plain, ShowOutput: c.ShowOutput}
	if usual, err := dataFile(env); err == nil {
		cfg.Data = filepath.Dir(usual)
	}
	return cfg
}

// meant adds to the error about a FILE that is not there that a session has its name.
func (c *chatCommand) meant(ctx context.Context, env environment, err error) error {
	if c.File == "" || !errors.Is(err, fs.ErrNotExist) || !chat.Nameable(c.File) {
		return err
	}
	if _, gone := os.Stat(c.File); gone == nil { // another file is missing
		return err
	}
	k, failed := c.open(ctx, env, false)
	if failed != nil {
		return err
	}
	defer func() { _ = k.Close() }() // it was only read
	for _, failed := range k.List(ctx, session.Query{Name: c.File, Owner: c.Owner, Limit: 1}) {
		if failed == nil {
			return fmt.Errorf("%w; a session has this name: antiphon chat --attach %s%s opens it", err, quoted(c.File), c.again())
		}
	}
	return err
}

// asRun returns antiphon run with the same flags.
func (c *chatCommand) asRun(w io.Writer, env environment) (*runCommand, error) {
	if err := lastByNumber(&c.Session, &c.Last); err != nil {
		return nil, err
	}
	run := &runCommand{File: agentFile(w, env, c.File), runFlags: runFlags{
		Session: cmp.Or(c.Session, chat.TimedName()), Owner: c.Owner, Tag: c.Tag, storeFlag: c.storeFlag, ShowOutput: c.ShowOutput,
		System: c.System, Attach: c.Files,
		endpointFlags: c.endpointFlags, replyFlags: c.replyFlags, ruleFlags: c.ruleFlags, Sandbox: c.Sandbox, Hosts: c.Hosts, trustFlags: c.trustFlags, approvalFlags: c.approvalFlags,
		Price: c.Price, Compact: c.Compact, CompactBy: c.CompactBy,
	}}
	run.unnamed = c.Session == ""
	if c.File != "" {
		return run, nil
	}
	file, err := assistant(env)
	if err != nil {
		return nil, err
	}
	folder, err := folderTag()
	if err != nil {
		return nil, err
	}
	run.File, run.Tag = file, append(run.Tag, folder)
	if c.Last || c.Choose {
		run.among = []string{folder}
	}
	return run, nil
}

// attached finds the session to attach to, and takes its file as that of the chat.
func (c *chatCommand) attached(ctx context.Context, env environment) (info session.Info, err error) {
	k, err := c.open(ctx, env, false)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	if info, err = findWhole(ctx, k, c.Attach, false); err != nil {
		return info, err
	}
	if err := movable(info); err != nil {
		return info, err
	}
	c.File, c.Session = info.Path, info.ID
	return info, nil
}

// chatProgram is this program, as a chat uses it.
type chatProgram struct {
	chat *chatCommand
	run  *runCommand
	env  environment
	own  settings
}

func (p *chatProgram) OpenStore(ctx context.Context) (keeper, error) {
	return p.chat.open(ctx, p.env, false)
}
func (p *chatProgram) AuditLog() (*audit.Log, error) { return auditLog(p.env) }

// Hangup sets what is called instead of ending the program when the terminal is gone.
func (p *chatProgram) Hangup(lost func()) {
	if lost == nil {
		hungUp.Store(nil)
		return
	}
	hungUp.Store(&lost)
}

func (p *chatProgram) FrontEnd(w io.Writer, quiet bool) host.FrontEnd {
	return front(stdio{err: w}, p.env, quiet)
}

func (p *chatProgram) Notices(w io.Writer, below show.Waits) func(host.Notice) {
	return p.run.notify(stdio{err: w}, below)
}

func (p *chatProgram) Consent(std chat.Streams, who *person.Person, cfg *host.Config) error {
	return p.run.trusted(stdio{std.In, std.Out, std.Err}, p.env, who, cfg)
}

func (p *chatProgram) Choices(ctx context.Context, w io.Writer, columns int) ([]session.Info, error) {
	return p.run.choices(ctx, stdio{err: w}, p.env, columns)
}

func (p *chatProgram) Model(name string) (model, baseURL string) { return p.own.model(name) }

// Work returns the configuration of work on a session that workers can go on with.
func (p *chatProgram) Work(w io.Writer, info session.Info) (host.Config, error) {
	if err := movable(info); err != nil {
		return host.Config{}, err
	}
	return workConfig(stdio{err: w}, p.env)
}

func (p *chatProgram) sessions() *sessionsCommand {
	return &sessionsCommand{storeFlag: p.chat.storeFlag, hide: p.env.Hider()}
}

func (p *chatProgram) ShowSent(ctx context.Context, w io.Writer, id string) error {
	return (&showCommand{Session: id, AsSent: true}).Run(ctx, stdio{out: w, err: w}, p.env, p.sessions())
}

func (p *chatProgram) Exports(path string) bool {
	_, err := (&exportCommand{To: "auto", Out: path}).form()
	return err == nil
}

func (p *chatProgram) Export(ctx context.Context, w io.Writer, id, path string) error {
	return (&exportCommand{Session: id, To: "auto", Out: path}).Run(ctx, stdio{out: w, err: w}, p.env, p.sessions())
}

func (p *chatProgram) Unopened(err error) error { return p.run.unopened(err) }

func (p *chatProgram) Failed(err error, by agent.Compaction) (text, next string) {
	return p.run.roomHint(err, by).Error(), nextStep(err)
}

func (p *chatProgram) Taken(err error, name string) error { return taken(err, name) }
