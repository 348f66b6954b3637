// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// Transport is how a [Chain] sends its requests.
type Transport string

// The transports.
const (
	// HTTP sends each request separately and reads a stream of events for it.
	HTTP Transport = ""
	// WebSocket uses one socket for all responses.
	WebSocket Transport = "websocket"
)

// Chain is a model that sends only the new part of a conversation. It links each response to the
// previous one by id. Call it like a [Client], always with the whole history. If the history
// begins, byte for byte, with the last request's history and the items of its answer, the Chain
// sends the answer's id as previous_response_id and only the items after it. It sends instructions,
// tools and all other members each time, because the endpoint does not keep them. Any other history
// is sent whole, for example one that was edited, forked, compacted or rewritten for the endpoint.
// The model reads the same input either way.
//
// Over HTTP this needs a profile that says that the endpoint stores responses
// (PreviousResponse of [endpoint.Profile]), and a request that permits it: with store set to
// false the whole history is sent. For an endpoint that is not known, set the Client's Profile.
// Over a WebSocket the endpoint keeps the last response in memory, even with store set to false.
//
// If the endpoint no longer knows the id, the Chain immediately sends the whole history, once. If
// the socket is lost before any event of a response, it sends the whole history over a new socket,
// and if that socket is lost too, over HTTP. These retries use the same budget as a Client's
// retries. A socket that was lost between two responses does not cost a retry. After output,
// nothing is sent again: the error is a [*PartialError], as with a Client.
//
// If an endpoint refuses the WebSocket as such (with 400, 404, 405, 406, 426, 501, or an answer as
// if for a web page), the Chain uses HTTP from then on, see [Chain.Uses]. A request that is too
// large for the socket's server goes over HTTP. If the profile does not promise a WebSocket and the
// server shows that it ignored the id, the Chain treats the id as unknown to the server.
//
// A request with background or conversation goes to the Client unchanged, and so does a request
// made while another one is running. If the request has its own previous_response_id, that id comes
// before the whole history: the Chain sends it while there is no later response to continue from,
// and only over HTTP, because a socket may not know it. So a Chain is safe for concurrent use, but
// it links only one response at a time. A Chain must not be copied after its first use.
//
// A goroutine reads the socket and answers the server's pings while tools run. It ends with
// [Chain.Close], or when the server closes the socket. Most servers do so after an hour; the Chain
// opens a new socket before that.
type Chain struct {
	// Client sends the requests. Nil means the zero Client. Its IdleTimeout also limits the time
	// between two events on a WebSocket. Pings from the server do not count, because proxies send
	// them even if the server behind them is dead.
	Client *Client
	// Transport is the preferred transport. Without support by the endpoint, HTTP is used.
	Transport Transport

	own   Client // used if Client is nil
	busy  atomic.Bool
	last  *memory // owned by the holder of busy, like the next two fields
	dead  int     // number of ids in a row that the endpoint did not know
	noted bool    // the note about sending the whole history was given

	refused atomic.Bool // the endpoint has no WebSocket
	mu      sync.Mutex
	socket  *socket
	stop    context.CancelCauseFunc // cancels the running response
}

// maxDead is the number of ids in a row that an endpoint may not know before the Chain stops
// sending ids. Otherwise each request of the conversation would be sent twice.
const maxDead = 2

var errChainClosed = errors.New("the chain was closed")

// Stream sends the request and yields the events of the answer, like [Client.Stream]. It implements
// the agent's Model.
func (t *Chain) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if req == nil {
			yield(api.Event{}, errNilCall)
			return
		}
		if t.goesAlone(req) || !t.busy.CompareAndSwap(false, true) {
			t.client().Stream(ctx, req)(yield)
			return
		}
		defer t.busy.Store(false)
		ctx, end := t.begin(ctx)
		defer end()
		u, err := t.turn(req, false)
		if err != nil {
			yield(api.Event{}, err)
			return
		}
		u.s.yield = func(ev api.Event, err error) bool {
			u.hear(&ev)
			return yield(ev, err)
		}
		u.s.end(u.run(ctx))
	}
}

