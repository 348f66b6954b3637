// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"github.com/coder/websocket"
)

// Handler returns a recording proxy: it forwards requests and WebSockets to the host
// of the target. WebSockets cannot be recorded by a RoundTripper, but by a server in
// front of the target.
func (r *Recorder) Handler(target string) (http.Handler, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = u.Scheme, u.Host, ""
			p.Out.Header.Del("Accept-Encoding")
		},
		Transport:     r,
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { hangUp(w, false) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.EqualFold(req.Header.Get("Upgrade"), "websocket") {
			r.socket(w, req, u)
			return
		}
		proxy.ServeHTTP(w, req)
	}), nil
}

// handshake are the headers that each side of a proxy sets for itself.
var handshake = []string{"Connection", "Upgrade", "Sec-Websocket-Version", "Sec-Websocket-Key", "Sec-Websocket-Extensions", "Sec-Websocket-Protocol"}

// socket connects a client with the target, and records the messages.
func (r *Recorder) socket(w http.ResponseWriter, req *http.Request, target *url.URL) {
	u := *req.URL
	u.Scheme, u.Host = target.Scheme, target.Host
	x := r.add(&exchange{method: req.Method, url: r.scrubber().url(&u), header: req.Header.Clone()})
	h := req.Header.Clone()
	for _, name := range handshake {
		h.Del(name)
	}
	server, resp, err := websocket.Dial(req.Context(), u.String(), &websocket.DialOptions{HTTPHeader: h, HTTPClient: &http.Client{Transport: r.Transport}})
	if err != nil {
		r.refused(w, x, resp, err)
		return
	}
	defer server.CloseNow()
	r.note(func() { x.status, x.respHeader = resp.StatusCode, resp.Header.Clone() })
	client, err := websocket.Accept(w, req, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer client.CloseNow()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		r.pump(ctx, x, client, server, true)
	}()
	r.pump(ctx, x, server, client, false)
	cancel()
	<-done
}

// refused records and passes on the answer to a handshake that failed.
func (r *Recorder) refused(w http.ResponseWriter, x *exchange, resp *http.Response, err error) {
	if resp == nil {
		r.note(func() { x.end = err.Error() })
		hangUp(w, false)
		return
	}
	body, _ := io.ReadAll(resp.Body) // the library keeps its beginning
	r.note(func() {
		x.status, x.respHeader = resp.StatusCode, resp.Header.Clone()
		x.respHeader.Del("Content-Length")
		if len(body) > 0 {
			x.chunks = [][]byte{body}
		}
	})
	for name, values := range x.respHeader {
		w.Header()[name] = slices.Clone(values)
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(body)
}

// pump forwards the messages of one side to the other, until its end.
func (r *Recorder) pump(ctx context.Context, x *exchange, from, to *websocket.Conn, sent bool) {
	from.SetReadLimit(-1)
	for {
		kind, body, err := from.Read(ctx)
		if err != nil {
			r.ended(ctx, x, to, sent, err)
			return
		}
		f := frame{sent: sent, kind: frameText, data: body}
		if kind == websocket.MessageBinary {
			f.kind = frameBinary
		}
		r.note(func() { x.frames = append(x.frames, f) })
		if to.Write(ctx, kind, body) != nil {
			return
		}
	}
}

// ended records how a side ended, unless the other did before it.
func (r *Recorder) ended(ctx context.Context, x *exchange, to *websocket.Conn, sent bool, err error) {
	if ctx.Err() != nil {
		return
	}
	var closed websocket.CloseError
	if !errors.As(err, &closed) {
		r.note(func() {
			if !sent { // a client that disconnects without a close frame is treated like one that sends it
				x.end = err.Error()
			}
		})
		return
	}
	r.note(func() {
		x.frames = append(x.frames, frame{sent: sent, kind: frameClose, code: int(closed.Code), data: []byte(closed.Reason)})
	})
	_ = to.Close(closed.Code, closed.Reason)
}
