// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// job is what a worker is told.
type job struct {
	Store    string   `json:"store"` // a file or a connection string
	Ledger   string   `json:"ledger"`
	URL      string   `json:"url"`
	Seed     uint64   `json:"seed"`
	Life     int      `json:"life"`
	Sessions []string `json:"sessions"`
	Plan     plan     `json:"plan"`
	// Beside says that another worker lives at the same time. Finish says that
	// all sessions are to come to their ends, and nothing else.
	Beside bool `json:"beside,omitempty"`
	Finish bool `json:"finish,omitempty"`
	// Rude is a worker that takes no locks, Clash one that may meet such a one.
	Rude  bool `json:"rude,omitempty"`
	Clash bool `json:"clash,omitempty"`
	// Meet says that the worker goes to the same session first as the one beside it.
	Meet bool `json:"meet,omitempty"`
	// Cut says that connections to the database break.
	Cut bool `json:"cut,omitempty"`
	// Clock is by how many seconds the worker's clock is wrong.
	Clock int `json:"clock,omitempty"`
}

// jobVariable makes the test binary a worker.
const jobVariable = "ANTIPHON_TORTURE_JOB"

// worker is the process that is killed.
type worker struct {
	job
	fate  *fate
	store session.Store
	agent *agent.Agent
	out   *os.File

	mu   sync.Mutex
	made int // sessions

	// linger keeps a lock for longer than a store waits for one, once, where workers
	// meet, so that another is refused.
	linger sync.Once
}

// live is the whole life of a worker process.
func live(text string) int {
	w := &worker{out: os.NewFile(3, "report")}
	if err := json.Unmarshal([]byte(text), &w.job); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	w.fate = &fate{plan: w.Plan, report: w.say}
	ctx := context.Background()
	defer w.say("ended")
	if err := w.open(ctx); err != nil {
		w.failed("open", err)
		return 0
	}
	w.fate.mu.Lock()
	w.fate.opened = true
	w.fate.mu.Unlock()
	if w.Finish {
		w.finish(ctx)
	} else {
		w.wander(ctx)
	}
	return 0
}

// say reports a line that is not the witness's.
func (w *worker) say(line string) { _, _ = w.out.WriteString(line + "\n") }

// failed reports an error that nothing excuses, and forgets the others.
func (w *worker) failed(what string, err error) {
	w.fate.mu.Lock()
	excused := w.fate.failing || w.Plan.Pages > 0 || w.Plan.FileSize > 0 || w.Cut
	w.fate.mu.Unlock()
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, agent.ErrNothingToSend):
	case excused, w.Beside && errors.Is(err, session.ErrBusy), w.Clash && (errors.Is(err, session.ErrConflict) || errors.Is(err, agent.ErrDecided)):
		w.say("excused " + strings.ReplaceAll(fmt.Sprint(what, ": ", err), "\n", " "))
	default:
		w.say("bad " + strings.ReplaceAll(fmt.Sprintf("%s: %v", what, err), "\n", " "))
	}
}

func (w *worker) open(ctx context.Context) error {
	if w.Plan.FileSize > 0 {
		if err := limitFiles(uint64(w.Plan.FileSize)); err != nil {
			w.Plan.FileSize = 0
		}
	}
	store, err := openStore(ctx, w.Store, w.Plan.Pages, time.Duration(w.Clock)*time.Second, w.fate.at)
	if err != nil {
		return err
	}
	w.store = storetest.StepStore(store, storetest.Both(storetest.Reporter(w.out), w.fate.at))
	ledger, err := agenttest.OpenLedger(w.Ledger)
	if err != nil {
		return err
	}
	w.agent, err = agents(&responses.Client{BaseURL: w.URL}, ledger, w.fate)
	return err
}

