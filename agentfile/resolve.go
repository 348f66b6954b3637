// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/chatmd/transcript"
	"github.com/antiphon-go/antiphon/internal/reach"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// resolve turns the file's messages into items.
func (f *File) resolve(ctx context.Context, from *sources) chatmd.ErrorList {
	var resolver chatmd.Resolver = from
	if from.o.Salvage {
		resolver = salvaging{from}
	}
	located, err := f.doc().Items(ctx, resolver)
	f.fetched, f.Partial = from.said, f.Partial || from.deferred
	f.Warnings = append(f.Warnings, from.warnings...)
	f.used = from.used
	var problems chatmd.ErrorList
	listed := errors.As(err, &problems)
	if from.o.Salvage {
		f.Left = append(f.Left, from.left...)
		if listed {
			problems = f.leaveUnbuilt(problems)
		}
	}
	switch {
	case listed && len(problems) > 0:
		return problems
	case listed:
	case err != nil:
		return chatmd.ErrorList{{File: f.doc().Name, Line: 1, Column: 1, Message: err.Error()}}
	}
	located, misplaced, problems := pair(f.Doc, located)
	if len(problems) > 0 {
		return problems
	}
	f.Warnings = append(f.Warnings, misplaced...)
	f.checkDetails(located[:olderItems(f.Doc, located)])
	for _, l := range located {
		f.Items = append(f.Items, l.Item)
	}
	log := logOf(f.Doc, located, nil)
	f.log, f.Warnings = log.bodies, append(f.Warnings, log.warnings...)
	for _, r := range f.repairs() {
		if at := located[r.Seq]; r.Item.IsOutput() {
			f.Warnings = append(f.Warnings, fmt.Errorf("%s:%d:%d: not sent: %s [warning]", f.doc().Name, at.Line, at.Column, r.Reason))
		}
	}
	f.written = f.log
	if hasMarks(f.log) {
		f.tellApart(located, from.o)
	} else {
		f.dropAnswers(log.from)
	}
	return f.reach(located, from)
}

// tellApart finds what others than runs of this user wrote into a transcript, and disarms it.
func (f *File) tellApart(located []chatmd.Located, o Options) {
	left, known := trust.Left{}, false
	f.begins = f.beginsWith(o.loading[len(o.loading)-1])
	if o.Known != nil {
		left, known = o.Known(f.begins)
	}
	f.known, f.others = known, left.Strange(f.doc().Source())
	if len(f.others) == 0 {
		return
	}
	log := logOf(f.Doc, located, f.others)
	f.written = log.bodies
	f.disarm(log.from)
}

// dropAnswers takes from a file to which no run has written the answers to questions about calls of MCP servers
// of the endpoint: a person gives them, and no file. One whose call follows stays, as history.
func (f *File) dropAnswers(from []origin) {
	answer := func(b session.Body) bool {
		given, ok := b.(session.InputItem)
		return ok && session.Consents(given.Item)
	}
	if !slices.ContainsFunc(f.log, answer) {
		return
	}
	var d agent.Disarm
	for i, b := range f.log {
		d.Learn(session.Entry{Seq: int64(i) + 1, Body: b})
	}
	f.log = slices.Clone(f.log) // f.written has them
	for i, b := range f.log {
		if !answer(b) {
			continue
		}
		e, dropped := d.Entry(session.Entry{Seq: int64(i) + 1, Body: b})
		f.log[i] = e.Body
		for _, what := range dropped {
			f.Warnings = append(f.Warnings, fmt.Errorf("%s:%d: it does not count, because a file answers no question for you: %s [warning]", f.doc().Name, from[i].line, what))
		}
	}
}

// Added returns the parts of a transcript that others than runs of this user wrote, in order,
// and the source about which [Options].Known was asked. Both are zero for a file to which no
// run has written.
func (f *File) Added() (parts []trust.Span, transcript trust.Source) {
	return slices.Clone(f.others), f.begins
}

// reach records what the items make the endpoint do, unless runs of this user wrote them. What others wrote
// into a transcript has lost its tools already; see disarm.
func (f *File) reach(located []chatmd.Located, from *sources) (problems chatmd.ErrorList) {
	g, disarmed := from.o.gate, len(f.others) > 0
	for _, l := range located {
		if !disarmed && hasMarks(f.written) || disarmed && f.known && !overlaps(f.others, l.Offset, endOf(f.doc(), l.Offset)) {
			continue // a run of this user wrote it
		}
		at := place{f.doc().Name, l.Line, l.Column}
		known := map[string]bool{} // servers that have a line of their own
		if !disarmed {
			tools, plain := reach.Tools(l.Item)
			for _, def := range tools {
				g.hosted(def, at)
				if server, ok := def.(*item.MCPTool); ok && plain && server.ServerURL != "" {
					known[server.ServerURL] = true
				}
			}
			if !plain {
				g.reads = true
				g.wants(trust.Power{Kind: trust.Equips, What: reach.Excerpt(l.Item.JSON())}, at)
			}
			if reach.Unasked(l.Item) {
				problems = append(problems, &chatmd.Error{File: f.doc().Name, Line: l.Line, Column: l.Column, Message: unasked, Hint: unaskedHint})
			}
		}
		for _, site := range reach.Sites(l.Item, func(address string) bool { return known[address] || from.isReference(address) }) {
			g.wants(trust.Power{Kind: trust.Loads, What: site}, at)
		}
	}
	return problems
}

