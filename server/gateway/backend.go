// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/estimate"
)

// Upstream is an endpoint behind a [Backend].
type Upstream struct {
	// Models says which models the upstream answers for: a name; a beginning, which ends in
	// "*"; or a namespace, which ends in "/" and is not part of the name that the upstream
	// receives. "" means all models. Of several patterns that fit, a name is the best, then
	// the longest beginning.
	Models string
	// Dialect is the API of the upstream. Nil means the Responses API.
	Dialect dialect.Dialect
	// Config says where the upstream is. Its key goes to no other host.
	Config *dialect.Config
	// Counted says that the tokens of a request may be counted by asking the model for the shortest
	// reply, if the upstream has no other way to do it. This costs what the input costs, and clients may
	// count before each request. Otherwise the upstream cannot count.
	Counted bool
}

// Backend is a [server.Backend] that asks upstreams. Set the fields before the first
// request; then it is safe for concurrent use.
type Backend struct {
	// Upstreams are asked in this order, those with the same pattern one after the other.
	Upstreams []Upstream
	// AccountIDs lets clients name files, vector stores, containers, prompts and the like by ids
	// that an upstream looks up in its account. All clients share the account, so such a request is
	// refused otherwise.
	AccountIDs bool
	// Made, if set, is called for each response before its end is sent, with what is also stored with it. It may be called from several goroutines at once.
	Made func(Record)
	// Cost, if set, returns what tokens of a model cost at a base URL, or 0 if that is not
	// known. The model is the one that the upstream was asked for. It counts in limits of cost.
	Cost func(model, baseURL string, used *api.Usage) float64
	// Hooks observe responses: BeforeModel is called before the upstreams are asked, and AfterModel
	// when the response has ended, once for each response, whatever the number of upstreams. An
	// error of BeforeModel refuses the request, and one of AfterModel is logged. The other hooks
	// are not called. Those of package tracing make spans. Their measurements are by the model, whose
	// name clients choose: bound it, or give them a MeterProvider that does nothing.
	Hooks agent.Hooks
	// Log receives errors that clients are not told. It may be nil.
	Log func(error)
	// Now returns the time. Nil means time.Now.
	Now func() time.Time

	once  sync.Once
	ups   []*upstream
	seals seals

	running running
}

// upstream is an Upstream in use.
type upstream struct {
	Upstream
	number  int
	model   dialect.Model
	breaker breaker
	list    listed
	unsaid  sync.Once // see silent

	mu    sync.Mutex
	types map[item.Type]bool // the types of items that it made
}

// init prepares the upstreams.
func (b *Backend) init() {
	b.once.Do(func() {
		for i, u := range b.Upstreams {
			if u.Dialect == nil {
				u.Dialect = responses.Dialect{}
			}
			if u.Config == nil {
				u.Config = new(dialect.Config)
			}
			b.ups = append(b.ups, &upstream{Upstream: u, number: i, model: dialect.Open(u.Dialect, u.Config)})
		}
	})
}

func (b *Backend) now() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}

func (b *Backend) log(err error) {
	if b.Log != nil && err != nil {
		b.Log(err)
	}
}

// fit returns how well a pattern fits a model: 0 means that it does not.
func (u *Upstream) fit(model string) int {
	const exact = 1 << 20
	begin, open := strings.CutSuffix(u.Models, "*")
	switch {
	case u.Models == "":
		return 1
	case open, strings.HasSuffix(u.Models, "/"):
		if strings.HasPrefix(model, begin) && model != begin {
			return 2 + len(begin)
		}
	case u.Models == model:
		return exact
	}
	return 0
}

// sent returns the name of a model that the upstream receives.
func (u *Upstream) sent(model string) string {
	if strings.HasSuffix(u.Models, "/") {
		return strings.TrimPrefix(model, u.Models)
	}
	return model
}

// candidates returns the upstreams for a model, the first one first.
func (b *Backend) candidates(model string) (list []*upstream, err error) {
	b.init()
	best := 0
	for _, u := range b.ups {
		switch fit := u.fit(model); {
		case fit == 0 || fit < best:
		case fit > best:
			best, list = fit, []*upstream{u}
		default:
			list = append(list, u)
		}
	}
	if list == nil {
		return nil, &server.Error{Status: http.StatusNotFound, Code: "model_not_found", Param: "model",
			Message: "The model '" + model + "' does not exist: no upstream of this server answers for it; GET /v1/models lists those that do."}
	}
	return list, nil
}

