// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/chatmd/transcript"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// logOf reads a file as a log: its items, and the marks between them. Items before
// the first mark, which people or earlier programs wrote, are given, and there two
// kinds of comments have a meaning.
//
// What others than this user's runs wrote is between two notices: see
// [session.NoticeImportBegins].
func logOf(doc *chatmd.File, items []chatmd.Located, others []trust.Span) *logReader {
	l := &logReader{file: doc.Name, waits: map[int]bool{}}
	for i, e := range doc.Elements {
		l.line, l.strange = e.Line, overlaps(others, e.Offset, e.End)
		if chatmd.IsMark(e.Tag) {
			l.mark(e)
		}
		for len(items) > 0 && items[0].Offset < e.End {
			l.item(items[0].Item)
			items = items[1:]
		}
		gap := doc.Source()[e.End:]
		if i+1 < len(doc.Elements) {
			gap = gap[:doc.Elements[i+1].Offset-e.End]
		}
		l.strange = overlaps(others, e.End, e.End+len(gap))
		l.remarks(gap)
	}
	l.endOlder()
	l.strange = false
	l.part()
	return l
}

// overlaps reports whether bytes of a file are in one of the spans.
func overlaps(spans []trust.Span, from, to int) bool {
	return slices.ContainsFunc(spans, func(s trust.Span) bool { return s.From < int64(to) && int64(from) < s.To })
}

// logReader collects the entries of a file.
type logReader struct {
	file     string
	warnings []error

	bodies  []session.Body
	from    []origin // of each body
	line    int
	strange bool // what is read was written by others
	inside  bool // the bodies are in a part of others

	view   session.View
	items  []int64 // the entries that are items
	turn   int
	inTurn bool
	marked bool // a mark was read: comments have no meaning any more
	// compacted are the entries of compactions; 0 stands for one that is not valid.
	compacted []int64

	calls []item.Item  // before the first mark
	waits map[int]bool // the numbers of the calls that wait
}

// origin is where a body comes from.
type origin struct {
	line    int
	strange bool // others wrote it
}

// part begins or ends a part of others.
func (l *logReader) part() {
	switch {
	case l.strange && !l.inside:
		l.inside = true
		l.put(false, session.Noticed{Kind: session.NoticeImportBegins, Text: "somebody else may have written the entries from here on"})
	case !l.strange && l.inside:
		l.inside = false
		l.put(false, session.Noticed{Kind: session.NoticeImported, Text: "somebody else may have written the entries before: hooks and guards have not seen them"})
	}
}

func (l *logReader) add(b session.Body) {
	l.part()
	l.put(l.strange, b)
}

func (l *logReader) put(strange bool, b session.Body) {
	l.bodies, l.from = append(l.bodies, b), append(l.from, origin{l.line, strange})
	seq := int64(len(l.bodies))
	l.view.Apply(session.Entry{Seq: seq, Body: b})
	if transcript.HoldsItem(b) {
		l.items = append(l.items, seq)
	}
}

// item adds an item. Inside a reply the item comes from the model, unless it must
// have another source: a message, or the output of a call that runs here.
func (l *logReader) item(it item.Item) {
	call, waits := l.open(it)
	switch {
	case waits && !call.Given && (call.Started || !l.inTurn):
		failed, _ := plan.FailedOutput(it)
		l.add(session.CallOutput{CallID: call.CallID, Item: it, Failed: failed})
	case l.inTurn && (it.Type() != item.TypeMessage || it.Role() == item.RoleAssistant):
		l.add(session.OutputItem{Turn: l.turn, Item: it})
	default:
		if !l.marked && it.IsCall() {
			l.calls = append(l.calls, it)
		}
		l.add(session.InputItem{Item: it})
	}
}

// open returns the call that waits for the output, if there is one.
func (l *logReader) open(out item.Item) (session.OpenCall, bool) {
	if !out.IsOutput() {
		return session.OpenCall{}, false
	}
	for _, c := range l.view.Open() {
		if c.CallID == out.CallID() && out.Type().Answers() == c.Item.Type() {
			return c, true
		}
	}
	return session.OpenCall{}, false
}

