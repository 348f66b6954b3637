// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// A file with powers is not served before somebody agreed to them, nothing but loopback is
// served, and mistakes are told before anything listens. K1 V6
func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", dir)
	powerful := write(t, filepath.Join(dir, "powerful.md"), "<config model=\"rehearsal\"/>\n<tool name=\"wipe\" command=\"true\" approval=\"allow\" description=\"x\"/>\n")
	plain := write(t, filepath.Join(dir, "plain.md"), "<config model=\"rehearsal\"/>\n")
	other := filepath.Join(t.TempDir(), "plain.md")
	write(t, other, "<config model=\"rehearsal\"/>\n")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{powerful}, []string{"wipe", "antiphon trust", "--trust"}},
		{[]string{plain, "--listen", "0.0.0.0:0"}, []string{"only loopback", "antiphon keys create"}},
		{[]string{plain, "--listen", "8799"}, []string{"--listen 8799: it is a port alone; give 127.0.0.1:8799\n"}},
		{[]string{plain, "--listen", "localhost"}, []string{"--listen localhost: missing port in address; give an address such as"}},
		{[]string{plain, other}, []string{"both be the model plain"}},
		{[]string{filepath.Join(dir, "none.md")}, []string{"none.md"}},
		{[]string{t.TempDir()}, []string{"no file that ends in .md"}},
		{[]string{plain, "--model", "gpt-5.1"}, []string{"gpt-5.1"}},
		{[]string{plain, "--webhook", "https://hooks.example"}, []string{"ANTIPHON_WEBHOOK_SECRET", "whsec_"}},
		{[]string{"--upstream", "http://127.0.0.1:8917/v1", "--listen", "127.0.0.1:8917"}, []string{"--upstream http://127.0.0.1:8917/v1", "would ask itself"}},
		{[]string{"--upstream", "a=http://localhost:8787/v1"}, []string{"would ask itself"}},
		{[]string{"--upstream", "http://localhost:1/v1", "--webhook", "https://hooks.example"}, []string{"ANTIPHON_WEBHOOK_SECRET", "whsec_"}},
	} {
		o := programEnv(t, []string{"XDG_DATA_HOME=" + dir}, append([]string{"serve"}, test.args...)...)
		if o.code != exitUsage {
			t.Errorf("%v: exit code %d, %s", test.args, o.code, o.err)
		}
		for _, want := range test.want {
			if !strings.Contains(o.err, want) {
				t.Errorf("%v: %q does not say %q", test.args, o.err, want)
			}
		}
	}
	one := t.TempDir()
	named := write(t, filepath.Join(one, "plain.md"), "<config model=\"rehearsal\"/>\n")
	o := programEnv(t, []string{"XDG_DATA_HOME=" + dir}, "serve", "--check", named, one, named) // a file and its folder are one model
	if o.code != 0 || strings.Contains(o.err, "would both be") {
		t.Errorf("exit code %d, %s %s", o.code, o.out, o.err)
	}
	o = programEnv(t, []string{"XDG_DATA_HOME=" + dir, "ANTIPHON_WEBHOOK_SECRET=0123456789abcdef"}, "serve", "--check", "--upstream", "http://localhost:1/v1", "--webhook", "https://hooks.example/of-mine")
	if o.code != 0 || !strings.Contains(o.out, "webhook: events are sent to hooks.example\n") || !strings.Contains(o.out, "all models are asked at") {
		t.Errorf("exit code %d, %s %s", o.code, o.out, o.err)
	}
	o = programEnv(t, []string{"XDG_DATA_HOME=" + dir, "ANTIPHON_WEBHOOK_SECRET=0123456789abcdef"}, "serve", plain, "--webhook", "http://hooks.example")
	if o.code != exitUsage || !strings.Contains(o.err, "https://") {
		t.Errorf("exit code %d, %s", o.code, o.err)
	}
}

