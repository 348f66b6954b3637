// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/nils"
)

// Delivery is a message to a session from a process that does not write to it: input,
// an answer about a call, or a request to stop. See [Inbox].
type Delivery struct {
	Delivered
	// Bodies are recorded together and in order. Each is an [InputItem], an [Approval]
	// with the call's id and number, or a [StopAsked].
	Bodies []Body
	// Number orders the deliveries of a session. The store sets it.
	Number int64
}

// Delivered records that a delivery was taken into the log: the Entries entries after
// this one are its bodies.
type Delivered struct {
	// Key identifies the delivery within the session. It is chosen by the sender, who
	// may deliver again if it does not know the outcome: of two deliveries with one key
	// the second has no effect. It is text of 1 to 256 characters without control
	// characters, such as the id of a message in the program that sends it.
	Key string
	// By names the sender, and From the means, such as "slack" or "sessions say". Both
	// are claims of the program that delivers.
	By, From string
	// Shown is the SHA-256, in hex, of the text that the sender had before them, or "".
	Shown string
	// Queued means that the input waits until the run has its answer, or begins the next run if that
	// run is stopped. Otherwise it is part of the next request.
	Queued bool
	// Entries is the number of entries of the delivery. It is 0 for one that could not
	// be used, and Problem then says why, for its sender.
	Entries int
	Problem string
}

// Receipt says what became of a [Delivery].
type Receipt struct {
	// Number is the delivery's number in its session.
	Number int64
	// Taken is the number of its [Delivered] in the log, or 0 while it waits.
	Taken int64
}

// Inbox is implemented by a [Store] that keeps deliveries for sessions, so that
// processes that do not write to a session can speak to it, whether it runs or not.
//
// The writer of the session takes a delivery into the log by an append that contains
// its [Delivered]; the store removes the delivery from the inbox in the transaction
// of that append. So it is in the log once, whatever happens to the writer. A fork
// does not get the deliveries of its parent.
type Inbox interface {
	Store
	// Deliver keeps a delivery for an existing session and returns when it is durable.
	// If the session had a delivery with the same key, whether it still waits or not,
	// nothing is kept and the receipt is that of the first one; if their contents differ,
	// the error wraps [ErrKeyUsed]. If there is no such session, it is [ErrNotFound].
	// [CheckDelivery] says which deliveries are refused. If too much waits, it wraps
	// [ErrInboxFull]: see [Backlog.Room].
	Deliver(ctx context.Context, id string, d Delivery) (Receipt, error)
	// Deliveries yields the deliveries that wait, in the order of their arrival.
	Deliveries(ctx context.Context, id string) iter.Seq2[Delivery, error]
	// Notify calls arrived after each delivery to the session that comes after Notify has
	// returned, from any process, until stop is called. It may call arrived more often, or
	// once for several deliveries. Arrived is called from goroutines of the store and of
	// those who deliver, and must not block or call the store. A stop that is nil does nothing.
	Notify(id string, arrived func()) (stop func())
}

// ErrKeyUsed means that the key of a [Delivery] belongs to another one.
var ErrKeyUsed = errors.New("another delivery to the session has this key")

// ownKeys begins the keys of [OwnKey].
const ownKeys = "antiphon: "

// OwnKey returns the key of a delivery that a program makes by itself, such as the message of a
// schedule. Nobody who chooses keys may choose such a one, because the program's delivery would
// then be taken for a repetition: see [CheckKey]. format and args are those of [fmt.Sprintf].
func OwnKey(format string, args ...any) string { return ownKeys + fmt.Sprintf(format, args...) }

// CheckKey returns an error for a key that somebody else has chosen and that begins as those of
// [OwnKey]. What else a key must be is checked by [CheckDelivery].
func CheckKey(key string) error {
	if strings.HasPrefix(key, ownKeys) {
		return fmt.Errorf("keys that begin with %q belong to the program's own deliveries: choose another one", ownKeys)
	}
	return nil
}

