// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/trust"
)

// canary is the text of files that must not be read.
const canary = "CANARY-7f3a"

// A place has a workspace with files in it, and files outside of it.
type place struct{ dir, work, outside, home string }

func newPlace(t *testing.T) place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := place{dir, filepath.Join(dir, "work"), filepath.Join(dir, "outside"), filepath.Join(dir, "home")}
	write(t, canary, p.outside, "secret.txt")
	write(t, canary, p.home, ".ssh", "id_rsa")
	write(t, canary, p.home, "notes.txt")
	write(t, "inside", p.work, "inside.txt")
	write(t, "inside", p.work, ".hidden.txt")
	write(t, "echo hi\n", p.work, "s.sh")
	write(t, "turn\n  say hi\n", p.work, "play.script")
	write(t, "turn\n  say "+canary+"\n", p.outside, "play.script")
	write(t, "<user>"+canary+"?</user>", p.outside, "agent.md")
	write(t, "<user>from inside</user>", p.work, "quiet.md")
	write(t, `<tool mcp_server="stdio:touch started"/><user>x</user>`, p.work, "loud.md")
	write(t, `<tool name="run_command" approval="allow"/>`, p.outside, "tools.md")
	write(t, `<tool type="web_search"/><user>x</user>`, p.work, "searches.md")
	for from, to := range map[string]string{"link.txt": filepath.Join(p.outside, "secret.txt"), "linked": p.outside} {
		if err := os.Symlink(to, filepath.Join(p.work, from)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p place) options() agentfile.Options {
	return agentfile.Options{Workspace: p.work, Home: p.home}
}

// K0, K1, K2: what a file may do beyond reading beside itself and asking is found
// without doing it, and without an agreement the file is not loaded.
func TestPowers(t *testing.T) {
	p := newPlace(t)
	for i, tt := range []struct{ text, want string }{
		// K0: no powers.
		{`<system><doc src="inside.txt" local/><import src="inside.txt"/></system><user><file src="inside.txt" local/></user>`, ""},
		{`<user><doc src="${workspace}/.hidden.txt" local/></user>`, ""},
		{`<tool name="read_file" approval="allow"/><tool name="run_command"/><tool name="apply_patch" approval="ask"/><user>x</user>`, ""},
		{`<tool name="hi" command="sh s.sh"/><tool name="no" command="rm" approval="deny"/><user>x</user>`, ""},
		{`<tool name="other" agent="quiet.md" local approval="allow"/><user><agent src="quiet.md" local/></user>`, ""},
		{`<config model="rehearsal:play.script"/><tool type="web_search"/><user>x</user>`, ""},
		{`<user><img src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"/><doc src="missing.txt" local/></user>`, "!missing"},
		{`<tool type="web_search"/><tool name="ask_user"/><user>x</user>`, ""},
		{`<tool type="code_interpreter" container="c"/><tool name="read_file"/><user>x</user>`, ""},
		{`<tool type="code_interpreter">{"container":{"type":"auto","file_ids":["f"],"memory_limit":"4g","network_policy":{"type":"disabled"}}}</tool><tool name="read_file"/><user>x</user>`, ""},
		// Ways out for what is read.
		{`<tool type="code_interpreter">{"container":{"type":"auto","network_policy":{"type":"allowlist","allowed_domains":["evil.example"]}}}</tool><user>x</user>`, "lets the model send what it reads to the web, by code_interpreter of the endpoint"},
		{`<tool type="code_interpreter">{"container":{"type":"auto","\u006eetwork_policy":{"type":"allowlist","allowed_domains":["evil.example"]}}}</tool><tool name="read_file"/><user>x</user>`, "lets the model send what it reads to the web, by code_interpreter of the endpoint"},
		{`<tool type="code_interpreter">{"container":{"type":"new","file_ids":["f"]}}</tool><tool name="read_file"/><user>x</user>`, "lets the model send what it reads to the web, by code_interpreter of the endpoint"},
		{`<tool type="code_interpreter">{"container":{"type":"auto","egress":"all"}}</tool><tool name="read_file"/><user>x</user>`, "lets the model send what it reads to the web, by code_interpreter of the endpoint"},
		{`<tool type="web_search"/><tool type="file_search">{"vector_store_ids":["v"]}</tool><user>x</user>`, "lets the model send what it reads to the web, by web_search of the endpoint"},
		{`<tool type="web_search"/><tool type="code_interpreter" container="c"/><user>x</user>`, "lets the model send what it reads to the web, by web_search of the endpoint"},
		{`<tool type="web_search"/><tool name="read_file"/><user>x</user>`, "lets the model send what it reads to the web, by web_search of the endpoint"},
		{`<tool type="web_search"/><user><doc src="inside.txt" local/></user>`, "lets the model send what it reads to the web, by web_search of the endpoint"},
		{`<tool type="new_thing">{"x":1}</tool><tool name="o" agent="quiet.md" local/><user>x</user>`, "lets the model send what it reads to the web, by new_thing of the endpoint"},
		{`<tool name="o" agent="searches.md" local/><tool name="read_file"/><user>x</user>`, "lets the model send what it reads to the web, by web_search of the endpoint"},
		// What the endpoint is made to do by the conversation.
		{`<user>x</user><item type="teleport">{"type":"teleport","to":{"href":"http://evil.example/x"}}</item>`, "lets the endpoint fetch from http://evil.example"},
		{`<user><img src="https://example.com/x.png?y"/><img src="https://u:p@Example.com/z.png"/><file src="http://10.0.0.1:8080/x"/></user>`, "lets the endpoint fetch from http://10.0.0.1:8080\nlets the endpoint fetch from https://example.com"},
		{`<user>x</user><item type="message">{"type":"message","role":"user","content":[{"type":"input_file","file_url":"file:///etc/passwd"}]}</item>`, "lets the endpoint fetch from file:///etc/passwd"},
		{`<system>x<img src="https://exаmple.com/"/></system><user>x</user>`, "lets the endpoint fetch from xn--exmple-4nf.com: https://exаmple.com"},
		{`<user>x</user><item type="message">{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:,","image\u005furl":"https://a.example/x"},{"type":"image_url","Image_URL":{"x":1,"url":"https://b.example"}}]}</item>`, "lets the endpoint fetch from https://a.example\nlets the endpoint fetch from https://b.example"},
		{`<user>x</user><item type="additional_tools">{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f"},{"type":"mcp","server_label":"x","server_url":"https://mcp.example/mcp"}]}</item>`, "connects to the MCP server https://mcp.example/mcp"},
		{`<user>x</user><item type="tool_search_call">{"type":"tool_search_call","call_id":"c","execution":"client","arguments":{}}</item><item type="tool_search_output">{"type":"tool_search_output","call_id":"c","execution":"client","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"},{"type":"web_search"}]}]}</item><tool name="read_file"/>`, "lets the model send what it reads to the web, by web_search of the endpoint"},
		{`<tool type="image_generation">{"input_image_mask":{"image_url":"https://a.example/x"}}</tool><user>x</user>`, "lets the endpoint fetch from https://a.example"},
		{`<tool type="mcp_next">{"server_url":"https://mcp.example/mcp"}</tool><user>x</user>`, "lets the endpoint fetch from https://mcp.example"},
		{`<tool type="mcp" server_label="x" server_url="https://mcp.example/mcp">{"Server_URL":"https://b.example"}</tool><user>x</user>`, "connects to the MCP server https://mcp.example/mcp\nlets the endpoint fetch from https://b.example"},
		{`<tool type="mcp" server_label="x" server_url="https://mcp.example/mcp">{"requireApproval":"never"}</tool><user>x</user>`, "!require_approval is not for files"},
		{`<tool type="mcp_next">{"require_approval":{"never":{}}}</tool><user>x</user>`, "!require_approval is not for files"},
		{`<user>x</user><item type="additional_tools">{"type":"additional_tools","role":"developer","tools":[{"type":"mcp","server_label":"x","server_url":"https://mcp.example/mcp","require_approval":"always","require_approval":"never"}]}</item>`, "!require_approval is not for files"},
		{`<user>x</user><item type="additional_tools">{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f","parameters":{"properties":{"require_approval":{}}}}]}</item>`, ""},
		{`<user>x</user><item type="additional_tools">{"type":"additional_tools","role":"developer","tools":[0,{"type":"web_search"}]}</item>`, `gives the model tools of the endpoint, which can be read in more than one way: {"type":"additional_tools","role":"developer","tools":[0,{"type":"web_search"}]}`},
		{`<user>x</user><item type="additional_tools">{"type":"additional_tools","role":"developer","tools":[{"type":"mcp","type":"function","name":"f"}],"x":"` + strings.Repeat("x", 200) + `"}</item>`, `gives the model tools of the endpoint, which can be read in more than one way: {"type":"additional_tools","role":"developer","tools":[{"type":"mcp","type":"function","name":"f"}],"x":"` + strings.Repeat("x", 95) + `…`},
		{`<user>x</user><item type="message">{"type":"message","role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"http://169.254.169.254/x"},{"type":"input_image","image_url":"/home/me/private.png"}]}</item>`, "lets the endpoint fetch from /home/me/private.png\nlets the endpoint fetch from http://169.254.169.254"},
		{`<user>x</user><item type="message">{"type":"message","role":"user","content":[{"type":"image","source":{"type":"url","url":"http://169.254.169.254/x"}}]}</item>`, "lets the endpoint fetch from http://169.254.169.254"},
		{`<user>x</user><item type="teleport">{"type":"teleport","to":"ht\ttps:evil.example","by":["\\\\evil\\x"],"url":["//a.example"]}</item>`, "lets the endpoint fetch from a.example: //a.example\nlets the endpoint fetch from \\\\evil\\x\nlets the endpoint fetch from ht<U+0009>tps:evil.example"},
		{`<user><doc src="https://a.example/x"/><img src="https://a.example/x"/></user>`, "fetches https://a.example/x\nlets the endpoint fetch from https://a.example"},
		// What it changes.
		{`<tool name="read_file"><read id="d" path="../outside"/></tool><tool name="log" command="rm -f x"/><user>x</user>`, "reads, changes and deletes what is in OUTSIDE/"},
		{`<tool name="read_file"><read id="d" path="../outside"/></tool><tool name="append_to_file"/><user>x</user>`, "reads, changes and deletes what is in OUTSIDE/"},
		{`<tool name="read_file"><read id="d" path="../outside"/></tool><tool name="run_command"/><user>x</user>`, "reads, changes and deletes what is in OUTSIDE/"},
		{`<tool name="get_contents"><read id="d" path="../outside"/></tool><tool name="markdown_search"/><user>x</user>`, "reads OUTSIDE/"},
		// Programs, calls without approval, variables.
		{`<tool mcp_server="stdio:npx -y 'some server'"/><user>x</user>`, `starts the program npx -y 'some server' in WORK`},
		{`<tool mcp_server='stdio:  "npx"  -y some\ server'/><user>x</user>`, `starts the program npx -y 'some server' in WORK`},
		{`<tool mcp_server='stdio:sh "s.sh x"'/><user>x</user>`, `starts the program sh 's.sh x' in WORK`},
		{`<tool mcp_server='stdio:node linked "a b, which x uses"'/><user>x</user>`, "starts the program node linked 'a b, which x uses' in WORK\nlets linked (a link to outside), which node linked 'a b, which x uses' in WORK uses, change later without a new question"},
		{`<tool mcp_server="stdio:sh s.sh" approval="allow" server="s" include="a,b"/><user>x</user>`, "starts the program sh s.sh in WORK\nallows itself a, b of the MCP server s in WORK, without asking you"},
		{`<tool mcp_server="https://mcp.example/mcp" approval="allow" server="w in /tmp, after asking" include="a,(b)"/><user>x</user>`, "allows itself a, \"(b)\" of the MCP server \"w in /tmp, after asking\" in WORK, without asking you\nconnects to the MCP server https://mcp.example/mcp"},
		{`<tool mcp_server="https://mcp.example/mcp" client_id_env="ID" client_secret_env="SECRET"/><user>x</user>`,
			"sends the variable ID to https://mcp.example/mcp\nsends the variable SECRET to https://mcp.example/mcp\nconnects to the MCP server https://mcp.example/mcp"},
		{`<tool mcp_server="https://mcp.example/mcp" credentials="caller"/><tool mcp_server="https://b.example/mcp" credentials="operator"/><user>x</user>`,
			"sends the token that a client of the server gives for it to the MCP server https://mcp.example/mcp\nconnects to the MCP server https://b.example/mcp\nconnects to the MCP server https://mcp.example/mcp"},
		{`<tool name="run_command" shell approval="allow"/><user>x</user>`, "allows itself run_command (any command that the model chooses) in WORK, without asking you"},
		{`<tool name="hi" command="sh s.sh" approval="allow"/><user>x</user>`, "allows itself hi, that is sh s.sh (and arguments that the model adds) in WORK, without asking you"},
		{`<tool name="hi" command="echo  (and%20nothing%20else)" approval="allow"/><user>x</user>`, "allows itself hi, that is echo '(and' nothing 'else)' (and arguments that the model adds) in WORK, without asking you"},
		{`<tool name="webpage_to_markdown" approval="allow"/><user>x</user>`, "allows itself webpage_to_markdown (any page that the model chooses) in WORK, without asking you"},
		{`<tool name="other" agent="loud.md" local/><user>x</user>`, "starts the program touch started in WORK"},
		{`<user><agent src="loud.md" local/></user>`, "starts the program touch started in WORK"},
		// What its programs may do.
		{`<tool name="run_command" sandbox="full"/><user>x</user>`, "gives run_command in WORK all your permissions, outside of the sandbox"},
		{`<tool name="hi" command="sh s.sh" sandbox="network"/><user>x</user>`, "gives hi, that is sh s.sh in WORK the network"},
		{`<tool name="run_command" hosts="b.example, *.A.example:8443"/><user>x</user>`, "lets run_command in WORK reach *.a.example:8443\nlets run_command in WORK reach b.example"},
		{`<tool name="hi" command="sh s.sh" sandbox="hosts" hosts="b.example"/><user>x</user>`, "lets hi, that is sh s.sh in WORK reach b.example"},
		{`<tool mcp_server="stdio:sh s.sh" sandbox="full"/><user>x</user>`, "gives the MCP server sh s.sh in WORK all your permissions, outside of the sandbox\nstarts the program sh s.sh in WORK"},
		{`<tool mcp_server="stdio:sh s.sh" hosts="b.example"/><user>x</user>`, "starts the program sh s.sh in WORK"},
		{`<tool name="run_command" sandbox="read-only"/><tool name="shell" sandbox="workspace"/><user>x</user>`, ""},
		{`<tool mcp_server="stdio:sh s.sh link.txt"/><user>x</user>`, "READS OUTSIDE/secret.txt"},
		{`<tool mcp_server="stdio:sh s.sh linked/secret.txt"/><user>x</user>`, "READS OUTSIDE/secret.txt"},
		{`<tool mcp_server="stdio:sh ../outside/play.script"/><user>x</user>`, "READS OUTSIDE/"},
		{`<tool mcp_server="stdio:linked/play.script"/><user>x</user>`, "READS OUTSIDE/"},
		// Where it sends.
		{`<config base_url="http://127.0.0.1:1/v1" model="m"/><user>x</user>`, "sends the conversation to http://127.0.0.1:1/v1"},
		{`<config base_url="https://mine.example/v1" model="m"/><user>x</user>`, ""},
		{`<tool type="mcp" server_label="x" server_url="https://evil.example/mcp" approval="allow"/><user>x</user>`, "allows itself x.* in WORK, without asking you\nconnects to the MCP server https://evil.example/mcp"},
		{`<user><doc src="https://evil.example/a b"/></user>`, "fetches https://evil.example/a b"},
		// What it reads.
		{`<system><doc src="../outside/secret.txt" local/></system><user>x</user>`, "reads OUTSIDE/secret.txt"},
		{`<user><img src="` + p.outside + `/secret.txt" local/></user>`, "reads OUTSIDE/secret.txt"},
		{`<user><file src="linked/secret.txt" local/> <doc src="link.txt" local/></user>`, "reads OUTSIDE/secret.txt"},
		{`<user><doc src="${home}/.ssh/id_rsa" local/></user>`, "reads HOME/.ssh/id_rsa"},
		{`<user><import src="../outside/secret.txt"/></user>`, "reads OUTSIDE/secret.txt"},
		{`<user><agent src="../outside/agent.md" local/></user>`, "reads OUTSIDE/agent.md"},
		{`<tool name="a" agent="../outside/agent.md" local/><user>x</user>`, "reads OUTSIDE/agent.md"},
		{`<config model="rehearsal:../outside/play.script"/><user>x</user>`, "reads OUTSIDE/play.script"},
		{`<tool name="read_file"><read id="all" path="/"/></tool><user>x</user>`, "reads /"},
		{`<user><doc src="../outside/secret.txt" local sha256="00"/></user>`, "reads OUTSIDE/secret.txt"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			path := write(t, tt.text, p.work, fmt.Sprintf("agent%d.md", i))
			o := p.options()
			o.Configured = func(base string) bool { return base == "https://mine.example/v1" }
			f, err := agentfile.Load(t.Context(), path, o)
			if f != nil {
				defer f.Close()
			}
			if tt.want == "" {
				if err != nil && !strings.Contains(err.Error(), "agents are not run here") || f != nil && len(f.Claim().Powers) > 0 {
					t.Fatalf("a file without powers: %v, %v", f.Claim().Powers, err)
				}
				return
			}
			if missing, ok := strings.CutPrefix(tt.want, "!"); ok {
				if err == nil || !strings.Contains(err.Error(), missing) {
					t.Fatal(err)
				}
				return
			}
			var refused *trust.UntrustedError
			if !errors.As(err, &refused) {
				t.Fatalf("loaded without trust: %v", err)
			}
			if what, ok := strings.CutPrefix(tt.want, "READS "); ok && sandbox.Network().Supported() == nil {
				if got := p.says(refused.Claim.Powers); !slices.Contains(strings.Split(got, "\n"), "reads "+what) {
					t.Errorf("got:\n%s", got)
				}
			} else if got := p.says(refused.Claim.Powers); !ok && got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
			p.checkQuiet(t, path, o, err, refused.Claim.Powers)
		})
	}
}

