// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// printer shows a run to a person: the model's text on standard output as it
// comes, everything else on standard error.
type printer struct {
	out, err io.Writer
	colour   bool
	plain    bool // standard output is a terminal, which control characters would steer
	hide     func(text string) string
	began    time.Time

	screen  *screen
	watched bool   // somebody looks at standard error
	quiet   bool   // only warnings and errors are printed
	whole   bool   // outputs of tools are shown whole
	asked   string // the model and its host
	thought string // reasoning whose line has not ended

	midLine bool            // the text on standard output has not ended its line
	spoke   bool            // the current message streamed text
	part    int             // of which part
	refused map[string]bool // calls whose refusal was printed
	failed  int             // calls that ran and failed
	remark  string          // a remark on the last turn, told if another follows
	differs *agent.Noticed  // the message whose text is another one than what was printed
	missing *agent.Noticed  // the message that the reply's end lacks
	// writeErr is the first error of standard output, such as a closed pipe.
	writeErr error
}

func newPrinter(std stdio, env environment) *printer {
	colour := terminal(std.err) && env["NO_COLOR"] == "" && env["TERM"] != "dumb"
	return &printer{
		out: std.out, err: std.err, colour: colour, plain: terminal(std.out), hide: env.Hide,
		began: time.Now(), refused: map[string]bool{}, watched: terminal(std.err),
	}
}

