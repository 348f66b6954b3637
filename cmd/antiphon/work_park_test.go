// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
)

// toldStore is a store that tells in which order a command does things.
type toldStore struct {
	*sqlstore.Store
	did []string
}

func (s *toldStore) Info(ctx context.Context, id string) (session.Info, error) {
	s.did = append(s.did, "info "+id)
	return s.Store.Info(ctx, id)
}

func (s *toldStore) Move(ctx context.Context, w queue.Work, to queue.State, reason string) error {
	s.did = append(s.did, "move "+w.Session)
	return s.Store.Move(ctx, w, to, reason)
}

func (s *toldStore) Stop(ctx context.Context, url, reason string) error {
	s.did = append(s.did, "stop")
	return s.Store.Stop(ctx, url, reason)
}

func newToldStore(t *testing.T) *toldStore {
	t.Helper()
	kept, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() }) // the test looked at what it holds
	return &toldStore{Store: kept.(*sqlstore.Store)}
}

// What runs is stopped before anything is read about the rest, and an endpoint before that.
func TestParkStopsWhatRunsFirst(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "agent.md"), "<system>Be brief.</system>\n")
	const url = "http://localhost:1/v1"
	for _, tt := range []struct {
		name string
		park workParkCommand
		want []string
	}{
		{"the agent", workParkCommand{chosenWork: chosenWork{Agent: file}}, []string{"info runs", "move runs", "info a", "move a", "info b", "move b"}},
		{"the tenant", workParkCommand{chosenWork: chosenWork{Tenant: "anna"}}, []string{"move runs", "move a", "move b"}},
		{"the endpoint", workParkCommand{chosenWork: chosenWork{Endpoint: url}}, []string{"stop", "move runs"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newToldStore(t)
			for _, id := range []string{"a", "b", "runs"} {
				if err := s.Create(t.Context(), session.Info{ID: id, Path: file}); err != nil {
					t.Fatal(err)
				}
				if err := s.Enqueue(t.Context(), queue.Work{Session: id, Agent: "x", Tenant: "anna"}); err != nil {
					t.Fatal(err)
				}
			}
			w, err := s.Work(t.Context(), "runs")
			if err == nil {
				w.Endpoint = url
				_, err = s.Begin(t.Context(), w, "worker")
			}
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			work := new(workCommand)
			all := work.sessions()
			all.hide = environment{}.Hider()
			if err := tt.park.park(t.Context(), stdio{strings.NewReader(""), &out, &out}, s, work, all); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.did, tt.want) {
				t.Errorf("%q, want %q\n%s", s.did, tt.want, &out)
			}
		})
	}
}

// A session that runs at a terminal has no work. Its run is asked to stop.
func TestParkAtATerminal(t *testing.T) {
	s := newToldStore(t)
	talk, err := session.Open(t.Context(), s, "talk")
	if err == nil {
		_, err = talk.Append(t.Context(), session.InputItem{Item: item.User("hello")}, session.RunStarted{})
	}
	if err != nil {
		t.Fatal(err)
	}
	park := workParkCommand{chosenWork: chosenWork{Sessions: []string{"talk"}}, Reason: "too dear"}
	var out bytes.Buffer
	work := new(workCommand)
	all := work.sessions()
	all.hide = environment{}.Hider()
	try := func() error { return park.park(t.Context(), stdio{strings.NewReader(""), &out, &out}, s, work, all) }
	if err := try(); err == nil || !strings.Contains(err.Error(), "has no work") { // nobody runs it
		t.Error(err)
	}
	unlock, err := s.Lock(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unlock() }()
	if err := try(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for d, err := range s.Deliveries(t.Context(), "talk") {
		if stop, ok := d.Bodies[0].(session.StopAsked); err != nil || !ok || stop.Run != 2 || stop.Why == "" || !strings.HasSuffix(stop.Detail, ": too dear") || d.By != person.AccountName() {
			t.Errorf("%+v, %v", d, err)
		}
		n++
	}
	if n != 1 || !strings.Contains(out.String(), "asked to stop") {
		t.Errorf("%d deliveries\n%s", n, &out)
	}
}

// Lists of sessions say why work does not move in the words of antiphon work status.
func TestListsSayWhyWorkWaits(t *testing.T) {
	s := newToldStore(t)
	info := session.Info{ID: "talk"}
	if err := s.Create(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	if err := s.Enqueue(t.Context(), queue.Work{Session: "talk", Agent: "x"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		left queue.Outcome
		want string
	}{
		{queue.Outcome{State: queue.Waiting, Reason: "the result of build"}, " (waits for the result of build)"},
		{queue.Outcome{State: queue.Parked, Reason: "too \x1b dear"}, " (parked, waits for an operator: too <U+001B> dear)"},
		{queue.Outcome{State: queue.Done, Reason: "answered"}, ""},
	} {
		w, err := s.Work(t.Context(), "talk")
		if err == nil {
			w, err = s.Begin(t.Context(), w, "worker")
		}
		if err == nil {
			err = s.Finish(t.Context(), w, tt.left)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := attach.Busy(t.Context(), s, info); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// An endpoint with all the runs that it may have says so.
func TestFullEndpointSaysSo(t *testing.T) {
	e := queue.Endpoint{Caps: queue.Caps{Runs: 2}, Running: 1}
	if got := idleBecause(e); got != "" {
		t.Error(got)
	}
	e.Running = 2
	if got := idleBecause(e); !strings.Contains(got, "as many runs as it may have at once (2)") {
		t.Error(got)
	}
}

// An answer to a call that is named on the command line says what the person had before them.
func TestApproveSaysWhatWasShown(t *testing.T) {
	var shown bytes.Buffer
	std := stdio{strings.NewReader(""), &shown, &shown}
	c := approveCommand{Calls: []string{"call_1"}}
	d, err := c.decide(t.Context(), std, person.New(std.in, std.err), nil, agent.PendingApproval{CallID: "call_1", Tool: "read_file", Arguments: `{"path":"a.txt"}`})
	if err != nil || d.Shown == "" || d.Shown != shown.String() {
		t.Errorf("%q, %v, and %q was shown", d.Shown, err, &shown)
	}
}
