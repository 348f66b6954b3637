// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// Book remembers which response was made for an Idempotency-Key, for [server.Rememberer]. Each key
// has a session of its own, whose id is made of the owner and the key. Its lock says that somebody
// begins the response. Set the fields before the first use; then it is safe for concurrent use. V4
type Book struct {
	In    store.Store
	Owner string
	// Prefix is that of the ids of the sessions, and Tag marks them.
	Prefix, Tag string
	// Keep is how long a key is remembered; 0 means a day.
	Keep time.Duration
	// Find returns [server.ErrNotFound] if there is no response with an id.
	Find func(ctx context.Context, id string) error
	// Log receives errors that nobody waits for.
	Log func(error)

	mu      sync.Mutex
	claimed map[string]string // the sessions of keys by the response that is named in them, until it has begun
}

// ErrLost means that another server named a response for the same key meanwhile.
var ErrLost = errors.New("another server makes the response for the same Idempotency-Key")

// kind is the type of the entries.
const kind = "antiphon:idempotency_key"

// named is an entry: the response that was made, and the hash of the request.
type named struct {
	Kind     string `json:"type"`
	Response string `json:"response_id,omitempty"`
	Body     string `json:"body,omitempty"`
}

func (n named) entry() (session.Body, error) {
	n.Kind = kind
	text, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	it, err := item.Parse(text)
	return session.Note{Item: it}, err
}

// lastOf returns the last entry of a log, if it names a response.
func lastOf(log []session.Entry) (n named, at time.Time, ok bool) {
	if len(log) == 0 {
		return n, at, false
	}
	last := log[len(log)-1]
	b, is := last.Body.(session.Note)
	if !is || string(b.Item.Type()) != kind {
		return n, at, false
	}
	it, err := b.Item.Whole()
	return n, last.Time, err == nil && json.Unmarshal([]byte(it.JSON()), &n) == nil
}

// Claim is like [server.Rememberer].Claim.
func (b *Book) Claim(ctx context.Context, key, body string) (made string, name func(context.Context, string) error, release func(), err error) {
	sum := sha256.Sum256([]byte(b.Owner + "\x00" + key))
	in := b.Prefix + hex.EncodeToString(sum[:16])
	s, unlock, err := b.lock(ctx, in)
	if err != nil {
		return "", nil, nil, err
	}
	made, err = b.madeFor(ctx, s, body)
	if err != nil || made != "" {
		return made, nil, nil, errors.Join(err, unlock())
	}
	begun := ""
	name = func(ctx context.Context, id string) error {
		entry, err := named{Response: id, Body: body}.entry()
		if err == nil {
			_, err = s.Append(ctx, entry)
		}
		if err != nil {
			return err
		}
		begun = id
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.claimed == nil {
			b.claimed = map[string]string{}
		}
		b.claimed[id] = in
		return nil
	}
	return "", name, func() {
		b.mu.Lock()
		delete(b.claimed, begun)
		b.mu.Unlock()
		var err error
		if begun == "" && len(s.Log()) == 0 { // the request was refused. A claim that waits makes the session again
			err = b.In.Delete(context.WithoutCancel(ctx), in)
		}
		if err = errors.Join(err, unlock()); err != nil && b.Log != nil {
			b.Log(err)
		}
	}, nil
}

// Check returns [ErrLost] if another server has named a response for the key of this one,
// whose beginning is stored: the lock was lost before that, for example because the process
// stood still for longer than a lease. From now on, nobody names another one. V4
func (b *Book) Check(ctx context.Context, id string) error {
	b.mu.Lock()
	in := b.claimed[id]
	b.mu.Unlock()
	if in == "" {
		return nil
	}
	s, err := session.Open(ctx, b.In, in)
	if err != nil {
		return err
	}
	if n, _, ok := lastOf(s.Log()); ok && n.Response == id {
		return nil
	}
	return ErrLost
}

// lock makes the session of a key, if there is none, and waits for its lock.
func (b *Book) lock(ctx context.Context, in string) (*session.Session, func() error, error) {
	for {
		s, unlock, err := b.tryLock(ctx, in)
		if !errors.Is(err, session.ErrNotFound) { // otherwise a sweep has removed it meanwhile
			return s, unlock, err
		}
	}
}

// tryLock is like lock, but returns [session.ErrNotFound] if the session is removed meanwhile.
func (b *Book) tryLock(ctx context.Context, in string) (*session.Session, func() error, error) {
	err := b.In.Create(ctx, session.Info{ID: in, Owner: b.Owner, Tags: []string{b.Tag}})
	if err == nil {
		err = b.In.Archive(ctx, in, true) // lists leave it out
	}
	if err != nil && !errors.Is(err, session.ErrExists) {
		return nil, nil, err
	}
	s, err := session.Open(ctx, b.In, in)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := s.WaitLock(ctx)
	if err != nil {
		return nil, nil, err
	}
	info, err := b.In.Info(ctx, in)
	if err == nil && b.Owner != "" && info.Owner != b.Owner {
		err = server.ErrNotFound
	}
	if err != nil {
		return nil, nil, errors.Join(err, unlock())
	}
	return s, unlock, nil
}

// madeFor returns the response that was made for a key, or "". One that was deleted, or that
// did not begin, does not count. The caller has the lock.
func (b *Book) madeFor(ctx context.Context, s *session.Session, body string) (string, error) {
	n, at, ok := lastOf(s.Log())
	if !ok || !at.IsZero() && time.Since(at) > b.keep() {
		return "", nil
	}
	switch err := b.Find(ctx, n.Response); {
	case errors.Is(err, server.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case n.Body != body:
		return "", server.ErrKeyUsed
	}
	return n.Response, nil
}

func (b *Book) keep() time.Duration { return cmp.Or(b.Keep, 24*time.Hour) }

// Sweep removes the sessions of old keys.
func (b *Book) Sweep(ctx context.Context, now time.Time) error {
	var old []string
	var problem error
	for info, err := range nils.Each(b.In, "List", b.In.List(ctx, session.Query{Tags: []string{b.Tag}, Owner: b.Owner, Archived: true})) {
		if err != nil { // of a row that cannot be read, behind all others
			problem = err
			break
		}
		if b.old(info, now) && strings.HasPrefix(info.ID, b.Prefix) {
			old = append(old, info.ID)
		}
	}
	for _, in := range old {
		problem = errors.Join(problem, b.remove(ctx, in, now))
	}
	return problem
}

// old reports whether a key is forgotten. A store in memory has no times.
func (b *Book) old(info session.Info, now time.Time) bool {
	return !info.Updated.IsZero() && now.Sub(info.Updated) > b.keep()
}

// remove removes the session of a key that is old, unless somebody begins a response for it.
func (b *Book) remove(ctx context.Context, in string, now time.Time) error {
	s, err := session.Open(ctx, b.In, in)
	if err != nil {
		return err
	}
	unlock, err := s.Lock(ctx)
	if errors.Is(err, session.ErrBusy) || errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := b.In.Info(ctx, in)
	if err == nil && b.old(info, now) {
		err = b.In.Delete(ctx, in)
	}
	if errors.Is(err, session.ErrNotFound) {
		err = nil
	}
	return errors.Join(err, unlock())
}
