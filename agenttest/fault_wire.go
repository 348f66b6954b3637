// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// wireFaults are those that a proper HTTP server cannot be made to commit: the
// answer is then written byte for byte, and its connection closed after it.
type wireFaults struct {
	wrongLength bool
	off         int // of the Content-Length
	untilClose  bool
	trailing    string
	statusLine  string
	cutsAt      bool
	cutAt       int // bytes of head and body
}

func (f wireFaults) any() bool { return f != wireFaults{} }

// WrongLength sends the whole body under a Content-Length that is off by so
// many bytes: below 0 it goes on after its length, above 0 it ends too early.
func (a Answer) WrongLength(off int) Answer {
	return a.with(func(a *Answer) { a.wire.wrongLength, a.wire.off = true, off }, "WrongLength(%d)", off)
}

// UntilClose sends the body without a length, as HTTP/1.0 did: it ends where
// the connection does, so that [Answer.CutAfter] looks like a proper end.
func (a Answer) UntilClose() Answer {
	return a.with(func(a *Answer) { a.wire.untilClose = true }, "UntilClose()")
}

// Trailing sends more bytes after the end of the answer.
func (a Answer) Trailing(garbage string) Answer {
	return a.with(func(a *Answer) { a.wire.trailing += garbage }, "Trailing(%.40q)", garbage)
}

// TwoAnswers is [Answer.Trailing] with a second answer, which nobody asked for.
func (a Answer) TwoAnswers(status int, body string) Answer {
	return a.Trailing(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), len(body), body))
}

// StatusLine sends a first line of one's own, which need be none.
func (a Answer) StatusLine(line string) Answer {
	return a.with(func(a *Answer) { a.wire.statusLine = line }, "StatusLine(%q)", line)
}

// CutWire breaks the connection after n bytes of the answer, counted from the
// first of its head.
func (a Answer) CutWire(n int) Answer {
	return a.with(func(a *Answer) { a.wire.cutsAt, a.wire.cutAt = true, n }, "CutWire(%d)", n)
}

// writeRaw sends the answer without net/http.
func (a Answer) writeRaw(w http.ResponseWriter, d *delivery, h http.Header, parts []string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var end func()
	d.gone, end = watch(conn)
	defer end()
	out := &rawOutput{conn: conn, sent: d.sent, left: a.cut, wire: -1, reset: a.byReset}
	if a.wire.cutsAt {
		out.wire = a.wire.cutAt
	}
	a.writeHead(out, h, parts)
	if !a.parts(parts, d, out.body) {
		return
	}
	if out.chunked {
		out.write("0\r\n\r\n")
	}
	out.write(a.wire.trailing)
}

// writeHead sends the first lines, and settles how the body is framed.
func (a Answer) writeHead(out *rawOutput, h http.Header, parts []string) {
	for _, status := range a.early {
		out.write(fmt.Sprintf("HTTP/1.1 %d %s\r\n\r\n", status, http.StatusText(status)))
	}
	switch {
	case a.wire.untilClose:
		h.Del("Content-Length")
		h.Set("Connection", "close")
	case a.wire.wrongLength:
		h.Set("Content-Length", strconv.Itoa(max(0, len(strings.Join(parts, ""))+a.wire.off)))
	case h.Get("Content-Length") == "":
		h.Set("Transfer-Encoding", "chunked")
		out.chunked = true
	}
	var head bytes.Buffer
	line := a.wire.statusLine
	if line == "" {
		line = fmt.Sprintf("HTTP/1.1 %d %s", a.status, http.StatusText(a.status))
	}
	head.WriteString(line + "\r\n")
	_ = h.Write(&head) // to memory
	head.WriteString("\r\n")
	if a.bytely {
		for i := range head.Len() {
			out.write(head.String()[i : i+1])
		}
		return
	}
	out.write(head.String())
}

// rawOutput writes to the connection up to the byte where it is to break, and
// does nothing afterwards.
type rawOutput struct {
	conn    net.Conn
	sent    func(string)
	chunked bool
	left    int // bytes of the body until the break; negative: none
	wire    int // bytes until the break; negative: none
	reset   bool
	broken  bool
}

// body writes a part of the body.
func (o *rawOutput) body(s string) {
	breaks := o.left >= 0 && len(s) >= o.left
	if breaks {
		s = s[:o.left]
	} else if o.left >= 0 {
		o.left -= len(s)
	}
	if s != "" && !o.broken {
		if o.wire < 0 {
			o.sent(s)
		}
		if o.chunked {
			s = fmt.Sprintf("%x\r\n%s\r\n", len(s), s)
		}
		o.write(s)
	}
	if breaks {
		o.hangUp()
	}
}

func (o *rawOutput) write(s string) {
	if o.broken {
		return
	}
	breaks := o.wire >= 0 && len(s) >= o.wire
	if breaks {
		s = s[:o.wire]
	} else if o.wire >= 0 {
		o.wire -= len(s)
	}
	_, _ = io.WriteString(o.conn, s) // a client that is gone is not our concern
	if breaks {
		o.hangUp()
	}
}

func (o *rawOutput) hangUp() {
	if !o.broken {
		o.broken = true
		closeConn(o.conn, o.reset)
	}
}

// watch reads from a connection on which nothing more is expected, so that its
// end is noticed. The function closes it and waits for the reading to end.
func watch(conn net.Conn) (gone context.Context, end func()) {
	gone, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		_, _ = io.Copy(io.Discard, conn)
	}()
	return gone, func() {
		_ = conn.Close()
		<-done
	}
}

// Dead is a way for a socket to be dead.
type Dead int

// Ways for a socket to be dead.
const (
	Refusing  Dead = iota // nothing listens
	Mute                  // connections are made, and nothing is ever read or sent
	Closing               // connections are closed at once
	Resetting             // connections are reset at once
)

// DeadURL returns the base URL of a loopback address where all connections are
// dead, until the end of the test.
func DeadURL(tb testing.TB, how Dead) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	url := "http://" + l.Addr().String() + "/v1"
	if how == Refusing {
		_ = l.Close()
		return url
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		var open []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				break
			}
			if how == Mute {
				open = append(open, conn)
			} else {
				closeConn(conn, how == Resetting)
			}
		}
		for _, conn := range open {
			_ = conn.Close()
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return url
}
