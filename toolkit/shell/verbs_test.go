// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/session"
)

// cluster answers kubectl and docker as their servers do, as far as reading commands
// need it. It notes each request that would change something.
type cluster struct {
	mu      sync.Mutex
	changes []string
}

// kubernetes are the answers to kubectl by path. The secret holds outsideMark.
var kubernetes = map[string]string{
	"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[
		{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list"],"shortNames":["po"]},
		{"name":"secrets","singularName":"secret","namespaced":true,"kind":"Secret","verbs":["get","list"]},
		{"name":"events","singularName":"event","namespaced":true,"kind":"Event","verbs":["get","list"]}]}`,
	"/api/v1/namespaces/default/pods":       `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + pod + `]}`,
	"/api/v1/namespaces/default/pods/a":     pod,
	"/api/v1/namespaces/default/pods/a/log": "a line of the log\n",
	"/api/v1/namespaces/default/events":     `{"kind":"EventList","apiVersion":"v1","metadata":{},"items":[]}`,
	"/api/v1/namespaces/default/secrets/s":  secret,
	"/api/v1/namespaces/default/secrets":    `{"kind":"SecretList","apiVersion":"v1","metadata":{},"items":[` + secret + `]}`,
}

const (
	pod    = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"default"},"spec":{"containers":[{"name":"main","image":"i"}]},"status":{"phase":"Running"}}`
	secret = `{"kind":"Secret","apiVersion":"v1","type":"Opaque","metadata":{"name":"s","namespace":"default"},"data":{"key":"` + outsideMark + `"}}`
)

// docker are the answers to docker by the path behind the version.
var docker = map[string]string{
	"/version": `{"ApiVersion":"1.41","Version":"1"}`, "/containers/json": `[]`, "/images/json": `[]`,
	"/containers/c/json": `{"Id":"c","Name":"/c","State":{},"HostConfig":{"LogConfig":{"Type":"json-file"}},"Config":{"Tty":true}}`, "/containers/c/logs": "a line of the log\n",
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		c.mu.Lock()
		c.changes = append(c.changes, r.Method+" "+r.URL.Path)
		c.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Api-Version", "1.41")
	text, ok := kubernetes[r.URL.Path]
	if !ok {
		_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v"), "/")
		text, ok = docker["/"+path]
	}
	if !ok && r.URL.Path != "/_ping" {
		w.WriteHeader(http.StatusNotFound)
		text = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`
	}
	fmt.Fprint(w, text)
}

// changed returns the changes since the last call, as harm.
func (c *cluster) changed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.changes
	if c.changes = nil; len(list) == 0 {
		return ""
	}
	return "changes the server: " + strings.Join(list, ", ")
}

// toolchains are commands of the table that run what a project holds, or ask a server,
// with what is put behind them and their verbs.
var toolchains = map[string][]string{
	"go": {"-o=PWNED", "-overlay=evil.json", "-modfile=../outside/go.mod", "-C|../outside", "-coverprofile=PWNED", "-cpuprofile|PWNED", "-outputdir=sub", "-fuzz=.", "-c", "-args|-x", "-mod=mod", "-gcflags=-json=0,PWNED",
		"-ldflags=-extld=./touch.sh", "-pkgdir=PWNED", "-export", "-x", "-v", "-race|../outside"},
	"cargo": {"--manifest-path=evil/Cargo.toml", "--target-dir=PWNED", "--config=build.rustc-wrapper='./touch.sh'", "-Zunstable-options", "--artifact-dir=PWNED", "--timings", "--message-format=json", "--|--nocapture", "-v"},
	"npm": {"--script-shell=./touch.sh", "--scri=./touch.sh", "--prefix=evil", "-C|evil", "--node-options=--require=./evil.js", "--userconfig=evil/npmrc", "--cache=PWNED", "--logs-dir=PWNED", "--workspace=evil",
		"--|;touch PWNED", "-s"},
	"docker": {"-H|tcp://127.0.0.1:1", "--host=tcp://127.0.0.1:1", "--context=x", "--tlscacert=../outside/secret", "--follow=false", "-q", "--format={{.ID}}", "--last|1", "c2", "--no-trunc|--cidfile=PWNED"},
	"kubectl": {"--kubeconfig=evil.kube", "--kubeconfig|evil.kube", "--filename=../outside/secret", "-f|evil.yaml", "-k|evil", "-o|go-template-file=../outside/secret", "-ojsonpath-file=../outside/secret", "-o|custom-columns-file=../outside/list",
		"-o|yaml", "-ojson", "--output=yaml", "-o|go-template={{.data}}", "--template={{.data}}", "-ocustom-columns=X:.data", "--raw=/api/v1/namespaces/default/secrets", "--profile=cpu", "--profile=cpu|--profile-output=PWNED", "--cache-dir=PWNED",
		"--log-file=PWNED|--logtostderr=false", "--server=http://127.0.0.1:1", "-s|http://127.0.0.1:1", "--token=x", "--as=root", "--context=x", "--v=9", "-n|other", "-nother", "-o|wide", "-A", "secrets", "secret/s", "--show-managed-fields|-oyaml"},
}

// works reports whether a program is there and runs: the cargo of rustup may have no
// toolchain.
func works(t *testing.T, name string) bool {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		return false
	}
	if name != "cargo" {
		return true
	}
	err := exec.CommandContext(t.Context(), name, "--version").Run()
	if err != nil {
		t.Log("cargo does not run here:", err)
	}
	return err == nil
}

