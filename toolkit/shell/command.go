// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package shell holds the tools that run programs, and the policy that decides
// about them. Before a command runs, the package parses it, as a list or as a
// script (text.go, script.go), looks through programs that run other programs
// (wrappers.go), and judges what would run (policy.go). The command then runs
// with limits on time, output and environment (run.go, process_*.go), in the roots
// that toolkit.Open opens.
//
// The policy is not a sandbox: a program that is allowed to run can do everything
// its user can do.
package shell

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

//go:embed command.md
var runCommandText string

//go:embed command_shell.md
var runShellText string

// Defaults of [Options].
const (
	DefaultTimeout   = 2 * time.Minute
	DefaultKeep      = 1 << 20
	DefaultMaxOutput = 64 << 20
)

// usualOutput limits the part of a command's output that a model gets at once,
// unless a limit for all tools or for this one says otherwise.
var usualOutput = output.Limit{Bytes: 64 << 10}

// Options configure [RunCommand]. The zero value is usable: the model may request
// any program, and the agent asks the user before each one.
type Options struct {
	// Policy decides about commands. A command it denies never runs, even if the
	// user would approve it. For the other decisions see [Command.Approval].
	Policy Policy
	// Shell passes the model's text to sh -c. Otherwise the model gives a list of
	// arguments, and no shell interprets it.
	Shell bool
	// Timeout limits the time of a command. The model may request a shorter one but
	// not a longer one.
	Timeout time.Duration
	// Keep is the number of bytes of stdout, and of stderr, that are held in memory.
	// The rest is in a temporary file until the call has its output. A model gets
	// less at once, 64 KiB unless a limit says otherwise; the whole output goes to
	// the [output.Store], and the model reads the rest with [tool.ReadOutput] if that
	// is among the tools. If there is no space for the file, the middle of the
	// output is lost, and the result says how many bytes that is.
	Keep int
	// MaxOutput limits the output of a command in bytes. A command that writes more
	// is stopped.
	MaxOutput int64
	// Memory limits the address space of each process, in bytes. It works only on
	// Linux; elsewhere RunCommand returns an error. Programs that reserve much more
	// than they use (Go, Java, Node) need a generous limit. Zero means no limit.
	Memory int64
	// Env lists environment variables for commands in addition to the basic ones:
	// "NAME" copies a variable of this process, "NAME=value" sets one. A name that
	// looks like that of a secret cannot be copied.
	Env []string
	// Live is called with the output of a command as it is written, by one goroutine
	// at a time. It must not keep text. If it is slow, it slows the command.
	Live func(call tool.Call, stderr bool, text []byte)
}

// Command is the tool that runs programs.
type Command struct {
	tool.Tool
	files   *files.Files
	options Options
	env     []string
	dirs    []string // the directories in PATH
}

type runCommandInput struct {
	Command   []string `json:"command" jsonschema:"the program and its arguments, each a string of its own; no shell reads them"`
	Directory string   `json:"directory,omitzero" jsonschema:"the directory to run it in, relative to a root, or name:path for a named root; default: the first root"`
	Timeout   int      `json:"timeout,omitzero" jsonschema:"seconds after which it is stopped, if the default is too long"`
}

type runShellInput struct {
	Command   string `json:"command" jsonschema:"the command line, for a POSIX shell"`
	Directory string `json:"directory,omitzero" jsonschema:"the directory to run it in, relative to a root, or name:path for a named root; default: the first root"`
	Timeout   int    `json:"timeout,omitzero" jsonschema:"seconds after which it is stopped, if the default is too long"`
}

// asked is a parsed call: what to run, and where.
type asked struct {
	argv      []string
	script    string // used instead of argv if Shell is set
	directory string
	timeout   int
}

