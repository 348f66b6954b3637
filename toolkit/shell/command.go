// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package shell holds the tools that run programs, and the policy that decides
// about them. Before a command runs, the package parses it, as a list or as a
// script (text.go, script.go), looks through programs that run other programs
// (wrappers.go), and judges what would run (policy.go). The command then runs
// with limits on time, output and environment (run.go, process_*.go), in the roots
// that toolkit.Open opens, and in a sandbox (confine.go).
//
// The policy decides what may run, and the sandbox what it can do then: a command that
// is allowed to run can still do all that its profile allows.
package shell

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/sandbox"
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
// any program, the agent asks the user before each one, and the program runs in a
// sandbox if the system has one.
type Options struct {
	// Sandbox returns the profile of commands, given the folders of the roots, such as
	// [sandbox.Network]. Nil means [sandbox.Workspace] or, on a system without a
	// sandbox, [sandbox.Full]; there each command is asked about, whatever allows the tool.
	// With a profile that the system cannot give, no command runs; see
	// [sandbox.Profile.Supported].
	Sandbox func(roots ...string) sandbox.Profile
	// Fixed refuses commands that ask for a wider profile than that. Otherwise the model
	// may ask for one, and the user is asked, whatever allows the tool; see
	// [Command.Approval].
	Fixed bool
	// Policy decides about commands. A command it denies never runs, even if the
	// user would approve it. For the other decisions see [Command.Approval].
	Policy Policy
	// Shell passes the model's text to sh -c. Otherwise the model gives a list of
	// arguments, and no shell interprets it.
	Shell bool
	// Timeout limits the time of a command. The model may request a shorter one but
	// not a longer one.
	Timeout time.Duration
	// NotYet, if it is not 0, lets a command say that its result is not there yet, by the
	// exit code [ExitNotYet]: the call ends with a [tool.NotYet] for this time. Its reason is
	// the first line of the output. The tool must be [tool.Polling].
	NotYet time.Duration
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
	tools   []string // what commands read because of dirs
	// held says what the folders of the profile led to when the Command was made. What a
	// command makes of them later must not show more to the next one.
	held map[string]string

	identity string // for remembered answers
}

type runCommandInput struct {
	Command   []string `json:"command" jsonschema:"the program and its arguments, each a string of its own; no shell reads them"`
	Directory string   `json:"directory,omitzero" jsonschema:"the directory to run it in, relative to a root, or name:path for a named root; default: the first root"`
	Timeout   int      `json:"timeout,omitzero" jsonschema:"seconds after which it is stopped, if the default is too long"`
	Sandbox   string   `json:"sandbox,omitzero" enum:"workspace,network,full" jsonschema:"ask the user for more than the sandbox allows: network, or full for all permissions of the user; only if a result says that a permission was missing"`
	Hosts     []string `json:"hosts,omitzero" jsonschema:"ask the user for the network to these hosts only, such as proxy.golang.org, *.npmjs.org or example.com:8443; instead of sandbox"`
	Why       string   `json:"why,omitzero" jsonschema:"with sandbox or hosts: what it is needed for, in one sentence for the user"`
}

type runShellInput struct {
	Command   string   `json:"command" jsonschema:"the command line, for a POSIX shell"`
	Directory string   `json:"directory,omitzero" jsonschema:"the directory to run it in, relative to a root, or name:path for a named root; default: the first root"`
	Timeout   int      `json:"timeout,omitzero" jsonschema:"seconds after which it is stopped, if the default is too long"`
	Sandbox   string   `json:"sandbox,omitzero" enum:"workspace,network,full" jsonschema:"ask the user for more than the sandbox allows: network, or full for all permissions of the user; only if a result says that a permission was missing"`
	Hosts     []string `json:"hosts,omitzero" jsonschema:"ask the user for the network to these hosts only, such as proxy.golang.org, *.npmjs.org or example.com:8443; instead of sandbox"`
	Why       string   `json:"why,omitzero" jsonschema:"with sandbox or hosts: what it is needed for, in one sentence for the user"`
}

