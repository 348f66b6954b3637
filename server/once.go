// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
)

// A request for a response with an Idempotency-Key is made once: another one with the same
// key and body gets its response, while it is made and afterwards. So the response does not
// end when its client is gone, who may ask again. V4

const (
	maxKey = 255
	// keepKeys is how long a key is remembered in memory, in seconds.
	keepKeys = 24 * 60 * 60
	// mostKeys and mostKeyBytes bound the responses that are remembered there.
	mostKeys     = 1000
	mostKeyBytes = 64 << 20
	// askEvery is how often the end of a response of another server is looked for.
	askEvery = 200 * time.Millisecond
)

// ErrKeyUsed means that an Idempotency-Key was used for a request with another body.
var ErrKeyUsed = errors.New("the key was used for another request")

// Rememberer is a [Store] that remembers the responses that were made for an
// Idempotency-Key, so that another server over the same store finds them. For other stores
// the server remembers them in memory (rule V4 in docs/rules.md).
type Rememberer interface {
	Store
	// Claim returns the response that was made for a request with a key. body identifies the
	// request; if the key was used with another body, the error wraps [ErrKeyUsed]. If there is
	// no response, made is "", and the key is reserved until release is called, once: until
	// then another Claim of it waits, in any process. name records which response is made,
	// before it begins.
	Claim(ctx context.Context, key, body string) (made string, name func(ctx context.Context, id string) error, release func(), err error)
}

// rememberer returns the store if it remembers keys, or nil.
func (s *Server) rememberer() Rememberer {
	if k, ok := s.store().(Rememberer); ok && !nils.Is(k) {
		return k
	}
	return nil
}

// keyed is a request with a key.
type keyed struct {
	key, body string        // body is a hash
	ready     chan struct{} // closed when the response has begun, or the request was refused

	// Only for who makes the response:
	name    func(ctx context.Context, id string) error // nil if nobody else needs to know
	release func()                                     // or nil
	over    bool                                       // ready is closed

	// Guarded by the server's mu:
	job                 *job // nil if the request was refused
	streams, background bool
	bytes               int     // what is remembered
	until               float64 // in seconds since 1970; 0 until the response has ended
}

// once makes the response to a request with a key, or answers with the one that was made
// for it.
func (s *Server) once(c *call, key string, body []byte) *Error {
	if len(key) > maxKey {
		return Invalid("invalid_value", "", "Invalid 'Idempotency-Key': it has more than %d bytes.", maxKey)
	}
	sum := sha256.Sum256(body)
	for {
		k, first := s.reserve(key, hex.EncodeToString(sum[:]))
		if first {
			return s.first(c, k, body)
		}
		if k.body != hex.EncodeToString(sum[:]) {
			return errKeyUsed()
		}
		select {
		case <-k.ready:
		case <-c.r.Context().Done():
			return nil // the client is gone
		}
		s.mu.Lock()
		j := k.job
		s.mu.Unlock()
		if j != nil {
			return c.sameAs(k, j)
		}
	}
}

func errKeyUsed() *Error {
	return Invalid("idempotency_key_reused", "", "The Idempotency-Key of this request was used for a request with another body. Use another key, or send the same body.")
}

// first makes the response to the first request with a key that this server knows.
func (s *Server) first(c *call, k *keyed, body []byte) *Error {
	if r := s.rememberer(); r != nil {
		made, name, release, err := r.Claim(c.r.Context(), k.key, k.body)
		if err != nil || made != "" {
			s.refuse(k)
		}
		switch {
		case errors.Is(err, ErrKeyUsed):
			return errKeyUsed()
		case err != nil && c.r.Context().Err() != nil:
			return nil // the client is gone
		case err != nil:
			return s.failure(err)
		case made != "":
			return c.repeat(s, made, body)
		}
		k.name, k.release = name, release
	}
	r, wrong := s.accept(c, body)
	if wrong != nil {
		s.refuse(k)
		return wrong
	}
	return s.createDetached(c, r, k)
}

// reserve returns the request with a key that is known, or the new one.
func (s *Server) reserve(key, body string) (k *keyed, first bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ended) > 0 && (s.ended[0].until < now || len(s.ended) > mostKeys || s.endedBytes > mostKeyBytes) {
		s.drop(s.ended[0])
	}
	if k := s.keys[key]; k != nil {
		return k, false
	}
	if s.keys == nil {
		s.keys = map[string]*keyed{}
	}
	k = &keyed{key: key, body: body, ready: make(chan struct{})}
	s.keys[key] = k
	return k, true
}

// drop forgets a request. The caller must hold mu.
func (s *Server) drop(k *keyed) {
	if s.keys[k.key] == k {
		delete(s.keys, k.key)
	}
	if i := slices.Index(s.ended, k); i >= 0 {
		s.ended = slices.Delete(s.ended, i, i+1)
		s.endedBytes -= k.bytes
	}
}

// refuse ends a request whose response has not begun. The next one with the key is the
// first. k may be nil.
func (s *Server) refuse(k *keyed) {
	if k == nil || k.over {
		return
	}
	s.mu.Lock()
	s.drop(k)
	s.mu.Unlock()
	k.open()
}

