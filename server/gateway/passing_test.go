// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
)

// pieces are the events of a stream with n deltas, each as an upstream writes it.
func pieces(n int) (list []string) {
	add := func(format string, args ...any) {
		list = append(list, fmt.Sprintf(`data: {"sequence_number":%d,`, len(list))+fmt.Sprintf(format, args...)+"}\n\n")
	}
	const message = `{"type":"message","id":"msg_1","role":"assistant","status":"%s","content":[%s]}`
	add(`"type":"response.created","response":{"id":"r","object":"response","status":"in_progress","output":[]}`)
	add(`"type":"response.in_progress","response":{"id":"r","object":"response","status":"in_progress","output":[]}`)
	add(`"type":"response.output_item.added","output_index":0,"item":`+message, "in_progress", "")
	add(`"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
	for i := range n {
		add(`"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"h\u00e9 %d","logprobs":[]`, i)
	}
	add(`"type":"response.output_item.done","output_index":0,"item":`+message, "completed", `{"type":"output_text","annotations":[],"logprobs":[],"text":"x"}`)
	add(`"type":"response.completed","response":{"id":"r","object":"response","status":"completed","output":[`+message+`]}`, "completed", `{"type":"output_text","annotations":[],"logprobs":[],"text":"x"}`)
	return list
}

// counted counts how often something is sent.
type counted struct {
	http.ResponseWriter
	flushes *atomic.Int64
}

func (c counted) FlushError() error {
	c.flushes.Add(1)
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// passing returns the address of a gateway before an upstream, and how often it sent something.
func passing(t *testing.T, upstream http.HandlerFunc) (base string, flushes *atomic.Int64) {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	flushes = new(atomic.Int64)
	s := &server.Server{Backend: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.ServeHTTP(counted{w, flushes}, r) }))
	t.Cleanup(func() {
		front.Close()
		s.Close()
	})
	return front.URL, flushes
}

func stream(t *testing.T, base string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, base+"/responses", strings.NewReader(`{"model":"m","input":"a","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return resp
}

// An event is sent before the gateway waits for the next one: the upstream sends each only
// when the client has the one before.
func TestEventsDoNotWait(t *testing.T) {
	all := pieces(30)
	// The gateway makes the first two events when the first one comes.
	steps := append([]string{all[0] + all[1]}, all[2:]...)
	had := make(chan struct{})
	base, _ := passing(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range steps {
			_, _ = w.Write([]byte(p))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-had:
			case <-r.Context().Done():
				return
			}
		}
	})
	lines := bufio.NewScanner(stream(t, base).Body)
	n := 0
	for n < len(all) && lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
			continue
		case strings.Contains(data, "delta") && "data: "+data+"\n\n" != all[n]:
			t.Errorf("%s became %s", all[n], data)
		}
		if n++; n >= 2 {
			had <- struct{}{}
		}
	}
	if n != len(all) {
		t.Errorf("%d events of %d: %v", n, len(all), lines.Err())
	}
}

// Events that are there at the same time are sent together, each of them once.
func TestEventsTogether(t *testing.T) {
	all := pieces(2000)
	base, flushes := passing(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(strings.Join(all, "")))
	})
	lines := bufio.NewScanner(stream(t, base).Body)
	n := 0
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if n < len(all) && strings.Contains(data, "delta") && "data: "+data+"\n\n" != all[n] {
			t.Errorf("%s became %s", all[n], data)
		}
		n++
	}
	if n != len(all) || flushes.Load() > 500 {
		t.Errorf("%d events of %d, sent %d times", n, len(all), flushes.Load())
	}
}