// wander does this and that.
func (w *worker) wander(ctx context.Context) {
	r := rand.New(rand.NewPCG(w.Seed, uint64(w.Life)))
	if w.Meet {
		w.run(ctx, r, w.Sessions[0])
	}
	switch verb, _, _ := strings.Cut(w.Plan.Step, "/"); verb { // what the plan is about comes sooner so
	case "fork":
		w.fork(ctx, r)
	case "create":
		w.create(ctx, r)
	case "rename", "archive", "sweep":
		w.tidy(ctx, r, verb)
	case "deliver":
		w.deliver(ctx, r)
	case "put":
		w.put(ctx, r)
	case "sql":
		w.failed("note", w.note(ctx, r))
	case "delete":
		for range w.Plan.Nth {
			w.remove(ctx, r, w.fork(ctx, r))
		}
	}
	for range 2 + r.IntN(8) {
		switch n := r.IntN(100); {
		case n < 55:
			w.run(ctx, r, w.pick(ctx, r))
		case n < 70:
			w.both(ctx, r)
		case n < 80:
			w.fork(ctx, r)
		case n < 86:
			w.tidy(ctx, r, []string{"rename", "archive", "sweep", "sweep"}[r.IntN(4)])
		case n < 92:
			w.put(ctx, r)
		case n < 94:
			w.failed("note", w.note(ctx, r))
		case n < 95:
			w.deliver(ctx, r)
		case n < 96:
			w.create(ctx, r)
		default:
			w.remove(ctx, r, w.pick(ctx, r))
		}
	}
}

// pick chooses one of the sessions.
func (w *worker) pick(ctx context.Context, r *rand.Rand) string {
	list := w.Sessions
	for info, err := range w.store.(session.Catalog).List(ctx, session.Query{Archived: true}) {
		if err != nil {
			w.failed("list", err)
			break
		}
		list = append(list, info.ID)
	}
	return list[r.IntN(len(list))]
}

// both runs two sessions at once, so that they are committed together.
func (w *worker) both(ctx context.Context, r *rand.Rand) {
	a, b := w.pick(ctx, r), w.pick(ctx, r)
	other := rand.New(rand.NewPCG(r.Uint64(), 0))
	if a == b {
		w.run(ctx, r, a)
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { w.run(ctx, other, b) })
	w.run(ctx, r, a)
	wg.Wait()
}

// locked opens a session to write to it. If another process does, what there is
// of it is read all the same.
func (w *worker) locked(ctx context.Context, id string) (s *session.Session, unlock func()) {
	s, err := session.Open(ctx, w.store, id)
	if err != nil {
		w.failed("open "+id, err)
		return nil, nil
	}
	if w.Rude {
		return s, func() {}
	}
	free, err := s.Lock(ctx)
	if errors.Is(err, session.ErrBusy) && w.Beside {
		w.say("busy " + id)
		if err := agenttest.CheckLog(s.Log()); err != nil {
			w.say("bad read beside a writer: " + strings.ReplaceAll(err.Error(), "\n", " "))
		}
		return nil, nil
	}
	if err != nil {
		w.missing("lock "+id, err)
		return nil, nil
	}
	if w.Meet {
		w.linger.Do(func() { time.Sleep(500 * time.Millisecond) })
	}
	return s, func() { w.failed("unlock "+id, free()) }
}

// run answers what waits for an approval and runs the agent, somehow.
func (w *worker) run(ctx context.Context, r *rand.Rand, id string) {
	s, unlock := w.locked(ctx, id)
	if s == nil {
		return
	}
	defer unlock()
	if err := w.decide(ctx, r, s); err != nil {
		w.failed("decide "+id, err)
		return
	}
	if r.IntN(4) == 0 && compacted(s) {
		_, err := agent.Restore(ctx, s, 0)
		w.failed("restore "+id, err)
	}
	a := *w.agent
	var input []item.Item
	if len(s.Log()) == 0 || r.IntN(3) > 0 {
		input = append(input, w.question(r))
	}
	switch r.IntN(12) {
	case 0:
		a.Limits.MaxTurns = 1 + r.IntN(3)
	case 1:
		a.Limits.MaxTime = time.Duration(1+r.IntN(30)) * time.Millisecond
	case 2:
		a.Limits.MaxRepeats = 2
	case 3:
		a.Limits.MaxTokens = int64(1 + r.IntN(3000))
	case 4:
		no := false
		a.Request.ParallelToolCalls = &no
	}
	if r.IntN(3) == 0 {
		ways := []string{session.BySummary, session.ByEndpoint, session.ByDropping}
		a.Compaction = agent.Compaction{At: 300 + r.Int64N(4000), Keep: 100 + r.Int64N(500), By: ways[r.IntN(3)]}
	}
	a.CollapseReads = r.IntN(2) == 0
	w.failed("run "+id, w.events(ctx, r, s, a.Start(s, input...)))
}

// compacted reports whether something replaces what was sent.
func compacted(s *session.Session) bool {
	var v session.View
	for _, e := range s.Log() {
		v.Apply(e)
	}
	return v.Compaction() > 0
}

