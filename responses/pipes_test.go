// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/responses"
)

// pipes is a listener whose connections are pipes. In the bubble of a test the time of their two ends passes only
// while both wait, so no machine is too slow for a limit.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }

// inBubble returns a client of a handler for the bubble of a test.
func inBubble(t *testing.T, h http.Handler) *responses.Client {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	serving, ended := &http.Server{Handler: h}, make(chan struct{}) //nolint:gosec // the client is ours
	go func() {
		defer close(ended)
		_ = serving.Serve(l)
	}()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		l.conns <- theirs
		return ours, nil
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		close(l.done)
		_ = serving.Close()
		<-ended
	})
	return &responses.Client{
		BaseURL: "http://localhost/v1", HTTP: &http.Client{Transport: transport},
		Retry: endpoint.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	}
}

// always answers every request with the same, and counts them.
func always(answer agenttest.Reply, requests *int) http.Handler {
	return agenttest.Wrap(http.NotFoundHandler(), func(int, agenttest.Request, agenttest.Reply) agenttest.Reply {
		*requests++
		return answer
	})
}