// RunCommand returns the tool that runs commands in the roots of f. The tool is
// exclusive and not read-only, so an agent asks the user before it runs a command.
//
// A command gets no input, no terminal, and an environment of a few variables.
// When it exits, and when its time, its output or the call's context ends, all
// processes in its group are killed. A process that started its own session
// survives. On Windows a job object takes the role of the group; what a program
// starts in its first moment survives as well.
func RunCommand(name string, f *files.Files, options Options) (*Command, error) {
	c, err := newCommand(f, options)
	if err != nil {
		return nil, err
	}
	if options.Shell {
		c.Tool, err = tool.New(name, f.Describe(runShellText), func(ctx context.Context, in runShellInput) (tool.Result, error) {
			return c.call(ctx, asked{script: in.Command, directory: in.Directory, timeout: in.Timeout})
		}, tool.Exclusive(), tool.UsualOutput(usualOutput))
	} else {
		c.Tool, err = tool.New(name, f.Describe(runCommandText), func(ctx context.Context, in runCommandInput) (tool.Result, error) {
			return c.call(ctx, asked{argv: in.Command, directory: in.Directory, timeout: in.Timeout})
		}, tool.Exclusive(), tool.UsualOutput(usualOutput))
	}
	return c, err
}

// newCommand checks the options and sets their defaults.
func newCommand(f *files.Files, options Options) (*Command, error) {
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	options.Keep = cmp.Or(options.Keep, DefaultKeep)
	options.MaxOutput = cmp.Or(options.MaxOutput, DefaultMaxOutput)
	if options.Timeout < 0 || options.Keep < 0 || options.MaxOutput < 0 || options.Memory < 0 {
		return nil, errors.New("shell: a limit of a command is negative")
	}
	if options.Memory > 0 && runtime.GOOS != "linux" {
		return nil, fmt.Errorf("shell: the memory of commands cannot be limited on %s", runtime.GOOS)
	}
	if options.Shell && runtime.GOOS == "windows" {
		return nil, errors.New("shell: there is no POSIX shell on Windows")
	}
	if err := options.Policy.check(); err != nil {
		return nil, err
	}
	env, err := commandEnv(options.Env)
	if err != nil {
		return nil, err
	}
	c := &Command{files: f, options: options}
	c.env, c.dirs = absolutePath(env)
	return c, nil
}

// Annotations implements [tool.Annotated].
func (c *Command) Annotations() tool.Annotations { return tool.AnnotationsOf(c.Tool) }

// Approval returns the verdict of the policy on a call, combined with further
// rules about the argument "command". An agent's policy takes it into account:
// deny and ask override any other permission, allow is valid unless something
// else denies or asks, and "" means no opinion. The reason is for the user who is
// asked and for the model.
//
// A rule's prefix is taken as a [Rule]: it is about the programs that
// would run, not about how the list begins. Rules without one are the agent's.
func (c *Command) Approval(call tool.Call, rules []session.Rule) (verdict session.Verdict, reason string) {
	a, err := c.read(call.Arguments)
	if err != nil {
		return unruled, "" // it will not be run
	}
	return c.judge([]asked{a}, c.options.Policy.with(rules))
}

// Suggest returns rules that a user can add when approving a call: one for each
// program that the call runs. A rule has the first argument of the program if
// that looks like the name of an operation, and all its arguments otherwise.
// Suggest returns none if no rule can allow the call.
func (c *Command) Suggest(call tool.Call) (rules []session.Rule) {
	a, err := c.read(call.Arguments)
	if err != nil {
		return nil
	}
	return c.suggest(call.Name, []asked{a})
}

// suggest returns the rules that would allow all commands of a call to the named
// tool, or none if no rules would.
func (c *Command) suggest(name string, list []asked) (rules []session.Rule) {
	for _, a := range list {
		for _, r := range c.inquire(a).suggest() {
			rules = append(rules, session.Rule{Verdict: session.Allow, Tool: name, Member: "command", Prefix: r})
		}
	}
	if decision, _ := c.judge(list, c.options.Policy.with(rules)); decision != session.Allow {
		return nil
	}
	return rules
}

// read parses arguments for [Command.Approval]. Before the command runs, the
// decision about them is compared with the one about the decoded arguments.
func (c *Command) read(arguments string) (asked, error) {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.DisallowUnknownFields()
	if c.options.Shell {
		var in runShellInput
		err := d.Decode(&in)
		return asked{script: in.Command, directory: in.Directory, timeout: in.Timeout}, err
	}
	var in runCommandInput
	err := d.Decode(&in)
	return asked{argv: in.Command, directory: in.Directory, timeout: in.Timeout}, err
}

