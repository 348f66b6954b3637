// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"image/png"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/tool/picture"
)

// reference returns the command of a reference server, which .ci/mcp installs.
func reference(t *testing.T, name string, args ...string) []string {
	t.Helper()
	dir := os.Getenv("ANTIPHON_MCP_SERVERS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		dir = filepath.Join(cache, "antiphon", "mcp-servers")
	}
	script := filepath.Join(dir, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		t.Skipf("the reference server %s is not installed: run .ci/mcp", name)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js")
	}
	return append([]string{node, script}, args...)
}

// X1, X2: the server that shows everything, over stdio.
func TestEverything(t *testing.T) {
	var log events
	s := mcpbridge.Server{
		Name: "probe", StartTimeout: patience, Command: reference(t, "server-everything", "stdio"), Exclude: []string{"toggle-*"},
		SecretEnv: map[string]endpoint.Key{"EVERYTHING_KEY": endpoint.NewKey("sk-very-secret-1234")},
	}
	r := connect(t, mcpbridge.Options{Notify: log.add, Roots: []string{"/data"}}, s)
	checkEverything(t, r)

	env := r.call("get-env", "{}").Content.Display()
	if !strings.Contains(env, `"EVERYTHING_KEY": "[redacted]"`) || strings.Contains(env, "sk-very") {
		t.Error(env)
	}
	roots := r.call("get-roots-list", "{}").Content.Display()
	if !strings.Contains(roots, "file:///data") {
		t.Error(roots)
	}
	r.call("trigger-long-running-operation", `{"duration":0.2,"steps":2}`)
	eventually(t, "progress is told", func() bool { return log.count(mcpbridge.Progress) >= 2 })
}

// checkEverything calls what server-everything has over every transport.
func checkEverything(t *testing.T, r *rig) {
	t.Helper()
	names := r.set().Names()
	if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "toggle-") }) || len(names) < 8 {
		t.Errorf("%q", names)
	}
	r.want("echo", `{"message":"hello"}`, "Echo: hello")
	r.want("get-sum", `{"a":2,"b":3.5}`, "The sum of 2 and 3.5 is 5.5.")
	r.want("get-structured-content", `{"location":"Chicago"}`, `{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}`)
	checkPicture(t, r.call("get-tiny-image", "{}"))
	links := r.call("get-resource-links", `{"count":2}`).Content.Display()
	if strings.Count(links, "[resource link demo://resource/") != 2 {
		t.Error(links)
	}
	text := r.call("get-resource-reference", `{"resourceType":"Text","resourceId":1}`).Content.Display()
	if !strings.Contains(text, "[resource demo://resource/dynamic/text/1, type text/plain]\nResource 1: This is a plaintext resource") {
		t.Error(text)
	}
	zipped := parts(r.call("gzip-file-as-resource", `{"name":"a.txt.gz","data":"data:text/plain,hello","outputType":"resource"}`).Content)
	if last := zipped[len(zipped)-1]; !strings.HasPrefix(last, "file a.txt.gz data:application/gzip;base64,H4sI") {
		t.Errorf("%q", zipped)
	}
	if o := r.call("get-annotated-message", `{"messageType":"nonsense"}`); o.Failure != tool.BadArguments {
		t.Errorf("%+v", o)
	}
}