func (w *worker) question(r *rand.Rand) item.Item {
	text := fmt.Sprintf("Question %d?", r.IntN(1_000_000))
	if r.IntN(5) > 0 {
		return item.User(text)
	}
	uri, err := picture(r.IntN(12))
	w.failed("picture", err)
	it, err := item.UserParts(&item.InputText{Text: text}, &item.InputImage{ImageURL: uri})
	w.failed("message", err)
	return it
}

// events ranges over a run and meddles with it at one of its events.
func (w *worker) events(ctx context.Context, r *rand.Rand, s *session.Session, run *agent.Run) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at, what := r.IntN(40), r.IntN(10)
	if w.Plan.Step == "append/given" {
		at, what = 1+r.IntN(8), 3
	}
	n := 0
	said := ""
	for ev, err := range run.Events(ctx) {
		if err != nil {
			return errors.Join(err, w.heard(s, said, err))
		}
		w.told(s.ID(), ev)
		step := stepOf(ev)
		if n++; n == at {
			switch what {
			case 0:
				cancel()
			case 1:
				return nil
			case 2:
				run.StopAfterTurn()
			case 3, 4:
				said = fmt.Sprintf("By the way %d.", r.IntN(1_000_000_000))
				if err := run.Say(item.User(said)); errors.Is(err, agent.ErrStopped) {
					said = ""
				} else if err != nil {
					return err
				} else {
					w.say("sent " + s.ID() + " " + said)
				}
			}
		}
		w.fate.step(step)
	}
	return w.heard(s, said, nil)
}

// deliver leaves words for a session that others may be writing to, some of them twice.
func (w *worker) deliver(ctx context.Context, r *rand.Rand) {
	box := w.store.(session.Inbox)
	for range 1 + r.IntN(4) {
		id, said := w.pick(ctx, r), fmt.Sprintf("From outside %d.", r.IntN(1_000_000_000))
		d := session.Delivery{Delivered: session.Delivered{Key: said, By: "nobody", Queued: r.IntN(3) == 0}, Bodies: []session.Body{session.InputItem{Item: item.User(said)}}}
		for range 1 + r.IntN(2) {
			_, err := box.Deliver(ctx, id, d)
			if errors.Is(err, session.ErrNotFound) {
				break
			}
			if w.failed("deliver "+id, err); err == nil {
				w.say("sent " + id + " " + said)
			}
		}
	}
}

