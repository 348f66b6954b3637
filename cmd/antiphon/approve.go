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

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// person is who sits at the terminal: asked about calls, and by the model.
type person struct {
	in    io.Reader
	err   io.Writer
	once  sync.Once
	lines chan string
	// liked are the rules that answers left behind. They count here also where a
	// file asks every time, which a remembered rule would not overrule.
	liked []session.Rule
}

func newPerson(std stdio) *person {
	return &person{in: std.in, err: std.err, lines: make(chan string)}
}

// read reads lines, from the first question on.
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

// line waits for a line. It reports false at the end of the input.
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

// approve is an [agent.Approver]. At the end of input there is nobody.
func (p *person) approve(ctx context.Context, call tool.Call, _ tool.Traits) (agent.Verdict, error) {
	if p.always(call.Name) || agent.Allowed(ctx, p.liked...) {
		return agent.Verdict{Allowed: true}, nil
	}
	rules := agent.SuggestedRules(ctx)
	for {
		fmt.Fprintf(p.err, "?? %s %s\n%s   run it? [y]es, [n]o, %s[e]dit its arguments: ", call.Name, shorten(call.Arguments, 1000), inFull(call), offer(rules))
		line, ok, err := p.line(ctx)
		if err == nil && !ok {
			err = agent.ErrNobody
		}
		if err != nil {
			return agent.Verdict{}, err
		}
		answer, rest, _ := strings.Cut(line, " ")
		switch strings.ToLower(answer) {
		case "y", "yes":
			return agent.Verdict{Allowed: true}, nil
		case "n", "no":
			return agent.Verdict{Reason: refusal(strings.TrimSpace(rest))}, nil
		case "a", "always":
			return p.like(rules[len(rules)-1]), nil
		case "l", "like":
			if len(rules) > 1 {
				return p.like(rules[0]), nil
			}
		case "e", "edit":
			return p.edit(ctx)
		}
	}
}

// always reports whether all calls of a tool were allowed, whatever it says of
// them itself.
func (p *person) always(name string) bool {
	return slices.ContainsFunc(p.liked, func(r session.Rule) bool { return r.Tool == name && r.Member == "" })
}

// like allows a call and those that a rule covers.
func (p *person) like(rule session.Rule) agent.Verdict {
	p.liked = append(p.liked, rule)
	return agent.Verdict{Allowed: true, Remember: &rule}
}

// maxShown bounds what is shown of the arguments of one call, in bytes.
const maxShown = 64 << 10

// inFull is the arguments of a call line by line, with their escapes resolved,
// where the short form would hide some of them: nobody should approve what they
// cannot see.
func inFull(call tool.Call) string {
	if len(call.Arguments) <= 1000 && !strings.Contains(call.Arguments, `\u`) && !(call.Custom && strings.Contains(call.Arguments, "\n")) {
		return ""
	}
	var lines []string
	show := func(text string) {
		for line := range strings.Lines(text) {
			lines = append(lines, "   | "+printable(strings.TrimRight(line, "\n")))
		}
	}
	args, err := item.Parse([]byte(call.Arguments))
	if call.Custom || err != nil {
		show(call.Arguments)
	} else {
		for _, name := range memberNames(args.JSON()) {
			value, _ := args.Member(name)
			text, isText := value.Unquote()
			if !isText {
				text = plainJSON(value)
			}
			show(name + ": " + text)
		}
	}
	text := strings.Join(lines, "\n") + "\n"
	if len(text) > maxShown {
		head, tail := text[:maxShown/2], text[len(text)-maxShown/2:]
		text = fmt.Sprintf("%s\n   | … %d bytes are not shown; answer n if you do not know them …\n%s", strings.ToValidUTF8(head, ""), len(text)-maxShown, strings.ToValidUTF8(tail, ""))
	}
	return text
}

// plainJSON is a JSON value with the escapes of its texts resolved.
func plainJSON(value item.JSON) string {
	v := jsontext.Value(value)
	if err := v.Canonicalize(); err != nil {
		return string(value)
	}
	return string(v)
}

// refusal is what the model is told of a reason; "" is the usual words.
func refusal(reason string) string {
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("The call was refused by the person in charge: %s. Nothing was done.", strings.TrimSuffix(reason, "."))
}

// offer names what an answer can leave behind.
func offer(rules []session.Rule) string {
	if len(rules) < 2 {
		return "[a]lways for this tool, "
	}
	narrow := rules[0]
	like := "under " + narrow.Under
	if len(narrow.Prefix) > 0 {
		like = "beginning with " + strings.Join(narrow.Prefix, " ")
	}
	return fmt.Sprintf("always for those [l]ike it (%s), [a]lways for this tool, ", shorten(like, 60))
}

func (p *person) edit(ctx context.Context) (agent.Verdict, error) {
	fmt.Fprint(p.err, "   the arguments in place of these: ")
	line, ok, err := p.line(ctx)
	if err != nil || !ok || line == "" {
		return agent.Verdict{}, err
	}
	return agent.Verdict{Allowed: true, Arguments: line}, nil
}

// Ask puts a question of the model's to the person, for the tool ask_user. The
// number of a choice stands for it.
func (p *person) Ask(ctx context.Context, q toolkit.Question) (string, error) {
	fmt.Fprintf(p.err, "?? %s\n", q.Text)
	for i, choice := range q.Choices {
		fmt.Fprintf(p.err, "   %d. %s\n", i+1, choice)
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
