// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/tool"
)

// listen serves over loopback; what still runs is cut off at the end.
func listen(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func at(url string) mcpbridge.Server {
	return mcpbridge.Server{Name: "probe", URL: url, StartTimeout: patience, Timeout: patience}
}

func overHTTP(t *testing.T, s *mcp.Server, opts *mcp.StreamableHTTPOptions) http.Handler {
	t.Cleanup(func() {
		for ss := range s.Sessions() {
			ss.Close()
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opts)
}

func TestHTTP(t *testing.T) {
	for _, protocol := range []string{"", "2025-11-25", "2025-03-26"} {
		for _, opts := range []mcp.StreamableHTTPOptions{{}, {JSONResponse: true}, {Stateless: true}} {
			t.Run(fmt.Sprintf("protocol %s json %v stateless %v", protocol, opts.JSONResponse, opts.Stateless), func(t *testing.T) {
				server := sdkServer(0)
				s := at(listen(t, overHTTP(t, server, &opts)).URL)
				s.Protocol = protocol
				r := connect(t, mcpbridge.Options{}, s)
				r.want("echo", `{"text":"a <b>"}`, "a <b>")
				if o := r.call("fail", `{"text":"it broke"}`); o.Error != "it broke" {
					t.Errorf("%q", o.Error)
				}
				if opts.Stateless {
					return // it has nobody to tell of changes
				}
				changed := r.bridge.Changed()
				r.want("grow", `{"text":"new_tool"}`, "grown")
				<-changed
				r.want("new_tool", `{"text":""}`, "I am new_tool")
				r.bridge.Close() // which tells the server
				if protocol != "" {
					eventually(t, "the server's session ends", func() bool {
						for range server.Sessions() {
							return false
						}
						return true
					})
				}
			})
		}
	}
}

// scriptHandler is a script over HTTP, its answers as JSON or as events.
func scriptHandler(s script, events bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		answer := s.answer(body)
		switch {
		case req.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case answer == "" && strings.Contains(string(body), `"tools/call"`):
			<-req.Context().Done()
		case answer == "":
			w.WriteHeader(http.StatusAccepted)
		case events:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, ": hello\r\nevent: message\r\ndata:%s\r\n\r\n", answer)
		default:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, answer)
		}
	})
}

// X1: over HTTP the results are the server's very text too.
func TestHTTPResults(t *testing.T) {
	for _, events := range []bool{false, true} {
		t.Run(fmt.Sprintf("events %v", events), func(t *testing.T) {
			checkResults(t, connect(t, mcpbridge.Options{}, at(listen(t, scriptHandler(script{results: scripted(allResults())}, events)).URL)))
		})
	}
}

// X2: a server that does not answer, over HTTP.
func TestHTTPHang(t *testing.T) {
	var log events
	s := at(listen(t, scriptHandler(script{results: `{"hang":"hang","ok":{"content":[{"type":"text","text":"fine"}]}}`}, false)).URL)
	s.Timeout = 200 * time.Millisecond
	r := connect(t, mcpbridge.Options{Notify: log.add}, s)
	if o := r.wantError("hang", "{}", "was told to cancel it"); o.Failure != tool.TimedOut || o.Abandoned {
		t.Errorf("%+v", o)
	}
	r.wantSoon("ok", "{}", "fine")
}

// B5: the token and the headers go to the server's own host and to no other,
// and do not come back.
func TestHTTPSecrets(t *testing.T) {
	var strangers atomic.Int32
	other := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { strangers.Add(1) }))
	inner := overHTTP(t, sdkServer(0), nil)
	var redirect atomic.Bool
	home := listen(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Header.Get("Authorization") != "Bearer sk-very-secret-1234" || req.Header.Get("X-Team") != "blue":
			http.Error(w, "who are you, "+req.Header.Get("Authorization"), http.StatusUnauthorized)
		case redirect.Load():
			http.Redirect(w, req, other.URL, http.StatusTemporaryRedirect)
		case req.URL.Path == "/":
			http.Redirect(w, req, "/mcp", http.StatusTemporaryRedirect)
		default:
			inner.ServeHTTP(w, req)
		}
	}))
	s := at(home.URL)
	s.Header = http.Header{"x-team": {"blue"}}
	s.Token = endpoint.NewKey("sk-very-secret-1234")
	r := connect(t, mcpbridge.Options{}, s)
	r.want("echo", `{"text":"my key is sk-very-secret-1234"}`, "my key is [redacted]")
	redirect.Store(true)
	o := r.wantError("echo", `{"text":"a"}`, "another host")
	if strangers.Load() != 0 || strings.Contains(o.Error, "sk-very") {
		t.Errorf("%d requests to another host; %s", strangers.Load(), o.Error)
	}
	s.Token = endpoint.NewKey("sk-another-key-5678")
	if _, err := mcpbridge.Connect(t.Context(), mcpbridge.Hurried(mcpbridge.Options{}), s); err == nil || strings.Contains(err.Error(), "sk-") || !strings.Contains(err.Error(), "Unauthorized") {
		t.Error(err)
	}
}

