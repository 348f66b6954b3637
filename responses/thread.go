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

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// Transport is what the requests of a [Thread] go over.
type Transport string

// The transports.
const (
	// HTTP is a request and a stream of events for each response.
	HTTP Transport = ""
	// WebSocket is one socket for all responses.
	WebSocket Transport = "websocket"
)

// Thread is one conversation with an endpoint; it sends what is new alone. It is
// asked as a [Client] is, always with the whole history. Where that begins, byte
// for byte, with the history of the last request and the items of its answer,
// the Thread sends the id of that answer as previous_response_id and the items
// after; instructions, tools and all the rest are sent each time, for the
// endpoint does not keep them. Any other history is sent whole: one that was
// edited, forked, compacted or rewritten for the endpoint. What the model reads
// is the same either way.
//
// Over HTTP that takes an endpoint that keeps responses, by its profile, and a
// request that lets it: with store set to false the history is sent whole. Over
// a WebSocket the endpoint has the last response in its memory, with store set
// to false too.
//
// If the endpoint does not know the id any more, the whole history is sent, once
// and at once. If the socket is lost before any event of a response, the whole
// history is sent over a new one, and if that is lost too, over HTTP: retries
// like those of a Client, out of the same budget. A socket that was lost between
// two responses costs no retry. After output nothing is sent again: the error is
// a [*PartialError] as with a Client.
//
// An endpoint that refuses the WebSocket as such (with 400, 404, 405, 406, 426,
// 501, or an answer as if it had been asked for a page) is asked over HTTP from
// then on, see [Thread.Uses]; one that finds a message too large gets that
// request over HTTP. A server that shows, on a WebSocket that its profile does
// not promise, that it took no notice of the id is taken not to know it.
//
// A request with background or conversation goes to the Client as it is. So does
// one that is made while another is under way. A previous_response_id of the
// request's own stands before the whole history: it is sent while there is nothing
// later to go on from, and over HTTP alone, for a socket may not know it. A Thread is safe for concurrent use therefore, but only one response at a
// time gets something out of it. It must not be copied after its first use.
//
// A socket is read by a goroutine, which answers the server's pings while tools
// run. It ends with [Thread.Close], or when the server ends the socket, which
// most do after an hour; before that, the Thread takes a new one.
type Thread struct {
	// Client sends. Nil means the zero Client. Its IdleTimeout bounds the time
	// between two events on a WebSocket too, where the pings of a server do not
	// count: proxies send them for a server that is long dead.
	Client *Client
	// Transport is what to use where the endpoint has it.
	Transport Transport

	own   Client // where Client is nil
	busy  atomic.Bool
	last  *memory // of the one who is busy, as are these
	dead  int     // ids in a row that the endpoint did not know
	noted bool    // that the whole history is sent

	refused atomic.Bool // there are no sockets here
	mu      sync.Mutex
	socket  *socket
	stop    context.CancelCauseFunc // of the response under way
}

// maxDead is how many ids in a row an endpoint may not know, before it is taken
// to keep none: the rest of the conversation would spend a request in vain each
// time.
const maxDead = 2

var errThreadClosed = errors.New("the thread was closed")

// Stream sends the request and yields the events of the answer, as
// [Client.Stream] does. It is the agent's Model.
func (t *Thread) Stream(ctx context.Context, req *item.Request) iter.Seq2[item.Event, error] {
	return func(yield func(item.Event, error) bool) {
		if req == nil {
			yield(item.Event{}, errNilCall)
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
			yield(item.Event{}, err)
			return
		}
		u.s.yield = func(ev item.Event, err error) bool {
			u.hear(&ev)
			return yield(ev, err)
		}
		u.s.end(u.run(ctx))
	}
}

// Warm has an endpoint get ready for the request over the WebSocket, which it
// opens if need be: instructions, tools and history are read and no answer is
// made. The request that follows, and may have more history, begins to answer
// sooner. Over HTTP, or while a response is under way, there is nothing to do.
func (t *Thread) Warm(ctx context.Context, req *item.Request) error {
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
	u.s.yield = func(ev item.Event, _ error) bool {
		u.hear(&ev)
		return true
	}
	if t.Uses() == HTTP {
		return nil
	}
	if err = u.talks(ctx); u.refused {
		return nil // the request itself will tell what is wrong
	}
	return err
}

// Close closes the socket, if there is one, and tells the endpoint. A response
// that is under way breaks off as if its context had ended, without that. A
// later request opens another socket.
func (t *Thread) Close() error {
	t.mu.Lock()
	s, stop := t.socket, t.stop
	t.socket = nil
	t.mu.Unlock()
	if stop != nil {
		stop(errThreadClosed)
	}
	if s != nil {
		s.close()
	}
	return nil
}

// Uses returns what requests go over: [HTTP] also where the endpoint has no
// WebSocket, as far as that is known.
func (t *Thread) Uses() Transport {
	p, err := t.client().link().Known()
	if err != nil || p.WebSocket == endpoint.No || t.refused.Load() {
		return HTTP
	}
	return t.Transport
}

// RetryPolicy returns the Client's, for a run of package agent.
func (t *Thread) RetryPolicy() endpoint.Retry { return t.client().Retry }

// Window is that of the client.
func (t *Thread) Window(ctx context.Context, model string) int64 {
	return t.client().Window(ctx, model)
}

// About says where requests go, and over what as far as it is known by now.
func (t *Thread) About() endpoint.About {
	a := t.client().About()
	if a.Transport = "continue"; t.Uses() == WebSocket {
		a.Transport = string(WebSocket)
	}
	return a
}

// Resume takes over what another Thread left, perhaps in another process: the
// response id was the answer to req, whose Input is the whole history before it,
// and said output. A request that begins with these is sent as the id and the
// rest, if the endpoint keeps responses and still knows it. A Thread that has
// answered something goes on from that instead. It is an agent's Resumer.
func (t *Thread) Resume(req *item.Request, id string, output []item.Item) {
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
		return // the request itself will tell what is wrong
	}
	if whole, err := link.Fit(req, p); err == nil {
		t.last = &memory{
			id: id, base: req.PreviousResponseID, model: whole.Model, input: whole.Input.Clone(), output: output, stored: isStored(whole),
		}
	}
}

// Recall is that of the client.
func (t *Thread) Recall(before endpoint.About) { t.client().Recall(before) }

func (t *Thread) client() *Client {
	if t.Client == nil {
		return &t.own
	}
	return t.Client
}

// begin makes the context of a response, which Close can end.
func (t *Thread) begin(ctx context.Context) (context.Context, func()) {
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

// connect returns the socket, or a fresh one.
func (t *Thread) connect(ctx context.Context, k *wire.Call, p *endpoint.Profile) (s *socket, fresh bool, err error) {
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

// drop gives a socket up.
func (t *Thread) drop(s *socket) {
	t.mu.Lock()
	if t.socket == s {
		t.socket = nil
	}
	t.mu.Unlock()
	s.drop()
}
