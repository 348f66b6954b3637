// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

const (
	// lookHooks is how often a Sender looks for what is to be sent.
	lookHooks = time.Second
	// firstRetry is the time to the second attempt. It doubles up to mostRetry.
	firstRetry = time.Second
	mostRetry  = time.Hour
	// giveUp is how long an event is sent again.
	giveUp = 72 * time.Hour
	// handshakeTime is how long TLS may take, and hooksAtOnce how many events are sent at once.
	handshakeTime = 30 * time.Second
	hooksAtOnce   = 4
)

// Sender sends events about responses to a webhook. What is sent is in the log of a response. A
// session without entries, nested in that of the response, is a mark: it says that something is
// still to be sent. It is made by [Owe] before the end of the response is written, so a crash loses
// no event, and removed when the events were accepted. Of several servers over one store, one
// sends: it has the lock of a session.
type Sender struct {
	In    store.Store
	Owner string
	Hook  *server.Webhook
	// Lock is the session whose lock the sender has; its owner is added. Tag is that of the marks.
	Lock, Tag string
	// Owed returns the events about a response, for its mark, and when it ended, unless there is
	// something to wait for.
	Owed func(ctx context.Context, mark session.Info) (list []News, ended time.Time, wait Awaited, err error)
	// Tells reports whether Owed may return something else after an entry of the response's session.
	Tells func(session.Entry) bool
	// Log receives errors. It may be called from several goroutines at once.
	Log func(error)

	mu      sync.Mutex
	tries   map[string]*tries // by the mark
	sending map[string]bool   // likewise
}

// Awaited is what has to happen to a response before anything is sent.
type Awaited int

// What can be waited for.
const (
	Nothing Awaited = iota
	ItsBeginning
	ItsEnd
)

// tries are the attempts to send the events about a response.
type tries struct {
	failed int
	seen   int64 // the last entry of the response's session before which nothing is to be sent
	sent   int   // how many of the events were accepted
	next   time.Time
}

// Owe records that events about the end of the response are to be sent that begins at entry seq of
// the session in. No call has a session of this name: see [session.SubsessionID].
func Owe(ctx context.Context, to store.Store, owner, tag, in string, seq int64) error {
	id := fmt.Sprintf("%s/%d-.webhook", in, seq)
	err := to.Create(ctx, session.Info{ID: id, Parent: in, At: seq, Nested: true, Owner: owner, Tags: []string{tag}})
	if errors.Is(err, session.ErrExists) {
		return nil
	}
	return err
}

// Asks reports whether a response wants approvals.
func Asks(output []item.Item) bool {
	return slices.ContainsFunc(output, func(it item.Item) bool { return it.Type() == item.TypeMCPApprovalRequest })
}

// News is an event for the receiver.
type News struct {
	id   string
	body []byte
}

// kind returns the type of the event.
func (n News) kind() string {
	it, err := item.Parse(n.body)
	if err != nil {
		return ""
	}
	return string(it.Type())
}

// NewsOf returns the events about a response that has ended, and that asks for approvals or not. They are the
// same whenever they are sent.
func NewsOf(r *api.Response, background, asks bool, ended time.Time) (list []News) {
	id := string(item.Quote(r.ID))
	if background {
		list = append(list, newsOf("response."+r.Status, r.ID, `{"id":`+id+`}`, ended))
	}
	if asks {
		list = append(list, newsOf("agent.session.action_required", r.ID, `{"id":`+id+`,"required_action":{"type":"mcp_approval_request"}}`, ended))
	}
	return list
}

func newsOf(kind, response, data string, at time.Time) News {
	sum := sha256.Sum256([]byte(response + " " + kind))
	id := "evt_" + hex.EncodeToString(sum[:16])
	return News{id, fmt.Appendf(nil, `{"id":%s,"object":"event","created_at":%d,"type":%s,"data":%s}`, item.Quote(id), at.Unix(), item.Quote(kind), data)}
}

// Run sends events until ctx is done, unless another server over the same store does. An event that
// the receiver does not accept is sent again for three days. What is not sent when the server ends,
// the next one sends. Errors of sending are logged; the error is about the fields of the webhook.
func (s *Sender) Run(ctx context.Context) error {
	if err := s.Hook.Check(); err != nil {
		return err
	}
	if s.Hook.HTTP == nil {
		own := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: handshakeTime}
		defer own.CloseIdleConnections()
		with := *s.Hook
		with.HTTP = &http.Client{Transport: own}
		s.Hook = &with
	}
	s.tries, s.sending = map[string]*tries{}, map[string]bool{}
	for ctx.Err() == nil {
		if err := s.hold(ctx); err != nil && ctx.Err() == nil {
			s.Log(fmt.Errorf("webhooks: %w", err))
			select {
			case <-ctx.Done():
			case <-time.After(lookHooks):
			}
		}
	}
	return nil
}

// hold waits until no other server sends, and sends until ctx is done or the lock is lost.
func (s *Sender) hold(ctx context.Context) error {
	sum := sha256.Sum256([]byte(s.Owner))
	in := s.Lock + hex.EncodeToString(sum[:8])
	err := s.In.Create(ctx, session.Info{ID: in, Owner: s.Owner})
	if err == nil {
		err = s.In.Archive(ctx, in, true) // lists leave it out
	}
	if err != nil && !errors.Is(err, session.ErrExists) {
		return err
	}
	log, err := session.Open(ctx, s.In, in)
	if err != nil {
		return err
	}
	unlock, err := log.WaitLock(ctx)
	if err != nil {
		return err
	}
	held, stop := log.Guard(ctx)
	defer stop()
	return errors.Join(s.rounds(held), unlock())
}

