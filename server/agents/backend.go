// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/kept"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

// Agent is an agent's file that is served as a model.
type Agent struct {
	// Name is the name of the model in requests.
	Name string
	// Description says in the list of models what the agent does. It may be "".
	Description string
	// Config says how the file is run. The Backend sets the store, the session and
	// Pause. Its Trust is asked for each response, so that a file that was changed is
	// not run before somebody agreed to the change.
	Config host.Config
	// Hooks are called around those of the host, in each run of the file but not in those
	// of its subagents: for example package tracing's.
	Hooks []agent.Hooks
}

// Backend is a [server.Backend] and [server.Keeper] that runs agents. Set the fields
// before the first request; then it is safe for concurrent use. Call Drain
// before the server is closed; there is nothing else to close.
type Backend struct {
	// Agents are the models.
	Agents []Agent
	// Later returns further models, such as those of files that are newer than the server. Each must be in all
	// later lists, too. It must be safe for concurrent use. It may be nil.
	Later func() []Agent
	// Store keeps the sessions of stored responses and of conversations. Nil means
	// memory. The Backend does not close it.
	Store store.Store
	// Owner owns the sessions. If it is not "", the Backend neither reads nor continues
	// sessions of others, and does as if they did not exist. It replaces the Owner of the
	// agents' configurations (rule V3 in docs/rules.md).
	Owner string
	// By is recorded as the person who answers approvals. "" means the key of the caller
	// (see [server.CallerOf]), or "a client".
	By string
	// Log receives errors that clients are not told, such as those of the store. It may
	// be nil.
	Log func(err error)

	// Live is told the events of each run as they come, with the id of its session, and nil when
	// it has ended: see Live in package server/sessions. It must be safe for concurrent use, and not wait.
	// It may be nil.
	Live func(session string, ev agent.Event)

	// Queue leaves the runs to workers over the same store, which must keep work: see package worker.
	// The tenant of the work is the owner of the session. A worker gives its Prepare of this package.
	// Otherwise the Backend makes the runs itself.
	Queue bool

	memory ephemeral // sessions of responses that are not stored, or of all

	// KeepStreams is how long the events of a background response that was streamed are kept
	// after the last one, so that its stream can be read again; 0 means an hour.
	KeepStreams time.Duration
	// KeepKeys is how long an Idempotency-Key is remembered from the beginning of its response; 0 means a day (rule V4 in docs/rules.md).
	KeepKeys time.Duration
	// Webhook is told when background responses have ended, and when approvals are wanted.
	// Nil means nobody. Call [Backend.SendWebhooks] too.
	Webhook *server.Webhook

	keysOnce sync.Once
	keys     *kept.Book // see book

	mu        sync.Mutex
	written   map[string]int64     // how many notes the events of a response have, by its id
	swept     time.Time            // when old events were looked for
	active    map[string]*active   // the responses that are being made, by id
	unstored  map[string]string    // the sessions of responses that are not stored, by the response's id
	elsewhere map[string]elsewhere // sessions that others write to
	refused   map[string]int       // how often a session could not be opened to go on
	unsaid    map[string]bool      // the agents whose endpoints are known not to say what they used
	draining  bool
	idle      chan struct{} // closed when the last response ends while draining
}

// active is a response that is being made.
type active struct {
	id         string
	host       *host.Host
	lent       *lent             // by the request; nil in a response that was taken up again
	seq        int64             // the entry at which the response begins
	input      []session.Body    // what the request adds to the session
	end        func(cause error) // cancels the run
	background bool
	queued     bool   // a worker makes it
	away       bool   // the session is a worker's, so nothing may be written to it here
	streams    bool   // its events are kept
	files      string // of the agent: see filesOf
	prices     func(model string) (agent.Price, bool)
	request    jsontext.Value       // what the note about the beginning says of the request
	cancelled  bool                 // by a delivery
	ended      bool                 // the end is in the log
	asked      jsontext.Value       // for the note about the end
	decided    *server.StoredObject // an end that somebody else decided, such as a cancellation
	done       chan struct{}
}

