// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// turn asks the model, unless the tools cannot be fetched, a hook objects to input,
// or a shared budget is used up.
func (r *Run) turn(ctx context.Context, turn int) error {
	if done, err := r.handOver(ctx); done || err != nil {
		return err
	}
	if err := r.pick(); err != nil {
		return r.stopFor(err)
	}
	if err := r.equip(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // the loop sees that ctx ended
		}
		return r.stopFor(err)
	}
	// Input that another program appended was not seen by the hooks yet.
	if agreed, err := r.judgeInput(ctx); !agreed {
		return err
	}
	used := r.state.Used()
	if agreed, err := r.guardFirst(ctx, goesFirst); !agreed {
		return err
	}
	if used != r.state.Used() { // the guards may have used up a limit
		if _, still := r.state.Next().(plan.Ask); !still {
			return nil
		}
	}
	if err := r.take(); err != nil {
		return r.stopFor(err)
	}
	return r.ask(ctx, turn)
}

// stopFor records that the run should end, because a shared budget is used up or
// because a hook objects.
func (r *Run) stopFor(err error) error {
	var b *BudgetError
	if errors.As(err, &b) {
		return r.record(session.StopAsked{Why: string(b.Why), Detail: b.Detail})
	}
	r.failure = err
	return r.record(vetoed(err))
}

// ask makes one request and records the reply item by item. A reply that breaks off
// is an outcome of the turn, not an error; the returned error is the store's. If the
// endpoint refused the request before any output, the request may be changed and
// sent again: that decision is recorded together with the end of the turn.
func (r *Run) ask(ctx context.Context, turn int) error {
	if begun, err := r.beginTurn(ctx, turn); !begun {
		return err
	}
	seen := &r.asked
	*seen = ModelCall{Session: r.session.ID(), Depth: r.depth, Turn: turn, Speaker: r.speaker(), Request: r.request(), Endpoint: r.agent.endpoint(), Started: time.Now()}
	inner, hooks, veto := r.admitModel(ctx, seen)
	if veto != nil {
		return r.notSent(ctx, inner, hooks, seen, veto)
	}

	// If output is held back, emit collects events from here on until release.
	asking := r.startBeside(ctx, inner)
	r.holding = r.agent.holdsOutput() || r.beside != nil
	end, failure, err := r.hear(asking, ctx, seen)
	// Hooks may be slow, so the reply must be durable before they run.
	if err == nil && (len(hooks) > 0 || r.holding || r.agent.judgesOutput()) {
		err = r.barrier()
	}
	if err != nil { // a reply that could not be stored counts as failed
		end.Status, end.Reason, failure = item.StatusFailed, err.Error(), err
	}
	objection := r.afterModel(inner, hooks, seen, end, failure)
	if err == nil && r.vetoedBeside(ctx) {
		r.release(false)
		return r.vetoBeside(objection)
	}
	return r.judgeReply(ctx, turn, objection, err)
}

// beginTurn records the start of a turn. It reports false if the turn does not begin.
func (r *Run) beginTurn(ctx context.Context, turn int) (begun bool, err error) {
	in, skip, left := r.converse()
	if left != "" {
		if err := r.notice(ctx, session.Noticed{Turn: turn, Kind: session.NoticeWholeHistory, Text: left}); err != nil {
			return false, err
		}
	}
	start := session.TurnStarted{Turn: turn, Continues: r.state.View().Unfinished(), InConversation: in, Setup: r.changed()}
	bodies := []session.Body{start}
	last, isLast := r.lastTurn(ctx)
	if r.answerNow = isLast; isLast {
		last.Turn = turn
		bodies = []session.Body{session.InputItem{Item: item.Developer(answerNow)}, last, start}
	}
	// The start of the turn is durable before the request is sent, so that after a
	// crash the log shows that a request may have been made.
	if err = r.record(bodies...); err == nil {
		err = r.barrier()
	}
	if err != nil {
		r.budget.draw(Usage{Turns: -1}) // give the turn back, because it did not begin
		return false, err
	}
	if isLast {
		if objection := after(ctx, "Noticed", r.agent.Hooks, noticed, &last); objection != nil {
			return false, r.stopFor(objection)
		}
	}
	if path, _, _ := r.state.Speaker(); len(path) > r.spoke {
		r.spoke = len(path)
		r.progress(Progress{Kind: ProgressSpeaker, Turn: turn, Handoff: r.speaker()})
	}
	// The request carries the items after those that the endpoint's conversation
	// holds.
	r.skip = skip
	r.totals.Turns++
	r.held = false
	return true, nil
}

