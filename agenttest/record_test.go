// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

const secret = `sk-a"secret/key+`

// fakeTB is a test that is tested.
type fakeTB struct {
	testing.TB
	mu      sync.Mutex
	errors  []string
	cleanup []func()
}

func (f *fakeTB) Helper()          {}
func (f *fakeTB) Failed() bool     { return len(f.errors) > 0 }
func (f *fakeTB) Cleanup(c func()) { f.cleanup = append(f.cleanup, c) }
func (f *fakeTB) Error(args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprint(args...))
}
func (f *fakeTB) Errorf(format string, args ...any) { f.Error(fmt.Sprintf(format, args...)) }
func (f *fakeTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// end runs what a test's end would, and returns the errors.
func (f *fakeTB) end() string {
	for i := len(f.cleanup) - 1; i >= 0; i-- {
		f.cleanup[i]()
	}
	return strings.Join(f.errors, "\n")
}

// recordOf records what the client does, and returns the file.
func recordOf(t *testing.T, target string, do func(tape *agenttest.Tape)) string {
	t.Helper()
	t.Setenv(agenttest.RecordVariable, "^"+t.Name()+"$")
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	file := filepath.Join(t.TempDir(), "deep", "x.rec")
	fake := &fakeTB{TB: t}
	tape := agenttest.Record(fake, file, endpoint.NewKey(secret))
	if !tape.Recording() {
		t.Fatal("not recording")
	}
	do(tape)
	if errs := fake.end(); errs != "" {
		t.Fatal(errs)
	}
	t.Setenv(agenttest.RecordVariable, "")
	return file
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func request(text string) *api.Request {
	return &api.Request{Model: "m", Input: item.NewList(item.User(text))}
}

// J6: a whole run is recorded without its keys and played back to the same
// client, piece by piece.
func TestRecordAndReplay(t *testing.T) {
	srv := agenttest.NewServer(t,
		agenttest.Failure(500, "server_error", "bad key "+secret).WithHeader("X-Echo", "Bearer "+secret).WithHeader("Set-Cookie", "a=b"),
		agenttest.Completed(item.Assistant("your key is "+secret), item.Assistant("ünïcode")).LineEnds("\r\n").InPieces(10, 300, 1, 1, 700),
		agenttest.Completed(item.Assistant("one")).CutAfter(2000),
		agenttest.Completed(item.Assistant("two")))
	run := func(h *http.Client, base string) (out []string) {
		c := &responses.Client{
			BaseURL: base + "?api-version=1&sig=" + "hidden", HTTP: h, Key: endpoint.NewKey(secret), Retry: srv.Client().Retry,
			Header: http.Header{"Openai-Organization": {"org-x"}, "X-Mine": {secret}},
		}
		c.BaseURL = base
		for _, text := range []string{"a " + secret, "b"} {
			for ev, err := range c.Stream(t.Context(), request(text)) {
				out = append(out, strings.Clone(strings.ReplaceAll(ev.JSON(), secretJSON, "[scrubbed]")), fmt.Sprint(err != nil)) // an event is good until the next one
			}
		}
		resp, err := c.Create(t.Context(), request("c"))
		if err != nil {
			t.Error(err)
			return out
		}
		return append(out, resp.Output[0].JSON())
	}
	var live []string
	file := recordOf(t, srv.URL, func(tape *agenttest.Tape) { live = run(tape.Client(), srv.URL) })
	text := read(t, file)
	for _, word := range []string{secret, secretJSON, "org-x", "a=b"} {
		if strings.Contains(text, word) {
			t.Errorf("%q is in the recording:\n%s", word, text)
		}
	}
	for _, line := range []string{
		"> POST " + srv.URL + "/responses", "> Authorization: [scrubbed]", "> Openai-Organization: [scrubbed]", "> X-Mine: [scrubbed]",
		"< 500 Internal Server Error", "< Set-Cookie: [scrubbed]", "< X-Echo: [scrubbed]", "! unexpected EOF",
		`. {"model":"m",`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	n := len(srv.Requests())
	played := run(agenttest.Replay(t, file, endpoint.NewKey(secret)).Client(), srv.URL)
	if d := cmp.Diff(live, played); d != "" || len(live) < 20 || len(srv.Requests()) != n {
		t.Errorf("%d events (-live +played):\n%s", len(live), d)
	}
	tape := agenttest.Replay(t, file, endpoint.NewKey(secret))
	if d := cmp.Diff(live, run(nil, tape.URL(srv.URL))); d != "" {
		t.Errorf("over a socket (-live +played):\n%s", d)
	}
}

// secretJSON is the secret as it stands in JSON.
var secretJSON = strings.ReplaceAll(secret, `"`, `\"`)

// The pieces of a body are those of the recording.
func TestReplayPieces(t *testing.T) {
	file := write(t, "antiphon recording 1\n\n> GET https://x/a\n< 200 OK\n. abc\n-\n| def\n-\n\"\\xff\\x00\"\n-\n= aGk=\n! unexpected EOF\n")
	tape := agenttest.Replay(t, file)
	resp, err := tape.Client().Get("https://y/a")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got []string
	for buf := make([]byte, 100); err == nil; {
		var n int
		n, err = resp.Body.Read(buf)
		got = append(got, string(buf[:n]))
	}
	if d := cmp.Diff([]string{"abc", "def\n", "\xff\x00", "hi", ""}, got); d != "" || err != io.ErrUnexpectedEOF {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.rec")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const twoRecords = `antiphon recording 1

> POST https://x/v1/responses
> Content-Type: application/json
. {"input":"a",
. "n":12345678901234567890,
. "list":[1,2]}
< 200 OK
. {"first":true}

> POST https://x/v1/responses
. {"input":"b"}
< 200 OK
. {"second":true}
`

// What does not match fails with the difference, and what is left over too.
func TestReplayMisses(t *testing.T) {
	post := func(tape *agenttest.Tape, path, body string) (string, error) {
		resp, err := tape.Client().Post("https://elsewhere"+path, "", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	for _, tt := range []struct {
		name, path, body string
		answer, want     string
	}{
		{"a match", "/v1/responses", ` {"list":[1, 2], "n":12345678901234567890, "input":"a"}`, `{"first":true}`, "record 1 was not used: POST https://x/v1/responses"},
		{"out of order", "/v1/responses", `{"input":"b"}`, `{"second":true}`, "record 0 was not used"},
		{"another number", "/v1/responses", `{"input":"a","n":12345678901234567891,"list":[1,2]}`, "", "no record answers POST /v1/responses; the closest is record 0 (-recorded +got):\n-   \"n\": 12345678901234567890\n+   \"n\": 12345678901234567891\n"},
		{"another path", "/v1/other", `{"input":"a"}`, "", "no record answers POST /v1/other; the closest is record 1, POST /v1/responses"},
		{"a query", "/v1/responses?key=hidden&limit=2", `{"input":"b"}`, "", "no record answers POST /v1/responses?key=[scrubbed]&limit=2; the closest"},
		{"no JSON", "/v1/responses", `{"input`, "", "+ {\"input\n"},
	} {
		fake := &fakeTB{TB: t}
		tape := agenttest.Replay(fake, write(t, twoRecords))
		got, err := post(tape, tt.path, tt.body)
		if got != tt.answer || (err == nil) != (tt.answer != "") {
			t.Errorf("%s: got %q, %v", tt.name, got, err)
		}
		if errs := fake.end(); !strings.Contains(errs, tt.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, errs, tt.want)
		}
	}
	fake := &fakeTB{TB: t}
	tape := agenttest.Replay(fake, write(t, twoRecords))
	tape.Match = func(recorded, got agenttest.Request) bool { return recorded.Path == got.Path }
	for range 2 {
		if _, err := post(tape, "/v1/responses", "{}"); err != nil {
			t.Error(err)
		}
	}
	if _, err := post(tape, "/v1/responses", `{"input":"b"}`); err == nil {
		t.Error("a third answer")
	}
	if errs := fake.end(); !strings.Contains(errs, "POST /v1/responses once more: record 1 did, and there is no other") {
		t.Error(errs)
	}
}

// A failure is played back as what it was.
func TestReplayFailures(t *testing.T) {
	file := recordOf(t, "", func(tape *agenttest.Tape) {
		if _, err := tape.Client().Get(agenttest.DeadURL(t, agenttest.Refusing)); err == nil {
			t.Error("no error")
		}
		srv := agenttest.NewServer(t, agenttest.Raw(200, "text/plain", "abc"))
		resp, err := tape.Client().Get(srv.URL + "/half")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	})
	tape := agenttest.Replay(t, file)
	if _, err := tape.Client().Get("http://x/v1"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
	resp, err := tape.Client().Get("http://x/v1/half")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err == nil || !strings.Contains(err.Error(), "the client closed the body") {
		t.Error(err)
	}
}

// J6: a secret is found across pieces and refused where it cannot be replaced.
func TestScrubbing(t *testing.T) {
	key := endpoint.NewKey("sk-0123456789")
	for _, tt := range []struct {
		body string
		ok   bool
	}{
		{"x sk-0123456789 y sk-0123456789sk-0123456789", true},
		{`{"sk-0123456789":"c2stMDEyMzQ1Njc4OQ"}`, true},
		{"data: {\"type\":\"response.output_text.delta\",\"delta\":\"sk-01234\"}\n\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"56789\"}\n\n", false},
	} {
		for size := range 20 {
			pieces := []int{}
			for size > 0 && len(pieces)*size < len(tt.body) {
				pieces = append(pieces, size)
			}
			srv := agenttest.NewServer(t, agenttest.Raw(200, "text/event-stream", tt.body).InPieces(pieces...))
			rec := &agenttest.Recorder{Secrets: []endpoint.Key{key}, Transport: srv.HTTP().Transport}
			resp, err := (&http.Client{Transport: rec}).Post(srv.URL+"/sk-0123456789?token=abc", "", strings.NewReader("sk-0123456789"))
			if err != nil {
				t.Fatal(err)
			}
			live, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			var out bytes.Buffer
			_, err = rec.WriteTo(&out)
			if string(live) != tt.body || (err == nil) != tt.ok {
				t.Fatalf("size %d: %v, body %q", size, err, live)
			}
			for _, word := range []string{"sk-0123456789", "c2stMDEyMzQ1Njc4OQ", "token=abc"} {
				if strings.Contains(out.String(), word) {
					t.Errorf("size %d: %s in\n%s", size, word, out.String())
				}
			}
			if !tt.ok && out.Len() > 0 {
				t.Error("written all the same")
			}
			srv.Close()
		}
	}
}

// Recording leaves an old file alone when the test fails, and a missing one is
// said to be missing.
func TestRecordFails(t *testing.T) {
	t.Setenv(agenttest.RecordVariable, ".")
	file := write(t, twoRecords)
	fake := &fakeTB{TB: t, errors: []string{"failed"}}
	agenttest.Record(fake, file)
	fake.end()
	if read(t, file) != twoRecords {
		t.Error("written")
	}
	t.Setenv(agenttest.RecordVariable, "^Other$")
	if agenttest.Record(&fakeTB{TB: t}, file).Recording() {
		t.Error("recording")
	}
	for want, open := range map[string]func(testing.TB, string, ...endpoint.Key) *agenttest.Tape{
		"x.rec.none: to record it, run the test once with ANTIPHON_RECORD=TestRecordFails and the server's key":                                              agenttest.Record,
		"x.rec.none: to record it, call agenttest.Record instead of Replay, and run the test once with ANTIPHON_RECORD=TestRecordFails and the server's key": agenttest.Replay,
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Error(got)
				}
			}()
			open(&fakeTB{TB: t}, file+".none")
		}()
	}
}

// Errors of a file say where they are.
func TestBrokenRecording(t *testing.T) {
	const head = "antiphon recording 1\n\n"
	for text, want := range map[string]string{
		"":                                   "unexpected EOF",
		"antiphon recording 2\n":             `line 1: not a recording of this version: "antiphon recording 2"`,
		head + ". x\n":                       "line 3: it belongs to no request",
		head + "> GET x\n? y\n":              "line 4: a line begins with",
		head + "> GET\n":                     `line 3: a record begins with a method and a URL: "GET"`,
		head + "> GET x\n< OK\n":             `line 4: not a status: "OK"`,
		head + "> GET x\n\"\\q\"\n":          "line 4: not a Go string",
		head + "> GET x\n= !!\n\n":           "line 5: illegal base64",
		head + "> GET x\n< 101 x\n< smell\n": `line 5: not a kind of frame: "smell"`,
		head + "> GET x\n< 101 x\n< close\n": "line 5: not a code",
		head + "> GET x\n. b\n> A: b\n":      "line 5: neither a request, an answer nor a header",
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("%q: got %s, want %s", text, got, want)
				}
			}()
			agenttest.Replay(&fakeTB{TB: t}, write(t, text))
		}()
	}
}

