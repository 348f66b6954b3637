// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/memstore"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/storetest"
	"github.com/antiphon-go/antiphon/tool"
)

// world is what a schedule is about: a database, workers, people who say things to a few
// sessions, and people who answer what calls ask.
type world struct {
	*sim
	db      memstore.DB
	bad     defect
	kinds   kinds
	reports []*bytes.Buffer // of the appends of processes, for the auditor
	all     sync.WaitGroup  // the goroutines of processes and people
	ended   context.Context
	end     context.CancelFunc
	workers []*proc
	lives   int
	left    int           // inputs that were not sent yet
	asking  time.Duration // how long workers wait for each of two people to answer; 0 means for ever

	// gone is whether the machine h0 is lost, until all else is done. Only there are the files
	// of the session s0, in worlds with a place.
	place, gone bool
	parked      bool // the session's work was parked because of it

	// only are the workers that can do the work of a session, if not all can.
	only map[string]string
	// cards are the workers that the database knows of, in worlds with a roster.
	cards  map[string]card
	roster bool

	// shares is whether tenants share one worker, which is never disturbed.
	shares bool
	caps   map[string]int // of tenants
	runs   int            // the places of a worker
	// limits are those of the endpoint, in worlds with limited.
	limits  queue.Caps
	limited bool
	// refusals is how often the endpoint asks to wait yet.
	refusals int
	account  // of caps and limits
	plans    map[string]*planned
	busy     map[string]time.Time // when a session was seen to be under way
	allowed  map[string]bool      // calls that somebody allowed
	// Of defects: the newest delivery of a session, and who fires a schedule.
	newest, owners map[string]string

	ledger   map[string]agenttest.CallCounts
	inputs   map[string]string // the sessions of texts that were said
	problems []string
	// unanswered is how many calls did not run because nobody answered.
	unanswered int
	// without is how often work was parked because its machine was lost.
	without int
}

// simDefinition is the definition of all agents, and simAgent its hash.
const simDefinition = `{"simulated":true}`

var simAgent = func() string {
	sum := sha256.Sum256([]byte(simDefinition))
	return hex.EncodeToString(sum[:])
}()

// kinds are the faults of a world.
type kinds []int

const (
	kill = iota
	freeze
	part
	stop
)

// allKinds has kills twice as often as the others.
var allKinds = kinds{kill, kill, freeze, part, stop}

// problem notes what must not be.
func (w *world) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// newWorld draws a world.
func newWorld(seed uint64, bad defect, kinds kinds) *world {
	w := &world{
		sim: newSim(seed), bad: bad, kinds: kinds, ledger: map[string]agenttest.CallCounts{}, inputs: map[string]string{},
		plans: map[string]*planned{}, busy: map[string]time.Time{}, allowed: map[string]bool{}, newest: map[string]string{}, owners: map[string]string{}, runs: 2,
	}
	w.overtaken = map[string]int{}
	if seed%2 == 0 {
		w.asking = 4 * time.Second
	}
	w.place = seed%3 == 0
	w.roster, w.cards, w.only = seed%4 != 0, map[string]card{}, map[string]string{}
	if w.place {
		w.only["s0"] = "w0"
	}
	if seed%5 < 2 {
		w.only["s1"] = "w1" // it has a label that the others lack
	}
	w.ended, w.end = context.WithCancel(context.Background())
	workers, sessions := 2+w.r.IntN(2), 1+w.r.IntN(3)
	switch {
	case seed%9 == 4: // tenants share a worker, and most of the work is that of one of them
		w.shares, w.calm, w.place, w.only = true, true, false, map[string]string{}
		workers, sessions, w.runs = 1, 7+w.r.IntN(3), 1+w.r.IntN(2)
		w.most = 2 + 2*w.runs
	case seed%7 < 2: // tenants have caps, and more work than they may do at once
		w.caps = map[string]int{"ann": 1, "ben": 1 + w.r.IntN(2)}
		sessions = 3 + w.r.IntN(3)
	case seed%7 < 4:
		w.limited, w.refusals, sessions = true, 1+w.r.IntN(5), 2+w.r.IntN(3)
		w.limits = queue.Caps{Requests: []int64{0, 20, 120}[w.r.IntN(3)], Tokens: []int64{0, 300}[w.r.IntN(2)], Runs: int64(w.r.IntN(3))}
		if err := w.db.Limit(simURL, w.limits); err != nil {
			panic(err)
		}
	}
	if w.db.Clock = w.clock; seed%5 == 3 && !w.shares {
		w.plan()
	}
	for n := range workers {
		w.after(w.between(0, time.Second), func() { w.work(fmt.Sprint("w", n)) })
	}
	for n := range sessions {
		id := fmt.Sprint("s", n)
		said := 1 + w.r.IntN(3)
		if w.shares || w.caps != nil {
			said = 1
		}
		for m := range said {
			w.say(id, m)
		}
		st, r := w.open(w.process("asked "+id)), w.source()
		w.all.Go(func() { w.answer(st, r, id) })
	}
	if w.place && w.one(2) {
		w.after(w.between(0, 18*time.Second), w.lose)
	}
	if w.shares {
		return w
	}
	for range w.r.IntN(8) {
		w.after(w.between(0, 18*time.Second), w.fault)
	}
	return w
}

