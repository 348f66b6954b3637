// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// turn asks the model, if there are tools to be had and the budgets that the run
// shares allow it.
func (r *Run) turn(ctx context.Context, turn int) error {
	if err := r.equip(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // which ends the run
		}
		return r.stopFor(err)
	}
	if err := r.take(); err != nil {
		return r.stopFor(err)
	}
	return r.ask(ctx, turn)
}

// stopFor records that the run should end: because a budget that it shares is
// used up, or because a hook objects.
func (r *Run) stopFor(err error) error {
	var b *BudgetError
	if errors.As(err, &b) {
		return r.record(session.StopAsked{Why: string(b.Why), Detail: b.Detail})
	}
	r.failure = err
	return r.record(vetoed(err))
}

// ask makes one request and records the reply item by item. A reply that
// breaks off is an outcome of the turn; the error returned here is the store's.
// What was refused before anything came of it may be mended: that decision is
// recorded with the turn's end.
func (r *Run) ask(ctx context.Context, turn int) error {
	in, skip, left := r.converse()
	if left != "" {
		if err := r.notice(ctx, Noticed{Turn: turn, Kind: session.NoticeWholeHistory, Text: left}); err != nil {
			return err
		}
	}
	begun := session.TurnStarted{Turn: turn, Continues: r.state.View().Unfinished(), InConversation: in, Setup: r.changed()}
	if err := r.record(begun); err != nil {
		return err
	}
	r.skip = skip
	r.totals.Turns++
	r.held = false
	if r.totals.Turns == 1 && !r.quiet && !r.setup().IsZero() {
		now := *r.setup() // which the log has since the run began, or before
		begun.Setup = &now
	}
	r.emit(TurnStarted{Turn: turn, Setup: begun.Setup})

	seen := &r.asked
	*seen = ModelCall{Session: r.session.ID(), Depth: r.depth, Turn: turn, Request: r.request(), Started: time.Now()}
	inner, hooks, veto := r.admitModel(ctx, seen)
	if veto != nil {
		end := session.TurnEnded{Turn: turn, Status: item.StatusCancelled, Reason: veto.Error()}
		err := r.endTurn(ctx, end, nil)
		objection := r.afterModel(inner, hooks, seen, end, veto)
		switch {
		case err != nil:
			return err
		case !interrupted(ctx, veto):
			return r.vetoRequest(veto, objection)
		case objection != nil && !interrupted(ctx, objection):
			return r.stopFor(objection)
		}
		return nil // the run ends for what ended its context
	}

	r.holding = r.agent.HoldOutput
	end, failure, err := r.hear(inner, ctx, seen)
	if err != nil {
		end.Status, end.Reason, failure = item.StatusFailed, err.Error(), err
	}
	objection := r.afterModel(inner, hooks, seen, end, failure)
	objection, judged := uninterrupted(ctx, objection)
	r.release(err == nil && judged && !objects(objection, true))
	switch {
	case err != nil:
		return err
	case !judged && !objects(objection, true):
		return r.leaveUnjudged(ctx, objection)
	case objection != nil:
		return r.vetoReply(ctx, objection)
	}
	return r.settleStep(ctx)
}

