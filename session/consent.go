// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// Consents reports whether an item may be read as a yes to a call that an
// endpoint wants to make on an MCP server: an approval response that does not
// plainly say no. An item that names a member of it twice, or in another
// spelling, counts as one, for endpoints do not all read it as this program does.
func Consents(it item.Item) bool {
	if it.Type() != item.TypeMCPApprovalResponse {
		return it.Type() != "" && (strings.Contains(it.JSON(), "approv") || strings.Contains(it.JSON(), `\u00`)) && !plainly(it.JSON())
	}
	a, err := item.As[item.MCPApprovalResponse](it)
	return err != nil || a.Approve || !plainly(it.JSON(), "type", "id", "approval_request_id", "approve", "reason")
}

// plainly reports whether an object has no member twice, and no other members
// than these if there are any.
func plainly(object string, only ...string) bool {
	d := jsontext.NewDecoder(strings.NewReader(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return false
	}
	var names []string
	for d.PeekKind() == '"' {
		t, err := d.ReadToken()
		if err != nil {
			return false
		}
		name := t.String()
		if slices.Contains(names, name) || len(only) > 0 && !slices.Contains(only, name) || d.SkipValue() != nil {
			return false
		}
		names = append(names, name)
	}
	return d.PeekKind() == '}'
}

// askedAgain is why a copy of a session asks about a call that somebody allowed.
const askedAgain = "it was allowed in the session that this one is a copy of; an approval is for one call, and stays there"

// Revocations returns the entries to append to a copy of the log so that no
// approval in it counts a second time. Each call that was allowed and is open is
// asked about again. A yes to a call of an MCP server that the log does not show
// to be made is withdrawn. Rules that somebody gave to be remembered stay.
//
// [Session.Fork] appends them. A caller that copies a log in another way, as
// with a [Forker], does the same before anything goes on with the copy.
func Revocations(log []Entry) []Body {
	var v View
	yes, given := map[string]int64{}, []string(nil) // entries by the requests that they answer, and those in order
	for _, e := range log {
		v.Apply(e)
		var it item.Item
		switch b := e.Body.(type) {
		case Given:
			it = b.Item
		case Answered:
			it = b.Item
		case Received:
			it = b.Item
			if it.Type() == item.TypeMCPCall {
				id, _ := it.Member("approval_request_id")
				text, _ := id.Unquote()
				delete(yes, text)
			}
		case ItemsWithdrawn:
			for id, seq := range yes {
				if slices.Contains(b.Seqs, seq) {
					delete(yes, id)
				}
			}
		}
		if it.Type() == item.TypeMCPApprovalResponse && Consents(it) {
			yes[it.CallID()] = e.Seq
			given = append(given, it.CallID())
		}
	}
	var bodies []Body
	for _, c := range v.Open() {
		switch {
		case c.Verdict == nil || !c.Verdict.Allowed:
		case c.Started && !c.Repeatable, c.Paused != "", c.nested != "": // it is not started again in a copy
		default:
			bodies = append(bodies, c.askAgain())
		}
	}
	for _, id := range given {
		if seq := yes[id]; seq > 0 {
			delete(yes, id)
			bodies = append(bodies, ItemsWithdrawn{Seqs: []int64{seq}, Reason: fmt.Sprintf("The yes to %s was given in the session that this one is a copy of, for one call.", id), By: "fork"})
		}
	}
	return bodies
}

// askAgain is the question about a call, as it was put before if it was.
func (c *OpenCall) askAgain() ApprovalAsked {
	asked := ApprovalAsked{CallID: c.CallID, Number: c.Number, Tool: c.Item.Name(), Reason: askedAgain}
	if c.Question != nil {
		asked.Tool, asked.Arguments, asked.Custom = c.Question.Tool, c.Question.Arguments, c.Question.Custom
		return asked
	}
	for _, member := range []string{"arguments", "input", "operation", "action"} {
		v, ok := c.Item.Member(member)
		if !ok {
			continue
		}
		asked.Arguments, asked.Custom = string(v), c.Item.Type() == item.TypeCustomToolCall
		if text, ok := v.Unquote(); ok {
			asked.Arguments = text
		}
		break
	}
	if asked.Tool == "" {
		asked.Tool = string(c.Item.Type())
	}
	return asked
}
