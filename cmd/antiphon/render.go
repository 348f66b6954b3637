// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Options say where a printer prints, and how. They may change between two events.
type Options struct {
	Out, Err io.Writer
	Colour   bool
	Look     look // of diffs
	Plain    bool // standard output is a terminal: remove control characters
	Hide     func(text string) string

	Waits   waits                  // shows what the run waits for
	Picture func(name, uri string) // shows an image; it may be nil
	Shows   bool                   // standard output shows control characters itself
	Watched bool                   // standard error is a terminal
	Quiet   bool                   // only warnings and errors are printed
	Whole   bool                   // show tool outputs in full
	Folds   bool                   // only the beginning of reasoning is printed
	Again   bool                   // what is printed happened before
	Over    bool                   // nobody else says why a run ended
	Mute    bool                   // do not print the model's text
	All     bool                   // in a log: also entries that only the loop needs
}

// printer shows events to a person at a terminal, in one of two layouts. During a
// run, the model's text goes to standard output as it arrives, and everything else
// to standard error. A log is shown on standard output, with one row per entry. The
// methods that print entries serve both layouts: note and tell print only during a
// run, and row prints only in a log. A printer is not safe for concurrent use.
type printer struct {
	Options
	began time.Time

	heard                      // of the session itself
	inner    map[string]*heard // of subagents, by session
	returned map[string]agent.Progress
	thought  string           // reasoning whose line has not ended
	thoughts int              // lines of reasoning
	midLine  bool             // the text on standard output has not ended its line
	spoke    bool             // the current message streamed text
	part     int              // index of that part
	refused  map[string]bool  // calls whose refusal was printed
	calling  map[string]bool  // calls whose start was printed, and which go on
	beside   bool             // two of them went on at once
	failed   int              // calls that ran and failed
	remark   string           // a remark on the last turn, printed if another turn follows
	differs  *session.Noticed // the message whose text differs from the printed one
	missing  *session.Noticed // the message missing at the reply's end
	totals   agent.Totals     // of the run

	rows    bool           // print a log in rows
	full    bool           // with full texts
	last    spokenEntry    // the model's last message
	parts   spokenEntry    // the message that the current reply continues
	lines   int            // number of lines printed
	unshown map[string]int // entries without a line, by their kind

	// writeErr is the first error of standard output, such as a closed pipe.
	writeErr error
}

// heard is the state read from a session's entries.
type heard struct {
	Calls agent.KnownCalls
	Setup session.Setup // the current setup
}

// spokenEntry is an assistant message and its entry.
type spokenEntry struct {
	seq  int64
	text string
}

// newPrinter returns a printer for a run.
func newPrinter(out, err io.Writer, env environment) *printer {
	return &printer{
		Options: Options{
			Out: out, Err: err, Colour: coloursOn(err, env), Plain: terminal(out), Hide: env.Hider(),
			Waits: (*screen)(nil), Watched: terminal(err),
		},
		began: time.Now(), refused: map[string]bool{}, inner: map[string]*heard{}, returned: map[string]agent.Progress{},
	}
}

// newLogPrinter returns a printer for a log.
func newLogPrinter(out, err io.Writer, env environment, full bool) *printer {
	return &printer{
		Options: Options{Out: out, Err: err, Waits: (*screen)(nil), Hide: env.Hider(), Colour: coloursOn(out, env)},
		rows:    true, full: full, unshown: map[string]int{},
	}
}

// coloursOn reports whether a stream is a terminal that shows colours.
func coloursOn(stream io.Writer, env environment) bool {
	return terminal(stream) && env["NO_COLOR"] == "" && env["TERM"] != "dumb"
}

// begin begins a run: what it used and how long it took is counted from now on.
func (p *printer) begin() {
	p.began, p.totals, p.failed, p.Over = time.Now(), agent.Totals{}, 0, false
}

// recall reads the entries from before the run, without showing them.
func (p *printer) recall(s *session.Session) {
	for e := range s.Entries() {
		p.passed(e)
	}
}

