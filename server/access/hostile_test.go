// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/access"
)

// dial opens a connection and sends what a hostile client sends.
func (w *guarded) dial(text string) net.Conn {
	w.t.Helper()
	conn, err := new(net.Dialer).DialContext(w.t.Context(), "tcp", w.at)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, text) // the server may have closed it
	return conn
}

// closed waits until the server closes a connection.
func (w *guarded) closed(conn net.Conn) {
	w.t.Helper()
	_, err := io.Copy(io.Discard, conn)
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		w.t.Error(err)
	}
}

// still makes a response over a new connection.
func (w *guarded) still() {
	w.t.Helper()
	w.client.CloseIdleConnections()
	w.create("", hello)
}

// Sockets that send nothing, and those that send the head of a request byte by byte, make
// room for others: requests are served, and streams go on.
func TestIdleSockets(t *testing.T) {
	for name, sent := range map[string]string{"idle": "", "slow": "POST /v1/responses HTTP/1.1\r\nHost: localh"} {
		t.Run(name, func(t *testing.T) {
			begun, end := make(chan struct{}), make(chan struct{})
			w := world(t, &access.Guard{Bounds: access.Bounds{Connections: 8}}, func(ctx context.Context, r *server.Request, w *server.Writer) error {
				if r.Stream != nil && *r.Stream {
					_ = w.Text("first")
					close(begun)
					<-end
				}
				return echo(ctx, r, w)
			})
			stream := w.open("", "POST", "responses", `{"model":"m","input":"x","stream":true}`)
			defer stream.Body.Close()
			<-begun
			first := w.dial(sent)
			for i := range 100 {
				w.dial(sent)
				if i%20 == 19 {
					w.still()
				}
			}
			w.closed(first)
			close(end)
			if text, err := io.ReadAll(stream.Body); err != nil || !strings.Contains(string(text), "response.completed") {
				t.Errorf("the stream broke off: %v %.200s", err, text)
			}
			if c := w.g.Counts(); c.Dropped < 80 || c.Connections > 8 {
				t.Errorf("%d dropped, %d open", c.Dropped, c.Connections)
			}
		})
	}
}

// socket opens a WebSocket with a key.
func (w *guarded) socket(key string) (*websocket.Conn, *http.Response) {
	w.t.Helper()
	conn, resp, _ := websocket.Dial(w.t.Context(), "ws://"+w.at+"/v1/responses", &websocket.DialOptions{HTTPClient: w.client, HTTPHeader: http.Header{"Authorization": {"Bearer " + w.keys[key]}}})
	if conn != nil {
		w.t.Cleanup(func() { _ = conn.CloseNow() })
	}
	return conn, resp
}

// ask makes a response in a WebSocket, up to the event with the text until.
func (w *guarded) ask(conn *websocket.Conn, until string) {
	w.t.Helper()
	if err := conn.Write(w.t.Context(), websocket.MessageText, []byte(`{"type":"response.create",`+hello[1:])); err != nil {
		w.t.Fatal(err)
	}
	for {
		_, data, err := conn.Read(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.Contains(string(data), until) {
			return
		}
	}
}

// WebSockets that wait for a request make room: a key has a few, and all keys together leave
// places for other requests. Those in which a response is made stay. V5
func TestIdleWebSockets(t *testing.T) {
	busy, end := make(chan struct{}, 2), make(chan struct{})
	w := world(t, &access.Guard{Bounds: access.Bounds{Sockets: 2, Requests: 6}}, func(ctx context.Context, r *server.Request, w *server.Writer) error {
		if c, _ := server.CallerOf(ctx); c.Key == "a" {
			_ = w.Text("first")
			busy <- struct{}{}
			<-end
		}
		return echo(ctx, r, w)
	}, access.Key{Name: "a"}, access.Key{Name: "b"}, access.Key{Name: "c"})
	closed := func(conn *websocket.Conn) {
		t.Helper()
		if _, _, err := conn.Read(t.Context()); err == nil || t.Context().Err() != nil {
			t.Error("an idle WebSocket stays:", err)
		}
	}
	var of [3]*websocket.Conn
	for i := range of { // the third makes the first go
		of[i], _ = w.socket("b")
	}
	closed(of[0])
	w.ask(of[1], "response.completed") // now the other one has waited longer
	first, _ := w.socket("a")
	w.ask(first, "first")
	<-busy
	second, _ := w.socket("a") // the fourth of all
	closed(of[2])
	w.ask(second, "first")
	<-busy
	if conn, resp := w.socket("a"); conn != nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a third one with all in use: %v", resp)
	}
	if conn, resp := w.socket("c"); conn == nil {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("another key gets none: %s %s", resp.Status, body)
	}
	closed(of[1])
	w.create("b", hello)
	close(end)
	for _, conn := range []*websocket.Conn{first, second} {
		for last := ""; !strings.Contains(last, "response.completed"); {
			_, data, err := conn.Read(t.Context())
			if last = string(data); err != nil {
				t.Fatal("a WebSocket in use was closed:", err)
			}
		}
	}
	if c := w.g.Counts(); c.Dropped != 3 {
		t.Errorf("%d dropped", c.Dropped)
	}
}