// endOf returns where the element that begins at an offset ends.
func endOf(doc *chatmd.File, offset int) int {
	i, found := slices.BinarySearchFunc(doc.Elements, offset, func(e chatmd.Element, at int) int { return cmp.Compare(e.Offset, at) })
	if !found {
		return offset + 1
	}
	return doc.Elements[i].End
}

// hasMarks reports whether a run has written something into the file.
func hasMarks(log []session.Body) bool {
	return slices.ContainsFunc(log, func(b session.Body) bool { _, given := b.(session.InputItem); return !given })
}

// disarm takes from the parts of the log that others wrote what would let something run or
// be sent. See [Options.Known].
func (f *File) disarm(from []origin) {
	var d agent.Disarm
	for i, b := range f.written {
		d.Learn(session.Entry{Seq: int64(i) + 1, Body: b})
	}
	var view session.View
	warned := len(f.Warnings)
	f.log = nil
	for i, b := range f.written {
		e := session.Entry{Seq: int64(i) + 1, Body: b}
		if from[i].strange {
			var dropped []string
			e, dropped = d.Entry(e)
			for _, what := range dropped {
				f.strange(from[i].line, "it does not count: "+what)
			}
		}
		f.log = append(f.log, e.Body)
		view.Apply(e)
	}
	if !f.known {
		return
	}
	for _, c := range view.Open() {
		if c.Imported {
			f.strange(from[c.Seq-1].line, fmt.Sprintf("the call of %s is asked about whatever allows it", plan.ToolName(c.Item)))
		}
	}
	if len(f.Warnings) > warned {
		f.Warnings = append(f.Warnings, fmt.Errorf("%s: If you edited the file yourself: your messages count, and each call is asked about once [warning]", f.doc().Name))
	}
}

// strange warns about what somebody else may have written.
func (f *File) strange(line int, what string) {
	if f.known {
		f.Warnings = append(f.Warnings, fmt.Errorf("%s:%d: this was added or changed after your last run, so %s [warning]", f.doc().Name, line, what))
		return
	}
	f.Warnings = append(f.Warnings, fmt.Errorf("%s: no run of yours began this transcript and you do not trust it, so %s [warning]", f.doc().Name, what))
}

// details are the known values of an image's detail.
const details = "low high auto original"

// checkDetails warns about image details that are probably mistyped. They are sent
// unchanged.
func (f *File) checkDetails(list []chatmd.Located) {
	for _, l := range list {
		if !strings.Contains(l.Item.JSON(), `"detail"`) {
			continue
		}
		var content item.Content
		switch v, _ := l.Item.Decode(); v := v.(type) {
		case *item.Message:
			content = v.Content
		case *item.FunctionCallOutput:
			content = v.Output
		case *item.CustomToolCallOutput:
			content = v.Output
		}
		for _, p := range content.Parts {
			image, ok := p.(*item.InputImage)
			if ok && image.Detail != "" && !slices.Contains(strings.Fields(details), string(image.Detail)) {
				f.Warnings = append(f.Warnings, fmt.Errorf("%s:%d:%d: the detail %q of an image is not known and is sent as it is (%s) [warning]",
					f.doc().Name, l.Line, l.Column, image.Detail, unknownHint(string(image.Detail), details)))
			}
		}
	}
}

// leaveUnbuilt moves the problems about unsupported features to f.Left and returns
// the rest.
func (f *File) leaveUnbuilt(problems chatmd.ErrorList) (rest chatmd.ErrorList) {
	for _, p := range problems {
		if errors.Is(p, chatmd.ErrNotBuilt) {
			f.Left = append(f.Left, p)
		} else {
			rest = append(rest, p)
		}
	}
	return rest
}

// repairs returns the items that a request would leave out. Seq is the item's
// number.
func (f *File) repairs() []session.Diagnostic {
	var view session.View
	items := map[int64]int64{}
	for i, body := range f.log {
		seq := int64(i) + 1
		if transcript.HoldsItem(body) {
			items[seq] = int64(len(items))
		}
		view.Apply(session.Entry{Seq: seq, Body: body})
	}
	list := slices.Clone(view.Diagnostics())
	for i := range list {
		list[i].Seq = items[list[i].Seq]
	}
	return list
}

// isSource reports whether the attribute names a local file.
func isSource(e chatmd.Element, a chatmd.Attr) bool {
	return a.Name == "src" && (e.Flag("local") || e.Tag == "import") && !strings.HasPrefix(a.Value, "data:")
}

// isPayload reports whether the attribute names a payload file of a transcript,
// which is only beside it.
func isPayload(e chatmd.Element, a chatmd.Attr) bool {
	return isSource(e, a) && e.Tag == "doc" && (e.Value("sha256") != "" || strings.HasPrefix(path.Clean(a.Value), ".chatmd/"))
}
