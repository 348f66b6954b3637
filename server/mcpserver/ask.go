// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
)

// The run of a call whose client can be asked pauses at calls that need approval. Their
// answers are recorded like those of any other place, so the call can go on here, or in
// another process.

const defaultWait = 10 * time.Minute

// withoutRequests is the first version of the protocol in which a server sends no requests.
const withoutRequests = "2026-07-28"

// rounds reports whether the client gets questions as the result of the call, and makes
// the call again with the answers.
func rounds(r *mcp.CallToolRequest) bool { return r.ProtocolVersion() >= withoutRequests }

// asksPeople reports whether a client can ask a person to fill in a form.
func asksPeople(has *mcp.ClientCapabilities) bool {
	if has == nil || has.Elicitation == nil {
		return false
	}
	return has.Elicitation.Form != nil || has.Elicitation.URL == nil
}

// answer is an answer of the client about a waiting call, or that there is none.
type answer struct {
	pending agent.PendingApproval
	given   *mcp.ElicitResult // nil if nobody answered
	shown   string
}

// The words of the form.
const (
	theAnswer = "answer"
	yes       = "run it"
	no        = "refuse"
	theReason = "reason"
)

// form returns the question about a call, with all of it: nobody should approve what they
// cannot see. An accepted form without a chosen answer is not an approval.
func (c *call) form(p *agent.PendingApproval) *mcp.ElicitParams {
	var b strings.Builder
	fmt.Fprintf(&b, "The agent %s wants to call %s", c.agent.Name, visible(p.Tool))
	if p.Of != "" {
		fmt.Fprintf(&b, ", a tool of %s", visible(p.Of))
	}
	fmt.Fprintf(&b, ":\n%s", indented(p.Arguments))
	if p.Command != nil {
		words := make([]string, len(p.Command))
		for i, word := range p.Command {
			words[i] = strconv.Quote(word)
		}
		fmt.Fprintf(&b, "\nIt runs: %s", visible(strings.Join(words, " ")))
	}
	if p.Sandbox != "" {
		fmt.Fprintf(&b, "\nSandbox profile: %s", visible(p.Sandbox))
	}
	if p.Reason != "" {
		fmt.Fprintf(&b, "\nAsked because %s", visible(p.Reason))
	}
	return &mcp.ElicitParams{Message: b.String(), Mode: "form", RequestedSchema: map[string]any{
		"type": "object",
		"properties": map[string]any{
			theAnswer: map[string]any{"type": "string", "title": "Run it?", "enum": []string{yes, no}},
			theReason: map[string]any{"type": "string", "title": "Why not?", "description": "The agent reads it."},
		},
		"required": []string{theAnswer},
	}}
}

// key names a question of a call: the calls of its session, or of a subagent's, are counted.
func (c *call) key(p *agent.PendingApproval) string {
	return "approval" + strings.TrimPrefix(p.Session, c.session) + "#" + strconv.Itoa(p.Number)
}

// question returns the result that asks the client.
func (c *call) question(pending []agent.PendingApproval) *mcp.CallToolResult {
	requests := mcp.InputRequestMap{}
	for i := range pending {
		form := c.form(&pending[i])
		requests[c.key(&pending[i])] = form
		c.server.shown.add(shownForm{pending[i].Session, pending[i].Number, form.Message})
	}
	return &mcp.CallToolResult{Content: []mcp.Content{}, InputRequests: requests, RequestState: c.state()}
}

// answered reads the answers that the client brings with the call. They are matched with
// the calls that wait in decide.
func (c *call) answered(given mcp.InputResponseMap) (list []answer, err error) {
	for key, response := range given {
		said, ok := response.(*mcp.ElicitResult)
		if !ok {
			return nil, bad("The answer to %q is not that of an elicitation.", key)
		}
		list = append(list, answer{pending: agent.PendingApproval{Reason: key}, given: said})
	}
	return list, nil
}

// ask asks the client about calls, one after another, while the call is under way.
func (c *call) ask(ctx context.Context, pending []agent.PendingApproval) (list []answer, err error) {
	for i := range pending {
		p := &pending[i]
		form := c.form(p)
		c.tell.say(ctx, "waits for an answer about the call of "+visible(p.Tool))
		waiting, stop := context.WithTimeout(ctx, cmp.Or(c.server.Wait, defaultWait))
		var sent *mcp.ElicitResult
		said, err := c.r.Session.Elicit(context.WithValue(waiting, sentKey{}, &sent), form)
		stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // it did not answer, or not with what was asked
			if said = nil; odd(sent) != "" {
				said = sent
			}
			if waiting.Err() == nil {
				c.server.report(fmt.Errorf("the client's answer about a call of %s: %w", p.Tool, err))
			}
		}
		list = append(list, answer{pending: *p, given: said, shown: form.Message})
	}
	return list, nil
}

