// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"net/http"

	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// Compact has the endpoint make a conversation shorter. The output takes the
// place of the input: send it as it is, with what comes next after it. Some of
// it only the endpoint can read.
func (c *Client) Compact(ctx context.Context, req *item.CompactRequest) (*item.Compacted, error) {
	if req == nil {
		return nil, errNilCall
	}
	a := &ask{op: "compact conversation", method: http.MethodPost, path: "/responses/compact", part: partCompact}
	fit, err := c.fit(a, &item.Request{
		Model: req.Model, Input: req.Input, Instructions: req.Instructions, PreviousResponseID: req.PreviousResponseID,
	})
	if err != nil {
		return nil, err
	}
	r := *req
	r.Model, r.Input, r.Instructions, r.PreviousResponseID = fit.Model, fit.Input, fit.Instructions, fit.PreviousResponseID
	if a.body, err = r.Body(); err != nil {
		return nil, err
	}
	return do(ctx, c, a, readCompacted)
}

func readCompacted(x *wire.Exchange) (*item.Compacted, error) {
	return readObject(x, "compaction", item.ParseCompacted, func(r *item.Compacted) bool { return has(r.Extra, "output") })
}
