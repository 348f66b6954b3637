// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Options say where a printer prints, and how. They may change between two events.
type Options struct {
	Out, Err io.Writer
	Colour   bool
	Look     Look // of diffs
	Plain    bool // standard output is a terminal: remove control characters
	Hide     func(text string) string

	Waits   Waits                  // shows what the run waits for
	Picture func(name, uri string) // shows an image; it may be nil
	Shows   bool                   // standard output shows control characters itself
	Watched bool                   // standard error is a terminal
	Quiet   bool                   // only warnings and errors are printed
	Whole   bool                   // show tool outputs in full
	Folds   bool                   // only the beginning of reasoning is printed
	Again   bool                   // what is printed happened before
	Hears   bool                   // print what others say to the run
	Over    bool                   // nobody else says why a run ended
	Mute    bool                   // do not print the model's text
	All     bool                   // in a log: also entries that only the loop needs
}

// Printer shows events to a person at a terminal, in one of two layouts. During a
// run, the model's text goes to standard output as it arrives, and everything else
// to standard error. A log is shown on standard output, with one row per entry. The
// methods that print entries serve both layouts: Note and Tell print only during a
// run, and Row prints only in a log. A printer is not safe for concurrent use.
type Printer struct {
	Options
	began time.Time

	heard                       // of the session itself
	inner     map[string]*heard // of subagents, by session
	returned  map[string]agent.Progress
	thought   string           // reasoning whose line has not ended
	thoughts  int              // lines of reasoning
	midLine   bool             // the text on standard output has not ended its line
	spoke     bool             // the current message streamed text
	part      int              // index of that part
	refused   map[string]bool  // calls whose refusal was printed
	calling   map[string]bool  // calls whose start was printed, and which go on
	beside    bool             // two of them went on at once
	failed    int              // calls that ran and failed
	delivered int              // entries that follow of a delivery
	remark    string           // a remark on the last turn, printed if another turn follows
	differs   *session.Noticed // the message whose text differs from the printed one
	missing   *session.Noticed // the message missing at the reply's end
	totals    agent.Totals     // of the run

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

// NewPrinter returns a printer for a run.
func NewPrinter(out, err io.Writer, env host.Environment) *Printer {
	return &Printer{
		Options: Options{
			Out: out, Err: err, Colour: coloursOn(err, env), Plain: IsTerminal(out), Hide: env.Hider(),
			Waits: (*Screen)(nil), Watched: IsTerminal(err),
		},
		began: time.Now(), refused: map[string]bool{}, inner: map[string]*heard{}, returned: map[string]agent.Progress{},
	}
}

// coloursOn reports whether a stream is a terminal that shows colours.
func coloursOn(stream io.Writer, env host.Environment) bool {
	return IsTerminal(stream) && env["NO_COLOR"] == "" && env["TERM"] != "dumb"
}

// Begin begins a run: what it used and how long it took is counted from now on.
func (p *Printer) Begin() {
	p.began, p.totals, p.failed, p.Over = time.Now(), agent.Totals{}, 0, false
}

// Recall reads the entries from before the run, without showing them.
func (p *Printer) Recall(s *session.Session) {
	for e := range s.Entries() {
		p.Passed(e)
	}
}

// Passed reads an entry without showing it.
func (p *Printer) Passed(e session.Entry) {
	p.Calls.Add(e)
	p.Setup.Apply(e.Body)
}

// Show prints one event. The error is standard output's.
func (p *Printer) Show(ev agent.Event) error {
	switch ev := ev.(type) {
	case agent.Recorded:
		p.Entry(ev.Entry)
	case agent.Delta:
		p.delta(ev)
	case agent.Progress:
		p.progress(ev)
	case agent.SubagentEvent:
		p.subagent(ev)
	}
	return p.writeErr
}

func (p *Printer) delta(d agent.Delta) {
	switch d.Kind {
	case agent.DeltaText, agent.DeltaRefusal:
		p.Waits.Last(modelKey(""), "")
		if p.thought != "" || p.thoughts > 0 {
			p.reasoning("\n")
			p.thoughtOut()
		}
		if p.spoke && d.Part != p.part {
			p.Text("\n") // as between the parts of a whole message
		}
		p.Text(d.Text)
		p.spoke, p.part = true, d.Part
	case agent.DeltaReasoning, agent.DeltaSummary:
		p.reasoning(d.Text)
	}
}

func (p *Printer) progress(ev agent.Progress) {
	switch ev.Kind {
	case agent.ProgressReturned:
		p.returned[ev.CallID] = ev
	case agent.ProgressCompacting:
		p.Tell(Dim, "-- making %s shorter, by %s: about %d tokens are too many", Plural(ev.Items, "item"), ev.By, ev.Tokens)
		p.Waits.Wait("compaction", "a shorter history")
	case agent.ProgressTotals:
		p.totals = *ev.Totals
	}
}

// Entry prints an entry. In a log, entries that only a run needs are counted instead.
func (p *Printer) Entry(e session.Entry) {
	before := p.lines
	defer func() { p.delivered = max(0, p.delivered-1) }()
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
		p.Row(e.Seq, Dim, strings.ReplaceAll(kind, "_", " "), string(text))
	default:
		p.unshown[kind]++
	}
}