type sentKey struct{}

// keepsSent keeps what a client answers to a question, also if it does not fit the form: the SDK tells only that it does not.
func keepsSent(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, r)
		if sent, ok := ctx.Value(sentKey{}).(**mcp.ElicitResult); ok && err == nil {
			*sent, _ = res.(*mcp.ElicitResult)
		}
		return res, err
	}
}

// odd returns what somebody answered who chose neither of the two words, as a person reads it, or "".
func odd(given *mcp.ElicitResult) string {
	if given == nil || given.Action != "accept" {
		return ""
	}
	switch said := given.Content[theAnswer]; said {
	case nil, yes, no:
		return ""
	default:
		return strconv.Quote(visible(clip(fmt.Sprint(said), 64)))
	}
}

// decide records answers, and tells the audit log before.
func (c *call) decide(ctx context.Context, answers []answer) error {
	if len(answers) == 0 {
		return nil
	}
	pending, err := agent.PendingApprovals(ctx, c.host.Session)
	if err != nil {
		return err
	}
	var list []agent.Decision
	var records []audit.Record
	for i := range pending {
		p := &pending[i]
		for _, one := range answers {
			if one.pending.CallID == "" && one.pending.Reason != c.key(p) || one.pending.CallID != "" && (one.pending.Session != p.Session || one.pending.Number != p.Number) {
				continue
			}
			d := c.decision(p, &one)
			list, records = append(list, d), append(records, host.Answered(*p, d)...)
		}
	}
	if audited := c.agent.Config.Audit; audited != nil && len(records) > 0 {
		if err := audited(ctx, records...); err != nil {
			return err
		}
	}
	err = agent.Decide(ctx, c.host.Session, list...)
	if errors.Is(err, agent.ErrDecided) { // somebody else was faster
		return nil
	}
	return err
}

// decision returns what an answer means. Only the word for yes in an accepted form
// approves.
func (c *call) decision(p *agent.PendingApproval, a *answer) agent.Decision {
	d := agent.Decision{Session: p.Session, Number: p.Number, CallID: p.CallID, Shown: a.shown}
	if d.Shown == "" { // the answer came with the call
		d.Shown = c.server.shown.of(p)
	}
	if a.given == nil || a.given.Action == "cancel" || a.given.Action == "accept" && a.given.Content[theAnswer] == nil {
		d.Decided, d.From = session.DeciderNobody, c.means()
		d.Reason = "The call was refused: it needs an approval, and nobody answered the question in the client. Nothing was done."
		c.refuse(p.Tool, "", true)
		return d
	}
	d.Decided, d.By, d.From = session.DeciderPerson, cmp.Or(c.server.By, "a client"), c.means()
	reason, _ := a.given.Content[theReason].(string)
	if said := odd(a.given); said != "" {
		why := fmt.Sprintf("the answer %s is neither %q nor %q", said, yes, no)
		d.Reason = host.Refusal(why)
		c.refused = append(c.refused, refusedCall{tool: p.Tool, why: why})
		return d
	}
	if d.Allow = a.given.Action == "accept" && a.given.Content[theAnswer] == yes; !d.Allow {
		d.Reason = host.Refusal(reason)
	}
	return d
}

// shownForms keeps the newest forms that were sent as results, for the records of answers that
// come with a later call: the log does not hold all that a form says. Nothing is known of a form
// that another server sent.
type shownForms struct {
	mu   sync.Mutex
	list []shownForm // oldest first
	size int
}

// shownForm is the text of a form about a call.
type shownForm struct {
	session string
	number  int
	text    string
}

// mostShown is how many bytes of forms are kept.
const mostShown = 4 << 20

func (s *shownForms) add(f shownForm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.size = append(s.list, f), s.size+len(f.text)
	for s.size > mostShown {
		s.size -= len(s.list[0].text)
		s.list = s.list[1:]
	}
}

// of returns the text of the newest form about a call, or "".
func (s *shownForms) of(p *agent.PendingApproval) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range slices.Backward(s.list) {
		if f.session == p.Session && f.number == p.Number {
			return f.text
		}
	}
	return ""
}

// means says by what the client answers.
func (c *call) means() string {
	if info := c.r.ClientInfo(); info != nil && info.Name != "" {
		return "elicitation by " + visible(clip(info.Name, 64))
	}
	return "elicitation"
}