// source returns random numbers for a goroutine.
func (w *world) source() *rand.Rand { return rand.New(rand.NewPCG(w.r.Uint64(), 0)) }

// open opens a process's store.
func (w *world) open(p *proc) *simStore {
	report := new(bytes.Buffer)
	w.reports = append(w.reports, report)
	return &simStore{w: w, p: p, report: storetest.Reporter(report), Store: w.db.Open(memstore.Options{
		Holder: p.name, Net: p.call, Lease: 6 * time.Second, Tell: func(must bool, news func()) {
			if must || w.one(4) {
				w.news(p, news)
			}
		},
	})}
}

// work starts a worker, and another one in its place when it has ended.
func (w *world) work(name string) {
	if w.ended.Err() != nil {
		return
	}
	if w.gone && name == "w0" {
		w.after(time.Second, func() { w.work(name) })
		return
	}
	w.lives++
	p := w.process(fmt.Sprint(name, ".", w.lives))
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	w.workers = append(w.workers, p)
	st := w.open(p)
	work := &Worker{
		Name: p.name, Host: "h" + name[1:], Labels: []string{"label of " + name}, Runs: w.runs, Caps: w.caps, Attempts: 1 << 30, Drain: w.between(time.Second, 20*time.Second), Patience: 4 * time.Second, Poll: w.between(time.Second, 3*time.Second),
		Backoff: func(attempt int) time.Duration { return time.Duration(min(attempt, 5)) * 777 * time.Millisecond },
		stage:   &simStage{w, p, st, w.agent(p)},

		ApprovalTime: w.asking, Approvers: []string{"ann", "ben"},
	}
	part := w.r.Float64()
	work.draw = func() float64 { return part }
	if w.bad == impatient {
		work.ApprovalTime /= 2
	}
	work.Config.Store = st
	if w.roster {
		work.Config.Store = &rosterStore{simStore: st}
	}
	w.log(p, "is", "started")
	w.all.Go(func() {
		defer stop()
		_ = work.Run(ctx)
		_ = st.Close()
		w.mu.Lock()
		p.ended = true
		w.mu.Unlock()
		w.stir()
	})
}

// again starts workers in the place of those that have ended.
func (w *world) again() {
	for i, p := range w.workers {
		if p != nil && w.isDead(p) {
			name, _, _ := strings.Cut(p.name, ".")
			if w.gone && name == "w0" {
				continue
			}
			w.workers[i] = nil
			w.after(w.between(10*time.Millisecond, 5*time.Second), func() { w.work(name) })
		}
	}
}

// lose takes the machine h0 away.
func (w *world) lose() {
	w.gone = true
	for _, p := range w.workers {
		if p != nil && strings.HasPrefix(p.name, "w0.") && !w.isDead(p) {
			w.kill(p)
		}
	}
}

