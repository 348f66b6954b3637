// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
)

// Fallback is a [Model] of several candidates. If a candidate cannot answer, the next
// one is asked. As the Model of an [Agent]:
//
//   - A run begins with the first candidate, and stays with the one that answered last.
//     After the last candidate comes the first. For one reply, each is asked once.
//   - The next candidate is asked only if no part of a reply has arrived, and only after
//     an error that another model may not have: an outage, a rate limit, a used-up quota,
//     an unknown model. It is not asked after an error of the request, the key or the
//     policy, or if the context ended. A Model of your own says so with an
//     [endpoint.Error]; a [net.OpError], a [net.DNSError] and a timeout of package net count
//     as an outage, and no other error does.
//   - The log records each such decision as the notice [session.NoticeFallback], so a
//     process that continues the run asks the same candidate. Each request counts as a
//     turn. The price, the context window and the usage are those of the candidate that
//     was asked.
//   - Each candidate has its own retry budget, even if the context has one.
//   - Each candidate gets the Request and the history, with the ids of files and stores.
//     Name only endpoints that may have them. What belongs to one endpoint stays there,
//     unless [Candidate].SameTrust says otherwise: encrypted reasoning and compactions
//     that another candidate made, and hosted tools with secrets, which are the
//     authorization and headers of MCP servers and the secrets of domains. The log keeps
//     everything, and records the decision as a [session.ReasoningDropped] or
//     [session.Restored]. A compaction that is part of a reply is sent to all.
//   - Only the first candidate uses Request.Conversation. The others get the whole history.
//
// If all fail, the error lists every failure.
//
// Stream works without a run, too. It then begins with the first candidate each time, and
// asks no other if the request refers to something that the first one's endpoint keeps.
type Fallback []Candidate

// Candidate is one model of a [Fallback].
type Candidate struct {
	Model Model
	// Name is the model's name in requests; "" means the request's own. [Agent].Prices
	// gets this name.
	Name string
	// Retry is the retry policy. The zero value means the agent's or, if that is not
	// set, the Model's.
	Retry endpoint.Retry
	// Window is the size of the model's context in tokens; 0 means the known size for
	// the Name.
	Window int64
	// SameTrust means that the candidate may have what belongs to the first one's
	// endpoint, and the first one what belongs to this one's: set it for models at the
	// same endpoint, or at two endpoints of one provider.
	SameTrust bool
}

// trust returns the first candidate that may have everything that candidate i may have.
func (f Fallback) trust(i int) int {
	if f[i].SameTrust {
		return 0
	}
	return i
}

// called returns a name of candidate i for people.
func (f Fallback) called(i int) string {
	c := f[i]
	if c.Name != "" {
		return c.Name
	}
	if m, ok := c.Model.(Describer); ok {
		return m.About().URL
	}
	return fmt.Sprintf("candidate %d", i+1)
}

// check returns an error for a Fallback that cannot be used.
func (f Fallback) check(req *api.Request) error {
	if len(f) == 0 {
		return errors.New("agent: the Fallback has no candidates")
	}
	for i, c := range f {
		if asFallback(c.Model) {
			return fmt.Errorf("agent: candidate %d of the Fallback is a Fallback: put its candidates into the outer one", i+1)
		}
		if !isThere(c.Model) {
			return fmt.Errorf("agent: candidate %d of the Fallback has no Model", i+1)
		}
	}
	if req != nil && req.PreviousResponseID != "" {
		return errors.New("agent: Request.PreviousResponseID is set, but the Model is a Fallback: only one endpoint has the history before the session")
	}
	return nil
}

// only returns the agent with candidate i as its model.
func (f Fallback) only(a *Agent, i int) *Agent {
	c, own := f[i], *a
	own.Model, own.Request.Model = c.Model, cmp.Or(c.Name, a.Request.Model)
	if !c.Retry.IsZero() {
		own.Retry = c.Retry
	}
	if i > 0 {
		// These values describe the first candidate and its endpoint.
		own.Request.Conversation, own.Compaction.Window = "", 0
		s := &own.Setup
		s.Endpoint, s.API, s.Transport, s.Profile, s.Rehearsal = "", "", "", "", false
	}
	if f.trust(i) != f.trust(0) {
		own.Request = *withoutSecrets(&own.Request)
	}
	own.Compaction.Window = cmp.Or(c.Window, own.Compaction.Window)
	return &own
}

// asFallback reports whether a model is a Fallback or a pointer to one.
func asFallback(m Model) bool {
	switch m.(type) {
	case Fallback, *Fallback:
		return true
	}
	return false
}

// models returns the models that the agent's requests may go to.
func (a *Agent) models() []Candidate {
	if f, ok := a.Model.(Fallback); ok {
		return f
	}
	return []Candidate{{Model: a.Model}}
}

// Stream implements [Model].
func (f Fallback) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if err := f.check(nil); err != nil || req == nil {
			yield(api.Event{}, cmp.Or(err, errors.New("agent: the request is nil")))
			return
		}
		var all failures
		for i := range f {
			failure, done := f.attempt(ctx, req, i, yield)
			if done {
				return
			}
			all = append(all, fmt.Errorf("%s: %w", f.called(i), failure))
			last := i == len(f)-1 || req.Conversation != "" || req.PreviousResponseID != ""
			if last || ctx.Err() != nil || !elsewhere(failure) {
				break
			}
		}
		yield(api.Event{}, all.joined())
	}
}

