// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
)

// Auditor audits a store: it knows the expected contents of the store's sessions
// from the reports of the processes that wrote to it. [Reporter] reports operations
// before and after they are done, [Auditor.Hear] reads the reports, and
// [Auditor.Check] compares the store with them. An operation that was reported as
// done must be there, once, byte for byte, in its place; an operation that was begun
// but not reported as done must be there completely or not at all; and there must be
// nothing else.
//
// It checks a [session.Store] only through its interface, so it can check any store.
// The zero Auditor expects an empty store. It is safe for concurrent use except for
// Check, which must not run during writes.
type Auditor struct {
	mu       sync.Mutex
	sessions map[string]*witnessed
	ops      []*witnessedOp
	made     map[string]int64
	forks    map[string]string // the parent of each fork
	counts   AuditorCounts
}

// AuditorCounts counts the observations of an [Auditor].
type AuditorCounts struct {
	// Entries is the number of entries that were reported as appended and found.
	Entries int
	// Unsure counts appends without a reported outcome, and UnsureThere those among
	// them that were found. Failed counts appends that were reported as failed, and
	// FailedThere those among them that were found nevertheless.
	Unsure, UnsureThere, Failed, FailedThere int
}

// witnessed is a session: the fingerprints of its entries.
type witnessed struct{ entries []string }

// witnessedOp is an operation that began since the last check.
type witnessedOp struct {
	report
	done, failed bool
}

// report is a line of a process.
type report struct {
	Do      string   `json:"do"` // begin, done or failed
	N       int64    `json:"n"`
	Name    string   `json:"name,omitempty"`
	Session string   `json:"session,omitempty"`
	From    string   `json:"from,omitempty"`
	After   int64    `json:"after,omitempty"`
	Entries []string `json:"entries,omitempty"`
}

// Reporter returns a listener for [StepStore] that reports appends, forks and
// deletions to w, one per line. It must be called first before a step and last after
// it; see [Both].
func Reporter(w io.Writer) StepFunc {
	if nils.Is(w) {
		w = io.Discard
	}
	r := &reporter{w: w, begun: map[*session.Entry]int64{}, other: map[string]int64{}}
	return r.at
}

// Both returns a listener that calls outer first before a step and last after it.
func Both(outer, inner StepFunc) StepFunc {
	return func(s Step) error {
		first, second := outer, inner
		if s.Done {
			first, second = inner, outer
		}
		if err := first.call(s); err != nil {
			return err
		}
		return second.call(s)
	}
}

type reporter struct {
	mu    sync.Mutex
	w     io.Writer
	n     int64
	begun map[*session.Entry]int64 // appends, by the address of their first entry
	other map[string]int64
}

func (r *reporter) at(s Step) error {
	verb, _, _ := strings.Cut(s.Name, "/")
	if verb != "append" && verb != "fork" && verb != "delete" || verb == "append" && len(s.Entries) == 0 {
		return nil
	}
	line := report{Do: "begin", Name: verb, Session: s.Session, From: s.From, After: s.After}
	if !s.Done {
		for _, e := range s.Entries {
			print, err := Fingerprint(e)
			if err != nil {
				return err
			}
			line.Entries = append(line.Entries, print)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Done {
		line = report{Do: "done", N: r.number(s, verb)}
		if s.Err != nil {
			line.Do = "failed"
		}
	} else {
		r.n++
		line.N = r.n
		r.remember(s, verb)
	}
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = r.w.Write(append(b, '\n'))
	return err
}

func (r *reporter) remember(s Step, verb string) {
	if verb == "append" {
		r.begun[&s.Entries[0]] = r.n
	} else {
		r.other[verb+" "+s.Session] = r.n
	}
}

func (r *reporter) number(s Step, verb string) int64 {
	if verb == "append" {
		n := r.begun[&s.Entries[0]]
		delete(r.begun, &s.Entries[0])
		return n
	}
	return r.other[verb+" "+s.Session]
}

// Hear reads the reports of one process until they end, and ignores an incomplete
// last line. Lines that are not reports are passed to other, which may be nil.
func (w *Auditor) Hear(r io.Reader, other func(line string)) error {
	if nils.Is(r) {
		return errors.New("witness: the reader is nil")
	}
	begun := map[int64]*witnessedOp{}
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !bytes.HasPrefix(line, []byte(`{"do":`)):
			if other != nil {
				other(strings.TrimSuffix(string(line), "\n"))
			}
			continue
		}
		var rep report
		if err := json.Unmarshal(line, &rep); err != nil {
			return fmt.Errorf("witness: %w: %s", err, line)
		}
		w.hear(rep, begun)
	}
}

