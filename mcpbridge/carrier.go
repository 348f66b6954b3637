// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// carrier sends the requests of one session: with the server's headers to the
// server's own host, tapping what comes back, and not longer than the session
// lives.
type carrier struct {
	next   http.RoundTripper
	server *Server
	home   *url.URL
	life   context.Context // of the session's connection
	wait   time.Duration   // for the response to the request for a stream
	// changed is told that the server has other tools.
	changed func()
	// lost reports that the server answered a request of the session as it does
	// when it does not know the session any more.
	lost atomic.Bool
	// unread reports that an answer could not be read: the SDK gives up the session
	// for that, some time later.
	unread atomic.Bool
}

func newCarrier(life context.Context, s *Server, next http.RoundTripper, wait time.Duration, changed func()) (*carrier, error) {
	home, err := s.endpoint()
	return &carrier{next: next, server: s, home: home, life: life, wait: wait, changed: changed}, err
}

// transport returns the SDK's transport over the carrier.
func (c *carrier) transport() mcp.Transport {
	client := &http.Client{Transport: c, CheckRedirect: c.redirect}
	return &mcp.StreamableClientTransport{
		Endpoint: c.server.URL, HTTPClient: client, OAuthHandler: c.server.OAuth,
		MaxEventSize: -1, // the tap has the limit
		MaxRetries:   2,
	}
}

// redirect follows redirects within the server's own host.
func (c *carrier) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case !c.isHome(req.URL):
		return fmt.Errorf("the server redirects to another host, %s, which is not followed", req.URL.Host)
	case len(via) > 5:
		return errors.New("the server redirects more than five times")
	}
	return nil
}

func (c *carrier) isHome(u *url.URL) bool { return u.Scheme == c.home.Scheme && u.Host == c.home.Host }

// errNoStream ends the request for a stream of notifications: a server that
// offers none should say so, and some do not answer before they have something
// to tell.
var errNoStream = errors.New("no stream of notifications")

// RoundTrip implements [http.RoundTripper].
func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	unbind := context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })
	release := sync.OnceFunc(func() { unbind(); cancel(nil) })
	out := req.Clone(ctx)
	if c.isHome(req.URL) {
		c.dress(out.Header)
	}
	var wait *time.Timer
	if req.Method == http.MethodGet {
		wait = time.AfterFunc(c.wait, func() { cancel(errNoStream) })
	}
	resp, err := c.next.RoundTrip(out)
	if wait != nil {
		wait.Stop()
	}
	if err != nil {
		noStream := context.Cause(ctx) == errNoStream
		release()
		if noStream {
			return answer(req, http.StatusMethodNotAllowed), nil
		}
		return nil, err
	}
	if req.Header.Get("Mcp-Session-Id") != "" && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest) {
		c.lost.Store(true)
	}
	resp.Body = &releasing{c.tapped(resp), resp.Body, release}
	return resp, nil
}

func (c *carrier) dress(h http.Header) {
	for name, values := range c.server.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	if !c.server.Token.IsZero() && h.Get("Authorization") == "" {
		h.Set("Authorization", "Bearer "+c.server.Token.Reveal())
	}
}

// tapped returns the response's body with its messages tapped, bounded.
func (c *carrier) tapped(resp *http.Response) io.Reader {
	limit := c.server.MaxMessage
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 300:
		return io.LimitReader(resp.Body, 64<<10)
	case kind == "text/event-stream":
		return newTapReader(resp.Body, limit, noticing(fixEvent, c.changed))
	case kind == "application/json":
		resp.ContentLength = -1
		return &tapWhole{src: io.LimitReader(resp.Body, int64(limit)+1), max: limit, unread: &c.unread}
	}
	return io.LimitReader(resp.Body, int64(limit))
}

func answer(req *http.Request, status int) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}
}

// releasing is a body that lets go of the request's context when it is closed.
type releasing struct {
	io.Reader
	body    io.Closer
	release func()
}

// Close implements [io.Closer].
func (r *releasing) Close() error {
	err := r.body.Close()
	r.release()
	return err
}

// tapWhole is a body that is one message.
type tapWhole struct {
	src    io.Reader
	max    int
	unread *atomic.Bool
	text   *bytes.Reader
}

// Read implements [io.Reader].
func (t *tapWhole) Read(p []byte) (int, error) {
	if t.text == nil {
		b, err := io.ReadAll(t.src)
		if err == nil && len(b) > t.max {
			err = tooLong(t.max)
		}
		if err != nil {
			t.unread.Store(true)
			return 0, err
		}
		t.text = bytes.NewReader(tap(b))
	}
	return t.text.Read(p)
}
