// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

// The tags of marks: elements of a transcript that add no item and say what its
// items do not. They stand at the top level and have no content; in a message
// they are text. In an imported file they say nothing.
const (
	// RunTag begins what a run adds, and says what made it.
	RunTag = "run"
	// TurnTag begins a reply, TurnEndTag ends it and says how. A reply without an
	// end has broken off.
	TurnTag    = "turn"
	TurnEndTag = "turn_end"
	// CallTag says what became of a call: see [CallStarted].
	CallTag = "call"
	// DecisionTag says that something else is sent from there on than was said:
	// see [DecisionCollapsed].
	DecisionTag = "decision"
	// NoticeTag holds a notice: what the person at a run must know and is not an
	// error.
	NoticeTag = "notice"
	// NestedTag says what a run came to that a call started; without a call, the run
	// of an agent in a message.
	NestedTag = "nested"
)

// What the attribute state of a [CallTag] can say.
const (
	// CallStarted: the tool was about to run. Without a response, whether it took
	// effect is not known.
	CallStarted = "started"
	// CallWaiting: the call waits for an approval, and was not started.
	CallWaiting = "waiting"
	// CallWithdrawn: the call can have no response, and is not sent.
	CallWithdrawn = "withdrawn"
)

// What the attribute kind of a [DecisionTag] can say. Its items are numbers that
// count the file's items backwards from the mark: 1 is the last one before it.
const (
	// DecisionCollapsed: markers are sent for the outputs, because the one that by
	// names brought the same again.
	DecisionCollapsed = "collapsed"
	// DecisionQuarantined: a marker is sent for the item, because the endpoint
	// refused it, for the reason.
	DecisionQuarantined = "quarantined"
	// DecisionSuperseded: the items are not sent, because the one that by names says
	// it again from its beginning.
	DecisionSuperseded = "superseded"
	// DecisionWithdrawn: the items are not sent, because a guard, which by names,
	// objected to them, for the reason.
	DecisionWithdrawn = "withdrawn"
	// DecisionReasoning: reasoning before the mark is not sent, for the reason.
	DecisionReasoning = "reasoning_dropped"
	// DecisionCompacted: the content, a JSON array of items, is sent for the items
	// before the mark up to the one that items names, but for those in kept and the
	// instructions. With a failure it had no effect.
	DecisionCompacted = "compacted"
	// DecisionRestored: what compactions replaced is sent again. The items count
	// compactions, backwards: 1 takes the last one back, 2 the last two.
	DecisionRestored = "restored"
)

const decisionKinds = DecisionCollapsed + " " + DecisionSuperseded + " " + DecisionQuarantined + " " + DecisionWithdrawn + " " + DecisionReasoning + " " +
	DecisionCompacted + " " + DecisionRestored

// IsMark reports whether elements of the tag are marks.
func IsMark(tag string) bool {
	switch tag {
	case RunTag, TurnTag, TurnEndTag, CallTag, DecisionTag, NoticeTag, NestedTag:
		return true
	}
	return false
}

// AppendMark appends an element without content, on a line of its own. Of the
// attributes that have neither a value nor Bare none is written.
func AppendMark(dst []byte, tag string, attrs ...Attr) []byte {
	dst = append(append(dst, '<'), tag...)
	for _, a := range attrs {
		if a.Bare {
			dst = append(append(dst, ' '), a.Name...)
		} else {
			dst = appendAttr(dst, a.Name, a.Value)
		}
	}
	return append(dst, "/>\n"...)
}

// mark checks a mark.
func (c *compiler) mark(n *node) {
	if n.tag == CallTag {
		c.required(n, "state")
		c.oneOf(n, "state", CallStarted+" "+CallWaiting+" "+CallWithdrawn)
	}
	if n.tag == DecisionTag {
		c.required(n, "kind")
		c.oneOf(n, "kind", decisionKinds)
	}
}
