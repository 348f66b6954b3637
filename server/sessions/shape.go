// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/worker"
)

// Status says what happens to a session now.
type Status string

// The statuses.
const (
	StatusIdle        Status = "idle"        // nothing happens until somebody says something or runs it
	StatusQueued      Status = "queued"      // it is work that waits for a worker, or for its time
	StatusRunning     Status = "running"     // a process runs it
	StatusWaiting     Status = "waiting"     // a call waits for an approval
	StatusParked      Status = "parked"      // it is work that waits for an operator
	StatusInterrupted Status = "interrupted" // the process that ran it ended before its run did
	StatusUnreadable  Status = "unreadable"  // of a list: the session is damaged, and the server's log says how
)

// Session describes a session.
type Session struct {
	Object string `json:"object"` // "session"
	ID     string `json:"id"`
	Name   string `json:"name"`
	Title  string `json:"title"`
	// Agent is the name of the agent's file, without its folder and without .md.
	Agent   string   `json:"agent"`
	Tags    []string `json:"tags"`
	Created int64    `json:"created_at"` // seconds since 1970; 0 means unknown
	Updated int64    `json:"updated_at"`
	// Entries is the number of the last entry of the log.
	Entries int64  `json:"entries"`
	Status  Status `json:"status"`
	// Waits says in words who or what its work waits for, or who does it: see [worker.Outlook.Waits]. It is ""
	// if it has no work, or all of it is done.
	Waits string `json:"waits"`
	// Deliveries is how many deliveries wait for the run, or for the next one.
	Deliveries int `json:"deliveries"`
	// Pending are the calls that wait for an approval, those of subagents too.
	Pending []agent.PendingApproval `json:"pending"`

	inside bool // a subagent is at work
}

// Page is a part of the list of sessions, the most recently written ones first.
type Page struct {
	Object string    `json:"object"` // "list"
	Data   []Session `json:"data"`
	// Next is the parameter after of the next page, or "" if this is the last one.
	Next string `json:"next"`
}

// Receipt says what became of input, or of a request to stop. See [session.Receipt].
type Receipt struct {
	Object  string `json:"object"` // "session.delivery"
	Session string `json:"session"`
	Key     string `json:"key"`
	Number  int64  `json:"number"`
	Taken   int64  `json:"taken"`
}

// Answered says that an answer about a call counts, or waits for the run to take it.
type Answered struct {
	Object  string `json:"object"` // "session.approval"
	Session string `json:"session"`
	CallID  string `json:"call_id"`
	Number  int    `json:"number"`
	Approve bool   `json:"approve"`
}

// The bodies of requests.

type inputRequest struct {
	// Input is a text, or a list of parts of a message.
	Input item.JSON `json:"input"`
	Later bool      `json:"later,omitempty"`
	Key   string    `json:"key,omitempty"`
}

type stopRequest struct {
	AfterTurn bool   `json:"after_turn,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Key       string `json:"key,omitempty"`
}

type answerRequest struct {
	Session   string        `json:"session,omitempty"`
	Number    int           `json:"number"`
	CallID    string        `json:"call_id"`
	Approve   *bool         `json:"approve"`
	Reason    string        `json:"reason,omitempty"`
	Arguments string        `json:"arguments,omitempty"`
	Remember  *session.Rule `json:"remember,omitempty"`
	Shown     string        `json:"shown,omitempty"`
}

// describe reads what is to tell of a session.
func (h *Handler) describe(ctx context.Context, info session.Info, look func() *worker.Outlook) (Session, error) {
	v := Session{
		Object: "session", ID: info.ID, Name: info.Name, Title: info.Title, Tags: info.Tags, Entries: info.Entries, Pending: []agent.PendingApproval{},
	}
	if info.Path != "" {
		v.Agent = strings.TrimSuffix(filepath.Base(info.Path), ".md")
	}
	if v.Tags == nil {
		v.Tags = []string{}
	}
	if !info.Created.IsZero() {
		v.Created = info.Created.Unix()
	}
	if !info.Updated.IsZero() {
		v.Updated = info.Updated.Unix()
	}
	s, err := session.Open(ctx, h.Store, info.ID)
	if err != nil {
		return v, err
	}
	v.Entries = int64(len(s.Log()))
	pending, err := agent.PendingApprovals(ctx, s)
	if err != nil {
		return v, err
	}
	v.Pending = append(v.Pending, pending...)
	for _, err := range s.Deliveries(ctx) {
		if errors.Is(err, errors.ErrUnsupported) {
			break
		}
		if err != nil {
			return v, err
		}
		v.Deliveries++
	}
	run := v.unfinished(s)
	var state queue.State // none if there is no work
	if q, ok := h.Store.(queue.Queue); ok {
		switch w, err := q.Work(ctx, info.ID); {
		case err != nil && !errors.Is(err, session.ErrNotFound):
			return v, err
		case err == nil && w.State != queue.Done:
			state, v.Waits = w.State, worker.Waits(w, time.Now())
			if state == queue.Ready { // something else than a worker may be missing
				if o := look(); o != nil {
					v.Waits, _ = o.Waits(w, time.Now())
				}
			}
		}
	}
	v.Status, err = h.status(ctx, info.ID, state, run, len(pending) > 0)
	return v, err
}

// unfinished reports whether the log has a run that has not stopped, and notes whether it is inside a call.
func (v *Session) unfinished(s *session.Session) (run bool) {
	var view session.View
	for e := range s.Entries() {
		view.Apply(e)
		switch e.Body.(type) {
		case session.RunStarted:
			run = true
		case session.Stopped:
			run = false
		}
	}
	for _, c := range view.Open() {
		v.inside = v.inside || c.Started
	}
	return run
}

// looking returns a function that looks at what keeps work from beginning, once, when it is first
// needed. It returns nil if that cannot be read: it is about all work of the store, and one damaged row
// hides no session.
func (h *Handler) looking(ctx context.Context) func() *worker.Outlook {
	return sync.OnceValue(func() *worker.Outlook {
		o, err := worker.Look(ctx, h.Store)
		if err != nil {
			if h.Log != nil && ctx.Err() == nil {
				h.Log(err)
			}
			return nil
		}
		o.Brief = true
		return o
	})
}

// status returns what happens to a session whose log says that a run is under way, or that
// calls wait. The lock of a session is tried only if its log says that somebody holds it:
// a program that opens the session at that moment would find it busy.
func (h *Handler) status(ctx context.Context, id string, state queue.State, run, waits bool) (Status, error) {
	if waits {
		return StatusWaiting, nil
	}
	if run {
		l, ok := h.Store.(session.Locker)
		if !ok {
			return StatusRunning, nil
		}
		unlock, err := nils.Lock(ctx, l, id)
		switch {
		case errors.Is(err, session.ErrBusy):
			return StatusRunning, nil
		case err != nil:
			return "", err
		}
		if err := unlock(); err != nil {
			return "", err
		}
	}
	switch state {
	case queue.Running:
		return StatusRunning, nil
	case queue.Ready, queue.Waiting:
		return StatusQueued, nil
	case queue.Parked:
		return StatusParked, nil
	}
	if run {
		return StatusInterrupted, nil
	}
	return StatusIdle, nil
}