// passed reads an entry without showing it.
func (p *printer) passed(e session.Entry) {
	p.Calls.Add(e)
	p.Setup.Apply(e.Body)
}

// show prints one event. The error is standard output's.
func (p *printer) show(ev agent.Event) error {
	switch ev := ev.(type) {
	case agent.Recorded:
		p.entry(ev.Entry)
	case agent.Delta:
		p.delta(ev)
	case agent.Progress:
		p.progress(ev)
	case agent.SubagentEvent:
		p.subagent(ev)
	}
	return p.writeErr
}

func (p *printer) delta(d agent.Delta) {
	switch d.Kind {
	case agent.DeltaText, agent.DeltaRefusal:
		p.Waits.last(modelKey(""), "")
		if p.thought != "" || p.thoughts > 0 {
			p.reasoning("\n")
			p.thoughtOut()
		}
		if p.spoke && d.Part != p.part {
			p.text("\n") // as between the parts of a whole message
		}
		p.text(d.Text)
		p.spoke, p.part = true, d.Part
	case agent.DeltaReasoning, agent.DeltaSummary:
		p.reasoning(d.Text)
	}
}

func (p *printer) progress(ev agent.Progress) {
	switch ev.Kind {
	case agent.ProgressReturned:
		p.returned[ev.CallID] = ev
	case agent.ProgressCompacting:
		p.tell(dim, "-- making %s shorter, by %s: about %d tokens are too many", plural(ev.Items, "item"), ev.By, ev.Tokens)
		p.Waits.wait("compaction", "a shorter history")
	case agent.ProgressTotals:
		p.totals = *ev.Totals
	}
}

// entry prints an entry. In a log, entries that only a run needs are counted instead.
func (p *printer) entry(e session.Entry) {
	before := p.lines
	call, changed := p.Calls.Add(e), p.Setup.Apply(e.Body)
	if call == nil {
		call = new(agent.KnownCall)
	}
	switch b := e.Body.(type) {
	case session.InputItem, session.OutputItem, session.Note, session.CallOutput:
		p.said(e, call)
	case session.RunStarted, session.TurnStarted, session.TurnEnded, session.Stopped, session.Compacted, session.Noticed:
		p.went(e, changed)
	default:
		p.decided(e, b, call)
	}
	switch kind := session.Kind(e.Body); {
	case !p.rows || p.lines > before:
	case p.All:
		text, err := session.AppendEntry(nil, session.Entry{Seq: e.Seq, Body: e.Body})
		if err != nil {
			text = []byte(err.Error())
		}
		p.row(e.Seq, dim, strings.ReplaceAll(kind, "_", " "), string(text))
	default:
		p.unshown[kind]++
	}
}

// said prints entries that hold items.
func (p *printer) said(e session.Entry, call *agent.KnownCall) {
	switch b := e.Body.(type) {
	case session.InputItem:
		p.itemRow(e.Seq, b.Item, "")
	case session.OutputItem:
		if p.rows {
			p.receivedRow(e.Seq, b)
			return
		}
		p.reasoning("\n")
		p.thoughtOut()
		if name, ok := plan.EndpointCall(b.Item); ok {
			_, with := plan.CalledBy(b.Item)
			p.tell(dim, "-> %s (at the endpoint)", strings.TrimSpace(name+" "+aboutCall(string(with), p.Hide)))
		}
		p.message(b)
		if uri := generated(b.Item); uri != "" && p.Picture != nil {
			p.Picture("of the model", uri)
		}
	case session.Note:
		p.row(e.Seq, dim, "note", inWords(b.Item))
	case session.CallOutput:
		if b.Failed {
			p.row(e.Seq, red, "failed", inWords(b.Item))
		} else {
			p.row(e.Seq, green, "output", inWords(b.Item))
		}
		if !p.rows {
			p.answered(b, call)
		}
		p.rests(b.CallID)
	}
}

