// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// largeSession describes the content of a large session.
type largeSession struct {
	items, images, imageSize int
}

// openingRow opens a session with many items and large images, and continues it.
func openingRow(l largeSession) row {
	took := sync.OnceValue(func() opening { return measureOpening(l, 20) })
	return row{
		name: fmt.Sprintf("session of %d items and %d MB of images", l.items, l.images*l.imageSize/1_000_000), unit: "item", units: l.items, maxAllocs: -1,
		bars: []bar{
			most("ms to open it", func(result) float64 { return took().ms }, 150, 75),
			most("MB of memory that it takes then", func(result) float64 { return took().mb }, 30, 15),
			most("processor time of a turn, of one in a new session, with previous_response_id", func(result) float64 { return took().http.cpu }, 1.3, 1.1),
			most("allocations", func(result) float64 { return took().http.allocs }, 1.1, 1.05),
			most("over a WebSocket", func(result) float64 { return took().socket.cpu }, 1.3, 1.1),
			most("allocations over it", func(result) float64 { return took().socket.allocs }, 1.1, 1.05),
		},
		note: func() string {
			return fmt.Sprintf("To read the log of a SQLite file and to fold it, so that the next request is at hand. Time that passes, the median of %d; the images stay in the store. While it is opened, %.1f MB are allocated.", openings, took().allocated)
		},
	}
}

// opening holds the figures of the row.
type opening struct {
	ms, mb, allocated float64
	http, socket      turnCost // divided by those in a new session
	err               error
}

// turnCost is the cost of one turn.
type turnCost struct{ cpu, allocs float64 }

const openings = 7

// measureOpening measures on a store in a temporary file.
func measureOpening(l largeSession, turns int) (o opening) {
	nan := math.NaN()
	o = opening{ms: nan, mb: nan, allocated: nan, http: turnCost{nan, nan}, socket: turnCost{nan, nan}}
	dir, err := os.MkdirTemp("", "antiphon-bench-")
	if err != nil {
		o.err = err
		return o
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := sqlstore.OpenSQLite(context.Background(), filepath.Join(dir, "sessions.db"), openSQLite, sqlstore.Options{})
	if err != nil {
		o.err = err
		return o
	}
	defer func() { _ = store.Close() }()
	if o.err = l.write(store); o.err != nil {
		return o
	}
	if o.err = o.open(store, l.items); o.err != nil {
		return o
	}
	if o.http, o.err = turnsOn(store, responses.HTTP, turns); o.err == nil {
		o.socket, o.err = turnsOn(store, responses.WebSocket, turns)
	}
	return o
}

const largeID = "large"

// write writes the session to the store, in the form that a run with a tool for
// images leaves it.
func (l largeSession) write(store session.Store) error {
	ctx := context.Background()
	s, err := session.Open(ctx, store, largeID)
	if err != nil {
		return err
	}
	if _, err := s.Append(ctx, session.RunStarted{}, session.InputItem{Item: item.User("Read on.")}); err != nil {
		return err
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for turn := range l.items / 2 {
		id := fmt.Sprintf("call_before_%d", turn) // differs from the ids of the server
		out := item.Text(fileText)
		if every := l.items / 2 / l.images; turn%every == 0 {
			image := make([]byte, l.imageSize)
			for i := range image {
				image[i] = byte(chance.Uint32())
			}
			out = item.Parts(&item.InputImage{ImageURL: "data:image/png;base64," + base64.StdEncoding.EncodeToString(image), Detail: item.DetailAuto})
		}
		_, err := s.Append(ctx,
			session.TurnStarted{Turn: turn + 1},
			session.OutputItem{Turn: turn + 1, Item: item.Call(id, "read_file", `{"path":"notes.txt"}`)},
			session.TurnEnded{Turn: turn + 1, ResponseID: "resp_1", Status: item.StatusCompleted},
			session.Approval{CallID: id, Allowed: true}, session.CallStarted{CallID: id},
			session.CallOutput{CallID: id, Item: item.Must(&item.FunctionCallOutput{CallID: id, Output: out})})
		if err != nil {
			return err
		}
	}
	return nil
}

// open measures the time and memory until the session is ready for use.
func (o *opening) open(store session.Store, items int) error {
	var times []time.Duration
	for range openings {
		before := memoryInUse()
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		began := time.Now()
		s, err := session.Open(context.Background(), store, largeID)
		if err != nil {
			return err
		}
		var v session.View
		for e := range s.Entries() {
			v.Apply(e)
		}
		times = append(times, time.Since(began))
		runtime.ReadMemStats(&is)
		if v.Items().Len() < items {
			return fmt.Errorf("the view has %d items of %d", v.Items().Len(), items)
		}
		o.mb = float64(int64(memoryInUse()-before)) / 1e6
		o.allocated = float64(is.TotalAlloc-was.TotalAlloc) / 1e6
		runtime.KeepAlive(s)
		runtime.KeepAlive(&v)
	}
	o.ms = float64(median(times)) / 1e6
	return nil
}

// turnsOn compares turns on the large session with turns on a new one, by the
// medians over some rounds.
func turnsOn(store session.Store, transport responses.Transport, turns int) (cost turnCost, err error) {
	var cpu, allocs []float64
	for round := range 5 {
		var large, fresh turnCost
		if large, err = turnOn(store, largeID, transport, turns); err != nil {
			return cost, err
		}
		if fresh, err = turnOn(store, fmt.Sprintf("new-%s-%d", transport, round), transport, turns); err != nil {
			return cost, err
		}
		cpu, allocs = append(cpu, large.cpu/fresh.cpu), append(allocs, large.allocs/fresh.allocs)
	}
	return turnCost{median(cpu), median(allocs)}, nil
}

// turnOn runs turns on a session and returns the cost of one, measured from the
// second call of the tool to the last. It excludes the first request, which contains
// the whole history.
func turnOn(store session.Store, id string, transport responses.Transport, turns int) (cost turnCost, err error) {
	ctx := context.Background()
	s, err := session.Open(ctx, store, id)
	if err != nil {
		return cost, err
	}
	base, err := endpointURL()
	if err != nil {
		return cost, err
	}
	profile, err := endpoint.ByName("openai")
	if err != nil {
		return cost, err
	}
	web := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	defer web.CloseIdleConnections()
	chain := &responses.Chain{
		Client:    &responses.Client{BaseURL: base + "/loop", Key: endpoint.NewKey(benchKey), HTTP: web, Profile: &profile},
		Transport: transport,
	}
	defer func() { _ = chain.Close() }()
	var began time.Duration
	var was, is runtime.MemStats
	calls := 0
	read := fileTool(func() {
		switch calls++; calls {
		// Start at the second call: the first request contains the whole history.
		case 2:
			runtime.GC()
			runtime.ReadMemStats(&was)
			began = cpuTime()
		case turns:
			runtime.ReadMemStats(&is)
			cost = turnCost{float64(cpuTime()-began) / float64(turns-2), float64(is.Mallocs-was.Mallocs) / float64(turns-2)}
		}
	})
	a := &agent.Agent{Model: chain, Request: api.Request{Model: "gpt-5.1", Instructions: instructions}, Limits: agent.Limits{MaxTurns: turns}}
	a.Tools = append(a.Tools, read)
	if _, err := a.Run(ctx, s, item.User("Read on.")); err != nil {
		return cost, err
	}
	if calls != turns {
		return cost, errors.New("the tool was not called each turn")
	}
	return cost, nil
}
