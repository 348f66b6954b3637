// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// webProxy starts a proxy for a.example, whose server is at the listener.
func webProxy(t *testing.T, l net.Listener) (p *proxy, address string) {
	t.Helper()
	return changedProxy(t, func(p *proxy) {
		p.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
		}
		p.dialTo = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		}
	}, "a.example")
}

func listenLocal(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// through opens a tunnel to a.example, and returns its two ends.
func through(t *testing.T, l net.Listener, address string) (client, server *net.TCPConn) {
	t.Helper()
	c, _, status := ask(t, address, "CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// greetingOf returns what a client of TLS sends first: one or more records.
func greetingOf(t *testing.T, name string, protocols ...string) []byte {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		_ = tls.Client(near, &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: protocols}).HandshakeContext(t.Context())
	}()
	var all, message bytes.Buffer
	for from := io.TeeReader(far, &all); ; {
		var head [5]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(&message, from, int64(head[3])<<8|int64(head[4])); err != nil {
			t.Fatal(err)
		}
		if b := message.Bytes(); message.Len() >= 4 && message.Len() == 4+(int(b[1])<<16|int(b[2])<<8|int(b[3])) {
			_ = far.Close()
			return all.Bytes()
		}
	}
}

// inRecords returns a greeting in records of at most size bytes.
func inRecords(greeting []byte, size int) (records []byte) {
	var message []byte
	for rest := greeting; len(rest) > 0; {
		n := int(rest[3])<<8 | int(rest[4])
		message, rest = append(message, rest[5:5+n]...), rest[5+n:]
	}
	for part := range slices.Chunk(message, size) {
		records = append(append(records, 22, 3, 1, byte(len(part)>>8), byte(len(part))), part...)
	}
	return records
}

// manyProtocols makes a greeting long.
func manyProtocols(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%0200d", i))
	}
	return list
}

// A greeting of TLS is read in whatever pieces it comes, a server gets its bytes unchanged, and one for another
// host reaches none, wherever in it the name is.
func TestProxyReadsWholeGreetings(t *testing.T) {
	l := listenLocal(t)
	for _, protocols := range []int{0, 100, 200} { // 100 take more than one record
		for _, name := range []string{"a.example", "evil.example"} {
			greeting := greetingOf(t, name, manyProtocols(protocols)...)
			for _, record := range []int{1, 7, 100, 1 << 14} {
				if record == 1 && protocols > 0 {
					continue // TLS itself refuses so many records
				}
				for _, write := range []int{1, 6, 1000, 1 << 20} {
					if write == 1 && protocols > 0 {
						continue
					}
					p, address := webProxy(t, l)
					client, server := through(t, l, address)
					sent := append(inRecords(greeting, record), "and more"...)
					for part := range slices.Chunk(sent, write) {
						if _, err := client.Write(part); err != nil {
							break // the proxy has refused it
						}
					}
					_ = client.CloseWrite()
					got, err := io.ReadAll(server)
					what := fmt.Sprintf("%s with %d protocols, in records of %d and pieces of %d bytes", name, protocols, record, write)
					switch refused := fmt.Sprint(p.refusals()); {
					case name == "a.example" && (!bytes.Equal(got, sent) || refused != "[]"):
						t.Errorf("%s: the server got %d bytes of %d, %v; refused: %s", what, len(got), len(sent), err, refused)
					case name != "a.example" && (len(got) > 0 || !strings.Contains(refused, "evil.example:443")):
						t.Errorf("%s: the server got %d bytes; refused: %s", what, len(got), refused)
					}
					p.close()
				}
			}
		}
	}
}