// ErrDeliveryWaits means that [DeleteIfTaken] did not delete a session, because words wait in its
// inbox.
var ErrDeliveryWaits = errors.New("what somebody said waits in the inbox of the session: run it, or delete it by its name")

// TakenDeleter is implemented by an [Inbox] that looks into it and deletes the session in one
// transaction, so that no delivery arrives between the two.
type TakenDeleter interface {
	Inbox
	// DeleteIfTaken is like the package function [DeleteIfTaken].
	DeleteIfTaken(ctx context.Context, id string) error
}

// DeleteIfTaken deletes a session that nobody asked to delete, for example because it is old. If
// something else than requests to stop waits in its inbox or in that of a session that
// would be deleted with it, nothing is deleted, and the error wraps [ErrDeliveryWaits]. If the store is not a
// [TakenDeleter], only the inbox of the session itself is looked at, and a delivery that arrives at the same time may be deleted.
func DeleteIfTaken(ctx context.Context, in Catalog, id string) error {
	if nils.Is(in) {
		return errors.New("session: DeleteIfTaken needs a store")
	}
	if exact, ok := in.(TakenDeleter); ok {
		return exact.DeleteIfTaken(ctx, id)
	}
	if box, ok := in.(Inbox); ok {
		for d, err := range nils.Each(box, "Deliveries", box.Deliveries(ctx, id)) {
			if err = cmp.Or(err, AllTaken(id, d)); err != nil {
				return err
			}
		}
	}
	return in.Delete(ctx, id)
}

// AllTaken is for stores. It returns an error that wraps [ErrDeliveryWaits] if one of the deliveries that
// wait for a session has something other than requests to stop.
func AllTaken(id string, waiting ...Delivery) error {
	for _, d := range waiting {
		if slices.ContainsFunc(d.Bodies, func(b Body) bool { _, stops := b.(StopAsked); return !stops }) {
			return fmt.Errorf("session %q: %w", id, ErrDeliveryWaits)
		}
	}
	return nil
}

// ErrInboxFull means that so much waits for a session that there is no room for a [Delivery].
var ErrInboxFull = errors.New("too much waits in the inbox of the session: run the session, so that it takes what waits, and deliver again")

// What waits for a session is bounded, because whoever runs the session reads all of it. The spare room is for answers
// about calls, requests to stop, and messages of the program, without which a run may not begin.
const (
	mostWaiting      = 1000
	mostWaitingBytes = 96 << 20
	spareWaiting     = 1000
	spareBytes       = 32 << 20
	// smallBytes is the size for which there is room however much waits, if its number is not too large.
	smallBytes = spareBytes / spareWaiting
)

// Backlog says how much waits in the inbox of a session.
type Backlog struct {
	Deliveries int
	Bytes      int64 // of all of them, in the form of [AppendDelivery]
}

// Room returns an error that wraps [ErrInboxFull] if the inbox has no room for d. size is the length of d
// in the form of [AppendDelivery]. The limits are 1000 deliveries and 96 MiB. For a delivery without input
// (an answer, a request to stop, a system or developer message) they are 2000 deliveries and 128 MiB, and
// the limit in bytes does not apply if size is at most 32 KiB. An empty inbox accepts any delivery. A store
// calls Room after it has found that the key is new.
func (b Backlog) Room(d Delivery, size int64) error {
	most, bytes := mostWaiting, int64(mostWaitingBytes)
	if !slices.ContainsFunc(d.Bodies, isInput) {
		most, bytes = most+spareWaiting, max(bytes+spareBytes, b.Bytes+smallBytes)
	}
	if b.Deliveries > 0 && (b.Deliveries >= most || size > bytes-b.Bytes) {
		return ErrInboxFull
	}
	return nil
}

// isInput reports whether a body is input, and not a message of the program.
func isInput(b Body) bool {
	in, ok := b.(InputItem)
	return ok && !in.Item.Instructs()
}