// rounds sends what is to be sent, again and again. A few events are sent at once, and what is new is
// looked for meanwhile.
func (s *Sender) rounds(ctx context.Context) error {
	ticks := time.NewTicker(lookHooks)
	defer ticks.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	free := make(chan struct{}, hooksAtOnce)
	for range hooksAtOnce {
		free <- struct{}{}
	}
	var due []session.Info
	for {
		var err error
		if due, err = s.due(ctx, due); err != nil {
			return err
		}
		for looks := false; !looks; {
			next := free
			if len(due) == 0 {
				next = nil // only a tick brings more
			}
			select {
			case <-ctx.Done():
				return nil
			case <-ticks.C:
				looks = true
			case <-next:
				mark := due[0]
				due = due[1:]
				s.sets(mark.ID, true)
				all.Go(func() {
					if err := s.send(ctx, mark); err != nil && ctx.Err() == nil {
						s.Log(fmt.Errorf("webhooks: %s: %w", mark.ID, err))
					}
					s.sets(mark.ID, false)
					free <- struct{}{}
				})
			}
		}
	}
}

// sets notes whether the events of a mark are being sent.
func (s *Sender) sets(mark string, sending bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.sending, mark); sending {
		s.sending[mark] = true
	}
}

// due returns the marks of what is to be sent now: those that were never tried, those that wait for their
// turn, and then others. Nothing may begin to be sent meanwhile.
func (s *Sender) due(ctx context.Context, waiting []session.Info) ([]session.Info, error) {
	var first, again []session.Info
	now, known := time.Now(), map[string]bool{}
	s.mu.Lock()
	maps.Copy(known, s.sending) // the list may still have what ends meanwhile
	s.mu.Unlock()
	for _, mark := range waiting {
		known[mark.ID] = true
	}
	for mark, err := range nils.Each(s.In, "List", s.In.List(ctx, session.Query{Tags: []string{s.Tag}, Owner: s.Owner, Nested: true, Archived: true})) {
		if ctx.Err() != nil {
			return nil, nil
		}
		if errors.Is(err, session.ErrDamaged) { // behind all others
			s.Log(fmt.Errorf("webhooks: %w", err))
			break
		}
		if err != nil {
			return nil, err
		}
		if known[mark.ID] || mark.Owner != s.Owner { // a list without an owner has those of all
			continue
		}
		s.mu.Lock()
		t := s.tries[mark.ID]
		s.mu.Unlock()
		if t == nil {
			first = append(first, mark)
		} else if t.next.Before(now) {
			again = append(again, mark)
		}
	}
	return slices.Concat(first, waiting, again), nil
}

// send sends the events about a response, if it has ended.
func (s *Sender) send(ctx context.Context, mark session.Info) error {
	s.mu.Lock()
	t := s.tries[mark.ID]
	if t == nil {
		t = new(tries)
		s.tries[mark.ID] = t
	}
	s.mu.Unlock()
	found, seen, err := s.looks(ctx, mark, t)
	if err != nil {
		return err
	}
	if !found {
		t.seen = seen
		return nil
	}
	list, ended, wait, err := s.Owed(ctx, mark)
	switch {
	case err != nil || wait == ItsBeginning:
		t.seen = 0
	case wait == ItsEnd:
		t.seen = seen
	}
	if err != nil || wait != Nothing {
		return err
	}
	for _, n := range list[min(t.sent, len(list)):] {
		if err = s.Hook.Send(ctx, n.id, n.body); err != nil {
			err = fmt.Errorf("the event %s: %w", n.kind(), err)
			break
		}
		t.sent++
	}
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil && time.Since(ended) < giveUp {
		again := min(firstRetry<<min(t.failed, 20), mostRetry)
		t.next = time.Now().Add(again)
		t.failed++
		return fmt.Errorf("%w; attempt %d, and the next one is in %s", err, t.failed, again)
	}
	if err != nil {
		err = fmt.Errorf("given up: %w", err)
	}
	s.mu.Lock()
	delete(s.tries, mark.ID)
	s.mu.Unlock()
	if gone := s.In.Delete(context.WithoutCancel(ctx), mark.ID); !errors.Is(gone, session.ErrNotFound) {
		err = errors.Join(err, gone)
	}
	return err
}

// looks reports whether the log of a response has to be read, because it has an entry that tells
// something and was not seen before. Of a new mark nothing is read here, and later only what is new. seen
// is the last entry that was looked at: it is t.seen as soon as nothing is to be sent about what is
// before it.
func (s *Sender) looks(ctx context.Context, mark session.Info, t *tries) (found bool, seen int64, err error) {
	in, _ := session.ParentOf(mark.ID)
	if t.seen == 0 {
		info, err := s.In.Info(ctx, in)
		if errors.Is(err, session.ErrNotFound) {
			err = nil
		}
		return true, info.Entries, err
	}
	found, seen = t.failed > 0, t.seen
	for e, err := range nils.Each(s.In, "Load", s.In.Load(ctx, in, t.seen)) {
		if errors.Is(err, session.ErrNotFound) {
			return true, seen, nil
		}
		if err != nil {
			return false, 0, err
		}
		found, seen = found || s.Tells(e), e.Seq
	}
	return found, seen, nil
}
