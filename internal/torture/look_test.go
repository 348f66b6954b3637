// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// digest tells items apart, byte for byte.
func digest(it item.Item) string {
	whole, err := it.Whole()
	if err != nil {
		return "unreadable"
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(whole.JSON())))
}

// view is what one look at a store has found.
type view struct {
	w     *world
	ran   map[string]agenttest.CallCounts
	logs  map[string][]session.Entry
	items map[string]bool
}

// look opens the store as the next process would, and wants all to be in order.
func (w *world) look(ctx context.Context) error {
	if err := w.model.trouble(); err != nil {
		return err
	}
	store, err := openStore(ctx, w.place, 0, 0, nil)
	if err != nil {
		return fmt.Errorf("it cannot be opened: %w", err)
	}
	_, err = w.inspect(ctx, store)
	return errors.Join(err, store.Close())
}

func (w *world) inspect(ctx context.Context, store *sqlstore.Store) (*view, error) {
	ran, err := agenttest.ReadCallLog(w.ledger)
	if err != nil {
		return nil, err
	}
	v := &view{w, ran, map[string][]session.Entry{}, map[string]bool{}}
	counts, err := w.witness.Check(ctx, store, v.visit)
	w.Entries, w.Unsure, w.UnsureThere, w.Failed, w.FailedThere = counts.Entries, counts.Unsure, counts.UnsureThere, counts.Failed, counts.FailedThere
	return v, errors.Join(err, v.shown(), v.delivered(ctx, store), v.blobs(ctx, store), v.listed(ctx, store), v.locks(ctx, store))
}

// visit looks at one session.
func (v *view) visit(id string, log []session.Entry) error {
	v.logs[id] = log
	for _, e := range log {
		switch b := e.Body.(type) {
		case session.OutputItem:
			v.items[digest(b.Item)] = true
		case session.CallOutput:
			v.items[digest(b.Item)] = true
		}
	}
	from := v.w.witness.Made(id)
	err := errors.Join(agenttest.CheckLog(log), agenttest.CheckCalls(id, log, from, v.ran), v.outputs(id, log, from))
	if err == nil && v.w.known[id] != len(log) {
		v.w.known[id] = len(log)
		err = v.next(log)
	}
	return err
}

// honest are the tools whose outputs say that they ran.
var honest = []string{"work", "again", "alone", "asks", "early", "fails", "long", "slow", "picture", "denied"}

// outputs holds what the model was told of its calls against what the ledger
// says.
func (v *view) outputs(id string, log []session.Entry, from int64) error {
	var problems []error
	turns, names := map[string]int{}, map[string]string{}
	for _, e := range log {
		switch b := e.Body.(type) {
		case session.OutputItem:
			if b.Item.IsCall() {
				turns[b.Item.CallID()], names[b.Item.CallID()] = b.Turn, b.Item.Name()
			}
		case session.CallOutput:
			if e.Seq <= from || !slices.Contains(honest, names[b.CallID]) {
				continue
			}
			out, err := item.As[item.FunctionCallOutput](b.Item)
			if err != nil {
				return err
			}
			key := agenttest.CallKey(id, turns[b.CallID], b.CallID)
			if err := contradiction(out.Output.Display(), key, v.ran[key]); err != nil {
				problems = append(problems, fmt.Errorf("entry %d: %w", e.Seq, err))
			}
		}
	}
	return errors.Join(problems...)
}

const unknown = "Whether it took effect is not known."

// contradiction reports an output that says something else than the ledger.
func contradiction(text, key string, ran agenttest.CallCounts) error {
	switch says := strings.Contains(text, "ran <"); {
	case says && !strings.Contains(text, "ran <"+key+">"):
		return fmt.Errorf("the output of %s is that of another call: %s", key, text)
	case says && ran.Ended == 0:
		return fmt.Errorf("%s has an output, and it did not end: %s", key, text)
	case strings.Contains(text, "Nothing was done.") && ran.Began > 0:
		return fmt.Errorf("%s was begun, and the model was told: %s", key, text)
	case !says && ran.Ended > 0 && !strings.Contains(text, unknown) && strings.HasPrefix(text, "status:\nsuccess"):
		return fmt.Errorf("%s ended, and the model was told: %s", key, text)
	}
	return nil
}

// next sends the session's next request, as far as it is clear, to the
// rehearsal, which refuses what an endpoint would. P1
func (v *view) next(log []session.Entry) error {
	var view session.View
	for _, e := range log {
		view.Apply(e)
	}
	seq := int64(len(log))
	view.Apply(session.Entry{Seq: seq + 1, Body: session.RunStarted{}})
	view.Apply(session.Entry{Seq: seq + 2, Body: session.TurnStarted{}})
	var items []item.Item
	for _, it := range view.Items().All() {
		items = append(items, it)
	}
	if err := agenttest.CheckPairing(items...); err != nil || len(items) == 0 {
		return err
	}
	req := api.Request{Model: "rehearsal", Input: view.Items()}
	body, err := req.AppendJSON(nil)
	if err != nil {
		return err
	}
	got := httptest.NewRecorder()
	v.w.model.handler.ServeHTTP(got, httptest.NewRequest(http.MethodPost, "/v1/responses", bytes.NewReader(body)))
	if got.Code != http.StatusOK {
		return fmt.Errorf("the next request is refused: %s\n%s", got.Body, shorten(body))
	}
	return nil
}

// shown wants all that somebody was shown to be in a log.
func (v *view) shown() error {
	for hash, id := range v.w.told {
		if _, there := v.logs[id]; there && !v.items[hash] {
			return fmt.Errorf("session %q: an item was shown, and is in no log", id)
		}
	}
	return nil
}

