// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Disarm takes out of a log that comes from elsewhere what would let something
// run: a stranger may have written it. What stays is what was said and done.
//
// It keeps an approval only if the log, read as a run reads it, shows that the
// very call it was given for is over by the end; an entry that merely names the
// call's id proves nothing. It drops all other approvals, remembered rules, the
// rules that an answer could leave behind, the leave to run a call again after a
// crash, links to sessions that did not come with the log, and yeses to the API's
// own MCP servers unless the call follows them. A pending call is asked about as
// it is in the log, whatever was written beside it. Entries of a kind that it does
// not know are dropped.
//
// Give each entry of the session to Learn, in order, and then each to Entry. It
// holds the log in memory, but for what users said. The zero Disarm is ready, for one session; it is not
// safe for concurrent use.
type Disarm struct {
	// Child reports whether the session id came with the log, and is nested in its
	// session under the call with that number and id. Nil means that none did: then
	// calls that stand for a nested run have an unknown outcome.
	Child func(number int, callID, id string) bool

	log    []session.Entry
	judged bool
	about  map[int64]session.OpenCall // the calls that entries were about when they were written
	open   map[int64]bool             // those of them, by their entries, that are not over by the end
	linked map[int64]bool             // entries that name a session that came along
	made   map[int64]item.Item        // yeses, by their entries, and the calls they led to
}

// Learn takes note of an entry.
func (d *Disarm) Learn(e session.Entry) {
	if b, ok := e.Body.(session.Given); ok && b.Item.Type() == item.TypeMessage && b.Item.Role() == item.RoleUser && !session.Consents(b.Item) {
		var view session.View
		view.Apply(e)
		for range items(&view) { // views skip a message without a word, so that stays what it is
			b.Item = said // the words and images of users decide nothing, and are most of a long log
		}
		e.Body = b
	}
	d.log = append(d.log, e)
}

// said stands for any message of a user.
var said = item.User("said")