// checkPicture looks at the output of get-tiny-image: a picture that the model
// sees, between two texts.
func checkPicture(t *testing.T, o tool.Outcome) {
	t.Helper()
	if o.Failed || len(o.Content.Parts) != 3 {
		t.Fatalf("%s", o.Content.Display())
	}
	img, ok := o.Content.Parts[1].(*item.InputImage)
	if !ok {
		t.Fatalf("%T", o.Content.Parts[1])
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(img.ImageURL, "data:image/png;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || cfg.Width < 2 {
		t.Errorf("%+v %v", cfg, err)
	}
}

// T10: the picture of the reference server, a PNG that is whole but for the
// checksum of a chunk that no pixel needs, reaches the model, and what the server
// sent is kept.
func TestTinyImageReachesTheModel(t *testing.T) {
	r := connect(t, mcpbridge.Options{}, mcpbridge.Server{Name: "probe", StartTimeout: patience, Command: reference(t, "server-everything", "stdio"), Include: []string{"get-tiny-image"}})
	server := agenttest.NewServer(t, agenttest.Completed(item.Call("c1", "get-tiny-image", "{}")), agenttest.Completed(item.Assistant("I see.")))
	s := session.New()
	a := &agent.Agent{Model: server.Client(), Tools: r.bridge.Tools(), Output: output.Policy{Images: picture.Limits{}}, Policy: agent.Policy{Allow: []string{"*"}}}
	if _, err := a.Run(t.Context(), s, item.User("show me")); err != nil {
		t.Fatal(err)
	}
	sent := server.Requests()[1].Parse(t).Input
	out, err := item.As[item.FunctionCallOutput](sent.At(sent.Len() - 1))
	if err != nil || len(out.Output.Parts) != 4 {
		t.Fatalf("%v %s", err, out.Output.Display())
	}
	note := out.Output.Parts[1].(*item.InputText).Text
	id, found := strings.CutPrefix(note, "[image sent without damaged metadata (iCCP); the original is kept with the id ")
	if !found {
		t.Fatalf("the note is %q", note)
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(out.Output.Parts[2].(*item.InputImage).ImageURL, "data:image/png;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(data)); err != nil || img.Bounds().Dx() < 2 {
		t.Errorf("the model cannot decode it: %v", err)
	}
	original, _, err := agent.BlobOutputs(s.Blobs(), s.ID()).Get(t.Context(), strings.TrimSuffix(id, "]"), 0, 1<<20)
	if _, bad := png.Decode(bytes.NewReader(original)); err != nil || bad == nil || len(original) <= len(data) {
		t.Errorf("%d bytes of the original are kept, %d were sent: %v", len(original), len(data), err)
	}
}

// X2: the hanging call of a server in another language ends, and is cancelled.
func TestEverythingTimeout(t *testing.T) {
	s := mcpbridge.Server{Name: "probe", StartTimeout: patience, Command: reference(t, "server-everything", "stdio"), Timeout: 500 * time.Millisecond}
	r := connectAs(t, mcpbridge.Impatient(mcpbridge.Options{}), s) // it does not end before its operation does
	if o := r.wantError("trigger-long-running-operation", `{"duration":60,"steps":60}`, "was told to cancel it"); o.Failure != tool.TimedOut {
		t.Errorf("%+v", o)
	}
}

// X1: the same over streamable HTTP.
func TestEverythingHTTP(t *testing.T) {
	argv := reference(t, "server-everything", "streamableHttp")
	port := freePort(t)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PORT="+port)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() { cmd.Process.Kill(); <-drained; cmd.Wait() })
	up := make(chan struct{})
	go func() {
		defer close(drained)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if strings.Contains(lines.Text(), "listening on port") {
				close(up)
			}
		}
	}()
	select {
	case <-up:
	case <-drained:
		t.Fatal("the server ended")
	}
	s := at("http://127.0.0.1:" + port + "/mcp")
	s.Exclude = []string{"toggle-*"}
	r := connect(t, mcpbridge.Options{}, s)
	checkEverything(t, r)
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

// X1: the file system server: text, pictures, structured content that says the
// same, and errors.
func TestFilesystem(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(dir, "a.txt"), []byte("line 1\nline 2\n"), 0o600)
	picture, _ := base64.StdEncoding.DecodeString(pngData())
	os.WriteFile(filepath.Join(dir, "a.png"), picture, 0o600)
	r := connect(t, mcpbridge.Options{}, mcpbridge.Server{Name: "probe", Dir: dir, Command: reference(t, "server-filesystem", dir)})
	at := func(name string) string { return fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, name)) }
	r.want("read_text_file", at("a.txt"), "line 1\nline 2\n")
	r.want("list_directory", at(""), "[FILE] a.png\n[FILE] a.txt")
	o := r.call("read_media_file", at("a.png"))
	if got := parts(o.Content); o.Failed || len(got) != 1 || got[0] != "image data:image/png;base64,"+pngData() {
		t.Errorf("%q", got)
	}
	if o := r.call("read_text_file", `{"path":"/etc/passwd"}`); !o.Failed || !strings.Contains(o.Error, "Access denied") {
		t.Errorf("%+v", o)
	}
}