// show prints one event. The error is that of standard output.
func (p *printer) show(ev agent.Event) error {
	p.follow("", ev)
	switch ev := ev.(type) {
	case agent.TurnStarted:
		if p.remark != "" {
			p.note(yellow, "%s", p.remark)
			p.remark = ""
		}
	case agent.TextDelta:
		if p.spoke && ev.Part != p.part {
			p.text("\n") // as between the parts of a whole message
		}
		p.text(ev.Text)
		p.spoke, p.part = true, ev.Part
	case agent.ReasoningDelta:
		p.reasoning(ev.Text)
	case agent.ItemDone:
		p.reasoning("\n")
		p.itemDone(ev)
	case agent.CallStarted:
		p.tell(dim, "-> %s %s", ev.Tool, p.short(ev.Arguments, 100))
	case agent.Nested:
		p.nested(ev)
	case agent.ReasoningDropped:
		p.note(yellow, "asking again without the earlier reasoning: %s", p.short(ev.Reason, 300))
	case agent.ItemsWithdrawn:
		p.note(yellow, "!! withdrawn, and not sent any more: %s", p.short(ev.Reason, 300))
	case agent.Quarantined:
		what := "one item"
		if ev.Member != "" {
			what = "the member " + p.short(ev.Member, 50) + " of one item"
		}
		p.note(yellow, "asking again without %s, which the endpoint refused: %s", what, p.short(ev.Reason, 300))
	case agent.Noticed:
		p.note(yellow, "!! %s", p.short(ev.Text, 1000))
		switch ev.Kind {
		case session.NoticeTextDiffers:
			p.differs = &ev
		case session.NoticeItemMissing:
			p.missing = &ev
		}
	case agent.Compacting:
		p.tell(dim, "-- making %s shorter, by %s: about %d tokens are too many", plural(ev.Items, "item"), ev.By, ev.Tokens)
	case agent.Compacted:
		p.compacted(ev)
	case agent.CallRefused:
		p.refused[ev.CallID] = true
		p.note(yellow, "!! %s: %s", ev.Tool, p.short(ev.Reason, 1000))
	case agent.CallDone:
		p.callDone(ev)
	case agent.TurnEnded:
		p.endLine()
		p.differs, p.missing = nil, nil
		if ev.Reason != "" { // what ends the run is told by its last line
			p.remark = fmt.Sprintf("!! turn %d: %s: %s", ev.Turn, ev.Status, p.short(ev.Reason, 300))
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
// deltas, or with the wrong ones: then standard output has both texts, and the
// right one at its end.
func (p *printer) itemDone(ev agent.ItemDone) {
	if m, err := item.As[item.Message](ev.Item); err == nil {
		again := p.differs != nil && (p.differs.ItemID == "" || p.differs.ItemID == m.ID)
		if again {
			p.note(yellow, "!! the whole text, as it is kept:")
			p.endLine()
			p.differs = nil
		}
		if !p.spoke || again {
			p.text(m.Content.Display())
		}
		p.spoke = false
		p.endLine()
		if ev.Partial && (p.missing == nil || p.missing.ItemID != m.ID) {
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
		p.note(red, "<- %s%s failed: %s%s", ev.Tool, took, p.short(ev.Error, 200), leftOut(ev))
	} else {
		p.tell(green, "<- %s%s %s%s", ev.Tool, took, sizeOf(ev.Item), leftOut(ev))
	}
	p.output(ev.Item, ev.Failed)
}

// maxTail is how many lines of an output are shown unless all are asked for.
const maxTail = 3

// output shows what a tool put out: the end of it to who looks, all of it where
// that was asked for. Of a call that failed it is what follows the error, which
// says what went wrong where the error is an exit code.
func (p *printer) output(out item.Item, failed bool) {
	content, err := outputContent(out)
	if err != nil || p.quiet || !p.whole && !p.watched {
		return
	}
	text := content.Display()
	if failed && out.Type() != item.TypeShellCallOutput { // which has no error beside it
		_, text, _ = strings.Cut(text, "\n\noutput:\n")
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return
	}
	if hidden := len(lines) - maxTail; !p.whole && hidden > 0 {
		lines = lines[hidden:]
		p.tell(dim, "   | … %s above, which --show-output shows", plural(hidden, "line"))
	}
	for _, line := range lines {
		if line = visible(strings.TrimRight(p.hide(line), "\r")); !p.whole {
			line = shorten(line, 140)
		}
		p.tell(dim, "   | %s", line)
	}
}

// reasoning shows reasoning, or its summary, line by line as it comes. What has
// not ended its line stands in the line of the screen.
func (p *printer) reasoning(text string) {
	if !p.watched || p.quiet {
		return
	}
	p.thought += text
	for {
		line, rest, ended := strings.Cut(p.thought, "\n")
		if !ended {
			break
		}
		p.thought = rest
		if line = strings.TrimSpace(visible(line)); line != "" {
			p.tell(dim, "   %s", line)
		}
	}
	p.screen.last(modelKey(""), newest(p.hide(p.thought)))
}

// newest is the end of a long thought: its beginning has been seen.
func newest(thought string) string {
	const most = 40
	words := []rune(strings.TrimRight(thought, " "))
	if len(words) <= most {
		return thought
	}
	return "… " + string(words[len(words)-most:])
}

// follow keeps the screen's line about what is being waited for.
func (p *printer) follow(session string, ev agent.Event) {
	switch ev := ev.(type) {
	case agent.TurnStarted:
		if s := ev.Setup; s != nil {
			p.asked = asking(s.Model, s.Endpoint)
			if s.Rehearsal {
				p.asked = "the rehearsal"
			}
		}
		p.screen.wait(modelKey(session), p.asked)
	case agent.TextDelta:
		p.screen.last(modelKey(session), "")
	case agent.TurnEnded:
		p.screen.done(modelKey(session))
	case agent.CallStarted:
		p.screen.wait(callKey(ev.CallID), ev.Tool)
	case agent.CallDone:
		p.screen.done(callKey(ev.CallID))
	case agent.CallPaused:
		p.screen.done(callKey(ev.CallID))
	case agent.Compacting:
		p.screen.wait("compaction", "a shorter history")
	case agent.Compacted:
		p.screen.done("compaction")
	case agent.Nested:
		p.follow(ev.Session, ev.Innermost())
	}
}

// tell prints a note that a quiet run leaves out.
func (p *printer) tell(colour, format string, args ...any) {
	if !p.quiet {
		p.note(colour, format, args...)
	}
}

func (p *printer) compacted(ev agent.Compacted) {
	if ev.Failure != "" {
		p.note(yellow, "!! that failed: %s", p.short(ev.Failure, 300))
		return
	}
	p.tell(dim, "-- about %d tokens became %d; nothing is lost: the log keeps all", ev.Before, ev.After)
}

// leftOut says how much more there was than the model gets.
func leftOut(ev agent.CallDone) string {
	switch {
	case ev.LeftOut == 0 || ev.Tool == tool.ReadOutputName: // a page of what is kept
		return ""
	case len(ev.Kept) == 0:
		return fmt.Sprintf(", %d bytes were left out and not kept", ev.LeftOut)
	}
	return fmt.Sprintf(", %d bytes were left out and are kept", ev.LeftOut)
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
	body, err := out.Decode()
	switch o := body.(type) {
	case *item.FunctionCallOutput:
		return o.Output, err
	case *item.CustomToolCallOutput:
		return o.Output, err
	case *item.LocalShellCallOutput:
		return item.Text(o.Output), err
	case *item.ApplyPatchCallOutput:
		return item.Text(o.Output), err
	case *item.ShellCallOutput:
		return item.Text(shellText(o.Output)), err
	}
	return item.Content{}, cmp.Or(err, fmt.Errorf("%s has no text", out.Type()))
}

// shellText is what commands wrote, and how they ended unless all was well.
func shellText(outputs []item.ShellOutput) string {
	var b strings.Builder
	line := func(text string) {
		if b.WriteString(text); text != "" && !strings.HasSuffix(text, "\n") {
			b.WriteByte('\n')
		}
	}
	for _, o := range outputs {
		line(o.Stdout)
		line(o.Stderr)
		switch end := o.Outcome; {
		case end == nil:
		case end.ExitCode == nil:
			line("(" + end.Type + ")")
		case *end.ExitCode != 0:
			line(fmt.Sprintf("(exit code %d)", *end.ExitCode))
		}
	}
	return b.String()
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
	line += usedText(ev.All, t.Nested, tokens{t.InputTokens, t.CachedTokens, t.OutputTokens, t.TotalTokens})
	line += ", " + duration(time.Since(p.began))
	if ev.Why != agent.Answered {
		line = strings.ReplaceAll(string(ev.Why), "_", " ") + ": " + line
	}
	p.tell(dim, "-- %s", line)
}

// usedText says what was used, nested runs included, and what it cost where
// prices are known.
func usedText(all, nested agent.Spent, own tokens) string {
	text := ""
	if all.Tokens > 0 {
		text = fmt.Sprintf(", %d tokens (%d in, %d cached, %d out", all.Tokens, own.Input, own.Cached, own.Output)
		if nested.Tokens > 0 {
			text += fmt.Sprintf(", %d in %s of nested runs", nested.Tokens, plural(nested.Turns, "turn"))
		}
		text += ")"
	}
	if all.Cost > 0 {
		text += fmt.Sprintf(", cost %.6g", all.Cost)
	}
	return text
}

// The colours of notes, as SGR parameters.
const (
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

// note prints a line on standard error. Where standard output is a terminal too, the
// text there ends its line; what is piped gets no byte that the model did not say.
func (p *printer) note(colour, format string, args ...any) {
	if p.plain {
		p.endLine()
	}
	s := unbroken(p.hide(fmt.Sprintf(format, args...)))
	if p.colour {
		s = "\x1b[" + colour + "m" + s + "\x1b[0m"
	}
	fmt.Fprintln(p.err, s)
}

// short is foreign text in one line, without the keys of the environment: they are
// hidden before it is cut, for what a cut leaves of one would not be found.
func (p *printer) short(s string, limit int) string { return shorten(p.hide(s), limit) }

// shorten makes foreign text one line of at most limit characters, without
// control characters.
func shorten(s string, limit int) string {
	if most := 4 * limit; len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
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

// unbroken is what has texts by others in it as one line: none of them can begin
// a line that looks like one of ours.
func unbroken(s string) string {
	return printable(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(s))
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
		p.tell(dim, "%s-> %s %s", in, ev.Tool, p.short(ev.Arguments, 100))
	case agent.CallRefused:
		p.note(yellow, "%s!! %s: %s", in, ev.Tool, p.short(ev.Reason, 1000))
	case agent.Noticed:
		p.note(yellow, "%s!! %s", in, p.short(ev.Text, 1000))
	case agent.CallDone:
		if ev.Failed {
			p.note(yellow, "%s<- %s failed: %s", in, ev.Tool, p.short(ev.Error, 300))
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
