// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/responses"
)

// canned answers every request with one stream, without a socket.
type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(strings.NewReader(string(c))),
		Request:    r,
	}, nil
}

func deltas(n int) *responses.Client {
	const delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":7,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" word\",\"logprobs\":[]}\n\n"
	const last = "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\n"
	return &responses.Client{BaseURL: "http://localhost", HTTP: &http.Client{Transport: canned(strings.Repeat(delta, n) + last)}}
}

// An event costs one allocation on its way to the consumer: its text.
func TestStreamAllocations(t *testing.T) {
	cost := func(n int) float64 {
		c, req := deltas(n), hello()
		fewest := math.Inf(1) // collections and the race detector empty pools
		for range 20 {
			fewest = min(fewest, testing.AllocsPerRun(1, func() {
				for _, err := range c.Stream(t.Context(), req) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}))
		}
		return fewest
	}
	if few, many := cost(10), cost(10_000); many-few > 10_000-10+2 { // the buffer grows to its size
		t.Errorf("%v allocations for 10 events, %v for 10000; want one more for each more", few, many)
	}
}

func BenchmarkStream(b *testing.B) {
	const n = 1000
	c, req := deltas(n), hello()
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range c.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
}