// elsewhere says when to look again at a session that another server has.
type elsewhere struct {
	until  time.Time
	served string // the response that it serves while workers make it, or ""
}

// ephemeral is a store in memory.
type ephemeral struct{ session.Memory }

func (*ephemeral) Place() string { return "memory" }
func (*ephemeral) Close() error  { return nil }

// errLocked is for a client whose session another process writes to.
var errLocked = &server.Error{Status: http.StatusConflict, Code: "conversation_locked", Message: "Another process is currently operating on this conversation. Please retry in a few seconds."}

// tag marks the sessions that a Backend made.
const tag = "responses-api"

// errDrained is the cause of the end of a run whose server stops.
var errDrained = errors.New("the server stopped before the response was complete")

// errDeleted is that of a run whose response is deleted.
var errDeleted = errors.New("the response was deleted while it was made")

func (b *Backend) store() store.Store {
	if nils.Is(b.Store) {
		return &b.memory
	}
	return b.Store
}

func (b *Backend) report(err error) {
	if err != nil && b.Log != nil {
		b.Log(err)
	}
}

// all returns the models.
func (b *Backend) all() []Agent {
	if b.Later == nil {
		return b.Agents
	}
	return slices.Concat(b.Agents, b.Later())
}

// Serves reports whether an agent has this name.
func (b *Backend) Serves(model string) bool {
	return slices.ContainsFunc(b.all(), func(a Agent) bool { return a.Name == model })
}

// Models implements [server.ModelLister]. The list of all leaves out agents whose file was deleted.
func (b *Backend) Models(_ context.Context, id string) (list []server.Model, _ error) {
	for _, a := range b.all() {
		if id != "" && a.Name != id {
			continue
		}
		m := server.Model{ID: a.Name, OwnedBy: "antiphon", Description: a.Description}
		file, err := os.Stat(a.Config.File)
		switch {
		case err == nil: // requests tell what is wrong with it
			m.Created = file.ModTime().Unix()
		case errors.Is(err, fs.ErrNotExist) && id == "": // by its name it is still no model of another server
			continue
		}
		list = append(list, m)
	}
	return list, nil
}

// named returns the agent of a model.
func (b *Backend) named(model string) (*Agent, error) {
	for _, a := range b.all() {
		if a.Name == model {
			return &a, nil
		}
	}
	return nil, &server.Error{Status: http.StatusNotFound, Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("The model '%s' does not exist; GET /v1/models lists those that do.", model)}
}

// Respond implements [server.Backend].
func (b *Backend) Respond(ctx context.Context, r *server.Request, w *server.Writer) error {
	if r == nil || r.Request == nil || w == nil {
		return errors.New("agents: Respond needs a request and a writer")
	}
	a, err := b.named(r.Model)
	if err == nil {
		err = unsupported(r)
	}
	if err == nil && b.Queue {
		err = b.unqueued(ctx, a, r)
	}
	if err != nil {
		return err
	}
	at, err := b.place(ctx, a, r)
	defer func() { b.report(at.release()) }()
	if err != nil {
		return err
	}
	tokens := &lent{tools: r.Tools, worker: b.Queue}
	h, err := b.opens(ctx, a, at, r, tokens)
	if err != nil {
		at.undo()
		return b.unopened(a, err)
	}
	run := &active{host: h, lent: tokens, background: r.Background != nil && *r.Background, done: make(chan struct{})}
	if run.background {
		run.streams = r.Stream != nil && *r.Stream
	}
	if run.queued = b.Queue; run.background || run.queued {
		run.request, err = keptRequest(r)
	}
	if err == nil {
		err = b.respond(ctx, a, at, run, r, w)
	}
	b.leave(run, at.undo)
	return err
}

// enter registers a response that is being made.
func (b *Backend) enter(run *active) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.draining {
		return &server.Error{Status: http.StatusServiceUnavailable, Code: "server_stopping", Message: "The server is about to stop."}
	}
	if b.active == nil {
		b.active, b.unstored = map[string]*active{}, map[string]string{}
	}
	b.active[run.id] = run
	return nil
}

