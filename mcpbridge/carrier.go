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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// carrier sends the requests of one session: it adds the server's headers for the
// server's own host, taps the responses, and ends with the session.
type carrier struct {
	next   http.RoundTripper
	server *Server
	home   *url.URL
	life   context.Context // of the session's connection
	wait   time.Duration   // limit for the response to the request for a stream
	// changed is called when the server's tools have changed.
	changed func()
	meter   *meter // of all responses
	// unread is set when an answer could not be read. The SDK then gives up the
	// session some time later.
	unread atomic.Bool
	// status is that of the last answer to a request (POST), or 0.
	status atomic.Int32
}

func newCarrier(life context.Context, s *Server, next http.RoundTripper, wait time.Duration, changed func()) (*carrier, error) {
	home, err := s.endpoint()
	return &carrier{next: next, server: s, home: home, life: life, wait: wait, changed: changed, meter: newMeter()}, err
}

// transport returns the SDK's transport over the carrier.
func (c *carrier) transport() mcp.Transport {
	client := &http.Client{Transport: c, CheckRedirect: c.redirect}
	return &mcp.StreamableClientTransport{
		Endpoint: c.server.URL, HTTPClient: client, OAuthHandler: c.server.OAuth,
		MaxEventSize: -1, // the tap enforces the limit
		MaxRetries:   2,
	}
}

// unwelcome says what the server answered if no session began.
func (c *carrier) unwelcome() string {
	if status := int(c.status.Load()); status >= 300 {
		return strings.TrimSpace(fmt.Sprintf("answered %d %s", status, http.StatusText(status)))
	}
	return "does not answer as an MCP server does"
}

// redirect allows only redirects within the server's own host.
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

// errNoStream ends the request for a stream of notifications: a server without one
// should say so, but some do not answer until they have something to send.
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
	sent, _ := req.Context().Value(sendingKey{}).(*sending)
	if sent == nil || req.Method != http.MethodPost {
		sent = new(sending) // nobody asks
	}
	sent.made.Add(1)
	resp, err := c.next.RoundTrip(out)
	if wait != nil {
		wait.Stop()
	}
	if err != nil {
		noStream := errors.Is(context.Cause(ctx), errNoStream)
		release()
		if noStream {
			return answer(req, http.StatusMethodNotAllowed), nil
		}
		return nil, err
	}
	if req.Method == http.MethodPost {
		c.status.Store(int32(resp.StatusCode))
	}
	sent.answered(resp.StatusCode, req.Header.Get("Mcp-Session-Id") != "")
	resp.Body = &releasing{c.tapped(resp), resp.Body, release}
	return resp, nil
}

// sending is what became of the requests (POST) of one call. It is in their context.
type sending struct {
	made    atomic.Int32 // how many were begun
	turned  atomic.Int32 // how many the server turned away
	unknown atomic.Bool  // one was turned away as if the server did not know the session
}

type sendingKey struct{}

// answered notes the status of the answer to a request.
func (s *sending) answered(status int, inSession bool) {
	switch status {
	case http.StatusNotFound, http.StatusBadRequest:
		if inSession {
			s.unknown.Store(true)
		}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default: // also another redirect, which may lead to what came of the request
		return
	}
	s.turned.Add(1)
}

// accepted reports whether the server may have begun to do what a request asks for.
func (s *sending) accepted() bool { return s.made.Load() > s.turned.Load() }

func (c *carrier) dress(h http.Header) {
	for name, values := range c.server.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	if !c.server.Token.IsZero() && h.Get("Authorization") == "" {
		h.Set("Authorization", "Bearer "+c.server.Token.Reveal())
	}
}

// tapped returns the response's body with its messages tapped and limited.
func (c *carrier) tapped(resp *http.Response) io.Reader {
	limit := c.server.MaxMessage
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 300:
		return io.LimitReader(resp.Body, 64<<10)
	case kind == "text/event-stream":
		return newTapReader(resp.Body, limit, noticing(paced(c.meter, inEvents, fixEvents(tapper{c.server.takes}, limit)), c.changed))
	case kind == "application/json":
		resp.ContentLength = -1
		return &tapWhole{src: io.LimitReader(resp.Body, int64(limit)+1), max: limit, tapper: tapper{c.server.takes}, unread: &c.unread}
	}
	return io.LimitReader(resp.Body, int64(limit))
}

func answer(req *http.Request, status int) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}
}

// releasing is a body that releases the request's context when it is closed.
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

// tapWhole is a body with a single message.
type tapWhole struct {
	src    io.Reader
	max    int
	tapper tapper
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
		if err == nil {
			b, err = t.tapper.tap(b)
		}
		if err != nil {
			t.unread.Store(true)
			return 0, err
		}
		t.text = bytes.NewReader(b)
	}
	return t.text.Read(p)
}
