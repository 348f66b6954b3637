// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/endpoint"
)

// RecordVariable is the environment variable that makes [Record] use the real
// server: a regular expression for the names of tests.
const RecordVariable = "ANTIPHON_RECORD"

// Tape replaces a server in a test: it plays back a recording or, with [Record],
// forwards to the real server and records. It is an http.RoundTripper, and safe for
// concurrent use.
//
// In playback, a request gets the answer of the first unused record that matches it,
// so equal requests get their answers in the recorded order, even if they are
// concurrent. A body has the recorded pieces, without the pauses, and breaks off
// where it did. A request without a matching record fails, and fails the test with
// the difference to the closest record. The test also fails at its end if a record,
// or a frame of a WebSocket, was not used.
type Tape struct {
	// Match reports whether a record answers a request; both are scrubbed. Set it
	// before the first request. By default method, path, query and body must be equal;
	// JSON bodies are compared as JSON.
	Match func(recorded, got Request) bool

	tb       testing.TB
	file     string
	how      string    // the beginning of the sentence that says how to record it
	recorder *Recorder // nil in playback
	scrub    *scrubber
	sockets  sync.WaitGroup

	mu      sync.Mutex
	list    []*played
	servers map[string]*httptest.Server // by target
}

// played is a record and how much of it was used.
type played struct {
	*exchange
	request Request
	used    bool
	frames  int
}

// Replay plays back a file. The secrets are those of the tested client: they are
// scrubbed from its requests, as they were from the recorded ones, before the
// requests are compared.
func Replay(tb testing.TB, file string, secrets ...endpoint.Key) *Tape {
	tb.Helper()
	return replay(tb, file, "call agenttest.Record instead of Replay, and ", secrets)
}

// replay plays back a file. How begins the sentence that says how to record it.
func replay(tb testing.TB, file, how string, secrets []endpoint.Key) *Tape {
	tb.Helper()
	t := newTape(tb, file, secrets)
	t.how = how
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		tb.Fatalf("there is no recording %s: to record it, %srun the test once with %s=%s and the server's key", file, how, RecordVariable, regexp.QuoteMeta(tb.Name()))
	}
	if err != nil {
		tb.Fatalf("recording: %v", err)
	}
	list, err := readRecording(string(text))
	if err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
	for i, x := range list {
		u, err := url.Parse(x.url)
		if err != nil {
			tb.Fatalf("%s: record %d: %v", file, i, err)
		}
		t.list = append(t.list, &played{exchange: x, request: Request{Method: x.method, Path: u.Path, Query: u.RawQuery, Header: x.header, Body: x.body}})
	}
	tb.Cleanup(t.checkUsed)
	return t
}

// Record plays back a file or, if [RecordVariable] matches the test's name, uses the
// real server and writes the file if the test succeeds. The secrets are not written.
func Record(tb testing.TB, file string, secrets ...endpoint.Key) *Tape {
	tb.Helper()
	if pattern := os.Getenv(RecordVariable); pattern != "" {
		again, err := regexp.Compile(pattern)
		if err != nil {
			tb.Fatalf("%s: %v", RecordVariable, err)
		}
		if again.MatchString(tb.Name()) {
			return recordTo(tb, file, secrets)
		}
	}
	return replay(tb, file, "", secrets)
}

func recordTo(tb testing.TB, file string, secrets []endpoint.Key) *Tape {
	t := newTape(tb, file, secrets)
	t.recorder = &Recorder{Secrets: secrets}
	tb.Cleanup(func() {
		if tb.Failed() {
			return
		}
		if err := t.recorder.Save(file); err != nil {
			tb.Errorf("recording: %v", err)
		}
	})
	return t
}

func newTape(tb testing.TB, file string, secrets []endpoint.Key) *Tape {
	return &Tape{tb: tb, file: file, scrub: newScrubber(secrets), servers: map[string]*httptest.Server{}}
}

// Recording reports whether the real server is used.
func (t *Tape) Recording() bool { return t.recorder != nil }

// Client returns an http.Client that speaks to the tape.
func (t *Tape) Client() *http.Client { return &http.Client{Transport: t} }

// URL returns a base URL on loopback that represents the target, such as
// https://api.openai.com/v1, until the end of the test. Clients that open WebSockets
// need it, because WebSockets do not use the RoundTripper; it also answers HTTP
// requests. A Tape that [Record] or [Replay] did not return has no URL.
func (t *Tape) URL(target string) string {
	if t.tb == nil {
		return ""
	}
	t.tb.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.tb.Fatal(err)
	}
	base := t.server(u.Scheme+"://"+u.Host).URL + u.EscapedPath()
	if u.RawQuery != "" {
		base += "?" + u.RawQuery
	}
	return base
}

// server returns the server that represents a target.
func (t *Tape) server(target string) *httptest.Server {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.servers[target] == nil {
		t.servers[target] = t.start(target)
	}
	return t.servers[target]
}

// own returns the tape's server for a URL, or nil.
func (t *Tape) own(u *url.URL) *httptest.Server {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, srv := range t.servers {
		if srv.URL == u.Scheme+"://"+u.Host {
			return srv
		}
	}
	return nil
}