// went prints entries about the course of runs and turns.
func (p *printer) went(e session.Entry, changed bool) {
	switch b := e.Body.(type) {
	case session.RunStarted:
		p.setupRow(e.Seq, changed)
		p.calling, p.beside = nil, false
	case session.TurnStarted:
		if p.parts = (spokenEntry{}); b.Continues != 0 && b.Continues == p.last.seq {
			p.parts = p.last
		}
		p.setupRow(e.Seq, changed)
		p.Waits.wait(modelKey(""), asking(&p.Setup))
		if p.remark != "" {
			p.note(yellow, "%s", p.remark)
			p.remark = ""
		}
	case session.TurnEnded:
		p.row(e.Seq, dim, fmt.Sprintf("turn %d", b.Turn), turnInWords(b, &p.Setup, p.full))
		p.Waits.done(modelKey(""))
		p.endLine()
		p.differs, p.missing = nil, nil
		if b.Reason != "" { // the run's last line says why it ended
			p.remark = fmt.Sprintf("!! turn %d: %s: %s", b.Turn, b.Status, p.short(b.Reason, 300))
		}
	case session.Stopped:
		p.row(e.Seq, dim, "stopped", strings.ReplaceAll(b.Why, "_", " ")+colon(b.Detail))
		if p.remark != "" && p.Over {
			p.note(yellow, "%s", p.remark)
		}
		p.remark = ""
		if !p.rows {
			p.stopped(b)
		}
	case session.Compacted:
		p.Waits.done("compaction")
		if b.Failure != "" {
			p.row(e.Seq, red, "as it was", fmt.Sprintf("not compacted by %s: %s", b.By, b.Failure))
			p.note(yellow, "!! that failed: %s", p.short(b.Failure, 300))
			return
		}
		p.row(e.Seq, yellow, "compacted", fmt.Sprintf("up to entry %d, by %s: about %d tokens became %d", b.Through, b.By, b.Before, b.After))
		p.tell(dim, "-- about %d tokens became %d; nothing is lost: the log keeps all", b.Before, b.After)
	case session.Noticed:
		p.row(e.Seq, yellow, "notice", b.Text)
		if internalNotice(b.Kind) {
			return
		}
		p.note(yellow, "!! %s", p.short(b.Text, 1000))
		switch b.Kind {
		case session.NoticeTextDiffers:
			p.differs = &b
		case session.NoticeItemMissing:
			p.missing = &b
		}
	}
}

const (
	// atTerminal is where a verdict comes from if the person was asked at this terminal, and so has seen the call.
	atTerminal = "terminal"
	// noticeFiles is the kind of the notices by which a chat remembers which files a call changed.
	noticeFiles = "files_changed"
)

// internalNotice reports whether only the loop needs a notice. It is not shown to a
// person who watches a run.
func internalNotice(kind string) bool {
	return kind == session.NoticeJudged || kind == noticeFiles || kind == session.NoticeStoppedByPerson
}

