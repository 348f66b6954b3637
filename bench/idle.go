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
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// idleTurns is how long the conversations are that wait.
const idleTurns = 10

// idleRow tells how much memory runs take that wait for an approval: as values,
// which is a session each, and in an approver that has not answered. It measures
// no time.
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

// idler makes the i-th waiting thing. It calls waits when it waits, and ends when
// over is closed; what it returns is held until then.
type idler func(over <-chan struct{}, waits func()) (holds any, err error)

// idleMemory returns the kilobytes that each of n takes.
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
	during := memoryInUse()
	close(over)
	ended.Wait()
	if failed.Load() || held[n-1] == nil {
		return math.NaN()
	}
	return float64(int64(during-before)) / float64(n) / 1000
}

// scripted is a model that reads for some turns and then wants to write, which
// has to be approved.
type scripted struct{}

func (scripted) Stream(_ context.Context, req *item.Request) iter.Seq2[item.Event, error] {
	return func(yield func(item.Event, error) bool) {
		for data := range idleEvents(req.Input.Len() / 3) { // a turn is words, a call, and its output
			if ev, err := item.ParseEvent(data); !yield(ev, err) {
				return
			}
		}
	}
}

// idleEvents are the events of a turn, from 0.
func idleEvents(turn int) iter.Seq[[]byte] {
	stream := callStream(int64(turn))
	if turn == idleTurns {
		stream = bytes.ReplaceAll(stream, []byte(`"name":"read_file"`), []byte(`"name":"write_file"`))
	}
	return dataOf(stream)
}

// idleHistory is what a request carries of such a conversation.
func idleHistory() []byte {
	return append([]byte(item.User("Read on.").JSON()), bytes.Repeat(bareTurn(), idleTurns)...)
}

// startIdle runs until somebody has to approve.
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

// pausedRun has stopped, and its session waits.
func pausedRun(_ <-chan struct{}, _ func()) (any, error) {
	return startIdle(agent.Policy{Pause: true})
}

// blockedRun waits in an approver.
func blockedRun(over <-chan struct{}, waits func()) (any, error) {
	return startIdle(agent.Policy{Approver: func(context.Context, agent.ApprovalRequest) (agent.Verdict, error) {
		waits()
		<-over
		return agent.Verdict{Later: true}, nil
	}})
}

// idleGoroutine holds a request's history and nothing else.
func idleGoroutine(over <-chan struct{}, waits func()) (any, error) {
	history := idleHistory()
	waits()
	<-over
	return history, nil
}
