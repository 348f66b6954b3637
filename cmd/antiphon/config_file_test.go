// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// Every flag can be in the file, and is read as on the command line, which has precedence.
func TestConfigFile(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "serve.conf"), `# a server
listen = 127.0.0.1:9999
agents = one folder
agents = more.md
trust = true
deny = wipe, burn
deny = drown
upstream = gpt-*=http://localhost:1/v1?a=b,c
upstream = http://localhost:2/v1
  max-runs  =  7
drain-time = 90s
log = json
env = A@host
`)
	var cli grammar
	parser, err := kong.New(&cli, kong.Name("antiphon"), kong.ExplicitGroups(flagGroups))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"serve", "--config", path, "--max-runs", "3", "--listen=127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	c := cli.Serve
	c.take()
	got := fmt.Sprintf("%q %q %v %q %q %d %v %s %q", c.Listen, c.Files, c.Trust, c.Deny, c.Upstream, c.MaxRuns, c.Drain, c.Log, c.Env)
	want := `"127.0.0.1:1" ["one folder" "more.md"] true ["wipe" "burn" "drown"] ["gpt-*=http://localhost:1/v1?a=b,c" "http://localhost:2/v1"] 3 1m30s json ["A@host"]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, command := range parser.Model.Children {
		if command.Name != "serve" && command.Name != "mcp" {
			continue
		}
		for _, group := range command.AllFlags(false) {
			for _, f := range group { // a file that says the default again changes nothing
				value := map[string]string{"bool": "false", "int": "1", "int64": "1", "time.Duration": "1s"}[f.Target.Type().String()]
				if f.Enum != "" {
					value, _, _ = strings.Cut(f.Enum, ",")
				}
				if value == "" {
					value = "x"
				}
				text := f.Name + " = " + value + "\n"
				if _, err := parseConfig("f", []byte(text), command); (err == nil) == (f.Name == "config" || f.Name == "check" || f.Name == "help") {
					t.Errorf("%s, %s: %v", command.Name, strings.TrimSpace(text), err)
				}
			}
		}
	}
}

// What is wrong in the file is told with its place and a hint, and nothing listens.
func TestConfigFileRefuses(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string][]string{
		"\nlisten 127.0.0.1:9":            {":2:1:", "KEY = VALUE"},
		"# x\n\n  liste = 127.0.0.1:9":    {":3:3:", `"liste"`, "did you mean listen?"},
		"soap = 1":                        {":1:1:", `"soap" is not a flag of antiphon serve`, "keys are", "listen"},
		"--listen = x":                    {":1:1:", "no dashes in front: listen"},
		"config = x":                      {":1:1:", "is for the command line"},
		"help = true":                     {":1:1:", "is for the command line"},
		"listen =":                        {":1:1:", "listen is empty"},
		`listen = "127.0.0.1:9"`:          {":1:1:", "without quotes"},
		"max-runs = 1 # c":                {":1:1:", "a comment needs a line of its own"},
		"max-runs = many":                 {":1:1:", `"many" is not a whole number`, "--max-runs: Make at most N responses"},
		"drain-time = soon":               {":1:1:", `"soon" is not a time`},
		"trust = perhaps":                 {":1:1:", "trust"},
		"log = loud":                      {":1:1:", `"loud"`, "off, text, json"},
		"listen = a:1\nlisten = b:1":      {":2:1:", "has a value already"},
		"agents = " + dir + "/none.md":    {"none.md"},
		"model = m\nlisten = 0.0.0.0:0\n": {"at least one agent"},
	} {
		path := write(t, filepath.Join(dir, "serve.conf"), text)
		o := programEnv(t, []string{"XDG_DATA_HOME=" + dir}, "serve", "--config", path)
		if o.code != exitUsage {
			t.Errorf("%q: exit code %d, %s", text, o.code, o.err)
		}
		for _, part := range want {
			if !strings.Contains(o.err, part) {
				t.Errorf("%q: %q is not in %s", text, part, o.err)
			}
		}
	}
	open := write(t, filepath.Join(dir, "open.conf"), "trust = true\n")
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	bad := []string{filepath.Join(dir, "absent"), dir}
	if runtime.GOOS != "windows" { // there the permissions are not looked at
		bad = append(bad, open)
	}
	for _, path := range bad {
		if o := programEnv(t, nil, "serve", "--config", path); o.code != exitUsage || !strings.Contains(o.err, "--config") {
			t.Errorf("%s: exit code %d, %s", path, o.code, o.err)
		}
	}
}

// A URL that names its API and an --api that names another one are refused.
func TestUpstreamOfTwoAPIs(t *testing.T) {
	for url, api := range map[string]string{"http://127.0.0.1:9/v1/responses": "chat", "http://127.0.0.1:9/v1/chat/completions/": "responses"} {
		if o := programEnv(t, nil, "serve", "--upstream", url, "--api", api, "--check"); o.code != exitUsage || !strings.Contains(o.err, "leave --api out") {
			t.Errorf("%s, %s: exit code %d: %s%s", url, api, o.code, o.out, o.err)
		}
	}
}

// --check says what would be served, with which powers, where and for which keys, and makes
// nothing. What would be refused is exit code 2.
func TestServeCheck(t *testing.T) {
	dir := t.TempDir()
	env := []string{"XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "OPENAI_API_KEY=" + testKey}
	agents := filepath.Join(dir, "agents")
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(agents, "plain.md"), "<config model=\"rehearsal\"/>\n")
	write(t, filepath.Join(agents, "broken.md"), "<tool name=\"x\"/>\n")
	powerful := write(t, filepath.Join(dir, "powerful.md"), "<config model=\"rehearsal\"/>\n<tool name=\"wipe\" command=\"true\" approval=\"allow\" description=\"x\"/>\n")
	check := func(code int, args ...string) string {
		t.Helper()
		o := programEnv(t, env, append([]string{"serve", "--check"}, args...)...)
		if o.code != code {
			t.Errorf("%v: exit code %d: %s%s", args, o.code, o.out, o.err)
		}
		return o.out
	}
	said := func(text string, want ...string) {
		t.Helper()
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in\n%s", part, text)
			}
		}
	}
	said(check(exitOK, agents, "--upstream", "big-*=http://127.0.0.1:1/v1", "--store", filepath.Join(dir, "s.db")),
		"model plain: ", "the rehearsal model", "model broken: left out: ", "the models big-* are asked at http://127.0.0.1:1/v1", "without a key", "sessions: "+filepath.Join(dir, "s.db"), "listens: 127.0.0.1:8787, http", "keys: none")
	said(check(exitUsage, powerful), "model powerful: ", "wipe", "refused: nobody has agreed", "antiphon trust")
	said(check(exitOK, powerful, "--trust"), "--trust agrees")
	said(check(exitUsage, agents, "--listen", "0.0.0.0:1"), "refused: ", "only loopback")
	said(check(exitOK, agents, "--base-path", "/a/b", "--cors-origin", "https://app.example", "--cors-origin", "http://localhost:5173"),
		"http, below /a/b/", "pages of https://app.example may", "pages of http://localhost:5173 may")
	said(check(exitOK, agents, "--listen", "0.0.0.0:1", "--oidc-issuer", "https://login.example", "--oidc-audience", "api", "--oidc-project", "tenant", "--oidc-scope", "a=b=models"),
		"tokens of https://login.example for api: the project is the claim tenant", "listens: 0.0.0.0:1")
	for _, bad := range [][]string{
		{"--base-path", "a"}, {"--cors-origin", "*"}, {"--oidc-audience", "api"}, {"--oidc-issuer", "https://login.example", "--oidc-audience", "api"},
		{"--oidc-issuer", "http://login.example", "--oidc-audience", "api", "--oidc-project", "sub"},
		{"--oidc-issuer", "https://login.example", "--oidc-audience", "api", "--oidc-project", "sub", "--oidc-scope", "models"},
	} {
		check(exitUsage, append([]string{agents}, bad...)...)
	}
	said(check(exitUsage, agents, "--tls-cert", powerful, "--tls-key", powerful), "refused: ")
	if out := check(exitOK, agents, "--store", "postgres://me:secret@127.0.0.1:1/x"); strings.Contains(out, "secret") || !strings.Contains(out, "sessions: postgres://…") {
		t.Error(out)
	}
	if o := programEnv(t, env, "keys", "create", "ci", "--project", "shop", "--requests", "60"); o.code != exitOK {
		t.Fatal(o.err)
	}
	said(check(exitOK, agents, "--listen", "0.0.0.0:1"), "key ci: project shop, models,read, 60 requests/min, valid", "listens: 0.0.0.0:1")
	conf := write(t, filepath.Join(dir, "serve.conf"), "agents = "+agents+"\nlisten = unix:"+filepath.Join(dir, "s")+"\n")
	said(check(exitOK, "--config", conf), "model plain", "listens: unix:"+filepath.Join(dir, "s"))
	if o := programEnv(t, env, "mcp", "--check", "--config", write(t, filepath.Join(dir, "mcp.conf"), "agents = "+agents+"\n")); o.code != exitOK || !strings.Contains(o.out, "tool plain: ") {
		t.Errorf("exit code %d: %s%s", o.code, o.out, o.err)
	}
	for _, name := range []string{"s", "s.db", "antiphon/sessions.db", "antiphon/usage"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// One server has agents and upstreams: a name is first that of an agent. /metrics and
// antiphon usage count both.
func TestServeBoth(t *testing.T) {
	dir := t.TempDir()
	env := []string{"XDG_DATA_HOME=" + dir, "OPENAI_API_KEY=" + testKey}
	write(t, filepath.Join(dir, "it.script"), "turn\n  say I am the agent.\nagain\nturn\n  say I am the agent.\n")
	agent := write(t, filepath.Join(dir, "it.md"), "<config model=\"rehearsal:it.script\"/>\n")
	upstream := agenttest.NewServer(t)
	upstream.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Completed(item.Assistant("I am another."))
	})
	t.Run("serve", func(t *testing.T) { // it ends before its usage is read
		base, said := gatewayOf(t, env, agent, "--upstream", upstream.URL, "--store", filepath.Join(dir, "s.db"))
		if !strings.Contains(said, "the model it is") || !strings.Contains(said, "all other models") {
			t.Error(said)
		}
		for model, want := range map[string]string{"it": "I am the agent.", "that": "I am another."} {
			first := askGateway(t, base, `{"model":"`+model+`","input":"a"}`)
			id := regexp.MustCompile(`"id":"(resp_[^"]+)"`).FindStringSubmatch(first)
			if !strings.Contains(first, want) || id == nil {
				t.Fatalf("%s: %s", model, first)
			}
			if next := askGateway(t, base, `{"model":"`+model+`","input":"b","previous_response_id":"`+id[1]+`"}`); !strings.Contains(next, want) {
				t.Errorf("%s: %s", model, next)
			}
		}
		if got := upstream.Requests()[0].Header.Get("Authorization"); got != "" {
			t.Errorf("the upstream received the key of the environment: %q", got)
		}
		metrics := getText(t, strings.TrimSuffix(base, "/v1")+"/metrics")
		for _, line := range []string{
			`antiphon_server_responses_total{agent="it",project="",status="completed"} 2`, `antiphon_server_responses_total{agent="that",project="",status="completed"} 2`,
			`antiphon_server_request_seconds_count{route="POST /v1/responses",status="200"} 4`, `antiphon_server_responses_running 0`,
		} {
			if !strings.Contains(metrics, line) {
				t.Errorf("%s is not in\n%s", line, metrics)
			}
		}
		if getText(t, strings.TrimSuffix(base, "/v1")+"/readyz") != "ok\n" {
			t.Error("not ready")
		}
	})
	for by, want := range map[string]string{"agent": `(?m)^it +2 `, "model": `(?m)^that +2 `, "project": `(?m)^- +4 `, "day": `(?m)^2\d{3}-\d\d-\d\d +4 `, "key": `(?m)^- +4 `, "session": `(?m)^api-[a-z2-7]{26} +2 `} {
		if o := programEnv(t, env, "usage", "--by", by); o.code != exitOK || !regexp.MustCompile(want).MatchString(o.out) {
			t.Errorf("%s: exit code %d, %s%s", by, o.code, o.out, o.err)
		}
	}
	if o := programEnv(t, env, "usage", "--json", "--since", "1d"); o.code != exitOK || !strings.Contains(o.out, `"responses": 4`) {
		t.Error(o.code, o.out, o.err)
	}
}