// hear records the reply and the turn's end. failure is what broke the reply
// off, err what the store reported.
func (r *Run) hear(inner, ctx context.Context, seen *ModelCall) (end session.TurnEnded, failure, err error) {
	turn := seen.Turn
	l := &r.heard
	*l = listener{run: r, ctx: ctx, seen: seen, order: order{run: r}}
	defer l.order.flush()
	shown, failure, err := l.listen(inner)
	acc := &l.acc
	if failure = brokenOff(acc, failure); failure != nil && !shown && err == nil {
		shown, failure, err = r.withoutImages(inner, ctx, seen, failure)
	}
	resp, _ := acc.Response()
	seen.ResponseModel, seen.Output = resp.Model, resp.Output
	if err != nil {
		return session.TurnEnded{Turn: turn}, nil, err
	}
	end = endOf(acc, turn, failure)
	if err := r.count(ctx, &end); err != nil {
		return end, nil, err
	}
	atLimit(&end, seen.Request)
	r.describe(ctx, &end, seen.Request, resp)
	end.Cost = r.price.Of(end.Usage)
	var decision session.Body
	if end.BrokeOff() {
		r.failure = failure
		if ctx.Err() != nil {
			end.Status = item.StatusCancelled
		} else if !shown {
			decision = r.mend(failure)
		}
		if decision == nil && !shown {
			end.Refused = r.blamed(failure)
		}
	}
	if err := r.heard.leftOver(end.Status == item.StatusCompleted); err != nil {
		return end, nil, err
	}
	if again, ok := r.state.View().Repeats(end.BrokeOff()); ok {
		decision = again // what is mended has said nothing
	}
	return end, failure, r.endTurn(ctx, end, decision)
}

// admitModel lets hooks see the request.
func (r *Run) admitModel(ctx context.Context, seen *ModelCall) (context.Context, []Hooks, error) {
	hooks := r.agent.Hooks
	if len(hooks) == 0 {
		return ctx, nil, nil
	}
	seen.Cache = r.state.Cache()
	input, model, talk, base := seen.Request.Input, seen.Request.Model, seen.Request.Conversation, seen.Request.PreviousResponseID
	items := input.Len()
	inner, n, err := before(ctx, "BeforeModel", hooks, beforeModel, seen)
	switch {
	case err != nil:
	case seen.Request == nil || seen.Request.Input != input || input.Len() != items:
		err = &HookError{Hook: "BeforeModel", Err: &StopError{errors.New("it changed the request's input, which is the log's")}}
	case seen.Request.Conversation != talk || seen.Request.PreviousResponseID != base:
		err = &HookError{Hook: "BeforeModel", Err: &StopError{errors.New("it changed what the request goes on from, which the log knows")}}
	case seen.Request.Model != model:
		err = r.findPrice(seen.Request.Model)
	}
	return inner, hooks[:n], err
}

// afterModel lets hooks see the outcome of a request.
func (r *Run) afterModel(ctx context.Context, hooks []Hooks, seen *ModelCall, end session.TurnEnded, failure error) error {
	if len(hooks) == 0 {
		return nil
	}
	seen.Ended = time.Now()
	seen.ResponseID, seen.Status, seen.Reason, seen.Class, seen.Usage, seen.Cost = end.ResponseID, end.Status, end.Reason, end.Class, end.Usage, end.Cost
	seen.Err, seen.Cache = failure, r.state.Cache()
	return after(ctx, "AfterModel", hooks, afterModel, seen)
}

// listener is what hears a reply.
type listener struct {
	run  *Run
	ctx  context.Context // of the run
	seen *ModelCall
	acc  item.Accumulator

	notes   []item.Note // that the client gave since the last event
	shown   bool        // output came
	failure error       // what broke it off
	err     error       // what the store reported
	order   order
}

// listen reads the reply, which is asked for in the context inner, and starts
// what may start early in that of the run.
func (l *listener) listen(inner context.Context) (shown bool, failure, err error) {
	r := l.run
	if r.asks == nil || len(r.agent.Hooks) > 0 {
		r.asks, r.meta = endpoint.WithMeta(item.WithNotes(endpoint.WithBudget(inner, r.retries), r.takeNote))
		r.answers = 0
	}
	for ev, err := range r.agent.Model.Stream(r.asks, r.parts(l.seen.Request)) {
		if err != nil {
			l.failure = err
			break
		}
		if !l.event(&ev) {
			break
		}
	}
	if l.err == nil {
		l.err = l.tellNotes()
	}
	return l.shown, l.failure, l.err
}

