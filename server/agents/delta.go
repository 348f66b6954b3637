// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// While a worker makes a streamed response, the text that its model has not ended yet is kept in
// notes in a session of its own, which is nested in that of the response. The server reads them and
// shows them to its client. It makes that session, and removes it when the response has ended. Who
// goes on with the run adds a note without text first, so that a worker that was frozen can add
// nothing after it.

const (
	// deltaPause is the time between two notes. A client sees the text so much later.
	deltaPause = 50 * time.Millisecond
	// deltaTime is how long a note may take. Then there are no more, and the text comes with its entry.
	deltaTime = 10 * time.Second
)

// deltasID returns the session with the text of a response that its model has not ended.
func deltasID(in string, seq int64) string { return fmt.Sprintf("%s/%d-.deltas", in, seq) }

// piece is a piece of the text of a message or of a summary.
type piece struct {
	// After is the entry of the log before it.
	After int64           `json:"after"`
	Kind  agent.DeltaKind `json:"kind"`
	Item  string          `json:"item,omitempty"`
	// At is the number of bytes of the item's text before it.
	At   int    `json:"at,omitzero"`
	Text string `json:"text"`
}

// follows reports whether a piece is the next one of the same text, and no entry comes between.
func (p *piece) follows(before *piece) bool {
	return p.After == before.After && p.Kind == before.Kind && p.Item == before.Item && p.At == before.At+len(before.Text)
}

// endsText reports whether no text that began before an entry goes on after it.
func endsText(e session.Entry) bool {
	switch e.Body.(type) {
	case session.RunStarted, session.OutputItem, session.TurnEnded:
		return true
	}
	n, ok := noteOf(e)
	return ok && n.Kind == kindBroken
}

// pieces returns the text of a note.
func (n *note) pieces() (list []piece, err error) {
	if len(n.Deltas) > 0 {
		err = json.Unmarshal(n.Deltas, &list)
	}
	return list, err
}

// deltas keeps the text of a run at a worker. Nobody waits for it.
type deltas struct {
	in   store.Store
	name string
	ctx  context.Context
	end  context.CancelFunc
	wake chan struct{}
	done chan struct{} // nil before the first piece

	after int64 // the last entry of the run
	last  piece // the one before the next

	mu      sync.Mutex
	at      int64 // how many notes there are
	waiting []piece
	failed  bool
}

// keepDeltas returns what keeps the text of a run, or nil if nobody reads it. It records what an earlier worker has
// left behind.
func keepDeltas(ctx context.Context, h *host.Host, id string) (live func(agent.Event), err error) {
	at, known, err := endText(ctx, h.Store, h.Session, id)
	if err != nil || !known {
		return nil, err
	}
	in, seq, _ := parseID(id)
	d := &deltas{in: h.Store, name: deltasID(in, seq), at: at, after: int64(len(h.Session.Log())), wake: make(chan struct{}, 1)}
	d.ctx, d.end = context.WithCancel(ctx)
	return d.live, nil
}

// live is told the events of a run, and nil when it has ended.
func (d *deltas) live(ev agent.Event) {
	switch ev := ev.(type) {
	case nil:
		d.end()
		if d.done != nil {
			<-d.done
		}
	case agent.Recorded:
		if d.after = ev.Seq; endsText(ev.Entry) {
			d.last = piece{}
		}
	case agent.Delta:
		if shows(ev) {
			d.add(ev)
		}
	}
}

func (d *deltas) add(ev agent.Delta) {
	next := piece{After: d.after, Kind: ev.Kind, Item: ev.ItemID, Text: ev.Text}
	if next.Kind == d.last.Kind && next.Item == d.last.Item {
		next.At = d.last.At + len(d.last.Text)
	}
	d.last = next
	if d.done == nil {
		d.done = make(chan struct{})
		go d.write()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed {
		return
	}
	if n := len(d.waiting); n > 0 && next.follows(&d.waiting[n-1]) {
		d.waiting[n-1].Text += next.Text
		return
	}
	d.waiting = append(d.waiting, next)
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// write adds notes until the run ends. What was not written by then is in an entry of the run.
func (d *deltas) write() {
	defer close(d.done)
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-d.wake:
		}
		d.mu.Lock()
		list := d.waiting
		d.waiting = nil
		d.mu.Unlock()
		if err := d.note(list); err != nil {
			d.mu.Lock()
			d.waiting, d.failed = nil, true
			d.mu.Unlock()
			return
		}
		select {
		case <-d.ctx.Done():
			return
		case <-time.After(deltaPause):
		}
	}
}