// leave ends the work on a response. If it did not begin, undo is called.
func (b *Backend) leave(run *active, undo func()) {
	b.mu.Lock()
	delete(b.active, run.id)
	if len(b.active) == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
	b.mu.Unlock()
	if run.seq == 0 { // the request was refused
		undo()
	}
	b.report(run.host.Close())
	close(run.done)
}

// saysItReads matches the names of functions that only read, by what they say.
var saysItReads = lazyregexp.New(`(?i)^(get|list|read|search|find|look|fetch)(_|$|[A-Z])`)

// openHost opens an agent in a session. by has the tools of the client, and its tokens.
func (b *Backend) openHost(ctx context.Context, a *Agent, in store.Store, id string, by *lent) (*host.Host, error) {
	cfg := a.Config
	cfg.Caller = by.of
	cfg.Owner = b.owner()
	cfg.Store, cfg.Session, cfg.Last, cfg.Transcript, cfg.Pause, cfg.Approver, cfg.Answers, cfg.Locked, cfg.Permit = in, id, false, "", true, nil, nil, nil, nil
	cfg.Endpoint.Calls = func(name string) bool { // of the rehearsal model, which is to change nothing
		return saysItReads.MatchString(name) && slices.ContainsFunc(by.tools, func(def item.Tool) bool { return nameOf(def) == name })
	}
	if by.worker { // nothing is asked from here, so this server needs no key
		cfg.Endpoint, cfg.RefuseMessageAgents = host.Endpoint{Rehearsal: true}, true
	}
	return host.Open(ctx, cfg)
}

// opens opens the host of a response. If another response has the session of the one that is
// continued, or was made in it since at was found, it opens a fork. The answer to an approval is
// refused instead: the call may run there already, and would run once more in a fork.
func (b *Backend) opens(ctx context.Context, a *Agent, at *place, r *server.Request, by *lent) (*host.Host, error) {
	h, err := b.openHost(ctx, a, at.store, at.session, by)
	if err == nil && at.talk != "" && unfinished(h.Session.Log()) != "" { // between its server and a worker
		return nil, errors.Join(errLocked, h.Close())
	}
	if at.fresh || at.talk != "" {
		return h, err
	}
	switch {
	case err == nil && at.free(h.Session.Log()):
		return h, nil
	case err == nil:
		err = h.Close()
		if err == nil && approves(r.Items) {
			err = errLocked
		}
	case errors.Is(err, session.ErrBusy) && !approves(r.Items):
		err = nil
	}
	if err == nil {
		err = b.fork(ctx, at)
	}
	if err != nil {
		return nil, err
	}
	return b.openHost(ctx, a, at.store, at.session, by)
}

// free reports whether the response that is continued is the last one of a log, and no worker makes it.
func (p *place) free(log []session.Entry) bool {
	part := partOf(log, p.after)
	return part.last && !atWorker(&part)
}

// atWorker reports whether a response waits for a worker, or is made by one, which holds the session
// only while it does so.
func atWorker(p *part) bool { return p.begin.Queued && !p.ended && !p.deleted }

// approves reports whether items answer an approval.
func approves(items []item.Item) bool {
	return slices.ContainsFunc(items, func(it item.Item) bool { return it.Type() == item.TypeMCPApprovalResponse })
}

// notOpened returns the error for a client whose agent could not be opened. It may name
// files of this machine, so it is logged.
func notOpened(a *Agent, err error) error {
	if errors.Is(err, session.ErrBusy) {
		return errLocked
	}
	return fmt.Errorf("the agent %s: %w", a.Name, err)
}

// unopened is notOpened for a client that waits: it is told if the same request may succeed later,
// because the file has changed and nobody has agreed to the change, or has a mistake. K6
func (b *Backend) unopened(a *Agent, err error) error { return b.unusable(a, notOpened(a, err)) }

