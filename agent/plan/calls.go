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

// ToolName returns the name of the tool that a call is for. Calls of the API's own
// tools carry no name, so their type names the tool. A call that the endpoint makes
// on an MCP server is named LABEL.TOOL; this cannot collide with a local tool, whose
// name has no dots.
func ToolName(it item.Item) string {
	if Hosted(it) {
		label, _ := it.Member("server_label")
		text, _ := label.Unquote()
		// A dot in the label would make it look like another server's label and tool.
		return strings.ReplaceAll(plainName(text), ".", "_") + "." + plainName(it.Name())
	}
	if name := it.Type().Tool(); name != "" {
		return name
	}
	return it.Name()
}

// Hosted reports whether an item asks for approval of a call that the endpoint will
// make.
func Hosted(it item.Item) bool {
	kind, _ := it.Type().CallKind()
	return kind.ByEndpoint && it.Type() == kind.Call
}

// EndpointCall returns the name of the tool of a call that the endpoint made itself,
// such as "web_search", or LABEL.TOOL for a call on an MCP server, and whether the item
// is such a call.
func EndpointCall(it item.Item) (tool string, ok bool) {
	tool, ok = strings.CutSuffix(string(it.Type()), "_call")
	switch {
	case !ok || it.IsCall():
		return "", false
	case it.Type() == item.TypeMCPCall:
		label, _ := it.Member("server_label")
		text, _ := label.Unquote()
		return plainName(text) + "." + plainName(it.Name()), true
	}
	return plainName(tool), true
}

// plainName returns a name that patterns can match: it replaces slashes and other
// special characters, because path.Match does not match a slash with *.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '_'
	}, name)
}

// CalledBy returns the tool name of a call, and its arguments or input as JSON text.
func CalledBy(it item.Item) (name string, with item.JSON) {
	if it.Type() == item.TypeComputerCall {
		return ToolName(it), computerInput(it)
	}
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

// computerInput returns the actions of a computer call, and the endpoint's warnings if
// there are any, as one object: whoever approves the call acknowledges the warnings.
func computerInput(it item.Item) item.JSON {
	actions, several := it.Member("actions")
	if action, ok := it.Member("action"); !several && ok {
		actions = "[" + action + "]"
	}
	if actions == "" {
		return ""
	}
	text := `{"actions":` + actions
	if len(Warnings(it)) > 0 {
		checks, _ := it.Member("pending_safety_checks")
		text += `,"pending_safety_checks":` + checks
	}
	return text + "}"
}

// Warnings returns the endpoint's warnings about a computer call. A call with warnings
// runs only after a person has been asked.
func Warnings(it item.Item) []item.SafetyCheck {
	if it.Type() != item.TypeComputerCall {
		return nil
	}
	c, err := item.As[item.ComputerCall](it)
	if err != nil {
		return nil // the call cannot be read, and does not run
	}
	return c.PendingSafetyChecks
}

// Call returns the call that an effect refers to, in its current state. It reports
// false if the call already has an output.
func (s *State) Call(ref CallRef) (session.OpenCall, bool) {
	var room [4]session.OpenCall
	for _, c := range s.view.AppendOpen(room[:0]) {
		if c.Seq == ref.Seq {
			return c, true
		}
	}
	return session.OpenCall{}, false
}

// MayStart returns the call that was just received and reports whether it can start
// before the reply ends, as far as the policy is not concerned. It cannot if another
// open call has the same id.
func (s *State) MayStart(it item.Item) (session.OpenCall, bool) {
	c, ok := s.lastCall(it)
	return c, ok && s.hindrance(&c) == ""
}

// lastCall returns the call that was just received. It reports false if another open
// call has the same id, because entries identify a call only by its id.
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

// hindrance returns the reason why a call cannot run regardless of the policy, or "".
func (s *State) hindrance(c *session.OpenCall) string {
	switch {
	case c.Given && !c.Asked && !Hosted(c.Item), c.Lost && (!c.Repeatable || s.stopNow()):
		return OutcomeUnknown
	case s.stopNow() && c.Paused != "":
		return StoppedWaiting
	case s.stopNow() && !c.Until.IsZero():
		return StoppedAsking
	case s.stopNow():
		return notStarted
	case c.Item.Status() == item.StatusIncomplete:
		return callBrokeOff
	case s.run.answering != "" && !c.Started: // nobody would read its output
		return noMoreCalls
	case Hosted(c.Item): // the approval decides whether it runs
	case c.Item.Type() != item.TypeFunctionCall && c.Item.Type() != item.TypeCustomToolCall && !slices.Contains(s.Kinds, c.Item.Type()):
		return fmt.Sprintf("This client does not run calls of type %s.", c.Item.Type())
	}
	return ""
}
