// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/internal/nils"
)

// idle is how long a session of the protocol is kept whose client sends nothing.
const idle = time.Hour

// Handler returns the server over streamable HTTP, for one path such as /mcp. Calls end
// when ctx is done. A request of a page of another origin is refused. The handler does not
// know who may call it: whoever reaches it can use the agents, so put a check of keys
// before it, or serve on loopback only, as [Server.Serve] does.
//
// Answers of a stream that broke off can be fetched again, with the header Last-Event-ID,
// while they are in memory. Requests of protocol versions from 2026-07-28 on have no
// sessions, and a call ends when its request does.
func (s *Server) Handler(ctx context.Context) (http.Handler, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	live := s.live(ctx)
	context.AfterFunc(ctx, func() { closeAll(live) })
	return over(live), nil
}

// closeAll ends the sessions of the protocol.
func closeAll(live *mcp.Server) {
	for ss := range live.Sessions() {
		_ = ss.Close() // its client is gone or told
	}
}

// maxSessions bounds the sessions of the protocol. A client that is gone without a word
// has one until it is idle for too long.
const maxSessions = 1000

// full reports whether a request would begin a session, and there are too many.
func full(live *mcp.Server, r *http.Request) bool {
	if r.Method != http.MethodPost || r.Header.Get("Mcp-Session-Id") != "" {
		return false
	}
	n := 0
	for range live.Sessions() {
		n++
	}
	return n >= maxSessions
}

// over returns the handler for a server of the SDK.
func over(live *mcp.Server) http.Handler {
	get := func(*http.Request) *mcp.Server { return live }
	with := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		EventStore: mcp.NewMemoryEventStore(nil), SessionTimeout: idle, MaxRequestBodyBytes: MaxMessage,
	})
	without := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: MaxMessage, PropagateRequestCancellation: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if foreign(r) {
			http.Error(w, fmt.Sprintf("A page of another origin (%q) may not send requests to this server.", r.Header.Get("Origin")), http.StatusForbidden)
			return
		}
		if r.Header.Get("Mcp-Protocol-Version") >= withoutRequests {
			without.ServeHTTP(w, r)
			return
		}
		if full(live, r) {
			w.Header().Set("Retry-After", "60")
			http.Error(w, "The server has too many sessions. End one, or try again later.", http.StatusServiceUnavailable)
			return
		}
		with.ServeHTTP(w, r)
	})
}

// foreign reports whether a page of another origin makes a request. Clients that are not
// browsers send no origin. V7
func foreign(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	at, err := url.Parse(origin)
	return err != nil || at.Host == "" || !strings.EqualFold(at.Host, r.Host)
}

// onLoopback reports whether a request names a host that is loopback. Another name was
// pointed to this address, so that its pages have the server's origin. V7
func onLoopback(r *http.Request) bool {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return strings.EqualFold(name, "localhost") || net.ParseIP(name).IsLoopback()
}

// Path is the path of [Server.Serve].
const Path = "/mcp"

// goodbye is how long clients have to read the end of their calls when a server ends.
const goodbye = 5 * time.Second

// Serve serves streamable HTTP at [Path] on a listener, which it closes, until ctx is
// done. Then calls that are under way end, and record it. The address must be loopback,
// because the server has no keys (rule V6 in docs/rules.md).
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if nils.Is(l) {
		return errors.New("mcpserver: the listener is nil")
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("mcpserver: %s is not a loopback address: everybody who reaches it could use the server, which has no keys", l.Addr()), l.Close())
	}
	if err := s.Check(); err != nil {
		return errors.Join(err, l.Close())
	}
	live := s.live(ctx)
	mux := http.NewServeMux()
	mux.Handle(Path, over(live))
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !onLoopback(r) {
				http.Error(w, fmt.Sprintf("This server is not %q: it serves on loopback only, as http://127.0.0.1 or http://localhost with its port.", r.Host), http.StatusForbidden)
				return
			}
			mux.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		closeAll(live)
		return err
	case <-ctx.Done():
	}
	s.settled(goodbye)
	closeAll(live)
	cancel() // streams without a call stay open otherwise
	_ = server.Close()
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
