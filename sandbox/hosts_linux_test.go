// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/sandbox"
)

func init() {
	// reach tries to reach the addresses without a proxy, and prints which it reached.
	roles["reach"] = func(args []string) {
		for _, a := range args {
			network, address, _ := strings.Cut(a, "=")
			if err := echo(network, address); err == nil {
				fmt.Println(a)
			}
		}
	}
}

// inNetwork runs a program that may reach the hosts.
func (g *ground) inNetwork(hosts []string, argv ...string) (sandbox.Exit, string, []sandbox.Denial) {
	g.t.Helper()
	p := g.workspace()
	p.Hosts = hosts
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = g.path("workspace")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	run, err := sandbox.Command(context.Background(), p, cmd)
	g.must(err)
	g.must(run.Start())
	end, err := run.Wait()
	g.must(err)
	return end, out.String(), run.Denials(end, out.String())
}

// hostsGround is a ground for tests that need real programs and a network of their own.
func hostsGround(t *testing.T, programs ...string) *ground {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%v", err)
		}
	}
	if !sandbox.Available().Has(sandbox.Namespaces) {
		t.Skip("this system has no namespaces for the user")
	}
	return newGround(t, setting{})
}

// portOf returns the port of a server with its colon.
func portOf(s *httptest.Server) string { return s.URL[strings.LastIndexByte(s.URL, ':'):] }

// TestHosts proves, with curl, that a program reaches the hosts that its profile names,
// and that what it was refused is named. A3
func TestHosts(t *testing.T) {
	g := hostsGround(t, "curl")
	var reached atomic.Int64
	var evil string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://"+evil+"/", http.StatusFound)
		}
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()
	sandbox.Name("good.example", "127.0.0.1")
	sandbox.Name("evil.example", "127.0.0.1")
	port := portOf(server)
	good := "good.example" + port
	evil = "evil.example" + port
	for _, c := range []struct {
		argv    []string
		code    int
		denied  string // the host, or "-" for a program that did not ask the proxy
		reached int64
	}{
		{[]string{"http://" + good + "/"}, 0, "", 1},
		{[]string{"--proxytunnel", "http://" + good + "/"}, 0, "", 1},
		{[]string{"http://" + evil + "/"}, 22, evil, 0},
		{[]string{"--proxytunnel", "http://" + evil + "/"}, 56, evil, 0},
		{[]string{"-L", "http://" + good + "/redirect"}, 22, evil, 1},
		{[]string{"http://good.example:1/"}, 22, "good.example:1", 0},
		{[]string{"--proxytunnel", "http://169.254.169.254/latest/meta-data/"}, 56, "169.254.169.254:80", 0},
		{[]string{"https://elsewhere.example/"}, 56, "elsewhere.example:443", 0},
		{[]string{"http://2130706433" + port + "/"}, 22, "-", 0},
		{[]string{"--noproxy", "*", "--resolve", good + ":127.0.0.1", "http://" + good + "/"}, 7, "-", 0},
		{[]string{"--noproxy", "*", "http://" + good + "/"}, 6, "-", 0},
	} {
		reached.Store(0)
		end, out, denials := g.inNetwork([]string{good}, append([]string{"curl", "-sSf", "--max-time", "60"}, c.argv...)...)
		if (end.Code == 0) != (c.code == 0) || reached.Load() != c.reached || (c.code == 0) != (out == "hello") {
			t.Errorf("%q: %+v, reached %d times: %s", c.argv, end, reached.Load(), out)
		}
		var hosts []string
		for _, d := range denials {
			if d.Permission == sandbox.PermissionNetwork && (d.Host == "" || strings.Contains(d.Reason, "the network: "+d.Host)) {
				hosts = append(hosts, d.Host)
			}
		}
		if c.denied != "-" && strings.Join(hosts, " ") != c.denied || c.denied == "-" && len(denials) == 0 {
			t.Errorf("%q: %+v: %s", c.argv, denials, out)
		}
	}
}

// TestNothingButTheProxy proves that a program that does not use the proxy reaches
// nothing: neither what the profile names, nor the services of the machine, nor name
// servers.
func TestNothingButTheProxy(t *testing.T) {
	g := hostsGround(t)
	to := g.targets()
	port := to.TCP[strings.LastIndexByte(to.TCP, ':'):]
	tries := []string{"tcp=" + to.TCP, "udp=" + to.UDP, "unix=" + to.Socket, "unix=" + to.Abstract, "tcp=[::ffff:127.0.0.1]" + port, "tcp=0.0.0.0" + port, "tcp=localhost" + port}
	addrs, err := net.InterfaceAddrs()
	g.must(err)
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			tries = append(tries, "tcp="+n.IP.String()+port, "udp="+n.IP.String()+":53")
		}
	}
	if _, out, _ := g.inNetwork([]string{to.TCP, "named.example"}, append([]string{g.executable, "reach"}, tries...)...); out != "" {
		t.Errorf("reached: %s", out)
	}
	out, err := exec.Command(g.executable, append([]string{"reach"}, tries[:4]...)...).Output()
	if got := strings.Fields(string(out)); err != nil || !slices.Equal(got, tries[:4]) {
		t.Errorf("without a sandbox: %v %v", got, err)
	}
}

