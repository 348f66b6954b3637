// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// shown writes what clients see of a run. The same entries give the same items, whether
// they come from a run or from a log: a response that is read later is made again from
// its log.
type shown struct {
	w       *server.Writer
	label   string   // the name of the agent
	id      string   // of the response
	names   []string // of the client's tools
	root    string
	calls   int     // of the session, so far
	waiting []*line // in the order of the reply: what cannot be written yet
	open    string  // the id in the run of the message or reasoning that is open, "-" if it has none
	kind    item.Type
	size    int      // how many bytes of its text were shown
	carried []*line  // calls that waited before the response began
	inner   inner    // the logs of subagents
	nested  bool     // of a subagent: only its calls are shown
	top     string   // the session of the response; root is that of the subagent
	asked   []string // the ids of the requests for approval of subagents' calls in earlier responses
	files   bool     // images in outputs can be read as files
}

// inner returns the log of a subagent's session, which is empty if it cannot be read.
type inner func(id string) []session.Entry

// inner returns the logs of subagents in a store.
func (b *Backend) inner(ctx context.Context, in store.Store) inner {
	return func(id string) (log []session.Entry) {
		for e, err := range nils.Each(in, "Load", in.Load(context.WithoutCancel(ctx), id, 0)) {
			if err != nil {
				b.report(err)
				return nil
			}
			log = append(log, e)
		}
		return log
	}
}

// line is an item of a reply that waits to be written.
type line struct {
	item    item.Item // of another kind than a call
	call    *item.MCPCall
	raw     item.Item // the call as the model made it
	client  bool      // the client runs it
	number  int
	id      string // the call id
	asked   bool
	allowed bool
	begun   bool // it is open in the response
	done    bool
	gone    bool   // nothing is shown of it
	inside  string // the session of the subagent that it began, or ""
	request string // the id of the mcp_approval_request that an earlier response has for it, or ""
}

// before is what showing a response needs of the entries in front of it.
type before struct {
	view  session.View
	calls int
	// last is the id of the last response, and prior of the one before it.
	last, prior string
	asked       []string // see shown
}

func (b *before) add(e session.Entry) {
	b.view.Apply(e)
	switch body := e.Body.(type) {
	case session.InputItem:
		b.calls += counted(body.Item)
	case session.OutputItem:
		b.calls += counted(body.Item)
	case session.Note:
		if n, ok := noteOf(e); ok && n.Kind == kindBegin && n.ResponseID != b.last {
			b.prior, b.last = b.last, n.ResponseID
		} else if ok && n.Kind == kindEnd {
			for _, it := range n.requests() {
				b.asked = append(b.asked, it.ID())
			}
		}
	}
}

// newShown returns a writer for a response after the given entries.
func newShown(in inner, w *server.Writer, label, id string, names []string, earlier []session.Entry) *shown {
	var b before
	for _, e := range earlier {
		b.add(e)
	}
	return shownAfter(in, w, label, id, names, &b)
}

// shownAfter is newShown for entries that were added up already.
func shownAfter(in inner, w *server.Writer, label, id string, names []string, b *before) *shown {
	s := &shown{w: w, label: label, id: id, names: names, inner: in, calls: b.calls, asked: b.asked}
	s.root, _, _ = parseID(id)
	s.top = s.root
	continues := b.last
	if continues == id { // its own beginning may be among the entries
		continues = b.prior
	}
	for _, c := range b.view.Open() {
		l := s.callLine(c.Item, c.Number)
		l.id, l.asked = c.CallID, c.Asked
		if c.Asked && continues != "" {
			l.request = approvalID(continues, s.root, &agent.PendingApproval{Session: s.root, Number: c.Number})
		}
		if c.Verdict != nil {
			l.answered(c.Verdict)
		}
		s.waiting = append(s.waiting, l)
		s.carried = append(s.carried, l)
	}
	return s
}

// answered names the request that the client has seen, whoever answers it.
func (l *line) answered(a *session.Approval) {
	l.call.ApprovalRequestID = l.request
	if id, ok := strings.CutPrefix(a.From, fromClient); ok {
		l.call.ApprovalRequestID = id
	}
}

// requestOf returns the id of the last request for approval of a subagent's call, or "".
func (s *shown) requestOf(number int) string {
	end := nestedApproval(s.top, s.root, number)
	for _, id := range slices.Backward(s.asked) {
		if strings.HasSuffix(id, end) {
			return id
		}
	}
	return ""
}

// counted returns 1 for an item that [session.OpenCall] numbers, and otherwise 0.
func counted(it item.Item) int {
	if it.IsCall() || plan.Hosted(it) {
		return 1
	}
	return 0
}

// count counts calls, and returns the number.
func (s *shown) count(it item.Item) int {
	s.calls += counted(it)
	return s.calls
}

// callLine returns the line of a call.
func (s *shown) callLine(it item.Item, number int) *line {
	name, with := plan.CalledBy(it)
	arguments := string(with)
	if text, ok := with.Unquote(); ok {
		arguments = text
	}
	return &line{
		raw: it, number: number, id: it.CallID(), client: slices.Contains(s.names, name) && (it.Type() == item.TypeFunctionCall || it.Type() == item.TypeCustomToolCall),
		call: &item.MCPCall{ServerLabel: s.label, Name: name, Arguments: arguments},
	}
}