// open lets others see what became of the request.
func (k *keyed) open() {
	if k.over = true; k.release != nil {
		k.release()
	}
	close(k.ready)
}

// named records which response is made for a key. k may be nil.
func (k *keyed) named(ctx context.Context, id string) error {
	if k == nil || k.name == nil {
		return nil
	}
	return k.name(ctx, id)
}

// begun lets others have the response to a request with a key, if it has one.
func (j *job) begun() {
	k, s := j.key, j.s
	if k == nil {
		return
	}
	s.mu.Lock()
	k.job, k.streams, k.background = j, isSet(j.r.Stream), j.rec.Background
	s.mu.Unlock()
	k.open()
}

// keepKey keeps a response that has ended for others that ask with its key, unless they find
// it in the store. The key may be nil.
func (s *Server) keepKey(j *job) {
	k := j.key
	if k == nil || !j.accepted {
		return
	}
	rec := j.record()
	bytes := 0
	for _, it := range rec.Response.Output {
		bytes += len(it.JSON())
	}
	for _, ev := range rec.Events {
		bytes += len(ev.JSON())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[k.key] != k {
		return // the response was deleted
	}
	if j.r.Stored && s.rememberer() != nil {
		s.drop(k)
		return
	}
	k.job = &job{s: s, id: j.id, header: j.header, ended: true, rec: StoredObject{Response: rec.Response, Events: rec.Events, Background: rec.Background}}
	k.bytes, k.until = bytes, s.now()+keepKeys
	s.ended, s.endedBytes = append(s.ended, k), s.endedBytes+bytes
}

// forgetKey forgets the key of a response that is deleted.
func (s *Server) forgetKey(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keys {
		if k.job != nil && k.job.id == id {
			s.drop(k)
		}
	}
}

// replays reports whether the events of a response are kept while it is made.
func (j *job) replays() bool { return j.rec.Background || j.key != nil && isSet(j.r.Stream) }

// sameAs answers with a response that this server makes, or has made, for the same key.
func (c *call) sameAs(k *keyed, j *job) *Error {
	switch {
	case k.streams:
		return c.follow(j, -1)
	case k.background:
		c.name(j)
		return c.send(j.record().Response)
	}
	return c.await(j)
}

// await sends a response when it has ended.
func (c *call) await(j *job) *Error {
	if j.follow(c.r.Context(), math.MaxInt-1, nil) != nil {
		return nil // the client is gone
	}
	c.name(j)
	return c.send(j.record().Response)
}

// repeat answers with a stored response that was made before for the same key, or that
// another server makes.
func (c *call) repeat(s *Server, id string, body []byte) *Error {
	req, err := api.ParseRequest(body)
	if err != nil {
		return unreadable(err)
	}
	streams, background := isSet(req.Stream), isSet(req.Background)
	if events := s.events(); events != nil && streams && background && s.job(id) == nil {
		if known, wrong := c.stored(s, events, id, -1); known {
			return wrong
		}
	}
	at := &job{id: id}
	w := s.stream(c.w)
	defer w.end()
	for began := false; ; {
		rec, j, err := s.lookUp(c.r.Context(), id, item.StatusFailed)
		switch {
		case c.r.Context().Err() != nil:
			return nil
		case err != nil && began:
			s.logf("antiphon server: the stream of %s: %v", id, err)
			return nil // the client sees that the stream broke off
		case errors.Is(err, ErrNotFound):
			return notFound("Response", id)
		case err != nil:
			return s.failure(err)
		case j != nil && streams && background && !began:
			return c.follow(j, -1)
		case streams && !began && s.followable(rec) != nil:
			return c.followElsewhere(s, s.followable(rec), rec, -1)
		case began && rec.Events != nil && s.followable(rec) != nil:
			c.followsIn(s, s.followable(rec), at, w, rec, -1)
			return nil
		case !streams && (background || ended(rec.Response)):
			c.name(at)
			return c.send(rec.Response)
		case ended(rec.Response):
			c.retell(at, w, rec.Response)
			return nil
		}
		if streams && !began {
			began = true
			w.start(func() { c.streams(at) })
			w.begin()
		}
		select {
		case <-c.r.Context().Done():
			return nil
		case <-time.After(askEvery):
		}
	}
}

// retell sends a response that has ended as the events of a stream, when those that were
// sent are not kept.
func (c *call) retell(at *job, w *stream, r *api.Response) {
	head := *r
	head.Error, head.Incomplete, head.CompletedAt, head.Usage = nil, nil, nil, nil
	head.Extra = slices.Clone(r.Extra)
	for _, name := range []string{"error", "incomplete_details", "completed_at", "usage"} {
		head.Extra.Set(name, "null")
	}
	out := NewWriter(head, c.live(at, w))
	_ = out.Begin(r.ID)
	for _, it := range r.Output {
		_ = out.Item(it)
	}
	_ = out.EndAs(r) // a client that is gone is not an error
}