// said prints entries that hold items.
func (p *Printer) said(e session.Entry, call *agent.KnownCall) {
	switch b := e.Body.(type) {
	case session.InputItem:
		p.itemRow(e.Seq, b.Item, "")
		if m, err := item.As[item.Message](b.Item); err == nil && p.Hears && p.delivered > 0 && !b.Own {
			p.Tell(Dim, "<< %s", p.Short(m.Content.Display(), 1000))
		}
	case session.OutputItem:
		if p.rows {
			p.receivedRow(e.Seq, b)
			return
		}
		p.reasoning("\n")
		p.thoughtOut()
		if name, ok := plan.EndpointCall(b.Item); ok {
			_, with := plan.CalledBy(b.Item)
			p.Tell(Dim, "-> %s (at the endpoint)", strings.TrimSpace(name+" "+AboutCall(string(with), p.Hide)))
		}
		p.message(b)
		if uri := generated(b.Item); uri != "" && p.Picture != nil {
			p.Picture("of the model", uri)
		}
	case session.Note:
		p.Row(e.Seq, Dim, "note", InWords(b.Item))
	case session.CallOutput:
		if b.Failed {
			p.Row(e.Seq, Red, "failed", InWords(b.Item))
		} else {
			p.Row(e.Seq, Green, "output", InWords(b.Item))
		}
		if !p.rows {
			p.answered(b, call)
		}
		p.rests(b.CallID)
	}
}

// went prints entries about the course of runs and turns.
func (p *Printer) went(e session.Entry, changed bool) {
	switch b := e.Body.(type) {
	case session.RunStarted:
		p.setupRow(e.Seq, changed)
		p.calling, p.beside = nil, false
	case session.TurnStarted:
		if p.parts = (spokenEntry{}); b.Continues != 0 && b.Continues == p.last.seq {
			p.parts = p.last
		}
		p.setupRow(e.Seq, changed)
		p.Waits.Wait(modelKey(""), Asking(&p.Setup))
		if p.remark != "" {
			p.Note(Yellow, "%s", p.remark)
			p.remark = ""
		}
	case session.TurnEnded:
		p.Row(e.Seq, Dim, fmt.Sprintf("turn %d", b.Turn), turnInWords(b, &p.Setup, p.full))
		p.Waits.Done(modelKey(""))
		p.EndLine()
		p.differs, p.missing = nil, nil
		if b.Reason != "" { // the run's last line says why it ended
			p.remark = fmt.Sprintf("!! turn %d: %s: %s", b.Turn, b.Status, p.Short(b.Reason, 300))
		}
	case session.Stopped:
		p.Row(e.Seq, Dim, "stopped", strings.ReplaceAll(b.Why, "_", " ")+Colon(b.Detail))
		if p.remark != "" && p.Over {
			p.Note(Yellow, "%s", p.remark)
		}
		p.remark = ""
		if !p.rows {
			p.stopped(b)
		}
	case session.Compacted:
		p.Waits.Done("compaction")
		if b.Failure != "" {
			p.Row(e.Seq, Red, "as it was", fmt.Sprintf("not compacted by %s: %s", b.By, b.Failure))
			p.Note(Yellow, "!! that failed: %s", p.Short(b.Failure, 300))
			return
		}
		p.Row(e.Seq, Yellow, "compacted", fmt.Sprintf("up to entry %d, by %s: about %d tokens became %d", b.Through, b.By, b.Before, b.After))
		p.Tell(Dim, "-- about %d tokens became %d; nothing is lost: the log keeps all", b.Before, b.After)
	case session.Noticed:
		p.Row(e.Seq, Yellow, "notice", b.Text)
		if internalNotice(b.Kind) {
			return
		}
		p.Note(Yellow, "!! %s", p.Short(b.Text, 1000))
		switch b.Kind {
		case session.NoticeTextDiffers:
			p.differs = &b
		case session.NoticeItemMissing:
			p.missing = &b
		}
	}
}

const (
	// AtTerminal is where a verdict comes from if the person was asked at this terminal, and so has seen the call.
	AtTerminal = "terminal"
	// NoticeFiles is the kind of the notices by which a chat remembers which files a call changed.
	NoticeFiles = "files_changed"
)

