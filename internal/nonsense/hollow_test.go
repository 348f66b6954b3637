// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package nonsense

import (
	"context"
	"iter"
	"reflect"

	"github.com/antiphon-go/antiphon/session"
)

// hollow are stores of somebody who has only begun to write one: they keep logs, and all else
// that they do succeeds and returns nil.
var hollow = []reflect.Type{reflect.TypeFor[*empty](), reflect.TypeFor[*mute](), reflect.TypeFor[*unheld]()}

// logs are what a store needs to have.
type logs struct{ in session.Memory }

func (l *logs) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	return l.in.Append(ctx, id, after, entries)
}

func (l *logs) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return l.in.Load(ctx, id, after)
}

// empty has no logs either.
type empty struct{}

func (*empty) Append(context.Context, string, int64, []session.Entry) error { return nil }

func (*empty) Load(context.Context, string, int64) iter.Seq2[session.Entry, error] { return nil }

// mute keeps logs, and nothing that it returns can be called or read.
type mute struct{ logs }

func (*mute) Nest(parent string, number int, callID string) string {
	return session.SubsessionID(parent, number, callID)
}

func (*mute) Lock(context.Context, string) (unlock func() error, err error) { return nil, nil }

func (*mute) Locked(context.Context) (ids []string, err error) { return nil, nil }

func (*mute) Fork(context.Context, string, int64, string, ...session.Entry) error { return nil }

func (*mute) Watch(context.Context, string, int64) iter.Seq2[session.Entry, error] { return nil }

func (*mute) Deliver(context.Context, string, session.Delivery) (r session.Receipt, err error) {
	return r, nil
}

func (*mute) Deliveries(context.Context, string) iter.Seq2[session.Delivery, error] { return nil }

func (*mute) Notify(string, func()) (stop func()) { return nil }

func (*mute) List(context.Context, session.Query) iter.Seq2[session.Info, error] { return nil }

func (*mute) Info(context.Context, string) (i session.Info, err error) { return i, nil }

func (*mute) Create(context.Context, session.Info, ...session.Entry) error { return nil }

func (*mute) Rename(context.Context, string, string) error { return nil }

func (*mute) Label(context.Context, string, session.Labels) error { return nil }

func (*mute) Archive(context.Context, string, bool) error { return nil }

func (*mute) Delete(context.Context, string) error { return nil }

func (*mute) Sweep(context.Context, bool) (s session.GCStats, err error) { return s, nil }

func (*mute) Search(context.Context, session.Search) iter.Seq2[session.SearchResult, error] {
	return nil
}

func (*mute) PutBlob(context.Context, string, []byte) (h session.Hash, err error) { return h, nil }

func (*mute) OpenBlob(context.Context, session.Hash) (blob session.Blob, size int64, err error) {
	return nil, 5, nil
}

func (*mute) Place() string { return "" }

func (*mute) Close() error { return nil }

// unheld is mute, and notices the loss of locks that it does not give.
type unheld struct{ mute }

func (*unheld) Hold(context.Context, string) (held context.Context, unlock func() error, err error) {
	return nil, nil, nil
}