// asked is a parsed call: what to run, and where.
type asked struct {
	argv      []string
	script    string // used instead of argv if Shell is set
	directory string
	timeout   int
	sandbox   string // the profile that is asked for, or ""
	hosts     []string
	why       string
}

func (in runCommandInput) asked() asked {
	return asked{argv: in.Command, directory: in.Directory, timeout: in.Timeout, sandbox: in.Sandbox, hosts: in.Hosts, why: in.Why}
}

func (in runShellInput) asked() asked {
	return asked{script: in.Command, directory: in.Directory, timeout: in.Timeout, sandbox: in.Sandbox, hosts: in.Hosts, why: in.Why}
}

// RunCommand returns the tool that runs commands in the roots of f. The tool is
// exclusive and not read-only, so an agent asks the user before it runs a command.
//
// A command gets no input, no terminal, and an environment of a few variables.
// When it exits, and when its time, its output or the call's context ends, all
// processes that it started are killed. On systems other than Linux, a process that
// left its group survives. On Windows a job object takes the role of the group; what a
// program starts in its first moment survives as well.
func RunCommand(name string, f *files.Files, options Options) (*Command, error) {
	c, err := newCommand(f, options)
	if err != nil {
		return nil, err
	}
	if options.Shell {
		c.Tool, err = tool.New(name, f.Describe(runShellText), func(ctx context.Context, in runShellInput) (tool.Result, error) {
			return c.call(ctx, in.asked())
		}, tool.Exclusive(), tool.UsualOutput(usualOutput))
	} else {
		c.Tool, err = tool.New(name, f.Describe(runCommandText), func(ctx context.Context, in runCommandInput) (tool.Result, error) {
			return c.call(ctx, in.asked())
		}, tool.Exclusive(), tool.UsualOutput(usualOutput))
	}
	return c, err
}

// newCommand checks the options and sets their defaults.
func newCommand(f *files.Files, options Options) (*Command, error) {
	if err := files.Check(f); err != nil {
		return nil, err
	}
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
	c.env, c.dirs = absolutePath(withGit(env))
	roots := f.Dirs()
	for _, dir := range c.dirs {
		if !within(roots, dir) { // else a command may have made a link of it
			c.tools = append(c.tools, sandbox.ToolFolders(dir)...)
		}
	}
	c.held = sandbox.Hold(c.tools...)
	maps.Copy(c.held, f.Held())
	c.identity = c.identify()
	return c, nil
}

// Definition returns the definition that the model sees, or nil for the zero Command.
func (c *Command) Definition() item.Tool {
	if nils.Is(c.Tool) {
		return nil
	}
	return c.Tool.Definition()
}

// Run runs a command that was approved. The zero Command runs nothing and returns an error.
func (c *Command) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	if nils.Is(c.Tool) {
		return tool.Result{}, errors.New("shell: the Command was not made by RunCommand")
	}
	return c.Tool.Run(ctx, call)
}

// Annotations implements [tool.Annotated].
func (c *Command) Annotations() tool.Annotations {
	a := tool.AnnotationsOf(c.Tool)
	a.Origin.Identity = c.identity
	return a
}

// identify returns what answers about commands are bound to: the folders and the profile.
func (c *Command) identify() string {
	profile := ""
	if c.options.Sandbox != nil {
		p := c.options.Sandbox(c.files.Dirs()...)
		profile = p.Width() + " " + strings.Join(p.Hosts, ", ")
	}
	return fmt.Sprintf("%s\x00%v %v\x00%s", profile, c.options.Shell, c.options.Fixed, c.files.Identity())
}