// Warm asks the endpoint to prepare for the request over the WebSocket, and opens the socket if
// necessary. The endpoint reads instructions, tools and history but does not answer. The answer to
// the following request, which may have more history, then starts sooner. Over HTTP, or while a
// response is running, Warm does nothing.
func (t *Chain) Warm(ctx context.Context, req *api.Request) error {
	if req == nil {
		return errNilCall
	}
	if t.goesAlone(req) || !t.busy.CompareAndSwap(false, true) {
		return nil
	}
	defer t.busy.Store(false)
	ctx, end := t.begin(ctx)
	defer end()
	u, err := t.turn(req, true)
	if err != nil {
		return err
	}
	u.s.yield = func(ev api.Event, _ error) bool {
		u.hear(&ev)
		return true
	}
	if t.Uses() == HTTP {
		return nil
	}
	if err = u.talks(ctx); u.refused {
		return nil // the request itself will report the error
	}
	return err
}

// Close closes the socket, if there is one, and notifies the endpoint. A running response ends as
// if its context had been cancelled. A later request opens a new socket.
func (t *Chain) Close() error {
	t.mu.Lock()
	s, stop := t.socket, t.stop
	t.socket = nil
	t.mu.Unlock()
	if stop != nil {
		stop(errChainClosed)
	}
	if s != nil {
		s.close()
	}
	return nil
}

// Uses returns the transport for the next request. It returns [HTTP] if the endpoint is known to
// have no WebSocket.
func (t *Chain) Uses() Transport {
	p, err := t.client().link().Known()
	if err != nil || p.WebSocket == endpoint.No || t.refused.Load() {
		return HTTP
	}
	return t.Transport
}

// RetryPolicy returns the Client's policy, for a run of package agent.
func (t *Chain) RetryPolicy() endpoint.Retry { return t.client().Retry }

// Window is like [Client.Window].
func (t *Chain) Window(ctx context.Context, model string) int64 {
	return t.client().Window(ctx, model)
}

// About says where requests go, and over which transport as far as known.
func (t *Chain) About() endpoint.About {
	a := t.client().About()
	if a.Transport = "continue"; t.Uses() == WebSocket {
		a.Transport = string(WebSocket)
	}
	return a
}

// Resume continues from a response of another Chain, possibly in another process. The response id
// answered req, whose Input is the whole history before it, with output. A request that begins with
// these is sent as the id and the remaining items, if the endpoint stores responses and still knows
// the id. A Chain that has already answered a request ignores Resume. Resume implements an agent's
// Resumer.
func (t *Chain) Resume(req *api.Request, id string, output []item.Item) {
	if req == nil || id == "" || t.goesAlone(req) || !t.busy.CompareAndSwap(false, true) {
		return
	}
	defer t.busy.Store(false)
	if t.last != nil {
		return
	}
	link := t.client().link()
	p, err := link.Known()
	if err != nil {
		return // the request itself will report the error
	}
	if whole, err := link.Fit(req, p); err == nil {
		t.last = &memory{
			id: id, base: req.PreviousResponseID, model: whole.Model, input: whole.Input.Clone(), output: output, stored: isStored(whole),
		}
	}
}

// Recall is like [Client.Recall].
func (t *Chain) Recall(before endpoint.About) { t.client().Recall(before) }

func (t *Chain) client() *Client {
	if t.Client == nil {
		return &t.own
	}
	return t.Client
}

// begin returns the context of a response. Close can cancel it.
func (t *Chain) begin(ctx context.Context) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(t.client().shared(ctx))
	t.mu.Lock()
	t.stop = stop
	t.mu.Unlock()
	return ctx, func() {
		t.mu.Lock()
		t.stop = nil
		t.mu.Unlock()
		stop(nil)
	}
}

// connect returns the open socket, or opens a new one.
func (t *Chain) connect(ctx context.Context, k *transport.Call, p *endpoint.Profile) (s *socket, fresh bool, err error) {
	t.mu.Lock()
	s = t.socket
	t.mu.Unlock()
	if s != nil && !s.lost() && time.Since(s.born) < maxAge {
		return s, false, nil
	}
	if s != nil {
		t.drop(s)
	}
	if s, err = openSocket(ctx, k, p.SocketHeader); err != nil {
		return nil, false, err
	}
	t.mu.Lock()
	t.socket = s
	t.mu.Unlock()
	return s, true, nil
}

// drop discards a socket.
func (t *Chain) drop(s *socket) {
	t.mu.Lock()
	if t.socket == s {
		t.socket = nil
	}
	t.mu.Unlock()
	s.drop()
}
