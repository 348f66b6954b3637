// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// toolName is what the tool is called that a call is for: calls of the API's own
// tools name none. A call that the endpoint makes on an MCP server is called
// LABEL.TOOL, which no tool of ours can be: their names have no dots.
func ToolName(it item.Item) string {
	if Hosted(it) {
		label, _ := it.Member("server_label")
		text, _ := label.Unquote()
		return plainName(text) + "." + plainName(it.Name())
	}
	if name := it.Type().Tool(); name != "" {
		return name
	}
	return it.Name()
}

// hosted reports whether an item asks whether the endpoint may make a call.
func Hosted(it item.Item) bool {
	kind, _ := it.Type().CallKind()
	return kind.ByEndpoint && it.Type() == kind.Call
}

// plainName returns a name as patterns can match it: a slash would stand between
// a pattern such as * and the name.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '_'
	}, name)
}

// calledBy is the name that a call is made by and the text of what it is made
// with.
func CalledBy(it item.Item) (name string, with item.JSON) {
	members := []string{"arguments", "action"} // of calls that the endpoint makes
	if kind, ok := it.Type().CallKind(); ok {
		members = []string{kind.Input}
	}
	for _, member := range members {
		if v, ok := it.Member(member); ok {
			return ToolName(it), v
		}
	}
	return ToolName(it), ""
}

// Call returns the call that an effect names, as it stands now, if it has no output.
func (s *State) Call(ref CallRef) (session.OpenCall, bool) {
	var room [4]session.OpenCall
	for _, c := range s.view.AppendOpen(room[:0]) {
		if c.Seq == ref.Seq {
			return c, true
		}
	}
	return session.OpenCall{}, false
}

// MayStart returns the call that was just received, if it could be started before
// the reply ends, whatever the policy says. It could not if another open call has
// its id.
func (s *State) MayStart(it item.Item) (session.OpenCall, bool) {
	c, ok := s.lastCall(it)
	return c, ok && s.hindrance(&c) == ""
}

// lastCall returns the call that was just received, unless another open call
// has its id, which is all that entries name it by.
func (s *State) lastCall(it item.Item) (c session.OpenCall, ok bool) {
	var room [4]session.OpenCall
	open := s.view.AppendOpen(room[:0])
	if len(open) == 0 {
		return c, false
	}
	last := open[len(open)-1]
	for _, other := range open[:len(open)-1] {
		if other.CallID == last.CallID {
			return c, false
		}
	}
	return last, last.Item == it
}

// hindrance says why a call cannot run, whatever the policy says, or "".
func (s *State) hindrance(c *session.OpenCall) string {
	switch {
	case c.Given && !c.Asked && !Hosted(c.Item), c.Lost && (!c.Repeatable || s.stopNow()):
		return OutcomeUnknown
	case s.stopNow() && c.Paused != "":
		return StoppedWaiting
	case s.stopNow():
		return notStarted
	case c.Item.Status() == item.StatusIncomplete:
		return callBrokeOff
	case Hosted(c.Item): // whether it runs is what we are asked
	case c.Item.Type() != item.TypeFunctionCall && c.Item.Type() != item.TypeCustomToolCall && !slices.Contains(s.Kinds, c.Item.Type()):
		return fmt.Sprintf("This client does not run calls of type %s.", c.Item.Type())
	}
	return ""
}
