// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"encoding/json"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

// needSandbox skips a test where commands are not confined.
func needSandbox(t *testing.T) {
	t.Helper()
	if s := sandbox.Available(); !s.Confines() {
		t.Skip("this system confines nothing: ", strings.Join(s.Missing, "; "))
	}
}

// needHosts skips a test where the network cannot be limited to hosts.
func needHosts(t *testing.T) {
	t.Helper()
	if !sandbox.Available().Has(sandbox.Namespaces) {
		t.Skip("this system has no namespaces")
	}
}

// A11: a command writes in the roots and in a private temporary folder, and reaches
// nothing else. The output says which permission was missing and how to ask for it.
func TestCommandIsConfined(t *testing.T) {
	needSandbox(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".ssh", "id"), []byte("a private key"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENAI_API_KEY", "a secret of the environment")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	outside := filepath.Join(t.TempDir(), "made")
	needHosts(t)
	full, hosts, network := `; to ask the user for it, call the tool again with "sandbox": "full" and a short "why"]`, `; to ask the user for it, call the tool again with "hosts": ["example.com"] and a short "why"]`, `; to ask the user for it, call the tool again with "sandbox": "network" and a short "why"]`
	for name, profile := range map[string]func(...string) sandbox.Profile{"all parts": nil, "without namespaces": withoutNamespaces} {
		t.Run(name, func(t *testing.T) {
			k, online := commandKit(t, Options{Sandbox: profile}), hosts
			if profile != nil {
				online = network
			}
			if got := k.OK("run_command", sh("echo x > made && echo y > $TMPDIR/made && cat made $TMPDIR/made")); got != "x\ny\n" || k.Content("made") != "x\n" {
				t.Errorf("%q", got)
			}
			for _, c := range []struct{ script, says string }{
				{"echo x > " + outside, "the sandbox does not allow writing outside of the workspace: " + outside + full},
				{"cat " + home + "/.ssh/id", "the sandbox does not show " + home + "/.ssh/id" + full},
				{"tr '\\0' '\\n' < /proc/" + strconv.Itoa(os.Getpid()) + "/environ", ""},
				{"exec 3<>/dev/tcp/127.0.0.1/" + port, ""},
				{"curl -sS --max-time 5 http://example.com/", "the sandbox does not allow the network: example.com" + online},
			} {
				o := k.Call("run_command", kittest.Args{"command": []string{"bash", "-c", c.script}})
				if got := o.Content.Display(); !o.Failed || !strings.HasSuffix(strings.TrimSpace(got), c.says) || strings.Contains(got, "secret") || strings.Contains(got, "private key") {
					t.Errorf("%s: %s", c.script, got)
				}
				if said, _, _ := strings.Cut(strings.TrimPrefix(c.says, "["), ";"); said != "" && !strings.Contains(o.Error, said) {
					t.Errorf("%s: a person reads only %q", c.script, o.Error)
				}
			}
			if _, err := os.Stat(outside); err == nil {
				t.Error("a file was made outside")
			}
		})
	}
}

// A11: a script that goes on after an error of the sandbox and ends with success says all the
// same what it lacked, and how to ask for it. What it prints as its result is not
// taken for errors.
func TestCommandGoesOn(t *testing.T) {
	needSandbox(t)
	k := commandKit(t, Options{})
	outside := filepath.Join(t.TempDir(), "made")
	lacks := "done\n[the sandbox does not allow writing outside of the workspace: " + outside + `; to ask the user for it, call the tool again with "sandbox": "full" and a short "why"]`
	for script, want := range map[string]string{
		"echo x > " + outside + "; echo done >&2":                           lacks,
		"touch " + outside + " 2>&1 | cat; echo done":                       lacks,
		"touch " + outside + " 2>/dev/null; echo done":                      "done",
		"echo \"touch: cannot touch '" + outside + "': Permission denied\"": outside + "': Permission denied",
	} {
		o := k.Call("run_command", kittest.Args{"command": []string{"bash", "-c", script}})
		if got := strings.TrimSpace(o.Content.Display()); o.Failed || !strings.HasSuffix(got, want) || strings.Contains(want, "[") != strings.Contains(got, "the sandbox") {
			t.Errorf("%s: %v %s", script, o.Failed, got)
		}
	}
}

// A11: what a command lacks is said also by the API's own shell, which cannot ask.
func TestShellToolIsConfined(t *testing.T) {
	needSandbox(t)
	k := kittest.New(t)
	tl, err := APITool(k.Files, Options{})
	k.Add(tl, err)
	outside := filepath.Join(t.TempDir(), "made")
	res, err := tl.Run(t.Context(), tool.Call{Arguments: kittest.JSON(t, kittest.Args{"commands": []string{"echo x > " + outside}})})
	if err != nil || len(res.Commands) != 1 {
		t.Fatalf("%+v %v", res, err)
	}
	if want := "the sandbox does not allow writing outside of the workspace: " + outside + "; only the user can allow it, with the sandbox profile full]"; !strings.HasSuffix(res.Commands[0].Stderr, want) {
		t.Errorf("%s", res.Commands[0].Stderr)
	}
}

// A11: asking for more is asked about, whatever allows the command, and an answer
// covers the command with this profile and the narrower ones.
func TestWidening(t *testing.T) {
	needHosts(t)
	k := kittest.New(t)
	call := func(profile string, words ...string) tool.Call {
		a := kittest.Args{"command": words}
		if a["why"] = "to try"; profile == sandbox.NameHosts {
			a["hosts"] = []string{"a.example", "B.example"}
		} else if profile != "" {
			a["sandbox"] = profile
		}
		return tool.Call{Name: "run_command", Arguments: kittest.JSON(t, a)}
	}
	make := func(profile func(...string) sandbox.Profile) *Command {
		c, err := RunCommand("run_command", k.Files, Options{Sandbox: profile, Policy: Policy{Allow: []Rule{{"ls"}}, Deny: []Rule{{"rm"}}}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	narrow := make(sandbox.ReadOnly)
	for _, words := range [][]string{{"touch", "x"}, {"cat", "x"}} {
		rules := narrow.Suggest(call("", words...))
		if verdict, _ := narrow.Approval(call("", words...), rules); verdict != session.Allow {
			t.Errorf("%v: an answer does not cover its own call: %q", words, verdict)
		}
		if verdict, _ := narrow.Approval(call(sandbox.NameWorkspace, words...), rules); verdict == session.Allow {
			t.Errorf("%v: an answer about read-only covers a call that may write", words)
		}
	}
	c := make(nil)
	names := append([]string{""}, sandbox.Names()[1:]...)
	for _, profile := range names {
		want := session.Allow
		if sandbox.Wider(profile, sandbox.NameWorkspace) && profile != "" {
			want = session.Ask
		}
		verdict, why := c.Approval(call(profile, "ls"), nil)
		if verdict != want || want == session.Ask && !strings.HasPrefix(why, "the command wants to run with ") {
			t.Errorf("%q: %q %s", profile, verdict, why)
		}
		if verdict, _ := c.Approval(call(profile, "rm", "x"), nil); verdict != session.Deny {
			t.Errorf("%q: %q", profile, verdict)
		}
	}
	for _, words := range [][]string{{"cat", "x"}, {"curl", "http://x.example"}} {
		for i, given := range names {
			rules := c.Suggest(call(given, words...))
			if len(rules) != 1 {
				t.Fatalf("%q %v: %+v", given, words, rules)
			}
			for j, asked := range names {
				verdict, _ := c.Approval(call(asked, words...), rules)
				// The first two are the command's own profile.
				if covered := max(j, 1) <= max(i, 1); (verdict == session.Allow) != covered {
					t.Errorf("%v: an answer about %q (%v): %q is %q", words, given, rules[0], asked, verdict)
				}
				denied := session.Rule{Verdict: session.Deny, Tool: "*", Member: rules[0].Member, Prefix: words[:1]}
				if verdict, _ := c.Approval(call(asked, words...), []session.Rule{denied}); (verdict == session.Deny) != (max(j, 1) >= max(i, 1)) && rules[0].Member != "command" {
					t.Errorf("%v: denied is %q (%v): %q is %q", words, given, denied, asked, verdict)
				}
			}
		}
	}
	// What a wider profile was set for is not asked about, and its answers say so.
	wide := make(sandbox.Full)
	if verdict, _ := wide.Approval(call("full", "ls"), nil); verdict != session.Allow {
		t.Error(verdict)
	}
	rules := wide.Suggest(call("", "cat", "x"))
	if len(rules) != 1 || rules[0].Member != "command with full" {
		t.Errorf("%+v", rules)
	}
	if verdict, _ := wide.Approval(call("", "cat", "x"), c.Suggest(call("", "cat", "x"))); verdict == session.Allow {
		t.Error("an answer about the sandbox covers what runs without one")
	}
	if verdict, _ := c.Approval(call("", "cat", "x"), rules); verdict != session.Allow {
		t.Error(verdict)
	}
}

// A11: a call that was approved runs with the profile that it asks for.
func TestWidenedCommand(t *testing.T) {
	needSandbox(t)
	k := commandKit(t, Options{})
	outside := filepath.Join(t.TempDir(), "made")
	a := sh("echo x > " + outside)
	k.Fails("run_command", a, "exit code")
	a["sandbox"], a["why"] = "full", "to write outside"
	k.OK("run_command", a)
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	a["sandbox"] = "everything"
	k.Fails("run_command", a, "sandbox")
	fixed := commandKit(t, Options{Fixed: true})
	a["sandbox"] = "network"
	fixed.Fails("run_command", a, "the sandbox of this tool is fixed, so a command cannot ask for the profile network")
	// The model may not name the profile twice.
	for _, arguments := range []string{`{"command":["ls"],"sandbox":"workspace","sandbox":"full"}`, `{"command":["ls"],"sandbox":"full","Sandbox":"workspace"}`} {
		if o := k.Set.Invoke(t.Context(), tool.Call{Name: "run_command", Arguments: arguments}, output.Policy{}); !o.Failed {
			t.Errorf("%s: %s", arguments, o.Content.Display())
		}
	}
}

// A11: an answer about hosts covers the hosts that were shown, and no others.
func TestAnswersAboutHosts(t *testing.T) {
	needHosts(t)
	k := kittest.New(t)
	make, err := sandbox.Maker("", "own.example")
	if err != nil {
		t.Fatal(err)
	}
	c, err := RunCommand("run_command", k.Files, Options{Sandbox: make})
	if err != nil {
		t.Fatal(err)
	}
	call := func(more string) tool.Call {
		return tool.Call{Name: "run_command", Arguments: `{"command":["cat","x"]` + more + "}"}
	}
	before := c.Suggest(call(`,"hosts":["b.example","*.a.example"]`))
	if len(before) != 1 || before[0].Member != "command with hosts *.a.example, b.example, own.example" {
		t.Fatalf("%+v", before)
	}
	for _, a := range []struct {
		more string
		want session.Verdict
		why  string
	}{
		{``, session.Allow, ""},
		{`,"sandbox":"workspace"`, session.Allow, ""},
		{`,"hosts":["own.example"]`, session.Allow, ""},
		{`,"hosts":["B.example."]`, session.Allow, ""},
		{`,"hosts":["x.a.example","b.example"]`, session.Allow, ""},
		{`,"hosts":["c.example","own.example","b.example"]`, session.Ask, "with the network to b.example, c.example: it could"},
		{`,"hosts":["a.example"]`, session.Ask, "with the network to a.example: it could"},
		{`,"hosts":["b.example:8443"]`, session.Ask, "with the network to b.example:8443: it could"},
		{`,"hosts":["b.example:443"]`, session.Ask, "with the network to b.example:443: it could"},
		{`,"sandbox":"network"`, session.Ask, "to anybody"},
		{`,"sandbox":"full"`, session.Ask, "all your permissions"},
		{`,"hosts":["https://b.example/"]`, session.Deny, "is not the name of a host"},
		{`,"hosts":[],"sandbox":"network"`, session.Ask, "to anybody"},
		{`,"hosts":["b.example"],"sandbox":"network"`, session.Deny, "hosts are for the profile hosts, and the profile is network"},
	} {
		if verdict, why := c.Approval(call(a.more), before); verdict != a.want || !strings.Contains(why, a.why) {
			t.Errorf("%s: %q %s", a.more, verdict, why)
		}
	}
	// A rule that denies holds for what reaches as much, and if it cannot be read.
	for more, want := range map[string]bool{
		``: false, `,"hosts":["c.example"]`: false, `,"hosts":["b.example"]`: true, `,"hosts":["*.example"]`: true, `,"sandbox":"network"`: true, `,"sandbox":"full"`: true,
	} {
		for member, denies := range map[string]bool{"command with hosts b.example": want, "command with everything": true, "directory": false} {
			rule := session.Rule{Verdict: session.Deny, Tool: "*", Member: member, Prefix: []string{"cat"}}
			if verdict, _ := c.Approval(call(more), []session.Rule{rule}); (verdict == session.Deny) != denies {
				t.Errorf("%s with %v: %q", more, rule, verdict)
			}
		}
	}
}

// A11: a call says with which profile it would run.
func TestSandboxOfCalls(t *testing.T) {
	needHosts(t)
	k := kittest.New(t)
	for arguments, want := range map[string]string{
		`{"command":["ls"]}`:                                     "workspace",
		`{"command":["ls"],"sandbox":"workspace"}`:               "workspace",
		`{"command":["ls"],"hosts":["B.example","*.a.example"]}`: "hosts *.a.example b.example",
		`{"command":["ls"],"sandbox":"network"}`:                 "network",
		`{"command":["ls"],"sandbox":"full"}`:                    "full",
		`{"command":["ls"],"sandbox":"none"}`:                    "",
		`{"command":5}`:                                          "",
	} {
		c, err := RunCommand("run_command", k.Files, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Sandbox(tool.Call{Arguments: arguments}); got != want {
			t.Errorf("%s: %q", arguments, got)
		}
	}
	api, err := APITool(k.Files, Options{Sandbox: sandbox.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	if got := api.(*shell).Sandbox(tool.Call{Arguments: `{"commands":["ls"]}`}); got != "read-only" {
		t.Errorf("%q", got)
	}
}

// A11: a command that succeeds without the network is not said to need it: nobody should be asked about a
// program's reports to its makers. What failed is said, as it is of a command that fails.
func TestCommandDoesWithoutNetwork(t *testing.T) {
	needSandbox(t)
	k := commandKit(t, Options{})
	const line, all = "echo 'curl: (6) Could not resolve host: example.com' >&2; ", "the command succeeded all the same; if its result lacks what you need: to ask the user for it"
	for script, without := range map[string]bool{
		line + "exit 0": true, line + "exit 1": false, line + "echo x > /usr/x; exit 0": false,
	} {
		said := k.Call("run_command", kittest.Args{"command": []string{"sh", "-c", script}}).Content.Display()
		if !strings.Contains(said, "the sandbox does not allow the network: example.com") || !strings.Contains(said, "to ask the user for it") || strings.Contains(said, all) != without {
			t.Errorf("%s: %s", script, said)
		}
	}
}

// A11: a call that asks for the host that was refused reaches it, and what it lacks then is
// something else. Nothing that a result proposes was granted before.
func TestAskingForHosts(t *testing.T) {
	needHosts(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	k := commandKit(t, Options{})
	asking := regexp.MustCompile(`call the tool again with ("[a-z]+": (?:"[a-z]+"|\[[^]]*\])) and a short "why"`)
	for name, script := range map[string]string{
		"one host":            "curl -sSf --max-time 5 http://one.invalid/ http://two.invalid:8080/",
		"without the proxy":   "curl -sSf --noproxy '*' --max-time 5 http://one.invalid/",
		"without a name":      "echo 'connect: Network is unreachable'; exit 1",
		"a private address":   "curl -sSf --max-time 5 http://localhost/",
		"and the disk":        "curl -sSf --max-time 5 http://one.invalid/; echo x > /usr/x",
		"a name that is none": "curl -sSf --max-time 5 http://127.1:9/",
	} {
		seen := map[string]bool{}
		args := kittest.Args{"command": []string{"sh", "-c", script}}
		for {
			o := k.Call("run_command", args)
			said := strings.Replace(o.Content.Display(), `"hosts", a list of the hosts that it needs,`, `"hosts": ["known.invalid"]`, 1)
			m := asking.FindStringSubmatch(said)
			if !o.Failed || m == nil {
				if strings.Contains(said, "the sandbox") {
					t.Errorf("%s: nothing is proposed: %s", name, said)
				}
				break
			}
			if seen[m[1]] {
				t.Errorf("%s: %s is proposed again: %s", name, m[1], o.Content.Display())
				break
			}
			seen[m[1]] = true
			args = kittest.Args{"command": args["command"], "why": "to try"}
			var more map[string]any
			if err := json.Unmarshal([]byte("{"+m[1]+"}"), &more); err != nil {
				t.Fatal(err)
			}
			maps.Copy(args, more)
		}
		if len(seen) == 0 {
			t.Errorf("%s: nothing was proposed", name)
		}
	}
}

// A11: a command cannot change hooks of git, nor the files that the tool protects, and says
// so; what it makes that git would obey is named for the user.
func TestCommandPlantsNothing(t *testing.T) {
	needSandbox(t)
	if !sandbox.Available().Has(sandbox.Namespaces) {
		t.Skip("without namespaces it is reported only")
	}
	k := commandKit(t, Options{})
	k.Write(".git/config", "[core]\n")
	k.Write("agent.md", "mine")
	k.Files.Protect(filepath.Join(k.Dir, "agent.md"))
	full := `; to ask the user for it, call the tool again with "sandbox": "full" and a short "why"]`
	for script, says := range map[string]string{
		"echo x > .git/hooks/pre-commit": "the sandbox does not allow changing .git/hooks/pre-commit, which other programs of the user run or obey" + full,
		"echo x > agent.md":              "the sandbox does not allow changing agent.md, which other programs of the user run or obey" + full,
		"mv agent.md x":                  "the sandbox does not allow changing agent.md, which other programs of the user run or obey" + full,
		"rm .git/config":                 "the sandbox does not allow changing .git/config, which other programs of the user run or obey" + full,
	} {
		if got := k.Call("run_command", sh(script)).Content.Display(); !strings.Contains(got, says) {
			t.Errorf("%s: %s", script, got)
		}
	}
	got := k.OK("run_command", sh("mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/post-checkout; echo done"))
	if want := "done\n[tell the user to look at this before using it: " + k.Dir + "/sub/.git/hooks/post-checkout is new: git may run it]"; got != want {
		t.Errorf("%q", got)
	}
}

// A11: a command that replaces the folder of another agent by a link opens nothing to it.
// Neither does one that replaces a folder of PATH.
func TestReplacedRoot(t *testing.T) {
	needSandbox(t)
	secret := filepath.Join(t.TempDir(), "bin")
	if err := errors.Join(os.Mkdir(secret, 0o700), os.WriteFile(secret+"/token", []byte("TOKEN"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, profile := range map[string]func(...string) sandbox.Profile{"usual": nil, "without namespaces": withoutNamespaces} {
		t.Run(name, func(t *testing.T) {
			k := kittest.New(t)
			k.Write("sub/bin/x", "")
			k.Write("venv/bin/x", "")
			t.Setenv("PATH", os.Getenv("PATH")+":"+filepath.Join(k.Dir, "venv", "bin"))
			inner, err := files.Open(files.Root{Path: filepath.Join(k.Dir, "sub")})
			if err != nil {
				t.Fatal(err)
			}
			defer inner.Close()
			run := func(f *files.Files) tool.Outcome {
				c, err := RunCommand("run_command", f, Options{Sandbox: profile})
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"sub", "venv/bin"} {
					if f == inner {
						dir := filepath.Join(k.Dir, name)
						if err := errors.Join(os.RemoveAll(dir), os.Symlink(secret, dir)); err != nil {
							t.Fatal(err)
						}
					}
				}
				set, err := tool.NewSet(c)
				if err != nil {
					t.Fatal(err)
				}
				return set.Invoke(t.Context(), tool.Call{Name: "run_command", Arguments: kittest.JSON(t, sh("echo evil > new; cat bin/token "+secret+"/token"))}, output.Policy{})
			}
			o := run(inner)
			if text := o.Content.Display(); !o.Failed || strings.Contains(text, "TOKEN") || !strings.Contains(text, "leads to "+secret+" now") {
				t.Error(text)
			}
			if text := run(k.Files).Content.Display(); strings.Contains(text, "TOKEN") {
				t.Errorf("through PATH: %s", text)
			}
			if entries, err := os.ReadDir(secret); err != nil || len(entries) != 1 {
				t.Error(entries, err)
			}
		})
	}
}
