// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
)

// job is a response that is being made. Only the backend uses the writer; data that
// others read is guarded by mu.
type job struct {
	s      *Server
	r      *Request
	w      *Writer
	to     func(api.Event) error // receives events immediately, or nil
	flush  func() error          // sends the events that to holds back, or nil
	ctx    context.Context       // of the backend
	cancel context.CancelFunc    // for responses that do not end with their client
	id     string                // set when the response begins
	header http.Header           // likewise: of the backend
	scribe *scribe               // keeps the events, or nil
	old    bool                  // the current event was sent before
	resume Resumer               // makes the rest of a response that began elsewhere, or nil
	key    *keyed                // of the request, or nil
	done   func(Outcome)         // of Server.Admit, until it is called
	// progress keeps what there is of the response while it is made, or is nil.
	progress ProgressStore
	waits    *itemEnd // of an item that is not stored yet: it was not sent
	flushes  bool     // the backend calls Flush when it begins to wait

	accepted bool          // the response has begun: a failure is no longer a refusal
	began    chan struct{} // closed at that time
	first    *api.Response // the response at that time

	settling sync.Mutex // held while the response ends; before mu

	mu      sync.Mutex
	storing *write        // of the beginning, which the client may know of before; or nil
	keep    bool          // the store has the response
	rec     StoredObject  // the current state
	ended   bool          // final: nothing more changes
	alone   bool          // it does not become a part of its conversation
	owed    bool          // the store refused the end; guarded by the server's mu too
	changed chan struct{} // closed at the next change; nil if nobody waits for it
}

// newJob returns a job that has not begun: the response begins when the backend
// begins it.
func (s *Server) newJob(r *Request) (*job, *Error) {
	base, err := s.base(r, s.newID("resp_"))
	if err != nil {
		s.release(r)
		return nil, Invalid("", "", "%v", err)
	}
	j := &job{s: s, r: r, began: make(chan struct{}), keep: s.keeps(r.Request)}
	j.rec = StoredObject{Previous: r.previous, Before: len(r.Items) - r.Own, Input: r.own(), Background: isSet(r.Background), Streamed: s.records(r) != nil}
	switch {
	case r.previous == "": // what it continues, if anything, is not stored
		j.rec.Before, j.rec.Input = 0, r.Items
	case r.conversation != "":
		j.rec.History = r.Items[:j.rec.Before]
	}
	j.w = NewWriter(base, j.emit)
	j.w.StreamID, j.w.clock, j.w.flush, j.w.unread = r.streamID, s.now, j.passOn, j.unread
	if p, ok := s.store().(ProgressStore); ok && j.keep && s.keeper() == nil {
		j.progress = p
	}
	j.w.admit = func(id string) (string, error) { return s.admit(j, id) }
	return j, nil
}

// run calls the backend to make a response. It returns the reason if the request was
// refused, or nil once the response has begun.
func (s *Server) run(ctx context.Context, j *job) *Error {
	defer s.leave(j)
	j.ctx = ctx
	var wrong *Error
	j.r.Resumed = j.keep && j.rec.Background && s.resumer() != nil
	if j.done, wrong = s.letIn(ctx, j.r); wrong != nil {
		return wrong
	}
	if p, ok := s.store().(Preparer); ok && j.keep && j.resume == nil {
		rec := j.rec
		rec.Response = j.w.beginning()
		defer p.Prepare(ctx, rec)()
	}
	err := cmp.Or(s.respond(j), j.w.err)
	err = cmp.Or(j.beginningStored(), err)
	defer func() { j.count(err) }()
	if err == nil && !j.w.Ended() {
		err = j.w.Complete()
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrLeft):
		j.quit()
		return nil
	case errors.Is(err, ErrCancelled):
		if j.accepted {
			s.stopOrQuit(j)
		}
		return nil
	case ctx.Err() != nil || errors.Is(err, errGone):
		if j.accepted {
			s.abandon(j)
		}
		return nil
	}
	told := s.failure(err)
	if !j.accepted {
		return told
	}
	if j.w.err == nil {
		j.w.breakOff() // the client may have read of it
	}
	j.w.reopen() // the failure is sent without the part that could not be written
	if j.w.Fail(cmp.Or(told.Code, serverError), told.Message) != nil {
		s.stopOrQuit(j)
	}
	return nil
}