// Approval returns the verdict of the policy on a call, combined with further
// rules about the argument "command". An agent's policy takes it into account:
// deny and ask override any other permission, allow is valid unless something
// else denies or asks, and "" means no opinion. The reason is for the user who is
// asked and for the model.
//
// The prefix of a rule that denies or asks is taken as a [Rule]: it is about the
// programs that would run, not about how the list begins. That of a rule that allows
// is what an answer was about. It covers a call with exactly these words, in the first
// root. If the last word is [session.KnownOptions], it covers the program or the operation
// before it, such as git log, with options and other arguments that are known to be
// harmless: they write nothing, start nothing and read nothing outside of the roots.
// For operations that run what the project holds, such as go test, they do not change
// what is run. Rules without a prefix are the agent's.
//
// A call that asks for a wider profile than the command has anyway is asked about,
// unless a rule allows these words with this profile: its Member is "command with "
// and the profile's name, such as "command with network" or "command with hosts
// a.example, b.example". Such a rule also covers the narrower profiles. A rule with the member "command" covers the profile workspace. A
// rule that denies or asks about a member covers the wider profiles too.
func (c *Command) Approval(call tool.Call, rules []session.Rule) (verdict session.Verdict, reason string) {
	a, err := c.read(call.Arguments)
	if err != nil {
		return unruled, "" // it will not be run
	}
	return c.judge([]asked{a}, rules)
}

// Suggest returns rules that a user can add when approving a call, one for each
// command in it. A rule is about the operation, with [session.KnownOptions], if it is known
// and nothing else is run; otherwise it is about exactly these words. Suggest returns
// none if no rule can allow the call.
func (c *Command) Suggest(call tool.Call) (rules []session.Rule) {
	a, err := c.read(call.Arguments)
	if err != nil {
		return nil
	}
	return c.suggest(call.Name, []asked{a})
}

// read parses arguments for [Command.Approval]. Before the command runs, the
// decision about them is compared with the one about the decoded arguments.
func (c *Command) read(arguments string) (asked, error) {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.DisallowUnknownFields()
	if c.options.Shell {
		var in runShellInput
		err := d.Decode(&in)
		return in.asked(), err
	}
	var in runCommandInput
	err := d.Decode(&in)
	return in.asked(), err
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
func (c *Command) judge(list []asked, rules []session.Rule) (strictest session.Verdict, reason string) {
	rank := []session.Verdict{session.Allow, unruled, session.Ask, session.Deny}
	if c.files == nil {
		return session.Deny, "the Command was not made by RunCommand"
	}
	strictest = session.Allow
	for _, a := range list {
		dir := ""
		if p, err := c.files.Resolve(cmp.Or(a.directory, ".")); err == nil {
			dir = p.Path()
		}
		roots := c.files.Dirs()
		q, in := c.inquire(a), &programs{dir: dir, dirs: c.dirs, writable: roots, first: dir == roots[0]}
		within, err := c.confinement(a)
		if err != nil {
			return session.Deny, err.Error()
		}
		policy := c.options.Policy.with(rules, within.profile)
		if within.wider != "" {
			policy.Allow = nil // it allows programs in the sandbox
		}
		d, why := policy.judge(q, in)
		if within.wider != "" && d != session.Deny && d != session.Allow {
			d, why = session.Ask, within.wider
		}
		if file := c.protected(q, in); file != "" && d != session.Deny {
			d, why = session.Ask, file
		}
		if slices.Index(rank, d) >= slices.Index(rank, strictest) {
			strictest, reason = d, why
		}
	}
	return strictest, reason
}

// call runs a command that was approved.
func (c *Command) call(ctx context.Context, a asked) (tool.Result, error) {
	decision, reason := c.judge([]asked{a}, nil)
	if decision == session.Deny {
		return tool.Result{}, fmt.Errorf("the command was refused and not run: %s", reason)
	}
	call, _ := tool.FromContext(ctx)
	if call.Arguments != "" {
		told, err := c.read(call.Arguments)
		if verdict, _ := c.Approval(call, nil); verdict != decision || err == nil && (told.sandbox != a.sandbox || !slices.Equal(told.hosts, a.hosts)) {
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
	within, err := c.confinement(a)
	if err != nil {
		return nil, err
	}
	s := &process{argv: a.argv, dir: dir, profile: within.profile, asked: a.hosts, roots: c.files.Dirs(), fixed: c.options.Fixed, keep: c.options.Keep, most: c.options.MaxOutput, timeout: c.options.Timeout, notYet: c.options.NotYet}
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