// Deliver leaves a delivery in the inbox of the session: see [Inbox]. The error wraps
// [errors.ErrUnsupported] if the store is not an Inbox. Unlike most methods, Deliver
// may be used beside a writer of the session.
func (s *Session) Deliver(ctx context.Context, d Delivery) (Receipt, error) {
	if err := s.usable(); err != nil {
		return Receipt{}, err
	}
	box, ok := s.store.(Inbox)
	if !ok {
		return Receipt{}, fmt.Errorf("session %q: its store keeps no deliveries: %w", s.id, errors.ErrUnsupported)
	}
	r, err := box.Deliver(ctx, s.id, d)
	if err != nil {
		return r, fmt.Errorf("session %q: %w", s.id, err)
	}
	return r, nil
}

// CheckDelivery returns an error for a delivery that a store must refuse.
func CheckDelivery(d Delivery) error {
	const most = 256
	switch {
	case d.Key == "":
		return errors.New("a delivery needs a key: the same for each attempt to deliver it")
	case !utf8.ValidString(d.Key) || utf8.RuneCountInString(d.Key) > most || strings.ContainsFunc(d.Key, unicode.IsControl):
		return fmt.Errorf("the key of a delivery is text of at most %d characters without control characters", most)
	case len(d.Bodies) == 0:
		return errors.New("the delivery is empty")
	case d.Problem != "" || d.Entries != 0:
		return errors.New("Entries and Problem of a delivery are set when it is taken")
	}
	for i, b := range d.Bodies {
		switch b := b.(type) {
		case InputItem, StopAsked:
		case Approval:
			if b.CallID == "" || b.Number < 1 {
				return fmt.Errorf("body %d of the delivery: an approval needs the id and the number of its call", i+1)
			}
		default:
			return fmt.Errorf("body %d of the delivery: a %T cannot be delivered, only input, an approval or a request to stop", i+1, b)
		}
		if problem := checkBody(b); problem != "" {
			return fmt.Errorf("body %d of the delivery: %s", i+1, problem)
		}
	}
	return nil
}

// entries returns the delivery in the form of a log of its own: its [Delivered], then
// its bodies. Stores keep it as these lines.
func (d Delivery) entries() []Entry {
	list := []Entry{{Seq: 1, Body: d.Delivered}}
	for i, b := range d.Bodies {
		list = append(list, Entry{Seq: int64(i) + 2, Body: b})
	}
	return list
}

// AppendDelivery appends a delivery in the form that stores keep: lines like those of
// a log, the [Delivered] first. [ParseDelivery] reads them.
func AppendDelivery(dst []byte, d Delivery) (_ []byte, err error) {
	for _, e := range d.entries() {
		if dst, err = AppendEntry(dst, e); err != nil {
			return nil, err
		}
		dst = append(dst, '\n')
	}
	return dst, nil
}

// ParseDelivery reads what [AppendDelivery] wrote.
func ParseDelivery(lines []byte) (d Delivery, err error) {
	for line := range strings.Lines(string(lines)) {
		e, err := ParseEntry([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			return Delivery{}, err
		}
		if head, ok := e.Body.(Delivered); ok && e.Seq == 1 {
			d.Delivered = head
			continue
		}
		d.Bodies = append(d.Bodies, e.Body)
	}
	return d, CheckDelivery(d)
}

// KeyHash returns the name under which a store finds the delivery with a key.
func KeyHash(key string) Hash { return Hash(sha256.Sum256([]byte("delivery " + key))) }

// Takes yields the key of each delivery that the entries take from the inbox, with
// the number of its Delivered entry.
func Takes(entries []Entry) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for _, e := range entries {
			if d, ok := e.Body.(Delivered); ok && !yield(d.Key, e.Seq) {
				return
			}
		}
	}
}