// internalNotice reports whether only the loop needs a notice. It is not shown to a
// person who watches a run.
func internalNotice(kind string) bool {
	return kind == session.NoticeJudged || kind == NoticeFiles || kind == session.NoticeStoppedByPerson
}

// decided prints entries about calls and decisions.
func (p *Printer) decided(e session.Entry, body session.Body, call *agent.KnownCall) {
	switch b := body.(type) {
	case session.ApprovalAsked:
		p.Row(e.Seq, Yellow, "asked", b.Tool+" "+b.Arguments)
	case session.Approval:
		colour := Yellow
		if b.Allowed && b.By == "" {
			colour = Dim
		}
		p.Row(e.Seq, colour, "verdict", VerdictOf(b))
		if b.Remember != nil {
			p.Row(e.Seq, Yellow, "rule", "remembered: "+b.Remember.String())
		}
		if !b.Allowed {
			p.Note(Yellow, "!! %s: %s", call.Tool, p.Short(b.Reason, 1000))
			p.noteRefused(b.CallID)
		}
	case session.CallStarted:
		p.called(b.CallID, call, "")
	case session.SubagentUsage:
		p.Row(e.Seq, Dim, "nested", fmt.Sprintf("%s: %s, %d tokens", cmp.Or(b.Session, "guards, or beside the conversation"), Plural(b.Turns, "turn"), b.Tokens))
	case session.Paused:
		p.rests(b.CallID)
	case session.CallDropped:
		p.Row(e.Seq, Yellow, "withdrawn", b.Reason)
	case session.ItemsWithdrawn:
		p.Row(e.Seq, Yellow, "withdrawn", strings.TrimPrefix(fmt.Sprintf("%s: entries %v: %s", b.By, b.Seqs, b.Reason), ": "))
		p.Note(Yellow, "!! withdrawn, and not sent any more: %s", p.Short(b.Reason, 300))
	case session.ReasoningDropped:
		p.Row(e.Seq, Yellow, "dropped", "the reasoning before: "+b.Reason)
		p.Note(Yellow, "asking again without the earlier reasoning: %s", p.Short(b.Reason, 300))
	case session.Quarantined:
		row, what := fmt.Sprintf("entry %d", b.Seq), "one item"
		if b.Member != "" {
			row, what = fmt.Sprintf("%s of entry %d", b.Member, b.Seq), "the member "+p.Short(b.Member, 50)+" of one item"
		}
		p.Row(e.Seq, Yellow, "quarantine", row+": "+b.Reason)
		p.Note(Yellow, "asking again without %s, which the endpoint refused: %s", what, p.Short(b.Reason, 300))
	case session.Restored:
		p.Row(e.Seq, Yellow, "restored", fmt.Sprintf("what entry %d replaced", b.Seq))
	case session.Collapsed:
		p.Row(e.Seq, Dim, "collapsed", fmt.Sprintf("%s, repeated by entry %d", Plural(len(b.Seqs), "read"), b.By))
	case session.Delivered:
		text := strings.TrimSpace(session.DecidedBy(b.By, b.From, ""))
		if b.Problem != "" {
			text += ", without effect: " + b.Problem
		}
		p.delivered = b.Entries + 1
		p.Row(e.Seq, Dim, "delivered", text)
		p.Note(Dim, "-- delivered %s", p.Short(text, 300))
	case session.Superseded:
		p.Row(e.Seq, Dim, "superseded", fmt.Sprintf("%s, said again from the beginning by entry %d", entriesOf(b.Seqs), b.By))
	}
}

// subagent prints the calls of a subagent, indented.
func (p *Printer) subagent(n agent.SubagentEvent) {
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
		p.Waits.Wait(modelKey(n.Session), Asking(&of.Setup))
	case session.TurnEnded:
		p.Waits.Done(modelKey(n.Session))
	case session.Approval:
		if !b.Allowed {
			p.Note(Yellow, "%s!! %s: %s", in, call.Tool, p.Short(b.Reason, 1000))
		}
	case session.CallStarted:
		p.called(b.CallID, call, in)
	case session.Paused:
		p.rests(b.CallID)
	case session.CallOutput:
		if b.Failed {
			p.Note(Yellow, "%s<- %s failed: %s", in, p.ended(b.CallID, call), p.Short(FailureOf(b.Item), 300))
		}
		p.rests(b.CallID)
	case session.Noticed:
		if !internalNotice(b.Kind) {
			p.Note(Yellow, "%s!! %s", in, p.Short(b.Text, 1000))
		}
	case session.Stopped:
		delete(p.inner, n.Session)
	}
}

