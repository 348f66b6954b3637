// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// This file writes to the audit log. What cannot be recorded is not started: a log with
// gaps would prove nothing, and somebody could cause a gap, for example by filling the
// disk.

// errUnrecorded is what a model reads. The person gets a notice with the reason.
var errUnrecorded = errors.New("it could not be recorded in the audit log")

// record writes records about this host's file, if there is a log.
func (h *Host) record(ctx context.Context, records ...audit.Record) error {
	if h.cfg.Audit == nil {
		return nil
	}
	file, claim := h.about()
	for i, r := range records {
		r.Program = cmp.Or(r.Program, h.cfg.Program)
		r.File, r.Claim = cmp.Or(r.File, file), cmp.Or(r.Claim, claim)
		records[i] = r.Hidden(h.hide)
	}
	err := h.cfg.Audit(ctx, records...)
	if err != nil && !h.unrecorded.Swap(true) {
		h.cfg.notify(NoticeAudit, "%v; what cannot be recorded is not started", err)
	}
	return err
}

// about returns the path of the file, and the hash of its content with all that it
// includes.
func (h *Host) about() (path, claim string) {
	if h.File == nil { // agents in its messages run before it is loaded
		path, err := ResolvePath(h.cfg.File)
		if err != nil {
			path = h.cfg.File
		}
		return path, ""
	}
	c := h.File.Claim()
	return cmp.Or(c.Path, h.File.Path), c.Hash()
}

// hide removes all secrets that the host knows.
func (h *Host) hide(text string) string {
	text = h.cfg.Environment.Hide(text)
	for _, value := range h.sent {
		text = endpoint.NewKey(value).Hide(text)
	}
	return text
}

// agree asks about a claim, and records the answer.
func (h *Host) agree(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
	if h.cfg.Trust == nil {
		return trust.Agreement{}, fmt.Errorf("%w\n  hint: host.Config.Trust decides: a trust.Store keeps agreements, and trust.Everything is for files of your own", &trust.UntrustedError{Claim: c})
	}
	a, err := h.cfg.Trust(ctx, c)
	if failed := h.record(ctx, audit.Agreed(c, a, err)); failed != nil && err == nil {
		return trust.Agreement{}, failed
	}
	return a, err
}

const auditName = "audit"

// watch records the calls of an agent.
func (h *Host) watch(a *agent.Agent) {
	if h.cfg.Audit == nil {
		return
	}
	name := ""
	if len(a.Setup.Files) > 0 {
		name = a.Setup.Files[0].Name
	}
	a.Hooks = append(a.Hooks, agent.Hooks{
		Name: auditName,
		BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
			if h.record(ctx, ofCall(audit.KindStarted, name, c)) != nil {
				return ctx, errUnrecorded
			}
			return ctx, nil
		},
		CallRefused: func(ctx context.Context, c *agent.ToolCall) error {
			_ = h.record(ctx, ofCall(audit.KindDenied, name, c)) // nothing was started, and a notice reports the failure
			return nil
		},
	})
	if next := a.Policy.Approver; next != nil {
		a.Policy.Approver = func(ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
			d, err := next(ctx, q)
			if ctx.Value(typedKey{}) != nil {
				d.Remember = nil // it would be recorded, although it has no effect
			}
			if err != nil || d.Later && !d.Allow {
				return d, err
			}
			if h.record(ctx, answered(q.Session, name, q.Call, d)...) != nil && d.Allow {
				return d, errUnrecorded
			}
			return d, nil
		}
	}
}

// watchLast moves the hooks of the audit log behind those of the front end, which may
// change a call or object to it.
func watchLast(a *agent.Agent) {
	ours := func(hooks agent.Hooks) bool { return hooks.Name == auditName }
	if i := slices.IndexFunc(a.Hooks, ours); i >= 0 {
		last := a.Hooks[i]
		a.Hooks = append(slices.Delete(slices.Clone(a.Hooks), i, i+1), last)
	}
}

// ofCall is the record of a call that starts, or that does not.
func ofCall(kind audit.Kind, name string, c *agent.ToolCall) audit.Record {
	v := &c.Verdict
	return audit.Record{
		Kind: kind, Session: c.Session, CallID: c.Call.ID, Agent: name, Tool: c.Call.Name, Arguments: audit.Hash(c.Call.Arguments),
		Sandbox: c.Sandbox(), Decided: v.Decided, By: v.By, From: v.From, Rule: v.Rule,
	}
}

// Answered returns the records of an answer about a call that waited, for a program that
// calls [agent.Decide]. Write them before the call.
func Answered(p agent.PendingApproval, d agent.Decision) []audit.Record {
	return answered(p.Session, "", tool.Call{ID: p.CallID, Name: p.Tool, Arguments: p.Arguments, Custom: p.Custom}, d)
}

// answered are the records of an answer: the rule that it adds comes first, so that an
// interrupted write leaves no answer without it.
func answered(in, name string, call tool.Call, d agent.Decision) (records []audit.Record) {
	r := audit.Record{
		Kind: audit.KindRefused, Session: in, CallID: call.ID, Agent: name, Tool: call.Name, Arguments: audit.Hash(call.Arguments),
		Decided: cmp.Or(d.Decided, session.DeciderProgram), By: d.By, From: d.From, Shown: audit.Hash(d.Shown),
	}
	if d.Allow {
		r.Kind = audit.KindAllowed
		r.Arguments = audit.Hash(cmp.Or(d.Arguments, call.Arguments))
	}
	if d.Remember != nil {
		rule := r
		rule.Kind, rule.Rule = audit.KindRemembered, d.Remember.String()
		records = append(records, rule)
	}
	return append(records, r)
}

// serversOf are the records of MCP servers that are about to start.
func serversOf(servers []mcpbridge.Server) (records []audit.Record) {
	for i := range servers {
		s := &servers[i]
		r := audit.Record{Kind: audit.KindConnected}
		if len(s.Command) > 0 {
			r.Command, r.Where, r.Sandbox = s.Command, s.Dir, confinedBy(s)
		} else {
			r.What, _, _ = strings.Cut(s.URL, "?") // a query may hold a key
		}
		records = append(records, r)
	}
	return records
}

// confinedBy returns the name of the profile in which the program of a server starts, with
// the hosts that it may reach.
func confinedBy(s *mcpbridge.Server) string {
	p := sandbox.Network(s.Dir)
	if s.Sandbox != nil {
		p = s.Sandbox(s.Dir)
	} else if p.Supported() != nil {
		p = sandbox.Full()
	}
	return strings.Join(append([]string{p.Width()}, p.Hosts...), " ")
}