// What WebSockets remember that wait for a request is no reason to refuse others: they make room. V5
func TestIdleWebSocketsMemory(t *testing.T) {
	w := world(t, &access.Guard{Bounds: access.Bounds{Bodies: 2 << 20}}, func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("y") },
		access.Key{Name: "a"})
	frame := []byte(`{"type":"response.create","model":"m","input":"` + strings.Repeat("x", 300<<10) + `"}`)
	for i := range 8 {
		conn, _ := w.socket("a")
		conn.SetReadLimit(-1)
		if err := conn.Write(t.Context(), websocket.MessageText, frame); err != nil {
			t.Fatal(i, err)
		}
		for last := ""; !strings.Contains(last, `"type":"response.completed"`); {
			_, data, err := conn.Read(t.Context())
			if last = string(data); err != nil || strings.Contains(last, `"type":"error"`) {
				t.Fatal(i, err, last)
			}
		}
	}
	if c := w.g.Counts(); c.Dropped == 0 || c.Overloaded > 0 {
		t.Errorf("%d dropped, %d overloaded", c.Dropped, c.Overloaded)
	}
}

// A client that stops in the middle of a body loses its connection, and holds nobody up.
func TestSlowBody(t *testing.T) {
	w := world(t, &access.Guard{Bounds: access.Bounds{Patience: 2 * time.Second}}, echo)
	var slow []net.Conn
	for range 20 {
		slow = append(slow, w.dial("POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"))
	}
	w.still()
	for _, conn := range slow {
		text, _ := io.ReadAll(conn) // until the server closes it
		if line, _, _ := strings.Cut(string(text), "\r\n"); !strings.HasPrefix(line, "HTTP/1.1 4") {
			t.Errorf("%.100q", text)
		}
	}
	w.still()
}

// A client that does not read, and one that is gone, end their responses.
func TestDeadClient(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprint("gone ", gone), func(t *testing.T) {
			ended := make(chan error, 1)
			w := world(t, &access.Guard{Bounds: access.Bounds{Patience: 2 * time.Second}}, func(ctx context.Context, _ *server.Request, w *server.Writer) error {
				text := strings.Repeat("x", 64<<10)
				err := w.Text("first")
				for !gone && err == nil {
					err = w.Text(text)
				}
				if gone {
					<-ctx.Done()
					err = ctx.Err()
				}
				ended <- err
				return err
			})
			const body = `{"model":"m","input":"x","stream":true}`
			conn := w.dial(fmt.Sprintf("POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
			if gone {
				if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
					t.Fatal(line, err)
				}
				conn.Close()
			}
			if err := <-ended; err == nil {
				t.Error("the response goes on")
			}
			if u := <-w.uses; u.Status != "cancelled" {
				t.Errorf("%+v", u)
			}
		})
	}
}

// A stream that has nothing to say sends comments.
func TestSilentStream(t *testing.T) {
	end := make(chan struct{})
	backend := server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		_ = w.Text("first")
		<-end
		return w.Text("last")
	})
	w := world(t, &access.Guard{Server: func(string) (*server.Server, error) {
		return &server.Server{Backend: backend, Silence: 20 * time.Millisecond}, nil
	}}, nil)
	resp := w.open("", "POST", "responses", `{"model":"m","input":"x","stream":true}`)
	defer resp.Body.Close()
	comments, lines := 0, bufio.NewScanner(resp.Body)
	var last string
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, ":") {
			if comments++; comments == 3 {
				close(end)
			}
		} else if data, ok := strings.CutPrefix(line, "data: "); ok {
			if _, err := api.ParseEventString(data); err != nil && data != "[DONE]" {
				t.Errorf("%q: %v", data, err)
			}
			last = data
		}
	}
	if lines.Err() != nil || comments < 3 || !strings.Contains(last, "response.completed") {
		t.Errorf("%d comments, %v, the last event is %.100q", comments, lines.Err(), last)
	}
	if resp.Header.Get("X-Accel-Buffering") != "no" || !strings.Contains(resp.Header.Get("Cache-Control"), "no-cache") {
		t.Error(resp.Header)
	}
}

