// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// unseen replaces an image that the endpoint refuses: the model reads it.
const unseen = "The endpoint takes no images."

// withoutImages asks once more for what was refused, with markers instead of
// images, where they may be what is wrong: servers refuse them by any status, and
// llama-server by that of an outage. If that request is answered, or an answer to
// it begins, the images are in quarantine from here on, and a notice says so;
// else all is as it was, and the first failure stands.
func (r *Run) withoutImages(inner, ctx context.Context, seen *ModelCall, failure error) (shown bool, second, err error) {
	seqs := r.suspects(failure)
	if len(seqs) == 0 || ctx.Err() != nil || r.state.InConversation() != "" && !refused(failure) {
		return false, failure, nil
	}
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
	var bodies []session.Body
	for i := range whole.Input.Len() {
		if seq, _ := r.state.View().Seq(i); seqs[seq] {
			bodies = append(bodies, session.Quarantined{Seq: seq, Reason: unseen})
			delete(seqs, seq)
		}
	}
	if err := r.record(ctx, bodies...); err != nil {
		return shown, second, err
	}
	for _, b := range bodies {
		q := b.(session.Quarantined)
		r.emit(Quarantined{Seq: q.Seq, Reason: q.Reason})
	}
	text := fmt.Sprintf("the endpoint refused the request with images (%s), and took it with markers in their place; the log keeps the images. If the model sees none, say so in a file for --profiles: {\"models\":[{\"names\":[%s],\"images\":\"no\"}]}",
		reasonOfAny(failure), item.Quote(whole.Model))
	return shown, second, r.notice(ctx, Noticed{Turn: seen.Turn, Kind: session.NoticeImagesRefused, Text: text})
}

// refused reports that a request had no effect, not even at the endpoint.
func refused(failure error) bool {
	var e *endpoint.Error
	return errors.As(failure, &e) && !e.Sent && plan.NotBegun(string(e.Class))
}

func reasonOfAny(failure error) string {
	var e *endpoint.Error
	if !errors.As(failure, &e) {
		return failure.Error()
	}
	return fmt.Sprintf("%d %s", e.Status, reasonOf(e))
}

// suspects returns the entries whose images a request may have been refused for:
// those that no endpoint has taken yet, or all, if it has taken all. There are
// none where the endpoint says what else is wrong.
func (r *Run) suspects(failure error) map[int64]bool {
	var e *endpoint.Error
	if !errors.As(failure, &e) || e.Sent || !mayBeImages(e) {
		return nil
	}
	var mapped ItemRefused
	if e.Param != "" || imageCodes[e.Code] || errors.As(failure, &mapped) {
		return nil
	}
	list := r.state.View().Items()
	for _, from := range []int{r.state.Accepted(), 0} {
		seqs := map[int64]bool{}
		for i := from; i < list.Len(); i++ {
			if r.replaceable(i) && holdsImage(list.At(i)) {
				seq, _ := r.state.View().Seq(i)
				seqs[seq] = true
			}
		}
		if len(seqs) > 0 {
			return seqs
		}
	}
	return nil
}

// mayBeImages reports whether a status is one that servers were seen to refuse
// images with, or might: none of those that mean something else for sure.
func mayBeImages(e *endpoint.Error) bool {
	switch e.Class {
	case endpoint.BadRequest, endpoint.Server, endpoint.NotFound, endpoint.TooLarge:
	default:
		return false
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge,
		http.StatusInternalServerError, http.StatusNotImplemented:
		return true
	case http.StatusNotFound: // gateways have no model of that name that sees
		return e.Code != "model_not_found"
	}
	return false
}
