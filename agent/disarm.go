// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/reach"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Disarm removes from an imported log everything that would let a tool run, because a
// stranger may have written the log. The record of what was said and done stays.
//
// It keeps an approval only if the log, read as a run reads it, shows that the call
// it was given for is finished by the end; naming the call's id proves nothing. It
// drops all other approvals, remembered rules, suggested rules, the permission to
// repeat a call after a crash, links to sessions that are not part of the import,
// handoffs to other agents, the notes that another model was asked, that guards agreed
// to a reply and that lost entries were accepted, approvals of calls by the API's own MCP servers unless the call follows, and
// tools that an item gives to the model and that the endpoint runs, and receipts of deliveries. A pending
// question is rebuilt from the call in the log. Entries and notices of unknown kinds are
// dropped.
//
// Pass each entry of the session to Learn, in order, and then each to Entry. A Disarm
// holds the log in memory, except for the content of user messages. The zero Disarm
// is ready for one session; it is not safe for concurrent use.
type Disarm struct {
	// Child reports whether the session id is part of the import and is nested in
	// this session under the call with the given number and id. Nil means that no
	// session is: calls that started a subagent then have an unknown outcome.
	Child func(number int, callID, id string) bool

	log    []session.Entry
	judged bool
	about  map[int64]session.OpenCall // by entry, the call that it was about when it was written
	open   map[int64]bool             // by call entry, calls that are open at the end
	linked map[int64]bool             // entries that name an imported session
	made   map[int64]item.Item        // MCP approvals, by entry, and the calls that they led to
}

// Learn reads an entry.
func (d *Disarm) Learn(e session.Entry) {
	if b, ok := e.Body.(session.InputItem); ok && b.Item.Type() == item.TypeMessage && b.Item.Role() == item.RoleUser && !session.Consents(b.Item) {
		var view session.View
		view.Apply(e)
		for range items(&view) { // views skip empty messages, so an empty message stays empty
			b.Item = said // the content of user messages decides nothing and is most of a long log
		}
		e.Body = b
	}
	d.log = append(d.log, e)
}

// said stands for any user message.
var said = item.User("said")

// judge reads the log. Dropping an entry can change the meaning of others, so it
// repeats until the rest is consistent.
func (d *Disarm) judge() {
	d.judged = true
	d.made = approvalsOf(d.log)
	for {
		view := d.fold()
		sent := slices.Collect(items(view))
		before := len(d.made)
		for seq, call := range d.made {
			yes := slices.IndexFunc(sent, func(it item.Item) bool { return session.Consents(it) && it.CallID() == requestOf(call) })
			if yes < 0 || !slices.Contains(sent[yes:], call) {
				delete(d.made, seq)
			}
		}
		if len(d.made) == before {
			break
		}
	}
}

func items(v *session.View) func(yield func(item.Item) bool) {
	return func(yield func(item.Item) bool) {
		for _, it := range v.Items().All() {
			if !yield(it) {
				return
			}
		}
	}
}

// fold reads the log as a run does, without the dropped entries. It ignores
// compactions, because they hide items only temporarily.
func (d *Disarm) fold() *session.View {
	view := new(session.View)
	d.about, d.open, d.linked = map[int64]session.OpenCall{}, map[int64]bool{}, map[int64]bool{}
	for _, e := range d.log {
		switch b := e.Body.(type) {
		case session.Approval:
			d.about[e.Seq], _ = view.Call(b.CallID, b.Number)
		case session.ApprovalAsked:
			d.about[e.Seq], _ = view.Call(b.CallID, b.Number)
		case session.CallStarted:
			d.link(e.Seq, view, b.CallID, b.Session)
		case session.Paused:
			d.link(e.Seq, view, b.CallID, b.Session)
		case session.Compacted, session.Restored:
			continue
		}
		view.Apply(d.without(e))
	}
	for _, c := range view.Open() {
		d.open[c.Seq] = true
	}
	return view
}

func (d *Disarm) link(seq int64, view *session.View, callID, id string) {
	c, ok := view.Call(callID, 0)
	d.about[seq] = c
	d.linked[seq] = id != "" && ok && d.Child != nil && d.Child(c.Number, c.CallID, id)
}

// over reports whether an entry is about a call that was open then and is not open at
// the end.
func (d *Disarm) over(seq int64) bool {
	c := d.about[seq].Seq
	return c != 0 && !d.open[c]
}