func (l *logReader) mark(e chatmd.Element) {
	l.endOlder()
	number, err := strconv.Atoi(e.Value("number"))
	if err != nil {
		number = l.turn // of a mark that a person wrote
	}
	switch e.Tag {
	case chatmd.RunTag:
		l.inTurn = false
		l.add(session.RunStarted{Resumes: e.Flag("resumes"), Setup: l.setup(e), Conversation: session.Conversation{ID: e.Value("conversation"), Session: e.Value("of_session")}})
	case chatmd.TurnTag:
		l.turn, l.inTurn = number, true
		l.add(session.TurnStarted{Turn: number, Continues: l.view.Unfinished(), InConversation: e.Value("conversation")})
	case chatmd.TurnEndTag:
		l.inTurn = false
		status := e.Value("status")
		if status == "" {
			status = item.StatusCompleted
		}
		l.add(session.TurnEnded{
			Turn: number, Status: status, Reason: e.Value("reason"), Class: e.Value("class"), ResponseID: e.Value("response_id"),
			Model: e.Value("model"), ServiceTier: e.Value("service_tier"), RequestID: e.Value("request_id"), Profile: e.Value("profile"),
			InConversation: e.Value("conversation"), Window: l.number(e, "window"), Usage: l.usage(e), Cost: l.cost(e),
		})
	case chatmd.CallTag:
		l.call(e)
	case chatmd.DecisionTag:
		l.decision(e)
	case chatmd.NoticeTag:
		l.add(session.Noticed{Turn: int(l.number(e, "turn")), Kind: e.Value("kind"), ItemID: e.Value("item_id"), CallID: e.Value("tool_call_id"), Text: e.Value("text")})
	case chatmd.OwnTag:
		l.own()
	case chatmd.NestedTag:
		l.add(session.SubagentUsage{CallID: e.Value("tool_call_id"), Turns: int(l.number(e, "turns")), Tokens: l.number(e, "tokens"), Cost: l.cost(e)})
	}
}

// own reads the mark that the message directly before it is the run's own. Behind
// anything else it lost its message, and says nothing.
func (l *logReader) own() {
	last := len(l.bodies) - 1
	if last < 0 || l.strange || l.from[last].strange {
		return
	}
	if b, ok := l.bodies[last].(session.InputItem); ok && b.Item.Type() == item.TypeMessage {
		b.Own = true
		l.bodies[last] = b
	}
}

// odd warns about an invalid attribute of a mark.
func (l *logReader) odd(e chatmd.Element, what string) {
	l.warnings = append(l.warnings, fmt.Errorf("%s:%d:%d: <%s> was changed by hand: %s [warning]", l.file, e.Line, e.Column, e.Tag, what))
}

