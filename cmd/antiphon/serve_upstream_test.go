// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// gatewayOf runs antiphon serve with upstreams, and returns where it listens and what it
// says first.
func gatewayOf(t *testing.T, env []string, args ...string) (base, said string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	env = append([]string{"XDG_CONFIG_HOME=" + t.TempDir(), "XDG_DATA_HOME=" + t.TempDir()}, env...) // removed after the server has ended
	go func() {
		code <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), env, stdio{strings.NewReader(""), io.Discard, w})
		w.Close()
	}()
	t.Cleanup(func() {
		go func() { _, _ = io.Copy(io.Discard, r) }()
		stop()
		if c := <-code; c != 0 {
			t.Errorf("exit code %d", c)
		}
	})
	at := regexp.MustCompile(`http://127\.0\.0\.1:\d+/v1; to try it:\n`)
	var buf bytes.Buffer
	for !at.Match(buf.Bytes()) {
		b := make([]byte, 1000)
		n, err := r.Read(b)
		buf.Write(b[:n])
		if err != nil {
			t.Fatalf("%v: %s", err, buf.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	base, _, _ = strings.Cut(at.FindString(buf.String()), ";")
	return base, buf.String()
}

func askGateway(t *testing.T, base, body string) string {
	t.Helper()
	status, text := post(t, base+"/responses", body)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	return text
}

// post sends JSON to a server, and returns its answer.
func post(t *testing.T, url, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	own := new(http.Transport)
	defer own.CloseIdleConnections()
	resp, err := (&http.Client{Transport: own}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%d %s %v", resp.StatusCode, b, err)
	}
	return resp.StatusCode, string(b)
}

// getText reads what a server has at a URL.
func getText(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := new(http.Transport)
	defer own.CloseIdleConnections()
	resp, err := (&http.Client{Transport: own}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", url, resp.StatusCode, text, err)
	}
	return string(text)
}

// Models select their upstream, and each key goes only to the host that it is for. B5
func TestServeUpstreams(t *testing.T) {
	upstream := func(words string) *agenttest.Server {
		s := agenttest.NewServer(t)
		s.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant(words)) })
		return s
	}
	one, two, three := upstream("I am one."), upstream("I am two."), upstream("I am three.")
	host := strings.TrimSuffix(strings.TrimPrefix(two.URL, "http://"), "/v1")
	base, said := gatewayOf(t, []string{"OPENAI_API_KEY=sk-of-the-environment-1", "OPENAI_BASE_URL=" + one.URL, "TWO_KEY=sk-of-the-second-22"},
		"--upstream", one.URL, "--upstream", "big-*="+two.URL, "--upstream", "local/="+three.URL+"/responses", "--upstream-key", "TWO_KEY@"+host, "--price", "1,1,1")
	for model, want := range map[string]string{"any": "I am one.", "big-1": "I am two.", "local/big-2": "I am three."} {
		if got := askGateway(t, base, `{"model":"`+model+`","input":"a"}`); !strings.Contains(got, want) || !strings.Contains(got, `"model":"`+model+`"`) {
			t.Errorf("%s: %s", model, got)
		}
	}
	for s, want := range map[*agenttest.Server]string{one: "Bearer sk-of-the-environment-1", two: "Bearer sk-of-the-second-22", three: ""} {
		if got := s.Requests()[0].Header.Get("Authorization"); got != want {
			t.Errorf("%s received %q, want %q", s.URL, got, want)
		}
	}
	if sent := string(three.Requests()[0].Body); !strings.Contains(sent, `"model":"big-2"`) {
		t.Errorf("sent %s", sent)
	}
	metrics := getText(t, strings.TrimSuffix(base, "/v1")+"/metrics")
	for _, model := range []string{"any", "big-1", "local/big-2"} { // and each costs what --price says
		if !regexp.MustCompile(`server_cost_total\{agent="` + model + `",[^}]*\} [1-9]`).MatchString(metrics) {
			t.Errorf("%s costs nothing: %s", model, metrics)
		}
	}
	if strings.Contains(said, "sk-of") || strings.Count(said, "with a key") != 2 || strings.Count(said, "without a key") != 1 {
		t.Errorf("said %s", said)
	}
}

