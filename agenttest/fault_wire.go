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

// wireFaults are faults that a regular HTTP server cannot produce: such an answer is
// written byte by byte, and its connection is closed afterwards.
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

// WrongLength sends the whole body with a Content-Length that is wrong by off bytes:
// if off is negative, the body continues after its length; if positive, it ends too
// early.
func (a Reply) WrongLength(off int) Reply {
	return a.with(func(a *Reply) { a.wire.wrongLength, a.wire.off = true, off }, "WrongLength(%d)", off)
}

// UntilClose sends the body without a length, as in HTTP/1.0: it ends with the
// connection, so that [Reply.CutAfter] looks like a regular end.
func (a Reply) UntilClose() Reply {
	return a.with(func(a *Reply) { a.wire.untilClose = true }, "UntilClose()")
}

// Trailing sends more bytes after the end of the answer.
func (a Reply) Trailing(garbage string) Reply {
	return a.with(func(a *Reply) { a.wire.trailing += garbage }, "Trailing(%.40q)", garbage)
}

// TwoAnswers is [Reply.Trailing] with a second, unsolicited answer.
func (a Reply) TwoAnswers(status int, body string) Reply {
	return a.Trailing(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), len(body), body))
}

// StatusLine replaces the status line, which need not be valid.
func (a Reply) StatusLine(line string) Reply {
	return a.with(func(a *Reply) { a.wire.statusLine = line }, "StatusLine(%q)", line)
}

// CutWire breaks the connection after n bytes of the answer, including its head.
func (a Reply) CutWire(n int) Reply {
	return a.with(func(a *Reply) { a.wire.cutsAt, a.wire.cutAt = true, n }, "CutWire(%d)", n)
}

// writeRaw sends the answer without net/http.
func (a Reply) writeRaw(w http.ResponseWriter, d *delivery, h http.Header, parts []string) {
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

// writeHead sends the first lines, and determines the framing of the body.
func (a Reply) writeHead(out *rawOutput, h http.Header, parts []string) {
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

// rawOutput writes to the connection up to the byte where it should break, and
// nothing afterwards.
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

// watch reads from a connection on which no data is expected, in order to notice its
// end. The returned function closes it and waits for the reader.
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

// ConnFault is a way in which connections fail.
type ConnFault int

// Ways in which connections fail.
const (
	Refusing  ConnFault = iota // nothing listens
	Mute                       // connections are accepted, but nothing is ever read or sent
	Closing                    // connections are closed at once
	Resetting                  // connections are reset at once
)

// DeadURL returns the base URL of a loopback address where all connections fail,
// until the end of the test.
func DeadURL(tb testing.TB, how ConnFault) string {
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
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
