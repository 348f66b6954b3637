// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

func TestEcho(t *testing.T) {
	r := connect(t, mcpbridge.Options{}, program("sdk"))
	r.want("echo", `{"text":"hello <&> \u00e9 9007199254740993"}`, "hello <&> é 9007199254740993")
	// T13: arguments that do not fit are not sent.
	if o := r.call("echo", `{"text":1}`); o.Failure != tool.BadArguments {
		t.Errorf("%q %s", o.Failure, o.Content.Display())
	}
	if o := r.call("fail", `{"text":"it broke"}`); !o.Failed || o.Error != "it broke" {
		t.Errorf("%q", o.Error)
	}
	info := r.bridge.Servers()[0]
	want := mcpbridge.Info{Name: "probe", Title: "probe-server", Version: "1.2", Protocol: "2026-07-28", Instructions: "Be kind.", Tools: len(r.bridge.Tools()), Up: true}
	if info != want {
		t.Errorf("%+v", info)
	}
}

// A5: without a word from the caller no tool is one that only reads.
func TestTraits(t *testing.T) {
	const tools = `TOOLS={"name":"get","inputSchema":{},"annotations":{"readOnlyHint":true}},{"name":"put","inputSchema":{},"annotations":{"idempotentHint":true}}`
	for _, c := range []struct {
		name  string
		edit  func(*mcpbridge.Server)
		reads []string
	}{
		{"by default", func(*mcpbridge.Server) {}, nil},
		{"named", func(s *mcpbridge.Server) { s.ReadOnly = []string{"p*"} }, []string{"put"}},
		{"hints", func(s *mcpbridge.Server) { s.TrustHints = true }, []string{"get"}},
	} {
		s := program("script", "RESULTS={}", tools)
		c.edit(&s)
		r := connect(t, mcpbridge.Options{}, s)
		var reads []string
		for name, tl := range r.set().All() {
			annotations := tool.AnnotationsOf(tl)
			if annotations.ReadOnly {
				reads = append(reads, name)
			}
			if annotations.Timeout != s.Timeout || annotations.Idempotent != s.TrustHints {
				t.Errorf("%s: %s: %+v", c.name, name, annotations)
			}
		}
		if !slices.Equal(reads, c.reads) {
			t.Errorf("%s: %v", c.name, reads)
		}
	}
}

// X2: a call that is not answered ends with its time limit, the server is told,
// and the run goes on.
func TestHangingCall(t *testing.T) {
	var log events
	s := program("sdk")
	s.Timeout = 300 * time.Millisecond
	s.Dir = t.TempDir() // where it may write
	r := connect(t, mcpbridge.Options{Notify: log.add}, s)
	told := filepath.Join(s.Dir, "told")
	o := r.wantError("hang", fmt.Sprintf(`{"text":%q}`, told), "hang", "was told to cancel it")
	if o.Failure != tool.TimedOut || o.Abandoned {
		t.Errorf("%q, abandoned %v", o.Failure, o.Abandoned)
	}
	r.wantSoon("echo", `{"text":"still here"}`, "still here")
	eventually(t, "the cancellation arrives", func() bool { b, _ := os.ReadFile(told); return string(b) == "cancelled" })
	if log.count(mcpbridge.Started) != 1 {
		t.Errorf("the server did not stay: %+v", log.all())
	}
}

// eventually waits for what happens in another process.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); !ok(); <-tick.C {
		if ctx.Err() != nil {
			t.Fatalf("it does not happen that %s", what)
		}
	}
}