// unusable is unopened for an error that names the agent.
func (b *Backend) unusable(a *Agent, err error) error {
	code, message := "", ""
	switch {
	case errors.As(err, new(*trust.UntrustedError)):
		code, message = "agent_not_trusted", "The file of the agent '%s' has changed, and the operator of this server has not agreed to the change yet."
	case errors.As(err, new(*host.ConfigError)):
		code, message = "agent_invalid", "The file of the agent '%s' cannot be used as it is now. The operator of this server finds the reason in its log."
	default:
		return err
	}
	b.report(err) // it says to what
	return &server.Error{Status: http.StatusServiceUnavailable, Code: code, Message: fmt.Sprintf(message, a.Name)}
}

// respond makes a response with an open host.
func (b *Backend) respond(ctx context.Context, a *Agent, at *place, run *active, r *server.Request, w *server.Writer) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	run.end = end
	h := run.host
	names := clientTools(r.Request)
	if run.queued {
		if err := b.taken(ctx, a, h, r.Request); err != nil {
			return err
		}
	} else {
		ag, err := run.lent.start(ctx, a, h)
		if err != nil {
			return b.unusable(a, err)
		}
		if names, err = adapt(ctx, ag, r); err == nil {
			err = enoughTokens(ag, r)
		}
		if err != nil {
			return err
		}
		ag.Hooks, run.files, run.prices = slices.Concat(a.Hooks, ag.Hooks), filesOf(ag), ag.Prices
	}
	answers, err := b.takeApart(ctx, at, run, r)
	if err == nil && len(answers) == 0 && !r.WarmUp && !asks(ctx, h.Session, run.input) {
		err = errNothing
	}
	if err != nil {
		return err
	}
	seq := int64(len(h.Session.Log())) + 1
	id := responseID(at.session, seq)
	run.id = id
	if err := b.enter(run); err != nil {
		return err
	}
	if run.queued {
		unlock, err := b.serves(ctx, id)
		if err != nil {
			return err
		}
		defer func() { b.report(unlock()) }()
	}
	if !r.Stored {
		b.mu.Lock()
		b.unstored[id] = at.session
		b.mu.Unlock()
	}
	s := newShown(b.inner(ctx, h.Store), w, a.Name, id, names, h.Session.Log())
	s.files = r.Stored
	if err := w.Begin(id); err != nil {
		return b.endsEarly(ctx, run, w, err)
	}
	if run.seq == 0 { // a response that is not stored has no Put
		if err := b.begin(ctx, run, w.Response(), false); err != nil {
			return err
		}
	}
	b.report(at.release())
	if err := b.decide(ctx, run, a, answers); err != nil {
		return b.fail(run, w, err)
	}
	for _, e := range h.Session.Log()[run.seq:] {
		s.entry(e)
	}
	if r.WarmUp {
		return b.ends(ctx, run, w, func() error { return w.Complete() })
	}
	if run.queued {
		return b.queues(ctx, a, run, s, w, r.Request)
	}
	return b.runs(ctx, run, s, w)
}

// runs runs the agent, and ends the response.
func (b *Backend) runs(ctx context.Context, run *active, s *shown, w *server.Writer) error {
	h := run.host
	var failure error
	live := b.Live
	if live == nil {
		live = func(string, agent.Event) {}
	}
	defer live(h.Session.ID(), nil)
	for ev, err := range h.Stream(ctx, "") {
		if err != nil {
			failure = err
			continue
		}
		live(h.Session.ID(), ev)
		if e, ok := ev.(agent.Recorded); ok && cancels(e.Entry, run.id) {
			run.cancelled = true
			run.end(server.ErrCancelled) // it may have been for a run that has ended
		}
		s.event(ev)
	}
	if run.background && (errors.Is(failure, session.ErrLost) || left(ctx)) && !run.cancelled {
		return server.ErrLeft
	}
	res := h.Result()
	if res == nil {
		res = &agent.Result{}
	}
	return b.closes(ctx, run, s, w, res, failure)
}