// event shows an event of the run.
func (s *shown) event(ev agent.Event) {
	switch ev := ev.(type) {
	case agent.Delta:
		s.delta(ev)
	case agent.Recorded:
		s.entry(ev.Entry)
	}
}

// delta shows a piece of text of a message or of a summary, unless something before it
// is not complete. The entry of the item has all of it.
func (s *shown) delta(d agent.Delta) {
	if !shows(d) || len(s.waiting) > 0 || s.open != "" && s.open != opened(d.ItemID) {
		return
	}
	if s.open == "" {
		s.open, s.kind, s.size = opened(d.ItemID), item.TypeMessage, 0
		var begins item.Value = &item.Message{}
		if d.Kind == agent.DeltaSummary {
			s.kind, begins = item.TypeReasoning, &item.Reasoning{}
		}
		_ = s.w.Open(begins) // the writer keeps the error
	}
	s.size += len(d.Text)
	_ = s.w.Delta(d.Text)
}

// shows reports whether a piece of text is shown before its item is complete.
func shows(d agent.Delta) bool {
	return d.Part == 0 && (d.Kind == agent.DeltaText || d.Kind == agent.DeltaSummary)
}

// piece shows a piece of text from a worker, unless one before it was not shown.
func (s *shown) piece(p piece) {
	if s.open == "" && p.At == 0 || s.open == opened(p.Item) && p.At == s.size {
		s.delta(agent.Delta{Kind: p.Kind, ItemID: p.Item, Text: p.Text})
	}
}

// opened returns the mark for an open item.
func opened(id string) string {
	if id == "" {
		return "-"
	}
	return id
}

// entry shows an entry of the log.
func (s *shown) entry(e session.Entry) {
	switch b := e.Body.(type) {
	case session.InputItem:
		s.count(b.Item)
		if b.Item.IsOutput() {
			if l := s.find(b.Item.CallID(), 0); l != nil {
				l.done, l.gone = true, true
			}
		}
	case session.OutputItem:
		s.said(b.Item)
	case session.ApprovalAsked:
		if l := s.find(b.CallID, b.Number); l != nil {
			l.asked, l.allowed = true, false
			if s.nested {
				l.request = s.requestOf(l.number)
			}
		}
	case session.Approval:
		if l := s.find(b.CallID, b.Number); l != nil {
			l.allowed = b.Allowed
			l.answered(&b)
			if b.Edited != "" {
				l.call.Arguments = b.Edited
			}
		}
	case session.CallStarted:
		if l := s.find(b.CallID, 0); l != nil {
			if l.allowed = true; b.Arguments != "" {
				l.call.Arguments = b.Arguments
			}
		}
	case session.SubagentUsage:
		if l := s.find(b.CallID, 0); l != nil && b.CallID != "" {
			l.inside = b.Session
		}
	case session.CallOutput:
		s.output(b, e.Seq)
	case session.Note:
		if n, ok := noteOf(e); ok && n.Kind == kindBroken && n.ResponseID == s.id {
			items, _ := n.items() // this package has written them
			for _, it := range items {
				s.waiting = append(s.waiting, &line{item: it, done: true})
			}
		}
	case session.CallDropped:
		if l := s.find(b.CallID, 0); l != nil {
			l.done = true
			l.call.Status, l.call.Error = item.StatusFailed, failedAs(b.Reason)
		}
	}
	s.flush()
}

// said takes an item of the model.
func (s *shown) said(it item.Item) {
	n := s.count(it)
	switch {
	case plan.Hosted(it): // the endpoint asks for approval of a call of its own
		l := s.callLine(it, n)
		s.waiting = append(s.waiting, l)
	case it.IsCall():
		s.waiting = append(s.waiting, s.callLine(it, n))
	case it.IsOutput(): // of a call that the endpoint made itself
	default:
		s.waiting = append(s.waiting, &line{item: it, done: true})
	}
}

// find returns the first waiting call with an id.
func (s *shown) find(id string, number int) *line {
	for _, l := range s.waiting {
		if l.call != nil && !l.done && l.id == id && (number == 0 || number == l.number) {
			return l
		}
	}
	return nil
}

// output ends a call.
func (s *shown) output(b session.CallOutput, seq int64) {
	l := s.find(b.CallID, 0)
	if l == nil {
		return
	}
	l.done = true
	if plan.Hosted(l.raw) {
		l.gone = true
		return
	}
	text := s.marked(b.Item, seq)
	l.call.Status, l.call.Output = item.StatusCompleted, text
	if b.Failed || !l.allowed {
		l.call.Status, l.call.Output, l.call.Error = item.StatusFailed, "", failedAs(text)
	}
}

// displayed returns an output as text.
func displayed(it item.Item) string {
	if c, ok := contentOf(it); ok {
		return c.Display()
	}
	if _, err := it.Decode(); err != nil {
		return ""
	}
	return it.JSON()
}

