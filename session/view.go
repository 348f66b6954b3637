// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// View is the content of the next request, folded from the log entry by entry.
//
// Its invariant: every call in [View.Items] has exactly one output after it, every
// output has its call before it, no two calls share an id, and no reasoning stands
// without the item it led to. To hold the invariant, the view keeps back a reply
// until all its calls have their outputs. Then it lists the reply, the outputs in
// the order of the calls, and the messages that arrived meanwhile. Items that do not
// fit stay in the log and are named by [View.Diagnostics], and so are calls that were
// never started because their reply broke off.
//
// Applying the same entries gives the same bytes. A longer log gives a list that
// begins with the list of the shorter log, unless one of the added entries is a
// decision to send something else: [ItemsWithdrawn], [ReasoningDropped],
// [Quarantined], [Compacted], [Restored], [Collapsed] or [Superseded].
//
// A note follows an assistant message that broke off, so that no server treats the
// message as the beginning of its own reply; see [IsBreakNote].
//
// The zero View is empty and ready for use. A View is not safe for concurrent use.
type View struct {
	list     item.List
	from     []origin // where the list's items come from
	lines    []line   // all settled items, whether they are sent or not
	pending  []*reply // not settled yet, in order
	speaking *reply   // the last of a turn under way; the model may add to it
	ids      callIDs
	taken    int
	repairs  []Diagnostic

	// Decisions recorded in the log.
	withdrawn   map[int64]withheld // items that a guard objected to
	refused     map[int64]string   // quarantined entries, and why
	without     map[int64][]string // entries with members in quarantine, and which
	dropped     int                // the number of lines whose reasoning is left out
	collapsed   map[int64]int64    // outputs and the later output that has the same content
	repeated    map[int64]int64    // broken-off items and the entry that repeats them
	compactions []compaction       // in force; each replaces the one before

	changing change // since the last turn began
	changed  change // between the last two

	importing int64 // the entry of the last NoticeImportBegins, or 0 outside of such a part
	decides   bool  // the part has something else than messages
}

// origin says where an item of the list comes from: the entry, and the index of its
// line, or ^i for item i of the last compaction.
type origin struct {
	seq  int64
	line int
}

// line is a settled item, in the form in which it is sent unless a decision changes
// that.
type line struct {
	seq   int64
	item  item.Item
	first bool // begins a unit: a reply with all its outputs, or a message from another source
}

// reply is one reply of an assistant, and the items that arrived before it was
// settled.
type reply struct {
	nodes []*node
	after []numbered
	ended bool // no further imported items join it
	broke bool // it broke off
	room  [3]*node
}

// numbered is an item and the entry that it comes from.
type numbered struct {
	seq  int64
	item item.Item
}

// node is an item of a reply.
type node struct {
	in     *reply
	seq    int64
	item   item.Item // in the form to send
	given  bool      // imported: further items of the same reply may follow
	call   *OpenCall // for a call
	wireID string    // for a call: the id that it is sent with
	output numbered  // for a call that has one
	closed bool      // for a call that needs no output: answered in the reply, or gone
	gone   bool      // not sent: withdrawn, never started, or dropped
}

// OpenCall is a call without an output, in its state after the entries so far. It is
// a copy, so changes by the caller do not reach the view.
type OpenCall struct {
	Item item.Item
	// Seq is the number of the call's entry. Number counts the calls of the session
	// from 1, and does not depend on the store.
	Seq    int64
	Number int
	// CallID pairs the call with its output.
	CallID string
	// Given means that the call came with an imported history, so its outcome is not
	// known.
	Given bool
	// Imported means that a stranger may have written the call, or an entry that affects it, so
	// no rule allows it. The call is in an imported part of the log (one that ends with
	// [NoticeImported]), or it was open when such a part began and the part contains more than
	// messages.
	Imported bool
	// Started means that the log records its start.
	Started bool
	// Lost means that the call was started in an earlier run that ended before the
	// tool did: it is not known whether the call took effect.
	Lost bool
	// Repeatable means that the call may be started again after it was lost: its tool
	// allows it, and it was not lost too often.
	Repeatable bool
	// Asked means that approval was requested for the call, so that it was not started
	// at that time, even if it came with an imported history. Question is the last
	// request, or nil.
	Asked    bool
	Question *ApprovalAsked
	// Verdict is the last verdict on this call, or nil. It belongs to the call and not
	// to the call's id: it ends when the call has an output or is gone, and when
	// approval is requested again.
	Verdict *Approval
	// Paused is the session of the subagent's run that the call started, if the run
	// waits or was interrupted by a crash.
	Paused string
	// Until is when the call should be started again, if it has said that its result is not
	// there yet; Reason says why. Both are zero once it is started.
	Until  time.Time
	Reason string

	nested string // the session of the run that was started for it
	starts int
}

