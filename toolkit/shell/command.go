// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package shell holds the tools that run programs, and the policy about them. A
// command is read before it runs, as a list or as a script (text.go, script.go),
// through the programs that run others (wrappers.go), and what it would run is
// judged (policy.go). Then it runs within limits of time, output and environment
// (run.go, process_unix.go and its neighbours), in the roots that toolkit.Open
// opens.
//
// It is a policy, not a sandbox: a program that may run can do what it can do.
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
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

//go:embed command.md
var runCommandText string

//go:embed command_shell.md
var runShellText string

// What [Options] leave at zero.
const (
	DefaultTimeout   = 2 * time.Minute
	DefaultKeep      = 1 << 20
	DefaultMaxOutput = 64 << 20
)

// usualOutput is how much of what a command writes a model gets at once, unless
// a limit for all tools or for this one says otherwise.
var usualOutput = tool.Limit{Bytes: 64 << 10}

// Options vary [RunCommand]. The zero value works: any program may be
// asked for, and an agent asks a person before each.
type Options struct {
	// Policy decides about commands. What it denies is not run, no matter who asks;
	// for the rest see [Command.Approval].
	Policy Policy
	// Shell hands the model's text to sh -c. Without it the model gives a list,
	// which no shell ever reads.
	Shell bool
	// Timeout ends a command. The model may ask for less, not for more.
	Timeout time.Duration
	// Keep is how many bytes of what a command writes, of each of stdout and
	// stderr, are held in memory. More is in a temporary file until the call has
	// its output. A model gets less at once, 64 KiB unless a limit says otherwise;
	// the whole goes to the [tool.Spill], and the model reads the rest with
	// [tool.ReadOutput] where that is among the tools. Only where there is no room
	// for the file, the middle is lost, and the result says how much that is.
	Keep int
	// MaxOutput ends a command that writes more bytes than this: no more of it
	// is ever kept.
	MaxOutput int64
	// Memory bounds the address space of each process, in bytes. It needs
	// Linux; elsewhere RunCommand refuses it. Programs that reserve much more
	// than they use (Go, Java, Node) need a wide bound. Zero sets none.
	Memory int64
	// Env is what commands get beside the basic variables: "NAME" hands on a
	// variable of this process, "NAME=value" sets one. Names that look like
	// those of secrets are not handed on.
	Env []string
	// Live is called with what a command writes, as it writes it, from one goroutine
	// at a time. It must not keep text. A slow one slows the command.
	Live func(call tool.Call, stderr bool, text []byte)
}

// Command is the tool that runs programs.
type Command struct {
	tool.Tool
	files   *files.Files
	options Options
	env     []string
	dirs    []string // of PATH
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

// asked is a call as it was read: what to run, and where.
type asked struct {
	argv      []string
	script    string // instead of argv, with Shell
	directory string
	timeout   int
}

// RunCommand returns the tool that runs commands in the roots of f. It is
// exclusive and not read-only, so that an agent asks before it runs.
//
// A command gets no input, no terminal and an environment of a few variables.
// It ends with all the processes of its group, when it is done as well as when
// time, output or the call's context end; what made itself a session of its
// own is out of reach. On Windows a job object stands for the group, and what a
// program starts in its first moment is out of reach too.
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

// newCommand checks the options of what runs commands, and completes them.
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

// Approval returns what the policy and more rules about the argument "command"
// say of a call, for an agent's policy to take into account: deny and ask stand
// whatever else allows, allow stands unless something else denies or asks, and
// "" means no opinion. The reason is for the person who is asked, and for the
// model.
//
// A rule's prefix is taken as a [Rule]: it is about the programs that
// would run, not about how the list begins. Rules without one are the agent's.
func (c *Command) Approval(call tool.Call, rules []session.Rule) (verdict, reason string) {
	a, err := c.read(call.Arguments)
	if err != nil {
		return string(Unruled), "" // it will not be run
	}
	decision, reason := c.judge([]asked{a}, c.options.Policy.with(rules))
	return string(decision), reason
}

// Suggest returns the rules that an answer about a call could leave behind: one
// for each program that it runs, with its first argument if that reads like the
// name of something it does, and else with all of them. There are none for a
// call that no rule can allow.
func (c *Command) Suggest(call tool.Call) (rules []session.Rule) {
	a, err := c.read(call.Arguments)
	if err != nil {
		return nil
	}
	return c.suggest(call.Name, []asked{a})
}

// suggest returns the rules that would allow all the commands of a call of the
// tool of that name; there are none if no rules would.
func (c *Command) suggest(name string, list []asked) (rules []session.Rule) {
	for _, a := range list {
		for _, r := range c.inquire(a).suggest() {
			rules = append(rules, session.Rule{Verdict: session.Allow, Tool: name, Member: "command", Prefix: r})
		}
	}
	if decision, _ := c.judge(list, c.options.Policy.with(rules)); decision != Allowed {
		return nil
	}
	return rules
}

// read reads arguments for [Command.Approval]; before a command runs, the two
// readings are compared.
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

// judge decides about the commands of one call: one that is denied is enough, and
// all must be allowed for it to be.
func (c *Command) judge(list []asked, policy Policy) (strictest Decision, reason string) {
	rank := []Decision{Allowed, Unruled, Asked, Denied}
	strictest = Allowed
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
	if decision == Denied {
		return tool.Result{}, fmt.Errorf("the command was refused and not run: %s", reason)
	}
	call, _ := tool.FromContext(ctx)
	if call.Arguments != "" {
		if told, _ := c.Approval(call, nil); told != string(decision) {
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

// spec checks what is asked for and finds the program.
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

// directory returns the place to run in. It is looked at through [os.Root], so
// that it lies in a root at that moment; what a command does from there is for
// the policy to decide.
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
		return fmt.Errorf("there is no program %s; give each argument as an element of its own: no shell takes the text apart", wording.Clip(argv[0]))
	}
	return fmt.Errorf("cannot run %s: %w", wording.Clip(argv[0]), files.Cause(err))
}
