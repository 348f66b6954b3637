// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/sse"
)

// The largest single event is an image, on a line as long as the reader accepts by
// default.
const (
	largestHead = `data: {"type":"response.image_generation_call.partial_image","item_id":"ig_1","output_index":0,"partial_image_b64":"`
	largestTail = "\"}\n\n"
	largestText = sse.DefaultMaxEvent - len(largestHead) - len(largestTail) + len("\n\n")
)

// letters is an endless text of one letter.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'A'
	}
	return len(p), nil
}

// largestEvent returns a source of the event that does not hold it in memory.
func largestEvent() io.Reader {
	return io.MultiReader(strings.NewReader(largestHead), io.LimitReader(letters{}, int64(largestText)), strings.NewReader(largestTail))
}

// largestRow reads one event of 256 MiB from a source that generates it while it is
// read. The floor reads the same bytes without parsing them.
func largestRow() row {
	r := row{
		name: "one event of 256 MiB", unit: "event", units: 1, bytes: sse.DefaultMaxEvent, maxAllocs: -1, rounds: 1,
		libs: []lib{{"antiphon", readLargest}, {"io.ReadAll", func() (int, error) {
			b, err := io.ReadAll(largestEvent())
			return len(b) - len(largestHead) - len(largestTail), err
		}}},
	}
	r.note = func() string {
		return fmt.Sprintf("The buffer doubles as it fills: it ends at %d MiB, and while it grows, the half of it that was there before is kept too.", 2*sse.DefaultMaxEvent>>20)
	}
	return r
}

func readLargest() (int, error) {
	rd := sse.NewReader(largestEvent(), sse.Options{})
	raw, err := rd.Next()
	if err != nil {
		return 0, err
	}
	var d api.EventDecoder
	ev, err := d.Decode(raw.Data)
	if err != nil {
		return 0, err
	}
	v, _ := ev.Member("partial_image_b64")
	return len(v) - len(`""`), nil
}