// about returns where an upstream is, without secrets.
func (u *upstream) about() endpoint.About {
	if d, ok := u.model.(interface{ About() endpoint.About }); ok {
		return d.About()
	}
	return dialect.Client{Config: u.Config, Dialect: u.Dialect}.About()
}

// seen notes the type of an item that the upstream made.
func (u *upstream) seen(ev *api.Event) {
	it, err := ev.Item()
	if err != nil || ordinary(it.Type()) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.types == nil {
		u.types = map[item.Type]bool{}
	}
	u.types[it.Type()] = true
}

func (u *upstream) makes(t item.Type) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.types[t]
}

// profile returns what is known about the kind of endpoint.
func (u *upstream) profile() endpoint.Profile {
	if u.Config.Profile != nil {
		return *u.Config.Profile
	}
	if p, err := u.Config.Table.ByName(u.about().Profile); err == nil {
		return p
	}
	return endpoint.Careful
}

// Respond implements [server.Backend].
func (b *Backend) Respond(ctx context.Context, r *server.Request, w *server.Writer) error {
	if r == nil || r.Request == nil || w == nil {
		return errNothing
	}
	if r.WarmUp {
		return nil
	}
	if err := b.mayAsk(ctx, r); err != nil {
		return err
	}
	p := &passage{b: b, r: r, w: w, record: Record{Model: r.Model, Time: b.now()}}
	ctx, leave, err := b.running.enter(ctx, p)
	if err != nil {
		return err
	}
	defer leave()
	list, err := b.candidates(r.Model)
	if err != nil {
		return err
	}
	background := r.Background != nil && *r.Background
	if background {
		if err := w.Begin(""); err != nil { // the client does not wait for the upstream
			return err
		}
	} else {
		ctx = endpoint.WithBudget(ctx, endpoint.Retry{Max: -1}.Budget())
	}
	if ctx, err = p.observed(ctx); err != nil {
		return err
	}
	err = p.ask(ctx, list)
	p.observe(ctx, err)
	return err
}

// CheckChat implements [server.ChatChecker]. Only an upstream that is asked by Chat Completions
// receives these members, and which one answers is not known yet.
func (b *Backend) CheckChat(*server.Request) error { return nil }

// mayAsk refuses what no upstream is to be asked.
func (b *Backend) mayAsk(ctx context.Context, r *server.Request) error {
	if err := server.CheckToolChoice(r); err != nil {
		return err
	}
	return b.mayName(ctx, r)
}

// mayName refuses ids and URLs that the caller may not give: URLs in tools, in prompts, and in what
// this version does not know and an upstream may; ids everywhere.
func (b *Backend) mayName(ctx context.Context, r *server.Request) error {
	if err := b.account(r); err != nil {
		return err
	}
	list := append(slices.Clone(r.Extra), r.Chat...)
	for _, name := range []string{"tools", "prompt"} {
		if v, ok := r.Object.Member(name); ok {
			list = append(list, item.Member{Name: name, Value: v})
		}
	}
	for _, m := range list {
		if err := server.CheckURLs(ctx, m.Name, "{"+item.Quote(m.Name)+":"+m.Value+"}"); err != nil {
			return err
		}
	}
	return nil
}

var errNothing = errors.New("gateway: the request or the writer is nil")

// passage is one response on its way through the gateway.
type passage struct {
	b      *Backend
	r      *server.Request
	w      *server.Writer
	record Record
	sent   bool // something of an upstream's answer was passed on

	seen    agent.ModelCall // for Hooks
	failure error           // of the upstreams
}