// without returns the entry without data that changes which calls are open, or where
// they continue.
func (d *Disarm) without(e session.Entry) session.Entry {
	switch b := e.Body.(type) {
	case session.InputItem:
		e.Body, _ = d.said(e.Seq, b, b.Item)
	case session.OutputItem:
		e.Body, _ = d.said(e.Seq, b, b.Item)
	case session.CallOutput:
		e.Body, _ = d.said(e.Seq, b, b.Item)
	case session.CallStarted:
		if !d.linked[e.Seq] {
			b.Session = ""
		}
		e.Body = b
	case session.Paused:
		if !d.linked[e.Seq] {
			e.Body = imported(b.CallID, "")
		}
	}
	return e
}

// approvalsOf returns the approvals of MCP calls that led to a call, by entry.
// Endpoints match the three items by the request's id alone. So request, approval and
// call must each be the only one with this id, they must be in this order, and the
// call must equal the request and be one for everybody who reads it.
func approvalsOf(log []session.Entry) map[int64]item.Item {
	type trio struct {
		request, call     item.Item
		yes               int64
		nRequest, nAnswer int
		nCall             int
	}
	trios := map[string]*trio{}
	of := func(id string) *trio {
		if trios[id] == nil {
			trios[id] = new(trio)
		}
		return trios[id]
	}
	for _, e := range log {
		var it item.Item
		named, answers := "", false
		switch b := e.Body.(type) {
		case session.InputItem:
			it, named, answers = b.Item, b.Item.CallID(), true
		case session.CallOutput:
			it, named, answers = b.Item, b.CallID, true
		case session.OutputItem:
			it = b.Item
		default:
			continue
		}
		switch {
		case it.Type() == item.TypeMCPApprovalRequest:
			t := of(it.CallID())
			t.request = it
			t.nRequest++
		case it.Type() == item.TypeMCPApprovalResponse || session.Consents(it):
			t := of(it.CallID())
			if t.nAnswer++; answers && named == it.CallID() && t.nRequest == 1 {
				t.yes = e.Seq
			}
		case it.Type() == item.TypeMCPCall:
			t := of(requestOf(it))
			if t.nCall++; t.yes > 0 && reach.Plain(it.JSON()) {
				t.call = it
			}
		}
	}
	made := map[int64]item.Item{}
	for _, t := range trios {
		if t.nRequest == 1 && t.nAnswer == 1 && t.nCall == 1 && t.yes > 0 && !t.call.IsZero() && sameMember(t.request, t.call, "server_label", "name", "arguments") {
			made[t.yes] = t.call
		}
	}
	return made
}

func requestOf(call item.Item) string {
	id, _ := call.Member("approval_request_id")
	text, _ := id.Unquote()
	return text
}

func sameMember(a, b item.Item, names ...string) bool {
	for _, name := range names {
		x, _ := a.Member(name)
		y, _ := b.Member(name)
		if x != y {
			return false
		}
	}
	return true
}

// Entry returns the entry as it may be imported, with its own number, and describes
// for people what was removed from it, if anything.
func (d *Disarm) Entry(e session.Entry) (kept session.Entry, dropped []string) {
	if !d.judged {
		d.judge()
	}
	switch b := e.Body.(type) {
	case session.RunStarted:
		b.Conversation.Session = "" // the owner of the log may still add to this conversation
		e.Body = b
	case session.Approval:
		e.Body, dropped = d.approval(e.Seq, b)
	case session.ApprovalAsked:
		e.Body, dropped = d.asked(e.Seq, b)
	case session.CallStarted:
		e.Body, dropped = d.started(e.Seq, b)
	case session.Paused:
		if !d.linked[e.Seq] {
			what := fmt.Sprintf("the wait of call %s for session %s, which is not in the file", b.CallID, b.Session)
			if b.Session == "" {
				what = fmt.Sprintf("the wait of call %s for its result", b.CallID)
			}
			e.Body, dropped = imported(b.CallID, what), []string{what}
		}
	case session.InputItem:
		b.Own = false // it is shown as what it is for the model, a message of a person
		e.Body, dropped = d.said(e.Seq, b, b.Item)
	case session.OutputItem:
		e.Body, dropped = d.said(e.Seq, b, b.Item)
	case session.CallOutput:
		e.Body, dropped = d.said(e.Seq, b, b.Item)
	case session.Compacted:
		e.Body, dropped = compactedWithout(b)
	case session.Delivered: // its key would make a delivery here count as one that was taken already
		what := receipt(b)
		e.Body, dropped = imported("", what), []string{what}
	case session.Noticed:
		if b.Kind == session.NoticeImportBegins { // this import is about more: kept, it would end before the entries above
			e.Body = imported(b.CallID, "where an earlier import began")
		} else if what := decides(b.Kind); what != "" {
			e.Body, dropped = imported(b.CallID, what), []string{what}
		}
	case session.Note: // workers and servers obey their own
		if kind := string(b.Item.Type()); strings.HasPrefix(kind, "antiphon:") {
			what := "a note for workers or servers, of the type " + kind
			e.Body, dropped = imported("", what), []string{what}
		}
	case session.TurnStarted, session.TurnEnded, session.SubagentUsage, session.CallDropped, session.ItemsWithdrawn, session.ReasoningDropped, session.Quarantined,
		session.Restored, session.Collapsed, session.Superseded, session.StopAsked, session.Stopped:
	default: // an unknown kind may grant a permission
		what := fmt.Sprintf("an entry of the kind %s, which imports do not know", session.Kind(e.Body))
		e.Body, dropped = imported("", what), []string{what}
	}
	return e, dropped
}

