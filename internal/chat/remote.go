// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// Attach shows a session at a server until the person leaves.
func Attach(ctx context.Context, cfg Config, address string) error {
	there, err := attach.Dial(ctx, address, cfg.Env)
	if err != nil {
		return err
	}
	t := newDialogue(cfg)
	// The id names files of this machine, so it is not that of the server.
	t.info = session.Info{ID: "remote-" + session.Fingerprint(there.Client.URL+"\n"+there.ID), Name: address}
	if ctx, err = t.sit(ctx); err != nil {
		return err
	}
	there.Client.Lost = func(err error) {
		if err == nil {
			fmt.Fprintf(t.std.Err, "antiphon: connected to %s again\n", show.Visible(there.Host))
			return
		}
		fmt.Fprintf(t.std.Err, "antiphon: the connection to %s is lost (%s); trying again\n", show.Visible(there.Host), show.Printable(cfg.Env.Hide(err.Error())))
	}
	err = t.guarded(func() error {
		return there.Refused(t.visitRemote(ctx, there))
	})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	err = errors.Join(err, t.face.close())
	if t.undraft(); t.left {
		fmt.Fprintf(cfg.Err, "antiphon: left %s; antiphon chat --attach %s returns\n", show.Printable(address), quoted(address))
	}
	return err
}

// visitRemote is like visit for a session at a server.
func (t *dialogue) visitRemote(ctx context.Context, r *attach.Remote) error {
	t.printer(func(func(session.Entry) bool) {})
	v := &visitor{t: t, there: r, View: &attach.View{Err: t.std.Err, Who: t.who, Src: r, Info: session.Info{ID: r.ID}, Show: t.print}}
	log, err := r.Read(ctx, r.ID, func(e session.Entry) {
		v.Passes(e)
		t.count(e)
	}, func() {
		fmt.Fprintf(t.std.Err, "antiphon: the log of %s is long; it is being read\n", show.Printable(t.name()))
	})
	if err != nil {
		return err
	}
	if v.Shown > 0 {
		fmt.Fprintf(t.std.Err, "antiphon: the log is too long for this terminal: its first %d entries are counted and not kept\n", v.Shown)
	}
	kept := v.Shown
	v.Begin(log)
	v.counted(log[:v.Shown-kept], true)
	fmt.Fprintf(t.std.Err, "antiphon: attached to %s: what you type is said to it, Esc stops its work, and leaving leaves it as it is\n", show.Printable(t.name()))
	if v.Began {
		v.works(ctx)
	} else if v.Asks, err = r.Pending(ctx); err != nil {
		return err
	}
	defer v.rests()
	staying, end := t.untilLeft(ctx) // a request to a server that is gone is repeated until then
	defer end()
	err = v.stay(staying)
	if staying.Err() != nil && ctx.Err() == nil {
		return v.leave(ctx)
	}
	return err
}