// closes writes what is left of a response whose run has ended, and its end.
func (b *Backend) closes(ctx context.Context, run *active, s *shown, w *server.Writer, res *agent.Result, failure error) error {
	h := run.host
	pending, err := agent.PendingApprovals(context.WithoutCancel(ctx), h.Session)
	b.report(err)
	if nested := s.finish(pending); len(nested) > 0 {
		run.asked, err = listJSON(nested)
		b.report(err)
	}
	b.tellUsage(w, w.Response().Model, h.Session.Log(), run.seq, run.prices)
	if !run.background && kept.Asks(w.Response().Output) {
		b.report(b.owe(context.WithoutCancel(ctx), run.id))
	}
	return b.ends(ctx, run, w, func() error {
		if run.cancelled {
			return server.ErrCancelled
		}
		return b.finish(ctx, run, w, res, failure)
	})
}

// ends writes the end of a response. If its client is gone, or it was cancelled, the log
// is told.
func (b *Backend) ends(ctx context.Context, run *active, w *server.Writer, end func() error) error {
	err := end()
	if run.ended || errors.Is(err, server.ErrLeft) {
		return err
	}
	r := w.Response()
	if b.mu.Lock(); run.decided != nil {
		r = run.decided.Response
	} else if r.Status == item.StatusInProgress || r.Status == item.StatusQueued {
		r.Status = item.StatusCancelled
	}
	b.mu.Unlock()
	b.report(b.ended(ctx, run, r))
	return err
}

// endsEarly ends a response that was cancelled, or whose client went away, when it had just begun. One in the background
// would go on otherwise.
func (b *Backend) endsEarly(ctx context.Context, run *active, w *server.Writer, err error) error {
	switch {
	case run.seq == 0:
		return err
	case run.background && left(ctx):
		return server.ErrLeft
	}
	return b.ends(ctx, run, w, func() error { return err })
}

// fail ends a response that has begun.
func (b *Backend) fail(run *active, w *server.Writer, err error) error {
	b.report(err)
	return b.ends(context.Background(), run, w, func() error { return w.Fail("server_error", "The server had an error while processing your request.") })
}

// finish writes the last event of a response.
func (b *Backend) finish(ctx context.Context, run *active, w *server.Writer, res *agent.Result, failure error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errDrained):
		return w.Interrupt("server_error", interrupted)
	case errors.Is(cause, errDeleted):
		return w.Interrupt("server_error", wasDeleted)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if run.background && res.Why == agent.StopRequested && b.drains() {
		return server.ErrLeft
	}
	switch res.Why {
	case agent.StopEndTurn, agent.StopRefused, agent.StopApprovalPending:
		return w.Complete()
	case agent.StopIncomplete:
		return w.Incomplete(reasonOf(res.Detail))
	case agent.StopNothingToSend: // an earlier server ended after the answer, and before it had recorded the end of the run
		if end, ok := lastTurn(run.host.Session.Log()[run.seq:]); ok && end.Status == item.StatusIncomplete {
			return w.Incomplete(reasonOf(end.Reason))
		} else if ok {
			return w.Complete()
		}
	case agent.StopMaxTurns, agent.StopMaxTime, agent.StopMaxTokens, agent.StopMaxCost, agent.StopRepeatedCall, agent.StopRequested, agent.StopCancelled:
		if parked(run.host.Session.Log()[run.seq:]) {
			return w.Interrupt("server_error", "The agent stopped before its answer: an operator stopped it.")
		}
		if res.Why == agent.StopRequested {
			return w.Interrupt("server_error", fmt.Sprintf("The agent stopped before its answer: %s.", stoppedBy(run.host.Session.Log()[run.seq:])))
		}
		return w.Interrupt("server_error", fmt.Sprintf("The agent stopped before its answer: %s.", res.Why))
	case agent.StopContextFull:
		return w.Fail("invalid_prompt", "The input exceeds the context of the agent's model.")
	case agent.StopEmptyReply:
		return w.Fail("server_error", "The agent's model gave an empty reply.")
	}
	var known *endpoint.Error
	code, message := "server_error", "The agent failed."
	if errors.As(failure, &known) {
		message = "The endpoint of the agent's model failed."
		if known.Class == endpoint.RateLimit {
			code, message = "rate_limit_exceeded", "The endpoint of the agent's model limits its rate."
		}
	}
	if failure != nil {
		b.report(failure)
	}
	return w.Fail(code, message)
}

