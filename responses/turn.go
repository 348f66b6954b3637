// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// turn is one response of a Chain, with all its attempts.
type turn struct {
	witness
	t       *Chain
	link    *transport.Config
	profile *endpoint.Profile
	given   *api.Request
	whole   *api.Request // given, in the form that the endpoint accepts
	s       *stream
	warm    bool
	partial bool // the last attempt sent only the new items
	refused bool // the endpoint has no WebSocket
	shaky   bool // a new socket was lost before the first event
}

// turn prepares a response. It sends nothing.
func (t *Chain) turn(req *api.Request, warm bool) (*turn, error) {
	link := t.client().link()
	profile, err := link.Known()
	if err != nil {
		return nil, err
	}
	whole, err := link.Fit(req, profile)
	if err == nil && !warm {
		err = transport.Nothing(whole, profile)
	}
	if err != nil {
		return nil, err
	}
	return &turn{t: t, link: link, profile: profile, given: req, whole: whole, s: &stream{lenient: true}, warm: warm}, nil
}

// run requests the answer.
func (u *turn) run(ctx context.Context) error {
	if u.t.Uses() == WebSocket {
		err := u.talks(ctx)
		if !u.refused && !(tooBig(err) && u.s.fresh() && mayMove(ctx)) {
			return err
		}
	}
	return u.posts(ctx)
}

// mayMove reports whether a request that was too large for the socket may be sent over HTTP, and
// counts that as a retry. A first request may always: a client without retries needs it, too.
func mayMove(ctx context.Context) bool {
	budget := endpoint.BudgetFrom(ctx)
	return budget.Take() || budget.Used() == 0
}

// isDead reports whether the endpoint does not know the id to continue from and the whole history
// can be sent instead. It forgets the id.
func (u *turn) isDead(err error) bool {
	switch {
	case err == nil && u.partial:
		u.t.dead = 0
	// Some servers only say that something was not found. It was the id, since the model was found
	// before.
	case u.partial && u.s.fresh() && (isClass(err, endpoint.PreviousResponse) || isClass(err, endpoint.NotFound)):
		u.t.last = nil
		u.t.dead++
		return true
	}
	return false
}

// from returns the request that continues from m, or the whole request.
func (u *turn) from(m *memory) *api.Request {
	if u.t.dead >= maxDead {
		m = nil
	}
	return after(m, u.whole)
}

func isClass(err error, c endpoint.Class) bool {
	var e *endpoint.Error
	return errors.As(err, &e) && e.Class == c
}

// posts makes the request over HTTP.
func (u *turn) posts(ctx context.Context) error {
	u.noteWhole(ctx)
	m := u.t.last
	if m != nil && (!m.stored || u.shaky || u.profile.PreviousResponse != endpoint.Yes) {
		m = nil
	}
	err := u.post(ctx, u.from(m))
	if u.isDead(err) {
		err = u.post(ctx, u.whole)
	}
	if now := u.covers(u.whole, u.s.items()); err == nil && now != nil {
		u.t.last = now // otherwise the earlier memory is still valid
	}
	return err
}

// noteWhole notes, once, that the whole history is sent, because the user of a Chain expects it to
// send only the new items.
func (u *turn) noteWhole(ctx context.Context) {
	take := api.NotesOf(ctx)
	if take == nil || u.t.noted || u.t.Uses() != HTTP { // a socket continues from its last response
		return
	}
	why := ""
	switch {
	case u.profile.PreviousResponse != endpoint.Yes:
		why = "endpoints of the profile " + u.profile.Name + " are not known to support previous_response_id"
	case !isStored(u.whole), u.t.last != nil && !u.t.last.stored:
		why = "the endpoint does not store a response to continue from"
	case u.t.dead >= maxDead:
		why = "the endpoint no longer knows its own responses"
	default:
		return
	}
	if u.t.Transport == WebSocket {
		why = "there is no WebSocket, and " + why
	}
	u.t.noted = true
	take(api.Note{Kind: api.NoteWholeHistory, OutputIndex: -1, Text: "the whole history is sent with each request: " + why})
}

// post sends a request over HTTP, with retries. The whole request is sent as by a Client.
func (u *turn) post(ctx context.Context, req *api.Request) error {
	try := func(k *transport.Call) (bool, error) {
		err := u.s.run(ctx, k)
		return u.s.fresh(), err
	}
	if u.partial = req != u.whole; !u.partial {
		return u.t.client().send(ctx, u.given, true, try)
	}
	k, err := create(ctx, u.link, u.profile, req, u.given, true)
	if err != nil {
		return err
	}
	err = k.Retry(ctx, func() (bool, error) { return try(k) })
	return transport.Refusal(err, u.given.Input, req.Input)
}

// talks makes the request over the socket, with retries. If a new socket is lost at once, a proxy
// may let only the handshake through; the next attempt then goes over HTTP.
func (u *turn) talks(ctx context.Context) error {
	k, err := u.link.Call(ctx, transport.Request{Op: opCreate, Method: http.MethodGet, Path: cmp.Or(u.profile.ResponsesPath, responsesPath), Secrets: transport.ToolSecrets(u.given.Tools)})
	if err != nil {
		return err
	}
	return k.Retry(ctx, func() (bool, error) {
		if u.shaky && !u.warm {
			return false, u.posts(ctx)
		}
		err := u.talk(ctx, k)
		if u.isDead(err) {
			err = u.talk(ctx, k) // over another socket, which has no memory
		}
		return u.s.fresh() && !u.refused, err
	})
}

// talk makes one attempt over the socket. If the response does not end normally, the socket is
// discarded: late messages would be taken for part of the next response.
func (u *turn) talk(ctx context.Context, k *transport.Call) error {
	s, fresh, err := u.t.connect(ctx, k, u.profile)
	if err != nil {
		if u.refused = transport.Refused(err); u.refused {
			u.t.refused.Store(true)
		}
		return err
	}
	kept := false
	defer func() {
		if !kept {
			u.t.drop(s)
		}
	}()
	m := u.t.last
	if m != nil && m.socket != s {
		m = nil
	}
	req := u.from(m)
	u.partial = req != u.whole
	body, err := message(req, u.warm)
	if err != nil {
		return err
	}
	q := question{body, req.PreviousResponseID, u.profile.WebSocket == endpoint.Yes}
	if err = u.s.talk(ctx, k, s, q); err != nil || !u.ended {
		u.shaky = fresh && u.s.fresh() && isClass(err, endpoint.Truncated)
		return transport.Refusal(err, u.given.Input, req.Input)
	}
	// The endpoint remembers only its last response.
	if u.t.last = u.covers(u.whole, u.s.items()); u.t.last != nil {
		u.t.last.socket, u.t.last.warm = s, u.warm
	}
	kept = s.used // otherwise messages of the next response could not be told apart
	return nil
}

// message returns the request in its WebSocket form, without the members that say how to deliver
// the answer.
func message(req *api.Request, warm bool) (item.Body, error) {
	r := *req
	r.Stream, r.Background = nil, nil
	r.Extra = append(item.Extra(nil), req.Extra...)
	r.Extra.Delete("stream")
	r.Extra.Delete("background")
	if warm {
		r.Extra.Set("generate", "false")
	}
	if r.Input == nil {
		r.Input = new(item.List)
	}
	body, err := (&api.CreateEvent{Request: &r}).Body()
	if err == nil {
		err = body.Check()
	}
	return body, err
}

// tooBig reports whether the server closed the socket because a message was too large.
func tooBig(err error) bool {
	return websocket.CloseStatus(errors.Unwrap(err)) == websocket.StatusMessageTooBig
}