// K1: a person who knows none of the built-in tools can read what those do that a file allows
// itself.
func TestAllowedBuiltinsAreExplained(t *testing.T) {
	p := newPlace(t)
	explained := 0
	for _, b := range toolkit.Builtins() {
		for _, name := range append([]string{b.Name}, b.Aliases...) {
			path := write(t, `<tool name="`+name+`" approval="allow"/><user>x</user>`, p.work, "agent.md")
			o := p.options()
			o.Check = true
			for _, power := range load(t, path, o).Claim().Powers {
				if explained++; !strings.HasPrefix(power.String(), "allows itself "+name+" (any ") {
					t.Errorf("it says only: %s", power)
				}
			}
		}
	}
	if explained < 6 {
		t.Errorf("only %d tools need a power", explained)
	}
}

// says returns powers as text, with names for the folders of the test.
func (p place) says(powers trust.Powers) string {
	var lines []string
	for _, power := range powers {
		lines = append(lines, power.String())
	}
	return strings.NewReplacer(p.work, "WORK", p.outside, "OUTSIDE", p.home, "HOME").Replace(strings.Join(lines, "\n"))
}

// checkQuiet checks a file without an agreement, and expects that nothing of what is
// outside appears anywhere. K3
func (p place) checkQuiet(t *testing.T, path string, o agentfile.Options, err error, want trust.Powers) {
	t.Helper()
	o.Check = true
	f, checkErr := agentfile.Load(t.Context(), path, o)
	said := fmt.Sprint(err, checkErr)
	if f != nil {
		defer f.Close()
		for _, it := range f.Items {
			said += it.JSON()
		}
		said += fmt.Sprint(f.Warnings, f.Lint(), f.Notes())
		if got := f.Claim().Powers; !slices.Equal(got, want) {
			t.Errorf("check says %v, and a run %v", got, want)
		}
		allowsOnly := !slices.ContainsFunc(want, func(p trust.Power) bool { return p.Kind != trust.Allows })
		if err := f.Connect(t.Context(), agentfile.Environment{Lookup: os.LookupEnv}, nil); (err == nil) != allowsOnly {
			t.Error("a file that was only checked is connected")
		}
	}
	if strings.Contains(said, canary) {
		t.Errorf("what is outside was read: %s", said)
	}
	if _, err := os.Stat(filepath.Join(p.work, "started")); err == nil {
		t.Error("a program was started")
	}
}

