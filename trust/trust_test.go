// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package trust_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/trust"
)

var (
	starts = trust.Power{Kind: trust.Starts, What: "npx server", Where: "/project"}
	reads  = trust.Power{Kind: trust.Reads, What: "/etc/hosts"}
	allows = trust.Power{Kind: trust.Allows, What: "run_command", Where: "/project"}
)

// K1: powers are listed worst first, each once, and cannot look like something else.
func TestPowers(t *testing.T) {
	var list trust.Powers
	for _, p := range []trust.Power{reads, starts, reads, allows} {
		list.Add(p)
	}
	if want := (trust.Powers{starts, allows, reads}); !slices.Equal(list, want) {
		t.Errorf("got %v", list)
	}
	evil := trust.Power{Kind: trust.Starts, What: "a\x1b[2K\r\u202eb\u200bc", Where: "/w\n/x"}
	if got, want := evil.String(), `starts the program a<U+001B>[2K<U+000D><U+202E>b<U+200B>c in /w<U+000A>/x`; got != want {
		t.Errorf("got %s", got)
	}
}

// K1: an address that does not begin with its host in plain letters is shown after that.
func TestAddress(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.openai.com/v1":                            "https://api.openai.com/v1",
		"http://127.0.0.1:1":                                   "http://127.0.0.1:1",
		"HTTPS://[::1]:8080?q":                                 "HTTPS://[::1]:8080?q",
		"connector_dropbox":                                    "connector_dropbox",
		"https://api.\u043epenai.com:8443/v1":                  "api.xn--penai-iye.com:8443: https://api.\u043epenai.com:8443/v1",
		"https://b\u00fccher.example":                          "xn--bcher-kva.example: https://b\u00fccher.example",
		"https://api.openai.com:443@evil.example/v1":           "evil.example: https://api.openai.com:443@evil.example/v1",
		"https://api.openai.com%2f@evil.example/v1":            "evil.example: https://api.openai.com%2f@evil.example/v1",
		"https://api.openai.com\u2215v1.evil.example/v1\u202e": "api.openai.xn--comv1-4d6b.evil.example: https://api.openai.com\u2215v1.evil.example/v1<U+202E>",
	} {
		for _, tt := range []struct {
			power trust.Power
			words string
		}{
			{trust.Power{Kind: trust.Sends, What: address}, "sends the conversation to "},
			{trust.Power{Kind: trust.Connects, What: address}, "connects to the MCP server "},
			{trust.Power{Kind: trust.Fetches, What: address}, "fetches "},
			{trust.Power{Kind: trust.Reveals, What: "ID", Where: address}, "sends the variable ID to "},
		} {
			if got := tt.power.String(); got != tt.words+want {
				t.Errorf("got  %s\nwant %s%s", got, tt.words, want)
			}
		}
	}
}

// K1: what a person does not see, and what hides other text, is a number.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"\u3164\u115f\u1160\uffa0\u2800\u034f\ufe0f\U000e0041\U0001d159": "<U+3164><U+115F><U+1160><U+FFA0><U+2800><U+034F><U+FE0F><U+E0041><U+1D159>",
		"n\u0336o\u20dd\u202e\u00ad\xff":                                 "n<U+0336>o<U+20DD><U+202E><U+00AD><U+FFFD>",
		"a\u0300\u0301\u0302\u0303b":                                     "a\u0300\u0301<U+0302><U+0303>b",
		"\u0301 \u0301\"\u0301":                                          "<U+0301> <U+0301>\"<U+0301>",
		"ที่ Tiê\u0301ng हिन्दी 漢字 é “x” → 1 😀":                          "ที่ Tiê\u0301ng हिन्दी 漢字 é “x” → 1 😀",
	} {
		if got := trust.Visible(text); got != want {
			t.Errorf("%+q: got %q, want %q", text, got, want)
		}
	}
}