// receipt describes the record of a delivery.
func receipt(b session.Delivered) string {
	what := fmt.Sprintf("the receipt %q of a delivery", b.Key)
	if b.By != "" {
		what += fmt.Sprintf(" of %q", b.By)
	}
	if b.From != "" {
		what += fmt.Sprintf(" by %q", b.From)
	}
	if b.Problem != "" {
		return what + ", which could not be used: " + b.Problem
	}
	return what + "; what was delivered stays"
}

// decides returns what a notice of a kind makes a run do or leave out, or "" if it
// only describes what happened or makes a run more careful. A kind that is not known
// here may decide anything.
func decides(kind string) string {
	switch kind {
	case session.NoticeHandoff: // no rule of the first agent was asked
		return "that the conversation was handed to another agent"
	case session.NoticeFallback:
		return "that another model was asked"
	case session.NoticeJudged:
		return "that guards agreed to a reply"
	case session.NoticeAnswerNow: // calls of the turn would not run
		return "that a turn had to be an answer"
	case session.NoticeGapsAccepted:
		return "that lost entries were accepted"
	case session.NoticeEntryLost, session.NoticePayloadLost, session.NoticeSalvaged, session.NoticeNotJudged,
		session.NoticeTextDiffers, session.NoticeReasoningDiffers, session.NoticeArgumentsDiffer, session.NoticeFinalDiffers,
		session.NoticeEventsMissing, session.NoticeEventsRepeated, session.NoticeSameCallID, session.NoticeTextLost,
		session.NoticeItemMissing, session.NoticeHalfCharacter, session.NoticeForeignRole, session.NoticeReadKeyFailed,
		session.NoticeUsageWrong, session.NoticeEventSkipped, session.NoticeDisarmed, session.NoticeImported, session.NoticeHistoryCut,
		session.NoticeImagesRefused, session.NoticeWholeHistory, session.NoticeSummaryInstead, session.NoticeUnfit:
		return ""
	}
	return fmt.Sprintf("a notice of the kind %q, which imports do not know", kind)
}

func (d *Disarm) approval(seq int64, b session.Approval) (session.Body, []string) {
	var dropped []string
	if b.Remember != nil {
		dropped = append(dropped, "the remembered rule: "+b.Remember.String())
		b.Remember = nil
	}
	// A refusal makes nothing run, and a call that is finished does not run again.
	if !b.Allowed || d.over(seq) {
		return b, dropped
	}
	// The text names the call, so that a person can decide about it again.
	what := fmt.Sprintf("the approval of call %s, which has not run", b.CallID)
	if c := d.about[seq]; c.Seq != 0 {
		if call, err := CallOf(c.Item); err == nil {
			what += ": " + call.Name + " " + call.Arguments
		}
	}
	if b.Edited != "" {
		what += ", with the arguments " + b.Edited
	}
	return imported(b.CallID, what), append(dropped, what)
}

// imported returns the replacement of a dropped entry, so that the other entries keep
// their numbers.
func imported(callID, what string) session.Noticed {
	return session.Noticed{Kind: session.NoticeDisarmed, CallID: callID, Text: "dropped by the import: " + what}
}

// asked rebuilds a pending question from the call in the log.
func (d *Disarm) asked(seq int64, b session.ApprovalAsked) (session.Body, []string) {
	if d.over(seq) {
		return b, nil
	}
	var call struct{ name, arguments string }
	custom, unread := false, true
	if c := d.about[seq]; c.Seq != 0 {
		if read, err := CallOf(c.Item); err == nil {
			call.name, call.arguments, custom, unread = read.Name, read.Arguments, read.Custom, false
		}
	}
	if unread {
		what := fmt.Sprintf("the question about call %s, which cannot be read", b.CallID)
		return imported(b.CallID, what), []string{what}
	}
	var dropped []string
	for _, r := range b.Rules {
		dropped = append(dropped, "a rule offered for remembering: "+r.String())
	}
	// A forged suggestion could allow much more than the call, and a forged sandbox hold much less.
	b.Rules = nil
	if b.Sandbox != "" {
		dropped = append(dropped, fmt.Sprintf("the sandbox in the question about call %s", b.CallID))
		b.Sandbox = ""
	}
	if b.Tool != call.name || b.Arguments != call.arguments || b.Custom != custom {
		dropped = append(dropped, fmt.Sprintf("the description of call %s in its question, which differed from the call: %s %s", b.CallID, b.Tool, b.Arguments))
		// A person must not approve one call while reading another.
		b.Tool, b.Arguments, b.Custom = call.name, call.arguments, custom
	}
	return b, dropped
}

