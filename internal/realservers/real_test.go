// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Any machine: the file begins as it should, and is the same each time.
func TestModelIsTheSame(t *testing.T) {
	a, b := Model{Template: chatML, Says: words}.GGUF(), Model{Template: chatML, Says: words}.GGUF()
	if !bytes.Equal(a, b) || !bytes.HasPrefix(a, []byte("GGUF\x03\x00\x00\x00")) {
		t.Errorf("%d and %d bytes", len(a), len(b))
	}
}

// dot is a PNG of one pixel.
const dot = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82"

var counting = Model{Template: chatML, Says: words}

// P6: what was said before a reply broke off is there once, however often that
// happens, and the request that goes on does not end with the assistant, which
// these servers would go on with.
func TestBrokenRepliesAreNotDoubled(t *testing.T) {
	for _, server := range []string{"llama-server", "Ollama"} {
		for _, api := range []string{"responses", "chat"} {
			t.Run(server+" "+api, func(t *testing.T) {
				servers(t)
				base := ""
				if server == "Ollama" {
					base = ollama(t, freePort(t), map[string]Model{"made-up": counting})
				} else {
					base = llama(t, counting, freePort(t))
				}
				b := &breaking{after: 2200, breaks: 2}
				dir := folder(t, map[string]string{"plain.md": "<user>Count.</user>\n"})
				args := []string{"run", "plain.md", "--base-url", b.start(t, base), "--model", "made-up", "--session", "s", "--api", api}
				run(t, dir, args...).want(t, 3, "run it again to go on")
				run(t, dir, args...).want(t, 3, "run it again to go on")
				run(t, dir, args...).want(t, 0, "twenty")
				if role, text := last(t, b.bodies[len(b.bodies)-1]); role == "assistant" {
					t.Errorf("the request ends with the assistant's %q", text)
				}
			})
		}
	}
}

// S11: half an answer is not a whole one, whatever the status says.
func TestCutAtMaxTokens(t *testing.T) {
	servers(t)
	dir := folder(t, map[string]string{"a.md": "<config max_tokens=\"16\"/>\n<user>Count.</user>\n"})
	for name, base := range map[string]string{
		"llama-server": llama(t, counting, freePort(t)),
		"Ollama":       ollama(t, freePort(t), map[string]Model{"made-up": counting}),
	} {
		for _, api := range []string{"responses", "chat"} {
			t.Run(name+" "+api, func(t *testing.T) {
				run(t, dir, "run", "a.md", "--base-url", base, "--model", "made-up", "--api", api).want(t, 3)
			})
		}
	}
}

// E8: Ollama drops the beginning of a history that its context cannot hold, and
// answers as if nothing were; the run says so, and does not go on.
func TestCutHistory(t *testing.T) {
	servers(t)
	dir := folder(t, map[string]string{"a.md": "<user>Count.</user>\n"})
	base := ollama(t, freePort(t), map[string]Model{"made-up": counting})
	long := strings.Repeat("word ", 500) // a token a byte
	args := []string{"run", "a.md", long, "--base-url", base, "--profile", "ollama", "--model", "made-up", "--session", "s"}
	run(t, dir, args...).want(t, 0, "twenty")
	o := run(t, dir, args...)
	if o.code == 0 { // the window is told once the model runs
		o = run(t, dir, args...)
	}
	o.want(t, 3, "its context is full", "--compact auto")
}

// A call of a tool, its output and what the model says of it.
func TestToolCall(t *testing.T) {
	servers(t)
	m := Model{Template: stock(t, "Qwen-Qwen3-0.6B.jinja"), Calls: `{"name": "read_file", "arguments": {"path": "notes.txt"}}`, Says: "That is it."}
	dir := folder(t, map[string]string{"a.md": "<tool name=\"read_file\"/>\n<user>What is in notes.txt?</user>\n", "notes.txt": "a note\n"})
	base := llama(t, m, freePort(t))
	for _, api := range []string{"responses", "chat"} {
		t.Run(api, func(t *testing.T) {
			o := run(t, dir, "run", "a.md", "--base-url", base, "--model", "made-up", "--api", api, "--max-turns", "3")
			if !strings.Contains(o.err, "read_file") {
				o.want(t, 0, "-> read_file")
			}
			if regexp.MustCompile(`not sent.*(instructions|first message)`).MatchString(o.err) { // what moved is not lost
				t.Errorf("%s", o.err)
			}
		})
	}
}

