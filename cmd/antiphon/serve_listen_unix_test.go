// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// shortFolder returns a folder whose name is short enough for sockets.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// overUnix asks a server at a Unix socket for its models.
func overUnix(t *testing.T, path string) (status int, text string) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A Unix socket is for its user alone, replaces one that nobody listens at, and is gone with
// its server.
func TestServeUnix(t *testing.T) {
	dir := shortFolder(t)
	path := filepath.Join(dir, "socket")
	agent := write(t, filepath.Join(dir, "it.md"), "<config model=\"rehearsal\"/>\n")
	args := []string{"serve", agent, "--listen", "unix:" + path, "--store", filepath.Join(dir, "s.db")}
	write(t, path, "mine")
	if o := programEnv(t, []string{"XDG_DATA_HOME=" + dir}, args...); o.code != exitUsage || !strings.Contains(o.err, "not a socket") || read(t, path) != "mine" {
		t.Errorf("exit code %d: %s", o.code, o.err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} { // the first leaves its socket
		p := startAs(t, nil, "sh", append([]string{"-c", `exec antiphon "$@" 2>&1`, "sh"}, args...)...)
		if said := p.until(t, "/v1/responses"); !strings.Contains(said, "curl --unix-socket "+path) {
			t.Error(said)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != os.ModeSocket|0o600 {
			t.Fatal(info, err)
		}
		if status, text := overUnix(t, path); status != http.StatusOK || !strings.Contains(text, `"id":"it"`) {
			t.Errorf("%d %s", status, text)
		}
		if o := programEnv(t, []string{"XDG_DATA_HOME=" + dir}, args...); o.code != exitFailed || !strings.Contains(o.err, "another program listens there") {
			t.Errorf("exit code %d: %s", o.code, o.err)
		}
		p.signal(t, sig)
		if code, out := p.wait(t); code != 0 && sig == syscall.SIGTERM {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if f.Name() == "socket" || strings.HasPrefix(f.Name(), ".s") {
			t.Errorf("%s is left", f.Name())
		}
	}
}

// A socket that systemd has opened takes the place of --listen. What it does not allow
// without keys is refused. V6
func TestServeActivated(t *testing.T) {
	dir := shortFolder(t)
	agent := write(t, filepath.Join(dir, "it.md"), "<config model=\"rehearsal\"/>\n")
	for _, test := range []struct{ at, refused string }{{"127.0.0.1:0", ""}, {"0.0.0.0:0", "only loopback"}} {
		l, err := net.Listen("tcp", test.at)
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		p := startWith(t, nil, []*os.File{f}, "sh", "-c", `export LISTEN_FDS=1 LISTEN_PID=$$; exec antiphon "$@" 2>&1`, "sh",
			"serve", agent, "--listen", "127.0.0.1:1", "--store", filepath.Join(dir, "s.db"))
		f.Close()
		if test.refused != "" {
			if code, out := p.wait(t); code != exitUsage || !strings.Contains(out, test.refused) {
				t.Errorf("exit code %d: %s", code, out)
			}
		} else {
			if said := p.until(t, "/v1/responses"); !strings.Contains(said, l.Addr().String()) {
				t.Error(said)
			}
			if text := getText(t, "http://"+l.Addr().String()+"/v1/models"); !strings.Contains(text, `"id":"it"`) {
				t.Error(text)
			}
			p.signal(t, syscall.SIGTERM)
			if code, out := p.wait(t); code != 0 {
				t.Errorf("exit code %d: %s", code, out)
			}
		}
		l.Close()
	}
	for _, fds := range []string{"2", "x"} {
		p := startAs(t, nil, "sh", "-c", `export LISTEN_FDS=`+fds+` LISTEN_PID=$$; exec antiphon "$@" 2>&1`, "sh", "serve", agent)
		if code, out := p.wait(t); code != exitUsage || !strings.Contains(out, "one can be served") {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
}
