// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"iter"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// View is what the next request carries, folded from the log entry by entry.
//
// Its invariant: every call in [View.Items] has exactly one output after it,
// every output its call before it, no two calls share an id, and no reasoning
// stands without the item it led to. To hold it, the view keeps a reply back
// until all its calls have their outputs, and then lists it, the outputs in the
// order of the calls, and what others said meanwhile. Items that fit nowhere
// stay in the log; [View.Repairs] names them, and so do calls that were never
// started because the reply that made them broke off. Applying the same entries
// gives the same bytes, and a longer log gives a list that begins with the
// shorter one's, unless an entry between them is a decision to send something
// else: [ItemsWithdrawn], [ReasoningDropped], [Quarantined], [Compacted],
// [Restored], [Collapsed] and [Superseded].
//
// Behind an assistant message that broke off stands a note that says so, so that
// no server takes the message for the beginning of its own reply; see
// [IsBreakNote].
//
// The zero View is ready. A View is not safe for concurrent use.
type View struct {
	list     item.List
	from     []origin // what the list's items are from
	lines    []line   // all that was settled, whatever is sent of it
	pending  []*reply // not settled yet, in order
	speaking *reply   // the last of a turn under way; the model may add to it
	ids      callIDs
	taken    int
	repairs  []Repair

	// What was decided.
	withdrawn   map[int64]withheld // items that a guard objected to
	refused     map[int64]string   // quarantined entries, and why
	without     map[int64][]string // entries with members in quarantine, and which
	dropped     int                // of how many lines the reasoning is left out
	collapsed   map[int64]int64    // outputs of which a later one holds all there is to know
	repeated    map[int64]int64    // what broke off and was said again, and where
	compactions []compaction       // that are in force, each of which replaces the one before

	changing change // since the last turn began
	changed  change // between the last two
}

// origin is what an item of the list is from: the entry, and the line, or ^i for
// item i of the last compaction.
type origin struct {
	seq  int64
	line int
}

// line is an item that is settled, as it is sent if nobody decides otherwise.
type line struct {
	seq   int64
	item  item.Item
	first bool // begins a unit: a reply with all its outputs, or what somebody else said
}

// reply is what an assistant said in one go, and what was said after it while
// it was not settled.
type reply struct {
	nodes []*node
	after []numbered
	ended bool // nothing imported joins it any more
	broke bool // it broke off
	room  [3]*node
}

// numbered is an item and the entry that it is from.
type numbered struct {
	seq  int64
	item item.Item
}

// node is an item of a reply.
type node struct {
	in     *reply
	seq    int64
	item   item.Item // as it is sent
	given  bool      // imported: more of the same reply may follow
	call   *OpenCall // for a call
	wireID string    // for a call: the id that it is sent with
	output numbered  // for a call that has one
	closed bool      // for a call that needs none: answered in the reply, or gone
	gone   bool      // not sent: withdrawn, never started, or dropped
}

// OpenCall is a call without an output, as it stands after the entries so far. It
// is a copy: nothing that a caller does to it reaches the view.
type OpenCall struct {
	Item item.Item
	// Seq is the number of the call's entry. Number counts the calls of the
	// session from 1, whatever store it is in.
	Seq    int64
	Number int
	// CallID pairs the call with its output.
	CallID string
	// Given says that the call came with an imported history: nothing is known
	// of what became of it.
	Given bool
	// Started says that the log has a mark of its start.
	Started bool
	// Lost says that it was started in an earlier run, which ended before the
	// tool did: whether it took effect is not known.
	Lost bool
	// Repeatable says that it may be started again all the same: its tool declares
	// that, and it was not lost too often.
	Repeatable bool
	// Asked says that somebody was asked about the call, so that it was not
	// started by then, even if it came with an imported history. Question is the
	// last entry that asked; nil if none did.
	Asked    bool
	Question *ApprovalAsked
	// Verdict is the last verdict on this call, nil while there is none. It belongs
	// to the call and not to its id: it ends when the call has an output or is gone,
	// and when somebody is asked again.
	Verdict *Approval
	// Paused names the session of the nested run that the call stands for, if
	// that waits for an approval, or was interrupted by a crash.
	Paused string

	nested string // the session of the run that was started for it
	starts int
}

// maxStarts bounds how often a call is started: it may be what brings the
// process down.
const maxStarts = 3

func (c *OpenCall) start(b CallStarted) {
	c.starts++
	c.Started, c.Lost, c.Paused, c.nested = true, false, "", b.Session
	c.Repeatable = b.Repeatable && c.starts < maxStarts
}

// Repair names an item that the view left out, or put a marker in the place
// of, because a request with it would be refused or would make no sense.
type Repair struct {
	Seq    int64
	Item   item.Item
	Reason string
}