// X2: a server that does not even read holds nobody up, and is started anew
// when it answers no ping either.
func TestDeafServer(t *testing.T) {
	var log events
	s := program("script", `RESULTS={"deaf":"deaf","ok":{"content":[{"type":"text","text":"fine"}]}}`)
	s.Timeout = time.Second
	r := connectAs(t, mcpbridge.Impatient(mcpbridge.Options{Notify: log.add}), s)
	eventually(t, "it answers", func() bool { return !r.call("ok", "{}").Failed })
	if o := r.call("deaf", "{}"); o.Failure != tool.TimedOut {
		t.Errorf("%+v", o)
	}
	big := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 200<<10))            // more than a pipe holds
	if o := r.call("ok", big); !o.Failed && log.count(mcpbridge.Started) < 2 { // on a slow machine it may be a new server that answers
		t.Errorf("%+v", o)
	}
	eventually(t, "the server is ended", func() bool { return log.has(mcpbridge.Ended, "hung") })
	eventually(t, "it answers again", func() bool { return !r.call("ok", big).Failed })
}

// X2: a server that dies in a call costs that call; the next one starts it.
func TestDyingServer(t *testing.T) {
	var log events
	r := connect(t, mcpbridge.Options{Notify: log.add}, program("sdk"))
	r.want("echo", `{"text":"a"}`, "a")
	o := r.wantError("die", `{"text":"out of luck"}`, "was lost while it ran die", "exit status 3", "what it did until then is not known", "fatal: out of luck")
	if o.Failure != tool.ToolError {
		t.Errorf("%q", o.Failure)
	}
	r.want("echo", `{"text":"b"}`, "b")
	for range 10 { // whatever is noticed first
		r.wantError("die", `{"text":""}`, "was lost while it ran die")
		r.want("echo", `{"text":"b"}`, "b")
	}
	if !log.has(mcpbridge.Ended, "exit status 3") || log.count(mcpbridge.Started) != 12 {
		t.Errorf("%+v", log.list)
	}
}

// X2: a server that died between two calls costs nothing.
func TestDiedIdle(t *testing.T) {
	var log events
	s := program("sdk")
	s.Sandbox = sandbox.Full // in which its own number is the one that it has here
	r := connect(t, mcpbridge.Options{Notify: log.add}, s)
	for n := 1; n <= 3; n++ {
		pid, err := strconv.Atoi(r.call("pid", `{"text":""}`).Content.Display())
		if err != nil {
			t.Fatal(err)
		}
		p, err := os.FindProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		p.Kill()
		eventually(t, "the end is noticed", func() bool { return log.count(mcpbridge.Ended) == n })
		r.want("echo", `{"text":"a"}`, "a")
	}
}

// X2: siblings of a call that kills the server end too, each with an error.
func TestDyingServerSiblings(t *testing.T) {
	r := connectAs(t, mcpbridge.Impatient(mcpbridge.Options{}), program("sdk"))
	set := r.set()
	var wg sync.WaitGroup
	outcomes := make([]tool.Outcome, 8)
	for i := range outcomes {
		wg.Go(func() {
			name := "hang"
			if i == 7 {
				name = "die"
			}
			outcomes[i] = set.Invoke(t.Context(), tool.Call{Name: name, Arguments: `{"text":""}`}, output.Policy{})
		})
	}
	wg.Wait()
	for i, o := range outcomes {
		if !o.Failed || !strings.Contains(o.Error, "MCP server probe") {
			t.Errorf("%d: %+v", i, o)
		}
	}
}

// X2: restarts are bounded.
func TestGivenUp(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "server")
	if err := os.Symlink(os.Args[0], link); err != nil {
		t.Skip(err)
	}
	s := program("sdk")
	s.Command[0] = link
	r := connect(t, mcpbridge.Options{}, s)
	r.want("echo", `{"text":"a"}`, "a")
	os.Remove(link)
	r.wantError("die", `{"text":""}`)
	for range 3 {
		r.wantError("echo", `{"text":"a"}`, "cannot be started")
	}
	r.wantError("echo", `{"text":"a"}`, "failed 3 times in a row and is not started again", "cannot be started")

	r = connect(t, mcpbridge.Options{}, program("sdk")) // one that starts well and dies of every call
	for range 3 {
		r.wantError("die", `{"text":""}`, "was lost while it ran die")
	}
	r.wantError("die", `{"text":""}`, "failed 3 times in a row and is not started again", "exit status 3")
}