// K2: in the home folder, what is hidden does not belong to a file beside it.
func TestHiddenFilesOfHome(t *testing.T) {
	p := newPlace(t)
	o := agentfile.Options{Workspace: p.home, Home: p.home}
	path := write(t, `<user><doc src=".ssh/id_rsa" local/> <doc src="notes.txt" local/></user>`, p.home, "agent.md")
	var refused *trust.UntrustedError
	if _, err := agentfile.Load(t.Context(), path, o); !errors.As(err, &refused) || p.says(refused.Claim.Powers) != "reads HOME/.ssh/id_rsa" {
		t.Errorf("%v", err)
	}
}

// K2: the home folder is that of the system's list of users if nothing else names it.
func TestHiddenFilesOfHomeWithoutVariable(t *testing.T) {
	u, err := user.Current()
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		t.Skipf("the system knows no home folder: %v", err)
	}
	for _, name := range []string{"HOME", "USERPROFILE", "home"} {
		t.Setenv(name, "")
	}
	path := write(t, `<user><doc src="${workspace}/.antiphon-test/none" local/></user>`, t.TempDir(), "agent.md")
	var refused *trust.UntrustedError
	if _, err := agentfile.Load(t.Context(), path, agentfile.Options{Workspace: u.HomeDir}); !errors.As(err, &refused) || len(refused.Claim.Powers) != 1 || refused.Claim.Powers[0].Kind != trust.Reads {
		t.Errorf("%v", err)
	}
	path = write(t, `<tool name="read_file"/><user>x</user>`, t.TempDir(), "agent.md")
	f := load(t, path, agentfile.Options{Workspace: u.HomeDir})
	call := tool.Call{ID: "c", Name: "read_file", Arguments: `{"path":".antiphon-test/none"}`}
	if got, why := f.Tools[0].(agent.ApprovalAdvisor).Approval(call, nil); got != session.Ask {
		t.Errorf("%v %s", got, why)
	}
}