// decided prints entries about calls and decisions.
func (p *printer) decided(e session.Entry, body session.Body, call *agent.KnownCall) {
	switch b := body.(type) {
	case session.ApprovalAsked:
		p.row(e.Seq, yellow, "asked", b.Tool+" "+b.Arguments)
	case session.Approval:
		colour := yellow
		if b.Allowed && b.By == "" {
			colour = dim
		}
		p.row(e.Seq, colour, "verdict", verdictOf(b))
		if b.Remember != nil {
			p.row(e.Seq, yellow, "rule", "remembered: "+b.Remember.String())
		}
		if !b.Allowed {
			p.note(yellow, "!! %s: %s", call.Tool, p.short(b.Reason, 1000))
			p.noteRefused(b.CallID)
		}
	case session.CallStarted:
		p.called(b.CallID, call, "")
	case session.SubagentUsage:
		p.row(e.Seq, dim, "nested", fmt.Sprintf("%s: %s, %d tokens", cmp.Or(b.Session, "guards, or beside the conversation"), plural(b.Turns, "turn"), b.Tokens))
	case session.Paused:
		p.rests(b.CallID)
	case session.CallDropped:
		p.row(e.Seq, yellow, "withdrawn", b.Reason)
	case session.ItemsWithdrawn:
		p.row(e.Seq, yellow, "withdrawn", strings.TrimPrefix(fmt.Sprintf("%s: entries %v: %s", b.By, b.Seqs, b.Reason), ": "))
		p.note(yellow, "!! withdrawn, and not sent any more: %s", p.short(b.Reason, 300))
	case session.ReasoningDropped:
		p.row(e.Seq, yellow, "dropped", "the reasoning before: "+b.Reason)
		p.note(yellow, "asking again without the earlier reasoning: %s", p.short(b.Reason, 300))
	case session.Quarantined:
		row, what := fmt.Sprintf("entry %d", b.Seq), "one item"
		if b.Member != "" {
			row, what = fmt.Sprintf("%s of entry %d", b.Member, b.Seq), "the member "+p.short(b.Member, 50)+" of one item"
		}
		p.row(e.Seq, yellow, "quarantine", row+": "+b.Reason)
		p.note(yellow, "asking again without %s, which the endpoint refused: %s", what, p.short(b.Reason, 300))
	case session.Restored:
		p.row(e.Seq, yellow, "restored", fmt.Sprintf("what entry %d replaced", b.Seq))
	case session.Collapsed:
		p.row(e.Seq, dim, "collapsed", fmt.Sprintf("%s, repeated by entry %d", plural(len(b.Seqs), "read"), b.By))
	case session.Delivered:
		text := strings.TrimSpace(session.DecidedBy(b.By, b.From, ""))
		if b.Problem != "" {
			text += ", without effect: " + b.Problem
		}
		p.row(e.Seq, dim, "delivered", text)
		p.note(dim, "-- delivered %s", p.short(text, 300))
	case session.Superseded:
		p.row(e.Seq, dim, "superseded", fmt.Sprintf("%s, said again from the beginning by entry %d", entriesOf(b.Seqs), b.By))
	}
}

func (p *printer) noteRefused(callID string) {
	if !p.rows {
		p.refused[callID] = true
	}
}

// subagent prints the calls of a subagent, indented.
func (p *printer) subagent(n agent.SubagentEvent) {
	of := p.inner[n.Session]
	if of == nil {
		of = new(heard)
		p.inner[n.Session] = of
	}
	ev, ok := n.Event.(agent.Recorded)
	if !ok {
		return
	}
	call := of.Calls.Add(ev.Entry)
	of.Setup.Apply(ev.Body)
	if call == nil {
		call = &agent.KnownCall{Tool: "a call of an earlier run"}
	}
	in := strings.Repeat("   ", n.Depth)
	switch b := ev.Body.(type) {
	case session.TurnStarted:
		p.Waits.wait(modelKey(n.Session), asking(&of.Setup))
	case session.TurnEnded:
		p.Waits.done(modelKey(n.Session))
	case session.Approval:
		if !b.Allowed {
			p.note(yellow, "%s!! %s: %s", in, call.Tool, p.short(b.Reason, 1000))
		}
	case session.CallStarted:
		p.called(b.CallID, call, in)
	case session.Paused:
		p.rests(b.CallID)
	case session.CallOutput:
		if b.Failed {
			p.note(yellow, "%s<- %s failed: %s", in, p.ended(b.CallID, call), p.short(failureOf(b.Item), 300))
		}
		p.rests(b.CallID)
	case session.Noticed:
		if !internalNotice(b.Kind) {
			p.note(yellow, "%s!! %s", in, p.short(b.Text, 1000))
		}
	case session.Stopped:
		delete(p.inner, n.Session)
	}
}

// called prints that a call was started, behind in.
func (p *printer) called(id string, call *agent.KnownCall, in string) {
	row := strings.TrimSpace(call.Tool + " " + aboutCall(call.Arguments, p.Hide))
	p.tell(dim, "%s-> %s", in, row)
	p.Waits.wait(callKey(id), row)
	if p.calling == nil {
		p.calling = map[string]bool{}
	}
	p.beside = p.beside || len(p.calling) > 0
	p.calling[id] = true
}

