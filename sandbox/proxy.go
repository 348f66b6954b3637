// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The limits of a proxy.
const (
	mostConnections = 256
	mostHeader      = 64 << 10         // bytes of a request's header
	headerTime      = 10 * time.Second // to send a header, or the greeting of TLS
	dialTime        = 30 * time.Second // to look up a name and to connect
	quietTime       = 10 * time.Minute // without a byte in either direction
	mostRefusals    = 16               // that are remembered
)

// A proxy is a program's only way to the network: an HTTP proxy that connects to the
// hosts of a profile and to nothing else.
//
// It looks up names itself, and connects to the very address that it has checked. It
// does not open TLS. It reads the name in a greeting, because one server often has many
// names, and a program could ask for one that is allowed and then greet another. For the
// same reason a tunnel carries nothing but TLS with such a name, unless an entry names
// the port: then it is for whatever is spoken there.
type proxy struct {
	hosts  []host
	lookup func(ctx context.Context, network, name string) ([]netip.Addr, error)
	dialTo func(ctx context.Context, network, address string) (net.Conn, error)
	server *http.Server
	direct *http.Transport
	ctx    context.Context // ends with the run
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	refused []*refusal
}

// lookup looks up the addresses of a name.
var lookup = net.DefaultResolver.LookupNetIP

func newProxy(hosts []host) *proxy {
	quiet := log.New(io.Discard, "", 0)
	p := &proxy{hosts: hosts, lookup: lookup, dialTo: new(net.Dialer).DialContext}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.direct = &http.Transport{
		DialContext:            func(ctx context.Context, _, target string) (net.Conn, error) { return p.dial(ctx, target, false) },
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: mostHeader,
	}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(*httputil.ProxyRequest) {}, // the request's URL is already the one to send it to
		Transport:     p.direct,
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { p.fail(w, err) },
		ErrorLog:      quiet,
	}
	p.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case !p.begin():
			case r.Method == http.MethodConnect:
				defer p.work.Done()
				p.tunnel(w, r)
			case r.URL.Scheme != "http" || r.URL.Host == "":
				defer p.work.Done()
				http.Error(w, "this is the proxy of a sandbox: it takes CONNECT, and requests for http:// URLs", http.StatusBadRequest)
			default:
				defer p.work.Done()
				ctx, cancel := context.WithCancel(r.Context())
				defer cancel()
				defer context.AfterFunc(p.ctx, cancel)()
				forward.ServeHTTP(w, r.WithContext(ctx))
			}
		}),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    mostHeader,
		ErrorLog:          quiet,
	}
	return p
}

// begin notes that work begins, unless the proxy is closed.
func (p *proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Add(1)
	}
	return !p.closed
}

// serve accepts connections until the proxy is closed.
func (p *proxy) serve(l net.Listener) {
	l = &limitedListener{l, make(chan struct{}, mostConnections), p.ctx.Done()}
	if !p.begin() {
		_ = l.Close()
		return
	}
	go func() {
		defer p.work.Done()
		_ = p.server.Serve(l)
	}()
}

// close ends all connections and waits for what serves them.
func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	_ = p.server.Close()
	p.work.Wait()
	p.direct.CloseIdleConnections()
}

// refuse remembers a refusal.
func (p *proxy) refuse(r *refusal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) < mostRefusals && !slices.ContainsFunc(p.refused, func(e *refusal) bool { return *e == *r }) {
		p.refused = append(p.refused, r)
	}
	return r
}