// X2: a server that was started anew does not know the session. The call was
// not run, so it is made again in a new one.
func TestHTTPSessionLost(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			var forget atomic.Bool
			var dead atomic.Value
			inner := overHTTP(t, sdkServer(0), nil)
			server := listen(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				id := req.Header.Get("Mcp-Session-Id")
				if id != "" && req.Method == http.MethodPost && forget.CompareAndSwap(true, false) {
					dead.Store(id)
				}
				if id != "" && dead.Load() == id {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					fmt.Fprint(w, map[bool]string{true: `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no valid session"}}`}[status == http.StatusBadRequest])
					return
				}
				inner.ServeHTTP(w, req)
			}))
			s := at(server.URL)
			s.Protocol = "2025-11-25"
			r := connect(t, mcpbridge.Options{}, s)
			r.want("echo", `{"text":"a"}`, "a")
			forget.Store(true)
			r.want("echo", `{"text":"b"}`, "b")
		})
	}
}

// A server that is gone for a while, and one that answers with an error page.
func TestHTTPDown(t *testing.T) {
	var down atomic.Bool
	inner := overHTTP(t, sdkServer(0), nil)
	server := listen(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if down.Load() {
			http.Error(w, "<html>down</html>", http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(w, req)
	}))
	r := connect(t, mcpbridge.Options{}, at(server.URL))
	down.Store(true)
	r.wantError("echo", `{"text":"a"}`, "gave no result of echo", "Service Unavailable")
	down.Store(false)
	r.want("echo", `{"text":"a"}`, "a")
	server.CloseClientConnections()
	server.Close()
	eventually(t, "it is told that nobody is there", func() bool {
		o := r.call("echo", `{"text":"a"}`)
		return strings.Contains(o.Error, "MCP server probe cannot be reached") && strings.Contains(o.Error, "refused. Nothing was done.")
	})
}

// A server that leaves the request for its notifications without an answer is
// used without them.
func TestHTTPSilentStream(t *testing.T) {
	inner := scriptHandler(script{results: `{"ok":{"content":[{"type":"text","text":"fine"}]}}`}, false)
	server := listen(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet {
			<-req.Context().Done()
			return
		}
		inner.ServeHTTP(w, req)
	}))
	r := connectAs(t, mcpbridge.Impatient(mcpbridge.Options{}), at(server.URL))
	r.want("ok", "{}", "fine")
}

// OAuth as the SDK gives it: a token is got when the server asks for one.
func TestClientCredentials(t *testing.T) {
	inner := overHTTP(t, sdkServer(0), nil)
	var server *httptest.Server
	server = listen(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		reply := func(v any) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(v)
		}
		switch {
		case strings.HasPrefix(req.URL.Path, "/.well-known/oauth-protected-resource"):
			reply(map[string]any{"resource": server.URL, "authorization_servers": []string{server.URL}})
		case strings.HasPrefix(req.URL.Path, "/.well-known/"):
			reply(map[string]any{"issuer": server.URL, "token_endpoint": server.URL + "/token", "authorization_endpoint": server.URL + "/authorize",
				"response_types_supported": []string{"code"}, "grant_types_supported": []string{"client_credentials"},
				"token_endpoint_auth_methods_supported": []string{"client_secret_post"}, "code_challenge_methods_supported": []string{"S256"}})
		case req.URL.Path == "/token":
			if req.FormValue("client_id") != "me" || req.FormValue("client_secret") != "my-own-secret" {
				http.Error(w, "{}", http.StatusUnauthorized)
				return
			}
			reply(map[string]any{"access_token": "the-token", "token_type": "Bearer", "expires_in": 3600})
		case req.Header.Get("Authorization") != "Bearer the-token":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			inner.ServeHTTP(w, req)
		}
	}))
	s := at(server.URL)
	var err error
	if s.OAuth, err = mcpbridge.ClientCredentials("me", endpoint.NewKey("my-own-secret"), "", server.Client()); err != nil {
		t.Fatal(err)
	}
	r := connect(t, mcpbridge.Options{}, s)
	r.want("echo", `{"text":"a"}`, "a")
	if s.OAuth, err = mcpbridge.ClientCredentials("me", endpoint.NewKey("my-own-secret"), "https://elsewhere.example", server.Client()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := mcpbridge.Connect(ctx, mcpbridge.Hurried(mcpbridge.Options{}), s); err == nil || !strings.Contains(err.Error(), "issuer") {
		t.Error(err)
	}
}

