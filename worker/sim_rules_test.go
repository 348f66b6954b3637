// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// Rules of the judge about what workers share: caps and turns of tenants, and the limits of
// the endpoint. They are checked while it happens. The judge keeps its own account of what
// the database was told, so that a database that forgets is found.

// simURL is the endpoint of all runs, in worlds with limits.
const simURL = "https://simulated/v1"

// pause is that the endpoint asks for nothing to be sent.
type pause struct{ told, until time.Time }

// account is what the judge knows of limits.
type account struct {
	pauses []pause
	slot   time.Time // the last time that was reserved for a request
	tokens int64     // that the database was told of
	// overtaken is how often work of others began before the first run of a session, while it
	// could begin and nothing of its tenant ran.
	overtaken map[string]int
	most      int // of these
}

// asking is a run that asks for the time of its next request.
type asking struct {
	session string
	at      time.Time // when the database told it last
	slot    time.Time // the time that is reserved for it; zero is none
	tokens  int64     // that were used by then
}

type askingKey struct{}

// askingOf returns who asks. It is nil for what no run asks for.
func askingOf(ctx context.Context) *asking {
	a, _ := ctx.Value(askingKey{}).(*asking)
	return a
}

// shareOf is the share of a minute that some of so many a minute take.
func shareOf(n, of int64) time.Duration { return time.Duration(n) * time.Minute / time.Duration(of) }

// reserved notes the answer to a run that asks for the time of a request.
func (w *world) reserved(a *asking, e queue.Endpoint, most time.Duration) {
	now := time.Now()
	a.at, a.tokens = now, w.tokens
	if w.limits.Requests == 0 || e.Wait > most {
		return
	}
	at := now.Add(max(e.Wait, 0))
	if gap := at.Sub(w.slot); !w.slot.IsZero() && gap < shareOf(1, w.limits.Requests)-time.Millisecond {
		w.problem("requests have times %v apart, and %d a minute are allowed", gap, w.limits.Requests)
	}
	a.slot, w.slot = at, at
}

// sends judges a request of a run.
func (w *world) sends(a *asking, sent time.Time) {
	for _, p := range w.pauses {
		if p.told.Before(a.at) && sent.Before(p.until) {
			w.problem("session %s: a request was sent %v before the end of a pause, of which the database knew when it was asked", a.session, p.until.Sub(sent))
		}
	}
	if w.limits.Requests > 0 {
		if a.slot.IsZero() || sent.Before(a.slot) {
			w.problem("session %s: a request was sent at %v, and its time was %v", a.session, sent, a.slot)
		}
		a.slot = time.Time{}
	}
	if n := w.limits.Tokens; n > 0 {
		// Nothing was used before the world began, and a millisecond is rounded each time.
		if paid := w.begun.Add(shareOf(a.tokens, n)); sent.Before(paid.Add(-time.Second)) {
			w.problem("session %s: a request was sent %v before the tokens that were used were free again", a.session, paid.Sub(sent))
		}
	}
}

// crowd judges, whenever work was begun, how many runs there are, and whose work had to wait.
func (w *world) crowd(begun string) {
	running, tenants := 0, map[string]int{}
	works := w.db.Works()
	var first queue.Work
	for _, now := range works {
		if now.State == queue.Running {
			running++
			tenants[now.Tenant]++
		}
		if now.Session == begun {
			first = now
		}
	}
	for tenant, most := range w.caps {
		if tenants[tenant] > most {
			w.problem("the tenant %s has %d runs, and may have %d", tenant, tenants[tenant], most)
		}
	}
	if n := w.limits.Runs; n > 0 && running > int(n) {
		w.problem("the endpoint has %d runs, and may have %d", running, n)
	}
	for _, now := range works {
		switch {
		case !w.calm || now.Claim > 0 || w.only[now.Session] != "" || now.State != queue.Ready || now.Due.After(time.Now()):
		case tenants[now.Tenant] > 0 || now.Tenant == first.Tenant:
			delete(w.overtaken, now.Session)
		default:
			w.overtaken[now.Session]++
			if n := w.overtaken[now.Session]; w.shares && n > w.most {
				w.problem("session %s: the work of others began %d times before that of its tenant %s, which runs nothing", now.Session, n, now.Tenant)
			}
		}
	}
}

// Rules of the judge about schedules.

// The clock of schedules runs fast, because the shortest time of a schedule is a minute, and
// begins at simEpoch.
const simFast = 20

var simEpoch = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// clock is the database's time of schedules, and real the time at which that was shown.
func (w *world) clock() time.Time { return simEpoch.Add(simFast * time.Since(w.begun)) }

func (w *world) real(shown time.Time) time.Time { return w.begun.Add(shown.Sub(simEpoch) / simFast) }

// planned is a schedule of a world.
type planned struct {
	Schedule

	every time.Duration
	fired map[time.Time]bool
}

// plan adds schedules.
func (w *world) plan() {
	for n := range 1 + w.r.IntN(2) {
		name := fmt.Sprint("c", n)
		s := &planned{fired: map[time.Time]bool{}, every: time.Minute, Schedule: Schedule{
			Name: name, Cron: "* * * * *", Owner: "ann", Overlap: w.one(2), SkipMissed: w.one(2),
			Input: name + " input 0: " + []string{"", "work", "knows,work", "again;work"}[w.r.IntN(4)],
		}}
		if w.one(2) {
			s.every, s.Cron = 2*time.Minute, "*/2 * * * *"
		}
		if w.one(2) {
			s.Session = name + " goes on"
		}
		w.plans[name] = s
		if err := w.db.Schedule(queue.Schedule{Name: name, Data: planData(s.Schedule), Due: simEpoch.Add(s.every)}); err != nil {
			panic(err)
		}
	}
}