// K1: a command line reads as what is run, and no two of them are the same text, also for a
// person: neither where a word ends nor what invisible characters stand for is left open.
func TestCommandLine(t *testing.T) {
	words := []string{"", "a", "b", "a b", "a  b", "a   b", "a\u2423×3b", "a          0", "a   0", "a\u2423×30", "a\u2423×3", "a   ", "'", "''", `"`, `\`, "'a", "a'b", "a=b", "-a=b", "--c=d e", "$HOME", "*", "~",
		"a\u202eb", "a<U+202E>b", "<U+003C>U+202E>", "a\tb", "a\nb", "é", "https://x.example/a,b@c+d%20:e", "x;y", "(and more)", "#", "!", "[x]", "{a,b}", "^", "\u0301"}
	sh, err := exec.LookPath("sh")
	seen := map[string][]string{}
	for _, a := range words {
		for _, list := range [][]string{{"p", a}, {a}, {"p", a, "b"}, {"p", "b", a}, {"p", a + " b"}} {
			line := trust.CommandLine(list...)
			said := trust.Power{Kind: trust.Starts, What: line, Where: "/w"}.String()
			if other, ok := seen[said]; ok && !slices.Equal(other, list) {
				t.Errorf("%q and %q look alike: %s", other, list, said)
			}
			seen[said] = list
			if err != nil {
				continue
			}
			if out, err := exec.CommandContext(t.Context(), sh, "-c", `printf '%s\0' `+line).Output(); err != nil || string(out) != strings.Join(list, "\x00")+"\x00" {
				t.Errorf("a shell reads %s as %q: %v", line, out, err)
			}
		}
	}
	for line, want := range map[string]string{
		trust.CommandLine("npx", "-y", "@scope/server@1.2", "--import=./x.mjs", "https://x.example/y"): "npx -y @scope/server@1.2 --import=./x.mjs https://x.example/y",
		trust.CommandLine("A=b", "c d", "it's"):                                                        `'A=b' 'c d' 'it'\''s'`,
		trust.CommandLine():                                                                            "",
	} {
		if line != want {
			t.Errorf("got %s, want %s", line, want)
		}
	}
}

