// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	commands "github.com/antiphon-go/antiphon/toolkit/shell"
)

// asShell is a call of run_command as a line of a rehearsal script.
func asShell(t *testing.T, script string, more map[string]string) string {
	t.Helper()
	args := map[string]any{"command": []string{"bash", "-c", script}}
	for name, value := range more {
		args[name] = value
	}
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return "turn\n  call run_command " + string(text) + "\n"
}

// confinedAgent writes an agent that makes calls, and returns its file.
func confinedAgent(t *testing.T, attributes, calls string) string {
	t.Helper()
	if s := sandbox.Available(); !s.Confines() {
		t.Skip("this system confines nothing: ", strings.Join(s.Missing, "; "))
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.script"), calls+"turn\n  say done\n")
	return write(t, filepath.Join(dir, "a.md"), "<config model=\"rehearsal:a.script\"/>\n<tool name=\"run_command\" "+attributes+"/>\n<user>go</user>\n")
}

// A9 A10 A11: what a model's commands try, in the whole program: nothing succeeds, and
// the person sees which permission was missing.
func TestCommandsAreConfined(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, ".ssh", "id_rsa"), stolen+"\n")
	reached := make(chan struct{}, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		if _, err := l.Accept(); err == nil {
			reached <- struct{}{}
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	mark, outside := fmt.Sprintf("1000.%09d", rand.Uint32N(1e9)), filepath.Join(t.TempDir(), "made")
	calls := ""
	for _, script := range []string{
		"echo x > " + outside,
		"cat " + home + "/.ssh/id_rsa",
		"exec 3<>/dev/tcp/127.0.0.1/" + port,
		"curl -sS --max-time 5 http://nowhere.example/",
		"tr '\\0' '\\n' < /proc/" + strconv.Itoa(os.Getpid()) + "/environ && echo " + stolen,
		"tr '\\0' '\\n' < /proc/$PPID/environ && echo " + stolen + "; env",
		"setsid sh -c 'echo x > began; exec sleep " + mark + "' >/dev/null 2>&1 & while [ ! -s began ]; do sleep 0.05; done",
	} {
		calls += asShell(t, script, nil)
	}
	agent := confinedAgent(t, `approval="allow"`, calls)
	out := filepath.Join(filepath.Dir(agent), "talk.md")
	t.Chdir(filepath.Dir(agent))
	o := programEnv(t, []string{"OPENAI_API_KEY=" + stolen, "HOME=" + home}, "run", agent, "--trust", "-v", "--out", out)
	if o.code != 0 {
		t.Errorf("exit code %d: %s", o.code, o.err)
	}
	said := o.out + o.err + read(t, out)
	if strings.Contains(strings.ReplaceAll(said, "echo "+stolen, ""), stolen) {
		t.Errorf("a secret was read: %s", said)
	}
	for _, want := range []string{
		"the sandbox does not allow writing outside of the workspace: " + outside, "the sandbox does not show " + home + "/.ssh/id_rsa",
		"the sandbox does not allow the network", `call the tool again with "sandbox": "full"`,
	} {
		if !strings.Contains(o.err, want) {
			t.Errorf("%q is not shown: %s", want, o.err)
		}
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a file was made outside")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(agent), "began")); err != nil {
		t.Error("the program that was left behind did not begin, so this shows nothing")
	}
	if all, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "args=").Output(); err == nil && strings.Contains(string(all), mark) {
		t.Error("a program was left behind")
	}
	select {
	case <-reached:
		t.Error("a command reached a service of this machine")
	default:
	}
}

// A11: --sandbox takes the place of what the file says, wider or narrower. What the
// file adds is a power.
func TestSandboxFlag(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "made")
	for _, c := range []struct {
		attributes, flag, power string
		inside, outside         bool
	}{
		{"", "", "", true, false},
		{"", "full", "", true, true},
		{"", "read-only", "", false, false},
		{`sandbox="full"`, "", "gives run_command in %s all your permissions, outside of the sandbox", true, true},
		{`sandbox="network"`, "", "gives run_command in %s the network", true, false},
		{`sandbox="full"`, "workspace", "", true, false},
		{`sandbox="read-only"`, "", "", false, false},
	} {
		_ = os.Remove(outside)
		agent := confinedAgent(t, c.attributes, asShell(t, "echo x > "+outside+"; echo x > inside", nil))
		dir := filepath.Dir(agent)
		t.Chdir(dir)
		args := []string{"run", agent, "--allow", "run_command"}
		if c.flag != "" {
			args = append(args, "--sandbox", c.flag)
		}
		if c.power != "" {
			o := program(t, args...)
			if want := fmt.Sprintf(c.power, dir); o.code != 2 || !strings.Contains(o.err, want) {
				t.Errorf("%+v: exit code %d without %q: %s", c, o.code, want, o.err)
			}
			args = append(args, "--trust")
		}
		if o := program(t, args...); o.code != 0 {
			t.Errorf("%+v: exit code %d: %s", c, o.code, o.err)
		}
		_, in := os.Stat(filepath.Join(dir, "inside"))
		_, out := os.Stat(outside)
		if (in == nil) != c.inside || (out == nil) != c.outside {
			t.Errorf("%+v: inside %v, outside %v", c, in, out)
		}
	}
	agent := confinedAgent(t, `sandbox="everything"`, "")
	if o := program(t, "check", agent); o.code != 2 || !strings.Contains(o.out, `a.md:2:1: <tool>: sandbox is "everything" (want read-only, workspace, hosts, network, full)`) {
		t.Errorf("%d %s", o.code, o.out)
	}
	agent = confinedAgent(t, "", "")
	if o := program(t, "run", agent, "--sandbox", "ful"); o.code != 2 || !strings.Contains(o.err, `--sandbox: there is no profile "ful"; the profiles are read-only, workspace, hosts, network, full`) {
		t.Errorf("%d %s", o.code, o.err)
	}
}