// event takes the next event and reports whether the reply goes on.
func (l *listener) event(ev *item.Event) bool {
	r := l.run
	if len(l.notes) > 0 {
		if l.err = l.tellNotes(); l.err != nil {
			return false
		}
	}
	items, err := l.acc.Add(*ev)
	if err != nil {
		l.failure = &endpoint.Error{Class: endpoint.Protocol, Message: err.Error(), Err: err}
		return false
	}
	if !l.shown && (len(items) > 0 || shows(ev.Type)) {
		l.shown, l.seen.First = true, time.Now()
	}
	if !r.quiet {
		l.tell(ev)
	}
	for _, it := range items {
		if l.err = l.receive(it, l.acc.Number(it), false); l.err != nil {
			return false
		}
		if l.err = r.startEarly(l.ctx, it); l.err != nil {
			return false
		}
	}
	if !strings.HasSuffix(string(ev.Type), ".delta") { // as nearly all are
		if apiErr, ok := ev.Err(); ok {
			l.failure = asFailure(apiErr) // a Model may say it again as an error of its own
		}
	}
	if r.left && !ev.Terminal() {
		l.failure = context.Canceled
		return false
	}
	return true
}

// shows reports whether an event is output: all are but those about the
// response as a whole.
func shows(t item.EventType) bool {
	switch t {
	case "", item.EventCreated, item.EventQueued, item.EventInProgress, item.EventCompleted, item.EventIncomplete,
		item.EventFailed, item.EventCancelled, item.EventError, "keepalive":
		return false
	}
	return true
}

// asFailure gives an error that came as an event its class.
func asFailure(e *item.APIError) error {
	return endpoint.FromAPI(e.Code, e.Type, e.Message, e.Param)
}

// tell emits an event of the model, texts in their order.
func (l *listener) tell(ev *item.Event) {
	told := l.run.modelEvent(*ev)
	switch ev.Type {
	case item.EventTextDelta, item.EventRefusalDelta:
		if at, ok := l.placeOf(ev, ev.Type); ok {
			text := told.(TextDelta)
			text.Part = at.part
			l.order.text(at, text)
			return
		}
	case item.EventTextDone:
		if at, ok := l.placeOf(ev, item.EventTextDelta); ok {
			l.order.partEnded(at)
		}
	case item.EventRefusalDone:
		if at, ok := l.placeOf(ev, item.EventRefusalDelta); ok {
			l.order.partEnded(at)
		}
	}
	l.run.emit(told)
}

// placeOf says which text the last event that was added is about.
func (l *listener) placeOf(ev *item.Event, kind item.EventType) (textPlace, bool) {
	number, ok := l.acc.About()
	return textPlace{item: number, part: max(ev.ContentIndex, 0), kind: kind, names: namesOf(ev)}, ok
}

// receive records an item and emits it. A message waits until its text was emitted.
func (l *listener) receive(it item.Item, number int, partial bool) error {
	r, turn := l.run, l.seen.Turn
	it, err := r.ownWords(l.ctx, turn, it)
	if err != nil {
		return err
	}
	if err := r.record(session.Received{Turn: turn, Item: it, Partial: partial}); err != nil {
		return err
	}
	if done := (ItemDone{Turn: turn, Item: it, Partial: partial}); it.Type() == item.TypeMessage {
		l.order.ended(number, done)
	} else {
		r.emit(done)
	}
	return nil
}

