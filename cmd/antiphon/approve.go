// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/toolkit"
)

// person is the user at the terminal, who approves calls and answers the questions
// of the model.
type person struct {
	in    io.Reader
	err   io.Writer
	once  sync.Once
	lines chan string
	// liked holds the rules added by answers. They apply even if a file asks every
	// time, which a remembered rule would not override.
	liked []session.Rule

	// types reports whether a person types the lines and so may type before a
	// question is shown.
	types   bool
	colour  bool
	columns func() int // width of the terminal; nil means 80
}

func newPerson(std stdio) *person {
	return &person{in: std.in, err: std.err, lines: make(chan string, maxAhead), types: terminal(std.in)}
}

const (
	// maxAhead is the number of lines that are read in advance.
	maxAhead = 64
	// settle is the time that lines may take from the terminal to this program.
	settle = 30 * time.Millisecond
)

// unasked drops what was typed before a question. An answer that was given twice
// would approve a call that the user has not seen.
func (p *person) unasked() {
	if !p.types {
		return
	}
	p.once.Do(func() { go p.read() })
	time.Sleep(settle)
	dropped := 0
	for {
		select {
		case _, ok := <-p.lines:
			if ok {
				dropped++
				continue
			}
		default:
		}
		break
	}
	if dropped > 0 {
		fmt.Fprintf(p.err, "   (%s typed before this question: not taken as its answer)\n", was(dropped))
	}
}

func was(lines int) string {
	if lines == 1 {
		return "1 line was"
	}
	return fmt.Sprintf("%d lines were", lines)
}

// read reads lines, beginning with the first question.
func (p *person) read() {
	defer close(p.lines)
	for in := bufio.NewReader(p.in); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		p.lines <- strings.TrimSpace(line)
	}
}

// line waits for a line. It returns false at the end of the input.
func (p *person) line(ctx context.Context) (string, bool, error) {
	p.once.Do(func() { go p.read() })
	select {
	case <-ctx.Done():
		fmt.Fprintln(p.err)
		return "", false, ctx.Err()
	case line, ok := <-p.lines:
		return line, ok, nil
	}
}

// approve is an [agent.Approver]. At the end of input it returns
// [agent.ErrNobody].
func (p *person) approve(ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
	call := q.Call
	if p.always(call.Name) || q.Allows(p.liked...) {
		return byPerson(agent.Decision{Allow: true}, "terminal, by an answer before"), nil
	}
	rules := q.Rules
	s := asRun(call, q.Command)
	p.unasked()
	hidden := p.present(s)
	for {
		fmt.Fprint(p.err, p.ask(rules, hidden))
		line, ok, err := p.line(ctx)
		if err == nil && !ok {
			err = agent.ErrNobody
		}
		if err != nil {
			return agent.Decision{}, err
		}
		answer, rest, _ := strings.Cut(line, " ")
		answer = strings.ToLower(answer)
		if hidden > 0 && answer != "" && strings.Contains("yal", answer[:1]) {
			fmt.Fprintf(p.err, "   %s not been shown yet; here they are:\n", have(hidden))
			answer = "s"
		}
		switch answer {
		case "s", "show":
			for _, row := range s.rows(p.width(), p.colour) {
				fmt.Fprintln(p.err, row)
			}
			hidden = 0
		case "y", "yes":
			return byPerson(agent.Decision{Allow: true}, atTerminal), nil
		case "n", "no":
			return byPerson(agent.Decision{Reason: host.Refusal(strings.TrimSpace(rest))}, atTerminal), nil
		case "a", "always":
			return p.like(rules[len(rules)-1]), nil
		case "l", "like":
			if len(rules) > 1 {
				return p.like(rules[0]), nil
			}
		case "e", "edit":
			if v, done, err := p.edit(ctx, call.Custom); done || err != nil {
				return v, err
			}
		case "?", "h", "help":
			fmt.Fprintln(p.err, "   y: run it once; n: do not run it, and n with words behind it tells the model why; e: run it with other arguments;\n   a, l: run it, and do not ask again about such calls")
		}
	}
}

