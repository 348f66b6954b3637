// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Trajectory returns what the runs of a log did, as text for people and for
// [CheckTrajectory]: for each turn the calls of the reply with what the model got
// back, and the messages, and at the end how each run stopped.
//
//	turn 1
//	  weather {"city":"Bergen"} = It rains.
//	  weather {"city":"Atlantis"} ! no such city
//	turn 2
//	  > Take an umbrella.
//	stopped: answered
//
// A call is the name of the tool and its arguments as the model sent them; JSON with
// line breaks loses the white space between its parts. " as " follows if the tool got
// other arguments. After "=" comes the output, after "!" the output of a call that failed
// or was refused, and "?" stands for no output yet. A failure in the usual envelope is
// shortened to its error and its output, and a search for tools to the names that it found. Any other text with line breaks is quoted.
// Input, reasoning and ids are left out. A call of a tool that the endpoint runs is the type of
// its item and what was asked; after "=" comes what came of it, if the log has that. A subagent is a call like any other; its own
// log is another trajectory: see session.Session.Nested.
func Trajectory(log []session.Entry) string {
	t := trajectory{calls: map[int]*step{}, said: map[int64]*step{}}
	for _, e := range log {
		t.apply(e)
	}
	var b strings.Builder
	for _, s := range t.steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// CheckTrajectory fails the test if the trajectory of the log (see [Trajectory])
// differs from want, and prints the difference line by line: after "-" what want has and
// the log does not, after "+" what happened instead.
//
//	agenttest.CheckTrajectory(t, s.Log(), `
//		turn 1
//		  weather {"city":"Bergen"} = …
//		turn 2
//		  > Take an umbrella.
//		stopped: answered
//	`)
//
// The turns are compared in order. The lines of one turn may be in any order, because
// the calls of one reply run at the same time. "…" stands for any text within a line.
// Indentation and empty lines do not count. A call that failed has "!" in place of "=".
func CheckTrajectory(tb testing.TB, log []session.Entry, want string) {
	tb.Helper()
	if diff := trajectoryDiff(want, Trajectory(log)); diff != "" {
		tb.Errorf("the trajectory differs (- is expected and did not happen, + happened and is not expected):\n%s", diff)
	}
}

// trajectory folds a log into steps.
type trajectory struct {
	steps []fmt.Stringer
	known agent.KnownCalls
	turn  *turnStep
	calls map[int]*step   // by the number that KnownCalls gives
	said  map[int64]*step // by entry
	last  *step           // the call of the last output of this turn, until there is input
}

// heading is a step without details.
type heading string

func (h heading) String() string { return string(h) }

// turnStep is the first line of a turn.
type turnStep struct {
	number int
	broke  string
}

func (t *turnStep) String() string {
	if t.broke != "" {
		return fmt.Sprintf("turn %d, broke off: %s", t.number, t.broke)
	}
	return fmt.Sprintf("turn %d", t.number)
}

// step is a call or a message.
type step struct {
	text      string // a call without its output, or a message
	call      bool
	edited    string
	sign      string // of the output; "" is none yet
	output    string
	withdrawn bool
}

func (s *step) String() string {
	text := "  " + s.text
	if s.edited != "" {
		text += " as " + s.edited
	}
	switch {
	case s.call && s.sign == "":
		text += " ?"
	case s.call:
		text = strings.TrimRight(text+" "+s.sign+" "+s.output, " ")
	}
	if s.withdrawn {
		text += " (withdrawn)"
	}
	return text
}

func (t *trajectory) apply(e session.Entry) {
	call := t.known.Add(e)
	switch b := e.Body.(type) {
	case session.TurnStarted:
		t.turn, t.last = &turnStep{number: b.Turn}, nil
		t.steps = append(t.steps, t.turn)
	case session.TurnEnded:
		if t.turn != nil && b.BrokeOff() {
			t.turn.broke = cmp.Or(b.Class, b.Reason, b.Status)
		}
	case session.OutputItem:
		t.item(e.Seq, b, call)
	case session.CallStarted:
		if s := t.calls[number(call)]; s != nil && call.Edited {
			s.edited = argumentsLine(call.Arguments)
		}
	case session.CallOutput:
		t.answer(e.Seq, b, call)
	case session.InputItem:
		t.note(b)
	case session.CallDropped:
		if s := t.calls[number(call)]; s != nil {
			s.sign, s.output = "!", oneLine(b.Reason)
		}
	case session.ItemsWithdrawn:
		for _, seq := range b.Seqs {
			if s := t.said[seq]; s != nil {
				s.withdrawn = true
			}
		}
	case session.Stopped:
		t.steps = append(t.steps, heading("stopped: "+b.Why))
	}
}

func number(call *agent.KnownCall) int {
	if call == nil {
		return 0
	}
	return call.Number
}

// item adds an item of a reply.
func (t *trajectory) item(seq int64, b session.OutputItem, call *agent.KnownCall) {
	s := new(step)
	switch kind := b.Item.Type(); {
	case call != nil && b.Item.IsCall():
		s.call, s.text = true, strings.TrimRight(call.Tool+" "+argumentsLine(call.Arguments), " ")
		t.calls[number(call)] = s
	case kind == item.TypeReasoning:
		return
	case kind == item.TypeMessage:
		m, err := item.As[item.Message](b.Item)
		if err != nil {
			return
		}
		s.text = strings.TrimRight("> "+oneLine(m.Content.Display()), " ")
		if b.Partial {
			s.text += " (broke off)"
		}
	case b.Item.IsOutput() && t.calls[number(call)] != nil: // the endpoint answered the call
		answered := t.calls[number(call)]
		answered.sign, answered.output = "=", oneLine(outputText(b.Item))
		t.said[seq] = answered
		return
	default: // of the endpoint itself
		s.hosted(b.Item)
	}
	t.said[seq] = s
	t.steps = append(t.steps, s)
}

// hosted describes an item of a tool that the endpoint runs: what was asked and, of a call on
// an MCP server, what came of it.
func (s *step) hosted(it item.Item) {
	asked := ""
	decoded, _ := it.Decode()
	switch v := decoded.(type) {
	case *item.WebSearchCall:
		asked = memberOf(it, "action")
	case *item.FileSearchCall:
		asked = memberOf(it, "queries")
	case *item.CodeInterpreterCall:
		asked = v.Code
	case *item.Program:
		asked = v.Code
	case *item.MCPCall:
		s.call, s.sign, s.output = true, "=", oneLine(v.Output)
		if problem, _ := it.Member("error"); problem != "" && problem != "null" { // of any form
			text, quoted := problem.Unquote()
			if !quoted {
				text = string(problem)
			}
			s.sign, s.output = "!", oneLine(text)
		}
		asked = v.ServerLabel + "." + v.Name + " " + argumentsLine(v.Arguments)
	}
	s.text = strings.TrimRight(string(it.Type())+" "+oneLine(asked), " ")
}

func memberOf(it item.Item, name string) string {
	value, _ := it.Member(name)
	return argumentsLine(string(value))
}

// answer adds an output to its call.
func (t *trajectory) answer(seq int64, b session.CallOutput, call *agent.KnownCall) {
	s := t.calls[number(call)]
	if s == nil {
		return
	}
	s.sign, s.output = "=", oneLine(outputText(b.Item))
	if b.Failed {
		s.sign = "!"
	}
	t.said[seq], t.last = s, s
}

// note adds to the last output what the model is told beside it: some outputs have no place
// for a text.
func (t *trajectory) note(b session.InputItem) {
	s := t.last
	if t.last = nil; s == nil || !b.Own {
		return
	}
	m, err := item.As[item.Message](b.Item)
	if err != nil {
		return
	}
	// The head of the message, the arguments and the text, each behind a mark.
	parts := strings.Split(m.Content.Display(), "\n\n> ")
	if len(parts) != 3 {
		return
	}
	text := strings.ReplaceAll(strings.TrimSuffix(parts[2], "\n]"), "\n> ", "\n")
	s.output = strings.TrimLeft(s.output+" "+oneLine(withoutEnvelope(text)), " ")
}

// outputText returns what the model reads of an output.
func outputText(it item.Item) string {
	v, err := it.Decode()
	if err != nil {
		return it.JSON()
	}
	switch v := v.(type) {
	case *item.FunctionCallOutput:
		return withoutEnvelope(v.Output.Display())
	case *item.CustomToolCallOutput:
		return withoutEnvelope(v.Output.Display())
	case *item.ApplyPatchCallOutput:
		return withoutEnvelope(v.Output)
	case *item.ToolSearchOutput:
		return foundText(v.Tools)
	case *item.ComputerCallOutput:
		return "a screenshot"
	case *item.MCPApprovalResponse:
		if v.Approve {
			return "approved"
		}
		return cmp.Or(withoutEnvelope(v.Reason), "not approved")
	}
	return it.JSON()
}

// foundText returns the names of the tools that a search found.
func foundText(found []item.Tool) string {
	var names []string
	for _, def := range found {
		switch def := def.(type) {
		case *item.FunctionTool:
			names = append(names, def.Name)
		case *item.CustomTool:
			names = append(names, def.Name)
		case *item.NamespaceTool:
			names = append(names, foundText(def.Tools))
		default:
			names = append(names, def.ToolType())
		}
	}
	return strings.Join(names, ", ")
}

// withoutEnvelope returns the error and the output of a failure in the envelope of
// docs/tool-output-format.md, and any other text as it is.
func withoutEnvelope(text string) string {
	rest, ok := strings.CutPrefix(text, "status:\nerror\n\ntoolName:\n")
	if !ok {
		return text
	}
	_, rest, _ = strings.Cut(rest, "\n\nerror:\n")
	problem, output, _ := strings.Cut(rest, "\n\noutput:\n")
	return strings.TrimSpace(strings.TrimSpace(problem) + "\n" + output)
}

// argumentsLine returns arguments on one line. JSON that the model wrote over several
// lines loses its white space.
func argumentsLine(text string) string {
	var compact bytes.Buffer
	if strings.ContainsAny(text, "\n\r\t") && json.Compact(&compact, []byte(text)) == nil {
		text = compact.String()
	}
	return oneLine(text)
}

// oneLine returns a text on one line: as it is, or quoted.
func oneLine(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r != ' ' && unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// trajectoryDiff compares two trajectories, and returns "" if they are equal.
func trajectoryDiff(want, got string) string {
	wantTurns, gotTurns := turnsOf(want), turnsOf(got)
	var b strings.Builder
	differ := false
	write := func(sign, line string) {
		differ = differ || sign != " "
		if !startsTurn(line) {
			line = "  " + line
		}
		fmt.Fprintf(&b, "%s %s\n", sign, line)
	}
	for i := range max(len(wantTurns), len(gotTurns)) {
		var w, g []string
		if i < len(wantTurns) {
			w = wantTurns[i]
		}
		if i < len(gotTurns) {
			g = gotTurns[i]
		}
		partner := matched(w, g)
		shown := make([]bool, len(g))
		for j, line := range w {
			at := partner[j]
			if at >= 0 {
				write(" ", g[at])
			} else {
				write("-", line)
				if at = likely(line, g, partner, shown); at < 0 {
					continue
				}
				write("+", g[at])
			}
			shown[at] = true
		}
		for j, line := range g {
			if !shown[j] {
				write("+", line)
			}
		}
	}
	if !differ {
		return ""
	}
	return b.String()
}

// likely returns the index of a line in got that happened instead of an expected one: the
// first that is not expected and is of the same tool or kind, or -1.
func likely(want string, got []string, partner []int, shown []bool) int {
	kind, _, _ := strings.Cut(want, " ")
	for i, line := range got {
		if other, _, _ := strings.Cut(line, " "); kind == other && !shown[i] && !slices.Contains(partner, i) {
			return i
		}
	}
	return -1
}

// turnsOf splits a trajectory into turns and stops; each begins with its heading.
func turnsOf(text string) (turns [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case startsTurn(line) || len(turns) == 0:
			turns = append(turns, []string{line})
		default:
			turns[len(turns)-1] = append(turns[len(turns)-1], line)
		}
	}
	return turns
}

func startsTurn(line string) bool {
	rest, ok := strings.CutPrefix(line, "turn ")
	return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' || strings.HasPrefix(line, "stopped: ")
}

// matched returns the index of the line in got for each line of want, or -1. It
// matches as many lines as possible, because a line with "…" may fit several.
func matched(want, got []string) []int {
	partner := slices.Repeat([]int{-1}, len(want))
	taken := slices.Repeat([]int{-1}, len(got))
	var place func(w int, tried []bool) bool
	place = func(w int, tried []bool) bool {
		for g := range got {
			if tried[g] || !fits(want[w], got[g]) {
				continue
			}
			tried[g] = true
			if taken[g] < 0 || place(taken[g], tried) {
				partner[w], taken[g] = g, w
				return true
			}
		}
		return false
	}
	for w := range want {
		place(w, make([]bool, len(got)))
	}
	return partner
}

// fits reports whether a line fits a pattern in which "…" stands for any text.
func fits(pattern, line string) bool {
	if pattern == line {
		return true
	}
	parts := strings.Split(pattern, "…")
	line, ok := strings.CutPrefix(line, parts[0])
	if !ok || len(parts) == 1 {
		return false
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		if _, line, ok = strings.Cut(line, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(line, parts[last])
}
