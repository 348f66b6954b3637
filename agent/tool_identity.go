// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"strings"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// This file binds answers to the tool that was asked about: another tool of the same name
// is asked about anew.

// definitionOf returns the fingerprint of a tool, which remembered answers are bound to, or
// "" if nothing but its name is known: of a tool of the endpoint that no request declares.
func definitionOf(t tool.Tool, name string, origin tool.Origin) string {
	text := origin.Identity
	if text == "" && t == nil {
		return ""
	}
	if text == "" {
		if def := t.Definition(); def != nil {
			encoded, _ := (&api.Request{Tools: []item.Tool{def}}).MarshalJSON() // a definition that has no JSON is not sent
			text = string(encoded)
		}
	}
	return session.Fingerprint(name + "\x00" + origin.Agent + "\x00" + text)
}

// originOf returns the origin of a tool of an MCP server that the endpoint calls.
func (a *Agent) originOf(call item.Item) tool.Origin {
	label, _ := call.Member("server_label")
	name, _ := label.Unquote()
	for _, def := range a.Request.Tools {
		if m := serverOf(def); m != nil && m.ServerLabel == name {
			at := cmp.Or(m.ServerURL, m.ConnectorID, m.TunnelID)
			shown, _, _ := strings.Cut(at, "?") // a query may hold a key
			return tool.Origin{Of: "the MCP server " + shown + ", which the endpoint calls", Identity: "hosted\x00" + at}
		}
	}
	return tool.Origin{}
}

// definition returns the fingerprint of the tool of a call.
func (r *Run) definition(call item.Item, t tool.Tool, name string) string {
	if plan.Hosted(call) {
		return definitionOf(nil, name, r.agent.originOf(call))
	}
	return definitionOf(t, name, tool.AnnotationsOf(t).Origin)
}

// changedSince is the text that the model reads about a call that a person allowed before
// its tool was replaced by another.
const changedSince = "The call was refused: its tool has changed since a person allowed the call. Nothing was done. Another call asks again."

// bind returns a rule that an answer adds, bound to the tool that was asked about. A rule
// about a pattern of names is meant for all of them.
func bind(r *session.Rule, name, definition string) *session.Rule {
	if r == nil || r.Verdict != session.Allow || r.Definition != "" || r.Tool != name {
		return r
	}
	bound := *r
	bound.Definition = definition
	return &bound
}
