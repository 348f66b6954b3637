// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/antiphon-go/antiphon/internal/spool"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// The API has tools of its own whose calls the client must run. The models that
// know them were trained on them; the endpoint must support them.

// APITool returns the API's shell tool. Each of its calls is a list of command
// lines for sh -c, which run one after the other in the first root of f. For
// endpoints without that tool use [RunCommand] with Shell.
func APITool(f *files.Files, options Options) (tool.Tool, error) {
	options.Shell, options.Fixed = true, true
	return newShell(f, options, &item.ShellTool{Environment: &item.Environment{Type: item.EnvironmentLocal}})
}

// APILocalTool returns the API's local_shell tool. Each of its calls is one
// command as a list, which no shell interprets. For endpoints without that tool
// use [RunCommand].
func APILocalTool(f *files.Files, options Options) (tool.Tool, error) {
	options.Shell, options.Fixed = false, true
	return newShell(f, options, new(item.LocalShellTool))
}

// shell runs the calls of the API's shell tools.
type shell struct {
	tool.Tool
	c *Command
}

func newShell(f *files.Files, options Options, def item.Tool) (tool.Tool, error) {
	c, err := newCommand(f, options)
	if err != nil {
		return nil, err
	}
	s := &shell{c: c}
	if s.Tool, err = tool.Raw(def, s.run, tool.Exclusive(), tool.UsualOutput(usualOutput)); err != nil {
		return nil, err
	}
	c.Tool = s.Tool
	return s, nil
}

// Annotations implements [tool.Annotated].
func (s *shell) Annotations() tool.Annotations { return s.c.Annotations() }

// action holds what a call of either tool requests.
type action struct {
	Commands         []string          `json:"commands"` // shell
	Command          []string          `json:"command"`  // local_shell
	MaxOutputLength  int               `json:"max_output_length"`
	TimeoutMS        int64             `json:"timeout_ms"`
	WorkingDirectory string            `json:"working_directory"`
	Env              map[string]string `json:"env"`
	User             string            `json:"user"`
}

// read parses a call into its commands.
func (s *shell) read(arguments string) (a action, list []asked, err error) {
	if a, err = files.Decode[action](arguments); err != nil {
		return a, nil, fmt.Errorf("the action cannot be read: %w", err)
	}
	switch {
	case len(a.Env) > 0:
		return a, nil, errors.New("variables cannot be set beside the command; put env NAME=value in front of it")
	case a.User != "":
		return a, nil, errors.New("a command cannot be run as another user")
	case a.TimeoutMS < 0:
		return a, nil, errors.New("timeout_ms cannot be negative")
	}
	seconds := int((a.TimeoutMS + 999) / 1000)
	if !s.c.options.Shell {
		return a, []asked{{argv: a.Command, directory: a.WorkingDirectory, timeout: seconds}}, nil
	}
	for _, script := range a.Commands {
		list = append(list, asked{script: script, timeout: seconds})
	}
	if len(list) == 0 {
		err = errors.New("there are no commands")
	}
	return a, list, err
}

// Approval judges all commands of a call by [Command.Approval]: the call is denied if
// one command is, and allowed only if all are.
func (s *shell) Approval(call tool.Call, rules []session.Rule) (verdict session.Verdict, reason string) {
	_, list, err := s.read(call.Arguments)
	if err != nil {
		return unruled, "" // it will not be run
	}
	return s.c.judge(list, rules)
}

// Suggest is like [Command.Suggest] for all commands of a call.
func (s *shell) Suggest(call tool.Call) (rules []session.Rule) {
	_, list, err := s.read(call.Arguments)
	if err != nil {
		return nil
	}
	return s.c.suggest(call.Name, list)
}

// run runs the commands of a call that was approved. As the API requires, it
// continues after a command that fails; the end of the context stops all.
func (s *shell) run(ctx context.Context, call tool.Call) (tool.Result, error) {
	a, list, err := s.read(call.Arguments)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%w. Nothing was done", err)
	}
	if decision, reason := s.c.judge(list, nil); decision == session.Deny {
		return tool.Result{}, fmt.Errorf("the command was refused and not run: %s", reason)
	}
	t := &told{most: a.MaxOutputLength}
	for i, one := range list {
		e, err := s.exec(ctx, call, one, a.TimeoutMS)
		s.tell(t, one, e)
		if err != nil {
			return t.result(), fmt.Errorf("%w (at command %d of %d)", err, i+1, len(list))
		}
	}
	res := t.result()
	res.Error = t.problem
	if res.Long == nil && !t.over {
		res.Commands = t.commands
	} else if t.most > 0 {
		res.Limit = &output.Limit{Bytes: t.most * len(list)}
	}
	return res, nil
}

// told is the result of the commands of a call, as text and in the form of the
// API.
type told struct {
	report
	commands []item.ShellOutput
	most     int  // bytes of each stream that the model requests, or 0
	over     bool // the output was longer
	problem  string
}

// exec runs one command within the limits of its call. A command that cannot be
// started counts as failed; the error is that of the context.
func (s *shell) exec(ctx context.Context, call tool.Call, one asked, timeout int64) (*ended, error) {
	spec, err := s.c.spec(one)
	if err != nil {
		return notRun(err), nil
	}
	if limit := time.Duration(timeout) * time.Millisecond; limit > 0 {
		spec.timeout = min(spec.timeout, limit)
	}
	if s.c.options.Live != nil {
		spec.live = func(stderr bool, text []byte) { s.c.options.Live(call, stderr, text) }
	}
	e, err := spec.exec(ctx)
	if err != nil && ctx.Err() == nil {
		return notRun(err), nil
	}
	if e == nil {
		e = &ended{stdout: putOut(""), stderr: putOut("")}
	}
	return e, err
}

// notRun returns the result of a command that could not be run, with the exit code
// that a shell uses for it.
func notRun(err error) *ended {
	return &ended{stdout: putOut(""), stderr: putOut(err.Error()), problem: err.Error(), code: 127}
}

// putOut returns text as the output of a command.
func putOut(text string) *spool.Spool {
	s := spool.New(len(text))
	_, _ = io.WriteString(s, text) // it never fails
	s.Seal("", "")
	return s
}

// tell adds the result of one command, as text and, for the shell tool, in the
// form of the API.
func (s *shell) tell(t *told, one asked, e *ended) {
	if !s.c.options.Shell {
		t.add(e)
		t.problem = e.problem
		return
	}
	t.say(fmt.Sprintf("$ %s\n", wording.Clipped(one.script)))
	t.add(e)
	t.line("[" + cmp.Or(e.problem, "exit code 0") + "]\n")
	if t.over = t.over || t.most > 0 && max(e.stdout.Size(), e.stderr.Size()) > int64(t.most); t.over || !e.stdout.InMemory() || !e.stderr.InMemory() {
		t.over = true
		return // the text alone is the result
	}
	out := item.ShellOutput{Stdout: stringOf(e.stdout), Stderr: stringOf(e.stderr), Outcome: item.ShellExit(e.code)}
	for _, note := range e.notes() {
		out.Stderr = withLine(out.Stderr, note)
	}
	if e.late {
		out.Outcome = item.ShellTimeout()
	}
	t.commands = append(t.commands, out)
}

// stringOf returns the content of a spool that is held in memory.
func stringOf(s *spool.Spool) string {
	data, _ := io.ReadAll(s.Reader()) // reading from memory cannot fail
	return string(data)
}

func withLine(text, line string) string {
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + line
}