// Apply folds the log's next entry.
func (v *View) Apply(e Entry) {
	switch b := e.Body.(type) {
	case Given:
		v.given(e.Seq, b.Item)
	case RunStarted:
		v.resume()
	case TurnStarted:
		v.speaking = v.begin()
		v.changed, v.changing = v.changing, change{}
	case Received:
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
			c.Started, c.Paused = false, b.Session
		}
	case Answered:
		v.answer(e.Seq, b.CallID, b.Item)
	case Withdrawn:
		if n := v.unanswered(b.CallID, ""); n != nil {
			n.closed, n.gone = true, true
		}
	case Noticed:
		v.noticed(b.Kind)
	}
	v.settle()
}

// noticed takes note of what a notice says of the log itself. In a copy of a log
// that was damaged a verdict may have been used already, and an entry that was lost
// may have been the start of any call that has no output, or the output.
func (v *View) noticed(kind string) {
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

// resume takes note of what an earlier run left undone.
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

// endTurn ends the reply under way. Where there is none, the last one that was
// imported is meant: a transcript says so of a reply that broke off.
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

// Items returns the view's list, which is what a turn sends once its
// [TurnStarted] is applied. While [View.Open] is not empty, the reply that has
// open calls is not in it yet. The list is the view's own: clone it to keep it.
func (v *View) Items() *item.List { return &v.list }

// Open returns the calls that have no output, in their order.
func (v *View) Open() []OpenCall { return v.AppendOpen(nil) }

// AppendOpen appends the calls that have no output, in their order.
func (v *View) AppendOpen(open []OpenCall) []OpenCall {
	for n := range v.openCalls() {
		open = append(open, *n.call)
	}
	return open
}

// openCalls yields the nodes of the calls that have no output, in their order.
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

// Call returns the call without an output that an entry means which names a call
// by its id and number: the first one of that id, and with a number only the call
// that has both. There is none when the call that the entry was written about has
// its output by now and a server uses the id again.
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

// Taken counts the items that the view has taken in. Those that are blank, and
// outputs that no call waits for, do not count.
func (v *View) Taken() int { return v.taken }

// Why items are left out.
const (
	ledNowhere   = "reasoning that led to nothing: no item of its reply follows"
	neverStarted = "a call that was not started: the reply that made it broke off"
	saidNothing  = "a message that broke off before a word of it was said"
)

func (v *View) repair(seq int64, it item.Item, reason string) {
	v.repairs = append(v.repairs, Repair{seq, it, reason})
}

// Repairs returns the items that were left out or replaced.
func (v *View) Repairs() []Repair { return v.repairs }

func (n *node) open() bool { return n.call != nil && n.output.item.IsZero() && !n.closed }

// begin starts a reply after all that there is.
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

// given adds an item from outside. Items of an imported reply come one by one,
// so they join the last reply unless somebody spoke since.
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

// stub leaves out what there is of an item that broke off, if that is of no
// use: reasoning, which led to nothing, and a message without a word.
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

// received adds an item to the reply under way. An endpoint that runs a tool
// itself sends the call and its output; then there is nothing to answer.
func (v *View) received(seq int64, b Received) {
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

// answer pairs an output with the first call of its id and kind that has none.
// Whatever is imported after an output belongs to another reply.
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

// settle moves replies from which nothing is missing into the list.
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

// mayGoOn reports whether the reply so far ends in imported reasoning, which
// leads to something.
func (r *reply) mayGoOn() bool {
	if len(r.nodes) == 0 || r.ended || len(r.after) > 0 {
		return false
	}
	last := r.nodes[len(r.nodes)-1]
	return last.given && last.item.Type() == item.TypeReasoning
}

// add puts a settled reply into the list. Reasoning whose following item is
// not there is left out, as is what is gone.
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
			v.repair(n.seq, n.item, ledNowhere)
		default:
			put(n.seq, n.item)
		}
	}
	for _, n := range r.nodes {
		if !n.gone {
			put(n.output.seq, n.output.item)
		}
	}
	// Of an imported reply the message may be settled already.
	imported := len(r.nodes) > 0 && r.nodes[0].given
	if r.broke && (!first || imported) || !first && incomplete(v.lines[len(v.lines)-1].item) {
		v.noteBreak()
	}
	for _, a := range r.after {
		v.put(a.seq, a.item, true)
	}
}

// incomplete reports whether a message says of itself that it broke off.
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

// said reports whether an imported item is an assistant's: all are but the
// messages of others, and what merely points at something.
func said(it item.Item) bool {
	switch it.Type() {
	case item.TypeMessage:
		return it.Role() == item.RoleAssistant
	case item.TypeItemReference:
		return false
	}
	return true
}

// blank reports whether a message says nothing at all. A message with an id
// was said by a model and is not such a message.
func blank(it item.Item) bool {
	if it.IsZero() {
		return true
	}
	return it.Type() == item.TypeMessage && it.ID() == "" && wordless(it)
}

// wordless reports whether a message holds white space at most.
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
