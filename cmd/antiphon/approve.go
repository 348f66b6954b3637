// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/trust"
)

// person is the user at the terminal, who approves calls and answers the questions
// of the model.
type person struct {
	in    io.Reader
	err   io.Writer
	once  sync.Once
	lines chan string
	turn  chan struct{} // holds one value while a question is asked: the next line is its answer
	// liked holds the rules added by answers. They apply even if a file asks every
	// time, which a remembered rule would not override.
	liked []session.Rule

	// types reports whether a person types the lines and so may type before a
	// question is shown.
	types   bool
	look    show.Look
	columns func() int // width of the terminal; nil means that of err

	// edits opens a text in an editor, or fails with tui.ErrNoEditor. It may be nil.
	edits func(text, suffix string) (string, error)

	// lost is closed when the terminal is gone. It may be nil.
	lost <-chan struct{}

	// asks is called when a line is waited for, and returns what is called when it is not
	// any more. words says that any text may be the answer. It may be nil.
	asks func(words bool) (end func())
}

func newPerson(std stdio) *person {
	return &person{in: std.in, err: std.err, lines: make(chan string, maxAhead), turn: make(chan struct{}, 1), types: show.IsTerminal(std.in)}
}

const (
	// maxAhead is the number of lines that are read in advance.
	maxAhead = 64
	// settle is the time that lines may take from the terminal to this program.
	settle = 30 * time.Millisecond
)