// X1: a call that a server accepted is not made again when the session is found to be lost
// afterwards: by the request that resumes the call's stream, or by another call. It may run.
func TestHTTPAcceptedCall(t *testing.T) {
	inner := script{results: `{"send":{"content":[]},"other":{"content":[{"type":"text","text":"done"}]}}`}
	for _, resumed := range []bool{true, false} {
		t.Run(fmt.Sprintf("resumed %v", resumed), func(t *testing.T) {
			var sessions, sent atomic.Int32
			var dead atomic.Bool // the first session
			began := make(chan struct{})
			server := listen(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				answer, call := inner.answer(body), strings.Contains(string(body), `"tools/call"`)
				first := req.Header.Get("Mcp-Session-Id") == "s1"
				switch {
				case first && dead.Load():
					w.WriteHeader(http.StatusNotFound)
				case req.Method != http.MethodPost:
					w.WriteHeader(http.StatusMethodNotAllowed)
				case call && strings.Contains(string(body), `"send"`):
					if sent.Add(1) > 1 {
						w.WriteHeader(http.StatusTeapot)
						return
					}
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, "id: 1\nretry: 1\ndata:\n\n")
					_ = http.NewResponseController(w).Flush()
					dead.Store(true) // the server ends here, and is started anew
					if close(began); !resumed {
						<-req.Context().Done()
					}
				case answer == "":
					w.WriteHeader(http.StatusAccepted)
				default:
					if strings.Contains(string(body), `"initialize"`) {
						w.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", sessions.Add(1)))
					}
					w.Header().Set("Content-Type", "application/json")
					io.WriteString(w, answer)
				}
			}))
			s := at(server.URL)
			s.Protocol = "2025-06-18"
			r := connect(t, mcpbridge.Options{}, s)
			done := make(chan struct{})
			go func() {
				defer close(done)
				r.wantError("send", "{}", "not known")
			}()
			<-began
			if resumed {
				<-done
			}
			r.want("other", "{}", "done")
			<-done
			if n := sent.Load(); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

// The limit of a message is also that of an event of many lines, which would fill the memory.
func TestHTTPEndlessEvent(t *testing.T) {
	inner := scriptHandler(script{results: `{"long":{},"ok":{"content":[{"type":"text","text":"fine"}]}}`}, true)
	server := listen(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(strings.NewReader(string(body)))
		if !strings.Contains(string(body), `"long"`) {
			inner.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 << 10 { // 3 MiB
			fmt.Fprintf(w, "data: %s\n", strings.Repeat("x", 1<<10))
		}
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	}))
	s := at(server.URL)
	s.MaxMessage = 1 << 20
	r := connect(t, mcpbridge.Options{}, s)
	if o := r.wantError("long", "{}", "whether it ran is not known"); o.Failure == tool.TimedOut {
		t.Errorf("%+v", o)
	}
	r.want("ok", "{}", "fine")
}

// B5: where a tool comes from is shown to others, so without the URL's query, which may hold a key.
func TestOriginHasNoQuery(t *testing.T) {
	url := listen(t, overHTTP(t, sdkServer(0), nil)).URL + "/mcp"
	r := connect(t, mcpbridge.Options{}, at(url+"?api_key=very-secret"))
	for _, made := range r.bridge.Tools() {
		if of := tool.AnnotationsOf(made).Origin.Of; of != `the MCP server "probe" (`+url+`)` {
			t.Errorf("%s", of)
		}
	}
}

// X1: only answers by which a server turns a request away prove that nothing began.
func TestAccepted(t *testing.T) {
	for _, c := range []struct {
		statuses []int
		accepted bool
	}{
		{nil, false}, {[]int{404}, false}, {[]int{400}, false}, {[]int{401, 404}, false}, {[]int{307, 404}, false},
		{[]int{200}, true}, {[]int{202}, true}, {[]int{303}, true}, {[]int{302}, true}, {[]int{500}, true}, {[]int{503}, true}, {[]int{429}, true}, {[]int{200, 404}, true},
	} {
		if got := mcpbridge.Accepted(c.statuses...); got != c.accepted {
			t.Errorf("%v: %v", c.statuses, got)
		}
	}
}
