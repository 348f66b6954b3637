// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/platform"
	"github.com/antiphon-go/antiphon/responses"
)

// A megabyte of a packed answer does not become a gigabyte of memory: a list, an answer and a
// stream end soon after the bound, as errors, and are not asked for again.
func TestPackedBombs(t *testing.T) {
	var requests, sent atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Error("the client does not ask for packed answers")
		}
		head, mega := `{"object":"list","data":[{"id":"`, strings.Repeat("a", 1<<20)
		if r.Header.Get("Accept") == "text/event-stream" {
			head, mega = "", `data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"`+mega+"\"}\n\n"
			w.Header().Set("Content-Type", "text/event-stream")
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, err := z.Write([]byte(head))
		for range 1024 {
			if err == nil {
				_, err = z.Write([]byte(mega))
			}
			if err == nil {
				err = z.Flush()
			}
			if err == nil {
				sent.Add(1)
			}
		}
	}))
	defer srv.Close()
	c := &responses.Client{BaseURL: srv.URL}
	list := func(own *http.Client) func() error {
		return func() (failure error) {
			for _, err := range (&platform.Client{BaseURL: srv.URL, HTTP: own}).Models(t.Context()) {
				failure = err
			}
			return failure
		}
	}
	for name, ask := range map[string]func() error{
		"list":                   list(nil),
		"list, the caller's":     list(new(http.Client)),
		"list, with a transport": list(srv.Client()),
		"answer": func() error {
			_, err := c.Create(t.Context(), &api.Request{Model: "m", Input: item.NewList(item.User("x"))})
			return err
		},
		"stream": func() (failure error) {
			for _, err := range c.Stream(t.Context(), &api.Request{Model: "m", Input: item.NewList(item.User("x"))}) {
				failure = err
			}
			return failure
		},
	} {
		t.Run(name, func(t *testing.T) {
			requests.Store(0)
			sent.Store(0)
			err := ask()
			var e *endpoint.Error
			if !errors.As(err, &e) || e.Class != endpoint.TooLarge || !strings.Contains(e.Message, "packed too well") {
				t.Errorf("the error is %v", err)
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests", requests.Load())
			}
			if sent.Load() == 1024 {
				t.Error("all of it was read")
			}
		})
	}
}

// A stream whose events are small does not fill the memory either: it ends at a bound for all of
// them, packed or not, as an error, and is not asked for again.
func TestEndlessStream(t *testing.T) {
	transport.SetMostStreamed(t, 1<<20)
	var requests atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		for err := error(nil); err == nil; {
			_, err = w.Write([]byte(`data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"` + strings.Repeat("a", 1000) + "\"}\n\n"))
		}
	}))
	defer srv.Close()
	for _, own := range []*http.Client{nil, {Transport: roundTrip(http.DefaultTransport.RoundTrip)}} {
		requests.Store(0)
		var failure error
		for _, err := range (&responses.Client{BaseURL: srv.URL, HTTP: own}).Stream(t.Context(), &api.Request{Model: "m", Input: item.NewList(item.User("x"))}) {
			failure = err
		}
		var e *endpoint.Error
		if !errors.As(failure, &e) || e.Class != endpoint.TooLarge || !strings.Contains(e.Message, "larger than 1048576 bytes together") || requests.Load() != 1 {
			t.Errorf("%d requests, and the error is %v", requests.Load(), failure)
		}
	}
}

// roundTrip is a transport of the caller's.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
