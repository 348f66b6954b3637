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

// Consents reports whether an item may be read as permission for a call that an
// endpoint wants to make on an MCP server: an approval response that does not
// clearly refuse. An item with a repeated or unusually spelled member name counts as
// permission, because endpoints do not all read such an item in the same way as this
// program.
func Consents(it item.Item) bool {
	if it.Type() != item.TypeMCPApprovalResponse {
		return it.Type() != "" && (strings.Contains(it.JSON(), "approv") || strings.Contains(it.JSON(), `\u00`)) && !plainly(it.JSON())
	}
	a, err := item.As[item.MCPApprovalResponse](it)
	return err != nil || a.Approve || !plainly(it.JSON(), "type", "id", "approval_request_id", "approve", "reason")
}

// plainly reports whether an object has no repeated member and, if only is not
// empty, no members but these.
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

// askedAgain is the reason why a copy of a session asks again about a call that was
// allowed.
const askedAgain = "it was allowed in the session that this one was copied from; an approval holds for one call in one session"

// Revocations returns the entries to append to a copy of the log so that no approval
// in it is used a second time. Each call that was allowed and is still open is asked
// about again. Permission for an MCP server's call is withdrawn unless the log shows
// that the call was made. Remembered rules stay.
//
// [Session.Fork] writes these entries with the fork. A caller that copies a log in
// another way must append them before the copy is used.
func Revocations(log []Entry) []Body {
	var v View
	yes, given := map[string]int64{}, []string(nil) // entries by the requests that they answer, and the requests in order
	for _, e := range log {
		v.Apply(e)
		var it item.Item
		switch b := e.Body.(type) {
		case InputItem:
			it = b.Item
		case CallOutput:
			it = b.Item
		case OutputItem:
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
			bodies = append(bodies, ItemsWithdrawn{Seqs: []int64{seq}, Reason: fmt.Sprintf("%s was approved in the session that this one was copied from. An approval holds for one call in one session.", id), By: "fork"})
		}
	}
	return bodies
}

// askAgain returns the question about a call, with the words of the earlier question
// if there was one.
func (c *OpenCall) askAgain() ApprovalAsked {
	asked := ApprovalAsked{CallID: c.CallID, Number: c.Number, Tool: c.Item.Name(), Reason: askedAgain}
	if c.Question != nil {
		asked.Tool, asked.Arguments, asked.Custom = c.Question.Tool, c.Question.Arguments, c.Question.Custom
		return asked
	}
	kind, _ := c.Item.Type().CallKind()
	if v, ok := c.Item.Member(kind.Input); ok {
		asked.Arguments, asked.Custom = string(v), c.Item.Type() == item.TypeCustomToolCall
		if text, ok := v.Unquote(); ok {
			asked.Arguments = text
		}
	}
	if asked.Tool == "" {
		asked.Tool = string(c.Item.Type())
	}
	return asked
}