// attempt asks candidate i. Events that are not output are withheld until output
// arrives, so that a reply that fails before leaves no trace. It reports done if it has
// yielded the reply; otherwise it returns the failure.
func (f Fallback) attempt(ctx context.Context, req *api.Request, i int, yield func(api.Event, error) bool) (failure error, done bool) {
	c, own := f[i], *req
	own.Model = cmp.Or(c.Name, req.Model)
	if f.trust(i) != f.trust(0) {
		own = *withoutSecrets(withoutSealed(&own))
	}
	var held []api.Event
	shown := false
	flush := func() bool {
		for _, ev := range held {
			if !yield(ev, nil) {
				return false
			}
		}
		held = nil
		return true
	}
	budget := (&Agent{Retry: c.Retry}).retryBudget(c.Model)
	for ev, err := range streamOf(endpoint.WithBudget(ctx, budget), c.Model, &own) {
		err = nils.Err(err)
		switch {
		case err != nil && shown:
			yield(ev, err)
			return nil, true
		case err != nil:
			return err, false
		case shown || shows(ev.Type):
			if !flush() || !yield(ev, nil) {
				return nil, true
			}
			shown = true
			continue
		}
		if apiErr, ok := ev.Err(); ok {
			failure = asFailure(apiErr) // unless the Model yields its own error
		}
		held = append(held, ev)
	}
	if failure != nil {
		return failure, false
	}
	flush()
	return nil, true
}

// elsewhere reports whether another model may succeed where one failed. An invalid
// request fails everywhere, and a refusal is not a reason to ask models until one gives
// in.
func elsewhere(failure error) bool {
	var e *endpoint.Error
	if !errors.As(failure, &e) {
		return unreachable(failure) // a Model that is not of package endpoint
	}
	if e.Sent {
		return false
	}
	switch e.Class {
	case endpoint.RateLimit, endpoint.Overloaded, endpoint.Server, endpoint.Network, endpoint.Quota,
		endpoint.Truncated, endpoint.Idle, endpoint.Protocol, endpoint.Reconnect:
		return true
	case endpoint.NotFound:
		switch e.Code {
		case "response_not_found", "conversation_not_found", "item_not_found": // not the model
			return false
		}
		return true
	}
	return false
}

// unreachable reports whether an error is one of a network: a *url.Error, which is a net.Error too,
// may also say that an address or a certificate is wrong.
func unreachable(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	var any net.Error
	return errors.As(err, &op) || errors.As(err, &dns) || errors.As(err, &any) && any.Timeout()
}

// failures are the errors of all models that were asked for a reply, in order.
type failures []error

// joined returns a single error for them.
func (f failures) joined() error {
	if len(f) == 1 {
		return errors.Unwrap(f[0])
	}
	return f
}

func (f failures) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return "no model answered: " + strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }

// narrow makes candidate i the model of the following requests, if the agent's model is
// a Fallback.
func (r *Run) narrow(i int) {
	if r.whole == nil {
		return
	}
	r.agent, r.candidate = r.whole, i
	if f, ok := r.whole.Model.(Fallback); ok && len(f) > 0 {
		r.agent = f.only(r.whole, i)
	}
}

// pick makes the candidate that the log names the model of the next request.
func (r *Run) pick() error {
	f, ok := r.whole.Model.(Fallback)
	switch {
	case ok:
	case r.sifted || r.handoffs == 0:
		return nil
	default: // another agent spoke before, perhaps at another endpoint
		r.sifted = true
		return r.sift(r.whole.models(), 0)
	}
	all, _ := r.state.Fallbacks()
	i := all % len(f)
	if i == r.candidate && r.sifted {
		return nil
	}
	r.sifted = true
	if err := r.sift(f, i); err != nil || i == r.candidate {
		return err
	}
	r.narrow(i)
	return r.adapt()
}

// adapt prepares the run for requests to another model.
func (r *Run) adapt() error {
	r.made, r.asks = made{}, nil // both belong to the model before
	r.state.Room = r.agent.room()
	r.measure()
	r.retries = nil
	r.fillRetries()
	r.recall()
	return r.findPrice(r.agent.Request.Model)
}

// fallOver decides whether another candidate of the agent's Fallback is asked. The
// caller must make sure that nothing of a reply has arrived. It returns the decision,
// which must be recorded, or nil.
func (r *Run) fallOver(turn int, failure error) session.Body {
	f, ok := r.whole.Model.(Fallback)
	if !ok || !elsewhere(failure) {
		return nil
	}
	if _, now := r.state.Fallbacks(); now+1 >= len(f) {
		return nil
	}
	next := f.called((r.candidate + 1) % len(f))
	r.failed = append(r.failed, fmt.Errorf("%s: %w", f.called(r.candidate), failure))
	return session.Noticed{Turn: turn, Kind: session.NoticeFallback,
		Text: fmt.Sprintf("%s did not answer (%s), so %s is asked", f.called(r.candidate), reasonOfAny(failure), next)}
}

// allFailed returns the error of a reply for which all models failed, or failure itself
// if only one was asked.
func (r *Run) allFailed(failure error) error {
	f, ok := r.whole.Model.(Fallback)
	if !ok || len(r.failed) == 0 || failure == nil {
		return failure
	}
	return append(r.failed, fmt.Errorf("%s: %w", f.called(r.candidate), failure)).joined()
}