// A request that becomes more than the memory of all requests is not told to come again.
func TestNeverFits(t *testing.T) {
	w := world(t, &access.Guard{Bounds: access.Bounds{Bodies: 1000}}, func(ctx context.Context, _ *server.Request, _ *server.Writer) error {
		return server.Hold(ctx, 1001)
	})
	if status, text := w.send("", "POST", "responses", hello); status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "1001 bytes") {
		t.Errorf("%d %s", status, text)
	}
}

// What does not fit is refused with the reason, and with a time to try again.
func TestFull(t *testing.T) {
	const stream = `{"model":"m","input":"x","stream":true}`
	for _, test := range []struct {
		bounds access.Bounds
		held   bool // a stream is open meanwhile
		body   string
		want   string
	}{
		{access.Bounds{Running: 1}, true, hello, "too many responses are being made"},
		{access.Bounds{Requests: 1}, true, hello, "too many requests and streams are open"},
		{access.Bounds{Bodies: 10}, false, hello, "too large together"},
	} {
		begun, end := make(chan struct{}, 10), make(chan struct{})
		w := world(t, &access.Guard{Bounds: test.bounds}, func(ctx context.Context, r *server.Request, w *server.Writer) error {
			_ = w.Text("first")
			begun <- struct{}{}
			<-end
			return w.Complete()
		})
		var open *http.Response
		if test.held {
			open = w.open("", "POST", "responses", stream)
			<-begun
		}
		resp := w.open("", "POST", "responses", test.body)
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable || err != nil || !strings.Contains(string(text), test.want) || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "server_is_overloaded") {
			t.Errorf("%+v: %d %s %v %v", test.bounds, resp.StatusCode, text, resp.Header, err)
		}
		if status, _ := w.send("", "GET", "/healthz", ""); status != http.StatusOK {
			t.Errorf("%+v: /healthz is %d", test.bounds, status)
		}
		if n := w.g.Counts().Overloaded; n != 1 {
			t.Errorf("%+v: %d are counted", test.bounds, n)
		}
		close(end)
		if open == nil {
			continue
		}
		if text, err := io.ReadAll(open.Body); err != nil || !strings.Contains(string(text), "response.completed") {
			t.Errorf("%+v: the stream broke off: %v", test.bounds, err)
		}
		open.Body.Close()
		w.still()
	}
}

// certificate makes a key and its certificate for 127.0.0.1.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// With a certificate nothing is served without encryption, by HTTP/1.1 and HTTP/2, and idle
// sockets, which never begin to encrypt, make room.
func TestTLS(t *testing.T) {
	own, pool := certificate(t)
	w := world(t, &access.Guard{TLS: &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}, Bounds: access.Bounds{Connections: 4}}, echo, access.Key{Name: "a"})
	var idle []net.Conn
	for range 20 {
		idle = append(idle, w.dial(""))
	}
	for _, two := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: two}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+w.at+"/v1/responses", strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.keys["a"])
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		transport.CloseIdleConnections()
		if err != nil || resp.StatusCode != http.StatusOK || (resp.ProtoMajor == 2) != two || !strings.Contains(string(text), "Hello") {
			t.Errorf("HTTP/2 %v: %s %d %s %v", two, resp.Proto, resp.StatusCode, text, err)
		}
	}
	w.closed(idle[0])
	if status, text := w.send("a", "POST", "responses", hello); status != http.StatusBadRequest || strings.Contains(text, "Hello\\") {
		t.Errorf("without encryption: %d %s", status, text)
	}
}