// A11: hosts of a file, a flag and a call let commands reach these hosts and nothing else. Those of a
// file are powers, and those of a call a question that names them.
func TestHostsOfCommands(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil || !sandbox.Available().Has(sandbox.Namespaces) {
		t.Skip("this needs curl and namespaces")
	}
	var asked atomic.Int64
	serve := func() string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			fmt.Fprintln(w, "served")
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	one, two := serve(), serve()
	get := "curl -sSf --noproxy '' http://" + one + "; curl -sSf --noproxy '' http://" + two
	for _, c := range []struct {
		attributes string
		flags      []string
		power      string // names this host
		reached    int64
	}{
		{``, nil, "", 0},
		{`hosts="` + one + `"`, nil, one, 1},
		{`hosts="` + one + `,` + two + `"`, nil, two, 2},
		{`hosts="` + one + `"`, []string{"--hosts", two}, "", 1},
		{``, []string{"--hosts", one, "--hosts", two}, "", 2},
		{`sandbox="network"`, []string{"--sandbox", "hosts", "--hosts", one + "," + two}, "", 2},
		{`hosts="` + one + `"`, []string{"--sandbox", "workspace"}, "", 0},
	} {
		agent := confinedAgent(t, c.attributes, asShell(t, get, nil))
		dir := filepath.Dir(agent)
		t.Chdir(dir)
		args := append([]string{"run", agent, "--allow", "run_command"}, c.flags...)
		if c.power != "" {
			if o := program(t, args...); o.code != 2 || !strings.Contains(o.err, "lets run_command in "+dir+" reach "+c.power) {
				t.Errorf("%+v: exit code %d: %s", c, o.code, o.err)
			}
			args = append(args, "--trust")
		}
		asked.Store(0)
		o := program(t, args...)
		if o.code != 0 || asked.Load() != c.reached {
			t.Errorf("%+v: exit code %d, reached %d: %s", c, o.code, asked.Load(), o.err)
		}
	}
	agent := confinedAgent(t, `hosts="`+one+`"`, strings.Replace(asShell(t, get, map[string]string{"why": "to try"}), "{", `{"hosts":["`+two+`"],`, 1))
	t.Chdir(filepath.Dir(agent))
	asked.Store(0)
	if o := program(t, "run", agent, "--allow", "run_command", "--trust"); o.code != 5 || asked.Load() > 0 || !strings.Contains(o.err, "the command wants to run with the network to "+two+": it could") {
		t.Errorf("exit code %d, reached %d: %s", o.code, asked.Load(), o.err)
	}
	answers := write(t, filepath.Join(t.TempDir(), "answers.jsonl"), `{"tool":"run_command","allow":true}`)
	if o := program(t, "run", agent, "--trust", "--approve-from", answers); o.code != 0 || asked.Load() != 2 {
		t.Errorf("exit code %d, reached %d: %s", o.code, asked.Load(), o.err)
	}
}