func failedAs(text string) *item.MCPCallError {
	content, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		content = []byte(`""`)
	}
	return &item.MCPCallError{Type: "mcp_tool_execution_error", Content: item.JSON(`[{"type":"text","text":` + string(content) + `}]`)}
}

// flush writes what can be written, in order.
func (s *shown) flush() {
	for !s.nested && len(s.waiting) > 0 {
		l := s.waiting[0]
		switch {
		case l.item.IsZero() && !l.done && l.client && l.asked && !s.isCarried(l):
			s.close()
			_ = s.w.Item(l.raw.Without("id"))
			// The call stays open in the session, but nothing else is shown of it.
		case l.item.IsZero() && !l.done && l.allowed && !l.client && !plan.Hosted(l.raw):
			if !l.begun {
				l.begun = true
				s.close()
				_ = s.w.Open(l.call)
				_ = s.w.Delta(l.call.Arguments)
			}
			return
		case !l.done:
			return
		default:
			s.write(l)
		}
		s.waiting = s.waiting[1:]
	}
}

func (s *shown) isCarried(l *line) bool { return slices.Contains(s.carried, l) }

// write writes a line that is complete.
func (s *shown) write(l *line) {
	if l.gone {
		return
	}
	if l.item.IsZero() {
		if !l.begun {
			s.close()
			_ = s.w.Open(l.call)
		}
		_ = s.w.CloseAs(made(l.call))
		s.within(l)
		return
	}
	if s.nested {
		return
	}
	it := l.item.Without("id")
	if s.open != "" && s.kind == it.Type() {
		s.open = ""
		_ = s.w.CloseAs(it)
		return
	}
	s.close()
	switch it.Type() {
	case item.TypeMessage, item.TypeReasoning:
	default:
		it = l.item
	}
	_ = s.w.Item(it)
}

// startsFork is the output of a call in the fork that it started. What is before it in the
// log of the fork is the history of who called.
const startsFork = "You are the fork that this call started. Your task follows."

// within writes the calls that the subagent of a call has made, behind it. Their label says
// whose they are. What the subagent said to its model and what it read stay in its session.
func (s *shown) within(l *line) {
	if l.inside == "" || s.inner == nil {
		return
	}
	of := &shown{w: s.w, label: s.label + "/" + l.call.Name, id: s.id, root: l.inside, inner: s.inner, nested: true, top: s.top, asked: s.asked}
	log := s.inner(l.inside)
	begun := slices.IndexFunc(log, func(e session.Entry) bool {
		b, ok := e.Body.(session.CallOutput)
		return ok && b.CallID == l.id && displayed(b.Item) == startsFork
	})
	for _, e := range log[:begun+1] { // calls are numbered from the beginning
		switch b := e.Body.(type) {
		case session.InputItem:
			of.count(b.Item)
		case session.OutputItem:
			of.count(b.Item)
		}
	}
	for _, e := range log[begun+1:] {
		of.entry(e)
	}
	for _, left := range of.waiting {
		if left.done {
			of.write(left)
		}
	}
}

// made returns an mcp_call as an item.
func made(c *item.MCPCall) item.Item {
	it, err := item.New(c)
	if err != nil {
		it, _ = item.New(&item.MCPCall{ServerLabel: c.ServerLabel, Name: c.Name, Status: item.StatusFailed, Error: failedAs("the call cannot be shown")})
	}
	return it
}

// close ends an open message or reasoning whose entry did not come.
func (s *shown) close() {
	if s.open != "" {
		s.open = ""
		_ = s.w.Close()
	}
}

// finish writes what is left at the end of the response: the calls that wait for the
// client. It returns the requests for approval of subagents' calls, which the log does
// not have. pending are those of the session.
func (s *shown) finish(pending []agent.PendingApproval) (nested []item.Item) {
	s.flush()
	for _, l := range s.waiting {
		switch {
		case l.done:
			s.write(l)
		case l.call == nil:
		case l.begun:
			l.call.Status = item.StatusIncomplete
			_ = s.w.CloseAs(made(l.call))
		case !l.asked || l.allowed && !l.client:
		case l.client:
			if !s.isCarried(l) {
				s.close()
				_ = s.w.Item(l.raw.Without("id"))
			}
		default:
			s.ask(agent.PendingApproval{Session: s.root, Number: l.number, Tool: l.call.Name, Arguments: l.call.Arguments}, l.raw)
		}
	}
	s.waiting = nil
	s.close()
	for _, p := range pending {
		if p.Session != s.root {
			nested = append(nested, s.ask(p, item.Item{}))
		}
	}
	return nested
}

// ask writes an approval request.
func (s *shown) ask(p agent.PendingApproval, raw item.Item) item.Item {
	s.close()
	label := s.label
	if !raw.IsZero() && plan.Hosted(raw) { // a call that the endpoint wants to make on a server
		if m, err := item.As[item.MCPApprovalRequest](raw); err == nil {
			label, p.Tool = m.ServerLabel, m.Name
		}
	}
	it := item.Must(&item.MCPApprovalRequest{ID: approvalID(s.id, s.root, &p), ServerLabel: label, Name: p.Tool, Arguments: p.Arguments})
	_ = s.w.Item(it)
	return it
}
