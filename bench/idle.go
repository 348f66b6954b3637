// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math"
	"sync"
	"sync/atomic"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// idleTurns is the number of turns in the waiting conversations.
const idleTurns = 10

// idleRow reports the memory of runs that wait for an approval: paused runs, of
// which only a session remains, and runs blocked in an approver. It measures no
// time.
func idleRow(n int) row {
	paused := sync.OnceValue(func() float64 { return idleMemory(n, pausedRun) })
	blocked := sync.OnceValue(func() float64 { return idleMemory(n, blockedRun) })
	floor := sync.OnceValue(func() float64 { return idleMemory(n, idleGoroutine) })
	return row{
		name: fmt.Sprintf("%d idle runs that wait for an approval", n), unit: "run", units: n, maxAllocs: -1,
		bars: []bar{
			most("KB of memory each, paused", func(result) float64 { return paused() }, 60, 40),
			most("in an approver", func(result) float64 { return blocked() }, 100, 60),
		},
		note: func() string {
			return fmt.Sprintf("Each is a conversation of %d turns, %.1f KB as a request carries it. A goroutine that holds such a request and waits takes %.1f KB.",
				idleTurns, float64(len(idleHistory()))/1000, floor())
		},
	}
}

// idler creates the i-th waiting run. It calls waits once it waits, and ends when
// over is closed. Its result is kept alive until then.
type idler func(over <-chan struct{}, waits func()) (holds any, err error)

// idleMemory returns the kilobytes of memory per run, for n runs.
func idleMemory(n int, one idler) float64 {
	before := memoryInUse()
	over := make(chan struct{})
	held := make([]any, n)
	var ready, ended sync.WaitGroup
	var failed atomic.Bool
	for i := range n {
		ready.Add(1)
		waits := sync.OnceFunc(ready.Done)
		ended.Go(func() {
			var err error
			if held[i], err = one(over, waits); err != nil {
				failed.Store(true)
			}
			waits()
		})
	}
	ready.Wait()
	// All runs wait now, and held and their goroutines keep them alive.
	during := memoryInUse()
	close(over)
	ended.Wait()
	if failed.Load() || held[n-1] == nil {
		return math.NaN()
	}
	return float64(int64(during-before)) / float64(n) / 1000
}

// scripted is a model that reads files for some turns and then calls a tool that
// writes, which needs approval.
type scripted struct{}

func (scripted) Stream(_ context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for data := range idleEvents(req.Input.Len() / 3) { // a turn adds words, a call, and its output
			if ev, err := api.ParseEvent(data); !yield(ev, err) {
				return
			}
		}
	}
}

// idleEvents returns the events of a turn, counted from 0.
func idleEvents(turn int) iter.Seq[[]byte] {
	stream := callStream(int64(turn))
	if turn == idleTurns {
		stream = bytes.ReplaceAll(stream, []byte(`"name":"read_file"`), []byte(`"name":"write_file"`))
	}
	return dataOf(stream)
}

// idleHistory returns the history that a request of such a conversation contains.
func idleHistory() []byte {
	return append([]byte(item.User("Read on.").JSON()), bytes.Repeat(bareTurn(), idleTurns)...)
}

// startIdle runs the agent until a call needs approval.
func startIdle(policy agent.Policy) (*session.Session, error) {
	a := &agent.Agent{Model: scripted{}, Tools: idleTools, Policy: policy}
	s := session.New()
	res, err := a.Run(context.Background(), s, item.User("Read on."))
	if err == nil && (res.Turns != idleTurns+1 || res.Calls != idleTurns) {
		err = fmt.Errorf("the run stopped after %d turns and %d calls: %s %s", res.Turns, res.Calls, res.Why, res.Detail)
	}
	return s, err
}

var idleTools = []tool.Tool{
	fileTool(func() {}),
	tool.Must("write_file", "Writes a file.", func(context.Context, fileInput) (string, error) { return "", nil }),
}

// pausedRun is an idler whose run has stopped; only its session waits.
func pausedRun(_ <-chan struct{}, _ func()) (any, error) {
	return startIdle(agent.Policy{Pause: true})
}

// blockedRun is an idler that waits in an approver.
func blockedRun(over <-chan struct{}, waits func()) (any, error) {
	return startIdle(agent.Policy{Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
		waits()
		<-over
		return agent.Decision{Later: true}, nil
	}})
}

// idleGoroutine is the floor: a goroutine that holds only the history of a request.
func idleGoroutine(over <-chan struct{}, waits func()) (any, error) {
	history := idleHistory()
	waits()
	<-over
	return history, nil
}
