// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// fault is a way in which an endpoint fails after a first good reply with a
// call, and what the program has to make of it.
type fault struct {
	name    string
	answers []agenttest.Reply // to the second request and its retries
	code    int
	says    string   // in the one message
	notices []string // lines about waits before it
	kept    string   // in the transcript beside the first reply
	slow    bool     // the program waits, which it does as long in either mode
}

const (
	readNote = `{"path":"note.txt"}`
	partly   = "This much was said."
)

func faults() []fault {
	said := item.Assistant(partly)
	reply := agenttest.Completed(said)
	again := func(a agenttest.Reply) []agenttest.Reply { return []agenttest.Reply{a, a, a} }
	soon := func(a agenttest.Reply) agenttest.Reply { return a.WithHeader("Retry-After-Ms", "5") }
	one := func(a agenttest.Reply) []agenttest.Reply { return []agenttest.Reply{a} }
	limited := agenttest.Failure(429, "rate_limit_exceeded", "Slow down.")
	return []fault{
		{name: "wrong path", answers: one(agenttest.Failure(404, "unknown_url", "Unknown request URL.")), code: 3, says: "404 Not Found: Unknown request URL."},
		{name: "wrong path, HTML", answers: one(agenttest.WebPage(404, "Not Found")), code: 3, says: "404 Not Found"},
		{name: "no such model", answers: one(agenttest.Failure(404, "model_not_found", "No such model.")), code: 3, says: "No such model."},
		{name: "401", answers: one(agenttest.Failure(401, "invalid_api_key", "Incorrect API key provided: "+testKey+".")), code: 3, says: "401 Unauthorized"},
		{name: "403", answers: one(agenttest.Failure(403, "", "Not for you.")), code: 3, says: "403 Forbidden: Not for you."},
		{name: "400", answers: one(agenttest.Failure(400, "invalid_value", "Bad value.")), code: 3, says: "400 Bad Request: Bad value."},
		{name: "quota", answers: one(agenttest.Failure(429, "insufficient_quota", "Pay first.")), code: 3, says: "Pay first."},
		{name: "429 with Retry-After", answers: again(soon(limited)), code: 3, says: "429 Too Many Requests: Slow down."},
		{name: "429, then a second to wait", slow: true, answers: append(one(limited.RetryAfter("1")), again(agenttest.Failure(400, "", "No."))[:1]...), code: 3, says: "400 Bad Request", notices: []string{"antiphon: no answer (rate limit, status 429), retrying in 1"}},
		{name: "429 without", slow: true, answers: again(limited), code: 3, says: "Slow down."},
		{name: "500", answers: again(soon(agenttest.Failure(500, "", "Oops."))), code: 3, says: "500 Internal Server Error: Oops."},
		{name: "503, HTML", answers: again(soon(agenttest.WebPage(503, "Down"))), code: 3, says: "503 Service Unavailable"},
		{name: "a page instead of JSON", answers: one(agenttest.WebPage(200, "Sign in")), code: 3, says: `got a web page instead of JSON, titled "Sign in"`},
		{name: "another API", answers: one(agenttest.Raw(200, "application/json", `{"choices":[]}`)), code: 3, says: "/v1/responses: "},
		{name: "connection reset", slow: true, answers: again(agenttest.Reset()), code: 3, says: "/v1/responses: "},
		{name: "cut before the first event", slow: true, answers: again(reply.CutAfter(10)), code: 3, says: "/v1/responses: "},
		{name: "cut in the middle", answers: one(reply.CutAfter(2500)), code: 3, says: "/v1/responses: ", kept: partly[:4]},
		{name: "no last event", answers: one(reply.WithoutLast()), code: 3, says: "/v1/responses: ", kept: partly},
		{name: "[DONE] and no last event", answers: one(reply.WithoutLast().WithDone()), code: 3, says: "/v1/responses: ", kept: partly},
		{name: "error event", answers: one(agenttest.ErrorEvent("server_error", "It broke.", said)), code: 3, says: "It broke.", kept: partly},
		{name: "failed", answers: one(agenttest.Failed("server_error", "It failed.", said)), code: 3, says: "It failed.", kept: partly},
		{name: "failed at once", slow: true, answers: again(agenttest.Failed("server_error", "It failed.")), code: 3, says: "It failed."},
		{name: "invalid JSON in an event", answers: one(reply.WithEvent(-1, `{"type":"response.output_text.delta",`)), code: 3, says: "/v1/responses: ", kept: partly},
		{name: "incomplete", answers: one(agenttest.Incomplete("max_output_tokens", said)), code: 3, says: "the reply is incomplete: the endpoint ended it (max_output_tokens)", kept: partly},
		{name: "a call in a reply that broke off", answers: one(agenttest.Completed(item.Call("call_cut", "read_file", readNote)).WithoutLast()), code: 3, says: "/v1/responses: ", kept: "call_cut"},
	}
}

