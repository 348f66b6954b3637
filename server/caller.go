// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// Caller describes who sends a request, as a handler around the server identified
// them. See package server/access.
type Caller struct {
	// Project owns what the caller makes, and Key is the name of its key. KeyID tells keys
	// apart that had the same name.
	Project, Key, KeyID string
	// Token means that the caller has sent a token of an issuer, and no key of this server.
	Token bool
	// Approves means that the caller may answer requests for approval (rule V3 in docs/rules.md).
	Approves bool
	// URLs means that the caller may give URLs that others fetch for it: see [CheckURLs] (rule A3 in docs/rules.md).
	URLs bool
}

// Credential returns how an error names what the caller has sent.
func (c Caller) Credential() string {
	if c.Token {
		return "This token"
	}
	return "This key"
}

type callerKey struct{}

// WithCaller returns a context that says who sends a request.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of a request. known is false if no handler around
// the server identifies callers; then every client may do everything.
func CallerOf(ctx context.Context) (c Caller, known bool) {
	c, known = ctx.Value(callerKey{}).(Caller)
	return c, known
}

type holdKey struct{}

// WithHold returns a context in which [Hold] calls hold, which returns an error if there is no
// room, and gives the bytes back when its context is done. It must be safe for concurrent use.
func WithHold(ctx context.Context, hold func(ctx context.Context, n int64) error) context.Context {
	return context.WithValue(ctx, holdKey{}, hold)
}

// Hold reserves n bytes of the memory that all requests share, until ctx is done. A backend
// calls it before it reads data that a request names but does not contain, such as uploaded
// files. It does nothing unless a handler around the server bounds this; see package
// server/access (rule V5 in docs/rules.md).
func Hold(ctx context.Context, n int64) error {
	if hold, ok := ctx.Value(holdKey{}).(func(ctx context.Context, n int64) error); ok && hold != nil {
		return hold(ctx, n)
	}
	return nil
}

// readHeld reads all, up to limit bytes, and holds the memory for it until ctx is done.
func readHeld(ctx context.Context, from io.Reader, limit int64) ([]byte, error) {
	const first = 4 << 10
	data := make([]byte, 0, first)
	if err := Hold(ctx, first); err != nil {
		return nil, err
	}
	for {
		n, err := from.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, errTooLong
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		case len(data) < cap(data):
			continue
		}
		if err := Hold(ctx, int64(cap(data))); err != nil {
			return nil, err
		}
		data = append(make([]byte, 0, 2*cap(data)), data...)
	}
}

var errTooLong = errors.New("it is too long")

// Outcome is what became of a request that [Server].Admit let in.
type Outcome struct {
	// ID and Status are those of the response. They are "" if there is none, because the
	// backend refused the request, or the client left before it began: then Status is
	// "cancelled" if it used something.
	ID, Status string
	// Usage is what the backend has reported, also of a response that was cancelled, or
	// estimates: see [Writer].Spent. It may be nil.
	Usage *api.Usage
	// Cost and Model are what the backend set in the [Writer].
	Cost  float64
	Model string
}

type spentKey struct{}

// Spend reports to [Server].Admit what a [Compactor] or a [CountSpender] has used: the Usage, Cost
// and Model of o. It replaces what was reported before, and counts even if Compact or CountTokens then
// returns an error. ctx is the context that they were called with; for others Spend does nothing. It
// must not be called by several goroutines at once, nor after they have returned.
func Spend(ctx context.Context, o Outcome) {
	if spent, ok := ctx.Value(spentKey{}).(*Outcome); ok {
		spent.Usage, spent.Cost, spent.Model = o.Usage, o.Cost, o.Model
	}
}

// mayAnswer refuses answers to requests for approval from a caller that may only see
// them. where is the name of the list.
func mayAnswer(ctx context.Context, items []item.Item, where string) *Error {
	c, known := CallerOf(ctx)
	if !known || c.Approves {
		return nil
	}
	for i, it := range items {
		if it.Type() == item.TypeMCPApprovalResponse {
			return &Error{Status: http.StatusForbidden, Code: "missing_scope", Type: invalidRequest, Param: fmt.Sprintf("%s[%d]", where, i),
				Message: c.Credential() + " may not answer requests for approval: it lacks the scope 'approve'."}
		}
	}
	return nil
}

// letIn calls Admit. The result is to be called once, when the response has ended.
func (s *Server) letIn(ctx context.Context, r *Request) (done func(Outcome), wrong *Error) {
	if s.Admit == nil {
		return func(Outcome) {}, nil
	}
	done, err := s.Admit(ctx, r)
	if err != nil {
		return nil, s.failure(err)
	}
	if done == nil {
		done = func(Outcome) {}
	}
	return done, nil
}

// count tells Admit what became of a job whose backend has returned an error or nil, or sends
// the last event. Only the first call counts.
func (j *job) count(err error) {
	if done := j.done; done != nil {
		j.done = nil
		done(j.outcome(err))
	}
}

// outcome returns what became of a job whose backend has returned an error or nil. A
// response that another server goes on with is counted there.
func (j *job) outcome(err error) Outcome {
	o := Outcome{ID: j.id, Cost: j.w.Cost, Model: j.w.Model, Usage: cmp.Or(j.w.response.Usage, j.w.Spent)}
	if more := j.w.Spent; more != nil && more.TotalTokens > o.Usage.TotalTokens {
		o.Usage = more // the response says less than what was used for it
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case errors.Is(err, ErrLeft):
		o.ID = ""
	case j.rec.Response != nil && j.ended:
		o.Status = j.rec.Response.Status
	case j.accepted:
		o.Status = j.w.response.Status
	default:
		if o.ID = ""; o.Usage != nil {
			o.Status = item.StatusCancelled
		}
	}
	return o
}