// A rule is about the tools of all agents that are served: a name that no agent has is a mistake, and one
// that a single agent has may be used.
func TestServeRules(t *testing.T) {
	dir, data := t.TempDir(), "XDG_DATA_HOME="+t.TempDir()
	write(t, filepath.Join(dir, "note.md"), "<config model=\"rehearsal\"/>\n<tool name=\"read_file\"/>\n<tool name=\"read_directory\"/>\n")
	write(t, filepath.Join(dir, "quick.md"), "<config model=\"rehearsal\"/>\n")
	for _, command := range []string{"serve", "mcp"} {
		for _, args := range [][]string{{}, {"--check"}} {
			for _, flag := range []string{"--allow", "--ask", "--deny"} {
				o := programEnv(t, []string{data}, append([]string{command, dir, flag, "read_fil"}, args...)...)
				if said := o.out + o.err; o.code != exitUsage || !strings.Contains(said, flag+": no agent that is served has a tool read_fil; did you mean read_file?") {
					t.Errorf("%s %v: exit code %d, %s", command, args, o.code, said)
				}
			}
		}
		o := programEnv(t, []string{data}, command, dir, "--deny", "read_file", "--ask", "read_directory", "--allow", "x*", "--check")
		if o.code != exitOK {
			t.Errorf("%s: exit code %d, %s%s", command, o.code, o.out, o.err)
		}
	}
}

// A limit of cost does not limit a model without a price, which the operator reads before the first request.
func TestServeSaysWhatHasNoPrice(t *testing.T) {
	dir, data := t.TempDir(), "XDG_DATA_HOME="+t.TempDir()
	file := write(t, filepath.Join(dir, "note.md"), "<config model=\"rehearsal\"/>\n")
	args := []string{"serve", file, "--upstream", "tiny=http://localhost:1/v1", "--upstream", "gpt-5.1=https://api.openai.com/v1", "--upstream", "http://localhost:2/v1"}
	if o := programEnv(t, []string{data}, "keys", "create", "free"); o.code != exitOK {
		t.Fatal(o.err)
	}
	const warning = "the limit of cost of ci does not limit "
	if o := programEnv(t, []string{data}, append(args, "--check")...); o.code != exitOK || strings.Contains(o.out, "limit of cost") {
		t.Errorf("exit code %d, %s", o.code, o.out)
	}
	if o := programEnv(t, []string{data}, "keys", "create", "ci", "--cost", "5"); o.code != exitOK {
		t.Fatal(o.err)
	}
	o := programEnv(t, []string{data}, append(args, "--check")...)
	if want := "warning: " + warning + "the model note, the model tiny, the models of http://localhost:2/v1, because no price is known; give --price"; o.code != exitOK || !strings.Contains(o.out, want) {
		t.Errorf("exit code %d, %s", o.code, o.out)
	}
	if o := programEnv(t, []string{data}, append(args, "--check", "--price", "1,1,1")...); strings.Contains(o.out, warning) {
		t.Error(o.out)
	}
	if o := programEnv(t, []string{data, "ANTIPHON_PRICES=tiny=1,1,1"}, append(args, "--check")...); !strings.Contains(o.out, warning+"the model note, because") {
		t.Error(o.out)
	}
	if _, said := gatewayOf(t, []string{data}, args[1:]...); !strings.Contains(said, "antiphon: warning: "+warning+"the model note") {
		t.Error(said)
	}
}

// The operator names who is told when background responses have ended.
func TestServeWebhook(t *testing.T) {
	got := make(chan string, 1)
	to := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("webhook-signature") == "" {
			t.Errorf("%v, %v", r.Header, err)
		}
		got <- string(body)
	}))
	t.Cleanup(to.Close)
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "it.md"), "<config model=\"rehearsal\"/>\n")
	up := agenttest.NewServer(t)
	up.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("Yes.")) })
	base, _ := gatewayOf(t, []string{"ANTIPHON_WEBHOOK_SECRET=0123456789abcdef"}, file, "--upstream", up.URL, "--store", filepath.Join(dir, "s.db"), "--webhook", to.URL)
	for _, model := range []string{"it", "other"} {
		askGateway(t, base, `{"model":"`+model+`","input":"x","background":true}`)
		if body := <-got; !strings.Contains(body, `"type":"response.completed","data":{"id":"resp_`) {
			t.Errorf("%s: %s", model, body)
		}
	}
}