// X2: lines on standard output that are not messages are skipped and told, a few
// of them, and calls go on. A damaged message ends the session, for the call that
// it answers has no other answer.
func TestStrayOutput(t *testing.T) {
	told := make(chan string, 100)
	notify := func(ev mcpbridge.Event) {
		if ev.Kind == mcpbridge.Stray {
			told <- ev.Text
		}
	}
	r := connect(t, mcpbridge.Options{Notify: notify}, program("sdk"))
	pid := r.call("pid", `{"text":""}`).Content.Display()
	r.want("print", `{"text":"Debug: here I am\n[INFO] started\n{ a: 1 }\n{\"level\":\"info\"}\n[1]\n\"x\"\nmore"}`, "printed")
	r.want("echo", `{"text":"again"}`, "again")
	if now := r.call("pid", `{"text":""}`).Content.Display(); now != pid {
		t.Errorf("another process: %s, was %s", now, pid)
	}
	var lines []string
	for range len(told) {
		lines = append(lines, <-told)
	}
	if len(lines) != 5 || lines[0] != "Debug: here I am" || !strings.Contains(lines[4], "further lines are skipped") {
		t.Errorf("%q", lines)
	}
	r.wantError("print", `{"text":"Debug: {\"jsonrpc\":\"2.0\"}"}`, `it wrote to its standard output what is not a JSON-RPC message: "Debug: {`)
	r.want("echo", `{"text":"again"}`, "again")
}

// X2: a bridge goes on without an optional server, tells why, and has the tools
// of the others.
func TestOptional(t *testing.T) {
	told := make(chan mcpbridge.Event, 100)
	gone := mcpbridge.Server{Name: "gone", Command: []string{"/no/such/program"}, Include: []string{"x"}, Optional: true}
	r := connect(t, mcpbridge.Options{Notify: func(ev mcpbridge.Event) { told <- ev }}, program("sdk"), gone)
	r.want("echo", `{"text":"here"}`, "here")
	missing := 0
	for range len(told) {
		if ev := <-told; ev.Kind == mcpbridge.Missing {
			missing++
			if ev.Server != "gone" || !strings.Contains(ev.Text, "cannot be started") {
				t.Errorf("%+v", ev)
			}
		}
	}
	if missing != 1 || r.bridge.Servers()[1].Up || r.bridge.Refresh(t.Context()) != nil {
		t.Errorf("told %d times, %+v", missing, r.bridge.Servers())
	}
	wrong := program("sdk")
	wrong.Optional, wrong.Include = true, []string{"ecko"}
	if _, err := mcpbridge.Connect(t.Context(), mcpbridge.Options{}, wrong); err == nil {
		t.Error("a server that runs and lacks a tool that was named is not an error")
	}
}

// A message that is too long is an error, over stdio and HTTP.
func TestMaxMessage(t *testing.T) {
	results := fmt.Sprintf(`{"ok":{"content":[{"type":"text","text":"fine"}]},"long":{"content":[{"type":"text","text":%q}]}}`, strings.Repeat("x", 100<<10))
	for _, s := range []mcpbridge.Server{
		program("script", "RESULTS="+results),
		at(listen(t, scriptHandler(script{results: results}, false)).URL),
		at(listen(t, scriptHandler(script{results: results}, true)).URL),
	} {
		s.MaxMessage = 64 << 10
		r := connect(t, mcpbridge.Options{}, s)
		r.want("ok", "{}", "fine")
		o := r.wantError("long", "{}")
		if s.URL == "" && !strings.Contains(o.Error, "sent a message of more than 65536 bytes") {
			t.Error(o.Error)
		}
		t.Log(o.Error)
		r.want("ok", "{}", "fine")
	}
}

