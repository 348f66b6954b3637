// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// observed calls the hook before the upstreams are asked.
func (p *passage) observed(ctx context.Context) (context.Context, error) {
	p.seen = agent.ModelCall{Request: p.r.Request, Started: p.record.Time}
	p.seen.Session, _ = api.ConversationID(p.r.Conversation)
	if p.b.Hooks.BeforeModel == nil {
		return ctx, nil
	}
	return p.b.Hooks.BeforeModel(ctx, &p.seen)
}

// observe calls the hook after a response, with the last upstream that was asked. err is that of
// the response.
func (p *passage) observe(ctx context.Context, err error) {
	if p.b.Hooks.AfterModel == nil {
		return
	}
	c, r := &p.seen, p.w.Response()
	c.Ended, c.ResponseID, c.Status, c.Output = p.b.now(), r.ID, r.Status, r.Output
	c.Usage, c.Cost = p.w.Spent, p.w.Cost
	if r.Incomplete != nil {
		c.Reason = r.Incomplete.Reason
	}
	if n := len(p.record.Attempts); n > 0 {
		c.Endpoint, c.ResponseModel = p.record.Attempts[n-1].URL, p.record.Attempts[n-1].Model
	}
	switch {
	case p.w.Ended() && p.failure == nil:
	case !p.w.Ended() && (ctx.Err() != nil || errors.As(p.failure, new(*broken))):
		c.Status, c.Class = item.StatusCancelled, string(endpoint.Canceled)
	default:
		c.Err = p.failure
		if c.Err == nil {
			c.Err = err
		}
		if !p.w.Ended() {
			c.Status = item.StatusFailed
		}
	}
	p.b.log(p.b.Hooks.AfterModel(ctx, c))
}
