// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// TestLoadProblems proves that one pass reports all that is wrong with a file,
// each problem once, at its place, in the order of the file. M4 M5
func TestLoadProblems(t *testing.T) {
	dir := t.TempDir()
	path := write(t, `<config temperature="hot" max_tokens="15" auto_compact/>
stray
<tool name="telepathy"/>
<tool name="read_file"><read id="a" path="nowhere"/><read id="b" path="${moon}"/><read id="c" path="agent.md"/></tool>
<tool name="read_file"/>
<tool name="append_to_file" approval="perhaps"/>
<tool name="read_directory" max_output="5"/>
<user>
	<img src="nope.png" local/>
</user>
<user><agent src="https://example.com/"/></user>
<script id="a"/>
`, dir, "agent.md")
	f, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything})
	var list chatmd.ErrorList
	if !errors.As(err, &list) {
		t.Fatalf("%v", err)
	}
	if !errors.Is(err, chatmd.ErrNotBuilt) {
		t.Error("no ErrNotBuilt in it")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("no fs.ErrNotExist in it")
	}
	if f == nil || f.Tools != nil || f.Items != nil || f.Close() != nil {
		t.Errorf("the file is %+v", f)
	}
	var got []string
	for _, p := range list {
		if p.File != path {
			t.Errorf("a problem of file %q", p.File)
		}
		p.File = "agent.md"
		got = append(got, p.Error())
	}
	want := []string{
		`agent.md:1:1: <config>: max_tokens is 15, below the minimum of endpoints (at least 16)`,
		`agent.md:1:9: <config>: temperature is not a number: "hot": temperature="hot" (such as temperature="0.7")`,
		`agent.md:2:1: text outside of any element: stray (put it inside <user> … </user>)`,
		`agent.md:3:1: unknown tool "telepathy" (there are: append_to_file, apply_patch, ask_user, find_and_replace, fork, import_image, index_markdown_docs, local_shell, markdown_search, read_directory, read_file, run_command, shell, webpage_to_markdown)`,
		`agent.md:4:24: <read path="nowhere">: ` + fs.ErrNotExist.Error(),
		`agent.md:4:53: <read path="${moon}">: unknown variable ${moon}: there are ${workspace}, ${prompt_dir}, ${tool_dir}, ${home}`,
		`agent.md:4:82: <read path="agent.md">: it is not a folder`,
		`agent.md:5:1: a second tool "read_file" (declare each tool once)`,
		`agent.md:6:1: <tool>: approval is "perhaps" (want "allow", "ask" or "deny")`,
		`agent.md:9:2: <img> cannot be read: ` + fs.ErrNotExist.Error() + `: <img src="nope.png" local/>`,
		`agent.md:11:7: <agent> cannot be read: agents from the network are not run; download the file and add the flag local: <agent src="https://example.com/"/>`,
		`agent.md:12:1: <script> is not built yet: <script id="a"/>`,
	}
	for i := range got { // the system's words for a missing file
		for _, words := range []string{"no such file or directory", "The system cannot find the file specified."} {
			got[i] = strings.Replace(got[i], words, fs.ErrNotExist.Error(), 1)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestLoadUnreadable proves that a file that cannot be read says so once. M4
func TestLoadUnreadable(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "nope.md"), dir} {
		_, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything})
		var list chatmd.ErrorList
		if err == nil || errors.As(err, &list) || strings.Count(err.Error(), path) != 1 || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestLoadWarnings proves that remarks come with the place, and with problems.
func TestLoadWarnings(t *testing.T) {
	path := write(t, "<config modle=\"m\"/>\n<user>x</user>\n", t.TempDir(), "a.md")
	f := load(t, path, agentfile.Options{Consent: trust.Everything})
	want := path + ":1:9: <config> has no attribute modle (did you mean model?) [warning]"
	if len(f.Warnings) != 1 || f.Warnings[0].Error() != want {
		t.Errorf("%v", f.Warnings)
	}
	path = write(t, "<config modle=\"m\"/>\n<tool name=\"x\"/>\n", t.TempDir(), "a.md")
	f, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything})
	if err == nil || len(f.Warnings) != 1 {
		t.Errorf("%v %v", err, f)
	}
}