// X2: noise on standard error is not a harm, and keys in it are not shown.
func TestNoise(t *testing.T) {
	s := program("noise")
	s.SecretEnv = map[string]endpoint.Key{"PROBE_KEY": endpoint.NewKey("sk-very-secret-1234")}
	r := connect(t, mcpbridge.Options{}, s)
	r.want("echo", `{"text":"a"}`, "a")
	o := r.wantError("die", `{"text":"x"}`, "noise 19999 with the key [redacted]")
	if strings.Contains(o.Error, "sk-very-secret") || len(o.Error) > 2500 {
		t.Errorf("%d bytes: %s", len(o.Error), o.Error)
	}
}

// A2, J6: a program gets the variables that it is given and no others, and what
// is secret among them does not come back.
func TestEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-not-for-servers")
	t.Setenv("PASSED_ON", "passed")
	s := program("sdk")
	s.PassEnv = []string{"PASSED_ON", "NOT_SET"}
	s.SecretEnv = map[string]endpoint.Key{"PROBE_KEY": endpoint.NewKey("sk-very-secret-1234")}
	r := connect(t, mcpbridge.Options{}, s)
	env := r.call("env", `{"text":""}`).Content.Display()
	for _, want := range []string{"PASSED_ON=passed", "PATH=", modeVariable + "=sdk", "PROBE_KEY=[redacted]"} {
		if !strings.Contains(env, want) {
			t.Errorf("%s is not in\n%s", want, env)
		}
	}
	for _, not := range []string{"sk-", "NOT_SET", "OPENAI"} {
		if strings.Contains(env, not) {
			t.Errorf("%s is in\n%s", not, env)
		}
	}
}

// A server that cannot be had is an error of Connect that says why.
func TestCannotStart(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for programs that do not answer")
	}
	secret := endpoint.NewKey("sk-very-secret-1234")
	with := func(s mcpbridge.Server) mcpbridge.Server {
		s.StartTimeout = patience
		s.SecretEnv = map[string]endpoint.Key{"PROBE_KEY": secret}
		return s
	}
	mute := with(program("mute"))
	mute.StartTimeout = 3 * time.Second
	garbage := with(program("garbage"))
	garbage.StartTimeout = 10 * time.Second
	unknown := with(program("sdk"))
	unknown.Include = []string{"echo", "ecko"}
	for _, c := range []struct {
		name   string
		server mcpbridge.Server
		parts  []string
	}{
		{"no program", with(mcpbridge.Server{Name: "probe", Command: []string{"/no/such/program"}}), []string{"cannot be started", "no such file"}},
		{"exits", with(program("exit")), []string{"could not be started", "exit status 7", "no configuration, and [redacted]"}},
		{"garbage", garbage, []string{`not a JSON-RPC message: "Listening on port 3000"`}},
		{"mute", mute, []string{"could not be started within 3s"}},
		{"no such tool", unknown, []string{"has no tool ecko", "it has: echo"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := mcpbridge.Connect(t.Context(), mcpbridge.Hurried(mcpbridge.Options{}), c.server)
			if err != nil && !strings.Contains(err.Error(), c.parts[0]) && c.server.StartTimeout < patience {
				c.server.StartTimeout = patience // on a busy machine a program needs a while to say anything
				b, err = mcpbridge.Connect(t.Context(), mcpbridge.Hurried(mcpbridge.Options{}), c.server)
			}
			if err == nil {
				b.Close()
				t.Fatal("connected")
			}
			var e *mcpbridge.ServerError
			if !errors.As(err, &e) || e.Server != "probe" {
				t.Errorf("%T", err)
			}
			for _, p := range c.parts {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("%q does not hold %q", err, p)
				}
			}
			if strings.Contains(err.Error(), "sk-very") {
				t.Error(err)
			}
		})
	}
}