// TestFaults proves that each failure of an endpoint gives one clear message
// and the documented exit code, that the transcript holds what was complete,
// and that the next run goes on from it with a valid request.
// B5 E1 E2 E4 L6 M9 P1 P2 S2 S3
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range faults() {
		for _, mode := range []string{"text", "json"} {
			if f.slow && mode == "json" {
				continue
			}
			t.Run(f.name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				f.test(t, mode == "json")
			})
		}
	}
}

func (f *fault) test(t *testing.T, asJSON bool) {
	agent := reader(t)
	out := filepath.Join(filepath.Dir(agent), "talk.md")
	first := agenttest.Completed(item.Assistant("I look."), item.Call("call_1", "read_file", readNote))
	srv := agenttest.NewServer(t, append([]agenttest.Reply{first}, f.answers...)...)
	args := []string{"run", agent, "--out", out, "--base-url", srv.URL}
	if asJSON {
		args = append(args, "--json")
	}

	o := program(t, args...)
	f.judge(t, o, asJSON)
	if n := len(srv.Requests()); n != 1+len(f.answers) {
		t.Errorf("%d requests, want %d", n, 1+len(f.answers))
	}
	text := read(t, out)
	noKey(t, "the transcript", text)
	for _, want := range []string{"I look.", `tool_call_id="call_1"`, "a note", f.kept} {
		if !strings.Contains(text, want) {
			t.Errorf("the transcript lacks %q:\n%s", want, text)
		}
	}
	if c := program(t, "check", out); c.code != 0 {
		t.Errorf("check: %d\n%s", c.code, c.out)
	}

	if f.name == "incomplete" {
		return // it was an answer, cut as it is: there is nothing to go on with
	}
	srv.Add(agenttest.Completed(item.Assistant("It says: a note.")))
	o = program(t, "run", agent, "--out", out, "--base-url", srv.URL)
	if o.code != 0 || o.out != "It says: a note.\n" || len(o.messages()) > 0 {
		t.Errorf("the second run: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	last := srv.Requests()[len(srv.Requests())-1]
	validRequest(t, last)
	if f.kept == "call_cut" { // it was never started, and the reply never ended
		if strings.Contains(string(last.Body), f.kept) {
			t.Errorf("the next request has the call:\n%s", last.Body)
		}
	} else if !strings.Contains(string(last.Body), f.kept) {
		t.Errorf("the next request lacks %q:\n%s", f.kept, last.Body)
	}
	if !strings.HasPrefix(read(t, out), text) {
		t.Error("the second run changed what was written")
	}
}

// judge looks at what the failed run printed.
func (f *fault) judge(t *testing.T, o outcome, asJSON bool) {
	t.Helper()
	if o.code != f.code {
		t.Errorf("exit code %d, want %d", o.code, f.code)
	}
	said := o.messages()
	if n := len(f.notices); len(said) != n+1 || !strings.Contains(said[n], f.says) {
		t.Errorf("messages %q, want one with %q", said, f.says)
	}
	for i, n := range f.notices {
		if !strings.HasPrefix(said[i], n) {
			t.Errorf("message %q, want %q", said[i], n)
		}
	}
	if f.says != "" && strings.Count(o.err, f.says) != 1 {
		t.Errorf("the failure is told more than once:\n%s", o.err)
	}
	if asJSON {
		if _, problem := eventLines(o.out); problem != "" {
			t.Error(problem)
		}
		return
	}
	lines := strings.Split(strings.TrimSuffix(o.out, "\n"), "\n")
	for _, line := range lines {
		if line != "I look." && !strings.HasPrefix(partly, line) {
			t.Errorf("standard output has more than the model's text: %q", line)
		}
	}
}

// validRequest checks a request as the API would. P1 B6
func validRequest(t *testing.T, r agenttest.Request) {
	t.Helper()
	var items []item.Item
	for _, it := range r.Parse(t).Input.All() {
		items = append(items, it)
	}
	if err := agenttest.CheckPairing(items...); err != nil {
		t.Errorf("%v\n%s", err, r.Body)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer "+testKey {
		t.Errorf("Authorization: %q", got)
	}
	t.Run("schema", func(t *testing.T) {
		apispec.Load(t).Check(t, "CreateResponse", r.Body)
	})
}

// TestEndpointDown proves that an endpoint that is not there loses nothing: the
// transcript begins with the prompt, and the same command line goes on with it.
// E1 M9
func TestEndpointDown(t *testing.T) {
	t.Parallel()
	agent := reader(t)
	out := filepath.Join(filepath.Dir(agent), "talk.md")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	o := program(t, "run", agent, "Hello?", "--out", out, "--base-url", "http://"+addr)
	want := "is the server running at " + addr + "?"
	if o.code != exitProvider || o.out != "" || len(o.messages()) != 1 || strings.Count(o.err, want) != 1 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}

	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("Hello.")))
	o = program(t, "run", agent, "Hello?", "--out", out, "--base-url", srv.URL)
	if o.code != 0 || o.out != "Hello.\n" {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	validRequest(t, srv.Requests()[0])
	if n := strings.Count(string(srv.Requests()[0].Body), "Hello?"); n != 1 {
		t.Errorf("the question was sent %d times:\n%s", n, srv.Requests()[0].Body)
	}
}