func (w *Auditor) hear(rep report, begun map[int64]*witnessedOp) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rep.Do == "begin" {
		op := &witnessedOp{report: rep}
		begun[rep.N] = op
		w.ops = append(w.ops, op)
		return
	}
	if op := begun[rep.N]; op != nil {
		op.done, op.failed = rep.Do == "done", rep.Do == "failed"
	}
}

// Made returns the number of entries that a session was made with: those shared with
// the session it was forked from, or its first append.
func (w *Auditor) Made(id string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made[id]
}

// Sessions returns the ids of the sessions that may exist.
func (w *Auditor) Sessions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := map[string]bool{}
	for id := range w.sessions {
		ids[id] = true
	}
	for _, op := range w.ops {
		ids[op.Session] = true
	}
	var list []string
	for id := range ids {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// Check compares the store with the reports, and from then on expects its current
// content. visit, which may be nil, is called with each existing session; its error
// is returned.
func (w *Auditor) Check(ctx context.Context, store session.Store, visit func(id string, log []session.Entry) error) (AuditorCounts, error) {
	c := &witnessCheck{w: w, logs: map[string]*loaded{}}
	for _, id := range w.Sessions() {
		c.logs[id] = readLog(ctx, store, id)
	}
	w.mu.Lock()
	if w.sessions == nil {
		w.sessions, w.made, w.forks = map[string]*witnessed{}, map[string]int64{}, map[string]string{}
	}
	for _, op := range w.ops {
		if op.Name == "fork" && len(c.logs[op.Session].prints) > 0 {
			w.forks[op.Session] = op.From
		}
	}
	var problems []error
	problem := func(id string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("session %q: %w", id, err))
		}
	}
	ids := slices.Sorted(maps.Keys(c.logs))
	for _, id := range ids {
		problem(id, c.settle(id))
	}
	for _, id := range c.gone {
		delete(w.sessions, id)
	}
	w.ops = nil
	counts := w.counts
	w.mu.Unlock()
	for _, id := range ids {
		if l := c.logs[id]; l.err == nil && visit != nil && len(l.log) > 0 {
			problem(id, visit(id, l.log))
		}
	}
	return counts, errors.Join(problems...)
}

// witnessCheck is one check of a store.
type witnessCheck struct {
	w    *Auditor
	logs map[string]*loaded
	gone []string // deleted sessions, remembered until the forks of them are settled
}

// loaded is the content of a session in a store.
type loaded struct {
	log     []session.Entry
	prints  []string
	err     error
	settled bool
}

func readLog(ctx context.Context, store session.Store, id string) *loaded {
	l := new(loaded)
	for e, err := range store.Load(ctx, id, 0) {
		print, printErr := "", err
		if err == nil {
			print, printErr = Fingerprint(e)
		}
		if printErr != nil {
			l.err = fmt.Errorf("behind entry %d: %w", len(l.log), printErr)
			break
		}
		l.log, l.prints = append(l.log, e), append(l.prints, print)
	}
	return l
}

// settle determines the outcome of the operations on a session, and from then on
// expects its current content.
func (c *witnessCheck) settle(id string) error {
	l := c.logs[id]
	if l.settled || l.err != nil {
		return l.err
	}
	l.settled = true
	l.err = c.resolve(id, l.prints)
	return l.err
}

func (c *witnessCheck) resolve(id string, there []string) error {
	w := c.w
	gone, err := c.deleted(id, there)
	if gone || err != nil {
		return err
	}
	want, err := c.begins(id, there)
	if err != nil {
		return err
	}
	fresh := w.sessions[id] == nil
	if fresh {
		w.made[id] = int64(len(want))
	}
	byPlace := map[int64][]*witnessedOp{}
	for _, op := range w.ops {
		if op.Name == "append" && op.Session == id {
			byPlace[op.After] = append(byPlace[op.After], op)
			w.unsure(op)
		}
	}
	for {
		op, err := chosen(byPlace[int64(len(want))], there[min(len(want), len(there)):])
		if err != nil {
			return fmt.Errorf("behind entry %d: %w", len(want), err)
		}
		if op == nil {
			break
		}
		delete(byPlace, int64(len(want)))
		if fresh && len(want) == 0 {
			w.made[id] = int64(len(op.Entries))
		}
		want = append(want, op.Entries...)
		w.counts.Entries += len(op.Entries)
		w.found(op)
	}
	for place, ops := range byPlace {
		for _, op := range ops {
			if op.done {
				return fmt.Errorf("an append behind entry %d was reported as done, and the log had not come to that", place)
			}
		}
	}
	if err := samePrints(want, there); err != nil {
		return err
	}
	if len(there) > 0 {
		w.sessions[id] = &witnessed{there}
	}
	return nil
}

func (w *Auditor) unsure(op *witnessedOp) {
	switch {
	case op.failed:
		w.counts.Failed++
	case !op.done:
		w.counts.Unsure++
	}
}

