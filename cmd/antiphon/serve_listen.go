// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/internal/show"
)

// unixPrefix begins an address that is the path of a Unix socket.
const unixPrefix = "unix:"

// mayListen returns an error if the address must not be served. It opens nothing. V6
func (c *serveCommand) mayListen(ctx context.Context, env environment) error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return usage(errors.New("--tls-cert and --tls-key are needed together"))
	}
	keyed, err := c.keyed(env)
	if err != nil {
		return err
	}
	if path, ok := strings.CutPrefix(c.Listen, unixPrefix); ok {
		if path == "" {
			return usage(errors.New("--listen unix: needs a path, such as unix:/run/antiphon/socket"))
		}
		return nil
	}
	name, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err != nil {
		return wrongAddress("--listen", c.Listen, "an address such as 127.0.0.1:8787, or unix:PATH", err)
	}
	if itself := c.asksItself(name, port); itself != "" {
		return usage(fmt.Errorf("--upstream %s: it is the address at which this server listens, so it would ask itself: give the address of the endpoint, or another --listen", show.Visible(itself)))
	}
	if !keyed && name != "localhost" && !net.ParseIP(name).IsLoopback() {
		return needsKeys(c.Listen)
	}
	return nil
}

// asksItself returns an upstream that is the address of this server, or "".
func (c *serveCommand) asksItself(name, port string) string {
	for _, given := range c.Upstream {
		_, address := splitUpstream(given)
		at, err := url.Parse(address)
		if err != nil || at.Port() != port || port == "" || port == "0" {
			continue
		}
		host, mine := net.ParseIP(at.Hostname()), net.ParseIP(name)
		local := at.Hostname() == "localhost" || host.IsLoopback()
		switch {
		case strings.EqualFold(at.Hostname(), name), host != nil && host.Equal(mine),
			local && (name == "" || mine.IsUnspecified()),
			local && (name == "localhost" || mine.IsLoopback()) && (name == "localhost" || at.Hostname() == "localhost"):
			return address
		}
	}
	return ""
}

func needsKeys(at string) error {
	return usage(fmt.Errorf("--listen %s: without keys only loopback addresses are served, such as 127.0.0.1:8787\n  hint: antiphon keys create NAME makes a key for a client", show.Visible(at)))
}

// keyed reports whether clients need keys.
func (c *serveCommand) keyed(env environment) (bool, error) {
	keys, err := c.keysFlag.keys(env)
	if err != nil {
		return false, err
	}
	list, err := keys.List()
	switch {
	case err != nil:
		return false, usage(err)
	case (len(list) > 0 || c.Issuer != "") && c.Owner != "":
		return false, usage(errors.New("--owner: clients have keys or tokens now, and their project owns the sessions: leave --owner out"))
	}
	return len(list) > 0 || c.Issuer != "", nil
}

// listen opens the address, or takes the socket that systemd has opened. V6
func (c *serveCommand) listen(ctx context.Context, env environment) (net.Listener, error) {
	given, err := activated(env)
	if err != nil {
		return nil, usage(err)
	}
	if given == nil {
		if err := c.mayListen(ctx, env); err != nil {
			return nil, err
		}
		if path, ok := strings.CutPrefix(c.Listen, unixPrefix); ok {
			return listenUnix(ctx, path)
		}
		return listenAt(ctx, c.Listen)
	}
	keyed, err := c.keyed(env)
	if at, tcp := given.Addr().(*net.TCPAddr); err == nil && !keyed && tcp && !at.IP.IsLoopback() {
		err = needsKeys(at.String())
	}
	if err != nil {
		return nil, errors.Join(err, given.Close())
	}
	return given, nil
}

// firstSocket is the number of the first file that systemd passes.
const firstSocket = 3

// activated returns the socket that systemd has opened for this process, or nil. It takes
// the place of --listen.
func activated(env environment) (net.Listener, error) {
	if !isActivated(env) {
		return nil, nil
	}
	if env["LISTEN_FDS"] != "1" {
		return nil, fmt.Errorf("systemd passes %s sockets, and one can be served: give each its own service", show.Visible(env["LISTEN_FDS"]))
	}
	f := os.NewFile(firstSocket, "the socket of systemd")
	if f == nil {
		return nil, errors.New("systemd passes no socket")
	}
	l, err := net.FileListener(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("the socket of systemd: %w", err)
	}
	return l, nil
}

// isActivated reports whether systemd has opened a socket for this process.
func isActivated(env environment) bool {
	return env["LISTEN_PID"] == strconv.Itoa(os.Getpid()) && env["LISTEN_FDS"] != ""
}

// unixSocket is a listener whose socket is removed when it is closed.
type unixSocket struct {
	*net.UnixListener
	path string
	info fs.FileInfo
	once sync.Once
	err  error
}

// Addr returns the path that clients use.
func (l *unixSocket) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close removes the socket, unless another one has its place.
func (l *unixSocket) Close() error {
	l.once.Do(func() {
		l.err = l.UnixListener.Close()
		if info, err := os.Lstat(l.path); err == nil && os.SameFile(info, l.info) {
			l.err = errors.Join(l.err, os.Remove(l.path))
		}
	})
	return l.err
}

// listenUnix makes a socket that only this user can connect to. It is made in a folder of
// its own and then moved, so that nobody else can connect before its permissions are set. A
// socket that nobody listens at is replaced.
func listenUnix(ctx context.Context, path string) (_ net.Listener, err error) {
	bad := func(err error) error { return fmt.Errorf("--listen %s%s: %w", unixPrefix, show.Visible(path), err) }
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, usage(bad(err))
	case info.Mode().Type() != fs.ModeSocket:
		return nil, usage(bad(errors.New("there is a file that is not a socket; name another path")))
	default:
		if conn, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
			return nil, bad(errors.Join(errors.New("another program listens there"), conn.Close()))
		}
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, bad(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	made := filepath.Join(folder, "s")
	l, err := new(net.ListenConfig).Listen(ctx, "unix", made)
	if err != nil {
		return nil, bad(err)
	}
	s, ok := l.(*net.UnixListener)
	if !ok {
		return nil, bad(errors.Join(errors.ErrUnsupported, l.Close()))
	}
	s.SetUnlinkOnClose(false)
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	info, wrong := os.Lstat(path)
	if err = errors.Join(err, wrong); err != nil {
		return nil, bad(errors.Join(err, s.Close()))
	}
	return &unixSocket{UnixListener: s, path: path, info: info}, nil
}
