// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// onWire posts a request over a socket of its own and returns every byte that
// comes back.
func onWire(t *testing.T, srv *agenttest.Server) (string, error) {
	t.Helper()
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 15\r\n\r\n{\"stream\":true}")
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	return string(all), err
}

// S1 S2: each fault, byte for byte.
func TestFaultsOnTheWire(t *testing.T) {
	reply := agenttest.Events(`{"type":"a","n":1}`, `{"type":"b","s":"x,\",y"}`)
	for _, tt := range []struct {
		name   string
		answer agenttest.Reply
		want   string // in what was read
		err    error
	}{
		{"WrongLength, short", agenttest.Raw(200, "text/plain", "0123456789").WrongLength(-4), "Content-Length: 6\r\nContent-Type: text/plain\r\nX-Request-Id: req_0\r\n\r\n0123456789", nil},
		{"WrongLength, long", agenttest.Raw(200, "text/plain", "0123456789").WrongLength(4), "Content-Length: 14\r\n", nil},
		{"UntilClose", agenttest.Raw(200, "text/plain", "0123456789").UntilClose(), "Connection: close\r\nContent-Type: text/plain\r\nX-Request-Id: req_0\r\n\r\n0123456789", nil},
		{"CutAfter, UntilClose", agenttest.Raw(200, "text/plain", "0123456789").UntilClose().CutAfter(3), "\r\n\r\n012", nil},
		{"CutWire", reply.CutWire(12), "HTTP/1.1 200", nil},
		{"CutWire, ByReset", reply.CutWire(0).ByReset(), "", syscall.ECONNRESET},
		{"Reset", agenttest.Reset(), "", syscall.ECONNRESET},
		{"Trailing", agenttest.Raw(200, "text/plain", "x").Trailing("!\r\n"), "\r\n\r\nx!\r\n", nil},
		{"TwoAnswers", agenttest.Raw(200, "text/plain", "x").TwoAnswers(500, "{}"), "\r\n\r\nxHTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", nil},
		{"StatusLine", reply.StatusLine("garbage"), "garbage\r\nContent-Type", nil},
		{"After", agenttest.Raw(200, "text/plain", "x").After(103), "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n", nil},
		{"After, by hand", agenttest.Raw(200, "text/plain", "x").After(103).UntilClose(), "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n", nil},
		{"HugeHeader", agenttest.Raw(200, "text/plain", "x").HugeHeader(5000), "X-Filler: " + strings.Repeat("x", 5000), nil},
		{"Redirect", agenttest.Redirect(307, "/there"), "HTTP/1.1 307 Temporary Redirect\r\n", nil},
		{"ByteByByte", agenttest.Raw(200, "text/plain", "abc").ByteByByte().UntilClose(), "\r\n\r\nabc", nil},
		{"chunks by hand", agenttest.Events(`x`).CutWire(9999), "\r\n9\r\ndata: x\n\n\r\n0\r\n\r\n", nil},
		{"LineEnds", reply.LineEnds("\r\n").UntilClose(), "event: a\r\ndata: {\"type\":\"a\",\"n\":1}\r\n\r\nevent: b\r\n", nil},
		{"LineEnds, CR", reply.LineEnds("\r").UntilClose(), "event: a\rdata: {\"type\":\"a\",\"n\":1}\r\revent: b\r", nil},
		{"Tight", reply.Tight().UntilClose(), "event:a\ndata:{\"type\":\"a\",\"n\":1}\n\n", nil},
		{"WithBOM", reply.WithBOM().UntilClose(), "\r\n\r\n\ufeffevent: a\n", nil},
		{"WithComments", agenttest.Events(`x`).WithComments().UntilClose(), "\r\n\r\n: keep-alive\ndata: x\n: data: {\n\n", nil},
		{"DataLines", reply.DataLines().UntilClose(), "data: {\"type\":\"b\",\ndata: \"s\":\"x,\\\",y\"}\n\n", nil},
		{"NoFinalNewline", reply.NoFinalNewline().UntilClose(), "y\"}", nil},
		{"Without", reply.Without(0).UntilClose(), "\r\n\r\nevent: b\n", nil},
		{"Without, none such", reply.Without(7).UntilClose(), "\r\n\r\nevent: a\n", nil},
		{"Twice", agenttest.Events("x", "y").Twice(-1).UntilClose(), "data: x\n\ndata: y\n\ndata: y\n\n", nil},
		{"Move", agenttest.Events("x", "y", "z").Move(0, -1).UntilClose(), "data: y\n\ndata: z\n\ndata: x\n\n", nil},
		{"Move to the front", agenttest.Events("x", "y", "z").Move(-1, 0).UntilClose(), "data: z\n\ndata: x\n\ndata: y\n\n", nil},
	} {
		srv := agenttest.NewServer(t, tt.answer)
		got, err := onWire(t, srv)
		if !strings.Contains(got, tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %q, %v; want %q, %v", tt.name, got, err, tt.want, tt.err)
		}
		srv.Close()
	}
}

