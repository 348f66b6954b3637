// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/session/storetest"
)

// plan says how a life ends. Whatever comes first does.
type plan struct {
	// Step is the beginning of a step's name, as storetest.Step has it, and Nth
	// which of those that begin so.
	Step string `json:"step,omitempty"`
	Nth  int    `json:"nth,omitempty"`
	// Last is the step, counted among all, that no life comes beyond.
	Last int `json:"last"`
	// Fail makes the Step fail instead, and what comes afterwards work again.
	Fail bool `json:"fail,omitempty"`
	// Pages bounds the database's growth, in pages, FileSize that of all files, in
	// bytes: a full disk.
	Pages    int `json:"pages,omitempty"`
	FileSize int `json:"file_size,omitempty"`

	// stream is the piece of a reply at which the parent kills, after is a time
	// in microseconds; 0 is never.
	stream int
	after  int
}

// steps are the beginnings of steps' names that plans choose among. Steps of
// events and of tools are those of the worker.
var steps = []string{
	"append/given", "append/run_started", "append/turn_started", "append/received", "append/turn_ended",
	"append/approval_asked", "append/approval", "append/call_started", "append/nested", "append/paused", "append/answered",
	"append/compacted", "append/stop_asked", "append/stopped", "append/note", "append/many", "append/",
	"load", "lock", "unlock", "create", "deliver", "fork", "rename", "archive", "delete", "sweep", "put",
	"open/sql/", "sql/", "sql/BEGIN", "sql/COMMIT", "sql/INSERT", "sql/UPDATE", "sql/DELETE", "sql/DELETE antiphon_entries", "sql/begin", "sql/commit",
	"tool/", "tool/work", "tool/again", "tool/picture", "tool/fork", "tool/helper",
	"event/", "event/delta", "event/received", "event/call_started", "event/answered", "event/stopped",
}

// draw makes a plan.
func draw(r *rand.Rand) plan {
	p := plan{Last: 40 + r.IntN(1200)}
	switch n := r.IntN(100); {
	case n < 62:
		p.Step, p.Nth = drawStep(r)
	case n < 70:
		p.Step, p.Nth = drawStep(r)
		p.Fail = true
	case n < 76:
		p.Pages = 1 + r.IntN(30)
	case n < 80:
		p.FileSize = 1 + r.IntN(200_000)
	case n < 88:
		p.stream = 1 + r.IntN(60)
	default:
		p.after = 20_000 + r.IntN(150_000)
	}
	return p
}

// rare are the steps that a life meets once or twice, if at all.
var rare = []string{"create", "deliver", "fork", "rename", "archive", "delete", "sweep", "put", "unlock", "append/given", "append/compacted", "append/paused", "append/nested"}

// drawStep draws a step, and which of those that a life meets.
func drawStep(r *rand.Rand) (step string, nth int) {
	step = steps[r.IntN(len(steps))]
	if slices.Contains(rare, step) {
		return step, 1 + r.IntN(2)
	}
	return step, 1 + r.IntN(6)
}

// fate carries out a plan in the process that it is about.
type fate struct {
	plan
	report func(line string)

	mu      sync.Mutex
	all     int
	such    int
	failing bool
	opened  bool
}

var errInjected = errors.New("the test made this fail")

// at is told of every step.
func (f *fate) at(s storetest.Step) error {
	name := s.String()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.opened {
		name = "open/" + name
	}
	f.all++
	if f.Step != "" && strings.HasPrefix(name, f.Step) {
		f.such++
	}
	switch {
	case f.all >= f.Last:
		f.end(name)
	case f.Step == "" || f.such != f.Nth || f.failing:
	case f.Fail:
		f.failing = true
		f.report("failed " + name)
		return errInjected
	default:
		f.end(name)
	}
	return nil
}

// end ends the process. The lock is kept: nobody takes another step.
func (f *fate) end(name string) {
	f.report("killed " + name)
	die()
}

// step is a step of the worker's own.
func (f *fate) step(name string) { _ = f.at(storetest.Step{Name: name}) }