// B8: templates that want user and assistant by turns get them so: two messages of
// the user in a row, what follows a reply that says nothing, and a summary behind
// what the user said.
func TestAlternatingTemplates(t *testing.T) {
	servers(t)
	long := strings.Repeat("word ", 100)
	for name, m := range map[string]Model{
		"gemma":  {Template: stock(t, "google-gemma-2-2b-it.jinja"), Says: words},
		"nemo":   {Template: stock(t, "mistralai-Mistral-Nemo-Instruct-2407.jinja")}, // its prompt does not end in a newline
		"small":  {Template: stock(t, "Mistral-Small-3.2-24B-Instruct-2506.jinja")},
		"chatml": counting,
	} {
		base := llama(t, m, freePort(t))
		for _, api := range []string{"responses", "chat"} {
			t.Run(name+" "+api, func(t *testing.T) {
				dir := folder(t, map[string]string{"a.md": "<user>First.</user>\n"})
				where := []string{"--base-url", base, "--model", "made-up", "--api", api}
				ask := func(prompt string) {
					t.Helper()
					o := run(t, dir, append([]string{"run", "a.md", prompt, "--session", "s"}, where...)...)
					if m.Says != "" {
						o.want(t, 0, "twenty")
					}
					if strings.Contains(o.err, "400 Bad Request") || strings.Contains(o.err, "alternate") {
						t.Errorf("%q is refused:\n%s", prompt, o.err)
					}
				}
				for _, prompt := range []string{"Second.", long, long, "Fifth."} {
					ask(prompt)
				}
				o := run(t, dir, append([]string{"sessions", "compact", "s", "--keep", "1"}, where...)...)
				if m.Says != "" {
					o.want(t, 0, "by summary")
				}
				ask("Sixth.")
			})
		}
	}
}

// T12: an image that a model without eyes cannot take, which llama-server says
// with the status of an outage, does not end the session; nor does it come back.
func TestImageInHistory(t *testing.T) {
	servers(t)
	base := llama(t, counting, freePort(t))
	for _, api := range []string{"responses", "chat"} {
		t.Run(api, func(t *testing.T) {
			b := &breaking{}
			dir := folder(t, map[string]string{"a.md": "<user>Look: <img src=\"dot.png\" local/></user>\n", "dot.png": dot})
			args := []string{"--base-url", b.start(t, base), "--model", "made-up", "--session", "s", "--api", api}
			run(t, dir, append([]string{"run", "a.md"}, args...)...).want(t, 0, "twenty", "the endpoint refused the request with images")
			before := len(b.bodies)
			run(t, dir, append([]string{"run", "a.md", "Never mind the picture."}, args...)...).want(t, 0, "twenty")
			for _, body := range b.bodies[before:] {
				if strings.Contains(string(body), "base64") {
					t.Errorf("the image is sent again: %.500s", body)
				}
			}
			if len(b.bodies) != before+1 {
				t.Errorf("%d requests of the second run", len(b.bodies)-before)
			}
		})
	}
}