// present shows a call and returns the number of its hidden rows.
func (p *person) present(s shown) (hidden int) {
	title := "?? " + s.title
	if p.colour {
		title = "\x1b[" + yellow + "m" + title + "\x1b[0m"
	}
	rows, hidden := folded(s.rows(p.width(), p.colour))
	fmt.Fprintln(p.err, title)
	for _, row := range rows {
		fmt.Fprintln(p.err, row)
	}
	return hidden
}

func (p *person) width() int {
	if p.columns == nil {
		return 80
	}
	return p.columns()
}

// ask returns the question, wrapped at the width of the terminal.
func (p *person) ask(rules []session.Rule, hidden int) string {
	show := ""
	if hidden > 0 {
		show = fmt.Sprintf("[s]how the %s that are hidden, ", plural(hidden, "line"))
	}
	question := fmt.Sprintf("run it? [y]es, [n]o, %s%s[e]dit its arguments:", show, offer(rules))
	return "   " + wrapped(question, p.width()-4, "   ") + " "
}

func have(hidden int) string {
	if hidden == 1 {
		return "1 line has"
	}
	return fmt.Sprintf("%d lines have", hidden)
}

// always reports whether the user has allowed all calls of a tool, whatever the
// tool itself requires.
func (p *person) always(name string) bool {
	return slices.ContainsFunc(p.liked, func(r session.Rule) bool { return r.Tool == name && r.Member == "" })
}

// like allows a call and the calls that a rule covers.
func (p *person) like(rule session.Rule) agent.Decision {
	p.liked = append(p.liked, rule)
	return byPerson(agent.Decision{Allow: true, Remember: &rule}, atTerminal)
}

const atTerminal = "terminal"

// byPerson records in a decision who answered and how.
func byPerson(v agent.Decision, how string) agent.Decision {
	v.By, v.From = "the person at the terminal", how
	return v
}

// offer describes the rules that an answer can add.
func offer(rules []session.Rule) string {
	if len(rules) < 2 {
		return "[a]lways for this tool, "
	}
	narrow := rules[0]
	like := "under " + narrow.Under
	if len(narrow.Prefix) > 0 {
		like = "beginning with " + commandLine(narrow.Prefix)
	}
	return fmt.Sprintf("always for those [l]ike it (%s), [a]lways for this tool, ", shorten(visible(like), 60))
}

// edit asks for other arguments. It reports false if the input cannot be meant as
// arguments; the question is then repeated, because a typing error is not an
// answer.
func (p *person) edit(ctx context.Context, custom bool) (v agent.Decision, done bool, err error) {
	fmt.Fprint(p.err, "   the arguments in place of these: ")
	line, ok, err := p.line(ctx)
	switch {
	case err != nil || !ok:
		return byPerson(agent.Decision{}, atTerminal), true, err
	case line == "":
		fmt.Fprintln(p.err, "   nothing was given, so the arguments stay as they are")
		return v, false, nil
	case !custom && !jsontext.Value(line).IsValid():
		fmt.Fprintln(p.err, "   that is not JSON, which arguments are, such as "+`{"path":"a.txt"}`)
		return v, false, nil
	}
	return byPerson(agent.Decision{Allow: true, Arguments: line}, atTerminal), true, nil
}

// Ask asks the user a question of the model, for the tool ask_user. The number of
// a choice selects it.
func (p *person) Ask(ctx context.Context, q toolkit.Question) (string, error) {
	p.unasked()
	for line := range strings.Lines(q.Text) {
		fmt.Fprintf(p.err, "?? %s\n", visible(strings.TrimRight(line, "\n")))
	}
	for i, choice := range q.Choices {
		fmt.Fprintf(p.err, "   %d. %s\n", i+1, visible(choice))
	}
	fmt.Fprint(p.err, "   your answer: ")
	line, ok, err := p.line(ctx)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "", toolkit.ErrNobody
	}
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(q.Choices) {
		return q.Choices[n-1], nil
	}
	return line, nil
}

// waiting lists the calls that wait for an approval.
func waiting(std stdio, wanted []agent.PendingApproval) error {
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