// ask asks the upstreams until one answers. Of several failures the client is told the
// first one: it is about the upstream that its model names first. Each is asked once before one of them is asked
// again, for a client that does not wait.
func (p *passage) ask(ctx context.Context, list []*upstream) error {
	var retries *endpoint.Budget // of several upstreams
	if len(list) > 1 && endpoint.BudgetFrom(ctx) == nil {
		retries = list[0].Config.Retry.Budget()
		ctx = endpoint.WithBudget(ctx, endpoint.Retry{Max: -1}.Budget())
	}
	var rest time.Duration
	for {
		r := p.askEach(ctx, list)
		if r.answered {
			p.failure = nil
			return nil
		}
		rest, list = r.rest, r.again
		wait, ok := retries.Next(r.soonest)
		if !ok || len(list) == 0 || retries.Sleep(ctx, wait) != nil {
			break
		}
	}
	p.made()
	if errors.Is(context.Cause(ctx), errDrained) && !p.w.Ended() {
		return p.stopped()
	}
	err := unavailable(rest)
	if p.failure != nil {
		tell := p.b.told
		if p.b.Made != nil { // the record has each failure
			tell = p.b.failure
		}
		err = tell(p.failure, p.r)
	}
	if p.w.Response().Status != "" {
		err = inResponse(err)
	}
	return err
}

// round is what became of asking upstreams, each once.
type round struct {
	answered bool
	rest     time.Duration // until an upstream that is left out may be asked again
	again    []*upstream   // those that may answer later
	soonest  error         // of the failures, the one after which one of them may be asked first
}

// askEach asks upstreams, one after the other, until one answers.
func (p *passage) askEach(ctx context.Context, list []*upstream) (r round) {
	for i, u := range list {
		if wait := u.breaker.rests(p.b.now()); wait > 0 {
			p.record.begin(u).Outcome = "left out: it failed too often"
			if r.rest == 0 || wait < r.rest {
				r.rest = wait
			}
			r.again = append(r.again, u)
			continue
		}
		err := p.askOne(ctx, u, i < len(list)-1)
		if err == nil {
			return round{answered: true}
		}
		if p.failure == nil || p.sent {
			p.failure = err
		}
		if p.sent || ctx.Err() != nil || !elsewhere(err) {
			return round{rest: r.rest}
		}
		r.note(u, err)
	}
	return r
}

// note notes a failure after which an upstream may be asked again.
func (r *round) note(u *upstream, failure error) {
	var e, first *endpoint.Error
	if !errors.As(failure, &e) || !e.SafeToRetry() {
		return
	}
	r.again = append(r.again, u)
	if !errors.As(r.soonest, &first) || e.RetryAfter < first.RetryAfter {
		r.soonest = failure
	}
}

// made records the response, before its client reads the end of it.
func (p *passage) made() {
	if !p.r.Stored && p.b.Made == nil {
		return // nobody reads it
	}
	p.record.Response = p.w.Response().ID
	p.w.Note(p.record.json())
	if p.b.Made != nil {
		p.b.Made(p.record)
	}
}

// askOne asks an upstream, and once more without the encrypted reasoning if it cannot read
// that. R4
func (p *passage) askOne(ctx context.Context, u *upstream, more bool) error {
	req, notes, err := p.b.shape(p.r, u)
	p.record.Notes = append(p.record.Notes, notes...)
	if err != nil {
		p.record.begin(u).fail("not asked", err)
		return err
	}
	failure := p.stream(ctx, u, req, more)
	var e *endpoint.Error
	if errors.As(failure, &e) && e.Class == endpoint.EncryptedContent && !p.sent {
		if less, n := withoutSealed(req); n > 0 {
			p.record.Notes = append(p.record.Notes, "reasoning that the upstream could not read was left out")
			failure = p.stream(ctx, u, less, more)
		}
	}
	return failure
}