// K6: an agreement is to the content of all sources and to the powers.
func TestCovers(t *testing.T) {
	c := trust.Claim{Sources: []trust.Source{{Path: "/a", Hash: "1"}, {Path: "/b", Hash: "2"}}, Powers: trust.Powers{starts, reads}}
	for name, tt := range map[string]struct {
		sources []trust.Source
		powers  trust.Powers
		want    bool
	}{
		"the same":         {c.Sources, c.Powers, true},
		"a copy":           {[]trust.Source{{Path: "/x", Hash: "1"}, {Path: "/y", Hash: "2"}}, c.Powers, true},
		"fewer powers":     {c.Sources, trust.Powers{reads}, true},
		"more powers":      {c.Sources, trust.Powers{starts, allows, reads}, false},
		"another folder":   {c.Sources, trust.Powers{{Kind: trust.Starts, What: "npx server", Where: "/other"}}, false},
		"another content":  {[]trust.Source{{Path: "/a", Hash: "1"}, {Path: "/b", Hash: "3"}}, c.Powers, false},
		"a source more":    {append(slices.Clone(c.Sources), trust.Source{Path: "/c", Hash: "2"}), c.Powers, false},
		"in another order": {[]trust.Source{{Path: "/a", Hash: "2"}, {Path: "/b", Hash: "1"}}, c.Powers, false},
	} {
		if got := c.Covers(&trust.Claim{Sources: tt.sources, Powers: tt.powers}); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// K1, K6: a store remembers what was agreed to and nothing else, also with many
// writers, and finds what was agreed to before a file changed.
func TestStore(t *testing.T) {
	s := trust.Open(filepath.Join(t.TempDir(), "data", "trust.jsonl"))
	claim := func(hash string, powers ...trust.Power) trust.Claim {
		return trust.Claim{Path: "/project/agent.md", Sources: []trust.Source{{Path: "/project/agent.md", Hash: hash}}, Powers: powers}
	}
	if _, ok, err := s.Find(claim("1", starts)); ok || err != nil {
		t.Fatal(ok, err)
	}
	var wait sync.WaitGroup
	for _, hash := range []string{"1", "2", "3", "4", "5", "6"} {
		wait.Go(func() {
			if err := s.Add(t.Context(), trust.GrantOf(claim(hash, starts), time.Now())); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if list, err := s.List(); err != nil || len(list) != 6 {
		t.Fatalf("%d grants, %v", len(list), err)
	}
	for _, tt := range []struct {
		claim trust.Claim
		want  bool
	}{{claim("1", starts), true}, {claim("6"), true}, {claim("7", starts), false}, {claim("1", starts, allows), false}} {
		if _, ok, err := s.Find(tt.claim); ok != tt.want || err != nil {
			t.Errorf("%v: %v %v", tt.claim, ok, err)
		}
	}
	more := trust.GrantOf(claim("1", starts, allows), time.Now(), trust.Variable{Name: "TOKEN", Host: "mcp.example"})
	if err := s.Add(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	if g, ok, err := s.Before("/project/agent.md"); !ok || err != nil || g.Hash != more.Hash || len(g.Variables) != 1 {
		t.Errorf("%v %v %v", g, ok, err)
	}
	removed, err := s.Remove(t.Context(), func(g trust.Grant) bool { return g.Hash == more.Hash })
	if err != nil || len(removed) != 1 {
		t.Errorf("%v %v: a grant with fewer powers was kept beside the one with all", removed, err)
	}
	if _, ok, _ := s.Find(claim("1", starts)); ok {
		t.Error("a revoked grant still holds")
	}
}

// K1: a store that others may write to, or that is damaged, is an error with its place
// and agrees to nothing.
func TestStoreIsNotBelieved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trust.jsonl")
	s := trust.Open(path)
	if err := s.Add(t.Context(), trust.GrantOf(trust.Claim{Path: "/a", Powers: trust.Powers{starts}}, time.Now())); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Find(trust.Claim{}); err == nil || !strings.Contains(err.Error(), "other users may write") {
		t.Error(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString("{\"at\":\n")
	_ = f.Close()
	if _, _, err := s.Find(trust.Claim{}); err == nil || !strings.Contains(err.Error(), path+":2: ") {
		t.Error(err)
	}
}

// K4: a variable is named together with its host.
func TestParseVariable(t *testing.T) {
	if v, err := trust.ParseVariable("TOKEN@MCP.example:8443"); err != nil || v != (trust.Variable{Name: "TOKEN", Host: "mcp.example:8443"}) {
		t.Error(v, err)
	}
	for _, bad := range []string{"", "TOKEN", "@host", "TOKEN@", "TOKEN@https://host/", "A B@host", "T@a@b"} {
		if _, err := trust.ParseVariable(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// K4: a variable is for the file for which the person named it. Another file with the
// same content has the powers, and not the variables. Agreeing again, also to more, keeps
// what was named before.
func TestVariablesOfPaths(t *testing.T) {
	s := trust.Open(filepath.Join(t.TempDir(), "trust.jsonl"))
	at := func(path string, powers ...trust.Power) trust.Claim {
		return trust.Claim{Path: path, Sources: []trust.Source{{Path: path, Hash: "1"}}, Powers: powers}
	}
	add := func(c trust.Claim, variables ...trust.Variable) {
		t.Helper()
		if err := s.Add(t.Context(), trust.GrantOf(c, time.Now(), variables...)); err != nil {
			t.Fatal(err)
		}
	}
	finds := func(c trust.Claim, want ...trust.Variable) {
		t.Helper()
		g, ok, err := s.Find(c)
		if err != nil || !ok || !slices.Equal(g.Variables, want) {
			t.Errorf("%s: %v %v, %v; want %v", c.Path, ok, g.Variables, err, want)
		}
	}
	a, b := trust.Variable{Name: "A", Host: "a.example"}, trust.Variable{Name: "B", Host: "b.example"}
	add(at("/one", starts), a)
	finds(at("/one", starts), a)
	finds(at("/two", starts))
	add(at("/two", starts), b)
	finds(at("/one", starts), a)
	finds(at("/two", starts), b)
	add(at("/one", starts, allows), b)
	finds(at("/one", starts), a, b)
	add(at("/one", starts)) // fewer powers, for example at another place
	finds(at("/one", starts, allows), a, b)
	finds(at("/one", starts), a, b)
	add(at("/one", starts, allows, reads))
	finds(at("/one", starts, allows, reads), a, b)
	if list, err := s.List(); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}

// A store without a file remembers nothing, and says so.
func TestStoreWithoutFile(t *testing.T) {
	t.Chdir(t.TempDir())
	var s trust.Store
	if err := s.Add(t.Context(), trust.Grant{}); err == nil || !strings.Contains(err.Error(), "use Open") {
		t.Error(err)
	}
	if _, err := s.Remove(t.Context(), func(trust.Grant) bool { return true }); err == nil {
		t.Error("removed")
	}
	if _, err := s.List(); err == nil {
		t.Error("listed")
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// K1: a store that is not a file is an error at once, and a line that is no grant has its place.
func TestHostileStore(t *testing.T) {
	dir := t.TempDir()
	if _, err := trust.Open(dir).List(); err == nil || !strings.Contains(err.Error(), "it is not a file") {
		t.Error(err)
	}
	if _, err := os.Stat("/dev/zero"); err == nil {
		link := filepath.Join(dir, "zero")
		if err := os.Symlink("/dev/zero", link); err != nil {
			t.Fatal(err)
		}
		if _, err := trust.Open(link).List(); err == nil || !strings.Contains(err.Error(), "it is not a file") {
			t.Error(err)
		}
	}
	path := filepath.Join(dir, "trust.jsonl")
	if err := trust.Open(path).Add(t.Context(), trust.Grant{}); err == nil {
		t.Error("a grant about no file was added")
	}
	hash := strings.Repeat("0", 64)
	for line, says := range map[string]string{
		"x":                           "it is not JSON at byte 0",
		"[]":                          "it has another form",
		"null":                        "its hash is missing",
		"{}":                          "its hash is missing",
		`{"path":"/a","hash":"00"}`:   "its hash is missing or not one",
		`{"hash":"` + hash + `"}`:     "its path is missing",
		`{"powers":[{"kind":1}]}`:     "it has another form",
		`{"hash":"` + hash + `"}  {}`: "it is not JSON",
	} {
		if err := os.WriteFile(path, []byte("\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := trust.Open(path).List(); err == nil || !strings.Contains(err.Error(), path+":2: not a grant of trust: "+says) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v", line, err)
		}
		if err := trust.Open(path).Add(t.Context(), trust.Grant{}); err == nil {
			t.Errorf("%s: replaced by a write", line)
		}
	}
}

// K1: a large store is read a line at a time, and a line that is damaged is an error wherever it is,
// whatever is looked for. What is too large to be a store's is refused at once.
func TestLargeStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trust.jsonl")
	s := trust.Open(path)
	claim := trust.Claim{Path: "/a", Powers: trust.Powers{starts}}
	if err := s.Add(t.Context(), trust.GrantOf(claim, time.Now())); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(line), `"/a"`, `"/b"`, 1)
	many := strings.Repeat(other, 1000)
	for name, tt := range map[string]struct {
		text  string
		fails string
	}{
		"many lines":               {many + string(line) + many, ""},
		"a damaged line before":    {many + other[:len(other)/2] + "\n" + string(line), ":1001: not a grant of trust"},
		"a damaged line after":     {string(line) + many + other[:len(other)/2], ":1002: not a grant of trust"},
		"a line that is too long":  {string(line) + strings.Repeat("x", 17<<20), ":2: not a grant of trust: it is longer than 16 MiB"},
		"a line that is cut short": {string(line)[:len(line)-2], ":1: not a grant of trust"},
	} {
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		g, found, err := s.Find(claim)
		if tt.fails == "" && (err != nil || !found || g.Path != "/a") {
			t.Errorf("%s: %v %v %v", name, g, found, err)
		}
		if tt.fails != "" && (err == nil || found || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%s: %v %v", name, found, err)
		}
		if _, err := s.Knows(trust.Source{Path: "/a"}); (err != nil) != (tt.fails != "") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Truncate(path, 513<<20); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Find(claim); err == nil || !strings.Contains(err.Error(), "it is larger than 512 MiB") {
		t.Errorf("huge: %v", err)
	}
}