// A client sees informational answers, and gzip is gzip.
func TestEarlyAndGzip(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("hi")).After(103).Gzip())
	early := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
		early += code
		return nil
	}})
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/responses", strings.NewReader(`{"stream":true}`))
	resp, err := srv.HTTP().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || early != 103 || !resp.Uncompressed || !strings.Contains(string(body), "response.completed") {
		t.Errorf("early %d, uncompressed %v, %v: %s", early, resp.Uncompressed, err, body)
	}
	if srv.Sent(0) == "" || srv.Sent(1) != "" {
		t.Errorf("sent %q", srv.Sent(0))
	}
}

// A stall before the status ends with the client, with release, with the server.
func TestStall(t *testing.T) {
	release := make(chan struct{})
	srv := agenttest.NewServer(t, agenttest.Completed().Stall(nil), agenttest.Completed().Stall(release), agenttest.Completed().UntilClose().Stall(nil))
	after := func(requests int, do func()) { // what comes before a request takes none of its answers
		for len(srv.Requests()) < requests {
			time.Sleep(time.Millisecond)
		}
		do()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, strings.NewReader("{}"))
	go after(1, cancel)
	if _, err := srv.HTTP().Do(r); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go after(2, func() { close(release) })
	if body := ask(t, srv, "{}"); !strings.Contains(body, "completed") {
		t.Error(body)
	}
	go after(3, srv.Close)
	if resp, err := srv.HTTP().Post(srv.URL, "", strings.NewReader("{}")); err == nil {
		resp.Body.Close()
		t.Error("an answer")
	}
}

func TestDeadURL(t *testing.T) {
	for how, want := range map[agenttest.ConnFault]error{agenttest.Refusing: syscall.ECONNREFUSED, agenttest.Closing: io.EOF, agenttest.Resetting: syscall.ECONNRESET, agenttest.Mute: nil} {
		u, _ := url.Parse(agenttest.DeadURL(t, how))
		conn, err := net.Dial("tcp", u.Host)
		if err == nil && how != agenttest.Mute {
			_, err = bufio.NewReader(conn).ReadByte()
		}
		if conn != nil {
			conn.Close()
		}
		if !errors.Is(err, want) && how != agenttest.Resetting || (err == nil) != (how == agenttest.Mute) {
			t.Errorf("%d: %v", how, err)
		}
	}
}

// The same dice draw the same answers, and their names tell how they were made.
func TestSchedule(t *testing.T) {
	draw := func() (names []string) {
		for _, a := range agenttest.Schedule(rand.New(rand.NewPCG(1, 2)), 300, agenttest.Completed()) {
			names = append(names, a.String())
		}
		return names
	}
	names := draw()
	if d := cmp.Diff(names, draw()); d != "" || len(names) != 301 || names[300] != "Reply(0 items)" {
		t.Errorf("%d answers, differences %s", len(names), d)
	}
	all := strings.Join(names, "\n")
	for _, part := range []string{"Failure(", "Reset", "CutAfter(", "ByReset()", "Move(", "CloseAfter(", "\nReply(0 items)\n"} {
		if !strings.Contains(all, part) {
			t.Errorf("no %s in 300 answers", part)
		}
	}
	if got := agenttest.Storm(2, agenttest.Failure(500, "c", "m"), agenttest.Completed()); len(got) != 3 || got[1].String() != "Failure(500, c)" {
		t.Errorf("%v", got)
	}
}