// stream passes on the answer of an upstream, or returns why there is none. If more
// upstreams can be asked, the events that begin a response wait for those that follow.
func (p *passage) stream(ctx context.Context, u *upstream, req *api.Request, more bool) (failure error) {
	ctx, meta := endpoint.WithMeta(ctx)
	ctx, asked := asking(ctx, meta)
	ctx = transport.Passing(ctx, func() { _ = p.w.Flush() }) // Relay returns the error
	attempt := p.record.begin(u)
	made := meter{}
	defer func() {
		if failure != nil {
			attempt.fail("failed", failure)
			if made.begun || ctx.Err() != nil && asked() && !errors.As(failure, new(*endpoint.RefusedError)) {
				p.estimate(u, req, &made)
			}
		}
		u.breaker.note(p.b.now(), failure)
	}()
	for ev, err := range u.model.Stream(ctx, req) {
		if err != nil {
			return err
		}
		made.hear(&ev)
		switch ev.Type {
		case api.EventCreated, api.EventInProgress, api.EventQueued:
			if attempt.Model == "" {
				attempt.answeredBy(responseOf(&ev))
			}
			if more && !p.sent {
				continue
			}
		case api.EventFailed, api.EventError, api.EventCancelled:
			made.counted = p.spend(u, req, responseOf(&ev)) != nil
			continue // the error follows
		case api.EventItemDone:
			u.seen(&ev)
			p.b.seals.made(&ev, u.number)
		case api.EventCompleted, api.EventIncomplete:
			p.b.seals.ended(&ev, u.number)
			end := responseOf(&ev)
			attempt.answeredBy(end)
			attempt.Outcome = "answered"
			if says(p.spend(u, req, end)) {
				made.counted = true
			} else {
				p.estimate(u, req, &made)
				p.b.silent(u)
			}
			p.made()
		}
		if !p.sent {
			p.w.Header = passedOn(meta.Latest().Header)
			if p.r.Stored {
				p.w.Note(p.record.json())
			}
			p.sent = true
		}
		if p.seen.First.IsZero() && ev.Type != api.EventCreated && ev.Type != api.EventInProgress && ev.Type != api.EventQueued {
			p.seen.First = p.b.now()
		}
		if err := p.w.Relay(ev); err != nil {
			return &broken{err}
		}
	}
	switch {
	case p.w.Ended():
		return nil
	case ctx.Err() != nil:
		return &broken{ctx.Err()}
	}
	return &endpoint.Error{Class: endpoint.Truncated, Message: "the stream ended before the response did"}
}

// spend counts what an answer of an upstream used, by the response at its end, which may be nil. It returns
// what the upstream says, or nil.
func (p *passage) spend(u *upstream, req *api.Request, r *api.Response) *api.Usage {
	if r == nil {
		return nil
	}
	p.used(u, req, r.Usage)
	p.w.Model = cmp.Or(r.Model, req.Model)
	return r.Usage
}

// says reports whether the usage of an answer says something. Some servers send one that is all zeros.
func says(u *api.Usage) bool {
	return u != nil && (u.InputTokens > 0 || u.OutputTokens > 0 || u.TotalTokens > 0)
}

// silent logs, once, that an upstream does not say what it used.
func (b *Backend) silent(u *upstream) {
	u.unsaid.Do(func() {
		b.log(fmt.Errorf("%s does not say what it used: limits and usage count an estimate", u.about().URL))
	})
}

// used counts what an upstream used.
func (p *passage) used(u *upstream, req *api.Request, used *api.Usage) {
	p.w.Cost += p.b.cost(u, req.Model, used)
	if used == nil {
		return
	}
	sum := *used
	if before := p.w.Spent; before != nil {
		sum.InputTokens += before.InputTokens
		sum.OutputTokens += before.OutputTokens
		sum.TotalTokens += before.TotalTokens
	}
	p.w.Spent = &sum
}

// meter measures an answer of an upstream.
type meter struct {
	begun   bool        // the upstream has sent an event
	bytes   int         // of the texts and arguments, as deltas
	ends    []api.Event // of items, and of the response
	counted bool        // what it used is counted
}

func (m *meter) hear(ev *api.Event) {
	m.begun = true
	m.bytes += len(ev.Delta)
	switch ev.Type {
	case api.EventItemDone, api.EventCompleted, api.EventIncomplete:
		m.ends = append(m.ends, *ev)
	}
}

// whole returns how many bytes the items have, or those of the response if that is more.
func (m *meter) whole() int {
	items, response := 0, 0
	for i := range m.ends {
		ev := &m.ends[i]
		if ev.Type == api.EventItemDone {
			if it, err := ev.Item(); err == nil {
				items += said(it)
			}
		} else if r := responseOf(ev); r != nil {
			for _, it := range r.Output {
				response += said(it)
			}
		}
	}
	return max(items, response)
}

