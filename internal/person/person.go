// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package person

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

// Person is the user at the terminal, who approves calls and answers the questions
// of the model. Its fields are set before the first question. Questions may be asked
// at the same time: they take turns.
type Person struct {
	// Types reports whether a person types the lines and so may type before a
	// question is shown.
	Types   bool
	Look    show.Look
	Columns func() int // width of the terminal; nil means that of the stream

	// Edits opens a text in an editor, or fails with tui.ErrNoEditor. It may be nil.
	Edits func(text, suffix string) (string, error)

	// Lost is closed when the terminal is gone. It may be nil.
	Lost <-chan struct{}

	// Asks is called when a line is waited for, and returns what is called when it is not
	// any more. Words says that any text may be the answer. It may be nil.
	Asks func(words bool) (end func())

	in    io.Reader
	err   io.Writer
	once  sync.Once
	lines chan string
	turn  chan struct{} // holds one value while a question is asked: the next line is its answer
	// liked holds the rules added by answers. They apply even if a file asks every
	// time, which a remembered rule would not override.
	liked []session.Rule
}

// New returns the person who types the lines of in and reads what is written to err.
func New(in io.Reader, err io.Writer) *Person {
	return &Person{in: in, err: err, lines: make(chan string, maxAhead), turn: make(chan struct{}, 1), Types: show.IsTerminal(in)}
}

const (
	// maxAhead is the number of lines that are read in advance.
	maxAhead = 64
	// Settle is the time that lines may take from the terminal to this program.
	Settle = 30 * time.Millisecond
)

// Alone waits until no other question is asked, as subagents do at the same time. Nobody else asks until
// done is called.
func (p *Person) Alone(ctx context.Context) (done func(), err error) {
	done = func() { <-p.turn }
	select {
	case p.turn <- struct{}{}:
		return done, nil
	default:
	}
	defer host.Unseen(ctx)()
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if ctx.Err() != nil { // select takes either: what is over is not asked
		done()
		return nil, ctx.Err()
	}
	return done, nil
}