// K1: a person is asked again when an import from outside brings more powers, and an
// answer that leaves out what a file allows itself makes the calls ask.
func TestConsentIsAskedUntilAllIsKnown(t *testing.T) {
	p := newPlace(t)
	path := write(t, `<import src="../outside/tools.md"/><user>x</user>`, p.work, "agent.md")
	var asked []string
	o := p.options()
	o.Consent = func(_ context.Context, c trust.Claim) (trust.Agreement, error) {
		asked = append(asked, p.says(c.Powers))
		a, _ := trust.Everything(t.Context(), c)
		a.Powers = slices.DeleteFunc(slices.Clone(a.Powers), func(p trust.Power) bool { return p.Kind == trust.Allows })
		return a, nil
	}
	f, err := agentfile.Load(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []string{"reads OUTSIDE/tools.md", "allows itself run_command (any command that the model chooses) in WORK, without asking you\nreads OUTSIDE/tools.md"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	if rules := f.Agent(nil).Policy.Rules; len(rules) > 0 {
		t.Errorf("the file allows itself %v", rules)
	}
}

// K1: a file with mistakes is not asked about, because it cannot run and its powers are not all known. Only if an import or
// an agent must be read first, which may be what is missing, is a person asked about that.
func TestMistakesComeBeforeTheQuestion(t *testing.T) {
	for text, asks := range map[string]bool{
		`<user><doc src="../outside/secret.txt" local/> <img src="https://evil.example/x.png"/></user><tool name="nosuch"/>`: false,
		`<config model="rehearsal:../outside/x.script"/><tool name="nosuch"/><user>x</user>`:                                 false,
		`<read path="../outside"/><import src="part.md"/><user><doc src="../outside/secret.txt" local/></user>`:              false,
		`<import src="../outside/tools.md"/><tool name="nosuch"/><user>x</user>`:                                             true,
	} {
		p := newPlace(t)
		path := write(t, text, p.work, "agent.md")
		write(t, `<tool name="nosuch"/>`, p.work, "part.md")
		o, asked := p.options(), false
		o.Consent = func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
			asked = true
			return trust.Everything(ctx, c)
		}
		f, err := agentfile.Load(t.Context(), path, o)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "nosuch") || asked != asks {
			t.Errorf("%s: asked: %v, %v", text, asked, err)
		}
	}
}