// said returns how many bytes of an item a model wrote, and not the server around it.
func said(it item.Item) (n int) {
	v, err := it.Decode()
	if err != nil {
		return 0
	}
	switch v := v.(type) {
	case *item.Message:
		return len(v.Content.Display())
	case *item.Reasoning:
		return len(item.Content{Parts: append(v.Summary[:len(v.Summary):len(v.Summary)], v.Content...)}.Display())
	case *item.FunctionCall:
		return len(v.Name) + len(v.Arguments)
	case *item.CustomToolCall:
		return len(v.Name) + len(v.Input)
	}
	return 0
}

// tokens estimates the tokens of the answer.
func (m *meter) tokens() int64 {
	return int64((max(m.bytes, m.whole()) + estimate.BytesPerToken - 1) / estimate.BytesPerToken)
}

// asking returns a context for requests to an upstream, and what tells whether the last one may have
// been received and not been refused. It is not while there is no connection for it, nor between a
// refusal and the next attempt.
func asking(ctx context.Context, meta *endpoint.Meta) (context.Context, func() bool) {
	var mu sync.Mutex
	connects, answers := false, 0 // a connection is looked for, and how many answers came before
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			_, n := meta.RequestID()
			mu.Lock()
			defer mu.Unlock()
			connects, answers = true, n
		},
		WroteHeaders: func() {
			mu.Lock()
			defer mu.Unlock()
			connects = false
		},
	})
	return ctx, func() bool {
		_, n := meta.RequestID()
		mu.Lock()
		defer mu.Unlock()
		return !connects && !(n > answers && meta.Latest().Status >= http.StatusBadRequest)
	}
}

// estimate counts what an answer used, when the upstream does not say it: because the client left,
// the stream broke off, or it never does.
func (p *passage) estimate(u *upstream, req *api.Request, made *meter) {
	if made.counted {
		return
	}
	made.counted = true
	history := len(p.r.Items) - p.r.Own
	in := estimate.Request(p.r.Object, p.r.Items[history:])
	for _, it := range p.r.Items[:history] {
		in += estimate.Tokens(it.JSON())
	}
	out := made.tokens()
	p.used(u, req, &api.Usage{InputTokens: in, OutputTokens: out, TotalTokens: in + out})
	p.w.Model = cmp.Or(p.w.Model, req.Model)
}

// Price returns what tokens of a model cost at the upstream that is asked first, or 0 if that is not
// known.
func (b *Backend) Price(model string, used *api.Usage) float64 {
	list, err := b.candidates(model)
	if err != nil {
		return 0
	}
	return b.cost(list[0], list[0].sent(model), used)
}

// cost returns what tokens of a model cost at an upstream, if that is known.
func (b *Backend) cost(u *upstream, model string, used *api.Usage) float64 {
	if b.Cost == nil || used == nil {
		return 0
	}
	return b.Cost(model, u.about().URL, used)
}

// broken is an error of the way to the client, not of the upstream.
type broken struct{ err error }

func (b *broken) Error() string { return b.err.Error() }
func (b *broken) Unwrap() error { return b.err }

// responseOf returns the response of an event, or nil if it cannot be read.
func responseOf(ev *api.Event) *api.Response {
	r, err := ev.Response()
	if err != nil {
		return nil
	}
	return r
}

// elsewhere reports whether another upstream may succeed where one failed. An invalid
// request fails everywhere, and a refusal is not a reason to ask others until one gives in.
func elsewhere(failure error) bool {
	var e *endpoint.Error
	if errors.As(failure, new(*endpoint.RefusedError)) {
		return true // it was not asked
	}
	if errors.As(failure, new(*broken)) || !errors.As(failure, &e) || e.Sent {
		return false
	}
	return slices.Contains([]endpoint.Class{
		endpoint.RateLimit, endpoint.Overloaded, endpoint.Server, endpoint.Network, endpoint.Quota, endpoint.Auth, endpoint.Forbidden,
		endpoint.Truncated, endpoint.Idle, endpoint.Protocol, endpoint.Reconnect, endpoint.NotFound,
	}, e.Class)
}