// wasDeleted is what a client reads whose response another one deletes.
const wasDeleted = "The response was deleted while it was made."

// parked reports whether an operator asked for the end of the run that ends a part of a log. Who
// and why is for the readers of the session.
func parked(log []session.Entry) (yes bool) {
	for _, e := range log {
		switch b := e.Body.(type) {
		case session.RunStarted:
			yes = false
		case session.Delivered:
			yes = yes || b.From == queue.FromPark && b.Entries > 0
		}
	}
	return yes
}

// lastTurn returns the end of the last reply in a part of a log, unless it broke off.
func lastTurn(log []session.Entry) (end session.TurnEnded, ok bool) {
	for _, e := range slices.Backward(log) {
		if end, ok = e.Body.(session.TurnEnded); ok {
			return end, !end.BrokeOff()
		}
	}
	return end, false
}

// reasonOf returns the reason of the API for a reply that is not complete.
func reasonOf(detail string) string {
	if detail == "content_filter" {
		return detail
	}
	return "max_output_tokens"
}

// usageOf returns the usage of a part of a log.
func usageOf(log []session.Entry) (u api.Usage) {
	u.InputDetails = &api.InputTokensDetails{CacheWriteTokens: new(int64(0))}
	u.OutputDetails = new(api.OutputTokensDetails)
	add := func(used *api.Usage) {
		if used != nil {
			u.InputTokens = plan.Plus(u.InputTokens, used.InputTokens)
			u.InputDetails.CachedTokens = plan.Plus(u.InputDetails.CachedTokens, used.Cached())
			u.OutputTokens = plan.Plus(u.OutputTokens, used.OutputTokens)
			u.OutputDetails.ReasoningTokens = plan.Plus(u.OutputDetails.ReasoningTokens, used.Reasoning())
			u.TotalTokens = plan.Plus(u.TotalTokens, used.TotalTokens)
		}
	}
	for _, e := range log {
		switch b := e.Body.(type) {
		case session.TurnEnded:
			add(b.Usage)
		case session.Compacted:
			add(b.Usage)
		case session.SubagentUsage:
			u.TotalTokens = plan.Plus(u.TotalTokens, b.Tokens)
		}
	}
	return u
}

// pricesOf returns what a response cost according to its log, and which model answered
// last.
func pricesOf(log []session.Entry) (cost float64, model string) {
	for _, e := range log {
		switch b := e.Body.(type) {
		case session.TurnEnded:
			cost, model = cost+b.Cost, cmp.Or(b.Model, model)
		case session.Compacted:
			cost += b.Cost
		case session.SubagentUsage:
			cost += b.Cost
		}
	}
	return cost, model
}

// Drain refuses further requests and waits until no response is being made. If ctx ends
// before, the responses end with the status incomplete.
func (b *Backend) Drain(ctx context.Context) {
	b.mu.Lock()
	b.draining = true
	for _, run := range b.active {
		switch {
		case run.background && run.queued: // its worker goes on, and another server shows it
			run.end(errDrained)
		case run.background: // another server goes on
			run.host.StopAfterTurn()
		}
	}
	var idle chan struct{}
	if len(b.active) > 0 {
		if b.idle == nil {
			b.idle = make(chan struct{})
		}
		idle = b.idle
	}
	b.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
		return
	case <-ctx.Done():
	}
	b.mu.Lock()
	var cut []string
	for _, run := range b.active {
		run.end(errDrained)
		if !run.background {
			cut = append(cut, run.id)
		}
	}
	b.mu.Unlock()
	if slices.Sort(cut); len(cut) > 0 {
		b.report(fmt.Errorf("not ended in time, and therefore incomplete: %s", strings.Join(cut, ", ")))
	}
	<-idle
}

func (b *Backend) drains() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.draining
}
