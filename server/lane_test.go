// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/item"
)

// pipes is a listener whose connections are pipes, so that their time is that of a test.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// socketOf opens a WebSocket to a server. raw is the connection below it.
func socketOf(t *testing.T, s http.Handler) (conn *websocket.Conn, raw net.Conn) {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	serving := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = serving.Serve(l)
	}()
	own := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		raw = ours
		l.conns <- theirs
		return ours, nil
	}}
	conn, _, err := websocket.Dial(t.Context(), "ws://localhost/v1/responses", &websocket.DialOptions{HTTPClient: &http.Client{Transport: own}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.CloseNow()
		_ = serving.Close()
		own.CloseIdleConnections()
		<-ended
	})
	return conn, raw
}

const createFrame = `{"type":"response.create","model":"m","input":"x"}`

// A client of a WebSocket that does not read, and one that reads and is silent otherwise, lose
// their connection and their response. V5
func TestSocketDeadClient(t *testing.T) {
	for name, reads := range map[string]bool{"does not read": false, "answers no ping": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{})
				s := &Server{Backend: BackendFunc(func(ctx context.Context, _ *Request, w *Writer) error {
					defer close(ended)
					err := w.Text("first")
					for !reads && err == nil {
						err = w.Text("more")
					}
					<-ctx.Done()
					return ctx.Err()
				})}
				conn, raw := socketOf(t, s)
				if err := conn.Write(t.Context(), websocket.MessageText, []byte(createFrame)); err != nil {
					t.Fatal(err)
				}
				if reads {
					_, _ = io.Copy(io.Discard, raw) // until the server closes it
				}
				select {
				case <-ended:
				case <-time.After(time.Hour): // of the time in the bubble
					t.Error("the response goes on")
				}
			})
		})
	}
}

// A client may be silent between its requests, and need not answer pings then.
func TestSocketWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Backend: BackendFunc(func(_ context.Context, _ *Request, w *Writer) error { return w.Text("y") })}
		conn, raw := socketOf(t, s)
		var mu sync.Mutex
		var got strings.Builder
		go func() {
			data := make([]byte, 4096)
			for {
				n, err := raw.Read(data)
				mu.Lock()
				got.Write(data[:n])
				mu.Unlock()
				if err != nil {
					return
				}
			}
		}()
		for i := range 3 {
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(createFrame)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // of the time in the bubble
			mu.Lock()
			if n := strings.Count(got.String(), "event"); strings.Count(got.String(), `"type":"response.completed"`) != i+1 {
				t.Errorf("after %d requests: %d events", i+1, n)
			}
			mu.Unlock()
		}
		_ = conn.CloseNow()
	})
}

// A message that comes slowly and all the time is read to its end.
func TestSocketSlowMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lane{patience: patience}
		l.ctx, l.end = context.WithCancel(t.Context())
		defer l.end()
		left := 20 << 20
		f, err := l.take(readerFunc(func(data []byte) (int, error) { // as the library reads: all of data
			n := min(len(data), left)
			time.Sleep(time.Duration(n) * 4 * time.Microsecond) // of the time in the bubble
			if left -= n; left == 0 {
				return n, io.EOF
			}
			return n, l.ctx.Err()
		}))
		if err != nil || len(f.data) != 20<<20 || l.ctx.Err() != nil {
			t.Error(len(f.data), err, l.ctx.Err())
		}
		f.end()
	})
}

// memory is what requests may have together.
type memory struct {
	mu   sync.Mutex
	most int64
	now  int64
}

func (m *memory) hold(ctx context.Context, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now+n > m.most {
		return &Error{Status: http.StatusServiceUnavailable, Code: "server_is_overloaded", Message: "full"}
	}
	m.now += n
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.now -= n
	})
	return nil
}

func (m *memory) held() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Messages of a WebSocket count for the memory that all requests may have: while they wait and
// are served, and what the socket remembers of them. One that does not fit is refused, and the
// socket goes on. V5
func TestSocketMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{most: 100 << 10}
		s := &Server{Backend: BackendFunc(func(_ context.Context, _ *Request, w *Writer) error {
			if m.held() == 0 {
				return w.Error("odd", "the request holds no memory")
			}
			return w.Text("y")
		})}
		conn, _ := socketOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.ServeHTTP(w, r.WithContext(WithHold(r.Context(), m.hold)))
		}))
		for _, test := range []struct {
			size int
			want string
		}{{10, "response.completed"}, {200 << 10, "server_is_overloaded"}, {20 << 10, "response.completed"}, {10, "response.completed"}} {
			frame := fmt.Sprintf(`{"type":"response.create","model":"m","store":false,"input":"%s"}`, strings.Repeat("x", test.size))
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
				t.Fatal(err)
			}
			for last := ""; !strings.Contains(last, test.want); {
				_, data, err := conn.Read(t.Context())
				if last = string(data); err != nil || strings.Contains(last, `"type":"error"`) && test.want == "response.completed" {
					t.Fatal(test.size, err, last)
				}
			}
		}
		_ = conn.CloseNow()
		synctest.Wait()
		if n := m.held(); n != 0 {
			t.Errorf("%d bytes are held by nobody", n)
		}
	})
}

// Packed histories of one request may be as large together as a request, and count for the
// memory of all. V5
func TestPackedSize(t *testing.T) {
	var list []item.Item
	for range 60 {
		list = append(list, item.User(strings.Repeat("x", 1000)))
	}
	one, err := Pack(list)
	if err != nil {
		t.Fatal(err)
	}
	body := func(n int) string {
		return `{"model":"m","input":[` + strings.Repeat(one.JSON()+",", n) + `{"role":"user","content":"x"}]}`
	}
	m := &memory{most: 1 << 20}
	s := &Server{MaxBody: 100 << 10, Backend: BackendFunc(func(_ context.Context, _ *Request, w *Writer) error { return w.Text("y") })}
	ask := func(n int) (int, string) {
		ctx, end := context.WithCancel(WithHold(t.Context(), m.hold))
		defer end()
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/responses", strings.NewReader(body(n))))
		return w.Code, w.Body.String()
	}
	if status, text := ask(1); status != http.StatusOK {
		t.Errorf("one: %d %s", status, text)
	}
	if status, text := ask(2); status != http.StatusBadRequest || !strings.Contains(text, "input[1]") {
		t.Errorf("two: %d %s", status, text)
	}
	m.most = 50 << 10
	if status, text := ask(1); status != http.StatusServiceUnavailable || !strings.Contains(text, "server_is_overloaded") {
		t.Errorf("without memory: %d %s", status, text)
	}
}