// Deliveries yields the deliveries that wait for the session, in the order of their
// arrival. There are none if the store is not an [Inbox]. To take one, append its
// [Delivered] and its bodies.
func (s *Session) Deliveries(ctx context.Context) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		if err := s.usable(); err != nil {
			yield(Delivery{}, err)
			return
		}
		box, ok := s.store.(Inbox)
		if !ok {
			return
		}
		for d, err := range nils.Each(box, "Deliveries", box.Deliveries(ctx, s.id)) {
			if err != nil {
				err = fmt.Errorf("session %q: %w", s.id, err)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Notify calls arrived after each delivery to the session, until stop is called: see
// [Inbox]. It never calls it if the store is not an Inbox. Unlike most methods, it may
// be used beside a writer of the session.
func (s *Session) Notify(arrived func()) (stop func()) {
	if box, ok := s.store.(Inbox); ok {
		stop = box.Notify(s.id, arrived)
	}
	if stop == nil {
		stop = func() {}
	}
	return stop
}

// memoryDelivery is a delivery to a session in memory. Once it is taken, only what is
// needed to recognise it remains.
type memoryDelivery struct {
	Delivery
	size  int64
	sum   Hash
	taken int64
}

// Deliver implements [Inbox].
func (m *Memory) Deliver(_ context.Context, id string, d Delivery) (r Receipt, err error) {
	if err := CheckDelivery(d); err != nil {
		return r, err
	}
	lines, err := AppendDelivery(nil, d)
	if err != nil {
		return r, err
	}
	sum, size := Hash(sha256.Sum256(lines)), int64(len(lines))
	return r, m.change(id, func(s *memorySession) error {
		var waits Backlog
		for _, before := range s.inbox {
			if before.taken == 0 {
				waits.Deliveries++
				waits.Bytes += before.size
			}
			if before.Key != d.Key {
				continue
			}
			if before.sum != sum {
				return fmt.Errorf("%w: %q", ErrKeyUsed, d.Key)
			}
			r = Receipt{Number: before.Number, Taken: before.taken}
			return nil
		}
		if err := waits.Room(d, size); err != nil {
			return err
		}
		d.Number = int64(len(s.inbox)) + 1
		d.Bodies = clonedBodies(d.Bodies)
		s.inbox = append(s.inbox, memoryDelivery{Delivery: d, size: size, sum: sum})
		r.Number = d.Number
		for _, arrived := range m.notify[id] {
			(*arrived)()
		}
		return nil
	})
}

// take removes the deliveries that entries take from the inbox.
func (s *memorySession) take(entries []Entry) {
	for key, seq := range Takes(entries) {
		for i := range s.inbox {
			if d := &s.inbox[i]; d.Key == key && d.taken == 0 {
				d.taken, d.Bodies = seq, nil
			}
		}
	}
}

// waiting returns the deliveries that wait.
func (m *Memory) waiting(id string) []Delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sessions[id]; s != nil {
		return s.waiting()
	}
	return nil
}

func (s *memorySession) waiting() (list []Delivery) {
	for _, d := range s.inbox {
		if d.taken == 0 {
			d.Bodies = clonedBodies(d.Bodies)
			list = append(list, d.Delivery)
		}
	}
	return list
}

func clonedBodies(bodies []Body) []Body {
	bodies = slices.Clone(bodies)
	for i, b := range bodies {
		bodies[i] = cloned(b)
	}
	return bodies
}

// Deliveries implements [Inbox].
func (m *Memory) Deliveries(_ context.Context, id string) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		for _, d := range m.waiting(id) {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Notify implements [Inbox].
func (m *Memory) Notify(id string, arrived func()) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notify == nil {
		m.notify = map[string][]*func(){}
	}
	m.notify[id] = append(m.notify[id], &arrived)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		left := slices.DeleteFunc(m.notify[id], func(f *func()) bool { return f == &arrived })
		if m.notify[id] = left; len(left) == 0 {
			delete(m.notify, id)
		}
	}
}

var _ Inbox = (*Memory)(nil)