// Agents and the upstreams beside them have the same files.
func TestServeFilesBeside(t *testing.T) {
	up, dir := agenttest.NewServer(t), t.TempDir()
	up.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("Yes.")) })
	file := write(t, filepath.Join(dir, "it.md"), "<config model=\"rehearsal\"/>\n")
	base, _ := gatewayOf(t, nil, file, "--upstream", up.URL, "--store", filepath.Join(dir, "s.db"))
	form := "--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"one.txt\"\r\n\r\nThe first.\r\n--x--\r\n"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/files", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	own := new(http.Transport)
	defer own.CloseIdleConnections()
	resp, err := (&http.Client{Transport: own}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	id := regexp.MustCompile(`file-[a-z0-9]+`).FindString(string(text))
	if err != nil || resp.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("%d %s %v", resp.StatusCode, text, err)
	}
	for _, model := range []string{"it", "other"} {
		made := askGateway(t, base, `{"model":"`+model+`","input":[{"role":"user","content":[{"type":"input_file","file_id":"`+id+`"}]}]}`)
		said := regexp.MustCompile(`resp_\w+`).FindString(made)
		if items := getText(t, base+"/responses/"+said+"/input_items"); !strings.Contains(items, "VGhlIGZpcnN0Lg==") {
			t.Errorf("%s: %s", model, items)
		}
	}
	if sent := string(up.Requests()[0].Body); !strings.Contains(sent, "VGhlIGZpcnN0Lg==") {
		t.Errorf("sent %s", sent)
	}
}

// Tokens are counted by asking for a reply only at the hosts that --counted names.
func TestServeUpstreamCounts(t *testing.T) {
	one, two := agenttest.StartLocal(t, &agenttest.Local{Text: "Well."}), agenttest.StartLocal(t, &agenttest.Local{Text: "Well."})
	base, _ := gatewayOf(t, nil, "--api", "chat", "--upstream", "one="+one.URL, "--upstream", "two="+two.URL,
		"--counted", strings.TrimSuffix(strings.TrimPrefix(one.URL, "http://"), "/v1"))
	for model, want := range map[string]int{"one": http.StatusOK, "two": http.StatusBadRequest} {
		if status, text := post(t, base+"/responses/input_tokens", `{"model":"`+model+`","input":"How many?"}`); status != want || strings.Contains(text, `"input_tokens":0`) {
			t.Errorf("%s: %d %s", model, status, text)
		}
	}
	if n, m := len(one.Requests()), len(two.Requests()); n != 1 || m != 0 {
		t.Errorf("%d and %d requests", n, m)
	}
}

// Mistakes are told before anything listens.
func TestServeUpstreamRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "--upstream URL"},
		{[]string{"--upstream", "localhost:8000"}, "http://localhost:8000"},
		{[]string{"--upstream", "http://127.0.0.1:1", "--upstream-key", "MINE@127.0.0.1:1"}, "MINE is not set"},
		{[]string{"--upstream", "http://127.0.0.1:1", "--upstream-key", "PATH"}, "NAME@HOST"},
		{[]string{"--upstream", "http://127.0.0.1:1", "--upstream-key", "PATH@elsewhere"}, "no --upstream is at elsewhere"},
		{[]string{"--upstream", "http://127.0.0.1:1", "--counted", "elsewhere"}, "no --upstream is at elsewhere"},
		{[]string{"--upstream", "http://127.0.0.1:1", "--api", "soap"}, "soap"},
		{[]string{"--upstream", "http://127.0.0.1:1", "--profile", "soap"}, "soap"},
	} {
		o := programEnv(t, []string{"PATH=/bin"}, append([]string{"serve"}, tt.args...)...)
		if o.code != exitUsage || !strings.Contains(o.err, tt.want) {
			t.Errorf("%v: exit code %d, %s; want %q", tt.args, o.code, o.err, tt.want)
		}
	}
}
