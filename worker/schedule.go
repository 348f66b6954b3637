// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
)

// Schedule leaves work at certain times. It is an entry of a store: any worker of the
// store notices when it is due, and no client needs to be connected.
//
// Each time is a firing. It leaves the same work as [Submit], with a key that is made of
// the name and the time, so that it is delivered once, however many workers notice it and
// whenever they die.
type Schedule struct {
	Name string `json:"name"`
	// Cron are the times: minute, hour, day of the month, month and day of the week, or
	// @hourly, @daily, @weekly, @monthly or @yearly.
	Cron string `json:"cron"`
	// Zone is the time zone of the times, such as "Europe/Berlin". Empty means UTC.
	Zone string `json:"zone,omitempty"`
	// Owner is the owner of the sessions, and By is who added it.
	Owner string `json:"owner,omitempty"`
	By    string `json:"by,omitempty"`

	// Session is the session that each firing goes on with. If it is empty, each firing
	// begins a session, named after the schedule and the time in UTC.
	Session string `json:"session,omitempty"`
	// Input is what is said. If it is empty, the file's own question is, which needs a new
	// session each time.
	Input    string   `json:"input,omitempty"`
	Tenant   string   `json:"tenant,omitempty"`
	Priority int      `json:"priority,omitempty"`
	Needs    []string `json:"needs,omitempty"`

	// Overlap begins a firing although the last one is not done. Otherwise it is left out.
	// Work that is parked or waits for an answer is not under way.
	Overlap bool `json:"overlap,omitempty"`
	// SkipMissed leaves out firings that no worker noticed within a minute. Otherwise the
	// last one that was missed is made up for.
	SkipMissed bool `json:"skip_missed,omitempty"`
	// Refuse refuses calls that need an approval. Otherwise they wait for one.
	Refuse bool `json:"refuse,omitempty"`
}

// Scheduled is a [Schedule] as the store has it.
type Scheduled struct {
	Schedule
	Path  string // the agent's file
	Agent string // the hash of the agent's definition

	Due     time.Time // when it fires next; the zero value means never
	Fired   time.Time // the time for which it fired last
	Session string    // the session of that work
	Note    string    // what became of the last time, for people
}

// scheduleData is the Data of a [queue.Schedule].
type scheduleData struct {
	Schedule   Schedule        `json:"schedule"`
	Path       string          `json:"path"`
	Definition json.RawMessage `json:"definition"`
}

// grace is how late a firing may be that [Schedule].SkipMissed does not leave out.
const grace = time.Minute

// AddSchedule adds a schedule for the configuration's file as it is now. It fires for the
// first time after now. If there is a schedule with the name, the error wraps
// [session.ErrExists].
func AddSchedule(ctx context.Context, cfg host.Config, s Schedule) (Scheduled, error) {
	if _, _, err := parts(cfg.Store); err != nil {
		return Scheduled{}, err
	}
	q, err := store.As[queue.Schedules](cfg.Store, "keep schedules")
	if err != nil {
		return Scheduled{}, err
	}
	for _, name := range []string{s.Name, cmp.Or(s.Session, s.Name)} {
		if err := host.CheckName(name); err != nil {
			return Scheduled{}, &host.ConfigError{Err: err}
		}
	}
	due, err := s.next(time.Now())
	if err == nil {
		err = s.check()
	}
	if err == nil && due.IsZero() {
		err = fmt.Errorf("there is no such time: %s", s.Cron)
	}
	if err != nil {
		return Scheduled{}, &host.ConfigError{Err: err}
	}
	path, err := host.ResolvePath(cfg.File)
	if err != nil {
		return Scheduled{}, &host.ConfigError{Err: err}
	}
	cfg.Trust = nil // nothing is started here, and the worker asks
	d, _, err := host.Pack(ctx, cfg)
	if err != nil {
		return Scheduled{}, err
	}
	text, err := d.Encode()
	if err != nil {
		return Scheduled{}, err
	}
	data, err := json.Marshal(scheduleData{s, path, text})
	if err != nil {
		return Scheduled{}, err
	}
	entry := queue.Schedule{Name: s.Name, Data: data, Due: due}
	if err := q.Schedule(ctx, entry); err != nil {
		return Scheduled{}, err
	}
	return scheduled(entry)
}

// Schedules returns the schedules of a store by their names. If some are damaged, it returns
// the others and an error.
func Schedules(ctx context.Context, in store.Store) (list []Scheduled, err error) {
	if _, _, err := parts(in); err != nil {
		return nil, err
	}
	q, err := store.As[queue.Schedules](in, "keep schedules")
	if err != nil {
		return nil, err
	}
	entries, err := q.Schedules(ctx, false)
	for _, e := range entries {
		s, damage := scheduled(e)
		if damage != nil {
			err = errors.Join(err, damage)
			continue
		}
		list = append(list, s)
	}
	return list, err
}

