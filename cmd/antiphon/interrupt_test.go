// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// process is the program as a process of its own.
type process struct {
	cmd *exec.Cmd
	out *bufio.Reader
	end io.Closer // of its standard output that we read
	err bytes.Buffer
}

// start starts the program. A real signal can be sent to it.
func start(t *testing.T, stdin io.Reader, args ...string) *process {
	t.Helper()
	return startAs(t, stdin, "antiphon", args...)
}

// stay is how long a test waits for what must happen, on a machine however busy.
const stay = 5 * time.Minute

// startAs starts the program by another.
func startAs(t *testing.T, stdin io.Reader, name string, args ...string) *process {
	t.Helper()
	return startWith(t, stdin, nil, name, args...)
}

// startWith is like startAs, and gives the process open files, from number 3 on.
func startWith(t *testing.T, stdin io.Reader, files []*os.File, name string, args ...string) *process {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs signals, which Windows has not: skipped")
	}
	p := &process{cmd: exec.Command(name, args...)}
	p.cmd.ExtraFiles = files
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Env = append(os.Environ(), "OPENAI_API_KEY="+testKey, "OPENAI_BASE_URL=", "OPENAI_MODEL=")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, w, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	p.out, p.end = bufio.NewReader(r), r
	t.Cleanup(func() { r.Close() })
	stuck := time.AfterFunc(stay, func() { _ = p.cmd.Process.Kill() })
	t.Cleanup(func() { stuck.Stop() })
	return p
}