// leftOver records what arrived of items that never became whole. If the reply
// was completed all the same, a notice says so: a person has seen it.
func (l *listener) leftOver(completed bool) error {
	defer l.order.flush()
	for _, left := range l.acc.Left() {
		it := left.Item
		said := it.Type() == item.TypeMessage || it.Type() == item.TypeReasoning
		if completed {
			if err := l.run.notice(l.ctx, missing(l.seen.Turn, it, said)); err != nil {
				return err
			}
		}
		if said {
			if err := l.receive(it, left.Number, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// missing is the notice of an item that is not in the reply's last event.
func missing(turn int, it item.Item, said bool) Noticed {
	n := Noticed{Turn: turn, Kind: session.NoticeItemMissing, ItemID: it.ID(), CallID: it.CallID()}
	switch {
	case it.Type() == item.TypeMessage:
		m, _ := item.As[item.Message](it)
		n.Text = fmt.Sprintf("a message that was shown is not in the reply's last event; what arrived of it is kept: %q", clip(m.Content.Display()))
	case said:
		n.Text = "reasoning that was shown is not in the reply's last event; what arrived of it is kept in the log"
	default:
		_, arguments := plan.CalledBy(it)
		n.Text = fmt.Sprintf("a call that had begun is not in the reply's last event, and is not run: %s %s", it.Name(), clip(string(arguments)))
	}
	return n
}

// clip is the beginning of a text, for a notice.
func clip(s string) string {
	if runes := []rune(s); len(runes) > 500 {
		return string(runes[:500]) + "…"
	}
	return s
}

// ownWords returns the item as one that the model said. A message that a reply has
// under the role of a person, of the system or of the developer is the model's all
// the same: under such a role its words would count as theirs.
func (r *Run) ownWords(ctx context.Context, turn int, it item.Item) (item.Item, error) {
	if it.Type() != item.TypeMessage {
		return it, nil
	}
	role := it.Role()
	switch role {
	case item.RoleUser, item.RoleSystem, item.RoleDeveloper:
	default:
		return it, nil
	}
	m, err := item.As[item.Message](it)
	if err != nil {
		return it, err
	}
	own, err := item.New(&item.Message{ID: m.ID, Status: m.Status, Role: item.RoleAssistant,
		Content: item.Parts(&item.OutputText{Text: m.Content.Display(), Annotations: "[]"})})
	if err != nil {
		return it, err
	}
	return own, r.notice(ctx, Noticed{Turn: turn, Kind: session.NoticeForeignRole, ItemID: m.ID,
		Text: "the reply has a message under the role " + string(role) + ": it is kept as the model's own"})
}

var errTruncated = errors.New("the reply ended without its last event")

// brokenOff returns what broke the reply off, nil if nothing did: a model that
// just ends its stream may not know, and a response may say so of itself.
func brokenOff(acc *item.Accumulator, failure error) error {
	resp, whole := acc.Response()
	switch {
	case failure != nil:
		return failure
	case !whole:
		return &endpoint.Error{Class: endpoint.Truncated, Message: errTruncated.Error(), Err: errTruncated}
	case resp.Status == item.StatusFailed, resp.Status == item.StatusCancelled:
		return &endpoint.Error{Class: endpoint.Server, Message: "the response ended as " + resp.Status}
	}
	return nil
}

// endOf says how the turn ended.
func endOf(acc *item.Accumulator, turn int, failure error) session.TurnEnded {
	resp, _ := acc.Response()
	end := session.TurnEnded{Turn: turn, ResponseID: resp.ID, Usage: resp.Usage, Status: resp.Status}
	switch {
	case failure != nil:
		end.Status, end.Reason = item.StatusFailed, failure.Error()
		var e *endpoint.Error
		if errors.As(failure, &e) {
			end.Class = string(e.Class)
		}
	case incompleteReply(resp):
		end.Status = item.StatusIncomplete
		if d := resp.Incomplete; d != nil {
			end.Reason = d.Reason
		}
	default:
		end.Status = cmp.Or(end.Status, item.StatusCompleted)
	}
	return end
}

// incompleteReply reports whether a reply is incomplete. So is one that the server
// calls completed, but gives a reason for not being complete.
func incompleteReply(resp *item.Response) bool {
	if cmp.Or(resp.Status, item.StatusCompleted) == item.StatusCompleted {
		return resp.Incomplete != nil && resp.Incomplete.Reason != ""
	}
	return resp.Status == item.StatusIncomplete
}

// maxTokensReached is the reason of a reply that reached the limit of its length.
const maxTokensReached = "max_output_tokens"

// atLimit makes a reply incomplete that has exactly as many tokens as the request
// allows: llama-server and Ollama call it completed. One that came to its end at
// just that length is taken for incomplete, which is the safe mistake. More than the
// limit means that the endpoint does not know it, or counts otherwise.
func atLimit(end *session.TurnEnded, req *item.Request) {
	if end.Status == item.StatusCompleted && req != nil && reached(req.MaxOutputTokens, end.Usage) {
		end.Status, end.Reason = item.StatusIncomplete, maxTokensReached
	}
}

// reached reports whether a reply has as many tokens as it may have.
func reached(limit *int64, u *item.Usage) bool {
	return limit != nil && u != nil && *limit > 0 && u.OutputTokens == *limit
}

// endTurn records and tells the end of a turn, with the decision that follows
// from it, if one does. Of such a decision both are written or none.
func (r *Run) endTurn(ctx context.Context, end session.TurnEnded, decision session.Body) error {
	bodies := []session.Body{end}
	if decision != nil {
		bodies = append(bodies, decision)
	}
	if err := r.record(bodies...); err != nil {
		return err
	}
	if !end.BrokeOff() {
		r.fillRetries()
	}
	if u := end.Usage; u != nil {
		r.totals.count(u)
		r.totals.Cost += end.Cost
		r.budget.Spend(Spent{Tokens: u.TotalTokens, Cost: end.Cost})
	}
	r.emit(TurnEnded{
		Turn: end.Turn, ResponseID: end.ResponseID, Status: end.Status, Reason: end.Reason, Usage: end.Usage,
		Partial: end.BrokeOff(), Cost: end.Cost, Cache: r.state.Cache(),
		Model: end.Model, ServiceTier: end.ServiceTier, RequestID: end.RequestID,
	})
	if truncation := r.state.Truncation(); truncation != "" {
		if err := r.notice(ctx, Noticed{Turn: end.Turn, Kind: session.NoticeHistoryCut, Text: truncation}); err != nil {
			return err
		}
	}
	switch d := decision.(type) {
	case session.ReasoningDropped:
		r.emit(ReasoningDropped{Reason: d.Reason})
	case session.Quarantined:
		r.emit(Quarantined{Seq: d.Seq, Member: d.Member, Reason: d.Reason})
	case session.Restored:
		r.emit(Restored{Seq: d.Seq, Reason: "the endpoint cannot read what another has made of the history"})
	case session.Noticed:
		r.emit(Noticed(d))
	}
	return nil
}

// request is the agent's template with the history and the tools in it.
func (r *Run) request() *item.Request {
	req := r.agent.Request
	req.Input = r.state.View().Items().Clone()
	if r.state.InConversation() == "" {
		req.Conversation = ""
	}
	r.equipRequest(&req)
	if r.state.Obeyed() && !r.agent.KeepToolChoice && forces(req.ToolChoice) {
		req.ToolChoice = item.ChoiceAuto
	}
	return &req
}

// forces reports whether a tool choice makes the model call something.
func forces(choice item.JSON) bool {
	c, err := item.ParseToolChoice(choice)
	switch {
	case err != nil:
		return false
	case c.Type == "" || c.Type == item.ChoiceTypeAllowed:
		return c.Mode == item.ModeRequired
	}
	return true
}

// equipRequest puts the tools into a request.
func (r *Run) equipRequest(req *item.Request) {
	req.Tools = append(r.tools.Definitions(), r.agent.Request.Tools...)
	if len(req.Tools) == 0 {
		req.Tools, req.ToolChoice, req.ParallelToolCalls = nil, "", nil
		return
	}
	req.ToolChoice = cmp.Or(req.ToolChoice, item.ChoiceAuto)
}