// ended returns what the row of a call's end names: the tool, and what the call works on if others
// went on beside it.
func (p *printer) ended(id string, call *agent.KnownCall) string {
	row := call.Tool
	if p.beside && p.calling[id] {
		row = strings.TrimSpace(row + " " + aboutCall(call.Arguments, p.Hide))
	}
	p.rests(id)
	return row
}

// rests says that a call does not go on.
func (p *printer) rests(id string) {
	p.Waits.done(callKey(id))
	delete(p.calling, id)
	p.beside = p.beside && len(p.calling) > 0
}

func (p *printer) text(s string) {
	if p.Plain && !p.Shows {
		s = printable(s)
	}
	if s == "" || p.Mute {
		return
	}
	if _, err := io.WriteString(p.Out, s); err != nil && p.writeErr == nil {
		p.writeErr = err
	}
	p.midLine = !strings.HasSuffix(s, "\n")
}

// endLine ends the line of the model's text, unless it has ended.
func (p *printer) endLine() {
	if p.midLine {
		p.text("\n")
	}
}

// drop ends the line of a text that arrived in pieces and became no entry. The next message is printed in
// full.
func (p *printer) drop() {
	p.endLine()
	p.spoke = false
}

// failure returns the first error of standard output.
func (p *printer) failure() error { return p.writeErr }

// message ends a message's line. It prints a message that arrived without deltas, or
// with different ones; standard output then has both texts, and ends with the correct
// one.
func (p *printer) message(b session.OutputItem) {
	m, err := item.As[item.Message](b.Item)
	if err != nil {
		return
	}
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
	if b.Partial && (p.missing == nil || p.missing.ItemID != m.ID) {
		p.note(yellow, "!! the reply broke off here")
	}
}

// answered prints the outcome of a call of the run.
func (p *printer) answered(b session.CallOutput, call *agent.KnownCall) {
	if !call.Ran && p.refused[b.CallID] {
		return // already printed
	}
	done, timed := p.returned[b.CallID]
	delete(p.returned, b.CallID)
	took, failure := "", failureOf(b.Item)
	if timed {
		took, failure = " "+duration(done.Took), done.Error
	}
	if b.Failed {
		if call.Ran {
			p.failed++
		}
		p.note(red, "<- %s%s failed: %s%s", p.ended(b.CallID, call), took, p.short(failure, 200), leftOut(done))
	} else {
		p.tell(green, "<- %s%s %s%s", p.ended(b.CallID, call), took, sizeOf(b.Item), leftOut(done))
		p.change(call)
	}
	p.output(b.Item, call, b.Failed)
	if content, err := outputContent(b.Item); err == nil && p.Picture != nil {
		picturesIn(content.Parts, func(uri string) { p.Picture("of "+call.Tool, uri) })
	}
}

// maxTail is the number of lines shown of an output, unless all are requested.
const maxTail = 3

// output shows a tool's output: its end on a terminal, or all of it if requested; of a folder, the
// beginning as a tree. For a failed call it shows the text after the error, which explains the failure if
// the error is an exit code.
func (p *printer) output(out item.Item, call *agent.KnownCall, failed bool) {
	content, err := outputContent(out)
	if err != nil || p.Quiet || !p.Whole && !p.Watched {
		return
	}
	text := content.Display()
	if failed && out.Type() != item.TypeShellCallOutput { // a shell output has no separate error
		_, text, _ = strings.Cut(text, "\n\noutput:\n")
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return
	}
	if !failed && slices.Contains(listings, call.Tool) {
		p.tree(lines)
		return
	}
	if hidden := len(lines) - maxTail; !p.Whole && hidden > 0 {
		lines = lines[hidden:]
		p.tell(dim, "   | … %s above, which %s shows", plural(hidden, "line"), p.opens())
	}
	for _, line := range lines {
		if line = visible(strings.TrimRight(p.Hide(line), "\r")); !p.Whole {
			line = clipped(line, 140)
		}
		p.tell(dim, "   | %s", line)
	}
}