// alone waits until no other question is asked, as subagents do at the same time. Nobody else asks until
// done is called.
func (p *person) alone(ctx context.Context) (done func(), err error) {
	done = func() { <-p.turn }
	select {
	case p.turn <- struct{}{}:
		return done, nil
	default:
	}
	defer host.Unseen(ctx)()
	select {
	case p.turn <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

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

// line waits for a line, which is one of a few answers. It returns false at the end of the input, and when the terminal
// is gone.
func (p *person) line(ctx context.Context) (string, bool, error) { return p.await(ctx, false) }

// text is line for an answer in words.
func (p *person) text(ctx context.Context) (string, bool, error) { return p.await(ctx, true) }

func (p *person) await(ctx context.Context, words bool) (string, bool, error) {
	p.once.Do(func() { go p.read() })
	if p.asks != nil {
		defer p.asks(words)()
	}
	select {
	case <-ctx.Done():
		fmt.Fprintln(p.err)
		return "", false, ctx.Err()
	case line, ok := <-p.lines:
		return line, ok, nil
	case <-p.lost:
		return "", false, nil
	}
}

// approve is an [agent.Approver]. At the end of input it returns
// [agent.ErrNobody]. If somebody else answers first, the person is told.
func (p *person) approve(ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
	done, err := p.alone(ctx)
	if err != nil {
		return agent.Decision{}, err
	}
	defer done()
	const before = "terminal, by an answer before"
	if i := slices.IndexFunc(p.liked, func(r session.Rule) bool { return q.Allows(r) }); i >= 0 {
		return byRule(p.liked[i], before), nil
	}
	if q.Allows(p.liked...) { // several rules together allow a command
		return byPerson(agent.Decision{Allow: true}, before), nil
	}
	s := show.Asked(q.Call, q.Command, q.Sandbox).Of(q.Annotations.Origin.Of).Fails(q.Problem)
	v, err := p.answer(ctx, q, s)
	if others := new(agent.AnsweredError); err != nil && errors.As(context.Cause(ctx), &others) {
		fmt.Fprintln(p.err, "   "+saidBy(others.Answer))
	}
	// Nobody can allow a call before all of it was shown.
	v.Shown = s.Whole(q.Reason) + about(q, remembered(q), 0).text(runIt)
	return v, err
}

// answer shows a call and asks the person.
func (p *person) answer(ctx context.Context, q agent.ApprovalRequest, s show.Shown) (agent.Decision, error) {
	call, rules := q.Call, remembered(q)
	p.unasked()
	hidden := p.present(s, q.Reason)
	p.explain(about(q, rules, hidden))
	for {
		fmt.Fprint(p.err, about(q, rules, hidden).question(runIt))
		line, ok, err := p.line(ctx)
		if err == nil && !ok {
			err = agent.ErrNobody
		}
		if err != nil {
			return agent.Decision{}, err
		}
		answer, rest, _ := strings.Cut(line, " ")
		answer = strings.ToLower(answer)
		if hidden > 0 && answer != "" && strings.Contains("yale", answer[:1]) {
			fmt.Fprintf(p.err, "   %s not been shown yet; here they are:\n", have(hidden))
			answer = "s"
		}
		if rest = strings.TrimSpace(rest); rest != "" && answer != "n" && answer != "no" {
			fmt.Fprintln(p.err, "   an answer is one word; only n takes more, which tell the model why")
			continue
		}
		switch answer {
		case "s", "show":
			for _, row := range s.Rows(p.width(), p.look) {
				fmt.Fprintln(p.err, row)
			}
			hidden = 0
		case "y", "yes":
			return byPerson(agent.Decision{Allow: true}, show.AtTerminal), nil
		case "n", "no":
			return byPerson(agent.Decision{Reason: host.Refusal(rest)}, show.AtTerminal), nil
		case "a", "always":
			if rules.always != nil {
				return p.like(*rules.always), nil
			}
		case "l", "like":
			if rules.like != nil {
				return p.like(*rules.like), nil
			}
		case "e", "edit":
			if v, done, err := p.edit(ctx, call); done || err != nil {
				return v, err
			}
		case "?", "h", "help":
			p.explain(about(q, rules, hidden))
		default:
			if answer != "" {
				fmt.Fprintln(p.err, "   this is not one of the answers; type ? to read what each does")
			}
		}
	}
}

// rememberable are the rules that an answer can add. A rule that would not allow the call is not
// offered: about some calls, such as writes to a shell's start files, a person is always asked.
type rememberable struct{ like, always *session.Rule }

func remembered(q agent.ApprovalRequest) (r rememberable) {
	for i := range q.Rules {
		rule := &q.Rules[i]
		switch {
		case !q.Allows(*rule):
		case i == len(q.Rules)-1:
			r.always = rule
		case r.like == nil:
			r.like = rule
		}
	}
	return r
}

// present shows a call, and why it is asked about, and returns the number of its hidden rows.
func (p *person) present(s show.Shown, why string) (hidden int) {
	title := "?? " + s.Title
	if p.look == show.Coloured {
		title = "\x1b[" + show.Yellow + "m" + title + "\x1b[0m"
	}
	rows, hidden := show.Folded(s.Rows(p.width(), p.look))
	fmt.Fprintln(p.err, title)
	for _, row := range rows {
		fmt.Fprintln(p.err, row)
	}
	if why != "" {
		fmt.Fprintln(p.err, "   "+show.Wrap("asked because "+show.Visible(why), p.width()-4, "   "))
	}
	return hidden
}

func (p *person) width() int {
	if p.columns == nil {
		return show.WidthOf(p.err)
	}
	return p.columns()
}

// answers are the letters that answer a question, each with what it does: a person who has
// read nothing else must be able to say what each allows.
type answers []choice

type choice struct{ letter, does string }

// about returns the answers to a question about a call.
func about(q agent.ApprovalRequest, rules rememberable, hidden int) answers {
	list := answers{{"y", "run it, once"}, {"n", "do not run it; words after n tell the model why"}}
	add := func(letter, does string) { list = append(list, choice{letter, does}) }
	if hidden > 0 {
		add("s", fmt.Sprintf("show the %s that are hidden", show.Plural(hidden, "line")))
	}
	const later = "run it, and do not ask again in this conversation about "
	if rules.like != nil {
		like := likeness(*rules.like)
		if strings.HasPrefix(like, exactly) && len(like) > 2*show.ShortCall {
			like = "exactly this call, as it is shown above"
		}
		add("l", later+like+profileOf(*rules.like))
	}
	if rules.always != nil {
		within := ""
		if q.Sandbox != "" && !strings.HasPrefix(q.Sandbox, sandbox.NameFull) {
			within = " that stays in this sandbox"
		}
		add("a", later+"any call of "+show.Visible(q.Call.Name)+within)
	}
	add("e", "run it with other arguments, which you type")
	return list
}

// rows returns a row for each answer, wrapped at a width.
func (a answers) rows(columns int) (rows []string) {
	for _, one := range a {
		rows = append(rows, "   "+show.Wrap(one.letter+": "+one.does, columns-4, "      "))
	}
	return rows
}

// question returns the last row, which the answer follows.
func (a answers) question(asked string) string {
	var letters []string
	for _, one := range a[:len(a)-1] {
		letters = append(letters, one.letter)
	}
	return fmt.Sprintf("   %s %s or %s: ", asked, strings.Join(letters, ", "), a[len(a)-1].letter)
}

// text returns all of it, before it is wrapped.
func (a answers) text(asked string) string {
	return strings.Join(a.rows(math.MaxInt32), "\n") + "\n" + strings.TrimRight(a.question(asked), " ")
}

// explain prints what each answer does.
func (p *person) explain(a answers) {
	for _, row := range a.rows(p.width()) {
		fmt.Fprintln(p.err, row)
	}
}

// runIt is the question about a call, and about a file.
const runIt = "run it?"

func have(hidden int) string {
	if hidden == 1 {
		return "1 line has"
	}
	return fmt.Sprintf("%d lines have", hidden)
}

// like allows a call and the calls that a rule covers.
func (p *person) like(rule session.Rule) agent.Decision {
	p.liked = append(p.liked, rule)
	return byPerson(agent.Decision{Allow: true, Remember: &rule}, show.AtTerminal)
}

const thePerson = "the person at the terminal"

// saidBy says who answered a question, and what; or that nobody did in time.
func saidBy(a session.Approval) string {
	said := "no"
	switch {
	case a.Decided == session.DeciderUnanswered:
		return "nobody answered" + show.Visible(session.DecidedBy("", a.From, ""))
	case a.Allowed && a.Edited != "":
		said = "yes, with other arguments"
	case a.Allowed:
		said = "yes"
	}
	return "answered" + show.Visible(session.DecidedBy(a.By, a.From, a.Rule)) + ": " + said
}

// accountName returns the name of the user's account, for those who read elsewhere what this
// user said.
func accountName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return thePerson
}

// byPerson records in a decision who answered and how.
func byPerson(v agent.Decision, how string) agent.Decision {
	v.Decided, v.By, v.From = session.DeciderPerson, thePerson, how
	return v
}

// byRule records that a rule decided, and how it came about: nobody was asked about this call.
func byRule(rule session.Rule, how string) agent.Decision {
	return agent.Decision{Allow: true, Rule: &rule, Decided: session.DeciderRule, From: how}
}

// profileOf says in words with which profile of the sandbox a rule covers commands, unless it
// is the usual one. See the method Approval of shell.Command.
func profileOf(rule session.Rule) string {
	of, named := strings.CutPrefix(rule.Member, "command with ")
	if !named {
		return ""
	}
	switch name, hosts, _ := strings.Cut(of, " "); name {
	case sandbox.NameFull:
		return ", with all your permissions"
	case sandbox.NameNetwork:
		return ", with the network"
	case sandbox.NameHosts:
		return ", with the network to " + show.Visible(hosts)
	}
	return ", with the sandbox profile " + show.Visible(of)
}

const exactly = "exactly this: "

// likeness says in words which calls a rule covers.
func likeness(rule session.Rule) string {
	words := rule.Prefix
	switch {
	case rule.Arguments != "":
		return show.Visible(exactly + rule.Arguments)
	case len(words) == 0:
		return show.Visible("paths under " + rule.Under)
	case words[len(words)-1] == session.KnownOptions:
		return show.Visible(trust.CommandLine(words[:len(words)-1]...) + " with options known to be harmless")
	}
	return show.Visible(exactly + trust.CommandLine(words...))
}

// edit asks for other arguments. It reports false if the input cannot be meant as
// arguments; the question is then repeated, because a typing error is not an
// answer.
func (p *person) edit(ctx context.Context, call tool.Call) (v agent.Decision, done bool, err error) {
	line, edited, err := p.edited(call)
	if err != nil {
		fmt.Fprintln(p.err, "   the editor: "+show.Visible(err.Error()))
		return v, false, nil
	}
	ok := true
	if !edited {
		fmt.Fprint(p.err, "   the arguments in place of these: ")
		line, ok, err = p.text(ctx)
	}
	if err == nil && !ok {
		err = agent.ErrNobody
	}
	switch {
	case err != nil:
		return v, true, err
	case line == "":
		fmt.Fprintln(p.err, "   nothing was given, so the arguments stay as they are")
		return v, false, nil
	case !call.Custom && !jsontext.Value(line).IsValid():
		fmt.Fprintln(p.err, "   that is not JSON, which arguments are, such as "+`{"path":"a.txt"}`)
		return v, false, nil
	}
	return byPerson(agent.Decision{Allow: true, Arguments: line}, show.AtTerminal), true, nil
}

// edited opens the arguments of a call in the person's editor, and returns what they became, or "" if
// they are as they were. It reports false if there is no editor.
func (p *person) edited(call tool.Call) (arguments string, edited bool, err error) {
	if p.edits == nil {
		return "", false, nil
	}
	before, suffix := jsontext.Value(call.Arguments), ".json"
	if call.Custom {
		suffix = ".txt"
	} else if err := before.Indent(jsontext.WithIndent("  ")); err != nil {
		return "", false, nil
	}
	after, err := p.edits(string(before), suffix)
	switch {
	case errors.Is(err, tui.ErrNoEditor):
		return "", false, nil
	case err != nil:
		return "", false, err
	case strings.TrimRight(after, "\n") == strings.TrimRight(string(before), "\n"):
		return "", true, nil
	}
	if value := jsontext.Value(after); !call.Custom && value.Compact() == nil {
		after = string(value)
	}
	return after, true, nil
}

// Ask asks the user a question of the model, for the tool ask_user. The number of
// a choice selects it.
func (p *person) Ask(ctx context.Context, q toolkit.Question) (string, error) {
	done, err := p.alone(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	p.unasked()
	for line := range strings.Lines(q.Text) {
		fmt.Fprintf(p.err, "?? %s\n", show.Visible(strings.TrimRight(line, "\n")))
	}
	for i, choice := range q.Choices {
		fmt.Fprintf(p.err, "   %d. %s\n", i+1, show.Visible(choice))
	}
	fmt.Fprint(p.err, "   your answer: ")
	line, ok, err := p.text(ctx)
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
		fmt.Fprintf(std.err, "?? %s %s (call %s)\n", show.Shorten(p.Tool, 100), show.Shorten(p.Arguments, 1000), show.Shorten(p.CallID, 100))
		if p.Of != "" {
			fmt.Fprintf(std.err, "   a tool of %s\n", show.Shorten(show.Visible(p.Of), 1000))
		}
		if p.Command != nil {
			fmt.Fprintf(std.err, "   runs: %s\n", show.Shorten(show.Visible(trust.CommandLine(p.Command...)), 1000))
		}
		if p.Sandbox != "" {
			fmt.Fprintf(std.err, "   %s\n", show.InSandbox(p.Sandbox))
		}
	}
	wait := "wait"
	if len(wanted) == 1 {
		wait = "waits"
	}
	return &exitError{exitNeedsAllow, fmt.Errorf("%s %s for an approval: answer by antiphon sessions approve, if it is a session, or write the answers into a file, and run it again with --approve-from FILE", show.Plural(len(wanted), "call"), wait)}
}
