// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"fmt"
	"maps"
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
		"-ldflags=-extld=./touch.sh", "-pkgdir=PWNED", "-export", "-x", "-v", "-race|../outside", "./cmd/tool"},
	"cargo": {"--manifest-path=evil/Cargo.toml", "--target-dir=PWNED", "--config=build.rustc-wrapper='./touch.sh'", "-Zunstable-options", "--artifact-dir=PWNED", "--timings", "--message-format=json", "--|--nocapture", "-v", "PWNED", "--|PWNED"},
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

// newToolchains is a playground with the projects, the servers and the traps of toolchains.
func newToolchains(t *testing.T) *playground {
	t.Helper()
	servers := new(cluster)
	server := httptest.NewServer(servers)
	t.Cleanup(server.Close)
	scratch := t.TempDir()
	rustup := os.Getenv("RUSTUP_HOME")
	if home, err := os.UserHomeDir(); rustup == "" && err == nil {
		rustup = filepath.Join(home, ".rustup")
	}
	p := newPlayground(t, Options{Env: []string{
		"DOCKER_HOST=tcp://" + server.Listener.Addr().String(), "GOPATH=" + filepath.Join(scratch, "gopath"), "CARGO_HOME=" + filepath.Join(scratch, "cargo"), "CARGO_TARGET_DIR=" + filepath.Join(scratch, "target"), "RUSTUP_HOME=" + rustup,
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
		"work/Cargo.toml":        "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\npath = \"x.rs\"\n\n[[test]]\nname = \"own\"\nharness = false\n",
		"work/Cargo.lock":        "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 3\n\n[[package]]\nname = \"x\"\nversion = \"0.1.0\"\n",
		"work/x.rs":              "pub fn f() {}\n",
		"work/cmd/tool/main.go":  "package main\n\nfunc main() {}\n",
		"work/tests/own.rs":      "fn main() { for a in std::env::args().skip(1) { if !a.starts_with('-') { std::fs::write(a, \"\").unwrap(); } } }\n",
		"work/evil/Cargo.toml":   "[package]\nname = \"e\"\nversion = \"0.1.0\"\nbuild = \"build.rs\"\n\n[lib]\npath = \"build.rs\"\n",
		"work/evil/build.rs":     "fn main() { std::fs::write(\"PWNED\", \"\").unwrap(); }\n",
	} {
		p.write(name, text)
	}
	return p
}

// needed reports whether a program of the table runs here. With ANTIPHON_PAIRS=all, where
// .ci/setup has installed them, a toolchain that is missing is an error: its part of the
// table would not be tested. npm comes with Node.js, which .ci/setup does not install.
func needed(t *testing.T, name string) bool {
	t.Helper()
	there := works(t, name)
	if _, toolchain := toolchains[name]; toolchain && name != "npm" && !there && os.Getenv("ANTIPHON_PAIRS") == "all" {
		t.Errorf("%s does not run here: .ci/setup installs it", name)
	}
	return there
}

// A6: of pairs of a command that runs what a project holds or asks a server, and of the
// same with more options, none runs unasked and does something that nobody agreed to, by
// the real programs.
func TestRememberedToolchains(t *testing.T) {
	p := newToolchains(t)
	p.keep()
	before := p.state()
	var n counts
	for _, first := range []string{
		"go|test|./...", "go|vet|./...", "go|build|./...", "go|list|./...", "cargo|check", "cargo|test", "npm|test", "npm|run|x",
		"docker|ps", "docker|images", "docker|logs|c", "kubectl|get|pods", "kubectl|get|secret|s", "kubectl|describe|pod|a", "kubectl|logs|a",
	} {
		words := strings.Split(first, "|")
		if needed(t, words[0]) {
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

// operandsOf is what stands behind a verb and its options, for those where the kind of the
// operands does not say it.
var operandsOf = map[string]string{
	"git status": "sub", "git log": "HEAD", "git show": "HEAD", "git diff": "HEAD", "git cat-file": "HEAD", "git ls-tree": "HEAD", "git rev-parse": "HEAD", "git describe": "HEAD", "git ls-files": "sub",
	"find": ".", "ls": ".", "du": ".", "df": ".", "tree": ".", "sed": "1p|f", "tr": "a|b", "comm": "f|g", "paste": "f|g", "date": "+%s", "sleep": "0", "seq": "3", "which": "ls", "file": "f",
	"make": "all", "npm run": "x", "docker logs": "c", "kubectl get": "pods", "kubectl describe": "pod|a", "kubectl logs": "a",
}

// usualOperands are those of the other verbs, by their kind.
var usualOperands = map[operands]string{textWords: "x", paths: "f", filesOnly: "f|g", oneFile: "f", pattern: "hello|f", goPackages: "./..."}

// hostileValues are tried as the value of each option that takes one.
var hostileValues = []string{"../outside/secret", "PWNED", "touch PWNED", "|touch PWNED", "!touch PWNED", "%G?", "link", "1", "@args", ":(top)../outside/secret", "1,2:../outside/secret"}

// A6: none of the options of the table, with any value, makes its verb write, start or read
// what nobody agreed to: each is run by the real program if the answer about the verb
// covers it. A plain go test tries one in ten, and one in forty of slow programs;
// .ci/run tries all, by ANTIPHON_PAIRS=all.
func TestRememberedPairsOfOptions(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, and many of the options are its")
	}
	p := newToolchains(t)
	p.repositories()
	p.keep()
	before, all := p.state(), os.Getenv("ANTIPHON_PAIRS") == "all"
	ran, turn := 0, 0
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		verb := strings.Fields(name)
		if _, err := exec.LookPath(verb[0]); err != nil || !needed(t, verb[0]) {
			t.Logf("%s is not installed: its options are left out", verb[0])
			continue
		}
		behind, given := operandsOf[name]
		if !given {
			behind = usualOperands[verbs[name].operands]
		}
		words := slices.Concat(verb, strings.FieldsFunc(behind, func(r rune) bool { return r == '|' }))
		rules := p.agreed(words...)
		if len(rules) != 1 || rules[0].Prefix[len(rules[0].Prefix)-1] != session.KnownOptions {
			t.Errorf("%q: an answer about it leaves %v", words, rules)
			continue
		}
		_, slow := toolchains[verb[0]]
		for _, option := range optionsWithValues(verbs[name]) {
			turn++
			if !all && (slow && turn%40 != 0 || turn%10 != 0) {
				continue
			}
			call := asCall(t, "", slices.Concat(verb, option, words[len(verb):])...)
			if got, _ := p.command.Approval(call, rules); got != Allowed {
				continue
			}
			ran++
			if harm, text := p.does(before, call); harm != "" {
				t.Errorf("yes to %q, then %q with %q runs unasked and %s: %.300s", words, name, option, harm, text)
				p.restore()
			}
		}
	}
	t.Logf("%d options with values ran", ran)
	if ran < 100 || all && ran < 2000 {
		t.Errorf("only %d options with values ran: too few to show anything", ran)
	}
}

// optionsWithValues returns the options of a verb in all forms, each with hostile values.
func optionsWithValues(v verb) (list [][]string) {
	for _, option := range strings.Fields(v.options) {
		name, values, needs := strings.Cut(option, ":")
		bare := strings.TrimSuffix(name, "=")
		if !needs {
			list = append(list, []string{strings.Replace(bare, "-#", "-5", 1)})
		}
		if !needs && bare == name {
			continue
		}
		for _, value := range append(slices.Clone(hostileValues), strings.FieldsFunc(values, func(r rune) bool { return r == '|' })...) {
			if needs {
				list = append(list, []string{bare, value})
			}
			if strings.HasPrefix(bare, "--") || v.style == oneDash {
				list = append(list, []string{bare + "=" + value})
			} else if v.style == getopt {
				list = append(list, []string{bare + value})
			}
		}
	}
	return list
}
