// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// KnownCalls follows a log and keeps track of its calls, for programs that show
// them: entries about a call identify it only by its id. It holds the calls that
// have no output yet. The zero value is ready for use. KnownCalls is not safe for
// concurrent use.
type KnownCalls struct {
	open  map[string][]*KnownCall
	calls int  // number of calls so far
	reply bool // between the start and the end of a turn
}

// KnownCall describes a call as the log records it.
type KnownCall struct {
	CallID string
	// Number is the position of the call among the added calls, from 1: see
	// [session.OpenCall].
	Number int
	Tool   string
	// Arguments are the arguments that the tool gets. Edited means that they differ
	// from those that the model sent.
	Arguments string
	Edited    bool
	// Verdict is the last verdict, or nil if there is none yet.
	Verdict *session.Approval
	// Ran means that the call was started; an output of a call that did not run
	// comes from no tool. Early means that it was started while the reply was still
	// arriving. Begun is the time of the start, if its entry has one.
	Ran, Early bool
	Begun      time.Time
	// Session is the session of the subagent that the call started, or "".
	Session string
}

// Add applies the next entry of the log. It returns the call that the entry is
// about, in its state after the entry. It returns nil if the entry is not about a
// call, or if the log does not have the call. The returned call does not change
// until the next Add.
func (k *KnownCalls) Add(e session.Entry) *KnownCall {
	switch b := e.Body.(type) {
	case session.TurnStarted:
		k.reply = true
	case session.TurnEnded:
		k.reply = false
	case session.InputItem:
		return k.said(b.Item)
	case session.OutputItem:
		return k.said(b.Item)
	case session.ApprovalAsked:
		return k.numbered(b.CallID, b.Number)
	case session.Approval:
		c := k.numbered(b.CallID, b.Number)
		if c != nil {
			c.Verdict = &b
			if b.Edited != "" {
				c.Arguments, c.Edited = b.Edited, true
			}
		}
		return c
	case session.CallStarted:
		c := k.find(b.CallID)
		if c != nil {
			c.Ran, c.Early, c.Begun, c.Session = true, k.reply, e.Time, cmp.Or(b.Session, c.Session)
			if b.Arguments != "" {
				c.Arguments, c.Edited = b.Arguments, true
			}
		}
		return c
	case session.SubagentUsage:
		return k.find(b.CallID)
	case session.Paused:
		return k.find(b.CallID)
	case session.Noticed:
		if b.Kind == session.NoticeHandoff {
			return k.find(b.CallID)
		}
	case session.CallOutput:
		return k.close(b.CallID)
	case session.CallDropped:
		return k.close(b.CallID)
	}
	return nil
}

// said applies an item, which may be a call or, in an imported history, an output.
func (k *KnownCalls) said(it item.Item) *KnownCall {
	if it.IsOutput() {
		return k.close(it.CallID())
	}
	if !it.IsCall() && !plan.Hosted(it) {
		return nil
	}
	_, with := plan.CalledBy(it)
	k.calls++
	c := &KnownCall{CallID: it.CallID(), Number: k.calls, Tool: plan.ToolName(it), Arguments: string(with)}
	if text, ok := with.Unquote(); ok {
		c.Arguments = text
	}
	if k.open == nil {
		k.open = map[string][]*KnownCall{}
	}
	k.open[c.CallID] = append(k.open[c.CallID], c)
	return c
}

// find returns the first open call with an id, or nil. If several calls have the
// same id, their outputs come in the order of the calls.
func (k *KnownCalls) find(id string) *KnownCall {
	if calls := k.open[id]; len(calls) > 0 {
		return calls[0]
	}
	return nil
}

// numbered returns the call with an id and a number. The number distinguishes calls
// with the same id. If no call has the number, it returns the first call with the
// id.
func (k *KnownCalls) numbered(id string, number int) *KnownCall {
	for _, c := range k.open[id] {
		if c.Number == number {
			return c
		}
	}
	return k.find(id)
}

func (k *KnownCalls) close(id string) *KnownCall {
	// An output closes the first open call with its id.
	c := k.find(id)
	switch calls := k.open[id]; len(calls) {
	case 0:
	case 1:
		delete(k.open, id)
	default:
		k.open[id] = calls[1:]
	}
	return c
}
