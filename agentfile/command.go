// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/shell"
	"github.com/antiphon-go/antiphon/trust"
)

// fixed is a command that a file declares. Its words come first and the model's
// arguments after them; no shell reads either.
type fixed struct {
	tool.Tool
	inner   *shell.Command
	first   []string
	scripts []trust.Source // that first names
	made    made
}

// fixedSchema is the schema of such a tool's arguments.
const fixedSchema = `{"type":"object","properties":{"arguments":{"type":"array","items":{"type":"string"},` +
	`"description":"further arguments of the command, one element each; no shell reads them"}},"additionalProperties":false}`

// words returns the words of a command. Older programs use %20 for a space.
func words(command string) []string { return strings.Fields(strings.ReplaceAll(command, "%20", " ")) }

func fixedCommand(decl *chatmd.Tool, command string, files *toolkit.Files, confined profile, o Options) (*fixed, error) {
	if strings.ContainsAny(command, "\"'\\`$|&;<>") {
		return nil, fmt.Errorf("<tool command=%q>: the command is split at spaces and not read by a shell; write a script for shell syntax, and name the script", command)
	}
	inner, err := shell.RunCommand(decl.Name, files, shell.Options{Timeout: decl.Timeout, Live: o.Live, Sandbox: confined, Fixed: true, NotYet: askAgain(decl)})
	if err != nil {
		return nil, err
	}
	f := &fixed{inner: inner, first: words(command)}
	def := &item.FunctionTool{
		Name:        decl.Name,
		Description: fmt.Sprintf("Runs the command `%s` with the given arguments and returns what it prints.", strings.Join(f.first, " ")),
		Parameters:  fixedSchema,
	}
	f.Tool, err = tool.Raw(def, f.run)
	return f, err
}

// askAgain is when a command that exits with [shell.ExitNotYet] is called again, or 0 if it
// has failed then.
func askAgain(decl *chatmd.Tool) time.Duration {
	if !decl.Polling {
		return 0
	}
	return cmp.Or(decl.AskAgain, 30*time.Second)
}

func (f *fixed) run(ctx context.Context, call tool.Call) (tool.Result, error) {
	whole, err := f.whole(call)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.made.keep(f.first, f.made.open(f.first, f.scripts))
	return f.inner.Run(ctx, whole)
}

// words returns all words of the command that a call runs.
func (f *fixed) words(call tool.Call) ([]string, error) {
	var in struct {
		Arguments []string `json:"arguments"`
	}
	if strings.TrimSpace(call.Arguments) != "" {
		if err := json.Unmarshal([]byte(call.Arguments), &in); err != nil {
			return nil, err
		}
	}
	return slices.Concat(f.first, in.Arguments), nil
}

// whole returns the call with all words of the command.
func (f *fixed) whole(call tool.Call) (tool.Call, error) {
	words, err := f.words(call)
	if err != nil {
		return call, err
	}
	command, err := json.Marshal(map[string]any{"command": words}, jsontext.AllowInvalidUTF8(false))
	call.Arguments = string(command)
	return call, err
}

// Annotations implements [tool.Annotated]. With other scripts it is another tool: an answer that a
// later run finds in the log is about what its scripts were. K6
func (f *fixed) Annotations() tool.Annotations {
	a := f.inner.Annotations()
	parts := append(slices.Clone(f.first), a.Origin.Identity)
	for _, s := range f.scripts {
		if s.Hash != "" {
			parts = append(parts, s.Hash)
		}
	}
	a.Origin.Identity = strings.Join(parts, "\x00")
	return a
}

// Approval returns the verdict of run_command on the whole command. If a script has changed
// since the agent's file was read, or is new and not the command's own output, it asks. K6
func (f *fixed) Approval(call tool.Call, rules []session.Rule) (verdict session.Verdict, reason string) {
	whole, err := f.whole(call)
	if err != nil {
		return "", ""
	}
	verdict, reason = f.inner.Approval(whole, rules)
	if what := cmp.Or(changed(f.scripts), appeared(f.made.others(f.scripts))); what != "" && verdict != session.Deny {
		return session.Ask, what + "; start the agent again to agree to it for all calls"
	}
	return verdict, reason
}

// Command implements [agent.Commander].
func (f *fixed) Command(call tool.Call) []string {
	words, err := f.words(call)
	if err != nil {
		return nil
	}
	return words
}

// Sandbox implements [agent.Confined].
func (f *fixed) Sandbox(call tool.Call) string {
	whole, err := f.whole(call)
	if err != nil {
		return ""
	}
	return f.inner.Sandbox(whole)
}

// Suggest returns the suggestions of run_command for the whole command.
func (f *fixed) Suggest(call tool.Call) []session.Rule {
	whole, err := f.whole(call)
	if err != nil {
		return nil
	}
	return f.inner.Suggest(whole)
}
