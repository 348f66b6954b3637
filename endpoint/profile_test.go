// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func fields(v any) int { return reflect.TypeOf(v).NumField() }

// B2: host, port and segments of the path are compared, never substrings.
func TestDetect(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.openai.com/v1":                       "openai",
		"https://API.OpenAI.com./v1":                      "openai",
		"https://eu.api.openai.com/v1":                    "openai",
		"https://api.openai.com.evil.com/v1":              "careful",
		"https://evilapi.openai.com/v1":                   "careful",
		"https://openai.com/v1":                           "careful",
		"https://evil.com/api.openai.com/v1":              "careful",
		"https://api.openai.com@evil.com/v1":              "careful",
		"https://res.openai.azure.com/openai":             "azure",
		"https://res.services.ai.azure.com/api":           "azure",
		"https://.openai.azure.com/":                      "careful",
		"https://openai.azure.com/":                       "careful",
		"https://chatgpt.com/backend-api/codex":           "codex",
		"https://chatgpt.com/backend-api/codex/":          "codex",
		"https://ChatGPT.com:443/backend-api/codex":       "codex",
		"https://chatgpt.com/backend-api/codex/responses": "codex",
		"https://chatgpt.com/backend-api/codexx":          "careful",
		"https://chatgpt.com/backend-api/codex%2Fx":       "careful",
		"https://chatgpt.com/x/backend-api/codex":         "careful",
		"https://chatgpt.com//backend-api/codex":          "careful",
		"https://chatgpt.com/backend-api/codex/../wham":   "careful",
		"https://chatgpt.com/backend-api/Codex":           "careful",
		"https://chatgpt.com/backend-api":                 "careful",
		"https://chatgpt.com":                             "careful",
		"https://evilchatgpt.com/backend-api/codex":       "careful",
		"https://chatgpt.com.evil.com/backend-api/codex":  "careful",
		"https://evil.com/chatgpt.com/backend-api/codex":  "careful",
		"https://openrouter.ai/api/v1":                    "openrouter",
		"https://api.x.ai/v1":                             "xai",
		"http://localhost:11434/v1":                       "ollama",
		"http://192.168.1.5:11434":                        "ollama",
		"http://[::1]:11434/v1":                           "ollama",
		"http://localhost:1143":                           "careful",
		"https://ollama.com/v1":                           "ollama",
		"http://localhost:8080/v1":                        "careful", // anybody's port
		"http://localhost:8000/v1":                        "careful",
		"http://localhost/v1":                             "careful",
		"/v1":                                             "careful",
	} {
		if p := Detect(at(t, base)); p.Name != want {
			t.Errorf("Detect(%s) = %s, want %s", base, p.Name, want)
		}
	}
}

func TestMatchBase(t *testing.T) {
	for _, tt := range []struct {
		pattern, base string
		want          bool
	}{
		{"[::1]:8080", "http://[::1]:8080/v1", true},
		{"[::1]", "http://[::1]:8080/v1", true},
		{"[::1]:8080", "http://[::1]:8081/v1", false},
		{"localhost:8080", "http://localhost:8080", true},
		{"localhost:8080", "http://localhost", false},
		{"Example.com", "http://example.COM", true},
		{".example.com:1", "http://a.example.com:1", true},
		{":1", "http://:1", false},
		{"a/b", "http://a/b", true},
		{"a/b/", "http://a/b/c", true},
		{"a/b", "http://a/bc", false},
		{"a/b", "http://a", false},
	} {
		if got := matchBase(tt.pattern, at(t, tt.base)); got != tt.want {
			t.Errorf("%s at %s: %v", tt.pattern, tt.base, got)
		}
	}
}

func TestDetectServer(t *testing.T) {
	for server, want := range map[string]string{
		"llama.cpp": "llama.cpp", "LLaMA.cpp/b1234": "llama.cpp", " llama.cpp ": "llama.cpp",
		"my-llama.cpp": "", "llama.cpp-clone": "", "uvicorn": "", "cloudflare": "", "": "", "/": "",
	} {
		if p, ok := DetectServer(server); p.Name != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", server, p.Name, ok)
		}
	}
}