// maxStarts limits how often a call is started, because the call may be what crashes
// the process.
const maxStarts = 3

func (c *OpenCall) start(b CallStarted) {
	c.starts++
	c.Started, c.Lost, c.Paused, c.nested = true, false, "", b.Session
	c.Until, c.Reason = time.Time{}, ""
	c.Repeatable = b.Repeatable && c.starts < maxStarts
}

func (c *OpenCall) pause(b Paused) {
	c.Started, c.Paused, c.Until, c.Reason = false, b.Session, b.Until, b.Reason
	if !b.Until.IsZero() {
		c.starts = 0 // it returned, so it is not what crashes the process
	}
}

// Diagnostic names an item that the view left out or replaced by a marker, because a
// request with it would be refused or would make no sense.
type Diagnostic struct {
	Seq    int64
	Item   item.Item
	Reason string
}

// Apply folds the log's next entry.
func (v *View) Apply(e Entry) {
	v.decides = v.decides || decides(e.Body)
	switch b := e.Body.(type) {
	case InputItem:
		v.given(e.Seq, b.Item)
	case RunStarted:
		v.resume()
	case TurnStarted:
		v.speaking = v.begin()
		v.changed, v.changing = v.changing, change{}
	case OutputItem:
		v.received(e.Seq, b)
	case TurnEnded:
		v.endTurn(b.BrokeOff())
	case ItemsWithdrawn:
		v.withdraw(b)
	case ReasoningDropped:
		v.dropReasoning(b.Reason)
	case Quarantined:
		v.quarantine(b)
	case Compacted:
		v.compact(e.Seq, b)
	case Restored:
		v.restore(b)
	case Collapsed:
		v.collapse(b)
	case Superseded:
		v.supersede(b)
	case ApprovalAsked:
		if c := v.call(b.CallID, b.Number); c != nil {
			c.Asked, c.Question, c.Verdict = true, &b, nil
		}
	case Approval:
		if c := v.call(b.CallID, b.Number); c != nil {
			c.Verdict = &b
		}
	case CallStarted:
		if c := v.call(b.CallID, 0); c != nil {
			c.start(b)
		}
	case Paused:
		if c := v.call(b.CallID, 0); c != nil {
			c.pause(b)
		}
	case CallOutput:
		v.answer(e.Seq, b.CallID, b.Item)
	case CallDropped:
		if n := v.unanswered(b.CallID, ""); n != nil {
			n.closed, n.gone = true, true
		}
	case Noticed:
		v.noticed(e.Seq, b.Kind)
	}
	v.settle()
}

// decides reports whether an entry may change what calls mean: it does more than to add a message,
// or to end an imported part.
func decides(b Body) bool {
	switch b := b.(type) {
	case InputItem:
		return b.Item.Type() != item.TypeMessage
	case Noticed:
		return b.Kind != NoticeImported
	}
	return true
}

// noticed applies a notice about the log itself. In a copy of a damaged log, a
// verdict may have been used already, and a lost entry may have been the start or
// the output of any call without an output.
func (v *View) noticed(seq int64, kind string) {
	switch kind {
	case NoticeImportBegins:
		v.importing, v.decides = seq, false
	case NoticeImported:
		for n := range v.openCalls() {
			n.call.Imported = n.call.Imported || v.importing == 0 || v.decides || n.seq > v.importing
		}
		v.importing = 0
	}
	if kind != NoticeEntryLost && kind != NoticePayloadLost && kind != NoticeSalvaged {
		return
	}
	for n := range v.openCalls() {
		c := n.call
		c.Verdict = nil
		if kind != NoticeSalvaged {
			c.Started, c.Lost, c.Repeatable, c.Paused, c.nested = true, true, false, "", ""
		}
	}
}

// resume marks the calls that an earlier run left unfinished.
func (v *View) resume() {
	for n := range v.openCalls() {
		c := n.call
		if c.Started && c.nested != "" {
			c.Started, c.Paused = false, c.nested
		}
		c.Lost = c.Lost || c.Started
	}
	if v.speaking != nil {
		v.endTurn(true)
	}
}

// endTurn ends the reply under way. If there is none, it ends the last imported
// reply: transcripts mark a reply that broke off in this way.
func (v *View) endTurn(brokeOff bool) {
	r := v.speaking
	v.speaking = nil
	if r == nil {
		r = v.last()
	}
	switch {
	case !brokeOff:
		return
	case r == nil:
		v.noteBreak() // it is settled
		return
	}
	r.ended, r.broke = true, true
	for _, n := range r.nodes {
		if n.open() && !n.call.Started {
			n.closed, n.gone = true, true
			v.ids.giveBack(n.wireID)
			v.repair(n.seq, n.call.Item, neverStarted)
		}
	}
}