// Close ends the server, what it started, and calls that are under way.
func TestClose(t *testing.T) {
	s := program("sdk")
	s.Sandbox = sandbox.Full // in which the child's number is the one that it has here
	r := connect(t, mcpbridge.Options{}, s)
	pid := r.call("child", `{"text":""}`).Content.Display()
	set := r.set()
	out := make(chan tool.Outcome)
	go func() {
		out <- set.Invoke(t.Context(), tool.Call{Name: "hang", Arguments: `{"text":""}`}, output.Policy{})
	}()
	r.bridge.Close()
	r.bridge.Close()
	if o := <-out; !o.Failed || !strings.Contains(o.Error, "MCP server probe") {
		t.Errorf("%+v", o)
	}
	r.wantError("echo", `{"text":"a"}`, "was ended with the bridge")
	if _, err := os.Stat("/proc/self"); err == nil {
		eventually(t, "the server's child is ended", func() bool { return !runs(pid) })
	}
	if r.bridge.Servers()[0].Up {
		t.Error("the server is up")
	}
}

// runs reports whether a process runs, by its state in /proc.
func runs(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// A context that ends while servers are being started ends the starting.
func TestConnectCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if b, err := mcpbridge.Connect(ctx, mcpbridge.Hurried(mcpbridge.Options{}), program("mute")); err == nil {
		b.Close()
		t.Error("connected")
	}
}

// Roots are told to servers that ask; what the bridge cannot do it declines.
func TestAskedBack(t *testing.T) {
	older := program("sdk")
	older.Protocol = "2025-11-25"
	roots := []string{"/data/a b", "file:///x"}
	r := connect(t, mcpbridge.Options{Roots: roots}, older)
	r.want("roots", `{"text":""}`, "file:///data/a%20b file:///x")
	for _, name := range []string{"sample", "elicit"} {
		if o := r.call(name, `{"text":""}`); !o.Failed || !strings.Contains(o.Error, "not support") {
			t.Errorf("%s: %s", name, o.Content.Display())
		}
	}
	r = connect(t, mcpbridge.Options{}, program("sdk")) // where servers ask in their answer
	r.wantError("ask", `{"text":""}`, "client does not support elicitation")
}

// Progress is told by the call that makes it.
func TestProgress(t *testing.T) {
	var log events
	r := connect(t, mcpbridge.Options{Notify: log.add}, program("sdk"))
	r.want("progress", `{"text":"done"}`, "done")
	eventually(t, "progress is told", func() bool { return log.has(mcpbridge.Progress, "half way") })
	for _, ev := range log.all() {
		if ev.Kind == mcpbridge.Progress && (ev.Call.ID != "call_1" || ev.Done != 1 || ev.Total != 2) {
			t.Errorf("%+v", ev)
		}
	}
}

// events collects what servers do.
type events struct {
	mu   sync.Mutex
	list []mcpbridge.Event
}

