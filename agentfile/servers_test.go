// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// mcpServer serves tools of these names over HTTP and counts the clients that
// say hello.
func mcpServer(t *testing.T, tools ...string) (server *mcp.Server, url string, greeted *atomic.Int32) {
	t.Helper()
	server, greeted = mcp.NewServer(&mcp.Implementation{Name: "probe", Version: "1"}, nil), new(atomic.Int32)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				greeted.Add(1)
			}
			return next(ctx, method, req)
		}
	})
	for _, name := range tools {
		addTool(server, name)
	}
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(srv.Close)
	return server, srv.URL, greeted
}

func addTool(server *mcp.Server, name string) {
	mcp.AddTool(server, &mcp.Tool{Name: name, Description: "The tool " + name + "."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "I am " + name}}}, nil, nil
		})
}

// TestStartTimeout: a file says how long a server may take to start, and the
// error of one that took longer says what to do.
func TestStartTimeout(t *testing.T) {
	started := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-started:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(started)
	path := write(t, fmt.Sprintf("<tool mcp_server=%q start_timeout=\"50ms\"/><user>hi</user>", srv.URL), t.TempDir(), "agent.md")
	f := load(t, path, agentfile.Options{Consent: trust.Everything})
	err := f.Connect(t.Context(), agentfile.Environment{}, nil)
	if err == nil || !strings.Contains(err.Error(), "within 50ms") || !strings.Contains(err.Error(), `run it again; start_timeout="5m"`) {
		t.Error(err)
	}
	bad := write(t, `<tool name="read_file" start_timeout="5s"/><user>hi</user>`, t.TempDir(), "agent.md")
	if _, err := agentfile.Load(t.Context(), bad, agentfile.Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), "start_timeout is for mcp_server") {
		t.Error(err)
	}
}

func connected(t *testing.T, text string, o agentfile.Options) (*agentfile.File, *agent.Agent) {
	t.Helper()
	f := load(t, write(t, text, t.TempDir(), "agent.md"), o)
	if err := f.Connect(t.Context(), agentfile.Environment{}, nil); err != nil {
		t.Fatal(err)
	}
	return f, f.Agent(new(witness))
}

// approvals are the names of the agent's tools and what was declared of them.
func approvals(t *testing.T, a *agent.Agent) map[string]string {
	t.Helper()
	set, err := a.ToolSet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for name, made := range set.All() {
		m[name] = tool.AnnotationsOf(made).Approval
	}
	return m
}

// X3 A5: lines that declare one server share it. What they say of a tool counts
// together: deny over ask over allow.
func TestSharedServer(t *testing.T) {
	_, url, listed := mcpServer(t, "look", "change", "wreck", "other")
	text := fmt.Sprintf(`<tool mcp_server="%[1]s" include="look,change,wreck" approval="allow"/>
<tool mcp_server="%[1]s" include="change" approval="ask"/>
<tool mcp_server="%[1]s" include="wreck" approval="deny"/>
<user>x</user>
`, url)
	_, a := connected(t, text, agentfile.Options{Consent: trust.Everything})
	if diff := cmp.Diff(map[string]string{"look": "allow", "change": "ask", "wreck": "deny"}, approvals(t, a)); diff != "" {
		t.Error(diff)
	}
	if n := listed.Load(); n != 1 {
		t.Errorf("the tools were listed %d times", n)
	}
	// Whoever runs the file answers what it wants to be asked about, and not what
	// it denies.
	_, a = connected(t, text, agentfile.Options{Allow: []string{"*"}})
	if diff := cmp.Diff(map[string]string{"look": "allow", "change": "allow", "wreck": "deny"}, approvals(t, a)); diff != "" {
		t.Error(diff)
	}
}

// X3: equal names of two servers, of a built-in tool, and of the tool that reads
// the rest of outputs are told apart, the same way each time.
func TestServerNames(t *testing.T) {
	_, one, _ := mcpServer(t, "get", "read_file", "alone", "read_output")
	_, two, _ := mcpServer(t, "get", "alike")
	text := fmt.Sprintf(`<tool name="read_file"/>
<tool server="a" mcp_server="%s"/>
<tool server="b.c" mcp_server="%s"/>
<user>x</user>
`, one, two)
	want := map[string]string{"read_file": "", "a__get": "", "a__read_file": "", "alone": "", "a__read_output": "", "b_c__get": "", "alike": ""}
	for range 2 {
		_, a := connected(t, text, agentfile.Options{Consent: trust.Everything})
		if diff := cmp.Diff(want, approvals(t, a)); diff != "" {
			t.Error(diff)
		}
	}
}