// TestRetry proves that a failure before the first event is asked again, and
// that a person sees nothing of it but the answer. E1
func TestRetry(t *testing.T) {
	t.Parallel()
	soon := func(a agenttest.Reply) agenttest.Reply { return a.WithHeader("Retry-After-Ms", "5") }
	srv := agenttest.NewServer(t,
		soon(agenttest.Failure(429, "rate_limit_exceeded", "Slow down.")),
		soon(agenttest.WebPage(502, "Bad gateway")),
		agenttest.Completed(item.Assistant("Here.")))
	o := program(t, "run", reader(t), "--base-url", srv.URL)
	if o.code != 0 || o.out != "Here.\n" || len(o.messages()) > 0 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

// TestKeyStaysHome proves that a base_url that only a file names gets no key.
// B5
func TestKeyStaysHome(t *testing.T) {
	t.Parallel()
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("Hi.")) })
	file := write(t, filepath.Join(t.TempDir(), "agent.md"),
		`<config model="m" base_url="`+srv.URL+`"/><user>Hello</user>`)
	key := "OPENAI_API_KEY=" + testKey
	for _, c := range []struct {
		name string
		env  []string
		args []string
		sent bool
	}{
		{"the file alone", []string{key}, nil, false},
		{"another host in the environment", []string{key, "OPENAI_BASE_URL=http://127.0.0.1:9/v1"}, nil, false},
		{"the same host in the environment", []string{key, "OPENAI_BASE_URL=" + srv.URL}, nil, true},
		{"another path in the environment", []string{key, "OPENAI_BASE_URL=" + srv.URL + "/mine"}, nil, false},
		{"the command line", []string{key}, []string{"--base-url", srv.URL}, true},
		{"no key", nil, nil, false},
	} {
		o := programEnv(t, c.env, append([]string{"run", file, "--trust"}, c.args...)...)
		if o.code != 0 || o.out != "Hi.\n" {
			t.Errorf("%s: exit code %d\n%s%s", c.name, o.code, o.out, o.err)
		}
		r := srv.Requests()[len(srv.Requests())-1]
		if sent := r.Header.Get("Authorization") != ""; sent != c.sent {
			t.Errorf("%s: sent %v, want %v", c.name, sent, c.sent)
		}
		told := slices.ContainsFunc(o.messages(), func(m string) bool { return strings.Contains(m, "OPENAI_API_KEY is not sent") })
		if withheld := !c.sent && len(c.env) > 0; told != withheld {
			t.Errorf("%s: said %q", c.name, o.messages())
		}
	}
}