// delivered wants all that was sent to a session, by its run or from outside, to be in
// its log or to wait for it: once. D1
func (v *view) delivered(ctx context.Context, store session.Inbox) error {
	times := map[[2]string]int{}
	count := func(id string, b session.Body) {
		if in, ok := b.(session.InputItem); ok {
			if m, err := item.As[item.Message](in.Item); err == nil {
				times[[2]string{id, m.Content.Display()}]++
			}
		}
	}
	for id, log := range v.logs {
		for _, e := range log {
			count(id, e.Body)
		}
		for d, err := range store.Deliveries(ctx, id) {
			if err != nil {
				return err
			}
			for _, b := range d.Bodies {
				count(id, b)
			}
		}
	}
	for text, id := range v.w.sent {
		if _, there := v.logs[id]; there && times[[2]string{id, text}] == 0 {
			return fmt.Errorf("session %q: %q was sent to it, and is nowhere", id, text)
		}
	}
	for of, n := range times {
		if n > 1 && (strings.HasPrefix(of[1], "From outside") || strings.HasPrefix(of[1], "By the way")) {
			return fmt.Errorf("session %q: %q is there %d times", of[0], of[1], n)
		}
	}
	return nil
}

// blobs wants what was put to be there. J4
func (v *view) blobs(ctx context.Context, store session.Blobs) error {
	for text, id := range v.w.blobs {
		if _, there := v.logs[id]; !there {
			continue
		}
		var hash session.Hash
		if _, err := fmt.Sscanf(text, "%x", (*hashText)(&hash)); err != nil {
			return err
		}
		blob, _, err := store.OpenBlob(ctx, hash)
		if err != nil {
			return fmt.Errorf("session %q: what was put is gone: %w", id, err)
		}
		data, err := io.ReadAll(blob)
		if err := errors.Join(err, blob.Close()); err != nil {
			return err
		}
		if sha256.Sum256(data) != hash {
			return fmt.Errorf("session %q: what was put is garbled", id)
		}
	}
	return nil
}

// hashText reads a hash in hexadecimal.
type hashText session.Hash

func (h *hashText) Scan(s fmt.ScanState, _ rune) error {
	var b []byte
	if _, err := fmt.Fscanf(s, "%x", &b); err != nil {
		return err
	}
	copy(h[:], b)
	return nil
}

// listed wants the catalog to know all sessions that have entries, and no
// others that somebody would have had to write to.
func (v *view) listed(ctx context.Context, store session.Catalog) error {
	listed := map[string]int64{}
	for info, err := range store.List(ctx, session.Query{Archived: true, Nested: true}) {
		if err != nil {
			return err
		}
		if _, twice := listed[info.ID]; twice {
			return fmt.Errorf("session %q is listed twice", info.ID)
		}
		listed[info.ID] = info.Entries
	}
	for id, n := range listed {
		if n != int64(len(v.logs[id])) {
			return fmt.Errorf("session %q is listed with %d entries and has %d", id, n, len(v.logs[id]))
		}
	}
	for id := range v.logs {
		if _, there := listed[id]; !there {
			return fmt.Errorf("session %q has a log and is not listed", id)
		}
	}
	return nil
}

// locks wants the locks of all who were killed to be free. The server of a
// database may take a moment to see that they are gone. J2
func (v *view) locks(ctx context.Context, store session.Locker) error {
	for id := range v.logs {
		unlock, err := store.Lock(ctx, id)
		for patience := 0; errors.Is(err, session.ErrBusy) && isPostgres(v.w.place) && patience < 100; patience++ {
			time.Sleep(50 * time.Millisecond)
			unlock, err = store.Lock(ctx, id)
		}
		if err == nil {
			err = unlock()
		}
		if err != nil {
			return fmt.Errorf("session %q: nobody has its lock: %w", id, err)
		}
	}
	return nil
}

// ended looks once more when all sessions have come to their ends, and counts.
func (w *world) ended(ctx context.Context) error {
	store, err := openStore(ctx, w.place, 0, 0, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := store.Sweep(ctx, false); err != nil {
		return err
	}
	v, err := w.inspect(ctx, store)
	if err == nil && !isPostgres(w.place) {
		err = whole(ctx, w.place)
	}
	if err != nil {
		return err
	}
	w.Sessions, w.Told, w.Calls, w.Items, w.Ran = len(v.logs), len(w.told), 0, len(v.items), len(v.ran)
	for id, log := range v.logs {
		if err := v.closed(id, log); err != nil {
			return fmt.Errorf("session %q: %w", id, err)
		}
	}
	for _, r := range v.ran {
		if r.Began > 1 {
			w.Repeated++
		}
	}
	return nil
}

// closed wants a session that nobody works at to have no open call but those
// that wait for somebody, and counts its calls.
func (v *view) closed(id string, log []session.Entry) error {
	var view session.View
	for _, e := range log {
		view.Apply(e)
		v.w.kinds[session.Kind(e.Body)]++
		if e.Seq <= v.w.witness.Made(id) {
			continue
		}
		switch b := e.Body.(type) {
		case session.OutputItem:
			if b.Item.IsCall() {
				v.w.Calls++
			}
		case session.CallOutput:
			if strings.Contains(b.Item.JSON(), unknown) {
				v.w.Uncertain++
			}
		}
	}
	if strings.Contains(id, "/") || len(log) == 0 {
		return nil // it ends with its call
	}
	for _, c := range view.Open() {
		if c.Started && c.Paused == "" && !c.Asked {
			return fmt.Errorf("call %s is still open", c.CallID)
		}
	}
	return nil
}