// fault does something to a worker.
func (w *world) fault() {
	if w.calm || len(w.workers) == 0 {
		return
	}
	p := w.workers[w.r.IntN(len(w.workers))]
	if p == nil || w.isDead(p) {
		return
	}
	switch w.kinds[w.r.IntN(len(w.kinds))] {
	case kill:
		w.kill(p)
	case freeze:
		w.freeze(p, w.between(0, 15*time.Second))
	case part:
		w.part(p, w.between(0, 15*time.Second))
	case stop:
		w.sim.log(p, "is", "asked to stop")
		p.stop()
	}
}

// say lets somebody say something to a session, until it is known to have arrived, and
// sometimes once more.
func (w *world) say(id string, n int) {
	text := fmt.Sprintf("%s input %d: %s", id, n, w.wish())
	w.inputs[text] = id
	w.left++
	queued, again := w.one(4), w.one(3)
	pause, later := w.between(0, 12*time.Second), w.between(0, 10*time.Second)
	switch {
	case w.shares:
		pause, again = w.between(0, 100*time.Millisecond), false
	case w.limited: // so that runs meet at the endpoint
		pause /= 3
	}
	p := w.process(fmt.Sprint("says ", id, " ", n))
	st := w.open(p)
	w.all.Go(func() {
		time.Sleep(pause)
		d := session.Delivery{Delivered: session.Delivered{Key: fmt.Sprint("key ", n), Queued: queued}, Bodies: []session.Body{session.InputItem{Item: item.User(text)}}}
		for {
			err := w.submit(st, id, d)
			if err == nil && !again {
				break
			}
			if err == nil {
				again = false
				time.Sleep(later)
				continue
			}
			time.Sleep(time.Second)
			if w.bad == newKeys {
				d.Key += "!"
			}
		}
		_ = p.here(context.Background(), "said", func() error { w.left--; return nil })
	})
}

// wish draws what the model is to do: rounds of calls.
func (w *world) wish() string {
	var rounds []string
	for range w.r.IntN(3) {
		var calls []string
		for range 1 + w.r.IntN(2) {
			calls = append(calls, []string{"work", "work", "again", "asks", "knows"}[w.r.IntN(5)])
		}
		rounds = append(rounds, strings.Join(calls, ","))
	}
	return strings.Join(rounds, ";")
}

// submit is what [Submit] does after it has packed the file.
func (w *world) submit(st *simStore, id string, d session.Delivery) error {
	ctx := context.Background()
	err := st.Create(ctx, session.Info{ID: id, Path: "/agent.md"})
	if err != nil && !errors.Is(err, session.ErrExists) {
		return err
	}
	var r Receipt
	before, _, err := workOf(ctx, st, id)
	if err != nil {
		return err
	}
	work := queue.Work{Session: id, Agent: simAgent}
	if w.shares || w.caps != nil {
		work.Tenant, work.Priority = tenantOf(id)
	}
	switch only := w.only[id]; {
	case only == "":
	case id == "s0":
		work.Needs = Place{Host: "h" + only[1:]}.Needs()
	default:
		work.Needs = []string{"label of " + only}
	}
	return r.enqueue(ctx, st, st, before, work, d)
}

// tenantOf returns whose a session is, and how urgent it is.
func tenantOf(id string) (tenant string, priority int) {
	switch id {
	case "s1":
		return "ben", 0
	case "s2":
		return "carl", 1
	}
	return "ann", 5
}