// E7: what the answers told of the server holds for the next process: it says so,
// and its first request begins as the last one of the process before.
func TestServerIsRecalled(t *testing.T) {
	servers(t)
	base := llama(t, counting, freePort(t))
	for _, api := range []string{"responses", "chat"} {
		t.Run(api, func(t *testing.T) {
			b := &breaking{}
			dir := folder(t, map[string]string{"a.md": "<system>Be brief.</system><user>First.</user>\n"})
			args := []string{"--base-url", b.start(t, base), "--model", "made-up", "--session", "s", "--api", api}
			run(t, dir, append([]string{"run", "a.md"}, args...)...).want(t, 0, "(profile careful")
			for _, prompt := range []string{"Second.", "Third."} {
				run(t, dir, append([]string{"run", "a.md", prompt}, args...)...).want(t, 0, "(profile llama.cpp")
			}
			second, third := messages(t, b.bodies[1]), messages(t, b.bodies[2])
			if len(b.bodies) != 3 || len(third) <= len(second) || !slices.Equal(second, third[:len(second)]) {
				t.Errorf("%d requests; what was sent changes:\n%s\n%s", len(b.bodies), second, third)
			}
		})
	}
}

// The verdicts of doctor are true.
func TestDoctor(t *testing.T) {
	servers(t)
	dir := t.TempDir()
	t.Run("llama-server", func(t *testing.T) {
		o := run(t, dir, "doctor", "--base-url", llama(t, counting, freePort(t)))
		o.want(t, 0, "llama.cpp, known by its Server header")
		for _, want := range []string{
			`ok max_output_tokens +but the cut reply says "completed"`, `ok context window +8192 tokens`, `no output by a JSON schema +taken and ignored`,
			`no image in a message +refused: 500`, `no previous_response_id +refused: 400`,
		} {
			if !regexp.MustCompile(want).MatchString(o.out) {
				t.Errorf("no %s in\n%s", want, o.out)
			}
		}
		if strings.Contains(o.out, "A profile for what was found") {
			t.Errorf("a profile hides the one that is found:\n%s", o.out)
		}
	})
	t.Run("Ollama", func(t *testing.T) {
		o := run(t, dir, "doctor", "--base-url", ollama(t, freePort(t), map[string]Model{"made-up": counting}), "--model", "made-up")
		o.want(t, 0)
		for _, want := range []string{
			`ok max_output_tokens +but the cut reply says "completed"`, `ok context window +4096 tokens, as /api/ps says`, `ok output by a JSON schema`,
			`no image in a message +taken and dropped`, `no a call is required +taken and ignored`, `no previous_response_id +taken and ignored`, `"like": "ollama"`,
		} {
			if !regexp.MustCompile(want).MatchString(o.out) {
				t.Errorf("no %s in\n%s", want, o.out)
			}
		}
	})
}

// The hint for a model that is not there does not send anybody elsewhere.
func TestNoSuchModel(t *testing.T) {
	servers(t)
	dir := folder(t, map[string]string{"a.md": "<user>Hello</user>\n"})
	o := run(t, dir, "run", "a.md", "--base-url", ollama(t, freePort(t), nil), "--model", "nope")
	o.want(t, 3, "check the model's name")
	if strings.Contains(o.err, "--api chat") {
		t.Errorf("%s", o.err)
	}
}

// The README's lines for local servers work as they stand there.
func TestReadme(t *testing.T) {
	servers(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^go run \./cmd/antiphon .*--base-url http://localhost:(8080|11434)/v1.*$`).FindAllStringSubmatch(string(text), -1)
	if len(lines) < 3 {
		t.Fatalf("the README has %d lines for llama-server and Ollama", len(lines))
	}
	begun := map[string]bool{}
	for _, line := range lines {
		port := line[1]
		if !begun[port] {
			l, err := net.Listen("tcp", "127.0.0.1:"+port)
			if err != nil {
				t.Skipf("port %s, which the README names, is not free: %v", port, err)
			}
			l.Close()
			begun[port] = true
			says := Model{Template: stock(t, "Qwen-Qwen3-0.6B.jinja"), Says: "All the world sings."}
			if port == "8080" {
				llama(t, says, port)
			} else {
				ollama(t, port, map[string]Model{"qwen3-vl": says})
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line[0])
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "ANTIPHON_STORE="+filepath.Join(t.TempDir(), "sessions.db"), "OPENAI_API_KEY=", "OPENAI_BASE_URL=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s\n%v\n%s", line[0], err, out)
		}
	}
}
