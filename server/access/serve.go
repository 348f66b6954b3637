// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/server"
)

// goodbye is how long clients have to read the end of their responses when a server ends.
const goodbye = 5 * time.Second

// The times that a connection may take for the head of a request, and wait for the next.
const (
	headTime = 10 * time.Second
	idleTime = 2 * time.Minute
)

// Serve serves on a listener, which it closes, until ctx is done, and for g.Linger after it. Then it calls drain,
// which ends the running responses, and returns when clients have read them, or a few seconds later. Meanwhile it
// refuses requests with 503 or, with g.CloseFirst, connections. drain may be nil.
//
// Without keys the address must be loopback or a Unix socket, and on loopback the Host of
// a request too (rules V6 and V7 in docs/rules.md).
func (g *Guard) Serve(ctx context.Context, l net.Listener, drain func()) error {
	if nils.Is(l) {
		return errors.New("access: the listener is nil")
	}
	if err := cmp.Or(g.checkPages(), g.allows(l.Addr())); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := g.begin(); err != nil {
		return errors.Join(err, l.Close())
	}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := g.server(requests, l.Addr())
	failed := make(chan error, 1)
	go func() {
		if g.TLS != nil {
			failed <- s.ServeTLS(l, "", "")
			return
		}
		failed <- s.Serve(l)
	}()
	select {
	case err := <-failed:
		g.close()
		return err
	case <-ctx.Done():
	}
	g.ends.Store(notReady)
	if g.Linger > 0 {
		select {
		case <-time.After(g.Linger):
		case err := <-failed:
			failed <- err // below
		}
	}
	g.ends.Store(refusing)
	if drain != nil && !g.CloseFirst {
		drain()
	}
	shutDown(ctx, s, func() {
		if drain != nil && g.CloseFirst {
			drain()
		}
		cancel() // ends WebSockets and requests that are not about responses
	})
	err := <-failed
	g.close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// server returns the server of an address. Requests have the given context.
func (g *Guard) server(requests context.Context, at net.Addr) *http.Server {
	conns := &connections{g: g}
	return &http.Server{
		Handler:           conns.handler(g.hosted(at)),
		ReadHeaderTimeout: headTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState:         conns.state,
		TLSConfig:         g.TLS,
		ErrorLog:          log.New(io.Discard, "", 0), // what strangers send is not news
	}
}

// shutDown stops accepting connections, calls end, and gives clients a moment to read the rest.
func shutDown(ctx context.Context, s *http.Server, end func()) {
	last, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = s.Shutdown(last) // what is left is closed below
	}()
	end()
	late := time.AfterFunc(goodbye, stop)
	<-closed
	late.Stop()
	_ = s.Close() // errors of connections do not matter any more
}

// begin makes the servers of all projects, which go on with what earlier ones left.
func (g *Guard) begin() error {
	projects := []string{""}
	if g.Keys != nil {
		list, err := g.Keys.List()
		if err != nil {
			return nil // requests are told
		}
		for i := range list {
			projects = append(projects, list[i].Project)
		}
	}
	if required, err := g.Required(); err == nil && required {
		projects = projects[1:]
	}
	for _, project := range projects {
		if _, err := g.of(project); err != nil {
			g.close()
			return err
		}
	}
	return nil
}

// allows returns an error for an address that needs keys, if there are none.
func (g *Guard) allows(at net.Addr) error {
	if local(at) {
		return nil
	}
	required, err := g.Required()
	if err == nil && !required {
		err = fmt.Errorf("access: %s is not a loopback address, and there are no keys: everybody who reaches it could use the server", at)
	}
	return err
}

// local reports whether only this machine reaches an address.
func local(at net.Addr) bool {
	switch at := at.(type) {
	case *net.TCPAddr:
		return at.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	}
	return false
}

// hosted checks the Host while there are no keys. With keys it need not be known: a page
// of another site has no key, and a browser does not add one.
func (g *Guard) hosted(at net.Addr) http.Handler {
	if _, tcp := at.(*net.TCPAddr); !tcp {
		return g
	}
	checked := server.LoopbackOnly(g)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if required, err := g.Required(); err == nil && required {
			g.ServeHTTP(w, r)
			return
		}
		checked.ServeHTTP(w, r)
	})
}

// close closes the servers of all projects.
func (g *Guard) close() {
	g.mu.Lock()
	list := g.projects
	g.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range list {
		all.Go(s.Close)
	}
	all.Wait()
}

type connKey struct{}

// connections bounds the connections. One that is served is not closed.
type connections struct {
	g *Guard

	mu      sync.Mutex
	last    int64
	all     map[net.Conn]int64 // since when it waits for a request, or 0 if it has one
	waiting []waiting          // the longest first; some are gone or served now
}

// waiting is a connection that has waited since a number.
type waiting struct {
	conn  net.Conn
	since int64
}

// handler marks a connection while it has a request.
func (c *connections) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		c.mark(conn, true)
		defer c.mark(conn, false)
		next.ServeHTTP(w, r)
	})
}

func (c *connections) mark(conn net.Conn, served bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, known := c.all[conn]; {
	case !known:
	case served:
		c.all[conn] = 0
	default:
		c.waits(conn)
	}
}

// waits puts a connection at the end of those that wait. The caller must hold mu.
func (c *connections) waits(conn net.Conn) {
	c.last++
	c.all[conn] = c.last
	c.waiting = append(c.waiting, waiting{conn, c.last})
	if len(c.waiting) > 2*len(c.all)+64 { // most are gone
		c.waiting = slices.DeleteFunc(c.waiting, func(w waiting) bool { return c.all[w.conn] != w.since })
	}
}

// state follows the connections of the HTTP server.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.all == nil {
			c.all = map[net.Conn]int64{}
		}
		if len(c.all) >= c.g.Bounds.connections() {
			c.drop()
		}
		c.waits(conn)
	case http.StateClosed, http.StateHijacked:
		delete(c.all, conn)
	case http.StateActive, http.StateIdle:
	}
	c.g.counts.connected(len(c.all))
}

// drop closes the connection that has waited longest.
func (c *connections) drop() {
	for len(c.waiting) > 0 {
		next := c.waiting[0]
		c.waiting = c.waiting[1:]
		if c.all[next.conn] == next.since {
			delete(c.all, next.conn)
			c.g.counts.dropped()
			conn := next.conn
			if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
				conn = over.NetConn() // saying goodbye over TLS could wait
			}
			_ = conn.Close() // it is of no use any more
			return
		}
	}
}