// number reads an attribute, or returns 0 if it is not given.
func (l *logReader) number(e chatmd.Element, name string) int64 {
	text := e.Value(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if text != "" && (err != nil || n < 0) {
		l.odd(e, fmt.Sprintf("%s is %.20q, not a number", name, text))
		return 0
	}
	return n
}

func (l *logReader) cost(e chatmd.Element) float64 {
	text := e.Value("cost")
	n, err := strconv.ParseFloat(text, 64)
	if text != "" && (err != nil || !(n >= 0) || math.IsInf(n, 0)) {
		l.odd(e, fmt.Sprintf("cost is %.20q, not a number", text))
		return 0
	}
	return n
}

func (l *logReader) usage(e chatmd.Element) *api.Usage {
	text := e.Value("usage")
	if text == "" {
		return nil
	}
	u, err := api.ParseUsage(item.JSON(text))
	if err != nil {
		l.odd(e, "usage: "+err.Error())
		return nil
	}
	return u
}

// setup reads how the following turns are made.
func (l *logReader) setup(e chatmd.Element) *session.Setup {
	s, err := transcript.SetupOf(e)
	if err != nil {
		l.odd(e, err.Error())
	}
	return s
}

// decision adds a decision, unless it names items that do not exist, because
// somebody removed them from the file.
func (l *logReader) decision(e chatmd.Element) {
	items, reason := l.back(e.Value("items")), e.Value("reason")
	switch e.Value("kind") {
	case chatmd.DecisionCollapsed:
		if by := l.back(e.Value("by")); len(items) > 0 && len(by) == 1 {
			l.add(session.Collapsed{Seqs: items, By: by[0]})
		}
	case chatmd.DecisionSuperseded:
		if by := l.back(e.Value("by")); len(items) > 0 && len(by) == 1 {
			l.add(session.Superseded{Seqs: items, By: by[0]})
		}
	case chatmd.DecisionQuarantined:
		if len(items) == 1 {
			l.add(session.Quarantined{Seq: items[0], Member: e.Value("member"), Reason: reason})
		}
	case chatmd.DecisionWithdrawn:
		if len(items) > 0 {
			l.add(session.ItemsWithdrawn{Seqs: items, Reason: reason, By: e.Value("by")})
		}
	case chatmd.DecisionReasoning:
		l.add(session.ReasoningDropped{Reason: reason})
	case chatmd.DecisionCompacted:
		l.compaction(e, items)
	case chatmd.DecisionRestored:
		if n, err := strconv.Atoi(e.Value("items")); err == nil && n > 0 && n <= len(l.compacted) && l.compacted[len(l.compacted)-n] > 0 {
			l.add(session.Restored{Seq: l.compacted[len(l.compacted)-n]})
		}
	}
}

// compaction reads a compaction. If its items or the replaced items have been
// changed, the whole history is sent.
func (l *logReader) compaction(e chatmd.Element, through []int64) {
	l.compacted = append(l.compacted, 0)
	b := session.Compacted{
		By: e.Value("by"), Failure: e.Value("failure"), Before: l.number(e, "before"), After: l.number(e, "after"),
		Usage: l.usage(e), Cost: l.cost(e), Kept: l.back(e.Value("kept")),
	}
	if len(through) == 1 {
		b.Through = through[0]
	}
	content := e.Value("content")
	if content != "" {
		list, err := item.ParseList(content)
		if err != nil {
			l.odd(e, "content: "+err.Error())
			return
		}
		b.Items = list
	}
	if b.Failure == "" && (content == "" || b.Through == 0) || e.Value("kept") != "" && len(b.Kept) == 0 {
		l.odd(e, "it names items that are not there, or has no content")
		return
	}
	l.add(b)
	l.compacted[len(l.compacted)-1] = int64(len(l.bodies))
}

// back returns the entries of items that are counted backwards, or nil.
func (l *logReader) back(numbers string) (seqs []int64) {
	for number := range strings.FieldsSeq(numbers) {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(l.items) {
			return nil
		}
		seqs = append(seqs, l.items[len(l.items)-n])
	}
	return seqs
}

func (l *logReader) call(e chatmd.Element) {
	id := e.Value("tool_call_id")
	switch e.Value("state") {
	case chatmd.CallStarted:
		l.add(session.CallStarted{CallID: id, Repeatable: e.Flag("repeatable")})
	case chatmd.CallWithdrawn:
		l.add(session.CallDropped{CallID: id, Reason: "it was withdrawn in an earlier run"})
	case chatmd.CallWaiting:
		for _, c := range l.view.Open() {
			if c.CallID == id {
				l.add(asked(c.Item, c.Number))
				return
			}
		}
	}
}

// asked returns the entry for a call that waits for an approval.
func asked(it item.Item, number int) session.ApprovalAsked {
	a := session.ApprovalAsked{CallID: it.CallID(), Number: number, Tool: it.Name(), Reason: "approval was requested in an earlier run"}
	if c, err := agent.CallOf(it); err == nil {
		a.Tool, a.Arguments, a.Custom = c.Name, c.Arguments, c.Custom
	}
	return a
}

// remarks reads the comments of earlier programs. See [transcript.BrokeOff].
func (l *logReader) remarks(gap string) {
	if l.marked {
		return
	}
	if len(l.bodies) > 0 && strings.Contains(gap, transcript.BrokeOff) {
		l.add(session.TurnEnded{Status: item.StatusFailed})
	}
	for line := range strings.Lines(gap) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), transcript.AboutCall)
		if !ok {
			continue
		}
		if number, ok := strings.CutSuffix(rest, transcript.Waits); ok {
			if n, err := strconv.Atoi(number); err == nil {
				l.waits[n] = true
			}
		} else if number, ok := strings.CutSuffix(rest, transcript.Started); ok {
			if n, err := strconv.Atoi(number); err == nil {
				delete(l.waits, n)
			}
		}
	}
}

// endOlder ends the part in which comments have a meaning.
func (l *logReader) endOlder() {
	if l.marked {
		return
	}
	l.marked = true
	for i, it := range l.calls {
		if l.waits[i+1] {
			l.add(asked(it, i+1))
		}
	}
}

// whole returns the length of the complete part of a transcript; see
// [chatmd.Recover].
func whole(src []byte) int {
	n := chatmd.Recover(src)
	last := bytes.LastIndexByte(src, '\n') + 1
	if rest := string(src[last:]); n == len(src) && unfinished(rest) {
		return last
	}
	return n
}

// unfinished reports whether the last line is the beginning of a comment that an
// earlier program wrote.
func unfinished(line string) bool {
	return slices.ContainsFunc([]string{transcript.BrokeOff, transcript.AboutCall}, func(remark string) bool {
		return line != remark && strings.HasPrefix(remark, line) || remark == transcript.AboutCall && strings.HasPrefix(line, remark) && !strings.HasSuffix(line, "-->")
	})
}
