// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

// The tags of marks: elements of a transcript that add no item and record facts that
// items do not hold. They stand at the top level and have no content. Inside a
// message they are text, and in an imported file they have no effect.
const (
	// RunTag begins a run and describes how it is made.
	RunTag = "run"
	// TurnTag begins a reply, and TurnEndTag ends it with its outcome. A reply without
	// an end has broken off.
	TurnTag    = "turn"
	TurnEndTag = "turn_end"
	// CallTag records the state of a call: see [CallStarted].
	CallTag = "call"
	// DecisionTag records that from here on something else is sent: see
	// [DecisionCollapsed].
	DecisionTag = "decision"
	// NoticeTag holds a notice for the person who uses the run. It is not an error.
	NoticeTag = "notice"
	// NestedTag records the totals of a run that a call started or, without a call, of
	// an agent in a message.
	NestedTag = "nested"
	// OwnTag stands directly behind a message that the run wrote, to tell the model about
	// its answer or its call: nobody said it.
	OwnTag = "own"
)

// Values of the attribute state of a [CallTag].
const (
	// CallStarted means that the tool was about to run. Without a response it is not
	// known whether the call took effect.
	CallStarted = "started"
	// CallWaiting means that the call waits for an approval and was not started.
	CallWaiting = "waiting"
	// CallWithdrawn means that the call cannot get a response and is not sent.
	CallWithdrawn = "withdrawn"
)

// Values of the attribute kind of a [DecisionTag]. The attribute items counts the
// file's items backwards from the mark: 1 is the last one before it.
const (
	// DecisionCollapsed means that markers are sent for the outputs, because the
	// output that by names has the same content.
	DecisionCollapsed = "collapsed"
	// DecisionQuarantined means that a marker is sent for the item, because the
	// endpoint refused it for the given reason.
	DecisionQuarantined = "quarantined"
	// DecisionSuperseded means that the items are not sent, because the item that by
	// names repeats them from the beginning.
	DecisionSuperseded = "superseded"
	// DecisionWithdrawn means that the items are not sent, because the guard that by
	// names objected to them for the given reason.
	DecisionWithdrawn = "withdrawn"
	// DecisionReasoning means that reasoning before the mark is not sent, for the
	// given reason.
	DecisionReasoning = "reasoning_dropped"
	// DecisionCompacted means that the content, a JSON array of items, is sent instead
	// of the items before the mark up to the one that items names, except for those in
	// kept and the instructions. With a failure it has no effect.
	DecisionCompacted = "compacted"
	// DecisionRestored means that the items that compactions replaced are sent again.
	// The attribute items counts compactions backwards: 1 undoes the last one, 2 the
	// last two.
	DecisionRestored = "restored"
)

const decisionKinds = DecisionCollapsed + " " + DecisionSuperseded + " " + DecisionQuarantined + " " + DecisionWithdrawn + " " + DecisionReasoning + " " +
	DecisionCompacted + " " + DecisionRestored

// IsMark reports whether the tag is the tag of a mark.
func IsMark(tag string) bool {
	switch tag {
	case RunTag, TurnTag, TurnEndTag, CallTag, DecisionTag, NoticeTag, NestedTag, OwnTag:
		return true
	}
	return false
}

// AppendMark appends an element without content, on a line of its own. Attributes
// with neither a value nor Bare are omitted.
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