// K1: what the person saw is what is used, whatever happens to the files meanwhile.
func TestConsentIsForWhatWasRead(t *testing.T) {
	p := newPlace(t)
	path := write(t, `<import src="part.md"/><user><doc src="../outside/secret.txt" local/> <import src="part.txt"/></user>`, p.work, "agent.md")
	write(t, `<system>before</system>`, p.work, "part.md")
	write(t, "before", p.work, "part.txt")
	o := p.options()
	o.Consent = func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
		write(t, `<tool mcp_server="stdio:touch started"/>`, p.work, "part.md")
		write(t, "after", p.work, "part.txt")
		return trust.Everything(ctx, c)
	}
	f, err := agentfile.Load(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := textOf(t, f.Items[1]); got != canary+" before" || len(f.Claim().Powers) != 1 {
		t.Errorf("%q, %v", got, f.Claim().Powers)
	}
}

// K5, K6: a changed byte of the file, an import, an agent or a script that a command names
// is another claim; what runs append to a transcript of this user is not, and what a stranger
// appended to a trusted file is.
func TestClaimCoversContent(t *testing.T) {
	p := newPlace(t)
	text := `<import src="part.md"/><tool name="hi" command="sh s.sh" approval="allow"/><tool name="o" agent="quiet.md" local/><user>x</user>` + "\n"
	path := write(t, text, p.work, "agent.md")
	write(t, `<system>part</system>`, p.work, "part.md")
	known := true
	hash := func() string {
		o := p.options()
		o.Check, o.Known = true, func(trust.Source) (trust.Left, bool) { return trust.Left{}, known }
		f := load(t, path, o)
		c := f.Claim()
		return c.Hash()
	}
	seen := map[string]string{hash(): "the first"}
	for _, change := range []struct{ name, text string }{
		{"agent.md", text + "<user>y</user>\n"}, {"part.md", "<system>other</system>"}, {"quiet.md", "<user>other</user>"}, {"s.sh", "echo ho\n"},
	} {
		write(t, change.text, p.work, change.name)
		now := hash()
		if other, ok := seen[now]; ok {
			t.Errorf("a change of %s is not another claim than %s", change.name, other)
		}
		seen[now] = change.name
	}
	before := hash()
	write(t, read(t, path)+"<run/>\n<assistant>hi</assistant>\n", p.work, "agent.md")
	if hash() != before {
		t.Error("what a run appended changes the claim")
	}
	if known = false; hash() == before {
		t.Error("a stranger's transcript that begins like a trusted file is trusted")
	}
}

