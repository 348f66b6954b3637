// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// chatML is the least template: each message with its role.
const chatML = `{%- for message in messages -%}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}{%- endfor -%}` +
	`{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}`

const words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"

// antiphon is the program, built once.
var antiphon string

func TestMain(m *testing.M) {
	if os.Getenv("ANTIPHON_SERVERS") == "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "antiphon-")
	if err != nil {
		panic(err)
	}
	antiphon = filepath.Join(dir, "antiphon")
	if out, err := exec.Command("go", "build", "-o", antiphon, "../../cmd/antiphon").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v\n%s", err, out))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// servers is the folder of .ci/servers.
func servers(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ANTIPHON_SERVERS")
	if dir == "" {
		t.Skip("ANTIPHON_SERVERS is not set: llama-server and Ollama are not asked; .ci/nightly builds them and runs this")
	}
	return dir
}

func stock(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(servers(t), "templates", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func modelFile(t *testing.T, m Model) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, m.GGUF(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// serve runs a server until the test ends, and waits until it answers.
func serve(t *testing.T, health string, env []string, program string, args ...string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt) // Ollama ends its own servers then
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
		out.Close()
	})
	for {
		if resp, err := http.Get(health); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(log)
			t.Fatalf("%s ended:\n%s", program, text)
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// llama starts llama-server with a model, and returns its base URL.
func llama(t *testing.T, m Model, port string, more ...string) string {
	t.Helper()
	args := append([]string{"-m", modelFile(t, m), "--host", "127.0.0.1", "--port", port, "--jinja", "--alias", "made-up", "--offline", "-t", "1", "-np", "1", "-c", "8192"}, more...)
	serve(t, "http://127.0.0.1:"+port+"/health", nil, filepath.Join(servers(t), "bin", "llama-server"), args...)
	return "http://127.0.0.1:" + port + "/v1"
}

// ollama starts Ollama with models by their names.
func ollama(t *testing.T, port string, models map[string]Model) string {
	t.Helper()
	program, home := filepath.Join(servers(t), "bin", "ollama"), t.TempDir()
	env := []string{"OLLAMA_HOST=127.0.0.1:" + port, "OLLAMA_MODELS=" + filepath.Join(home, "models"), "HOME=" + home, "OLLAMA_NO_CLOUD=1"}
	serve(t, "http://127.0.0.1:"+port+"/api/version", env, program, "serve")
	for name, m := range models {
		file := filepath.Join(home, "Modelfile")
		if err := os.WriteFile(file, []byte("FROM "+modelFile(t, m)+"\nTEMPLATE \"\"\""+ollamaTemplate+"\"\"\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "create", name, "-f", file)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return "http://127.0.0.1:" + port + "/v1"
}

// ollamaTemplate is chatML in Ollama's language; that it names tools makes Ollama
// offer them.
const ollamaTemplate = `{{- range .Messages }}<|im_start|>{{ .Role }}
{{ if .ToolCalls }}{{ range .ToolCalls }}<tool_call>
{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}
</tool_call>{{ end }}{{ else }}{{ .Content }}{{ end }}<|im_end|>
{{ end }}{{ if .Tools }}{{ .Tools }} {{ end }}<|im_start|>assistant
`

// outcome is how the program ended.
type outcome struct {
	code     int
	out, err string
}

// run runs the program in a folder.
func run(t *testing.T, dir string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a server may say nothing for good
	defer cancel()
	cmd := exec.CommandContext(ctx, antiphon, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it says where it waits
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "ANTIPHON_STORE=" + filepath.Join(dir, "sessions.db")}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func (o outcome) want(t *testing.T, code int, text ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d", o.code, code)
	}
	for _, s := range text {
		if !strings.Contains(o.out+o.err, s) {
			t.Errorf("nothing of %q", s)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", o.out, o.err)
	}
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// breaking passes requests on, keeps their bodies, and breaks off the first
// answers of POST after so many bytes.
type breaking struct {
	after  int
	breaks int

	mu     sync.Mutex
	bodies [][]byte
}

func (b *breaking) start(t *testing.T, base string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host },
		FlushInterval: -1,
		ModifyResponse: func(resp *http.Response) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if resp.Request.Method == http.MethodPost && resp.StatusCode == http.StatusOK && b.breaks > 0 {
				b.breaks--
				resp.Body = &cutBody{resp.Body, b.after}
			}
			return nil
		},
		ErrorLog: nil,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if r.Method == http.MethodPost {
			b.mu.Lock()
			b.bodies = append(b.bodies, body)
			b.mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + u.Path
}

type cutBody struct {
	io.ReadCloser
	left int
}

func (c *cutBody) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, context.Canceled
	}
	n, err := c.ReadCloser.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// messages are those of a request, or its items.
func messages(t *testing.T, body []byte) (list []string) {
	t.Helper()
	var in struct{ Input, Messages []json.RawMessage }
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, m := range append(in.Input, in.Messages...) {
		list = append(list, string(m))
	}
	return list
}

// last is the last message of a request, as its role and its text.
func last(t *testing.T, body []byte) (role, text string) {
	t.Helper()
	var in struct {
		Input, Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	list := append(in.Input, in.Messages...)
	return list[len(list)-1].Role, fmt.Sprint(list[len(list)-1].Content)
}
