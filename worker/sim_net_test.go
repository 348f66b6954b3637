// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// sim is a network with processes on it. All that a process does to others or to the world
// is an operation: it blocks until the simulator performs it and gives back its answer. The
// simulator does one thing at a time, when all goroutines wait, and draws from one source
// of random numbers. So a seed says everything that happens, in a bubble of package
// synctest.
type sim struct {
	r     *rand.Rand
	begun time.Time
	wake  chan struct{} // has an element if something may have changed
	calm  bool          // nothing fails any more

	ops    []*op // in flight, in the order in which they were sent
	events []event
	made   int // operations and events, to order what happens at one time

	trace uint64                           // of all that has happened
	tell  func(format string, args ...any) // prints it; nil does not

	mu      sync.Mutex
	arrived []*op // not sent yet
	procs   []*proc
}

// proc is a process. Its fields change only while all of its goroutines wait.
type proc struct {
	s    *sim
	name string
	stop context.CancelFunc // asks it to end

	dead   bool     // guarded by s.mu
	frozen bool     // it does nothing
	cut    bool     // the database cannot be reached
	held   []func() // news for a process that is frozen or cut off
	ended  bool     // guarded by s.mu: it has ended by itself
}

// op is something that a process does.
type op struct {
	p     *proc
	what  string
	ctx   context.Context
	do    func() error // nil takes time only
	local bool         // it happens in the process, and not at the database
	n     int

	at       time.Time // when it happens, and then when its answer arrives
	back     time.Duration
	lost     fate
	done     bool
	orphaned bool // nobody waits for the answer
	err      error
	answer   chan error
}

// fate is what the network does with an operation.
type fate int

const (
	arrives fate = iota
	requestLost
	answerLost
	arrivesLate // when its process is no longer cut off
)

// event is something that the simulator does.
type event struct {
	at time.Time
	n  int
	do func()
}

var (
	errKilled = errors.New("this process was killed")
	errNet    = errors.New("the network failed")
)

func newSim(seed uint64) *sim {
	return &sim{r: rand.New(rand.NewPCG(seed, 15)), begun: time.Now(), wake: make(chan struct{}, 1), trace: fnv64}
}

const fnv64 = 14695981039346656037

// log adds a line to the trace.
func (s *sim) log(p *proc, what, how string) {
	at := time.Since(s.begun)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s %s %s", s.trace, at, p.name, what, how)
	s.trace = h.Sum64()
	if s.tell != nil {
		s.tell("%12.6f %-8s %s %s", at.Seconds(), p.name, what, how)
	}
}

func (s *sim) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// process adds a process.
func (s *sim) process(name string) *proc {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &proc{s: s, name: name, stop: func() {}}
	s.procs = append(s.procs, p)
	return p
}

// call does something at the database.
func (p *proc) call(ctx context.Context, what string, do func() error) error {
	return p.wait(&op{p: p, what: what, ctx: ctx, do: do})
}

// here does something in the process, or at a service that is never cut off.
func (p *proc) here(ctx context.Context, what string, do func() error) error {
	return p.wait(&op{p: p, what: what, ctx: ctx, do: do, local: true})
}

func (p *proc) wait(o *op) error {
	o.answer = make(chan error, 1)
	p.s.mu.Lock()
	if p.dead {
		p.s.mu.Unlock()
		return errKilled
	}
	p.s.arrived = append(p.s.arrived, o)
	p.s.mu.Unlock()
	defer context.AfterFunc(o.ctx, p.s.stir)()
	p.s.stir()
	return <-o.answer
}

// after does something after a time.
func (s *sim) after(d time.Duration, do func()) {
	s.made++
	s.events = append(s.events, event{time.Now().Add(d), s.made, do})
}

// between draws a time.
func (s *sim) between(from, to time.Duration) time.Duration {
	return from + time.Duration(s.r.Int64N(int64(to-from)))
}

// one reports true one time in n.
func (s *sim) one(n int) bool { return s.r.IntN(n) == 0 }

// delay draws how long something takes: mostly not long.
func (s *sim) delay() time.Duration {
	switch n := s.r.IntN(100); {
	case s.calm || n < 85:
		return s.between(200*time.Microsecond, 8*time.Millisecond)
	case n < 97:
		return s.between(8*time.Millisecond, time.Second)
	default:
		return s.between(time.Second, 15*time.Second)
	}
}

// send gives the operations that processes have begun their fates. Goroutines run in any
// order, so those that have arrived at one time are put in order first.
func (s *sim) send() {
	s.mu.Lock()
	var list, frozen []*op
	for _, o := range s.arrived {
		if o.p.frozen {
			frozen = append(frozen, o)
		} else {
			list = append(list, o)
		}
	}
	s.arrived = frozen
	s.mu.Unlock()
	slices.SortStableFunc(list, func(a, b *op) int { return cmp.Or(cmp.Compare(a.p.name, b.p.name), cmp.Compare(a.what, b.what)) })
	for _, o := range list {
		s.made++
		o.n, o.at, o.back = s.made, time.Now().Add(s.delay()), s.delay()
		if n := s.r.IntN(60); !s.calm && !o.local && n < 2 {
			o.lost = []fate{requestLost, answerLost}[n]
		}
		s.ops = append(s.ops, o)
	}
}

