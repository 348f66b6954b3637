// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// serve plays records back on a socket.
func (t *Tape) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client disconnected
	}
	p, err := t.take(t.request(r.Method, r.URL, r.Header, body))
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusTeapot) // no client retries this status
		return
	case p.status == 0:
		hangUp(w, false)
		return
	case p.status == http.StatusSwitchingProtocols:
		t.socket(w, r, p)
		return
	}
	resp := p.response(r) //nolint:bodyclose // the body is in memory, and only the headers are used
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	if resp.ContentLength < 0 {
		w.Header().Del("Content-Length")
	}
	w.Header().Del("Transfer-Encoding")
	w.WriteHeader(p.status)
	for _, chunk := range p.chunks {
		_, _ = w.Write(chunk) // a client that is gone is not our concern
		_ = http.NewResponseController(w).Flush()
	}
	if p.end != "" {
		panic(http.ErrAbortHandler)
	}
}

// socket plays back a record's frames: it sends the server's frames and waits for
// the client's, in the recorded order.
func (t *Tape) socket(w http.ResponseWriter, r *http.Request, p *played) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		t.tb.Errorf("%s: %v", t.file, err)
		return
	}
	defer c.CloseNow()
	c.SetReadLimit(-1)
	ctx := context.Background()
	for _, f := range p.exchange.frames {
		if err := t.frame(ctx, c, f); err != nil {
			t.socketFailed(c, p, err)
			return
		}
		t.mu.Lock()
		p.frames++
		t.mu.Unlock()
		if f.kind == frameClose {
			return
		}
	}
	if p.end != "" {
		return // as recorded: without a close frame
	}
	if _, body, err := c.Read(ctx); err == nil {
		t.socketFailed(c, p, fmt.Errorf("a message behind the last one of the recording: %.300s", body))
	}
}

// errClientGone ends a playback silently: the remaining frames are reported as
// unused.
var errClientGone = errors.New("the client is gone")

func (t *Tape) frame(ctx context.Context, c *websocket.Conn, f frame) error {
	kind := websocket.MessageText
	if f.kind == frameBinary {
		kind = websocket.MessageBinary
	}
	switch {
	case f.kind == frameClose && !f.sent:
		_ = c.Close(websocket.StatusCode(f.code), string(f.data))
		return nil
	case f.kind == frameClose:
		if _, body, err := c.Read(ctx); err == nil {
			return fmt.Errorf("the client closed the socket here when it was recorded; now it says: %.300s", body)
		}
		return nil
	case !f.sent:
		if c.Write(ctx, kind, f.data) != nil {
			return errClientGone
		}
		return nil
	}
	got, body, err := c.Read(ctx)
	if err != nil {
		return errClientGone
	}
	text := t.scrub.text(string(body))
	recorded, message := Request{Body: f.data, Socket: 1}, Request{Body: []byte(text), Socket: 1}
	if got != kind || !t.matches(recorded, message) {
		return fmt.Errorf("a message is not the recorded one (-recorded +got):\n%s", diffBodies(f.data, []byte(text)))
	}
	return nil
}

func (t *Tape) socketFailed(c *websocket.Conn, p *played, err error) {
	if errors.Is(err, errClientGone) {
		return
	}
	t.tb.Errorf("%s: %s %s: %v", t.file, p.method, p.url, err)
	first, _, _ := strings.Cut(err.Error(), "\n")
	_ = c.Close(websocket.StatusPolicyViolation, first[:min(len(first), 100)])
}