// K6: a script that has changed is asked about, even if the calls of its command are allowed. Only
// what the file allows itself is part of the claim.
func TestChangedScriptIsAskedAbout(t *testing.T) {
	for approval, claimed := range map[string]bool{"": false, `approval="ask"`: false, `approval="allow"`: true} {
		t.Run(approval, func(t *testing.T) {
			p := newPlace(t)
			f := load(t, write(t, `<tool name="hi" command="sh s.sh" `+approval+`/><user>x</user>`, p.work, "agent.md"), p.options())
			isScript := func(s trust.Source) bool { return filepath.Base(s.Path) == "s.sh" }
			if got := slices.ContainsFunc(f.Claim().Sources, isScript); got != claimed {
				t.Errorf("the claim covers the script: %v", got)
			}
			judge := f.Tools[0].(agent.ApprovalAdvisor)
			call := tool.Call{Name: "hi", Arguments: "{}"}
			if verdict, reason := judge.Approval(call, nil); verdict != "" {
				t.Errorf("unchanged: %q, %q", verdict, reason)
			}
			write(t, "echo ho\n", p.work, "s.sh")
			if verdict, reason := judge.Approval(call, nil); verdict != session.Ask || !strings.Contains(reason, "s.sh has changed") {
				t.Errorf("changed: %q, %q", verdict, reason)
			}
		})
	}
}