// Many requests at once each get their own answer.
func TestReplayAtOnce(t *testing.T) {
	const n = 50
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(_ int, r agenttest.Request) agenttest.Reply {
		return agenttest.Raw(200, "text/plain", "you said "+string(r.Body))
	})
	all := func(tape *agenttest.Tape) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				text := fmt.Sprint(i)
				resp, err := tape.Client().Post(srv.URL, "", strings.NewReader(text))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if b, err := io.ReadAll(resp.Body); string(b) != "you said "+text || err != nil {
					t.Errorf("%s: %q, %v", text, b, err)
				}
			})
		}
		wg.Wait()
	}
	file := recordOf(t, srv.URL, all)
	all(agenttest.Replay(t, file))
	if len(srv.Requests()) != n {
		t.Error(errors.New("the server was asked again"))
	}
}

// inPieces is a transport whose body comes in the given reads.
type inPieces []string

func (p inPieces) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: &pieces{p}}, nil
}

type pieces struct{ left []string }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[0])
	p.left = p.left[1:]
	return n, nil
}

func (p *pieces) Close() error { return nil }

// Network reads are recorded as they were, however the client reads.
func TestRecordedPieces(t *testing.T) {
	rec := &agenttest.Recorder{Transport: inPieces{"data: a\r\n", "\r\ndata: \xe2", "\x82\xac\n\n"}}
	resp, err := (&http.Client{Transport: rec}).Get("https://user:pass@x/y?limit=2&sig=z#f")
	if err != nil {
		t.Fatal(err)
	}
	small := make([]byte, 3)
	for err == nil {
		_, err = resp.Body.Read(small)
	}
	resp.Body.Close()
	var out strings.Builder
	if _, err := rec.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	want := "antiphon recording 1\n\n> GET https://x/y?limit=2&sig=[scrubbed]\n> Authorization: [scrubbed]\n< 200 OK\n/ data: a\n-\n/\n\"data: \\xe2\"\n-\n\"\\x82\\xac\\n\"\n|\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