// refusals returns what was refused.
func (p *proxy) refusals() []*refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// dial connects to a host and port if the profile allows it, and allows it for a tunnel if it is
// for one.
func (p *proxy) dial(ctx context.Context, target string, tunnel bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	name, text, err := net.SplitHostPort(target)
	if err != nil {
		return nil, p.refuse(&refusal{host: target, why: "it has no port"})
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return nil, p.refuse(&refusal{host: target, why: "its port is not a number from 1 to 65535"})
	}
	addrs, err := allowed(p.hosts, name, uint16(port), func(name string) ([]netip.Addr, error) { return p.lookup(ctx, "ip", name) })
	var r *refusal
	if errors.As(err, &r) {
		return nil, p.refuse(r)
	}
	if err == nil && tunnel && port == 80 && p.isWeb(target) {
		return nil, p.hidden(target, "a tunnel to port 80 hides which host is asked: send requests for http:// URLs")
	}
	for _, addr := range addrs {
		var conn net.Conn
		if conn, err = p.dialTo(ctx, "tcp", netip.AddrPortFrom(addr, uint16(port)).String()); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// fail answers a request that cannot be served.
func (p *proxy) fail(w http.ResponseWriter, err error) {
	var r *refusal
	if errors.As(err, &r) {
		http.Error(w, r.Error()+"; the user can add it to the hosts of the sandbox", http.StatusForbidden)
		return
	}
	http.Error(w, fmt.Sprintf("the proxy of the sandbox cannot connect: %v", err), http.StatusBadGateway)
}

// isWeb reports whether no entry names the port of a target, so that it was allowed as a
// host of the web.
func (p *proxy) isWeb(target string) bool {
	name, text, _ := net.SplitHostPort(target)
	port, _ := strconv.ParseUint(text, 10, 16)
	addr, _ := netip.ParseAddr(name)
	return !slices.ContainsFunc(p.hosts, func(h host) bool {
		return h.port == uint16(port) && (h.names(plainName(name), h.port) || h.name == "" && h.addr == addr.Unmap())
	})
}

// hidden refuses what a tunnel to a host of the web must not carry.
func (p *proxy) hidden(target, why string) error {
	name, text, _ := net.SplitHostPort(target)
	port, _ := strconv.ParseUint(text, 10, 16)
	return p.refuse(&refusal{target, why, entryFor(name, uint16(port), true)})
}

// tunnel connects the client with a host and passes bytes on.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	server, err := p.dial(r.Context(), r.Host, true)
	if err != nil {
		p.fail(w, err)
		return
	}
	defer server.Close()
	web := p.isWeb(r.Host)
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client has gone
	}
	defer client.Close()
	defer context.AfterFunc(p.ctx, func() { _ = client.Close(); _ = server.Close() })()
	_ = client.SetDeadline(time.Time{})
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	touch := func() {
		_ = client.SetDeadline(time.Now().Add(quietTime))
		_ = server.SetDeadline(time.Now().Add(quietTime))
	}
	touch()
	var both sync.WaitGroup
	defer both.Wait()
	back := func() { both.Go(func() { pass(client, server, touch) }) }
	if !web {
		back() // the server may speak first
	}
	from, err := p.greeting(client, buffered.Reader, r.Host, web)
	if err != nil {
		_ = client.Close()
		_ = server.Close()
		return
	}
	touch()
	if web {
		back()
	}
	pass(server, from, touch)
}

// pass copies until the end, tells the receiver about it, and reports each piece.
func pass(to net.Conn, from io.Reader, touch func()) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		touch()
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		return
	}
	_ = to.Close()
}

// recordOfGreeting is the first byte of a TLS connection.
const recordOfGreeting = 0x16

// greeting reads the greeting of a TLS client, and refuses one for another name, and for
// the web also what is no greeting or has no name. It returns a reader of all that the
// client sends.
func (p *proxy) greeting(client net.Conn, from *bufio.Reader, target string, web bool) (io.Reader, error) {
	if web {
		_ = client.SetReadDeadline(time.Now().Add(headerTime))
	}
	first, err := from.Peek(1)
	if err == nil && first[0] != recordOfGreeting && web {
		err = p.hidden(target, "what the program sends is not TLS")
	}
	if err != nil || first[0] != recordOfGreeting {
		return from, err
	}
	_ = client.SetReadDeadline(time.Now().Add(headerTime))
	g := &greeter{from: from}
	errRead := errors.New("the greeting is read")
	greeted := tls.Server(g, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		g.name = hello.ServerName
		return nil, errRead
	}}).HandshakeContext(p.ctx)
	if !errors.Is(greeted, errRead) {
		return nil, cmp.Or(greeted, io.ErrUnexpectedEOF)
	}
	_ = client.SetReadDeadline(time.Time{})
	name, text, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	port, _ := strconv.ParseUint(text, 10, 16)
	_, notAddress := netip.ParseAddr(name)
	other := plainName(g.name)
	if g.name != "" && notAddress != nil && other != plainName(name) && !slices.ContainsFunc(p.hosts, func(h host) bool { return h.names(other, uint16(port)) }) {
		return nil, p.refuse(&refusal{net.JoinHostPort(g.name, text), "asked for in a connection to " + name, entryFor(g.name, uint16(port), false)})
	}
	if g.name == "" && notAddress != nil && web {
		return nil, p.hidden(target, "the greeting of TLS does not say for which host it is")
	}
	return io.MultiReader(&g.seen, from), nil
}

// A greeter is a connection that remembers what is read and writes nothing.
type greeter struct {
	net.Conn
	from io.Reader
	seen bytes.Buffer
	name string
}

func (g *greeter) Read(b []byte) (int, error) {
	n, err := g.from.Read(b)
	g.seen.Write(b[:n])
	return n, err
}

func (*greeter) Write(b []byte) (int, error)        { return len(b), nil }
func (*greeter) Close() error                       { return nil }
func (*greeter) SetDeadline(time.Time) error        { return nil }
func (*greeter) SetReadDeadline(time.Time) error    { return nil }
func (*greeter) SetWriteDeadline(t time.Time) error { return nil }

// A limitedListener accepts so many connections at a time.
type limitedListener struct {
	net.Listener
	open chan struct{}
	done <-chan struct{}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &limitedConn{Conn: conn, free: sync.OnceFunc(func() { <-l.open })}, nil
}

type limitedConn struct {
	net.Conn
	free func()
}

func (c *limitedConn) Close() error {
	c.free()
	return c.Conn.Close()
}

func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
