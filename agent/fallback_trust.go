// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// This file keeps what belongs to the endpoint of one candidate of a Fallback from the
// others.

// elsewhereReason is the reason why reasoning is no longer sent.
const elsewhereReason = "another endpoint is asked, and the reasoning is encrypted for the one before"

// sift records that reasoning and compactions which belong to another candidate, or to the
// endpoint of another agent, are no longer sent, before candidate i is asked.
func (r *Run) sift(f Fallback, i int) error {
	reasoning, packed := r.foreign(f, i)
	if reasoning {
		if err := r.record(session.ReasoningDropped{Reason: elsewhereReason}); err != nil {
			return err
		}
	}
	for packed {
		seq := r.state.View().OpaqueCompaction()
		if seq == 0 {
			break
		}
		if err := r.record(session.Restored{Seq: seq}); err != nil {
			return err
		}
	}
	return nil
}

// foreign reports whether the log has encrypted reasoning, or compactions, that candidate
// i must not have. What a program appended belongs to the candidate of that time.
//
// Since the agent of the run speaks, the log does not name candidates: a run begins with the
// first one, and each notice stands for the next one. What is older was made by another
// agent, whose candidates are others. It belongs to the endpoint that the log names.
func (r *Run) foreign(f Fallback, i int) (reasoning, packed bool) {
	log := r.session.Log()
	own := 0 // where the agent begins to speak
	for k, e := range log {
		if b, is := e.Body.(session.Noticed); is && b.Kind == session.NoticeHandoff {
			own = k + 1
		}
	}
	var made session.Setup
	n := 0
	for k, e := range log {
		made.Apply(e.Body)
		others := f.trust(n%len(f)) != f.trust(i)
		if k < own {
			others = !r.mayHave(f, i, made.Endpoint)
		}
		switch b := e.Body.(type) {
		case session.RunStarted:
			if !b.Resumes {
				n = 0
			}
		case session.Noticed:
			switch b.Kind {
			case session.NoticeFallback:
				n++
			case session.NoticeHandoff: // the other agent begins with its first candidate
				n = 0
			}
		case session.ReasoningDropped:
			reasoning = false
		case session.OutputItem:
			reasoning = reasoning || others && sealed(b.Item)
		case session.InputItem:
			reasoning = reasoning || others && sealed(b.Item)
		case session.Compacted:
			packed = packed || others && slices.ContainsFunc(b.Items, sealed)
		}
	}
	return reasoning, packed
}

// mayHave reports whether candidate i may have what belongs to an endpoint.
func (r *Run) mayHave(f Fallback, i int, endpoint string) bool {
	for j := range f {
		if f.trust(j) == f.trust(i) && f.only(r.whole, j).endpoint() == endpoint {
			return true
		}
	}
	return false
}

// sealed reports whether only the endpoint that made an item can read it.
func sealed(it item.Item) bool {
	if it.Type() != item.TypeReasoning && it.Type() != item.TypeCompaction {
		return false
	}
	text, _ := it.Member("encrypted_content")
	return text != "" && text != "null"
}

// withoutSealed returns a request without the items that only another endpoint can read.
func withoutSealed(req *api.Request) *api.Request {
	if req.Input == nil {
		return req
	}
	own := *req
	own.Input = new(item.List)
	for _, it := range req.Input.All() {
		if !sealed(it) {
			own.Input.Append(it)
		}
	}
	return &own
}

// withoutSecrets returns a request without the hosted tools that hold secrets. Without
// its secret such a tool would fail, and some endpoints then refuse the request. A tool
// choice that names one of them is changed, so that it does not.
func withoutSecrets(req *api.Request) *api.Request {
	own := *req
	own.Tools = nil
	for _, t := range req.Tools {
		if !holdsSecrets(t) {
			own.Tools = append(own.Tools, t)
		} else if c, err := api.ParseToolChoice(own.ToolChoice); err == nil {
			own.ToolChoice = choiceWithout(own.ToolChoice, c, t)
		}
	}
	return &own
}

// choiceWithout returns a tool choice that does not name a hosted tool. If nothing that it allows
// is left, no tool may be called.
func choiceWithout(whole item.JSON, c api.ToolChoice, t item.Tool) item.JSON {
	server, isServer := t.(*item.MCPTool)
	names := func(kind, label string) bool {
		return kind == t.ToolType() && (!isServer || label == "" || label == server.ServerLabel)
	}
	if c.Type != api.ChoiceTypeAllowed {
		if names(c.Type, c.ServerLabel) {
			return ""
		}
		return whole
	}
	n := len(c.Tools)
	c.Tools = slices.DeleteFunc(slices.Clone(c.Tools), func(allowed item.JSON) bool {
		it, err := item.ParseString(string(allowed))
		if err != nil {
			return false
		}
		label, _ := it.Member("server_label")
		text, _ := label.Unquote()
		return names(string(it.Type()), text)
	})
	switch len(c.Tools) {
	case n:
		return whole
	case 0:
		return api.ChoiceNone
	}
	if left, err := c.JSON(); err == nil {
		return left
	}
	return whole
}

// holdsSecrets reports whether the definition of a hosted tool has secrets.
func holdsSecrets(t item.Tool) bool {
	switch t.(type) {
	case *item.FunctionTool, *item.CustomTool, nil:
		return false // their schemas may have members of these names
	}
	text, err := (&api.Request{Tools: []item.Tool{t}}).MarshalJSON()
	if err != nil {
		return false // it is not sent either
	}
	for d := jsontext.NewDecoder(bytes.NewReader(text)); ; { // a name may have blanks around it, and escapes
		token, err := d.ReadToken()
		if err != nil {
			return false
		}
		if kind, n := d.StackIndex(d.StackDepth()); kind == '{' && n%2 == 1 && token.Kind() == '"' && slices.Contains([]string{"authorization", "headers", "domain_secrets"}, token.String()) {
			return true
		}
	}
}
