// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestHostsAreRead proves which entries a profile may have, and that others say what
// to write.
func TestHostsAreRead(t *testing.T) {
	for _, entry := range []string{
		"example.com", "Example.COM.", "*.example.com", "example.com:8443", "*.example.com:8443", "localhost:5000", "xn--bcher-kva.example",
		"127.0.0.1", "127.0.0.1:5000", "[::1]:5000", "::1", "[::1]", "a_b.example",
	} {
		if _, err := parseHosts([]string{entry}); err != nil {
			t.Errorf("%s: %v", entry, err)
		}
	}
	for entry, want := range map[string]string{
		"": "is not the name", "*": "is not the name", "*.": "is not the name", "a.*.com": "is not the name", "https://example.com": "is not the name", "a:b:c": "cannot be read",
		"example.com/path": "is not the name", "user@example.com": "is not the name", "bücher.example": "xn--", "example.com:0": "has the port", "example.com:": "has the port",
		"example.com:https": "has the port", "example.com:65536": "has the port", "2130706433": "is not the name", "0x7f.1": "is not the name", "127.1": "is not the name",
		"*.1.2.3.4": "is not the name", "fe80::1%eth0": "has a zone", "a..b": "is not the name", "a b": "is not the name", "*.*.com": "is not the name",
	} {
		if _, err := parseHosts([]string{entry}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

// TestAllowedHosts proves which hosts a profile allows, by name, port and address.
func TestAllowedHosts(t *testing.T) {
	hosts, err := parseHosts([]string{"a.example", "*.b.example", "c.example:8443", "localhost:5000", "10.0.0.9:5432", "[fd00:ec2::254]:80", "*.d.example:25"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		port  uint16
		found string
		want  string // of the addresses, or of the error
	}{
		{"a.example", 443, "1.1.1.1", "[1.1.1.1]"},
		{"A.Example.", 80, "1.1.1.1 2606:4700::1111", "[1.1.1.1 2606:4700::1111]"},
		{"a.example", 22, "1.1.1.1", "a.example:22"},
		{"x.a.example", 443, "1.1.1.1", "x.a.example:443"},
		{"xa.example", 443, "1.1.1.1", "xa.example:443"},
		{"x.b.example", 443, "1.1.1.1", "[1.1.1.1]"},
		{"x.y.b.example", 443, "1.1.1.1", "[1.1.1.1]"},
		{"b.example", 443, "1.1.1.1", "b.example:443"},
		{"xb.example", 443, "1.1.1.1", "xb.example:443"},
		{"c.example", 8443, "1.1.1.1", "[1.1.1.1]"},
		{"c.example", 443, "1.1.1.1", "c.example:443"},
		{"evil.example", 443, "1.1.1.1", "evil.example:443"},
		{"1.1.1.1", 443, "", "1.1.1.1:443"}, // a name does not allow its address

		// Addresses outside the public internet.
		{"a.example", 443, "127.0.0.1", "a loopback address; the profile must name it with its port"},
		{"a.example", 443, "10.0.0.1", "a private address"},
		{"a.example", 443, "::ffff:127.0.0.1", "a loopback address"},
		{"a.example", 443, "64:ff9b::7f00:1", "a loopback address"},
		{"a.example", 443, "169.254.169.254", "a metadata address"},
		{"a.example", 443, "0.0.0.0", "an unspecified address"},
		{"a.example", 443, "127.0.0.1 1.1.1.1", "[1.1.1.1]"},
		{"a.example", 443, "", "it has no address"},
		{"localhost", 5000, "127.0.0.1 ::1", "[127.0.0.1 ::1]"},
		{"localhost", 5001, "127.0.0.1", "localhost:5001"},
		{"c.example", 8443, "10.0.0.1", "[10.0.0.1]"},
		{"c.example", 8443, "169.254.169.254", "a metadata address"},
		{"c.example", 8443, "fd00:ec2::254", "a metadata address"},
		{"c.example", 8443, "fe80::1%eth0", "it has no address"},
		{"x.d.example", 25, "10.0.0.1", "a private address"},
		{"10.0.0.9", 5432, "", "[10.0.0.9]"},
		{"::ffff:10.0.0.9", 5432, "", "[10.0.0.9]"},
		{"10.0.0.9", 5433, "", "10.0.0.9:5433"},
		{"fd00:ec2::254", 80, "", "[fd00:ec2::254]"},
		{"169.254.169.254", 80, "", "169.254.169.254:80"},
		{"::ffff:127.0.0.1", 80, "", "[::ffff:127.0.0.1]:80"},
		{"127.1", 80, "127.0.0.1", "127.1:80"},
		{"0x7f.1", 80, "127.0.0.1", "0x7f.1:80"},
		{"2130706433", 80, "127.0.0.1", "2130706433:80"},
		{"", 80, "127.0.0.1", ":80"},
	} {
		got := ""
		list, err := allowed(hosts, c.name, c.port, addresses(c.found))
		if got = fmt.Sprint(list); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || (err == nil) != strings.HasPrefix(c.want, "[") && !strings.HasPrefix(c.want, "[::ffff") {
			t.Errorf("%s %d: %s, not %s", c.name, c.port, got, c.want)
		}
	}
}

// addresses returns a function that looks up no name and finds these addresses.
func addresses(found string) func(string) ([]netip.Addr, error) {
	return func(string) (addrs []netip.Addr, err error) {
		for a := range strings.FieldsSeq(found) {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		return addrs, nil
	}
}

// startProxy starts a proxy for the hosts, and returns its address.
func startProxy(t *testing.T, entries ...string) (*proxy, string) {
	t.Helper()
	return changedProxy(t, func(*proxy) {}, entries...)
}

func changedProxy(t *testing.T, change func(*proxy), entries ...string) (*proxy, string) {
	t.Helper()
	hosts, err := parseHosts(entries)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(hosts)
	change(p)
	p.serve(l)
	t.Cleanup(p.close)
	return p, l.Addr().String()
}

// ask sends text to the proxy and returns the connection and the status of the answer.
func ask(t *testing.T, address, text string) (net.Conn, *bufio.Reader, int) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Logf("the proxy did not read all: %v", err)
	}
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return c, in, 0
	}
	return c, in, resp.StatusCode
}

// TestProxyRefuses proves that nothing but the named hosts is reached, in whatever form
// a program asks for others, and that the refusal is told.
func TestProxyRefuses(t *testing.T) {
	var reached atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer server.Close()
	port := server.Listener.Addr().(*net.TCPAddr).Port
	Name("named.example", "127.0.0.1")
	Name("evil.example", "127.0.0.1")
	Name("inside.example", "127.0.0.1")
	p, address := startProxy(t, "named.example:1", "*.example:"+strconv.Itoa(port), "inside.example")
	for _, host := range []string{
		"127.0.0.1", "127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "[::ffff:127.0.0.1]", "[::1]", "[::]", "0.0.0.0", "0", "localhost",
		"named.example", "evil.example", "inside.example", "169.254.169.254", "[fe80::1%25lo]", "*.example", "",
	} {
		target := fmt.Sprintf("%s:%d", host, port)
		for _, text := range []string{
			"CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n",
			"CONNECT " + target + " HTTP/1.1\r\nHost: allowed.example:443\r\n\r\n",
			"GET http://" + target + "/ HTTP/1.1\r\nHost: " + target + "\r\n\r\n",
			"GET http://" + target + "/ HTTP/1.1\r\nHost: inside.example\r\n\r\n",
		} {
			if _, _, status := ask(t, address, text); status == http.StatusOK {
				t.Errorf("%q: %d", text, status)
			}
		}
	}
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: " + server.Listener.Addr().String() + "\r\n\r\n", "GET https://inside.example/ HTTP/1.1\r\nHost: inside.example\r\n\r\n",
		"CONNECT named.example HTTP/1.1\r\nHost: named.example\r\n\r\n", "CONNECT /" + server.Listener.Addr().String() + " HTTP/1.1\r\nHost: x\r\n\r\n", "nonsense\r\n\r\n",
		"GET http://inside.example/ HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
	} {
		if _, _, status := ask(t, address, text); status == http.StatusOK {
			t.Errorf("%.60q: %d", text, status)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the server was reached %d times", n)
	}
	var told []string
	for _, r := range p.refusals() {
		told = append(told, r.host)
	}
	if !slices.Contains(told, fmt.Sprintf("127.0.0.1:%d", port)) || len(told) != mostRefusals {
		t.Errorf("%q", told)
	}
}

// TestProxyConnects proves that the named hosts are reached, by plain HTTP and by TLS,
// and that a greeting for another name on the same server is refused.
func TestProxyConnects(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) })
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // one greeting does not arrive
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	for _, name := range []string{"a.example", "b.example"} {
		Name(name, "127.0.0.1")
	}
	ports := []string{plain.URL[strings.LastIndexByte(plain.URL, ':'):], secure.URL[strings.LastIndexByte(secure.URL, ':'):]}
	p, address := startProxy(t, "a.example"+ports[0], "a.example"+ports[1], "b.example"+ports[1])
	get := func(u, sni string) (string, error) {
		transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: address}), DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: sni}}
		resp, err := (&http.Client{Transport: transport}).Get(u)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return string(text), err
	}
	if text, err := get("http://a.example"+ports[0]+"/", ""); err != nil || text != "a.example"+ports[0] {
		t.Errorf("%q %v", text, err)
	}
	for _, sni := range []string{"", "a.example", "b.example", "A.EXAMPLE"} {
		if text, err := get("https://a.example"+ports[1]+"/", sni); err != nil || text != "a.example"+ports[1] {
			t.Errorf("%s: %q %v", sni, text, err)
		}
	}
	if len(p.refusals()) > 0 {
		t.Error(p.refusals())
	}
	if text, err := get("https://a.example"+ports[1]+"/", "evil.example"); err == nil {
		t.Errorf("%q", text)
	}
	if list := p.refusals(); len(list) != 1 || list[0].host != "evil.example"+ports[1] || !strings.Contains(list[0].Error(), "in a connection to a.example") {
		t.Error(list)
	}
	// What is not TLS is passed on as it is, also if the server speaks first.
	greeter, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer greeter.Close()
	go func() {
		c, err := greeter.Accept()
		if err == nil {
			_, _ = io.WriteString(c, "welcome\n")
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	target := greeter.Addr().String()
	_, other := startProxy(t, target)
	c, in, status := ask(t, other, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n")
	if line, err := in.ReadString('\n'); status != 200 || line != "welcome\n" || err != nil {
		t.Errorf("%d %q %v", status, line, err)
	}
	_, _ = io.WriteString(c, "echo\n")
	_ = c.(*net.TCPConn).CloseWrite()
	if text, err := io.ReadAll(in); string(text) != "echo\n" || err != nil {
		t.Errorf("%q %v", text, err)
	}
}

// TestProxyOfTheWeb proves that a tunnel to a host that was named without a port carries
// nothing but TLS for that host, whatever a program sends and a server says first, and that
// an entry with the port is for everything.
func TestProxyOfTheWeb(t *testing.T) {
	greeting := func(name string) string { // what a client sends first
		near, far := net.Pipe()
		go func() {
			_ = tls.Client(near, &tls.Config{ServerName: name, InsecureSkipVerify: true}).HandshakeContext(t.Context())
		}()
		b := make([]byte, 1<<14)
		n, err := far.Read(b)
		_ = far.Close()
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	for _, c := range []struct{ entry, host, send, refused string }{
		{"a.example", "a.example:443", greeting("a.example"), ""},
		{"*.example", "a.example:443", greeting("b.example"), ""},
		{"a.example", "a.example:443", greeting("evil.example"), "in a connection to a.example"},
		{"a.example", "a.example:443", greeting(""), "does not say for which host"},
		{"a.example", "a.example:443", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "is not TLS"},
		{"a.example", "a.example:443", "SSH-2.0-x\r\n", "is not TLS"},
		{"1.1.1.1", "1.1.1.1:443", greeting(""), ""},
		{"1.1.1.1", "1.1.1.1:443", "SSH-2.0-x\r\n", "is not TLS"},
		{"a.example", "a.example:80", "", "a tunnel to port 80"},
		{"a.example", "a.example:080", "", "a tunnel to port 80"},
		{"a.example:443", "a.example:443", greeting(""), ""},
		{"a.example:443", "a.example:443", greeting("evil.example"), "in a connection to a.example"},
		{"a.example:443", "a.example:443", "SSH-2.0-x\r\n", ""},
		{"a.example:80", "a.example:80", "GET / HTTP/1.1\r\n\r\n", ""},
	} {
		first := make(chan string, 1) // what the server gets, or "" at the end
		p, address := changedProxy(t, func(p *proxy) {
			p.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
			}
			p.dialTo = func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() {
					b := make([]byte, 1<<14)
					n, _ := far.Read(b)
					first <- string(b[:n])
					_ = far.Close()
				}()
				return near, nil
			}
		}, c.entry)
		conn, _, status := ask(t, address, "CONNECT "+c.host+" HTTP/1.1\r\nHost: x\r\n\r\n")
		if status == http.StatusOK {
			for part := range slices.Chunk([]byte(c.send), 100) { // a greeting may come in pieces
				_, _ = conn.Write(part)
			}
		}
		if status != http.StatusOK {
			first <- "" // nobody was called
		}
		got := <-first
		if c.refused == "" && (status != http.StatusOK || got == "" || !strings.HasPrefix(c.send, got)) || c.refused != "" && got != "" {
			t.Errorf("%s to %s: status %d, the server got %q", c.entry, c.host, status, got)
		}
		told := fmt.Sprint(p.refusals())
		if c.refused == "" && told != "[]" || !strings.Contains(told, c.refused) {
			t.Errorf("%s to %s: %s, want %q", c.entry, c.host, told, c.refused)
		}
	}
}

// A server of the web that speaks first is not heard before the program has greeted it.
func TestProxyServerSpeaksFirst(t *testing.T) {
	spoken := make(chan error, 1)
	_, address := changedProxy(t, func(p *proxy) {
		p.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
		}
		p.dialTo = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				_, err := io.WriteString(far, "SSH-2.0-banner\r\n")
				spoken <- err
			}()
			return near, nil
		}
	}, "a.example")
	conn, in, status := ask(t, address, "CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	_, _ = io.WriteString(conn, "SSH-2.0-client\r\n")
	if text, _ := io.ReadAll(in); len(text) > 0 {
		t.Errorf("the program got %q", text)
	}
	if err := <-spoken; err == nil {
		t.Error("what the server said was read")
	}
}

