// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"math"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// This file prints the calls of a run: that they start, what they changed, and what they returned.

// called prints that a call was started, behind in.
func (p *Printer) called(id string, call *agent.KnownCall, in string) {
	row := strings.TrimSpace(call.Tool + " " + AboutCall(call.Arguments, p.Hide))
	p.Tell(Dim, "%s-> %s", in, row)
	p.Waits.Wait(CallKey(id), row)
	if p.calling == nil {
		p.calling = map[string]bool{}
	}
	p.beside = p.beside || len(p.calling) > 0
	p.calling[id] = true
}

// ended returns what the row of a call's end names: the tool, and what the call works on if others
// went on beside it.
func (p *Printer) ended(id string, call *agent.KnownCall) string {
	row := call.Tool
	if p.beside && p.calling[id] {
		row = strings.TrimSpace(row + " " + AboutCall(call.Arguments, p.Hide))
	}
	p.rests(id)
	return row
}

// rests says that a call does not go on.
func (p *Printer) rests(id string) {
	p.Waits.Done(CallKey(id))
	delete(p.calling, id)
	p.beside = p.beside && len(p.calling) > 0
}

func (p *Printer) noteRefused(callID string) {
	if !p.rows {
		p.refused[callID] = true
	}
}

// answered prints the outcome of a call of the run.
func (p *Printer) answered(b session.CallOutput, call *agent.KnownCall) {
	if !call.Ran && p.refused[b.CallID] {
		return // already printed
	}
	done, timed := p.returned[b.CallID]
	delete(p.returned, b.CallID)
	took, failure := "", FailureOf(b.Item)
	if timed {
		took, failure = " "+Duration(done.Took), done.Error
	}
	if b.Failed {
		if call.Ran {
			p.failed++
		}
		p.Note(Red, "<- %s%s failed: %s%s", p.ended(b.CallID, call), took, p.Short(failure, 200), leftOut(done))
	} else {
		p.Tell(Green, "<- %s%s %s%s", p.ended(b.CallID, call), took, sizeOf(b.Item), leftOut(done))
		p.change(call)
	}
	p.output(b.Item, call, b.Failed)
	if content, err := outputContent(b.Item); err == nil && p.Picture != nil {
		PicturesIn(content.Parts, func(uri string) { p.Picture("of "+call.Tool, uri) })
	}
}

// change shows the change of files that a call made, unless the person has just seen it in the
// question about the call.
func (p *Printer) change(call *agent.KnownCall) {
	if p.Quiet || !p.Whole && !p.Watched {
		return
	}
	if v := call.Verdict; !p.Again && v != nil && v.From == AtTerminal && !call.Edited {
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
			if cut := head(l.Text, 140); cut != l.Text {
				l.Text = cut + "…"
			}
		}
		for _, row := range l.rows(math.MaxInt, p.Look) {
			p.line(row)
		}
	}
	if more > 0 {
		p.Tell(Dim, "   | … %s more, which %s shows", Plural(more, "line"), p.opens())
	}
}

// mostChanged is the number of lines shown of the change that a call made, unless all are
// requested.
const mostChanged = 16

// output shows a tool's output: its end on a terminal, or all of it if requested; of a folder, the
// beginning as a tree. For a failed call it shows the text after the error, which explains the failure if
// the error is an exit code.
func (p *Printer) output(out item.Item, call *agent.KnownCall, failed bool) {
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
		p.Tell(Dim, "   | … %s above, which %s shows", Plural(hidden, "line"), p.opens())
	}
	for _, line := range lines {
		if line = Visible(strings.TrimRight(p.Hide(line), "\r")); !p.Whole {
			line = clipped(line, 140)
		}
		p.Tell(Dim, "   | %s", line)
	}
}

// maxTail is the number of lines shown of an output, unless all are requested.
const maxTail = 3

// clipped returns at most limit characters of a line. Unlike [Shorten] it leaves blanks as they are.
func clipped(line string, limit int) string {
	n := 0
	for i := range line {
		if n++; n > limit {
			return line[:i] + "…"
		}
	}
	return line
}

// tree shows what a folder has.
func (p *Printer) tree(lines []string) {
	more := 0
	if !p.Whole && len(lines) > mostListed {
		lines, more = lines[:mostListed], len(lines)-mostListed
	}
	for i, line := range lines {
		branch := "├ "
		if i == len(lines)-1 && more == 0 {
			branch = "└ "
		}
		p.Tell(Dim, "   %s%s", branch, Shorten(Visible(p.Hide(line)), 140))
	}
	if more > 0 {
		p.Tell(Dim, "   └ … %d more, which %s shows", more, p.opens())
	}
}

// listings are the tools whose output is what a folder has.
var listings = []string{"read_directory", "read_dir"}

// mostListed is the number of entries shown of a folder, unless all are requested.
const mostListed = 12

// opens names what shows all of a call.
func (p *Printer) opens() string {
	if p.Shows {
		return "Ctrl-O"
	}
	return "--show-output"
}