// answer answers the calls of a session that wait for an approval, until the end.
func (w *world) answer(st *simStore, r *rand.Rand, id string) {
	ctx := w.ended
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(r.Int64N(int64(4*time.Second))) + 2*time.Second):
		}
		now, known, err := workOf(ctx, st, id)
		if err != nil || !known || now.State != queue.Waiting && r.IntN(8) > 0 {
			continue
		}
		s, err := session.Open(ctx, st, id)
		if err != nil {
			continue
		}
		pending, err := agent.PendingApprovals(ctx, s)
		if err != nil || len(pending) == 0 {
			continue
		}
		one := pending[r.IntN(len(pending))]
		d := agent.Decision{Session: one.Session, Number: one.Number, CallID: one.CallID, Allow: r.IntN(3) > 0}
		if d.Allow {
			w.consent(d)
		}
		if err := agent.Decide(ctx, s, d); err == nil && r.IntN(2) == 0 { // else whoever answered forgets the queue
			_, _ = Wake(ctx, st, id)
		}
	}
}

// simStage is what a worker of the simulation may run.
type simStage struct {
	w     *world
	p     *proc
	store *simStore
	agent *agent.Agent
}

func (g *simStage) agreed() ([]string, error) { return []string{simAgent}, nil }
func (g *simStage) fits() ([]string, error)   { return g.agreed() }

func (*simStage) lacks(context.Context, string) (string, error)        { return "", nil }
func (*simStage) otherVersion(context.Context, string) (string, error) { return "", nil }

func (g *simStage) url(string) string {
	if g.w.limited {
		return simURL
	}
	return ""
}

func (g *simStage) opener(_ context.Context, w queue.Work) (opener, string, error) {
	return func(ctx context.Context, locked func(context.Context, session.Info) error) (conversation, error) {
		s, err := session.Open(ctx, g.store, w.Session)
		if err != nil {
			return nil, err
		}
		unlock, err := s.Lock(ctx)
		if err != nil {
			return nil, err
		}
		if err := locked(ctx, session.Info{ID: w.Session}); err != nil {
			return nil, errors.Join(err, unlock())
		}
		return &simRun{g: g, s: s, unlock: unlock}, nil
	}, g.url(w.Agent), nil
}

// simRun is a session that is open to be run, as a [host.Host] runs it.
type simRun struct {
	g      *simStage
	s      *session.Session
	unlock func() error

	mu     sync.Mutex
	run    *agent.Run
	after  bool
	result *agent.Result
}

func (o *simRun) Stream(ctx context.Context, _ string) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		waits := false
		for range o.s.Deliveries(ctx) { // an error, too: the run reports it
			waits = true
		}
		if !waits && !host.AsksSomething(o.s) {
			yield(nil, agent.ErrNothingToSend)
			return
		}
		run := o.g.agent.Start(o.s)
		o.mu.Lock()
		if o.run = run; o.after {
			run.StopAfterTurn()
		}
		o.mu.Unlock()
		ctx = context.WithValue(ctx, askingKey{}, &asking{session: o.s.ID()})
		for ev, err := range run.Events(ctx) {
			if !yield(ev, err) {
				break
			}
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.run, o.result = nil, run.Result()
	}
}

func (o *simRun) Result() *agent.Result { return o.result }

func (o *simRun) StopAfterTurn() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.after = true; o.run != nil {
		o.run.StopAfterTurn()
	}
}

func (o *simRun) Close() error { return o.unlock() }

// agent returns the agent of a process.
func (w *world) agent(p *proc) *agent.Agent {
	run := func(ctx context.Context, _ struct{}) (string, error) { return w.effect(ctx, p) }
	knows := func(ctx context.Context, c tool.Call) (res tool.Result, f tool.Fate, err error) {
		err = p.here(ctx, "inquire "+c.ID, func() error {
			if w.ledger[agenttest.KeyOf(ctx)].Ended > 0 {
				f, res = tool.FateDone, tool.Result{Text: "ran <" + agenttest.KeyOf(ctx) + ">"}
			}
			return nil
		})
		return res, f, err
	}
	a := &agent.Agent{
		Model: &simModel{w, p}, Retry: endpoint.Retry{Max: -1},
		Policy: agent.Policy{Allow: []string{"*"}, Ask: []string{"asks"}, Pause: true},
		Tools: []tool.Tool{
			tool.Must("work", "Works.", run), tool.Must("again", "Works, and may again.", run, tool.Idempotent()),
			tool.Must("asks", "Works, if it may.", run), tool.Must("knows", "Works, and knows whether it did.", run, tool.Inquire(knows)),
		},
		Hooks: []agent.Hooks{new(agenttest.CallLog).Hooks()},
	}
	a.Request.Model = "simulated"
	return a
}

