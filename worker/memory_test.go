// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// shelf is a store in memory with a queue.
type shelf struct {
	*session.Memory
	mu      sync.Mutex
	works   map[string]queue.Work
	held    map[string]*hold
	changed []*func()
	written time.Time // of all sessions, for List
}

func newShelf() *shelf {
	return &shelf{Memory: &session.Memory{}, works: map[string]queue.Work{}, held: map[string]*hold{}}
}

func (*shelf) Place() string { return "memory" }
func (*shelf) Close() error  { return nil }

// List sets the times of the last writes, which a Memory does not keep.
func (s *shelf) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		for info, err := range s.Memory.List(ctx, q) {
			if info.Updated = s.written; !yield(info, err) {
				return
			}
		}
	}
}

func (s *shelf) change(do func() error) error {
	s.mu.Lock()
	err := do()
	told := slices.Clone(s.changed)
	s.mu.Unlock()
	for _, f := range told {
		(*f)()
	}
	return err
}

// hold is a lock of a session.
type hold struct {
	lost   context.CancelCauseFunc
	unlock func() error
}

func (s *shelf) Hold(ctx context.Context, id string) (context.Context, func() error, error) {
	unlock, err := s.Memory.Lock(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	h := &hold{cancel, sync.OnceValue(unlock)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[id] = h
	return ctx, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held[id] == h {
			delete(s.held, id)
		}
		cancel(nil)
		return h.unlock()
	}, nil
}

// lose takes the lock of a session from its holder.
func (s *shelf) lose(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[id]
	delete(s.held, id)
	h.lost(session.ErrLost)
	_ = h.unlock()
}

func (s *shelf) Deliver(ctx context.Context, id string, d session.Delivery) (session.Receipt, error) {
	r, err := s.Memory.Deliver(ctx, id, d)
	if err != nil {
		return r, err
	}
	return r, s.change(func() error {
		if w, ok := s.works[id]; ok && (w.State == queue.Waiting || w.State == queue.Done) {
			w.State, w.Since, w.Due, w.Reason = queue.Ready, time.Now(), time.Time{}, "a delivery arrived"
			s.works[id] = w
		}
		return nil
	})
}

func (s *shelf) Enqueue(_ context.Context, w queue.Work) error {
	return s.change(func() error {
		old, ok := s.works[w.Session]
		if ok && old.State == queue.Running {
			return nil
		}
		w.State, w.Since, w.Attempts, w.Claim, w.Worker = queue.Ready, time.Now(), 0, old.Claim, old.Worker
		s.works[w.Session] = w
		return nil
	})
}

func (s *shelf) Candidates(_ context.Context, want queue.Want) (list []queue.Work, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.works)) {
		w := s.works[id]
		lacks := slices.ContainsFunc(w.Needs, func(need string) bool { return !slices.Contains(want.Labels, need) })
		may := w.State == queue.Ready && !time.Now().Before(w.Due) || w.State == queue.Running && s.held[id] == nil
		if may && !lacks && (want.Agents == nil || slices.Contains(want.Agents, w.Agent)) && (want.Tenants == nil || slices.Contains(want.Tenants, w.Tenant)) && len(list) < want.Most {
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(a, b queue.Work) int { return cmp.Compare(b.Priority, a.Priority) })
	return list, nil
}

func (s *shelf) Begin(_ context.Context, w queue.Work, worker string) (queue.Work, error) {
	err := s.change(func() error {
		now, ok := s.works[w.Session]
		if !ok || now.Claim != w.Claim || now.State != w.State {
			return queue.ErrChanged
		}
		w = now
		w.State, w.Since, w.Worker, w.Reason = queue.Running, time.Now(), worker, ""
		w.Claim++
		w.Attempts++
		s.works[w.Session] = w
		return nil
	})
	return w, err
}

func (s *shelf) Finish(ctx context.Context, w queue.Work, o queue.Outcome) error {
	waits := false
	for d := range s.Deliveries(ctx, w.Session) {
		waits = waits || d.Number > o.Seen
	}
	return s.change(func() error {
		now, ok := s.works[w.Session]
		if !ok || now.Claim != w.Claim || now.State != queue.Running {
			return queue.ErrChanged
		}
		now.State, now.Since, now.Due, now.Reason = o.State, time.Now(), o.Due, o.Reason
		if waits && (o.State == queue.Waiting || o.State == queue.Done) {
			now.State = queue.Ready
		}
		if o.Well {
			now.Attempts = 0
		}
		s.works[w.Session] = now
		return nil
	})
}

func (s *shelf) Works(_ context.Context, states ...queue.State) iter.Seq2[queue.Work, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []queue.Work
	for _, id := range slices.Sorted(maps.Keys(s.works)) {
		if w := s.works[id]; len(states) == 0 || slices.Contains(states, w.State) {
			list = append(list, w)
		}
	}
	return func(yield func(queue.Work, error) bool) {
		for _, w := range list {
			if !yield(w, nil) {
				return
			}
		}
	}
}

func (s *shelf) Work(_ context.Context, id string) (queue.Work, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.works[id]
	if !ok {
		return w, session.ErrNotFound
	}
	return w, nil
}

func (s *shelf) Move(_ context.Context, as queue.Work, to queue.State, reason string) error {
	return s.change(func() error {
		w, ok := s.works[as.Session]
		if !ok || w.Claim != as.Claim || w.State != as.State {
			return queue.ErrChanged
		}
		w.State, w.Since, w.Reason, w.Due = to, time.Now(), reason, time.Time{}
		if to == queue.Ready {
			w.Attempts = 0
		}
		s.works[w.Session] = w
		return nil
	})
}

func (s *shelf) Awaited(changed func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = append(s.changed, &changed)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed = slices.DeleteFunc(s.changed, func(f *func()) bool { return f == &changed })
	}
}

// work returns the work of a session.
func (s *shelf) work(id string) queue.Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.works[id]
}
