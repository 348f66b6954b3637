// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"net/http"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/transport"
)

// Compact asks the endpoint to shorten a conversation. The output replaces the input: send it
// unchanged, followed by the next items. Only the endpoint can read some of its items.
func (c *Client) Compact(ctx context.Context, req *api.CompactRequest) (*api.Compacted, error) {
	if req == nil {
		return nil, errNilCall
	}
	a := &ask{Op: "compact conversation", Method: http.MethodPost, Path: "/responses/compact", Part: partCompact}
	fit, err := c.fit(a, &api.Request{
		Model: req.Model, Input: req.Input, Instructions: req.Instructions, PreviousResponseID: req.PreviousResponseID,
	})
	if err != nil {
		return nil, err
	}
	r := *req
	r.Model, r.Input, r.Instructions, r.PreviousResponseID = fit.Model, fit.Input, fit.Instructions, fit.PreviousResponseID
	if a.Body, err = r.Body(); err != nil {
		return nil, err
	}
	return do(ctx, c, a, readCompacted)
}

func readCompacted(x *transport.Exchange) (*api.Compacted, error) {
	return readObject(x, "compaction", api.ParseCompacted, func(r *api.Compacted) bool { return has(r.Extra, "output") })
}