// scheduled reads an entry.
func scheduled(e queue.Schedule) (Scheduled, error) {
	var data scheduleData
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return Scheduled{}, fmt.Errorf("the schedule %q: %w", e.Name, err)
	}
	d, err := agentfile.ParseDefinition(data.Definition)
	if err != nil {
		return Scheduled{}, fmt.Errorf("the schedule %q: %w", e.Name, err)
	}
	hash, err := d.Hash()
	return Scheduled{data.Schedule, data.Path, hash, e.Due, e.Fired, e.Session, e.Note}, err
}

// check refuses a schedule that would say nothing from its second time on: the file's own
// question is asked at the beginning of a session.
func (s *Schedule) check() error {
	if s.Session != "" && s.Input == "" {
		return errors.New("a schedule that goes on with a session needs an input")
	}
	return nil
}

// next returns the first time after another one, or the zero value if there is none. A time of
// certain hours that comes twice, because the clocks are put back, counts once.
func (s *Schedule) next(after time.Time) (time.Time, error) {
	switch {
	case strings.Contains(s.Cron, "TZ="):
		return time.Time{}, fmt.Errorf("the times %q name a zone: it has a place of its own, and a name such as Europe/Berlin", s.Cron)
	case strings.HasPrefix(s.Cron, "@every"):
		return time.Time{}, fmt.Errorf("the times %q: they are fields of cron, such as \"*/10 * * * *\" for every ten minutes", s.Cron)
	case s.Zone == "Local":
		return time.Time{}, errors.New("the zone has a name such as Europe/Berlin, and not Local")
	case slices.Contains(namedTimes, "@"+s.Cron):
		return time.Time{}, fmt.Errorf("the times %q: did you mean @%[1]s?", s.Cron)
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w; a zone has a name such as Europe/Berlin", err)
	}
	times, err := cron.ParseStandard(s.Cron)
	if err != nil {
		return time.Time{}, fmt.Errorf("the times %q: %w; they are five fields in quotes, such as \"30 9 * * 1-5\", or one of %s", s.Cron, err, strings.Join(namedTimes, ", "))
	}
	const everyHour = 1 << 63 // the parser's mark of an asterisk
	fields, ok := times.(*cron.SpecSchedule)
	at := nextIn(times, after.In(zone))
	for ok && fields.Hour&everyHour == 0 && isRepeated(at) {
		at = nextIn(times, at)
	}
	return at, nil
}

// namedTimes are the times that have a name.
var namedTimes = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

// nextIn returns the next time in the zone of another one. Package cron is only asked about clocks that nobody changes: where
// they are changed other than by whole hours at a full hour, it leaves days out or never returns.
func nextIn(times cron.Schedule, after time.Time) time.Time {
	for now := after; ; {
		_, offset := now.Zone()
		_, changed := now.ZoneBounds()
		at := times.Next(after.In(time.FixedZone("", offset)))
		if at.IsZero() || changed.IsZero() || at.Before(changed) {
			return at.In(now.Location())
		}
		now, after = changed, changed.Add(-time.Second)
	}
}

// isRepeated reports whether the clocks of its zone have shown a time before.
func isRepeated(at time.Time) bool {
	began, _ := at.ZoneBounds()
	if at.IsZero() || began.IsZero() {
		return false
	}
	_, before := began.Add(-1).Zone()
	_, now := at.Zone()
	return at.Sub(began) < time.Duration(before-now)*time.Second
}

// mostMissed is how many firings that were missed are counted.
const mostMissed = 1000

// last returns the last time up to now, from a time that is due on, how many there were, which is at most mostMissed,
// and the time after it.
func (s *Schedule) last(due, now time.Time) (at time.Time, n int, next time.Time, err error) {
	near := false
	for next = due; err == nil && !next.IsZero() && !next.After(now); n = min(n+1, mostMissed) {
		if at = next; n == mostMissed && !near {
			near = true
			if at, err = s.shortlyBefore(now); err != nil {
				break
			}
		}
		next, err = s.next(at)
	}
	return at, n, next, err
}

// shortlyBefore returns a time up to now that few others follow until then. There must be one.
func (s *Schedule) shortlyBefore(now time.Time) (at time.Time, err error) {
	for before := time.Minute; ; before *= 2 {
		if at, err = s.next(now.Add(-before)); err != nil || !at.IsZero() && !at.After(now) {
			return at, err
		}
	}
}

// fire leaves the work of the schedules that are due. A schedule that fails does not keep
// the others from firing, and is tried again at the next look.
func (p *pool) fire(ctx context.Context) error {
	// Schedules have times, so a change of the queue is no reason to look.
	if p.schedules == nil || !p.once && time.Since(p.fired) < p.pause()/2 {
		return nil
	}
	p.fired = time.Now()
	all := p.fired.Sub(p.firedAll) >= grace // now and then, those that are not due, too
	if all {
		p.firedAll = p.fired
	}
	list, err := p.schedules.Schedules(ctx, !all)
	damage := ""
	if errors.Is(err, session.ErrDamaged) {
		damage, err = p.sayable(err), nil
	}
	if damage != p.damage && damage != "" { // and not at each look
		p.log.Error("a schedule is damaged", "error", damage)
	}
	p.damage = damage
	for _, e := range list {
		log := p.log.With("schedule", e.Name)
		do := p.fireOne
		if e.Due.IsZero() || e.Due.After(nowOf(e)) {
			do = p.putRight
		}
		switch note, err := do(ctx, e); {
		case errors.Is(err, queue.ErrChanged): // another worker was faster
		case err != nil:
			log.Error("a schedule failed", "error", p.sayable(err))
		case note == "":
		default:
			log.Info("schedule fired", "outcome", note)
		}
	}
	return err
}