// A greeting that is cut, that does not end, or that is no greeting, reaches no server, and the client is not held.
func TestProxyRefusesBrokenGreetings(t *testing.T) {
	l := listenLocal(t)
	greeting := greetingOf(t, "a.example")
	endless := append([]byte{22, 3, 1, 0x40, 0}, append([]byte{1, 0xff, 0xff, 0xff}, make([]byte, 1<<14-4)...)...) // a greeting of 16 MB
	for range 20 {
		endless = append(endless, append([]byte{22, 3, 1, 0x40, 0}, make([]byte, 1<<14)...)...)
	}
	for what, sent := range map[string][]byte{
		"nothing": nil, "the first byte": greeting[:1], "the head of a record": greeting[:5], "a part": greeting[:len(greeting)/2], "all but a byte": greeting[:len(greeting)-1],
		"an empty record":           {22, 3, 1, 0, 0},
		"a record that is too long": append([]byte{22, 3, 1, 0xff, 0xff}, make([]byte, 1<<16)...),
		"no end":                    endless,
		"another message":           {22, 3, 1, 0, 4, 14, 0, 0, 0},
		"an alert":                  {21, 3, 1, 0, 2, 1, 0},
	} {
		p, address := webProxy(t, l)
		client, server := through(t, l, address)
		_, _ = client.Write(sent)
		_ = client.CloseWrite()
		if got, _ := io.ReadAll(server); len(got) > 0 {
			t.Errorf("%s: the server got %q", what, got)
		}
		if got, _ := io.ReadAll(client); len(got) > 0 && got[0] != 21 {
			t.Errorf("%s: the client got %q", what, got)
		}
		p.close()
	}
}

// If one side of a tunnel ends early, the other learns of it, before the proxy is closed.
func TestProxyTunnelsEnd(t *testing.T) {
	l := listenLocal(t)
	greeting := greetingOf(t, "a.example")
	ended := func(what string, c net.Conn) {
		t.Helper()
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Errorf("%s: it got %q", what, got)
		}
	}
	for what, do := range map[string]func(client, server *net.TCPConn){
		"the client, before it greets": func(client, server *net.TCPConn) {
			_ = client.Close()
			ended("the server", server)
		},
		"the client, in its greeting": func(client, server *net.TCPConn) {
			_, _ = client.Write(greeting[:20])
			_ = client.SetLinger(0) // a reset
			_ = client.Close()
			ended("the server", server)
		},
		"the server, before the greeting": func(client, server *net.TCPConn) {
			_ = server.Close()
			_, _ = client.Write(greeting)
			ended("the client", client)
		},
		"the server, after it": func(client, server *net.TCPConn) {
			_, _ = client.Write(greeting)
			_, _ = io.ReadFull(server, make([]byte, len(greeting)))
			_ = server.SetLinger(0)
			_ = server.Close()
			ended("the client", client)
		},
		"the client, after it": func(client, server *net.TCPConn) {
			_, _ = client.Write(greeting)
			_, _ = io.ReadFull(server, make([]byte, len(greeting)))
			_ = client.SetLinger(0)
			_ = client.Close()
			ended("the server", server)
		},
		"one direction of the client": func(client, server *net.TCPConn) {
			_, _ = client.Write(greeting)
			_ = client.CloseWrite()
			if got, _ := io.ReadAll(server); !bytes.Equal(got, greeting) {
				t.Errorf("the server got %d bytes of %d", len(got), len(greeting))
			}
			_, _ = io.WriteString(server, "answer")
			_ = server.Close()
			if got, _ := io.ReadAll(client); string(got) != "answer" {
				t.Errorf("the client got %q", got)
			}
		},
		"one direction of the server": func(client, server *net.TCPConn) {
			_, _ = client.Write(greeting)
			_ = server.CloseWrite()
			if got, _ := io.ReadAll(client); len(got) > 0 {
				t.Errorf("the client got %q", got)
			}
			_, _ = io.WriteString(client, "more")
			_ = client.CloseWrite()
			if got, _ := io.ReadAll(server); string(got) != string(greeting)+"more" {
				t.Errorf("the server got %d bytes", len(got))
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			p, address := webProxy(t, l)
			client, server := through(t, l, address)
			do(client, server)
			p.close()
		})
	}
}

// A real client of TLS reaches a real server through the proxy, and checks its certificate itself.
func TestProxyOfARealServer(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	roots := secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	_, address := webProxy(t, secure.Listener)
	for name, want := range map[string]string{"a.example": "certificate is valid for", "": ""} {
		conn, _, status := ask(t, address, "CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
		if status != http.StatusOK {
			t.Fatal(status)
		}
		client := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "a.example", InsecureSkipVerify: name == ""})
		err := client.HandshakeContext(t.Context())
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
		if text, err := io.ReadAll(client); err != nil || !strings.HasSuffix(string(text), "\r\n\r\nreached") {
			t.Errorf("%q %v", text, err)
		}
	}
}