// give gives back an answer.
func (s *sim) give(o *op, err error, how string) {
	s.log(o.p, o.what, how)
	o.err, o.orphaned = err, true
	o.answer <- err
}

// cancelled gives back one of the operations whose context has ended, and reports whether
// there was one: goroutines that go on side by side could do so in any order. What is on
// its way to the database may happen nevertheless.
func (s *sim) cancelled() bool {
	for _, o := range s.ops {
		if o.orphaned || o.p.frozen || o.ctx.Err() == nil {
			continue
		}
		if !o.done && (o.local || s.one(2)) {
			o.done = true
		}
		s.give(o, context.Cause(o.ctx), "cancelled")
		s.ops = slices.DeleteFunc(s.ops, func(o *op) bool { return o.done && o.orphaned })
		return true
	}
	return false
}

// stuck reports whether an operation waits for its process.
func (o *op) stuck() bool { return o.p.frozen && (o.done || o.local) }

// step lets the next thing happen, or waits for it until a time, and then until all goroutines
// wait again: so that a look at the processes sees what came of it.
func (s *sim) step(until time.Time) {
	synctest.Wait()
	s.next(until)
	synctest.Wait()
}

func (s *sim) next(until time.Time) {
	s.send()
	if s.cancelled() {
		return
	}
	at, n := until, 0
	var next *op
	var then *event
	for _, o := range s.ops {
		if !o.stuck() && (o.at.Before(at) || o.at.Equal(at) && o.n < n) {
			at, n, next = o.at, o.n, o
		}
	}
	for i := range s.events {
		if e := &s.events[i]; e.at.Before(at) || e.at.Equal(at) && e.n < n {
			at, n, next, then = e.at, e.n, nil, e
		}
	}
	if d := time.Until(at); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.wake:
		}
		return
	}
	switch {
	case then != nil:
		do := then.do
		s.events = slices.DeleteFunc(s.events, func(e event) bool { return e.n == n })
		do()
	case next != nil:
		s.perform(next)
		s.ops = slices.DeleteFunc(s.ops, func(o *op) bool { return o.done && o.orphaned })
	}
}

// perform lets an operation happen, or its answer arrive.
func (s *sim) perform(o *op) {
	switch {
	case o.done && o.lost == answerLost, o.done && o.p.cut && !o.local:
		s.give(o, errNet, "answer lost")
	case o.done:
		how := "ok"
		if o.err != nil {
			how = "failed"
		}
		s.give(o, o.err, how)
	case o.p.cut && !o.local && o.lost == arrives && s.one(2):
		o.at = time.Now().Add(s.between(100*time.Millisecond, 2*time.Second)) // it is sent again until it arrives
		o.lost = arrivesLate
	case o.p.cut && !o.local && o.lost == arrivesLate:
		o.at = time.Now().Add(s.between(100*time.Millisecond, 2*time.Second))
	case o.lost == requestLost, o.p.cut && !o.local && !o.orphaned:
		// It is as if it had been performed, and its answer takes its time.
		o.done, o.lost, o.at = true, answerLost, time.Now().Add(s.between(100*time.Millisecond, 5*time.Second))
	default:
		if o.done = true; o.do != nil {
			o.err = o.do()
		}
		o.at = time.Now().Add(o.back)
		s.log(o.p, o.what, "happens")
	}
}

// kill ends a process at once. What it has sent may still happen.
func (s *sim) kill(p *proc) {
	s.mu.Lock()
	p.dead, p.frozen = true, false
	var left []*op
	for _, o := range s.arrived {
		if o.p == p {
			o.answer <- errKilled
		} else {
			left = append(left, o)
		}
	}
	s.arrived = left
	s.mu.Unlock()
	s.log(p, "is", "killed")
	for _, o := range s.ops {
		if o.p != p || o.orphaned {
			continue
		}
		o.orphaned = true
		o.done = o.done || o.local || s.one(2)
		o.answer <- errKilled
	}
	s.ops = slices.DeleteFunc(s.ops, func(o *op) bool { return o.done && o.orphaned })
	p.stop()
}

// isDead reports whether a process was killed or has ended.
func (s *sim) isDead(p *proc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.dead || p.ended
}

// freeze stops a process for a time.
func (s *sim) freeze(p *proc, d time.Duration) {
	p.frozen = true
	s.log(p, "is", "frozen")
	s.after(d, func() { s.thaw(p) })
}

func (s *sim) thaw(p *proc) {
	if p.frozen {
		p.frozen = false
		s.log(p, "is", "thawed")
		s.pass(p)
	}
}

// part cuts a process off the database for a time.
func (s *sim) part(p *proc, d time.Duration) {
	p.cut = true
	s.log(p, "is", "cut off")
	s.after(d, func() { s.join(p) })
}

func (s *sim) join(p *proc) {
	if p.cut {
		p.cut = false
		s.log(p, "is", "back")
		s.pass(p)
	}
}

// news tells a process something, after a while.
func (s *sim) news(p *proc, do func()) {
	s.after(s.delay(), func() {
		p.held = append(p.held, do)
		s.pass(p)
	})
}

// pass passes on the news that a process can hear.
func (s *sim) pass(p *proc) {
	if p.frozen || p.cut {
		return
	}
	held := p.held
	p.held = nil
	for _, do := range held {
		if !s.isDead(p) {
			do()
		}
	}
}