// TestAgent proves that an agent is what its file says, and that what the file
// does not say is not set. B7
func TestAgent(t *testing.T) {
	dir := t.TempDir()
	f := load(t, write(t, "<user>x</user>", dir, "bare.md"), agentfile.Options{Consent: trust.Everything})
	if a := f.Agent(nil); a.Request.Model != "" || a.Request.Temperature != nil || a.Request.Store != nil || a.Request.MaxOutputTokens != nil ||
		a.Request.ParallelToolCalls != nil || a.Request.Reasoning != nil || a.Limits != (agent.Limits{}) || !reflect.ValueOf(a.Output).IsZero() || a.Tools != nil {
		t.Errorf("bare: %+v", a)
	}
	f = load(t, write(t, `<config model="m" base_url="http://h/v1" temperature="0" max_tokens="16" reasoning_effort="low"
 parallel_tool_calls="false" store="false" tool_output="envelope" max_turns="3" budget="1000"/>
<tool name="read_file" approval="ask" description="Mine." timeout="3s" parallel="false"/>
<tool name="append_to_file" approval="allow"/>
<tool name="find_and_replace" approval="deny"/>
<user>x</user>`, dir, "full.md"), agentfile.Options{Consent: trust.Everything})
	a := f.Agent(nil)
	if f.Model() != "m" || f.BaseURL() != "http://h/v1" || a.Request.Model != "m" || *a.Request.Temperature != 0 || *a.Request.MaxOutputTokens != 16 ||
		*a.Request.ParallelToolCalls || *a.Request.Store || a.Request.Reasoning.Effort != "low" || !a.Output.Envelope ||
		a.Limits != (agent.Limits{MaxTurns: 3, MaxTokens: 1000}) {
		t.Errorf("full: %+v", a)
	}
	rules := []session.Rule{ // in the order of the file
		{Verdict: session.Ask, Tool: "read_file", From: "full.md:3"},
		{Verdict: session.Allow, Tool: "append_to_file", From: "full.md:4"},
		{Verdict: session.Deny, Tool: "find_and_replace", From: "full.md:5"},
	}
	if d := cmp.Diff(rules, a.Policy.Rules); d != "" {
		t.Error(d)
	}
	def, _ := a.Tools[0].Definition().(*item.FunctionTool)
	annotations := tool.AnnotationsOf(a.Tools[0])
	if def == nil || def.Description != "Mine." || !annotations.ReadOnly || !annotations.Exclusive || annotations.Timeout.Seconds() != 3 {
		t.Errorf("read_file: %+v %+v", def, annotations)
	}
}

// TestRoots proves where file tools may look: the folders that are declared,
// with their variables, or else the workspace. A1
func TestRoots(t *testing.T) {
	dir := t.TempDir()
	write(t, "at home", dir, "home", "notes", "x.txt")
	write(t, "at work", dir, "work", "x.txt")
	write(t, "beside", dir, "agents", "x.txt")
	write(t, "below", dir, "agents", "sub", "x.txt")
	o := agentfile.Options{Workspace: filepath.Join(dir, "work"), Home: filepath.Join(dir, "home")}
	for _, c := range []struct{ tool, path, want string }{
		{`<tool name="read_file"/>`, "x.txt", "at work"},
		{`<tool name="read_file"><read id="r" path="${workspace}"/></tool>`, "x.txt", "at work"},
		{`<tool name="read_file"><read id="r" path="${prompt_dir}"/></tool>`, "x.txt", "beside"},
		{`<tool name="read_file"><read id="r" path="${tool_dir}/sub"/></tool>`, "x.txt", "below"},
		{`<tool name="read_file"><read id="r" path="sub"/></tool>`, "x.txt", "below"},
		{`<tool name="read_file"><read id="r" path="${home}/notes"/></tool>`, "x.txt", "at home"},
		{`<tool name="read_file"><read id="r" path="` + filepath.Join(dir, "work") + `"/></tool>`, "x.txt", "at work"},
		{`<tool name="read_file"><read id="r" path="."/><read id="s" path="sub"/></tool>`, "s:x.txt", "below"},
		{`<tool name="read_file"><read id="r" path="sub"/></tool>`, "../x.txt", ""},
	} {
		f := load(t, write(t, c.tool+"<user>x</user>", dir, "agents", "agent.md"), o)
		out := invoke(t, f, "read_file", `{"path":"`+c.path+`"}`)
		if out.Failed != (c.want == "") || !out.Failed && out.Content.Text != c.want {
			t.Errorf("%s: %+v", c.tool, out)
		}
	}
	path := write(t, `<tool name="read_file"><read id="r" path="${home}"/></tool><user>x</user>`, dir, "agents", "agent.md")
	if _, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), "the home folder is not known") {
		t.Errorf("%v", err)
	}
}