// effect is what all tools do.
func (w *world) effect(ctx context.Context, p *proc) (string, error) {
	key := agenttest.KeyOf(ctx)
	count := func(change func(*agenttest.CallCounts)) func() error {
		return func() error {
			c := w.ledger[key]
			change(&c)
			w.ledger[key] = c
			return nil
		}
	}
	if err := p.here(ctx, "begin "+key, count(func(c *agenttest.CallCounts) { c.Began++ })); err != nil {
		return "", err
	}
	if err := p.here(ctx, "finish "+key, count(func(c *agenttest.CallCounts) { c.Ended++ })); err != nil {
		return "", err
	}
	return "ran <" + key + ">", nil
}

// simModel answers by what is written in the last thing that was said to it.
type simModel struct {
	w *world
	p *proc
}

func (m *simModel) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		var reply []item.Item
		fails, n, refused := false, 0, time.Duration(0)
		gate, asks := endpoint.GateFrom(ctx), askingOf(ctx)
		if m.w.limited {
			if err := gate.Enter(ctx, simURL); err != nil {
				yield(api.Event{}, err)
				return
			}
		}
		sent := time.Now()
		err := m.p.here(ctx, "ask "+fmt.Sprint(req.Input.Len()), func() error {
			if m.w.limited {
				m.w.sends(asks, sent)
				if m.w.refusals > 0 && m.w.one(4) {
					m.w.refusals--
					refused = m.w.between(time.Second, 20*time.Second)
					return nil
				}
			}
			reply, n = m.w.reply(req)
			fails = !m.w.calm && m.w.one(20)
			return nil
		})
		if refused > 0 {
			e := &endpoint.Error{Class: endpoint.RateLimit, Message: "slow down", RetryAfter: refused}
			gate.Failed(ctx, simURL, e)
			err = e
		}
		if err != nil {
			yield(api.Event{}, err)
			return
		}
		var output []string
		for i, it := range reply {
			output = append(output, it.JSON())
			if !yield(simEvent(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, it.JSON()), nil) {
				return
			}
		}
		if fails {
			yield(api.Event{}, errors.New("the model broke off"))
			return
		}
		yield(simEvent(`{"type":"response.completed","response":{"id":"resp_%d","status":"completed","output":[%s],"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}`,
			n, strings.Join(output, ",")), nil)
	}
}

func simEvent(format string, args ...any) api.Event {
	ev, err := api.ParseEvent(fmt.Appendf(nil, format, args...))
	if err != nil {
		panic(err)
	}
	return ev
}

// reply makes the reply to a request.
func (w *world) reply(req *api.Request) (reply []item.Item, n int) {
	var items []item.Item
	wish, rounds, calls := "", 0, 0
	in := false
	for _, it := range req.Input.All() {
		items = append(items, it)
		switch {
		case it.IsCall():
			if !in {
				rounds++
			}
			in = true
			calls++
			continue
		case it.Role() == item.RoleUser:
			if m, err := item.As[item.Message](it); err == nil {
				if text := m.Content.Display(); strings.Contains(text, " input ") {
					_, wish, _ = strings.Cut(text, ": ")
					rounds = 0
				}
			}
		}
		in = false
	}
	if err := agenttest.CheckPairing(items...); err != nil {
		w.problem("a request: %v", err)
	}
	todo := strings.Split(wish, ";")
	if wish == "" || rounds >= len(todo) {
		return []item.Item{item.Assistant(fmt.Sprintf("Done, %d.", len(items)))}, len(items)
	}
	for i, name := range strings.Split(todo[rounds], ",") {
		reply = append(reply, item.Call(fmt.Sprintf("call_%d_%d", len(items), i), name, "{}"))
	}
	return reply, len(items)
}