func (d *deltas) note(list []piece) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(d.ctx, deltaTime)
	defer stop()
	err = d.in.Append(ctx, d.name, d.at, []session.Entry{{Seq: d.at + 1, Body: note{Kind: kindDeltas, Deltas: text}.body()}})
	d.at++
	return err
}

// endText takes the session with the text of a response: no other worker adds to it any more. If a text was left
// without its end, the log is told. The caller has the lock of s. It returns the number of notes, and
// whether that session is there.
func endText(ctx context.Context, in store.Store, s *session.Session, id string) (at int64, known bool, err error) {
	outer, seq, _ := parseID(id)
	name := deltasID(outer, seq)
	if _, err := in.Info(ctx, name); errors.Is(err, session.ErrNotFound) {
		return 0, false, nil
	} else if err != nil {
		return 0, false, err
	}
	var left unended
	for {
		if at, err = left.read(ctx, in, name, at); err != nil {
			return 0, false, err
		}
		err = in.Append(ctx, name, at, []session.Entry{{Seq: at + 1, Body: note{Kind: kindDeltas}.body()}})
		if !errors.Is(err, session.ErrConflict) {
			break
		}
	}
	if err != nil {
		return 0, false, err
	}
	it, ok := left.item(s.Log())
	if !ok {
		return at + 1, true, nil
	}
	list, err := listJSON([]item.Item{it})
	if err != nil {
		return 0, false, err
	}
	_, err = s.Append(ctx, note{Kind: kindBroken, ResponseID: id, Items: list}.body())
	return at + 1, true, err
}

// unended is the last text of some pieces.
type unended struct {
	first piece
	text  string
}

func (u *unended) add(p piece) {
	switch {
	case p.At == 0:
		u.first, u.text = p, p.Text
	case p.Kind == u.first.Kind && p.Item == u.first.Item && p.At == len(u.text):
		u.text += p.Text
	}
}

// read adds the pieces of a session after a note, and returns the last note.
func (u *unended) read(ctx context.Context, in store.Store, name string, after int64) (last int64, err error) {
	for e, err := range nils.Each(in, "Load", in.Load(ctx, name, after)) {
		if err != nil {
			return 0, err
		}
		after = e.Seq
		n, _ := noteOf(e)
		list, err := n.pieces()
		if err != nil {
			return 0, err
		}
		for _, p := range list {
			u.add(p)
		}
	}
	return after, nil
}

// item returns the item that the text belongs to, unless the log has its end.
func (u *unended) item(log []session.Entry) (it item.Item, ok bool) {
	if u.text == "" || u.first.After > int64(len(log)) {
		return it, false
	}
	for _, e := range log[u.first.After:] {
		if endsText(e) {
			return it, false
		}
	}
	var v item.Value = &item.Message{Role: item.RoleAssistant, Status: item.StatusIncomplete, Content: item.Text(u.text)}
	if u.first.Kind == agent.DeltaSummary {
		v = &item.Reasoning{Summary: []item.Part{&item.SummaryText{Text: u.text}}}
	}
	it, err := item.New(v)
	return it, err == nil
}

// watch passes on the pieces of a response as a worker keeps them.
func (f *follower) watch(ctx context.Context, to chan<- piece) {
	_, seq, _ := parseID(f.run.id)
	name := deltasID(f.in, seq)
	for e, err := range nils.Each(f.store, "Watch", f.store.Watch(ctx, name, 0)) {
		n, _ := noteOf(e)
		list, bad := n.pieces()
		if err = errors.Join(err, bad); err != nil { // the text comes with its entry
			f.b.report(err)
			return
		}
		for _, p := range list {
			select {
			case to <- p:
			case <-ctx.Done():
				return
			}
		}
	}
}

// pieces shows the pieces whose turn it is.
func (f *follower) pieces(more ...piece) {
	f.waiting = append(f.waiting, more...)
	for len(f.waiting) > 0 && f.waiting[0].After <= f.shown {
		if p := f.waiting[0]; p.After >= f.textEnded {
			f.s.piece(p)
		}
		f.waiting = f.waiting[1:]
	}
}