// until reads the program's output up to a text.
func (p *process) until(t *testing.T, text string) (got string) {
	t.Helper()
	for !strings.Contains(got, text) {
		b, err := p.out.ReadByte()
		if err != nil {
			_ = p.cmd.Wait()
			t.Fatalf("no %q in %q: %v\n%s", text, got, err, p.err.String())
		}
		got += string(b)
	}
	return got
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// wait returns the exit code, -1 for a process that a signal ended, and what
// was left of the output.
func (p *process) wait(t *testing.T) (code int, rest string) {
	t.Helper()
	text, _ := io.ReadAll(p.out)
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	noKey(t, "standard output", string(text))
	noKey(t, "standard error", p.err.String())
	return p.cmd.ProcessState.ExitCode(), string(text)
}

// talk is an agent with a transcript whose first reply is a call and whose
// second stalls.
func talk(t *testing.T, second agenttest.Reply) (agent, out string, srv *agenttest.Server) {
	agent = reader(t)
	first := agenttest.Completed(item.Assistant("I look."), item.Call("call_1", "read_file", readNote))
	return agent, filepath.Join(filepath.Dir(agent), "talk.md"), agenttest.NewServer(t, first, second)
}

// goesOn runs once more on the transcript and checks the request.
func goesOn(t *testing.T, agent, out string, srv *agenttest.Server, want ...string) {
	t.Helper()
	srv.Add(agenttest.Completed(item.Assistant("It says: a note.")))
	before := read(t, out)
	o := program(t, "run", agent, "--out", out, "--base-url", srv.URL)
	if o.code != 0 || o.out != "It says: a note.\n" || len(o.messages()) > 0 {
		t.Errorf("the second run: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	last := srv.Requests()[len(srv.Requests())-1]
	validRequest(t, last)
	for _, w := range want {
		if !strings.Contains(string(last.Body), w) {
			t.Errorf("the next request lacks %q:\n%s", w, last.Body)
		}
	}
	if !strings.HasPrefix(read(t, out), before) {
		t.Error("the second run changed what was written")
	}
}

// stalled is a reply that says "one two" of its text and then nothing more.
func stalled() agenttest.Reply {
	return agenttest.Completed(item.Assistant("one two three four")).StallAfter(6, nil)
}

// TestInterruptText proves that Ctrl-C in the middle of text ends the run with
// its own exit code and keeps what was said, marked as cut; and so does a request to
// end, and a terminal that is closed. L6 S8 M9
func TestInterruptText(t *testing.T) {
	t.Parallel()
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		agent, out, srv := talk(t, stalled())
		p := start(t, nil, "run", agent, "--out", out, "--base-url", srv.URL)
		p.until(t, "I look.\none two ")
		p.signal(t, s)
		code, rest := p.wait(t)
		if code != exitInterrupted || strings.Trim(rest, "\n") != "" {
			t.Errorf("%v: exit code %d, output %q", s, code, rest)
		}
		if said := p.err.String(); !strings.HasSuffix(said, "\nantiphon: interrupted\n") || strings.Count(said, "antiphon: ") != 2 { // the other says who answers
			t.Errorf("%v: standard error:\n%s", s, said)
		}
		if text := read(t, out); !strings.Contains(text, `status="incomplete"`) || !strings.Contains(text, "\none two ") {
			t.Errorf("%v: the transcript:\n%s", s, text)
		}
		goesOn(t, agent, out, srv, "one two ", `"status":"incomplete"`)
	}
}

// TestHangUp proves that a run whose terminal is closed ends the tools that it
// started, however often it is told, and that nohup is obeyed. L6
func TestHangUp(t *testing.T) {
	t.Parallel()
	for _, ignored := range []bool{false, true} {
		dir := t.TempDir()
		begun := filepath.Join(dir, "begun")
		script := write(t, filepath.Join(dir, "wait.sh"), "echo > "+begun+"\nwhile test -e "+begun+"; do sleep 0.02; done\n")
		agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"m\"/>\n<tool name=\"wait\" command=\"sh "+script+"\" description=\"Waits.\"/>\n<user>Wait.</user>\n")
		srv := agenttest.NewServer(t, agenttest.Completed(item.Call("c", "wait", "{}")), agenttest.Completed(item.Assistant("It waited.")))
		line := "antiphon run " + agent + " --allow wait --sandbox full --json --base-url " + srv.URL
		if ignored {
			line = "trap '' HUP; " + line
		}
		p := startAs(t, nil, "sh", "-c", strings.Replace(line, "antiphon", "exec antiphon", 1))
		p.until(t, `"call_started"`)
		for {
			if _, err := os.Stat(begun); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		for range 3 {
			p.signal(t, syscall.SIGHUP)
		}
		if ignored {
			os.Remove(begun)
		}
		code, rest := p.wait(t)
		want, text := exitInterrupted, "The call was interrupted before the tool finished."
		if ignored {
			want, text = 0, "It waited."
		}
		if code != want || !strings.Contains(rest, text) {
			t.Errorf("ignored %v: exit code %d\n%s%s", ignored, code, rest, p.err.String())
		}
	}
}

// TestInterruptWaiting proves the same for a reply that has not begun, and with
// JSON lines. L6
func TestInterruptWaiting(t *testing.T) {
	t.Parallel()
	agent, out, srv := talk(t, stalled().StallAfter(0, nil))
	p := start(t, nil, "run", agent, "--out", out, "--json", "--base-url", srv.URL)
	got := p.until(t, `"kind":"turn_started","turn":2}`)
	for len(srv.Requests()) < 2 {
		time.Sleep(time.Millisecond)
	}
	p.signal(t, os.Interrupt)
	code, rest := p.wait(t)
	if messages := (outcome{err: p.err.String()}).messages(); code != exitInterrupted || len(messages) != 1 || messages[0] != "antiphon: interrupted" {
		t.Errorf("exit code %d\n%s", code, p.err.String())
	}
	seen, problem := eventLines(got + rest)
	if problem != "" || seen["stopped"] != 1 {
		t.Errorf("%v %s", seen, problem)
	}
	goesOn(t, agent, out, srv)
}

// TestKill proves that a process that is killed in the middle of text leaves a
// transcript that the next run goes on with. J1 M3
func TestKill(t *testing.T) {
	t.Parallel()
	agent, out, srv := talk(t, stalled())
	p := start(t, nil, "run", agent, "--out", out, "--base-url", srv.URL)
	p.until(t, "one two ")
	p.signal(t, os.Kill)
	p.wait(t)
	if text := read(t, out); !strings.Contains(text, "I look.") || !strings.Contains(text, "a note") {
		t.Errorf("the transcript:\n%s", text)
	}
	goesOn(t, agent, out, srv, "a note")
}

// TestInterruptPrompt proves that a wait for standard input can be interrupted,
// and that nothing is written or sent then.
func TestInterruptPrompt(t *testing.T) {
	t.Parallel()
	agent := reader(t)
	out := filepath.Join(filepath.Dir(agent), "talk.md")
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"run", agent, "-", "--out", out, "--rehearsal"}, nil, stdio{silent{ctx, cancel}, &stdout, &stderr})
	if code != exitInterrupted || stdout.Len() > 0 || stderr.String() != "antiphon: interrupted\n" {
		t.Errorf("exit code %d, output %q\n%s", code, stdout.String(), stderr.String())
	}
	if read(t, out) != "" {
		t.Error("there is a transcript")
	}
}

