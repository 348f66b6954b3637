// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withSettings returns an environment with a file of settings.
func withSettings(t *testing.T, text string) (env []string, folder string) {
	t.Helper()
	env = home(t, t.TempDir())
	folder = t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "antiphon", "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "antiphon", "config"), text)
	return append(env, "XDG_CONFIG_HOME="+folder), filepath.Join(folder, "antiphon")
}

// TestSettings: settings name the model and the endpoint; a variable overrides them, and an
// agent's file and a flag override both.
func TestSettings(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusTeapot) }))
	defer server.Close()
	env, _ := withSettings(t, `<config model="from-settings" base_url="`+server.URL+`/v1"/>`)
	write(t, "agent.md", "<user>Hi</user>")
	write(t, "own.md", `<config model="from-file"/><user>Hi</user>`)
	for _, c := range []struct {
		args, env []string
		want      string
	}{
		{[]string{"run", "agent.md"}, nil, "from-settings"},
		{[]string{"run", "agent.md"}, []string{"OPENAI_MODEL=from-variable"}, "from-variable"},
		{[]string{"run", "own.md"}, []string{"OPENAI_MODEL=from-variable"}, "from-file"},
		{[]string{"run", "own.md", "-m", "from-flag"}, nil, "from-flag"},
	} {
		got := programEnv(t, append(append([]string{}, env...), c.env...), c.args...)
		if got.code != exitProvider || !strings.Contains(got.err, c.want+" at "+strings.TrimPrefix(server.URL, "http://")) {
			t.Errorf("%v %v: want %s\n%+v", c.args, c.env, c.want, got)
		}
	}
	shown := programEnv(t, env, "config")
	for _, want := range []string{"model     from-settings", "endpoint  " + server.URL, "/antiphon/config)", "key       not set", "agent     assistant", "store     "} {
		if !strings.Contains(shown.out, want) {
			t.Errorf("config does not show %q:\n%s", want, shown.out)
		}
	}
}

// TestModelStaysAtItsEndpoint proves that nothing is sent elsewhere than to the endpoint that the
// settings name with the model, unless a flag says so.
func TestModelStaysAtItsEndpoint(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusTeapot) }))
	defer server.Close()
	const names = ` endpoints="local=http://127.0.0.1:1/v1 router=SERVER/v1"/>`
	for _, c := range []struct {
		config, want string
		env, args    []string
	}{
		{`<config model="m@local" base_url="router"`, "the model is asked at http://127.0.0.1:1/v1", nil, nil},
		{`<config model="m@local"`, "OPENAI_BASE_URL is another place", []string{"OPENAI_BASE_URL=" + server.URL + "/v1"}, nil},
		{`<config model="m@local"`, "m at ", []string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, []string{"--base-url", "router"}},
		{`<config model="m@router" base_url="router"`, "m at ", nil, nil},
		{`<config model="m@local"`, "n at ", []string{"OPENAI_BASE_URL=" + server.URL + "/v1", "OPENAI_MODEL=n"}, nil},
		{`<config`, "m at ", []string{"OPENAI_MODEL=m@router"}, nil},
		{`<config models="fast=m@router"`, "m at ", []string{"OPENAI_MODEL=fast"}, nil},
		{`<config`, "m at ", []string{"OPENAI_MODEL=m", "OPENAI_BASE_URL=router"}, nil},
		{`<config base_url="local"`, "m at ", []string{"OPENAI_MODEL=m@router"}, nil},
		{`<config model="n@local"`, "m at ", []string{"OPENAI_MODEL=m@router"}, nil},
		{`<config`, "OPENAI_MODEL asks the model m at http://127.0.0.1:1/v1, and OPENAI_BASE_URL is another place", []string{"OPENAI_MODEL=m@local", "OPENAI_BASE_URL=router"}, nil},
		{`<config`, "m at ", []string{"OPENAI_MODEL=m@local", "OPENAI_BASE_URL=local"}, []string{"--base-url", "router"}},
	} {
		env, _ := withSettings(t, c.config+strings.ReplaceAll(names, "SERVER", server.URL))
		write(t, "agent.md", "<user>Hi</user>")
		got := programEnv(t, append(env, c.env...), append([]string{"run", "agent.md"}, c.args...)...)
		if sent := strings.HasSuffix(c.want, " at "); !strings.Contains(got.err, c.want) || (got.code == exitProvider) != sent || (got.code == exitUsage) == sent {
			t.Errorf("%s %v %v: want %s\n%+v", c.config, c.env, c.args, c.want, got)
		}
	}
}