// Unasked drops what was typed before a question. An answer that was given twice
// would approve a call that the user has not seen.
func (p *Person) Unasked() {
	if !p.Types {
		return
	}
	typed := p.Typed()
	time.Sleep(Settle)
	dropped := 0
	for {
		select {
		case _, ok := <-typed:
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

// Typed returns the lines that the person types while no question is asked. It is closed at the end of the input.
func (p *Person) Typed() <-chan string {
	p.once.Do(func() { go p.read() })
	return p.lines
}

// Unlike takes back what answers have allowed from then on, by the rules that match.
func (p *Person) Unlike(matches func(session.Rule) bool) {
	p.liked = slices.DeleteFunc(p.liked, matches)
}

// read reads lines, beginning with the first question.
func (p *Person) read() {
	defer close(p.lines)
	for in := bufio.NewReader(p.in); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		p.lines <- strings.TrimSpace(line)
	}
}

// Line waits for a line, which is one of a few answers. It returns false at the end of the input, and when the terminal
// is gone.
func (p *Person) Line(ctx context.Context) (string, bool, error) { return p.await(ctx, false) }

// text is Line for an answer in words.
func (p *Person) text(ctx context.Context) (string, bool, error) { return p.await(ctx, true) }

func (p *Person) await(ctx context.Context, words bool) (string, bool, error) {
	typed := p.Typed()
	if p.Asks != nil {
		defer p.Asks(words)()
	}
	// The last select takes any that is ready: a line that is there answers no question that is over, or that
	// nobody can see.
	if ctx.Err() != nil {
		fmt.Fprintln(p.err)
		return "", false, ctx.Err()
	}
	select {
	case <-p.Lost:
		return "", false, nil
	default:
	}
	select {
	case <-ctx.Done():
		fmt.Fprintln(p.err)
		return "", false, ctx.Err()
	case line, ok := <-typed:
		return line, ok, nil
	case <-p.Lost:
		return "", false, nil
	}
}

// Approve is an [agent.Approver]. At the end of input it returns
// [agent.ErrNobody]. If somebody else answers first, the person is told.
func (p *Person) Approve(ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
	done, err := p.Alone(ctx)
	if err != nil {
		return agent.Decision{}, err
	}
	defer done()
	const before = "terminal, by an answer before"
	if i := slices.IndexFunc(p.liked, func(r session.Rule) bool { return q.Allows(r) }); i >= 0 {
		return ByRule(p.liked[i], before), nil
	}
	if q.Allows(p.liked...) { // several rules together allow a command
		return ByPerson(agent.Decision{Allow: true}, before), nil
	}
	s := show.Asked(q.Call, q.Command, q.Sandbox).Of(q.Annotations.Origin.Of).Fails(q.Problem)
	v, err := p.answer(ctx, q, s)
	if others := new(agent.AnsweredError); err != nil && errors.As(context.Cause(ctx), &others) {
		fmt.Fprintln(p.err, "   "+SaidBy(others.Answer))
	}
	// Nobody can allow a call before all of it was shown.
	v.Shown = s.Whole(q.Reason) + about(q, remembered(q), 0).Text(RunIt)
	return v, err
}

// answer shows a call and asks the person.
func (p *Person) answer(ctx context.Context, q agent.ApprovalRequest, s show.Shown) (agent.Decision, error) {
	call, rules := q.Call, remembered(q)
	p.Unasked()
	hidden := p.present(s, q.Reason)
	p.Explain(about(q, rules, hidden))
	for {
		fmt.Fprint(p.err, about(q, rules, hidden).Question(RunIt))
		line, ok, err := p.Line(ctx)
		if err == nil && !ok {
			err = agent.ErrNobody
		}
		if err != nil {
			return agent.Decision{}, err
		}
		answer, rest, _ := strings.Cut(line, " ")
		answer = strings.ToLower(answer)
		if hidden > 0 && answer != "" && strings.Contains("yale", answer[:1]) {
			fmt.Fprintf(p.err, "   %s not been shown yet; here they are:\n", Have(hidden))
			answer = "s"
		}
		if rest = strings.TrimSpace(rest); rest != "" && answer != "n" && answer != "no" {
			fmt.Fprintln(p.err, "   an answer is one word; only n takes more, which tell the model why")
			continue
		}
		switch answer {
		case "s", "show":
			for _, row := range s.Rows(p.Width(), p.Look) {
				fmt.Fprintln(p.err, row)
			}
			hidden = 0
		case "y", "yes":
			return ByPerson(agent.Decision{Allow: true}, show.AtTerminal), nil
		case "n", "no":
			return ByPerson(agent.Decision{Reason: host.Refusal(rest)}, show.AtTerminal), nil
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
			p.Explain(about(q, rules, hidden))
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
func (p *Person) present(s show.Shown, why string) (hidden int) {
	rows, hidden := show.Folded(s.Rows(p.Width(), p.Look))
	for _, row := range slices.Concat(s.Head(p.Width(), p.Look), rows) {
		fmt.Fprintln(p.err, row)
	}
	if why != "" {
		fmt.Fprintln(p.err, "   "+show.Wrap("asked because "+show.Visible(why), p.Width()-4, "   "))
	}
	return hidden
}

// Width returns the width of the terminal.
func (p *Person) Width() int {
	if p.Columns == nil {
		return show.WidthOf(p.err)
	}
	return p.Columns()
}

// Answers are the letters that answer a question, each with what it does: a person who has
// read nothing else must be able to say what each allows.
type Answers []Choice

// Choice is one answer: its letter, and what it does.
type Choice struct{ Letter, Does string }

// AnswersTo returns the answers to a question about a call of which rows are hidden.
func AnswersTo(q agent.ApprovalRequest, hidden int) Answers { return about(q, remembered(q), hidden) }

// about returns the answers to a question about a call.
func about(q agent.ApprovalRequest, rules rememberable, hidden int) Answers {
	list := Answers{{"y", "run it, once"}, {"n", "do not run it; words after n tell the model why"}}
	add := func(letter, does string) { list = append(list, Choice{letter, does}) }
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
func (a Answers) rows(columns int) (rows []string) {
	for _, one := range a {
		rows = append(rows, "   "+show.Wrap(one.Letter+": "+one.Does, columns-4, "      "))
	}
	return rows
}

// Question returns the last row, which the answer follows.
func (a Answers) Question(asked string) string {
	var letters []string
	for _, one := range a[:len(a)-1] {
		letters = append(letters, one.Letter)
	}
	return fmt.Sprintf("   %s %s or %s: ", asked, strings.Join(letters, ", "), a[len(a)-1].Letter)
}

// Text returns all of it, before it is wrapped.
func (a Answers) Text(asked string) string {
	return strings.Join(a.rows(math.MaxInt32), "\n") + "\n" + strings.TrimRight(a.Question(asked), " ")
}

// Tell prints a row about a question.
func (p *Person) Tell(text string) { fmt.Fprintln(p.err, "   "+text) }

// Explain prints what each answer does.
func (p *Person) Explain(a Answers) {
	for _, row := range a.rows(p.Width()) {
		fmt.Fprintln(p.err, row)
	}
}

// RunIt is the question about a call, and about a file.
const RunIt = "run it?"

// Have counts rows that were not shown, as the subject of a sentence.
func Have(hidden int) string {
	if hidden == 1 {
		return "1 line has"
	}
	return fmt.Sprintf("%d lines have", hidden)
}

// like allows a call and the calls that a rule covers.
func (p *Person) like(rule session.Rule) agent.Decision {
	p.liked = append(p.liked, rule)
	return ByPerson(agent.Decision{Allow: true, Remember: &rule}, show.AtTerminal)
}

// Name is how the log and other people are told who decided.
const Name = "the person at the terminal"

// SaidBy says who answered a question, and what; or that nobody did in time.
func SaidBy(a session.Approval) string {
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

// AccountName returns the name of the user's account, for those who read elsewhere what this
// user said.
func AccountName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return Name
}

// ByPerson records in a decision who answered and how.
func ByPerson(v agent.Decision, how string) agent.Decision {
	v.Decided, v.By, v.From = session.DeciderPerson, Name, how
	return v
}

// ByRule records that a rule decided, and how it came about: nobody was asked about this call.
func ByRule(rule session.Rule, how string) agent.Decision {
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

// Covers says in words which calls a rule covers, and with which profile of the sandbox.
func Covers(rule session.Rule) string { return likeness(rule) + profileOf(rule) }

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
func (p *Person) edit(ctx context.Context, call tool.Call) (v agent.Decision, done bool, err error) {
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
	return ByPerson(agent.Decision{Allow: true, Arguments: line}, show.AtTerminal), true, nil
}

// edited opens the arguments of a call in the person's editor, and returns what they became, or "" if
// they are as they were. It reports false if there is no editor.
func (p *Person) edited(call tool.Call) (arguments string, edited bool, err error) {
	if p.Edits == nil {
		return "", false, nil
	}
	before, suffix := jsontext.Value(call.Arguments), ".json"
	if call.Custom {
		suffix = ".txt"
	} else if err := before.Indent(jsontext.WithIndent("  ")); err != nil {
		return "", false, nil
	}
	after, err := p.Edits(string(before), suffix)
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
func (p *Person) Ask(ctx context.Context, q toolkit.Question) (string, error) {
	done, err := p.Alone(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	p.Unasked()
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

// Agrees asks a yes-or-no question. Only yes is a yes.
func (p *Person) Agrees(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(p.err, "%s [y/N] ", show.Printable(question))
	answer, _, err := p.Line(ctx)
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", err
}
