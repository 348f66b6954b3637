// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/trust"
)

// K2: the zero configuration trusts nothing, also not with rules that allow all, with
// a session or with a transcript. Nothing is made for a run that does not begin.
func TestNothingIsTrusted(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<tool mcp_server=\"stdio:touch started\"/>\n<user>x</user>\n")
	s := opened(t)
	for name, cfg := range map[string]host.Config{
		"in memory":  {},
		"session":    {Store: s, Session: "s"},
		"transcript": {Transcript: filepath.Join(dir, "talk.md")},
		"in place":   {Transcript: file},
	} {
		cfg.File, cfg.Endpoint.Rehearsal = file, true
		_, err := host.Open(t.Context(), cfg)
		var refused *trust.UntrustedError
		var input *host.ConfigError
		if !errors.As(err, &refused) || !errors.As(err, &input) || len(refused.Claim.Powers) != 1 || !strings.Contains(err.Error(), "hint: host.Config.Trust decides") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left := sessions(t, s); len(left) > 0 {
		t.Errorf("a refused run leaves %v", left)
	}
}

// K5: what a run left in a transcript is recorded by Close, which reports that it could not be.
func TestCloseReportsTheLastRecord(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>x</user>\n")
	full, failing := errors.New("the disk is full"), false
	h, err := host.Open(t.Context(), host.Config{File: file, Transcript: filepath.Join(dir, "talk.md"), Endpoint: host.Endpoint{Rehearsal: true}, Leave: func(trust.Left) error {
		if failing {
			return full
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Run(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	failing = true
	if err := h.Close(); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
	if err := h.Close(); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// K2: a session that has begun does not make its file trusted: the file may have
// changed since.
func TestChangedFileOfSession(t *testing.T) {
	file := reader(t, "")
	cfg := host.Config{File: file, Store: opened(t), Session: "s", Workspace: filepath.Dir(file), Endpoint: host.Endpoint{Rehearsal: true}}
	h, err := host.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Run(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, file, "<tool name=\"run_command\" approval=\"allow\"/>\n<user>x</user>\n")
	if _, err := host.Open(t.Context(), cfg); !errors.As(err, new(*trust.UntrustedError)) {
		t.Error(err)
	}
	asked := 0
	cfg.Trust = func(context.Context, trust.Claim) (trust.Agreement, error) {
		asked++
		return trust.Agreement{}, nil // the calls are asked about
	}
	h, err = host.Open(t.Context(), cfg)
	if err != nil || asked != 1 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	defer h.Close()
	a, err := h.Agent(t.Context())
	if err != nil || len(a.Policy.Rules) > 0 {
		t.Errorf("%v, %v", a.Policy.Rules, err)
	}
}

// K4: a variable is sent only to the host that the person named for it, also if the
// MCP server names another host that gives out tokens, and never over plain HTTP to
// another machine.
func TestVariablesStayWithTheirHost(t *testing.T) {
	var mu sync.Mutex
	got := map[string][]string{}
	serve := func(name string, answer func(w http.ResponseWriter, r *http.Request)) *httptest.Server {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			mu.Lock()
			got[name] = append(got[name], r.URL.Path+" "+r.Form.Encode()+" "+r.Header.Get("Authorization"))
			mu.Unlock()
			answer(w, r)
		}))
		t.Cleanup(srv.Close)
		return srv
	}
	tokens := serve("tokens", func(w http.ResponseWriter, r *http.Request) {
		base := "http://" + r.Host
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"issuer":"` + base + `","token_endpoint":"` + base + `/token","authorization_endpoint":"` + base + `/auth","response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"access_token":"t","token_type":"Bearer"}`))
	})
	mcp := serve("mcp", func(w http.ResponseWriter, r *http.Request) {
		base := "http://" + r.Host
		if strings.Contains(r.URL.Path, "oauth-protected-resource") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"resource":"` + base + `/mcp","authorization_servers":["` + tokens.URL + `"]}`))
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+base+`/.well-known/oauth-protected-resource"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	file := write(t, filepath.Join(t.TempDir(), "agent.md"), `<tool mcp_server="`+mcp.URL+`/mcp" client_id_env="ID" client_secret_env="SECRET" start_timeout="5s"/>`+"\n<user>x</user>\n")
	at := func(srv *httptest.Server) string { return strings.TrimPrefix(srv.URL, "http://") }
	sent := func(hosts ...string) bool {
		t.Helper()
		clear(got)
		cfg := host.Config{File: file, Trust: trust.Everything, Endpoint: host.Endpoint{Rehearsal: true}}
		cfg.Environment = host.Environment{"ID": "the-id", "SECRET": "CANARY-secret", "OPENAI_API_KEY": "sk-key"}
		for _, h := range hosts {
			cfg.Variables = append(cfg.Variables, trust.Variable{Name: "ID", Host: h}, trust.Variable{Name: "SECRET", Host: h})
		}
		h, err := host.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		_, err = h.Run(t.Context(), "")
		if err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%v: %v", hosts, err)
		}
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(strings.Join(got["tokens"], "\n"), "Basic ")
	}
	if sent() || len(got["mcp"]) > 0 {
		t.Errorf("sent without a host: %v", got)
	}
	if sent(at(mcp)) {
		t.Errorf("sent to another host than the named one: %v", got)
	}
	if !sent(at(mcp), at(tokens)) {
		t.Errorf("not sent to the named host: %v", got)
	}
}

// K1, K4: a file's base URL needs no question only if the person configured it, with its
// path, or a place above it.
func TestConfigured(t *testing.T) {
	const gateway = "https://gateway.example/v1/MINE/openai"
	for _, tt := range []struct {
		file, env string
		want      bool
	}{
		{"https://api.openai.com/v1", "", true},
		{"https://API.openai.com/v1/", "", true},
		{"https://api.openai.com/v1/deployments/a-1", "", true},
		{"https://api.openai.com", "", false},
		{"https://api.openai.com/v2", "", false},
		{"https://api.openai.com/v1evil", "", false},
		{gateway, gateway + "/", true},
		{gateway, gateway, true},
		{"https://gateway.example/v1/EVIL/openai", gateway, false},
		{"https://gateway.example/v1/mine/openai", gateway, false},
		{gateway + "/../../EVIL/openai", gateway, false},
		{gateway + "/%2e%2e/%2e%2e/EVIL/openai", gateway, false},
		{gateway + "/..%2f../EVIL", gateway, false},
		{gateway + `/..\..\EVIL`, gateway, false},
		{gateway + "//evil", gateway, false},
		{gateway + "/./x", gateway, false},
		{gateway + "?x=1", gateway, false},
		{gateway + "?x=1", gateway + "?x=1", true},
		{gateway + "?", gateway, false},
		{gateway + "#x", gateway, false},
		{"https://me:pw@gateway.example/v1/MINE/openai", gateway, false},
		{"http://gateway.example/v1/MINE/openai", gateway, false},
		{"https://gateway.example:8443/v1/MINE/openai", gateway, false},
		{"http://127.0.0.1:8080/v1", "http://127.0.0.1:8080", true},
		{"http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/", true},
		{"not a URL", "not a URL", false},
		{"", "", false},
	} {
		env := host.Environment{}
		if tt.env != "" {
			env["OPENAI_BASE_URL"] = tt.env
		}
		if got := (host.Endpoint{}).Configured(env)(tt.file); got != tt.want {
			t.Errorf("%s, configured %s: %v", tt.file, tt.env, got)
		}
	}
}