// judge reads the log. What is dropped for one reason can change what the rest
// means, so it is read again until what is left proves itself.
func (d *Disarm) judge() {
	d.judged = true
	d.made = yeses(d.log)
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

// fold reads the log as a run does, without what is dropped. Compactions hide
// things for a time, so it does not look at them.
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

// over reports whether an entry is about a call that was open then and is not by
// the end.
func (d *Disarm) over(seq int64) bool {
	c := d.about[seq].Seq
	return c != 0 && !d.open[c]
}

// without returns the entry without what changes which calls are open, or where
// they go on.
func (d *Disarm) without(e session.Entry) session.Entry {
	switch b := e.Body.(type) {
	case session.Given:
		e.Body, _ = d.said(e.Seq, b, b.Item)
	case session.Received:
		e.Body, _ = d.said(e.Seq, b, b.Item)
	case session.Answered:
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

// yeses returns the yeses to calls of MCP servers that led to a call, by their
// entries. Endpoints know them by the request's id alone, so each of the three
// must be the only one of its id, they must come in their order, and the call must
// be the one that was asked about.
func yeses(log []session.Entry) map[int64]item.Item {
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
		case session.Given:
			it, named, answers = b.Item, b.Item.CallID(), true
		case session.Answered:
			it, named, answers = b.Item, b.CallID, true
		case session.Received:
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
			if t.nCall++; t.yes > 0 {
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

// Entry returns the entry as it may be taken over, under its own number, and
// says for people what was taken out of it, if anything was.
func (d *Disarm) Entry(e session.Entry) (kept session.Entry, dropped []string) {
	if !d.judged {
		d.judge()
	}
	switch b := e.Body.(type) {
	case session.RunStarted:
		b.Conversation.Session = "" // the one who wrote the log still uses that conversation, and adds to it
		e.Body = b
	case session.Approval:
		e.Body, dropped = d.approval(e.Seq, b)
	case session.ApprovalAsked:
		e.Body, dropped = d.asked(e.Seq, b)
	case session.CallStarted:
		e.Body, dropped = d.started(e.Seq, b)
	case session.Paused:
		if !d.linked[e.Seq] {
			what := fmt.Sprintf("that call %s waits for the session %s, which did not come with it", b.CallID, b.Session)
			e.Body, dropped = imported(b.CallID, what), []string{what}
		}
	case session.Given:
		e.Body, dropped = d.said(e.Seq, b, b.Item)
	case session.Received:
		e.Body, dropped = d.said(e.Seq, b, b.Item)
	case session.Answered:
		e.Body, dropped = d.said(e.Seq, b, b.Item)
	case session.Compacted:
		e.Body, dropped = compactedWithout(b)
	case session.TurnStarted, session.TurnEnded, session.Nested, session.Withdrawn, session.ItemsWithdrawn, session.ReasoningDropped, session.Quarantined,
		session.Restored, session.Collapsed, session.Noticed, session.Superseded, session.StopAsked, session.Stopped, session.Note:
	default: // it may be an authority that is not thought of here
		what := fmt.Sprintf("an entry of the kind %s, which imports do not know", session.Kind(e.Body))
		e.Body, dropped = imported("", what), []string{what}
	}
	return e, dropped
}

func (d *Disarm) approval(seq int64, b session.Approval) (session.Body, []string) {
	var dropped []string
	if b.Remember != nil {
		dropped = append(dropped, "the remembered rule: "+b.Remember.String())
		b.Remember = nil
	}
	if !b.Allowed || d.over(seq) {
		return b, dropped
	}
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

// imported replaces an entry that was dropped, so that the others keep their
// numbers.
func imported(callID, what string) session.Noticed {
	return session.Noticed{Kind: session.NoticeDisarmed, CallID: callID, Text: "dropped by the import: " + what}
}

// asked makes a question one about the call that is in the log.
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
	b.Rules = nil
	if b.Tool != call.name || b.Arguments != call.arguments || b.Custom != custom {
		dropped = append(dropped, fmt.Sprintf("what the question about call %s said that the call is: %s %s", b.CallID, b.Tool, b.Arguments))
		b.Tool, b.Arguments, b.Custom = call.name, call.arguments, custom
	}
	return b, dropped
}

// started takes out of the mark of a start where the call goes on, unless that
// came along, and that it may be run again, unless it is over.
func (d *Disarm) started(seq int64, b session.CallStarted) (session.Body, []string) {
	var dropped []string
	if b.Session != "" && !d.linked[seq] {
		dropped = append(dropped, fmt.Sprintf("that call %s goes on in the session %s, which did not come with it", b.CallID, b.Session))
		b.Session = ""
	}
	if b.Repeatable && !d.over(seq) {
		dropped = append(dropped, fmt.Sprintf("the leave to run call %s again", b.CallID))
		b.Repeatable = false
	}
	return b, dropped
}

// said takes a yes to a call of the API's own MCP servers out, unless the call
// has been made.
func (d *Disarm) said(seq int64, b session.Body, it item.Item) (session.Body, []string) {
	if _, made := d.made[seq]; made || !session.Consents(it) {
		return b, nil
	}
	what := fmt.Sprintf("a yes to the request %s of an MCP server", it.CallID())
	return imported(it.CallID(), what), []string{what}
}

// compactedWithout takes requests to MCP servers and the answers to them out of
// what replaces other items: a summary needs none.
func compactedWithout(b session.Compacted) (session.Body, []string) {
	var dropped []string
	var kept []item.Item
	for _, it := range b.Items {
		if it.Type() == item.TypeMCPApprovalRequest || it.Type() == item.TypeMCPApprovalResponse || session.Consents(it) {
			dropped = append(dropped, fmt.Sprintf("a %s in a compaction", it.Type()))
			continue
		}
		kept = append(kept, it)
	}
	if dropped == nil {
		return b, nil
	}
	b.Items = kept
	return b, dropped
}