// TestProxyPinsAddresses proves that a connection goes to the address that was checked:
// a name whose address changes is looked up once for each connection.
func TestProxyPinsAddresses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	answers := [][]string{{"127.0.0.1"}, {"169.254.169.254"}, {"169.254.169.254", "127.0.0.1"}, {"0.0.0.0"}}
	calls := 0
	_, address := changedProxy(t, func(p *proxy) {
		p.lookup = func(context.Context, string, string) (list []netip.Addr, err error) {
			for _, a := range answers[calls] {
				list = append(list, netip.MustParseAddr(a))
			}
			calls++
			return list, nil
		}
	}, "rebind.example"+port)
	for i, want := range []int{200, 403, 200, 403} {
		if c, _, status := ask(t, address, "CONNECT rebind.example"+port+" HTTP/1.1\r\nHost: x\r\n\r\n"); status != want {
			t.Errorf("%d: %d", i, status)
		} else {
			_ = c.Close()
		}
	}
	if calls != len(answers) {
		t.Errorf("%d lookups", calls)
	}
}

// TestProxyEnds proves that a proxy that is closed has no connections left, whatever its
// clients do, and that clients that do not send a whole header are not waited for.
func TestProxyEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, first := changedProxy(t, func(p *proxy) { p.server.ReadHeaderTimeout = time.Millisecond }, l.Addr().String())
	slow, err := net.Dial("tcp", first)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	_, _ = io.WriteString(slow, "GET http://a.example/ HTTP/1.1\r\nHost")
	_, _ = io.Copy(io.Discard, slow) // until the proxy closes it

	p, address := startProxy(t, l.Addr().String())
	c, _, status := ask(t, address, "CONNECT "+l.Addr().String()+" HTTP/1.1\r\nHost: x\r\n\r\n")
	server, err := l.Accept()
	if err != nil || status != 200 {
		t.Fatal(status, err)
	}
	defer server.Close()
	p.close()
	for _, conn := range []net.Conn{c, server} {
		if text, err := io.ReadAll(conn); len(text) > 0 {
			t.Errorf("%q %v", text, err)
		}
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the proxy still listens")
	}
}
