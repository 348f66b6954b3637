// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// B5: secrets of the base URL are as hidden as the key, in every probe.
func TestDoctorHidesTheBaseURL(t *testing.T) {
	const password, parameter = "password-0123456789", "parameter-0123456789"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprint(r.URL, r.Header, password), http.StatusBadRequest)
	}))
	defer srv.Close()
	base := strings.Replace(srv.URL, "//", "//someone:"+password+"@", 1) + "/v1?api_key=" + parameter
	o := program(t, "doctor", "--base-url", base, "--model", "m")
	basic := base64.RawStdEncoding.EncodeToString([]byte("someone:" + password))
	for _, secret := range []string{password, parameter, basic} {
		if text := o.out + o.err; strings.Contains(text, secret) {
			t.Errorf("%s is shown:\n%s", secret, text)
		}
	}
}

// B5: whatever an endpoint repeats of what it was sent, the doctor's report has
// no key, and no beginning of one that was cut in two.
func TestDoctorHidesKeys(t *testing.T) {
	long := strings.Repeat("x", 230-len(testKey)/2) + testKey
	failure := fmt.Sprintf(`{"error":{"message":"bad %s","code":"code %s","type":"type %s","param":"%s"}}`, testKey, testKey, testKey, testKey)
	for name, answer := range map[string]http.HandlerFunc{
		"message and code": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, failure, http.StatusBadRequest) },
		"a long message": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"message":"`+long+`"}}`, http.StatusBadRequest)
		},
		"a body that is not JSON": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, long, http.StatusTeapot) },
		"headers": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", r.Header.Get("Authorization"))
			w.Header().Set("Retry-After", testKey)
			w.Header().Set("Server", testKey)
			http.Error(w, "no", http.StatusNotFound)
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere?key="+testKey, http.StatusTemporaryRedirect)
		},
		"names and texts": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodGet {
				fmt.Fprintf(w, `{"data":[{"id":"%s"}],"models":[{"name":"%s"}]}`, testKey, testKey)
				return
			}
			fmt.Fprintf(w, `{"id":"%s","object":"response","status":"completed","model":"%s","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"%s"}]}]}`,
				testKey, testKey, strings.Repeat("x", 29-len(testKey)/2)+testKey)
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(answer)
			defer srv.Close()
			for _, more := range [][]string{{"--model", "m"}, {"--model", "m", "--json"}, {}} {
				o := program(t, append([]string{"doctor", "--base-url", srv.URL + "/v1"}, more...)...) // looks for the key
				if text := o.out + o.err; strings.Contains(text, testKey[:len(testKey)/2]) {
					t.Errorf("half a key:\n%s", text)
				}
			}
			file := write(t, t.TempDir()+"/a.md", "<config model=\"m\"/>\n<user>hi</user>\n")
			o := program(t, "run", file, "--base-url", srv.URL+"/v1", "--json", "--retries", "0")
			if strings.Contains(o.err, testKey[:len(testKey)/2]) {
				t.Errorf("run: half a key:\n%s", o.err)
			}
		})
	}
}

// pretender answers every request, and does of what is asked only what it is
// made to do.
type pretender struct {
	remembers, obeys, sees, calls, cuts bool
	server                              string
}