// K2, K6: what takes the place of a script while the question about the file is open is not what
// the person agreed to, also if it is a link, or if there was no script.
func TestScriptChangesDuringTheQuestion(t *testing.T) {
	link := func(p place) error {
		write(t, "touch evil\n", p.work, "evil.sh")
		return os.Symlink("evil.sh", filepath.Join(p.work, "s.sh"))
	}
	for name, tt := range map[string]struct {
		missing bool // at the question
		change  func(p place) error
	}{
		"other text":  {false, func(p place) error { write(t, "touch evil\n", p.work, "s.sh"); return nil }},
		"a link":      {false, func(p place) error { return errors.Join(os.Remove(filepath.Join(p.work, "s.sh")), link(p)) }},
		"a new file":  {true, func(p place) error { write(t, "touch evil\n", p.work, "s.sh"); return nil }},
		"a new link":  {true, link},
		"it is there": {false, nil},
		"none":        {true, nil},
	} {
		for _, tag := range []string{`<tool name="hi" command="sh s.sh" approval="allow"/>`, `<tool mcp_server="stdio:sh s.sh"/>`} {
			t.Run(name+" "+tag, func(t *testing.T) {
				p := newPlace(t)
				if tt.missing {
					if err := os.Remove(filepath.Join(p.work, "s.sh")); err != nil {
						t.Fatal(err)
					}
				}
				o, asked := p.options(), trust.Claim{}
				o.Consent = func(_ context.Context, c trust.Claim) (trust.Agreement, error) {
					if asked.Path == "" && tt.change != nil {
						if err := tt.change(p); err != nil {
							t.Fatal(err)
						}
					}
					asked = c
					return trust.Agreement{Powers: c.Powers}, nil
				}
				f := load(t, write(t, tag+"<user>x</user>", p.work, "agent.md"), o)
				if c := f.Claim(); asked.Path == "" || c.Hash() != asked.Hash() {
					t.Errorf("asked about %+v, and the file is %+v", asked, c)
				}
				said := ""
				if len(f.Tools) > 0 {
					_, said = f.Tools[0].(agent.ApprovalAdvisor).Approval(tool.Call{Name: "hi", Arguments: "{}"}, nil)
				} else if err := f.Connect(t.Context(), agentfile.Environment{Lookup: os.LookupEnv}, nil); err != nil {
					said = err.Error()
				}
				if changed := strings.Contains(said, "since the agent's file was read"); changed != (tt.change != nil) {
					t.Errorf("it says %q", said)
				}
			})
		}
	}
}

// K6: a file that a command names is covered as what it is named for, whatever its size, and
// what cannot be covered is a power that says so.
func TestClaimCoversCommands(t *testing.T) {
	p := newPlace(t)
	huge := func(t *testing.T, name, text string, size int64) {
		if err := os.Truncate(write(t, text, p.work, name), size); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		command string
		change  func(t *testing.T)
		says    string // the power, if the change is not noticed
	}{
		"a file with the name of the program takes the place of the script": {"sh run.sh", func(t *testing.T) {
			write(t, read(t, filepath.Join(p.work, "run.sh")), p.work, "sh")
			huge(t, "run.sh", "touch evil\n", 1<<31)
		}, ""},
		"two scripts change places": {"sh run.sh other.sh", func(t *testing.T) {
			write(t, "echo other\n", p.work, "run.sh")
			write(t, "echo good\n", p.work, "other.sh")
		}, ""},
		"a large script":            {"sh large.sh", func(t *testing.T) { huge(t, "large.sh", "touch evil\n", 65<<20) }, ""},
		"a module":                  {"python3 -m srv", func(t *testing.T) { write(t, "evil", p.work, "srv.py") }, ""},
		"a module with its option":  {"python3 -msrv", func(t *testing.T) { write(t, "evil", p.work, "srv.py") }, ""},
		"a module in a package":     {"python3 -m pkg.srv", func(t *testing.T) { write(t, "evil", p.work, "pkg", "__init__.py") }, ""},
		"a package":                 {"python3 -m pkg", func(*testing.T) {}, "lets pkg (a folder), which python3 -m pkg in WORK uses, change later without a new question"},
		"a module comes into being": {"python3 -m later", func(t *testing.T) { write(t, "evil", p.work, "later.py") }, ""},
		"the value of an option":    {"node --import=./run.sh", func(t *testing.T) { write(t, "evil", p.work, "run.sh") }, ""},
		"right after an option":     {"node -r./run.sh", func(t *testing.T) { write(t, "evil", p.work, "run.sh") }, ""},
		"an extension is added":     {"node ./hook", func(t *testing.T) { write(t, "evil", p.work, "hook.js") }, ""},
		"both":                      {"node -r./hook", func(t *testing.T) { write(t, "evil", p.work, "hook.js") }, ""},
		"in a line for a shell":     {"sh -c 'exec node run.sh'", func(t *testing.T) { write(t, "evil", p.work, "run.sh") }, ""},
		"what npm starts":           {"npm start", func(t *testing.T) { write(t, `{"scripts":{"start":"evil"}}`, p.work, "package.json") }, ""},
		"what make makes":           {"/usr/bin/make -s serve", func(t *testing.T) { write(t, "serve:\n\tevil\n", p.work, "Makefile") }, ""},
		"what a shell has npm do":   {"sh -c 'npm run serve'", func(t *testing.T) { write(t, `{"scripts":{"serve":"evil"}}`, p.work, "package.json") }, ""},
		"a folder outside":          {"node ../outside", func(*testing.T) {}, "lets ../outside (a folder outside), which node ../outside in WORK uses, change later without a new question"},
		"a link to outside":         {"sh link.txt", func(*testing.T) {}, "lets link.txt (a link to outside), which sh link.txt in WORK uses, change later without a new question"},
		"a link in a linked folder": {"sh linked/secret.txt", func(*testing.T) {}, "lets linked/secret.txt (a link to outside), which sh linked/secret.txt in WORK uses, change later without a new question"},
		"a file outside":            {"sh ../outside/secret.txt", func(*testing.T) {}, "lets ../outside/secret.txt (outside), which sh ../outside/secret.txt in WORK uses, change later without a new question"},
		"more than can be read":     {"sh vast.sh", func(*testing.T) {}, "lets vast.sh (too large to check), which sh vast.sh in WORK uses, change later without a new question"},
		"a folder":                  {"node pkg", func(*testing.T) {}, "lets pkg (a folder), which node pkg in WORK uses, change later without a new question"},
		"no file":                   {"sh sh nothing -m nothing https://x.example/y", func(*testing.T) {}, "!"},
		"a folder like the program": {"pkg s.sh", func(*testing.T) {}, "!"},
		"a program of the system":   {"/bin/sh s.sh", func(*testing.T) {}, "!"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, "echo good\n", p.work, "run.sh")
			write(t, "echo other\n", p.work, "other.sh")
			write(t, "good()", p.work, "hook.js")
			write(t, "echo good\n", p.work, "srv.py")
			write(t, "", p.work, "pkg", "__init__.py")
			write(t, "", p.work, "pkg", "__main__.py")
			huge(t, "large.sh", "echo good\n", 65<<20)
			huge(t, "vast.sh", "echo good\n", 1<<40)
			_ = os.Remove(filepath.Join(p.work, "sh"))
			_ = os.Remove(filepath.Join(p.work, "later.py"))
			o := p.options()
			o.Check = true
			for i, text := range []string{`<tool name="t" command="` + strings.ReplaceAll(tt.command, " ", "%20") + `" approval="allow"/><user>x</user>`, `<tool mcp_server="stdio:` + tt.command + `"/><user>x</user>`} {
				if i == 0 && strings.Contains(tt.command, "'") {
					continue // such a command is not split by a shell
				}
				path := write(t, text, p.work, "agent.md")
				before := load(t, path, o).Claim()
				says := p.says(slices.DeleteFunc(slices.Clone(before.Powers), func(p trust.Power) bool { return p.Kind != trust.Varies }))
				if want := strings.TrimPrefix(tt.says, "!"); says != want {
					t.Errorf("it says %q", says)
				}
				if i == 0 {
					continue // one change is enough
				}
				tt.change(t)
				if after := load(t, path, o).Claim(); tt.says == "" && before.Covers(&after) {
					t.Error("the change is covered by the agreement")
				}
			}
		})
	}
}

