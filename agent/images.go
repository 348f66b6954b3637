// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// unseen is the marker for a refused image; the model reads it.
const unseen = "The endpoint takes no images."

// withoutImages repeats a refused request once, with markers in place of the images
// that may be the reason: servers refuse images with many statuses, and llama-server
// with the status of an outage. If the repeated request is answered, or its reply
// begins, the images are quarantined and a notice reports it. Otherwise nothing
// changes and the first failure is returned.
func (r *Run) withoutImages(inner, ctx context.Context, seen *ModelCall, failure error) (shown bool, second, err error) {
	var seqs map[int64]bool
	if f := r.failureOf(failure); f != nil {
		seqs = r.state.Suspects(f)
	}
	if len(seqs) == 0 || ctx.Err() != nil {
		return false, failure, nil
	}
	// Only the endpoint gets the changed request. The hooks see the original one.
	whole, blind := seen.Request, *seen.Request
	blind.Input = new(item.List)
	for i, it := range whole.Input.All() {
		if seq, _ := r.state.View().Seq(i); seqs[seq] {
			it, _ = session.Marker(it, unseen)
		}
		blind.Input.Append(it)
	}
	r.heard = listener{run: r, ctx: ctx, seen: seen, order: order{run: r}}
	seen.Request = &blind
	shown, second, err = r.heard.listen(inner)
	seen.Request = whole
	if second = brokenOff(&r.heard.acc, second); err != nil || second != nil && !shown {
		return false, failure, err
	}
	// One entry for each item, in the order of the request.
	var bodies []session.Body
	for i := range whole.Input.Len() {
		if seq, _ := r.state.View().Seq(i); seqs[seq] {
			bodies = append(bodies, session.Quarantined{Seq: seq, Reason: unseen})
			delete(seqs, seq)
		}
	}
	if err := r.record(bodies...); err != nil {
		return shown, second, err
	}
	text := fmt.Sprintf("the endpoint refused the request with images (%s), and took it with markers in their place; the log keeps the images. If the model sees none, say so in a file for --profiles: {\"models\":[{\"names\":[%s],\"images\":\"no\"}]}",
		reasonOfAny(failure), item.Quote(whole.Model))
	return shown, second, r.notice(ctx, session.Noticed{Turn: seen.Turn, Kind: session.NoticeImagesRefused, Text: text})
}

func reasonOfAny(failure error) string {
	var e *endpoint.Error
	if !errors.As(failure, &e) {
		return failure.Error()
	}
	if e.Status == 0 { // it did not come as an HTTP status
		return reasonOf(e)
	}
	return fmt.Sprintf("%d %s", e.Status, reasonOf(e))
}