// M4: a tool or a folder of the original system that is not here is an error that
// names it as not built; a name that was mistyped gets the one that was meant.
func TestLoadNotBuilt(t *testing.T) {
	for text, want := range map[string]string{
		`<tool name="odoc_search"/>`:                                           `a.md:1:1: the tool "odoc_search" of the original system is not built yet (there are: append_to_file, `,
		`<tool name="add_line_numbers"/>`:                                      `a.md:1:1: the tool "add_line_numbers" of the original system is not built yet (`,
		`<tool name="read_fil"/>`:                                              `a.md:1:1: unknown tool "read_fil" (did you mean read_file? there are: append_to_file, `,
		`<tool name="read_file"><read id="a" path="${session_dir}/x"/></tool>`: "a.md:1:24: <read path=\"${session_dir}/x\">: ${session_dir} of the original system: not built yet; there are ${workspace}, ",
		`<user><doc src="${cache_dir}/x" local/></user>`:                       "a.md:1:7: <doc> cannot be read: ${cache_dir} of the original system: not built yet; there are ",
		`<user><img src="${source_dir}/x" local/></user>`:                      "a.md:1:7: <img> cannot be read: ${source_dir} of the original system: not built yet; there are ",
		"<user>x <!-- META_REFINE --></user>":                                  "a.md:1:9: <!-- META_REFINE --> is not built yet",
	} {
		dir := t.TempDir()
		path := write(t, text, dir, "a.md")
		_, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything})
		if err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, want[:4])+want[4:]) || errors.Is(err, chatmd.ErrNotBuilt) == strings.Contains(text, "read_fil\"") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// K1: an address that begins with a user looks like one of the user's name.
func TestLoadAddressesWithUsers(t *testing.T) {
	for text, want := range map[string]string{
		`<config base_url="https://api.openai.com:443@evil.example/v1"/>`:                     "a.md:1:1: <config>: base_url names a user, which hides the host (the host alone; a key belongs to the variable OPENAI_API_KEY)",
		`<config base_url="https://api.openai.com%2f@evil.example/v1"/>`:                      "a.md:1:1: <config>: base_url names a user, which hides the host (the host alone; a key belongs to the variable OPENAI_API_KEY)",
		`<tool mcp_server="https://mcp.example@evil.example/mcp"/>`:                           "a.md:1:1: <tool mcp_server>: the URL names a user, which hides the host (the host alone)",
		`<tool type="mcp" server_label="x" server_url="https://mcp.example@evil.example/m"/>`: "a.md:1:1: server_url names a user, which hides the host (the host alone)",
	} {
		dir := t.TempDir()
		_, err := agentfile.Load(t.Context(), write(t, text+"<user>x</user>", dir, "a.md"), agentfile.Options{Consent: trust.Everything})
		if err == nil || strings.TrimPrefix(err.Error(), dir+string(filepath.Separator)) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// M4: what is sent as it is and was probably mistyped has a remark, and so have
// two calls that share an id.
func TestLoadRemarks(t *testing.T) {
	const call = "<tool_call tool_call_id=\"c\" function_name=\"f\"/>\n"
	const answer = "<tool_response tool_call_id=\"c\">x</tool_response>\n"
	for text, want := range map[string]string{
		`<config reasoning_effort="hgih"/>`:                                `a.md:1:1: <config>: reasoning_effort "hgih" is not known and is sent as it is (did you mean high?) [warning]`,
		`<config reasoning_effort="xhigh"/>`:                               "",
		`<user><img src="https://x/a.png" detail="super"/></user>`:         `a.md:1:1: the detail "super" of an image is not known and is sent as it is (known are: low, high, auto, original) [warning]`,
		`<user><img src="https://x/a.png" detail="original"/></user>`:      "",
		call + call + answer + answer:                                      `a.md:2:1: the call of line 1 has the same id "c" and no response before this one; give each call its own id [warning]`,
		call + answer + call + answer:                                      "",
		`<user>“x” <img src="https://x/a.png" detail="auto"/> |RAW</user>`: "",
	} {
		dir := t.TempDir()
		f := load(t, write(t, text, dir, "a.md"), agentfile.Options{Consent: trust.Everything})
		got := ""
		for _, w := range f.Warnings {
			got += strings.TrimPrefix(w.Error(), dir+string(filepath.Separator))
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}