func (c *Command) inquire(a asked) *inquiry {
	if c.options.Shell {
		return inquireScript(a.script)
	}
	return inquireArgv(a.argv)
}

// judge decides about the commands of one call: it is denied if one command is,
// and allowed only if all are. Without a rule a command is asked about, so unruled is
// stricter than allow here.
func (c *Command) judge(list []asked, policy Policy) (strictest session.Verdict, reason string) {
	rank := []session.Verdict{session.Allow, unruled, session.Ask, session.Deny}
	strictest = session.Allow
	for _, a := range list {
		dir := ""
		if p, err := c.files.Resolve(cmp.Or(a.directory, ".")); err == nil {
			dir = p.Path()
		}
		d, why := policy.judge(c.inquire(a), &programs{dir: dir, dirs: c.dirs, writable: c.files.Dirs()})
		if slices.Index(rank, d) >= slices.Index(rank, strictest) {
			strictest, reason = d, why
		}
	}
	return strictest, reason
}

// call runs a command that was approved.
func (c *Command) call(ctx context.Context, a asked) (tool.Result, error) {
	decision, reason := c.judge([]asked{a}, c.options.Policy)
	if decision == session.Deny {
		return tool.Result{}, fmt.Errorf("the command was refused and not run: %s", reason)
	}
	call, _ := tool.FromContext(ctx)
	if call.Arguments != "" {
		if told, _ := c.Approval(call, nil); told != decision {
			return tool.Result{}, errors.New("the command was refused and not run: its arguments can be read in two ways; write each member once, as the schema names it")
		}
	}
	spec, err := c.spec(a)
	if err != nil {
		return tool.Result{}, err
	}
	if c.options.Live != nil {
		spec.live = func(stderr bool, text []byte) { c.options.Live(call, stderr, text) }
	}
	return spec.run(ctx)
}

// spec checks what is requested and finds the program.
func (c *Command) spec(a asked) (*process, error) {
	dir, err := c.directory(a.directory)
	if err != nil {
		return nil, err
	}
	if a.timeout < 0 {
		return nil, errors.New("timeout cannot be negative")
	}
	s := &process{argv: a.argv, dir: dir, keep: c.options.Keep, most: c.options.MaxOutput, timeout: c.options.Timeout}
	if t := time.Duration(a.timeout) * time.Second; a.timeout > 0 && a.timeout < int(s.timeout/time.Second)+1 {
		s.timeout = min(t, s.timeout)
	}
	if c.options.Shell {
		if strings.TrimSpace(a.script) == "" {
			return nil, errors.New("the command is empty")
		}
		s.argv = []string{"/bin/sh", "-c", a.script}
	}
	if len(s.argv) == 0 || s.argv[0] == "" {
		return nil, errors.New("the command is empty; its first element is the program")
	}
	for _, arg := range s.argv {
		if strings.ContainsRune(arg, 0) {
			return nil, errors.New("a command cannot hold a NUL character")
		}
	}
	programs := &programs{dir: dir, dirs: c.dirs}
	if s.path, err = programs.find(s.argv[0]); err != nil {
		return nil, notFoundProgram(s.argv, err)
	}
	s.env = append(c.env[:len(c.env):len(c.env)], "PWD="+dir)
	s.limitMemory(c.options.Memory)
	return s, nil
}

// directory returns the directory to run in. It is opened through [os.Root], which
// guarantees that it lies in a root at that moment. What the command does from
// there is up to the policy.
func (c *Command) directory(name string) (string, error) {
	p, err := c.files.Resolve(cmp.Or(name, "."))
	if err != nil {
		return "", err
	}
	info, err := p.Dir().Stat(p.OSPath())
	if err != nil {
		return "", p.Problem("run in", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is a file, not a directory to run in", p)
	}
	return p.Path(), nil
}

func notFoundProgram(argv []string, err error) error {
	if len(argv) == 1 && strings.ContainsAny(argv[0], " \t\n") {
		return fmt.Errorf("there is no program %s; pass each argument as a separate list element; no shell splits the text", wording.Clip(argv[0]))
	}
	return fmt.Errorf("cannot run %s: %w", wording.Clip(argv[0]), files.Cause(err))
}