// X3: tools that come while a run is under way are there with the next request,
// declared as the others of their line, and those that go are gone.
func TestServerToolsChange(t *testing.T) {
	server, url, _ := mcpServer(t, "look")
	changed := make(chan struct{}, 10)
	f := load(t, write(t, `<tool mcp_server="`+url+`" approval="allow"/><user>x</user>`, t.TempDir(), "agent.md"), agentfile.Options{Consent: trust.Everything})
	err := f.Connect(t.Context(), agentfile.Environment{Lookup: os.LookupEnv}, func(ev mcpbridge.Event) {
		if ev.Kind == mcpbridge.Changed {
			changed <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	a := f.Agent(new(witness))
	addTool(server, "late")
	<-changed
	if diff := cmp.Diff(map[string]string{"look": "allow", "late": "allow"}, approvals(t, a)); diff != "" {
		t.Error(diff)
	}
	server.RemoveTools("look")
	<-changed
	if diff := cmp.Diff(map[string]string{"late": "allow"}, approvals(t, a)); diff != "" {
		t.Error(diff)
	}
	if _, err := a.Run(t.Context(), session.New()); !errors.Is(err, agent.ErrNothingToSend) {
		t.Error(err)
	}
}

// M4: what is wrong with a server is told at its line, all of it at once, and
// what can be seen without starting it is seen when the file is read.
func TestServerProblems(t *testing.T) {
	_, url, _ := mcpServer(t, "look")
	for text, want := range map[string]string{
		`<tool server="a" mcp_server="` + url + `"/>` + "\n" + `<tool server="a" mcp_server="http://127.0.0.1:1/"/>`: "agent.md:2:1: <tool mcp_server>: MCP server a: another is called so too",
		`<tool mcp_server="` + url + `" approval="maybe"/>`:                                                          `agent.md:1:1: <tool>: approval is "maybe"`,
		`<tool mcp_server="` + url + `" include="["/>`:                                                               "agent.md:1:1: <tool mcp_server>: ",
		`<tool mcp_server="ftp://x"/>`:                                                                               "agent.md:1:1: <tool mcp_server>: ",
	} {
		path := write(t, text+"\n<user>x</user>", t.TempDir(), "agent.md")
		if _, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s", text, err, want)
		}
	}
	text := `<tool mcp_server="` + url + `"/>` + "\n" + `<tool mcp_server="stdio:/no/such/program"/>` + "\n" + `<tool mcp_server="stdio:/no/other"/><user>x</user>`
	f := load(t, write(t, text, t.TempDir(), "agent.md"), agentfile.Options{Consent: trust.Everything})
	err := f.Connect(t.Context(), agentfile.Environment{Lookup: os.LookupEnv}, nil)
	var problems chatmd.ErrorList
	if !errors.As(err, &problems) || len(problems) != 2 || problems[0].Line != 2 || problems[1].Line != 3 {
		t.Error(err)
	}
	text = `<tool mcp_server="` + url + `"/>` + "\n" + `<tool mcp_server="` + url + `" include="loook" approval="deny"/><user>x</user>`
	f = load(t, write(t, text, t.TempDir(), "agent.md"), agentfile.Options{Consent: trust.Everything})
	if err := f.Connect(t.Context(), agentfile.Environment{Lookup: os.LookupEnv}, nil); err == nil || !strings.Contains(err.Error(), "agent.md:2:1: ") || !strings.Contains(err.Error(), "has no tool loook") {
		t.Error(err)
	}
}

// X3: a name without include chooses one tool of a server, as older files mean
// it; one that the server does not have is an error that says what to write.
func TestServerNameChoosesATool(t *testing.T) {
	_, url, _ := mcpServer(t, "look", "wreck")
	_, a := connected(t, `<tool name="look" mcp_server="`+url+`"/><user>x</user>`, agentfile.Options{Consent: trust.Everything})
	if diff := cmp.Diff(map[string]string{"look": ""}, approvals(t, a)); diff != "" {
		t.Error(diff)
	}
	f := load(t, write(t, `<tool name="everything" mcp_server="`+url+`"/><user>x</user>`, t.TempDir(), "agent.md"), agentfile.Options{Consent: trust.Everything})
	err := f.Connect(t.Context(), agentfile.Environment{Lookup: os.LookupEnv}, func(mcpbridge.Event) {})
	if err == nil || !strings.Contains(err.Error(), "agent.md:1:1:") || !strings.Contains(err.Error(), "everything") {
		t.Error(err)
	}
}

// X2: a server that is optional and does not start is told, and its line is not
// an error; without the attribute it ends the run.
func TestOptionalServer(t *testing.T) {
	for attr, want := range map[string]bool{"optional": true, `optional="false"`: false} {
		path := write(t, `<tool mcp_server="stdio:/no/such/program" include="x" `+attr+"/>\n<user>Hello</user>", t.TempDir(), "a.md")
		f := load(t, path, agentfile.Options{Consent: trust.Everything})
		told := make(chan mcpbridge.Event, 10)
		err := f.Connect(t.Context(), agentfile.Environment{Lookup: os.LookupEnv}, func(ev mcpbridge.Event) { told <- ev })
		if len(f.Warnings) > 0 || (err == nil) != want || (len(told) > 0) != want {
			t.Errorf("%s: %v %v, told %d times", attr, err, f.Warnings, len(told))
		}
	}
}

// TestServersThatDoNotStart: the error says whether the server was reached, and what to do next.
func TestServersThatDoNotStart(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil {
			w.Header().Set("Content-Type", "text/html")
			status = http.StatusOK
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte("<html></html>"))
	}))
	defer srv.Close()
	for server, want := range map[string]string{
		srv.URL + "/401":         " answered 401 Unauthorized (it wants credentials: client_id_env and client_secret_env name ",
		srv.URL + "/403":         " answered 403 Forbidden (check the credentials, ",
		srv.URL + "/404":         " answered 404 Not Found (check the address: ",
		srv.URL + "/503":         " answered 503 Service Unavailable (try again later, ",
		srv.URL + "/html":        " does not answer as an MCP server does: unsupported content type \"text/html\" (check the address: ",
		"http://127.0.0.1:1/mcp": " could not be reached: dial tcp 127.0.0.1:1: connect: connection refused (check the address, and that the server runs",
		strings.Replace(srv.URL, "http:", "https:", 1):     " could not be reached: http: server gave HTTP response to HTTPS client (check the address: is it http://?",
		"stdio:no-such-program-antiphon-" + "of-this-test": " (install it, or check PATH",
	} {
		path := write(t, fmt.Sprintf("<tool mcp_server=%q/><user>hi</user>", server), t.TempDir(), "agent.md")
		f := load(t, path, agentfile.Options{Consent: trust.Everything})
		if err := f.Connect(t.Context(), agentfile.Environment{Lookup: os.LookupEnv}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", server, err, want)
		}
	}
}