// Items returns the view's list, which is the input of a turn once its [TurnStarted]
// is applied. While [View.Open] is not empty, the reply with the open calls is not
// in the list. The list belongs to the view: clone it to keep it.
func (v *View) Items() *item.List { return &v.list }

// Open returns the calls without an output, in order.
func (v *View) Open() []OpenCall { return v.AppendOpen(nil) }

// AppendOpen appends the calls without an output, in order.
func (v *View) AppendOpen(open []OpenCall) []OpenCall {
	for n := range v.openCalls() {
		open = append(open, *n.call)
	}
	return open
}

// openCalls yields the nodes of the calls without an output, in order.
func (v *View) openCalls() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for _, r := range v.pending {
			for _, n := range r.nodes {
				if n.open() && !yield(n) {
					return
				}
			}
		}
	}
}

// Call returns the open call that an entry with this id and number refers to: the
// first open call with the id, or, if number is not 0, only the call that has both.
// It returns false if the entry's call has its output already and a server uses the
// id again.
func (v *View) Call(callID string, number int) (OpenCall, bool) {
	if c := v.call(callID, number); c != nil {
		return *c, true
	}
	return OpenCall{}, false
}

func (v *View) call(callID string, number int) *OpenCall {
	for n := range v.openCalls() {
		if n.call.CallID == callID && (number == 0 || number == n.call.Number) {
			return n.call
		}
	}
	return nil
}

// Len returns the number of items that the view has accepted. Blank items, and
// outputs that no call waits for, do not count.
func (v *View) Len() int { return v.taken }

// Why items are left out.
const (
	ledNowhere   = "reasoning that led to nothing: no item of its reply follows"
	neverStarted = "a call that was not started: the reply that made it broke off"
	saidNothing  = "a message that broke off before a word of it was said"
)

func (v *View) repair(seq int64, it item.Item, reason string) {
	v.repairs = append(v.repairs, Diagnostic{seq, it, reason})
}

// Diagnostics returns the items that were left out or replaced.
func (v *View) Diagnostics() []Diagnostic { return v.repairs }

func (n *node) open() bool { return n.call != nil && n.output.item.IsZero() && !n.closed }

// begin starts a new reply after all others.
func (v *View) begin() *reply {
	r := new(reply)
	r.nodes = r.room[:0]
	v.pending = append(v.pending, r)
	return r
}

func (v *View) last() *reply {
	if len(v.pending) == 0 {
		return nil
	}
	return v.pending[len(v.pending)-1]
}

// given adds an item from outside. Items of an imported reply arrive one by one, so
// they join the last reply unless a message of another role came in between.
func (v *View) given(seq int64, it item.Item) {
	last := v.last()
	switch {
	case blank(it):
	case it.IsOutput():
		v.answer(seq, it.CallID(), it)
	case said(it):
		if v.stub(seq, it, false) {
			return
		}
		if last == nil || last == v.speaking || last.ended || len(last.after) > 0 {
			last = v.begin()
		}
		v.say(last, seq, it, true)
	case last != nil:
		v.taken++
		last.after = append(last.after, numbered{seq, it})
	default:
		v.taken++
		v.put(seq, it, true)
	}
}

// stub leaves out a fragment of a broken-off reply that is of no use: reasoning that
// led to nothing, or a message without words.
func (v *View) stub(seq int64, it item.Item, partial bool) bool {
	reasoning := it.Type() == item.TypeReasoning
	if !reasoning && it.Type() != item.TypeMessage || !partial && it.Status() != item.StatusIncomplete {
		return false
	}
	switch {
	case reasoning:
		v.repair(seq, it, ledNowhere)
	case wordless(it):
		v.repair(seq, it, saidNothing)
	default:
		return false
	}
	return true
}

// received adds an item to the reply under way. An endpoint that runs a tool itself
// sends both the call and its output; such a call needs no other output.
func (v *View) received(seq int64, b OutputItem) {
	if v.stub(seq, b.Item, b.Partial) {
		return
	}
	r := v.speaking
	if r == nil {
		r = v.begin()
	}
	if !b.Item.IsOutput() {
		v.say(r, seq, b.Item, false)
		return
	}
	n := v.callOf(b.Item, b.Item.CallID())
	if n == nil {
		v.leaveOut(seq, b.Item)
		return
	}
	n.closed = true
	v.say(r, seq, b.Item, false)
}

func (v *View) say(r *reply, seq int64, it item.Item, given bool) {
	n := &node{in: r, seq: seq, item: it, given: given}
	if it.IsCall() {
		n.call = &OpenCall{Item: it, Seq: seq, CallID: it.CallID(), Given: given}
		n.item, n.wireID = v.ids.take(it, n.call.CallID)
		n.call.Number = v.ids.calls
	}
	v.taken++
	r.nodes = append(r.nodes, n)
}