// planData is the Data of a schedule.
func planData(s Schedule) []byte {
	data, err := json.Marshal(scheduleData{s, "/agent.md", json.RawMessage(simDefinition)})
	if err != nil {
		panic(err)
	}
	return data
}

// unplan removes the schedules some time after the last fault. By then each of them must fire
// again, whatever became of the workers that had begun to.
func (w *world) unplan() {
	const patience = time.Minute
	begun := time.Now()
	var look func()
	look = func() {
		late := false
		for _, q := range w.db.Schedules(true) {
			late = late || q.Now.Sub(q.Due) > simFast*5*time.Second
		}
		if late && time.Since(begun) < patience {
			w.after(time.Second, look)
			return
		}
		for name := range w.plans {
			if late {
				w.problem("the schedule %s does not fire any more", name)
			}
			_ = w.db.Unschedule(name)
		}
	}
	w.after(12*time.Second, look)
}

// fires judges what a worker says has become of a time.
func (w *world) fires(before, after queue.Schedule) {
	p := w.plans[before.Name]
	at, next := before.Due, before.Due
	for !next.After(after.Now) {
		at, next = next, next.Add(p.every)
	}
	was := func(format string, args ...any) {
		w.problem("the schedule %s, due at %s, read at %s: %s: %+v", p.Name, before.Due, after.Now, fmt.Sprintf(format, args...), after)
	}
	if before.Due.After(after.Now) {
		was("it was not due")
		return
	}
	if !after.Due.Equal(next) {
		was("its next time is %s", next)
	}
	missed := p.SkipMissed && after.Now.Sub(at) > grace
	last, err := w.db.Work(before.Session)
	busy := err == nil && (last.State == queue.Ready || last.State == queue.Running)
	switch {
	case strings.HasPrefix(after.Note, "fired for "):
		if missed || !after.Fired.Equal(at) || p.fired[at] {
			was("it fired for %s", at)
		}
		if busy && !p.Overlap && last.Since.Before(w.real(after.Now)) {
			was("it fired although the work of %s was not done", before.Session)
		}
		p.fired[at] = true
	case strings.HasSuffix(after.Note, "no worker ran"):
		if !missed {
			was("it was left out, and was not late")
		}
	case strings.HasSuffix(after.Note, "was not done"):
		if p.Overlap || w.busy[before.Session].Before(w.real(after.Now)) {
			was("it was left out, and nothing was under way")
		}
	default:
		was("it did not fire")
	}
}

// sees notes that somebody has seen that a session is under way.
func (w *world) sees(work queue.Work) {
	if work.State == queue.Ready || work.State == queue.Running {
		w.busy[work.Session] = time.Now()
	}
}

// firings compares what was left in the logs with the times that fired.
func (w *world) firings(logs map[string][]session.Entry) {
	found := map[string]int{}
	for id, log := range logs {
		for _, e := range log {
			d, ok := e.Body.(session.Delivered)
			rest, fires := strings.CutPrefix(d.Key, session.OwnKey("schedule "))
			if !ok || !fires {
				continue
			}
			name, at, _ := strings.Cut(rest, " ")
			at, _, _ = strings.Cut(at, " ")
			found[name+" "+at]++
			if p := w.plans[name]; p == nil || d.Entries != 1 {
				w.problem("session %s: %+v", id, d)
			} else if when, err := time.Parse(time.RFC3339, at); err != nil || when.Sub(simEpoch)%p.every != 0 {
				w.problem("session %s: a schedule has fired at another time: %s", id, d.Key)
			}
		}
	}
	for key, n := range found {
		if n > 1 {
			w.problem("%q was left %d times", key, n)
		}
	}
	for name, p := range w.plans {
		for at := range p.fired {
			if n := found[name+" "+at.Format(time.RFC3339)]; n != 1 {
				w.problem("the schedule %s has fired for %s, which was left %d times", name, at, n)
			}
		}
	}
}

// consent notes that somebody allows a call. Several people do so at once.
func (w *world) consent(d agent.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allowed[fmt.Sprint(d.Session, " ", d.Number)] = true
}

// silence judges that nothing counts as consent but what somebody said, that a call about
// which nobody answered did not run, and that this was said.
func (w *world) silence(id string, log []session.Entry) {
	turns, silent := map[string]int{}, map[string]int64{}
	for _, e := range log {
		switch b := e.Body.(type) {
		case session.OutputItem:
			if b.Item.IsCall() {
				turns[b.Item.CallID()] = b.Turn
			}
		case session.Approval:
			if b.Allowed && b.Decided == session.DeciderPerson && !w.allowed[fmt.Sprint(id, " ", b.Number)] {
				w.problem("session %s, entry %d: nobody has allowed the call %d", id, e.Seq, b.Number)
			}
			if delete(silent, b.CallID); b.Decided == session.DeciderUnanswered {
				silent[b.CallID] = e.Seq
			}
		case session.CallOutput:
			at, ok := silent[b.CallID]
			if !ok {
				continue
			}
			ran := w.ledger[agenttest.CallKey(id, turns[b.CallID], b.CallID)].Began
			if text := b.Item.JSON(); ran > 0 || !strings.Contains(text, "Nobody answered") {
				w.problem("session %s, entry %d: nobody answered about a call, which ran %d times: %s", id, at, ran, text)
			}
			delete(silent, b.CallID)
		}
	}
}

// sessions returns all sessions that have work, and those to which somebody said something.
func (w *world) sessions() (ids []string) {
	for _, id := range w.inputs {
		ids = append(ids, id)
	}
	for _, now := range w.db.Works() {
		ids = append(ids, now.Session)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
