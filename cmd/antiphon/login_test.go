// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/antiphon-go/antiphon/agenttest"
)

// typedIn runs the program with a text on standard input. The key must not be in what it says.
func typedIn(t *testing.T, env []string, text string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, env, stdio{strings.NewReader(text), &stdout, &stderr})
	o := outcome{code, stdout.String(), stderr.String()}
	noKey(t, "standard output", o.out)
	noKey(t, "standard error", o.err)
	return o
}

// keyTaker is an endpoint that notes the keys that it gets, and repeats them in its errors.
type keyTaker struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string
}

func newKeyTaker(t *testing.T) *keyTaker {
	k := &keyTaker{}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		k.keys = append(k.keys, r.Header.Get("Authorization"))
		k.mu.Unlock()
		http.Error(w, `{"error":{"message":"bad key `+r.Header.Get("Authorization")+`","type":"invalid_request_error"}}`, http.StatusUnauthorized)
	}))
	t.Cleanup(k.Close)
	return k
}

// all returns the keys of all requests so far, and last that of the last one.
func (k *keyTaker) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.keys)
}

func (k *keyTaker) last() string {
	if all := k.all(); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// TestLogin: a key that is kept, in the keyring or in a file, goes to its host only; it is in no
// message, and gone after logout. B5
func TestLogin(t *testing.T) {
	for name, c := range map[string]struct {
		keyring error
		flags   []string
		file    bool // the key is in the file
	}{
		"keyring":    {},
		"no keyring": {keyring: errors.New("nobody is at home"), file: true},
		"by flag":    {flags: []string{"--no-keyring"}, file: true},
	} {
		t.Run(name, func(t *testing.T) {
			if keyring.MockInit(); c.keyring != nil {
				keyring.MockInitWithError(c.keyring)
			}
			own, other := newKeyTaker(t), newKeyTaker(t)
			env, folder := withSettings(t, `<config endpoints="mine=`+own.URL+`/v1 other=`+other.URL+`/v1"/>`)
			o := typedIn(t, env, testKey+"\n", append([]string{"login", "mine"}, c.flags...)...)
			if o.code != exitOK || o.out != "" || !strings.Contains(o.err, own.URL) {
				t.Fatalf("%+v", o)
			}
			if because := "keys, because no keyring can be used (nobody is at home); antiphon logout"; strings.Contains(o.err, because) != (c.keyring != nil) || strings.Count(o.err, "antiphon: ") != 1 {
				t.Errorf("%q", o.err)
			}
			list := read(t, filepath.Join(folder, "keys"))
			if strings.Contains(list, testKey) != c.file {
				t.Errorf("the list of keys:\n%s", list)
			}
			if info, err := os.Stat(filepath.Join(folder, "keys")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", info, err)
			}
			if o := programEnv(t, env, "config"); !strings.Contains(o.out, "kept for "+own.URL) || !strings.Contains(o.out, "mine is "+own.URL) {
				t.Errorf("%+v", o)
			}
			for _, at := range []string{"mine", own.URL, own.URL + "/v1"} {
				if o := programEnv(t, env, "models", "--base-url", at); o.code != exitProvider || own.last() != "Bearer "+testKey {
					t.Errorf("%s: %q, %+v", at, own.last(), o)
				}
			}
			write(t, "agent.md", "<config model=\"m\"/><user>Hi</user>")
			if o := programEnv(t, env, "run", "agent.md", "--base-url", "other"); o.code != exitProvider || other.last() != "" || len(other.all()) == 0 {
				t.Errorf("the key went to another host: %q, %+v", other.all(), o)
			}
			if o := programEnv(t, append(env, "OPENAI_API_KEY=sk-variable-0123456789"), "models", "--base-url", "mine"); own.last() != "Bearer "+testKey {
				t.Errorf("the key of the variable went there: %+v", o)
			}
			if o := programEnv(t, env, "logout", "mine"); o.code != exitOK {
				t.Errorf("%+v", o)
			}
			if programEnv(t, env, "models", "--base-url", "mine"); own.last() != "" {
				t.Errorf("a key that was forgotten: %q", own.last())
			}
			if _, err := os.Stat(filepath.Join(folder, "keys")); !os.IsNotExist(err) {
				t.Error("the list of keys is left", err)
			}
			if _, err := keyring.Get(endpointService, own.URL); err == nil {
				t.Error("the key is left in the keyring")
			}
			if o := programEnv(t, env, "logout", "mine"); o.code != exitUsage || !strings.Contains(o.err, "no key is kept") {
				t.Errorf("%+v", o)
			}
		})
	}
}

// TestBadLogin: a key is never an argument, is not repeated where it was one, and is one word; a
// list of keys that others can read is not used.
func TestBadLogin(t *testing.T) {
	keyring.MockInit()
	env, folder := withSettings(t, `<config/>`)
	for _, args := range [][]string{
		{"login", testKey}, {"login", "openai", testKey}, {"login", "openai", "--key=" + testKey}, {"login", "openai", "--key", testKey},
		{"login", "https://" + testKey + "@router.example/v1"}, {"login", "https://router.example/v1?key=" + testKey}, {"login"}, {"logout", testKey},
	} {
		if o := typedIn(t, env, testKey, args...); o.code != exitUsage || o.err == "" {
			t.Errorf("%d arguments: %+v", len(args), o)
		}
	}
	for _, text := range []string{"", " \n", testKey + "\n" + testKey, testKey + "\x1b[2J", strings.Repeat("k", maxKey+1)} {
		if o := typedIn(t, env, text, "login", "openai"); o.code != exitUsage {
			t.Errorf("%d bytes: %+v", len(text), o)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "keys")); !os.IsNotExist(err) {
		t.Error("something was kept", err)
	}
	if o := typedIn(t, env, testKey, "login", "openai", "--no-keyring"); o.code != exitOK || !strings.Contains(o.err, "https://api.openai.com ") {
		t.Fatalf("%+v", o)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(filepath.Join(folder, "keys"), 0o644); err != nil { //nolint:gosec // what must be refused
		t.Fatal(err)
	}
	if o := programEnv(t, env, "models", "--base-url", "http://127.0.0.1:1"); o.code != exitUsage || !strings.Contains(o.err, "chmod 600") {
		t.Errorf("%+v", o)
	}
}

// TestPlaces: a key is kept for a host, or for a path of it, without what base URLs may leave out.
func TestPlaces(t *testing.T) {
	own := settings{endpoints: map[string]string{"router": "https://OpenRouter.ai/api/v1/"}}
	for name, want := range map[string]string{
		"openai": "https://api.openai.com", "router": "https://openrouter.ai/api", "openrouter.ai": "https://openrouter.ai",
		"localhost:8080": "http://localhost:8080", "https://a.example/team/v1": "https://a.example/team", "http://10.0.0.1:80": "http://10.0.0.1:80",
		"nonsense": "", "sk-proj.a.b": "", "eyJhbGc.eyJzdWI.abc": "", "ftp://a.example": "", "": "", "https://": "",
	} {
		if got, err := own.place(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

// TestKeyless: models says for which endpoints of the settings there is no key.
func TestKeyless(t *testing.T) {
	keyring.MockInit()
	srv := httptest.NewServer(&agenttest.Platform{Models: []string{"small"}})
	defer srv.Close()
	env, _ := withSettings(t, `<config base_url="`+srv.URL+`/v1" endpoints="local=http://localhost:1/v1 router=https://router.example/v1 far=https://far.example/v1"/>`)
	if o := typedIn(t, env, testKey, "login", "far"); o.code != exitOK {
		t.Fatalf("%+v", o)
	}
	o := programEnv(t, env, "models")
	if o.out != "small\n" || !strings.Contains(o.err, "no key is kept for router") || strings.Contains(o.err, "local (") || strings.Contains(o.err, "far (") {
		t.Errorf("%+v", o)
	}
}

// hidden waits until a terminal does not show what is typed.
func (term *terminalOf) hidden(t *testing.T) {
	t.Helper()
	tty := strings.TrimSpace(term.tmux(t, "display-message", "-p", "#{pane_tty}"))
	term.untilThat(t, "hidden input", func(string) bool {
		mode, err := exec.Command("sh", "-c", "stty -a <"+tty).Output()
		return err == nil && strings.Contains(string(mode), " -echo ")
	})
}

// TestLoginAtTerminal: a key that is typed is not shown, and Ctrl-C leaves the terminal as it was.
func TestLoginAtTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, dir, "export XDG_CONFIG_HOME="+dir+"; antiphon login openai --no-keyring; stty -a >tty")
	term.until(t, "(it is not shown):")
	term.hidden(t)
	term.keys(t, "-l", testKey)
	term.keys(t, "Enter")
	term.until(t, "[exit code 0]")
	noKey(t, "the terminal", term.written(t))
	if list := read(t, filepath.Join(dir, "antiphon", "keys")); !strings.Contains(list, testKey) {
		t.Errorf("%q", list)
	}
	term = openTerminal(t, dir, "export XDG_CONFIG_HOME="+dir+"; antiphon login router.example --no-keyring")
	term.until(t, "(it is not shown):")
	term.hidden(t)
	term.keys(t, "Enter")
	term.until(t, "no key was typed; nothing was kept")
	term.until(t, "[exit code 2]")
	term = openTerminal(t, dir, "export XDG_CONFIG_HOME="+dir+"; antiphon login router.example --no-keyring; code=$?; stty -a >tty; (exit $code)")
	term.until(t, "(it is not shown):")
	term.hidden(t)
	term.keys(t, "C-c")
	term.until(t, "[exit code 130]")
	if mode := strings.Fields(read(t, filepath.Join(dir, "tty"))); !strings.Contains(strings.Join(mode, " "), " echo ") {
		t.Errorf("the terminal does not echo: %q", mode)
	}
}

// TestAliases: names of the settings stand for models and endpoints, in flags and in the settings.
func TestAliases(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	env, folder := withSettings(t, `<config model="fast" endpoints="mine=`+server.URL+`/v1" models="fast=qwen3@mine odd=x@y"/>`)
	write(t, "agent.md", "<user>Hi</user>")
	write(t, "own.md", `<config model="from-file"/><user>Hi</user>`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "agent.md"}, "qwen3 at " + at},
		{[]string{"run", "own.md"}, "from-file at " + at},
		{[]string{"run", "own.md", "-m", "fast"}, "qwen3 at " + at},
		{[]string{"run", "own.md", "-m", "other", "--base-url", "mine"}, "other at " + at},
		{[]string{"run", "own.md", "-m", "odd", "--base-url", "mine"}, "x@y at " + at},
		{[]string{"run", "own.md", "-m", "fast@mine"}, "fast at " + at}, // not the alias: what is before the @ is the model
		{[]string{"run", "own.md", "-m", "qwen3@mine"}, "qwen3 at " + at},
		{[]string{"run", "own.md", "-m", "org@qwen3@mine"}, "org@qwen3 at " + at},
	} {
		if got := programEnv(t, env, c.args...); got.code != exitProvider || !strings.Contains(got.err, c.want) {
			t.Errorf("%v: want %s\n%+v", c.args, c.want, got)
		}
	}
	for text, want := range map[string]string{
		`<config endpoints="mine"/>`:                                                          "the value of mine is wrong",
		`<config endpoints="a.b=http://x"/>`:                                                  "is not a name",
		`<config endpoints="mine=ftp://x"/>`:                                                  "the value of mine is wrong",
		`<config endpoints="mine=http://k:s@x"/>`:                                             "the value of mine is wrong",
		`<config models="rehearsal=x"/>`:                                                      "is taken",
		`<config models="fast=qwen3@locl" endpoints="local=http://x/v1 router=http://y/v1"/>`: "models: fast is qwen3@locl, and no endpoint is called locl (endpoints are local, router)",
		`<config models="a=x a=y"/>`:                                                          "is taken",
		`<config base_url="nobody" endpoints="mine=http://x/v1"/>`:                            `base_url is "nobody"`,
	} {
		write(t, filepath.Join(folder, "config"), text)
		if got := programEnv(t, env, "config"); got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%s: want %s\n%+v", text, want, got)
		}
	}
}