func (w *Auditor) found(op *witnessedOp) {
	switch {
	case op.failed:
		w.counts.FailedThere++
	case !op.done:
		w.counts.UnsureThere++
	}
}

// deleted reports whether a session is gone and should be. A session nested in a
// deleted one stays as long as forks of that session exist.
func (c *witnessCheck) deleted(id string, there []string) (bool, error) {
	for _, op := range c.w.ops {
		itself := op.Session == id || strings.HasPrefix(id, op.Session+"/")
		if op.Name != "delete" || !itself && !c.w.shows(op.Session, id) {
			continue
		}
		switch {
		case len(there) == 0:
			c.gone = append(c.gone, id)
			return true, nil
		case op.done && itself && !c.shown(id):
			return false, fmt.Errorf("it was deleted, and has %d entries", len(there))
		}
	}
	return false, nil
}

// shown reports whether an existing fork may show calls of a nested session.
func (c *witnessCheck) shown(id string) bool {
	for fork, l := range c.logs {
		if len(l.prints) > 0 && c.w.shows(fork, id) {
			return true
		}
	}
	return false
}

// shows reports whether a session was forked from one that another is nested in,
// possibly through forks that are gone.
func (w *Auditor) shows(fork, nested string) bool {
	from := w.forks[fork]
	for range w.forks { // a limit, because a reused id may make the chain circular
		if from != "" && strings.HasPrefix(nested, from+"/") {
			return true
		}
		from = w.forks[from]
	}
	return false
}

// begins returns the session's entries at the last check or, for a newer fork, those
// that it was made with.
func (c *witnessCheck) begins(id string, there []string) ([]string, error) {
	if s := c.w.sessions[id]; s != nil {
		return slices.Clip(s.entries), nil
	}
	for _, op := range c.w.ops {
		if op.Name != "fork" || op.Session != id {
			continue
		}
		if !op.done && len(there) == 0 {
			return nil, nil
		}
		if from := c.logs[op.From]; from != nil {
			if err := c.settle(op.From); err != nil {
				return nil, err
			}
		}
		from, err := c.w.written(op.From, op.After, there)
		if err != nil {
			return nil, fmt.Errorf("fork of %q: %w", op.From, err)
		}
		c.w.counts.Entries += len(op.Entries)
		return slices.Concat(from, op.Entries), nil
	}
	return nil, nil
}

// written returns the first entries of a session according to the reports. Where an
// append has no outcome, the entries of the fork decide, which may be all that is left
// of the session. A session that came and went since the last check may be a fork
// itself; within holds those that are being asked about, because ids can be reused.
func (w *Auditor) written(id string, most int64, fork []string, within ...string) (list []string, err error) {
	if s := w.sessions[id]; s != nil {
		list = slices.Clip(s.entries)
	} else if i := slices.IndexFunc(w.ops, func(op *witnessedOp) bool { return op.Name == "fork" && op.Session == id }); i >= 0 && !slices.Contains(within, id) {
		if list, err = w.written(w.ops[i].From, w.ops[i].After, fork, append(within, id)...); err != nil {
			return nil, err
		}
		list = append(list, w.ops[i].Entries...)
	}
	for int64(len(list)) < most {
		var here []*witnessedOp
		for _, op := range w.ops {
			if op.Name == "append" && op.Session == id && op.After == int64(len(list)) {
				here = append(here, op)
			}
		}
		op, err := chosen(here, fork[min(len(list), len(fork)):])
		if err != nil {
			return nil, err
		}
		if op == nil {
			return nil, fmt.Errorf("it had %d entries, not %d", len(list), most)
		}
		list = append(list, op.Entries...)
	}
	return list[:most:most], nil
}

// chosen returns the append that took place among those at one place, or nil: the
// one reported as done, or one without an outcome that is there.
func chosen(ops []*witnessedOp, there []string) (*witnessedOp, error) {
	var done *witnessedOp
	for _, op := range ops {
		if op.done {
			if done != nil {
				return nil, errors.New("two appends to one place were reported as done")
			}
			done = op
		}
	}
	if done != nil {
		return done, nil
	}
	for _, op := range ops {
		if len(there) >= len(op.Entries) && slices.Equal(op.Entries, there[:len(op.Entries)]) {
			return op, nil
		}
	}
	return nil, nil
}

func samePrints(want, there []string) error {
	for i := range min(len(want), len(there)) {
		if want[i] != there[i] {
			return fmt.Errorf("entry %d is %s, and %s was written", i+1, there[i], want[i])
		}
	}
	switch {
	case len(there) < len(want):
		return fmt.Errorf("it has %d entries, and %d were written: %s is lost", len(there), len(want), want[len(there)])
	case len(there) > len(want):
		return fmt.Errorf("it has %d entries, and %d were written: nobody wrote %s", len(there), len(want), there[len(want)])
	}
	return nil
}