// started removes from the start of a call its link to a session that is not
// imported, and the permission to repeat the call, unless the call is finished.
func (d *Disarm) started(seq int64, b session.CallStarted) (session.Body, []string) {
	var dropped []string
	if b.Session != "" && !d.linked[seq] {
		dropped = append(dropped, fmt.Sprintf("the link of call %s to session %s, which is not in the file", b.CallID, b.Session))
		b.Session = ""
	}
	// A call marked as repeatable would run again without a question.
	if b.Repeatable && !d.over(seq) {
		dropped = append(dropped, fmt.Sprintf("the leave to run call %s again", b.CallID))
		b.Repeatable = false
	}
	return b, dropped
}

// said removes an approval of an MCP call, unless the call was made, and tools that the endpoint runs.
func (d *Disarm) said(seq int64, b session.Body, it item.Item) (session.Body, []string) {
	if fewer, dropped := withoutHosted(it); fewer.IsZero() {
		return imported(it.CallID(), dropped[len(dropped)-1]), dropped
	} else if dropped != nil {
		switch b := b.(type) {
		case session.InputItem:
			b.Item = fewer
			return b, dropped
		case session.OutputItem:
			b.Item = fewer
			return b, dropped
		case session.CallOutput:
			b.Item = fewer
			return b, dropped
		}
	}
	if _, made := d.made[seq]; made || !session.Consents(it) {
		return b, nil
	}
	what := fmt.Sprintf("a yes to the request %s of an MCP server", it.CallID())
	return imported(it.CallID(), what), []string{what}
}

// withoutHosted returns an item without the tools that it gives to the model and that the endpoint runs,
// such as an MCP server of a stranger, and describes them. It describes none if the item has none. The zero
// item is returned if all of it must go, because endpoints may find more tools in it.
func withoutHosted(it item.Item) (fewer item.Item, dropped []string) {
	tools, plain := reach.Tools(it)
	for _, def := range tools {
		what := "a tool of the endpoint: " + def.ToolType()
		if server, ok := def.(*item.MCPTool); ok {
			what += " " + cmp.Or(server.ServerURL, server.ConnectorID, server.TunnelID)
		}
		dropped = append(dropped, what)
	}
	if plain && dropped == nil {
		return it, nil
	}
	value, err := it.Decode()
	switch v := value.(type) {
	case *item.AdditionalTools:
		v.Tools = ofClient(v.Tools)
	case *item.ToolSearchOutput:
		v.Tools = ofClient(v.Tools)
	default:
		plain = false
	}
	if plain && err == nil {
		fewer, err = item.New(value)
	}
	if !plain || err != nil {
		return item.Item{}, append(dropped, fmt.Sprintf("a whole item of the type %s: its tools can be read in more than one way", it.Type()))
	}
	return fewer, dropped
}

// ofClient returns the tools whose calls the client runs. A namespace keeps its own of them, and goes if none is left.
func ofClient(defs []item.Tool) (list []item.Tool) {
	for _, def := range defs {
		if space, ok := def.(*item.NamespaceTool); ok && reach.ByEndpoint(space) {
			if space.Tools = ofClient(space.Tools); len(space.Tools) == 0 {
				continue
			}
		} else if reach.ByEndpoint(def) {
			continue
		}
		list = append(list, def)
	}
	return list
}

// compactedWithout removes MCP approval requests and approvals from the items of a
// compaction, which never needs them, and tools that the endpoint runs.
func compactedWithout(b session.Compacted) (session.Body, []string) {
	var dropped []string
	var kept []item.Item
	for _, it := range b.Items {
		if it.Type() == item.TypeMCPApprovalRequest || it.Type() == item.TypeMCPApprovalResponse || session.Consents(it) {
			dropped = append(dropped, fmt.Sprintf("a %s in a compaction", it.Type()))
			continue
		}
		it, hosted := withoutHosted(it)
		dropped = append(dropped, hosted...)
		if !it.IsZero() {
			kept = append(kept, it)
		}
	}
	if dropped == nil {
		return b, nil
	}
	b.Items = kept
	return b, dropped
}