// A11: a question about a command says with which profile it runs, where it is asked and where it
// waits, and an answer about it says so too. No argument can look like that.
func TestQuestionsNameTheSandbox(t *testing.T) {
	if !sandbox.Available().Has(sandbox.Namespaces) {
		t.Skip("this needs namespaces")
	}
	const plain = "   sandbox profile workspace: writes in the workspace, without network\n"
	for _, c := range []struct {
		profile   string // of the tool
		arguments string
		want      []string
		always    bool // the whole tool can be allowed
	}{
		{"", `{"command":["ls"]}`, []string{plain, "about ls with options known to be harmless\n"}, true},
		{"", `{"command":["ls"],"hosts":["b.example","a.example"],"why":"to try"}`, []string{"   sandbox profile hosts: writes in the workspace, and reaches only a.example, b.example\n",
			"asked because the command wants to run with the network to a.example, b.example:", "known to be harmless, with the network to a.example, b.example"}, false},
		{"", `{"command":["ls"],"sandbox":"network"}`, []string{"   sandbox profile network: writes in the workspace, and has the network\n", "about ls with options known to be harmless, with the network\n"}, false},
		{"", `{"command":["ls"],"sandbox":"full"}`, []string{"   sandbox profile full: has all your permissions, outside of the sandbox\n", "about ls with options known to be harmless, with all your permissions\n"}, false},
		{sandbox.NameFull, `{"command":["ls"]}`, []string{"   sandbox profile full: has all your permissions", "about ls with options known to be harmless, with all your permissions\n"}, true},
		{"", `{"command":["ls"],"sandbox":"workspace","why":"` + strings.Repeat("x", 100) + `"}`, []string{"   sandbox: workspace\n", plain}, true},
		{"", `{"command":["ls"],"sandbox profile full":"` + strings.Repeat("x", 100) + `"}`, []string{`   "sandbox profile full": xxx`}, true},
	} {
		files, err := toolkit.Open(toolkit.Root{Path: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = files.Close() })
		options := &commands.Options{}
		if c.profile != "" {
			if options.Sandbox, err = sandbox.Maker(c.profile); err != nil {
				t.Fatal(err)
			}
		}
		command, err := toolkit.New("run_command", toolkit.Deps{Files: files, Shell: options})
		if err != nil {
			t.Fatal(err)
		}
		var screen bytes.Buffer
		who := person.New(strings.NewReader("?\nn\n"), &screen)
		who.Columns = func() int { return 300 }
		ask := func(approver agent.Approver) *agent.Result {
			a := &agent.Agent{Tools: []tool.Tool{command}, Policy: agent.Policy{Approver: approver, Pause: approver == nil}}
			a.Request.Model = "m"
			replies := []agenttest.Reply{agenttest.Completed(item.Call("c1", "run_command", c.arguments))}
			if approver != nil {
				replies = append(replies, agenttest.Completed(item.Assistant("done")))
			}
			a.Model = agenttest.Script(t, replies...)
			res, err := a.Run(t.Context(), session.New(), item.User("go"))
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		ask(who.Approve)
		wantAll(t, c.arguments, screen.String(), c.want...)
		if strings.Contains(screen.String(), "about any call of run_command") != c.always {
			t.Errorf("%s:\n%s", c.arguments, screen.String())
		}
		screen.Reset()
		_ = waiting(stdio{err: &screen}, ask(nil).Pending)
		if first, _, _ := strings.Cut(c.want[0], ","); strings.HasPrefix(first, "   sandbox profile") && !strings.Contains(screen.String(), first) {
			t.Errorf("where it waits:\n%s", screen.String())
		}
	}
}

// A11: a call that asks for more is asked about although the tool is allowed.
func TestWideningIsAsked(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "made")
	agent := confinedAgent(t, "", asShell(t, "echo x > "+outside, map[string]string{"sandbox": "full", "why": "to try"}))
	t.Chdir(filepath.Dir(agent))
	o := program(t, "run", agent, "--allow", "run_command")
	if _, err := os.Stat(outside); o.code != 5 || err == nil || !strings.Contains(o.err, "the command wants to run with all your permissions") {
		t.Errorf("exit code %d: %s", o.code, o.err)
	}
}

// A10: no program of the same user reads the memory or the environment of antiphon.
func TestProgramIsHidden(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hidden")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	command := filepath.Join(dir, "antiphon") // this test program runs main by that name
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(command, data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	as := func(cmd *exec.Cmd) *exec.Cmd {
		if os.Getuid() == 0 { // who reads everything
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		return cmd
	}
	cmd := as(exec.CommandContext(t.Context(), command, "check", "-"))
	cmd.Dir, cmd.Env = dir, []string{"OPENAI_API_KEY=" + stolen, "HOME=" + dir}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// It reads its input only after it has hidden itself: the pipe is full until then.
	if _, err := io.WriteString(in, strings.Repeat(" ", 1<<20)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"environ", "mem", "maps"} {
		out, err := as(exec.CommandContext(t.Context(), "cat", fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, file))).CombinedOutput()
		if err == nil || strings.Contains(string(out), stolen) {
			t.Errorf("%s was read: %s", file, out)
		}
	}
	_ = in.Close()
	if text, _ := io.ReadAll(errs); !strings.Contains(string(text), "1 file checked") {
		t.Errorf("%s", text)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A1 A11: a command does not lead what the program writes beside a transcript to another folder.
func TestNothingIsKeptThroughLinks(t *testing.T) {
	outside := t.TempDir()
	const long = "turn\n  call run_command {\"command\":[\"seq\",\"100000\"]}\n"
	agent := confinedAgent(t, "", long+asShell(t, "d=.chat; d=${d}md; rm -rf $d; mv $d gone; ln -s "+outside+" $d; cd $d/* && rm -rf * && ln -s "+outside+" outputs; true", nil)+long)
	dir := filepath.Dir(agent)
	t.Chdir(dir)
	o := program(t, "run", agent, "--allow", "run_command", "--out", filepath.Join(dir, "talk.md"))
	if !strings.Contains(o.err, "were left out and are kept") {
		t.Errorf("exit code %d: %s", o.code, o.err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside there is now %v, %v", entries, err)
	}
}