// clipped returns at most limit characters of a line. Unlike [shorten] it leaves blanks as they are.
func clipped(line string, limit int) string {
	n := 0
	for i := range line {
		if n++; n > limit {
			return line[:i] + "…"
		}
	}
	return line
}

// listings are the tools whose output is what a folder has.
var listings = []string{"read_directory", "read_dir"}

// mostListed is the number of entries shown of a folder, unless all are requested.
const mostListed = 12

// tree shows what a folder has.
func (p *printer) tree(lines []string) {
	more := 0
	if !p.Whole && len(lines) > mostListed {
		lines, more = lines[:mostListed], len(lines)-mostListed
	}
	for i, line := range lines {
		branch := "├ "
		if i == len(lines)-1 && more == 0 {
			branch = "└ "
		}
		p.tell(dim, "   %s%s", branch, shorten(visible(p.Hide(line)), 140))
	}
	if more > 0 {
		p.tell(dim, "   └ … %d more, which %s shows", more, p.opens())
	}
}

// opens names what shows all of a call.
func (p *printer) opens() string {
	if p.Shows {
		return "Ctrl-O"
	}
	return "--show-output"
}

// mostChanged is the number of lines shown of the change that a call made, unless all are
// requested.
const mostChanged = 16

// change shows the change of files that a call made, unless the person has just seen it in the
// question about the call.
func (p *printer) change(call *agent.KnownCall) {
	if p.Quiet || !p.Whole && !p.Watched {
		return
	}
	if v := call.Verdict; !p.Again && v != nil && v.From == atTerminal && !call.Edited {
		return
	}
	arguments := p.Hide(call.Arguments)
	lines := changeOf(arguments)
	if lines == nil {
		lines = writtenTo(arguments)
	}
	more := 0
	if !p.Whole && len(lines) > mostChanged {
		lines, more = lines[:mostChanged], len(lines)-mostChanged
	}
	for _, l := range lines {
		if !p.Whole {
			if cut := head(l.text, 140); cut != l.text {
				l.text = cut + "…"
			}
		}
		for _, row := range l.rows(math.MaxInt, p.Look) {
			p.line(row)
		}
	}
	if more > 0 {
		p.tell(dim, "   | … %s more, which %s shows", plural(more, "line"), p.opens())
	}
}

// reasoning shows reasoning, or its summary, line by line as it arrives. An
// unfinished line is shown in the screen's status line.
func (p *printer) reasoning(text string) {
	if !p.Watched || p.Quiet {
		return
	}
	p.thought += text
	for {
		line, rest, ended := strings.Cut(p.thought, "\n")
		if !ended {
			break
		}
		p.thought = rest
		if line = strings.TrimSpace(visible(line)); line == "" {
			continue
		}
		if p.thoughts++; !p.Folds || p.thoughts <= mostThoughts {
			p.tell(dim, "   %s", line)
		}
	}
	p.Waits.last(modelKey(""), newest(p.Hide(p.thought)))
}

// mostThoughts is the number of lines shown of reasoning that is folded.
const mostThoughts = 3

// thoughtOut says how much of the reasoning is not shown, when it is over.
func (p *printer) thoughtOut() {
	if more := p.thoughts - mostThoughts; p.Folds && more > 0 {
		p.tell(dim, "   … %s of reasoning, which --show-output shows", plural(more, "more line"))
	}
	p.thoughts = 0
}

// stopped prints the totals of a run that asked the model.
func (p *printer) stopped(b session.Stopped) {
	p.endLine()
	t := p.totals
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
	line += usedText(t.All(), t.Nested, tokens{t.InputTokens, t.CachedTokens, t.OutputTokens, t.TotalTokens})
	line += ", " + duration(time.Since(p.began))
	if b.Why != string(agent.StopEndTurn) {
		line = strings.ReplaceAll(b.Why, "_", " ") + ": " + line
	}
	p.tell(dim, "-- %s", line)
}

