// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
)

// reading is a transport that tells when an answer was read.
type reading struct {
	to   *http.Transport
	done chan struct{}
}

func (r *reading) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.to.RoundTrip(req)
	if err == nil {
		resp.Body = &told{resp.Body, r.done}
	}
	return resp, err
}

type told struct {
	io.ReadCloser
	done chan struct{}
}

func (b *told) Close() error {
	b.done <- struct{}{}
	return b.ReadCloser.Close()
}

// A client that leaves while the upstream was not asked, or has refused and is to be asked again later, has
// used nothing.
func TestUnasked(t *testing.T) {
	dials, ended := make(chan struct{}, 10), make(chan struct{})
	defer close(ended)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dials <- struct{}{}
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return nil, net.ErrClosed
	}}
	full := agenttest.NewServer(t)
	full.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Failure(http.StatusTooManyRequests, "rate_limit_exceeded", "Later.").RetryAfter("30")
	})
	later, read := open(t, full.URL, false), &reading{to: http.DefaultTransport.(*http.Transport).Clone(), done: make(chan struct{}, 10)}
	defer read.to.CloseIdleConnections()
	later.Models, later.Config.Retry, later.Config.HTTP = "later", endpoint.Retry{}, &http.Client{Transport: read}
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{
		{Config: &dialect.Config{BaseURL: "http://127.0.0.1:1/v1", HTTP: &http.Client{Transport: transport}, Retry: endpoint.Retry{Max: -1}}}, later,
	}}}
	got := make(chan server.Outcome, 1)
	w.serve(&server.Server{Backend: w.b, Admit: func(context.Context, *server.Request) (func(server.Outcome), error) {
		return func(o server.Outcome) { got <- o }, nil
	}})
	defer w.end()
	for model, reached := range map[string]func() bool{
		"m":     func() bool { return len(dials) > 0 },
		"later": func() bool { return len(read.done) > 0 },
	} {
		made := w.create(`{"model":"` + model + `","background":true,"input":"` + strings.Repeat("word ", 1000) + `"}`)
		for !reached() {
			time.Sleep(time.Millisecond)
		}
		if status, _, text := w.ask(http.MethodPost, "/responses/"+made.ID+"/cancel", ""); status != http.StatusOK {
			t.Fatal(text)
		}
		select {
		case o := <-got:
			if o.Usage != nil || o.Cost != 0 {
				t.Errorf("%s: %+v, %+v", model, o, o.Usage)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the server does not say how it ended", model)
		}
	}
}