// heard wants what was said to a run to be in its log, once, unless it ended with
// an error of the store. L5
func (w *worker) heard(s *session.Session, said string, err error) error {
	if said == "" || err != nil && !errors.Is(err, context.Canceled) {
		return nil
	}
	n := 0
	for _, e := range s.Log() {
		if g, ok := e.Body.(session.InputItem); ok && strings.Contains(g.Item.JSON(), said) {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("what was said to a run is in its log %d times", n)
	}
	return nil
}

// told reports what somebody who ranges over the events was shown.
func (w *worker) told(id string, ev agent.Event) {
	switch ev := ev.(type) {
	case agent.Recorded:
		switch b := ev.Body.(type) {
		case session.OutputItem:
			w.say("told " + digest(b.Item) + " " + id)
		case session.CallOutput:
			w.say("told " + digest(b.Item) + " " + id)
		}
	case agent.SubagentEvent:
		w.told(id, ev.Event)
	}
}

// stepOf names the step at which an event is told.
func stepOf(ev agent.Event) string {
	switch ev := ev.(type) {
	case agent.Recorded:
		return "event/" + session.Kind(ev.Body)
	case agent.Delta:
		return "event/delta"
	case agent.Progress:
		return "event/progress"
	}
	return "event/subagent"
}

// decide answers some of the calls that wait.
func (w *worker) decide(ctx context.Context, r *rand.Rand, s *session.Session) error {
	wanted, err := agent.PendingApprovals(ctx, s)
	if err != nil {
		return err
	}
	var list []agent.Decision
	for _, p := range wanted {
		d := agent.Decision{Session: p.Session, Number: p.Number, CallID: p.CallID}
		switch n := r.IntN(10); {
		case n < 5:
			d.Allow = true
		case n < 6:
			d.Allow, d.Arguments = true, `{"n": 99}`
		case n < 8:
			d.Reason = "not now"
		default:
			if !w.Finish {
				continue
			}
			d.Allow = true
		}
		list = append(list, d)
	}
	return agent.Decide(ctx, s, list...)
}

// fork makes a session of another one, at any of its entries, and returns its
// id, "" if it made none.
func (w *worker) fork(ctx context.Context, r *rand.Rand) string {
	from := w.pick(ctx, r)
	s, err := session.Open(ctx, w.store, from)
	if err != nil {
		w.failed("open "+from, err)
		return ""
	}
	if len(s.Log()) == 0 {
		return ""
	}
	id := w.fresh("f")
	if _, err := s.Fork(ctx, 1+r.Int64N(int64(len(s.Log()))), id); err != nil {
		w.failed("fork "+from, err)
		return ""
	}
	if r.IntN(2) == 0 {
		w.run(ctx, r, id)
	}
	return id
}

// fresh is an id that no session has.
func (w *worker) fresh(kind string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	return fmt.Sprintf("%s%d-%d-%d", kind, w.Life, w.Seed%1_000_000, w.made)
}

// tidy sweeps, renames and archives.
func (w *worker) tidy(ctx context.Context, r *rand.Rand, what string) {
	c := w.store.(session.Catalog)
	switch id := w.pick(ctx, r); what {
	case "rename":
		w.missing("rename", c.Rename(ctx, id, fmt.Sprintf("name %d", r.IntN(1_000_000))))
	case "archive":
		w.missing("archive", c.Archive(ctx, id, r.IntN(2) == 0))
	default:
		_, err := c.Sweep(ctx, r.IntN(4) == 0)
		w.failed("sweep", err)
	}
}

// create makes a session that has a name before it has entries.
func (w *worker) create(ctx context.Context, r *rand.Rand) {
	id := w.fresh("n")
	err := w.store.(session.Catalog).Create(ctx, session.Info{ID: id, Name: id, Path: "/a.md"})
	w.failed("create", err)
	if err == nil && r.IntN(2) == 0 {
		w.run(ctx, r, id)
	}
}

// missing is failed for what may be about a session that is not there.
func (w *worker) missing(what string, err error) {
	if !errors.Is(err, session.ErrNotFound) {
		w.failed(what, err)
	}
}

// put keeps something with a session and reads it again.
func (w *worker) put(ctx context.Context, r *rand.Rand) {
	data := make([]byte, r.IntN(300_000))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	b := w.store.(session.Blobs)
	id := w.pick(ctx, r)
	hash, err := b.PutBlob(ctx, id, data)
	if err != nil {
		w.missing("put", err)
		return
	}
	w.say(fmt.Sprintf("put %x %s", hash, id))
}

// note writes what is never sent, some or a lot of it.
func (w *worker) note(ctx context.Context, r *rand.Rand) error {
	s, unlock := w.locked(ctx, w.pick(ctx, r))
	if s == nil {
		return nil
	}
	defer unlock()
	var notes []session.Body
	for range 1 + r.IntN(2)*r.IntN(200) { // many make the store tidy up
		notes = append(notes, session.Note{Item: item.User(fmt.Sprintf("Note %d.", r.IntN(1_000_000)))})
	}
	_, err := s.Append(ctx, notes...)
	return err
}

// remove deletes a session that is not one of those to begin with, if nobody
// writes to it.
func (w *worker) remove(ctx context.Context, r *rand.Rand, id string) {
	if id == "" || w.Clash || slices.Contains(w.Sessions, id) || r.IntN(4) == 0 {
		return // nobody deletes beside a worker that takes no locks: who writes to it would begin it again
	}
	s, unlock := w.locked(ctx, id)
	if s == nil {
		return
	}
	err := w.store.(session.Catalog).Delete(ctx, id)
	unlock()
	w.missing("delete", err)
}

// finish brings all sessions to their ends.
func (w *worker) finish(ctx context.Context) {
	r := rand.New(rand.NewPCG(w.Seed, 0))
	ids := w.Sessions
	for info, err := range w.store.(session.Catalog).List(ctx, session.Query{Archived: true}) {
		if err != nil {
			w.failed("list", err)
			return
		}
		ids = append(ids, info.ID)
	}
	for _, id := range ids {
		s, unlock := w.locked(ctx, id)
		for range 8 {
			if s == nil {
				break
			}
			res, err := w.agent.Run(ctx, s)
			if errors.Is(err, agent.ErrNothingToSend) {
				break
			}
			w.failed("finish "+id, err)
			if err != nil || res.Why == agent.StopEndTurn {
				break
			}
			w.failed("decide "+id, w.decide(ctx, r, s))
		}
		if s != nil {
			unlock()
		}
	}
}
