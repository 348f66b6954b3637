// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
)

// printer shows a run to a person: the model's text on standard output as it
// comes, everything else on standard error.
type printer struct {
	out, err io.Writer
	colour   bool
	plain    bool // standard output is a terminal, which control characters would steer
	began    time.Time

	midLine bool            // the text on standard output has not ended its line
	spoke   bool            // the current message streamed text
	refused map[string]bool // calls that were told of as refused
	failed  int             // calls that ran and failed
	cut     string          // a remark on the last turn, told if another follows
	// writeErr is the first error of standard output, such as a closed pipe.
	writeErr error
}

func newPrinter(std stdio, env environment) *printer {
	_, noColour := env["NO_COLOR"]
	colour := terminal(std.err) && !(noColour && env["NO_COLOR"] != "") && env["TERM"] != "dumb"
	return &printer{
		out: std.out, err: std.err, colour: colour, plain: terminal(std.out),
		began: time.Now(), refused: map[string]bool{},
	}
}

// show prints one event. The error is that of standard output.
func (p *printer) show(ev agent.Event) error {
	switch ev := ev.(type) {
	case agent.TurnStarted:
		if p.cut != "" {
			p.note(yellow, "%s", p.cut)
			p.cut = ""
		}
	case agent.TextDelta:
		p.text(ev.Text)
		p.spoke = true
	case agent.ItemDone:
		p.itemDone(ev)
	case agent.CallStarted:
		p.note(dim, "-> %s %s", ev.Tool, shorten(ev.Arguments, 100))
	case agent.Nested:
		p.nested(ev)
	case agent.ReasoningDropped:
		p.note(yellow, "asking again without the earlier reasoning: %s", shorten(ev.Reason, 300))
	case agent.Quarantined:
		p.note(yellow, "asking again without one item, which the endpoint refused: %s", shorten(ev.Reason, 300))
	case agent.Compacting:
		p.note(dim, "-- making %s shorter, by %s: about %d tokens are too many", plural(ev.Items, "item"), ev.By, ev.Tokens)
	case agent.Compacted:
		p.compacted(ev)
	case agent.CallRefused:
		p.refused[ev.CallID] = true
		p.note(yellow, "!! %s: %s", ev.Tool, shorten(ev.Reason, 1000))
	case agent.CallDone:
		p.callDone(ev)
	case agent.TurnEnded:
		p.endLine()
		if ev.Reason != "" { // what ends the run is told by its last line
			p.cut = fmt.Sprintf("!! turn %d: %s: %s", ev.Turn, ev.Status, shorten(ev.Reason, 300))
		}
	case agent.Stopped:
		p.stopped(ev)
	}
	return p.writeErr
}

func (p *printer) text(s string) {
	if p.plain {
		s = printable(s)
	}
	if s == "" {
		return
	}
	if _, err := io.WriteString(p.out, s); err != nil && p.writeErr == nil {
		p.writeErr = err
	}
	p.midLine = !strings.HasSuffix(s, "\n")
}

func (p *printer) endLine() {
	if p.midLine {
		p.text("\n")
	}
}

// itemDone ends a message's line, and prints a message that came without
// deltas.
func (p *printer) itemDone(ev agent.ItemDone) {
	if m, err := item.As[item.Message](ev.Item); err == nil {
		if !p.spoke {
			p.text(m.Content.Display())
		}
		p.spoke = false
		p.endLine()
		if ev.Partial {
			p.note(yellow, "!! the reply broke off here")
		}
	}
}

func (p *printer) callDone(ev agent.CallDone) {
	took := ""
	if ev.Synthetic && p.refused[ev.CallID] {
		return // it has been told
	}
	if !ev.Synthetic {
		took = " " + duration(ev.Took)
	}
	if ev.Failed && !ev.Synthetic {
		p.failed++
	}
	if ev.Failed {
		p.note(red, "<- %s%s failed: %s", ev.Tool, took, shorten(ev.Error, 200))
		return
	}
	p.note(green, "<- %s%s %s", ev.Tool, took, sizeOf(ev.Item))
}