// The server is ready while its store answers and it does not end. The client is not told
// what is wrong with the store.
func TestReady(t *testing.T) {
	var broken error
	g := &access.Guard{Ready: func(context.Context) error { return broken }}
	w := world(t, g, echo, access.Key{Name: "a"})
	for _, test := range []struct {
		err    error
		status int
		want   string
	}{{nil, http.StatusOK, "ok"}, {errors.New("postgres://secret refuses"), http.StatusServiceUnavailable, "the store does not answer"}, {nil, http.StatusOK, "ok"}} {
		broken = test.err
		if status, text := w.send("", "GET", "/readyz", ""); status != test.status || !strings.Contains(text, test.want) || strings.Contains(text, "secret") {
			t.Errorf("%v: %d %s", test.err, status, text)
		}
		if status, text := w.send("", "HEAD", "/readyz", ""); status != test.status || text != "" {
			t.Errorf("%v: HEAD: %d %s", test.err, status, text)
		}
		for _, method := range []string{"GET", "HEAD"} {
			if status, _ := w.send("", method, "/healthz", ""); status != http.StatusOK {
				t.Errorf("%v: %s /healthz is %d", test.err, method, status)
			}
		}
	}
	for _, sent := range []string{"HEAD /v1/models 401", "GET /v1/models 401"} {
		method, _, _ := strings.Cut(sent, " ")
		if status, _ := w.send("", method, "/v1/models", ""); status != http.StatusUnauthorized {
			t.Errorf("%s: %d", sent, status)
		}
	}
	if !strings.Contains(w.logged(), "postgres://secret refuses") {
		t.Error("the log does not say why:", w.logged())
	}
}

// ending serves on a Unix socket until its context is done. send asks for a path; the status is 0 if nobody listens.
func ending(t *testing.T, g *access.Guard, drain func(send func(method, path string) (int, string))) (l net.Listener, send func(method, path string) (int, string), end func() error) {
	t.Helper()
	g.Server = func(string) (*server.Server, error) { return &server.Server{Backend: server.BackendFunc(echo)}, nil }
	path := filepath.Join(short(t), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	send = func(method, path string) (int, string) {
		r, err := http.NewRequestWithContext(context.Background(), method, "http://localhost"+path, strings.NewReader(`{"model":"m","input":"x"}`))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		resp, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err.Error()
		}
		return resp.StatusCode, string(text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, l, func() { drain(send) }) }()
	if status, text := send("POST", "/v1/responses"); status != http.StatusOK {
		t.Errorf("before the end: %d %s", status, text)
	}
	return l, send, func() error {
		cancel()
		return <-done
	}
}

// While the server waits for responses, it says so to load balancers, and refuses requests.
func TestReadyDrains(t *testing.T) {
	drained := false
	_, _, end := ending(t, new(access.Guard), func(send func(method, path string) (int, string)) {
		drained = true
		for asked, want := range map[string]string{
			"GET /readyz": "503 the server stops", "GET /healthz": "200 ok", "POST /v1/responses": "503 server_ending", "GET /v1/models": "503 server_ending",
		} {
			method, path, _ := strings.Cut(asked, " ")
			code, said, _ := strings.Cut(want, " ")
			if status, text := send(method, path); fmt.Sprint(status) != code || !strings.Contains(text, said) {
				t.Errorf("%s: %d %s", asked, status, text)
			}
		}
	})
	if err := end(); err != nil || !drained {
		t.Error(err, drained)
	}
}

// A socket whose connections wait for the next server is closed before the server waits for responses.
func TestCloseFirst(t *testing.T) {
	_, _, end := ending(t, &access.Guard{CloseFirst: true}, func(send func(method, path string) (int, string)) {
		for status := 1; status != 0; {
			status, _ = send("GET", "/healthz")
		}
	})
	if err := end(); err != nil {
		t.Error(err)
	}
}

// A server that lingers takes requests, and says to load balancers that none should come.
func TestLinger(t *testing.T) {
	l, send, end := ending(t, &access.Guard{Linger: time.Hour}, func(func(method, path string) (int, string)) {})
	ended := make(chan error)
	go func() { ended <- end() }()
	for status := 0; status != http.StatusServiceUnavailable; {
		status, _ = send("GET", "/readyz")
	}
	if status, text := send("POST", "/v1/responses"); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	if err := l.Close(); err != nil { // it does not linger for ever
		t.Error(err)
	}
	<-ended
}

// short returns a folder whose name is short enough for sockets.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
