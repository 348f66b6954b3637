// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/antiphon-go/antiphon/server"
)

// errDrained is the cause of the end of a response whose server stops.
var errDrained = errors.New("the server stopped before the response was complete")

// running are the responses that are being made. It is ready for use.
type running struct {
	mu       sync.Mutex
	draining bool
	all      map[*passage]context.CancelCauseFunc
	idle     chan struct{} // closed when the last response ends, if somebody waits
}

// Drain refuses further requests and waits until no response is being made. If ctx ends
// before, the responses end with the status incomplete; those of which nothing was sent are
// refused.
func (b *Backend) Drain(ctx context.Context) {
	idle := b.running.drain()
	select {
	case <-idle:
		return
	case <-ctx.Done():
	}
	if n := b.running.stop(); n > 0 {
		b.log(fmt.Errorf("not ended in time, and therefore incomplete: %d of upstreams", n))
	}
	<-idle
}

// drain refuses further responses. The channel is closed when none is being made.
func (r *running) drain() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	if r.idle == nil {
		r.idle = make(chan struct{})
		if len(r.all) == 0 {
			close(r.idle)
		}
	}
	return r.idle
}

// stop ends the responses that are being made, and returns how many there are.
func (r *running) stop() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, end := range r.all {
		end(errDrained)
	}
	return len(r.all)
}

// enter registers a response that is being made, until leave is called. Its context ends when
// the server stops.
func (r *running) enter(ctx context.Context, p *passage) (own context.Context, leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining {
		return ctx, nil, stopping()
	}
	if r.all == nil {
		r.all = map[*passage]context.CancelCauseFunc{}
	}
	own, end := context.WithCancelCause(ctx)
	r.all[p] = end
	return own, func() { r.leave(p) }, nil
}

func (r *running) leave(p *passage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[p](nil)
	delete(r.all, p)
	if r.draining && len(r.all) == 0 {
		close(r.idle)
	}
}

// stopping is the error for a request that comes when the server stops.
func stopping() error {
	return &server.Error{Status: http.StatusServiceUnavailable, Code: "server_stopping", Message: "The server is about to stop."}
}

// stopped ends a response whose server stops, with what was complete.
func (p *passage) stopped() error {
	if p.w.Response().Status == "" {
		return stopping() // it can be asked for again
	}
	return p.w.Interrupt("server_error", "The server stopped before the response was complete. What was complete is kept, and the response can be continued.")
}