// receivedRow prints an item of the model. If a reply continues one that broke off
// and repeats its text, only the rest is printed.
func (p *printer) receivedRow(seq int64, b session.OutputItem) {
	mark := ""
	if b.Partial {
		mark = "(broke off) "
	}
	if b.Item.Type() != item.TypeMessage {
		p.itemRow(seq, b.Item, mark)
		return
	}
	text := inWords(b.Item)
	p.last = spokenEntry{seq, text}
	if before := p.parts; before.seq != 0 {
		p.parts = spokenEntry{}
		mark += fmt.Sprintf("(continues entry %d) ", before.seq)
		if rest, again := behind(text, before.text); again {
			text = "… " + rest
		}
	}
	p.row(seq, bold, string(b.Item.Role()), mark+text)
}

func (p *printer) itemRow(seq int64, it item.Item, mark string) {
	colour, what := dim, string(it.Type())
	switch {
	case it.Type() == item.TypeMessage:
		colour, what = bold, string(it.Role())
	case it.Type() == item.TypeReasoning:
	case it.IsCall():
		colour, what = yellow, "call"
	case it.IsOutput():
		colour, what = green, "output"
	}
	if p.rows {
		p.row(seq, colour, what, mark+inWords(it))
	}
}

func (p *printer) setupRow(seq int64, changed bool) {
	if changed && p.rows {
		p.row(seq, dim, "setup", setupInWords(&p.Setup, p.full))
	}
}

// unshownEntries lists the kinds of entries without a row, to explain gaps in the
// numbers.
func (p *printer) unshownEntries() {
	n := 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(p.unshown)) {
		n += p.unshown[kind]
		kinds = append(kinds, fmt.Sprintf("%d %s", p.unshown[kind], strings.ReplaceAll(kind, "_", " ")))
	}
	if n > 0 {
		are := "are"
		if n == 1 {
			are = "is"
		}
		fmt.Fprintf(p.Err, "antiphon: %s that only a run needs %s not shown (%s); --all shows all\n", plural(n, "entry"), are, strings.Join(kinds, ", "))
	}
}

// The colours of notes, as SGR parameters.
const (
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

// row prints a row of a log: the entry's number, a word for its kind, and its text.
func (p *printer) row(seq int64, colour, what, text string) {
	if !p.rows || p.writeErr != nil {
		return
	}
	p.lines++
	text = p.Hide(text)
	if p.full {
		text = strings.ReplaceAll(strings.TrimRight(printable(text), "\n"), "\n", "\n"+strings.Repeat(" ", 21))
	} else {
		text = shorten(text, 110)
	}
	what = fmt.Sprintf("%-12s", shorten(what, 30))
	if p.Colour && colour != "" {
		what = "\x1b[" + colour + "m" + what + "\x1b[0m"
	}
	_, p.writeErr = fmt.Fprintf(p.Out, "%6d  %s %s\n", seq, what, text)
}

// tell prints a note that a quiet run leaves out.
func (p *printer) tell(colour, format string, args ...any) {
	if !p.Quiet {
		p.note(colour, format, args...)
	}
}

// note prints a line about a run on standard error. If standard output is a terminal
// too, note first ends the line of text there; piped output contains only the model's
// own bytes.
func (p *printer) note(colour, format string, args ...any) {
	if p.rows {
		return
	}
	s := unbroken(p.Hide(fmt.Sprintf(format, args...)))
	if p.Colour {
		s = "\x1b[" + colour + "m" + s + "\x1b[0m"
	}
	p.line(s)
}

// line prints a line that is ready for the terminal on standard error.
func (p *printer) line(s string) {
	if p.Plain {
		p.endLine()
	}
	fmt.Fprintln(p.Err, s)
}

// short returns foreign text on one line, without the keys of the environment. Keys
// are hidden before the text is cut, because part of a key would not be found.
func (p *printer) short(s string, limit int) string { return shorten(p.Hide(s), limit) }