func (p pretender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.server != "" {
		w.Header().Set("Server", p.server)
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodPost || r.URL.Path != "/v1/responses" {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var in struct {
		Stream   bool   `json:"stream"`
		Previous string `json:"previous_response_id"`
		Max      int    `json:"max_output_tokens"`
		Text     any    `json:"text"`
		Choice   any    `json:"tool_choice"`
	}
	_ = json.Unmarshal(body, &in)
	text, tokens, previous, status, call := "ok", 20, "null", "completed", ""
	out := 1
	switch has := func(s string) bool { return strings.Contains(string(body), s) }; {
	case in.Previous != "" && p.remembers:
		text, previous = "Marzipan.", `"`+in.Previous+`"`
	case in.Text != nil && p.obeys:
		text = `{\"colour\":\"blue\"}`
	case has("input_image") && p.sees:
		text = "Red."
	case in.Choice != nil && p.calls:
		name := "ping"
		if strings.Contains(fmt.Sprint(in.Choice), "pong") {
			name = "pong"
		}
		call = `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"` + name + `","arguments":"{}","status":"completed"}`
	case has("two hundred"):
		out = 100
		if p.cuts {
			out, status = in.Max, "incomplete"
		}
	}
	said := call
	if said == "" {
		said = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + text + `","annotations":[]}]}`
	}
	whole := fmt.Sprintf(`{"id":"resp_1","object":"response","status":"%s","model":"m","previous_response_id":%s,"output":[%s],"usage":{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d}}`,
		status, previous, said, tokens, out, tokens+out)
	if !in.Stream {
		fmt.Fprint(w, whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":%s}\n\n", whole)
}

// An endpoint that takes a request and does nothing of it is found out.
func TestDoctorLooksAtTheEffect(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint pretender
		want     []string
	}{
		"takes no notice": {pretender{}, []string{
			"no previous_response_id +accepted and ignored", "no output by a JSON schema +accepted and ignored", "no image in a message +accepted and dropped: it counts 0 tokens",
			`\?\? function calls +nothing was called`, "no a call is required +accepted and ignored", "no a tool is chosen by name +accepted and ignored",
			"no max_output_tokens +ignored: the reply has 100 tokens", "ok usage +20 in", "no context window +not reported",
			`"previous_response": "no"`,
		}},
		"does as it is asked": {pretender{remembers: true, obeys: true, sees: true, calls: true, cuts: true}, []string{
			"ok previous_response_id +a word of turn one", "ok output by a JSON schema", "ok image in a message +the model saw it", "ok function calls",
			"ok a call is required", "ok a tool is chosen by name", "ok tool output with an image +the model saw it", "ok max_output_tokens +and the reply says that it is incomplete",
			`"previous_response": "yes"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(c.endpoint)
			defer srv.Close()
			o := program(t, "doctor", "--base-url", srv.URL+"/v1", "--model", "m")
			for _, want := range c.want {
				if !regexp.MustCompile(want).MatchString(o.out) {
					t.Errorf("no %s in\n%s", want, o.out)
				}
			}
		})
	}
}

// A server that says what it is needs no profile of its own: the one printed
// would only hide the one that is found.
func TestDoctorByServerHeader(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			w.Header().Set("Server", "llama.cpp")
			fmt.Fprint(w, `{"data":[{"id":"m","meta":{"n_ctx":3328}}]}`)
			return
		}
		pretender{server: "llama.cpp"}.ServeHTTP(w, r)
	}))
	defer srv.Close()
	o := program(t, "doctor", "--base-url", srv.URL+"/v1")
	if !strings.Contains(o.out, "llama.cpp, known by its Server header") || !strings.Contains(o.out, "3328 tokens, as the list of models says") || strings.Contains(o.out, "A profile for these findings") {
		t.Errorf("%s", o.out)
	}
}

// The context window is looked for where the profile says, whatever the profile is
// called, as a run does.
func TestDoctorFindsTheWindow(t *testing.T) {
	dir := t.TempDir()
	profiles := write(t, filepath.Join(dir, "profiles.json"), `{"profiles":[{"name":"box","like":"ollama"},{"name":"rack","like":"llama.cpp"}]}`)
	mux := http.NewServeMux()
	mux.Handle("/", pretender{})
	mux.HandleFunc("/api/ps", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"models":[{"name":"other","context_length":1},{"name":"m:latest","context_length":4096}]}`)
	})
	mux.HandleFunc("/props", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"default_generation_settings":{"n_ctx":8192}}`)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for profile, want := range map[string]string{"box": "4096 tokens, as /api/ps says; Ollama silently cuts", "rack": "8192 tokens, as /props says", "": "8192 tokens, as /props says"} {
		args := []string{"doctor", "--base-url", srv.URL + "/v1", "--model", "m", "--profiles", profiles}
		if profile != "" {
			args = append(args, "--profile", profile)
		}
		o := program(t, args...)
		if !strings.Contains(o.out, want) {
			t.Errorf("%q: no %q in\n%s%s", profile, want, o.out, o.err)
		}
	}
}