func (e *events) add(ev mcpbridge.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

func (e *events) all() []mcpbridge.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

func (e *events) has(kind mcpbridge.EventKind, text string) bool {
	return slices.ContainsFunc(e.all(), func(ev mcpbridge.Event) bool { return ev.Kind == kind && strings.Contains(ev.Text, text) })
}

func (e *events) count(kind mcpbridge.EventKind) (n int) {
	for _, ev := range e.all() {
		if ev.Kind == kind {
			n++
		}
	}
	return n
}

// A server that takes long to start is told about while it does, with the time
// that it has. X2
func TestSlowStart(t *testing.T) {
	var log events
	s := program("mute")
	s.StartTimeout = 400 * time.Millisecond
	_, err := mcpbridge.Connect(t.Context(), mcpbridge.Hurried(mcpbridge.Options{Notify: log.add}), s)
	if err == nil || !log.has(mcpbridge.Starting, "it may take 400ms") {
		t.Error(err, log.all())
	}
}

// A11: an error of a server that lacked a permission in its sandbox names the permission and
// the profile that has it: when it cannot start, when it ends, and when a call fails.
func TestServerSaysWhatItLacked(t *testing.T) {
	if !sandbox.Available().Confines() || runtime.GOOS != "linux" {
		t.Skip("nothing is confined here: ", sandbox.Available().Missing)
	}
	hidden := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(hidden, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	says := "the sandbox does not show " + hidden + "; only the user can allow it, with the sandbox profile full"
	dead := mcpbridge.Server{Name: "probe", Command: []string{"sh", "-c", "cat " + hidden}, Dir: t.TempDir()}
	if _, err := mcpbridge.Connect(t.Context(), mcpbridge.Hurried(mcpbridge.Options{}), dead); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v", err)
	}
	offline := mcpbridge.Server{Name: "probe", Command: []string{"sh", "-c", "echo getaddrinfo ENOTFOUND registry.example >&2; exit 1"}, Dir: t.TempDir(), Sandbox: sandbox.Workspace}
	if _, err := mcpbridge.Connect(t.Context(), mcpbridge.Hurried(mcpbridge.Options{}), offline); err == nil ||
		!strings.Contains(err.Error(), "the sandbox does not allow the network: registry.example; only the user can allow it, with the sandbox profile network") {
		t.Errorf("%v", err)
	}
	s := program("sdk")
	s.Dir = t.TempDir()
	r := connect(t, mcpbridge.Options{}, s)
	text := "ENOENT: no such file or directory, open '" + hidden + "'"
	if o := r.call("fail", `{"text":"`+text+`"}`); o.Error != text+"\n["+says+"]" {
		t.Errorf("%q", o.Error)
	}
	if o := r.call("fail", `{"text":"no such file or directory: x"}`); o.Error != "no such file or directory: x" {
		t.Errorf("%q", o.Error)
	}
	s.Sandbox = sandbox.Full
	r = connect(t, mcpbridge.Options{}, s)
	if o := r.call("fail", `{"text":"`+text+`"}`); o.Error != text {
		t.Errorf("%q", o.Error)
	}
}

// A11: what a server made that other programs obey is told when its program has ended, also
// if it never answered.
func TestPlanted(t *testing.T) {
	if !sandbox.Available().Confines() {
		t.Skip("nothing is confined here: ", sandbox.Available().Missing)
	}
	var told []string
	notify := func(ev mcpbridge.Event) {
		if ev.Kind == mcpbridge.Planted {
			told = append(told, ev.Text)
		}
	}
	s := mcpbridge.Server{Name: "probe", Command: []string{"sh", "-c", "echo x > .envrc"}, Dir: t.TempDir(), Sandbox: sandbox.Workspace}
	if _, err := mcpbridge.Connect(t.Context(), mcpbridge.Hurried(mcpbridge.Options{Notify: notify}), s); err == nil {
		t.Error("no error")
	}
	if len(told) != 1 || !strings.Contains(told[0], ".envrc") {
		t.Errorf("%q", told)
	}
}

// A10: a server gets where the Go tool has its packages, and no key.
func TestUsualVariables(t *testing.T) {
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("SOME_KEY", "secret")
	env := mcpbridge.Environment(mcpbridge.Server{}, os.LookupEnv)
	if !slices.Contains(env, "GOMODCACHE="+os.Getenv("GOMODCACHE")) || slices.Contains(env, "SOME_KEY=secret") {
		t.Errorf("%q", env)
	}
}

// X1: an error of the server with a code by which the SDK says that a connection is closed is
// the answer to the call: the call is not made again, in a new process.
func TestErrorOfClosing(t *testing.T) {
	var log events
	r := connect(t, mcpbridge.Options{Notify: log.add}, program("script", `RESULTS={"send":"closing","ok":{"content":[{"type":"text","text":"fine"}]}}`))
	r.wantError("send", "{}", "refused the call of send: the mailbox is closed (code -32004)")
	r.want("ok", "{}", "fine")
	if log.count(mcpbridge.Started) != 1 {
		t.Errorf("%+v", log.all())
	}
}

// X1: a call that a program was sent is not made again when its output is closed under the
// reader, as it is when a process that it left behind holds it.
func TestOutputClosed(t *testing.T) {
	if err, unsent := mcpbridge.CloseOutput(); err == nil || unsent {
		t.Errorf("%v counts as not sent", err)
	}
}