// respond calls the backend. A panic in the backend must not end the program.
func (s *Server) respond(j *job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the backend: %v\n%s", p, debug.Stack())
		}
	}()
	if j.resume != nil {
		return nils.Err(j.resume.Resume(j.ctx, j.rec.ID(), j.w))
	}
	own := *j.r
	own.Items = slices.Clone(own.Items) // the response is stored with these, whatever the backend does
	return nils.Err(s.Backend.Respond(j.ctx, &own, j.w))
}

// admit determines the id of a response. An id that the backend asked for may belong
// to another response: then it gets the first number that no response has.
func (s *Server) admit(j *job, wish string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.id = cmp.Or(wish, j.w.response.ID)
	if !j.keep {
		return j.id, nil
	}
	if s.keeper() != nil {
		wish = "" // its ids are unique
	}
	for wish != "" {
		taken, err := s.taken(j.ctx, j.id)
		if err != nil {
			return "", err
		}
		if !taken {
			break
		}
		s.repeated++
		j.id = fmt.Sprintf("%s_%d", wish, s.repeated)
	}
	if s.jobs == nil {
		s.jobs = map[string]*job{}
	}
	s.jobs[j.id] = j
	return j.id, nil
}

// taken reports whether an id belongs to a response. The caller must hold mu. If the
// store cannot tell, the id must not be used: a response may be overwritten.
func (s *Server) taken(ctx context.Context, id string) (bool, error) {
	if s.jobs[id] != nil {
		return true, nil
	}
	_, err := s.store().Get(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// unread reports whether nobody reads an event of a type: the client waits for the whole response, and
// the job needs only the events that change what is stored of it.
func (j *job) unread(t api.EventType) bool {
	switch t {
	case api.EventCreated, api.EventQueued, api.EventInProgress, api.EventItemDone:
		return false
	}
	return j.accepted && j.to == nil && !j.replays() && j.waits == nil && j.ctx.Err() == nil && !api.Event{Type: t}.Terminal()
}

// emit receives an event of the writer. It updates the stored state before it sends
// the event, so that a client can rely on what it read.
func (j *job) emit(ev api.Event) error {
	if err := j.ctx.Err(); err != nil {
		return err
	}
	j.old = j.w.again(ev)
	var err error
	if j.w.note != "" {
		j.mu.Lock()
		j.rec.Note = j.w.note
		j.mu.Unlock()
	}
	if !ev.Terminal() {
		if err := j.tellItem(); err != nil {
			return err
		}
	}
	if j.accepted && ev.Type != api.EventInProgress {
		if err := j.beginningStored(); err != nil {
			return err
		}
	}
	switch {
	case !j.accepted:
		var store func()
		if store, err = j.begin(ev); err == nil {
			defer store()
		}
	case ev.Terminal():
		return j.end(ev)
	case ev.Type == api.EventItemDone && j.progress != nil && j.scribe == nil:
		if j.waits = (&itemEnd{ev, j.w.state()}); j.flushes {
			return nil
		}
		return j.tellItem()
	default:
		j.note(ev)
	}
	if err != nil {
		return err
	}
	if err := j.send(ev); err != nil || ev.Type != api.EventInProgress || !j.flushes || j.flush == nil || j.old {
		return err
	}
	if err := j.flush(); err != nil { // the client learns at once that the response has begun
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// send sends an event to the client that waits, if there is one.
func (j *job) send(ev api.Event) error {
	if j.to == nil || j.old {
		return nil
	}
	if err := j.to(ev); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// end handles the last event. An item whose end still waits is stored with the response.
func (j *job) end(ev api.Event) error {
	if j.keep && j.flush != nil { // the client does not wait for the store to read the events before
		if err := j.flush(); err != nil && j.progress == nil { // otherwise the end is stored all the same
			return fmt.Errorf("%w: %w", errGone, err)
		}
	}
	last := []api.Event{ev}
	if j.waits != nil {
		last = []api.Event{j.waits.event, ev}
	}
	if err := j.s.settle(j, j.final(ev), func() { j.count(nil) }, last...); err != nil {
		return err
	}
	j.waits = nil
	for _, ev := range last {
		if err := j.send(ev); err != nil {
			return err
		}
	}
	return nil
}

// itemEnd is the event that ends an item, and the response at that time.
type itemEnd struct {
	event    api.Event
	response *api.Response
}

// tellItem stores the item whose end waits, and sends its event: what a client has seen the
// end of is there after a crash.
func (j *job) tellItem() error {
	e := j.waits
	if e == nil {
		return nil
	}
	it, err := e.event.Item()
	if err != nil {
		return err
	}
	j.mu.Lock()
	keep := j.keep
	j.mu.Unlock()
	if keep {
		err = j.progress.AddOutput(j.ctx, j.id, slices.Index(e.response.Output, it), it)
	}
	if err != nil && !errors.Is(err, ErrNotFound) { // it may have been deleted meanwhile
		return err // the item waits for the end of the response
	}
	j.waits = nil
	j.noteAs(e.event, e.response)
	return j.send(e.event)
}

// passOn sends what waits. The backend is about to wait for something.
func (j *job) passOn() error {
	j.flushes = true
	if err := j.tellItem(); err != nil {
		return err
	}
	if j.flush == nil {
		return nil
	}
	if err := j.flush(); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// final returns the response at its last event. A bare error event leaves the
// response open, but nothing follows it: the response has failed.
func (j *job) final(ev api.Event) *api.Response {
	if ev.Type == api.EventError {
		j.w.failed(ev.Text("code"), ev.Text("message"))
	}
	return j.w.state()
}

// begin handles the first event. A response that cannot be stored is refused. But a client that
// reads a stream learns that the response has begun while a [Preparer] still stores it, and
// nothing that the model says before it is stored: store begins to do that.
func (j *job) begin(ev api.Event) (store func(), _ error) {
	j.first, j.header = j.w.state(), j.w.Header
	store = func() {}
	if j.keep && j.resume == nil {
		j.rec.Response = j.first
		if _, prepares := j.s.store().(Preparer); prepares && j.to != nil && j.flush != nil {
			store = j.storeSoon(j.rec)
		} else if err := j.storeBeginning(j.ctx, j.rec); err != nil {
			return nil, err
		}
		j.rec.History = nil
	}
	j.note(ev)
	j.accepted = true
	close(j.began)
	j.begun()
	return store, nil
}

// storeSoon returns a function that begins to store a response that begins. Whoever asks for the
// response waits from now on.
func (j *job) storeSoon(rec StoredObject) func() {
	w := &write{done: make(chan struct{})}
	j.mu.Lock()
	j.storing = w
	j.mu.Unlock()
	return func() {
		go func() {
			defer close(w.done)
			w.err = j.storeBeginning(j.ctx, rec)
		}()
	}
}

// storeBeginning stores a response that begins.
func (j *job) storeBeginning(ctx context.Context, rec StoredObject) error {
	err := j.key.named(ctx, j.id)
	if err == nil {
		err = j.s.store().Put(ctx, rec)
	}
	if !errors.Is(err, ErrNotFound) || rec.Previous == "" {
		return err
	}
	// What it continues was deleted or changed since it was read.
	rec.Previous, rec.Before, rec.Input = "", 0, j.r.Items
	if err = j.s.store().Put(ctx, rec); err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.rec.Previous, j.rec.Before, j.rec.Input = rec.Previous, rec.Before, rec.Input
	}
	return err
}

// write is a write to the store that may still go on.
type write struct {
	done chan struct{} // closed when it has ended
	err  error         // of the write, from then on
}

// beginningStored waits until the beginning of the response is stored. If it could not be, it
// returns the error, once: the response fails, and nothing of it is stored.
func (j *job) beginningStored() error {
	w := j.beginning()
	if w == nil {
		return nil
	}
	<-w.done // the write ends with j.ctx
	if w.err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.storing, j.keep = nil, false
	}
	return w.err
}

// awaitStored waits until the beginning of the response is stored or could not be.
func (j *job) awaitStored(ctx context.Context) error {
	w := j.beginning()
	if w == nil {
		return nil
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beginning returns the write of the beginning, or nil.
func (j *job) beginning() *write {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.storing
}

// note updates the record and wakes followers.
func (j *job) note(ev api.Event) {
	var r *api.Response
	switch ev.Type {
	case api.EventCreated, api.EventInProgress, api.EventItemDone:
		r = j.w.state()
	}
	j.noteAs(ev, r)
}

// noteAs is note with the response at the time of the event, or nil if it is as before.
func (j *job) noteAs(ev api.Event, r *api.Response) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return
	}
	// What is written again was there before.
	if r != nil && (j.resume == nil || !ended(j.rec.Response) && len(r.Output) >= len(j.rec.Response.Output)) {
		j.rec.Response = r
	}
	if j.replays() && !j.old {
		j.add(ev)
	}
	j.wake()
}

// quit ends the work on a response that another server goes on with.
func (j *job) quit() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	j.finish(false)
	j.wake()
}

func (j *job) wake() {
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

// settle ends a response: it stores the response, adds it to its conversation, calls
// free, releases the conversation, and sends the last event to followers. Only the first
// end has an effect. Here, nobody reads of the end before free has returned, which may
// itself read the response.
//
// If the store refuses a success, settle returns the error, and the response can
// still fail: nobody has read of the success. A failure, a cancellation, or a success that is in its
// conversation already, is final all the same if the store refuses it. The job then stays, so that this end
// can be read and stored later. But a [Resumer] goes on with a background response that it does not know
// to be cancelled: settle returns the error of that, too.
func (s *Server) settle(j *job, final *api.Response, free func(), last ...api.Event) error {
	j.settling.Lock()
	defer j.settling.Unlock()
	rec, owed, err := s.storeEnd(j, final, last)
	if err != nil {
		return err
	}
	free()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rec.Response, j.ended = rec.Response, true
	if c := j.scribe; c == nil {
		j.rec.Events = rec.Events
	} else if c.whole {
		j.rec.Events, c.writing, c.pending, c.done = rec.Events, nil, nil, true
	} else if !j.old {
		j.add(last...)
	}
	j.finish(true)
	s.owe(j, owed)
	s.leave(j)
	j.wake()
	return nil
}

// storeEnd stores the end of a response. owed means that the store refused it, and that it is
// final all the same.
func (s *Server) storeEnd(j *job, final *api.Response, last []api.Event) (rec StoredObject, owed bool, _ error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return rec, false, ErrCancelled
	}
	rec = j.rec
	rec.Response = final
	switch c := j.scribe; {
	case !j.replays():
	case c == nil:
		rec.Events = append(slices.Clip(rec.Events), last...)
	case c.whole: // the end is stored with all events
		rec.Events = slices.Concat(rec.Events, c.writing, c.pending, last)
	}
	if joined, err := s.save(j, rec); err != nil {
		goesOn := final.Status == item.StatusCancelled && rec.Background && s.resumer() != nil
		if goesOn || joins(final) && (!joined || errors.Is(err, ErrEnded)) || errors.Is(err, ErrLeft) {
			return rec, false, err
		}
		s.logf("antiphon server: the end of %s: %v", j.id, err)
		owed = true
	}
	if c := j.scribe; c != nil && c.whole {
		c.stored = true
	}
	return rec, owed, nil
}

// save stores a response that has ended, and before that adds it to its conversation if it belongs
// there. So an end that others can read never changes, and a crash between the two loses nothing of
// the conversation.
func (s *Server) save(j *job, rec StoredObject) (joined bool, _ error) {
	if joins(rec.Response) && !j.alone && j.r.conversation != "" && s.keeper() == nil {
		if err := s.grow(j, rec); err != nil {
			return false, err
		}
		joined = true
	}
	return joined, s.keep(j, rec)
}

// owe records whether the store lacks the end of a response.
func (s *Server) owe(j *job, owed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.owed = owed
}

// repay stores the end of a response that the store has refused before, unless another server
// has stored one.
func (s *Server) repay(j *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.owed {
		return
	}
	if err := s.keep(j, j.rec); err != nil && !errors.Is(err, ErrEnded) {
		return
	}
	s.owe(j, false)
	s.leave(j)
}

// leave releases the resources of a response: its conversation and its entry among
// the jobs, which stays while the store lacks the end. It may be called more than
// once.
func (s *Server) leave(j *job) {
	s.release(j.r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[j.id] == j && !j.owed {
		delete(s.jobs, j.id)
	}
}

// keep stores a response that has ended. A response that was cancelled because its
// client disconnected is removed, unless the store keeps what was complete: see abandon.
func (s *Server) keep(j *job, rec StoredObject) error {
	ctx := context.WithoutCancel(j.ctx)
	switch {
	case !j.keep:
		return nil
	case rec.Response.Status == item.StatusCancelled && !rec.Background && s.keeper() == nil && j.progress == nil:
		if err := s.store().Delete(ctx, j.id); !errors.Is(err, ErrNotFound) {
			return err
		}
		return nil
	}
	if !isSet(j.r.Stream) || j.scribe != nil && !j.scribe.whole || !rec.Background {
		rec.Events = nil
	}
	return s.store().Put(ctx, rec)
}

// stop ends a response in its current state, unless it has ended. It fails if the response goes on.
func (s *Server) stop(j *job) error {
	j.mu.Lock()
	r := *j.rec.Response
	j.mu.Unlock()
	r.Status = item.StatusCancelled
	if err := s.settle(j, &r, func() {}); err != nil && !errors.Is(err, ErrCancelled) {
		return fmt.Errorf("cancelling %s: %w", j.id, err)
	}
	if j.cancel != nil {
		j.cancel()
	}
	return nil
}

// abandon ends a response whose client has left, or whose server stops. If the store keeps what is complete, nothing of it is lost, and it can be continued. It does not become a
// part of its conversation: a client that does not know of it asks the same again.
func (s *Server) abandon(j *job) {
	if j.progress == nil || j.rec.Background {
		s.stopOrQuit(j)
		return
	}
	j.mu.Lock()
	j.alone = true
	j.mu.Unlock()
	who := "client left"
	if j.key != nil { // it does not end with its client
		who = "server stopped"
	}
	final := j.w.cut(serverError, "The "+who+" before the response was complete. What was complete is kept, and the response can be continued.")
	if err := s.settle(j, final, func() {}); err != nil && !errors.Is(err, ErrCancelled) {
		s.logf("antiphon server: the end of %s, whose client has left: %v", j.id, err)
		s.stopOrQuit(j)
	}
}

// stopOrQuit ends a response whose backend has returned. If the store refuses that, it is left as it is.
func (s *Server) stopOrQuit(j *job) {
	if err := s.stop(j); err != nil {
		s.logf("antiphon server: %v", err)
		j.quit()
	}
}

// record returns the current state of the response.
func (j *job) record() StoredObject {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rec
}

// follow sends the events after event number after, each as it occurs, until the
// last one or until the response is cancelled. What has ended is sent to its end, also when ctx
// is done: the server may stop.
func (j *job) follow(ctx context.Context, after int, send func(api.Event) error) error {
	for next := after + 1; ; {
		gone := ctx.Err()
		j.mu.Lock()
		if j.changed == nil {
			j.changed = make(chan struct{})
		}
		events, ended, changed := j.rec.Events, j.told(), j.changed
		j.mu.Unlock()
		if gone != nil && !ended {
			return gone
		}
		for ; next < len(events); next++ {
			if err := send(events[next]); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// errGone stops the backend of a response whose client is gone.
var errGone = errors.New("the client is gone")