// fireOne leaves the work of one schedule, and then says when it fires next. A worker that
// dies in between leaves it due, and the next one delivers nothing twice.
func (p *pool) fireOne(ctx context.Context, e queue.Schedule) (note string, err error) {
	var data scheduleData
	next := e
	if err := json.Unmarshal(e.Data, &data); err != nil {
		next.Due, next.Note = time.Time{}, p.sayable(err)
		return next.Note, p.schedules.Fired(ctx, next)
	}
	s := &data.Schedule
	now := nowOf(e)
	at, n, due, err := s.last(e.Due, now)
	switch {
	case err != nil: // such as a zone that this machine does not know: another worker may
		return "", err
	case n == 0:
		return "", queue.ErrChanged // it is not due yet
	}
	next.Due = due
	busy, err := p.underWay(ctx, e.Session)
	switch {
	case err != nil:
		return "", err
	case s.SkipMissed && now.Sub(at) > grace:
		next.Note = "left out " + s.show(at) + ": no worker ran"
	case busy && !s.Overlap:
		next.Note = "left out " + s.show(at) + ": the work of " + e.Session + " was not done"
	default:
		err := s.check()
		var r Receipt
		if err != nil { // it was added by an older version
			err = &host.ConfigError{Err: err}
		} else {
			r, err = p.leave(ctx, &data, at)
		}
		var wrong *host.ConfigError
		switch {
		case errors.As(err, &wrong), errors.Is(err, session.ErrInboxFull): // another attempt would fail, too
			next.Note = "failed at " + s.show(at) + ": " + p.sayable(err)
		case err != nil:
			return "", err
		default:
			next.Fired, next.Session, next.Note = at, r.Session.ID, "fired for "+s.show(at)
			switch {
			case n == mostMissed:
				next.Note += fmt.Sprintf(", and not for at least %d earlier times, when no worker ran", n-1)
			case n > 1:
				next.Note += fmt.Sprintf(", and not for %d earlier times, when no worker ran", n-1)
			}
			if r.Parked != "" {
				next.Note += "; its session is parked: " + r.Parked
			}
		}
	}
	return next.Note, p.schedules.Fired(ctx, next)
}

// nowOf returns the time by the clock that says what is due.
func nowOf(e queue.Schedule) time.Time {
	if e.Now.IsZero() {
		return time.Now()
	}
	return e.Now
}

// putRight gives a schedule its next time, if it has a later one: it fired while a clock was ahead. The note is "" if
// there is nothing to do. Clocks are set back by seconds, and then it must not fire twice.
func (p *pool) putRight(ctx context.Context, e queue.Schedule) (note string, err error) {
	var data scheduleData
	if e.Due.IsZero() || json.Unmarshal(e.Data, &data) != nil {
		return "", nil
	}
	now := nowOf(e)
	due, err := data.Schedule.next(now.Add(grace))
	if err != nil || due.IsZero() || !e.Due.After(due) {
		return "", nil // an error is reported when it is due
	}
	next := e
	if next.Due, err = data.Schedule.next(now); err != nil {
		return "", err
	}
	next.Note = "a clock was ahead: it would have fired at " + data.Schedule.show(e.Due)
	return next.Note, p.schedules.Fired(ctx, next)
}

// show returns a time for people.
func (s *Schedule) show(at time.Time) string {
	if zone, err := time.LoadLocation(s.Zone); err == nil {
		at = at.In(zone)
	}
	return at.Format("2006-01-02 15:04 MST")
}

// underWay reports whether work of a session is ready or runs.
func (p *pool) underWay(ctx context.Context, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	w, known, err := workOf(ctx, p.queue, id)
	return known && slices.Contains([]queue.State{queue.Ready, queue.Running}, w.State), err
}

// leave leaves the work of a firing.
func (p *pool) leave(ctx context.Context, data *scheduleData, at time.Time) (Receipt, error) {
	s := &data.Schedule
	name := s.Session
	if name == "" {
		name = s.Name + " " + at.UTC().Format("2006-01-02T15:04Z")
	}
	order := order{
		path: data.Path, name: name, owner: s.Owner, definition: data.Definition, replace: true,
		input: session.Delivery{Delivered: session.Delivered{Key: session.OwnKey("schedule %s %s", s.Name, at.UTC().Format(time.RFC3339)), By: s.By, From: "schedule " + s.Name}},
		work:  queue.Work{Tenant: s.Tenant, Priority: s.Priority, Needs: s.Needs, Refuse: s.Refuse},
	}
	if s.Input != "" {
		order.input.Bodies = []session.Body{session.InputItem{Item: item.User(s.Input)}}
	}
	return order.leave(ctx, p.Config.Store)
}