// Text prints text of the model.
func (p *Printer) Text(s string) {
	if p.Plain && !p.Shows {
		s = Printable(s)
	}
	if s == "" || p.Mute {
		return
	}
	if _, err := io.WriteString(p.Out, s); err != nil && p.writeErr == nil {
		p.writeErr = err
	}
	p.midLine = !strings.HasSuffix(s, "\n")
}

// EndLine ends the line of the model's text, unless it has ended.
func (p *Printer) EndLine() {
	if p.midLine {
		p.Text("\n")
	}
}

// Drop ends the line of a text that arrived in pieces and became no entry. The next message is printed in
// full.
func (p *Printer) Drop() {
	p.EndLine()
	p.spoke = false
}

// Failure returns the first error of standard output.
func (p *Printer) Failure() error { return p.writeErr }

// message ends a message's line. It prints a message that arrived without deltas, or
// with different ones; standard output then has both texts, and ends with the correct
// one.
func (p *Printer) message(b session.OutputItem) {
	m, err := item.As[item.Message](b.Item)
	if err != nil {
		return
	}
	again := p.differs != nil && (p.differs.ItemID == "" || p.differs.ItemID == m.ID)
	if again {
		p.Note(Yellow, "!! the whole text, as it is kept:")
		p.EndLine()
		p.differs = nil
	}
	if !p.spoke || again {
		p.Text(m.Content.Display())
	}
	p.spoke = false
	p.EndLine()
	if b.Partial && (p.missing == nil || p.missing.ItemID != m.ID) {
		p.Note(Yellow, "!! the reply broke off here")
	}
}

// reasoning shows reasoning, or its summary, line by line as it arrives. An
// unfinished line is shown in the screen's status line.
func (p *Printer) reasoning(text string) {
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
		if line = strings.TrimSpace(Visible(line)); line == "" {
			continue
		}
		if p.thoughts++; !p.Folds || p.thoughts <= mostThoughts {
			p.Tell(Dim, "   %s", line)
		}
	}
	p.Waits.Last(modelKey(""), newest(p.Hide(p.thought)))
}

// mostThoughts is the number of lines shown of reasoning that is folded.
const mostThoughts = 3

// thoughtOut says how much of the reasoning is not shown, when it is over.
func (p *Printer) thoughtOut() {
	if more := p.thoughts - mostThoughts; p.Folds && more > 0 {
		p.Tell(Dim, "   … %s of reasoning, all of which a chat with -v shows", Plural(more, "more line"))
	}
	p.thoughts = 0
}

// stopped prints the totals of a run that asked the model.
func (p *Printer) stopped(b session.Stopped) {
	p.EndLine()
	t := p.totals
	if t.Turns == 0 {
		return
	}
	line := fmt.Sprintf("%s, %s", Plural(t.Turns, "turn"), Plural(t.Calls, "call"))
	if p.failed > 0 {
		line += fmt.Sprintf(" (%d failed)", p.failed)
	}
	if t.RefusedCalls > 0 {
		line += fmt.Sprintf(", %d refused", t.RefusedCalls)
	}
	line += UsedText(t.All(), t.Nested, Tokens{t.InputTokens, t.CachedTokens, t.OutputTokens, t.TotalTokens})
	line += ", " + Duration(time.Since(p.began))
	if b.Why != string(agent.StopEndTurn) {
		line = strings.ReplaceAll(b.Why, "_", " ") + ": " + line
	}
	p.Tell(Dim, "-- %s", line)
}

// The colours of notes, as SGR parameters.
const (
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	bold   = "1"
)

// Tell prints a note that a quiet run leaves out.
func (p *Printer) Tell(colour, format string, args ...any) {
	if !p.Quiet {
		p.Note(colour, format, args...)
	}
}

// Note prints a line about a run on standard error. If standard output is a terminal
// too, Note first ends the line of text there; piped output contains only the model's
// own bytes.
func (p *Printer) Note(colour, format string, args ...any) {
	if p.rows {
		return
	}
	s := Unbroken(p.Hide(fmt.Sprintf(format, args...)))
	if p.Colour {
		s = "\x1b[" + colour + "m" + s + "\x1b[0m"
	}
	p.line(s)
}

// line prints a line that is ready for the terminal on standard error.
func (p *Printer) line(s string) {
	if p.Plain {
		p.EndLine()
	}
	fmt.Fprintln(p.Err, s)
}

// Short returns foreign text on one line, without the keys of the environment. Keys
// are hidden before the text is cut, because part of a key would not be found.
func (p *Printer) Short(s string, limit int) string { return Shorten(p.Hide(s), limit) }
