// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// answers are decisions about calls that were written down before, one JSON
// object a line. Each is used once, by the first call that it fits.
type answers struct {
	file string
	mu   sync.Mutex
	list []answer
}

// answer is one line. What is not given fits everything.
type answer struct {
	CallID    string         `json:"call_id"`
	Tool      string         `json:"tool"` // a name or a glob
	Allow     *bool          `json:"allow"`
	Reason    string         `json:"reason"`
	Arguments jsontext.Value `json:"arguments"` // an object, or a text for a custom tool
	Remember  *session.Rule  `json:"remember"`

	line int // of the file
	used bool
}

// readAnswers reads the file of --approve-from.
func readAnswers(file string) (*answers, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--approve-from: %w", err)
	}
	a := &answers{file: file}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var one answer
		if err := json.Unmarshal(line, &one, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("%s:%d: %s", file, n, unreadable(err))
		}
		if err := one.check(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		one.line = n
		a.list = append(a.list, one)
	}
	return a, lines.Err()
}

// unreadable says what is wrong with a line, without the words of the program's
// inside.
func unreadable(err error) string {
	var form *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &form) && errors.Is(err, json.ErrUnknownName):
		return fmt.Sprintf("%q is not known there; a line has call_id, tool, allow, reason, arguments and remember, and remember has verdict, tool, member, prefix and under", form.JSONPointer.LastToken())
	case errors.As(err, &form) && form.JSONPointer == "":
		return fmt.Sprintf("it is not an object such as {\"tool\":\"apply_patch\",\"allow\":true} but %s", kindName(form.JSONKind))
	case errors.As(err, &form):
		return fmt.Sprintf("%q cannot be %s", form.JSONPointer.LastToken(), kindName(form.JSONKind))
	case errors.As(err, &syntax):
		return fmt.Sprintf("it is not JSON: %v (at byte %d)", syntax.Err, syntax.ByteOffset)
	}
	return err.Error()
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return "that"
}

func (a *answer) check() error {
	switch {
	case a.Allow == nil:
		return errors.New(`"allow" is missing: true or false`)
	case a.CallID == "" && a.Tool == "":
		return errors.New(`it fits no call: give "call_id", or "tool" with a name or a glob`)
	}
	if err := agent.CheckPatterns(a.Tool); err != nil || a.Remember == nil {
		return err
	}
	return agent.CheckRules(*a.Remember)
}

// approve is an [agent.Approver]: the first answer that fits and was not used
// yet. Without one it asks next, or there is nobody.
func (a *answers) approve(next agent.Approver) agent.Approver {
	return func(ctx context.Context, call tool.Call, traits tool.Traits) (agent.Verdict, error) {
		if v, ok := a.take(call); ok {
			return v, nil
		}
		if next != nil {
			return next(ctx, call, traits)
		}
		return agent.Verdict{}, agent.ErrNobody
	}
}

func (a *answers) take(call tool.Call) (agent.Verdict, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.list {
		one := &a.list[i]
		if one.used || !one.fits(call) {
			continue
		}
		one.used = true
		v := agent.Verdict{Allowed: *one.Allow, Reason: refusal(one.Reason), Remember: one.Remember, By: a.file, From: fmt.Sprintf("--approve-from, line %d", one.line), Arguments: string(one.Arguments)}
		if call.Custom && one.Arguments.Kind() == '"' {
			_ = json.Unmarshal(one.Arguments, &v.Arguments) // it was read before
		}
		return v, true
	}
	return agent.Verdict{}, false
}

// sayUnused names the answers that no call has used, and why. Those that say what
// the log says already are not worth a word: the file may be given again with
// each run of a conversation.
func (a *answers) sayUnused(std stdio, sess *session.Session) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.list {
		if why := one.unused(sess); why != "" && !one.used {
			fmt.Fprintf(std.err, "antiphon: %s:%d: the answer was not used: %s\n", printable(a.file), one.line, unbroken(why))
		}
	}
}

// unused says why no call of a session has used an answer, or "".
func (a *answer) unused(sess *session.Session) string {
	if a.CallID == "" {
		return fmt.Sprintf("no call of %s waits", a.Tool)
	}
	why := fmt.Sprintf("no call has the id %q", a.CallID)
	for e := range sess.Entries() {
		switch b := e.Body.(type) {
		case session.Received:
			if b.Item.IsCall() && b.Item.CallID() == a.CallID {
				why = "the call does not ask, or another tool is called"
			}
		case session.Approval:
			switch {
			case b.CallID != a.CallID:
			case b.Allowed == *a.Allow:
				return ""
			case b.Allowed:
				why = "the call has been allowed before"
			default:
				why = "the call has been refused before"
			}
		}
	}
	return why
}

func (a *answer) fits(call tool.Call) bool {
	if a.CallID != "" && a.CallID != call.ID {
		return false
	}
	ok, _ := path.Match(a.Tool, call.Name)
	return a.Tool == "" || ok
}

// answer gives the calls that an earlier run left waiting the answers that there
// are for them.
func (c *runCommand) answer(ctx context.Context, sess *session.Session) error {
	if c.from == nil {
		return nil
	}
	wanted, err := agent.Wanted(ctx, sess)
	if err != nil {
		return err
	}
	var decisions []agent.Decision
	for _, p := range wanted {
		v, ok := c.from.take(tool.Call{ID: p.CallID, Name: p.Tool, Arguments: p.Arguments, Custom: p.Custom})
		if !ok {
			continue
		}
		decisions = append(decisions, agent.Decision{
			Session: p.Session, Number: p.Number, CallID: p.CallID, Allow: v.Allowed,
			Reason: v.Reason, Arguments: v.Arguments, Remember: v.Remember, By: v.By, From: v.From,
		})
	}
	return agent.Decide(ctx, sess, decisions...)
}

// waiting names the calls that wait.
func waiting(std stdio, wanted []agent.Pending) error {
	for _, p := range wanted {
		fmt.Fprintf(std.err, "?? %s %s (call %s)\n", shorten(p.Tool, 100), shorten(p.Arguments, 1000), shorten(p.CallID, 100))
		if p.Command != nil {
			fmt.Fprintf(std.err, "   runs: %s\n", shorten(visible(commandLine(p.Command)), 1000))
		}
	}
	wait := "wait"
	if len(wanted) == 1 {
		wait = "waits"
	}
	return &exitError{exitNeedsAllow, fmt.Errorf("%s %s for an approval: write the answers into a file, and run it again with --approve-from FILE", plural(len(wanted), "call"), wait)}
}
