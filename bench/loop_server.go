// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// servesEnv is the variable that makes this program the server of the rows with
// sockets. In a separate process, its processor time is not counted as that of the
// clients.
const servesEnv = "ANTIPHON_BENCH_SERVES"

// process is the running server. It exits when its standard input ends: when this
// process exits, or when the command is garbage-collected.
type process struct {
	url, secure string
	roots       *x509.CertPool // verify the certificate of the secure server
	command     *exec.Cmd
}

// startServer starts this program again as the server and reads its addresses.
var startServer = sync.OnceValues(func() (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.Command(self)}
	p.command.Env = append(os.Environ(), servesEnv+"=1")
	p.command.Stderr = os.Stderr
	// Nothing is written to the pipe. Its end tells the server to exit.
	if _, err := p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	var certificate string
	if _, err := fmt.Fscan(out, &p.url, &p.secure, &certificate); err != nil {
		return nil, err
	}
	p.roots, err = rootsOf(certificate)
	return p, err
})

// endpointURL returns the URL of the server, and starts the server at the first
// call.
func endpointURL() (string, error) {
	p, err := startServer()
	if err != nil {
		return "", err
	}
	return p.url, nil
}

// serveWhenAsked serves until standard input ends and then exits, if this process is
// the server. Otherwise it returns at once.
func serveWhenAsked() {
	if os.Getenv(servesEnv) == "" {
		return
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench: server:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve writes the addresses and the certificate of its servers to addr, and serves
// until the input ends.
func serve(until io.Reader, addr io.Writer) error {
	if moreFiles(throughFiles) != nil { // then the rows that need them fail
		if err := moreFiles(wantFiles); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	fmt.Fprintf(addr, "http://%s https://%s %s\n", l.Addr(), secure.Addr(), base64.StdEncoding.EncodeToString(certificate.Certificate[0]))
	var s answers
	mux := http.NewServeMux()
	mux.HandleFunc("/loop/responses", s.call)
	mux.HandleFunc("/loop/chat/completions", s.chat)
	mux.HandleFunc("/whole/responses", s.whole)
	mux.HandleFunc("/streams/responses", s.stream)
	mux.HandleFunc("/typed/responses", s.invoice)
	mux.HandleFunc("/go", s.release)
	mux.HandleFunc("/paced/responses", s.paced)
	mux.HandleFunc("/burst/responses", s.burst)
	mux.HandleFunc("/work/responses", s.worker)
	mux.HandleFunc("/drive/all", s.driveAll)
	mux.HandleFunc("/drive/first", s.driveFirst)
	mux.HandleFunc("/drive/held", s.driveHeld)
	go func() { _ = http.Serve(l, mux) }()
	https := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	go func() { _ = https.ServeTLS(secure, "", "") }()
	_, err = io.Copy(io.Discard, until)
	return err
}

// answers is a handler with canned answers. It reads requests without parsing them.
type answers struct {
	calls atomic.Int64

	mu   sync.Mutex
	held chan struct{} // closed when the streams may continue
}

// call answers with a few words and one call.
func (s *answers) call(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		s.talk(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(callStream(s.calls.Add(1)))
}

// talk answers over a WebSocket, with one event per message.
func (s *answers) talk(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(-1)
	for {
		_, in, err := conn.Reader(r.Context())
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, in); err != nil {
			return
		}
		for data := range dataOf(callStream(s.calls.Add(1))) {
			if err := conn.Write(r.Context(), websocket.MessageText, data); err != nil {
				return
			}
		}
	}
}

// whole answers with one message, without streaming.
func (s *answers) whole(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"id":"resp_1","object":"response","created_at":1751381577,"status":"completed","model":"gpt-5.1","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Seen."}]}]}`)
}

// callStream returns a short reply that ends with the n-th call.
func callStream(n int64) []byte {
	var e events
	msg, fc := fmt.Sprintf("msg_%d", n), fmt.Sprintf("fc_%d", n)
	e.event("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}`)
	e.event("response.output_item.added", fmt.Sprintf(`"output_index":0,"item":{"id":%q,"type":"message","status":"in_progress","content":[],"role":"assistant"}`, msg))
	for range 8 {
		e.event("response.output_text.delta", fmt.Sprintf(`"item_id":%q,"output_index":0,"content_index":0,"delta":"some words ","logprobs":[]`, msg))
	}
	message := fmt.Sprintf(`{"id":%q,"type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%q}],"role":"assistant"}`, msg, strings.Repeat("some words ", 8))
	e.event("response.output_item.done", `"output_index":0,"item":`+message)
	e.event("response.output_item.added", fmt.Sprintf(`"output_index":1,"item":{"id":%q,"type":"function_call","status":"in_progress","arguments":"","call_id":"call_%d","name":"read_file"}`, fc, n))
	for _, piece := range []string{`{"path`, `":"`, `notes`, `.txt"}`} { // together equal to the final arguments, because clients compare them
		e.event("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":%q,"output_index":1,"delta":%q`, fc, piece))
	}
	const arguments = `"{\"path\":\"notes.txt\"}"`
	e.event("response.function_call_arguments.done", fmt.Sprintf(`"item_id":%q,"output_index":1,"arguments":%s`, fc, arguments))
	call := fmt.Sprintf(`{"id":%q,"type":"function_call","status":"completed","call_id":"call_%d","name":"read_file","arguments":%s}`, fc, n, arguments)
	e.event("response.output_item.done", `"output_index":1,"item":`+call)
	e.event("response.completed", `"response":{"id":"resp_1","object":"response","status":"completed","output":[`+message+`,`+call+`],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3}}`)
	return e.Bytes()
}

// Each concurrent stream begins, waits until all streams have begun, and then sends
// event by event, at the pace of a model.
const (
	streamEvents = 40
	streamPause  = 20 * time.Millisecond
)

// stream answers with a stream that waits for release after its first event.
func (s *answers) stream(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	pieces := heldStream()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	held := s.gate()
	_, _ = w.Write(pieces[0])
	_ = flush()
	<-held
	for _, p := range pieces[1:] {
		time.Sleep(streamPause)
		_, _ = w.Write(p)
		_ = flush()
	}
}

// heldStream returns a stream in the pieces in which it is sent, one event each.
var heldStream = sync.OnceValue(func() [][]byte { return modelStream(streamEvents) })

// gate returns the channel that release closes.
func (s *answers) gate() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = make(chan struct{})
	}
	return s.held
}

// release lets all streams that have begun continue.
func (s *answers) release(http.ResponseWriter, *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		close(s.held)
		s.held = nil
	}
}