func TestByName(t *testing.T) {
	for _, name := range []string{"openai", "azure", "codex", "openrouter", "xai", "ollama", "llama.cpp", "vllm", "plain", "careful"} {
		p, err := ByName(name)
		if err != nil || p.Name != name {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	_, err := ByName("nope")
	if want := `unknown profile "nope"; the profiles are azure, careful, codex, llama.cpp, ollama, openai, openrouter, plain, vllm, xai`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// What holds of every profile, so that no caller has to check.
func TestProfilesAreWhole(t *testing.T) {
	for _, p := range profiles {
		if p.Name == "" || p.KeyHint == "" || len(p.APIs) == 0 || !strings.HasPrefix(p.BasePath, "/") || strings.HasSuffix(p.BasePath, "/") {
			t.Errorf("%+v", p)
		}
		if slices.Contains(p.APIs, APIResponses) != (p.ResponsesPath == "/responses") || slices.Contains(p.APIs, APIChat) != (p.Chat.Path == "/chat/completions") {
			t.Errorf("%s: paths and APIs do not agree", p.Name)
		}
		if (p.Items == nil) != (p.OtherItems == Keep) || (p.Tools == nil) != (p.OtherTools == Keep) {
			t.Errorf("%s: says not what becomes of other items or tools", p.Name)
		}
		if p.Parts != nil && (slices.Contains(p.Parts, "input_file") == (p.Files == NoneOfThem)) {
			t.Errorf("%s: parts and files do not agree", p.Name)
		}
		for _, name := range p.Omit {
			if _, set := p.Set[name]; set || slices.Contains(p.Refuse, name) {
				t.Errorf("%s: %s is both left out and something else", p.Name, name)
			}
		}
		if p.Conversations == No && p.PreviousResponse == No && !slices.Contains(p.Refuse, "previous_response_id") {
			t.Errorf("%s: loses a history without a word", p.Name)
		}
	}
}

// B2
func TestCodexProfile(t *testing.T) {
	p, err := ByName("codex")
	if err != nil {
		t.Fatal(err)
	}
	if p.Set["stream"] != "true" || p.Set["store"] != "false" || p.Instructions != Leading || !p.NeedsInstructions || p.Roles["system"] != "developer" {
		t.Errorf("%+v", p)
	}
	for _, name := range []string{"max_output_tokens", "temperature", "stop"} {
		if !slices.Contains(p.Omit, name) {
			t.Errorf("%s would be sent", name)
		}
	}
}

// B1: the profile's own base path for a bare host.
func TestProfileURL(t *testing.T) {
	codex, _ := ByName("codex")
	for _, tt := range []struct {
		p                Profile
		base, path, want string
	}{
		{codex, "https://proxy.example", "", "https://proxy.example/backend-api/codex/responses"},
		{codex, "https://proxy.example/x/", "/responses/compact", "https://proxy.example/x/responses/compact"},
		{Profile{}, "http://h", "", "http://h/v1/responses"},
		{Careful, "http://h?api-version=1", "/chat/completions", "http://h/v1/chat/completions?api-version=1"},
	} {
		u, err := tt.p.URL(tt.base, tt.path)
		if err != nil || u.String() != tt.want {
			t.Errorf("%s %s: %v, %v; want %s", tt.base, tt.path, u, err, tt.want)
		}
	}
}

func TestSetHeader(t *testing.T) {
	const token = "eyJhbGciOi.eyJzdWIi.c2ln"
	for _, tt := range []struct {
		profile, key string
		want         http.Header
	}{
		{"openai", "sk-1", http.Header{"Authorization": {"Bearer sk-1"}}},
		{"azure", "abc", http.Header{"Api-Key": {"abc"}}},
		{"azure", token, http.Header{"Authorization": {"Bearer " + token}}},
		{"codex", token, http.Header{"Authorization": {"Bearer " + token}, "Chatgpt-Account-Id": {"acc"}}},
		{"careful", "", http.Header{}},
	} {
		p, err := ByName(tt.profile)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		if p.SetHeader(h, NewKey(tt.key), "acc"); !reflect.DeepEqual(h, tt.want) {
			t.Errorf("%s: %v, want %v", tt.profile, h, tt.want)
		}
	}
	h := http.Header{}
	if (Profile{Header: map[string]string{"x-a": "1"}}).SetHeader(h, Key{}, ""); h.Get("X-A") != "1" {
		t.Error("a fixed header is missing")
	}
}

// B4: hashed stably, within the limit, and apart.
func TestCacheKey(t *testing.T) {
	long := strings.Repeat("a", 65)
	for _, tt := range []struct {
		key   string
		limit int
		want  string
	}{
		{"short", 64, "short"},
		{long[:64], 64, long[:64]},
		{long, 64, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
		{long, 8, "635361c4"},
		{long, 0, long},
		{"", 64, ""},
	} {
		if got := CacheKey(tt.key, tt.limit); got != tt.want {
			t.Errorf("CacheKey(%q, %d) = %q", tt.key, tt.limit, got)
		}
	}
	if CacheKey(long, 64) == CacheKey(long+"b", 64) {
		t.Error("two keys became one")
	}
}

func TestClone(t *testing.T) {
	p, _ := ByName("codex")
	q := p.Clone()
	q.Omit[0], q.Hosts[0], q.Refuse[0] = "x", "x", "x"
	q.Set["stream"], q.Roles["system"], q.SocketHeader["OpenAI-Beta"] = "x", "x", "x"
	if now, _ := ByName("codex"); now.Omit[0] == "x" || now.Hosts[0] == "x" || now.Refuse[0] == "x" ||
		now.Set["stream"] == "x" || now.Roles["system"] == "x" || now.SocketHeader["OpenAI-Beta"] == "x" {
		t.Error("a clone shares with the table")
	}
	lists := 0
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Profile]()) {
		if f.Type == reflect.TypeFor[[]string]() {
			lists++
		}
	}
	if got := len(q.lists()); got != lists {
		t.Errorf("%d lists are copied, there are %d", got, lists)
	}
}