func (t *Tape) start(target string) *httptest.Server {
	var handler http.Handler = http.HandlerFunc(t.serve)
	if t.recorder != nil {
		var err error
		if handler, err = t.recorder.Handler(target); err != nil {
			t.tb.Fatal(err)
		}
	}
	inner := handler
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.sockets.Add(1)
		defer t.sockets.Done()
		inner.ServeHTTP(w, r)
	}))
	t.tb.Cleanup(func() {
		srv.Close()
		t.sockets.Wait() // the server knows nothing of WebSockets
	})
	return srv
}

// RoundTrip answers from the recording, or asks the real server. A request without
// an answer fails with an [*endpoint.Error] that is not retried.
func (t *Tape) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.tb == nil {
		return nil, errors.New("agenttest: the Tape was made by neither Record nor Replay")
	}
	if t.recorder != nil {
		if srv := t.own(req.URL); srv != nil { // which records it
			return srv.Client().Transport.RoundTrip(req)
		}
		return t.recorder.RoundTrip(req)
	}
	body, err := takeBody(req)
	if err != nil {
		return nil, err
	}
	p, err := t.take(t.request(req.Method, req.URL, req.Header, body))
	switch {
	case err != nil:
		return nil, err
	case p.status == 0:
		return nil, replayError(p.end)
	case p.status == http.StatusSwitchingProtocols:
		return nil, t.fail("a WebSocket cannot be played back by a RoundTripper", "give the client the tape's URL")
	}
	return p.response(req), nil
}

// request returns a request in its recorded form.
func (t *Tape) request(method string, u *url.URL, h http.Header, body []byte) Request {
	return Request{
		Method: method, Path: t.scrub.text(u.Path), Query: t.scrub.query(u.RawQuery),
		Header: t.scrub.header(h), Body: []byte(t.scrub.text(string(body))),
	}
}

// take returns the record that answers a request, and marks it used.
func (t *Tape) take(got Request) (*played, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.list {
		if !p.used && t.matches(p.request, got) {
			p.used = true
			return p, nil
		}
	}
	return nil, t.fail("no record answers "+t.closest(got), fmt.Sprintf("to record again, %srun the test with %s=%s", t.how, RecordVariable, regexp.QuoteMeta(t.tb.Name())))
}

// fail fails the test, and returns an error for its client.
func (t *Tape) fail(problem, hint string) error {
	problem = t.file + ": " + strings.TrimRight(problem, "\n")
	t.tb.Errorf("%s\n%s", problem, hint)
	return &endpoint.Error{Op: "play back", Class: endpoint.Protocol, Message: problem, Hint: hint}
}

func (t *Tape) matches(recorded, got Request) bool {
	if t.Match != nil {
		return t.Match(recorded, got)
	}
	return recorded.Method == got.Method && recorded.Path == got.Path && recorded.Query == got.Query && sameBody(recorded.Body, got.Body)
}

// checkUsed reports unused records.
func (t *Tape) checkUsed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, p := range t.list {
		left := slices.DeleteFunc(slices.Clone(p.exchange.frames[min(p.frames, len(p.exchange.frames)):]), func(f frame) bool { return f.kind == frameClose })
		switch {
		case !p.used:
			t.tb.Errorf("%s: record %d was not used: %s %s", t.file, i, p.method, p.url)
		case len(left) > 0:
			t.tb.Errorf("%s: record %d: %d frames were not used, the first: %.300s", t.file, i, len(left), left[0].data)
		}
	}
}

// response is the recorded answer.
func (p *played) response(req *http.Request) *http.Response {
	resp := &http.Response{
		Status: strings.TrimSpace(strconv.Itoa(p.status) + " " + http.StatusText(p.status)), StatusCode: p.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: p.respHeader.Clone(), ContentLength: -1, Request: req,
		Body: &replayedBody{ctx: req.Context(), chunks: slices.Clone(p.chunks), end: p.end},
	}
	if resp.Header.Get("Content-Length") != "" && p.end == "" {
		resp.ContentLength = int64(len(bytes.Join(p.chunks, nil))) // scrubbing may have changed it
		resp.Header.Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	}
	return resp
}

// replayedBody gives a body in its recorded pieces.
type replayedBody struct {
	ctx    context.Context
	chunks [][]byte
	end    string
}

func (b *replayedBody) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, b.ctx.Err()
	}
	for len(b.chunks) > 0 && len(b.chunks[0]) == 0 {
		b.chunks = b.chunks[1:]
	}
	switch {
	case len(b.chunks) > 0:
		n := copy(p, b.chunks[0])
		b.chunks[0] = b.chunks[0][n:]
		return n, nil
	case b.end != "":
		return 0, replayError(b.end)
	}
	return 0, io.EOF
}

func (b *replayedBody) Close() error {
	b.chunks, b.end = nil, http.ErrBodyReadAfterClose.Error()
	return nil
}

// replayError returns a recorded error. Errors that programs compare are the
// original values.
func replayError(text string) error {
	for _, err := range []error{io.ErrUnexpectedEOF, io.EOF, context.Canceled, context.DeadlineExceeded} {
		if text == err.Error() {
			return err
		}
	}
	if text == notRead {
		return errors.New("the recording ends here: the client closed the body")
	}
	return errors.New(text)
}
