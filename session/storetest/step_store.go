// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
)

// Step is an operation that a store is about to perform or has performed. Its name
// is append with the kinds of the bodies, such as append/received; load, lock,
// unlock, deliver, fork, create, rename, label, archive, delete, sweep or put; or, for a
// database, sql and the statement. Programs may define their own steps.
type Step struct {
	Name string
	// Done means that the operation was performed, and Err is its error.
	Done bool
	Err  error
	// Session is the session of the operation, if any. After and Entries describe an
	// append. From is the session that is forked, After the place, and Entries are
	// those that follow it in the fork.
	Session string
	After   int64
	Entries []session.Entry
	From    string
}

// String is the step's name with /before or /after.
func (s Step) String() string {
	if s.Done {
		return s.Name + "/after"
	}
	return s.Name + "/before"
}

// StepFunc is called before and after each step. An error before the step prevents it; an
// error after it makes it appear to have failed. At may also not return, to end the
// process at this point. It must be safe for concurrent use.
type StepFunc func(Step) error

// Take performs a step between the two calls of at. A nil StepFunc does nothing.
func (at StepFunc) Take(s Step, do func() error) error {
	if do == nil {
		do = func() error { return nil }
	}
	if err := at.call(s); err != nil {
		return err
	}
	s.Done, s.Err = true, do()
	if err := at.call(s); err != nil {
		return err
	}
	return s.Err
}

// call calls at, unless it is nil.
func (at StepFunc) call(s Step) error {
	if at == nil {
		return nil
	}
	return at(s)
}

// wholeStore is a store with all optional interfaces.
type wholeStore interface {
	session.SubsessionStore
	session.Locker
	session.Forker
	session.Watcher
	session.Inbox
	session.Catalog
	session.Blobs
}

// StepStore returns a store that calls at for all operations on sessions. If store
// implements all optional interfaces, like the stores of package sqlstore, so does
// the result; otherwise the result keeps only [session.SubsessionStore]. A nil store
// is a new [session.Memory].
func StepStore(store session.Store, at StepFunc) session.Store {
	if nils.Is(store) {
		store = new(session.Memory)
	}
	s := &stepStore{store, at}
	if whole, ok := store.(wholeStore); ok {
		return &stepWhole{s, whole}
	}
	if n, ok := store.(session.SubsessionStore); ok {
		return &stepNester{s, n}
	}
	return s
}

type stepStore struct {
	store session.Store
	at    StepFunc
}

func (s *stepStore) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	st := Step{Name: "append/" + kindsOf(entries), Session: id, After: after, Entries: entries}
	return s.at.Take(st, func() error { return s.store.Append(ctx, id, after, entries) })
}

func (s *stepStore) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		st := Step{Name: "load", Session: id, After: after}
		if err := s.at.call(st); err != nil {
			yield(session.Entry{}, err)
			return
		}
		for e, err := range nils.Each(s.store, "Load", s.store.Load(ctx, id, after)) {
			if !yield(e, err) {
				return
			}
		}
		st.Done = true
		if err := s.at.call(st); err != nil {
			yield(session.Entry{}, err)
		}
	}
}

// kindsOf names the kinds of the entries' bodies, each once.
func kindsOf(entries []session.Entry) string {
	var kinds []string
	for _, e := range entries {
		if k := session.Kind(e.Body); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) > 3 {
		return "many"
	}
	return strings.Join(kinds, "+")
}

type stepNester struct {
	*stepStore
	nester session.SubsessionStore
}

func (s *stepNester) Nest(parent string, number int, callID string) string {
	return s.nester.Nest(parent, number, callID)
}

type stepWhole struct {
	*stepStore
	whole wholeStore
}

func (s *stepWhole) Nest(parent string, number int, callID string) string {
	return s.whole.Nest(parent, number, callID)
}

func (s *stepWhole) Lock(ctx context.Context, id string) (unlock func() error, err error) {
	err = s.at.Take(Step{Name: "lock", Session: id}, func() (err error) {
		unlock, err = s.whole.Lock(ctx, id)
		return err
	})
	if err != nil {
		if unlock != nil {
			_ = unlock() // at's error counts
		}
		return nil, err
	}
	free := unlock
	return func() error { return s.at.Take(Step{Name: "unlock", Session: id}, free) }, nil
}

func (s *stepWhole) Fork(ctx context.Context, from string, at int64, to string, further ...session.Entry) error {
	return s.at.Take(Step{Name: "fork", Session: to, From: from, After: at, Entries: further}, func() error {
		return s.whole.Fork(ctx, from, at, to, further...)
	})
}

func (s *stepWhole) Watch(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return s.whole.Watch(ctx, id, after)
}

func (s *stepWhole) Deliver(ctx context.Context, id string, d session.Delivery) (r session.Receipt, err error) {
	err = s.at.Take(Step{Name: "deliver", Session: id}, func() (err error) {
		r, err = s.whole.Deliver(ctx, id, d)
		return err
	})
	return r, err
}

func (s *stepWhole) Deliveries(ctx context.Context, id string) iter.Seq2[session.Delivery, error] {
	return s.whole.Deliveries(ctx, id)
}

func (s *stepWhole) Notify(id string, arrived func()) (stop func()) {
	return s.whole.Notify(id, arrived)
}

func (s *stepWhole) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return s.whole.List(ctx, q)
}

func (s *stepWhole) Info(ctx context.Context, id string) (session.Info, error) {
	return s.whole.Info(ctx, id)
}

func (s *stepWhole) Create(ctx context.Context, info session.Info, first ...session.Entry) error {
	st := Step{Name: "create", Session: info.ID}
	if len(first) > 0 { // it is also the first append
		st = Step{Name: "append/" + kindsOf(first), Session: info.ID, Entries: first}
	}
	return s.at.Take(st, func() error { return s.whole.Create(ctx, info, first...) })
}

func (s *stepWhole) Rename(ctx context.Context, id, name string) error {
	return s.at.Take(Step{Name: "rename", Session: id}, func() error { return s.whole.Rename(ctx, id, name) })
}

func (s *stepWhole) Label(ctx context.Context, id string, change session.Labels) error {
	return s.at.Take(Step{Name: "label", Session: id}, func() error { return s.whole.Label(ctx, id, change) })
}

func (s *stepWhole) Archive(ctx context.Context, id string, archived bool) error {
	return s.at.Take(Step{Name: "archive", Session: id}, func() error { return s.whole.Archive(ctx, id, archived) })
}

func (s *stepWhole) Delete(ctx context.Context, id string) error {
	return s.at.Take(Step{Name: "delete", Session: id}, func() error { return s.whole.Delete(ctx, id) })
}

func (s *stepWhole) DeleteIfTaken(ctx context.Context, id string) error {
	return s.at.Take(Step{Name: "delete", Session: id}, func() error { return session.DeleteIfTaken(ctx, s.whole, id) })
}

func (s *stepWhole) Sweep(ctx context.Context, dry bool) (swept session.GCStats, err error) {
	err = s.at.Take(Step{Name: "sweep"}, func() (err error) {
		swept, err = s.whole.Sweep(ctx, dry)
		return err
	})
	return swept, err
}

func (s *stepWhole) PutBlob(ctx context.Context, id string, data []byte) (hash session.Hash, err error) {
	err = s.at.Take(Step{Name: "put", Session: id}, func() (err error) {
		hash, err = s.whole.PutBlob(ctx, id, data)
		return err
	})
	return hash, err
}

func (s *stepWhole) OpenBlob(ctx context.Context, hash session.Hash) (session.Blob, int64, error) {
	return s.whole.OpenBlob(ctx, hash)
}