// answer pairs an output with the first call of its id and kind that has none. Items
// that are imported after an output belong to another reply.
func (v *View) answer(seq int64, callID string, out item.Item) {
	n := v.callOf(out, callID)
	if n == nil {
		v.leaveOut(seq, out)
		return
	}
	wired, ok := withCallID(out, n.wireID)
	if !ok {
		v.leaveOut(seq, out)
		return
	}
	v.taken++
	n.output = numbered{seq, wired}
	n.in.ended = true
}

func (v *View) leaveOut(seq int64, out item.Item) {
	reason := fmt.Sprintf("%s: no call %q is waiting for it", out.Type(), out.CallID())
	v.repair(seq, out, reason)
}

// callOf returns the call that the output answers, or nil.
func (v *View) callOf(out item.Item, callID string) *node {
	if t := out.Type().Answers(); t != "" {
		return v.unanswered(callID, t)
	}
	return nil
}

// unanswered returns the first open call of that id, and of that type unless it
// is "".
func (v *View) unanswered(callID string, t item.Type) *node {
	for n := range v.openCalls() {
		if n.call.CallID == callID && (t == "" || t == n.item.Type()) {
			return n
		}
	}
	return nil
}

// settle moves complete replies into the list.
func (v *View) settle() {
	for len(v.pending) > 0 {
		r := v.pending[0]
		if r == v.speaking || r.waits() || len(v.pending) == 1 && r.mayGoOn() {
			return
		}
		v.pending = v.pending[1:]
		v.add(r)
	}
}

func (r *reply) waits() bool {
	for _, n := range r.nodes {
		if n.open() {
			return true
		}
	}
	return false
}

// mayGoOn reports whether the reply so far ends in imported reasoning, which the
// next item may belong to.
func (r *reply) mayGoOn() bool {
	if len(r.nodes) == 0 || r.ended || len(r.after) > 0 {
		return false
	}
	last := r.nodes[len(r.nodes)-1]
	return last.given && last.item.Type() == item.TypeReasoning
}

// add puts a settled reply into the list. It leaves out reasoning whose following
// item is not there, and items that are gone.
func (v *View) add(r *reply) {
	first := true
	put := func(seq int64, it item.Item) {
		if v.put(seq, it, first) {
			first = false
		}
	}
	for i, n := range r.nodes {
		switch {
		case n.gone:
		case n.item.Type() == item.TypeReasoning && !r.followed(i):
			if v.repeated[n.seq] == 0 { // or it was left out already
				v.repair(n.seq, n.item, ledNowhere)
			}
		default:
			put(n.seq, n.item)
		}
	}
	for _, n := range r.nodes {
		if !n.gone {
			put(n.output.seq, n.output.item)
		}
	}
	// The message of an imported reply may be settled already.
	imported := len(r.nodes) > 0 && r.nodes[0].given
	if r.broke && (!first || imported) || !first && incomplete(v.lines[len(v.lines)-1].item) {
		v.noteBreak()
	}
	for _, a := range r.after {
		v.put(a.seq, a.item, true)
	}
}

// incomplete reports whether the status of a message says that it broke off.
func incomplete(it item.Item) bool { return spoken(it) && it.Status() == item.StatusIncomplete }

// followed reports whether the first item after i that is not reasoning is
// sent.
func (r *reply) followed(i int) bool {
	for _, n := range r.nodes[i+1:] {
		if n.item.Type() != item.TypeReasoning {
			return !n.gone
		}
	}
	return false
}

// said reports whether an imported item comes from an assistant. All do except for
// the messages of other roles and item references.
func said(it item.Item) bool {
	switch it.Type() {
	case item.TypeMessage:
		return it.Role() == item.RoleAssistant
	case item.TypeItemReference:
		return false
	}
	return true
}

// blank reports whether a message has no content. A message with an id comes from a
// model and does not count as blank.
func blank(it item.Item) bool {
	if it.IsZero() {
		return true
	}
	return it.Type() == item.TypeMessage && it.ID() == "" && wordless(it)
}

// wordless reports whether a message holds only white space.
func wordless(it item.Item) bool {
	m, err := item.As[item.Message](it)
	if err != nil {
		return false
	}
	for _, p := range m.Content.Parts {
		text := ""
		switch p := p.(type) {
		case *item.InputText:
			text = p.Text
		case *item.OutputText:
			text = p.Text
		default:
			return false
		}
		if strings.TrimSpace(text) != "" {
			return false
		}
	}
	return strings.TrimSpace(m.Content.Text) == ""
}
