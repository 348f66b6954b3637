// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
)

func init() {
	store.Register(store.Driver{Scheme: "board", Form: "board://PATH", Open: func(ctx context.Context, place string, o store.Options) (store.Store, error) {
		path := strings.TrimPrefix(place, "board://")
		s, err := store.Open(ctx, path, o)
		if err != nil {
			return nil, err
		}
		return &board{s.(*sqlstore.Store), path + ".work"}, nil
	}})
}

// board is a store of SQLite with a queue in a file beside it, for tests of processes that
// share one: the stores of this program have no queue yet.
type board struct {
	*sqlstore.Store
	file string
}

// change reads the queue, and writes it back.
func (s *board) change(do func(map[string]queue.Work) error) error {
	lock, err := filelock.TakeWithin(context.Background(), s.file+".lock", 10*time.Second)
	if err != nil {
		return err
	}
	defer lock.Release()
	works := map[string]queue.Work{}
	if text, err := os.ReadFile(s.file); err == nil {
		if err := json.Unmarshal(text, &works); err != nil {
			return err
		}
	}
	if err := do(works); err != nil {
		return err
	}
	text, _ := json.Marshal(works)
	if err := os.WriteFile(s.file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(s.file+".new", s.file)
}

func (s *board) Deliver(ctx context.Context, id string, d session.Delivery) (session.Receipt, error) {
	r, err := s.Store.Deliver(ctx, id, d)
	if err != nil {
		return r, err
	}
	return r, s.change(func(works map[string]queue.Work) error {
		if w, ok := works[id]; ok && (w.State == queue.Waiting || w.State == queue.Done) {
			w.State, w.Since, w.Due, w.Reason = queue.Ready, time.Now(), time.Time{}, "a delivery arrived"
			works[id] = w
		}
		return nil
	})
}

func (s *board) Enqueue(_ context.Context, w queue.Work) error {
	return s.change(func(works map[string]queue.Work) error {
		old, ok := works[w.Session]
		if ok && old.State == queue.Running {
			return nil
		}
		w.State, w.Since, w.Attempts, w.Claim, w.Worker = queue.Ready, time.Now(), 0, old.Claim, old.Worker
		works[w.Session] = w
		return nil
	})
}

func (s *board) Candidates(ctx context.Context, want queue.Want) (list []queue.Work, err error) {
	var all map[string]queue.Work
	err = s.change(func(works map[string]queue.Work) error { all = works; return nil })
	for _, id := range slices.Sorted(maps.Keys(all)) {
		w := all[id]
		lacks := slices.ContainsFunc(w.Needs, func(need string) bool { return !slices.Contains(want.Labels, need) })
		may := w.State == queue.Ready && !time.Now().Before(w.Due)
		if w.State == queue.Running {
			if unlock, err := s.Lock(ctx, id); err == nil {
				may = true
				_ = unlock()
			}
		}
		if may && !lacks && (want.Agents == nil || slices.Contains(want.Agents, w.Agent)) && (want.Tenants == nil || slices.Contains(want.Tenants, w.Tenant)) && len(list) < want.Most {
			list = append(list, w)
		}
	}
	return list, err
}

func (s *board) Begin(_ context.Context, w queue.Work, worker string) (queue.Work, error) {
	err := s.change(func(works map[string]queue.Work) error {
		now, ok := works[w.Session]
		if !ok || now.Claim != w.Claim || now.State != w.State {
			return queue.ErrChanged
		}
		w = now
		w.State, w.Since, w.Worker, w.Reason = queue.Running, time.Now(), worker, ""
		w.Claim++
		w.Attempts++
		works[w.Session] = w
		return nil
	})
	return w, err
}

func (s *board) Finish(ctx context.Context, w queue.Work, o queue.Outcome) error {
	waits := false
	for range s.Deliveries(ctx, w.Session) {
		waits = true
	}
	return s.change(func(works map[string]queue.Work) error {
		now, ok := works[w.Session]
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
		works[w.Session] = now
		return nil
	})
}

func (s *board) Works(_ context.Context, states ...queue.State) iter.Seq2[queue.Work, error] {
	return func(yield func(queue.Work, error) bool) {
		var all map[string]queue.Work
		if err := s.change(func(works map[string]queue.Work) error { all = works; return nil }); err != nil {
			yield(queue.Work{}, err)
			return
		}
		for _, id := range slices.Sorted(maps.Keys(all)) {
			if w := all[id]; (len(states) == 0 || slices.Contains(states, w.State)) && !yield(w, nil) {
				return
			}
		}
	}
}

func (s *board) Move(_ context.Context, id string, to queue.State, reason string) error {
	return s.change(func(works map[string]queue.Work) error {
		w, ok := works[id]
		if !ok {
			return errors.New("no work")
		}
		w.State, w.Since, w.Reason, w.Due = to, time.Now(), reason, time.Time{}
		if to == queue.Ready {
			w.Attempts = 0
		}
		works[id] = w
		return nil
	})
}

func (s *board) Awaited(func()) (stop func()) { return func() {} }
