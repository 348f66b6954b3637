// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// row is one kind of work, done by several libraries.
type row struct {
	name string
	// unit is what the work consists of, and units how many there are.
	unit  string
	units int
	bytes int
	// gate is by how many times less processor time than openai-go ours must
	// take, goal what we are after. 0 means none.
	gate, goal float64
	// maxAllocs bounds our allocations a unit; below 0 means no bound.
	maxAllocs float64
	// bars are further gates.
	bars []bar
	// note, if set, says more in the report.
	note func() string
	// rounds bounds how often slow work is repeated. 0 means no bound.
	rounds int
	libs   []lib
	// apart has those of the libs that work in a process of their own, by name,
	// which says how much processor time it took. They run once a round, in few
	// rounds.
	apart map[string]func() (int, time.Duration, error)
}

// bar bounds a figure of a row, from above unless atLeast is set.
type bar struct {
	what       string
	got        func(result) float64
	gate, goal float64
	atLeast    bool
}

func most(what string, got func(result) float64, gate, goal float64) bar {
	return bar{what, got, gate, goal, false}
}

func least(what string, got func(result) float64, gate, goal float64) bar {
	return bar{what, got, gate, goal, true}
}

// lib is a library at work. Its run returns a number that must be the same for
// all libraries of a row, so that none skips the work.
type lib struct {
	name string
	run  func() (int, error)
}

func rows() []row {
	text, mixed := textStream(), mixedStream()
	small, large := wholeResponse(100_000, false), wholeResponse(5_000_000, true)
	list := []row{
		streamRow("stream of text deltas, every event looked at as a view", text, 75, 130, false),
		streamRow("stream of text deltas, every delta kept", text, 40, 80, true),
		mayAllocate(streamRow("stream of mixed events, every event looked at", mixed, 0, 0, false), 1), // an item is copied out of an event
		clientRow("stream of text deltas through the client", text),
		wholeRow("whole response of 100 KB, items indexed", small, 25, 40, false),
		wholeRow("whole response of 5 MB of images, items indexed", large, 45, 80, false),
		wholeRow("whole response of 100 KB, every view read", small, 8, 15, true),
	}
	if recorded := recordedStreams(); len(recorded) > 0 {
		r := streamRow("recorded streams, every event looked at", recorded, 50, 75, false)
		list = append(list, r)
	}
	list = append(list, largestRow())
	list = append(list, bodyRows()...)
	for _, turns := range []int{50, 200} {
		list = append(list, loopRow(turns, plainHTTP), chatRow(turns))
	}
	return append(list, loopRow(200, overTLS), loopRow(200, overTLS2), idleRow(1000), durableRow(), openingRow(largeSession{10_000, 100, 2_000_000}), streamsRow(5000))
}

// recordedStreams are the recorded streams beside the project, one after the
// other, or nil where there are none.
func recordedStreams() []byte {
	files, _ := filepath.Glob(filepath.Join("..", "..", "shared", "corpus", "streams", "*.sse"))
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || len(b) > 1<<20 {
			continue // one file of log probabilities would drown the others
		}
		all.Write(b)
		all.WriteString("\n\n")
	}
	return []byte(all.String())
}

func countEvents(stream []byte) int {
	n, err := ourEvents(stream, false)()
	if err != nil {
		panic(fmt.Sprintf("the stream of a row cannot be read: %v", err))
	}
	return n >> 32
}
