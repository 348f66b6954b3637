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
	// unit is what the work consists of, and units the number of them.
	unit  string
	units int
	bytes int
	// gate is the required ratio of openai-go's processor time to ours, and goal the
	// desired one. 0 means none.
	gate, goal float64
	// maxAllocs limits our allocations per unit. A negative value means no limit.
	maxAllocs float64
	// bars are further gates.
	bars []bar
	// note returns more text for the report. It may be nil.
	note func() string
	// rounds limits how often slow work is repeated. 0 means no limit.
	rounds int
	libs   []lib
	// apart has the libs that run in a separate process, by name. Their functions
	// also return the processor time used. They run once per round, in few rounds.
	apart map[string]func() (int, time.Duration, error)
}

// bar is an upper limit for a figure of a row, or a lower limit if atLeast is set.
type bar struct {
	what       string
	got        func(result) float64
	gate, goal float64
	atLeast    bool
}

// most returns an upper limit for a figure.
func most(what string, got func(result) float64, gate, goal float64) bar {
	return bar{what, got, gate, goal, false}
}

// least returns a lower limit for a figure.
func least(what string, got func(result) float64, gate, goal float64) bar {
	return bar{what, got, gate, goal, true}
}

// lib is a library that does the work of a row. Run returns a number that must be
// the same for all libraries, which shows that none of them skips the work.
type lib struct {
	name string
	run  func() (int, error)
}

// servedRuns is how many runs of agents a server has at once.
const servedRuns = 1000

// rows returns all rows, in the order of the report, with so many runs of agents at once.
func rows(runs int) []row {
	text, mixed := textStream(), mixedStream()
	small, large := wholeResponse(100_000, false), wholeResponse(5_000_000, true)
	list := []row{
		streamRow("stream of text deltas, every event looked at as a view", text, 75, 130, false),
		streamRow("stream of text deltas, every delta kept", text, 40, 80, true),
		mayAllocate(streamRow("stream of mixed events, every event looked at", mixed, 0, 0, false), 1), // an item is copied from an event
		clientRow("stream of text deltas through the client", text),
		wholeRow("whole response of 100 KB, items indexed", small, 25, 40, false),
		wholeRow("whole response of 5 MB of images, items indexed", large, 45, 80, false),
		wholeClientRow("whole response of 5 MB of images, through the client", large, 20, 45),
		wholeRow("whole response of 100 KB, every view read", small, 8, 15, true),
	}
	if recorded := recordedStreams(); len(recorded) > 0 {
		r := streamRow("recorded streams, every event looked at", recorded, 50, 75, false)
		list = append(list, r)
	}
	list = append(list, largestRow(), chatDeltasRow(), embedRow("embeddings as base64", false, 5, 15), embedRow("embeddings as numbers", true, 1.5, 2))
	list = append(list, bodyRows()...)
	list = append(list, markdownRow("Markdown while it streams", longReply(2)))
	if recorded := recordedReplies(400); len(recorded) > 0 {
		list = append(list, markdownRow("Markdown while recorded replies stream", recorded))
	}
	list = append(list, terminalRow(terminalSize{starts: 15, entries: 10_000, many: 100_000, keys: 500, lines: 100_000}))
	for _, turns := range []int{50, 200} {
		list = append(list, loopRow(turns, plainHTTP), chatRow(turns))
	}
	list = append(list, servingRows(runs)...)
	return append(list, loopRow(200, overTLS), loopRow(200, overTLS2), typedRow(), idleRow(1000), durableRow(), turnRow(), postgresRow(), scaleRow(), openingRow(largeSession{10_000, 100, 2_000_000}), streamsRow(5000))
}

// recordedStreams returns the recorded streams in the folder beside the project,
// concatenated, or nil if there are none.
func recordedStreams() []byte {
	files, _ := filepath.Glob(filepath.Join("..", "..", "shared", "corpus", "streams", "*.sse"))
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || len(b) > 1<<20 {
			continue // one file of log probabilities would dominate the others
		}
		all.Write(b)
		all.WriteString("\n\n")
	}
	return []byte(all.String())
}

// countEvents returns the number of events in a stream.
func countEvents(stream []byte) int {
	n, err := ourEvents(stream, false)()
	if err != nil {
		panic(fmt.Sprintf("the stream of a row cannot be read: %v", err))
	}
	return n >> 32
}