// A6: of pairs of a command that runs what a project holds or asks a server, and of the
// same with more options, none runs unasked and does something that nobody agreed to, by
// the real programs.
func TestRememberedToolchains(t *testing.T) {
	servers := new(cluster)
	server := httptest.NewServer(servers)
	t.Cleanup(server.Close)
	scratch := t.TempDir()
	rustup := os.Getenv("RUSTUP_HOME")
	if home, err := os.UserHomeDir(); rustup == "" && err == nil {
		rustup = filepath.Join(home, ".rustup")
	}
	p := newPlayground(t, Options{Env: []string{
		"DOCKER_HOST=tcp://" + server.Listener.Addr().String(), "CARGO_HOME=" + filepath.Join(scratch, "cargo"), "CARGO_TARGET_DIR=" + filepath.Join(scratch, "target"), "RUSTUP_HOME=" + rustup,
		"CARGO_NET_OFFLINE=true", "npm_config_cache=" + filepath.Join(scratch, "npm"), "npm_config_update_notifier=false", "npm_config_offline=true",
		"XDG_CONFIG_HOME=" + filepath.Join(scratch, "config"),
	}})
	p.damage = servers.changed
	kubeconfig := func(user string) string {
		return `{"kind":"Config","apiVersion":"v1","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],"clusters":[{"name":"k","cluster":{"server":"` +
			server.URL + `"}}],"users":[{"name":"u","user":` + user + `}]}`
	}
	for name, text := range map[string]string{
		"home/.kube/config":      kubeconfig(`{"token":"t"}`),
		"work/evil.kube":         kubeconfig(`{"exec":{"apiVersion":"client.authentication.k8s.io/v1beta1","command":"` + filepath.Join(p.work(), "touch.sh") + `","interactiveMode":"Never"}}`),
		"work/evil.yaml":         secret,
		"work/evil.json":         `{"Replace":{"` + filepath.Join(p.work(), "x.go") + `":"` + filepath.Join(p.base, "outside", "secret") + `"}}`,
		"work/evil.js":           "require('fs').writeFileSync('PWNED','')\n",
		"work/package.json":      `{"name":"x","version":"1.0.0","scripts":{"test":"echo tested","x":"echo x","other":"touch PWNED"}}`,
		"work/evil/package.json": `{"name":"evil","version":"1.0.0","scripts":{"test":"touch PWNED","x":"touch PWNED"}}`,
		"work/evil/npmrc":        "script-shell=" + filepath.Join(p.work(), "touch.sh") + "\n",
		"work/Cargo.toml":        "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\npath = \"x.rs\"\n",
		"work/Cargo.lock":        "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 3\n\n[[package]]\nname = \"x\"\nversion = \"0.1.0\"\n",
		"work/x.rs":              "pub fn f() {}\n",
		"work/evil/Cargo.toml":   "[package]\nname = \"e\"\nversion = \"0.1.0\"\nbuild = \"build.rs\"\n\n[lib]\npath = \"build.rs\"\n",
		"work/evil/build.rs":     "fn main() { std::fs::write(\"PWNED\", \"\").unwrap(); }\n",
	} {
		p.write(name, text)
	}
	p.keep()
	before := p.state()
	var n counts
	for _, first := range []string{
		"go|test|./...", "go|vet|./...", "go|build|./...", "go|list|./...", "cargo|check", "cargo|test", "npm|test", "npm|run|x",
		"docker|ps", "docker|images", "docker|logs|c", "kubectl|get|pods", "kubectl|get|secret|s", "kubectl|describe|pod|a", "kubectl|logs|a",
	} {
		words := strings.Split(first, "|")
		if works(t, words[0]) {
			rules := p.agreed(words...)
			if len(rules) != 1 || rules[0].Prefix[len(rules[0].Prefix)-1] != session.KnownOptions {
				t.Errorf("%s: not in the table: %v", first, rules)
			}
			if harm, text := p.does(before, asCall(t, "", words...)); harm != "" || strings.Contains(text, "status:\nerror") {
				t.Errorf("%s %s: %s", first, harm, text)
				p.restore()
			}
		}
		p.pairs(&n, before, first, toolchains[words[0]], slices.Contains([]string{"npm|test", "kubectl|get|secret|s"}, first))
	}
	for first, second := range map[string]string{ // a name includes its namespace
		"kubectl|logs|a": "kubectl|logs|a|-n|other", "kubectl|get|pods": "kubectl|get|pods|-A", "kubectl|describe|pod|a": "kubectl|describe|pod|a|--namespace=other",
		"kubectl|get|pods|-n|x": "kubectl|get|pods|-n|y", "kubectl|delete|pod|a": "kubectl|delete|pod|b", "docker|logs|c": "docker|logs|d",
	} {
		rules := p.agreed(strings.Split(first, "|")...)
		for line, want := range map[string]session.Verdict{first: Allowed, second: Unruled} {
			words := strings.Split(line, "|")
			if _, err := exec.LookPath(words[0]); err != nil {
				continue // the answer about a program that is not there covers nothing
			}
			if got, why := p.command.Approval(asCall(t, "", words...), rules); got != want {
				t.Errorf("yes to %s, then %s: %q (%s), want %q", first, line, got, why, want)
			}
		}
	}
	t.Logf("%d pairs: %d asked about; %d of those that were run are harmful", n.pairs, n.asked, n.harmful)
}
