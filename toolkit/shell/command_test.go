// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

// The verdicts of a policy, short for tables.
const (
	Unruled = unruled
	Allowed = session.Allow
	Asked   = session.Ask
	Denied  = session.Deny
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// helperVariable makes this test program one that the tests run.
const helperVariable = "ANTIPHON_TOOLKIT_HELPER"

func init() {
	if os.Getenv(helperVariable) == "" || len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "args":
		fmt.Printf("%q", os.Args[2:])
	case "env":
		fmt.Print(strings.Join(os.Environ(), "\n"))
	case "dir":
		dir, _ := os.Getwd()
		fmt.Print(dir)
	case "input":
		n, err := io.Copy(io.Discard, os.Stdin)
		fmt.Print(n, err)
	case "both":
		fmt.Print("to stdout")
		fmt.Fprint(os.Stderr, "to stderr")
		os.Exit(3)
	case "much":
		line := strings.Repeat("é", 500) + "\n"
		for range 2000 {
			os.Stdout.WriteString(line)
			os.Stderr.WriteString(line)
		}
	case "endless":
		for {
			fmt.Println(strings.Repeat("x", 1000))
		}
	case "hang":
		fmt.Println("started")
		time.Sleep(time.Hour)
	}
	os.Exit(0)
}

// commandKit has the command tool alone. Commands may read this test program.
func commandKit(t *testing.T, options Options) *kittest.Kit {
	t.Helper()
	k := kittest.New(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	make := options.Sandbox
	if make == nil && sandbox.Available().Confines() {
		make = sandbox.Workspace
	}
	if make != nil {
		options.Sandbox = func(roots ...string) sandbox.Profile {
			p := make(roots...)
			p.Read = append(p.Read, self)
			return p
		}
	}
	options.Env = append(options.Env, helperVariable+"=1")
	c, err := RunCommand("run_command", k.Files, options)
	k.Add(c, err)
	return k
}

// helper is a call of this test program.
func helper(t *testing.T, words ...string) kittest.Args {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return kittest.Args{"command": append([]string{self}, words...)}
}

// A2: a program gets its arguments as they are.
func TestCommandArguments(t *testing.T) {
	k := commandKit(t, Options{})
	for _, words := range [][]string{{}, {""}, {"a b", "$HOME", "*", "; rm x", "`x`", "'", `"`, "é", "-c", "a\nb"}} {
		if got, want := k.OK("run_command", helper(t, append([]string{"args"}, words...)...)), fmt.Sprintf("%q", words); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A2: the environment is a list of allowed variables, and no keys.
func TestCommandEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "secret-1")
	t.Setenv("MY_SETTING", "handed on")
	t.Setenv("UNKNOWN_VARIABLE", "secret-2")
	k := commandKit(t, Options{Env: []string{"MY_SETTING", "NOT_SET_ANYWHERE", "GIVEN=a=b"}})
	got := "\n" + k.OK("run_command", helper(t, "env")) + "\n"
	for _, want := range []string{"\nMY_SETTING=handed on\n", "\nGIVEN=a=b\n", "\nTERM=dumb\n", "\nPATH=", "\nPWD="} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
	if strings.Contains(got, "secret") || strings.Contains(got, "NOT_SET_ANYWHERE") {
		t.Error(got)
	}
	for _, bad := range []string{"OPENAI_API_KEY", "GITHUB_TOKEN", "db_password", "", "=x", "A\x00"} {
		if _, err := RunCommand("run_command", k.Files, Options{Env: []string{bad}}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// A1, A2: a command runs in a root.
func TestCommandDirectory(t *testing.T) {
	k := commandKit(t, Options{})
	k.Write("sub/f", "x")
	k.Symlink(t.TempDir(), "out")
	real, err := filepath.EvalSymlinks(k.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": real, "sub": filepath.Join(real, "sub"), "workspace:sub/..": real} {
		a := helper(t, "dir")
		if dir != "" {
			a["directory"] = dir
		}
		got, _ := filepath.EvalSymlinks(k.OK("run_command", a))
		if got != want {
			t.Errorf("%q: %s, want %s", dir, got, want)
		}
	}
	for dir, want := range map[string]string{"..": "is outside of", "/": "is outside of", "sub/f": "is a file, not a directory", "none": "no such file", "out": "leads out of the root"} {
		a := helper(t, "dir")
		a["directory"] = dir
		k.Fails("run_command", a, want)
	}
}

// T4: a failure has its exit code, and both outputs.
func TestCommandFailure(t *testing.T) {
	k := commandKit(t, Options{})
	o := k.Call("run_command", helper(t, "both"))
	want := "status:\nerror\n\ntoolName:\nrun_command\n\nerror:\nthe command failed with exit code 3\n\noutput:\nstdout:\nto stdout\nstderr:\nto stderr"
	if got := o.Content.Display(); got != want || !o.Failed {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := k.OK("run_command", helper(t, "nothing")); got != output.NoOutput {
		t.Errorf("%q", got)
	}
	if got := k.OK("run_command", helper(t, "input")); got != "0 <nil>" {
		t.Errorf("stdin: %q", got)
	}
	for want, a := range map[string]kittest.Args{
		`cannot run "no-such-program": no such program in the directories of PATH`: {"command": []string{"no-such-program"}},
		"no shell splits the text":                      {"command": []string{"ls -l"}},
		"the command is empty":                          {"command": []string{}},
		"its first element is the program":              {"command": []string{"", "x"}},
		"NUL":                                           {"command": []string{"a\x00"}},
		"timeout cannot be negative":                    {"command": []string{"ls"}, "timeout": -1},
		`cannot run "./sub": no such file or directory`: {"command": []string{"./sub"}},
		`unknown member "shell"`:                        {"command": []string{"ls"}, "shell": true},
	} {
		k.Fails("run_command", a, want)
	}
}

// T6: of a long output the whole is kept, and the mark tells its true size.
func TestCommandLongOutput(t *testing.T) {
	line := strings.Repeat("é", 500) + "\n"
	want := "stdout:\n" + strings.Repeat(line, 2000) + "stderr:\n" + strings.Repeat(line, 2000)
	k := commandKit(t, Options{Keep: 1001})
	o := k.Shaped("run_command", helper(t, "much"), output.Policy{Limit: &output.Limit{}})
	if o.Content.Text != want {
		t.Errorf("without a limit: %d bytes, want %d", len(o.Content.Text), len(want))
	}
	spill := new(output.MemoryStore)
	var err error
	if k.Set, err = k.Set.Keeping(spill, true); err != nil {
		t.Fatal(err)
	}
	o = k.Shaped("run_command", helper(t, "much"), output.Policy{Limit: &output.Limit{Bytes: 3000}})
	if o.Failed || !strings.Contains(o.Content.Text, fmt.Sprintf(" of %d bytes left out here", len(want))) || len(o.Stored) != 1 {
		t.Fatalf("%s", o.Content.Text)
	}
	if data, _, err := spill.Get(t.Context(), o.Stored[0], 0, len(want)); err != nil || string(data) != want {
		t.Errorf("%d bytes are kept, want %d: %v", len(data), len(want), err)
	}
}

// T6: where there is no room for all of it, both ends are kept, and the end says
// how much there was.
func TestCommandWithoutRoom(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	t.Setenv("TMP", filepath.Join(t.TempDir(), "none"))
	// A sandbox needs a temporary folder too.
	got := commandKit(t, Options{Keep: 1000, Sandbox: sandbox.Full}).OK("run_command", helper(t, "much"))
	if last := got[strings.LastIndexByte(got, '\n')+1:]; last != fmt.Sprintf("[the command put out %d bytes in all; %d of them are lost and cannot be read again]", 4000*1001, 4000*1001-2*(1000+1000)) {
		t.Errorf("the end says %q", last)
	}
	if strings.Count(got, " are lost here and cannot be read again: there was no room for them") != 2 || len(got) > 6000 {
		t.Errorf("%d bytes", len(got))
	}
}

// A2: a command that puts out too much is ended.
func TestCommandOutputLimit(t *testing.T) {
	k := commandKit(t, Options{MaxOutput: 1 << 20})
	o := k.Call("run_command", helper(t, "endless"))
	if o.Error != "the command was stopped after it had put out 1048576 bytes, the limit, with all its processes" || !strings.Contains(o.Content.Display(), "xxx") {
		t.Errorf("%s", o.Error)
	}
}

// A2: time is bounded; what was put out until then is kept.
func TestCommandTimeout(t *testing.T) {
	k := commandKit(t, Options{Timeout: 300 * time.Millisecond})
	for _, seconds := range []int{0, 1000} { // more than there is, is not given
		a := helper(t, "hang")
		if seconds > 0 {
			a["timeout"] = seconds
		}
		o := k.Call("run_command", a)
		if o.Error != "the command was stopped after 300ms, its time limit, with all its processes" {
			t.Errorf("%s", o.Content.Display())
		}
	}
	// On a busy machine a program needs a while to say anything.
	for seconds := 1; ; seconds *= 2 {
		k = commandKit(t, Options{})
		a := helper(t, "hang")
		a["timeout"] = seconds
		o := k.Call("run_command", a)
		if !strings.Contains(o.Error, fmt.Sprintf("after %v, its time limit", time.Duration(seconds)*time.Second)) || seconds > 64 {
			t.Fatalf("%s", o.Content.Display())
		}
		if strings.HasSuffix(o.Content.Display(), "output:\nstarted\n") {
			return
		}
	}
}

// Output is told while the command runs, and a cancelled one ends.
func TestCommandLiveAndCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told atomic.Value
	k := commandKit(t, Options{Live: func(call tool.Call, stderr bool, text []byte) {
		told.Store(fmt.Sprint(call.ID, stderr, string(text)))
		cancel()
	}})
	o := k.Set.Invoke(ctx, tool.Call{ID: "call_1", Name: "run_command", Arguments: kittest.JSON(t, helper(t, "hang"))}, output.Policy{})
	if o.Failure != tool.Cancelled {
		t.Errorf("%+v", o)
	}
	if got := told.Load(); got != "call_1falsestarted\n" {
		t.Errorf("%v", got)
	}
}

// A panic of the one who is told is not one of the program.
func TestCommandLivePanic(t *testing.T) {
	k := commandKit(t, Options{Live: func(tool.Call, bool, []byte) { panic("x") }})
	if got := k.OK("run_command", helper(t, "args", "a")); got != `["a"]` {
		t.Errorf("%s", got)
	}
}

// A2: memory is bounded where the system can do it.
func TestCommandMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		k := kittest.New(t)
		if _, err := RunCommand("run_command", k.Files, Options{Memory: 1 << 30}); err == nil {
			t.Error("a limit was promised that is not kept")
		}
		return
	}
	k := commandKit(t, Options{Memory: 256 << 20})
	if got := strings.TrimSpace(k.OK("run_command", kittest.Args{"command": []string{"sh", "-c", "ulimit -v; exec sh -c 'ulimit -v'"}})); got != "262144\n262144" {
		t.Errorf("%q", got)
	}
	k.Fails("run_command", kittest.Args{"command": []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=1G", "count=1"}}, "the command failed with exit code 1")
	if got := k.OK("run_command", kittest.Args{"command": []string{"printf", "%s|", "a b", "$x", "-c"}}); got != "a b|$x|-c|" {
		t.Errorf("%s", got)
	}
}

// A2, A5: the tool tells an agent what its policy says, and does not run what
// is denied even if it is asked to.
func TestCommandApproval(t *testing.T) {
	k := kittest.New(t)
	c, err := RunCommand("run_command", k.Files, Options{Policy: Policy{Allow: []Rule{{"go", "version"}}, Deny: []Rule{{"rm"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if annotations := tool.AnnotationsOf(c); annotations.ReadOnly || annotations.Idempotent || !annotations.Exclusive {
		t.Errorf("%+v", annotations)
	}
	for arguments, want := range map[string]session.Verdict{
		`{"command":["go","version"]}`:           Allowed,
		`{"command":["rm","x"]}`:                 Denied,
		`{"command":["nice","rm","x"]}`:          Denied,
		`{"command":["ls"]}`:                     Unruled,
		`{"command":["go","version"],"other":1}`: Unruled,
		`{"command":"go version"}`:               Unruled,
		`{`:                                      Unruled,
		``:                                       Unruled,
	} {
		if got, _ := c.Approval(tool.Call{Name: "run_command", Arguments: arguments}, nil); got != want && (runtime.GOOS != "windows" || want != Allowed) {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
	}
	if k.Set, err = tool.NewSet(c); err != nil {
		t.Fatal(err)
	}
	k.Write("x", "")
	k.Fails("run_command", kittest.Args{"command": []string{"nice", "rm", "x"}}, `the command was refused and not run: the rule "rm" denies "rm x"`)
	k.Content("x")
	// What could be read in two ways is not run, whatever was approved.
	for _, arguments := range []string{`{"command":["rm","x"],"command":["go","version"]}`, `{"command":["go","version"],"command":["rm","x"]}`, `{"command":["rm","x"],"Command":["go","version"]}`, `{"command":["go","version"],"Command":["rm","x"]}`} {
		if o := k.Set.Invoke(t.Context(), tool.Call{Name: "run_command", Arguments: arguments}, output.Policy{}); !o.Failed {
			t.Errorf("%s: %s", arguments, o.Content.Display())
		}
	}
	k.Content("x")
	if _, err := RunCommand("run_command", k.Files, Options{Policy: Policy{Ask: []Rule{{}}}}); err == nil {
		t.Error("an empty rule was taken")
	}
	if _, err := RunCommand("run_command", k.Files, Options{Timeout: -1}); err == nil {
		t.Error("a negative limit was taken")
	}
}

// A5: rules that were remembered are about programs too; what is suggested to be
// remembered allows the call, and no more than its programs.
func TestCommandRemembered(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are those of Unix")
	}
	k := kittest.New(t)
	for _, shell := range []bool{false, true} {
		c, err := RunCommand("run_command", k.Files, Options{Shell: shell, Policy: Policy{Deny: []Rule{{"dd"}}}})
		if err != nil {
			t.Fatal(err)
		}
		call := func(words ...string) tool.Call {
			if shell {
				return tool.Call{Name: "run_command", Arguments: kittest.JSON(t, kittest.Args{"command": strings.Join(words, " ")})}
			}
			return tool.Call{Name: "run_command", Arguments: kittest.JSON(t, kittest.Args{"command": words})}
		}
		rules := c.Suggest(call("env", "ls"))
		if len(rules) != 1 || strings.Join(rules[0].Prefix, " ") != "ls …" || rules[0].Verdict != session.Allow {
			t.Errorf("%+v", rules)
		}
		for _, c2 := range []struct {
			call tool.Call
			want session.Verdict
		}{{call("ls", "x"), "allow"}, {call("nice", "ls"), "allow"}, {call("cat", "x"), ""}, {call("env", "dd"), "deny"}, {call("env", "ls", "dd"), "allow"}} {
			if got, _ := c.Approval(c2.call, rules); got != c2.want {
				t.Errorf("%s: %q, want %q", c2.call.Arguments, got, c2.want)
			}
		}
		if got := c.Suggest(call("timeout", "5", "ls", "-l", "./x")); len(got) != 1 || strings.Join(got[0].Prefix, " ") != "ls …" {
			t.Errorf("%+v", got)
		}
		more := append(rules, session.Rule{Verdict: session.Deny, Tool: "*", Member: "command", Prefix: []string{"ls", "-R"}}, session.Rule{Verdict: session.Ask, Tool: "*", Member: "command", Prefix: []string{"cat"}}, session.Rule{Verdict: session.Deny, Tool: "*"})
		for _, c2 := range []struct {
			call tool.Call
			want session.Verdict
		}{{call("nice", "ls", "-laR"), "deny"}, {call("ls"), "allow"}, {call("env", "cat"), "ask"}} {
			if got, _ := c.Approval(c2.call, more); got != c2.want {
				t.Errorf("%s: %q, want %q", c2.call.Arguments, got, c2.want)
			}
		}
		for _, bad := range []tool.Call{call("dd"), call("no-such-program"), call("env", "X=1", "ls"), {}} {
			if rules := c.Suggest(bad); rules != nil {
				t.Errorf("%s: %+v", bad.Arguments, rules)
			}
		}
	}
}

// Calls may run at once; each has its own output.
func TestCommandsAtOnce(t *testing.T) {
	k := commandKit(t, Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		a := helper(t, "args", fmt.Sprint(i))
		wg.Go(func() {
			o := k.Set.Invoke(t.Context(), tool.Call{Name: "run_command", Arguments: kittest.JSON(t, a)}, output.Policy{})
			if got := o.Content.Display(); got != fmt.Sprintf("[%q]", fmt.Sprint(i)) {
				t.Error(got)
			}
		})
	}
	wg.Wait()
}
