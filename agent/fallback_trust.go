// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// This file keeps what belongs to the endpoint of one candidate of a Fallback from the
// others.

// elsewhereReason is the reason why reasoning is no longer sent.
const elsewhereReason = "another endpoint is asked, and the reasoning is encrypted for the one before"

// sift records that reasoning and compactions which belong to another candidate are no
// longer sent, before candidate i is asked.
func (r *Run) sift(f Fallback, i int) error {
	reasoning, packed := f.foreign(r.session.Log(), i)
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

// foreign reports whether a log has encrypted reasoning, or compactions, that candidate
// i must not have. The log does not name candidates: a run begins with the first one,
// and each notice stands for the next one. What a program appended belongs to the
// candidate of that time.
func (f Fallback) foreign(log []session.Entry, i int) (reasoning, packed bool) {
	n := 0
	for _, e := range log {
		others := f.trust(n%len(f)) != f.trust(i)
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
// choice that names one of them is left out, too.
func withoutSecrets(req *api.Request) *api.Request {
	own := *req
	own.Tools = nil
	for _, t := range req.Tools {
		if !holdsSecrets(t) {
			own.Tools = append(own.Tools, t)
		} else if c, err := api.ParseToolChoice(req.ToolChoice); err == nil && c.Type == t.ToolType() {
			own.ToolChoice = ""
		}
	}
	return &own
}

// holdsSecrets reports whether the definition of a hosted tool has secrets.
func holdsSecrets(t item.Tool) bool {
	switch t.(type) {
	case *item.FunctionTool, *item.CustomTool, nil:
		return false // their schemas may have members of these names
	}
	text, err := (&api.Request{Tools: []item.Tool{t}}).MarshalJSON()
	return err == nil && slices.ContainsFunc([]string{`"authorization":`, `"headers":`, `"domain_secrets":`}, func(member string) bool {
		return strings.Contains(string(text), member)
	})
}