// K1: a person who agreed to an agent's file is not asked again about a transcript
// that begins with it, also in another folder.
func TestTranscriptOfTrustedFile(t *testing.T) {
	p := newPlace(t)
	write(t, `<system>part</system>`, p.work, "part.md")
	path := write(t, `<import src="part.md"/><tool name="run_command" approval="allow"/><system><doc src="inside.txt" local/></system><user>x</user>`, p.work, "agent.md")
	out := write(t, "", p.outside, "chats", "keep")
	out = filepath.Join(filepath.Dir(out), "chat.md")
	var began []trust.Claim
	o := p.options()
	o.Workspace = filepath.Join(p.dir, "elsewhere")
	write(t, "", o.Workspace, "keep")
	o.Consent, o.Began = trust.Everything, func(c trust.Claim) { began = append(began, c) }
	f, store, err := agentfile.OpenTranscript(t.Context(), path, out, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), store, out)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, session.RunStarted{}, session.InputItem{Item: item.User("more")})
	f.Close()
	asked := 0
	o.Known = func(s trust.Source) (trust.Left, bool) { return trust.Left{}, slices.Contains(began[0].Sources, s) }
	o.Began, o.Consent = nil, func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
		asked++
		if !slices.ContainsFunc(began, func(b trust.Claim) bool { return b.Covers(&c) }) {
			return trust.Agreement{}, fmt.Errorf("not what the transcript began with: %v, %v", c, began)
		}
		return trust.Everything(ctx, c)
	}
	again, _, err := agentfile.OpenTranscript(t.Context(), path, out, o)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if asked == 0 {
		t.Error("nobody was asked about what the transcript reads in the folder of the agent")
	}
}

// K1: nobody is shown a list of powers that nobody can read.
func TestMostPowers(t *testing.T) {
	p := newPlace(t)
	var images strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&images, `<img src="https://h%d.example/"/>`, i)
	}
	_, err := agentfile.Load(t.Context(), write(t, `<user>`+images.String()+`</user>`, p.work, "many.md"), p.options())
	if err == nil || !strings.Contains(err.Error(), "more than 1000 powers") {
		t.Error(err)
	}
}