// TestRequest proves that a request says what the file says, and no more: what
// is included is the reasoning, where nothing is stored. B7 I9 R3
func TestRequest(t *testing.T) {
	t.Parallel()
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("a")), agenttest.Completed(item.Assistant("b")))
	dir := t.TempDir()
	bare := write(t, filepath.Join(dir, "bare.md"), `<user>Hello</user>`)
	full := write(t, filepath.Join(dir, "full.md"), `<config model="file-model" temperature="0" max_tokens="100" reasoning_effort="low"
  parallel_tool_calls="false" store="false"/>
<tool name="read_file" description="Reads it."/>
<user>Hello</user>`)
	program(t, "run", bare, "--base-url", srv.URL, "--model", "named")
	program(t, "run", full, "--base-url", srv.URL, "--model", "named")
	for i, want := range []string{
		`input model stream`,
		`include input max_output_tokens model parallel_tool_calls reasoning store stream temperature tool_choice tools`,
	} {
		body := srv.Requests()[i].Body
		validRequest(t, srv.Requests()[i])
		it, err := item.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, name := range strings.Fields("include input instructions max_output_tokens metadata model parallel_tool_calls " +
			"previous_response_id prompt_cache_key reasoning service_tier store stream temperature text tool_choice tools top_p truncation user") {
			if _, ok := it.Member(name); ok {
				names = append(names, name)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("request %d has %s, want %s\n%s", i, got, want, body)
		}
		if m, _ := it.Member("model"); m != `"named"` {
			t.Errorf("model %s", m)
		}
	}
}

// TestNoPermission proves that what may not be read or written is told with its
// name, before anything is sent.
func TestNoPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("runs as root, who may read everything: skipped; a folder in place of a file is tested in files.txtar")
	}
	if runtime.GOOS == "windows" {
		t.Skip("needs the permissions of Unix: skipped")
	}
	agent := reader(t)
	dir := filepath.Dir(agent)
	shut := filepath.Join(dir, "shut")
	if err := os.Mkdir(shut, 0o500); err != nil {
		t.Fatal(err)
	}
	secret := write(t, filepath.Join(dir, "secret.md"), "<user>x</user>")
	if err := os.Chmod(secret, 0); err != nil {
		t.Fatal(err)
	}
	o := program(t, "run", secret, "--rehearsal")
	if o.code != exitUsage || o.err != "antiphon: "+secret+": permission denied\n" {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	o = program(t, "run", agent, "--rehearsal", "--out", filepath.Join(shut, "talk.md"))
	// The file is locked before anybody is named or asked.
	if o.code != exitUsage || len(o.messages()) != 1 || !strings.Contains(o.messages()[0], "permission denied") || o.out != "" {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

// fullDisk is an output that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A command whose output is lost says so and fails.
func TestFullOutput(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.md")
	write(t, empty, "")
	for _, args := range [][]string{{"--help"}, {"version"}, {"doctor", "--offline"}, {"check", empty}} {
		var said strings.Builder
		code := run(t.Context(), args, []string{"HOME=" + t.TempDir()}, stdio{strings.NewReader(""), fullDisk{}, &said})
		if code != exitFailed || !strings.Contains(said.String(), "no space left on device") || strings.Contains(said.String(), "--help") {
			t.Errorf("%q: exit code %d\n%s", args, code, said.String())
		}
	}
}

// A disk that is full when a transcript is opened is no mistake of the caller's.
func TestFullDiskIsNoBadArgument(t *testing.T) {
	for _, no := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if code := codeOf(host.LoadError(fmt.Errorf("talk.md: %w", no))); code != exitFailed {
			t.Errorf("%v: exit code %d", no, code)
		}
	}
	if code := codeOf(host.LoadError(os.ErrNotExist)); code != exitUsage {
		t.Errorf("a file that is not there: exit code %d", code)
	}
}

// An error of a full disk names the file that was asked for, not the temporary
// file that was to become it, and says what to do.
func TestFullDiskNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	_, err := writeFile(path, false, func(w io.Writer) error {
		return &fs.PathError{Op: "write", Path: w.(*os.File).Name(), Err: syscall.ENOSPC}
	})
	if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "write "+path+": ") || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("a full disk: %v", err)
	}
	missing := filepath.Join(t.TempDir(), "none", "page.html")
	if _, err := writeFile(missing, false, nil); err == nil || !strings.Contains(err.Error(), "there is no folder "+filepath.Dir(missing)) || !strings.Contains(err.Error(), "mkdir") {
		t.Errorf("no folder: %v", err)
	}
}

// A full disk behind standard output is not told as a mistake in the formatted file.
func TestFormatToAFullDisk(t *testing.T) {
	var stderr strings.Builder
	code := run(t.Context(), []string{"fmt", "-"}, nil, stdio{strings.NewReader("<user>\nHi.\n</user>\n"), fullDisk{}, &stderr})
	if said := stderr.String(); code != exitFailed || said != "antiphon: "+syscall.ENOSPC.Error()+"\n" {
		t.Errorf("%d %q", code, said)
	}
}