func (p *printer) compacted(ev agent.Compacted) {
	if ev.Failure != "" {
		p.note(yellow, "!! nothing came of that: %s", shorten(ev.Failure, 300))
		return
	}
	p.note(dim, "-- about %d tokens became %d; nothing is lost: the log keeps all", ev.Before, ev.After)
}

// sizeOf says how much an output holds.
func sizeOf(out item.Item) string {
	content, err := outputContent(out)
	if err != nil {
		return ""
	}
	if content.IsText() {
		return fmt.Sprintf("%d bytes of text", len(content.Text))
	}
	counts := map[string]int{}
	var order []string
	for _, part := range content.Parts {
		kind := strings.TrimPrefix(part.PartType(), "input_")
		if counts[kind]++; counts[kind] == 1 {
			order = append(order, kind)
		}
	}
	for i, kind := range order {
		order[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return strings.Join(order, ", ")
}

func outputContent(out item.Item) (item.Content, error) {
	if out.Type() == item.TypeCustomToolCallOutput {
		o, err := item.As[item.CustomToolCallOutput](out)
		if err != nil {
			return item.Content{}, err
		}
		return o.Output, nil
	}
	o, err := item.As[item.FunctionCallOutput](out)
	if err != nil {
		return item.Content{}, err
	}
	return o.Output, nil
}

// stopped prints the totals of a run that asked the model.
func (p *printer) stopped(ev agent.Stopped) {
	p.endLine()
	t := ev.Totals
	if t.Turns == 0 {
		return
	}
	line := fmt.Sprintf("%s, %s", plural(t.Turns, "turn"), plural(t.Calls, "call"))
	if p.failed > 0 {
		line += fmt.Sprintf(" (%d failed)", p.failed)
	}
	if t.RefusedCalls > 0 {
		line += fmt.Sprintf(", %d refused", t.RefusedCalls)
	}
	if t.TotalTokens > 0 {
		line += fmt.Sprintf(", %d tokens (%d in, %d cached, %d out)", t.TotalTokens, t.InputTokens, t.CachedTokens, t.OutputTokens)
	}
	line += ", " + duration(time.Since(p.began))
	if ev.Why != agent.Answered {
		line = strings.ReplaceAll(string(ev.Why), "_", " ") + ": " + line
	}
	p.note(dim, "-- %s", line)
}

// The colours of notes, as SGR parameters.
const (
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

// note prints a line on standard error.
func (p *printer) note(colour, format string, args ...any) {
	p.endLine()
	s := printable(fmt.Sprintf(format, args...))
	if p.colour {
		s = "\x1b[" + colour + "m" + s + "\x1b[0m"
	}
	fmt.Fprintln(p.err, s)
}

// shorten makes foreign text one line of at most limit characters, without
// control characters.
func shorten(s string, limit int) string {
	if cut := 4 * limit; len(s) > cut {
		s = strings.ToValidUTF8(s[:cut], "") + "…"
	}
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }), " ")
	if utf8.RuneCountInString(s) > limit {
		s = string([]rune(s)[:limit-1]) + "…"
	}
	return printable(s)
}

// printable leaves out what would steer a terminal: control characters but for
// line ends and tabs.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	if !strings.ContainsFunc(s, reorders) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if reorders(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// reorders reports a character that makes text look like another.
func reorders(r rune) bool {
	return unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

func duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, manyOf(noun))
}

// nested tells of the calls of a nested run, further to the right.
func (p *printer) nested(n agent.Nested) {
	in := strings.Repeat("   ", n.Depth)
	switch ev := n.Innermost().(type) {
	case agent.CallStarted:
		p.note(dim, "%s-> %s %s", in, ev.Tool, shorten(ev.Arguments, 100))
	case agent.CallRefused:
		p.note(yellow, "%s!! %s: %s", in, ev.Tool, shorten(ev.Reason, 1000))
	case agent.CallDone:
		if ev.Failed {
			p.note(yellow, "%s<- %s failed: %s", in, ev.Tool, shorten(ev.Error, 300))
		}
	}
}

// manyOf is a noun's plural.
func manyOf(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "ry"); ok {
		return stem + "ries"
	}
	return noun + "s"
}