// notSent ends a turn whose request a hook objected to, after hooks had agreed.
func (r *Run) notSent(ctx, inner context.Context, hooks []Hooks, seen *ModelCall, veto error) error {
	end := session.TurnEnded{Turn: seen.Turn, Status: item.StatusCancelled, Reason: veto.Error()}
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
	return nil // the run ends with the reason why its context ended
}

// judgeReply has the guards judge a reply that was recorded, unless err is why it was not, and
// follows what they and the hooks object.
func (r *Run) judgeReply(ctx context.Context, turn int, objection, err error) error {
	if err == nil && r.agent.judgesOutput() {
		objection = joined(objection, r.guardReply(ctx, replyIn(r.session.Log()), turn, false))
	}
	// A hook that failed because ctx ended has not judged the reply.
	objection, judged := uninterrupted(ctx, objection)
	r.release(err == nil && judged && !objects(objection, true) && !r.beside.vetoed())
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

// hear records the reply and the end of the turn. failure is the error that broke
// the reply off, and err the store's.
func (r *Run) hear(inner, ctx context.Context, seen *ModelCall) (end session.TurnEnded, failure, err error) {
	turn := seen.Turn
	l := &r.heard
	*l = listener{run: r, ctx: ctx, seen: seen, order: order{run: r}}
	defer l.order.flush()
	shown, failure, err := l.listen(inner)
	acc := &l.acc
	if failure = brokenOff(acc, failure); failure != nil && !shown && err == nil && r.answered() == nil {
		shown, failure, err = r.withoutImages(inner, ctx, seen, failure)
	}
	resp, _ := acc.Response()
	seen.ResponseModel, seen.Output = resp.Model, resp.Output
	veto := error(nil)
	if err == nil {
		veto, err = r.endBeside()
	}
	if err != nil {
		r.beside.leave()
		return session.TurnEnded{Turn: turn}, nil, err
	}
	end = endOf(acc, turn, failure)
	if veto != nil && (failure == nil || !interrupted(ctx, veto)) {
		end.Status, end.Reason, end.Class, failure = item.StatusCancelled, veto.Error(), "", veto
	}
	if err := r.count(ctx, &end); err != nil {
		return end, nil, err
	}
	atLimit(&end, seen.Request)
	r.describe(ctx, &end, seen.Request, resp)
	apart(&end)
	// The usage counts even if the reply broke off.
	end.Cost = r.price.Of(end.Usage)
	var decision session.Body
	if end.BrokeOff() {
		r.failure = failure
		if ctx.Err() != nil {
			end.Status = item.StatusCancelled
			if interrupted(ctx, failure) { // a Model may return the bare error
				end.Class = cmp.Or(end.Class, string(endpoint.Canceled))
			}
		} else if !shown && veto == nil {
			if decision = r.mend(failure); decision == nil {
				decision = r.fallOver(turn, failure)
			}
		}
		if decision == nil {
			r.failure = r.allFailed(failure)
		}
		if decision == nil && !shown && veto == nil {
			end.Refused = r.blamed(failure)
		}
	}
	if err := r.heard.leftOver(end.Status == item.StatusCompleted); err != nil {
		return end, nil, err
	}
	if again, ok := r.state.View().Repeats(end.BrokeOff()); ok {
		decision = again // does not replace a mend, because a mended reply has no output
	}
	return end, failure, r.endTurn(ctx, end, decision)
}

// admitModel calls the BeforeModel hooks. It returns the hooks that agreed, for
// which AfterModel is due, and an error if one of them objects or changes what only
// the log may determine.
func (r *Run) admitModel(ctx context.Context, seen *ModelCall) (context.Context, []Hooks, error) {
	hooks := r.agent.Hooks
	if len(hooks) == 0 {
		return ctx, nil, nil
	}
	seen.Cache = r.state.Cache()
	ofTurn(seen.Request)
	input, talk, base := seen.Request.Input, seen.Request.Conversation, seen.Request.PreviousResponseID
	items := input.Len()
	inner, n, err := before(ctx, "BeforeModel", hooks, beforeModel, seen)
	switch {
	case err != nil:
	// The log determines the input. If hooks could change it, the log would no
	// longer show what the model read.
	case seen.Request == nil || seen.Request.Input != input || input.Len() != items:
		err = &HookError{Hook: "BeforeModel", Err: &StopError{errors.New("it changed the request's input, which is the log's")}}
	case seen.Request.Conversation != talk || seen.Request.PreviousResponseID != base:
		err = &HookError{Hook: "BeforeModel", Err: &StopError{errors.New("it changed PreviousResponseID or Conversation, which a hook must not change")}}
	// Another model than in the last request may have another price, or none that is
	// known.
	case seen.Request.Model != r.priced:
		err = r.findPrice(seen.Request.Model)
	}
	return inner, hooks[:n], err
}

// afterModel calls the AfterModel hooks with the outcome of a request.
func (r *Run) afterModel(ctx context.Context, hooks []Hooks, seen *ModelCall, end session.TurnEnded, failure error) error {
	if len(hooks) == 0 {
		return nil
	}
	seen.Ended = time.Now()
	seen.ResponseID, seen.Status, seen.Reason, seen.Class, seen.Usage, seen.Cost = end.ResponseID, end.Status, end.Reason, end.Class, end.Usage, end.Cost
	seen.Err, seen.Cache = failure, r.state.Cache()
	return after(ctx, "AfterModel", hooks, afterModel, seen)
}

// listener receives one reply: it accumulates the items, records them, and emits the
// events.
type listener struct {
	run  *Run
	ctx  context.Context // of the run
	seen *ModelCall
	acc  api.Accumulator

	notes    []api.Note // notes of the client since the last event
	messages []int      // numbers of recorded messages whose events are not emitted yet
	beside   []int      // output indexes of the messages of other agents at the endpoint
	shown    bool       // output has arrived
	failure  error      // the error that broke the reply off
	err      error      // the store's error
	order    order
}

// listen requests the reply with the context inner and reads it. Calls that may
// start early are started with the context of the run, because inner belongs to the
// request.
func (l *listener) listen(inner context.Context) (shown bool, failure, err error) {
	r := l.run
	// Without hooks all requests of a run can share one context. A hook may derive a
	// new one for each request, and guards may end one.
	if r.asks == nil || len(r.agent.Hooks)+len(r.agent.Guards) > 0 {
		r.asks, r.meta = endpoint.WithMeta(api.WithNotes(endpoint.WithBudget(inner, r.retries), r.takeNote))
		r.answers = 0
	}
	for ev, err := range r.telling(streamOf(r.asks, r.agent.Model, r.parts(l.seen.Request))) {
		if err != nil {
			l.failure = nils.Err(err)
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

// event handles the next event and reports whether to continue reading.
func (l *listener) event(ev *api.Event) bool {
	r := l.run
	if len(r.pending) > 0 {
		r.tellDurable()
	}
	if len(l.notes) > 0 {
		if l.err = l.tellNotes(); l.err != nil {
			return false
		}
	}
	if veto := r.answered(); veto != nil {
		l.failure = veto
		return false
	}
	// An error of Add means that the endpoint violated the protocol.
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
		// The call is recorded by now, so its tool can start while the rest of the
		// reply arrives.
		if l.err = r.startEarly(l.ctx, it); l.err != nil {
			return false
		}
	}
	// A shortcut: nearly all events are deltas, and deltas hold no error.
	if !strings.HasSuffix(string(ev.Type), ".delta") {
		if apiErr, ok := ev.Err(); ok {
			// The Model may also return it as an error, which then takes precedence.
			l.failure = asFailure(apiErr)
		}
	}
	// The caller stopped iterating. If this is the last event, the reply is complete
	// and is kept as such.
	if r.left && !ev.Terminal() {
		l.failure = context.Canceled
		return false
	}
	return true
}

// shows reports whether an event is output. All events are, except for those about
// the response as a whole.
func shows(t api.EventType) bool {
	switch t {
	case "", api.EventCreated, api.EventQueued, api.EventInProgress, api.EventCompleted, api.EventIncomplete,
		api.EventFailed, api.EventCancelled, api.EventError, "keepalive":
		return false
	}
	return true
}

// asFailure classifies an error that arrived as an event.
func asFailure(e *api.APIError) error {
	return endpoint.FromAPI(e.Code, e.Type, e.Message, e.Param)
}

// tell emits an event of the model, with texts in the order of their messages.
func (l *listener) tell(ev *api.Event) {
	kind := deltaKind(ev.Type)
	switch kind {
	case DeltaText, DeltaRefusal:
		if at, ok := l.placeOf(ev, ev.Type); ok {
			l.order.text(at, Delta{Kind: l.speaks(kind, ev.OutputIndex), ItemID: ev.ItemID, Part: at.part, Text: ev.Delta})
			return
		}
	case "":
		switch ev.Type {
		case api.EventItemAdded:
			if it, err := ev.Item(); err == nil && it.FromSubagent() {
				l.beside = append(l.beside, ev.OutputIndex)
			}
		case api.EventTextDone:
			if at, ok := l.placeOf(ev, api.EventTextDelta); ok {
				l.order.partEnded(at)
			}
		case api.EventRefusalDone:
			if at, ok := l.placeOf(ev, api.EventRefusalDelta); ok {
				l.order.partEnded(at)
			}
		}
		if !saidByEntries(ev.Type) {
			own := *ev
			l.run.emit(Progress{Kind: ProgressModel, Turn: l.seen.Turn, Event: &own})
		}
		return
	}
	d := Delta{Kind: kind, ItemID: ev.ItemID, Text: ev.Delta}
	if kind == DeltaSummary {
		d.Part = max(ev.SummaryIndex, 0)
	}
	l.run.emit(d)
}

// speaks returns the kind of a text by who says it.
func (l *listener) speaks(kind DeltaKind, index int) DeltaKind {
	if slices.Contains(l.beside, index) {
		return DeltaAgent
	}
	return kind
}

// placeOf returns the text that the last added event belongs to.
func (l *listener) placeOf(ev *api.Event, kind api.EventType) (textPlace, bool) {
	number, ok := l.acc.About()
	return textPlace{item: number, part: max(ev.ContentIndex, 0), kind: kind, names: namesOf(ev)}, ok
}

// receive records an item of the reply.
func (l *listener) receive(it item.Item, number int, partial bool) error {
	r, turn := l.run, l.seen.Turn
	it, err := r.ownWords(l.ctx, turn, it)
	if err != nil {
		return err
	}
	if it.Type() == item.TypeMessage && !r.quiet {
		l.messages = append(l.messages, number)
	}
	return r.record(session.OutputItem{Turn: turn, Item: it, Partial: partial})
}

// leftOver records the parts of items that never became complete. If the reply was
// completed all the same, a notice reports them, because a person has seen them.
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

// missing returns the notice about an item that began to arrive but is not in the
// reply's last event.
func missing(turn int, it item.Item, said bool) session.Noticed {
	n := session.Noticed{Turn: turn, Kind: session.NoticeItemMissing, ItemID: it.ID(), CallID: it.CallID()}
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

// clip returns the beginning of a text, at most 500 characters, for a notice.
func clip(s string) string {
	if runes := []rune(s); len(runes) > 500 {
		return string(runes[:500]) + "…"
	}
	return s
}

// ownWords returns the item as a message of the assistant. A reply may contain a
// message with the role user, system or developer. The model wrote it all the same,
// and with such a role its words would count as those of a person or of the program.
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
	return own, r.notice(ctx, session.Noticed{Turn: turn, Kind: session.NoticeForeignRole, ItemID: m.ID,
		Text: "the reply has a message under the role " + string(role) + ": it is kept as the model's own"})
}

var errTruncated = errors.New("the reply ended without its last event")

// brokenOff returns the error that broke the reply off, or nil. A Model that just
// ends its stream may not know that the reply is incomplete, and a response may
// report its own failure.
func brokenOff(acc *api.Accumulator, failure error) error {
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

// endOf returns the entry for the end of the turn.
func endOf(acc *api.Accumulator, turn int, failure error) session.TurnEnded {
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

// incompleteReply reports whether a reply is incomplete. Some servers call a reply
// completed but also give a reason why it is incomplete; such a reply counts as
// incomplete.
func incompleteReply(resp *api.Response) bool {
	if cmp.Or(resp.Status, item.StatusCompleted) == item.StatusCompleted {
		return resp.Incomplete != nil && resp.Incomplete.Reason != ""
	}
	return resp.Status == item.StatusIncomplete
}

// maxTokensReached is the reason of a reply that reached its length limit.
const maxTokensReached = "max_output_tokens"

// atLimit marks a completed reply as incomplete if it has exactly as many tokens as
// the request allows, because llama-server and Ollama call such a reply completed. A
// reply that happens to end at exactly this length is marked, too, which is the safe
// mistake. More tokens than the limit mean that the endpoint ignores the limit or
// counts differently, so such a reply is not marked.
func atLimit(end *session.TurnEnded, req *api.Request) {
	if end.Status == item.StatusCompleted && req != nil && reached(req.MaxOutputTokens, end.Usage) {
		end.Status, end.Reason = item.StatusIncomplete, maxTokensReached
	}
}

// reached reports whether a reply has exactly as many tokens as its limit.
func reached(limit *int64, u *api.Usage) bool {
	return limit != nil && u != nil && *limit > 0 && u.OutputTokens == *limit
}

// endTurn records the end of a turn, together with the decision that follows from
// it, if any: the log has both or neither.
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
		r.failed = nil
	}
	if u := end.Usage; u != nil {
		r.totals.count(u)
		r.totals.Cost += end.Cost
		r.budget.Spend(Usage{Tokens: u.TotalTokens, Cost: end.Cost})
	}
	if cache := r.state.Cache(); cache != nil {
		r.result.Cache = append(r.result.Cache, *cache)
		r.progress(Progress{Kind: ProgressCache, Turn: end.Turn, Cache: cache})
	}
	if n, ok := decision.(session.Noticed); ok {
		r.tells(n) // the next turn need not say it again
		if objection := after(ctx, "Noticed", r.agent.Hooks, noticed, &n); objection != nil {
			return r.stopFor(objection)
		}
	}
	if truncation := r.state.Truncation(); truncation != "" {
		return r.notice(ctx, session.Noticed{Turn: end.Turn, Kind: session.NoticeHistoryCut, Text: truncation})
	}
	return nil
}

// answerNow is the last message of a request that must be answered without calls.
const answerNow = "A limit of this run allows one more reply. Answer now, with what is known; say what is missing. No tool can be called in this reply."

// request returns the next request: the agent's template with the history and the
// tools.
func (r *Run) request() *api.Request {
	req := r.agent.Request
	req.Input = r.state.View().Items().Clone()
	// This turn does not join the conversation: see converse.
	if r.state.InConversation() == "" {
		req.Conversation = ""
	}
	r.equipRequest(&req)
	if r.answerNow && len(req.Tools) > 0 {
		req.ToolChoice = api.ChoiceNone
		return &req
	}
	// A forced choice would make the model call tools forever.
	if r.state.Obeyed() && !r.agent.KeepToolChoice && forces(req.ToolChoice) {
		req.ToolChoice = api.ChoiceAuto
	}
	return &req
}

// forces reports whether a tool choice forces the model to make a call.
func forces(choice item.JSON) bool {
	c, err := api.ParseToolChoice(choice)
	switch {
	case err != nil:
		return false
	case c.Type == "" || c.Type == api.ChoiceTypeAllowed:
		return c.Mode == api.ModeRequired
	}
	return true
}

// equipRequest sets the tools of a request, and the schema of its answer. Without
// tools it clears the settings
// that are about tools.
func (r *Run) equipRequest(req *api.Request) {
	if r.wanted != nil {
		r.wanted.ask(req)
	}
	req.Tools = append(r.tools.Definitions(), r.agent.Request.Tools...)
	if len(req.Tools) == 0 {
		req.Tools, req.ToolChoice, req.ParallelToolCalls = nil, "", nil
		return
	}
	req.ToolChoice = cmp.Or(req.ToolChoice, api.ChoiceAuto)
}