// silent is standard input of somebody who presses Ctrl-C instead of typing.
type silent struct {
	ctx     context.Context
	pressed func()
}

func (s silent) Read([]byte) (int, error) {
	s.pressed()
	<-s.ctx.Done()
	runtime.Goexit() // a terminal would go on waiting
	return 0, nil
}

// TestClosedOutput proves that a reader that goes away stops the run in order.
func TestClosedOutput(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	// The rest is long, so that it cannot all be written while a process of a
	// parallel test still has our end.
	long := agenttest.Completed(item.Assistant("one two " + strings.Repeat("three four ", 5000)))
	agent, out, srv := talk(t, long.StallAfter(6, release))
	p := start(t, nil, "run", agent, "--out", out, "--base-url", srv.URL)
	p.until(t, "one two ")
	syscall.ForkLock.Lock() // no process of a parallel test is about to be started, with our end still open
	p.end.Close()
	syscall.ForkLock.Unlock()
	close(release)
	code, _ := p.wait(t)
	if code != exitFailed || !strings.HasSuffix(p.err.String(), "\nantiphon: standard output was closed, so the run was stopped\n") {
		t.Errorf("exit code %d\n%s", code, p.err.String())
	}
	goesOn(t, agent, out, srv, "one two ")
}

// closed is a standard output that nobody reads any more.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// Where there is no run, none is said to have stopped.
func TestClosedOutputWithoutRun(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "talk.md"), "<user>hello</user>\n")
	var said bytes.Buffer
	code := run(t.Context(), []string{"convert", file, "--to", "items"}, nil, stdio{in: strings.NewReader(""), out: closed{}, err: &said})
	if code != exitFailed || said.String() != "antiphon: standard output was closed before everything was written\n" {
		t.Errorf("exit code %d, %q", code, said.String())
	}
}

// TestInterruptQuestion proves that Ctrl-C at a question about a file is an interrupt, and no
// mistake in the arguments.
func TestInterruptQuestion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<tool name=\"read_file\"><read id=\"etc\" path=\"/etc\"/></tool>\n<user>Go.</user>\n")
	for command, asks := range map[string]string{"run": "run it? y, o or n:", "trust": "[n]o:"} {
		term := openTerminal(t, dir, "antiphon "+command+" agent.md")
		term.until(t, asks)
		term.keys(t, "C-c")
		if screen := term.until(t, "[exit code "); !strings.Contains(screen, "\nantiphon: interrupted\n[exit code 130]") {
			t.Errorf("the screen:\n%s", screen)
		}
	}
}

// E2: a reply that was cut says how to go on: by a later run if the conversation is kept, and else
// that nothing is.
func TestCutReplySaysHowToGoOn(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{false, true} {
		srv := agenttest.NewServer(t)
		srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
			return agenttest.Completed(item.Assistant("one two three four")).CutAfter(6)
		})
		dir := t.TempDir()
		agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"m\"/>\n<user>Go.</user>\n")
		args, want := []string{"run", agent, "--base-url", srv.URL}, "nothing of it was kept: run it again, with --session NAME to keep the conversation\n"
		if kept {
			args, want = append(args, "--out", filepath.Join(dir, "talk.md")), "; run it again to continue\n"
		}
		if o := program(t, args...); o.code != exitProvider || !strings.HasSuffix(o.err, want) {
			t.Errorf("exit code %d\n%s", o.code, o.err)
		}
	}
}