// TestConnectionsEndWithRuns proves that no connection of a program is left when its run
// has ended.
func TestConnectionsEndWithRuns(t *testing.T) {
	g := hostsGround(t, "curl")
	begun, over := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(over)
	}))
	defer server.Close()
	p := g.workspace()
	p.Hosts = []string{server.Listener.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.Command("curl", "-s", "--noproxy", "", "--proxytunnel", server.URL)
	cmd.Dir = g.path("workspace")
	run, err := sandbox.Command(ctx, p, cmd)
	g.must(err)
	g.must(run.Start())
	<-begun
	cancel()
	if _, err := run.Wait(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-over
}

// TestHostsWithRealClients proves that git and the go command work through the proxy.
func TestHostsWithRealClients(t *testing.T) {
	g := hostsGround(t, "git")
	files := t.TempDir()
	g.must(os.Mkdir(filepath.Join(files, "work"), 0o700))
	git := exec.Command("/bin/sh", "-c", `set -e; cd work; git init -q; echo text > file; git add file
git -c user.name=a -c user.email=b@c.d commit -q -m x; cd ..; git clone -q --bare work repo.git; git -C repo.git update-server-info`)
	git.Dir = files
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	g.must(os.MkdirAll(filepath.Join(files, "m.example/a/@v"), 0o700))
	write := func(name string, text []byte) {
		g.must(os.WriteFile(filepath.Join(files, "m.example/a/@v", name), text, 0o600))
	}
	var module bytes.Buffer
	z := zip.NewWriter(&module)
	for _, name := range []string{"m.example/a@v1.0.0/go.mod", "m.example/a@v1.0.0/a.go"} {
		w, err := z.Create(name)
		g.must(err)
		fmt.Fprintln(w, map[bool]string{true: "module m.example/a", false: "package a"}[strings.HasSuffix(name, ".mod")])
	}
	g.must(z.Close())
	write("v1.0.0.info", []byte(`{"Version":"v1.0.0"}`))
	write("v1.0.0.mod", []byte("module m.example/a\n"))
	write("v1.0.0.zip", module.Bytes())
	server := httptest.NewServer(http.FileServer(http.Dir(files)))
	defer server.Close()
	sandbox.Name("files.example", "127.0.0.1")
	hosts := []string{"files.example" + portOf(server)}
	base := "http://" + hosts[0]
	if end, out, denials := g.inNetwork(hosts, "git", "clone", "-q", base+"/repo.git", "clone"); end.Code != 0 {
		t.Errorf("%+v %s %v", end, out, denials)
	}
	if text, err := os.ReadFile(g.path("workspace/clone/file")); string(text) != "text\n" {
		t.Errorf("%q %v", text, err)
	}
	end, out, denials := g.inNetwork(hosts, "git", "clone", "-q", "http://other.example/repo.git", "other")
	if end.Code == 0 || len(denials) == 0 || denials[0].Host != "other.example:80" {
		t.Errorf("%+v %s %v", end, out, denials)
	}

	goCommand := filepath.Join(runtime.GOROOT(), "bin", "go") //nolint:staticcheck // the one that runs the test, or none
	if _, err := os.Stat(goCommand); err != nil {
		if goCommand, err = exec.LookPath("go"); err != nil {
			t.Skip(err)
		}
	}
	script := fmt.Sprintf(`export GOPROXY=%s GONOSUMDB=* GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPATH="$TMPDIR/go" GOMODCACHE="$TMPDIR/go/pkg/mod" GOCACHE="$TMPDIR/cache"
printf 'module x\n\nrequire m.example/a v1.0.0\n' > go.mod; "$0" mod download -modcacherw m.example/a && ls "$TMPDIR/go/pkg/mod/m.example"`, base)
	if end, out, denials := g.inNetwork(hosts, "/bin/sh", "-c", script, goCommand); end.Code != 0 || out != "a@v1.0.0\n" {
		t.Errorf("%+v %s %v", end, out, denials)
	}
}

// TestHostsNeedNamespaces proves that a network that cannot be limited to hosts is not
// given.
func TestHostsNeedNamespaces(t *testing.T) {
	p := sandbox.Network(t.TempDir())
	p.Hosts, p.Without = []string{"example.com"}, []sandbox.Part{sandbox.Namespaces}
	if _, err := sandbox.Command(context.Background(), p, exec.Command("/bin/true")); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "Landlock") {
		t.Error(err)
	}
	full := sandbox.Full()
	full.Hosts = p.Hosts
	for _, p := range []sandbox.Profile{full, {Hosts: []string{"https://example.com"}}} {
		if _, err := sandbox.Command(context.Background(), p, exec.Command("/bin/true")); err == nil {
			t.Errorf("%+v", p)
		}
	}
}
