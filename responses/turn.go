// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// turn is one response of a Thread, over all its attempts.
type turn struct {
	witness
	t       *Thread
	link    *wire.Link
	profile *endpoint.Profile
	given   *item.Request
	whole   *item.Request // given, as the endpoint takes it
	s       *stream
	warm    bool
	partial bool // the last attempt sent what is new alone
	refused bool // the endpoint has no sockets
	shaky   bool // a new socket did not last to the first event
}

// turn prepares a response. Nothing is sent yet.
func (t *Thread) turn(req *item.Request, warm bool) (*turn, error) {
	link := t.client().link()
	profile, err := link.Known()
	if err != nil {
		return nil, err
	}
	whole, err := link.Fit(req, profile)
	if err == nil && !warm {
		err = wire.Nothing(whole, profile)
	}
	if err != nil {
		return nil, err
	}
	return &turn{t: t, link: link, profile: profile, given: req, whole: whole, s: &stream{lenient: true}, warm: warm}, nil
}

// run gets the answer.
func (u *turn) run(ctx context.Context) error {
	if u.t.Uses() == WebSocket {
		err := u.talks(ctx)
		if !u.refused && !(tooBig(err) && u.s.fresh()) {
			return err
		}
	}
	return u.posts(ctx)
}

// isDead reports that the id to go on from is unknown to the endpoint, and that
// the whole history can be sent instead. The id is retired.
func (u *turn) isDead(err error) bool {
	switch {
	case err == nil && u.partial:
		u.t.dead = 0
	// Some servers just say that something was not found. The model was.
	case u.partial && u.s.fresh() && (isClass(err, endpoint.PreviousResponse) || isClass(err, endpoint.NotFound)):
		u.t.last = nil
		u.t.dead++
		return true
	}
	return false
}

// from returns the request that goes on from m, or the whole one.
func (u *turn) from(m *memory) *item.Request {
	if u.t.dead >= maxDead {
		m = nil
	}
	return after(m, u.whole)
}

func isClass(err error, c endpoint.Class) bool {
	var e *endpoint.Error
	return errors.As(err, &e) && e.Class == c
}

// posts asks over HTTP.
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
		u.t.last = now // else what was known before is as true as it was
	}
	return err
}

// noteWhole notes, once, that there is nothing to go on from here: who asked for a
// Thread expects that what is new is sent alone.
func (u *turn) noteWhole(ctx context.Context) {
	take := item.NotesOf(ctx)
	if take == nil || u.t.noted || u.t.Uses() != HTTP { // a socket goes on from its last response
		return
	}
	why := ""
	switch {
	case u.profile.PreviousResponse != endpoint.Yes:
		why = "endpoints of the profile " + u.profile.Name + " are not known to go on from a response of their own"
	case !isStored(u.whole), u.t.last != nil && !u.t.last.stored:
		why = "the endpoint keeps no response that it could go on from"
	case u.t.dead >= maxDead:
		why = "the endpoint does not know its own responses any more"
	default:
		return
	}
	if u.t.Transport == WebSocket {
		why = "there is no WebSocket, and " + why
	}
	u.t.noted = true
	take(item.Note{Kind: item.NoteWholeHistory, OutputIndex: -1, Text: "the whole history is sent with each request: " + why})
}

// post sends a request over HTTP, over all its attempts. The whole one is sent
// as any client does.
func (u *turn) post(ctx context.Context, req *item.Request) error {
	try := func(k *wire.Call) (bool, error) {
		err := u.s.run(ctx, k)
		return u.s.fresh(), err
	}
	if u.partial = req != u.whole; !u.partial {
		return u.t.client().send(ctx, u.given, true, try)
	}
	k, err := create(ctx, u.link, u.profile, req, true)
	if err != nil {
		return err
	}
	err = k.Retry(ctx, func() (bool, error) { return try(k) })
	return wire.Refusal(err, u.given.Input, req.Input)
}

// talks asks over the socket, over all attempts. Where new sockets do not last,
// what is between may let their beginning through alone: then the next attempt
// goes over HTTP.
func (u *turn) talks(ctx context.Context) error {
	k, err := u.link.Call(ctx, wire.Request{Op: opCreate, Method: http.MethodGet, Path: cmp.Or(u.profile.ResponsesPath, responsesPath)})
	if err != nil {
		return err
	}
	return k.Retry(ctx, func() (bool, error) {
		if u.shaky && !u.warm {
			return false, u.posts(ctx)
		}
		err := u.talk(ctx, k)
		if u.isDead(err) {
			err = u.talk(ctx, k) // over another socket, which remembers nothing
		}
		return u.s.fresh() && !u.refused, err
	})
}

// talk is one attempt over the socket. A response that does not end as it
// should takes the socket with it: what is still to come would be heard as part
// of the next.
func (u *turn) talk(ctx context.Context, k *wire.Call) error {
	s, fresh, err := u.t.connect(ctx, k, u.profile)
	if err != nil {
		if u.refused = wire.Refused(err); u.refused {
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
		return wire.Refusal(err, u.given.Input, req.Input)
	}
	// The endpoint remembers its last response, and no other.
	if u.t.last = u.covers(u.whole, u.s.items()); u.t.last != nil {
		u.t.last.socket, u.t.last.warm = s, u.warm
	}
	kept = s.used // else what belongs to the next one could not be told
	return nil
}

// message is the request as it goes over a socket, which has no use for the
// members that say how an answer travels.
func message(req *item.Request, warm bool) (item.Body, error) {
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
	body, err := (&item.CreateEvent{Request: &r}).Body()
	if err == nil {
		err = body.Check()
	}
	return body, err
}

// tooBig reports that the server ended the socket for a message that is larger
// than it takes.
func tooBig(err error) bool {
	return websocket.CloseStatus(errors.Unwrap(err)) == websocket.StatusMessageTooBig
}