// TestBadSettings: a mistake in the settings is named with its place, and nothing runs.
func TestBadSettings(t *testing.T) {
	for text, want := range map[string]string{
		`<config model=""/>`:                      "config:1:9",
		`<config temperature="0.2"/>`:             "temperature is not a setting for all agents",
		`<config base_url="localhost"/>`:          `base_url is "localhost"`,
		"<config/>\n<tool name=\"run_command\"/>": "one <config/>, and nothing else",
		"<system>Obey.</system>":                  "one <config/>, and nothing else",
	} {
		env, _ := withSettings(t, text)
		if got := programEnv(t, env, "Hi there?"); got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%s: want %s\n%+v", text, want, got)
		}
	}
	env, folder := withSettings(t, `<config model="x"/>`)
	if err := os.Chmod(filepath.Join(folder, "config"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := programEnv(t, env, "Hi there?"); got.code != exitUsage || !strings.Contains(got.err, "chmod go-w") {
		t.Errorf("a file that all can write: %+v", got)
	}
	env, _ = withSettings(t, "<config/>"+strings.Repeat(" ", 1<<20))
	if got := programEnv(t, env, "Hi there?"); got.code != exitUsage || !strings.Contains(got.err, "larger than") {
		t.Errorf("a huge file: %+v", got)
	}
	env, folder = withSettings(t, "<config/>")
	config := filepath.Join(folder, "config")
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(config, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := programEnv(t, env, "Hi there?"); got.code != exitUsage || !strings.Contains(got.err, "it is not a file") {
		t.Errorf("a folder: %+v", got)
	}
}

// TestNamedAgents: an agent is named without a path; the project's comes first, and nothing
// above a project counts. K1
func TestNamedAgents(t *testing.T) {
	env, folder := withSettings(t, "<config/>")
	agent := func(folder, says string) {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, "helper.md"), "<user>"+says+"</user>")
	}
	agent(filepath.Join(folder, "agents"), "I am yours")
	above, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	agent(filepath.Join(above, ".antiphon", "agents"), "I am above")
	project := filepath.Join(above, "project")
	for _, folder := range []string{".git", "deep"} {
		if err := os.MkdirAll(filepath.Join(project, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(project, "deep"))
	if got := programEnv(t, env, "run", "helper"); !strings.Contains(got.out, "I am yours") {
		t.Errorf("of the settings: %+v", got)
	}
	agent(filepath.Join(project, ".antiphon", "agents"), "I am the project's")
	if got := programEnv(t, env, "run", "helper"); !strings.Contains(got.out, "I am the project's") || !strings.Contains(got.err, "helper is the project's, ") {
		t.Errorf("of the project: %+v", got)
	}
	// B5: the name of a stranger's file forges no line of the list, and no agent that is built in.
	forged := "evil\nagent     trusted                                  (built in).md"
	if err := os.WriteFile(filepath.Join(project, ".antiphon", "agents", forged), []byte("<user>x</user>"), 0o600); err == nil {
		if got := programEnv(t, env, "config"); strings.Contains(got.out, "\nagent     trusted") || !strings.Contains(got.out, "<U+000A>") || !strings.Contains(got.out, "assistant ") {
			t.Errorf("a forged name: %s", got.out)
		}
	}
	if os.Getuid() == 0 { // a repository of another user around the folder that is worked in
		agents := filepath.Join(project, ".antiphon", "agents")
		if err := os.Chown(agents, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if got := programEnv(t, env, "run", "helper"); !strings.Contains(got.out, "I am yours") {
			t.Errorf("of another user: %+v", got)
		}
		if err := os.Chown(agents, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(project, ".antiphon", "agents", "helper.md"), `<tool name="run_command" approval="allow"/><user>Hi</user>`)
	if got := programEnv(t, env, "run", "helper"); got.code != exitUsage || !strings.Contains(got.err, "antiphon trust") {
		t.Errorf("with powers: %+v", got)
	}
	write(t, filepath.Join(project, ".antiphon", "agents", "assistant.md"), "<system>I am the project's</system>")
	if got := programEnv(t, env, "Who are you?", "--json"); strings.Contains(got.out, "the project's") {
		t.Errorf("a project's assistant answers though nobody named it: %+v", got)
	}
	write(t, filepath.Join(folder, "agents", "assistant.md"), "<system>I am yours</system>")
	if got := programEnv(t, env, "Who are you?", "--json"); got.code != exitOK || strings.Contains(got.out, "read_directory") {
		t.Errorf("the own assistant: %+v", got)
	}
}

// TestInit: the first agent runs, and an existing file stays.
func TestInit(t *testing.T) {
	env := home(t, t.TempDir())
	if got := programEnv(t, env, "init"); got.code != exitOK || !strings.Contains(got.out, "antiphon run agent.md") {
		t.Fatalf("%+v", got)
	}
	if got := programEnv(t, env, "run", "agent.md"); got.code != exitOK {
		t.Errorf("%+v", got)
	}
	if got := programEnv(t, env, "check", "agent.md"); got.code != exitOK {
		t.Errorf("%+v", got)
	}
	if got := programEnv(t, env, "fmt", "--check", "agent.md"); got.code != exitOK {
		t.Errorf("not in the layout of fmt: %+v", got)
	}
	if got := programEnv(t, env, "init"); got.code != exitUsage || !strings.Contains(got.err, "exists already") {
		t.Errorf("%+v", got)
	}
}

// TestNextSteps: what people get wrong at first is answered with what to do next.
func TestNextSteps(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "agent.md", "<user>Hi</user>")
	write(t, "prose.md", "# Words\n\nof mine\n")
	if err := os.MkdirAll("config/antiphon", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, "config/antiphon/config", `<config modle="x"/>`)
	home := []string{"XDG_DATA_HOME=" + t.TempDir()}
	for args, want := range map[string]string{
		"init":          "agent.md exists already; name a new file, as in antiphon init second.md",
		"init .":        ". is a folder; name a file, such as new.md",
		"init new/":     "new/ is a folder; name a file, such as new/new.md",
		"init sub/x.md": "there is no folder sub; make it first: mkdir -p sub",
		"ask":           `nothing to answer: give a question, as in antiphon "`,
		"run agent.md hello --rehearsal --out prose.md": "prose.md is not a transcript and was not changed: name a new file, or one that --out has written",
		"serve nosuch.md":                     "nosuch.md: no such file or folder; antiphon init writes a first agent",
		"serve agent.md --listen [::1]:99999": "invalid port",
		"run agent.md --rehearsal agent.md":   "agent.md is a file, and is sent as the prompt's words; -f agent.md attaches it",
		"CONFIG run agent.md hello":           "modle is not a setting for all agents, did you mean model?",
	} {
		env := home
		if rest, ok := strings.CutPrefix(args, "CONFIG "); ok {
			args, env = rest, append(slices.Clone(home), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"))
		}
		got := programEnv(t, env, strings.Fields(args)...)
		if !strings.Contains(got.err, want) || got.code != exitUsage && !strings.HasPrefix(args, "run agent.md --rehearsal") {
			t.Errorf("%s: code %d, %s", args, got.code, got.err)
		}
	}
}

// TestBindSetting: a mistake in the keys of a person's own is named, with how they are written.
func TestBindSetting(t *testing.T) {
	t.Parallel()
	s := &settings{said: map[string]string{}}
	if message, hint := s.set("bind", "f2=fly"); !strings.Contains(message, `bind: "fly" is not a key`) || !strings.Contains(hint, "f2=/fullscreen") {
		t.Errorf("%q, %q", message, hint)
	}
	if message, _ := s.set("bind", "f2=/fullscreen; ctrl+t=ctrl+r"); message != "" || s.said["ANTIPHON_BIND"] == "" {
		t.Errorf("%q, %q", message, s.said)
	}
}
